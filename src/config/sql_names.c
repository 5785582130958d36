#include "config/sql_names.h"

#include <string.h>

static bool
is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool
is_name_char(char c)
{
    return is_name_start(c) || (c >= '0' && c <= '9');
}

/* Behind the closing quote; a doubled quote closes and opens again by itself. */
static const char *
skip_quoted(const char *at, bool backslashes)
{
    char quote = *at++;

    while (*at != '\0' && *at != quote) {
        if (backslashes && *at == '\\' && at[1] != '\0')
            at++;
        at++;
    }
    return *at != '\0' ? at + 1 : at;
}

static const char *
skip_line(const char *at)
{
    return at + strcspn(at, "\n");
}

/* PostgreSQL nests them, SQLite ends at the first end; none of both is likely. */
static const char *
skip_comment(const char *at)
{
    const char *end = strstr(at + 2, "*/");

    return end != NULL ? end + 2 : at + strlen(at);
}

/* $$ ... $$ or $tag$ ... $tag$; a $1 is passed over. */
static const char *
skip_dollar(const char *at)
{
    size_t tag = 1;
    const char *end;

    while (is_name_char(at[tag]))
        tag++;
    if (at[tag] != '$' || (at[1] >= '0' && at[1] <= '9'))
        return at + 1;
    tag++;
    for (end = at + tag; *end != '\0'; end++) {
        if (strncmp(end, at, tag) == 0)
            return end + tag;
    }
    return end;
}

/* Behind one thing that holds no name. */
static const char *
skip_one(const char *at)
{
    if (*at == '\'' || *at == '"' || *at == '`')
        return skip_quoted(at, false);
    if ((*at == 'E' || *at == 'e') && at[1] == '\'')
        return skip_quoted(at + 1, true);
    if (at[0] == '-' && at[1] == '-')
        return skip_line(at);
    if (at[0] == '/' && at[1] == '*')
        return skip_comment(at);
    if (*at == '$')
        return skip_dollar(at);
    if (at[0] == ':' && at[1] == ':')
        return at + 2;
    if (is_name_start(*at)) {
        while (is_name_char(*at) || *at == '$')
            at++;
        return at;
    }
    return at + 1;
}

bool
sql_names_next(const char **at, char name[SQL_NAME_MAX + 1])
{
    const char *p = *at;

    while (*p != '\0') {
        size_t len = 0;

        if (*p != ':' || !is_name_start(p[1])) {
            p = skip_one(p);
            continue;
        }
        for (p++; is_name_char(*p); p++) {
            if (len < SQL_NAME_MAX)
                name[len++] = *p;
        }
        name[len] = '\0';
        *at = p;
        return true;
    }
    *at = p;
    return false;
}
