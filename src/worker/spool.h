/*
 * Outcomes that could not be recorded, one fsynced file each in the state folder, until
 * the store takes them. They are kept in the order in which they came and replayed in
 * it, each under its token: one that is stale by then changes nothing and is dropped.
 *
 *      <folder>/00000000000000000017-REQUEST-TOKEN.json
 *
 * spool_put is for any thread, the rest for one.
 */
#ifndef WORKER_SPOOL_H
#define WORKER_SPOOL_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct finish_order;
struct run_env;
struct spool;

#define SPOOL_MAX 10000 /* files; what comes beyond is left to the sweep */

/* Make the folder if it is missing and see what lies there. */
int spool_open(const char *folder, struct spool **ret_spool,
               struct err *err) must_check;
void spool_free(struct spool *spool); /* accepts NULL; the files stay */

/* Keep an outcome. Durable when this returns 0; -ERR_TOO_LARGE: full. */
int spool_put(struct spool *spool, const struct finish_order *order,
              struct err *err) must_check;

/* It is recorded (or lost): forget it. No such entry is fine. */
void spool_drop(struct spool *spool, int64_t request_id, int64_t token);

size_t spool_count(struct spool *spool);

struct spool_counts {
    int64_t recorded;
    int64_t stale;   /* the claim had been closed by somebody else: dropped */
    int64_t refused; /* damaged, or never to be taken: put aside as *.refused */
};

/*
 * Record what is there, oldest first, until the store does not answer: then its
 * failure, and what is left stays. The counts are written either way.
 */
int spool_replay(struct spool *spool, const struct run_env *env,
                 struct spool_counts *ret_counts, struct err *err) must_check;

#endif
