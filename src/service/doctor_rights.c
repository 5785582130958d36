/*
 * The roles of docs/postgresql.md against those that are connected as. A process that
 * owns the schema works as well, so what is too much is a warning, what is missing an
 * error.
 */
#include "service/doctor_private.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "config/config.h"
#include "store/store.h"

enum column {
    ROLE,
    SUPERUSER,
    OWNER,
    POWERS,
    PLANNED,
    OPEN_PUBLIC,
    MISSING,
    UNGRANTED
};

static void
say_role(struct doctor *doctor, const char *who, const struct db_rows *rows)
{
    bool super = db_i64(rows, SUPERUSER) != 0;
    bool owner = db_i64(rows, OWNER) != 0;
    bool powers = db_i64(rows, POWERS) != 0;

    doctor_say(doctor, super || owner || powers ? DOCTOR_WARNING : DOCTOR_OK,
               "privileges",
               "let pawl migrate make the roles of docs/postgresql.md, and let api and "
               "worker connect as pawl_api and pawl_worker",
               "%s connected as %s%s", who, db_text(rows, ROLE),
               super    ? ", a superuser"
               : owner  ? ", the owner of the schema"
               : powers ? ", who may make roles or databases, or pass by policies"
                        : "");
}

/* Of a role that is not all-powerful. */
static void
say_shortcomings(struct doctor *doctor, const char *model, bool worker,
                 const struct db_rows *rows)
{
    const char *role = db_text(rows, ROLE);

    if (!db_is_null(rows, MISSING))
        doctor_say(
            doctor, DOCTOR_ERROR, "privileges",
            "run `pawl migrate` as the owner of the schema, and make it a member "
            "of the role that it stands for: GRANT pawl_api (or pawl_worker) TO "
            "it",
            "%s lacks what %s has: %.300s", role, model, db_text(rows, MISSING));
    if (worker && !db_i64(rows, PLANNED))
        doctor_say(
            doctor, DOCTOR_WARNING, "settings",
            "run `pawl migrate` as an administrator, or ALTER ROLE … IN DATABASE … "
            "SET plan_cache_mode = force_generic_plan, and enable_seqscan = off",
            "%s plans claims by what the tables looked like when they were "
            "analysed",
            role);
    if (db_i64(rows, OPEN_PUBLIC))
        doctor_say(doctor, DOCTOR_WARNING, "privileges",
                   "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
                   "anybody may make functions in the schema public, which %s looks "
                   "into",
                   role);
}

static void
look_as(struct doctor *doctor, struct db *db, const char *who, const char *model)
{
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};
    int r = db_ask(db, store_sql(db, STMT_DOCTOR_RIGHTS), &rows, &err, p_text(model));

    if (r == 0)
        r = db_next(&rows, &err);
    if (r <= 0) {
        doctor_say(doctor, DOCTOR_WARNING, "privileges", "see the reason",
                   "cannot be looked at: %s", err.text);
        return;
    }
    say_role(doctor, who, &rows);
    if (!db_i64(&rows, SUPERUSER) && !db_i64(&rows, OWNER))
        say_shortcomings(doctor, model, str_eq(model, "pawl_worker"), &rows);
    if (!db_is_null(&rows, UNGRANTED))
        doctor_say(doctor, DOCTOR_WARNING, "privileges",
                   "run `pawl migrate` as the owner of the schema",
                   "%s has no right on: %.300s", model, db_text(&rows, UNGRANTED));
}

void
doctor_look_at_rights(struct doctor *doctor)
{
    const struct config *config = doctor->order->config;
    struct db_options options = {
        .url = config->store.api,
        .connect_timeout_ms = (int)(config->store.connect_timeout_us / US_PER_MS),
        .app_name = "pawl-doctor"};
    scoped(db_closep) struct db *db = NULL;
    struct err err = {0};

    look_as(doctor, doctor->db, "the worker is", "pawl_worker");
    if (!config->store.api || str_eq(config->store.api, doctor->order->url))
        return;
    if (db_open(&options, &db, &err) < 0)
        doctor_say(doctor, DOCTOR_ERROR, "privileges", "correct store.api",
                   "the store cannot be reached as the api does: %s", err.text);
    else
        look_as(doctor, db, "the api is", "pawl_api");
}
