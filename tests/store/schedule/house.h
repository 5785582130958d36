/* What the tests of schedules share: a configuration of three jobs, and its slots. */
#ifndef TESTS_STORE_SCHEDULE_HOUSE_H
#define TESTS_STORE_SCHEDULE_HOUSE_H

#include "config/config.h"
#include "schedule/schedule.h"
#include "schedule/tick.h"
#include "service/service.h"
#include "tests/store/queue/common.h"

/* A configuration with these schedules, its jobs and schedules published. */
struct house {
    struct config *config;
    struct service service;
};

/* A file of that version, with these lines below `schedules:`. */
void house_open(struct harness *h, struct house *house, int version,
                const char *schedules);
void house_release(struct house *house);

/* Its own, to be freed; with a clock that is wrong by skew_us. */
struct scheduler *scheduler_of(struct house *house, struct store *store,
                               int64_t skew_us);

/* Enough rounds of one scheduler for all that is due: a hundred slots each. */
void catch_up(struct house *house);

/* "fired 1 05:00; merged 4 01:00-04:00", in the order of their times. */
void assert_slots(struct harness *h, const char *schedule, const char *expected);

#endif
