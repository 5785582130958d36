#include "cli/bar.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/strs.h"
#include "base/utf8.h"
#include "cli/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_CELLS     24
#define WIDTH_DEFAULT 80
#define WIDTH_PLAIN   200
#define LINE_BYTES    4096
#define GAP_US        US_PER_S

struct bar_view
bar_view_of(const json_t *request, int64_t elapsed_s)
{
    const json_t *progress = json_object_get(request, "progress");
    bool queued = str_eq(json_text_of(request, "status"), "QUEUED");

    return (struct bar_view){
        .status = json_text_of(request, "status"),
        .where =
            queued ? json_text_of(request, "lane") : json_text_of(progress, "message"),
        .percent = json_count_of(progress, "percent"),
        .done = json_count_of(progress, "done"),
        .total = json_count_of(progress, "total"),
        .eta_s = json_count_of(progress, "etaSeconds"),
        .elapsed_s = elapsed_s,
        .ending = json_is_true(json_object_get(request, "cancelRequested")) ||
                  json_is_true(json_object_get(request, "stopRequested")),
    };
}

static void
add_cells(struct buf *buf, int64_t percent)
{
    int64_t full = percent * BAR_CELLS / 100;

    buf_add_char(buf, '[');
    for (int64_t i = 0; i < BAR_CELLS; i++)
        buf_add_char(buf, i < full ? '#' : i == full ? '>' : '-');
    buf_addf(buf, "] %3" PRId64 "%%  ", percent);
}

static void
add_running(const struct bar_view *view, struct arena *arena, struct buf *buf)
{
    if (view->percent >= 0)
        add_cells(buf, view->percent > 100 ? 100 : view->percent);
    if (view->done >= 0)
        buf_add_str(buf, print_count(arena, view->done));
    if (view->done >= 0 && view->total >= 0)
        buf_addf(buf, " of %s", print_count(arena, view->total));
    buf_addf(buf, "%s%s", view->done >= 0 ? " rows  " : "running  ",
             print_span(arena, view->elapsed_s));
    if (view->eta_s >= 0)
        buf_addf(buf, "  ETA %s", print_span(arena, view->eta_s));
    if (view->ending)
        buf_add_str(buf, "  ending");
    if (!str_empty(view->where))
        buf_add_str(buf, "  ");
    print_escape(buf, view->where ? view->where : "");
}

/* Cut at a whole character so that no line wraps. */
static void
cut_to(struct buf *buf, size_t start, int width)
{
    while (buf->len > start && print_width(buf->data + start) > (size_t)width) {
        buf->len =
            start + utf8_cut(buf->data + start, buf->len - start, buf->len - start - 1);
        buf->data[buf->len] = '\0';
    }
}

void
bar_line(const struct bar_view *view, int width, struct buf *buf)
{
    scoped(arena_release) struct arena arena = {0};
    size_t start = buf->len;

    if (str_eq(view->status, "RUNNING"))
        add_running(view, &arena, buf);
    else if (str_eq(view->status, "QUEUED"))
        buf_addf(buf, "waiting in lane %s  %s", view->where,
                 print_span(&arena, view->elapsed_s));
    else
        buf_add_str(buf, view->status);
    cut_to(buf, start, width);
}

/* --- on stderr --- */

static int
terminal_width(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 20)
        return size.ws_col - 1;
    return WIDTH_DEFAULT - 1;
}

void
bar_init(struct bar *bar, bool quiet)
{
    const char *term = getenv("TERM");

    *bar = (struct bar){.on = !quiet,
                        .terminal = isatty(STDERR_FILENO) && !str_eq(term, "dumb"),
                        .start_us = clock_mono_us(clock_real())};
}

void
bar_hide(struct bar *bar)
{
    if (bar->on && bar->terminal && bar->shown_us)
        fputs("\r\033[K", stderr);
    bar->shown_us = 0;
}

void
bar_release(struct bar *bar)
{
    bar_hide(bar);
    free(bar->last);
    bar->last = NULL;
}

void
bar_show(struct bar *bar, const json_t *request)
{
    scoped(buf_release) struct buf buf = {0};
    int64_t now_us = clock_mono_us(clock_real());
    struct bar_view view = bar_view_of(request, (now_us - bar->start_us) / US_PER_S);

    if (!bar->on || str_eq(view.status, "DONE") || str_eq(view.status, "FAILED"))
        return; /* the end is told on stdout */
    buf_init(&buf, LINE_BYTES);
    bar_line(&view, bar->terminal ? terminal_width() : WIDTH_PLAIN, &buf);
    if (bar->terminal) {
        fprintf(stderr, "\r%s\033[K", buf_str(&buf));
    } else {
        /* Time alone is no news where lines stay. */
        char *said = NULL;

        view.elapsed_s = 0;
        view.eta_s = -1;
        if (asprintf(&said, "%s %" PRId64 " %s", view.status, view.done,
                     view.where ? view.where : "") < 0)
            return;
        if (str_eq(said, bar->last) ||
            (bar->shown_us && now_us - bar->shown_us < GAP_US)) {
            free(said);
            return;
        }
        free(bar->last);
        bar->last = said;
        fprintf(stderr, "%s\n", buf_str(&buf));
    }
    bar->shown_us = now_us;
}
