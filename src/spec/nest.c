/* Chooses how a tensor of results is evaluated, and compiles it for that. */
#include "spec/nest.h"
#include "spec/pattern.h"

#include "spec/bounds.h"
#include "spec/contract.h"
#include "spec/scalar.h"
#include <float.h>
#include <math.h>

static struct bound bound_of(const struct inst *in, const struct expr *e) {
    struct bound b = {.e = e, .vars = expr_vars(e)};
    b.affine = affine_of(in, e, &b.a);
    return b;
}

/* A bound that does not fit 64 bits has been refused when the task was bound; 0 leaves no crash. */
int64_t bound_at(const struct nest *n, const struct bound *b, const int64_t *at) {
    struct ranges r = {.in = n->in};
    struct range got;
    int64_t v;
    if (b->affine)
        return affine_at(&b->a, at, &v) ? v : 0;
    for (size_t k = 0; k < n->s->nvars; k++)
        r.index[k] = (struct range){at[k], at[k]};
    return range_of(&r, b->e, &got) == RANGE_OK ? got.lo : 0;
}

static uint32_t bit(size_t var) {
    return UINT32_C(1) << var;
}

static bool mentions(const struct loop *l, size_t var) {
    return (l->lo.vars | l->hi.vars) & bit(var);
}

static bool is_sum(const struct nest *n) {
    return n->reduce && (n->reduce->op == REDUCTION_SUM || n->reduce->op == REDUCTION_MEAN);
}

/* What all variables can be where a term counts. */
static struct ranges ranges_inside(const struct nest *n) {
    struct ranges r = ranges_of(n->in, n->s), inside;
    for (size_t k = 0; k < n->naxes; k++)
        r.index[n->axes[k].var] = (struct range){n->axes[k].lo, n->axes[k].lo + n->axes[k].n - 1};
    inside = r;
    return n->reduce && ranges_enter(&inside, n->reduce) ? inside : r;
}

/* The body, with the guard, and with the bounds that vary over the lanes of axis `lane`. */
static void compile(struct nest *n, int lane, const struct stage *stages, size_t nstages,
                    const struct ranges *r, bool track_peak) {
    program_init(&n->p, n->in, n->s, stages, nstages, r, track_peak);
    for (size_t k = 0; k < n->nloops && lane >= 0 && n->mode == NEST_COLUMNS; k++) {
        const struct loop *l = &n->loops[k];
        program_guard_bounds(&n->p, l->var, l->lo.vars & bit((size_t)lane) ? l->lo.e : NULL,
                             l->hi.vars & bit((size_t)lane) ? l->hi.e : NULL);
    }
    if (n->reduce && n->reduce->guard)
        program_guard(&n->p, n->reduce->guard);
    program_body(&n->p, n->body, n->reduce && !n->fold.integer);
}

/* Nanoseconds, roughly: to start an instruction, and for one lane of it. */
#define COST_START 15.0

static double read_cost(const struct nest *n, const struct instr *i, size_t var) {
    size_t size = i->ref < n->in->task->ntensors ? 4 : 8;
    int64_t step = i->place.coef[var];
    uint64_t bytes = (uint64_t)(step < 0 ? -step : step) * size;
    if (i->nplaces)
        return 4;
    return step == 1 || step == -1 ? 0.3 : bytes < 64 ? 0.6 : 2.5;
}

static double lane_cost(const struct nest *n, const struct instr *i, size_t var) {
    if (i->op == OP_READ)
        return read_cost(n, i, var);
    if (i->op != OP_NODE)
        return 0.4;
    switch (i->kind) {
    case EXPR_CALL:
        return 8;
    case EXPR_DIV:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return 2;
    default:
        return i->exact ? 0.3 : 0.8;
    }
}

/* One term, or one point, with lanes along `var`. */
static double cost_along(const struct nest *n, size_t var, double length, uint32_t over) {
    double lanes = length < LANES ? length : LANES, cost = 0;
    bool skips = n->p.guard >= 0 && !(n->p.code[n->p.guard].vars & bit(var));
    for (size_t k = 0; k < n->p.n; k++) {
        const struct instr *i = &n->p.code[k];
        if (over && !(i->vars & over))
            continue;
        double each = COST_START / lanes + (i->vars & bit(var) ? lane_cost(n, i, var) : 0);
        cost += skips && k >= n->p.guard_end ? each / 2 : each;
    }
    return cost;
}

static double extent_of(const struct ranges *r, size_t var) {
    struct range v = r->index[var];
    return v.hi < v.lo ? 1 : (double)v.hi - (double)v.lo + 1;
}

/* Bounds of other variables must not depend on the one that runs in lanes. */
static bool may_be_last(const struct nest *n, size_t loop) {
    for (size_t k = 0; k < n->nloops; k++)
        if (mentions(&n->loops[k], n->loops[loop].var))
            return false;
    return true;
}

static void move_last(struct nest *n, size_t loop) {
    struct loop l = n->loops[loop];
    for (size_t k = loop; k + 1 < n->nloops; k++)
        n->loops[k] = n->loops[k + 1];
    n->loops[n->nloops - 1] = l;
}

/* A way to evaluate a nest, and nanoseconds for a term of it or a point, roughly. */
struct way {
    enum nest_mode mode;
    int lane_axis;
    size_t last; /* ROWS: the loop that runs in lanes */
    double cost;
};

enum { FOLD_COLUMNS = 1, FOLD_ROW = 2, START_RESULT = 300 };

static double terms_of(const struct nest *n, const struct ranges *r) {
    double terms = 1;
    for (size_t k = 0; k < n->nloops; k++)
        terms *= extent_of(r, n->loops[k].var);
    return terms;
}

static uint32_t loop_vars(const struct nest *n) {
    uint32_t over = 0;
    for (size_t k = 0; k < n->nloops; k++)
        over |= bit(n->loops[k].var);
    return over;
}

static double lanes_cost(const struct nest *n, const struct ranges *r, size_t axis) {
    size_t var = n->axes[axis].var;
    double length = (double)(n->axes[axis].n < LANES ? n->axes[axis].n : LANES);
    double cost = cost_along(n, var, (double)n->axes[axis].n, loop_vars(n)) +
                  START_RESULT / (length * terms_of(n, r)) +
                  (n->reduce ? FOLD_COLUMNS + COST_START / length : 0);
    for (size_t l = 0; l < n->nloops; l++)
        cost *= mentions(&n->loops[l], var) ? 2 : 1;
    return cost;
}

static double rows_cost(const struct nest *n, const struct ranges *r, size_t loop) {
    size_t var = n->loops[loop].var;
    return cost_along(n, var, extent_of(r, var), loop_vars(n)) + START_RESULT / terms_of(n, r) +
           FOLD_ROW;
}

/* n->p holds a trial compilation. `ordered`: terms stay in the order of the loops. */
static struct way cheapest(const struct nest *n, const struct ranges *r, bool ordered) {
    struct way way = {n->reduce ? NEST_COLUMNS : NEST_POINTS, -1, 0, INFINITY};
    for (size_t k = 0; k < n->naxes; k++) {
        double cost = lanes_cost(n, r, k);
        if (cost <= way.cost) { /* the innermost of equals */
            way.cost = cost;
            way.lane_axis = (int)k;
        }
    }
    for (size_t l = ordered && n->nloops ? n->nloops - 1 : 0; l < n->nloops; l++) {
        double cost = rows_cost(n, r, l);
        if (cost < way.cost && may_be_last(n, l))
            way = (struct way){NEST_ROWS, -1, l, cost};
    }
    return way;
}

/* A scan goes through its terms once for all results along its axis. */
static double points_of(const struct nest *n, const struct ranges *r) {
    bool scan = n->mode == NEST_SCAN;
    double points = terms_of(n, r) + (scan ? (double)n->axes[n->lane_axis].n : 0);
    for (size_t k = 0; k < n->naxes; k++)
        if (!scan || (int)k != n->lane_axis)
            points *= (double)n->axes[k].n;
    return points;
}

/* The way of the same results over longer axes, so that the same operations make the same bits;
 * unless so few lanes are left of it that another is several times faster, and that is worth it. */
static struct way way_like(const struct nest *n, const struct ranges *r, const struct nest *whole) {
    enum { SLOWER_MOST = 4, WORTH_NS = 5000000 };
    struct way best = cheapest(n, r, true), same = {whole->mode, whole->lane_axis, 0, 0};
    if (!n->reduce)
        return best;
    if (same.mode == NEST_ROWS) {
        same.last = n->nloops - 1;
        same.cost = rows_cost(n, r, same.last);
    } else if (same.lane_axis >= 0) {
        same.cost = lanes_cost(n, r, (size_t)same.lane_axis);
    }
    bool slower = same.cost > SLOWER_MOST * best.cost;
    return slower && same.cost * points_of(n, r) > WORTH_NS ? best : same;
}

/* Sets the mode and the lane axis. */
static void choose(struct nest *n, const struct ranges *r, const struct nest *whole) {
    struct way way = whole ? way_like(n, r, whole) : cheapest(n, r, false);
    n->mode = way.mode;
    n->lane_axis = way.lane_axis;
    if (n->mode == NEST_ROWS)
        move_last(n, way.last);
}

/* The bound is axis + constant. */
static int scanned_axis(const struct nest *n, const struct bound *b) {
    for (size_t k = 0; k < n->naxes; k++)
        if (b->affine && b->a.coef[n->axes[k].var] == 1)
            return (int)k;
    return -1;
}

static bool is_scan(struct nest *n) {
    const struct reduce *r = n->reduce;
    if (!r || r->nvars != 1 || r->op == REDUCTION_ARGMAX || r->op == REDUCTION_ARGMIN)
        return false;
    uint32_t used = expr_vars(n->body) | (r->guard ? expr_vars(r->guard) : 0);
    const struct bound *sides[2] = {&n->loops[0].hi, &n->loops[0].lo};
    for (int k = 0; k < 2; k++) {
        int axis = scanned_axis(n, sides[k]);
        if (axis < 0)
            continue;
        uint32_t var = bit(n->axes[axis].var);
        if (used & var || sides[1 - k]->vars & var)
            continue;
        n->mode = NEST_SCAN;
        n->lane_axis = axis;
        n->backwards = k == 1;
        return true;
    }
    return false;
}

/* The sum makes the product, and adds its rounding. */
static void absorb_rounding(struct nest *n) {
    n->fold.exact = true;
    n->fold.relative2 += n->p.rules.unit2;
}

/* A product of exact operands in every lane is made by the sum, which saves passes over the lanes
 * in the case that matters most. */
static void fuse_product(struct nest *n, int lane) {
    struct instr *i = &n->p.code[n->p.result];
    bool product = i->op == OP_NODE && i->kind == EXPR_MUL && i->type == VALUE_REAL &&
                   n->p.code[i->src[0]].exact && n->p.code[i->src[1]].exact;
    bool varies = lane < 0 || i->vars & bit((size_t)lane);
    bool blocks = n->mode == NEST_COLUMNS || n->mode == NEST_ROWS;
    if (!blocks || !is_sum(n) || !product || !varies || n->p.guard >= 0 || n->p.track_peak)
        return;
    i->summed = true;
    n->p.product = n->p.result;
    absorb_rounding(n);
}

static void schedule(struct nest *n) {
    unsigned order[TASK_MAX_VARS] = {0}, inner = 1;
    int lane = n->lane_axis < 0 ? -1 : (int)n->axes[n->lane_axis].var;
    for (size_t k = 0; k < n->naxes; k++)
        order[n->axes[k].var] = 1;
    for (size_t k = 0; k < n->nloops; k++)
        order[n->loops[k].var] = inner = 2 + (unsigned)k;
    if (n->mode == NEST_ROWS || n->mode == NEST_SCAN)
        lane = (int)n->loops[n->nloops - 1].var;
    if (n->reduce) {
        n->fold.exact = n->p.code[n->p.result].exact;
        n->fold.masked = n->p.guard >= 0;
        n->fold.track_peak = n->p.track_peak;
        contract_find(n, lane);
        fuse_product(n, lane);
    } else {
        n->p.code[n->p.result].how |= SETTLE_ROOT;
    }
    program_schedule(&n->p, lane, order, inner);
}

static void set_chunk(struct nest *n) {
    int64_t length = n->lane_axis < 0 ? 1 : n->axes[n->lane_axis].n;
    int64_t chunks = (length + LANES - 1) / LANES;
    n->chunk = chunks ? (length + chunks - 1) / chunks : 1;
}

static void start(struct nest *n, const struct inst *in, const struct statement *s,
                  const struct expr *e, const struct axis *axes, size_t naxes) {
    *n = (struct nest){.in = in, .s = s, .body = e, .naxes = naxes, .lane_axis = -1};
    for (size_t k = 0; k < naxes; k++)
        n->axes[k] = axes[k];
    if (e->kind == EXPR_REDUCE) {
        n->reduce = e->reduce;
        n->body = e->args[0];
        n->fold = fold_of(in->task, e, &n->partial);
        n->nloops = e->reduce->nvars;
        for (size_t k = 0; k < n->nloops; k++)
            n->loops[k] = (struct loop){.var = e->reduce->vars[k].var,
                                        .lo = bound_of(in, e->reduce->vars[k].lo),
                                        .hi = bound_of(in, e->reduce->vars[k].hi)};
    }
}

/* whole: NULL, or the nest whose way is kept. */
static void complete(struct nest *n, const struct stage *stages, size_t nstages, bool track_peak,
                     const struct nest *whole) {
    struct ranges r = ranges_inside(n);
    compile(n, -1, stages, nstages, &r, track_peak);
    if (!is_scan(n)) {
        choose(n, &r, whole);
        program_release(&n->p);
        compile(n, n->lane_axis < 0 ? -1 : (int)n->axes[n->lane_axis].var, stages, nstages, &r,
                track_peak);
    }
    n->p.ranges = NULL;
    schedule(n);
    set_chunk(n);
}

void nest_init(struct nest *n, const struct inst *in, const struct statement *s,
               const struct expr *e, const struct axis *axes, size_t naxes,
               const struct stage *stages, size_t nstages, bool track_peak) {
    start(n, in, s, e, axes, naxes);
    complete(n, stages, nstages, track_peak, NULL);
}

void nest_init_part(struct nest *n, const struct nest *whole, const struct inst *in,
                    const struct expr *e, const struct axis *axes, const struct stage *stages,
                    size_t nstages) {
    start(n, in, whole->s, e, axes, whole->naxes);
    for (size_t k = 0; k < n->nloops; k++)
        n->loops[k] = whole->loops[k];
    complete(n, stages, nstages, false, whole);
}

double nest_points(const struct nest *n) {
    struct ranges r = ranges_inside(n);
    return points_of(n, &r);
}

/* Where magnitudes are tracked a product has not been fused, but finite factors may take the short
 * way: then the sum makes it after all. */
static void meet_factors(struct nest *n, const struct content *contents) {
    for (size_t k = 0; k < 2 && n->contracts; k++)
        n->contracts = contents[n->factor[k].content].finite;
    if (n->contracts)
        absorb_rounding(n);
}

void nest_meet(struct nest *n, const struct content *contents) {
    if (n->p.track_peak)
        meet_factors(n, contents);
    if (!n->reduce || !n->partial)
        return;
    for (size_t k = 0; k < n->p.n; k++)
        if (n->p.code[k].op == OP_READ && !contents[n->p.code[k].ref].finite)
            n->fold.unjudged = true;
    /* A product that may be NaN is never exact, so that its register has a variance. */
    n->pads = n->fold.unjudged && pattern_holds_pad(n->body) && n->p.result >= n->p.nexact;
}

void nest_release(struct nest *n) {
    program_release(&n->p);
}
