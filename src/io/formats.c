/*
 * To add a reader or a writer: its file, a table of its options, and a row here.
 * Help and documentation are derived from these tables.
 */
#include "io/formats.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"
#include "io/option.h"
#include "io/process_filter.h"
#include "io/process_http.h"
#include "io/process_map.h"
#include "io/read_csv.h"
#include "io/read_items.h"
#include "io/read_jsonl.h"
#include "io/read_sql.h"
#include "io/read_xlsx.h"
#include "io/read_xml.h"
#include "io/template.h"
#include "io/write_csv.h"
#include "io/write_http.h"
#include "io/write_jsonl.h"
#include "io/write_sql.h"
#include "io/write_xlsx.h"

#include <string.h>

/* clang-format off */
static const struct io_option read_sql_options[] = {
    {"sql", IO_OPTION_TEXT, true, NULL, "a SELECT; :name is bound from the parameters"},
    {"database", IO_OPTION_TEXT, false, NULL, "name under databases; default main, the store's own"},
    {"restart", IO_OPTION_WORD, false, "position requery key", "how it goes on after a stop: behind the rows passed (default), by asking again, or behind a key"},
    {"key", IO_OPTION_ONE_OR_LIST, false, NULL, "for `restart: key`: columns that put the rows in order and tell them apart"},
};

/* What readers of files have in common. */
#define RESTART_OPTION \
    {"restart", IO_OPTION_WORD, false, "position beginning", \
     "after a stop: go on where it was (default), or read all again, as a file that " \
     "comes in another order each time needs it"}

static const struct io_option read_csv_options[] = {
    {"csv", IO_OPTION_TEXT, true, NULL, "path of the file; {name} from the parameters"},
    {"columns", IO_OPTION_TYPES, false, NULL, "name to type (text integer decimal real boolean date timestamp) of those that are not text; without a head line a list of all names"},
    {"delimiter", IO_OPTION_CHAR, false, NULL, "default ,"},
    {"header", IO_OPTION_BOOL, false, NULL, "is there a head line? default true"},
    {"empty", IO_OPTION_WORD, false, "null text", "what a field with nothing in it is; default null"},
    {"encoding", IO_OPTION_CHARSET, false, NULL, "default utf-8; MS949 and UHC are cp949"},
    RESTART_OPTION,
};

static const struct io_option read_jsonl_options[] = {
    {"jsonl", IO_OPTION_TEXT, true, NULL, "path of the file; {name} from the parameters"},
    {"columns", IO_OPTION_TYPES, false, NULL, "the keys to read, others are left out; default those of the first line"},
    RESTART_OPTION,
};

static const struct io_option read_items_options[] = {
    {"items", IO_OPTION_MAP, true, NULL, "name to values: a list; {from, to, step?, by?}; {param}; {sql, database?}"},
    RESTART_OPTION,
};

static const struct io_option read_xlsx_options[] = {
    {"xlsx", IO_OPTION_TEXT, true, NULL, "path of the workbook; {name} from the parameters"},
    {"sheet", IO_OPTION_NAME, false, NULL, "name or number of the sheet; default the first"},
    {"row", IO_OPTION_NUMBER, false, NULL, "row in which the head stands, or the data; default the first that is not blank"},
    {"header", IO_OPTION_BOOL, false, NULL, "is there a head row? default true"},
    {"columns", IO_OPTION_TYPES, false, NULL, "name to type (text integer decimal real boolean date timestamp); without a head row a list of all names"},
    RESTART_OPTION,
};

static const struct io_option read_xml_options[] = {
    {"xml", IO_OPTION_TEXT, true, NULL, "path of the file, or of a zip file that holds it; {name} from the parameters"},
    {"item", IO_OPTION_TEXT, true, NULL, "the element that repeats: item, items/item, or /from/the/root"},
    {"member", IO_OPTION_TEXT, false, NULL, "its name in the zip file; needed where there are several"},
    {"columns", IO_OPTION_TYPES, false, NULL, "what to read, the rest is left out; default what the first item has"},
    {"fields", IO_OPTION_TEXTS, false, NULL, "where in the item a column stands if not in the element of its name: a/b, @id, a/@id"},
    {"empty", IO_OPTION_WORD, false, "null text", "what an element with nothing in it is; default null"},
    RESTART_OPTION,
};

/* Keys that all file writers have stand first in each. */
#define FILE_OPTIONS \
    {"file", IO_OPTION_TEXT, true, NULL, "name of the result; {name} from the parameters"}, \
    {"format", IO_OPTION_TEXT, false, NULL, "xlsx, csv, jsonl; default: the file's extension"}

static const struct io_option write_csv_options[] = {
    FILE_OPTIONS,
    {"delimiter", IO_OPTION_CHAR, false, NULL, "default ,"},
    {"bom", IO_OPTION_BOOL, false, NULL, "begin with a byte order mark, as Excel likes it"},
    {"raw", IO_OPTION_BOOL, false, NULL, "leave texts that look like formulas as they are"},
};

static const struct io_option write_jsonl_options[] = {
    FILE_OPTIONS,
};

static const struct io_option write_xlsx_options[] = {
    FILE_OPTIONS,
    {"sheet", IO_OPTION_TEXT, false, NULL, "name of the sheets; default Sheet1, Sheet2 …"},
    {"autofilter", IO_OPTION_BOOL, false, NULL, "filter buttons in the head row"},
    {"compressor", IO_OPTION_WORD, false, "normal fast small", "speed against size"},
};

/* When the format is known only at run time: what any of them may have. */
static const struct io_option write_any_file_options[] = {
    FILE_OPTIONS,
    {"delimiter", IO_OPTION_CHAR, false, NULL, "of csv"},
    {"bom", IO_OPTION_BOOL, false, NULL, "of csv"},
    {"raw", IO_OPTION_BOOL, false, NULL, "of csv"},
    {"sheet", IO_OPTION_TEXT, false, NULL, "of xlsx"},
    {"autofilter", IO_OPTION_BOOL, false, NULL, "of xlsx"},
    {"compressor", IO_OPTION_WORD, false, "normal fast small", "of xlsx"},
};

static const struct io_option write_sql_options[] = {
    {"database", IO_OPTION_TEXT, true, NULL, "name under databases; main is the store's own"},
    {"table", IO_OPTION_TEXT, false, NULL, "table to write to; columns by name"},
    {"rows", IO_OPTION_ONE_OR_LIST, false, NULL, "statements for each row, with :column"},
    {"item", IO_OPTION_ONE_OR_LIST, false, NULL, "statements before them, once for each row read"},
    {"mode", IO_OPTION_WORD, false, "insert upsert", "default insert"},
    {"key", IO_OPTION_LIST, false, NULL, "columns of the key an upsert goes by"},
    {"checkpoint", IO_OPTION_WORD, false, "table none", "none: no table pawl_checkpoint there, the last chunk may come twice"},
};

static const struct io_option write_http_options[] = {
    {"http", IO_OPTION_MAP, true, NULL, "the call, its keys as in collect.md, and: per (row or chunk), as (json or jsonl), idempotency_key (name of the header)"},
};

#define OPTIONS(table) table, array_len(table)

/* clang-format on */

static int
check_key(const json_t *def, struct err *err)
{
    bool by_key = str_eq(io_option_text(def, "restart", ""), "key");

    if (by_key != (json_object_get(def, "key") != NULL))
        return err_set(err, ERR_CONFIG,
                       "read: \"key\" and `restart: key` belong together");
    return 0;
}

/* clang-format off */
static const struct reader_kind readers[] = {
    {"sql", "rows of a SELECT", OPTIONS(read_sql_options), check_key, read_sql_new, read_sql_extent, true},
    {"csv", "records of a CSV file", OPTIONS(read_csv_options), NULL, read_csv_new},
    {"jsonl", "JSON, an object a line", OPTIONS(read_jsonl_options), NULL, read_jsonl_new},
    {"items", "each combination of given values, the last name turning fastest", OPTIONS(read_items_options), read_items_check, read_items_new, read_items_extent, false},
    {"xlsx", "rows of a sheet of an Excel workbook", OPTIONS(read_xlsx_options), NULL, read_xlsx_new},
    {"xml", "a repeated element of an XML file", OPTIONS(read_xml_options), NULL, read_xml_new},
};

static const struct writer_kind writers[] = {
    {"xlsx", "Excel workbook", OPTIONS(write_xlsx_options),
     "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", 10000, write_xlsx_new},
    {"csv", "CSV, RFC 4180", OPTIONS(write_csv_options), "text/csv; charset=utf-8", 10000, write_csv_new},
    {"jsonl", "JSON, an object a line", OPTIONS(write_jsonl_options), "application/jsonl", 10000, write_jsonl_new},
    {"sql", "rows of a table", OPTIONS(write_sql_options), NULL, 1000, write_sql_new},
    {"http", "a call of an API for each row, or for each chunk", OPTIONS(write_http_options), NULL, 100, write_http_new, true},
};

static const struct processor_kind processors[] = {
    {"http", "calls an API for each item, rows out of its replies", process_http_check, process_http_new},
    {"map", "renames, sets, casts and drops columns", process_map_check, process_map_new},
    {"filter", "lets rows through or not", process_filter_check, process_filter_new},
};
/* clang-format on */

const struct processor_kind *
format_processors(size_t *ret_count)
{
    *ret_count = array_len(processors);
    return processors;
}

const struct processor_kind *
format_processor(const char *name)
{
    for (size_t i = 0; i < array_len(processors); i++)
        if (str_eq(processors[i].name, name))
            return &processors[i];
    return NULL;
}

const struct reader_kind *
format_readers(size_t *ret_count)
{
    *ret_count = array_len(readers);
    return readers;
}

const struct writer_kind *
format_writers(size_t *ret_count)
{
    *ret_count = array_len(writers);
    return writers;
}

static int
nothing_to_read(struct err *err)
{
    scoped(buf_release) struct buf list = {0};

    buf_init(&list, 0);
    for (size_t i = 0; i < array_len(readers); i++)
        buf_addf(&list, "%s%s", i ? ", " : "", readers[i].name);
    return err_set(err, ERR_CONFIG, "read: says nothing to read from; give one of: %s",
                   buf_str(&list));
}

int
format_choose_reader(const json_t *def, const struct reader_kind **ret_kind,
                     struct err *err)
{
    const struct reader_kind *kind = NULL;
    int r;

    for (size_t i = 0; i < array_len(readers); i++) {
        if (!json_object_get(def, readers[i].name))
            continue;
        if (kind)
            return err_set(err, ERR_CONFIG,
                           "read: has both \"%s\" and \"%s\"; it reads from one",
                           kind->name, readers[i].name);
        kind = &readers[i];
    }
    if (!kind)
        return nothing_to_read(err);
    r = io_options_check("read", def, kind->options, kind->n_options, err);
    if (r == 0 && kind->check)
        r = kind->check(def, err);
    if (r < 0)
        return r;
    *ret_kind = kind;
    return 0;
}

static int
check_sql_writer(const json_t *def, struct err *err)
{
    bool table = json_object_get(def, "table") != NULL;
    bool rows = json_object_get(def, "rows") != NULL;
    bool item = json_object_get(def, "item") != NULL;
    const char *database = io_option_text(def, "database", "");
    bool key = json_object_get(def, "key") != NULL;
    bool mode = json_object_get(def, "mode") != NULL;
    bool upsert = str_eq(io_option_text(def, "mode", "insert"), "upsert");

    if ((table && rows) || (!table && !rows && !item))
        return err_set(err, ERR_CONFIG,
                       "write: needs either \"table\" or \"rows\" (statements)");
    if (!table && (mode || key))
        return err_set(
            err, ERR_CONFIG,
            "write: \"mode\" and \"key\" go with \"table\", not with \"rows\"");
    if (upsert != key)
        return err_set(err, ERR_CONFIG,
                       "write: \"key\" and `mode: upsert` belong together");
    if (json_object_get(def, "checkpoint") && str_eq(database, "main"))
        return err_set(err, ERR_CONFIG,
                       "write: \"checkpoint\" is for databases other than main");
    return 0;
}

static const struct writer_kind *
find_writer(const char *name)
{
    for (size_t i = 0; i < array_len(writers); i++)
        if (str_eq(writers[i].name, name))
            return &writers[i];
    return NULL;
}

static const struct writer_kind *
find_file_writer(const char *name)
{
    const struct writer_kind *kind = find_writer(name);

    return kind && kind->content_type ? kind : NULL;
}

/* `format`, or the extension of `file`; still with its {name}s. */
static const char *
format_text(const json_t *def)
{
    const char *format = io_option_text(def, "format", NULL);
    const char *file = io_option_text(def, "file", "");
    const char *dot = strrchr(file, '.');

    return format ? format : dot ? dot + 1 : "";
}

static int
choose_file_writer(const json_t *def, const json_t *params,
                   const struct writer_kind **ret_kind, struct err *err)
{
    scoped(buf_release) struct buf name = {0};
    int r;

    buf_init(&name, 256);
    *ret_kind = NULL;
    if (template_has_names(format_text(def)) && !params)
        return io_options_check("write", def, OPTIONS(write_any_file_options), err);
    r = template_plain(format_text(def), params, &name, err);
    if (r < 0)
        return r;
    *ret_kind = find_file_writer(buf_str(&name));
    if (!*ret_kind)
        return err_set(err, ERR_CONFIG,
                       "write.format: \"%s\" is no format; there are: xlsx, csv, jsonl",
                       buf_str(&name));
    /* A format chosen by a parameter leaves the other formats' keys unused. */
    if (template_has_names(format_text(def)))
        return io_options_check("write", def, OPTIONS(write_any_file_options), err);
    return io_options_check("write", def, (*ret_kind)->options, (*ret_kind)->n_options,
                            err);
}

int
format_choose_writer(const json_t *def, const json_t *params,
                     const struct writer_kind **ret_kind, struct err *err)
{
    const struct writer_kind *kind = NULL;
    bool file = json_object_get(def, "file") != NULL;
    bool database = json_object_get(def, "database") != NULL;
    bool http = json_object_get(def, "http") != NULL;
    int r;

    if (file + database + http != 1)
        return err_set(err, ERR_CONFIG,
                       "write: needs either \"file\" or \"database\" to write to, or "
                       "\"http\" to send to");
    if (http) {
        kind = find_writer("http");
        r = io_options_check("write", def, kind->options, kind->n_options, err);
        if (r == 0)
            r = write_http_check(def, err);
    } else if (database) {
        kind = find_writer("sql");
        r = io_options_check("write", def, kind->options, kind->n_options, err);
        if (r == 0)
            r = check_sql_writer(def, err);
    } else {
        r = choose_file_writer(def, params, &kind, err);
        if (r == 0)
            r = template_check("write.file", io_option_text(def, "file", ""), err);
    }
    if (r < 0)
        return r;
    *ret_kind = kind;
    return 0;
}

enum io_effect
format_effect(const json_t *write_def)
{
    const char *database = io_option_text(write_def, "database", NULL);

    if (json_object_get(write_def, "http"))
        return IO_EFFECT_AT_LEAST_ONCE;
    if (!database)
        return IO_EFFECT_FILE;
    return str_eq(io_option_text(write_def, "checkpoint", "table"), "none")
               ? IO_EFFECT_AT_LEAST_ONCE
               : IO_EFFECT_TRANSACTIONAL;
}

const char *
format_foreign(const json_t *write_def)
{
    const char *database = io_option_text(write_def, "database", "main");

    return str_eq(database, "main") ||
                   format_effect(write_def) != IO_EFFECT_TRANSACTIONAL
               ? NULL
               : database;
}

const char *
format_effect_name(enum io_effect effect)
{
    static const char *const names[] = {
        [IO_EFFECT_TRANSACTIONAL] = "transactional",
        [IO_EFFECT_FILE] = "file",
        [IO_EFFECT_AT_LEAST_ONCE] = "at-least-once",
    };

    return names[effect];
}
