/*
 * What is to be told outside of requests that end (webhooks): rows of delivery, written
 * with the outcome. Of several tries the last one is told; whether a job wants to be
 * told at all comes with the one question of follow.c, so others cost nothing more.
 */
#include "queue/follow.h"

#include "base/err.h"
#include "store/store.h"

int
follow_announce(struct db *db, struct follow *follow, struct err *err)
{
    int64_t *ids = arena_array(&follow->arena, int64_t, follow->count);
    size_t n = 0;

    for (size_t i = 0; i < follow->count; i++) {
        const struct follow_fact *fact = &follow->facts[i];

        if (!fact->followup_id && follow_may_be_told(follow, fact->closing))
            ids[n++] = fact->id;
    }
    if (n == 0)
        return 0;
    return db_run(db, store_sql(db, STMT_DELIVERY_ADD), err, p_i64_array(ids, n));
}
