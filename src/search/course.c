#include "search/course.h"

#include <math.h>
#include <string.h>

#define IDEA_BYTES  200
#define WHERE_BYTES 360
#define LINE_BYTES  600
#define UNANSWERED  3 /* rounds */

/* Rounds without gain before the next stage. Work whose structure is nearly given settles sooner;
 * contractions and attention have more to choose from. */
static size_t patience(const struct course *c, enum stage stage) {
    static const unsigned char rounds[WORKLOAD_COUNT][STAGE_COUNT] = {
        [WORKLOAD_POINTWISE] = {1, 2, 2},     [WORKLOAD_REDUCTION] = {2, 2, 2},
        [WORKLOAD_NORMALISATION] = {2, 2, 2}, [WORKLOAD_SCAN] = {2, 2, 2},
        [WORKLOAD_WINDOW] = {2, 2, 2},        [WORKLOAD_CONTRACTION] = {3, 3, 2},
        [WORKLOAD_ATTENTION] = {3, 3, 2},     [WORKLOAD_LOSS] = {1, 2, 2},
        [WORKLOAD_GATHER] = {1, 2, 2},
    };
    return rounds[c->o.workload][stage];
}

void course_init(struct course *c, const struct course_options *o) {
    *c = (struct course){.o = *o, .best_s = INFINITY};
}

void course_release(struct course *c) {
    for (size_t i = 0; i < c->ntried; i++)
        mem_free(c->tried[i]);
}

static void look_at_limit(struct course *c) {
    if (c->floor_s / c->best_s >= c->o.stop_share)
        c->stopped = "limit";
}

void course_start(struct course *c, double time_s, double floor_s) {
    c->best_s = time_s;
    c->floor_s = floor_s;
    look_at_limit(c);
}

static void next_stage(struct course *c) {
    c->stale = 0;
    c->begun = false;
    if (c->stage == STAGE_PARAMETERS)
        c->stopped = "plateau";
    else
        c->stage++;
}

void course_begin_round(struct course *c, uint64_t left) {
    if (c->begun && c->stage != STAGE_PARAMETERS && left <= c->ends)
        next_stage(c);
    if (!c->begun)
        c->ends = c->stage == STAGE_PARAMETERS ? 0 : left / 2;
    c->begun = true;
    c->left = left;
}

bool course_share_left(const struct course *c, size_t *candidates) {
    *candidates = (size_t)(c->left - c->ends);
    return c->stage != STAGE_PARAMETERS && *candidates < course_rounds_left(c);
}

size_t course_rounds_left(const struct course *c) {
    return patience(c, c->stage) - c->stale;
}

size_t course_rounds_all(const struct course *c) {
    size_t n = course_rounds_left(c);
    for (int s = (int)c->stage + 1; s < STAGE_COUNT; s++)
        n += patience(c, (enum stage)s);
    return n;
}

bool course_gains(const struct course *c, double time_s) {
    return time_s < c->best_s * (1 - COURSE_GAIN);
}

bool course_facts(const struct course *c) {
    if (c->o.profiling == PROFILING_DELAYED)
        return c->stage > STAGE_STRUCTURE;
    return c->o.profiling == PROFILING_NOW;
}

/* ---- what was tried ---- */

static void remember(struct course *c, str line) {
    if (c->ntried == sizeof c->tried / sizeof *c->tried) {
        mem_free(c->tried[0]);
        memmove(c->tried, c->tried + 1, (c->ntried - 1) * sizeof *c->tried);
        c->ntried--;
        c->forgotten++;
    }
    char *copy = mem_alloc(line.n + 1);
    memcpy(copy, line.p, line.n);
    c->tried[c->ntried++] = copy;
}

static void put_no_gain(const struct course *c, double time_s, str where, struct buf *out) {
    buf_printf(out, "%.4g us instead of %.4g, ", time_s * 1e6, c->best_s * 1e6);
    if (time_s < c->best_s)
        buf_printf(out, "%.2g%% faster, less than the %g%% asked for; dropped",
                   100 * (1 - time_s / c->best_s), 100 * COURSE_GAIN);
    else
        buf_puts(out, S("no gain; dropped"));
    if (where.n)
        buf_printf(out, " (%.*s)", STR_ARG(str_cut(where, 0, WHERE_BYTES)));
}

static void put_end(const struct course *c, enum round_end end, double time_s, str why,
                    struct buf *out) {
    switch (end) {
    case ROUND_FASTER:
        buf_printf(out, "%.4g us instead of %.4g, kept", time_s * 1e6, c->best_s * 1e6);
        break;
    case ROUND_NO_GAIN:
        put_no_gain(c, time_s, why, out);
        break;
    case ROUND_REJECTED:
        buf_printf(out, "%.*s; dropped", STR_ARG(str_cut(why, 0, IDEA_BYTES)));
        break;
    case ROUND_SEEN:
        buf_puts(out, S("the same source as an earlier one"));
        break;
    case ROUND_UNANSWERED:
        buf_puts(out, S("no usable reply"));
        break;
    case ROUND_DONE:
        buf_puts(out, S("nothing left for this stage"));
        break;
    }
}

/* Without its full stop; a long one up to a word. */
static void put_idea(str idea, struct buf *out) {
    bool cut = idea.n > IDEA_BYTES;
    if (cut) {
        idea.n = IDEA_BYTES;
        while (idea.n && idea.p[idea.n] != ' ')
            idea.n--;
    }
    while (idea.n && strchr(" .,;:", idea.p[idea.n - 1]))
        idea.n--;
    buf_printf(out, "%.*s%s", STR_ARG(idea), cut ? " …" : "");
}

void course_tried(const struct course *c, struct buf *out) {
    if (c->forgotten)
        buf_printf(out, "- (%zu earlier ones)\n", c->forgotten);
    for (size_t i = 0; i < c->ntried; i++)
        buf_printf(out, "- %s\n", c->tried[i]);
}

/* ---- rounds ---- */

static void wear(struct course *c) {
    if (++c->stale >= patience(c, c->stage))
        next_stage(c);
}

void course_end_round(struct course *c, enum round_end end, double time_s, str idea, str why) {
    struct buf line;
    buf_init(&line, LINE_BYTES + IDEA_BYTES);
    buf_printf(&line, "%s: ", stage_name(c->stage));
    put_idea(idea, &line);
    buf_puts(&line, S(": "));
    put_end(c, end, time_s, why, &line);
    remember(c, buf_str(&line));
    buf_release(&line);
    c->round++;
    c->unanswered = end == ROUND_UNANSWERED ? c->unanswered + 1 : 0;
    if (end == ROUND_FASTER) {
        c->best_s = time_s;
        c->stale = 0;
        look_at_limit(c);
    } else if (end == ROUND_DONE) {
        next_stage(c);
    } else {
        wear(c);
    }
    if (c->unanswered == UNANSWERED)
        c->stopped = "no usable reply"; /* who cannot be understood is not asked for ever */
}
