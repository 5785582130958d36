/*
 * The peer: the same query into a workbook by libxlsxwriter (constant_memory), rows
 * straight from sqlite3 or from libpq in single-row mode. Numbers, days and texts are
 * written as pawl writes them. Prints one JSON line (bench.h).
 *
 *   peer_xlsx URL QUERY OUT
 */
#include "bench/bench.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xlsxwriter.h>

/* What a column is, by the letter that its name begins with. */
enum kind { NUMBER = 'n', DAY = 'd', TIME = 't', TEXT = 's' };

struct peer {
    lxw_workbook *book;
    lxw_worksheet *sheet;
    lxw_format *day;
    lxw_format *time;
    lxw_row_t row;
};

static void
peer_begin(struct peer *peer, const char *path)
{
    lxw_workbook_options options = {.constant_memory = LXW_TRUE};

    peer->book = workbook_new_opt(path, &options);
    peer->sheet = workbook_add_worksheet(peer->book, NULL);
    peer->day = workbook_add_format(peer->book);
    format_set_num_format(peer->day, "yyyy-mm-dd");
    peer->time = workbook_add_format(peer->book);
    format_set_num_format(peer->time, "yyyy-mm-dd hh:mm:ss");
}

/* YYYY-MM-DD, and with hours when the column has them. */
static void
put_datetime(struct peer *peer, lxw_col_t column, const char *text, bool with_time)
{
    lxw_datetime at = {0};
    int seconds = 0;

    if (sscanf(text, "%4d-%2d-%2d%*1[ T]%2d:%2d:%2d", &at.year, &at.month, &at.day,
               &at.hour, &at.min, &seconds) < 3)
        bench_die("no date: %s", text);
    at.sec = seconds;
    worksheet_write_datetime(peer->sheet, peer->row, column, &at,
                             with_time ? peer->time : peer->day);
}

static void
put(struct peer *peer, int column, const char *name, const char *text)
{
    lxw_col_t at = (lxw_col_t)column;

    switch ((enum kind)name[0]) {
    case NUMBER:
        worksheet_write_number(peer->sheet, peer->row, at, strtod(text, NULL), NULL);
        break;
    case DAY:
    case TIME:
        put_datetime(peer, at, text, name[0] == TIME);
        break;
    case TEXT:
        worksheet_write_string(peer->sheet, peer->row, at, text, NULL);
        break;
    }
}

static void
from_sqlite(struct peer *peer, const char *path, const char *query)
{
    sqlite3_stmt *statement;
    sqlite3 *db;
    int columns;

    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, query, -1, &statement, NULL) != SQLITE_OK)
        bench_die("sqlite3: %s", sqlite3_errmsg(db));
    columns = sqlite3_column_count(statement);
    for (int i = 0; i < columns; i++)
        worksheet_write_string(peer->sheet, 0, (lxw_col_t)i,
                               sqlite3_column_name(statement, i), NULL);
    for (peer->row = 1; sqlite3_step(statement) == SQLITE_ROW; peer->row++)
        for (int i = 0; i < columns; i++) {
            const char *name = sqlite3_column_name(statement, i);

            if (name[0] == NUMBER)
                worksheet_write_number(peer->sheet, peer->row, (lxw_col_t)i,
                                       sqlite3_column_double(statement, i), NULL);
            else
                put(peer, i, name, (const char *)sqlite3_column_text(statement, i));
        }
    sqlite3_finalize(statement);
    sqlite3_close(db);
}

static void
from_pg(struct peer *peer, const char *url, const char *query)
{
    PGconn *conn = PQconnectdb(url);
    PGresult *res;

    if (PQsendQuery(conn, query) != 1 || PQsetSingleRowMode(conn) != 1)
        bench_die("PostgreSQL: %s", PQerrorMessage(conn));
    for (peer->row = 1; (res = PQgetResult(conn)); PQclear(res)) {
        if (PQresultStatus(res) == PGRES_TUPLES_OK)
            continue; /* the end */
        if (PQresultStatus(res) != PGRES_SINGLE_TUPLE)
            bench_die("PostgreSQL: %s", PQerrorMessage(conn));
        for (int i = 0; peer->row == 1 && i < PQnfields(res); i++)
            worksheet_write_string(peer->sheet, 0, (lxw_col_t)i, PQfname(res, i), NULL);
        for (int i = 0; i < PQnfields(res); i++)
            put(peer, i, PQfname(res, i), PQgetvalue(res, 0, i));
        peer->row++;
    }
    PQfinish(conn);
}

int
main(int argc, char **argv)
{
    static const char sqlite[] = "sqlite:";
    struct peer peer = {0};
    double began_s;

    if (argc != 4)
        bench_die("URL QUERY OUT");
    began_s = bench_now_s();
    peer_begin(&peer, argv[3]);
    if (strncmp(argv[1], sqlite, sizeof(sqlite) - 1) == 0)
        from_sqlite(&peer, argv[1] + sizeof(sqlite) - 1, argv[2]);
    else
        from_pg(&peer, argv[1], argv[2]);
    if (workbook_close(peer.book) != LXW_NO_ERROR)
        bench_die("libxlsxwriter could not close %s", argv[3]);
    bench_print("rows", peer.row - 1, bench_now_s() - began_s, NULL);
    return 0;
}
