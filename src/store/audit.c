/* The acts of people and repairs, one row each, committed with the act. */
#include "store/store.h"

int
store_audit(struct db *db, const char *actor, const char *act, const char *subject,
            const char *detail, struct err *err)
{
    return db_run(db, store_sql(db, STMT_STORE_AUDIT), err, p_text(actor), p_text(act),
                  p_text(subject), p_opt_text(detail));
}
