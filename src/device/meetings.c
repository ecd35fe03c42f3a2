/* See meetings.h. Groups (the first or the repeated meetings of a round) are taken out by their
 * means; what is left for least squares are a few columns. */
#include "device/meetings.h"

#include "base/arena.h"

#include <math.h>
#include <string.h>

#define COLUMNS   MEETING_KINDS /* the kinds but one, and the start of a round */
#define TINY      1e-9
#define LEAST_ERR 0.003 /* relative scatter of one sample that is always reckoned with */

struct group {
    size_t n;
    double y, x[COLUMNS]; /* sums, then means */
};

struct fit {
    const struct meeting *m;
    size_t n, round, groups;
    bool alone; /* the round has no repeated meetings */
    struct group *group;
    double inverse[COLUMNS][COLUMNS], beta[COLUMNS];
    size_t rank;
};

/* SIZE_MAX: the sample says nothing here. */
static size_t group_of(const struct fit *f, const struct meeting *m) {
    if (!f->alone)
        return 2 * m->round + m->first;
    return !m->first ? 0 : m->round == f->round ? 1 : (size_t)-1;
}

static void columns_of(const struct meeting *m, double x[COLUMNS]) {
    size_t kind = m->kind < MEETING_KINDS ? m->kind : MEETING_KINDS - 1;
    memset(x, 0, COLUMNS * sizeof *x);
    if (kind > 0)
        x[kind - 1] = 1;
    x[COLUMNS - 1] = m->start;
}

static void groups_make(struct fit *f) {
    double x[COLUMNS];
    for (size_t i = 0; i < f->n; i++) {
        size_t at = group_of(f, &f->m[i]);
        if (at >= f->groups)
            continue;
        struct group *g = &f->group[at];
        columns_of(&f->m[i], x);
        g->n++;
        g->y += log(f->m[i].seconds);
        for (size_t c = 0; c < COLUMNS; c++)
            g->x[c] += x[c];
    }
    for (size_t at = 0; at < f->groups; at++) {
        struct group *g = &f->group[at];
        g->y /= g->n ? (double)g->n : 1;
        for (size_t c = 0; c < COLUMNS; c++)
            g->x[c] /= g->n ? (double)g->n : 1;
    }
}

/* What a sample has beyond the means of its group. */
static bool beyond(const struct fit *f, const struct meeting *m, double *y, double x[COLUMNS]) {
    size_t at = group_of(f, m);
    if (at >= f->groups)
        return false;
    const struct group *g = &f->group[at];
    columns_of(m, x);
    *y = log(m->seconds) - g->y;
    for (size_t c = 0; c < COLUMNS; c++)
        x[c] -= g->x[c];
    return true;
}

/* Gauss and Jordan; columns that the others explain are left out, and are zero in the inverse. */
static size_t invert(double a[COLUMNS][COLUMNS], double inv[COLUMNS][COLUMNS]) {
    size_t rank = 0;
    memset(inv, 0, sizeof(double[COLUMNS][COLUMNS]));
    for (size_t c = 0; c < COLUMNS; c++)
        inv[c][c] = 1;
    for (size_t c = 0; c < COLUMNS; c++) {
        double pivot = a[c][c];
        if (pivot < TINY) {
            memset(inv[c], 0, sizeof inv[c]);
            memset(a[c], 0, sizeof a[c]);
            for (size_t r = 0; r < COLUMNS; r++)
                a[r][c] = inv[r][c] = 0;
            continue;
        }
        rank++;
        for (size_t k = 0; k < COLUMNS; k++) {
            a[c][k] /= pivot;
            inv[c][k] /= pivot;
        }
        for (size_t r = 0; r < COLUMNS; r++) {
            double by = a[r][c];
            for (size_t k = 0; r != c && k < COLUMNS; k++) {
                a[r][k] -= by * a[c][k];
                inv[r][k] -= by * inv[c][k];
            }
        }
    }
    return rank;
}

static void solve(struct fit *f) {
    double a[COLUMNS][COLUMNS] = {0}, b[COLUMNS] = {0}, x[COLUMNS], y;
    for (size_t i = 0; i < f->n; i++)
        for (size_t c = 0; beyond(f, &f->m[i], &y, x) && c < COLUMNS; c++) {
            b[c] += x[c] * y;
            for (size_t k = 0; k < COLUMNS; k++)
                a[c][k] += x[c] * x[k];
        }
    f->rank = invert(a, f->inverse);
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t k = 0; k < COLUMNS; k++)
            f->beta[c] += f->inverse[c][k] * b[k];
}

/* Variance of a sample about what explains it, and how many samples it is known from. */
static double variance(const struct fit *f, size_t *freedom) {
    double sum = 0, x[COLUMNS], y;
    size_t used = 0, taken = f->rank;
    for (size_t i = 0; i < f->n; i++) {
        if (!beyond(f, &f->m[i], &y, x))
            continue;
        for (size_t c = 0; c < COLUMNS; c++)
            y -= x[c] * f->beta[c];
        sum += y * y;
        used++;
    }
    for (size_t at = 0; at < f->groups; at++)
        taken += f->group[at].n > 0;
    *freedom = used > taken ? used - taken : 0;
    return *freedom ? sum / (double)*freedom : 0;
}

/* What Student's t exceeds as rarely as a normal variable three standard deviations. */
static double three_errors(size_t freedom) {
    static const double t[] = {1e9,  235.8, 19.21, 9.22, 6.62, 5.51, 4.90, 4.53, 4.28, 4.09, 3.96,
                               3.85, 3.76,  3.69,  3.64, 3.59, 3.54, 3.51, 3.48, 3.45, 3.42};
    size_t n = sizeof t / sizeof *t;
    return freedom < n ? t[freedom] : 3 + 8.4 / (double)freedom;
}

/* Can the columns that tell the two groups apart be told from the groups themselves? */
static bool is_explained(const struct fit *f, const double apart[COLUMNS]) {
    for (size_t c = 0; c < COLUMNS; c++) {
        bool known = f->inverse[c][c] > 0;
        if (!known && fabs(apart[c]) > TINY)
            return false;
    }
    return true;
}

static bool judge(const struct fit *f, const struct group *again, const struct group *first,
                  double *slower) {
    double apart[COLUMNS], more = 1 / (double)first->n + 1 / (double)again->n;
    double by = first->y - again->y;
    size_t freedom;
    for (size_t c = 0; c < COLUMNS; c++) {
        apart[c] = first->x[c] - again->x[c];
        by -= apart[c] * f->beta[c];
    }
    for (size_t c = 0; c < COLUMNS; c++)
        for (size_t k = 0; k < COLUMNS; k++)
            more += apart[c] * f->inverse[c][k] * apart[k];
    double of = variance(f, &freedom), least = LEAST_ERR * LEAST_ERR;
    double error = sqrt((of > least ? of : least) * more);
    *slower = exp(by) - 1;
    return is_explained(f, apart) && *slower > MEETING_SLOWER &&
           *slower * exp(again->y) > MEETING_TICK_S &&
           by - log1p(MEETING_TOUCH) > three_errors(freedom) * error;
}

bool meetings_slower(const struct meeting *m, size_t n, size_t round, double *slower) {
    struct fit f = {.m = m, .n = n, .round = round, .alone = true};
    *slower = 0;
    for (size_t i = 0; i < n; i++) {
        f.alone &= !(m[i].round == round && !m[i].first);
        f.groups = m[i].round >= f.groups ? m[i].round + 1 : f.groups;
    }
    f.groups = f.alone ? 2 : 2 * f.groups;
    f.group = mem_alloc((f.groups + 2) * sizeof *f.group);
    groups_make(&f);
    const struct group *again = &f.group[f.alone ? 0 : 2 * round];
    bool slow = false;
    if (2 * round + 1 < f.groups || f.alone)
        if (again->n && again[1].n) {
            solve(&f);
            slow = judge(&f, again, again + 1, slower);
        }
    mem_free(f.group);
    return slow;
}
