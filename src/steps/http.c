/* One call. Made again when a run is killed between the call and its checkpoint. */
#include "base/err.h"
#include "io/call_text.h"
#include "io/http_talk.h"
#include "steps/once.h"

int
http_step_validate(const json_t *def, struct err *err)
{
    static const char *const keys[] = {"name", "http"};
    scoped(http_spec_release) struct http_spec spec = {0};
    int r = step_keys_check(def, keys, array_len(keys), err);

    return r < 0 ? r
                 : http_spec_read(json_object_get(def, "http"), "http", HTTP_USE_STEP,
                                  &spec, err);
}

int
http_step_run(struct step_ctx *ctx, struct step_result *ret_result, struct err *err)
{
    scoped(http_spec_release) struct http_spec spec = {0};
    scoped(http_link_release) struct http_link link = {0};
    scoped(http_talk_release) struct http_talk talk = {0};
    scoped(http_said_release) struct http_said said = {0};
    struct call_names names = {.io = ctx->io};
    struct step_counters counters = {.read = 1, .written = 1};
    int r = http_spec_read(json_object_get(ctx->def, "http"), "http", HTTP_USE_STEP,
                           &spec, err);

    if (r < 0)
        return r;
    http_link_init(&link, ctx->io, &spec);
    r = http_talk_init(&talk, &link, err);
    if (r == 0)
        r = http_talk_call(&talk, &names, NULL, NULL, &said, err);
    if (r == 0)
        r = step_of_call(ctx, &said, err);
    if (r == 0)
        r = step_done(ctx, &counters, NULL, NULL, err);
    if (r != 0)
        return r;
    *ret_result = (struct step_result){.counters = counters};
    return STEP_COMPLETED;
}
