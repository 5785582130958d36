/*
 * What a step needs to call outside: a call from its budget and the moment at which it
 * may go, the value of a key, a note about an item that is left out. These may be asked
 * from several threads of one step at once.
 */
#include "run/run_private.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/retry.h"
#include "base/zone.h"
#include "batch/skip.h"
#include "budget/budget.h"
#include "config/config.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_MS      50
#define STORE_WAIT_US (10 * US_PER_MINUTE)

static bool
is_cut(const struct run *run)
{
    return run_wish(run) >= RUN_TIMEOUT || atomic_load(&run->cut);
}

static bool
calls_cut(struct io_ctx *io)
{
    return is_cut(io->owner);
}

static void
calls_wait_ms(struct io_ctx *io, int64_t ms)
{
    const struct run *run = io->owner;
    int64_t until_us = clock_mono_us(run->env->clock) + ms * US_PER_MS;

    while (!is_cut(run)) {
        int64_t left_us = until_us - clock_mono_us(run->env->clock);

        if (left_us <= 0)
            return;
        clock_pause_ms(left_us > SLICE_MS * US_PER_MS ? SLICE_MS
                                                      : (left_us + 999) / US_PER_MS);
    }
}

static const char *
calls_key(struct io_ctx *io, const char *name)
{
    const struct run *run = io->owner;
    const char *value;

    for (size_t i = 0; i < run->env->config->key_count; i++)
        if (strcmp(run->env->config->keys[i], name) == 0) {
            value = getenv(name);
            return value && *value ? value : NULL;
        }
    return NULL; /* not named: not given out */
}

/* --- budgets --- */

/* The rule of a budget with its zone, made once in the life of the run. */
static int
find_rule(struct run *run, const char *name, struct budget_rule *ret_rule,
          struct err *err)
{
    const struct config_budget *budget = config_budget_find(run->env->config, name);
    struct run_zone *found = NULL;
    int r = 0;

    if (!budget)
        return err_set(err, ERR_CONFIG,
                       "there is no budget %s; name it under `budgets:`", name);
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < run->n_zones; i++)
        if (strcmp(run->zones[i].budget, name) == 0)
            found = &run->zones[i];
    if (!found && run->n_zones == RUN_BUDGETS_MAX) {
        r = err_set(err, ERR_CONFIG, "a job can use at most %d budgets",
                    RUN_BUDGETS_MAX);
    } else if (!found) {
        found = &run->zones[run->n_zones];
        found->budget = budget->name;
        r = zone_load(budget->zone, &found->zone, err);
        if (r == 0)
            run->n_zones++;
    }
    pthread_mutex_unlock(&run->lock);
    if (r < 0)
        return err_prefix(err, "budget %s", name);
    *ret_rule = (struct budget_rule){.name = budget->name,
                                     .per_day = budget->per_day,
                                     .spacing_us = budget->spacing_us,
                                     .zone = found->zone};
    return 0;
}

void
run_calls_release(struct run *run)
{
    for (size_t i = 0; i < run->n_zones; i++)
        zone_free(run->zones[i].zone);
    run->n_zones = 0;
}

static void
say_spent(const struct run *run, const struct budget_rule *rule,
          const struct budget_grant *grant, char why[IO_WHY_MAX])
{
    const struct config_budget *budget =
        config_budget_find(run->env->config, rule->name);
    char until[CIVIL_TEXT_SIZE] = "";

    civil_format_us(grant->day_end_us, 0, until);
    if (grant->closed)
        snprintf(why, IO_WHY_MAX,
                 "Budget %s: the provider allows no more calls today (%" PRId64
                 " taken of %" PRId64 "), until %s, midnight in %s. What is done is "
                 "kept; ask again after that to go on.",
                 rule->name, grant->used, rule->per_day, until, budget->zone);
    else
        snprintf(why, IO_WHY_MAX,
                 "Budget %s: %" PRId64 " of %" PRId64 " calls are used up until %s, "
                 "midnight in %s. What is done is kept; ask again after that to go on.",
                 rule->name, grant->used, rule->per_day, until, budget->zone);
}

/* The store may be away for a while: a call that was not taken is not made. */
static int
take_when_there(struct run *run, const struct budget_order *order,
                struct budget_grant *grant, struct err *err)
{
    int64_t until_us = clock_mono_us(run->env->clock) + STORE_WAIT_US;
    struct backoff backoff = {.base_ms = 50, .max_ms = 2000, .jitter = 0.5};
    int r = budget_take(run->env->store, order, grant, err);

    while (r < 0 && run_record_later(r) && !is_cut(run) &&
           clock_mono_us(run->env->clock) < until_us) {
        clock_pause_ms(backoff_next_ms(&backoff));
        err_clear(err);
        r = budget_take(run->env->store, order, grant, err);
    }
    return r;
}

/* Not by run_stage, which belongs to the run's thread. */
static void
tell_call(const struct run *run, const char *stage)
{
    if (run->env->stage)
        run->env->stage(run->env->stage_arg, run->request_id, run->step_name, stage);
}

static int
calls_take(struct io_ctx *io, const char *budget, char why[IO_WHY_MAX], struct err *err)
{
    struct run *run = io->owner;
    struct budget_rule rule = {0};
    struct budget_grant grant = {0};
    struct budget_order order = {.request_id = run->request_id,
                                 .token = run->token,
                                 .max_calls = run->max_calls};
    int r = budget ? find_rule(run, budget, &rule, err) : 0;

    if (r < 0)
        return r;
    if (budget)
        order.rule = &rule;
    tell_call(run, "reserving");
    r = is_cut(run) ? BUDGET_LOST : take_when_there(run, &order, &grant, err);
    if (r < 0)
        return err_prefix(err, "budget %s", budget ? budget : "of the request");
    switch ((enum budget_outcome)r) {
    case BUDGET_TAKEN:
        calls_wait_ms(io, (grant.wait_us + 999) / US_PER_MS);
        tell_call(run, "calling");
        return is_cut(run) ? IO_TAKE_END : IO_TAKE_GO;
    case BUDGET_SPENT:
        say_spent(run, &rule, &grant, why);
        return IO_TAKE_SPENT;
    case BUDGET_MAX_CALLS:
        snprintf(why, IO_WHY_MAX,
                 "The request's maxCalls (%" PRId64 ") are used up. What is done is "
                 "kept; ask again to go on.",
                 run->max_calls);
        return IO_TAKE_MAX_CALLS;
    case BUDGET_LOST:
        break;
    }
    if (!is_cut(run))
        run_ask(run, RUN_LOST);
    return IO_TAKE_END;
}

static int64_t
calls_per_day(struct io_ctx *io, const char *budget)
{
    const struct run *run = io->owner;
    const struct config_budget *found = config_budget_find(run->env->config, budget);

    return found ? found->per_day : -1;
}

static int
calls_close_budget(struct io_ctx *io, const char *budget, char why[IO_WHY_MAX],
                   struct err *err)
{
    struct run *run = io->owner;
    struct budget_state state = {0};
    struct budget_grant grant = {.closed = true};
    struct budget_rule rule = {0};
    int r = find_rule(run, budget, &rule, err);

    if (r == 0)
        r = budget_close(run->env->store, &rule, err);
    if (r <= 0)
        return r; /* the day has just begun: the provider's word is no word about it */
    r = budget_read(run->env->store, &rule, &state, err);
    if (r < 0)
        return r;
    grant.used = state.used;
    grant.day_end_us = state.day_end_us;
    say_spent(run, &rule, &grant, why);
    return 0;
}

static int64_t
calls_local_us(struct io_ctx *io, const char *budget)
{
    struct run *run = io->owner;
    int64_t now_us = clock_wall_us(run->env->clock);
    struct budget_rule rule = {0};
    struct err ignored = {0};

    if (!budget || find_rule(run, budget, &rule, &ignored) < 0)
        return now_us;
    return now_us + zone_span_at(rule.zone, now_us / US_PER_S).offset_s * US_PER_S;
}

/* --- notes --- */

static int
calls_skip(struct io_ctx *io, const struct io_skip *skip, struct err *err)
{
    struct run *run = io->owner;
    const struct batch_skip note = {.step = run->step_name,
                                    .item = skip->item,
                                    .class = skip->class,
                                    .values = skip->values,
                                    .message = skip->message};
    struct run_patience patience = run_patience(run);
    int r;

    do
        r = batch_skip_note(run->env->store, run->request_id, run->token,
                            run->instance_id, &note, err);
    while (run_wait_after(run, &patience, r, err));

    if (r == BATCH_LOST) {
        run_ask(run, RUN_LOST);
        return err_set(err, ERR_STALE_TOKEN, "the claim is gone");
    }
    return r;
}

void
run_calls_prepare(struct run *run, struct io_ctx *io)
{
    io->cut = calls_cut;
    io->take_call = calls_take;
    io->per_day = calls_per_day;
    io->close_budget = calls_close_budget;
    io->key = calls_key;
    io->wait_ms = calls_wait_ms;
    io->local_us = calls_local_us;
    io->skip = calls_skip;
    io->why = run->why;
    io->folder = run->env->config->folder;
    io->files_folder = run->files_folder;
    run->why[0] = '\0';
}
