/* What doctor.c and doctor_store.c share. */
#ifndef SERVICE_DOCTOR_PRIVATE_H
#define SERVICE_DOCTOR_PRIVATE_H

#include "db/db.h"
#include "service/doctor.h"

#include <stdbool.h>

struct doctor {
    const struct doctor_order *order;
    struct arena *arena;
    struct doctor_report *report;
    struct db *db; /* an open connection to the store */
    bool held;     /* SQLite: another process owns it, we only read */
};

/* One line; remedy NULL only with DOCTOR_OK. */
void doctor_say(struct doctor *doctor, enum doctor_level level, const char *name,
                const char *remedy, const char *fmt, ...) printf_like(5, 6);

/* All that is seen through doctor->db. */
void doctor_look_at_store(struct doctor *doctor);

/* PostgreSQL: have the roles that worker and api connect as what they need, and more?
 */
void doctor_look_at_rights(struct doctor *doctor);

#endif
