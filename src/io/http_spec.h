/*
 * What a job says about a call: read once from its definition, checked, then read-only
 * for all threads. Used by the processor and the writer `http`, the steps `http` and
 * `fetch`, and for the `token` of each. docs/collect.md is the page of its keys.
 */
#ifndef IO_HTTP_SPEC_H
#define IO_HTTP_SPEC_H

#include "base/compiler.h"
#include "io/reply_tree.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct io_option;

#define HTTP_CODE_PATHS_MAX 8

/* What a reply means. */
enum http_outcome {
    HTTP_OK,
    HTTP_NO_DATA,
    HTTP_LIMIT,
    HTTP_TRANSIENT,
    HTTP_FATAL,
    HTTP_RENEW,
    HTTP_SKIP,
    HTTP_OUTCOME_COUNT
};

enum http_use {
    HTTP_USE_PROCESS,
    HTTP_USE_STEP,
    HTTP_USE_FETCH,
    HTTP_USE_WRITE,
    HTTP_USE_TOKEN
};

struct http_pages {
    const char *param; /* NULL: one page */
    const char *size_param;
    int64_t from;
    int64_t step;
    int64_t size; /* 0 = not told */
    int64_t max;
    const char *total; /* paths, or NULL */
    const char *last;
};

struct http_content {
    const char *column; /* NULL: the reply is data, not a document */
    const char *zip;    /* template of the entry, "*" = the first; NULL: no zip */
    const json_t *encodings;
    int64_t max_bytes;
};

struct http_spec {
    const json_t *def;
    const char *where; /* for messages: "process.http" */
    enum http_use use;

    const char *method;
    const char *url;
    const json_t *query; /* maps of templates, or NULL */
    const json_t *headers;
    const char *body;
    const json_t *json;
    const char *budget; /* NULL: none */
    int64_t connect_ms;
    int64_t timeout_ms;
    int64_t max_bytes;

    const char *code_paths[HTTP_CODE_PATHS_MAX];
    size_t n_code_paths;
    const char *message_paths[HTTP_CODE_PATHS_MAX];
    size_t n_message_paths;
    const json_t *codes;  /* code to outcome word, or NULL */
    const json_t *status; /* "429", "4xx", "default" to outcome word, or NULL */
    enum http_outcome other;
    enum http_outcome absent;

    int attempts;
    int64_t wait_ms;
    int64_t max_wait_ms;
    int64_t factor;

    const char *rows_path; /* NULL: one row a reply */
    enum reply_format rows_format;
    bool loose;                 /* outer elements may be left out of paths */
    const json_t *fields;       /* column to path, or a list; NULL: none */
    const json_t *columns;      /* of the item that go along; NULL: all */
    const char *alternative;    /* name, or NULL */
    const json_t *alternatives; /* a list, or a text "{param}" */
    struct http_pages pages;
    struct http_content content;

    struct http_spec *token; /* owned; NULL: none */
    const char *token_path;  /* of a token spec */
};

/* def must outlive ret_spec; where must too. -ERR_CONFIG. Release it. */
int http_spec_read(const json_t *def, const char *where, enum http_use use,
                   struct http_spec *ret_spec, struct err *err) must_check;
void http_spec_release(struct http_spec *spec);

bool http_outcome_parse(const char *word, enum http_outcome *ret_outcome);

/* The keys that there are, for documentation. */
const struct io_option *http_options(enum http_use use, size_t *ret_count);

#endif
