/*
 * PostgreSQL: waiting for answers, but not for ever. libpq's own calls wait as long as
 * the socket lives, and it lives on when the server's process hangs. So the connection
 * does not block, and what is sent is sent and awaited here with a limit (a server that
 * hangs takes no more either): at the end of it the server is asked to cancel
 * (this is what makes a statement timeout hold behind a pooler, too), and if it does
 * not even answer that, the connection counts as lost.
 */
#include "db/pg.h"

#include "base/err.h"

#include <errno.h>
#include <poll.h>

#define LOOK_MS 200 /* between looks at what another thread wishes */

enum turn {
    TURN_WENT_WELL,
    TURN_GIVEN_UP, /* time is over */
    TURN_BROKEN,
};

static int64_t
now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void
pg_wait_start(struct pg_db *pg)
{
    pg->asked_cancel = false;
    pg->deadline_ms = pg->patience_ms > 0 ? now_ms() + pg->patience_ms : 0;
    pg->hurrying = false;
}

void
pg_wait_no_longer(struct pg_db *pg)
{
    int64_t end_ms = now_ms() + PG_GRACE_MS;

    pg->asked_cancel = true;
    if (pg->deadline_ms == 0 || pg->deadline_ms > end_ms)
        pg->deadline_ms = end_ms;
}

/* Milliseconds poll may wait; false: the connection is given up. */
static bool
time_left(struct pg_db *pg, int *ret_ms)
{
    int64_t left;

    if (!pg->hurrying && atomic_load(&pg->base.cancelled)) {
        pg->hurrying = true;
        pg_wait_no_longer(pg);
    }
    /* The request may have been there before the statement was: again. */
    if (db_is_cancelled(&pg->base))
        pg_cancel_ask(pg);
    *ret_ms = LOOK_MS;
    if (pg->deadline_ms == 0)
        return true;
    left = pg->deadline_ms - now_ms();
    if (left <= 0 && !pg->asked_cancel && pg->may_cancel) {
        pg_cancel_ask(pg);
        pg->deadline_ms = now_ms() + PG_GRACE_MS;
        pg->asked_cancel = true;
        left = PG_GRACE_MS;
    }
    if (left <= 0) {
        pg->base.usable = false;
        return false;
    }
    if (left < LOOK_MS)
        *ret_ms = (int)left;
    return true;
}

/* One turn of waiting; unsent: something waits to be sent. A server that is sent much
 * may want its answer taken first. */
static enum turn
wait_turn(struct pg_db *pg, bool unsent)
{
    struct pollfd fd = {.fd = PQsocket(pg->conn),
                        .events = (short)(POLLIN | (unsent ? POLLOUT : 0))};
    int ms;

    if (!time_left(pg, &ms))
        return TURN_GIVEN_UP;
    if (poll(&fd, 1, ms) < 0)
        return errno == EINTR ? TURN_WENT_WELL : TURN_BROKEN;
    if ((fd.revents & ~POLLOUT) && PQconsumeInput(pg->conn) != 1)
        return TURN_BROKEN;
    return TURN_WENT_WELL;
}

bool
pg_send_all(struct pg_db *pg)
{
    int unsent;

    pg_wait_start(pg);
    while ((unsent = PQflush(pg->conn)) > 0)
        if (wait_turn(pg, true) != TURN_WENT_WELL)
            return false;
    return unsent == 0;
}

PGresult *
pg_next_result(struct pg_db *pg)
{
    while (PQisBusy(pg->conn)) {
        int unsent = PQflush(pg->conn);
        enum turn turn = unsent < 0 ? TURN_BROKEN : wait_turn(pg, unsent > 0);

        if (turn == TURN_GIVEN_UP)
            return NULL;
        if (turn == TURN_BROKEN)
            break; /* PQgetResult makes a result of it */
    }
    return PQgetResult(pg->conn);
}

PGresult *
pg_collect(struct pg_db *pg, int sent)
{
    PGresult *last = NULL, *res;

    if (sent != 1)
        return NULL;
    pg_wait_start(pg);
    while ((res = pg_next_result(pg))) {
        ExecStatusType status = PQresultStatus(res);

        /* The first failure is the cause; behind it comes "closed the connection". */
        if (PQresultStatus(last) == PGRES_FATAL_ERROR && last) {
            PQclear(res);
        } else {
            PQclear(last);
            last = res;
        }
        if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT ||
            status == PGRES_COPY_BOTH || PQstatus(pg->conn) != CONNECTION_OK)
            break;
    }
    if (pg->base.usable)
        return last;
    PQclear(last); /* an answer that came without its end is none */
    return NULL;
}

PGresult *
pg_collect_pipeline(struct pg_db *pg, int sent)
{
    PGresult *last = NULL, *res;
    bool synced = false;

    if (sent != 1)
        pg->base.usable = false; /* half of it may be on its way */
    pg_wait_start(pg);
    while (!synced && pg->base.usable && PQstatus(pg->conn) == CONNECTION_OK) {
        ExecStatusType status;

        res = pg_next_result(pg);
        status = PQresultStatus(res);
        if (!res)
            continue; /* the end of one of them */
        synced = status == PGRES_PIPELINE_SYNC;
        /* The first failure is the cause of all behind it. */
        if (synced || (last && PQresultStatus(last) == PGRES_FATAL_ERROR)) {
            PQclear(res);
        } else {
            PQclear(last);
            last = res;
        }
    }
    if (synced && PQexitPipelineMode(pg->conn) != 1)
        pg->base.usable = false;
    if (pg->base.usable)
        return last;
    PQclear(last);
    return NULL;
}

PGresult *
pg_run_text(struct pg_db *pg, const char *text)
{
    return pg_collect(pg, PQsendQuery(pg->conn, text));
}

int
pg_ping(struct db *db, struct err *err)
{
    struct pg_db *pg = pg_of(db);
    int patience_ms = pg->patience_ms;
    bool may_cancel = pg->may_cancel;
    PGresult *res;
    int r = pg_check_free(pg, "ping", err);

    if (r < 0)
        return r;
    pg->patience_ms = pg->connect_ms;
    pg->may_cancel = false;
    res = pg_run_text(pg, "SELECT 1");
    pg->patience_ms = patience_ms;
    pg->may_cancel = may_cancel;
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        r = pg_fail(pg, "ping", NULL, res, err);
    PQclear(res);
    return r;
}
