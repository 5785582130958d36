/*
 * One reader per setting type, chosen by a table; what is common to them
 * (defaults, environment, unknown keys) stands in reading_table and
 * reading_setting. A default goes through the same reader as what a user
 * writes, as a node without a place.
 */
#include "config/reading.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*type_read_fn)(struct reading *reading, const struct setting *setting,
                             const struct ynode *node, void *field);

static void problem_at(struct reading *reading, const struct ynode *node, bool key,
                       const char *fmt, va_list args) printf_like(4, 0);

/* A node without a line came from the environment: its key is the variable. */
static void
problem_at(struct reading *reading, const struct ynode *node, bool key, const char *fmt,
           va_list args)
{
    if (node->line == 0 && node->key != NULL)
        config_errors_vadd(reading->errors, node->key, 0, 0, fmt, args);
    else if (key && node->key != NULL)
        config_errors_vadd(reading->errors, reading->file, node->key_line,
                           node->key_column, fmt, args);
    else
        config_errors_vadd(reading->errors, reading->file, node->line, node->column,
                           fmt, args);
}

void
reading_problem(struct reading *reading, const struct ynode *node, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    problem_at(reading, node, false, fmt, args);
    va_end(args);
}

void
reading_key_problem(struct reading *reading, const struct ynode *node, const char *fmt,
                    ...)
{
    va_list args;

    va_start(args, fmt);
    problem_at(reading, node, true, fmt, args);
    va_end(args);
}

const char *
reading_hint(struct reading *reading, const char *written, const char *const *words,
             size_t count)
{
    const char *near = str_nearest(written, words, count);

    if (near == NULL)
        return "";
    return arena_printf(&reading->config->arena, "; did you mean %s?", near);
}

const char *
reading_text(struct reading *reading, const struct ynode *node)
{
    if (node->kind == YNODE_SCALAR)
        return node->text;
    reading_problem(reading, node, "%s%sa single value is expected here, not %s",
                    node->key != NULL ? node->key : "", node->key != NULL ? ": " : "",
                    ynode_kind_word(node));
    return NULL;
}

bool
reading_i64(struct reading *reading, const struct ynode *node, int64_t min, int64_t max,
            int64_t *ret)
{
    const char *text = reading_text(reading, node);
    const char *name = node->key != NULL ? node->key : "this";
    int64_t number;

    if (text == NULL)
        return false;
    if (!node->quoted && str_to_i64(text, &number) && number >= min && number <= max) {
        *ret = number;
        return true;
    }
    if (max == INT64_MAX)
        reading_problem(reading, node,
                        "%s must be a whole number of at least %" PRId64 ", not %s%s",
                        name, min, text, node->quoted ? " in quotes" : "");
    else
        reading_problem(reading, node,
                        "%s must be a whole number from %" PRId64 " to %" PRId64
                        ", not %s%s",
                        name, min, max, text, node->quoted ? " in quotes" : "");
    return false;
}

bool
reading_map(struct reading *reading, const struct ynode *node)
{
    if (ynode_is_null(node))
        return false;
    if (node->kind == YNODE_MAP)
        return true;
    reading_problem(reading, node, "%s must be a map, not %s", node->key,
                    ynode_kind_word(node));
    return false;
}

bool
reading_key(struct reading *reading, const struct ynode *member,
            bool (*valid)(const char *name), const char *rule)
{
    if (valid(member->key))
        return true;
    reading_key_problem(reading, member, "\"%s\" cannot be a name here: %s",
                        member->key, rule);
    return false;
}

void
reading_names(struct reading *reading, const struct ynode *node,
              bool (*valid)(const char *name), const char *rule, const char ***ret,
              size_t *ret_count)
{
    const struct ynode *item = node->kind == YNODE_LIST ? node->first : node;
    const char **names =
        arena_array(&reading->config->arena, const char *, node->count + 1);
    size_t count = 0;
    size_t i;

    for (; item != NULL; item = node->kind == YNODE_LIST ? item->next : NULL) {
        const char *name = reading_text(reading, item);

        if (name == NULL)
            continue;
        if (!valid(name)) {
            reading_problem(reading, item, "\"%s\" cannot be a name here: %s", name,
                            rule);
            continue;
        }
        for (i = 0; i < count; i++) {
            if (str_eq(names[i], name))
                reading_problem(reading, item, "%s is listed twice: remove one", name);
        }
        names[count++] = name;
    }
    *ret = names;
    *ret_count = count;
}

static void
read_text(struct reading *reading, const struct setting *setting,
          const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);

    if (text != NULL && *text == '\0' && setting->needed)
        reading_problem(reading, node, "%s cannot be empty", setting->name);
    if (text != NULL)
        *(const char **)field = text;
}

static void
read_name(struct reading *reading, const struct setting *setting,
          const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);

    if (text == NULL)
        return;
    if (is_label(text))
        *(const char **)field = text;
    else
        reading_problem(reading, node, "%s: \"%s\" cannot be a name: " LABEL_RULE,
                        setting->name, text);
}

/* What a relative path is relative to: the file's folder, or for the environment
 * the folder one stands in. */
static const char *
folder_for(struct reading *reading, const struct ynode *node)
{
    char cwd[4096];

    if (node->line > 0 || node->key == NULL || getcwd(cwd, sizeof(cwd)) == NULL)
        return reading->config->folder;
    return arena_strdup(&reading->config->arena, cwd);
}

static void
read_path(struct reading *reading, const struct setting *setting,
          const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);

    if (text == NULL)
        return;
    if (*text == '\0')
        reading_problem(reading, node, "%s must be a path, not empty", setting->name);
    *(const char **)field =
        path_absolute(&reading->config->arena, folder_for(reading, node), text);
}

static void
read_url(struct reading *reading, const struct setting *setting,
         const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);
    const char *url;

    if (text == NULL)
        return;
    url = path_url(&reading->config->arena, folder_for(reading, node), text);
    /* What was written is not repeated: it may hold a password. */
    if (url == NULL)
        reading_problem(
            reading, node, "%s must be sqlite:PATH or postgresql://USER@HOST/NAME",
            node->key != NULL && node->line > 0 ? node->key : setting->name);
    else
        *(const char **)field = url;
}

static void
read_integer(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *field)
{
    reading_i64(reading, node, setting->min, setting->max, field);
}

static void
read_boolean(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);

    if (text == NULL)
        return;
    if (!node->quoted && (str_eq(text, "true") || str_eq(text, "false")))
        *(bool *)field = str_eq(text, "true");
    else
        reading_problem(reading, node, "%s must be true or false, not %s%s",
                        setting->name, text, node->quoted ? " in quotes" : "");
}

static void
read_duration(struct reading *reading, const struct setting *setting,
              const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);
    char min[DURATION_TEXT_SIZE];
    char max[DURATION_TEXT_SIZE];
    struct err err = {0};
    int64_t us;

    if (text == NULL)
        return;
    if (parse_duration_us(setting->name, text, &us, &err) == 0 && us >= setting->min &&
        us <= setting->max) {
        *(int64_t *)field = us;
        return;
    }
    format_duration_us(setting->min, min);
    format_duration_us(setting->max, max);
    reading_problem(
        reading, node,
        "%s must be a time from %s to %s with its unit (ms, s, m, h, d), such "
        "as 30s, not %s",
        setting->name, min, max, text);
}

static void
read_bytes(struct reading *reading, const struct setting *setting,
           const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);
    struct err err = {0};
    int64_t bytes;

    if (text == NULL)
        return;
    if (parse_size(setting->name, text, &bytes, &err) == 0 && bytes >= setting->min &&
        bytes <= setting->max)
        *(int64_t *)field = bytes;
    else
        reading_problem(reading, node,
                        "%s must be a size from %" PRId64 " to %" PRId64
                        " bytes, such as 64KiB or 1MiB, not %s",
                        setting->name, setting->min, setting->max, text);
}

static void
read_word(struct reading *reading, const struct setting *setting,
          const struct ynode *node, void *field)
{
    const char *text = reading_text(reading, node);
    scoped(buf_release) struct buf words = {0};
    unsigned i;

    if (text == NULL)
        return;
    buf_init(&words, 1000);
    for (i = 0; setting->words[i] != NULL; i++) {
        if (str_eq(setting->words[i], text)) {
            *(unsigned *)field = i;
            return;
        }
        buf_addf(&words, "%s%s", i > 0 ? ", " : "", setting->words[i]);
    }
    reading_problem(reading, node, "%s must be one of %s, not %s%s", setting->name,
                    buf_str(&words), text,
                    reading_hint(reading, text, setting->words, i));
}

static void
read_nothing(struct reading *reading, const struct setting *setting,
             const struct ynode *node, void *field)
{
    /* Groups and sections do not come this way. */
}

static const type_read_fn type_readers[] = {
    [SETTING_TEXT] = read_text,         [SETTING_NAME] = read_name,
    [SETTING_PATH] = read_path,         [SETTING_URL] = read_url,
    [SETTING_INTEGER] = read_integer,   [SETTING_BOOLEAN] = read_boolean,
    [SETTING_DURATION] = read_duration, [SETTING_BYTES] = read_bytes,
    [SETTING_WORD] = read_word,         [SETTING_GROUP] = read_nothing,
    [SETTING_SECTION] = read_nothing,
};
static_assert_count(type_readers, SETTING_TYPE_COUNT);

const char *
reading_env(struct reading *reading, const char *name)
{
    const char *value = reading->env != NULL ? reading->env(reading->env_arg, name)
                                             : secure_getenv(name);

    if (str_empty(value))
        return NULL;
    return arena_strdup(&reading->config->arena, value);
}

void
reading_setting(struct reading *reading, const struct setting *setting,
                const struct ynode *node, void *base)
{
    char *field = (char *)base + setting->offset;
    struct ynode given = {.kind = YNODE_SCALAR};

    if (setting->type == SETTING_GROUP) {
        reading_table(reading, setting->group, node, setting->name, base);
        return;
    }
    if (setting->type == SETTING_SECTION) {
        setting->read(reading, setting, ynode_is_null(node) ? NULL : node, base);
        return;
    }
    if (setting->env != NULL)
        given.text = reading_env(reading, setting->env);
    if (given.text != NULL) {
        given.key = setting->env;
        node = &given;
    } else if (ynode_is_null(node) && setting->fallback != NULL) {
        given.text = str_eq(setting->fallback, "\"\"") ? "" : setting->fallback;
        node = &given;
    }
    if (node != NULL && (node == &given || !ynode_is_null(node)))
        type_readers[setting->type](reading, setting, node, field);
}

static void
report_unknown(struct reading *reading, const struct setting_table *table,
               const struct ynode *member, const char *owner)
{
    const char *names[64];
    scoped(buf_release) struct buf all = {0};
    const char *hint;
    size_t i;

    buf_init(&all, 2000);
    for (i = 0; i < table->count && i < array_len(names); i++) {
        names[i] = table->rows[i].name;
        buf_addf(&all, "%s%s", i > 0 ? ", " : "; known are ", names[i]);
    }
    hint = reading_hint(reading, member->key, names, i);
    reading_key_problem(reading, member, "unknown setting %s%s%s%s", member->key,
                        *owner != '\0' ? " in " : "", owner,
                        *hint != '\0' ? hint : buf_str(&all));
}

static const struct setting *
row_of(const struct setting_table *table, const char *name)
{
    size_t i;

    for (i = 0; i < table->count; i++) {
        if (str_eq(table->rows[i].name, name))
            return &table->rows[i];
    }
    return NULL;
}

void
reading_table(struct reading *reading, const struct setting_table *table,
              const struct ynode *node, const char *owner, void *base)
{
    const struct ynode *member;
    size_t i;

    if (!ynode_is_null(node) && !reading_map(reading, node))
        node = NULL;
    for (member = node != NULL ? node->first : NULL; member != NULL;
         member = member->next) {
        if (row_of(table, member->key) == NULL)
            report_unknown(reading, table, member, owner);
    }
    for (i = 0; i < table->count; i++) {
        const struct setting *setting = &table->rows[i];

        member = ynode_get(node, setting->name);
        if (setting->needed && ynode_is_null(member) && node != NULL)
            reading_key_problem(reading, node, "%s needs %s: %s", owner, setting->name,
                                setting->help);
        reading_setting(reading, setting, member, base);
    }
}
