/*
 * Keys do not get out. A filled text lives only in the arena of the call. Messages name
 * the call by its host and the path as it is written in the job, so that a key in a
 * path shows as {key:NAME}; what a provider says is searched for the keys that were
 * sent and they are struck out, because some repeat them.
 */
#include "io/http_talk_private.h"

#include "base/buf.h"
#include "io/call_text.h"

#include <stdlib.h>
#include <string.h>

#define STRUCK_MIN 8

struct striking {
    struct io_ctx *io;
    char *text;
};

/* Also the beginning of a secret: texts for messages are cut off somewhere. */
static void
strike(char *text, const char *secret)
{
    size_t len = strlen(secret);
    size_t least = len < STRUCK_MIN ? len : STRUCK_MIN;

    if (len < 4)
        return; /* striking out "1" everywhere would say more than it hides */
    while ((text = strchr(text, secret[0]))) {
        size_t same = 0;

        while (same < len && text[same] == secret[same])
            same++;
        if (same >= least)
            memset(text, '*', same);
        text += same >= least ? same : 1;
    }
}

/* As it is, as it stands in a query, and as some write it into JSON. */
static void
strike_forms(char *text, const char *secret)
{
    scoped(buf_release) struct buf encoded = {0};
    scoped(buf_release) struct buf escaped = {0};

    buf_init(&encoded, CALL_URL_MAX_BYTES);
    buf_init(&escaped, CALL_URL_MAX_BYTES);
    percent_encode(&encoded, secret, strlen(secret));
    for (const char *at = secret; *at; at++)
        buf_addf(&escaped, *at == '/' ? "\\%c" : "%c", *at);
    strike(text, secret);
    strike(text, buf_str(&encoded));
    strike(text, buf_str(&escaped));
}

static void
strike_key(void *arg, const char *name)
{
    struct striking *striking = arg;
    const char *value = striking->io->key(striking->io, name);

    if (value)
        strike_forms(striking->text, value);
}

static void
strike_keys_of(struct striking *striking, const struct http_spec *spec)
{
    const char *key;
    json_t *text;

    call_text_keys(spec->url, strike_key, striking);
    json_object_foreach((json_t *)(uintptr_t)spec->query, key, text)
    {
        if (json_is_string(text))
            call_text_keys(json_string_value(text), strike_key, striking);
    }
    json_object_foreach((json_t *)(uintptr_t)spec->headers, key, text)
    {
        if (json_is_string(text))
            call_text_keys(json_string_value(text), strike_key, striking);
    }
    if (spec->body)
        call_text_keys(spec->body, strike_key, striking);
    if (spec->json) {
        char *dump = json_dumps(spec->json, JSON_COMPACT | JSON_ENCODE_ANY);

        if (dump)
            call_text_keys(dump, strike_key, striking);
        free(dump);
    }
}

void
http_strike_out(const struct http_attempt *attempt, char *text)
{
    struct striking striking = {attempt->talk->link->io, text};

    strike_keys_of(&striking, attempt->spec);
    if (attempt->names->token)
        strike_forms(text, attempt->names->token);
}

void
http_talk_strike(struct http_talk *talk, char *text)
{
    struct http_link *link = talk->link;
    struct striking striking = {link->io, text};

    strike_keys_of(&striking, link->spec);
    pthread_mutex_lock(&link->lock);
    if (link->token)
        strike_forms(text, link->token);
    pthread_mutex_unlock(&link->lock);
}
