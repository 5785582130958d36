#include "cli/interrupt.h"

#include "base/err.h"
#include "base/fsio.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void
our_signals(sigset_t *ret)
{
    sigemptyset(ret);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGHUP);
}

int
interrupt_init(struct interrupt *interrupt, struct err *err)
{
    sigset_t set;

    our_signals(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    interrupt->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (interrupt->fd < 0)
        return err_errno(err, ERR_INTERNAL, errno, "signalfd");
    return 0;
}

void
interrupt_release(struct interrupt *interrupt)
{
    sigset_t set;

    if (interrupt->fd < 0)
        return;
    our_signals(&set);
    fd_close(&interrupt->fd);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

bool
interrupt_came(struct interrupt *interrupt, int timeout_ms)
{
    struct pollfd wait = {.fd = interrupt->fd, .events = POLLIN};
    struct signalfd_siginfo info;

    if (timeout_ms > 0 && poll(&wait, 1, timeout_ms) <= 0)
        return false;
    return read(interrupt->fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}
