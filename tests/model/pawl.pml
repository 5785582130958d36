/*
 * The protocol of a request, for the model checker spin: submit, claim, beat, rescue,
 * finish, cancel, drain, sweep, replay of the spool. README.md says how to read and run
 * it; run.py runs it, whole and with each guard removed.
 *
 * One option of a `do` is one SQL statement on PostgreSQL under READ COMMITTED, or one
 * commit; `@sql` names the statement. A statement sees what was committed when it began
 * (`vis`). Rows to delete or to hold are noted in snap[tx]; a row that another open
 * transaction has locked is waited for (CAN_GO), and looked at again afterwards: if it
 * is gone by then, it counts as no row, and what was put in its place is not seen.
 * Anything may happen between two options: a crash, a lease that runs out, a commit
 * whose reply is lost and which is done or undone later.
 */

/* --- how big the world is --- */

#ifndef SEATS
#define SEATS 2                 /* places where a worker sits */
#endif
#ifndef SLOTS
#define SLOTS 1                 /* runs of a worker at once */
#endif
#ifndef ORIG
#define ORIG 1                  /* requests submitted, as one span */
#endif
#ifndef MAXATT
#define MAXATT 2                /* attempts of the retry policy */
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef LOSSES
#define LOSSES 1                /* commits whose reply is lost */
#endif
#ifndef STALES
#define STALES 1                /* leases that run out though the worker lives */
#endif
#ifndef DRAINS
#define DRAINS 0
#endif
#ifndef AWAYS
#define AWAYS 0                 /* outcomes that cannot be recorded: to the spool */
#endif
#ifndef FAILOVERS
#define FAILOVERS 0             /* to a replica that lacks the last claim */
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef PROGRESS
#define PROGRESS 1              /* writes of a run under its claim */
#endif
#ifndef NROW
#define NROW 5                  /* rows of later, ready and claim at once */
#endif

#define TRIES (MAXATT + DRAINS)
#define NR    (ORIG * TRIES)    /* request r is followed up by r + ORIG */
#define NRUN  (SEATS * SLOTS)
#define NIDS  (SEATS + CRASHES + DRAINS)

/* Transactions: each run, each worker's loop, the reaper, the API, and the one whose
 * client has lost sight of it. 0 is none. */
#define RUNTX(x)  (1 + (x))
#define LOOPTX(s) (1 + NRUN + (s))
#define REAPTX    (1 + NRUN + SEATS)
#define APITX     (REAPTX + 1)
#define LATETX    (REAPTX + 2)
#define NTX       (REAPTX + 3)

#define bit(n) (1 << (n))

/* --- the store --- */

/* Places: the table in which the row of a request is, is its state. */
#define LATER 1
#define READY 2
#define CLAIM 3

/* Outcomes. */
#define COMPLETED   1
#define ERROR       2
#define CANCELLED   3
#define WORKER_LOST 4
#define STOPPED     5

typedef row {
    byte tab;                   /* 0: no row */
    byte mask;                  /* the requests of the span */
    byte own;                   /* worker id */
    byte tok;                   /* number of the token: a sequence of the store */
    byte nonce;                 /* never drawn twice */
    byte xmin;                  /* the open transaction that wrote it */
    byte ex;                    /* the open transaction that deletes it */
    byte ks                     /* bit per open transaction: FOR KEY SHARE */
}
row rows[NROW];
byte snap[NTX];                 /* rows the running statement still has to lock */
byte got[NTX];                  /* rows it has locked */

bit known[NR];                  /* request row */
byte knownx[NR];                /* open transaction that wrote it */
byte att[NR];                   /* attempt */
byte out[NR];                   /* outcome row */
byte outx[NR];
byte outnonce[NR];
bit flag[NR];                   /* cancel asked */
byte flagx[NR];
byte flagd[NR];                 /* open transaction that deletes it */
byte token;                     /* sequence */
byte nonces;

#define NONE  0
#define STALE 1                 /* no beat for dead_after */
#define FRESH 2
byte wrow[NIDS + 1];            /* worker rows by id */
byte wrowx[NIDS + 1];           /* open transaction that deletes it */
byte wseat[NIDS + 1];           /* seat + 1 */
byte ids;

/* --- the processes --- */

bit up[SEATS];
byte pcl[SEATS];                /* of a worker's loop */
byte wid[SEATS];
byte held[SEATS];               /* requests with the held mark */
bit booting[SEATS];
bit draining[SEATS];
byte lnonce[SEATS];             /* of its claim under way */
byte lr[SEATS];                 /* request being swept or replayed */
byte ln[SEATS];                 /* its nonce */
byte lt[SEATS];                 /* its token number */
byte lo[SEATS];                 /* its outcome */
byte spr[SEATS];                /* the spool, on disk: request + 1 */
byte spo[SEATS];
byte spn[SEATS];
byte spt[SEATS];

byte pcr[NRUN];                 /* of a run */
byte rr[NRUN];
byte rt[NRUN];
byte rn[NRUN];
byte ro[NRUN];                  /* outcome, decided before it is recorded */
bit rlost[NRUN];
bit rcan[NRUN];
byte rprog[NRUN];

byte pcp;                       /* of the reaper */
byte rid;                       /* whom it closes */

byte pca;                       /* of the API */
byte cr;                        /* request being cancelled */
byte cancels;

bit late;                       /* LATETX is open */
bit latec;                      /* and its commit was sent */

byte crashes, losses, stales, drains, aways, failovers;
byte lastclaim;                 /* the last commit was this claim: row + 1 */

/* What the world outside was told. */
bit told;                       /* the submit was answered */
bit acked[ORIG];                /* the cancel was answered with yes */

hidden byte i, j, k, m, n, q, x, y, z, c;

/* --- rows and locks --- */

#define vis(i) (rows[i].tab && rows[i].xmin == 0)

#define free_of(i, me) ((rows[i].ex == 0 || rows[i].ex == me) && \
    (rows[i].ks & (255 - bit(me))) == 0)
#define share_of(i, me) (rows[i].ex == 0 || rows[i].ex == me)
#define GO(i, me, lockable) ((snap[me] & bit(i)) && (rows[i].tab == 0 || lockable(i, me)))
#if NROW == 5
#define ANY(f, a, b) (f(0, a, b) || f(1, a, b) || f(2, a, b) || f(3, a, b) || f(4, a, b))
#else
#if NROW == 6
#define ANY(f, a, b) (f(0, a, b) || f(1, a, b) || f(2, a, b) || f(3, a, b) || \
    f(4, a, b) || f(5, a, b))
#else
#define ANY(f, a, b) (f(0, a, b) || f(1, a, b) || f(2, a, b) || f(3, a, b) || \
    f(4, a, b) || f(5, a, b) || f(6, a, b))
#endif
#endif
#define CAN_GO(me)    ANY(GO, me, free_of)
#define CAN_SHARE(me) ANY(GO, me, share_of)

#define busy(i, a, b) (rows[i].xmin || rows[i].ex || rows[i].ks)
#define stands_any(i, a, b) (vis(i) && rows[i].tab == CLAIM)

/* Lock what can be locked; what is gone by now is no row any more. */
inline take(me)
{
    i = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: (snap[me] & bit(i)) && rows[i].tab == 0 -> snap[me] = snap[me] & (255 - bit(i))
        :: (snap[me] & bit(i)) && rows[i].tab && free_of(i, me) ->
            rows[i].ex = me;
            got[me] = got[me] | bit(i);
            snap[me] = snap[me] & (255 - bit(i))
        :: else
        fi;
        i++
    od;
    i = 0
}

inline share(me)
{
    i = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: (snap[me] & bit(i)) && rows[i].tab == 0 -> snap[me] = snap[me] & (255 - bit(i))
        :: (snap[me] & bit(i)) && rows[i].tab && share_of(i, me) ->
            rows[i].ks = rows[i].ks | bit(me);
            got[me] = got[me] | bit(i);
            snap[me] = snap[me] & (255 - bit(i))
        :: else
        fi;
        i++
    od;
    i = 0
}

/* A slot that no statement waits for, so that a new row is never taken for the old. */
inline put(me, place, who, worker, number, once)
{
    m = 0;
    j = 0;
    do
    :: j == NTX -> break
    :: else -> m = m | snap[j]; j++
    od;
    j = 0;
    do
    :: j < NROW && (rows[j].tab || (m & bit(j))) -> j++
    :: else -> break
    od;
    assert(j < NROW);           /* the world is too small: raise NROW */
    rows[j].tab = place;
    rows[j].mask = who;
    rows[j].own = worker;
    rows[j].tok = number;
    rows[j].nonce = once;
    rows[j].xmin = me;
    m = 0
}

inline clear_row(a)
{
    rows[a].tab = 0;
    rows[a].mask = 0;
    rows[a].own = 0;
    rows[a].tok = 0;
    rows[a].nonce = 0;
    rows[a].xmin = 0;
    rows[a].ex = 0;
    rows[a].ks = 0
}

/* I4 I6: each stored request stands in exactly one place. */
inline check_places()
{
    j = 0;
    do
    :: j == NR -> break
    :: else ->
        n = (out[j] && outx[j] == 0 -> 1 : 0);
        i = 0;
        do
        :: i == NROW -> break
        :: else ->
            n = n + (vis(i) && (rows[i].mask & bit(j)) -> 1 : 0);
            i++
        od;
        assert(n == (known[j] && knownx[j] == 0 -> 1 : 0));
        j++
    od;
    i = 0;
    j = 0;
    n = 0
}

inline commit(me)
{
    i = 0;
    do
    :: i == NROW -> break
    :: else ->
        /* I2: what is claimed was submitted. */
        if
        :: rows[i].xmin == me && rows[i].ex != me && rows[i].tab == CLAIM ->
            j = 0;
            do
            :: j == NR -> break
            :: j < NR && (rows[i].mask & bit(j)) ->
                assert(known[j] && knownx[j] == 0);
                j++
            :: else -> j++
            od;
            j = 0
        :: else
        fi;
        rows[i].ks = rows[i].ks & (255 - bit(me));
        if
        :: rows[i].ex == me -> clear_row(i)
        :: rows[i].xmin == me && rows[i].ex != me -> rows[i].xmin = 0
        :: else
        fi;
        i++
    od;
    j = 0;
    do
    :: j == NR -> break
    :: else ->
        if
        :: knownx[j] == me ->
            knownx[j] = 0;
            /* I12: no try follows an acknowledged cancel. */
            assert(j < ORIG || !acked[j % ORIG])
        :: else
        fi;
        if
        :: outx[j] == me -> outx[j] = 0
        :: else
        fi;
        if
        :: flagx[j] == me -> flagx[j] = 0
        :: else
        fi;
        if
        :: flagd[j] == me -> flagd[j] = 0; flag[j] = 0
        :: else
        fi;
        j++
    od;
    j = 1;
    do
    :: j > NIDS -> break
    :: else ->
        if
        :: wrowx[j] == me -> wrowx[j] = 0; wrow[j] = NONE
        :: else
        fi;
        j++
    od;
    snap[me] = 0;
    got[me] = 0;
    lastclaim = 0;
    check_places()
}

inline abort(me)
{
    i = 0;
    do
    :: i == NROW -> break
    :: else ->
        rows[i].ks = rows[i].ks & (255 - bit(me));
        if
        :: rows[i].xmin == me -> clear_row(i)
        :: rows[i].ex == me && rows[i].xmin != me -> rows[i].ex = 0
        :: else
        fi;
        i++
    od;
    j = 0;
    do
    :: j == NR -> break
    :: else ->
        if
        :: knownx[j] == me -> knownx[j] = 0; known[j] = 0; att[j] = 0
        :: else
        fi;
        if
        :: outx[j] == me -> outx[j] = 0; out[j] = 0; outnonce[j] = 0
        :: else
        fi;
        if
        :: flagx[j] == me -> flagx[j] = 0; flag[j] = 0
        :: else
        fi;
        if
        :: flagd[j] == me -> flagd[j] = 0
        :: else
        fi;
        j++
    od;
    j = 1;
    do
    :: j > NIDS -> break
    :: else ->
        wrowx[j] = (wrowx[j] == me -> 0 : wrowx[j]);
        j++
    od;
    snap[me] = 0;
    got[me] = 0;
    i = 0;
    j = 0;
    assert(!told || known[0])   /* I1: what was answered is there */
}

/* The client loses sight of its transaction; the server ends it later, one way or the
 * other, or by undoing it if the commit had not been sent. */
inline lose_sight(me, sent)
{
    i = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: rows[i].xmin == me -> rows[i].xmin = LATETX
        :: else
        fi;
        if
        :: rows[i].ex == me -> rows[i].ex = LATETX
        :: else
        fi;
        if
        :: rows[i].ks & bit(me) ->
            rows[i].ks = (rows[i].ks & (255 - bit(me))) | bit(LATETX)
        :: else
        fi;
        i++
    od;
    j = 0;
    do
    :: j == NR -> break
    :: else ->
        knownx[j] = (knownx[j] == me -> LATETX : knownx[j]);
        outx[j] = (outx[j] == me -> LATETX : outx[j]);
        flagx[j] = (flagx[j] == me -> LATETX : flagx[j]);
        flagd[j] = (flagd[j] == me -> LATETX : flagd[j]);
        j++
    od;
    j = 1;
    do
    :: j > NIDS -> break
    :: else ->
        wrowx[j] = (wrowx[j] == me -> LATETX : wrowx[j]);
        j++
    od;
    snap[me] = 0;
    got[me] = 0;
    late = 1;
    latec = sent;
    i = 0;
    j = 0
}

/* --- closing: the seam that every end of a request goes through --- */

#ifdef NO_TOKEN
#define under(i, t, nc) true
#else
#ifdef TOKEN_NUMBER_ONLY
#define under(i, t, nc) (rows[i].tok == t)
#else
#define under(i, t, nc) (rows[i].tok == t && rows[i].nonce == nc)
#endif
#endif

#define stands(i, r, a) (vis(i) && rows[i].tab == CLAIM && (rows[i].mask & bit(r)) && a)

/* snap: the claim row of r under this token. */
inline look_claim(me, r, number, once)
{
    i = 0;
    snap[me] = 0;
    got[me] = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: stands(i, r, under(i, number, once)) -> snap[me] = snap[me] | bit(i)
        :: else
        fi;
        i++
    od;
    i = 0
}

/* y: the claim stands, seen afresh. */
inline holds(r, number, once)
{
    i = 0;
    y = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: stands(i, r, under(i, number, once)) -> y = 1
        :: else
        fi;
        i++
    od;
    i = 0
}

/* Flags that this transaction sees. */
#define cancel_asked(r) (flag[r] && flagx[r] == 0)

/* One outcome, the follow-up in the same transaction, nothing left behind.
 * @sql queue_outcome_add @sql queue_flags_get @sql queue_request_add
 * @sql queue_later_add @sql queue_release @sql chain_look */
inline close_in(me, r, ending, once)
{
    assert(out[r] == 0);        /* I6 I7: outcome.id is a primary key */
    assert(ending != WORKER_LOST || !cancel_asked(r));  /* I12 */
    out[r] = ending;
    outx[r] = me;
    outnonce[r] = once;
#ifdef NO_CANCEL_CHECK
    y = 0;
#else
    y = cancel_asked(r);
#endif
    if
    :: flag[r] -> flagd[r] = me
    :: else
    fi;
    z = 0;
    if
    :: !y && (ending == WORKER_LOST || ending == ERROR) && att[r] < MAXATT -> z = att[r] + 1
    :: !y && ending == STOPPED -> z = att[r]         /* a drain burns no attempt */
    :: else
    fi;
    if
    :: z ->
        assert(r + ORIG < NR && !known[r + ORIG]);      /* I10 */
        known[r + ORIG] = 1;
        knownx[r + ORIG] = me;
        att[r + ORIG] = z;
        put(me, LATER, bit(r + ORIG), 0, 0, 0)
    :: else
    fi;
    z = 0;
    y = 0
}

/* The claim row is ours: put back what is left of its span, close r.
 * @sql queue_claim_put */
inline finish_write(me, r, ending, once)
{
    q = 0;
    do
    :: q < NROW && !(got[me] & bit(q)) -> q++
    :: else -> break
    od;
    assert(rows[q].tab == CLAIM && rows[q].nonce == once);        /* I5 */
    if
    :: rows[q].mask != bit(r) ->
        put(me, CLAIM, rows[q].mask & (255 - bit(r)), rows[q].own, rows[q].tok,
            rows[q].nonce)
    :: else
    fi;
    close_in(me, r, ending, once);
#ifdef KEEP_CLAIM
    rows[q].ex = 0;
#endif
    q = 0;
    got[me] = 0
}

/* --- runs --- */

#define R_IDLE    0
#define R_RUN     1
#define R_HOLD    2             /* waits for its claim row, to write under it */
#define R_HELD    3             /* has it, commits */
#define R_LOOK    4             /* no row: looks afresh */
#define R_TAKE    5             /* waits for its claim row, to finish */
#define R_JUDGE   6
#define R_COMMIT  7
#define R_UNKNOWN 8             /* the commit's reply was lost */

#define seat(x) ((x) / SLOTS)

inline end_run(a)
{
    held[seat(a)] = held[seat(a)] & (255 - bit(rr[a]));
    pcr[a] = R_IDLE;
    rr[a] = 0;
    rt[a] = 0;
    rn[a] = 0;
    ro[a] = 0;
    rlost[a] = 0;
    rcan[a] = 0;
    rprog[a] = 0
}

inline run_taken(a)
{
    if
    :: snap[RUNTX(a)] != 0 -> pcr[a] = R_TAKE
    :: snap[RUNTX(a)] == 0 && got[RUNTX(a)] != 0 ->
        finish_write(RUNTX(a), rr[a], ro[a], rn[a]);
        pcr[a] = R_COMMIT
    :: else -> pcr[a] = R_JUDGE
    fi
}

inline run_shared(a)
{
    if
    :: snap[RUNTX(a)] != 0 -> pcr[a] = R_HOLD
    :: snap[RUNTX(a)] == 0 && got[RUNTX(a)] != 0 ->
        q = 0;
        do
        :: q < NROW && !(got[RUNTX(a)] & bit(q)) -> q++
        :: else -> break
        od;
        assert(rows[q].tab == CLAIM && rows[q].nonce == rn[a]); /* I5 */
        q = 0;
        rcan[a] = cancel_asked(rr[a]);
        pcr[a] = R_HELD
    :: else -> pcr[a] = R_LOOK
    fi
}

proctype Run(byte a)
{
end:
    do
    /* checkpoint, progress, start and end of steps: hold, write, commit
     * @sql queue_hold @sql queue_progress @sql queue_flags_get
     * @sql batch_step_checkpoint */
    :: atomic { pcr[a] == R_RUN && !rlost[a] && rprog[a] < PROGRESS -> d_step {
            rprog[a]++;
            look_claim(RUNTX(a), rr[a], rt[a], rn[a]);
            share(RUNTX(a));
            run_shared(a) } }
    :: atomic { pcr[a] == R_HOLD && CAN_SHARE(RUNTX(a)) -> d_step {
            share(RUNTX(a));
            run_shared(a) } }
    /* @sql queue_holds */
    :: atomic { pcr[a] == R_LOOK -> d_step {
            holds(rr[a], rt[a], rn[a]);
            if
            :: y ->
                look_claim(RUNTX(a), rr[a], rt[a], rn[a]);
                share(RUNTX(a));
                run_shared(a)
            :: else -> abort(RUNTX(a)); rlost[a] = 1; pcr[a] = R_RUN
            fi;
            y = 0 } }
    :: atomic { pcr[a] == R_HELD -> d_step { commit(RUNTX(a)); pcr[a] = R_RUN } }

    /* the end is decided, then recorded
     * @sql queue_finish_take */
    :: atomic { pcr[a] == R_RUN && !rlost[a] ->
        if
        :: rcan[a] -> ro[a] = CANCELLED
        :: !rcan[a] -> ro[a] = COMPLETED
        :: !rcan[a] && MAXATT > 1 -> ro[a] = ERROR
        :: !rcan[a] && draining[seat(a)] -> ro[a] = STOPPED
        fi;
        d_step {
            look_claim(RUNTX(a), rr[a], rt[a], rn[a]);
            take(RUNTX(a));
            run_taken(a) } }
    :: atomic { pcr[a] == R_TAKE && CAN_GO(RUNTX(a)) -> d_step {
            take(RUNTX(a));
            run_taken(a) } }
    /* @sql queue_holds @sql queue_outcome_get */
    :: atomic { pcr[a] == R_JUDGE -> d_step {
            holds(rr[a], rt[a], rn[a]);
#ifdef NO_FRESH_LOOK
            assert(!y);         /* told lost while the claim stands: work thrown away */
#endif
            if
            :: y ->
                look_claim(RUNTX(a), rr[a], rt[a], rn[a]);
                take(RUNTX(a));
                run_taken(a)
            :: else -> abort(RUNTX(a)); end_run(a)
            fi;
            y = 0 } }
    :: atomic { pcr[a] == R_COMMIT -> d_step { commit(RUNTX(a)); end_run(a) } }
    :: atomic { pcr[a] == R_COMMIT && losses < LOSSES && !late -> d_step {
            losses++;
            lose_sight(RUNTX(a), 1);
            pcr[a] = R_UNKNOWN } }
    /* finishing again tells */
    :: atomic { pcr[a] == R_UNKNOWN -> d_step {
            look_claim(RUNTX(a), rr[a], rt[a], rn[a]);
            take(RUNTX(a));
            run_taken(a) } }
    /* the store is away for too long: an fsynced file, then the mark is given back */
    :: atomic { (pcr[a] == R_UNKNOWN || pcr[a] == R_TAKE) && aways < AWAYS &&
                spr[seat(a)] == 0 -> d_step {
            aways++;
            abort(RUNTX(a));
            spr[seat(a)] = rr[a] + 1;
            spo[seat(a)] = ro[a];
            spn[seat(a)] = rn[a];
            spt[seat(a)] = rt[a];
            end_run(a) } }
    :: atomic { pcr[a] == R_RUN && !rlost[a] && aways < AWAYS && spr[seat(a)] == 0 -> d_step {
            aways++;
            spr[seat(a)] = rr[a] + 1;
            spo[seat(a)] = COMPLETED;
            spn[seat(a)] = rn[a];
            spt[seat(a)] = rt[a];
            end_run(a) } }
    /* its claim is gone: it stops, and records nothing */
    :: atomic { pcr[a] == R_RUN && rlost[a] -> d_step { end_run(a) } }
    od
}

/* --- a worker's loop --- */

#define L_DOWN     0
#define L_REPLAY   1            /* at start: the spool first */
#define L_CLEAN    2            /* then what earlier boots of the seat held */
#define L_ANNOUNCE 3
#define L_IDLE     4
#define L_CLAIMED  5            /* to commit */
#define L_UNKNOWN  6
#define L_BOOT     7            /* waits for claims of an earlier boot */
#define L_BOOTC    8
#define L_TAKE     9            /* waits for a claim to sweep or to replay */
#define L_JUDGE    10
#define L_COMMIT   11
#define L_PICKED   12           /* only without the guard of the claim */
#define L_SHARED   13           /* only without the guard of the sweep */

/* c: slots without a run. */
inline count_free(s)
{
    c = 0;
    k = 0;
    do
    :: k == SLOTS -> break
    :: else ->
        c = c + (pcr[s * SLOTS + k] == R_IDLE -> 1 : 0);
        k++
    od;
    k = 0
}

/* Skip what is locked; take no more than c requests; cut the last span.
 * @sql queue_claim */
inline claim(me, s)
{
    q = 0;
    do
    :: q == NROW -> break
    :: else ->
        if
        :: rows[q].tab == READY && rows[q].xmin == 0 && rows[q].ex == 0 && c > 0 ->
            rows[q].ex = me;
            x = 0;              /* the part that is taken */
            z = 0;
            do
            :: z == NR -> break
            :: else ->
                if
                :: (rows[q].mask & bit(z)) && c > 0 ->
                    x = x | bit(z);
#ifdef NO_CUT
                    x = rows[q].mask;
#endif
                    c--
                :: else
                fi;
                z++
            od;
            z = 0;
            token++;
            lnonce[s] = (lnonce[s] == 0 -> nonces + 1 : lnonce[s]);
            nonces = (nonces < lnonce[s] -> lnonce[s] : nonces);
            y = rows[q].mask & (255 - x);
            put(me, CLAIM, x, wid[s], token, lnonce[s]);
            if
            :: y -> put(me, READY, y, 0, 0, 0)
            :: else
            fi;
            x = 0;
            y = 0
        :: else
        fi;
        q++
    od;
    q = 0;
    c = 0
}

/* Give row a's requests to runs: claim and mark are one critical section. */
inline hold_row(s, a)
{
    z = 0;
    do
    :: z == NR -> break
    :: else ->
        if
        :: rows[a].mask & bit(z) ->
            k = 0;
            do
            :: k < SLOTS && pcr[s * SLOTS + k] != R_IDLE -> k++
            :: else -> break
            od;
            assert(k < SLOTS);  /* I11 */
            assert(!acked[z % ORIG] || flag[z]);        /* I12 */
            pcr[s * SLOTS + k] = R_RUN;
            rr[s * SLOTS + k] = z;
            rt[s * SLOTS + k] = rows[a].tok;
            rn[s * SLOTS + k] = rows[a].nonce;
            held[s] = held[s] | bit(z);
            k = 0
        :: else
        fi;
        z++
    od;
    z = 0
}

inline hold_mine(s, who)
{
    q = 0;
    do
    :: q == NROW -> break
    :: else ->
        if
        :: rows[q].tab == CLAIM && rows[q].xmin == who && rows[q].nonce == lnonce[s] &&
           rows[q].own == wid[s] && lnonce[s] -> hold_row(s, q)
        :: else
        fi;
        q++
    od;
    q = 0
}

#if SLOTS == 1
#define has_free(s) (pcr[s] == R_IDLE)
#else
#define has_free(s) (pcr[(s) * SLOTS] == R_IDLE || pcr[(s) * SLOTS + 1] == R_IDLE)
#endif
#define claimable(i, a, b) (rows[i].tab == READY && rows[i].xmin == 0 && rows[i].ex == 0)

/* snap: every claim of a worker. */
inline look_lost(me, id)
{
    i = 0;
    snap[me] = 0;
    got[me] = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: vis(i) && rows[i].tab == CLAIM && rows[i].own == id ->
            snap[me] = snap[me] | bit(i)
        :: else
        fi;
        i++
    od;
    i = 0
}

/* I13: nobody closes what a living worker works on. A run whose worker was buried has
 * been told so before its row comes back. */
inline check_not_alive(once, r)
{
    k = 0;
    do
    :: k == NRUN -> break
    :: else ->
        assert(!(pcr[k] != R_IDLE && rr[k] == r && rn[k] == once && !rlost[k] &&
                 up[seat(k)] && wrow[wid[seat(k)]] == FRESH));
        k++
    od;
    k = 0
}

/* @sql queue_cancels_between */
inline close_lost(me, own_seat)
{
    q = 0;
    do
    :: q == NROW -> break
    :: else ->
        if
        :: got[me] & bit(q) ->
            x = 0;
            do
            :: x == NR -> break
            :: else ->
                if
                :: rows[q].mask & bit(x) ->
                    check_not_alive(rows[q].nonce, x);
                    if
                    :: own_seat < SEATS ->
                        /* finished work is not repeated because a write failed */
                        assert(spr[own_seat] != x + 1 || spn[own_seat] != rows[q].nonce)
                    :: else
                    fi;
#ifdef NO_CANCEL_CHECK
                    close_in(me, x, WORKER_LOST, rows[q].nonce);
#else
                    close_in(me, x, (cancel_asked(x) -> CANCELLED : WORKER_LOST),
                        rows[q].nonce);
#endif
                :: else
                fi;
                x++
            od
        :: else
        fi;
        q++
    od;
    q = 0;
    x = 0;
    got[me] = 0
}

/* x: an earlier boot of the seat with a row, or 0. @sql worker_earlier_boots */
inline earlier_boot(s)
{
    x = 0;
    k = 1;
    do
    :: k > NIDS -> break
    :: else ->
        if
        :: wrow[k] != NONE && wseat[k] == s + 1 && k != wid[s] && x == 0 -> x = k
        :: else
        fi;
        k++
    od;
    k = 0
}

#ifdef NO_HELD
#define not_held(s) 255
#else
#define not_held(s) (255 - held[s])
#endif
#define not_spooled(s) (spr[s] -> 255 - bit(spr[s] - 1) : 255)
#define sweepable(i, s, b) (vis(i) && rows[i].tab == CLAIM && rows[i].own == wid[s] && \
    (rows[i].mask & not_held(s) & not_spooled(s)))

/* A claim of mine without the mark and not in the spool: lr, lt, ln; lr = NR: none.
 */
inline find_unheld(s)
{
    lr[s] = NR;
    q = 0;
    do
    :: q == NROW -> break
    :: else ->
        if
        :: vis(q) && rows[q].tab == CLAIM && rows[q].own == wid[s] ->
            z = 0;
            do
            :: z == NR -> break
            :: else ->
                if
                :: (rows[q].mask & bit(z)) & not_held(s) & not_spooled(s) ->
                    lr[s] = z;
                    lt[s] = rows[q].tok;
                    ln[s] = rows[q].nonce
                :: else
                fi;
                z++
            od;
            z = 0
        :: else
        fi;
        q++
    od;
    q = 0
}

inline drop_spool(s)
{
    spr[s] = 0;
    spo[s] = 0;
    spn[s] = 0;
    spt[s] = 0
}

inline loop_taken(s)
{
    if
    :: snap[LOOPTX(s)] != 0 -> pcl[s] = L_TAKE
    :: snap[LOOPTX(s)] == 0 && got[LOOPTX(s)] != 0 ->
        if
        :: lo[s] == WORKER_LOST ->
            check_not_alive(ln[s], lr[s]);
#ifndef SWEEP_SHARES
            if
            :: cancel_asked(lr[s]) -> lo[s] = CANCELLED
            :: else
            fi
#endif
        :: else
        fi;
        finish_write(LOOPTX(s), lr[s], lo[s], ln[s]);
        pcl[s] = L_COMMIT
    :: else -> pcl[s] = L_JUDGE
    fi
}

/* Replaying and sweeping end here; a start goes on with its seat. */
inline loop_done(s)
{
    if
    :: spr[s] == lr[s] + 1 && spn[s] == ln[s] -> drop_spool(s)
    :: else
    fi;
    lr[s] = 0;
    lt[s] = 0;
    ln[s] = 0;
    lo[s] = 0;
    pcl[s] = (booting[s] -> L_CLEAN : L_IDLE)
}

proctype Loop(byte s)
{
end:
    do
    /* a new boot of the seat: the lock of its folder shows that the last one is dead */
    :: atomic { pcl[s] == L_DOWN && ids < NIDS -> d_step {
            up[s] = 1;
            booting[s] = 1;
            ids++;
            wid[s] = ids;
            wseat[ids] = s + 1;
            pcl[s] = L_REPLAY } }
    :: atomic { pcl[s] == L_REPLAY -> d_step {
            if
#ifdef SPOOL_LATE
            :: false -> skip
#else
            :: spr[s] ->
                lr[s] = spr[s] - 1;
                lo[s] = spo[s];
                ln[s] = spn[s];
                lt[s] = spt[s];
                look_claim(LOOPTX(s), lr[s], lt[s], ln[s]);
                take(LOOPTX(s));
                loop_taken(s)
#endif
            :: else -> pcl[s] = L_CLEAN
            fi } }
    /* @sql worker_earlier_boots @sql queue_lost_take */
    :: atomic { pcl[s] == L_CLEAN -> d_step {
            earlier_boot(s);
            if
            :: x ->
                lr[s] = x;
                look_lost(LOOPTX(s), lr[s]);
                take(LOOPTX(s));
                pcl[s] = L_BOOT
            :: else -> pcl[s] = L_ANNOUNCE
            fi;
            x = 0 } }
    :: atomic { pcl[s] == L_BOOT && snap[LOOPTX(s)] && CAN_GO(LOOPTX(s)) -> d_step {
            take(LOOPTX(s)) } }
    :: atomic { pcl[s] == L_BOOT && snap[LOOPTX(s)] == 0 -> d_step {
            close_lost(LOOPTX(s), s);
            pcl[s] = L_BOOTC } }
    /* @sql worker_remove */
    :: atomic { pcl[s] == L_BOOTC -> d_step {
            commit(LOOPTX(s));
            wrow[lr[s]] = NONE;
            lr[s] = 0;
            pcl[s] = L_CLEAN } }
    /* @sql worker_register */
    :: atomic { pcl[s] == L_ANNOUNCE -> d_step {
            wrow[wid[s]] = FRESH;
            booting[s] = 0;
            pcl[s] = L_IDLE } }

    /* the beat found no row: all runs are given up, and the row comes back */
    :: atomic { pcl[s] == L_IDLE && wrow[wid[s]] == NONE -> d_step {
            k = 0;
            do
            :: k == SLOTS -> break
            :: else ->
                rlost[s * SLOTS + k] = (pcr[s * SLOTS + k] != R_IDLE -> 1 : 0);
                k++
            od;
            k = 0;
            wrow[wid[s]] = FRESH } }

    :: atomic { pcl[s] == L_IDLE && !draining[s] && has_free(s) &&
                ANY(claimable, 0, 0) -> d_step {
#ifdef NO_SKIP
            /* picks from its view, takes for granted that it still stands */
            q = 0;
            do
            :: q < NROW && !claimable(q, 0, 0) -> q++
            :: else -> break
            od;
            lr[s] = q;
            lo[s] = rows[q].mask;
            q = 0;
            pcl[s] = L_PICKED
#else
            count_free(s);
            claim(LOOPTX(s), s);
            pcl[s] = L_CLAIMED
#endif
            } }
#ifdef NO_SKIP
    :: atomic { pcl[s] == L_PICKED -> d_step {
            if
            :: rows[lr[s]].tab == READY && rows[lr[s]].ex == 0 -> rows[lr[s]].ex = LOOPTX(s)
            :: else
            fi;
            token++;
            nonces++;
            lnonce[s] = nonces;
            put(LOOPTX(s), CLAIM, lo[s], wid[s], token, nonces);
            lr[s] = 0;
            lo[s] = 0;
            pcl[s] = L_CLAIMED } }
#endif
    :: atomic { pcl[s] == L_CLAIMED -> d_step {
            hold_mine(s, LOOPTX(s));
            commit(LOOPTX(s));
#if FAILOVERS
            q = 0;
            do
            :: q == NROW -> break
            :: else ->
                lastclaim = (rows[q].tab == CLAIM && rows[q].nonce == lnonce[s] -> q + 1
                    : lastclaim);
                q++
            od;
            q = 0;
#endif
            lnonce[s] = 0;
            pcl[s] = L_IDLE } }
    :: atomic { pcl[s] == L_CLAIMED && losses < LOSSES && !late -> d_step {
            losses++;
            lose_sight(LOOPTX(s), 1);
            pcl[s] = L_UNKNOWN } }
    /* what did we get? @sql queue_claims_of */
    :: atomic { pcl[s] == L_UNKNOWN -> d_step {
            hold_mine(s, 0);
            lnonce[s] = 0;
            pcl[s] = L_IDLE } }

    /* mine, RUNNING, not held @sql queue_held_by @sql queue_hold_alone
     * @sql queue_flags_get @sql queue_finish_take */
#ifndef NO_SWEEP
    :: atomic { pcl[s] == L_IDLE && ANY(sweepable, s, 0) -> d_step {
            find_unheld(s);
            lo[s] = WORKER_LOST;
            look_claim(LOOPTX(s), lr[s], lt[s], ln[s]);
#ifdef SWEEP_SHARES
            share(LOOPTX(s));
            pcl[s] = L_SHARED;
#else
            take(LOOPTX(s));
            loop_taken(s)
#endif
            } }
#ifdef SWEEP_SHARES
    /* looks for a cancel while others may still ask for one */
    :: atomic { pcl[s] == L_SHARED && (snap[LOOPTX(s)] == 0 || CAN_SHARE(LOOPTX(s))) -> d_step {
            share(LOOPTX(s));
            if
            :: cancel_asked(lr[s]) -> lo[s] = CANCELLED
            :: else
            fi;
            look_claim(LOOPTX(s), lr[s], lt[s], ln[s]);
            take(LOOPTX(s));
            loop_taken(s) } }
#endif
#endif
    /* the spool, when the store is back @sql queue_finish_take */
    :: atomic { pcl[s] == L_IDLE && spr[s] -> d_step {
            lr[s] = spr[s] - 1;
            lo[s] = spo[s];
            ln[s] = spn[s];
            lt[s] = spt[s];
            look_claim(LOOPTX(s), lr[s], lt[s], ln[s]);
            take(LOOPTX(s));
            loop_taken(s) } }
    :: atomic { pcl[s] == L_TAKE && CAN_GO(LOOPTX(s)) -> d_step {
            take(LOOPTX(s));
            loop_taken(s) } }
    :: atomic { pcl[s] == L_JUDGE -> d_step {
            holds(lr[s], lt[s], ln[s]);
            if
            :: y ->
                look_claim(LOOPTX(s), lr[s], lt[s], ln[s]);
                take(LOOPTX(s));
                loop_taken(s)
            :: else -> abort(LOOPTX(s)); loop_done(s)   /* stale: dropped */
            fi;
            y = 0 } }
    :: atomic { pcl[s] == L_COMMIT -> d_step { commit(LOOPTX(s)); loop_done(s) } }

    /* drain: no claims; when nothing is held any more the row goes
     * @sql worker_remove */
    :: atomic { pcl[s] == L_IDLE && !draining[s] && drains < DRAINS -> d_step {
            drains++;
            draining[s] = 1 } }
    :: atomic { pcl[s] == L_IDLE && draining[s] && held[s] == 0 && wrowx[wid[s]] == 0 -> d_step {
            wrow[wid[s]] = NONE;
            draining[s] = 0;
            up[s] = 0;
            pcl[s] = L_DOWN } }
    od
}

/* The heart is a thread of its own. @sql worker_beat */
proctype Heart(byte s)
{
end:
    do
    :: atomic { up[s] && wrow[wid[s]] == STALE && wrowx[wid[s]] == 0 -> wrow[wid[s]] = FRESH }
    od
}

/* --- the reaper: of any worker --- */

#define P_IDLE   0
#define P_GATE   1              /* somebody was found dead, in an earlier transaction */
#define P_TAKE_Q 2              /* next statement: take what it holds */
#define P_TAKE   3
#define P_COMMIT 4

#define is_stale(w) (wrow[w] == STALE)
#if NIDS < 3
#define ANY_ID(f) (f(1) || f(NIDS))
#else
#if NIDS == 3
#define ANY_ID(f) (f(1) || f(2) || f(3))
#else
#define ANY_ID(f) (f(1) || f(2) || f(3) || f(4))
#endif
#endif

#define orphan(i, a, b) (vis(i) && rows[i].tab == CLAIM && wrow[rows[i].own] == NONE)

/* snap: claims of rid. The gate has found no row of it, or deletes it; the statement
 * looks again, for a worker that comes back enters its row before it claims. */
inline look_orphans(me)
{
    look_lost(me, rid);
#if !defined(ORPHANS_BLIND) && !defined(NO_GATE) && !defined(BY_AGE)
    if
    :: wrow[rid] != NONE && wrowx[rid] != me -> snap[me] = 0
    :: else
    fi
#endif
}

proctype Reaper()
{
end:
    do
    /* who is dead? @sql worker_dead */
#ifdef BY_AGE
    :: atomic { pcp == P_IDLE && ANY(stands_any, 0, 0) -> d_step {
            q = 0;
            do
            :: q < NROW && !stands_any(q, 0, 0) -> q++
            :: else -> break
            od;
            rid = rows[q].own;
            q = 0;
            pcp = P_TAKE_Q } }
#else
    :: atomic { pcp == P_IDLE && ANY_ID(is_stale) -> d_step {
            k = 1;
            do
            :: wrow[k] == STALE -> rid = k; break
            :: else -> k++
            od;
            k = 0;
            pcp = P_GATE } }
#ifndef ORPHANS_LEFT
    :: atomic { pcp == P_IDLE && ANY(orphan, 0, 0) -> d_step {
            q = 0;
            do
            :: q < NROW && !orphan(q, 0, 0) -> q++
            :: else -> break
            od;
            rid = rows[q].own;
            q = 0;
            pcp = P_GATE } }
#endif
#endif
    /* dead still? its row goes; or it has none. A beat that comes now waits.
     * @sql worker_bury @sql worker_there */
    :: atomic { pcp == P_GATE && wrowx[rid] == 0 -> d_step {
#ifdef NO_GATE
            wrowx[rid] = REAPTX;
            pcp = P_TAKE_Q
#else
            if
            :: wrow[rid] == STALE -> wrowx[rid] = REAPTX; pcp = P_TAKE_Q
            :: wrow[rid] == NONE -> pcp = P_TAKE_Q
            :: else -> rid = 0; pcp = P_IDLE
            fi
#endif
            } }
    /* @sql queue_orphans_take */
    :: atomic { pcp == P_TAKE_Q -> d_step {
            look_orphans(REAPTX);
            take(REAPTX);
            pcp = P_TAKE } }
    :: atomic { pcp == P_TAKE && snap[REAPTX] && CAN_GO(REAPTX) -> d_step {
            take(REAPTX) } }
    :: atomic { pcp == P_TAKE && snap[REAPTX] == 0 -> d_step {
            close_lost(REAPTX, SEATS);
            pcp = P_COMMIT } }
    :: atomic { pcp == P_COMMIT -> d_step {
            commit(REAPTX);
            rid = 0;
            pcp = P_IDLE } }
    :: atomic { pcp == P_COMMIT && losses < LOSSES && !late -> d_step {
            losses++;
            lose_sight(REAPTX, 1);
            rid = 0;
            pcp = P_IDLE } }
    od
}

/* --- due requests: one statement --- */

#define due(i, a, b) (rows[i].tab == LATER && rows[i].xmin == 0 && rows[i].ex == 0)

/* @sql queue_promote */
proctype Chores()
{
end:
    do
    :: atomic { ANY(due, 0, 0) -> d_step {
            q = 0;
            do
            :: q < NROW && !due(q, 0, 0) -> q++
            :: else -> break
            od;
            x = rows[q].mask;
            put(0, READY, x, 0, 0, 0);
            clear_row(q);
            lastclaim = 0;
            x = 0;
            q = 0;
            check_places() } }
    od
}

/* --- the API: one submit, and cancels --- */

#define A_SUBMIT   0
#define A_COMMIT   1
#define A_READY    2
#define A_LATER_W  3            /* waits for a row of later */
#define A_READY_Q  4            /* next statement: ready */
#define A_READY_W  5
#define A_CLAIM_Q  6            /* next statement: hold the claim */
#define A_CLAIM_W  7
#define A_FINAL_Q  8            /* next statement: is it final? */
#define A_CCOMMIT  9
#define A_DONE     10

inline look_place(me, place, r)
{
    i = 0;
    snap[me] = 0;
    got[me] = 0;
    do
    :: i == NROW -> break
    :: else ->
        if
        :: vis(i) && rows[i].tab == place && (rows[i].mask & bit(r)) ->
            snap[me] = snap[me] | bit(i)
        :: else
        fi;
        i++
    od;
    i = 0
}

/* A queued row is ours: put the rest back, close the one. @sql queue_ready_put */
inline cancel_taken(waiting, next)
{
    if
    :: snap[APITX] != 0 -> pca = waiting
    :: snap[APITX] == 0 && got[APITX] != 0 ->
        q = 0;
        do
        :: q < NROW && !(got[APITX] & bit(q)) -> q++
        :: else -> break
        od;
        if
        :: rows[q].mask != bit(cr) ->
            put(APITX, rows[q].tab, rows[q].mask & (255 - bit(cr)), 0, 0, 0)
        :: else
        fi;
        q = 0;
        close_in(APITX, cr, CANCELLED, 0);
#ifdef ACK_EARLY
        acked[cr % ORIG] = 1;
#endif
        pca = A_CCOMMIT
    :: else -> pca = next
    fi
}

/* @sql queue_running_hold @sql queue_flag */
inline flag_taken()
{
    if
    :: snap[APITX] != 0 -> pca = A_CLAIM_W
    :: snap[APITX] == 0 && got[APITX] != 0 ->
        if
        :: !flag[cr] -> flag[cr] = 1; flagx[cr] = APITX
        :: else
        fi;
        pca = A_CCOMMIT
    :: else -> pca = A_FINAL_Q
    fi
}

proctype Api()
{
end:
    do
    /* @sql queue_idem_take @sql queue_request_add @sql queue_ready_add_many
     * waits for an open transaction with the same key */
    :: atomic { pca == A_SUBMIT && !(known[0] && knownx[0]) -> d_step {
            if
            :: known[0] -> told = 1; pca = A_READY      /* @sql queue_idem_get */
            :: else ->
                j = 0;
                x = 0;
                do
                :: j == ORIG -> break
                :: else ->
                    known[j] = 1;
                    knownx[j] = APITX;
                    att[j] = 1;
                    x = x | bit(j);
                    j++
                od;
                put(APITX, READY, x, 0, 0, 0);
                x = 0;
                j = 0;
#ifdef ACK_EARLY
                told = 1;
#endif
                pca = A_COMMIT
            fi } }
    :: atomic { pca == A_COMMIT -> d_step { commit(APITX); told = 1; pca = A_READY } }
    :: atomic { pca == A_COMMIT && losses < LOSSES && !late -> d_step {
            losses++;
            lose_sight(APITX, 1);
            pca = A_SUBMIT } }

    /* cancel: along the way of a request, each statement with a fresh view
     * @sql queue_later_take */
    :: atomic { pca == A_READY && cancels < CANCELS -> d_step {
            cancels++;
            cr = 0;
            look_place(APITX, LATER, cr);
            take(APITX);
            cancel_taken(A_LATER_W, A_READY_Q) } }
    :: atomic { pca == A_LATER_W && CAN_GO(APITX) -> d_step {
            take(APITX);
            cancel_taken(A_LATER_W, A_READY_Q) } }
    /* @sql queue_ready_take */
    :: atomic { pca == A_READY_Q -> d_step {
            look_place(APITX, READY, cr);
            take(APITX);
            cancel_taken(A_READY_W, A_CLAIM_Q) } }
    :: atomic { pca == A_READY_W && CAN_GO(APITX) -> d_step {
            take(APITX);
            cancel_taken(A_READY_W, A_CLAIM_Q) } }
    :: atomic { pca == A_CLAIM_Q -> d_step {
            look_place(APITX, CLAIM, cr);
#ifdef CANCEL_UNHELD
            got[APITX] = snap[APITX];
            snap[APITX] = 0;
#else
            share(APITX);
#endif
            flag_taken() } }
    :: atomic { pca == A_CLAIM_W && CAN_SHARE(APITX) -> d_step {
            share(APITX);
            flag_taken() } }
    /* final: the live try of the chain, if there is one; else it is just moving
     * @sql queue_outcome_get @sql chain_live_try */
    :: atomic { pca == A_FINAL_Q -> d_step {
            if
            :: out[cr] && outx[cr] == 0 && cr + ORIG < NR && known[(cr + ORIG) % NR] &&
               knownx[(cr + ORIG) % NR] == 0 -> cr = cr + ORIG; x = 1
            :: out[cr] && outx[cr] == 0 && !(cr + ORIG < NR &&
               known[(cr + ORIG) % NR] && knownx[(cr + ORIG) % NR] == 0) -> x = 0
            :: else -> x = 1
            fi;
            if
            :: x ->
                look_place(APITX, LATER, cr);
                take(APITX);
                cancel_taken(A_LATER_W, A_READY_Q)
            :: else -> abort(APITX); pca = A_READY      /* 409 */
            fi;
            x = 0 } }
    :: atomic { pca == A_CCOMMIT -> d_step {
            commit(APITX);
            acked[cr % ORIG] = 1;
            cr = 0;
            pca = A_READY } }
    :: atomic { pca == A_CCOMMIT && losses < LOSSES && !late -> d_step {
            losses++;
            lose_sight(APITX, 1);
            cr = 0;
            pca = A_READY } }
    od
}

/* --- the world --- */

#define alive(w) (up[wseat[w] - 1] && wid[wseat[w] - 1] == w)
#define LEASE_ENDS(w) (wrow[w] == FRESH && (!alive(w) || stales < STALES))

inline lease_ends(w)
{
    stales = stales + (alive(w) -> 1 : 0);
    wrow[w] = STALE
}

/* spared: whose transaction the server does not end at once: a run's, the loop's
 * (SLOTS), nobody's. */
inline crash(w)
{
    crashes++;
    spared = 0;
    do
    :: spared < SLOTS + 1 -> spared++
    :: break
    od;
    d_step {
        c = 0;
        do
        :: c == SLOTS -> break
        :: else ->
            q = w * SLOTS + c;
            if
            :: spared == c && !late && pcr[q] != R_IDLE && pcr[q] != R_RUN ->
                z = (pcr[q] == R_COMMIT || pcr[q] == R_HELD);
                lose_sight(RUNTX(q), z)
            :: else -> abort(RUNTX(q))
            fi;
            end_run(q);
            c++
        od;
        if
        :: spared == SLOTS && !late && pcl[w] > L_IDLE && pcl[w] != L_UNKNOWN ->
            z = (pcl[w] == L_CLAIMED || pcl[w] == L_COMMIT || pcl[w] == L_BOOTC);
            lose_sight(LOOPTX(w), z)
        :: else -> abort(LOOPTX(w))
        fi;
        up[w] = 0;
        booting[w] = 0;
        draining[w] = 0;
        held[w] = 0;
        lnonce[w] = 0;
        lr[w] = 0;
        lt[w] = 0;
        ln[w] = 0;
        lo[w] = 0;
        pcl[w] = L_DOWN;
        spared = 0;
        z = 0;
        q = 0;
        c = 0
    }
}

proctype World()
{
    byte spared;

end:
    do
    /* the server ends what nobody waits for any more */
    :: atomic { late && latec -> d_step { commit(LATETX); late = 0; latec = 0 } }
    :: atomic { late -> d_step { abort(LATETX); late = 0; latec = 0 } }

    /* a lease runs out though the worker lives: frozen, or cut off from the store; the
     * row of a dead worker does not stay fresh */
    :: atomic { LEASE_ENDS(1) -> lease_ends(1) }
#if NIDS > 1
    :: atomic { LEASE_ENDS(2) -> lease_ends(2) }
#endif
#if NIDS > 2
    :: atomic { LEASE_ENDS(3) -> lease_ends(3) }
#endif
#if NIDS > 3
    :: atomic { LEASE_ENDS(4) -> lease_ends(4) }
#endif

    /* kill -9; one of its transactions may live on at the server */
    :: atomic { crashes < CRASHES && up[0] -> crash(0) }
#if SEATS > 1
    :: atomic { crashes < CRASHES && up[1] -> crash(1) }
#endif

#if FAILOVERS
    /* failover to a replica that lacks the last commit, a claim; sequences go back */
    :: atomic { failovers < FAILOVERS && lastclaim && !late && !ANY(busy, 0, 0) -> d_step {
            failovers++;
            q = lastclaim - 1;
            token = rows[q].tok - 1;
            x = rows[q].mask;
            clear_row(q);
            put(0, READY, x, 0, 0, 0);
            lastclaim = 0;
            x = 0;
            q = 0;
            check_places() } }
#endif

    /* I14 I10: when nothing more can happen, every request has ended; no try is owed */
    :: atomic { timeout -> d_step {
            assert(!late);
            j = 0;
            do
            :: j == NR -> break
            :: else ->
                assert(!known[j] || out[j]);
                assert(j >= ORIG || known[j]);
                assert(!flag[j]);
                assert(cancels || !known[j] || out[j] == COMPLETED ||
                    (j + ORIG < NR && known[(j + ORIG) % NR]) ||
                    ((out[j] == WORKER_LOST || out[j] == ERROR) && att[j] == MAXATT));
                j++
            od;
            j = 0 };
        break }
    od
}


init
{
    atomic {
        byte s;

        s = 0;
        do
        :: s == SEATS -> break
        :: else -> run Loop(s); run Heart(s); s++
        od;
        s = 0;
        do
        :: s == NRUN -> break
        :: else -> run Run(s); s++
        od;
        run Reaper();
        run Chores();
        run Api();
        run World();
        s = 0
    }
}
