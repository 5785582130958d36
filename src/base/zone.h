/*
 * A time zone of the IANA database, read from the machine's own files (TZif,
 * versions 1 to 4, with the rule in the footer that goes on for ever). Nothing
 * is asked of the C library, whose zone belongs to the whole process. Times are
 * whole seconds since 1970 UTC; a wall clock time is the seconds since 1970 of a
 * clock that shows it, as if that clock were UTC. Read-only after loading: any
 * thread.
 */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include "base/compiler.h"

#include <stddef.h>
#include <stdint.h>

struct err;
struct zone;

#define ZONE_NAME_MAX 64

/*
 * Read the zone of this name, such as "Europe/Berlin", from TZDIR or
 * /usr/share/zoneinfo. -ERR_INVALID: no such zone, with what to do; -ERR_IO.
 */
int zone_load(const char *name, struct zone **ret_zone, struct err *err) must_check;

/* The same from the bytes of a file; name is for messages. */
int zone_parse(const char *name, const void *data, size_t len, struct zone **ret_zone,
               struct err *err) must_check;

void zone_free(struct zone *zone);
void zone_free_ptr(struct zone **zone); /* for scoped() */

/* A stretch of time with one offset: wall clock = UTC + offset_s. */
struct zone_span {
    int64_t start_s; /* INT64_MIN: since ever */
    int64_t end_s;   /* the first second behind it; INT64_MAX: for ever */
    int offset_s;
};

/* The stretch that holds time_s; the next one begins at its end. */
struct zone_span zone_span_at(const struct zone *zone, int64_t time_s);

#endif
