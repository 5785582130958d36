/* The keys of a call, by what it is for. */
#include "io/http_spec.h"
#include "io/option.h"

/* clang-format off */
#define CALL_OPTIONS \
    {"url", IO_OPTION_TEXT, true, NULL, "http or https; {name} is percent-encoded"}, \
    {"method", IO_OPTION_WORD, false, "GET POST PUT PATCH DELETE HEAD", "default GET; POST with a body"}, \
    {"query", IO_OPTION_MAP, false, NULL, "name to text; {name} and {key:NAME} in it"}, \
    {"headers", IO_OPTION_MAP, false, NULL, "name to text"}, \
    {"body", IO_OPTION_TEXT, false, NULL, "text that is sent"}, \
    {"json", IO_OPTION_ANY, false, NULL, "map or list that is sent as JSON"}, \
    {"budget", IO_OPTION_TEXT, false, NULL, "one of `budgets`: each attempt takes a call"}, \
    {"connect_timeout", IO_OPTION_DURATION, false, NULL, "default 10s"}, \
    {"timeout", IO_OPTION_DURATION, false, NULL, "of the whole call; default 60s"}, \
    {"max_bytes", IO_OPTION_SIZE, false, NULL, "of a reply; default 16MiB"}, \
    {"outcomes", IO_OPTION_MAP, false, NULL, "what a status and a code in the reply mean"}, \
    {"retry", IO_OPTION_ANY, false, NULL, "`none`, or {attempts, wait, factor, max_wait}"}

static const struct io_option step_options[] = {
    CALL_OPTIONS,
    {"token", IO_OPTION_MAP, false, NULL, "a call made first, for {token}"},
};

static const struct io_option token_options[] = {
    CALL_OPTIONS,
    {"path", IO_OPTION_TEXT, true, NULL, "where the token is in the reply"},
};

static const struct io_option fetch_options[] = {
    CALL_OPTIONS,
    {"token", IO_OPTION_MAP, false, NULL, "a call made first, for {token}"},
    {"file", IO_OPTION_TEXT, true, NULL, "name of the file; steps after it read `run:NAME`"},
    {"unzip", IO_OPTION_TEXT, false, NULL, "the reply is a zip and this its entry; * the first"},
    {"bytes", IO_OPTION_SIZE, false, NULL, "its size must be this"},
    {"min_bytes", IO_OPTION_SIZE, false, NULL, "and not less than this"},
    {"sha256", IO_OPTION_TEXT, false, NULL, "of the file, 64 hexadecimal digits"},
};

static const struct io_option process_options[] = {
    CALL_OPTIONS,
    {"token", IO_OPTION_MAP, false, NULL, "a call made first, for {token}"},
    {"rows", IO_OPTION_MAP, false, NULL, "{json: PATH} or {xml: PATH}: where the rows are"},
    {"fields", IO_OPTION_ANY, false, NULL, "column to path in a row, or a list of names"},
    {"columns", IO_OPTION_LIST, false, NULL, "of the item that go along; default all"},
    {"alternatives", IO_OPTION_MAP, false, NULL, "{name: [a, b]}: b when a gives no data"},
    {"pages", IO_OPTION_MAP, false, NULL, "how to ask for further pages"},
    {"content", IO_OPTION_MAP, false, NULL, "the body itself into a column"},
};

static const struct io_option write_options[] = {
    CALL_OPTIONS,
    {"token", IO_OPTION_MAP, false, NULL, "a call made first, for {token}"},
    {"per", IO_OPTION_WORD, false, "row chunk", "a call for each row (default), or one for all rows of a chunk"},
    {"as", IO_OPTION_WORD, false, "json jsonl", "of `per: chunk`: a JSON list (default), or an object a line"},
    {"idempotency_key", IO_OPTION_TEXT, false, NULL, "name of the header with the call's key; default Idempotency-Key"},
};
/* clang-format on */

const struct io_option *
http_options(enum http_use use, size_t *ret_count)
{
    switch (use) {
    case HTTP_USE_PROCESS:
        *ret_count = array_len(process_options);
        return process_options;
    case HTTP_USE_STEP:
        *ret_count = array_len(step_options);
        return step_options;
    case HTTP_USE_FETCH:
        *ret_count = array_len(fetch_options);
        return fetch_options;
    case HTTP_USE_WRITE:
        *ret_count = array_len(write_options);
        return write_options;
    case HTTP_USE_TOKEN:
        break;
    }
    *ret_count = array_len(token_options);
    return token_options;
}
