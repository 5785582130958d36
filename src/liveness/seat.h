/*
 * A worker's stable place: an id kept in its state folder under a lock. Who holds
 * the lock knows that every earlier boot of this seat is dead. The struct belongs
 * to the thread that opened it; the lock lasts until seat_release or the end of
 * the process.
 */
#ifndef LIVENESS_SEAT_H
#define LIVENESS_SEAT_H

#include "base/fsio.h"

struct err;

#define SEAT_ID_MAX   64
#define WORKER_ID_MAX 384

struct seat {
    char id[SEAT_ID_MAX + 1]; /* made once per state folder, or the configured name */
    struct lockfile lock;
};

/*
 * Take the seat of this state folder (made if missing). name: configured
 * worker.seat or NULL. -ERR_STORE_HELD when another process sits there, naming it.
 */
int seat_take(const char *state_folder, const char *name, struct seat *ret_seat,
              struct err *err) must_check;
void seat_release(struct seat *seat); /* accepts NULL */

#define SEAT_INIT                                                                      \
    {                                                                                  \
        .lock = LOCKFILE_INIT                                                          \
    }

/* pid@hostname#128 random bits, new at every call. size ≥ WORKER_ID_MAX. */
int worker_id_make(char *out, size_t size, struct err *err) must_check;

#endif
