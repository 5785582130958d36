/*
 * One call of an http_spec, to its end: budget, attempts, token, and what the reply
 * means. A talk belongs to one thread; the http_link behind it (the spec and the token)
 * is shared by all threads of a step.
 */
#ifndef IO_HTTP_TALK_H
#define IO_HTTP_TALK_H

#include "base/arena.h"
#include "base/buf.h"
#include "io/http_spec.h"
#include "io/io_ctx.h"
#include "io/reply_tree.h"

#include <pthread.h>

struct call_names;
struct err;
struct http_client;

/* How a call ended, seen from the item that it was made for. */
enum http_end {
    HTTP_END_OK,
    HTTP_END_NO_DATA,
    HTTP_END_UPSTREAM, /* no good reply after all attempts: err tells */
    HTTP_END_REJECTED, /* the outcome `skip`: err tells */
    HTTP_END_STOP,     /* no call is left: said.why tells */
    HTTP_END_LIMIT,    /* the same, because the provider said so */
    HTTP_END_CUT,      /* the run is to end at once */
};

struct http_link {
    struct io_ctx *io;
    const struct http_spec *spec;
    pthread_mutex_t lock;
    char *token; /* NULL: not fetched yet */
    int64_t token_round;
};

void http_link_init(struct http_link *link, struct io_ctx *io,
                    const struct http_spec *spec);
void http_link_release(struct http_link *link);

/* What a caller adds to its calls, the same in each attempt of one. */
struct http_sent {
    const char *header; /* one more */
    const char *value;
    const char *body; /* in place of the spec's; NULL: that one */
    size_t body_len;
    const char *content_type; /* of body, unless the spec's headers name one */
};

struct http_talk {
    struct http_link *link;
    const struct http_sent *sent; /* NULL: nothing; not sent when a token is fetched */
    struct http_client *client;
    struct arena arena; /* of one call */
    char shown[200];
};

int http_talk_init(struct http_talk *talk, struct http_link *link,
                   struct err *err) must_check;
void http_talk_release(struct http_talk *talk);

/* One more query parameter, for pages. */
struct http_extra {
    const char *name; /* NULL: none */
    char value[24];
};

/* Where a 2xx body goes when not into memory (fetch). */
struct http_sink {
    int fd; /* emptied before each attempt */
};

struct http_said {
    enum http_end end;
    char code[64];          /* the provider's, "" = none */
    char why[IO_WHY_MAX];   /* STOP, LIMIT */
    bool spent;             /* STOP: because the day of the budget is used up */
    struct reply_tree tree; /* OK: unless the reply is a document; root NULL */
    struct buf body;        /* OK: of a document */
    int64_t bytes;          /* of the body */
};

void http_said_release(struct http_said *said);

/* Strike keys and the token out of a text that tells of a reply. Between calls. */
void http_talk_strike(struct http_talk *talk, char *text);

/*
 * Ask and judge. 0: *ret_said tells (release it), for UPSTREAM and REJECTED err tells
 * why. < 0: the run cannot go on: -ERR_CONFIG, or -ERR_FORBIDDEN for the outcome
 * `fatal`. extras: two.
 */
int http_talk_call(struct http_talk *talk, struct call_names *names,
                   const struct http_extra extras[2], const struct http_sink *sink,
                   struct http_said *ret_said, struct err *err) must_check;

#endif
