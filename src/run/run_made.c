/* A file that an earlier execution finished but did not come to publish. */
#include "run/run_private.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/strs.h"
#include "io/formats.h"
#include "io/template.h"
#include "run/result_store.h"

#include <string.h>
#include <sys/stat.h>

int
run_read_finished(const char *writer_state, int64_t *ret_rows, int64_t *ret_bytes,
                  struct err *err)
{
    scoped(json_drop) json_t *state = NULL;
    bool finished = false;
    int r = 0;

    if (!writer_state)
        return 0;
    r = json_parse(writer_state, strlen(writer_state), JSON_DEPTH_MAX, &state, err);
    if (r == 0)
        r = json_get_bool(state, "finished", &finished, err);
    if (r == 0)
        r = json_get_i64(state, "rows", ret_rows, err);
    if (r == 0)
        r = json_get_i64(state, "bytes", ret_bytes, err);
    return r < 0 ? r : r == JSON_FOUND && finished;
}

static int
name_it(struct run *run, const json_t *write, struct step_result *made, struct err *err)
{
    const char *file = json_string_value(json_object_get(write, "file"));
    scoped(buf_release) struct buf name = {0};
    int r;

    buf_init(&name, sizeof(made->name) - 1);
    r = template_file_name(file ? file : "", run->params, &name, err);
    if (r == 0)
        (void)str_copy(made->name, sizeof(made->name), buf_str(&name));
    return r;
}

int
run_made_before(struct run *run, const json_t *def,
                const struct batch_step_started *before, struct step_result *ret_made,
                struct err *err)
{
    const char *effect = step_effect(def);
    const json_t *write = json_object_get(def, "write");
    const struct writer_kind *kind = NULL;
    struct step_result made = {.rows = -1, .bytes = -1};
    struct stat st;
    int r;

    if (!effect || strcmp(effect, format_effect_name(IO_EFFECT_FILE)) != 0)
        return RUN_MADE;
    r = run_read_finished(before->point.writer_state, &made.rows, &made.bytes, err);
    if (r <= 0)
        return r < 0 ? r : RUN_MADE_GONE;
    r = result_store_part(run->env->results, run->instance_id, run->step_name,
                          before->previous_token, made.part_path,
                          sizeof(made.part_path), err);
    if (r == 0)
        r = format_choose_writer(write, run->params, &kind, err);
    if (r == 0)
        r = name_it(run, write, &made, err);
    if (r < 0)
        return r;
    if (stat(made.part_path, &st) < 0 || st.st_size != made.bytes)
        return RUN_MADE_GONE;
    made.content_type = kind ? kind->content_type : NULL;
    *ret_made = made;
    return RUN_MADE;
}
