/*
 * The statuses pawl speaks. To add one: a row here.
 */
#include "net/http.h"

#include "base/compiler.h"

#include <stddef.h>

struct status_row {
    int status;
    const char *text;
    const char *code;
};

static const struct status_row rows[] = {
    {200, "OK", "OK"},
    {201, "Created", "OK"},
    {202, "Accepted", "OK"},
    {204, "No Content", "OK"},
    {206, "Partial Content", "OK"},
    {303, "See Other", "SEE_OTHER"},
    {304, "Not Modified", "NOT_MODIFIED"},
    {400, "Bad Request", "BAD_REQUEST"},
    {401, "Unauthorized", "UNAUTHORIZED"},
    {403, "Forbidden", "FORBIDDEN"},
    {404, "Not Found", "NOT_FOUND"},
    {405, "Method Not Allowed", "METHOD_NOT_ALLOWED"},
    {406, "Not Acceptable", "NOT_ACCEPTABLE"},
    {408, "Request Timeout", "REQUEST_TIMEOUT"},
    {409, "Conflict", "CONFLICT"},
    {410, "Gone", "GONE"},
    {411, "Length Required", "LENGTH_REQUIRED"},
    {412, "Precondition Failed", "PRECONDITION_FAILED"},
    {413, "Content Too Large", "TOO_LARGE"},
    {414, "URI Too Long", "URI_TOO_LONG"},
    {415, "Unsupported Media Type", "UNSUPPORTED_MEDIA_TYPE"},
    {416, "Range Not Satisfiable", "RANGE_NOT_SATISFIABLE"},
    {417, "Expectation Failed", "EXPECTATION_FAILED"},
    {421, "Misdirected Request", "MISDIRECTED_REQUEST"},
    {422, "Unprocessable Content", "UNPROCESSABLE"},
    {428, "Precondition Required", "PRECONDITION_REQUIRED"},
    {429, "Too Many Requests", "TOO_MANY_REQUESTS"},
    {431, "Request Header Fields Too Large", "HEADERS_TOO_LARGE"},
    {500, "Internal Server Error", "INTERNAL_ERROR"},
    {501, "Not Implemented", "NOT_IMPLEMENTED"},
    {502, "Bad Gateway", "BAD_GATEWAY"},
    {503, "Service Unavailable", "SERVICE_UNAVAILABLE"},
    {504, "Gateway Timeout", "GATEWAY_TIMEOUT"},
    {505, "HTTP Version Not Supported", "HTTP_VERSION_NOT_SUPPORTED"},
    {507, "Insufficient Storage", "DISK_FULL"},
};

static const struct status_row *
row_of(int status)
{
    static const struct status_row unknown = {0, "Unknown", "UNKNOWN"};

    for (size_t i = 0; i < array_len(rows); i++)
        if (rows[i].status == status)
            return &rows[i];
    return &unknown;
}

const char *
http_status_text(int status)
{
    return row_of(status)->text;
}

const char *
http_status_code(int status)
{
    return row_of(status)->code;
}
