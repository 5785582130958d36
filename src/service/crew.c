#include "service/crew.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "config/config.h"
#include "liveness/worker_row.h"
#include "service/service.h"

#include <string.h>

int
crew_read(const struct service *service, struct arena *arena, struct crew *ret_crew,
          struct err *err)
{
    struct worker_row *rows = NULL;
    int64_t now_us = 0;
    size_t count = 0;
    size_t live = 0;
    int r = worker_list(service->store, arena, &rows, &count, &now_us, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count && !service->sole_owner; i++)
        if (now_us - rows[i].beat_at_us < service->config->worker.dead_after_us)
            rows[live++] = rows[i];
    *ret_crew = (struct crew){.rows = rows, .count = live};
    return 0;
}

bool
crew_has_judge(const struct crew *crew)
{
    for (size_t i = 0; i < crew->count; i++)
        if (!str_eq(crew->rows[i].lanes, "{}")) /* it serves lanes */
            return true;
    return false;
}

bool
crew_list_has(const char *json_array_text, const char *name)
{
    struct err ignored = {0};
    scoped(json_drop) json_t *names = NULL;
    const json_t *item;
    size_t i;

    if (!json_array_text || json_parse(json_array_text, strlen(json_array_text),
                                       JSON_DEPTH_MAX, &names, &ignored) < 0)
        return false;
    json_array_foreach(names, i, item)
    {
        if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
            return true;
    }
    return false;
}

bool
crew_holds_key(const struct crew *crew, const char *name)
{
    for (size_t i = 0; i < crew->count; i++)
        if (crew_list_has(crew->rows[i].keys, name))
            return true;
    return false;
}
