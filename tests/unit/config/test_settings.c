/* The tables themselves: the page made from them, and what a reload may change. */
#include "base/buf.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"
#include "config/config.h"
#include "config/errors.h"
#include "config/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static const char *
no_env(void *arg, const char *name)
{
    return NULL;
}

static struct config *
load_text(const char *yaml)
{
    char folder[] = "/tmp/pawl-config-XXXXXX";
    char path[64];
    struct config_errors errors = {0};
    struct config *config = NULL;
    struct err err = {0};

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pawl.yaml", folder);
    assert_int_equal(fs_replace_file(path, yaml, strlen(yaml), 0600, &err), 0);
    if (config_load(path, no_env, NULL, &config, &errors, &err) < 0)
        fail_msg("%s", err.text);
    fs_remove_tree_quietly(folder);
    return config;
}

static void
test_docs_config_md_is_what_the_tables_say(void **state)
{
    scoped(buf_release) struct buf page = {0};
    struct err err = {0};
    char path[4096];
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    config_print_reference(out);
    fclose(out);
    snprintf(path, sizeof(path), "%s/docs/config.md", getenv("PAWL_SOURCE_ROOT"));
    buf_init(&page, 1 << 20);
    if (fs_read_file(path, 1 << 20, &page, &err) < 0)
        fail_msg("%s", err.text);
    if (!str_eq(text, buf_str(&page)))
        fail_msg("docs/config.md is out of date: run ninja config-reference-md");
    free(text);
}

static void
check_rows(const struct setting_table *table)
{
    size_t i;

    for (i = 0; i < table->count; i++) {
        const struct setting *row = &table->rows[i];

        if (str_empty(row->help))
            fail_msg("%s.%s has no help", table->title, row->name);
        if (row->type == SETTING_DURATION || row->type == SETTING_BYTES ||
            row->type == SETTING_INTEGER)
            assert_true(row->min < row->max);
        assert_int_equal(row->type == SETTING_WORD, row->words != NULL);
        assert_int_equal(row->type == SETTING_SECTION, row->read != NULL);
        assert_false(row->needed && row->fallback != NULL);
        if (row->group != NULL)
            check_rows(row->group);
    }
}

static void
test_every_row_is_complete(void **state)
{
    check_rows(&config_settings);
}

static void
gather(void *arg, const char *setting)
{
    buf_addf(arg, "%s ", setting);
}

static void
test_what_a_reload_cannot_change_is_named(void **state)
{
    static const struct {
        const char *yaml;
        const char *named;
    } rows[] = {
        {"store: sqlite:/s.db\nresults: /r\nstate: /s\nlog: {format: json}\n",
         "log.format "},
        {"store: sqlite:/s.db\nresults: /q\nstate: /s\n", "results "},
        {"store: sqlite:/t.db\nresults: /r\nstate: /s\n",
         "store.url store.api store.worker "},
        {"store: sqlite:/s.db\nresults: /r\nstate: /s\nworker: {heartbeat: 11s, "
         "drain: 1s}\nlanes: {normal: 9}\nlog: {level: debug}\njobs: {}\n",
         "worker.heartbeat "},
        {"store: sqlite:/s.db\nresults: /r\nstate: /s\nconfig_version: 9\n", ""},
    };
    scoped(config_free_ptr) struct config *running =
        load_text("store: sqlite:/s.db\nresults: /r\nstate: /s\n");
    size_t i;

    for (i = 0; i < array_len(rows); i++) {
        scoped(config_free_ptr) struct config *loaded = load_text(rows[i].yaml);
        scoped(buf_release) struct buf names = {0};

        buf_init(&names, 1000);
        config_compare(running, loaded, gather, &names);
        assert_string_equal(buf_str(&names), rows[i].named);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_docs_config_md_is_what_the_tables_say),
        cmocka_unit_test(test_every_row_is_complete),
        cmocka_unit_test(test_what_a_reload_cannot_change_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
