/* The two charts of a run: how the best time fell, and every kernel under the roofline. */
#include "report/chart.h"
#include "report/run_page.h"

#include "eval/eval.h"

#include <math.h>

#define MANY 400 /* points: paler, so that crowds show */

enum { WIDTH = 640, HEIGHT = 400, LEFT = 78, RIGHT = 20, TOP = 40, BOTTOM = 54 };

static struct chart chart_of(struct page *p, const char *id, struct axis x, struct axis y) {
    struct chart c = {.out = &p->body,
                      .mem = p->mem,
                      .id = id,
                      .width = WIDTH,
                      .height = HEIGHT,
                      .x = x,
                      .y = y,
                      .points = json_array()};
    c.x.start = LEFT;
    c.x.end = WIDTH - RIGHT;
    c.y.start = HEIGHT - BOTTOM;
    c.y.end = TOP;
    return c;
}

static str plain_number(struct arena *a, double v) {
    return arena_printf(a, "%.4g", fabs(v) < 1e-9 ? 0 : v);
}

/* ---- the best time over time ---- */

/* When a candidate was decided, in seconds since the first one; its number where a run of an older
 * version does not say when. */
struct clock {
    bool known;
    double start;
};

static struct clock clock_of(const struct report_run *r) {
    struct clock c = {.known = r->n > 0, .start = INFINITY};
    for (size_t i = 0; i < r->n; i++) {
        c.known &= isfinite(r->candidates[i].decided_at);
        c.start = fmin(c.start, r->candidates[i].decided_at);
    }
    return c;
}

static double moment(const struct clock *c, const struct report_candidate *k) {
    return c->known ? k->decided_at - c->start : (double)k->ordinal;
}

static void draw_best(struct chart *c, const struct report_run *r, const struct clock *clock) {
    double *xs = mem_alloc((2 * r->n + 2) * sizeof *xs),
           *ys = mem_alloc((2 * r->n + 2) * sizeof *ys);
    double best = INFINITY;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct report_candidate *k = &r->candidates[i];
        if (!(k->time_s < best))
            continue;
        double x = fmax(moment(clock, k), n ? xs[n - 1] : 0); /* outcomes may arrive in any order */
        if (n) {
            xs[n] = x;
            ys[n++] = best;
        }
        best = k->time_s;
        xs[n] = x;
        ys[n++] = best;
    }
    if (n) {
        xs[n] = c->x.to;
        ys[n++] = best;
        chart_line(c, "line best", xs, ys, n);
    }
    mem_free(xs);
    mem_free(ys);
}

/* The words are below the line: kernels are above it, and the winner may be just above. */
static void draw_level(struct chart *c, const char *class_, const char *what, double time_s) {
    chart_line(c, class_, (double[]){c->x.from, c->x.to}, (double[]){time_s, time_s}, 2);
    chart_label(c, "note", "end", c->x.to, time_s, 0, 13,
                arena_printf(c->mem, "%s %.*s", what, STR_ARG(html_time(c->mem, time_s))));
}

/* The limit, and where a launch is a good part of it what is left of it for a kernel. */
static void draw_limits(struct chart *c, const struct report_run *r) {
    if (!(r->limit_s > 0))
        return;
    draw_level(c, "line limit", "limit", r->limit_s);
    if (r->gpu && r->gpu->launch_s > 0.5 * r->limit_s)
        draw_level(c, "line floor", "limit and an empty launch", r->limit_s + r->gpu->launch_s);
}

static str progress_words(const struct report_run *r, struct arena *a) {
    const struct report_candidate *w = &r->candidates[r->winner];
    return arena_printf(
        a, "%zu kernels, %zu of them accepted. The fastest takes %.*s; it is number %llu.", r->n,
        r->naccepted, STR_ARG(html_time(a, w->time_s)), (unsigned long long)w->ordinal);
}

void run_progress(struct page *p, const struct report_run *r) {
    struct clock clock = clock_of(r);
    struct axis x = {.from = 1,
                     .title =
                         clock.known ? "seconds since the first verdict" : "number of the kernel",
                     .label = plain_number};
    struct axis y = {
        .from = 1, .logarithmic = true, .title = "time of a kernel", .label = html_time_mark};
    axis_hold(&x, 0);
    for (size_t i = 0; i < r->n; i++) {
        axis_hold(&x, moment(&clock, &r->candidates[i]));
        axis_hold(&y, r->candidates[i].time_s);
    }
    axis_hold(&y, r->limit_s);
    axis_pad(&x, 0.03);
    axis_pad(&y, 0.12);
    struct chart c = chart_of(p, "progress", x, y);
    page_put(p, "<figure><figcaption><h3>Best time over time</h3></figcaption>");
    chart_begin(&c, S("Best time over time"), progress_words(r, p->mem));
    chart_points_begin(&c, r->n - r->naccepted > MANY ? "dots rejected many" : "dots rejected");
    for (size_t i = 0; i < r->n; i++)
        if (!isfinite(r->candidates[i].time_s))
            chart_point(&c, r->candidates[i].ordinal, moment(&clock, &r->candidates[i]), c.y.to);
    chart_points_end(&c);
    chart_points_begin(&c, r->naccepted > MANY ? "dots accepted many" : "dots accepted");
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->candidates[i].time_s))
            chart_point(&c, r->candidates[i].ordinal, moment(&clock, &r->candidates[i]),
                        r->candidates[i].time_s);
    chart_points_end(&c);
    draw_limits(&c, r);
    draw_best(&c, r, &clock);
    const struct report_candidate *w = &r->candidates[r->winner];
    chart_marker(&c, "winner", moment(&clock, w), w->time_s, 6);
    chart_end(&c);
    json_set(p->charts, c.id, c.points);
    page_put(p, "<p class=\"legend\"><span class=\"key accepted\">accepted</span>");
    if (r->naccepted < r->n)
        page_put(p, "<span class=\"key rejected\">rejected, at the top edge</span>");
    page_put(p, "<span class=\"key best\">best so far</span><span class=\"key winner\">the "
                "winner</span></p></figure>\n");
}

/* ---- the roofline ---- */

struct roofs {
    double bytes_s, flops_s; /* NAN: not known */
};

/* Both from the GPU's facts; without them the one that binds, from the recorded limit. */
static struct roofs roofs_of(const struct report_run *r) {
    struct roofs roofs = {NAN, NAN};
    if (r->gpu) {
        struct roofline limit = task_limit(r->gpu, r->inst);
        roofs.bytes_s = r->cost.compulsory_bytes / limit.memory_s;
        roofs.flops_s = r->cost.flops / limit.compute_s;
    } else if (r->limit_s > 0) {
        roofs.bytes_s = r->cost.compulsory_bytes / r->limit_s;
    }
    return roofs;
}

static double roof_at(const struct roofs *roofs, double intensity) {
    return fmin(isfinite(roofs->flops_s) ? roofs->flops_s : INFINITY, roofs->bytes_s * intensity);
}

/* By the bytes that the simulator counted, or else by those that the task needs. */
static double intensity_of(const struct report_run *r, const struct report_candidate *c) {
    return isfinite(c->dram_bytes) ? r->cost.flops / c->dram_bytes : r->cost.intensity;
}

static void draw_roofs(struct chart *c, const struct roofs *roofs) {
    double ridge = isfinite(roofs->flops_s) ? roofs->flops_s / roofs->bytes_s : INFINITY;
    double low = fmax(c->x.from, c->y.from / roofs->bytes_s);
    double knee = fmin(fmax(ridge, c->x.from), c->x.to);
    double xs[] = {low, knee, c->x.to};
    double ys[] = {roof_at(roofs, low), roof_at(roofs, knee), roof_at(roofs, c->x.to)};
    chart_line(c, "line roof", xs, ys, 3);
    if (low < knee) {
        double at = pow(low, 0.6) * pow(knee, 0.4);
        chart_label(c, "note", "end", at, roof_at(roofs, at), -8, -6,
                    arena_printf(c->mem, "memory %.*s",
                                 STR_ARG(html_quantity(c->mem, roofs->bytes_s, "B/s"))));
    }
    if (ridge < c->x.to)
        chart_label(c, "note", "end", c->x.to, roofs->flops_s, 0, -8,
                    arena_printf(c->mem, "arithmetic %.*s",
                                 STR_ARG(html_quantity(c->mem, roofs->flops_s, "FLOP/s"))));
}

static str flops_rate(struct arena *a, double v) {
    return html_quantity_mark(a, v, "");
}

static void roofline_words(struct page *p, const struct report_run *r, bool counted) {
    page_put(p, "<p class=\"legend\"><span class=\"key accepted\">accepted</span><span class=\"key "
                "winner\">the winner</span><span class=\"key task-limit\">the limit of the "
                "task</span></p>");
    html_elementf(&p->body, "p class=\"remark\"",
                  "Every kernel does the task's %.*s. Across: these over the bytes %s. Up: these "
                  "over the time of the kernel, launch included.",
                  STR_ARG(html_quantity(p->mem, r->cost.flops, "FLOP")),
                  counted ? "that the kernel moves to and from DRAM, as the simulator counts them"
                          : "that the task has to move; how many a kernel moves was not counted");
}

void run_roofline(struct page *p, const struct report_run *r) {
    bool counted = false;
    page_put(p, "<figure><figcaption><h3>Roofline</h3></figcaption>");
    struct roofs roofs = r->inst ? roofs_of(r) : (struct roofs){NAN, NAN};
    if (!r->inst || !(r->cost.flops > 0) || !(roofs.bytes_s > 0)) {
        html_element(&p->body, "p class=\"absent\"",
                     !r->inst ? S("There is no roofline: the run does not hold its task.")
                     : !(r->cost.flops > 0)
                         ? S("There is no roofline: the task does no floating-point arithmetic, so "
                             "its limit is the time that its bytes take.")
                         : S("There is no roofline: the run says neither its GPU nor a limit."));
        page_put(p, "</figure>\n");
        return;
    }
    struct axis x = {.from = 1,
                     .logarithmic = true,
                     .title = "arithmetic intensity, FLOP a byte",
                     .label = plain_number};
    struct axis y = {.from = 1, .logarithmic = true, .title = "FLOP/s", .label = flops_rate};
    for (size_t i = 0; i < r->n; i++) {
        const struct report_candidate *k = &r->candidates[i];
        if (!isfinite(k->time_s))
            continue;
        counted |= isfinite(k->dram_bytes);
        axis_hold(&x, intensity_of(r, k));
        axis_hold(&y, r->cost.flops / k->time_s);
    }
    axis_hold(&x, r->cost.intensity);
    axis_hold(&x, r->cost.intensity / 8);
    axis_hold(&x, fmin(isfinite(roofs.flops_s) ? 2 * roofs.flops_s / roofs.bytes_s : 0,
                       512 * r->cost.intensity));
    axis_hold(&y, roof_at(&roofs, r->cost.intensity));
    axis_hold(&y, roof_at(&roofs, x.to));
    axis_pad(&x, 0.04);
    axis_pad(&y, 0.1);
    struct chart c = chart_of(p, "roofline", x, y);
    const struct report_candidate *w = &r->candidates[r->winner];
    chart_begin(
        &c, S("Roofline"),
        arena_printf(p->mem,
                     "At %.3g FLOP a byte the limit of the task is %.*s; the winner reaches "
                     "%.*s.",
                     r->cost.intensity,
                     STR_ARG(html_quantity(p->mem, r->cost.flops / r->limit_s, "FLOP/s")),
                     STR_ARG(html_quantity(p->mem, r->cost.flops / w->time_s, "FLOP/s"))));
    draw_roofs(&c, &roofs);
    chart_points_begin(&c, r->naccepted > MANY ? "dots accepted many" : "dots accepted");
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->candidates[i].time_s))
            chart_point(&c, r->candidates[i].ordinal, intensity_of(r, &r->candidates[i]),
                        r->cost.flops / r->candidates[i].time_s);
    chart_points_end(&c);
    if (r->limit_s > 0)
        chart_marker(&c, "task-limit", r->cost.intensity, r->cost.flops / r->limit_s, 6);
    chart_marker(&c, "winner", intensity_of(r, w), r->cost.flops / w->time_s, 6);
    chart_end(&c);
    json_set(p->charts, c.id, c.points);
    roofline_words(p, r, counted);
    page_put(p, "</figure>\n");
}
