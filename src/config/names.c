/*
 * Names and paths as the configuration has them.
 */
#include "config/reading.h"

#include "base/arena.h"
#include "base/strs.h"

#include <string.h>

#define SMALL  "abcdefghijklmnopqrstuvwxyz"
#define BIG    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool
is_made_of(const char *name, const char *first, const char *rest, size_t max)
{
    size_t len = strlen(name);

    return len >= 1 && len <= max && strchr(first, name[0]) != NULL &&
           strspn(name, rest) == len;
}

bool
is_plain_name(const char *name)
{
    return is_made_of(name, SMALL DIGITS, SMALL DIGITS "-", 63);
}

bool
is_label(const char *name)
{
    return is_made_of(name, SMALL DIGITS, SMALL DIGITS "-_", 63);
}

bool
is_param_name(const char *name)
{
    return is_made_of(name, SMALL BIG, SMALL BIG DIGITS "_", 63);
}

bool
is_env_name(const char *name)
{
    return is_made_of(name, SMALL BIG "_", SMALL BIG DIGITS "_", 127);
}

const char *
path_absolute(struct arena *arena, const char *folder, const char *path)
{
    if (*path == '/')
        return path;
    while (str_starts_with(path, "./"))
        path += 2;
    if (str_eq(path, ".") || *path == '\0')
        return folder;
    return arena_printf(arena, "%s%s%s", folder, str_eq(folder, "/") ? "" : "/", path);
}

const char *
path_url(struct arena *arena, const char *folder, const char *url)
{
    const char *path;

    if (str_starts_with(url, "postgresql://") || str_starts_with(url, "postgres://"))
        return url;
    if (!str_starts_with(url, "sqlite:"))
        return NULL;
    path = url + strlen("sqlite:");
    if (*path == '\0' || str_starts_with(path, "//"))
        return NULL;
    if (str_eq(path, ":memory:"))
        return url;
    return arena_printf(arena, "sqlite:%s", path_absolute(arena, folder, path));
}
