#include "tests/store/service/bench.h"

#include "base/fsio.h"
#include "liveness/worker_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
worker_up(struct harness *h, const char *id)
{
    struct worker_row row = {.id = id,
                             .seat = id,
                             .host = "h",
                             .pid = 1,
                             .boot_id = "b",
                             .lanes = "{}",
                             .in_use = "{}",
                             .keys = "[]",
                             .jobs = "[]",
                             .version = "1"};
    struct err err = {0};

    assert_ok(worker_register(h->store, &row, &err), &err);
}

void
set_up(struct bench *b, struct harness *h)
{
    struct err err = {0};

    *b = (struct bench){.h = h};
    snprintf(b->folder, sizeof(b->folder), "/tmp/pawl-fsck-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    assert_ok(result_store_open(b->folder, store_id(h->store), &b->results, &err),
              &err);
    b->budget = (struct config_budget){.name = "calls", .per_day = 9};
    b->config = (struct config){.budgets = &b->budget, .budget_count = 1};
    b->order = (struct fsck_order){.config = &b->config,
                                   .hash_files = true,
                                   .store = h->store,
                                   .results = b->results,
                                   .grace_us = 60 * US_PER_S};
    worker_up(h, "w1");
}

void
tear_down(struct bench *b)
{
    result_store_close(b->results);
    fs_remove_tree_quietly(b->folder);
    arena_release(&b->arena);
}

struct fsck_report
look(struct bench *b)
{
    struct fsck_report report;
    struct err err = {0};

    assert_ok(fsck_look(&b->order, &b->arena, &report, &err), &err);
    return report;
}

void
assert_clean(struct bench *b)
{
    struct fsck_report report = look(b);

    if (report.count > 0)
        fail_msg("%s %lld: %s", report.findings[0].check,
                 (long long)report.findings[0].id, report.findings[0].detail);
}

/* A part of request under token, as a step would make it. */
void
make_part(struct bench *b, int64_t request, int64_t token, char *path, size_t size)
{
    struct err err = {0};

    assert_ok(result_store_part(b->results, request, "export", token, path, size, &err),
              &err);
    assert_ok(fs_replace_file(path, "abc", 3, 0600, &err), &err);
}

/* Carry a request to COMPLETED with a result of three bytes. */
int64_t
complete_with_result(struct bench *b)
{
    int64_t id = submit_one(b->h, "task");
    struct claim claim = claim_one(b->h, "w1");
    struct finish_order order = finish_of(id, &claim, OUTCOME_COMPLETED);
    struct request_result result;
    struct result_file file;
    struct err err = {0};
    char path[512];

    make_part(b, id, claim.token.number, path, sizeof(path));
    assert_ok(result_store_publish(b->results, path, id, "out.csv", &file, &err), &err);
    result = (struct request_result){.known = true,
                                     .path = file.path,
                                     .name = "out.csv",
                                     .type = "text/csv",
                                     .bytes = file.bytes,
                                     .rows = 1,
                                     .sha256 = file.sha256};
    order.result = &result;
    assert_int_equal(queue_finish(b->h->store, &order, &err), QUEUE_FINISHED);
    return id;
}

void
plant_ground(struct bench *b)
{
    struct claim claim;
    char path[512];

    assert_int_equal(complete_with_result(b), 1);
    assert_int_equal(submit_one(b->h, "task"), 2);
    claim = claim_one(b->h, "w1");
    assert_int_equal(submit_one(b->h, "task"), 3);
    make_part(b, 2, claim.token.number, path, sizeof(path));
    assert_clean(b);
}

bool
found(const struct fsck_report *report, const char *check, int64_t id)
{
    for (size_t i = 0; i < report->count; i++)
        if (strcmp(report->findings[i].check, check) == 0 &&
            report->findings[i].id == id)
            return true;
    return false;
}
