/*
 * The blocking client: one curl easy handle, reset between calls, which keeps its
 * connection. Where the body goes is decided by the status: only what a 2xx brings is
 * the thing asked for; the text of an error is read into memory for its reader.
 */
#include "net/http_client.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/fsio.h"
#include "base/strs.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CONNECT_MS     10000
#define STALL_MS       60000
#define REPLY_MAX      ((size_t)16 << 20)
#define REPLY_FIELDS   200
#define REPLY_HEAD_MAX ((size_t)64 << 10)
#define PLACE_SIZE     300

struct http_client {
    CURL *curl;
};

/* One call under way; reached from curl's callbacks. */
struct exchange {
    const struct http_call *call;
    CURL *curl;
    struct arena *arena;
    struct http_reply *reply;
    struct http_field *fields;
    size_t head_bytes;
    bool head_whole; /* of the last answer, not of a "100 Continue" */
    int failure;     /* < 0: what a callback ended the call with */
    struct err *err;
};

int
http_client_new(struct http_client **ret_client, struct err *err)
{
    CURL *curl = curl_easy_init();
    struct http_client *client;

    if (curl == NULL)
        return err_set(err, ERR_NOMEM, "cannot start the HTTP client (libcurl)");
    client = xcalloc(1, sizeof(*client));
    client->curl = curl;
    *ret_client = client;
    return 0;
}

void
http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

void
http_reply_release(struct http_reply *reply)
{
    if (reply == NULL)
        return;
    buf_release(&reply->body);
}

const char *
http_reply_field(const struct http_reply *reply, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < reply->field_count; i++)
        if (strcasecmp(reply->fields[i].name, name) == 0)
            value = reply->fields[i].value;
    return value;
}

/* scheme://host/path for messages: user part and query may hold secrets. */
static const char *
place_of(const struct http_call *call, char place[PLACE_SIZE])
{
    const char *scheme_end = strstr(call->url, "://");
    const char *host = scheme_end != NULL ? scheme_end + 3 : call->url;
    size_t host_len = strcspn(host, "/?#");
    const char *at = memrchr(host, '@', host_len);

    if (call->shown != NULL) {
        snprintf(place, PLACE_SIZE, "%s", call->shown);
        return place;
    }
    if (call->unix_path != NULL) {
        snprintf(place, PLACE_SIZE, "the socket %s", call->unix_path);
        return place;
    }
    if (at != NULL)
        host = at + 1;
    snprintf(place, PLACE_SIZE, "%.*s%.*s",
             scheme_end != NULL ? (int)(scheme_end + 3 - call->url) : 0, call->url,
             (int)strcspn(host, "?#"), host);
    return place;
}

static int
status_of(const struct exchange *x)
{
    long status = 0;

    curl_easy_getinfo(x->curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static bool
is_success(const struct exchange *x)
{
    return status_of(x) >= 200 && status_of(x) < 300;
}

static int
take_body(struct exchange *x, const char *data, size_t len)
{
    const struct http_call *call = x->call;

    if (is_success(x) && call->to_fd && call->fd_max > 0 &&
        x->reply->body_bytes + (int64_t)len > call->fd_max)
        return err_set(x->err, ERR_TOO_LARGE,
                       "the answer is over the %lld bytes allowed",
                       (long long)call->fd_max);
    if (is_success(x) && call->to_fd)
        return fs_write_all(call->fd, data, len, "the download", x->err);
    if (is_success(x) && call->on_body != NULL)
        return call->on_body(call->on_body_arg, data, len, x->err);
    buf_add(&x->reply->body, data, len);
    return buf_check(&x->reply->body, "the answer", x->err);
}

static size_t
on_body(char *data, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;

    x->failure = take_body(x, data, size * count);
    if (x->failure < 0)
        return 0;
    x->reply->body_bytes += (int64_t)(size * count);
    return size * count;
}

/* One header line. A status line begins a new head: what "100 Continue" brought goes.
 */
static size_t
on_header(char *line, size_t size, size_t count, void *arg)
{
    struct exchange *x = arg;
    size_t len = size * count;
    const char *colon = memchr(line, ':', len);
    const char *value, *end = line + len;

    x->head_bytes += len;
    if (len > 5 && memcmp(line, "HTTP/", 5) == 0) {
        x->reply->field_count = 0;
        return len;
    }
    if (*line == '\r' || *line == '\n')
        x->head_whole = status_of(x) >= 200;
    if (colon == NULL)
        return len;
    if (x->reply->field_count == REPLY_FIELDS || x->head_bytes > REPLY_HEAD_MAX) {
        x->failure = err_set(x->err, ERR_TOO_LARGE, "the answer has too many headers");
        return 0;
    }
    value = colon + 1;
    while (value < end && (*value == ' ' || *value == '\t'))
        value++;
    while (end > value && (end[-1] == '\r' || end[-1] == '\n' || end[-1] == ' '))
        end--;
    x->fields[x->reply->field_count++] = (struct http_field){
        arena_strndup(x->arena, line, (size_t)(colon - line)),
        arena_strndup(x->arena, value, (size_t)(end - value)),
    };
    return len;
}

static int
on_progress(void *arg, curl_off_t total, curl_off_t done, curl_off_t up_total,
            curl_off_t up_done)
{
    const struct exchange *x = arg;

    return x->call->on_progress(x->call->on_progress_arg, x->reply->body_bytes,
                                total > 0 ? (int64_t)total : -1);
}

static void
free_slist(struct curl_slist **list)
{
    curl_slist_free_all(*list);
}

static bool
add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (longer == NULL)
        return false;
    *list = longer;
    return true;
}

/* Without these two curl would add headers of its own. */
static int
make_headers(struct exchange *x, struct curl_slist **list)
{
    const struct http_call *call = x->call;
    bool ok = add_header(list, "Expect:");
    bool typed = false;

    for (size_t i = 0; i < call->field_count; i++) {
        const struct http_field *field = &call->fields[i];

        if (strpbrk(field->name, "\r\n") != NULL || strpbrk(field->value, "\r\n"))
            return err_set(x->err, ERR_USAGE, "the header %s may not hold a line end",
                           field->name);
        typed = typed || strcasecmp(field->name, "Content-Type") == 0;
        /* "Name;" is curl's way to write a header without a value. */
        ok = ok &&
             add_header(list, arena_printf(x->arena, *field->value ? "%s: %s" : "%s;%s",
                                           field->name, field->value));
    }
    if (!typed)
        ok = ok && add_header(list, "Content-Type:");
    return ok ? 0 : err_set(x->err, ERR_NOMEM, "no memory for the request headers");
}

static void
set_method(CURL *curl, const struct http_call *call)
{
    bool may_have_body = str_eq(call->method, "POST") || str_eq(call->method, "PUT") ||
                         str_eq(call->method, "PATCH");

    if (str_eq(call->method, "HEAD")) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
        return;
    }
    if (call->body != NULL || may_have_body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS,
                         call->body != NULL ? call->body : "");
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
}

static long
or_default(int64_t value, int64_t standard)
{
    return (long)(value == 0 ? standard : value);
}

static void
set_times(CURL *curl, const struct http_call *call)
{
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     or_default(call->connect_timeout_ms, CONNECT_MS));
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)call->timeout_ms);
    if (call->stall_ms < 0)
        return;
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                     (or_default(call->stall_ms, STALL_MS) + 999) / 1000);
}

static void
set_up(struct exchange *x, struct curl_slist *headers, char note[CURL_ERROR_SIZE])
{
    const struct http_call *call = x->call;
    CURL *curl = x->curl;

    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, note);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700 /* 7.87 */
    /* A resolver that does not answer would hold the call past its time. */
    curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);
#endif
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(curl, CURLOPT_PROXY, call->proxy != NULL ? call->proxy : "");
    curl_easy_setopt(curl, CURLOPT_URL, call->url);
    if (call->unix_path != NULL)
        curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, call->unix_path);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    set_method(curl, call);
    set_times(curl, call);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, x);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, x);
    if (call->on_progress != NULL) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, x);
    }
}

/* What answers bytes that are no HTTP at all is an "unsupported protocol" to curl. */
static bool
is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

static int
explain(struct exchange *x, CURLcode code, const char *note)
{
    char place[PLACE_SIZE];

    place_of(x->call, place);
    if (code == CURLE_UNSUPPORTED_PROTOCOL && is_http(x->call->url))
        code = CURLE_WEIRD_SERVER_REPLY;
    if (*note == '\0')
        note = curl_easy_strerror(code);
    switch ((int)code) {
    case CURLE_OPERATION_TIMEDOUT:
        return err_set(
            x->err, ERR_TIMEOUT,
            "no whole answer from %s in time (%s); it may be overloaded: try "
            "again, or allow more time",
            place, note);
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return err_set(x->err, ERR_CONNECT,
                       "cannot reach %s (%s); check that the server runs and that the "
                       "address is right",
                       place, note);
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE:
        return err_set(x->err, ERR_CONNECT,
                       "the connection to %s broke (%s); try again", place, note);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
        return err_set(x->err, ERR_CONNECT,
                       "no trusted TLS connection to %s (%s); check its certificate",
                       place, note);
    case CURLE_ABORTED_BY_CALLBACK:
        return err_set(x->err, ERR_CANCELLED, "the call to %s was given up", place);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return err_set(x->err, ERR_USAGE,
                       "%s is not an http:// or https:// address (%s)", place, note);
    case CURLE_OUT_OF_MEMORY:
        return err_set(x->err, ERR_NOMEM, "no memory for the call to %s", place);
    default:
        return err_set(x->err, ERR_PROTOCOL, "%s gave no proper HTTP answer (%s)",
                       place, note);
    }
}

int
http_client_call(struct http_client *client, const struct http_call *call,
                 struct arena *arena, struct http_reply *ret_reply, struct err *err)
{
    scoped(http_reply_release) struct http_reply reply = {0};
    scoped(free_slist) struct curl_slist *headers = NULL;
    char note[CURL_ERROR_SIZE] = "";
    struct exchange x = {
        .call = call,
        .curl = client->curl,
        .arena = arena,
        .reply = &reply,
        .fields = arena_array(arena, struct http_field, REPLY_FIELDS),
        .err = err,
    };
    CURLcode code;
    int r;

    buf_init(&reply.body, call->reply_max == 0 ? REPLY_MAX : call->reply_max);
    r = make_headers(&x, &headers);
    if (r < 0)
        return r;
    set_up(&x, headers, note);
    code = curl_easy_perform(client->curl);
    r = x.failure < 0 ? x.failure : code != CURLE_OK ? explain(&x, code, note) : 0;
    if (r < 0 && !(call->head_suffices && x.head_whole))
        return r;
    if (r < 0)
        err_clear(err);
    reply.cut = r < 0;
    reply.status = status_of(&x);
    reply.fields = x.fields;
    *ret_reply = reply;
    reply.body = (struct buf){0}; /* handed over */
    return 0;
}
