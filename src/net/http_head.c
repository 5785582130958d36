/*
 * Judging a request head. Fields that frame the message may stand only once and in
 * one form: a proxy before us might have read the other one. Each row of the table
 * is a field the server itself understands; all others are the handler's.
 */
#include "net/http_head.h"

#include "net/http_parse.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

struct verdict {
    int status; /* 0: nothing wrong so far */
    const char *reason;
};

struct facts {
    bool host;
    bool length;
    bool coding; /* Transfer-Encoding */
    bool foreign_coding;
    bool says_close;
};

typedef struct verdict (*field_fn)(struct http_parse *parser, struct facts *facts,
                                   const char *value);

static const struct verdict fine = {0, NULL};

/* RFC 3986 host and port; no user part, no blank, nothing a log could trip over. */
static bool
host_is_sound(const char *value)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789-._~%!$&'()*+,;=:[]";

    return value[strspn(value, allowed)] == '\0';
}

static struct verdict
judge_host(struct http_parse *parser, struct facts *facts, const char *value)
{
    if (facts->host)
        return (struct verdict){400, "There are two Host headers."};
    facts->host = true;
    if (!host_is_sound(value))
        return (struct verdict){400, "The Host header is not a host name."};
    return fine;
}

static struct verdict
judge_length(struct http_parse *parser, struct facts *facts, const char *value)
{
    size_t digits = strspn(value, "0123456789");

    if (facts->length)
        return (struct verdict){400, "There are two Content-Length headers."};
    facts->length = true;
    if (digits == 0 || value[digits] != '\0')
        return (struct verdict){400, "Content-Length must be decimal digits only."};
    if (digits > 18)
        return (struct verdict){413, "The body is larger than is taken here."};
    parser->content_length = 0;
    for (size_t i = 0; i < digits; i++)
        parser->content_length = parser->content_length * 10 + (value[i] - '0');
    return fine;
}

static struct verdict
judge_coding(struct http_parse *parser, struct facts *facts, const char *value)
{
    if (facts->coding)
        return (struct verdict){400, "There are two Transfer-Encoding headers."};
    facts->coding = true;
    if (parser->minor == 0)
        return (struct verdict){400, "HTTP/1.0 has no Transfer-Encoding."};
    if (*value == '\0')
        return (struct verdict){400, "Transfer-Encoding is empty."};
    if (strcasecmp(value, "chunked") == 0)
        parser->chunked = true;
    else
        facts->foreign_coding = true;
    return fine;
}

static struct verdict
judge_expect(struct http_parse *parser, struct facts *facts, const char *value)
{
    if (strcasecmp(value, "100-continue") != 0)
        return (struct verdict){417, "Only Expect: 100-continue is understood."};
    parser->expect_continue = parser->minor >= 1;
    return fine;
}

static struct verdict
judge_encoding(struct http_parse *parser, struct facts *facts, const char *value)
{
    return (struct verdict){415, "Send the body without Content-Encoding."};
}

/* A list: "keep-alive, Upgrade". */
static struct verdict
judge_connection(struct http_parse *parser, struct facts *facts, const char *value)
{
    while (*value != '\0') {
        size_t len;

        value += strspn(value, ", \t");
        len = strcspn(value, ", \t");
        if (len == 5 && strncasecmp(value, "close", len) == 0)
            facts->says_close = true;
        value += len;
    }
    return fine;
}

/* To add one: a row here and its function above. */
static const struct {
    const char *name;
    field_fn judge;
} known[] = {
    {"Host", judge_host},
    {"Content-Length", judge_length},
    {"Transfer-Encoding", judge_coding},
    {"Connection", judge_connection},
    {"Expect", judge_expect},
    {"Content-Encoding", judge_encoding},
};

/* The worst is kept: a framing fault (400) tells more than an unsupported wish. */
static void
keep_worst(struct verdict *worst, struct verdict next)
{
    if (next.status == 0 || worst->status == 400)
        return;
    if (worst->status == 0 || next.status == 400)
        *worst = next;
}

static struct verdict
judge_field(struct http_parse *parser, struct facts *facts, size_t i)
{
    const char *name = parser->head.data + parser->names[i].at;
    const char *value = parser->head.data + parser->values[i].at;

    for (size_t k = 0; k < array_len(known); k++)
        if (strcasecmp(name, known[k].name) == 0)
            return known[k].judge(parser, facts, value);
    return fine;
}

bool
http_head_judge(struct http_parse *parser, int *ret_status, const char **ret_reason)
{
    struct facts facts = {0};
    struct verdict worst = fine;

    for (size_t i = 0; i < parser->field_count; i++)
        keep_worst(&worst, judge_field(parser, &facts, i));

    if (facts.length && facts.coding)
        keep_worst(&worst, (struct verdict){400, "Content-Length and Transfer-Encoding "
                                                 "may not stand together."});
    if (!facts.host && parser->minor >= 1)
        keep_worst(&worst, (struct verdict){400, "The Host header is missing."});
    if (facts.foreign_coding)
        keep_worst(&worst, (struct verdict){501, "The only Transfer-Encoding "
                                                 "understood is chunked."});
    parser->keep_alive = parser->minor >= 1 && !facts.says_close;
    if (worst.status == 0)
        return true;
    *ret_status = worst.status;
    *ret_reason = worst.reason;
    return false;
}
