/*
 * Inside service/: what a caller meets that a dead worker holds is closed on the spot.
 * Those who may judge and close are the workers; here they are told to look now, and
 * waited for a moment. Only where no worker can live is it done here.
 */
#ifndef SERVICE_BURY_H
#define SERVICE_BURY_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct err;
struct service;

/*
 * Is this request RUNNING under a worker that is dead, and was it closed just now? 1:
 * ask again, the way may be free. 0: it is not, or nobody closed it within two seconds,
 * or nobody is there who would, or another caller of this server waits already.
 */
int service_bury(const struct service *service, int64_t request_id) must_check;

/*
 * For a process that carries out work itself but has no reaper (`pawl run`): where no
 * worker is there that could judge, watch the silent one for more than a beat, and
 * close what it held. own: our worker id. 1: closed; 0: it beats, or others judge; < 0.
 */
int service_bury_alone(const struct service *service, int64_t request_id,
                       const char *own, struct err *err) must_check;

/* Behind a refusal because of a request whose worker may be dead: that it is silent,
 * and when the request is closed for that, or that nobody is there to do it. */
void service_tell_silence(const struct service *service, int64_t request_id,
                          struct err *err);

/* Wait until done(arg) or for so long; whatever happens in the store, it is asked
 * again. Returns what done said last. */
int service_await(const struct service *service, int64_t most_us,
                  int (*done)(void *arg), void *arg) must_check;

#endif
