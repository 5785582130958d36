/*
 * Those who wait for a request to change: long polls (?wait=) and event streams.
 * One thread serves them all: it looks at the store when something became final
 * and once a second while somebody streams or no pushes arrive.
 */
#ifndef API_WATCH_H
#define API_WATCH_H

#include "base/compiler.h"

#include <stdint.h>

struct api;
struct err;
struct http_request;
struct watch;

int watch_new(struct api *api, struct watch **ret_watch, struct err *err) must_check;
/* Answers everybody with what there is, and ends the thread. Who comes later is
 * answered at once, so handlers may still run. Accepts NULL, as watch_free. */
void watch_end(struct watch *watch);
/* After watch_end, when no handler runs any more. */
void watch_free(struct watch *watch);

/* Answer req when the request is final or wait_us have passed. Any thread. */
void watch_hold(struct watch *watch, struct http_request *req, int64_t request_id,
                int64_t wait_us);

/* Stream the request to req on each change, until it is final. Any thread. */
void watch_stream(struct watch *watch, struct http_request *req, int64_t request_id);

/* Nobody waits any longer: answer long polls now, say goodbye to streams. */
void watch_drain(struct watch *watch);

#endif
