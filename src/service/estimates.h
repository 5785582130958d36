/*
 * Connections for estimates, kept open between submits: one small pool for each
 * database and time limit that a job's `estimate` names. Any thread.
 */
#ifndef SERVICE_ESTIMATES_H
#define SERVICE_ESTIMATES_H

#include "base/compiler.h"

#include <stdint.h>

struct config;
struct db;
struct err;
struct estimates;

/* main_url: the store as this process may use it, for estimates on `main`; its role
 * counts, not the worker's. Both are kept, not copied. */
struct estimates *estimates_new(const struct config *config, const char *main_url);
void estimates_free(struct estimates *estimates); /* every connection is back */

/* A connection to the configured database whose statements end after timeout_us
 * with ERR_TIMEOUT. */
int estimates_get(struct estimates *estimates, const char *database, int64_t timeout_us,
                  struct db **ret_db, struct err *err) must_check;
void estimates_put(struct estimates *estimates, const char *database,
                   int64_t timeout_us, struct db *db);

#endif
