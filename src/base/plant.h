/*
 * Planted faults: each breaks one rule on purpose, so that tests/crash/plants.py can
 * show that the crash storm would notice. Only with the meson option `plant`; then the
 * environment variable PAWL_PLANT names the fault. In every other build planted() is
 * the constant false and nothing of it is left in the binary.
 *
 *     if (!planted("sweep_without_mark") && is_held(...))
 */
#ifndef BASE_PLANT_H
#define BASE_PLANT_H

#include <stdbool.h>

#ifdef PAWL_PLANT

#include <poll.h>
#include <stdlib.h>
#include <string.h>

static inline bool
planted(const char *name)
{
    const char *chosen = getenv("PAWL_PLANT");

    return chosen && strcmp(chosen, name) == 0;
}

/* A slow disk. True. */
static inline bool
plant_pause(int ms)
{
    poll(NULL, 0, ms);
    return true;
}

#else

#define planted(name)   false
#define plant_pause(ms) true

#endif

#endif
