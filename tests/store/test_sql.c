/*
 * check-sql: every statement of src/sql/ is prepared on every database, and what it
 * takes and gives is compared with its header. Run by tools/check-sql too.
 */
#include "tests/store/harness.h"

#include "store/sql_tables.h"

#include <string.h>

static const struct {
    const char *word;
    enum db_type type;
} types[] = {
    {"bigint", DB_INT}, {"text", DB_TEXT}, {"double", DB_REAL}, {"bytea", DB_BLOB}};

static bool
type_fits(const char *word, enum db_type got)
{
    /* SQLite does not know the type of an expression. */
    if (got == DB_NULL)
        return true;
    for (size_t i = 0; i < array_len(types); i++)
        if (strcmp(types[i].word, word) == 0)
            return types[i].type == got;
    return false;
}

/* The header's "name type, …" against the columns of rows. */
static bool
columns_fit(enum stmt stmt, const struct db_rows *rows)
{
    const char *at = store_sql_columns(stmt);
    int column = 0;
    char name[64], word[64];
    int used;

    while (sscanf(at, " %63s %63[^, ]%n", name, word, &used) == 2) {
        at += used;
        at += strspn(at, ", ");
        if (column >= db_column_count(rows) ||
            strcmp(name, db_column_name(rows, column)) != 0 ||
            !type_fits(word, db_column_type(rows, column)))
            return false;
        column++;
    }
    return column == db_column_count(rows);
}

static void
say_columns(const struct db_rows *rows)
{
    for (int i = 0; i < db_column_count(rows); i++)
        print_error("    %s %s\n", db_column_name(rows, i),
                    db_type_word(db_column_type(rows, i)));
}

/* What is wrong with the statement, said; 0 = nothing. */
static int
check(struct db *db, enum stmt stmt)
{
    const struct db_sql *sql = &store_statements[db_kind(db)][stmt];
    scoped(db_rows_end) struct db_rows rows = {0};
    struct err err = {0};

    if (!sql->text)
        return 0; /* a statement of the other database */
    if (db_describe(db, sql, &rows, &err) < 0) {
        print_error("%s: %s\n", sql->name, err.text);
        return 1;
    }
    if (db_param_count(&rows) != sql->n_params) {
        print_error("%s: takes %d parameters, its header says %d\n", sql->name,
                    db_param_count(&rows), sql->n_params);
        return 1;
    }
    /* A statement without declared columns may give what nobody reads. */
    if (store_sql_columns(stmt)[0] && !columns_fit(stmt, &rows)) {
        print_error("%s: the header says (%s), the statement gives\n", sql->name,
                    store_sql_columns(stmt));
        say_columns(&rows);
        return 1;
    }
    return 0;
}

static void
test_every_statement_is_what_its_header_says(struct harness *h)
{
    int bad = 0;

    for (int stmt = 0; stmt < STMT_COUNT; stmt++)
        bad += check(h->db, (enum stmt)stmt);
    assert_int_equal(bad, 0);
}

static void
test_a_statement_has_a_text_for_some_database(struct harness *h)
{
    for (int stmt = 0; stmt < STMT_COUNT; stmt++)
        assert_true(store_statements[DB_SQLITE][stmt].text ||
                    store_statements[DB_PG][stmt].text);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        store_test(test_every_statement_is_what_its_header_says),
        store_test_sqlite(test_a_statement_has_a_text_for_some_database),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
