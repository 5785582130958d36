#include "bench/bench.h"

#include "base/arena.h"
#include "base/err.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double
bench_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void
bench_die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void
bench_check(int r, const struct err *err)
{
    if (r < 0)
        bench_die("%s%s%s", err->text, err->detail[0] ? " / " : "", err->detail);
}

long
bench_number(const char *text, const char *what)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (*text == '\0' || *end != '\0' || value < 1)
        bench_die("%s: \"%s\" is no number of at least 1", what, text);
    return value;
}

/* --- times of single calls --- */

void
bench_times_add(struct bench_times *times, double seconds)
{
    if (times->count == times->room) {
        times->room = times->room ? 2 * times->room : 1024;
        times->seconds = xrealloc(times->seconds, times->room * sizeof(double));
    }
    times->seconds[times->count++] = seconds;
}

void
bench_times_release(struct bench_times *times)
{
    free(times->seconds);
    *times = (struct bench_times){0};
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The smallest time that at least this share of the calls kept within. */
static double
quantile_ms(const struct bench_times *times, double share)
{
    size_t rank = (size_t)(share * (double)times->count + 0.999999);

    return times->seconds[rank > 0 ? rank - 1 : 0] * 1e3;
}

void
bench_print(const char *unit, size_t units, double seconds, struct bench_times *times)
{
    printf("{\"unit\": \"%s\", \"units\": %zu, \"seconds\": %.6f, \"per_s\": %.1f",
           unit, units, seconds, (double)units / seconds);
    if (times && times->count > 0) {
        qsort(times->seconds, times->count, sizeof(double), by_value);
        printf(", \"calls\": %zu, \"p50_ms\": %.3f, \"p95_ms\": %.3f, "
               "\"max_ms\": %.3f",
               times->count, quantile_ms(times, 0.5), quantile_ms(times, 0.95),
               quantile_ms(times, 1.0));
    }
    puts("}");
}

/* --- a load --- */

struct crew {
    const struct bench_load *load;
    pthread_barrier_t start;
};

struct hand {
    struct crew *crew;
    int number;
    pthread_t thread;
    size_t units;
    double began_s;
    double ended_s;
    struct bench_times times;
};

static void *
hand_main(void *arg)
{
    struct hand *hand = (struct hand *)arg;
    const struct bench_load *load = hand->crew->load;
    void *state = load->begin(load->arg, hand->number);
    double now;

    pthread_barrier_wait(&hand->crew->start);
    hand->began_s = now = bench_now_s();
    while (load->seconds <= 0 || now - hand->began_s < load->seconds) {
        double before = now;
        size_t units = load->once(state);

        now = bench_now_s();
        if (units == 0)
            break;
        hand->units += units;
        bench_times_add(&hand->times, now - before);
    }
    hand->ended_s = now;
    load->end(state);
    return NULL;
}

void
bench_load_run(const struct bench_load *load)
{
    struct crew crew = {.load = load};
    struct hand *hands = xcalloc((size_t)load->threads, sizeof(*hands));
    struct bench_times all = {0};
    double began_s = 0, ended_s = 0;
    size_t units = 0;

    pthread_barrier_init(&crew.start, NULL, (unsigned)load->threads);
    for (int i = 0; i < load->threads; i++) {
        hands[i] = (struct hand){.crew = &crew, .number = i};
        if (pthread_create(&hands[i].thread, NULL, hand_main, &hands[i]) != 0)
            bench_die("thread %d cannot be made", i);
    }
    for (int i = 0; i < load->threads; i++) {
        pthread_join(hands[i].thread, NULL);
        if (i == 0 || hands[i].began_s < began_s)
            began_s = hands[i].began_s;
        if (hands[i].ended_s > ended_s)
            ended_s = hands[i].ended_s;
        units += hands[i].units;
        for (size_t k = 0; k < hands[i].times.count; k++)
            bench_times_add(&all, hands[i].times.seconds[k]);
        bench_times_release(&hands[i].times);
    }
    pthread_barrier_destroy(&crew.start);
    free(hands);
    if (units == 0)
        bench_die("nothing was done");
    bench_print("jobs", units, ended_s - began_s, &all);
    bench_times_release(&all);
}
