/*
 * From what was otherwise to why, and what helps. A kill hits one step; only that one
 * is gone on with, those before it are passed over and those behind it begin anew, so
 * what is otherwise in the end is laid at its door.
 */
#include "torture/private.h"

#include "base/strs.h"
#include "steps/step.h"

#include <inttypes.h>
#include <string.h>

struct why {
    const char *reason;
    const char *remedy;
};

/* --- what a definition says --- */

static const char *
restart_word(const json_t *def)
{
    const char *word =
        json_string_value(json_object_get(json_object_get(def, "read"), "restart"));

    return word ? word : "position";
}

/* A query that stands at a position although its rows come in no fixed order. Those of
 * partitions are put in the order of their key. */
static bool
is_unordered(const json_t *def)
{
    const json_t *read = json_object_get(def, "read");
    const char *sql = json_string_value(json_object_get(read, "sql"));
    const char *name;
    json_t *axis;

    if (!str_eq(restart_word(def), "position") || json_object_get(def, "partitions"))
        return false;
    if (sql)
        return !plan_has_order(sql);
    json_object_foreach(json_object_get(read, "items"), name, axis)
    {
        const char *of_axis = json_string_value(json_object_get(axis, "sql"));

        if (of_axis && !plan_has_order(of_axis))
            return true;
    }
    return false;
}

static bool
is_sql_elsewhere(const json_t *def)
{
    const char *database = json_string_value(json_object_get(def, "database"));

    return json_object_get(def, "sql") && database && !str_eq(database, "main");
}

static bool
has_own_commit(const json_t *def)
{
    return str_eq(
        json_string_value(json_object_get(json_object_get(def, "write"), "checkpoint")),
        "none");
}

static bool
reads_sql(const json_t *def)
{
    return json_is_string(json_object_get(json_object_get(def, "read"), "sql"));
}

static struct why
why_unordered(void)
{
    return (struct why){
        "its query gives rows in no fixed order, and going on passes over as many rows "
        "as were committed (restart: position)",
        "end the query in ORDER BY over columns that tell all rows apart, or read with "
        "restart: key"};
}

static struct why
why_of(const json_t *def)
{
    const char *restart = restart_word(def);

    if (is_sql_elsewhere(def))
        return (struct why){
            "its statements are committed in another database before the store knows "
            "that they are done, so a kill in between runs them again",
            "write statements that bear it (DELETE before INSERT, ON CONFLICT DO "
            "NOTHING, a condition in UPDATE), or a chunk step, which commits its "
            "checkpoint with the rows"};
    if (has_own_commit(def))
        return (struct why){
            "with checkpoint: none rows are committed before the checkpoint, so a kill "
            "in between writes the chunk again",
            "leave out checkpoint: none, or write with mode: upsert and a key"};
    if (is_unordered(def))
        return why_unordered();
    if (str_eq(restart, "requery"))
        return (struct why){
            "restart: requery reads from the first row again, and the query's "
            "condition "
            "does not leave out what is done",
            "let the step's statements change what the condition asks for, or use "
            "restart: position with ORDER BY, or restart: key"};
    if (str_eq(restart, "beginning"))
        return (struct why){
            "restart: beginning reads all again, and the writer does not bear rows "
            "that "
            "it has had",
            "write with mode: upsert and a key, or leave out restart: beginning"};
    if (str_eq(restart, "key"))
        return (struct why){
            "restart: key goes on behind the last key, and the key's columns do not "
            "tell all rows apart",
            "add columns to the key until it is unique and never NULL"};
    if (reads_sql(def))
        return (struct why){
            "its query gives other rows, or another order, when it is asked again: the "
            "ORDER BY leaves ties, or the step changes what it reads",
            "order by columns that tell all rows apart; where the step changes what it "
            "reads, restart: requery"};
    return (struct why){"its input is not the same when it is read again",
                        "see the message of the run, and docs/restart.md"};
}

/* --- one round --- */

static const char *
place_words(const struct spot *spot, struct arena *arena)
{
    if (str_eq(spot->stage, "preparing"))
        return "before the first step";
    if (str_eq(spot->stage, "working"))
        return spot->chunk ? arena_printf(arena, "behind chunk %d", spot->chunk)
                           : "before its first chunk";
    if (str_eq(spot->stage, "committing"))
        return arena_printf(arena, "before the commit of chunk %d", spot->chunk + 1);
    if (str_eq(spot->stage, "copying"))
        return arena_printf(
            arena,
            "after the commit of chunk %d in the other database, before "
            "the store knew",
            spot->chunk + 1);
    if (str_eq(spot->stage, "committed"))
        return arena_printf(arena, "after the commit of chunk %d", spot->chunk);
    if (str_eq(spot->stage, "publishing"))
        return "before the result was published";
    if (str_eq(spot->stage, "published"))
        return "after the result was published";
    return "before the outcome was recorded";
}

static const char *
rows_words(int64_t rows, const char *one, const char *many, struct arena *arena)
{
    return rows == 1 ? arena_printf(arena, "1 row %s", one)
                     : arena_printf(arena, "%" PRId64 " rows %s", rows, many);
}

static const char *
diff_words(const struct look_diff *diff, struct arena *arena)
{
    const char *where = arena_printf(arena, "in table %s of database %s",
                                     diff->table->name, diff->table->database);

    if (diff->missing && !diff->repeated && !diff->other)
        return arena_printf(
            arena, "%s %s",
            rows_words(diff->missing, "is missing", "are missing", arena), where);
    if (diff->repeated && !diff->missing && !diff->other)
        return arena_printf(
            arena, "%s %s",
            rows_words(diff->repeated, "is repeated", "are repeated", arena), where);
    return arena_printf(arena,
                        "%s, %" PRId64 " repeated, %" PRId64 " changed or new %s",
                        rows_words(diff->missing, "is missing", "are missing", arena),
                        diff->repeated, diff->other, where);
}

static const struct counted *
find_counted(const struct child_end *end, const char *name)
{
    for (size_t i = 0; i < end->n_steps; i++)
        if (str_eq(end->steps[i].name, name))
            return &end->steps[i];
    return NULL;
}

/* It counts what it did the second time, as it should: a file that is there already is
 * not fetched again. */
static bool
counts_again(const json_t *def)
{
    if (json_object_get(def, "read"))
        return str_eq(restart_word(def), "beginning");
    return str_eq(step_effect(def), "at-least-once");
}

static const char *
counters_words(const struct child_end *wanted, const struct plan *plan,
               const struct child_end *got, struct arena *arena)
{
    for (size_t i = 0; i < json_array_size(plan->job->steps); i++) {
        const char *name = plan_step_name(plan, i);
        const struct counted *a = find_counted(wanted, name);
        const struct counted *b = find_counted(got, name);

        if (!a || !b || counts_again(plan_step(plan, i)))
            continue;
        if (a->read != b->read || a->written != b->written ||
            a->filtered != b->filtered || a->skipped != b->skipped)
            return arena_printf(arena,
                                "step %s counts %" PRId64 " read, %" PRId64
                                " written, %" PRId64 " filtered, %" PRId64
                                " skipped; without a kill %" PRId64 ", %" PRId64
                                ", %" PRId64 ", %" PRId64,
                                name, b->read, b->written, b->filtered, b->skipped,
                                a->read, a->written, a->filtered, a->skipped);
    }
    return NULL;
}

/* What is otherwise, or NULL. */
static const char *
find_difference(const struct reference *reference, const struct plan *plan,
                const struct child_end *end, const struct look *look,
                struct arena *arena)
{
    struct look_diff diff;

    if (!end->completed)
        return arena_printf(arena, "going on fails: %s", end->detail);
    look_compare(&reference->look, look, &diff);
    if (diff.table)
        return diff_words(&diff, arena);
    if (!str_eq(reference->end.result, end->result))
        return arena_printf(arena, "the result is named \"%s\", without a kill \"%s\"",
                            end->result, reference->end.result);
    if (reference->result_same && !str_eq(reference->end.sha256, end->sha256))
        return "the result file has other bytes";
    return counters_words(&reference->end, plan, end, arena);
}

void
judge_round(const struct reference *reference, const struct plan *plan,
            const struct spot *killed, const struct child_end *end,
            const struct look *look, struct arena *arena, struct torture_step *step)
{
    const char *found = find_difference(reference, plan, end, look, arena);
    struct why why = {"the end of the run is not restart-safe",
                      "this is a fault of pawl: please report it"};

    if (!found)
        return;
    step->safe = false;
    step->bad++;
    if (step->seen)
        return;
    if (killed->step >= 0)
        why = why_of(plan_step(plan, (size_t)killed->step));
    step->seen =
        arena_printf(arena, "killed %s, then: %s", place_words(killed, arena), found);
    step->reason = why.reason;
    step->remedy = why.remedy;
}

/* --- from the definition alone --- */

/* A step that was never gone on with in the middle, for want of rows. */
static const char *
few_chunks(const json_t *def, const struct counted *counted)
{
    if (!json_object_get(def, "read") || !counted || counted->commits > 1)
        return NULL;
    if (counted->read == 0)
        return "it read no row, so this says little; give it rows (--schema, "
               "--database)";
    return "all went in one chunk; a smaller `chunk`, or more rows, put it to the test";
}

static bool
calls_outside(const json_t *def)
{
    const json_t *process = json_object_get(def, "process");
    const json_t *one;
    size_t i;

    if (json_object_get(def, "http") || json_object_get(def, "fetch") ||
        json_object_get(process, "http"))
        return true;
    json_array_foreach(process, i, one)
    {
        if (json_object_get(one, "http"))
            return true;
    }
    return false;
}

void
judge_definition(const struct reference *reference, const struct plan *plan, size_t i,
                 struct torture_step *step)
{
    const json_t *def = plan_step(plan, i);
    const struct counted *counted = find_counted(&reference->end, step->name);

    if (is_unordered(def) && counted && counted->commits > 1 && step->safe) {
        struct why why = why_unordered();

        step->safe = false;
        step->reason = why.reason;
        step->remedy = why.remedy;
    } else if (is_unordered(def) && step->safe) {
        step->note = "all went in one chunk; with more of them it would not be safe, "
                     "for its query has no ORDER BY";
    } else if (str_eq(step->effect, "at-least-once") && calls_outside(def)) {
        step->note = "after a kill its call is made again: what answers must bear that";
    } else if (calls_outside(def)) {
        step->note = "after a kill the calls of the chunk under way are made again";
    } else if (str_eq(step->effect, "at-least-once") && step->safe) {
        step->note = "it is written twice after a kill; what it writes bore that";
    } else {
        step->note = few_chunks(def, counted);
    }
}
