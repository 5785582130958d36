/*
 * The workers that live, and what they hold: only their rows count, never a stale one.
 * Any thread.
 */
#ifndef SERVICE_CREW_H
#define SERVICE_CREW_H

#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct service;
struct worker_row;

struct crew {
    struct worker_row *rows; /* in the arena */
    size_t count;
};

/* Those whose beat is younger than dead_after by the store's clock; none where nobody
 * but us has the store. */
int crew_read(const struct service *service, struct arena *arena, struct crew *ret_crew,
              struct err *err) must_check;

/* Is one of them a server, which closes what dead ones held? A `pawl run` does not. */
bool crew_has_judge(const struct crew *crew);

/* Does a JSON array of texts have the name? Not if it cannot be read. */
bool crew_list_has(const char *json_array_text, const char *name);

/* Does one of them hold the key of that name? */
bool crew_holds_key(const struct crew *crew, const char *name);

#endif
