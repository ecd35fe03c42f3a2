/* What decisions were worth, by pairs: two accepted candidates whose code has the same decisions
 * but for one, which one of them has as the winner does and the other at its default. The ratio of
 * their times is an observation, not a model's; a decision without such a pair is not spoken of. A
 * decision's worth depends on the others, so of several pairs the median is told with its range. */
#include "search/evolve.h"
#include <math.h>
#include <stdlib.h>

#define LEAST_SHOWN 0.01 /* share of the time: less is within what clocks tell apart */

struct worth {
    size_t decision;
    double times, least, most;
    size_t pairs;
};

static bool is_accepted(const struct evolve_trial *t) {
    return t->submitted && t->settled && isfinite(t->time_s);
}

/* The accepted candidate that has these decisions; n: none. */
static size_t find_like(const struct evolve *e, const struct strategy *s) {
    size_t i = 0;
    while (i < e->n && !(is_accepted(&e->trials[i]) &&
                         strategy_equal(e->o.catalogue, &e->trials[i].aligned, s)))
        i++;
    return i;
}

/* The ratios of the pairs, the default's time over the other's; returns how many. */
static size_t find_ratios(const struct evolve *e, size_t decision, int64_t value, double *out) {
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++) {
        struct strategy other = e->trials[i].aligned;
        if (!is_accepted(&e->trials[i]) || other.value[decision] != value)
            continue;
        other.value[decision] = e->o.catalogue->decisions[decision].fallback;
        size_t like = find_like(e, &other);
        if (like < e->n)
            out[n++] = e->trials[like].time_s / e->trials[i].time_s;
    }
    return n;
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static int by_worth(const void *x, const void *y) {
    const struct worth *a = x, *b = y;
    if (a->times != b->times)
        return a->times > b->times ? -1 : 1;
    return a->decision < b->decision ? -1 : 1;
}

static bool find_worth(const struct evolve *e, const struct strategy *s, size_t decision,
                       double *room, struct worth *out) {
    int64_t value = s->value[decision];
    if (value == STRATEGY_UNSET || value == e->o.catalogue->decisions[decision].fallback)
        return false;
    size_t n = find_ratios(e, decision, value, room);
    if (n == 0)
        return false;
    qsort(room, n, sizeof *room, by_number);
    double median = n % 2 ? room[n / 2] : sqrt(room[n / 2 - 1] * room[n / 2]);
    *out = (struct worth){decision, median, room[0], room[n - 1], n};
    return !(fabs(median - 1) < LEAST_SHOWN);
}

static void print_worth(const struct evolve *e, const struct strategy *s, const struct worth *w,
                        struct buf *out) {
    const struct decision *d = &e->o.catalogue->decisions[w->decision];
    buf_printf(out, "%s%.*s=%lld %.2fx (", out->n ? ", " : "", STR_ARG(d->name),
               (long long)s->value[w->decision], w->times);
    if (w->pairs > 1)
        buf_printf(out, "%.2fx to %.2fx in %zu pairs)", w->least, w->most, w->pairs);
    else
        buf_puts(out, S("1 pair)"));
}

void evolve_worth(const struct evolve *e, size_t trial, struct buf *out) {
    const struct strategy *s = &e->trials[trial].aligned;
    struct worth list[STRATEGY_MAX_DECISIONS] = {0};
    double *room = mem_alloc((e->n + 1) * sizeof *room);
    size_t n = 0;
    for (size_t i = 0; i < e->o.catalogue->n; i++)
        n += find_worth(e, s, i, room, &list[n]);
    qsort(list, n, sizeof *list, by_worth);
    for (size_t i = 0; i < n; i++)
        print_worth(e, s, &list[i], out);
    mem_free(room);
}
