/*
 * Job definitions in the store: published by whoever has the configuration, read
 * by everyone else (the api without the file, pawl.submit in SQL). Any thread.
 */
#ifndef QUEUE_DEFINITION_H
#define QUEUE_DEFINITION_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct store;

struct job_definition {
    const char *name;
    int64_t version;        /* the file's config_version */
    const char *hash;       /* of definition */
    const char *definition; /* JSON */
    int64_t published_at_us;
    int64_t withdrawn_at_us; /* 0 = in force */
};

struct publish_counts {
    int published; /* new, or newer than what stood there */
    int unchanged;
    int kept; /* the store has another text of the same or a newer version */
    int withdrawn;
};

/*
 * Publish all definitions of one file, in one transaction: a row is replaced only
 * by a higher version, or by the same version while its text is the same. Those
 * in the store that the file does not name are withdrawn if their version is
 * lower. name, version, hash, definition are read.
 */
int queue_publish(struct store *store, const struct job_definition *definitions,
                  size_t count, int64_t version, struct publish_counts *ret_counts,
                  struct err *err) must_check;

/* All definitions, withdrawn ones too, ordered by name. */
int queue_definitions(struct store *store, struct arena *arena,
                      struct job_definition **ret_definitions, size_t *ret_count,
                      struct err *err) must_check;

/* One line of the job list: the definition and how the job stands. The last
 * execution is the newest one of the newest instance. */
struct job_state {
    const char *job;
    const char *definition;
    int64_t version;
    bool withdrawn;
    int64_t queued;
    int64_t running;
    int64_t active_request_id; /* of a refuse job; 0 = none */
    int64_t last_request_id;   /* 0 = never asked for */
    int64_t last_instance_id;
    int64_t last_execution_id;
    const char *last_state; /* of the execution, NULL = none */
    int64_t last_started_at_us;
    int64_t last_ended_at_us;
    int64_t last_updated_us; /* the newer one of execution and its steps */
    const char *paused_by;   /* NULL = not paused */
    int64_t paused_at_us;
};

/* By one statement, however many jobs there are. Ordered by name. */
int queue_jobs(struct store *store, struct arena *arena, struct job_state **ret_jobs,
               size_t *ret_count, struct err *err) must_check;

#endif
