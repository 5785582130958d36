/*
 * What a webhook's receiver gets: the event (CloudEvents 1.0.2, structured JSON) and
 * its signature (Standard Webhooks 1.0). Functions of their arguments; any thread.
 */
#ifndef WORKER_HOOK_H
#define WORKER_HOOK_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct clock;
struct config_webhook;
struct err;
struct http_client;
struct request;

#define HOOK_SECRETS_MAX 2 /* while one replaces the other */
#define HOOK_EVENT_MAX   (20 * 1000)
#define HOOK_EVENT_TYPE  "application/cloudevents+json; charset=utf-8"

struct hook_secrets {
    struct {
        const uint8_t *bytes;
        size_t len;
    } list[HOOK_SECRETS_MAX];
    size_t count;
};

/*
 * From a key's value: one secret, or two with blanks between. `whsec_` and base64 is
 * decoded, anything else is used as it is. -ERR_CONFIG names what is wrong, and never
 * the value. Bytes live in the arena.
 */
int hook_secrets_read(const char *value, struct arena *arena,
                      struct hook_secrets *ret_secrets, struct err *err) must_check;

/* "v1,<base64>" of id.timestamp.body, one for each secret, a blank between. In the
 * arena. timestamp_s: since 1970 UTC. */
const char *hook_signature(const struct hook_secrets *secrets, const char *id,
                           int64_t timestamp_s, const char *body, size_t len,
                           struct arena *arena);

/* The same for each try of the same: what a receiver tells a repeat by. In the arena.
 */
const char *hook_event_id(const char *store_id, int64_t request_id, const char *webhook,
                          struct arena *arena);

/* The body; at most HOOK_EVENT_MAX bytes, whatever is in the request, which must be
 * final. */
void hook_event_add(struct buf *out, const char *store_id, const char *event_id,
                    const struct request *request);

/* --- what comes of a call --- */

struct hook_try {
    int status;            /* 0: there was no answer */
    int64_t asked_wait_us; /* by the receiver; 0 = none */
    int attempts;          /* this one included */
    int64_t age_us;        /* since the request ended */
};

enum hook_verdict { HOOK_HEARD, HOOK_AGAIN, HOOK_NEVER };

/* Only 2xx is heard: a redirect would take the secret's owner elsewhere. 410 and about
 * three days without success, twelve tries at least, are the end. */
enum hook_verdict hook_judge(const struct hook_try *try, int64_t *ret_wait_us);

/* Is it the receiver as a whole that cannot be told now? */
bool hook_is_away(int status);

/* How long to leave such a receiver alone, after so many failures in a row. */
int64_t hook_pause_us(const struct hook_try *try, int failures);

/* How long nobody else may try what is being told: by a call that may take so long, a
 * slow store and a process that stood still for a moment. */
int64_t hook_lease_us(int64_t timeout_us);

/* A Retry-After in seconds or as a date, at most a day; 0 = none that can be read. */
int64_t hook_asked_wait_us(const char *retry_after, int64_t wall_us);

/* --- the call --- */

struct hook_send {
    struct http_client *client;
    const struct config_webhook *webhook;
    const struct hook_secrets *secrets;
    const char *store_id;
    const struct clock *clock;
    bool (*is_over)(void *arg); /* asked about once a second: break off? */
    void *is_over_arg;
};

/*
 * Tell the receiver. 0 with what it said in *ret_try (status, asked_wait_us), and in
 * why, for the log (it may name the address). -ERR_CANCELLED: there was no time.
 */
int hook_send(const struct hook_send *send, const struct request *request,
              struct arena *arena, struct hook_try *ret_try, char *why,
              size_t size) must_check;

#endif
