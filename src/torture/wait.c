/* Fork a process of the job and listen to it until it is gone. */
#include "torture/private.h"

#include "base/err.h"
#include "base/fsio.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURN_MS 100

static void
take_in(const struct said *said, struct child_end *end, bool *ended)
{
    switch (said->kind) {
    case SAID_SPOT:
        end->spot = said->spot;
        end->places = said->places;
        break;
    case SAID_STEP:
        if (end->n_steps < TORTURE_STEPS_MAX)
            end->steps[end->n_steps++] = said->step;
        break;
    case SAID_END:
        *ended = true;
        end->completed = said->completed;
        end->places = said->places;
        memcpy(end->detail, said->detail, sizeof(end->detail));
        memcpy(end->result, said->result, sizeof(end->result));
        memcpy(end->sha256, said->sha256, sizeof(end->sha256));
        break;
    }
}

/* Until the pipe is closed, which the end of the process does. */
static int
listen_to(const struct torture_order *torture, int fd, struct child_end *end,
          bool *ended, struct err *err)
{
    struct said said;
    size_t have = 0;

    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (torture->interrupted && torture->interrupted(torture->arg))
            return err_set(err, ERR_CANCELLED, "given up; all copies are removed");
        if (poll(&wait, 1, TURN_MS) <= 0)
            continue;
        n = read(fd, (char *)&said + have, sizeof(said) - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        have += (size_t)n;
        if (have == sizeof(said)) {
            take_in(&said, end, ended);
            have = 0;
        }
    }
}

static int
wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

int
child_run(const struct torture_order *torture, const struct child_order *order,
          struct child_end *ret_end, struct err *err)
{
    struct child_end end = {.spot = {.step = -1}};
    bool ended = false;
    int pair[2];
    int status;
    pid_t pid;
    int r;

    if (pipe2(pair, O_CLOEXEC) < 0)
        return err_errno(err, ERR_INTERNAL, errno, "pipe");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(pair[0]);
        child_main(order, pair[1]);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return err_errno(err, ERR_INTERNAL, errno, "fork");
    }
    r = listen_to(torture, pair[0], &end, &ended, err);
    close(pair[0]);
    if (r < 0)
        kill(pid, SIGKILL);
    status = wait_for(pid);
    if (r < 0)
        return r;
    end.killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !ended;
    if (!end.killed && !ended)
        return err_set(err, ERR_INTERNAL,
                       "a process of the job ended by itself (status %d)", status);
    *ret_end = end;
    return 0;
}
