#include "report/chart.h"

#include <math.h>

#define TICKS_MOST 12
#define IN_PATH    16

void axis_hold(struct axis *x, double v) {
    if (!isfinite(v) || (x->logarithmic && !(v > 0)))
        return;
    bool first = x->from > x->to;
    x->from = first || v < x->from ? v : x->from;
    x->to = first || v > x->to ? v : x->to;
}

void axis_pad(struct axis *x, double share) {
    if (x->from > x->to)
        x->from = x->logarithmic ? 1 : 0, x->to = 10;
    if (x->logarithmic) {
        double times = pow(x->to / x->from, share);
        times = times < 1.15 ? 1.15 : times;
        x->from /= times;
        x->to *= times;
    } else {
        double more = (x->to - x->from) * share;
        x->to += more > 0 ? more : 1;
    }
}

double axis_at(const struct axis *x, double v) {
    double part = x->logarithmic ? log(v / x->from) / log(x->to / x->from)
                                 : (v - x->from) / (x->to - x->from);
    return x->start + part * (x->end - x->start);
}

static size_t linear_ticks(const struct axis *x, double *out, size_t most) {
    static const double steps[] = {1, 2, 5, 10};
    double span = x->to - x->from, base = pow(10, floor(log10(span / (double)most)));
    size_t n = 0, s = 0;
    while (s < 3 && span / (base * steps[s]) > (double)most - 1)
        s++;
    double step = base * steps[s];
    double first = ceil(x->from / step - 1e-9);
    for (; n < most && (first + (double)n) * step <= x->to * (1 + 1e-12); n++)
        out[n] = (first + (double)n) * step + 0.0; /* not -0 */
    return n;
}

/* Powers of ten, with 2 and 5 between them where there is room; of wide ranges every other power,
 * and so on; of narrow ones equal steps. */
static size_t log_ticks(const struct axis *x, double *out, size_t most) {
    static const double parts[] = {1, 2, 5};
    double decades = log10(x->to / x->from);
    size_t n = 0;
    if (decades < 0.7)
        return linear_ticks(x, out, most < 6 ? most : 6);
    bool between = decades * 3 <= (double)most;
    int every = between ? 1 : (int)ceil((decades + 1) / (double)most);
    int first = (int)floor(log10(x->from)), last = (int)ceil(log10(x->to));
    for (int p = first; p <= last; p++)
        for (size_t k = 0; k < (between ? 3 : 1); k++) {
            double v = parts[k] * pow(10, p);
            if ((p - first) % every == 0 && v >= x->from && v <= x->to && n < most)
                out[n++] = v;
        }
    return n;
}

size_t axis_ticks(const struct axis *x, double *out, size_t most) {
    return x->logarithmic ? log_ticks(x, out, most) : linear_ticks(x, out, most);
}

/* ---- the frame ---- */

static void draw_axis(struct chart *c, const struct axis *x, bool across) {
    double ticks[TICKS_MOST];
    size_t n = axis_ticks(x, ticks, across ? 8 : 7);
    for (size_t i = 0; i < n; i++) {
        double at = axis_at(x, ticks[i]);
        if (across)
            buf_printf(c->out, "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", at, c->y.start,
                       c->y.end);
        else
            buf_printf(c->out, "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", c->x.start, at,
                       c->x.end);
        buf_printf(c->out, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                   across ? at : c->x.start - 8, across ? c->y.start + 20 : at + 4,
                   across ? "middle" : "end");
        html_text(c->out, x->label(c->mem, ticks[i]));
        buf_puts(c->out, S("</text>"));
    }
    if (across)
        buf_printf(c->out, "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                   x->end, c->height - 6);
    else
        buf_printf(c->out, "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\">", 2.0, x->end - 12);
    html_text(c->out, str_view(x->title));
    buf_puts(c->out, S("</text>"));
}

void chart_begin(struct chart *c, str title, str text) {
    buf_printf(c->out,
               "<svg id=\"%s\" class=\"chart\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
               "aria-labelledby=\"%s-title %s-text\"><title id=\"%s-title\">",
               c->id, c->width, c->height, c->id, c->id, c->id);
    html_text(c->out, title);
    buf_printf(c->out, "</title><desc id=\"%s-text\">", c->id);
    html_text(c->out, text);
    buf_puts(c->out, S("</desc>"));
    draw_axis(c, &c->y, false);
    draw_axis(c, &c->x, true);
    buf_printf(c->out, "<path class=\"frame\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", c->x.start, c->y.end,
               c->y.start, c->x.end);
}

void chart_end(struct chart *c) {
    buf_puts(c->out, S("<circle class=\"cursor\" r=\"8\"/></svg>"));
}

/* ---- what is in it ---- */

/* Points of one path cover each other without adding up; of several they show crowds. */
void chart_points_begin(struct chart *c, const char *class_) {
    c->class_ = class_;
    c->in_path = 0;
    buf_printf(c->out, "<path class=\"%s\" d=\"", class_);
}

void chart_point(struct chart *c, uint64_t number, double x, double y) {
    double px = axis_at(&c->x, x), py = axis_at(&c->y, y);
    if (c->in_path++ == IN_PATH) {
        chart_points_end(c);
        chart_points_begin(c, c->class_);
        c->in_path = 1;
    }
    buf_printf(c->out, "M%.1f %.1fh.01", px, py);
    if (c->points) {
        json_push_i64(c->points, (int64_t)number);
        json_push_f64(c->points, round(px * 10) / 10);
        json_push_f64(c->points, round(py * 10) / 10);
    }
}

void chart_points_end(struct chart *c) {
    buf_puts(c->out, S("\"/>"));
}

void chart_line(struct chart *c, const char *class_, const double *xs, const double *ys, size_t n) {
    buf_printf(c->out, "<path class=\"%s\" d=\"", class_);
    for (size_t i = 0; i < n; i++)
        buf_printf(c->out, "%c%.1f %.1f", i ? 'L' : 'M', axis_at(&c->x, xs[i]),
                   axis_at(&c->y, ys[i]));
    buf_puts(c->out, S("\"/>"));
}

void chart_label(struct chart *c, const char *class_, const char *anchor, double x, double y,
                 double dx, double dy, str text) {
    buf_printf(c->out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class_,
               axis_at(&c->x, x) + dx, axis_at(&c->y, y) + dy, anchor);
    html_text(c->out, text);
    buf_puts(c->out, S("</text>"));
}

void chart_marker(struct chart *c, const char *class_, double x, double y, double radius) {
    buf_printf(c->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", class_,
               axis_at(&c->x, x), axis_at(&c->y, y), radius);
}
