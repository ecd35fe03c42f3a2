/* Evaluates the statements of an instance in order, of every tensor the elements in its window: all
 * of them, or what a part of an output needs.
 *
 * Every reduction of a statement becomes a stage: a tensor over the variables it depends on,
 * evaluated before the statement, inner ones first. So a reduction that does not depend on all of
 * the statement's variables is evaluated once for those it does, and one inside another is
 * evaluated once, not once a term. A stage is also evaluated at points that the statement then does
 * not use (on the other side of an `if`, outside a triangle): program.h says why that does no harm.
 *
 * Lets keep their values and variances in heap arrays until the end. How results are stored is in
 * nest.c. */
#include "spec/reference.h"

#include "base/checked.h"
#include "base/parallel.h"
#include "spec/bind.h"
#include "spec/bounds.h"
#include "spec/data.h"
#include "spec/nest.h"
#include "spec/part.h"
#include "spec/pattern.h"
#include "spec/recur.h"
#include "spec/scalar.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* The elements of a tensor that are kept, in row-major order of the box. Element i has the place
 * Σ i[k]·stride[k] - first. */
struct window {
    int64_t lo[TASK_MAX_RANK], n[TASK_MAX_RANK];
    int64_t stride[TASK_MAX_RANK];
    int64_t first;
    int64_t count; /* 0: none is needed */
};

/* Of every tensor: what is read of an input or a let, and what is made of a let or an output. Both
 * are the same of a let; an `inout` tensor is read as it was before, so they differ. */
struct windows {
    struct window read[TASK_MAX_TENSORS], made[TASK_MAX_TENSORS];
};

enum { STAGES_MOST = 256 };
/* A step of a recurrence that is not worth a second thread. */
enum { STEP_POINTS_ALONE = 1 << 14 };

struct evaluation {
    const struct inst *in;
    const struct inst *kept; /* the same, with the strides of the windows */
    const struct windows *windows;
    bool part; /* the windows are not the whole tensors */
    bool dry;  /* only counts points */
    double points;
    unsigned threads;
    bool track_peak;
    double peak;
    bool stepping; /* of a recurrence: many small evaluations */
    /* Of every let and output: value, and variance (let) or estimate (output). */
    double *value[TASK_MAX_TENSORS];
    double *error[TASK_MAX_TENSORS];
    uint64_t *ties[TASK_MAX_TENSORS];
    int64_t tie_lo[TASK_MAX_TENSORS];
    size_t tie_words[TASK_MAX_TENSORS];
    struct content contents[TASK_MAX_TENSORS + STAGES_MOST];
    /* Of an earlier evaluation: memory that is used again. */
    struct reference *old;
    size_t nold;
    /* Of the statement at hand. */
    const struct statement *s;
    struct stage stages[STAGES_MOST];
    struct stage whole_stages[STAGES_MOST]; /* of a part: those of the whole */
    double *stage_data[STAGES_MOST];
    size_t nstages;
    struct err *err;
};

static bool all_finite(enum dtype t, const void *data, int64_t count) {
    size_t size = dtype_info(t)->bytes;
    struct reg v;
    for (int64_t at = 0; at < count && dtype_info(t)->kind == 'f'; at += LANES) {
        size_t n = count - at < LANES ? (size_t)(count - at) : LANES;
        data_load(t, (const char *)data + (size_t)at * size, n, v.v);
        if (!vector_ordinary(&v, false, DBL_MAX, n))
            return false;
    }
    return true;
}

static struct content content_of(enum dtype t, const void *value, const double *variance,
                                 const double *peak, int64_t first, int64_t count) {
    return (struct content){all_finite(t, value, count), t, value, variance, peak, first, count};
}

/* Sets stride, first and count of a window from its lo and n; count 0: some n is. False: it has
 * more elements than can be counted. */
static bool window_close(struct window *w, size_t rank) {
    int64_t part;
    w->first = 0;
    w->count = 1;
    for (size_t k = rank; k-- > 0;) {
        w->stride[k] = w->count;
        if (!mul_i64(w->lo[k], w->stride[k], &part) || !add_i64(w->first, part, &w->first) ||
            !mul_i64(w->count, w->n[k] > 0 ? w->n[k] : 0, &w->count))
            return false;
    }
    return true;
}

/* All of a tensor; of a rand tensor, which no statement reads, nothing. */
static struct window whole_window(const struct inst *in, size_t tensor) {
    struct window w = {.count = 0};
    if (in->task->tensors[tensor].role == TENSOR_RAND)
        return w;
    for (size_t k = 0; k < in->task->tensors[tensor].rank; k++)
        w.n[k] = in->tensors[tensor].extent[k];
    BUG_IF(!window_close(&w, in->task->tensors[tensor].rank));
    return w;
}

/* The variables of the left side of a statement, where it defines elements that are made. False:
 * it defines none. */
static bool window_ranges(const struct inst *in, const struct statement *s, const struct window *w,
                          struct ranges *out) {
    *out = ranges_of(in, s);
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++) {
        struct range kept = {w->lo[k], w->lo[k] + w->n[k] - 1};
        int64_t at;
        if (s->position[k] >= 0)
            out->index[s->position[k]] = kept;
        else if (!expr_eval_dims(s->constant[k], in->dims, &at) || at < kept.lo || at > kept.hi)
            return false;
    }
    return w->count > 0;
}

static double *array_for(struct evaluation *ev, int64_t count) {
    size_t bytes;
    double *p = NULL;
    if (mul_size((size_t)count, sizeof *p, &bytes))
        p = mem_try_resize(NULL, bytes ? bytes : sizeof *p);
    if (!p)
        err_set(ev->err, ERR_ENV, "no memory for the reference of %lld elements", (long long)count);
    return p;
}

/* whole: the axes of all the results. */
static void make_nest(const struct evaluation *ev, struct nest *n, const struct expr *e,
                      const struct axis *axes, const struct axis *whole, size_t naxes) {
    struct nest all;
    if (!ev->part) {
        nest_init(n, ev->in, ev->s, e, axes, naxes, ev->stages, ev->nstages, ev->track_peak);
        return;
    }
    nest_init(&all, ev->in, ev->s, e, whole, naxes, ev->whole_stages, ev->nstages, false);
    nest_init_part(n, &all, ev->kept, e, axes, ev->stages, ev->nstages);
    nest_release(&all);
}

static bool run_nest(struct evaluation *ev, struct nest *n) {
    if (ev->dry) {
        ev->points += nest_points(n);
        nest_release(n);
        return true;
    }
    nest_meet(n, ev->contents);
    bool alone = ev->stepping && nest_points(n) < STEP_POINTS_ALONE;
    bool ok = nest_run(n, ev->contents, alone ? 1 : ev->threads, &ev->peak);
    nest_release(n);
    return ok || err_set(ev->err, ERR_ENV, "no memory for the registers of the reference");
}

/* The axes of a stage: the variables it depends on, at the ranges they have where it stands.
 * Returns the number of elements, -1 where that does not fit. */
static int64_t stage_axes(const struct ranges *r, uint32_t vars, struct axis *axes, size_t *naxes,
                          struct affine *place) {
    int64_t count = 1, part;
    *naxes = 0;
    *place = (struct affine){0};
    for (size_t v = TASK_MAX_VARS; v-- > 0;) {
        if (!(vars >> v & 1))
            continue;
        int64_t lo = r->index[v].lo, n;
        if (r->index[v].hi < lo)
            n = 0;
        else if (!sub_i64(r->index[v].hi, lo, &n) || !add_i64(n, 1, &n))
            return -1;
        if (!mul_i64(lo, count, &part) || !sub_i64(place->c, part, &place->c))
            return -1;
        place->coef[v] = count;
        place->vars |= UINT32_C(1) << v;
        axes[(*naxes)++] = (struct axis){v, lo, n};
        if (!mul_i64(count, n, &count))
            return -1;
    }
    for (size_t k = 0; k < *naxes / 2; k++) {
        struct axis swap = axes[k];
        axes[k] = axes[*naxes - 1 - k];
        axes[*naxes - 1 - k] = swap;
    }
    return count;
}

/* Where a reduction stands: the ranges of all variables, of what is kept and of the whole. */
struct standing {
    struct ranges kept, whole;
};

/* Value, variance and, where they are tracked, peaks in one allocation. */
static bool stage_alloc(struct evaluation *ev, struct nest *n, int64_t count) {
    int64_t total;
    if (!mul_i64(count, ev->track_peak ? 3 : 2, &total))
        return err_set(ev->err, ERR_INPUT, "a reduction depends on too many values of its indices");
    double *data = ev->dry ? NULL : array_for(ev, total);
    if (!data)
        return ev->dry;
    ev->stage_data[ev->nstages] = data;
    n->target.value = data;
    n->target.error = data + count;
    n->target.peak = ev->track_peak ? data + 2 * count : NULL;
    return true;
}

static bool stage_run(struct evaluation *ev, const struct expr *e, const struct standing *at) {
    struct axis axes[TASK_MAX_VARS], whole_axes[TASK_MAX_VARS];
    struct affine place, whole_place;
    struct nest n;
    size_t naxes, content = ev->in->task->ntensors + ev->nstages;
    int64_t count = stage_axes(&at->kept, expr_vars(e), axes, &naxes, &place);
    if (ev->nstages == STAGES_MOST)
        return err_set(ev->err, ERR_INPUT, "a statement has more than %d reductions", STAGES_MOST);
    if (count < 0 || stage_axes(&at->whole, expr_vars(e), whole_axes, &naxes, &whole_place) < 0)
        return err_set(ev->err, ERR_INPUT, "a reduction depends on too many values of its indices");
    make_nest(ev, &n, e, axes, whole_axes, naxes);
    n.target = (struct target){.place = place};
    if (!stage_alloc(ev, &n, count)) {
        nest_release(&n);
        return false;
    }
    struct target to = n.target;
    ev->whole_stages[ev->nstages] = (struct stage){e, content, whole_place};
    ev->stages[ev->nstages++] = (struct stage){e, content, place};
    double peak = ev->peak;
    bool ok = run_nest(ev, &n);
    ev->peak = peak; /* what counts of it is counted where the stage is read */
    if (ok && !ev->dry)
        ev->contents[content] = content_of(DTYPE_F64, to.value, to.error, to.peak, 0, count);
    return ok;
}

/* ---- recurrences ----
 *
 * sum(j <= i) u[j] * prod(j < k <= i) a[k] is h[i] = a[i]*h[i-1] + u[i] (pattern.h): the factors of
 * u, and a, are evaluated as tensors of their own, and each result takes one step from the one
 * before it, in value and in error. As written every result would need a product for each of its
 * terms. An `a` that is the same at every step is the same at every step in a kernel, too: what it
 * is off adds up before it is squared. */

struct recurring {
    struct rules rules;
    const struct recurrence *r;
    const struct stage *factor[RECURRENCE_FACTORS], *gain, *decay; /* where they are kept */
    int64_t terms;                                                 /* the range's end */
    const struct content *contents;
    struct target to;
    /* The other sums that go step by step. */
    struct exponential_parts *exponentials;
    const struct stage *bound; /* of segments, where they begin */
    enum reduction op;         /* … and of what */
    bool whole_numbers;
};

/* What a sum of terms that decay has of them, for the partial sums of a random order (chain.h). */
struct disorder {
    double terms, squares; /* their number, each as much as its square counts, and those */
};

static void disorder_step(struct disorder *d, double decay, double term) {
    double by = decay * decay;
    d->terms = (by < 1 ? by * d->terms : d->terms) + 1;
    d->squares = by * d->squares + term * term;
}

static double disorder_variance(const struct disorder *d, const struct rules *r, double sum) {
    double v = r->unit2 * d->terms * (sum * sum / 3 + d->squares / 6);
    return d->terms > 1 && isfinite(sum) && v <= DOUBLE_MOST ? v : 0; /* one alone is not rounded */
}

/* A running result. */
struct step {
    struct value h;
    struct disorder disorder;
    struct value constant; /* a, where it is the same at every step */
    struct value own; /* … what a term is multiplied with at its own place: NaN, or not at all */
    double slope;     /* of h, by `constant` */
    double off;       /* the variance of `constant` */
    double product; /* the largest magnitude of a product that some term has been multiplied with */
    double growth;  /* the largest of those so far */
    double term;    /* … of a term */
    double sum;     /* of the magnitudes of all terms */
    double peak;
};

static struct value kept_at(const struct recurring *c, const struct stage *s, const int64_t *at,
                            double *peak) {
    const struct content *from = &c->contents[s->content];
    int64_t i;
    BUG_IF(!affine_at(&s->place, at, &i));
    if (from->peak)
        *peak = fmax(*peak, from->peak[i]);
    return value_of(((const double *)from->value)[i], from->variance[i]);
}

static struct value add_settled(const struct rules *r, struct value x, struct value y) {
    return settle_of(*r, 0, value_add(*r, x, y), x, y, value_of(0, 0));
}

static struct value mul_settled(const struct rules *r, struct value x, struct value y) {
    return settle_of(*r, SETTLE_FACTORS, value_mul(*r, x, y), x, y, value_of(0, 0));
}

static struct value exp_settled(const struct rules *r, struct value x) {
    double v = exp(x.v);
    struct value e = value_of(v, v * v * (x.e + 4 * r->unit2 + r->unit2 * x.v * x.v) +
                                     (v == 0 ? 0 : 16 * r->least2));
    e = settle_of(*r, 0, e, x, value_of(0, 0), value_of(0, 0));
    if (v > FLOAT_MOST && isfinite(x.v))
        e.e = INFINITY;
    return e;
}

static struct value term_at(const struct recurring *c, const int64_t *at, double *peak) {
    struct value u = value_of(1, 0);
    for (size_t i = 0; i < c->r->nfactors; i++) {
        struct value f = kept_at(c, c->factor[i], at, peak);
        if (c->r->below[i])
            u = settle_of(c->rules, SETTLE_FACTORS | POLE_DIVISOR, value_div(c->rules, u, f), u, f,
                          value_of(0, 0));
        else
            u = i ? mul_settled(&c->rules, u, f) : f;
    }
    if (c->r->gain) {
        struct value x = kept_at(c, c->gain, at, peak);
        x.v = c->r->loss ? -x.v : x.v;
        x = exp_settled(&c->rules, x);
        u = c->r->nfactors ? mul_settled(&c->rules, u, x) : x;
    }
    u.v = c->r->negated ? -u.v : u.v;
    return u;
}

/* Its exponential has an error of its own only where kernels make one for every step: of a constant
 * one they make it as well as they like. */
static struct value decay_at(const struct recurring *c, const int64_t *at, double *peak) {
    struct value a = kept_at(c, c->decay, at, peak);
    if (!c->r->exponential)
        return a;
    double v = exp(c->r->opposite ? -a.v : a.v);
    double own = c->r->over ? 4 * c->rules.unit2 * (1 + a.v * a.v) : 0;
    return v > 0 && v < INFINITY ? value_of(v, v * v * (a.e + own)) : value_of(v, a.e > 0 ? v : 0);
}

/* The next result, with the term at at[var] = at[decay_var]. */
static void take_step(const struct recurring *c, bool first, const int64_t *at, struct step *s) {
    const struct rules *r = &c->rules;
    struct value u = term_at(c, at, &s->peak), a = value_of(1, 0);
    if (isnan(s->own.v))
        u = mul_settled(r, s->own, u);
    bool decays = !first || c->r->with_own;
    if (decays)
        a = c->r->over ? decay_at(c, at, &s->peak) : s->constant;
    double more = c->r->over ? 0 : s->h.v + (c->r->with_own ? u.v : 0);
    if (c->r->with_own)
        s->h = mul_settled(r, a, first ? u : add_settled(r, s->h, u));
    else
        s->h = first ? u : add_settled(r, mul_settled(r, a, s->h), u);
    s->slope = c->r->over || !decays ? 0 : a.v * s->slope + more;
    double size = fabs(a.v);
    disorder_step(&s->disorder, a.v, c->r->with_own ? a.v * u.v : u.v);
    s->term = fmax(s->term, fabs(u.v));
    s->product = first && !decays ? 1 : size * fmax(s->product, 1);
    s->sum = c->r->with_own ? size * (s->sum + fabs(u.v)) : size * s->sum + fabs(u.v);
    s->peak = fmax(s->peak, fmax(s->sum, s->product));
    s->growth = fmax(s->growth, s->product);
    /* A product that leaves fp32 is undefined, one that is lost near zero is off by as much. A
     * kernel that puts stretches together makes NaN of an infinity times 0. */
    if (!(s->product <= FLOAT_MOST) && !isnan(s->h.v))
        s->h.e = INFINITY;
    else if (isinf(s->h.v))
        s->h.e = fmax(s->h.e, 1);
    else
        s->h.e += r->least2 * s->term * s->term;
}

static void keep_value(const struct recurring *c, const int64_t *at, struct value v, double peak) {
    int64_t to;
    BUG_IF(!affine_at(&c->to.place, at, &to));
    c->to.value[to] = v.v;
    c->to.error[to] = v.e;
    if (c->to.peak)
        c->to.peak[to] = peak;
}

/* What goes along an axis: a step for each term, a result after those that it has. */
struct stepper {
    const struct recurring *c;
    void (*begin)(const struct recurring *c, int64_t *at, void *state);
    void (*step)(const struct recurring *c, bool first, const int64_t *at, void *state);
    void (*keep)(const struct recurring *c, const int64_t *at, void *state);
    void *state;
};

/* All results along the axis, for one value of each other variable. Places count in the order of
 * the steps. */
static void run_steps(const struct stepper *w, const struct axis *axis, int64_t *at) {
    const struct recurrence *r = w->c->r;
    int64_t terms = w->c->terms, behind = r->exclusive, done = 0, first = 0,
            last = axis->lo + axis->n - 1;
    w->begin(w->c, at, w->state);
    if (r->backwards) { /* results beyond the range's end have no terms */
        first = terms - 1 - (last > terms - 1 ? last : terms - 1);
        last = terms - 1 - axis->lo;
    }
    for (int64_t i = first; i <= last; i++) {
        for (; done <= i - behind; done++) {
            at[r->var] = r->backwards ? terms - 1 - done : done;
            if (r->over)
                at[r->decay_var] = at[r->var];
            w->step(w->c, done == 0, at, w->state);
        }
        at[r->axis] = r->backwards ? terms - 1 - i : i;
        if (at[r->axis] >= axis->lo && at[r->axis] < axis->lo + axis->n)
            w->keep(w->c, at, w->state);
    }
}

static void begin_recurrence(const struct recurring *c, int64_t *at, void *state) {
    struct step *s = state;
    const struct recurrence *r = c->r;
    *s = (struct step){.h = value_of(0, 0), .constant = value_of(1, 0)};
    if (r->over)
        return;
    at[r->axis] = r->at_axis;
    at[r->var] = r->at_var;
    s->constant = decay_at(c, at, &s->peak);
    if (r->exponential) /* exp(c*0) */
        s->own = mul_settled(&c->rules, kept_at(c, c->decay, at, &s->peak), value_of(0, 0));
    s->off = s->constant.e;
    s->constant.e = 0;
}

static void step_recurrence(const struct recurring *c, bool first, const int64_t *at, void *state) {
    take_step(c, first, at, state);
}

enum { LONGER_AXES = 8 };

static void keep_recurrence(const struct recurring *c, const int64_t *at, void *state) {
    const struct step *s = state;
    bool varies = s->off > 0 && s->slope != 0;
    double e = s->h.e + (varies ? s->slope * s->slope * s->off : 0) +
               disorder_variance(&s->disorder, &c->rules, s->h.v);
    /* Data are held back on a sample, whose axes are shorter: what grows with every step grows as
     * often again as they are. */
    keep_value(c, at, value_of(s->h.v, e), s->peak * pow(fmax(s->growth, 1), LONGER_AXES));
}

static void run_lines(const struct stepper *w, const struct axis *axes, size_t naxes) {
    int64_t at[TASK_MAX_VARS] = {0}, lines = 1;
    const struct axis *along = NULL;
    for (size_t k = 0; k < naxes; k++)
        if (axes[k].var == w->c->r->axis)
            along = &axes[k];
        else
            lines *= axes[k].n;
    for (int64_t line = 0; line < lines; line++) {
        int64_t rest = line;
        for (size_t k = naxes; k-- > 0;)
            if (&axes[k] != along) {
                at[axes[k].var] = axes[k].lo + rest % axes[k].n;
                rest /= axes[k].n;
            }
        run_steps(w, along, at);
    }
}

static bool run_stages(struct evaluation *ev, const struct expr *e, const struct standing *at,
                       bool itself);
static void enter(struct ranges *r, const struct reduce *over);

/* The stages of u's factors and, where there are such, of its gain and of a. */
static bool recurrence_stages(struct evaluation *ev, const struct expr *e,
                              const struct recurrence *r, const struct standing *at, size_t *kept) {
    struct standing inside = *at;
    enter(&inside.kept, e->reduce);
    enter(&inside.whole, e->reduce);
    size_t terms = r->nfactors + (r->gain != NULL);
    for (size_t k = 0; k < terms + (r->decay != NULL); k++) {
        const struct expr *part = k < r->nfactors ? r->factor[k] : k < terms ? r->gain : r->decay;
        if (k == terms && r->over) {
            enter(&inside.kept, r->over);
            enter(&inside.whole, r->over);
        } else if (k == terms) {
            struct ranges *both[2] = {&inside.kept, &inside.whole};
            for (int i = 0; i < 2; i++) {
                both[i]->index[r->axis] = (struct range){r->at_axis, r->at_axis};
                both[i]->index[r->var] = (struct range){r->at_var, r->at_var};
            }
        }
        if (!run_stages(ev, part, &inside, true) || !stage_run(ev, part, &inside))
            return false;
        kept[k] = ev->nstages - 1;
    }
    return true;
}

/* The results, in the order of the steps, as a stage. What the steps read is there. */
static bool results_run(struct evaluation *ev, const struct expr *e, const struct standing *at,
                        struct recurring *c, const size_t *kept, struct stepper *w) {
    struct axis axes[TASK_MAX_VARS], whole[TASK_MAX_VARS];
    struct affine place, whole_place;
    struct nest room = {.in = ev->in};
    size_t naxes, content = ev->in->task->ntensors + ev->nstages;
    struct ranges terms = at->kept;
    int64_t count = stage_axes(&at->kept, expr_vars(e), axes, &naxes, &place);
    if (ev->nstages == STAGES_MOST || count < 0 ||
        stage_axes(&at->whole, expr_vars(e), whole, &naxes, &whole_place) < 0)
        return err_set(ev->err, ERR_INPUT, "a reduction depends on too many values of its indices");
    room.target = (struct target){.place = place};
    ev->points += (double)count;
    if (!stage_alloc(ev, &room, count))
        return false;
    c->contents = ev->contents;
    c->to = room.target;
    for (size_t k = 0; k < c->r->nfactors; k++)
        c->factor[k] = &ev->stages[kept[k]];
    if (ranges_enter(&terms, e->reduce))
        c->terms = terms.index[c->r->var].hi + 1;
    ev->whole_stages[ev->nstages] = (struct stage){e, content, whole_place};
    ev->stages[ev->nstages++] = (struct stage){e, content, place};
    if (ev->dry)
        return true;
    w->c = c;
    run_lines(w, axes, naxes);
    ev->contents[content] = content_of(DTYPE_F64, c->to.value, c->to.error, c->to.peak, 0, count);
    return true;
}

static bool recurrence_run(struct evaluation *ev, const struct expr *e, const struct recurrence *r,
                           const struct standing *at) {
    size_t kept[RECURRENCE_FACTORS + 2];
    struct recurring c = {.rules = rules_of(ev->in->task->accuracy), .r = r};
    struct step state;
    struct stepper w = {.begin = begin_recurrence,
                        .step = step_recurrence,
                        .keep = keep_recurrence,
                        .state = &state};
    if (!recurrence_stages(ev, e, r, at, kept))
        return false;
    c.gain = r->gain ? &ev->stages[kept[r->nfactors]] : NULL;
    c.decay = &ev->stages[kept[r->nfactors + (r->gain != NULL)]];
    return results_run(ev, e, at, &c, kept, &w);
}

/* ---- running sums of exponentials ----
 *
 * sum(k <= j) w[k] * exp(x[k] - m[j]): the parts of the exponent are evaluated as tensors of their
 * own. A step keeps the largest x and the sum of w*exp(x - largest), and of its error what depends
 * on the exponent as a polynomial of it, so that the result's m can be put in. */

enum { EXPONENT_PARTS = 8 };
struct exponential_parts {
    struct {
        const struct expr *e;
        const struct stage *stage;
        bool minus;
    } of_term[EXPONENT_PARTS], of_result[EXPONENT_PARTS];
    size_t nterm, nresult;
};

struct exponential_step {
    struct disorder disorder;
    double most;      /* of x so far */
    double sum, size; /* of w*exp(x - most), and of magnitudes */
    double error;     /* variance of that */
    double moment[3]; /* of (w*exp(x - most))^2, times 1, x - most, and its square */
    double partial;   /* rounding of partial sums, in units of one */
    double heaviest;  /* magnitude of w */
    double terms, peak;
    bool nan, undefined; /* a NaN was put in; an infinity of which NaN may be made */
};

static bool part_exponent(const struct expr *e, bool minus, const struct recurrence *r,
                          struct exponential_parts *out) {
    if (e->kind == EXPR_NEG)
        return part_exponent(e->args[0], !minus, r, out);
    if (e->kind == EXPR_ADD || e->kind == EXPR_SUB)
        return part_exponent(e->args[0], minus, r, out) &&
               part_exponent(e->args[1], minus != (e->kind == EXPR_SUB), r, out);
    bool term = expr_vars(e) >> r->var & 1;
    size_t *n = term ? &out->nterm : &out->nresult;
    if (*n == EXPONENT_PARTS)
        return false;
    (term ? out->of_term : out->of_result)[*n].e = e;
    (term ? out->of_term : out->of_result)[(*n)++].minus = minus;
    return true;
}

static struct value exponent_at(const struct recurring *c, bool term, const int64_t *at,
                                double *peak) {
    const struct exponential_parts *p = c->exponentials;
    struct value sum = value_of(0, 0);
    for (size_t i = 0; i < (term ? p->nterm : p->nresult); i++) {
        struct value x = kept_at(c, term ? p->of_term[i].stage : p->of_result[i].stage, at, peak);
        x.v = (term ? p->of_term : p->of_result)[i].minus ? -x.v : x.v;
        sum = i ? add_settled(&c->rules, sum, x) : x;
    }
    return sum;
}

static void begin_exponentials(const struct recurring *c, int64_t *at, void *state) {
    (void)c;
    (void)at;
    *(struct exponential_step *)state = (struct exponential_step){.most = -INFINITY};
}

/* All that is kept is less a new largest exponent. */
static void raise_most(struct exponential_step *s, double most) {
    double up = most - s->most, by = exp(-up), *m = s->moment;
    s->most = most;
    if (by == 0 || !isfinite(up)) {
        s->sum = s->size = s->error = s->partial = m[0] = m[1] = m[2] = 0;
        s->disorder = (struct disorder){0};
        return;
    }
    disorder_step(&s->disorder, by, 0);
    s->disorder.terms -= 1;
    s->sum *= by;
    s->size *= by;
    s->error *= by * by;
    s->partial *= by * by;
    m[2] = (m[2] - 2 * up * m[1] + up * up * m[0]) * by * by;
    m[1] = (m[1] - up * m[0]) * by * by;
    m[0] *= by * by;
}

static void step_exponentials(const struct recurring *c, bool first, const int64_t *at,
                              void *state) {
    struct exponential_step *s = state;
    const struct rules *r = &c->rules;
    struct value x = exponent_at(c, true, at, &s->peak), w = term_at(c, at, &s->peak);
    (void)first;
    s->terms++;
    s->nan |= isnan(x.v) || isnan(w.v);
    s->undefined |= isinf(x.e) || isinf(w.e) || x.v == INFINITY || isinf(w.v);
    if (s->nan || s->undefined || x.v == -INFINITY)
        return;
    if (x.v > s->most)
        raise_most(s, x.v);
    double d = x.v - s->most, power = exp(d), term = w.v * power;
    size_t factors = c->r->nfactors + 1;
    double own = 5 * r->unit2 + x.e + (factors > 1 ? (double)factors * r->operand2 : 0);
    disorder_step(&s->disorder, 1, term);
    s->sum += term;
    s->size += fabs(term);
    s->error += term * term * own + power * power * w.e;
    s->moment[0] += term * term;
    s->moment[1] += term * term * d;
    s->moment[2] += term * term * d * d;
    s->partial += s->sum * s->sum;
    s->heaviest = fmax(s->heaviest, fabs(w.v));
}

static void keep_exponentials(const struct recurring *c, const int64_t *at, void *state) {
    struct exponential_step *s = state;
    const struct rules *r = &c->rules;
    struct value m = exponent_at(c, false, at, &s->peak);
    double more = s->most + m.v, scale = exp(more), v = s->sum * scale;
    const double *q = s->moment;
    if (s->terms == 0 || s->nan || isnan(m.v)) {
        bool none = s->terms == 0;
        keep_value(c, at, value_of(none ? 0 : NAN, s->undefined && !s->nan ? INFINITY : 0),
                   s->peak);
        return;
    }
    bool nothing = s->most == -INFINITY; /* all terms are 0, if m is a number */
    s->peak = fmax(s->peak, nothing ? 0 : s->size * scale);
    if (s->undefined || isinf(m.v) || isinf(m.e) || (!nothing && !(scale <= FLOAT_MOST)) ||
        (!nothing && !(s->size * scale <= FLOAT_MOST))) {
        keep_value(c, at, value_of(nothing ? 0 : v, INFINITY), s->peak);
        return;
    }
    if (nothing) {
        keep_value(c, at, value_of(0, 0), s->peak);
        return;
    }
    double moments = q[2] + 2 * more * q[1] + more * more * q[0];
    double e = scale * scale *
                   (s->error + r->unit2 * (2 * fmax(moments, 0) + s->partial) +
                    disorder_variance(&s->disorder, r, s->sum)) +
               v * v * m.e + s->terms * 16 * r->least2 * fmax(1, s->heaviest * s->heaviest);
    keep_value(c, at, value_of(v, e), s->peak);
}

static bool exponentials_run(struct evaluation *ev, const struct expr *e,
                             const struct exponentials *x, const struct standing *at) {
    size_t kept[RECURRENCE_FACTORS + 2];
    struct exponential_parts parts = {.nterm = 0};
    struct recurring c = {
        .rules = rules_of(ev->in->task->accuracy), .r = &x->terms, .exponentials = &parts};
    struct exponential_step state;
    struct stepper w = {.begin = begin_exponentials,
                        .step = step_exponentials,
                        .keep = keep_exponentials,
                        .state = &state};
    struct standing inside = *at;
    if (!part_exponent(x->power->args[0], false, &x->terms, &parts))
        return err_set(ev->err, ERR_INPUT, "an exponent has more than %d parts", EXPONENT_PARTS);
    if (!recurrence_stages(ev, e, &x->terms, at, kept))
        return false;
    enter(&inside.kept, e->reduce);
    enter(&inside.whole, e->reduce);
    for (size_t k = 0; k < parts.nterm + parts.nresult; k++) {
        bool term = k < parts.nterm;
        const struct expr *part = term ? parts.of_term[k].e : parts.of_result[k - parts.nterm].e;
        const struct standing *where = term ? &inside : at;
        if (!run_stages(ev, part, where, true) || !stage_run(ev, part, where))
            return false;
        *(term ? &parts.of_term[k].stage : &parts.of_result[k - parts.nterm].stage) =
            &ev->stages[ev->nstages - 1];
    }
    return results_run(ev, e, at, &c, kept, &w);
}

/* ---- segments ----
 *
 * sum(k <= j | k >= start[j]) x[k], where a segment begins wherever start[j] is j. */

struct segment_step {
    struct value v;
    struct disorder disorder;
    bool some;
    double sum, peak; /* of magnitudes */
};

static struct value empty_segment(enum reduction op) {
    return value_of(op == REDUCTION_PROD  ? 1
                    : op == REDUCTION_MAX ? -INFINITY
                    : op == REDUCTION_MIN ? INFINITY
                                          : 0,
                    0);
}

static bool begins_at(const struct recurring *c, const int64_t *at, int64_t place) {
    int64_t own[TASK_MAX_VARS];
    double ignored = 0;
    memcpy(own, at, sizeof own);
    own[c->r->axis] = place;
    return kept_at(c, c->bound, own, &ignored).v == (double)place;
}

static void begin_segments(const struct recurring *c, int64_t *at, void *state) {
    (void)at;
    *(struct segment_step *)state = (struct segment_step){.v = empty_segment(c->op)};
}

static struct value combine_settled(const struct recurring *c, struct value x, struct value y) {
    struct rules r = c->whole_numbers ? integer_rules(c->rules) : c->rules;
    int how = c->whole_numbers ? SETTLE_INTEGER : 0;
    struct value v;
    if (c->op == REDUCTION_MAX || c->op == REDUCTION_MIN)
        return isnan(y.v) && !isnan(x.v) ? y
               : c->op == REDUCTION_MAX  ? pick_larger(r, x, y)
                                         : pick_smaller(r, x, y);
    if (c->op == REDUCTION_PROD)
        v = settle_of(r, how | SETTLE_FACTORS, value_mul(r, x, y), x, y, value_of(0, 0));
    else
        v = settle_of(r, how, value_add(r, x, y), x, y, value_of(0, 0));
    if (isinf(v.v))
        v.e = fmax(v.e, 1); /* kernels that compensate make NaN of it */
    return v;
}

static void step_segments(const struct recurring *c, bool first, const int64_t *at, void *state) {
    struct segment_step *s = state;
    struct value u = term_at(c, at, &s->peak);
    (void)first;
    if (begins_at(c, at, at[c->r->var]))
        s->some = false;
    s->sum = s->some && c->op == REDUCTION_SUM ? s->sum + fabs(u.v) : fabs(u.v);
    s->disorder = s->some ? s->disorder : (struct disorder){0};
    disorder_step(&s->disorder, 1, u.v);
    s->v = s->some ? combine_settled(c, s->v, u) : u;
    s->some = true;
    s->peak = fmax(s->peak, fmax(s->sum, fabs(s->v.v)));
}

static void keep_segments(const struct recurring *c, const int64_t *at, void *state) {
    const struct segment_step *s = state;
    bool empty = !s->some || (c->r->exclusive && begins_at(c, at, at[c->r->axis]));
    struct value v = empty ? empty_segment(c->op) : s->v;
    if (c->op == REDUCTION_SUM && !c->whole_numbers && !empty)
        v.e += disorder_variance(&s->disorder, &c->rules, v.v);
    keep_value(c, at, v, s->peak);
}

static bool segments_run(struct evaluation *ev, const struct expr *e, const struct segments *g,
                         const struct standing *at) {
    size_t kept[RECURRENCE_FACTORS + 2];
    struct recurrence r = {.factor = {e->args[0]},
                           .nfactors = 1,
                           .axis = g->axis,
                           .var = g->var,
                           .backwards = g->backwards,
                           .exclusive = g->exclusive};
    struct recurring c = {.rules = rules_of(ev->in->task->accuracy),
                          .r = &r,
                          .op = e->reduce->op,
                          .whole_numbers = e->value_kind == VALUE_INT};
    struct segment_step state;
    struct stepper w = {
        .begin = begin_segments, .step = step_segments, .keep = keep_segments, .state = &state};
    if (!run_stages(ev, g->bound, at, true) || !stage_run(ev, g->bound, at))
        return false;
    c.bound = &ev->stages[ev->nstages - 1];
    return recurrence_stages(ev, e, &r, at, kept) && results_run(ev, e, at, &c, kept, &w);
}

/* Of a part of the results the begins before it are not there: it is evaluated as it is written. */
static bool is_segments(const struct evaluation *ev, const struct expr *e, struct segments *out) {
    return !ev->part && e->kind == EXPR_REDUCE && e->reduce->guard &&
           e->reduce->guard->kind != EXPR_AND && pattern_is_segments(ev->in->task, e, out);
}

static void enter(struct ranges *r, const struct reduce *over) {
    struct ranges inside = *r;
    if (ranges_enter(&inside, over))
        *r = inside;
}

/* All reductions of an expression, inner ones first; `itself`: it, too, if it is one. */
static bool run_stages(struct evaluation *ev, const struct expr *e, const struct standing *at,
                       bool itself) {
    struct standing inside = *at;
    struct recurrence steps;
    if (e->kind == EXPR_REDUCE && pattern_is_recurrence(e, &steps))
        return recurrence_run(ev, e, &steps, at);
    struct exponentials scaled;
    if (e->kind == EXPR_REDUCE && pattern_is_exponentials(e, &scaled))
        return exponentials_run(ev, e, &scaled, at);
    struct segments segments;
    if (is_segments(ev, e, &segments))
        return segments_run(ev, e, &segments, at);
    if (e->kind == EXPR_REDUCE) {
        enter(&inside.kept, e->reduce);
        enter(&inside.whole, e->reduce);
    }
    for (size_t k = 0; k < e->nargs; k++)
        if (!run_stages(ev, e->args[k], &inside, true))
            return false;
    if (e->kind == EXPR_REDUCE && e->reduce->guard &&
        !run_stages(ev, e->reduce->guard, &inside, true))
        return false;
    return e->kind != EXPR_REDUCE || !itself || stage_run(ev, e, at);
}

/* The left side: its axes, of what is kept and of the whole, and where its elements lie. */
static void left_side(const struct inst *in, const struct statement *s, const struct window *w,
                      struct axis *axes, struct axis *whole, struct affine *place) {
    *place = (struct affine){.c = -w->first};
    for (size_t k = 0; k < in->task->tensors[s->tensor].rank; k++) {
        int v = s->position[k];
        int64_t at = 0;
        if (v >= 0) {
            axes[v] = (struct axis){(size_t)v, w->lo[k], w->n[k]};
            whole[v] = (struct axis){(size_t)v, 0, in->tensors[s->tensor].extent[k]};
            place->coef[v] += w->stride[k];
            place->vars |= UINT32_C(1) << v;
        } else {
            BUG_IF(!expr_eval_dims(s->constant[k], in->dims, &at));
            place->c += at * w->stride[k];
        }
    }
}

/* Terms that are elements of an input are exact: none ties with another within its error. */
static bool may_tie(const struct task *t, const struct statement *s) {
    const struct expr *term = s->body->args[0];
    return term->kind != EXPR_READ || !tensor_is_input(&t->tensors[term->ref]) ||
           t->tensors[term->ref].dtype == DTYPE_F64;
}

/* The table of near-ties covers the widest range of the statements that define the tensor. */
static bool ties_alloc(struct evaluation *ev, size_t tensor) {
    const struct task *t = ev->in->task;
    int64_t lo = INT64_MAX, hi = INT64_MIN, span;
    size_t bytes;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        struct ranges r = ranges_of(ev->in, s);
        if (s->tensor != tensor || !pattern_is_index(t, s) || !may_tie(t, s) ||
            !ranges_enter(&r, s->body->reduce))
            continue;
        struct range v = r.index[s->body->reduce->vars[0].var];
        lo = v.lo < lo ? v.lo : lo;
        hi = v.hi > hi ? v.hi : hi;
    }
    if (hi < lo || !sub_i64(hi, lo, &span))
        return true;
    ev->tie_lo[tensor] = lo;
    ev->tie_words[tensor] = (size_t)span / 64 + 1;
    if (!mul_size((size_t)ev->windows->made[tensor].count, ev->tie_words[tensor], &bytes) ||
        !mul_size(bytes, sizeof(uint64_t), &bytes) ||
        !(ev->ties[tensor] = mem_try_resize(NULL, bytes)))
        return err_set(ev->err, ERR_ENV, "no memory for the near-ties of the reference");
    memset(ev->ties[tensor], 0, bytes);
    return true;
}

static void take_old(struct evaluation *ev, size_t tensor) {
    for (size_t i = 0; i < ev->nold; i++) {
        struct reference *r = &ev->old[i];
        if (r->tensor != tensor)
            continue;
        ev->value[tensor] = r->value;
        ev->error[tensor] = r->estimate;
        r->value = r->estimate = NULL;
    }
}

/* Several statements may define one tensor: the first makes room. */
static bool tensor_alloc(struct evaluation *ev, size_t tensor) {
    int64_t count = ev->windows->made[tensor].count;
    if (ev->value[tensor] || ev->dry)
        return true;
    take_old(ev, tensor);
    if (!ev->value[tensor])
        ev->value[tensor] = array_for(ev, count);
    if (ev->value[tensor] && !ev->error[tensor])
        ev->error[tensor] = array_for(ev, count);
    return ev->error[tensor] && ties_alloc(ev, tensor);
}

static void stages_release(struct evaluation *ev) {
    for (size_t i = 0; i < ev->nstages; i++)
        mem_free(ev->stage_data[i]);
    ev->nstages = 0;
}

static struct target target_of(const struct evaluation *ev, size_t tensor, struct affine place,
                               const struct finish *finish) {
    return (struct target){.value = ev->value[tensor],
                           .error = ev->error[tensor],
                           .place = place,
                           .finish = finish,
                           .ties = ev->ties[tensor],
                           .tie_lo = ev->tie_lo[tensor],
                           .tie_words = ev->tie_words[tensor]};
}

static bool run_statement(struct evaluation *ev, const struct statement *s) {
    const struct tensor *t = &ev->in->task->tensors[s->tensor];
    const struct window *w = &ev->windows->made[s->tensor];
    struct finish finish = {.dtype = t->dtype,
                            .typed_let = t->role == TENSOR_LET && t->dtype != DTYPE_F64,
                            .output = tensor_is_output(t),
                            .limits = accuracy_limits(ev->in->task->accuracy)};
    struct standing at = {.whole = ranges_of(ev->in, s)};
    struct axis axes[TASK_MAX_RANK], whole[TASK_MAX_RANK];
    struct nest n;
    ev->s = s;
    if (!window_ranges(ev->in, s, w, &at.kept))
        return true; /* it defines nothing that is kept */
    if (!tensor_alloc(ev, s->tensor))
        return false;
    bool ok = run_stages(ev, s->body, &at, false); /* a body that is a reduction is a nest itself */
    if (ok) {
        struct affine place;
        left_side(ev->in, s, w, axes, whole, &place);
        make_nest(ev, &n, s->body, axes, whole, s->nindex);
        n.target = target_of(ev, s->tensor, place, &finish);
        ok = run_nest(ev, &n);
    }
    stages_release(ev);
    if (ok && t->role == TENSOR_LET && !ev->dry)
        ev->contents[s->tensor] = content_of(DTYPE_F64, ev->value[s->tensor], ev->error[s->tensor],
                                             NULL, w->first, w->count);
    return ok;
}

/* ---- lets that read their own earlier steps (recur.h) ----
 *
 * Step after step, of each let the elements of one step: its line box, the box of its window
 * without the axis. Where a step reads other lines of the step before, errors are those of any let:
 * independent from element to element. What an element reads of its own line is followed exactly,
 * because there the same error comes back in every step: in h + a*(x - h) it shrinks, as two
 * independent errors it would grow without end. So the errors of a line's states (the values that a
 * later step reads) have a covariance matrix. A step is evaluated with all states exact, which
 * gives its value and the errors that are new, and again with each state moved to either side by as
 * much as it may be off; what that changes carries the matrix on.
 *
 * Errors of different lines may be one and the same, where data repeat, and then a sum over lines
 * makes more of them than of independent ones, step after step. So a trial goes beside, in which
 * all new errors of a step have one sign: how far it gets away is an error that a kernel may make,
 * too.
 *
 * All this holds while errors are small. A state that may be off by more than a little of what it
 * has been is not judged, nor is what follows from it. */

enum { STATES_MOST = 8, STEP_ARRAYS = 1024, TRIALS = 1 };

enum way { WAY_UP, WAY_DOWN, WAY_LITTLE_UP, WAY_LITTLE_DOWN, WAYS };

/* A read of the reader's own line, as a tensor of its own: the line box `lag` steps before. */
struct echo {
    size_t tensor, member; /* its number; whose line it is */
    int64_t lag;
    double *value, *variance; /* lag > 0: the line as it was */
};

/* A let of the recurrence. */
struct member {
    struct statement s;    /* with its own line as echoes */
    size_t kin;            /* lets with the same lines: the number of the first member of them */
    bool follows;          /* it depends on a state of its line */
    struct window line;    /* of the step at hand */
    int64_t lags;          /* states: its last so many steps */
    size_t state;          /* number of the first of them among those of its kin */
    double *larger;        /* of the step: fresh, with states moved */
    double *value, *fresh; /* of the step: value, and variance of the errors that are new */
    double *moved, *shift; /* … with a state moved, by state and way; what a deviation changes */
    /* The steps that are read: `rows` of them, in the order of the axis, each a line box. */
    int64_t rows;
    double *late, *late_error, *trial[TRIALS];
    double *size;           /* of each element of the line the largest value so far */
    double *states, *after; /* of the first of its kin: the covariances, and those after the step */
    size_t nstates;
};

struct stepping {
    struct evaluation *ev;
    struct arena *a;
    struct task task; /* with the echoes */
    struct inst in, kept;
    struct windows windows;
    struct member member[TASK_MAX_TENSORS];
    size_t n;
    struct echo echo[TASK_MAX_TENSORS];
    size_t nechoes;
    bool decides; /* a small change may make a value jump */
    double *scratch, *moved_error, *zeros;
    double *owned[STEP_ARRAYS];
    size_t nowned;
};

static double *line_array(struct stepping *c, int64_t count, size_t times) {
    int64_t n;
    double *p = NULL;
    if (c->ev->dry)
        return NULL;
    if (c->nowned < STEP_ARRAYS && mul_i64(count, (int64_t)(times ? times : 1), &n))
        p = array_for(c->ev, n);
    else
        err_set(c->ev->err, ERR_INPUT, "a recurrence of too many lets for the reference");
    if (p) {
        memset(p, 0, (size_t)n * sizeof *p);
        c->owned[c->nowned++] = p;
    }
    return p;
}

static size_t member_of(const struct stepping *c, size_t tensor) {
    size_t i = 0;
    while (i < c->n && c->member[i].s.tensor != tensor)
        i++;
    return i;
}

/* The echo of the member at that lag; made where it is new and there is room. SIZE_MAX: none. */
static size_t echo_find(struct stepping *c, size_t member, int64_t lag) {
    for (size_t i = 0; i < c->nechoes; i++)
        if (c->echo[i].member == member && c->echo[i].lag == lag)
            return i;
    if (c->task.ntensors == TASK_MAX_TENSORS || lag > STATES_MOST)
        return SIZE_MAX;
    size_t tensor = c->task.ntensors++;
    c->task.tensors[tensor] = c->task.tensors[c->member[member].s.tensor];
    c->echo[c->nechoes] = (struct echo){.tensor = tensor, .member = member, .lag = lag};
    return c->nechoes++;
}

/* The tree with reads of the own line as reads of echoes. */
static struct expr *echoed(struct stepping *c, const struct statement *s, const struct expr *e) {
    struct expr *to = arena_new_of(c->a, struct expr);
    int64_t lag;
    *to = *e;
    to->args = arena_array(c->a, struct expr *, e->nargs + 1);
    for (size_t i = 0; i < e->nargs; i++)
        to->args[i] = echoed(c, s, e->args[i]);
    if (e->kind == EXPR_REDUCE && e->reduce->guard) {
        struct reduce *r = arena_new_of(c->a, struct reduce);
        *r = *e->reduce;
        r->guard = echoed(c, s, e->reduce->guard);
        to->reduce = r;
    }
    if (e->kind == EXPR_READ && recurrence_lag(c->ev->in->task, s, e, &lag) &&
        recurrence_is_own_line(c->ev->in->task, s, e)) {
        size_t echo = echo_find(c, member_of(c, e->ref), lag);
        if (echo != SIZE_MAX)
            to->ref = c->echo[echo].tensor;
    }
    return to;
}

/* Where a small error may change a value by more than itself. */
static bool expr_decides(const struct expr *e) {
    bool data = expr_reads(e);
    if (data && ((e->kind >= EXPR_EQ && e->kind <= EXPR_GE) ||
                 (e->kind == EXPR_CALL && function_info(e->function)->result == RESULT_WHOLE) ||
                 e->kind == EXPR_FLOORDIV || e->kind == EXPR_MOD ||
                 (e->kind == EXPR_REDUCE &&
                  (e->reduce->op == REDUCTION_ARGMAX || e->reduce->op == REDUCTION_ARGMIN))))
        return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_decides(expr_part(e, i)))
            return true;
    return false;
}

/* It reads a state of its line, or what follows from one in the same step. */
static bool expr_follows(const struct stepping *c, const struct expr *e) {
    for (size_t i = 0; e->kind == EXPR_READ && i < c->nechoes; i++)
        if (c->echo[i].tensor == e->ref &&
            (c->echo[i].lag > 0 || c->member[c->echo[i].member].follows))
            return true;
    for (size_t i = 0; i < expr_nparts(e); i++)
        if (expr_follows(c, expr_part(e, i)))
            return true;
    return false;
}

/* The window of a let without its axis: one step of it. */
static void set_line(struct member *m, const struct window *w, size_t rank) {
    size_t axis = m->s.recurs.axis;
    m->line = *w;
    m->line.lo[axis] = 0;
    m->line.n[axis] = 1;
    m->line.first = 0;
    m->line.count = 1;
    for (size_t k = rank; k-- > 0;) {
        m->line.stride[k] = k == axis ? 0 : m->line.count;
        m->line.first += m->line.lo[k] * m->line.stride[k];
        m->line.count *= m->line.n[k];
    }
}

/* How many steps of each let are read at a time. */
static void find_rows(struct stepping *c, const struct statement *s, const struct expr *e) {
    int64_t lag;
    if (e->kind == EXPR_READ && recurrence_lag(c->ev->in->task, s, e, &lag)) {
        struct member *m = &c->member[member_of(c, e->ref)];
        m->rows = lag + 1 > m->rows ? lag + 1 : m->rows;
    }
    for (size_t i = 0; i < expr_nparts(e); i++)
        find_rows(c, s, expr_part(e, i));
}

static void set_members(struct stepping *c, const struct statement *first, size_t n) {
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->member[i].s = first[i];
    for (size_t i = 0; i < n; i++) {
        struct member *m = &c->member[i];
        const struct tensor *t = &c->task.tensors[m->s.tensor];
        m->kin = i;
        m->rows = 1;
        for (size_t k = 0; k < i && m->kin == i; k++)
            if (c->member[k].s.recurs.axis == m->s.recurs.axis &&
                extents_same(&c->task.tensors[c->member[k].s.tensor], t))
                m->kin = k;
        set_line(m, &c->windows.made[m->s.tensor], t->rank);
        c->decides |= (t->dtype != DTYPE_F64) | expr_decides(m->s.body);
        m->s.body = echoed(c, &first[i], first[i].body);
        m->follows = expr_follows(c, m->s.body);
    }
    for (size_t i = 0; i < n; i++)
        find_rows(c, &first[i], first[i].body);
}

/* Of a let as many states as the longest echo goes back. */
static void set_states(struct stepping *c) {
    for (size_t i = 0; i < c->nechoes; i++) {
        struct member *m = &c->member[c->echo[i].member];
        m->lags = c->echo[i].lag > m->lags ? c->echo[i].lag : m->lags;
    }
    for (size_t i = 0; i < c->n; i++) {
        struct member *m = &c->member[i];
        m->state = c->member[m->kin].nstates;
        c->member[m->kin].nstates += (size_t)m->lags;
    }
}

/* The echoes as tensors, with the places of their lines; and the lets as they are read: one step
 * behind the other. */
static void bind_echoes(struct stepping *c, const struct inst *from, struct inst *to) {
    *to = *from;
    to->task = &c->task;
    to->tensors = arena_array(c->a, struct bound_tensor, TASK_MAX_TENSORS);
    memcpy(to->tensors, from->tensors, from->task->ntensors * sizeof *to->tensors);
    for (size_t i = 0; i < c->nechoes; i++) {
        const struct member *m = &c->member[c->echo[i].member];
        struct bound_tensor *b = &to->tensors[c->echo[i].tensor];
        *b = from->tensors[m->s.tensor];
        memcpy(b->stride, m->line.stride, sizeof b->stride);
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct member *m = &c->member[i];
        struct bound_tensor *b = &to->tensors[m->s.tensor];
        memcpy(b->stride, m->line.stride, sizeof b->stride);
        b->stride[m->s.recurs.axis] = m->line.count;
    }
}

static bool set_arrays(struct stepping *c) {
    int64_t longest = 1, most_rows = 1;
    for (size_t i = 0; i < c->n; i++) {
        struct member *m = &c->member[i], *kin = &c->member[m->kin];
        if (!(m->value = line_array(c, m->line.count, 1)) ||
            !(m->fresh = line_array(c, m->line.count, 1)) ||
            !(m->larger = line_array(c, m->line.count, 1)) ||
            !(m->moved = line_array(c, m->line.count, kin->nstates * WAYS)) ||
            !(m->shift = line_array(c, m->line.count, kin->nstates)) ||
            !(m->states = line_array(c, m->line.count, m->nstates * m->nstates)) ||
            !(m->after = line_array(c, m->line.count, m->nstates * m->nstates)))
            return false;
        longest = m->line.count > longest ? m->line.count : longest;
        most_rows = m->rows * m->line.count > most_rows ? m->rows * m->line.count : most_rows;
        if (!(m->late = line_array(c, m->line.count, (size_t)m->rows)) ||
            !(m->late_error = line_array(c, m->line.count, (size_t)m->rows)) ||
            !(m->size = line_array(c, m->line.count, 1)))
            return false;
        for (size_t k = 0; k < TRIALS; k++)
            if (!(m->trial[k] = line_array(c, m->line.count, (size_t)m->rows)))
                return false;
    }
    for (size_t i = 0; i < c->nechoes; i++) {
        struct echo *x = &c->echo[i];
        int64_t count = c->member[x->member].line.count;
        if (x->lag > 0 &&
            (!(x->value = line_array(c, count, 1)) || !(x->variance = line_array(c, count, 1))))
            return false;
    }
    return (c->scratch = line_array(c, longest, 1)) &&
           (c->moved_error = line_array(c, longest, 1)) && (c->zeros = line_array(c, most_rows, 1));
}

/* One step of a let, from the line to the whole of its window. */
static void line_store(const struct stepping *c, const struct member *m, int64_t step,
                       const double *line, double *whole) {
    const struct window *w = &c->windows.made[m->s.tensor];
    size_t axis = m->s.recurs.axis;
    int64_t inner = w->stride[axis], outer = m->line.count / inner;
    for (int64_t o = 0; o < outer; o++)
        memcpy(whole + (o * w->n[axis] + step - w->lo[axis]) * inner, line + o * inner,
               (size_t)inner * sizeof *line);
}

/* Where the step `lag` before the one at hand lies among those that are read. */
static double *row_of(const struct member *m, double *rows, int64_t lag) {
    return rows + (m->s.recurs.backwards ? lag : m->rows - 1 - lag) * m->line.count;
}

/* Makes room for the next step. */
static void rows_advance(const struct member *m, double *rows) {
    size_t n = (size_t)((m->rows - 1) * m->line.count);
    bool back = m->s.recurs.backwards;
    memmove(back ? rows + m->line.count : rows, back ? rows : rows + m->line.count,
            n * sizeof *rows);
    memset(row_of(m, rows, 0), 0, (size_t)m->line.count * sizeof *rows);
}

static bool is_settled(double value, double variance) {
    return isfinite(value) && isfinite(variance);
}

/* The steps before, exact as far as they are numbers. */
static void fetch_echoes(struct stepping *c) {
    for (size_t i = 0; i < c->nechoes; i++) {
        struct echo *x = &c->echo[i];
        const struct member *m = &c->member[x->member];
        size_t bytes = (size_t)m->line.count * sizeof(double);
        if (x->lag == 0)
            continue;
        memcpy(x->value, row_of(m, m->late, x->lag), bytes);
        memcpy(x->variance, row_of(m, m->late_error, x->lag), bytes);
        for (int64_t p = 0; p < m->line.count; p++)
            if (is_settled(x->value[p], x->variance[p]))
                x->variance[p] = 0;
    }
}

static void show_echo(struct stepping *c, const struct echo *x, const double *value,
                      const double *variance) {
    const struct member *m = &c->member[x->member];
    c->ev->contents[x->tensor] =
        content_of(DTYPE_F64, value, variance, NULL, m->line.first, m->line.count);
}

static void show_echoes(struct stepping *c) {
    for (size_t i = 0; i < c->nechoes && !c->ev->dry; i++) {
        const struct echo *x = &c->echo[i];
        const struct member *m = &c->member[x->member];
        show_echo(c, x, x->lag ? x->value : m->value, x->lag ? x->variance : m->fresh);
    }
}

/* What other lines read of the lets: as they are, or in a trial, where only new errors count. */
static void show_lets(struct stepping *c, int64_t step, int trial) {
    for (size_t i = 0; i < c->n && !c->ev->dry; i++) {
        const struct member *m = &c->member[i];
        int64_t first = m->s.recurs.backwards ? step : step - (m->rows - 1);
        const double *value = trial < 0 ? m->late : m->trial[trial];
        c->ev->contents[m->s.tensor] =
            content_of(DTYPE_F64, value, trial < 0 ? m->late_error : c->zeros, NULL,
                       first * m->line.count + m->line.first, m->rows * m->line.count);
    }
}

/* The let's elements of one step, with what the echoes hold now. */
static bool run_member(struct stepping *c, struct member *m, int64_t step, double *value,
                       double *error) {
    struct evaluation *ev = c->ev;
    const struct tensor *t = &c->task.tensors[m->s.tensor];
    struct finish finish = {.dtype = t->dtype,
                            .typed_let = t->dtype != DTYPE_F64,
                            .limits = accuracy_limits(c->task.accuracy)};
    struct axis axes[TASK_MAX_RANK], whole[TASK_MAX_RANK];
    struct standing at = {.whole = ranges_of(ev->in, &m->s)};
    struct affine place;
    struct nest n;
    size_t axis = m->s.recurs.axis;
    m->line.lo[axis] = step;
    ev->s = &m->s;
    if (!window_ranges(ev->in, &m->s, &m->line, &at.kept))
        return true;
    at.whole.index[axis] = at.kept.index[axis];
    bool ok = run_stages(ev, m->s.body, &at, false);
    if (ok) {
        left_side(ev->in, &m->s, &m->line, axes, whole, &place);
        whole[axis] = axes[axis];
        make_nest(ev, &n, m->s.body, axes, whole, m->s.nindex);
        n.target =
            (struct target){.value = value, .error = error, .place = place, .finish = &finish};
        ok = run_nest(ev, &n);
    }
    stages_release(ev);
    return ok;
}

/* How far a state is moved, in standard deviations. What is decided within the factor that one
 * element may be off counts; a little move tells a jump from a slope. */
static double reach_of(const struct stepping *c, enum way way) {
    double worst = accuracy_limits(c->task.accuracy).worst;
    return way == WAY_UP ? worst : way == WAY_DOWN ? -worst : way == WAY_LITTLE_UP ? 1 : -1;
}

static double deviation(const struct member *kin, size_t state, int64_t p) {
    double variance = kin->states[(int64_t)(state * kin->nstates + state) * kin->line.count + p];
    return variance > 0 && isfinite(variance) ? sqrt(variance) : 0;
}

/* Of one element: what one standard deviation of the state changes. */
static double shift_of(const struct stepping *c, const struct member *m, size_t state, int64_t p) {
    const double *moved = m->moved + (int64_t)(state * WAYS) * m->line.count + p;
    double best = 0, far = reach_of(c, WAY_UP);
    for (int side = 0; side < 2; side++) {
        double sign = side ? -1 : 1;
        double large = sign * (moved[side * m->line.count] - m->value[p]), each = large / far;
        if (c->decides) {
            double little = sign * (moved[(side + 2) * m->line.count] - m->value[p]);
            bool jumps = fabs(large) > 2 * far * fabs(little);
            each = jumps ? large : fabs(little) > fabs(each) ? little : each;
        }
        if (isnan(each))
            return INFINITY;
        best = fabs(each) > fabs(best) ? each : best;
    }
    return best;
}

/* The step once more with one state moved. */
static bool run_moved(struct stepping *c, struct member *m, int64_t step, const struct echo *x,
                      enum way way) {
    const struct member *kin = &c->member[m->kin];
    size_t state = c->member[x->member].state + (size_t)x->lag - 1;
    int64_t count = m->line.count, at = (int64_t)(state * WAYS + way) * count;
    double peak = c->ev->peak, *shifted = c->scratch;
    for (int64_t p = 0; p < count && !c->ev->dry; p++)
        shifted[p] = x->value[p] + reach_of(c, way) * deviation(kin, state, p);
    for (size_t i = 0; i < c->nechoes && !c->ev->dry; i++) {
        const struct echo *o = &c->echo[i];
        const struct member *of = &c->member[o->member];
        if (o == x)
            show_echo(c, o, shifted, x->variance);
        else if (o->lag == 0 && of->kin == m->kin && of->follows)
            show_echo(c, o, of->moved + at, of->fresh);
    }
    bool ok = run_member(c, m, step, m->moved ? m->moved + at : NULL, c->moved_error);
    c->ev->peak = peak;
    show_echoes(c);
    return ok;
}

static bool any_deviation(const struct stepping *c, const struct member *kin, size_t state) {
    for (int64_t p = 0; p < kin->line.count && !c->ev->dry; p++)
        if (deviation(kin, state, p) > 0)
            return true;
    return c->ev->dry; /* when costs alone are asked for, there are no states */
}

/* New errors are as large as they are anywhere within what the states may be off: a factor that is
 * off itself makes more of a state that is larger. */
static void note_fresh(const struct stepping *c, struct member *m) {
    for (int64_t p = 0; p < m->line.count && !c->ev->dry; p++)
        if (isfinite(m->value[p]) && c->moved_error[p] > m->larger[p])
            m->larger[p] = c->moved_error[p];
}

/* Two states that are off together may round a let of a type where neither would alone. */
static void note_rounding(const struct stepping *c, struct member *m) {
    const struct member *kin = &c->member[m->kin];
    enum dtype type = c->task.tensors[m->s.tensor].dtype;
    if (c->ev->dry || !m->follows || type == DTYPE_F64 || dtype_info(type)->kind != 'f')
        return;
    for (int64_t p = 0; p < m->line.count; p++) {
        size_t off = 0;
        for (size_t j = 0; j < kin->nstates; j++)
            off += deviation(kin, j, p) > 0;
        double step = 2 * round_half_ulp(type, m->value[p]);
        if (off > 1 && isfinite(m->value[p]))
            m->larger[p] = fmax(m->larger[p], step * step);
    }
}

/* What each state of its line changes in the let. */
static bool find_shifts(struct stepping *c, struct member *m, int64_t step) {
    const struct member *kin = &c->member[m->kin];
    size_t ways = c->decides ? WAYS : WAY_LITTLE_UP;
    for (int64_t p = 0; p < m->line.count * (int64_t)kin->nstates && !c->ev->dry; p++)
        m->shift[p] = 0;
    for (int64_t p = 0; p < m->line.count && !c->ev->dry; p++)
        m->larger[p] = m->fresh[p];
    for (size_t i = 0; i < c->nechoes && m->follows; i++) {
        const struct echo *x = &c->echo[i];
        size_t state = c->member[x->member].state + (size_t)x->lag - 1;
        if (x->lag == 0 || c->member[x->member].kin != m->kin || !any_deviation(c, kin, state))
            continue;
        for (size_t way = 0; way < ways; way++) {
            if (!run_moved(c, m, step, x, (enum way)way))
                return false;
            note_fresh(c, m);
        }
        for (int64_t p = 0; p < m->line.count && !c->ev->dry; p++)
            if (isfinite(m->value[p]))
                m->shift[(int64_t)state * m->line.count + p] = shift_of(c, m, state, p);
    }
    note_rounding(c, m);
    for (int64_t p = 0; p < m->line.count && !c->ev->dry; p++)
        m->fresh[p] = m->larger[p];
    return true;
}

/* What one standard deviation of each state of the kin changes in a state after the step: of a lag
 * of 1 it is the let itself, of more the state of the lag before. */
static double shift_after(const struct stepping *c, const struct member *m, int64_t lag, size_t j,
                          int64_t p) {
    const struct member *kin = &c->member[m->kin];
    if (lag == 1)
        return m->shift[(int64_t)j * m->line.count + p];
    return j == m->state + (size_t)lag - 2 ? deviation(kin, j, p) : 0;
}

static double covariance_after(const struct stepping *c, const struct member *x, int64_t xlag,
                               const struct member *y, int64_t ylag, int64_t p) {
    const struct member *kin = &c->member[x->kin];
    double sum = x == y && xlag == 1 && ylag == 1 ? x->fresh[p] : 0;
    for (size_t j = 0; j < kin->nstates; j++)
        for (size_t l = 0; l < kin->nstates; l++) {
            double dj = deviation(kin, j, p), dl = deviation(kin, l, p);
            if (dj > 0 && dl > 0)
                sum += shift_after(c, x, xlag, j, p) * shift_after(c, y, ylag, l, p) *
                       kin->states[(int64_t)(j * kin->nstates + l) * kin->line.count + p] /
                       (dj * dl);
        }
    return isfinite(sum) ? sum : x == y && xlag == ylag ? INFINITY : 0;
}

/* The whole error of the step's elements, to where later steps and other lets read it. */
static void settle_step(struct stepping *c, struct member *m, int64_t step) {
    double *total = c->scratch;
    for (int64_t p = 0; p < m->line.count; p++) {
        double all = m->follows ? covariance_after(c, m, 1, m, 1, p) : m->fresh[p];
        total[p] = all > m->fresh[p] ? all : m->fresh[p];
    }
    memcpy(row_of(m, m->late, 0), m->value, (size_t)m->line.count * sizeof *total);
    memcpy(row_of(m, m->late_error, 0), total, (size_t)m->line.count * sizeof *total);
    line_store(c, m, step, m->value, c->ev->value[m->s.tensor]);
}

static void carry_states(struct stepping *c, struct member *kin) {
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->n; k++) {
            const struct member *x = &c->member[i], *y = &c->member[k];
            if (&c->member[x->kin] != kin || &c->member[y->kin] != kin)
                continue;
            for (int64_t a = 1; a <= x->lags; a++)
                for (int64_t b = 1; b <= y->lags; b++) {
                    size_t j = x->state + (size_t)a - 1, l = y->state + (size_t)b - 1;
                    double *to = kin->after + (int64_t)(j * kin->nstates + l) * kin->line.count;
                    for (int64_t p = 0; p < kin->line.count; p++)
                        to[p] = covariance_after(c, x, a, y, b, p);
                }
        }
    double *swap = kin->states;
    kin->states = kin->after;
    kin->after = swap;
}

/* ---- trials ---- */

static void show_trial(struct stepping *c, int64_t step, int trial) {
    show_lets(c, step, trial);
    for (size_t i = 0; i < c->nechoes; i++) {
        const struct member *m = &c->member[c->echo[i].member];
        show_echo(c, &c->echo[i], row_of(m, m->trial[trial], c->echo[i].lag), c->zeros);
    }
}

/* How far the trial got away, as an error of one deviation. */
static void note_trial(const struct member *m, const double *got, double far) {
    double *error = row_of(m, m->late_error, 0);
    for (int64_t p = 0; p < m->line.count; p++) {
        double away = (got[p] - m->value[p]) / far;
        if (isfinite(m->value[p]) && !(away * away <= error[p]))
            error[p] = isfinite(away) ? away * away : INFINITY;
    }
}

/* The step of all lets, with new errors of one sign as large as they may well be. */
static bool run_trial(struct stepping *c, int64_t step, int trial) {
    double far = accuracy_limits(c->task.accuracy).rms, peak = c->ev->peak;
    for (size_t i = 0; i < c->n; i++) {
        struct member *m = &c->member[i];
        double *row = c->ev->dry ? NULL : row_of(m, m->trial[trial], 0);
        if (!c->ev->dry)
            show_trial(c, step, trial);
        if (!run_member(c, m, step, c->scratch, c->moved_error))
            return false;
        for (int64_t p = 0; p < m->line.count && !c->ev->dry; p++) {
            bool moves = isfinite(c->scratch[p]) && isfinite(c->moved_error[p]);
            row[p] = c->scratch[p] + (moves ? far * sqrt(c->moved_error[p]) : 0);
        }
        if (!c->ev->dry)
            note_trial(m, row, far);
    }
    c->ev->peak = peak;
    return true;
}

/* By how much of what it has been a state may be off. */
static double share_of(enum accuracy a) {
    return a == ACCURACY_FP32 ? 0x1p-8 : fmin(0.25, 128 * accuracy_unit(a));
}

/* Elements that lie next to each other, and may be expected to be alike: along the last index of a
 * line. */
static int64_t neighbours(const struct member *m, size_t rank) {
    size_t last = rank;
    while (last > 0 && last - 1 == m->s.recurs.axis)
        last--;
    return last > 0 ? m->line.n[last - 1] : 1;
}

/* The largest size so far, of an element or, where that is more, its neighbours' on average. */
static void note_sizes(struct member *m, int64_t first, int64_t n) {
    double squares = 0;
    for (int64_t p = first; p < first + n; p++)
        squares += isfinite(m->value[p]) ? m->value[p] * m->value[p] : 0;
    for (int64_t p = first; p < first + n; p++) {
        double own = isfinite(m->value[p]) ? fabs(m->value[p]) : 0;
        m->size[p] = fmax(m->size[p], fmax(own, sqrt(squares / (double)n)));
    }
}

/* A state that errors have grown on is lost for good. */
static void drop_lost(struct stepping *c, struct member *m) {
    const struct tensor *t = &c->task.tensors[m->s.tensor];
    const double limit = accuracy_limits(c->task.accuracy).worst, floor = 0x1p-100;
    double *error = row_of(m, m->late_error, 0), share = share_of(c->task.accuracy);
    int64_t n = neighbours(m, t->rank);
    if (m->rows == 1 || t->dtype != DTYPE_F64)
        return;
    for (int64_t p = 0; p < m->line.count; p += n)
        note_sizes(m, p, n);
    for (int64_t p = 0; p < m->line.count; p++) {
        double off = limit * sqrt(error[p]);
        if (off > floor && off > share * m->size[p] && isfinite(m->value[p]))
            error[p] = INFINITY;
    }
}

static void advance(struct stepping *c) {
    for (size_t i = 0; i < c->n && !c->ev->dry; i++) {
        struct member *m = &c->member[i];
        rows_advance(m, m->late);
        rows_advance(m, m->late_error);
        for (size_t k = 0; k < TRIALS; k++)
            rows_advance(m, m->trial[k]);
    }
}

static bool run_step(struct stepping *c, int64_t step) {
    advance(c);
    if (!c->ev->dry)
        fetch_echoes(c);
    show_echoes(c);
    for (size_t i = 0; i < c->n; i++) {
        struct member *m = &c->member[i];
        show_lets(c, step, -1);
        if (!run_member(c, m, step, m->value, m->fresh))
            return false;
        show_echoes(c);
        if (!find_shifts(c, m, step))
            return false;
        if (!c->ev->dry)
            settle_step(c, m, step);
    }
    for (int k = 0; k < TRIALS; k++)
        if (!run_trial(c, step, k))
            return false;
    for (size_t i = 0; i < c->n && !c->ev->dry; i++) {
        struct member *m = &c->member[i];
        drop_lost(c, m);
        line_store(c, m, step, row_of(m, m->late_error, 0), c->ev->error[m->s.tensor]);
        if (m->kin == i && m->nstates)
            carry_states(c, m);
    }
    return true;
}

static bool run_steps_of(struct stepping *c) {
    const struct member *m = &c->member[0];
    const struct window *w = &c->windows.made[m->s.tensor];
    int64_t lo = w->lo[m->s.recurs.axis], n = w->n[m->s.recurs.axis];
    double points = c->ev->points;
    for (int64_t i = 0; i < n; i++) {
        if (!run_step(c, m->s.recurs.backwards ? lo + n - 1 - i : lo + i))
            return false;
        if (c->ev->dry) {
            c->ev->points = points + (c->ev->points - points) * (double)n;
            return true;
        }
    }
    return true;
}

/* Room for the lets, which later steps read while it fills. */
static bool open_lets(struct stepping *c) {
    for (size_t i = 0; i < c->n; i++)
        if (!tensor_alloc(c->ev, c->member[i].s.tensor))
            return false;
    return true;
}

/* As other statements read them. */
static void close_lets(struct stepping *c) {
    for (size_t i = 0; i < c->n && !c->ev->dry; i++) {
        size_t tensor = c->member[i].s.tensor;
        const struct window *w = &c->windows.made[tensor];
        c->ev->contents[tensor] = content_of(DTYPE_F64, c->ev->value[tensor], c->ev->error[tensor],
                                             NULL, w->first, w->count);
    }
}

/* Errors that reach an element by way of several lines, or of several recurrences, often come from
 * one source and add up; they were counted as independent. So from the second step on what others
 * read has twice the deviation. */
static void allow_for_sources(struct stepping *c) {
    for (size_t i = 0; i < c->n && !c->ev->dry; i++) {
        struct member *m = &c->member[i];
        const struct window *w = &c->windows.made[m->s.tensor];
        size_t axis = m->s.recurs.axis;
        int64_t steps = c->in.tensors[m->s.tensor].extent[axis];
        for (int64_t p = 0; p < w->count; p++) {
            int64_t step = w->lo[axis] + p / w->stride[axis] % w->n[axis];
            if (step != (m->s.recurs.backwards ? steps - 1 : 0))
                c->ev->error[m->s.tensor][p] *= 4;
        }
    }
}

/* The statements of a recurrence, together. */
static bool run_recurrence(struct evaluation *ev, const struct statement *first, size_t n) {
    const struct inst *in = ev->in, *kept = ev->kept;
    for (size_t i = 0; i < n; i++)
        if (ev->windows->made[first[i].tensor].count == 0)
            return true; /* nothing of it is kept (need_recurrence) */
    struct stepping *c = mem_alloc(sizeof *c);
    c->ev = ev;
    c->a = arena_new((size_t)64 << 20);
    c->task = *in->task;
    c->task.tensors = arena_array(c->a, struct tensor, TASK_MAX_TENSORS);
    memcpy(c->task.tensors, in->task->tensors, in->task->ntensors * sizeof *c->task.tensors);
    c->windows = *ev->windows;
    set_members(c, first, n);
    set_states(c);
    bind_echoes(c, in, &c->in);
    bind_echoes(c, kept, &c->kept);
    bool ok = open_lets(c) && (ev->dry || set_arrays(c));
    ev->in = &c->in;
    ev->kept = &c->kept;
    ev->stepping = true;
    ok = ok && run_steps_of(c);
    if (ok) {
        allow_for_sources(c);
        close_lets(c);
    }
    ev->stepping = false;
    ev->in = in;
    ev->kept = kept;
    for (size_t i = 0; i < c->nowned; i++)
        mem_free(c->owned[i]);
    arena_free(c->a);
    mem_free(c);
    return ok;
}

static struct reference taken(struct evaluation *ev, size_t tensor) {
    struct reference r = {.tensor = tensor,
                          .count = (size_t)ev->windows->made[tensor].count,
                          .value = ev->value[tensor],
                          .estimate = ev->error[tensor],
                          .ties = ev->ties[tensor],
                          .tie_lo = ev->tie_lo[tensor],
                          .tie_words = ev->tie_words[tensor]};
    ev->value[tensor] = ev->error[tensor] = NULL;
    ev->ties[tensor] = NULL;
    return r;
}

static void hand_out(struct evaluation *ev, struct reference **out, size_t *n) {
    const struct task *t = ev->in->task;
    struct reference *refs = mem_alloc(t->ntensors * sizeof *refs);
    *n = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_output(&t->tensors[i]))
            refs[(*n)++] = taken(ev, i);
    *out = refs;
}

static void evaluation_release(struct evaluation *ev) {
    stages_release(ev);
    reference_release(ev->old, ev->nold);
    for (size_t i = 0; i < ev->in->task->ntensors; i++) {
        mem_free(ev->value[i]);
        mem_free(ev->error[i]);
        mem_free(ev->ties[i]);
    }
    mem_free(ev);
}

/* Everything in the windows. */
static bool run_statements(struct evaluation *ev, const void *const *inputs) {
    const struct task *t = ev->in->task;
    bool ok = true;
    for (size_t i = 0; i < t->ntensors && !ev->dry; i++) {
        const struct window *w = &ev->windows->read[i];
        bool given = inputs && tensor_is_input(&t->tensors[i]) && w->count > 0;
        /* Where nothing is kept nothing is read but for results that are not used. */
        ev->contents[i] = content_of(t->tensors[i].dtype, given ? inputs[i] : NULL, NULL, NULL,
                                     given ? w->first : 0, given ? w->count : 0);
    }
    for (size_t i = 0, n; i < t->nstatements && ok; i += n ? n : 1) {
        n = recurrence_length(t, i);
        ok = n ? run_recurrence(ev, &t->statements[i], n) : run_statement(ev, &t->statements[i]);
    }
    return ok;
}

static struct evaluation *evaluation_new(const struct inst *in, const struct windows *windows,
                                         unsigned threads, struct err *err) {
    struct evaluation *ev = mem_alloc(sizeof *ev);
    ev->in = ev->kept = in;
    ev->windows = windows;
    ev->threads = threads;
    ev->err = err;
    return ev;
}

static bool evaluate(const struct inst *in, const void *const *inputs, unsigned threads,
                     struct reference *old, size_t nold, struct reference **out, size_t *n,
                     double *peak, struct err *err) {
    struct windows windows;
    struct evaluation *ev = evaluation_new(in, &windows, threads, err);
    for (size_t i = 0; i < in->task->ntensors; i++)
        windows.read[i] = windows.made[i] = whole_window(in, i);
    ev->old = old;
    ev->nold = nold;
    ev->track_peak = peak != NULL;
    bool ok = run_statements(ev, inputs);
    if (ok)
        hand_out(ev, out, n);
    if (ok && peak)
        *peak = ev->peak;
    evaluation_release(ev);
    return ok;
}

bool reference_eval(const struct inst *in, const void *const *inputs, unsigned threads,
                    struct reference **out, size_t *n, double *peak, struct err *err) {
    return evaluate(in, inputs, threads, NULL, 0, out, n, peak, err);
}

bool reference_eval_again(const struct inst *in, const void *const *inputs, unsigned threads,
                          struct reference **refs, size_t *n, struct err *err) {
    struct reference *old = *refs;
    size_t nold = *n;
    *refs = NULL;
    *n = 0;
    return evaluate(in, inputs, threads, old, nold, refs, n, NULL, err);
}

/* An instance whose tensors lie in memory as their windows do. What they are stays: extents, and so
 * where pads begin. */
struct kept_inst {
    struct inst in;
    struct bound_tensor tensors[TASK_MAX_TENSORS];
};

static struct evaluation *part_new(struct kept_inst *kept, const struct inst *in,
                                   const struct windows *windows, unsigned threads,
                                   struct err *err) {
    struct evaluation *ev = evaluation_new(in, windows, threads, err);
    kept->in = *in;
    kept->in.tensors = kept->tensors;
    for (size_t i = 0; i < in->task->ntensors; i++) {
        kept->tensors[i] = in->tensors[i];
        for (size_t k = 0; k < in->task->tensors[i].rank; k++)
            kept->tensors[i].stride[k] = windows->read[i].stride[k];
    }
    ev->kept = &kept->in;
    ev->part = true;
    return ev;
}

/* The reference of `tensor` over its window. inputs[i]: the elements of input tensor i that are
 * read, NULL where none is. *out is heap memory. */
static bool evaluate_part(const struct inst *in, const struct windows *windows,
                          const void *const *inputs, size_t tensor, unsigned threads,
                          struct reference *out, struct err *err) {
    struct kept_inst kept;
    struct evaluation *ev = part_new(&kept, in, windows, threads, err);
    bool ok = run_statements(ev, inputs);
    if (ok)
        *out = taken(ev, tensor);
    evaluation_release(ev);
    return ok;
}

/* Elements and terms that this visits; INFINITY where it would refuse. */
static double evaluate_cost(const struct inst *in, const struct windows *windows) {
    struct kept_inst kept;
    struct evaluation *ev = part_new(&kept, in, windows, 1, NULL);
    ev->dry = true;
    double points = run_statements(ev, NULL) ? ev->points : INFINITY;
    evaluation_release(ev);
    return points;
}

void reference_release(struct reference *refs, size_t n) {
    for (size_t i = 0; i < n; i++) {
        mem_free(refs[i].value);
        mem_free(refs[i].estimate);
        mem_free(refs[i].ties);
    }
    mem_free(refs);
}

str element_name(const struct inst *in, size_t tensor, int64_t index, struct arena *a) {
    const struct tensor *t = &in->task->tensors[tensor];
    const struct bound_tensor *b = &in->tensors[tensor];
    str s = t->name;
    for (size_t k = 0; k < t->rank; k++)
        s = arena_printf(a, "%.*s%c%lld", STR_ARG(s), k ? ',' : '[',
                         (long long)(index / b->stride[k] % b->extent[k]));
    return t->rank ? arena_printf(a, "%.*s]", STR_ARG(s)) : s;
}

/* ---- what a part of an output needs, and its data (part.h) ---- */

struct needs {
    const struct inst *in;
    struct windows w;
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The elements of a dimension that an index can name; what lies outside is padding, or is read
 * where the result is never used. */
static struct range index_range(const struct ranges *r, const struct expr *e, int64_t extent) {
    struct range v;
    if (range_of(r, e, &v) != RANGE_OK)
        return (struct range){0, extent - 1};
    return (struct range){most(v.lo, 0), least(v.hi, extent - 1)};
}

/* The window grows to the hull of what it holds and this box. */
static void widen(struct window *w, const struct range *box, size_t rank) {
    bool some = w->count > 0;
    for (size_t k = 0; k < rank; k++) {
        int64_t lo = some ? least(w->lo[k], box[k].lo) : box[k].lo;
        int64_t hi = some ? most(w->lo[k] + w->n[k] - 1, box[k].hi) : box[k].hi;
        w->lo[k] = lo;
        w->n[k] = hi - lo + 1;
    }
    w->count = 1; /* until it is closed: there is something */
}

static void need(struct needs *n, const struct ranges *r, const struct expr *e);

static void need_parts(struct needs *n, const struct ranges *r, const struct expr *e) {
    for (size_t k = 0; k < e->nargs; k++)
        need(n, r, e->args[k]);
}

static void need_read(struct needs *n, const struct ranges *r, const struct expr *e) {
    struct range box[TASK_MAX_RANK];
    bool some = true;
    for (size_t k = 0; k < e->nargs; k++) {
        box[k] = index_range(r, e->args[k], n->in->tensors[e->ref].extent[k]);
        some = some && box[k].lo <= box[k].hi;
    }
    if (some)
        widen(&n->w.read[e->ref], box, e->nargs);
    need_parts(n, r, e);
}

static void need_if(struct needs *n, const struct ranges *r, const struct expr *e) {
    need(n, r, e->args[0]);
    for (size_t side = 1; side <= 2; side++) {
        struct ranges taken = *r;
        if (ranges_narrow(&taken, e->args[0], side == 1))
            need(n, &taken, e->args[side]);
    }
}

/* The guard is evaluated for all terms. */
static void need_reduce(struct needs *n, const struct ranges *r, const struct expr *e) {
    struct ranges inside = *r;
    for (size_t k = 0; k < e->reduce->nvars; k++) {
        bool some;
        if (ranges_enter_var(&inside, &e->reduce->vars[k], &some) != RANGE_OK || !some)
            return;
    }
    if (e->reduce->guard)
        need(n, &inside, e->reduce->guard);
    if (!e->reduce->guard || ranges_narrow(&inside, e->reduce->guard, true))
        need(n, &inside, e->args[0]);
}

/* As deep as the tree, TASK_MAX_DEPTH at the most. */
static void need(struct needs *n, const struct ranges *r, const struct expr *e) {
    switch (e->kind) {
    case EXPR_READ:
        need_read(n, r, e);
        return;
    case EXPR_IF:
        need_if(n, r, e);
        return;
    case EXPR_REDUCE:
        need_reduce(n, r, e);
        return;
    default:
        need_parts(n, r, e);
    }
}

/* Its elements come from a tree walk: it is defined by a statement, or something is assumed. */
static bool is_walked(const struct inst *in, size_t tensor) {
    bool walked = in->task->tensors[tensor].dist.kind == DIST_DEFINED;
    for (size_t i = 0; i < in->task->nassumptions; i++)
        walked = walked || in->task->assumptions[i].tensor == tensor;
    return walked;
}

/* To start making elements takes as long as making so many. */
enum { RUN_COST = 256 };

/* A box whose rows are nearly whole is made whole: fewer runs of consecutive elements. */
static void round_up(const struct inst *in, size_t tensor, struct window *w) {
    const struct bound_tensor *t = &in->tensors[tensor];
    for (size_t k = in->task->tensors[tensor].rank; k-- > 1;) {
        if ((t->extent[k] - w->n[k]) * t->stride[k] > RUN_COST)
            return;
        w->lo[k] = 0;
        w->n[k] = t->extent[k];
    }
}

static bool close_windows(struct needs *n) {
    const struct task *t = n->in->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        struct window *both[2] = {&n->w.read[i], &n->w.made[i]};
        if (both[0]->count > 0 && tensor_is_input(&t->tensors[i]) && !is_walked(n->in, i))
            round_up(n->in, i, both[0]);
        for (int k = 0; k < 2; k++)
            if (both[k]->count > 0 && !window_close(both[k], t->tensors[i].rank))
                return false;
    }
    return true;
}

static void need_statement(struct needs *n, const struct statement *s) {
    struct ranges r;
    if (n->in->task->tensors[s->tensor].role == TENSOR_LET)
        n->w.made[s->tensor] = n->w.read[s->tensor];
    if (window_ranges(n->in, s, &n->w.made[s->tensor], &r))
        need(n, &r, s->body);
}

/* All lets of a recurrence, from the first step on, and of lets with the same lines the same. True:
 * a window has grown. */
static bool need_all_steps(struct needs *n, size_t first, size_t count, bool whole) {
    const struct task *t = n->in->task;
    bool grown = false;
    for (size_t i = first; i < first + count; i++)
        for (size_t k = first; k < first + count; k++) {
            const struct statement *s = &t->statements[i], *o = &t->statements[k];
            const struct window *from = &n->w.read[o->tensor];
            struct window *to = &n->w.read[s->tensor], before = *to;
            struct range box[TASK_MAX_RANK];
            bool same = o->recurs.axis == s->recurs.axis &&
                        extents_same(&t->tensors[s->tensor], &t->tensors[o->tensor]);
            int64_t steps = n->in->tensors[s->tensor].extent[s->recurs.axis];
            if (from->count == 0)
                continue;
            for (size_t d = 0; d < t->tensors[s->tensor].rank; d++) {
                box[d] = (struct range){0, n->in->tensors[s->tensor].extent[d] - 1};
                if (same && !whole)
                    box[d] = (struct range){from->lo[d], from->lo[d] + from->n[d] - 1};
                else if (!whole && to->count > 0)
                    box[d] = (struct range){to->lo[d], to->lo[d] + to->n[d] - 1};
            }
            int64_t lo = from->lo[o->recurs.axis], hi = lo + from->n[o->recurs.axis] - 1;
            box[s->recurs.axis] =
                s->recurs.backwards ? (struct range){lo, steps - 1} : (struct range){0, hi};
            widen(to, box, t->tensors[s->tensor].rank);
            grown |= before.count == 0 || memcmp(before.lo, to->lo, sizeof to->lo) != 0 ||
                     memcmp(before.n, to->n, sizeof to->n) != 0;
        }
    return grown;
}

/* What the statements of a recurrence read. True: that is more of one of its own lets than before,
 * which has needs of its own. */
static bool need_steps(struct needs *n, size_t first, size_t count) {
    bool grown = false;
    for (size_t i = first + count; i-- > first;) {
        struct window before[TASK_MAX_TENSORS];
        memcpy(before, n->w.read, sizeof before);
        need_statement(n, &n->in->task->statements[i]);
        for (size_t k = first; k < first + count; k++) {
            size_t tensor = n->in->task->statements[k].tensor;
            const struct window *now = &n->w.read[tensor];
            grown |= memcmp(before[tensor].lo, now->lo, sizeof now->lo) != 0 ||
                     memcmp(before[tensor].n, now->n, sizeof now->n) != 0;
        }
    }
    return grown;
}

/* A step reads of the step before what is needed, which may be more with every step. */
static void need_recurrence(struct needs *n, size_t first, size_t count) {
    enum { ROUNDS = 4 };
    bool grown = true;
    for (int round = 0; grown && round <= ROUNDS; round++) {
        need_all_steps(n, first, count, round == ROUNDS);
        grown = need_steps(n, first, count);
        grown = need_all_steps(n, first, count, round == ROUNDS) || grown;
    }
    for (size_t i = first; i < first + count; i++)
        n->w.made[n->in->task->statements[i].tensor] = n->w.read[n->in->task->statements[i].tensor];
}

/* From the last statement to the first, so that all that read a let come before those that make
 * it. False: more elements than can be counted. */
static bool needs_of(const struct inst *in, const struct part *p, struct needs *n) {
    const struct task *t = in->task;
    struct range box[TASK_MAX_RANK];
    *n = (struct needs){.in = in};
    BUG_IF(!tensor_is_output(&t->tensors[p->tensor]));
    for (size_t k = 0; k < t->tensors[p->tensor].rank; k++) {
        BUG_IF(p->lo[k] < 0 || p->n[k] < 1 ||
               p->n[k] > in->tensors[p->tensor].extent[k] - p->lo[k]);
        box[k] = (struct range){p->lo[k], p->lo[k] + p->n[k] - 1};
    }
    widen(&n->w.made[p->tensor], box, t->tensors[p->tensor].rank);
    for (size_t i = t->nstatements; i-- > 0;) {
        const struct statement *s = &t->statements[i];
        if (!s->recurs.number) {
            need_statement(n, s);
            continue;
        }
        while (i > 0 && t->statements[i - 1].recurs.number == s->recurs.number)
            i--;
        need_recurrence(n, i, recurrence_length(t, i));
    }
    return close_windows(n);
}

/* Consecutive elements of a tensor that a window holds: of dimension `inner` some, of all further
 * ones everything. The dimensions before it tell one such run from another. */
struct runs {
    size_t inner;
    int64_t length, count;
};

static struct runs runs_of(const struct inst *in, size_t tensor, const struct window *w) {
    size_t rank = in->task->tensors[tensor].rank;
    struct runs r = {.inner = rank, .length = 1};
    for (bool all = true; all && r.inner > 0;) {
        r.inner--;
        r.length *= w->n[r.inner];
        all = w->n[r.inner] == in->tensors[tensor].extent[r.inner];
    }
    r.count = w->count / r.length;
    return r;
}

/* What a tree walk costs for each element, and for each run of them: reductions that do not depend
 * on the last index are remembered along a row. */
struct walk {
    const struct inst *in;
    uint32_t along;
    double row, element;
};

static void walk_tensor(struct walk *w, size_t tensor);

static void walk_expr(struct walk *w, const struct ranges *r, const struct expr *e, double times,
                      bool shared) {
    enum { NODE_COST = 8 };
    struct ranges inside = *r;
    *(shared ? &w->row : &w->element) += NODE_COST * times;
    if (e->kind == EXPR_REDUCE) {
        shared = shared || !(expr_vars(e) & w->along);
        if (!ranges_enter(&inside, e->reduce))
            return;
        for (size_t k = 0; k < e->reduce->nvars; k++) {
            struct range v = inside.index[e->reduce->vars[k].var];
            times *= (double)v.hi - (double)v.lo + 1;
        }
    }
    if (e->kind == EXPR_READ) {
        struct walk other = {.in = w->in};
        walk_tensor(&other, e->ref);
        *(shared ? &w->row : &w->element) += times * (other.row + other.element);
    }
    for (size_t k = 0; k < e->nargs; k++)
        walk_expr(w, &inside, e->args[k], times, shared);
}

/* Definitions read what is defined before them: this ends. */
static void walk_tensor(struct walk *w, size_t tensor) {
    const struct task *t = w->in->task;
    size_t rank = t->tensors[tensor].rank;
    for (size_t i = 0; i < t->ndefinitions + t->nassumptions; i++) {
        const struct assumption *a =
            i < t->ndefinitions ? NULL : &t->assumptions[i - t->ndefinitions];
        const struct statement *s = a ? &a->s : &t->definitions[i];
        if ((a ? a->tensor : s->tensor) != tensor || !s->body)
            continue;
        int last = rank ? s->position[rank - 1] : -1;
        struct ranges r = ranges_of(w->in, s);
        w->along = last < 0 ? 0 : UINT32_C(1) << last;
        walk_expr(w, &r, s->body, 1, false);
    }
}

static double input_cost(const struct inst *in, size_t tensor, const struct window *w) {
    enum { WALKED_COST = 32 };
    struct walk walk = {.in = in};
    double each = is_walked(in, tensor) ? WALKED_COST : 1;
    walk_tensor(&walk, tensor);
    return (double)w->count * (each + walk.element) +
           (double)runs_of(in, tensor, w).count * (RUN_COST + walk.row);
}

double part_cost(const struct inst *in, const struct part *p) {
    struct needs *n = mem_alloc(sizeof *n);
    bool counted = needs_of(in, p, n);
    double cost = counted ? evaluate_cost(in, &n->w) : INFINITY;
    for (size_t i = 0; i < in->task->ntensors && counted; i++)
        if (tensor_is_input(&in->task->tensors[i]) && n->w.read[i].count > 0)
            cost += input_cost(in, i, &n->w.read[i]);
    mem_free(n);
    return cost <= 0x1p53 ? cost : INFINITY;
}

/* An input being made. */
struct filling {
    const struct inst *in;
    const struct data_scale *scale;
    enum data_kind kind;
    uint64_t seed;
    size_t tensor;
    const struct window *w;
    struct runs runs;
    char *dst;
};

/* The linear index of element i of a box in the whole tensor. */
static int64_t whole_index(const struct inst *in, size_t tensor, const int64_t *lo,
                           const int64_t *n, int64_t i) {
    int64_t at = 0;
    for (size_t k = in->task->tensors[tensor].rank; k-- > 0; i /= n[k])
        at += (lo[k] + i % n[k]) * in->tensors[tensor].stride[k];
    return at;
}

/* Runs are made in pieces, so that a long one, too, has work for several threads. */
enum { PIECE = 1 << 14 };

static int64_t pieces_of(const struct runs *r) {
    return r->length / PIECE + (r->length % PIECE > 0);
}

static void fill_pieces(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct filling *f = ctx;
    size_t size = dtype_info(f->in->task->tensors[f->tensor].dtype)->bytes;
    int64_t pieces = pieces_of(&f->runs);
    (void)part;
    for (int64_t i = first; i < last; i++) {
        int64_t run = i / pieces * f->runs.length, skip = i % pieces * PIECE;
        int64_t from = whole_index(f->in, f->tensor, f->w->lo, f->w->n, run) + skip;
        data_fill(f->in, f->scale, f->tensor, f->kind, f->seed, from,
                  least(PIECE, f->runs.length - skip), f->dst + (size_t)(run + skip) * size);
    }
}

/* inputs[i] of every input that is read; heap memory. */
static bool make_inputs(struct filling *f, const struct windows *w, unsigned threads, void **inputs,
                        struct err *err) {
    const struct task *t = f->in->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t bytes;
        f->w = &w->read[i];
        if (!tensor_is_input(&t->tensors[i]) || f->w->count == 0)
            continue;
        if (mul_size((size_t)f->w->count, dtype_info(t->tensors[i].dtype)->bytes, &bytes))
            inputs[i] = mem_try_resize(NULL, bytes);
        if (!inputs[i])
            return err_set(err, ERR_ENV, "no memory for %lld elements of '%.*s'",
                           (long long)f->w->count, STR_ARG(t->tensors[i].name));
        f->tensor = i;
        f->dst = inputs[i];
        f->runs = runs_of(f->in, i, f->w);
        parallel_for(threads, f->runs.count * pieces_of(&f->runs), fill_pieces, f);
    }
    return true;
}

bool part_reference(const struct inst *in, const struct data_scale *scale, enum data_kind kind,
                    uint64_t seed, const struct part *p, unsigned threads, struct reference *out,
                    struct err *err) {
    struct filling f = {.in = in, .scale = scale, .kind = kind, .seed = seed};
    struct needs *n = mem_alloc(sizeof *n);
    void *inputs[TASK_MAX_TENSORS] = {0};
    *out = (struct reference){.tensor = p->tensor};
    bool ok =
        needs_of(in, p, n) ||
        err_set(err, ERR_INPUT, "a part of an output needs more elements than can be counted");
    ok = ok && make_inputs(&f, &n->w, threads, inputs, err) &&
         evaluate_part(in, &n->w, (const void *const *)inputs, p->tensor, threads, out, err);
    for (size_t i = 0; i < in->task->ntensors; i++)
        mem_free(inputs[i]);
    mem_free(n);
    return ok;
}

void part_release(struct reference *ref) {
    mem_free(ref->value);
    mem_free(ref->estimate);
    mem_free(ref->ties);
    *ref = (struct reference){0};
}

void part_compare(const struct inst *in, const struct part *p, const struct reference *ref,
                  const void *got, struct comparison *out) {
    reference_compare(in, ref, got, 1, out);
    for (size_t i = 0; i < out->nfirst; i++)
        out->first[i].index = whole_index(in, p->tensor, p->lo, p->n, out->first[i].index);
}
