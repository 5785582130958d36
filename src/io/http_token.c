/* The token that the calls of a step share, fetched by a call of its own. */
#include "io/http_talk_private.h"

#include "base/err.h"
#include "io/call_text.h"

#include <stdlib.h>
#include <string.h>

void
http_link_init(struct http_link *link, struct io_ctx *io, const struct http_spec *spec)
{
    *link = (struct http_link){.io = io, .spec = spec};
    pthread_mutex_init(&link->lock, NULL);
}

void
http_link_release(struct http_link *link)
{
    if (!link->spec)
        return;
    free(link->token);
    pthread_mutex_destroy(&link->lock);
    *link = (struct http_link){0};
}

/* Under the link's lock. 0: link->token is there, 1: said->end is set, < 0. */
static int
token_fetch(struct http_attempt *attempt, struct err *err)
{
    struct http_link *link = attempt->talk->link;
    const struct http_spec *spec = attempt->spec->token;
    struct call_names names = {.io = link->io, .budget = spec->budget};
    struct http_attempt call = {
        .talk = attempt->talk, .spec = spec, .names = &names, .said = attempt->said};
    const json_t *found;
    char shown[sizeof(attempt->talk->shown)];
    char room[48];
    int r;

    memcpy(shown, attempt->talk->shown, sizeof(shown));
    http_show_as(attempt->talk, spec);
    r = http_attempts_run(&call, err);
    memcpy(attempt->talk->shown, shown, sizeof(shown));
    if (r < 0)
        return err_prefix(err, "the token");
    if (attempt->said->end == HTTP_END_OK) {
        found = reply_scalar(attempt->said->tree.root, spec->token_path,
                             attempt->said->tree.format == REPLY_XML);
        if (!found) {
            http_said_release(attempt->said);
            return err_set(err, ERR_FORBIDDEN, "the token: the reply has nothing at %s",
                           spec->token_path);
        }
        free(link->token);
        link->token = xstrdup(reply_text(found, room));
        link->token_round++;
        http_said_release(attempt->said);
        *attempt->said = (struct http_said){0};
        return 0;
    }
    if (attempt->said->end == HTTP_END_UPSTREAM ||
        attempt->said->end == HTTP_END_REJECTED)
        err_prefix(err, "the token");
    if (attempt->said->end == HTTP_END_NO_DATA)
        return err_set(err, ERR_FORBIDDEN, "the token: the reply says no data");
    return 1;
}

/* Of threads that find the token too old at once, the first fetches for all. */
int
http_token_get(struct http_attempt *attempt, bool renew, struct err *err)
{
    struct http_link *link = attempt->talk->link;
    int r = 0;

    if (!attempt->spec->token)
        return 0;
    pthread_mutex_lock(&link->lock);
    if (!link->token || (renew && link->token_round == attempt->token_round))
        r = token_fetch(attempt, err);
    if (r == 0) {
        attempt->token_round = link->token_round;
        /* A copy: another thread may renew it while this one fills its texts. */
        free((char *)(uintptr_t)attempt->names->token);
        attempt->names->token = xstrdup(link->token);
    }
    pthread_mutex_unlock(&link->lock);
    return r;
}
