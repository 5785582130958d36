/*
 * Is all around pawl as it should be: versions, what the store's settings really are,
 * rights, clocks, room on disks, definitions, keys, workers? Nothing is changed. What
 * cannot be looked at is a line too, never the end of it.
 *
 * One thread; strings live in the arena given.
 */
#ifndef SERVICE_DOCTOR_H
#define SERVICE_DOCTOR_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct clock;
struct config;
struct err;

enum doctor_level { DOCTOR_OK, DOCTOR_WARNING, DOCTOR_ERROR };

const char *doctor_level_name(enum doctor_level level); /* "ok", "warning", "error" */

struct doctor_line {
    enum doctor_level level;
    const char *name; /* "clock"; stable */
    const char *text;
    const char *remedy; /* NULL when ok */
};

struct doctor_report {
    struct doctor_line *lines;
    size_t count;
    size_t room;
    enum doctor_level worst;
};

struct doctor_order {
    const struct config *config;
    const char *url; /* of the store */
    const struct clock *clock;
    const char *version; /* of pawl */
    /* For tests: the environment; NULL = the process's. */
    const char *(*env)(void *arg, const char *name);
    void *env_arg;
};

/*
 * An SQLite store that nobody has open is taken for the time; beside its owner only
 * what can be read is looked at. On PostgreSQL the connection is like a worker's.
 */
void doctor_run(const struct doctor_order *order, struct arena *arena,
                struct doctor_report *ret_report);

/* {"worst", "lines": [{level, name, text, remedy}]} */
void doctor_json(const struct doctor_report *report, struct buf *buf);

#endif
