/* The words of the states, one table per enum; each table is complete by assertion. */
#include "queue/request.h"

#include <assert.h>
#include <string.h>

static const char *const status_names[] = {
    [REQUEST_QUEUED] = "QUEUED",
    [REQUEST_RUNNING] = "RUNNING",
    [REQUEST_DONE] = "DONE",
    [REQUEST_FAILED] = "FAILED",
};
static_assert_count(status_names, REQUEST_STATUS_COUNT);

static const char *const outcome_names[] = {
    [OUTCOME_NONE] = NULL,
    [OUTCOME_COMPLETED] = "COMPLETED",
    [OUTCOME_STOPPED] = "STOPPED",
    [OUTCOME_ERROR] = "ERROR",
    [OUTCOME_CANCELLED] = "CANCELLED",
    [OUTCOME_TIMEOUT] = "TIMEOUT",
    [OUTCOME_WORKER_LOST] = "WORKER_LOST",
    [OUTCOME_EXPIRED] = "EXPIRED",
    [OUTCOME_REFUSED] = "REFUSED",
};
static_assert_count(outcome_names, OUTCOME_COUNT);

static const char *const source_names[] = {
    [SOURCE_API] = "api",           [SOURCE_CLI] = "cli",
    [SOURCE_SQL] = "sql",           [SOURCE_SCHEDULE] = "schedule",
    [SOURCE_CHAIN] = "chain",       [SOURCE_RETRY] = "retry",
    [SOURCE_BACKFILL] = "backfill", [SOURCE_PARTITION] = "partition",
};
static_assert_count(source_names, SOURCE_COUNT);

static const char *const place_names[] = {
    [PLACE_LATER] = "later",
    [PLACE_READY] = "ready",
    [PLACE_CLAIM] = "claim",
    [PLACE_OUTCOME] = "outcome",
};
static_assert_count(place_names, PLACE_COUNT);

const char *
request_status_name(enum request_status status)
{
    assert(status < REQUEST_STATUS_COUNT);
    return status_names[status];
}

const char *
request_outcome_name(enum request_outcome outcome)
{
    assert(outcome < OUTCOME_COUNT);
    return outcome_names[outcome];
}

const char *
request_source_name(enum request_source source)
{
    assert(source < SOURCE_COUNT);
    return source_names[source];
}

const char *
request_place_name(enum request_place place)
{
    assert(place < PLACE_COUNT);
    return place_names[place];
}

/* The index of text among names, or -1. */
static int
find(const char *const *names, size_t count, const char *text)
{
    for (size_t i = 0; text && i < count; i++)
        if (names[i] && strcmp(names[i], text) == 0)
            return (int)i;
    return -1;
}

bool
request_status_parse(const char *text, enum request_status *ret_status)
{
    int at = find(status_names, array_len(status_names), text);

    if (at < 0)
        return false;
    *ret_status = (enum request_status)at;
    return true;
}

bool
request_outcome_parse(const char *text, enum request_outcome *ret_outcome)
{
    int at = find(outcome_names, array_len(outcome_names), text);

    if (at < 0)
        return false;
    *ret_outcome = (enum request_outcome)at;
    return true;
}

bool
request_source_parse(const char *text, enum request_source *ret_source)
{
    int at = find(source_names, array_len(source_names), text);

    if (at < 0)
        return false;
    *ret_source = (enum request_source)at;
    return true;
}

enum request_status
request_status_of(enum request_outcome outcome)
{
    assert(outcome > OUTCOME_NONE && outcome < OUTCOME_COUNT);
    return outcome == OUTCOME_COMPLETED || outcome == OUTCOME_STOPPED ? REQUEST_DONE
                                                                      : REQUEST_FAILED;
}

bool
request_status_final(enum request_status status)
{
    return status == REQUEST_DONE || status == REQUEST_FAILED;
}
