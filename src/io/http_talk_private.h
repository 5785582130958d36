/*
 * Inside of one attempt of a call, for the files of the talk only: http_talk.c (the
 * order), http_fill.c, http_judge.c, http_token.c, http_strike.c. The thread of the
 * talk.
 */
#ifndef IO_HTTP_TALK_PRIVATE_H
#define IO_HTTP_TALK_PRIVATE_H

#include "io/http_talk.h"
#include "net/http_client.h"

#define CALL_URL_MAX_BYTES  (16 << 10)
#define CALL_BODY_MAX_BYTES (4 << 20)
#define CALL_FIELDS_MAX     33
#define CALL_SAYING_MAX     160

struct http_attempt {
    struct http_talk *talk;
    const struct http_spec *spec;
    struct call_names *names;
    const struct http_extra *extras;
    const struct http_sink *sink;
    struct http_said *said;
    struct http_reply reply;
    enum http_outcome outcome;
    int64_t retry_after_ms; /* what the provider asked for; 0 = nothing */
    int64_t token_round;
};

/* What the caller adds to this attempt, or NULL. */
const struct http_sent *http_sent_of(const struct http_attempt *attempt);

/* Name the calls of the talk in messages as those of spec. */
void http_show_as(struct http_talk *talk, const struct http_spec *spec);

/* Strike the keys and the token that the attempt sends out of a text. */
void http_strike_out(const struct http_attempt *attempt, char *text);

/* The texts of the spec filled with the names of the attempt. -ERR_CONFIG, -ERR_INVALID
 * or -ERR_TOO_LARGE. fields: CALL_FIELDS_MAX, their texts in the talk's arena. */
int http_fill_url(const struct http_attempt *attempt, struct buf *url,
                  struct err *err) must_check;
int http_fill_headers(const struct http_attempt *attempt, struct http_field *fields,
                      size_t *ret_count, struct err *err) must_check;
int http_fill_body(const struct http_attempt *attempt, struct buf *body,
                   struct err *err) must_check;

/* What the reply means: the outcome, said, and, when it is no good one, err. */
void http_judge(struct http_attempt *attempt, struct err *err);

/* A token for the names of the attempt, a new one if renew. 0: it is there or the spec
 * needs none, 1: said->end is set, < 0. */
int http_token_get(struct http_attempt *attempt, bool renew,
                   struct err *err) must_check;

/* Attempts until one is good or no more are to be made: 0: said->end is set, < 0. */
int http_attempts_run(struct http_attempt *attempt, struct err *err) must_check;

#endif
