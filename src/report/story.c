#include "report/story.h"

#include "agent/agent.h"

#include <math.h>
#include <stdlib.h>

static bool is_accepted(const struct report_candidate *c) {
    return isfinite(c->time_s);
}

static size_t decisions_apart(const struct report_run *r, const struct strategy *a,
                              const struct strategy *b) {
    struct strategy_change all[STRATEGY_MAX_CHANGES];
    return strategy_changes(r->catalogue, a, b, all);
}

/* Of the accepted candidates before `end`: the nearest to s, the faster of two. */
static size_t nearest_to(const struct report_run *r, const struct strategy *s, size_t end,
                         size_t *apart) {
    size_t best = RUN_NONE;
    for (size_t i = 0; i < end; i++) {
        const struct report_candidate *c = &r->candidates[i];
        if (!is_accepted(c) || !c->has_decisions)
            continue;
        size_t n = decisions_apart(r, s, &c->decisions);
        if (best == RUN_NONE || n < *apart ||
            (n == *apart && c->time_s < r->candidates[best].time_s)) {
            best = i;
            *apart = n;
        }
    }
    return best;
}

/* But for decisions that change nothing in it: the archive has those as the code has them. */
static bool is_plain(const struct report_run *r, const struct ground *g,
                     const struct strategy *plain, const struct report_candidate *c) {
    if (!is_accepted(c) || !c->has_decisions)
        return false;
    for (size_t d = 0; d < r->catalogue->n; d++)
        if (c->decisions.value[d] != plain->value[d] &&
            (strategy_matters(r->catalogue, g, plain, d) ||
             strategy_matters(r->catalogue, g, &c->decisions, d)))
            return false;
    return true;
}

size_t story_plain(const struct report_run *r) {
    struct briefing b;
    struct strategy plain;
    struct err ignored;
    if (!r->inst || !r->gpu || !briefing_make(r->inst, r->catalogue, r->gpu, &b, &ignored))
        return RUN_NONE;
    strategy_fallback(r->catalogue, &b.ground, &plain);
    for (size_t i = 0; i < r->n; i++)
        if (is_plain(r, &b.ground, &plain, &r->candidates[i]))
            return i;
    return RUN_NONE;
}

/* ---- lineage ---- */

static size_t faster_parent(const struct report_run *r, const struct report_candidate *c) {
    size_t best = c->parents[0];
    for (size_t i = 1; i < c->nparents; i++)
        if (r->candidates[c->parents[i]].time_s < r->candidates[best].time_s)
            best = c->parents[i];
    return best;
}

static struct story_step step_to(const struct report_run *r, size_t at, size_t plain) {
    const struct report_candidate *c = &r->candidates[at];
    size_t apart = 0;
    struct story_step s = {at, RUN_NONE, LINK_NONE};
    if (c->nparents) {
        s.from = faster_parent(r, c);
        s.link = str_is(c->step, "repair") ? LINK_REPAIR : LINK_PARENT;
    } else if (str_is(c->step, "credit") && c->has_decisions) {
        s.from = nearest_to(r, &c->decisions, at, &apart);
        s.link = LINK_NEAREST;
    } else if (plain != RUN_NONE && plain != at) {
        s.from = plain;
        s.link = LINK_PLAIN;
    }
    if (s.link != LINK_PLAIN && (s.from == RUN_NONE || s.from >= at))
        s = (struct story_step){at, RUN_NONE, LINK_NONE}; /* nobody descends from what came later */
    return s;
}

size_t story_lineage(const struct report_run *r, size_t plain, struct story_step out[STORY_MOST]) {
    size_t n = 0;
    for (size_t at = r->winner; at != RUN_NONE && n < STORY_MOST;) {
        out[n] = step_to(r, at, plain);
        at = out[n].link == LINK_PLAIN ? RUN_NONE : out[n].from;
        n++;
    }
    for (size_t i = 0; i < n / 2; i++) {
        struct story_step s = out[i];
        out[i] = out[n - 1 - i];
        out[n - 1 - i] = s;
    }
    return n;
}

/* ---- worth ---- */

/* A candidate without one of its decisions: those with the same `rest` make pairs. */
struct partner {
    struct strategy rest; /* first: strategy_order looks at it */
    int64_t value;
    double time_s;
};

struct ratio {
    size_t decision;
    int64_t other;
    double times;
};
struct ratios {
    struct ratio *list;
    size_t n, cap;
};

static void add_pairs(const struct partner *p, size_t n, size_t decision, int64_t winners,
                      struct ratios *out) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; p[i].value == winners && k < n; k++) {
            if (p[k].value == winners)
                continue;
            out->list = mem_grow(out->list, &out->cap, out->n + 1, sizeof *out->list);
            out->list[out->n++] = (struct ratio){decision, p[k].value, p[k].time_s / p[i].time_s};
        }
}

static void pairs_of(const struct report_run *r, size_t decision, struct partner *room,
                     struct ratios *out) {
    int64_t winners = r->candidates[r->winner].decisions.value[decision];
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct report_candidate *c = &r->candidates[i];
        if (!is_accepted(c) || !c->has_decisions || c->decisions.value[decision] == STRATEGY_UNSET)
            continue;
        room[n] = (struct partner){c->decisions, c->decisions.value[decision], c->time_s};
        room[n++].rest.value[decision] = STRATEGY_UNSET;
    }
    if (n)
        qsort(room, n, sizeof *room, strategy_order);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && strategy_order(&room[i], &room[end]) == 0;)
            end++;
        add_pairs(&room[i], end - i, decision, winners, out);
    }
}

static int by_value(const void *x, const void *y) {
    const struct ratio *a = x, *b = y;
    if (a->decision != b->decision)
        return a->decision < b->decision ? -1 : 1;
    if (a->other != b->other)
        return a->other < b->other ? -1 : 1;
    return (a->times > b->times) - (a->times < b->times);
}

static int by_worth(const void *x, const void *y) {
    const struct story_worth *a = x, *b = y;
    if (a->times != b->times)
        return a->times > b->times ? -1 : 1;
    if (a->decision != b->decision)
        return a->decision < b->decision ? -1 : 1;
    return (a->other > b->other) - (a->other < b->other);
}

static struct story_worth summary(const struct ratio *p, size_t n) {
    double median = n % 2 ? p[n / 2].times : sqrt(p[n / 2 - 1].times * p[n / 2].times);
    return (struct story_worth){p->decision, p->other, median, p[0].times, p[n - 1].times, n};
}

struct story_worth *story_worth(const struct report_run *r, struct arena *a, size_t *n) {
    struct ratios all = {0};
    *n = 0;
    if (report_has_winner(r) && r->candidates[r->winner].has_decisions) {
        struct partner *room = mem_alloc((r->n + 1) * sizeof *room);
        for (size_t d = 0; d < r->catalogue->n; d++)
            if (r->candidates[r->winner].decisions.value[d] != STRATEGY_UNSET)
                pairs_of(r, d, room, &all);
        mem_free(room);
    }
    struct story_worth *out = arena_array(a, struct story_worth, all.n + 1);
    if (all.n)
        qsort(all.list, all.n, sizeof *all.list, by_value);
    for (size_t i = 0, end; i < all.n; i = end) {
        for (end = i + 1; end < all.n && all.list[end].decision == all.list[i].decision &&
                          all.list[end].other == all.list[i].other;)
            end++;
        out[(*n)++] = summary(&all.list[i], end - i);
    }
    if (*n)
        qsort(out, *n, sizeof *out, by_worth);
    mem_free(all.list);
    return out;
}

str story_value(const struct catalogue *c, size_t decision, int64_t value, struct arena *a) {
    const struct decision *d = &c->decisions[decision];
    if (value == STRATEGY_UNSET)
        return S("–");
    for (size_t i = 0; d->names && i < d->nvalues; i++)
        if (d->values[i] == value)
            return d->names[i];
    return arena_printf(a, "%lld", (long long)value);
}
