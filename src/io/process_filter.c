#include "io/process_filter.h"

#include "base/arena.h"
#include "base/pattern.h"
#include "base/strs.h"
#include "io/call_text.h"
#include "io/cast.h"
#include "io/cell_text.h"
#include "io/option.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct io_option options[] = {
    {"present", IO_OPTION_LIST, false, NULL, "columns that must not be blank"},
    {"absent", IO_OPTION_LIST, false, NULL, "columns that must be blank"},
    {"equal", IO_OPTION_MAP, false, NULL, "column to value, or to a list of values"},
    {"not_equal", IO_OPTION_MAP, false, NULL, "column to value, or to a list of values"},
    {"match", IO_OPTION_MAP, false, NULL, "column to pattern of the whole text"},
    {"not_match", IO_OPTION_MAP, false, NULL, "column to pattern"},
    {"min", IO_OPTION_MAP, false, NULL, "column to number"},
    {"max", IO_OPTION_MAP, false, NULL, "column to number"},
    {"otherwise", IO_OPTION_WORD, false, "drop skip", "what becomes of other rows"},
};
/* clang-format on */

enum test_kind { TEST_BLANK, TEST_EQUAL, TEST_MATCH, TEST_MIN, TEST_MAX };

struct test {
    enum test_kind kind;
    bool negated;
    const char *key; /* for messages */
    const char *name;
    size_t column;
    const json_t *value;
    struct pattern *pattern; /* owned */
};

struct filter_processor {
    struct processor processor;
    const json_t *def;
    struct arena arena;
    struct test *tests;
    size_t count;
    bool skip; /* others are errors, not dropped */
};

static struct filter_processor *
filter_of(struct processor *processor)
{
    return container_of(processor, struct filter_processor, processor);
}

/* --- definition --- */

static int
check_patterns(const char *key, const json_t *map, struct err *err)
{
    const char *column;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)map, column, value)
    {
        struct pattern *pattern = NULL;
        int r = json_is_string(value)
                    ? pattern_new(json_string_value(value), &pattern, err)
                    : err_set(err, ERR_CONFIG, "must be a pattern");

        pattern_free(pattern);
        if (r < 0) {
            err->code = ERR_CONFIG;
            return err_prefix(err, "process.filter.%s.%s", key, column);
        }
    }
    return 0;
}

static int
check_numbers(const char *key, const json_t *map, struct err *err)
{
    const char *column;
    json_t *value;

    json_object_foreach((json_t *)(uintptr_t)map, column, value)
    {
        if (!json_is_number(value))
            return err_set(err, ERR_CONFIG, "process.filter.%s.%s: must be a number",
                           key, column);
    }
    return 0;
}

int
process_filter_check(const json_t *def, struct err *err)
{
    int r = io_options_check("process.filter", def, options, array_len(options), err);

    if (r == 0)
        r = check_patterns("match", json_object_get(def, "match"), err);
    if (r == 0)
        r = check_patterns("not_match", json_object_get(def, "not_match"), err);
    if (r == 0)
        r = check_numbers("min", json_object_get(def, "min"), err);
    if (r == 0)
        r = check_numbers("max", json_object_get(def, "max"), err);
    return r;
}

/* --- open --- */

static int
add_test(struct filter_processor *filter, const struct column *in, size_t width,
         struct test test, struct err *err)
{
    long at = column_find(in, width, test.name);

    if (at < 0)
        return err_set(err, ERR_CONFIG, "filter.%s: there is no column \"%s\"",
                       test.key, test.name);
    test.column = (size_t)at;
    if (test.kind == TEST_MATCH) {
        int r = pattern_new(json_string_value(test.value), &test.pattern, err);

        if (r < 0)
            return r;
    }
    filter->tests[filter->count++] = test;
    return 0;
}

static int
add_tests(struct filter_processor *filter, const struct column *in, size_t width,
          const char *key, enum test_kind kind, bool negated, struct err *err)
{
    const json_t *def = json_object_get(filter->def, key);
    struct test test = {.kind = kind, .negated = negated, .key = key};
    const char *name;
    json_t *value;
    size_t i;
    int r = 0;

    json_array_foreach(def, i, value)
    {
        test.name = json_string_value(value);
        if (r == 0)
            r = add_test(filter, in, width, test, err);
    }
    json_object_foreach((json_t *)(uintptr_t)def, name, value)
    {
        test.name = name;
        test.value = value;
        if (r == 0)
            r = add_test(filter, in, width, test, err);
    }
    return r;
}

static size_t
count_tests(const json_t *def)
{
    const char *key;
    json_t *value;
    size_t count = 0;

    json_object_foreach((json_t *)(uintptr_t)def, key, value) count +=
        json_array_size(value) + json_object_size(value);
    return count;
}

static int
filter_open(struct processor *processor, const struct column *in, size_t width,
            size_t lanes, struct err *err)
{
    static const struct {
        const char *key;
        enum test_kind kind;
        bool negated;
    } rows[] = {
        {"present", TEST_BLANK, true}, {"absent", TEST_BLANK, false},
        {"equal", TEST_EQUAL, false},  {"not_equal", TEST_EQUAL, true},
        {"match", TEST_MATCH, false},  {"not_match", TEST_MATCH, true},
        {"min", TEST_MIN, false},      {"max", TEST_MAX, false},
    };
    struct filter_processor *filter = filter_of(processor);
    int r = 0;

    filter->tests =
        arena_array(&filter->arena, struct test, count_tests(filter->def) + 1);
    for (size_t i = 0; i < array_len(rows) && r == 0; i++)
        r = add_tests(filter, in, width, rows[i].key, rows[i].kind, rows[i].negated,
                      err);
    processor->columns = in;
    processor->width = width;
    return r;
}

/* --- rows --- */

static bool
equals(const json_t *value, const char *text, size_t len, bool blank)
{
    char room[CELL_TEXT_MAX];
    const char *wanted = room;
    size_t n = 0;

    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            if (equals(json_array_get(value, i), text, len, blank))
                return true;
        return false;
    }
    if (json_is_null(value))
        return blank;
    if (json_is_string(value)) {
        wanted = json_string_value(value);
        n = json_string_length(value);
    } else if (json_is_integer(value)) {
        n = text_i64(room, json_integer_value(value));
    } else if (json_is_real(value)) {
        n = text_real(room, json_real_value(value));
    } else {
        wanted = json_is_true(value) ? "true" : "false";
        n = strlen(wanted);
    }
    return n == len && memcmp(wanted, text, len) == 0;
}

static bool
number_of(const struct cell *cell, double *ret)
{
    struct row_set scratch = {0};
    struct cell copy = *cell;
    bool ok;

    if (copy.type == CELL_INT || copy.type == CELL_BOOL) {
        *ret = (double)copy.i;
        return true;
    }
    row_set_init(&scratch, 0);
    ok = cast_cell("real", &scratch, &copy) && copy.type == CELL_REAL;
    row_set_release(&scratch);
    if (ok)
        *ret = copy.real;
    return ok;
}

static bool
holds(const struct test *test, const struct cell *cell)
{
    char room[CELL_TEXT_MAX];
    const char *text;
    size_t len;
    double number;

    cell_as_text(cell, room, &text, &len);
    switch (test->kind) {
    case TEST_BLANK:
        return cell_is_blank(cell) != test->negated;
    case TEST_EQUAL:
        return equals(test->value, text, len, cell_is_blank(cell)) != test->negated;
    case TEST_MATCH:
        return pattern_matches(test->pattern, text, len) != test->negated;
    case TEST_MIN:
        return number_of(cell, &number) && number >= json_number_value(test->value);
    case TEST_MAX:
        return number_of(cell, &number) && number <= json_number_value(test->value);
    }
    return false;
}

static int
refuse(const struct test *test, const struct cell *cell, struct item *item,
       struct err *err)
{
    char room[CELL_TEXT_MAX];
    const char *text;
    size_t len;

    cell_as_text(cell, room, &text, &len);
    item->class = ITEM_PARSE;
    (void)err_set(err, ERR_INVALID, "column %s: \"%.*s\" does not pass the filter (%s)",
                  test->name, (int)(len > 60 ? 60 : len), text, test->key);
    return PROCESS_FAILED;
}

static int
filter_run(struct processor *processor, size_t lane, struct item *item,
           const struct item_rows *in, struct row_set *out, char *why, struct err *err)
{
    const struct filter_processor *filter = filter_of(processor);

    for (size_t i = 0; i < in->count; i++) {
        const struct cell *row = row_set_row(in->set, in->first + i);
        size_t k = 0;

        while (k < filter->count &&
               holds(&filter->tests[k], &row[filter->tests[k].column]))
            k++;
        if (k == filter->count)
            memcpy(row_set_add(out), row, processor->width * sizeof(*row));
        else if (filter->skip)
            return refuse(&filter->tests[k], &row[filter->tests[k].column], item, err);
        else
            item->filtered++;
    }
    return PROCESS_DONE;
}

static void
filter_free(struct processor *processor)
{
    struct filter_processor *filter = filter_of(processor);

    for (size_t i = 0; i < filter->count; i++)
        pattern_free(filter->tests[i].pattern);
    arena_release(&filter->arena);
    free(filter);
}

static const struct processor_ops filter_ops = {
    .open = filter_open,
    .run = filter_run,
    .free = filter_free,
};

int
process_filter_new(struct io_ctx *io, const json_t *def,
                   struct processor **ret_processor, struct err *err)
{
    struct filter_processor *filter = xcalloc(1, sizeof(*filter));

    filter->processor.ops = &filter_ops;
    filter->processor.io = io;
    filter->def = def;
    filter->skip = str_eq(io_option_text(def, "otherwise", "drop"), "skip");
    *ret_processor = &filter->processor;
    return 0;
}
