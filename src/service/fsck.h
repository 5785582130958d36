/*
 * Does all that must hold of a store hold? Each rule is a statement of
 * src/sql/fsck.sql, or a look at the results folder, and finds what breaks it. Looking
 * changes nothing; repairing takes away only what nobody can need any more: flags,
 * progress and keys of requests that are over, and parts of claims that are gone.
 *
 * One thread; strings live in the arena given.
 */
#ifndef SERVICE_FSCK_H
#define SERVICE_FSCK_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct config;
struct err;
struct result_store;
struct store;

#define FSCK_MOST 100 /* findings of one rule that are told; then more is set */

struct fsck_finding {
    const char *check;  /* the rule's name: "overlap" */
    const char *rule;   /* what should hold */
    const char *remedy; /* what to do */
    const char *detail;
    int64_t id;    /* of the request or execution; 0 = of none */
    int64_t token; /* of a part */
    bool repairable;
    bool repaired;
};

struct fsck_report {
    struct fsck_finding *findings;
    size_t count;
    size_t room;
    size_t checks; /* looked at */
    bool more;     /* a rule is broken more than FSCK_MOST times */
    int64_t repaired;
};

struct fsck_order {
    struct store *store;
    const struct result_store *results;
    const struct config *config; /* of the budgets; NULL: they are not compared */
    bool hash_files;             /* read each result whole */
    int64_t grace_us; /* a worker without a beat for so long should have been buried */
};

/* All rules by one snapshot of the store. 0, whatever was found. */
int fsck_look(const struct fsck_order *order, struct arena *arena,
              struct fsck_report *ret_report, struct err *err) must_check;

/*
 * Carry out the safe repairs among the findings and mark them; one audit row each. Each
 * looks again, in its transaction, whether it is still due. -ERR_FORBIDDEN: on
 * PostgreSQL only a role that owns the store's schema may (an SQLite store is owned by
 * who has it open).
 */
int fsck_repair(const struct fsck_order *order, const char *actor,
                struct fsck_report *report, struct err *err) must_check;

/* {"ok", "checks", "more", "findings": [{check, id, detail, rule, remedy, …}]} */
void fsck_json(const struct fsck_report *report, struct buf *buf);

/* Names of all rules in order, for tests and docs; NULL past the last. */
const char *fsck_check_name(size_t at);

#endif
