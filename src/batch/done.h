/* Which work of a job is done already. Any thread. */
#ifndef BATCH_DONE_H
#define BATCH_DONE_H

#include "base/compiler.h"

struct err;
struct store;

/* identity: the canonical identifying parameters of an instance; good for the call. */
typedef void (*batch_done_fn)(void *arg, const char *identity);

/* Every identity that has a COMPLETED instance, once or more, in no order. */
int batch_done_identities(struct store *store, const char *job, batch_done_fn done,
                          void *arg, struct err *err) must_check;

#endif
