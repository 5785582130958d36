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

struct estimates *estimates_new(const struct config *config);
void estimates_free(struct estimates *estimates); /* every connection is back */

/* A connection to the configured database whose statements end after timeout_us
 * with ERR_TIMEOUT. */
int estimates_get(struct estimates *estimates, const char *database, int64_t timeout_us,
                  struct db **ret_db, struct err *err) must_check;
void estimates_put(struct estimates *estimates, const char *database,
                   int64_t timeout_us, struct db *db);

#endif
