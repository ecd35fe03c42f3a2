/* Charts as inline SVG: axes with ticks that people read, points and lines. Colours and sizes of
 * letters are the style sheet's, by class, so that a chart follows the page into dark mode and onto
 * paper. Points of one kind are a few paths, however many they are; the page's script finds the one
 * that is nearest to the pointer from the list in the page's data. Private to the room. */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include "report/html.h"

struct axis {
    double from, to; /* values at both ends */
    bool logarithmic;
    double start, end; /* places of the ends, in units of the drawing */
    const char *title; /* with its unit */
    str (*label)(struct arena *a, double value);
};

struct chart {
    struct buf *out;
    struct arena *mem;
    const char *id;
    double width, height;
    struct axis x, y;
    const char *class_; /* of the points under way */
    size_t in_path;
    json *points; /* [number, x, y, …] for the script; NULL: not wanted */
};

/* Widens the range until it holds v; a range that holds nothing yet has from > to. */
void axis_hold(struct axis *x, double v);
/* Some air at both ends, by this share of the range. */
void axis_pad(struct axis *x, double share);
double axis_at(const struct axis *x, double v);
/* Values to mark, ascending: at most `most`. */
size_t axis_ticks(const struct axis *x, double *out, size_t most);

/* The frame, grid, ticks and titles. `title` and `text` are read out by screen readers. */
void chart_begin(struct chart *c, str title, str text);
void chart_end(struct chart *c);

/* Points of one kind: begin, any number of them, end. `number` is what the script calls it by. */
void chart_points_begin(struct chart *c, const char *class_);
void chart_point(struct chart *c, uint64_t number, double x, double y);
void chart_points_end(struct chart *c);
/* A line by its corners in values. */
void chart_line(struct chart *c, const char *class_, const double *xs, const double *ys, size_t n);
/* Text near a point; `anchor` is start, middle or end; dx and dy in units of the drawing. */
void chart_label(struct chart *c, const char *class_, const char *anchor, double x, double y,
                 double dx, double dy, str text);
/* A marker that is larger than points: class says how it looks. */
void chart_marker(struct chart *c, const char *class_, double x, double y, double radius);

#endif
