/*
 * The request parser: one state per place between two bytes, one table that says
 * which bytes may stand where. A byte that is not expected is refused; nothing is
 * repaired or guessed. All head bytes go to head in one piece per call; tokens are
 * offsets into it and become C strings when the head is whole. What the head means
 * (framing, Host, Expect …) is judged in http_head.c once no more of it can come.
 */
#include "net/http_parse.h"

#include "net/http_head.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

enum state {
    AT_START, /* before the request line; one empty line is let pass */
    AT_START_LF,
    IN_METHOD,
    IN_TARGET,
    IN_VERSION,
    AT_LINE_LF, /* after the CR of the request line */
    AT_FIELD,   /* first byte of a header line */
    IN_NAME,
    BEFORE_VALUE,
    IN_VALUE,
    AT_FIELD_LF,
    AT_END_LF,  /* after the CR of the empty line */
    HEAD_GIVEN, /* HEAD was returned, body_max may have been set */
    IN_BODY,
    AT_CHUNK, /* first digit of a chunk size */
    IN_CHUNK_SIZE,
    IN_CHUNK_EXT,
    AT_CHUNK_LF,
    IN_CHUNK,
    AT_CHUNK_END_CR,
    AT_CHUNK_END_LF,
    AT_LAST_CR, /* behind the chunk of size 0 */
    AT_LAST_LF,
    FINISHED,
    BROKEN,
};

/* Classes of bytes. */
#define TOKEN  1u /* methods and names (RFC 9110 tchar) */
#define TARGET 2u /* visible ASCII but " # < > \ */
#define VALUE  4u /* visible, blank, tab, 0x80-0xff */

static const unsigned char classes[256] = {
    ['\t'] = VALUE,
    [' '] = VALUE,
    ['!'] = TOKEN | TARGET | VALUE,
    ['"'] = VALUE,
    ['#'] = TOKEN | VALUE,
    ['$' ... '\''] = TOKEN | TARGET | VALUE,
    ['('] = TARGET | VALUE,
    [')'] = TARGET | VALUE,
    ['*'] = TOKEN | TARGET | VALUE,
    ['+'] = TOKEN | TARGET | VALUE,
    [','] = TARGET | VALUE,
    ['-'] = TOKEN | TARGET | VALUE,
    ['.'] = TOKEN | TARGET | VALUE,
    ['/'] = TARGET | VALUE,
    ['0' ... '9'] = TOKEN | TARGET | VALUE,
    [':'] = TARGET | VALUE,
    [';'] = TARGET | VALUE,
    ['<'] = VALUE,
    ['='] = TARGET | VALUE,
    ['>'] = VALUE,
    ['?'] = TARGET | VALUE,
    ['@'] = TARGET | VALUE,
    ['A' ... 'Z'] = TOKEN | TARGET | VALUE,
    ['['] = TARGET | VALUE,
    ['\\'] = VALUE,
    [']'] = TARGET | VALUE,
    ['^' ... '`'] = TOKEN | TARGET | VALUE,
    ['a' ... 'z'] = TOKEN | TARGET | VALUE,
    ['{'] = TARGET | VALUE,
    ['|'] = TOKEN | TARGET | VALUE,
    ['}'] = TARGET | VALUE,
    ['~'] = TOKEN | TARGET | VALUE,
    [0x80 ... 0xff] = VALUE,
};

static bool
is_class(char c, unsigned class)
{
    return (classes[(unsigned char)c] & class) != 0;
}

void
http_parse_init(struct http_parse *parser, size_t body_max)
{
    memset(parser, 0, sizeof(*parser));
    buf_init(&parser->head, HTTP_METHOD_MAX + HTTP_TARGET_MAX + HTTP_HEADERS_MAX + 64);
    parser->body_max = body_max;
    parser->state = AT_START;
}

void
http_parse_release(struct http_parse *parser)
{
    if (parser == NULL)
        return;
    buf_release(&parser->head);
    buf_release(&parser->body);
}

static enum http_parse_outcome
refuse(struct http_parse *parser, int status, const char *reason)
{
    parser->status = status;
    parser->reason = reason;
    parser->state = BROKEN;
    return HTTP_PARSE_BAD;
}

/* at: offset of c in head. */
static enum http_parse_outcome
request_line_byte(struct http_parse *parser, char c, uint32_t at)
{
    uint32_t len = at - parser->mark;

    switch (parser->state) {
    case AT_START:
        if (c == '\r' && at == 0) {
            parser->state = AT_START_LF;
            return HTTP_PARSE_MORE;
        }
        parser->mark = at;
        parser->state = IN_METHOD;
        if (!is_class(c, TOKEN))
            return refuse(parser, 400, "The request line must begin with a method.");
        return HTTP_PARSE_MORE;
    case AT_START_LF:
        parser->state = AT_START;
        if (c != '\n')
            return refuse(parser, 400, "A line must end with CR LF.");
        return HTTP_PARSE_MORE;
    case IN_METHOD:
        if (c == ' ') {
            parser->method = (struct http_span){parser->mark, len};
            parser->mark = at + 1;
            parser->state = IN_TARGET;
            return HTTP_PARSE_MORE;
        }
        if (!is_class(c, TOKEN))
            return refuse(parser, 400, "The method holds a character it may not.");
        if (len >= HTTP_METHOD_MAX)
            return refuse(parser, 501, "No method has so long a name.");
        return HTTP_PARSE_MORE;
    case IN_TARGET:
        if (len == 0 && c != '/')
            return refuse(parser, 400, "The request target must begin with \"/\".");
        if (c == ' ') {
            parser->target = (struct http_span){parser->mark, len};
            parser->mark = at + 1;
            parser->state = IN_VERSION;
            return HTTP_PARSE_MORE;
        }
        if (!is_class(c, TARGET))
            return refuse(parser, 400,
                          "The request target holds a character that must be "
                          "percent-encoded, or the HTTP version is missing.");
        if (len >= HTTP_TARGET_MAX)
            return refuse(parser, 414, "The request target is longer than 8 KiB.");
        return HTTP_PARSE_MORE;
    default:
        assert(false);
        return HTTP_PARSE_BAD;
    }
}

/* "HTTP/1.1" CR: the bytes so far must be a beginning of HTTP/digit.digit. */
static enum http_parse_outcome
version_byte(struct http_parse *parser, char c, uint32_t at)
{
    static const char shape[] = "HTTP/0.0";
    uint32_t len = at - parser->mark;
    bool digit = c >= '0' && c <= '9';

    if (len < sizeof(shape) - 1) {
        if (shape[len] == '0' ? !digit : c != shape[len])
            return refuse(parser, 400, "The request line must end with HTTP/1.1.");
        if (len == 5 && c != '1')
            return refuse(parser, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
        if (len == 7 && c > '1')
            return refuse(parser, 505, "Only HTTP/1.1 and HTTP/1.0 are spoken here.");
        if (len == 7)
            parser->minor = c - '0';
        return HTTP_PARSE_MORE;
    }
    if (c != '\r')
        return refuse(parser, 400, "The request line must end with HTTP/1.1 CR LF.");
    parser->state = AT_LINE_LF;
    return HTTP_PARSE_MORE;
}

static enum http_parse_outcome
field_begins(struct http_parse *parser, char c, uint32_t at)
{
    if (c == '\r') {
        parser->state = AT_END_LF;
        return HTTP_PARSE_MORE;
    }
    if (c == ' ' || c == '\t')
        return refuse(parser, 400, "A header line may not begin with a blank.");
    if (!is_class(c, TOKEN))
        return refuse(parser, 400, "A header line must begin with a name.");
    if (parser->field_count == HTTP_FIELDS_MAX)
        return refuse(parser, 431, "There are more than 100 header lines.");
    parser->mark = at;
    parser->state = IN_NAME;
    return HTTP_PARSE_MORE;
}

static enum http_parse_outcome
value_byte(struct http_parse *parser, char c, uint32_t at)
{
    if (c == '\r') {
        parser->values[parser->field_count++] =
            (struct http_span){parser->mark, parser->value_end - parser->mark};
        parser->state = AT_FIELD_LF;
        return HTTP_PARSE_MORE;
    }
    if (!is_class(c, VALUE))
        return refuse(parser, 400, "A header value holds a control character.");
    /* Blanks behind a value are dropped, a tab is not: other parsers differ there, and
     * so a length or coding with a tab behind it is refused. */
    if (c != ' ')
        parser->value_end = at + 1;
    return HTTP_PARSE_MORE;
}

static enum http_parse_outcome
field_byte(struct http_parse *parser, char c, uint32_t at)
{
    if (++parser->header_bytes > HTTP_HEADERS_MAX)
        return refuse(parser, 431, "The headers are longer than 16 KiB.");

    switch (parser->state) {
    case AT_FIELD:
        return field_begins(parser, c, at);
    case IN_NAME:
        if (c == ':') {
            parser->names[parser->field_count] =
                (struct http_span){parser->mark, at - parser->mark};
            parser->state = BEFORE_VALUE;
            return HTTP_PARSE_MORE;
        }
        if (!is_class(c, TOKEN))
            return refuse(parser, 400,
                          "A header name must be followed by a colon at once and may "
                          "hold no blank or control character.");
        return HTTP_PARSE_MORE;
    case BEFORE_VALUE:
        if (c == ' ' || c == '\t')
            return HTTP_PARSE_MORE;
        parser->mark = at;
        parser->value_end = at;
        parser->state = IN_VALUE;
        return value_byte(parser, c, at);
    case IN_VALUE:
        return value_byte(parser, c, at);
    case AT_FIELD_LF:
        parser->state = AT_FIELD;
        if (c != '\n')
            return refuse(parser, 400, "A header line must end with CR LF.");
        return HTTP_PARSE_MORE;
    case AT_END_LF:
        if (c != '\n')
            return refuse(parser, 400, "The headers must end with CR LF.");
        parser->state = HEAD_GIVEN;
        return HTTP_PARSE_HEAD;
    default:
        assert(false);
        return HTTP_PARSE_BAD;
    }
}

static enum http_parse_outcome
head_byte(struct http_parse *parser, char c, uint32_t at)
{
    if (parser->state < IN_VERSION)
        return request_line_byte(parser, c, at);
    if (parser->state == IN_VERSION)
        return version_byte(parser, c, at);
    if (parser->state == AT_LINE_LF) {
        parser->state = AT_FIELD;
        if (c != '\n')
            return refuse(parser, 400, "The request line must end with CR LF.");
        return HTTP_PARSE_MORE;
    }
    return field_byte(parser, c, at);
}

/* The head is whole: make C strings of its tokens, then judge what it says. */
static enum http_parse_outcome
head_ends(struct http_parse *parser)
{
    char *head = parser->head.data;

    head[parser->method.at + parser->method.len] = '\0';
    head[parser->target.at + parser->target.len] = '\0';
    for (size_t i = 0; i < parser->field_count; i++) {
        head[parser->names[i].at + parser->names[i].len] = '\0';
        head[parser->values[i].at + parser->values[i].len] = '\0';
    }
    if (!http_head_judge(parser, &parser->status, &parser->reason))
        return refuse(parser, parser->status, parser->reason);
    return HTTP_PARSE_HEAD;
}

static enum http_parse_outcome
parse_head(struct http_parse *parser, const char *data, size_t len, size_t *ret_used)
{
    enum http_parse_outcome outcome = HTTP_PARSE_MORE;
    uint32_t at = (uint32_t)parser->head.len;
    size_t used = 0;

    while (used < len && outcome == HTTP_PARSE_MORE)
        outcome = head_byte(parser, data[used++], at++);

    *ret_used = used;
    if (outcome == HTTP_PARSE_BAD)
        return outcome;
    buf_add(&parser->head, data, used);
    if (outcome == HTTP_PARSE_HEAD)
        return head_ends(parser);
    return outcome;
}

static enum http_parse_outcome
body_begins(struct http_parse *parser)
{
    if (parser->content_length > 0 &&
        (uint64_t)parser->content_length > parser->body_max)
        return refuse(parser, 413, "The body is larger than is taken here.");
    buf_init(&parser->body, parser->body_max + 1);
    parser->left = (uint64_t)parser->content_length;
    if (parser->chunked) {
        parser->state = AT_CHUNK;
        return HTTP_PARSE_MORE;
    }
    parser->state = parser->left > 0 ? IN_BODY : FINISHED;
    return parser->left > 0 ? HTTP_PARSE_MORE : HTTP_PARSE_DONE;
}

static int
hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static enum http_parse_outcome
chunk_size_byte(struct http_parse *parser, char c)
{
    int digit = hex_value(c);

    if (digit >= 0) {
        if (++parser->digits > 15)
            return refuse(parser, 400, "A chunk size has more than 15 digits.");
        parser->left = parser->left * 16 + (uint64_t)digit;
        parser->state = IN_CHUNK_SIZE;
        return HTTP_PARSE_MORE;
    }
    if (parser->state == AT_CHUNK || (c != '\r' && c != ';'))
        return refuse(parser, 400, "A chunk size must be hexadecimal digits only.");
    parser->state = c == ';' ? IN_CHUNK_EXT : AT_CHUNK_LF;
    return HTTP_PARSE_MORE;
}

static enum http_parse_outcome
chunk_line_ends(struct http_parse *parser)
{
    parser->digits = 0;
    if (parser->left == 0) {
        parser->state = AT_LAST_CR;
        return HTTP_PARSE_MORE;
    }
    if (parser->left > parser->body_max - parser->body.len)
        return refuse(parser, 413, "The body is larger than is taken here.");
    parser->state = IN_CHUNK;
    return HTTP_PARSE_MORE;
}

/* The bytes between the data of two chunks. */
static enum http_parse_outcome
chunk_byte(struct http_parse *parser, char c)
{
    switch (parser->state) {
    case AT_CHUNK:
    case IN_CHUNK_SIZE:
        return chunk_size_byte(parser, c);
    case IN_CHUNK_EXT:
        if (c == '\r') {
            parser->state = AT_CHUNK_LF;
            return HTTP_PARSE_MORE;
        }
        if (!is_class(c, VALUE) || ++parser->ext_bytes > HTTP_CHUNK_EXT_MAX)
            return refuse(parser, 400, "A chunk extension is malformed or too long.");
        return HTTP_PARSE_MORE;
    case AT_CHUNK_LF:
        if (c != '\n')
            return refuse(parser, 400, "A chunk size must end with CR LF.");
        return chunk_line_ends(parser);
    case AT_CHUNK_END_CR:
        parser->state = AT_CHUNK_END_LF;
        if (c != '\r')
            return refuse(parser, 400, "A chunk is longer than its size says.");
        return HTTP_PARSE_MORE;
    case AT_CHUNK_END_LF:
        parser->state = AT_CHUNK;
        if (c != '\n')
            return refuse(parser, 400, "A chunk must end with CR LF.");
        return HTTP_PARSE_MORE;
    case AT_LAST_CR:
        parser->state = AT_LAST_LF;
        if (c != '\r')
            return refuse(parser, 400, "Headers behind the body are not taken.");
        return HTTP_PARSE_MORE;
    case AT_LAST_LF:
        if (c != '\n')
            return refuse(parser, 400, "The body must end with CR LF.");
        parser->state = FINISHED;
        return HTTP_PARSE_DONE;
    default:
        assert(false);
        return HTTP_PARSE_BAD;
    }
}

/* Body bytes up to left, in one piece. */
static size_t
take_body(struct http_parse *parser, const char *data, size_t len)
{
    if (len > parser->left)
        len = (size_t)parser->left;
    buf_add(&parser->body, data, len);
    parser->left -= len;
    return len;
}

static enum http_parse_outcome
parse_body(struct http_parse *parser, const char *data, size_t len, size_t *ret_used)
{
    enum http_parse_outcome outcome = HTTP_PARSE_MORE;
    size_t used = 0;

    while (used < len && outcome == HTTP_PARSE_MORE) {
        if (parser->state == IN_BODY) {
            used += take_body(parser, data + used, len - used);
            if (parser->left == 0) {
                parser->state = FINISHED;
                outcome = HTTP_PARSE_DONE;
            }
        } else if (parser->state == IN_CHUNK) {
            used += take_body(parser, data + used, len - used);
            if (parser->left == 0)
                parser->state = AT_CHUNK_END_CR;
        } else {
            outcome = chunk_byte(parser, data[used++]);
        }
    }
    *ret_used = used;
    return outcome;
}

enum http_parse_outcome
http_parse(struct http_parse *parser, const char *data, size_t len, size_t *ret_used)
{
    enum http_parse_outcome outcome;

    *ret_used = 0;
    assert(parser->state != FINISHED);
    if (parser->state == BROKEN)
        return HTTP_PARSE_BAD;
    if (parser->state < HEAD_GIVEN)
        return parse_head(parser, data, len, ret_used);
    if (parser->state == HEAD_GIVEN) {
        outcome = body_begins(parser);
        if (outcome != HTTP_PARSE_MORE)
            return outcome;
    }
    return parse_body(parser, data, len, ret_used);
}

const char *
http_parse_method(const struct http_parse *parser)
{
    return parser->head.data + parser->method.at;
}

const char *
http_parse_target(const struct http_parse *parser)
{
    return parser->head.data + parser->target.at;
}

const char *
http_parse_field(const struct http_parse *parser, const char *name)
{
    for (size_t i = 0; i < parser->field_count; i++)
        if (strcasecmp(parser->head.data + parser->names[i].at, name) == 0)
            return parser->head.data + parser->values[i].at;
    return NULL;
}

bool
http_parse_has_body(const struct http_parse *parser)
{
    return parser->chunked || parser->content_length > 0;
}
