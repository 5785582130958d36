/*
 * The life of parts: a part is made under the token of a claim and stays as long as
 * that claim, and after it as long as a checkpoint covers it and the instance may still
 * be gone on with. Then whoever sees it removes it.
 */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include "base/compiler.h"

#include <stdint.h>

struct err;
struct result_store;
struct store;

/*
 * Look at all parts, or only at those of one instance or of one claim (0 = any), and
 * remove what nobody writes and no checkpoint covers. *ret_dropped: how many.
 */
int parts_drop_uncovered(struct store *store, const struct result_store *results,
                         int64_t instance, int64_t token, int64_t *ret_dropped,
                         struct err *err) must_check;

/*
 * A new instance of a job of which only the last one can be gone on with: remove the
 * parts of those before it. What a crash leaves of that is found by the look above.
 */
int parts_drop_before(struct store *store, const struct result_store *results,
                      const char *job, int64_t instance, struct err *err) must_check;

#endif
