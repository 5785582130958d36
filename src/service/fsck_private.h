/* What fsck.c and fsck_repair.c share. */
#ifndef SERVICE_FSCK_PRIVATE_H
#define SERVICE_FSCK_PRIVATE_H

#include "base/fsio.h"
#include "run/result_store.h"
#include "service/fsck.h"
#include "store/store.h"

enum fsck_kind {
    RULE_PLAIN,
    RULE_GRACE,  /* takes the grace before the limit */
    RULE_REPAIR, /* what breaks it can be taken away */
    RULE_SQLITE, /* of that database only */
};

struct fsck_rule {
    const char *name;
    enum stmt stmt;
    enum fsck_kind kind;
    const char *rule;
    const char *remedy;
};

/* Something seen in the results folder. */
struct fsck_entry {
    struct result_entry entry;
    struct fsck_entry *next;
};

struct fsck_look {
    const struct fsck_order *order;
    struct arena *arena;
    struct fsck_report *report;
    struct fsck_entry *entries;
    int missing;
    int strays;
};

#endif
