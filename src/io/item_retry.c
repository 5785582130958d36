/*
 * The wait is cut into slices, because a stop has to be seen in the midst of it: it may
 * be minutes long, and whoever stops a run does not wait for another try of something
 * that fails.
 */
#include "io/item_retry.h"

#include "base/err.h"
#include "base/retry.h"
#include "io/io_ctx.h"
#include "io/option.h"
#include "io/processor.h"

#define SLICE_MS     100
#define ATTEMPTS_MAX 100
#define JITTER       0.2

static const struct io_option options[] = {
    {"on", IO_OPTION_LIST, true, NULL,
     "classes of errors: parse, upstream, rejected, constraint"},
    {"attempts", IO_OPTION_NUMBER, false, NULL,
     "tries in all, the first included: 2 to 100; default 3"},
    {"backoff", IO_OPTION_DURATION, false, NULL,
     "wait before the second try, doubled for each further one; default 1s"},
    {"max_backoff", IO_OPTION_DURATION, false, NULL,
     "ceiling of that wait; default 1m"},
};

const struct io_option *
item_retry_options(size_t *ret_count)
{
    *ret_count = array_len(options);
    return options;
}

int
item_retry_read(const json_t *def, struct item_retry *ret_retry, struct err *err)
{
    const json_t *given = json_object_get(def, "retry");
    struct item_retry retry = {0};
    int r;

    *ret_retry = retry;
    if (!given)
        return 0;
    if (!json_is_object(given))
        return err_set(err, ERR_CONFIG,
                       "retry: must be {on: [classes], attempts: N, backoff: 1s}");
    r = io_options_check("retry", given, options, array_len(options), err);
    if (r == 0)
        r = item_classes_read(json_object_get(given, "on"), "retry.on",
                              ITEM_PARSE | ITEM_UPSTREAM | ITEM_REJECTED |
                                  ITEM_CONSTRAINT,
                              &retry.on, err);
    if (r < 0)
        return r;
    retry.attempts = (int)io_option_number(given, "attempts", 3);
    retry.backoff_ms = io_option_ms(given, "backoff", 1000);
    retry.max_backoff_ms = io_option_ms(given, "max_backoff", 60000);
    if (retry.attempts < 2 || retry.attempts > ATTEMPTS_MAX)
        return err_set(err, ERR_CONFIG, "retry.attempts: must be 2 to %d",
                       ATTEMPTS_MAX);
    if (retry.max_backoff_ms < retry.backoff_ms) {
        if (json_object_get(given, "max_backoff"))
            return err_set(err, ERR_CONFIG,
                           "retry.max_backoff: must not be less than retry.backoff");
        retry.max_backoff_ms = retry.backoff_ms;
    }
    *ret_retry = retry;
    return 0;
}

static int64_t
wait_of(const struct item_retry *retry, int tried)
{
    struct backoff backoff = {.base_ms = retry->backoff_ms,
                              .max_ms = retry->max_backoff_ms,
                              .jitter = JITTER,
                              .attempts = tried - 1};

    return retry->backoff_ms > 0 ? backoff_next_ms(&backoff) : 0;
}

enum item_retry_wait
item_retry_wait(const struct item_retry *retry, struct io_ctx *io, int tried)
{
    int64_t left_ms = wait_of(retry, tried);

    for (;;) {
        int64_t slice_ms = left_ms < SLICE_MS ? left_ms : SLICE_MS;

        if (io->cut(io))
            return ITEM_RETRY_CUT;
        if (io->stopped(io) != IO_GO_ON)
            return ITEM_RETRY_STOP;
        if (left_ms <= 0)
            return ITEM_RETRY_AGAIN;
        io->wait_ms(io, slice_ms);
        left_ms -= slice_ms;
    }
}
