/* What a reply means: by its code if it has one, by its status, by what it is. */
#include "io/http_talk_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/strs.h"

#include <stdio.h>

static const char *
code_of(const struct http_attempt *attempt, const struct reply_tree *tree,
        char room[48])
{
    for (size_t i = 0; i < attempt->spec->n_code_paths; i++) {
        const json_t *found = reply_scalar(tree->root, attempt->spec->code_paths[i],
                                           tree->format == REPLY_XML);

        if (found)
            return reply_text(found, room);
    }
    return NULL;
}

static bool
outcome_of_code(const struct http_spec *spec, const char *code,
                enum http_outcome *ret_outcome)
{
    return http_outcome_parse(json_string_value(json_object_get(spec->codes, code)),
                              ret_outcome);
}

/* true: the status decides. false: 2xx, look at the body. */
static bool
outcome_of_status(const struct http_spec *spec, int status,
                  enum http_outcome *ret_outcome)
{
    char key[16];
    const char *word;

    snprintf(key, sizeof(key), "%d", status);
    word = json_string_value(json_object_get(spec->status, key));
    if (!word) {
        snprintf(key, sizeof(key), "%dxx", status / 100);
        word = json_string_value(json_object_get(spec->status, key));
    }
    if (!word && (status < 200 || status > 299))
        word = json_string_value(json_object_get(spec->status, "default"));
    if (word)
        return http_outcome_parse(word, ret_outcome) && *ret_outcome != HTTP_OK;
    if (status >= 200 && status <= 299)
        return false;
    *ret_outcome =
        status == 408 || status == 429 || status >= 500 ? HTTP_TRANSIENT : HTTP_FATAL;
    return true;
}

/* What the provider says about it, made safe for a message. */
static void
saying_of(const struct http_attempt *attempt, const struct reply_tree *tree,
          char saying[CALL_SAYING_MAX])
{
    char room[48];

    saying[0] = '\0';
    for (size_t i = 0; i < attempt->spec->n_message_paths && !saying[0]; i++) {
        const json_t *found = reply_scalar(tree->root, attempt->spec->message_paths[i],
                                           tree->format == REPLY_XML);
        scoped(xfree_ptr) char *text = NULL;

        if (!found)
            continue;
        text = xstrdup(reply_text(found, room));
        http_strike_out(attempt, text);
        for (char *at = text; *at; at++)
            if ((unsigned char)*at < 0x20)
                *at = ' ';
        (void)str_copy(saying, CALL_SAYING_MAX, text);
    }
}

static int
note_failure(struct http_attempt *attempt, const struct reply_tree *tree,
             const char *code, struct err *err)
{
    char saying[CALL_SAYING_MAX] = "";

    if (tree->root)
        saying_of(attempt, tree, saying);
    if (!code)
        return err_set(err, ERR_PROTOCOL, "%s answered HTTP %d%s%s",
                       attempt->talk->shown, attempt->reply.status,
                       saying[0] ? ": " : "", saying);
    return err_set(err, ERR_PROTOCOL, "%s answered with code %.40s (HTTP %d)%s%s",
                   attempt->talk->shown, code, attempt->reply.status,
                   saying[0] ? ": " : "", saying);
}

static bool
wants_tree(const struct http_attempt *attempt)
{
    return !attempt->spec->content.column && !attempt->sink;
}

/* Judge by a tree that is there. */
static void
judge_tree(struct http_attempt *attempt, const struct reply_tree *tree,
           const char *code, struct err *err)
{
    const struct http_spec *spec = attempt->spec;
    enum http_outcome outcome = HTTP_OK;

    if (code)
        (void)str_copy(attempt->said->code, sizeof(attempt->said->code), code);
    if (code && outcome_of_code(spec, code, &outcome))
        attempt->outcome = outcome;
    else if (outcome_of_status(spec, attempt->reply.status, &outcome))
        attempt->outcome = outcome;
    else if (code && spec->codes)
        attempt->outcome = spec->other;
    else if (spec->n_code_paths > 0 && !code)
        attempt->outcome = spec->rows_path && tree->format != spec->rows_format
                               ? HTTP_TRANSIENT
                               : spec->absent;
    else
        attempt->outcome = HTTP_OK;
    if (attempt->outcome == HTTP_OK && spec->rows_path &&
        tree->format != spec->rows_format) {
        attempt->outcome = HTTP_TRANSIENT;
        (void)err_set(err, ERR_PROTOCOL, "%s answered %s where %s was expected",
                      attempt->talk->shown, tree->format == REPLY_XML ? "XML" : "JSON",
                      spec->rows_format == REPLY_XML ? "XML" : "JSON");
        return;
    }
    if (attempt->outcome != HTTP_OK && attempt->outcome != HTTP_NO_DATA)
        (void)note_failure(attempt, tree, code, err);
}

/* A body that is no tree: right for a document, else only the status is left. */
static void
judge_bytes(struct http_attempt *attempt, const struct err *why, struct err *err)
{
    const struct reply_tree none = {0};
    enum http_outcome outcome;

    if (outcome_of_status(attempt->spec, attempt->reply.status, &outcome)) {
        attempt->outcome = outcome;
        (void)note_failure(attempt, &none, NULL, err);
    } else if (!wants_tree(attempt) || str_eq(attempt->spec->method, "HEAD") ||
               (attempt->spec->use == HTTP_USE_STEP &&
                attempt->spec->n_code_paths == 0)) {
        attempt->outcome = HTTP_OK;
    } else {
        attempt->outcome = HTTP_TRANSIENT;
        (void)err_set(err, ERR_PROTOCOL, "%s: %s", attempt->talk->shown, why->text);
    }
}

void
http_judge(struct http_attempt *attempt, struct err *err)
{
    struct http_reply *reply = &attempt->reply;
    struct reply_tree tree = {0};
    struct err why = {0};
    const char *retry_after = http_reply_field(reply, "Retry-After");
    int64_t seconds = 0;
    char room[48];
    bool document = !wants_tree(attempt);

    if (retry_after && str_to_i64(retry_after, &seconds) && seconds > 0)
        attempt->retry_after_ms = seconds > 86400 ? 86400000 : seconds * 1000;
    if (reply_tree_parse(buf_str(&reply->body), reply->body.len, &tree, &why) < 0) {
        judge_bytes(attempt, &why, err);
    } else {
        const char *code = code_of(attempt, &tree, room);
        enum http_outcome known;

        if (document && !(code && outcome_of_code(attempt->spec, code, &known)))
            judge_bytes(attempt, &why, err); /* a document that looks like data */
        else
            judge_tree(attempt, &tree, code, err);
    }
    if (attempt->outcome == HTTP_OK && document) {
        attempt->said->body = reply->body;
        reply->body = (struct buf){0};
    } else if (attempt->outcome == HTTP_OK) {
        attempt->said->tree = tree;
        tree = (struct reply_tree){0};
    }
    attempt->said->bytes = reply->body_bytes;
    http_strike_out(attempt,
                    err->text); /* some repeat the key, in whatever they send */
    http_strike_out(attempt, attempt->said->code);
    reply_tree_release(&tree);
}
