/*
 * pawl's export: the chunk step, from SELECT to the finished and synced file. Its
 * checkpoints are left out (one small commit in each 10,000 rows or so); the sync of
 * the part at each chunk is not.
 *
 *   bench_export URL QUERY FORMAT COMPRESSOR OUT
 *
 * FORMAT is xlsx, csv or jsonl, COMPRESSOR normal, fast or small (xlsx only). Prints
 * one JSON line (bench.h).
 */
#include "bench/bench.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/strs.h"
#include "db/db.h"
#include "io/io_ctx.h"
#include "steps/step.h"

#include <jansson.h>
#include <stdio.h>

struct export
{
    struct io_ctx io;
    struct db *db;
};

static enum io_stop
never_stopped(struct io_ctx *io)
{
    return IO_GO_ON;
}

static void
no_progress(struct io_ctx *io, int64_t done, int64_t total, const char *message)
{
}

static int
database_of(struct io_ctx *io, const char *name, enum io_db_use use, struct db **ret_db,
            struct err *err)
{
    struct export *export = (struct export *)io->owner;

    *ret_db = export->db;
    return 0;
}

static int
no_checkpoint(void *arg, const struct step_checkpoint *cp, struct err *err)
{
    return 0;
}

static json_t *
definition(const char *query, const char *format, const char *compressor)
{
    json_t *def = json_pack("{s:s, s:{s:s, s:s}, s:{s:s, s:s}}", "name", "export",
                            "read", "sql", query, "database", "source", "write", "file",
                            "out", "format", format);

    if (str_eq(format, "xlsx"))
        json_object_set_new(json_object_get(def, "write"), "compressor",
                            json_string(compressor));
    return def;
}

int
main(int argc, char **argv)
{
    scoped(arena_release) struct arena arena = {0};
    struct export export = {0};
    struct step_result result;
    struct step_ctx ctx = {.io = &export.io, .total_rows = -1};
    json_t *def, *params = json_object();
    struct err err = {0};
    double began_s;
    int r;

    if (argc != 6)
        bench_die("URL QUERY FORMAT COMPRESSOR OUT");
    def = definition(argv[2], argv[3], argv[4]);
    export.io = (struct io_ctx){
        .owner = &export,
        .stopped = never_stopped,
        .progress = no_progress,
        .database = database_of,
        .params = params,
        .temp_folder = "/tmp",
        .part_path = argv[5],
        .arena = &arena,
    };
    ctx.def = def;
    ctx.checkpoint = no_checkpoint;
    bench_check(step_validate(def, &err), &err);
    began_s = bench_now_s();
    bench_check(db_open(&(struct db_options){.url = argv[1], .read_only = true},
                        &export.db, &err),
                &err);
    r = step_run(&ctx, &result, &err);
    bench_check(r, &err);
    if (r != STEP_COMPLETED)
        bench_die("the step ended early");
    bench_print("rows", (size_t)result.rows, bench_now_s() - began_s, NULL);
    db_close(export.db);
    json_decref(def);
    json_decref(params);
    return 0;
}
