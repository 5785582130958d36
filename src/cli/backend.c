#include "cli/backend.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/strs.h"
#include "config/config.h"
#include "service/service.h"
#include "store/store.h"

#include <string.h>

/* An owner that starts has the lock a moment before its socket; another command
 * holds it for a moment only. */
#define HELD_PATIENCE_US (5 * US_PER_S)
#define HELD_PAUSE_MS    100

static const char *
owner_socket(const struct backend_local *local, struct arena *arena)
{
    const char *path = local->store + strlen("sqlite:");

    if (local->config->api.socket)
        return arena_printf(arena, "unix:%s", local->config->api.socket);
    return arena_printf(arena, "unix:%.*s.sock", (int)strcspn(path, "?"), path);
}

static int
open_sqlite(const struct backend_local *local, struct backend **ret_backend,
            struct err *err)
{
    int64_t until_us = clock_mono_us(clock_real()) + HELD_PATIENCE_US;
    scoped(arena_release) struct arena arena = {0};
    const char *server = owner_socket(local, &arena);

    for (;;) {
        struct backend *owner = NULL;
        struct err note = {0};
        int r = backend_http_new(server, &owner, err);

        if (r < 0)
            return r;
        if (backend_http_alive(owner)) {
            *ret_backend = owner;
            return 0;
        }
        backend_free(owner);
        r = backend_direct_new(local, ret_backend, &note);
        if (r != -ERR_STORE_HELD || clock_mono_us(clock_real()) >= until_us) {
            *err = note;
            return r;
        }
        clock_pause_ms(HELD_PAUSE_MS);
    }
}

int
backend_local_new(const struct backend_local *local, struct backend **ret_backend,
                  struct err *err)
{
    enum db_kind kind = DB_PG;
    int r;

    if (!local->store)
        return err_set(err, ERR_CONFIG,
                       "%s: `store` is not set; write e.g. store: sqlite:./pawl.db",
                       local->config->path);
    r = db_url_kind(local->store, &kind, err);
    if (r < 0)
        return r;
    if (kind == DB_SQLITE)
        return open_sqlite(local, ret_backend, err);
    return backend_direct_new(local, ret_backend, err);
}

void
backend_free(struct backend *backend)
{
    if (backend)
        backend->kind->free(backend);
}

bool
backend_has_workers(struct backend *backend)
{
    const struct service *service = backend_service(backend);

    return !service || store_kind(service->store) != DB_SQLITE;
}
