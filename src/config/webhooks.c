/*
 * `webhooks`: whom to tell that a request has ended, and `webhook` of a job: which of
 * them, and after what. The job's definition holds the name only, so a changed address
 * or secret counts for what waits to be sent as well.
 */
#include "config/reading.h"
#include "config/sections.h"

#include "base/arena.h"
#include "base/strs.h"

#include <arpa/inet.h>
#include <string.h>

#define HOST_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
#define HOST_MAX   253

/* Words of `on`, in the order of config_job.webhook_on's bits. */
static const char *const outcomes[] = {
    "COMPLETED", "STOPPED", "ERROR",   "CANCELLED",
    "TIMEOUT",   "EXPIRED", "REFUSED", "WORKER_LOST",
};
/* Short for all that the status FAILED stands for: neither of the first two. */
#define FAILED_BITS ((1u << array_len(outcomes)) - 1 - 3u)
#define ALL_BITS    ((1u << array_len(outcomes)) - 1)

/* --- addresses --- */

static bool
is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;

    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return strcasecmp(host, "localhost") == 0;
}

/* Labels with a dot between, and perhaps one behind; where the last is a number, all of
 * them are an address. */
static bool
is_host(const char *host)
{
    const char *rest = host;
    const char *last;
    struct in_addr v4;

    if (strlen(host) > HOST_MAX || strspn(host, HOST_CHARS) != strlen(host))
        return false;
    do {
        size_t len = strcspn(rest, ".");

        if (len == 0 || rest[0] == '-' || rest[len - 1] == '-')
            return false;
        last = rest;
        rest += len + (rest[len] == '.');
    } while (*rest != '\0');
    return strspn(last, "0123456789.") < strlen(last) ||
           inet_pton(AF_INET, host, &v4) == 1;
}

/* The host of "host", "host:port" or "[address]:port"; false if it is none of these. */
static bool
split_authority(char *text, const char **ret_host)
{
    struct in6_addr v6;
    char *colon = strrchr(text, ':');
    char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    int64_t port;

    if (end != NULL)
        colon = end[1] != '\0' ? end + 1 : NULL;
    if (colon != NULL) {
        if (*colon != ':' || !str_to_i64(colon + 1, &port) || port < 1 || port > 65535)
            return false;
        *colon = '\0';
    }
    if (end != NULL) {
        *end = '\0';
        *ret_host = text + 1;
        return inet_pton(AF_INET6, text + 1, &v6) == 1;
    }
    *ret_host = text;
    return is_host(text);
}

static bool
is_plain_text(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~' || *text == '#')
            return false;
    return true;
}

/* NULL, or what is wrong with it. */
static const char *
url_fault(struct arena *arena, const char *url)
{
    bool secure = str_starts_with(url, "https://");
    const char *rest = url + (secure ? strlen("https://") : strlen("http://"));
    const char *host = NULL;
    char *authority;

    if (!secure && !str_starts_with(url, "http://"))
        return "url must begin with https://";
    if (!is_plain_text(url))
        return "url holds a blank, a '#' or a character beyond ASCII: write it "
               "percent-encoded";
    authority = arena_strndup(arena, rest, strcspn(rest, "/?"));
    if (strchr(authority, '@') != NULL)
        return "url must not hold a name or a password: the receiver knows us by the "
               "signature";
    if (!split_authority(authority, &host))
        return "url needs a host, such as https://shop.example/pawl";
    if (!secure && !is_loopback(host))
        return "url must begin with https://; http is for a service on this machine "
               "only (127.0.0.1, [::1], localhost)";
    return NULL;
}

/* --- the section --- */

void
section_webhooks(struct reading *reading, const struct setting *setting,
                 const struct ynode *node, void *base)
{
    struct config *config = base;
    const struct ynode *member;

    if (node == NULL || !reading_map(reading, node))
        return;
    config->webhooks = arena_array(&config->arena, struct config_webhook, node->count);
    for (member = node->first; member != NULL; member = member->next) {
        struct config_webhook *webhook = &config->webhooks[config->webhook_count];
        const char *fault;

        if (!reading_key(reading, member, is_label, LABEL_RULE))
            continue;
        config->webhook_count++;
        webhook->name = member->key;
        reading_table(reading, setting->group, member, member->key, webhook);
        fault = webhook->url != NULL ? url_fault(&config->arena, webhook->url) : NULL;
        if (fault != NULL)
            reading_problem(reading, ynode_get(member, "url"), "%s", fault);
    }
}

const struct config_webhook *
config_webhook_find(const struct config *config, const char *name)
{
    size_t i;

    for (i = 0; i < config->webhook_count; i++) {
        if (str_eq(config->webhooks[i].name, name))
            return &config->webhooks[i];
    }
    return NULL;
}

void
config_check_webhooks(struct reading *reading)
{
    const struct ynode *all = ynode_get(reading->root, "webhooks");
    size_t i;

    for (i = 0; i < reading->config->webhook_count; i++) {
        const char *name = reading->config->webhooks[i].name;
        const struct ynode *key = ynode_get(ynode_get(all, name), "key");

        if (!ynode_is_null(key))
            config_check_key(reading, key);
    }
}

/* --- of a job --- */

static unsigned
outcome_bits(const char *word)
{
    size_t i;

    if (str_eq(word, "FAILED"))
        return FAILED_BITS;
    for (i = 0; i < array_len(outcomes); i++)
        if (str_eq(word, outcomes[i]))
            return 1u << i;
    return 0;
}

static void
read_on(struct reading *reading, const struct ynode *node, struct config_job *job)
{
    const char **names;
    size_t count;
    size_t i;

    if (ynode_is_null(node))
        return;
    job->webhook_on = 0;
    reading_names(reading, node, is_env_name, ENV_NAME_RULE, &names, &count);
    for (i = 0; i < count; i++) {
        unsigned bits = outcome_bits(names[i]);

        if (bits == 0)
            reading_problem(reading, node,
                            "%s is no outcome: on is a list of COMPLETED, STOPPED, "
                            "FAILED, or of ERROR, TIMEOUT, WORKER_LOST, CANCELLED, "
                            "EXPIRED, REFUSED",
                            names[i]);
        job->webhook_on |= bits;
    }
    if (count == 0)
        reading_problem(reading, node,
                        "on is empty: nobody would be told; leave webhook out instead");
}

void
section_webhook(struct reading *reading, const struct setting *setting,
                const struct ynode *node, void *base)
{
    static const char *const words[] = {"to", "on"};
    struct config_job *job = base;
    const struct ynode *member;

    if (node == NULL)
        return;
    job->webhook_on = ALL_BITS;
    if (node->kind == YNODE_SCALAR) {
        job->webhook = node->text;
        return;
    }
    if (!reading_map(reading, node))
        return;
    for (member = node->first; member != NULL; member = member->next) {
        if (str_eq(member->key, "to"))
            job->webhook = ynode_is_null(member) ? NULL : reading_text(reading, member);
        else if (str_eq(member->key, "on"))
            read_on(reading, member, job);
        else
            reading_key_problem(
                reading, member, "unknown setting %s in webhook%s", member->key,
                reading_hint(reading, member->key, words, array_len(words)));
    }
    if (ynode_is_null(ynode_get(node, "to")))
        reading_problem(reading, node,
                        "webhook needs a name: {to: NAME, on: [COMPLETED]}");
}

json_t *
config_webhook_json(const struct config_job *job)
{
    json_t *on = json_array();
    size_t i;

    for (i = 0; i < array_len(outcomes); i++)
        if (job->webhook_on & 1u << i)
            json_array_append_new(on, json_string(outcomes[i]));
    return json_pack("{s:s, s:o}", "to", job->webhook, "on", on);
}
