/*
 * The flow: two runs without a kill (what differs between them is no matter of kills),
 * then a round for each place at which the process can be killed, or for as many as
 * are allowed, evenly spread; the last round kills after every chunk, so that each is
 * carried by a process of its own.
 */
#include "torture/torture.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "steps/step.h"
#include "torture/private.h"

#include <string.h>

struct torturing {
    const struct torture_order *order;
    struct arena *arena;
    struct plan plan;
    struct place place;
    struct reference reference;
    struct torture_report report;
    int done;
};

static void
torturing_release(struct torturing *t)
{
    look_release(&t->reference.look);
    place_close(&t->place);
    plan_release(&t->plan);
}

static bool
has_steps(const struct torturing *t, size_t i)
{
    return i < json_array_size(t->plan.job->steps);
}

/* The last row is for what belongs to no step. */
static struct torture_step *
step_of(struct torturing *t, const struct spot *spot)
{
    size_t i = spot->step >= 0 ? (size_t)spot->step : t->report.n_steps - 1;

    return &t->report.steps[i];
}

static void
tell(const struct torturing *t, const struct spot *spot)
{
    const char *step =
        spot->step >= 0 ? plan_step_name(&t->plan, (size_t)spot->step) : "";

    if (t->order->told)
        t->order->told(t->order->arg, t->done, t->report.rounds, step);
}

/* --- without a kill --- */

static int
run_clean(struct torturing *t, struct child_end *end, struct err *err)
{
    struct child_order child = {.place = &t->place, .plan = &t->plan};
    int r = place_reset(&t->place, err);

    if (r == 0)
        r = child_run(t->order, &child, end, err);
    if (r < 0)
        return r;
    if (end->completed)
        return 0;
    return err_set(err, ERR_INVALID, "the job fails without any kill: %s%s",
                   end->killed ? "it was killed by somebody else" : end->detail,
                   t->plan.uses_main && !t->order->schema
                       ? ". (--schema FILE.sql makes and fills tables of `main`, the "
                         "store's own database)"
                       : "");
}

/* What the job left alone need not be told table by table. */
static void
note_changes(struct torturing *t, const struct look *before, const struct look *again)
{
    struct look *look = &t->reference.look;

    t->reference.changed = arena_array(t->arena, bool, look->n_tables + 1);
    for (size_t i = 0; i < look->n_tables; i++) {
        look->tables[i].noise = again->tables[i].noise;
        t->reference.changed[i] = look_changed(before, &again->tables[i]);
    }
}

static int
make_reference(struct torturing *t, struct err *err)
{
    struct reference *reference = &t->reference;
    scoped(look_release) struct look before = {0};
    scoped(look_release) struct look once = {0};
    scoped(look_release) struct look again = {0};
    struct child_end first = {0};
    int r = place_reset(&t->place, err);

    if (r == 0)
        r = look_take(&t->place, NULL, t->arena, &before, err);
    if (r == 0)
        r = run_clean(t, &first, err);
    if (r == 0)
        r = look_take(&t->place, NULL, t->arena, &once, err);
    if (r == 0)
        r = run_clean(t, &reference->end, err);
    if (r == 0)
        r = look_take(&t->place, NULL, t->arena, &again, err);
    if (r == 0)
        r = look_find_noise(&once, &again, err);
    if (r == 0)
        r = look_take(&t->place, &again, t->arena, &reference->look, err);
    if (r == 0)
        note_changes(t, &before, &again);
    reference->result_same = str_eq(first.sha256, reference->end.sha256);
    if (r == 0 && first.places != reference->end.places)
        return err_set(err, ERR_INVALID,
                       "two runs without any kill commit another number of chunks; "
                       "does the job depend on the time, or on data that changes?");
    return r;
}

/* --- with kills --- */

/* How the work ended after a kill: go on until it is done or fails. */
static int
judge(struct torturing *t, const struct spot *killed, const struct child_end *end,
      struct err *err)
{
    scoped(arena_release) struct arena arena = {0};
    scoped(look_release) struct look look = {0};
    int r = 0;

    if (end->completed)
        r = look_take(&t->place, &t->reference.look, &arena, &look, err);
    if (r == 0)
        judge_round(&t->reference, &t->plan, killed, end, &look, t->arena,
                    step_of(t, killed));
    return r;
}

static int
kill_at(struct torturing *t, int place, struct err *err)
{
    struct child_order first = {.place = &t->place, .plan = &t->plan, .die_at = place};
    struct child_order then = {.place = &t->place, .plan = &t->plan, .follow = true};
    struct child_end end = {0};
    struct spot killed;
    int r = place_reset(&t->place, err);

    if (r == 0)
        r = child_run(t->order, &first, &end, err);
    if (r < 0)
        return r;
    killed = end.spot;
    if (!end.killed)
        return err_set(err, ERR_INVALID, "the job took another way than before: %s",
                       end.completed ? "it ended early" : end.detail);
    step_of(t, &killed)->kills++;
    r = child_run(t->order, &then, &end, err);
    if (r == 0)
        r = judge(t, &killed, &end, err);
    t->done++;
    tell(t, &killed);
    return r;
}

static bool
reads_all_again(const struct torturing *t)
{
    bool found = false;

    for (size_t i = 0; has_steps(t, i); i++) {
        const json_t *read = json_object_get(plan_step(&t->plan, i), "read");
        const char *restart = json_string_value(json_object_get(read, "restart"));

        found = found || str_eq(restart, "beginning");
    }
    return found;
}

/* Each process commits a chunk, or where there are many a few of them, and is killed.
 * It takes fewer processes than there are places, or no end is in sight. */
static int
kill_again_and_again(struct torturing *t, struct err *err)
{
    int commits = 1 + t->reference.end.places / 3 / t->order->rounds;
    struct child_order child = {
        .place = &t->place, .plan = &t->plan, .die_commits = commits};
    struct child_end end = {0};
    struct spot killed = {.step = -1};
    int r = place_reset(&t->place, err);

    for (int i = 0; r == 0 && i <= t->reference.end.places; i++) {
        r = child_run(t->order, &child, &end, err);
        if (r < 0 || !end.killed)
            break;
        killed = end.spot;
        step_of(t, &killed)->kills++;
        child.follow = true;
        if (reads_all_again(t)) /* comes on only if it may live a little longer */
            child.die_commits++;
        tell(t, &killed);
    }
    if (r == 0 && end.killed) {
        end.completed = false;
        (void)str_copy(end.detail, sizeof(end.detail),
                       "it comes to no end: each process does the same work again");
    }
    return r < 0 ? r : judge(t, &killed, &end, err);
}

/* The i-th of `rounds` places among all, evenly spread; shifted a little, so that the
 * same stage of a chunk is not hit each time. */
static int
place_at(const struct torturing *t, int i)
{
    int64_t places = t->report.places;
    int64_t rounds = t->report.rounds;
    int64_t width = places / rounds;

    if (i == rounds - 1)
        return (int)places;
    return (int)(1 + i * places / rounds + i % width);
}

static int
kill_everywhere(struct torturing *t, struct err *err)
{
    int r = 0;

    t->report.places = t->reference.end.places;
    t->report.rounds =
        t->report.places < t->order->rounds ? t->report.places : t->order->rounds;
    for (int i = 0; r == 0 && i < t->report.rounds; i++)
        r = kill_at(t, place_at(t, i), err);
    return r < 0 ? r : kill_again_and_again(t, err);
}

/* --- the report --- */

static void
begin_report(struct torturing *t)
{
    size_t count = json_array_size(t->plan.job->steps);
    struct torture_step *steps = arena_array(t->arena, struct torture_step, count + 1);

    for (size_t i = 0; has_steps(t, i); i++)
        steps[i] = (struct torture_step){.name = plan_step_name(&t->plan, i),
                                         .effect = step_effect(plan_step(&t->plan, i)),
                                         .safe = true};
    steps[count] = (struct torture_step){.effect = "", .safe = true};
    t->report.steps = steps;
    t->report.n_steps = count + 1;
}

static const char *
left_out(const struct look_table *table, struct arena *arena)
{
    scoped(buf_release) struct buf names = {0};

    buf_init(&names, 0);
    for (size_t i = 0; i < table->width; i++)
        if (table->noise[i])
            buf_addf(&names, "%s%s", names.len ? ", " : "", table->columns[i]);
    return arena_strdup(arena, buf_str(&names));
}

static void
report_tables(struct torturing *t)
{
    const struct look *look = &t->reference.look;
    struct torture_table *tables =
        arena_array(t->arena, struct torture_table, look->n_tables + 1);

    for (size_t i = 0; i < look->n_tables; i++)
        tables[i] =
            (struct torture_table){.database = look->tables[i].database,
                                   .name = look->tables[i].name,
                                   .rows = (int64_t)look->tables[i].n_rows,
                                   .changed = t->reference.changed[i],
                                   .left_out = left_out(&look->tables[i], t->arena)};
    t->report.tables = tables;
    t->report.n_tables = look->n_tables;
}

static void
end_report(struct torturing *t)
{
    struct torture_report *report = &t->report;

    for (size_t i = 0; has_steps(t, i); i++)
        judge_definition(&t->reference, &t->plan, i, &report->steps[i]);
    report->safe = true;
    for (size_t i = 0; i < report->n_steps; i++)
        report->safe = report->safe && report->steps[i].safe;
    report_tables(t);
    report->result = arena_strdup(t->arena, t->reference.end.result);
    report->sha256 = arena_strdup(t->arena, t->reference.end.sha256);
    report->result_compared = t->reference.result_same;
    report->idle = !report->result[0];
    for (size_t i = 0; i < report->n_tables; i++)
        report->idle = report->idle && !report->tables[i].changed;
}

int
torture(const struct torture_order *order, struct arena *arena,
        struct torture_report *ret_report, struct err *err)
{
    scoped(torturing_release) struct torturing t = {.order = order, .arena = arena};
    int r = plan_make(order, arena, &t.plan, err);

    if (r == 0)
        r = place_open(&t.place, order, &t.plan, arena, err);
    if (r < 0)
        return r;
    begin_report(&t);
    r = make_reference(&t, err);
    if (r == 0)
        r = kill_everywhere(&t, err);
    if (r < 0)
        return r;
    end_report(&t);
    *ret_report = t.report;
    return 0;
}
