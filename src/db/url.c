/*
 * Database URLs: which driver, and how to show one. Passwords are hidden
 * generously: better too much masked than a password in a log.
 */
#include "db/db.h"

#include "base/err.h"

#include <strings.h>

static bool
starts(const char *str, const char *start)
{
    return strncmp(str, start, strlen(start)) == 0;
}

int
db_url_kind(const char *url, enum db_kind *ret_kind, struct err *err)
{
    char masked[200];

    if (starts(url, "sqlite:") && url[strlen("sqlite:")] != '\0') {
        *ret_kind = DB_SQLITE;
        return 0;
    }
    if (starts(url, "postgresql://") || starts(url, "postgres://")) {
        *ret_kind = DB_PG;
        return 0;
    }
    return err_set(err, ERR_CONFIG,
                   "database URL \"%s\" names no database known here; write "
                   "sqlite:./path, sqlite:/path or postgresql://user@host/name",
                   db_url_masked(url, masked, sizeof(masked)));
}

/* Where the value of a parameter like password=… starts at p; NULL if none does. */
static const char *
secret_value(const char *p)
{
    static const char *const words[] = {"password=", "passwd=", "secret=", "token="};

    for (size_t i = 0; i < array_len(words); i++) {
        if (strncasecmp(p, words[i], strlen(words[i])) == 0)
            return p + strlen(words[i]);
    }
    return NULL;
}

const char *
db_url_masked(const char *url, char *out, size_t size)
{
    const char *slashes = strstr(url, "://");
    const char *at = slashes ? strrchr(url, '@') : NULL;
    const char *colon =
        at ? memchr(slashes + 3, ':', (size_t)(at - slashes - 3)) : NULL;
    size_t used = 0;

    for (const char *p = url; *p && used + 4 < size;) {
        const char *value = secret_value(p);

        if (value) {
            while (p < value && used + 4 < size)
                out[used++] = *p++;
            p += strcspn(p, "&");
        } else if (p == colon) {
            out[used++] = ':';
            p = at;
        } else {
            out[used++] = *p++;
            continue;
        }
        for (int i = 0; i < 3 && used + 1 < size; i++)
            out[used++] = '*';
    }
    if (size > 0)
        out[used] = '\0';
    return out;
}
