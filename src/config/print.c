/*
 * docs/config.md from the tables. A test compares the file with this text, so
 * that the two cannot drift apart.
 */
#include "config/config.h"

#include "base/strs.h"
#include "config/settings.h"

#include <inttypes.h>

static const char head[] =
    "# Configuration\n"
    "\n"
    "One YAML file: `-c FILE`, else `PAWL_CONFIG`, else `./pawl.yaml`. `pawl check` "
    "tells "
    "all that is wrong with its settings at once, then with its steps and the rules of "
    "its schedules, as\n"
    "`file:line:column: message`. This page is generated from the tables in "
    "`src/config/settings.c` (`ninja config-reference-md`).\n"
    "\n"
    "Of YAML only a part is used: one document, UTF-8, at most 1 MiB and 32 levels; no "
    "anchors, aliases, tags or merge keys; a key may\n"
    "stand only once in its map. Unknown settings are errors. A plain number with "
    "leading "
    "zeros is refused where it could be a text: put it in\n"
    "quotes.\n"
    "\n"
    "Times need a unit: `250ms`, `45s`, `30m`, `2h`, `7d`, `1h30m`; `0` needs none. "
    "Sizes: "
    "`4096`, `64KiB`, `1MiB`, `10MB`.\n"
    "Relative paths of settings are taken from the folder of the file, those in "
    "environment "
    "variables "
    "from the current folder. An environment variable\n"
    "goes before the file.\n"
    "\n"
    "Every setting takes effect at the next start; those marked *reload* could follow "
    "a\n"
    "SIGHUP one day, which for now is only noted in the log.\n";

static const char *const type_words[] = {
    [SETTING_TEXT] = "text",       [SETTING_NAME] = "name",
    [SETTING_PATH] = "path",       [SETTING_URL] = "URL",
    [SETTING_INTEGER] = "integer", [SETTING_BOOLEAN] = "true, false",
    [SETTING_DURATION] = "time",   [SETTING_BYTES] = "size",
    [SETTING_WORD] = NULL,         [SETTING_GROUP] = "map",
    [SETTING_SECTION] = NULL,
};
static_assert_count(type_words, SETTING_TYPE_COUNT);

static void
print_limit(FILE *out, const struct setting *setting)
{
    char min[DURATION_TEXT_SIZE];
    char max[DURATION_TEXT_SIZE];

    if (setting->type == SETTING_DURATION) {
        format_duration_us(setting->min, min);
        format_duration_us(setting->max, max);
        fprintf(out, ", %s to %s", min, max);
    } else if (setting->type == SETTING_INTEGER && setting->max == INT64_MAX) {
        fprintf(out, ", at least %" PRId64, setting->min);
    } else if (setting->type == SETTING_INTEGER || setting->type == SETTING_BYTES) {
        fprintf(out, ", %" PRId64 " to %" PRId64, setting->min, setting->max);
    }
}

static void
print_row(FILE *out, const struct setting *setting)
{
    size_t i;

    fprintf(out, "| `%s` | ", setting->name);
    if (setting->type == SETTING_SECTION)
        fprintf(out, "%s", setting->shape);
    else if (setting->type != SETTING_WORD)
        fprintf(out, "%s", type_words[setting->type]);
    for (i = 0; setting->type == SETTING_WORD && setting->words[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? ", " : "", setting->words[i]);
    print_limit(out, setting);
    if (setting->needed)
        fprintf(out, " | *needed* | ");
    else if (setting->fallback != NULL)
        fprintf(out, " | `%s` | ", setting->fallback);
    else
        fprintf(out, " | | ");
    fprintf(out, "%s", setting->help);
    if (setting->env != NULL)
        fprintf(out, "; `%s`", setting->env);
    fprintf(out, "%s |\n", setting->reloadable ? "; *reload*" : "");
}

static void
print_table(FILE *out, const struct setting_table *table)
{
    size_t i;

    fprintf(out, "\n## %s\n\n", table->title);
    if (!str_empty(table->help))
        fprintf(out, "%s\n\n", table->help);
    fprintf(out, "| setting | value | default | meaning |\n|---|---|---|---|\n");
    for (i = 0; i < table->count; i++)
        print_row(out, &table->rows[i]);
    for (i = 0; i < table->count; i++) {
        if (table->rows[i].group != NULL)
            print_table(out, table->rows[i].group);
    }
}

void
config_print_reference(FILE *out)
{
    fputs(head, out);
    print_table(out, &config_settings);
}
