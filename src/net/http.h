/*
 * Words shared by the HTTP server and client: header fields and status texts.
 */
#ifndef NET_HTTP_H
#define NET_HTTP_H

struct http_field {
    const char *name;
    const char *value;
};

/* "Not Found" for 404; "Unknown" for a status without a row. */
const char *http_status_text(int status);

/* Stable code word for an answer the HTTP layer gives by itself: "BAD_REQUEST". */
const char *http_status_code(int status);

#endif
