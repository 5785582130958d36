/*
 * Ctrl-C while something is under way. The signals are kept back and read where
 * it is safe to leave, so that no half file and no open request stays behind.
 * Init before threads are started.
 */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include "base/compiler.h"

#include <stdbool.h>

struct err;

struct interrupt {
    int fd; /* signalfd */
};

#define INTERRUPT_INIT                                                                 \
    {                                                                                  \
        .fd = -1                                                                       \
    }

int interrupt_init(struct interrupt *interrupt, struct err *err) must_check;
/* Gives the signals their usual effect again; what is pending takes it. */
void interrupt_release(struct interrupt *interrupt);

/* Wait at most timeout_ms (0 = only look): did SIGINT, SIGTERM or SIGHUP come? Each
 * true answers one signal. */
bool interrupt_came(struct interrupt *interrupt, int timeout_ms);

#endif
