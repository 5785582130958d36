/*
 * The jobs that the store knows, parsed once and shared by threads: what a
 * submit is checked against, also in a process whose own file names no job.
 * catalog_reload after WAKE_DEFS; readers keep the state they took until they
 * give it back. Any thread.
 */
#ifndef SERVICE_CATALOG_H
#define SERVICE_CATALOG_H

#include "base/compiler.h"

#include <stddef.h>

struct catalog;
struct catalog_state;
struct config;
struct err;
struct publish_counts;
struct queue_job;
struct store;

/* Reads the definitions; reload says whether somebody else published. */
int catalog_new(struct store *store, struct catalog **ret_catalog,
                struct err *err) must_check;
void catalog_free(struct catalog *catalog);
int catalog_reload(struct catalog *catalog, struct err *err) must_check;

/* The state of this moment; its jobs live until catalog_put. Never NULL. */
struct catalog_state *catalog_get(struct catalog *catalog);
void catalog_put(struct catalog_state *state);
void catalog_putp(struct catalog_state **state); /* for scoped() */

/* NULL: no such job, or withdrawn. */
const struct queue_job *catalog_job(const struct catalog_state *state,
                                    const char *name);

/* Publish what this process's file defines (before catalog_new or a reload). */
int catalog_publish(struct store *store, const struct config *config,
                    struct publish_counts *ret_counts, struct err *err) must_check;

#endif
