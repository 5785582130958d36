/*
 * What the programs of bench/ share: a clock, threads that repeat one call until the
 * time is over, and the one JSON line that each program prints for bench/run. Trouble
 * ends the program with a message: a benchmark has nobody to report to.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;

double bench_now_s(void); /* monotonic */

_Noreturn void bench_die(const char *format, ...) __attribute__((format(printf, 1, 2)));
void bench_check(int r, const struct err *err); /* r < 0: the end */

/* A whole argument as a number of at least 1. */
long bench_number(const char *text, const char *what);

/* --- times of single calls --- */

struct bench_times {
    double *seconds;
    size_t count;
    size_t room;
};

void bench_times_add(struct bench_times *times, double seconds);
void bench_times_release(struct bench_times *times);

/* --- a load --- */

/*
 * Each of the threads makes its own state, all begin together, and each repeats once()
 * until seconds are over or once() has nothing left.
 */
struct bench_load {
    int threads;
    double seconds; /* 0 = until nothing is left */
    void *arg;
    void *(*begin)(void *arg, int thread);
    size_t (*once)(void *state); /* how many jobs or rows; 0 = nothing left */
    void (*end)(void *state);
};

void bench_load_run(const struct bench_load *load);

/* The line for bench/run. units over seconds, and the calls' times if there are any
 * (sorted by it). */
void bench_print(const char *unit, size_t units, double seconds,
                 struct bench_times *times);

#endif
