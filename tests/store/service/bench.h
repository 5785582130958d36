/* A store with a results folder, and what the tests of fsck look at and damage in it.
 */
#ifndef TESTS_STORE_SERVICE_BENCH_H
#define TESTS_STORE_SERVICE_BENCH_H

#include "tests/store/queue/common.h"

#include "base/arena.h"
#include "config/config.h"
#include "run/result_store.h"
#include "service/fsck.h"

struct bench {
    struct harness *h;
    struct config_budget budget;
    struct config config;
    char folder[64];
    struct result_store *results;
    struct fsck_order order;
    struct arena arena;
};

void set_up(struct bench *b, struct harness *h);
void tear_down(struct bench *b);
struct fsck_report look(struct bench *b);
void assert_clean(struct bench *b);

/* Is there a finding of that rule about id? */
bool found(const struct fsck_report *report, const char *check, int64_t id);

/* A part of request under token, as a step would make it. */
void make_part(struct bench *b, int64_t request, int64_t token, char *path,
               size_t size);

/* Carry a request to COMPLETED with a result of three bytes. */
int64_t complete_with_result(struct bench *b);

/* 1 is COMPLETED with a result, 2 is RUNNING under token 2 with a part, 3 is ready. */
void plant_ground(struct bench *b);

#endif
