/*
 * What a reload cannot change: rows of the tables that are not reloadable and
 * differ between the running configuration and the one just read.
 */
#include "config/config.h"

#include "base/arena.h"
#include "base/strs.h"
#include "config/settings.h"

struct comparing {
    void (*report)(void *arg, const char *setting);
    void *arg;
};

static bool
is_same(const struct setting *setting, const void *a, const void *b)
{
    const char *one = (const char *)a + setting->offset;
    const char *other = (const char *)b + setting->offset;

    switch (setting->type) {
    case SETTING_TEXT:
    case SETTING_NAME:
    case SETTING_PATH:
    case SETTING_URL:
        return str_eq(*(const char *const *)(const void *)one,
                      *(const char *const *)(const void *)other);
    case SETTING_INTEGER:
    case SETTING_DURATION:
    case SETTING_BYTES:
        return *(const int64_t *)(const void *)one ==
               *(const int64_t *)(const void *)other;
    case SETTING_BOOLEAN:
        return *(const bool *)one == *(const bool *)other;
    case SETTING_WORD:
        return *(const unsigned *)(const void *)one ==
               *(const unsigned *)(const void *)other;
    case SETTING_GROUP:
    case SETTING_SECTION:
    case SETTING_TYPE_COUNT:
        break;
    }
    return true;
}

static void
compare_table(const struct comparing *comparing, const struct setting_table *table,
              const char *prefix, const struct config *a, const struct config *b)
{
    scoped(arena_release) struct arena arena = {0};
    size_t i;

    for (i = 0; i < table->count; i++) {
        const struct setting *setting = &table->rows[i];
        const char *name = arena_printf(&arena, "%s%s", prefix, setting->name);

        if (setting->reloadable)
            continue;
        /* The store is read by hand, but its rows lie in struct config too. */
        if (setting->group != NULL)
            compare_table(comparing, setting->group, arena_printf(&arena, "%s.", name),
                          a, b);
        else if (!is_same(setting, a, b))
            comparing->report(comparing->arg, name);
    }
}

void
config_compare(const struct config *running, const struct config *loaded,
               void (*report)(void *arg, const char *setting), void *arg)
{
    const struct comparing comparing = {.report = report, .arg = arg};

    compare_table(&comparing, &config_settings, "", running, loaded);
}
