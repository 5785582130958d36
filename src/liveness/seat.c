/*
 * state folder/seat.id   the id, made once and kept over boots
 * state folder/seat.lock held by the process that sits there now
 */
#include "liveness/seat.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/rand.h"
#include "base/strs.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static int
take_lock(const char *folder, struct lockfile *ret_lock, struct err *err)
{
    scoped(buf_release) struct buf path = {0};
    char holder[LOCKFILE_TEXT_SIZE];
    int r;

    buf_init(&path, 0);
    buf_addf(&path, "%s/seat.lock", folder);
    r = lockfile_take(buf_str(&path), "worker", ret_lock, holder, err);
    if (r == LOCKFILE_HELD)
        return err_set(err, ERR_STORE_HELD,
                       "state %s: seat taken by %s; stop that worker, or give this "
                       "one a `state` folder of its own (PAWL_STATE)",
                       folder, holder);
    return r;
}

/* An id is 1 to SEAT_ID_MAX letters, digits, '-', '_' or '.'. */
static bool
id_fits(const char *id)
{
    size_t len = strlen(id);

    return len >= 1 && len <= SEAT_ID_MAX &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                      "0123456789-_.") == len;
}

static int
read_id(const char *path, char ret[SEAT_ID_MAX + 1], struct err *err)
{
    scoped(buf_release) struct buf text = {0};
    int r;

    buf_init(&text, 4096);
    r = fs_read_file(path, 4096, &text, err);
    if (r < 0)
        return r;
    while (text.len > 0 && text.data[text.len - 1] == '\n')
        text.data[--text.len] = '\0';
    if (!id_fits(buf_str(&text)))
        return err_set(err, ERR_CONFIG,
                       "%s: not a seat id; remove the file to get a new seat", path);
    str_copy(ret, SEAT_ID_MAX + 1, buf_str(&text));
    return 0;
}

static int
make_id(const char *path, char ret[SEAT_ID_MAX + 1], struct err *err)
{
    char hex[RAND_HEX128_SIZE];
    char line[RAND_HEX128_SIZE + 1];
    int r;

    rand_hex128(hex);
    snprintf(line, sizeof(line), "%s\n", hex);
    r = fs_replace_file(path, line, strlen(line), 0600, err);
    if (r == 0)
        str_copy(ret, SEAT_ID_MAX + 1, hex);
    return r;
}

static int
find_id(const char *folder, char ret[SEAT_ID_MAX + 1], struct err *err)
{
    scoped(buf_release) struct buf path = {0};

    buf_init(&path, 0);
    buf_addf(&path, "%s/seat.id", folder);
    if (fs_exists(buf_str(&path)))
        return read_id(buf_str(&path), ret, err);
    return make_id(buf_str(&path), ret, err);
}

int
seat_take(const char *state_folder, const char *name, struct seat *ret_seat,
          struct err *err)
{
    scoped(seat_release) struct seat seat = SEAT_INIT;
    int r;

    if (name && !id_fits(name))
        return err_set(err, ERR_CONFIG,
                       "worker.seat \"%.80s\": 1 to %d letters, digits, '-', '_', '.'",
                       name, SEAT_ID_MAX);
    r = fs_mkdir_private(state_folder, err);
    if (r == 0)
        r = take_lock(state_folder, &seat.lock, err);
    if (r == 0 && !name)
        r = find_id(state_folder, seat.id, err);
    if (r < 0)
        return r;
    if (name)
        str_copy(seat.id, sizeof(seat.id), name);
    *ret_seat = seat;
    seat.lock.fd = -1;
    return 0;
}

void
seat_release(struct seat *seat)
{
    if (seat)
        lockfile_release(&seat->lock);
}

int
worker_id_make(char *out, size_t size, struct err *err)
{
    char host[256] = "";
    char hex[RAND_HEX128_SIZE];

    if (gethostname(host, sizeof(host) - 1) != 0)
        return err_errno(err, ERR_IO, errno, "gethostname");
    rand_hex128(hex);
    if ((size_t)snprintf(out, size, "%ld@%s#%s", (long)getpid(), host, hex) >= size)
        return err_set(err, ERR_INTERNAL, "worker id: no room");
    return 0;
}
