/*
 * The checkpoint of a step whose rows go into a database that is not the store: a row
 * of the table pawl_checkpoint there, changed in the transaction of the rows. That row
 * is the truth; what the store keeps is a copy for people. All calls on the caller's
 * connection, and from its thread.
 *
 * A run raises the row's token to its own before it reads where the step stands, in a
 * transaction of its own. From then on no earlier run can commit a chunk: its token
 * does not stand there any more, however late it wakes.
 */
#ifndef BATCH_FOREIGN_H
#define BATCH_FOREIGN_H

#include "batch/execution.h"

struct foreign_key {
    const char *store_id; /* several stores may share a database */
    int64_t instance_id;
    const char *step;
    int64_t token; /* of the claim */
};

/*
 * Make the table where it is not there, raise the token, read the point (texts in the
 * arena; chunk 0: nothing was committed). BATCH_OK, BATCH_LOST (a later run has been
 * here), or < 0; -ERR_CONFIG tells what to do where the right to make the table is
 * missing. Not inside a transaction.
 */
int foreign_open(struct db *db, const struct foreign_key *key, struct arena *arena,
                 struct step_point *ret_point, struct err *err) must_check;

/* In the transaction of the rows: the chunk behind the one that stands there.
 * BATCH_LOST: a later run has been here; roll back. */
int foreign_commit_in(struct db *db, const struct foreign_key *key,
                      const struct step_point *point, struct err *err) must_check;

#endif
