/*
 * The roles that stay: serve, api, worker. Each opens what it needs, lives until
 * SIGTERM or SIGINT, drains and closes in the opposite order.
 */
#ifndef ROLES_H
#define ROLES_H

#include "base/compiler.h"

struct config;
struct err;

enum role { ROLE_SERVE, ROLE_API, ROLE_WORKER };

/* Returns the process's exit status; a failure to start is < 0 with its note. */
int role_run(enum role role, const struct config *config, struct err *err) must_check;

#endif
