/*
 * A good file becomes struct config: the example of the design, defaults,
 * environment, definitions that the queue reads back, places of steps.
 */
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "config/config.h"
#include "config/errors.h"
#include "queue/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct env_pair {
    const char *name;
    const char *value;
};

static const char *
env_of(void *arg, const char *name)
{
    const struct env_pair *pair = arg;

    for (; pair != NULL && pair->name != NULL; pair++) {
        if (str_eq(pair->name, name))
            return pair->value;
    }
    return NULL;
}

static struct config *
load(const char *path, struct env_pair *env)
{
    struct config_errors errors = {0};
    struct config *config = NULL;
    struct err err = {0};

    if (config_load(path, env_of, env, &config, &errors, &err) < 0) {
        config_errors_print(&errors, stderr);
        fail_msg("%s", err.text);
    }
    return config;
}

/* A file of this text in a folder of its own, loaded; the folder goes again. */
static struct config *
load_text(const char *yaml, struct env_pair *env, char ret_folder[64])
{
    char path[128];
    struct err err = {0};
    struct config *config;

    snprintf(ret_folder, 64, "/tmp/pawl-config-XXXXXX");
    assert_non_null(mkdtemp(ret_folder));
    snprintf(path, sizeof(path), "%s/pawl.yaml", ret_folder);
    assert_int_equal(fs_replace_file(path, yaml, strlen(yaml), 0600, &err), 0);
    config = load(path, env);
    fs_remove_tree_quietly(ret_folder);
    return config;
}

static struct config *
load_example(void)
{
    char path[4096];

    snprintf(path, sizeof(path), "%s/tests/data/yaml/good-example.yaml",
             getenv("PAWL_SOURCE_ROOT"));
    return load(path, NULL);
}

static void
test_example_of_the_design_is_read(void **state)
{
    scoped(config_free_ptr) struct config *config = load_example();
    const struct config_job *job = config_job_find(config, "cities-export");

    assert_int_equal(config->job_count, 4);
    assert_string_equal(job->title, "Cities workbook");
    assert_int_equal(job->kind, CONFIG_BATCH);
    assert_int_equal(job->duplicates, CONFIG_DUPLICATES_REUSE);
    assert_int_equal(job->reuse_window_us, 10 * US_PER_MINUTE);
    assert_int_equal(job->large_over, 10000);
    assert_string_equal(job->lane, "normal");
    assert_string_equal(job->estimate.database, "shop");
    assert_string_equal(job->estimate.otherwise, "large");
    assert_int_equal(job->estimate.timeout_us, US_PER_S);
    assert_int_equal(job->timeout_us, 30 * US_PER_MINUTE);
    assert_int_equal(job->retry.attempts, 3);
    assert_int_equal(job->retry.on, CONFIG_RETRY_WORKER_LOST);
    assert_false(job->retry.drained);
    assert_true(job->makes_result);
    assert_int_equal(json_array_size(job->steps), 1);

    job = config_job_find(config, "thumbnails");
    assert_int_equal(job->kind, CONFIG_TASK);
    assert_int_equal(job->duplicates, CONFIG_DUPLICATES_ALLOW);
    assert_string_equal(job->title, "thumbnails");
    assert_true(job->retry.drained);
    assert_false(job->makes_result);
    job = config_job_find(config, "apt-trades");
    assert_int_equal(job->duplicates, CONFIG_DUPLICATES_REFUSE);
    assert_string_equal(json_string_value(json_array_get(job->next, 0)),
                        "region-metrics");
    assert_string_equal(job->needs_keys[0], "DATA_GO_KR_KEY");
    assert_null(config_job_find(config, "nothing"));

    assert_int_equal(config_budget_find(config, "datagokr")->per_day, 9000);
    assert_int_equal(config_budget_find(config, "datagokr")->spacing_us,
                     60 * US_PER_MS);
    assert_string_equal(config->schedules[0].job, "apt-trades");
    assert_string_equal(config->schedules[0].zone, "Asia/Seoul");
    assert_true(config->version > 0);
}

static void
test_an_empty_file_has_all_defaults(void **state)
{
    char folder[64];
    char wanted[128];
    scoped(config_free_ptr) struct config *config = load_text("", NULL, folder);

    snprintf(wanted, sizeof(wanted), "sqlite:%s/pawl.db", folder);
    assert_string_equal(config->store.api, wanted);
    assert_string_equal(config->store.worker, wanted);
    assert_string_equal(config_database_url(config, "main"), wanted);
    assert_null(config->store.listen);
    snprintf(wanted, sizeof(wanted), "%s/pawl-data/results", folder);
    assert_string_equal(config->results, wanted);
    snprintf(wanted, sizeof(wanted), "%s/pawl-data/state", folder);
    assert_string_equal(config->state, wanted);
    assert_int_equal(config_lane_find(config, "normal")->slots, 4);
    assert_int_equal(config_lane_find(config, "large")->slots, 2);
    assert_int_equal(config->worker.heartbeat_us, 10 * US_PER_S);
    assert_int_equal(config->worker.dead_after_us, 60 * US_PER_S);
    assert_int_equal(config->worker.takeover_after_us, 2 * US_PER_HOUR);
    assert_int_equal(config->worker.drain_us, 45 * US_PER_S);
    assert_string_equal(config->api.listen, "127.0.0.1:8410");
    assert_int_equal(config->api.max_body, 1 << 20);
    assert_int_equal(config->log.level, CONFIG_LOG_INFO);
    assert_int_equal(config->job_count, 0);
}

static void
test_B17_lanes_are_set_one_by_one(void **state)
{
    char folder[64];
    scoped(config_free_ptr) struct config *config =
        load_text("lanes: {large: 7, night: 0}\n", NULL, folder);

    assert_int_equal(config->lane_count, 3);
    assert_int_equal(config_lane_find(config, "normal")->slots, 4);
    assert_int_equal(config_lane_find(config, "large")->slots, 7);
    assert_int_equal(config_lane_find(config, "night")->slots, 0);
    assert_null(config_lane_find(config, "day"));
}

static void
test_paths_are_relative_to_the_folder_of_the_file(void **state)
{
    char folder[64];
    char wanted[128];
    scoped(config_free_ptr) struct config *config =
        load_text("store: {api: postgresql://a@h/d, worker: 'postgresql://w@h/d'}\n"
                  "databases: {shop: 'sqlite:data/shop.db', abs: sqlite:/x/y.db}\n"
                  "results: ./out\nstate: /var/lib/pawl\n",
                  NULL, folder);

    snprintf(wanted, sizeof(wanted), "sqlite:%s/data/shop.db", folder);
    assert_string_equal(config_database_url(config, "shop"), wanted);
    assert_string_equal(config_database_url(config, "abs"), "sqlite:/x/y.db");
    assert_null(config_database_url(config, "none"));
    snprintf(wanted, sizeof(wanted), "%s/out", folder);
    assert_string_equal(config->results, wanted);
    assert_string_equal(config->state, "/var/lib/pawl");
    assert_string_equal(config->store.api, "postgresql://a@h/d");
    assert_string_equal(config_database_url(config, "main"), "postgresql://w@h/d");
}

static void
test_environment_goes_before_the_file(void **state)
{
    struct env_pair env[] = {{"PAWL_STORE", "postgresql://env@h/d"},
                             {"PAWL_STORE_LISTEN", "postgresql://direct@h/d"},
                             {"PAWL_LISTEN", "127.0.0.1:9999"},
                             {"PAWL_RESULTS", "/srv/results"},
                             {"PAWL_STATE", "/srv/state"},
                             {NULL, NULL}};
    char folder[64];
    scoped(config_free_ptr) struct config *config = load_text(
        "store: {url: sqlite:./a.db, api: sqlite:./b.db}\napi: {listen: '[::1]:1'}\n"
        "results: ./x\nstate: ./y\n",
        env, folder);

    assert_string_equal(config->store.url, "postgresql://env@h/d");
    assert_string_equal(config->store.api, "postgresql://env@h/d");
    assert_string_equal(config->store.worker, "postgresql://env@h/d");
    assert_string_equal(config->store.listen, "postgresql://direct@h/d");
    assert_string_equal(config->api.listen, "127.0.0.1:9999");
    assert_string_equal(config->results, "/srv/results");
    assert_string_equal(config->state, "/srv/state");
}

static void
test_a_wrong_environment_variable_is_named(void **state)
{
    struct env_pair env[] = {
        {"PAWL_STORE", "mysql://x"}, {"PAWL_LISTEN", "nowhere"}, {NULL, NULL}};
    struct config_errors errors = {0};
    struct config *config = NULL;
    struct err err = {0};
    char path[4096];
    char text[512];

    snprintf(path, sizeof(path), "%s/tests/data/yaml/good-example.yaml",
             getenv("PAWL_SOURCE_ROOT"));
    assert_int_equal(config_load(path, env_of, env, &config, &errors, &err),
                     -ERR_CONFIG);
    assert_int_equal(errors.count, 2);
    config_errors_text(&errors, 0, text, sizeof(text));
    assert_string_equal(text, "PAWL_STORE: url must be sqlite:PATH or "
                              "postgresql://USER@HOST/NAME");
    config_errors_text(&errors, 1, text, sizeof(text));
    assert_true(str_starts_with(text, "PAWL_LISTEN: listen must be an address"));
    config_errors_release(&errors);
}

static void
test_definitions_are_read_back_by_the_queue(void **state)
{
    scoped(config_free_ptr) struct config *config = load_example();
    size_t i;

    for (i = 0; i < config->job_count; i++) {
        const struct config_job *job = &config->jobs[i];
        scoped(queue_job_free_ptr) struct queue_job *read = NULL;
        struct err err = {0};

        if (queue_job_parse(job->definition, &read, &err) < 0)
            fail_msg("%s", err.text);
        assert_string_equal(read->name, job->name);
        assert_string_equal(read->lane, job->lane);
        assert_int_equal(read->large_over, job->large_over);
        assert_int_equal(read->kind == QUEUE_KIND_TASK, job->kind == CONFIG_TASK);
        assert_string_equal(queue_duplicates_word(read->duplicates),
                            job->duplicates == CONFIG_DUPLICATES_REFUSE  ? "refuse"
                            : job->duplicates == CONFIG_DUPLICATES_REUSE ? "reuse"
                                                                         : "allow");
        assert_int_equal(read->retry.on, job->retry.on);
        assert_int_equal(read->retry.attempts, job->retry.attempts);
        assert_int_equal(read->makes_result, job->makes_result);
        assert_int_equal(read->param_count, json_object_size(job->params));
        assert_int_equal(read->next_count, json_array_size(job->next));
        assert_int_equal(strlen(job->hash), 64);
    }
}

/* Only the name: a changed address or secret counts for what waits as well. */
static void
test_a_webhook_stands_in_the_definition_by_its_name(void **state)
{
    static const char *const yaml =
        "keys: [K]\n"
        "webhooks: {shop: {url: \"https://shop.example/pawl\", key: K}}\n"
        "jobs:\n"
        "  a: {webhook: shop, steps: [{name: x, sql: \"SELECT 1\"}]}\n"
        "  b: {webhook: {to: shop, on: [COMPLETED, FAILED]},"
        " steps: [{name: x, sql: \"SELECT 1\"}]}\n"
        "  c: {webhook: {to: shop, on: TIMEOUT}, steps: [{name: x, sql: \"SELECT "
        "1\"}]}\n"
        "  d: {steps: [{name: x, sql: \"SELECT 1\"}]}\n";
    static const char *const parts[] = {
        "\"webhook\":{\"on\":[\"COMPLETED\",\"STOPPED\",\"ERROR\",\"CANCELLED\","
        "\"TIMEOUT\",\"EXPIRED\",\"REFUSED\",\"WORKER_LOST\"],\"to\":\"shop\"}",
        "\"webhook\":{\"on\":[\"COMPLETED\",\"ERROR\",\"CANCELLED\",\"TIMEOUT\","
        "\"EXPIRED\",\"REFUSED\",\"WORKER_LOST\"],\"to\":\"shop\"}",
        "\"webhook\":{\"on\":[\"TIMEOUT\"],\"to\":\"shop\"}",
    };
    char folder[64];
    scoped(config_free_ptr) struct config *config = load_text(yaml, NULL, folder);
    const struct config_webhook *webhook = config_webhook_find(config, "shop");

    assert_non_null(webhook);
    assert_string_equal(webhook->key, "K");
    assert_int_equal(webhook->timeout_us, 15 * US_PER_S);
    assert_null(config_webhook_find(config, "other"));
    for (size_t i = 0; i < 3; i++) {
        assert_non_null(strstr(config->jobs[i].definition, parts[i]));
        assert_null(strstr(config->jobs[i].definition, "shop.example"));
    }
    assert_null(strstr(config->jobs[3].definition, "webhook"));
}

static void
test_parameters_keep_their_declared_order_in_the_definition(void **state)
{
    scoped(config_free_ptr) struct config *config = load_example();
    scoped(queue_job_free_ptr) struct queue_job *job = NULL;
    struct err err = {0};

    assert_int_equal(
        queue_job_parse(config_job_find(config, "cities-export")->definition, &job,
                        &err),
        0);
    assert_string_equal(job->params[0].name, "country");
    assert_string_equal(job->params[1].name, "min_population");
    assert_string_equal(job->params[2].name, "format");
}

static void
test_hash_depends_on_meaning_not_on_spelling(void **state)
{
    static const char *const same[] = {
        "jobs: {a: {title: T, timeout: 60s, steps: [{name: x, sql: \"SELECT 1\"}]}}\n",
        "jobs:\n  a:\n    steps:\n      - sql: 'SELECT 1'\n        name: x # one\n"
        "    timeout: 1m\n    priority: 0\n    title: \"T\"\n",
    };
    char folder[64];
    scoped(config_free_ptr) struct config *one = load_text(same[0], NULL, folder);
    scoped(config_free_ptr) struct config *two = load_text(same[1], NULL, folder);
    scoped(config_free_ptr) struct config *other = load_text(
        "jobs: {a: {title: T, timeout: 61s, steps: [{name: x, sql: \"SELECT 1\"}]}}\n",
        NULL, folder);

    assert_string_equal(one->jobs[0].definition, two->jobs[0].definition);
    assert_string_equal(one->jobs[0].hash, two->jobs[0].hash);
    assert_string_not_equal(one->jobs[0].hash, other->jobs[0].hash);
}

static void
test_places_of_steps_are_found_by_pointer(void **state)
{
    scoped(config_free_ptr) struct config *config = load_example();
    const struct config_job *job = config_job_find(config, "apt-trades");
    struct config_errors errors = {0};
    char text[512];
    unsigned line;
    unsigned column;

    config_job_place(job, "/steps/0/write/item/1", &line, &column);
    assert_int_equal(line, 30);
    assert_int_equal(column, 54); /* characters: an … counts once */
    config_job_place(job, "/steps/0/write/missing", &line, &column);
    assert_int_equal(line, 30);
    assert_int_equal(column, 18);
    config_job_place(job, "", &line, &column);
    assert_int_equal(line, 21);
    config_job_problem(config, job, &errors, "/steps/0/chunk", "%d is odd", 21);
    config_errors_text(&errors, 0, text, sizeof(text));
    assert_true(str_ends_with(text, "good-example.yaml:26:16: 21 is odd"));
    config_errors_release(&errors);
}

static void
test_config_version_comes_from_the_file_or_its_time(void **state)
{
    char folder[64];
    scoped(config_free_ptr) struct config *given =
        load_text("config_version: 20261101093000\n", NULL, folder);
    scoped(config_free_ptr) struct config *timed = load_text("", NULL, folder);

    assert_int_equal(given->version, 20261101093000);
    assert_true(timed->version > 1600000000000 && timed->version < given->version);
}

static void
test_a_file_over_one_mebibyte_or_none_is_refused(void **state)
{
    struct config_errors errors = {0};
    struct config *config = NULL;
    char folder[64] = "/tmp/pawl-config-XXXXXX";
    char path[128];
    struct err err = {0};
    char *big = calloc(1, (1 << 20) + 1);

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pawl.yaml", folder);
    assert_int_equal(config_load(path, NULL, NULL, &config, &errors, &err),
                     -ERR_CONFIG);
    assert_non_null(strstr(err.text, path));
    memset(big, '#', (1 << 20) + 1);
    err_clear(&err);
    assert_int_equal(fs_replace_file(path, big, (1 << 20) + 1, 0600, &err), 0);
    assert_int_equal(config_load(path, NULL, NULL, &config, &errors, &err),
                     -ERR_CONFIG);
    err_clear(&err);
    assert_int_equal(fs_replace_file(path, big, 1 << 20, 0600, &err), 0);
    assert_int_equal(config_load(path, NULL, NULL, &config, &errors, &err), 0);
    config_free(config);
    free(big);
    fs_remove_tree_quietly(folder);
}

static void
test_file_is_looked_for_in_order(void **state)
{
    struct env_pair env[] = {{"PAWL_CONFIG", "env.yaml"}, {NULL, NULL}};
    char folder[64] = "/tmp/pawl-config-XXXXXX";
    struct err err = {0};
    char *path = NULL;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(config_find(NULL, env_of, NULL, &path, &err), -ERR_CONFIG);
    assert_non_null(strstr(err.text, "-c FILE or PAWL_CONFIG"));
    assert_int_equal(fs_replace_file("pawl.yaml", "", 0, 0600, &err), 0);
    err_clear(&err);
    assert_int_equal(config_find(NULL, env_of, NULL, &path, &err), 0);
    assert_string_equal(path, "pawl.yaml");
    free(path);
    assert_int_equal(config_find(NULL, env_of, env, &path, &err), -ERR_CONFIG);
    assert_non_null(strstr(err.text, "env.yaml"));
    err_clear(&err);
    assert_int_equal(fs_replace_file("env.yaml", "", 0, 0600, &err), 0);
    assert_int_equal(config_find(NULL, env_of, env, &path, &err), 0);
    assert_string_equal(path, "env.yaml");
    free(path);
    assert_int_equal(config_find("./pawl.yaml", env_of, env, &path, &err), 0);
    assert_string_equal(path, "./pawl.yaml");
    free(path);
    assert_int_equal(chdir("/"), 0);
    fs_remove_tree_quietly(folder);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example_of_the_design_is_read),
        cmocka_unit_test(test_an_empty_file_has_all_defaults),
        cmocka_unit_test(test_B17_lanes_are_set_one_by_one),
        cmocka_unit_test(test_paths_are_relative_to_the_folder_of_the_file),
        cmocka_unit_test(test_environment_goes_before_the_file),
        cmocka_unit_test(test_a_wrong_environment_variable_is_named),
        cmocka_unit_test(test_definitions_are_read_back_by_the_queue),
        cmocka_unit_test(test_a_webhook_stands_in_the_definition_by_its_name),
        cmocka_unit_test(test_parameters_keep_their_declared_order_in_the_definition),
        cmocka_unit_test(test_hash_depends_on_meaning_not_on_spelling),
        cmocka_unit_test(test_places_of_steps_are_found_by_pointer),
        cmocka_unit_test(test_config_version_comes_from_the_file_or_its_time),
        cmocka_unit_test(test_a_file_over_one_mebibyte_or_none_is_refused),
        cmocka_unit_test(test_file_is_looked_for_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
