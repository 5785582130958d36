/* What the tests of the roles share: a store with the roles, and their connections. */
#ifndef TESTS_STORE_ROLES_H
#define TESTS_STORE_ROLES_H

#include "tests/store/harness.h"

enum { API = 1, WORKER = 2, READER = 4, SUBMIT = 8 };

struct role {
    int bit;
    const char *name;
};

/* Those that log in. */
#define ROLES_COUNT 3
extern const struct role roles[ROLES_COUNT];

/* Roles and rights, as `pawl migrate` makes them. */
void apply(struct harness *h);

/* A connection of the role itself, with its settings. */
struct db *connect_as(struct harness *h, const char *role);

/* The text of all rows; NULL when it fails, with the reason in err. */
char *ask(struct db *db, const char *text, struct err *err);

bool is_denied(const struct err *err);

#endif
