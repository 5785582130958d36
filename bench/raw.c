/*
 *   bench_raw commit URL THREADS SECONDS    one row a commit
 *   bench_raw insert URL COUNT SECONDS      COUNT rows a commit
 *   bench_raw work URL BATCH JOBS           claim and finish, a commit each
 *
 * URL is of a store that `bench_queue init` has made. Prints one JSON line (bench.h).
 */
#include "bench/raw.h"

#include "base/arena.h"
#include "base/strs.h"
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

struct place {
    const struct raw_ops *ops;
    const char *where;
    size_t count;
    int64_t next_id; /* atomic */
};

struct hand {
    struct place *place;
    struct raw *raw;
    int64_t *ids;
};

static struct place
place_of(const char *url, size_t count)
{
    static const char sqlite[] = "sqlite:";
    struct place place = {.ops = &raw_pg, .where = url, .count = count};
    struct raw *raw;

    if (strncmp(url, sqlite, sizeof(sqlite) - 1) == 0) {
        place.ops = &raw_sqlite;
        place.where = url + sizeof(sqlite) - 1;
    }
    raw = place.ops->open(place.where);
    place.next_id = place.ops->last_id(raw) + 1;
    place.ops->close(raw);
    return place;
}

static int64_t
draw(struct place *place, size_t count)
{
    return __atomic_fetch_add(&place->next_id, (int64_t)count, __ATOMIC_RELAXED);
}

static void *
hand_begin(void *arg, int thread)
{
    struct place *place = (struct place *)arg;
    struct hand *hand = xcalloc(1, sizeof(*hand));

    *hand = (struct hand){
        .place = place,
        .raw = place->ops->open(place->where),
        .ids = xcalloc(place->count, sizeof(int64_t)),
    };
    return hand;
}

static void
hand_end(void *state)
{
    struct hand *hand = (struct hand *)state;

    hand->place->ops->close(hand->raw);
    free(hand->ids);
    free(hand);
}

static size_t
insert_once(void *state)
{
    struct hand *hand = (struct hand *)state;
    struct place *place = hand->place;

    place->ops->insert(hand->raw, draw(place, place->count), place->count);
    return place->count;
}

static size_t
work_once(void *state)
{
    struct hand *hand = (struct hand *)state;
    struct place *place = hand->place;
    size_t count = place->ops->claim(hand->raw, place->count, hand->ids);

    if (count > 0)
        place->ops->finish(hand->raw, hand->ids, count);
    return count;
}

static void
insert(const char *url, int threads, size_t count, double seconds)
{
    struct place place = place_of(url, count);

    bench_load_run(&(struct bench_load){
        .threads = threads,
        .seconds = seconds,
        .arg = &place,
        .begin = hand_begin,
        .once = insert_once,
        .end = hand_end,
    });
}

static void
work(const char *url, size_t batch, size_t jobs)
{
    struct place place = place_of(url, batch);
    struct raw *raw = place.ops->open(place.where);

    place.ops->fill(raw, draw(&place, jobs), jobs);
    place.ops->close(raw);
    bench_load_run(&(struct bench_load){
        .threads = 1,
        .arg = &place,
        .begin = hand_begin,
        .once = work_once,
        .end = hand_end,
    });
}

int
main(int argc, char **argv)
{
    const char *mode = argc == 5 ? argv[1] : "";
    long first = argc == 5 ? bench_number(argv[3], "the first number") : 0;

    if (str_eq(mode, "commit"))
        insert(argv[2], (int)first, 1, strtod(argv[4], NULL));
    else if (str_eq(mode, "insert"))
        insert(argv[2], 1, (size_t)first, strtod(argv[4], NULL));
    else if (str_eq(mode, "work"))
        work(argv[2], (size_t)first, (size_t)bench_number(argv[4], "JOBS"));
    else
        bench_die("the head of bench/raw.c says how to call it");
    return 0;
}
