#include "search/credit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NOISE       0.003 /* of the process's variance: what measuring adds */
#define SCALE_LEAST 1e-6  /* variance of times that are all alike */
#define SMOOTH      4.0   /* relevances are taken so many times for the prior: it stays local */
#define PRIOR_LIGHT 0.05  /* weight of precedents under which the prior says little */
#define RHO_FIRST   4.0   /* observations' worth of believing the prior as it is */
#define LEARN_FROM  6     /* observations */
#define STEP_LEAST  0.3   /* of a decision's range: what any other value differs */

static const double relevances[] = {0.03, 0.1, 0.3, 1.0, 2.5};
enum { RELEVANCES = sizeof relevances / sizeof *relevances };

static float rank_at(const struct decision *d, int64_t value) {
    size_t rank = 0;
    while (rank < d->nvalues && d->values[rank] != value)
        rank++;
    return rank == d->nvalues ? -1 : d->nvalues < 2 ? 0 : (float)rank / (float)(d->nvalues - 1);
}

static struct place place_of(const struct credit *c, const struct strategy *s) {
    struct place p = {0};
    for (size_t i = 0; i < c->nused; i++) {
        const struct decision *d = &c->catalogue->decisions[c->used[i]];
        p.at[i] = rank_at(d, s->value[c->used[i]]);
        for (size_t k = 0; k < s->nown; k++)
            if (s->own[k].decision == c->used[i])
                p.own[p.nown++] =
                    (struct own_place){(uint16_t)i, s->own[k].step, rank_at(d, s->own[k].value)};
    }
    return p;
}

static size_t steps_with(const struct catalogue *c, const struct ground *g, size_t decision) {
    size_t n = 0;
    for (size_t step = 1; step <= g->nsteps; step++)
        n += strategy_step_has(c, g, step, decision);
    return n ? n : 1;
}

void credit_init(struct credit *c, const struct catalogue *catalogue, const struct ground *g,
                 const double *relevance, const struct precedent *p, size_t n) {
    *c = (struct credit){.catalogue = catalogue, .precedents = p, .nprecedents = n, .rho = 1};
    for (size_t i = 0; i < catalogue->n; i++)
        if (relevance[i] > 0 && catalogue->decisions[i].nvalues > 1) {
            c->used[c->nused] = i;
            c->steps[c->nused] = steps_with(catalogue, g, i);
            c->relevance[c->nused++] = relevance[i];
        }
    c->precedent_at = mem_alloc((n + 1) * sizeof *c->precedent_at);
    for (size_t i = 0; i < n; i++)
        c->precedent_at[i] = place_of(c, &p[i].strategy);
}

void credit_release(struct credit *c) {
    mem_free(c->precedent_at);
    mem_free(c->at);
    mem_free(c->y);
    mem_free(c->prior);
    mem_free(c->factor);
    mem_free(c->alpha);
    mem_free(c->space);
}

/* ---- likeness ---- */

/* Of one decision: 0 the same … 1 opposite ends, or in one of them only. */
static double differs(float x, float y) {
    if (x == y)
        return 0;
    return x < 0 || y < 0 ? 1 : STEP_LEAST + (1 - STEP_LEAST) * fabsf(x - y);
}

/* How much more, or less, x and y differ because of what single steps have for themselves: both
 * lists are gone through side by side, each step that is in one of them once. */
static double own_differs(const struct credit *c, const struct place *x, const struct place *y) {
    double sum = 0;
    for (size_t i = 0, k = 0; i < x->nown || k < y->nown;) {
        const struct own_place *a = i < x->nown ? &x->own[i] : NULL;
        const struct own_place *b = k < y->nown ? &y->own[k] : NULL;
        bool take_a = a && (!b || a->decision < b->decision ||
                            (a->decision == b->decision && a->step <= b->step));
        bool take_b = b && (!take_a || (a->decision == b->decision && a->step == b->step));
        size_t d = take_a ? a->decision : b->decision;
        float here = take_a ? a->at : x->at[d], there = take_b ? b->at : y->at[d];
        sum += c->relevance[d] * (differs(here, there) - differs(x->at[d], y->at[d])) /
               (double)c->steps[d];
        i += take_a;
        k += take_b;
    }
    return sum;
}

static double likeness(const struct credit *c, const struct place *x, const struct place *y,
                       double times) {
    double sum = 0;
    for (size_t i = 0; i < c->nused; i++)
        if (x->at[i] != y->at[i])
            sum += c->relevance[i] * differs(x->at[i], y->at[i]);
    if (x->nown || y->nown)
        sum += own_differs(c, x, y);
    return exp(-times * sum);
}

/* The precedents' mean near a strategy, drawn to 0 where there are few. */
static double prior_of(const struct credit *c, const struct place *s) {
    double sum = 0, weight = PRIOR_LIGHT;
    for (size_t i = 0; i < c->nprecedents; i++) {
        double w = c->precedents[i].weight * likeness(c, s, &c->precedent_at[i], SMOOTH);
        sum += w * c->precedents[i].log_time;
        weight += w;
    }
    return sum / weight;
}

/* ---- observations ---- */

void credit_add(struct credit *c, const struct strategy *s, double log_time) {
    c->at = mem_grow(c->at, &c->cap, c->n + 1, sizeof *c->at);
    c->y = mem_grow(c->y, &c->cap_y, c->n + 1, sizeof *c->y);
    c->prior = mem_grow(c->prior, &c->cap_prior, c->n + 1, sizeof *c->prior);
    c->at[c->n] = place_of(c, s);
    c->y[c->n] = log_time;
    c->prior[c->n] = prior_of(c, &c->at[c->n]);
    c->n++;
}

void credit_drop(struct credit *c, size_t keep) {
    BUG_IF(keep > c->n);
    c->n = keep;
    c->factored = c->factored < keep ? c->factored : keep;
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

void credit_forget(struct credit *c, size_t keep) {
    if (c->n <= keep)
        return;
    double *sorted = mem_alloc(c->n * sizeof *sorted);
    memcpy(sorted, c->y, c->n * sizeof *sorted);
    qsort(sorted, c->n, sizeof *sorted, by_number);
    double last = sorted[keep - 1];
    size_t n = 0;
    for (size_t i = 0; i < c->n && n < keep; i++)
        if (c->y[i] <= last) {
            c->at[n] = c->at[i];
            c->y[n] = c->y[i];
            c->prior[n++] = c->prior[i];
        }
    c->n = n;
    c->factored = 0;
    mem_free(sorted);
}

/* ---- the process ---- */

/* A further row of the lower triangle. The diagonal holds noise, so it is positive definite. */
static void factor_row(struct credit *c, size_t i) {
    double *row = &c->factor[i * (i + 1) / 2];
    for (size_t j = 0; j <= i; j++) {
        const double *other = &c->factor[j * (j + 1) / 2];
        double sum = i == j ? 1 + NOISE : likeness(c, &c->at[i], &c->at[j], 1);
        for (size_t k = 0; k < j; k++)
            sum -= row[k] * other[k];
        row[j] = j < i ? sum / other[j] : sqrt(fmax(sum, NOISE * 1e-3));
    }
}

static void solve_lower(const double *m, size_t n, double *v) {
    for (size_t i = 0; i < n; i++) {
        const double *row = &m[i * (i + 1) / 2];
        for (size_t k = 0; k < i; k++)
            v[i] -= row[k] * v[k];
        v[i] /= row[i];
    }
}

static void solve_upper(const double *m, size_t n, double *v) {
    for (size_t i = n; i-- > 0;) {
        v[i] /= m[i * (i + 1) / 2 + i];
        for (size_t k = 0; k < i; k++)
            v[k] -= m[i * (i + 1) / 2 + k] * v[i];
    }
}

/* How far this task's times follow the prior, and what is left around which mean. */
static void weigh_prior(struct credit *c) {
    double y = 0, p = 0, same = 0, own = 0;
    for (size_t i = 0; i < c->n; i++) {
        y += c->y[i] / (double)c->n;
        p += c->prior[i] / (double)c->n;
    }
    for (size_t i = 0; i < c->n; i++) {
        same += (c->y[i] - y) * (c->prior[i] - p);
        own += (c->prior[i] - p) * (c->prior[i] - p);
    }
    double first = c->n ? RHO_FIRST * (own + 1e-4) / (double)c->n : 1;
    c->rho = fmax(0, (same + first) / (own + first));
    c->mean = y - c->rho * p;
}

/* Residuals solved for; minus twice the logarithm of the likelihood, up to a constant. */
static double solve(struct credit *c) {
    size_t n = c->n;
    double logs = 0, fit = 0;
    for (; c->factored < n; c->factored++)
        factor_row(c, c->factored);
    for (size_t i = 0; i < n; i++)
        c->alpha[i] = c->y[i] - c->mean - c->rho * c->prior[i];
    solve_lower(c->factor, n, c->alpha);
    for (size_t i = 0; i < n; i++) {
        fit += c->alpha[i] * c->alpha[i];
        logs += 2 * log(c->factor[i * (i + 1) / 2 + i]);
    }
    c->scale = fmax(fit / (double)(n ? n : 1), SCALE_LEAST);
    return (double)n * log(c->scale) + logs;
}

void credit_settle(struct credit *c) {
    c->factor = mem_grow(c->factor, &c->cap_factor, c->n * (c->n + 1) / 2 + 1, sizeof *c->factor);
    c->alpha = mem_grow(c->alpha, &c->cap_alpha, c->n + 1, sizeof *c->alpha);
    c->space = mem_grow(c->space, &c->cap_space, c->n + 1, sizeof *c->space);
    weigh_prior(c);
    solve(c);
    solve_upper(c->factor, c->n, c->alpha);
}

/* Decisions that all observations agree on say nothing about their relevance. */
static bool varies(const struct credit *c, size_t decision) {
    for (size_t i = 1; i < c->n; i++)
        if (c->at[i].at[decision] != c->at[0].at[decision])
            return true;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->at[i].nown; k++)
            if (c->at[i].own[k].decision == decision)
                return true;
    return false;
}

/* A prior of its own keeps a relevance from following three observations: a step away from where it
 * is costs as much as a little likelihood. */
static double reluctance(double from, double to) {
    double steps = log(to / from);
    return 0.5 * steps * steps;
}

static double score_with(struct credit *c, size_t decision, double relevance) {
    c->relevance[decision] = relevance;
    c->factored = 0;
    return solve(c);
}

static void learn_decision(struct credit *c, size_t d, double *score) {
    double from = c->relevance[d], kept = from, best = *score;
    for (size_t i = 0; i < RELEVANCES; i++) {
        double own = score_with(c, d, relevances[i]) + reluctance(from, relevances[i]);
        if (own < best) {
            best = own;
            kept = relevances[i];
        }
    }
    *score = score_with(c, d, kept);
}

void credit_learn(struct credit *c) {
    credit_settle(c);
    if (c->n < LEARN_FROM)
        return;
    double score = solve(c);
    for (size_t d = 0; d < c->nused; d++)
        if (varies(c, d))
            learn_decision(c, d, &score);
    for (size_t i = 0; c->nprecedents && i < c->n; i++)
        c->prior[i] = prior_of(c, &c->at[i]);
    credit_settle(c);
}

/* ---- predictions ---- */

/* The mean; likenesses to the observations are left in `space`. */
static double expected(const struct credit *c, const struct place *p) {
    double mean = c->mean + c->rho * prior_of(c, p);
    for (size_t i = 0; i < c->n; i++) {
        c->space[i] = likeness(c, p, &c->at[i], 1);
        mean += c->space[i] * c->alpha[i];
    }
    return mean;
}

/* After `expected`. */
static double deviation(const struct credit *c) {
    double explained = 0;
    solve_lower(c->factor, c->n, c->space);
    for (size_t i = 0; i < c->n; i++)
        explained += c->space[i] * c->space[i];
    return sqrt(c->scale * fmax(1 + NOISE - explained, 1e-9));
}

void credit_predict(const struct credit *c, const struct strategy *s, double *mean, double *sd) {
    struct place p = place_of(c, s);
    BUG_IF(c->factored != c->n);
    *mean = expected(c, &p);
    *sd = deviation(c);
}

static double improvement(double below, double sd) {
    double z = below / sd, density = exp(-0.5 * z * z) * 0.3989422804014327;
    return fmax(0, below * 0.5 * erfc(-z * 0.7071067811865476) + sd * density);
}

/* It grows with the deviation, which is the dear part: where the largest there can be is not
 * enough, it is not worked out. */
double credit_improvement(const struct credit *c, const struct strategy *s, double best,
                          double at_least) {
    struct place p = place_of(c, s);
    BUG_IF(c->factored != c->n);
    double below = best - expected(c, &p);
    double most = improvement(below, sqrt(c->scale * (1 + NOISE)));
    return most <= at_least ? most : improvement(below, deviation(c));
}
