/*
 * The index of the command line. To add a verb: a row here and its function in
 * verb_NAME.c. Dispatching, help and docs/cli.md follow from this table.
 */
#include "cli/command.h"

#include "base/strs.h"

#define BIT(name) OPTION_BIT(OPTION_##name)
#define ASKING    (BIT(CONFIG) | BIT(SERVER) | BIT(JSON))
#define GIVING                                                                         \
    (BIT(PARAM) | BIT(PARAMS) | BIT(ANEW) | BIT(MAX_CALLS) | BIT(OUTPUT) |             \
     BIT(QUIET) | BIT(JSON))

/* clang-format off */
static const struct verb table[] = {
    {"serve", "", 0, 0, "Run everything in one process: api and worker on the store", NEED_CONFIG, BIT(CONFIG), verb_role,
     "Ends on SIGTERM or Ctrl-C: claims nothing more, lets what runs end at its next\n"
     "chunk, answers meanwhile. A second signal hurries."},
    {"api", "", 0, 0, "Run the HTTP API alone (PostgreSQL store)", NEED_CONFIG, BIT(CONFIG), verb_role, NULL},
    {"worker", "", 0, 0, "Run a worker alone (PostgreSQL store)", NEED_CONFIG, BIT(CONFIG), verb_role, NULL},
    {"run", "JOB", 1, 1, "Carry a job out here and now, under the same guards as a worker", NEED_CONFIG, BIT(CONFIG) | GIVING, verb_run,
     "    pawl run packages-export -p section=games -o games.xlsx\n\n"
     "Where a server owns the SQLite store it is asked to run the job instead. Ctrl-C\n"
     "stops at the next chunk, a second one cancels. The file is published first, as by a\n"
     "server: if it is the newest, jobs of the store that it lacks are withdrawn."},
    {"submit", "JOB", 1, 1, "Ask for a run of a job", NEED_BACKEND,
     ASKING | GIVING | BIT(WAIT) | BIT(PRIORITY) | BIT(NOT_BEFORE) | BIT(EXPIRES_AT) | BIT(AFTER) | BIT(REQUESTER) | BIT(IDEMPOTENCY_KEY), verb_submit,
     "    pawl submit packages-export -p format=csv --wait\n"
     "    pawl submit packages-export -o all.xlsx --server http://127.0.0.1:8410\n"
     "    pawl submit packages-report --after 17,18"},
    {"backfill", "JOB", 1, 1, "Ask for a run for each of many values, as one group", NEED_BACKEND,
     ASKING | BIT(PARAM) | BIT(PARAMS) | BIT(PARALLEL) | BIT(ON_FAILURE) | BIT(AGAIN) | BIT(PRIORITY) | BIT(REQUESTER), verb_backfill,
     "    pawl backfill apt-trades -p day=2026-01-01..2026-03-31\n"
     "    pawl backfill report -p month=202601..202612 -p region=a,b --on-failure hold\n\n"
     "Ranges of whole numbers, days and months (both ends included) and lists; with several\n"
     "parameters, each combination. What is COMPLETED already is passed over."},
    {"backfills", "[ID]", 0, 1, "List the backfills, or print one with its items", NEED_BACKEND, ASKING, verb_backfills,
     "`pawl show b7` prints it too, `pawl cancel b7` cancels it, `pawl pause backfill 7`\n"
     "lets no more of its items in."},
    {"show", "ID", 1, 1, "Print all that is known of a request", NEED_BACKEND, ASKING | BIT(FOLLOW), verb_show, NULL},
    {"watch", "ID", 1, 1, "Show the progress of a request until it is final", NEED_BACKEND, ASKING | BIT(OUTPUT) | BIT(QUIET) | BIT(FOLLOW), verb_watch,
     "Exits 1 if it FAILED, 5 if it STOPPED. With --output the result is downloaded."},
    {"why", "ID", 1, 1, "Tell why a request does not run yet, or how it ended", NEED_BACKEND, ASKING, verb_why, NULL},
    {"cancel", "ID", 1, 1, "Cancel a request", NEED_BACKEND, ASKING, verb_cancel, NULL},
    {"stop", "ID", 1, 1, "Stop a running request at its next chunk", NEED_BACKEND, ASKING, verb_stop, NULL},
    {"restart", "ID", 1, 1, "Ask again for the work of a request, to go on where it stopped", NEED_BACKEND, ASKING, verb_restart,
     "A new request with the parameters of that one; completed steps are skipped and the\n"
     "broken one goes on after its last committed chunk. Values that were confirmed for\n"
     "one request are not taken over, and what was cancelled begins anew."},
    {"recover", "EXECUTION", 1, 1, "End by hand an execution whose worker is dead", NEED_WORKER, ASKING, verb_recover,
     "Refused (exit 3) while its worker beats; the workers do the same by themselves."},
    {"requests", "", 0, 0, "List requests, newest first", NEED_BACKEND, ASKING | BIT(JOB) | BIT(STATUS) | BIT(REQUESTER) | BIT(LIMIT) | BIT(AFTER), verb_requests, NULL},
    {"jobs", "", 0, 0, "List the jobs and how they stand", NEED_BACKEND, ASKING, verb_jobs, NULL},
    {"schedules", "", 0, 0, "List the schedules, when they fire next and what became of the last", NEED_BACKEND, ASKING | BIT(NEXT), verb_schedules,
     "    pawl schedules --next 10\n\n"
     "prints the next ten times of each, and marks those that a change of clocks touches."},
    {"pause", "job|lane|schedule|backfill NAME", 2, 2, "Hold back a job, a lane, a schedule or a backfill until resumed", NEED_BACKEND, ASKING, verb_pause,
     "    pawl pause job packages-export\n\n"
     "Requests of a paused job, or in a paused lane, are taken and wait; those that run go\n"
     "on. What is still waiting when the command returns stays so. A paused schedule asks\n"
     "for nothing; its times are recorded as skipped. `pawl why ID` tells who paused."},
    {"resume", "job|lane|schedule|backfill NAME", 2, 2, "Let it go on", NEED_BACKEND, ASKING, verb_resume, NULL},
    {"budgets", "", 0, 0, "List the budgets: calls used and left today", NEED_BACKEND, ASKING, verb_budgets, NULL},
    {"lanes", "", 0, 0, "List the lanes: slots, what runs and waits, who paused", NEED_BACKEND, ASKING, verb_lanes, NULL},
    {"workers", "", 0, 0, "List the workers: what they serve, and whether they live", NEED_BACKEND, ASKING, verb_workers, NULL},
    {"check", "", 0, 0, "Check the configuration and print all that is wrong with it", NEED_NOTHING, BIT(CONFIG) | BIT(JSON) | BIT(CONNECT), verb_check, NULL},
    {"torture", "JOB", 1, 1, "Kill a job again and again in a scratch store: is it restart-safe?", NEED_CONFIG,
     BIT(CONFIG) | BIT(JSON) | BIT(QUIET) | BIT(PARAM) | BIT(PARAMS) | BIT(SCHEMA) | BIT(DATABASE) | BIT(ALLOW_CALLS) | BIT(ROUNDS), verb_torture,
     "    pawl torture load-orders -p day=2026-11-01 --schema tables.sql\n\n"
     "Runs it without a kill first, then kills a process of it at each place of its way,\n"
     "goes on with another, and compares rows, result and counters. Works on copies; the\n"
     "store and the databases of the configuration are only read. Exits 0 if the job is\n"
     "restart-safe, 1 if not. docs/torture.md tells more."},
    {"doctor", "", 0, 0, "Look whether all around pawl is as it should be, and tell the remedies", NEED_CONFIG, BIT(CONFIG) | BIT(JSON), verb_doctor,
     "Versions, settings really in force, schema, clock, rights, disks, definitions, keys,\n"
     "workers and lanes: ok, warning or error each. Exits 1 if there is an error. Changes\n"
     "nothing; beside the owner of an SQLite store it only reads."},
    {"prune", "", 0, 0, "Remove now what `retention` keeps only for a time", NEED_CONFIG, BIT(CONFIG) | BIT(JSON), verb_prune,
     "The workers do the same each hour, so an SQLite store that a server owns needs none."},
    {"fsck", "", 0, 0, "Check all that must hold of the store and its results", NEED_CONFIG, BIT(CONFIG) | BIT(JSON) | BIT(REPAIR) | BIT(FILES), verb_fsck,
     "Exits 1 if something is found and not repaired. --files also compares the SHA-256 of\n"
     "each result, which reads all of them. --repair takes away what nobody needs\n"
     "any more (keys, flags and progress of requests that are over, parts without a claim,\n"
     "files that no result names)\n"
     "and records it in the audit. Stop the owner of an SQLite store first; on PostgreSQL it\n"
     "may run beside the workers, and --repair is for the owner of the schema."},
    {"migrate", "", 0, 0, "Bring the schema of the store up to date", NEED_CONFIG, BIT(CONFIG) | BIT(JSON) | BIT(PRINT_ROLES), verb_migrate,
     "On PostgreSQL it also makes the roles of docs/postgresql.md and their rights, if the\n"
     "role of the URL may. Else let an administrator do it, once:\n\n"
     "    pawl migrate --print-roles | psql DATABASE"},
    {"help", "[VERB]", 0, 1, "Print this, or the help of a verb", NEED_NOTHING, BIT(MARKDOWN), verb_help, NULL},
    {"version", "", 0, 0, "Print the version", NEED_NOTHING, BIT(JSON), verb_version, NULL},
};
/* clang-format on */

const struct verb *
verbs(size_t *ret_count)
{
    *ret_count = array_len(table);
    return table;
}

const struct verb *
verb_find(const char *name)
{
    for (size_t i = 0; i < array_len(table); i++)
        if (str_eq(table[i].name, name))
            return &table[i];
    return NULL;
}

const char *
verb_nearest(const char *name)
{
    const char *names[array_len(table)];

    for (size_t i = 0; i < array_len(table); i++)
        names[i] = table[i].name;
    return str_nearest(name, names, array_len(table));
}
