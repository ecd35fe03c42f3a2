/* Operations, counted where they happen.
 *
 * An operation counts once for every combination of values of the variables it depends on, not of
 * those that merely surround it: what does not change is computed once, and a factor that is common
 * to all terms of a sum is applied to the sum. A reduction of n terms counts n operations, one for
 * each result where it is a prefix. Terms that cannot matter (a padded zero in a product that is
 * summed, an element assumed to be zero) are not there.
 *
 * Work on indices is address arithmetic and counts nothing, as does what a compiler folds. Of an
 * `if` over indices each side counts where it is taken; over data, the dearer side. */
#include "spec/cost.h"

#include "spec/access.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include "spec/tally.h"
#include "spec/touch.h"
#include <math.h>

/* Steps of counting loops for one instance; about a second at the worst. */
#define BUDGET 10000000

struct ops {
    double plain, special;
};

/* What is exact takes an operation, or one for each further argument; what is rounded is special.
 */
static struct ops call_ops(enum function f) {
    const struct function_info *of = function_info(f);
    if (of->result == RESULT_ROUNDED)
        return (struct ops){0, 1};
    return (struct ops){of->args > 1 ? (double)of->args - 1 : 1, 0};
}

/* Reals, and integers that come from tensors. */
static bool is_data(const struct expr *e) {
    return e->value_kind == VALUE_REAL || expr_reads(e);
}

/* The node's own work. */
static struct ops node_ops(const struct expr *e) {
    switch (e->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
    case EXPR_FLOORDIV:
    case EXPR_MOD:
        return (struct ops){is_data(e), 0};
    case EXPR_CALL:
        return is_data(e) ? call_ops(e->function) : (struct ops){0, 0};
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return (struct ops){is_data(e->args[0]) || is_data(e->args[1]), 0};
    default:
        return (struct ops){0, 0};
    }
}

static void walk(struct tally *t, struct domain *d, const struct expr *e);

static double total(const struct tally *t) {
    return t->plain + t->special;
}

static void add_tally(struct tally *t, const struct tally *more) {
    t->plain += more->plain;
    t->special += more->special;
    t->contraction += more->contraction;
    t->longest = fmax(t->longest, more->longest);
    t->longest_sum = fmax(t->longest_sum, more->longest_sum);
    t->fullest_sum = fmax(t->fullest_sum, more->fullest_sum);
}

static void walk_if(struct tally *t, struct domain *d, const struct expr *e) {
    struct tally side[2] = {{0}, {0}};
    bool data = expr_reads(e->args[0]);
    walk(t, d, e->args[0]);
    for (int k = 0; k < 2; k++) {
        struct domain *inner = domain_copy(d);
        domain_require(inner, e->args[0], k == 0);
        walk(&side[k], inner, e->args[1 + k]);
        mem_free(inner);
    }
    if (data)
        add_tally(t, &side[total(&side[0]) >= total(&side[1]) ? 0 : 1]);
    for (int k = 0; k < 2 && !data; k++)
        add_tally(t, &side[k]);
}

/* ---- reductions ---- */

/* Leaves out the terms in which this factor is `nothing`, the value that does not change the
 * result. */
static void leave_out(struct domain *d, const struct expr *f, double nothing) {
    const struct task *t = d->in->task;
    if (f->kind == EXPR_PAD && pattern_constant_is(d->in, f->args[1], nothing)) {
        domain_require_inside(d, f->args[0]);
        leave_out(d, f->args[0], nothing);
    }
    for (int side = 0; side < 2 && f->kind == EXPR_IF; side++)
        if (pattern_constant_is(d->in, f->args[2 - side], nothing)) {
            domain_require(d, f->args[0], side == 0);
            leave_out(d, f->args[1 + side], nothing);
            return;
        }
    for (size_t i = 0; f->kind == EXPR_READ && nothing == 0 && i < t->nassumptions; i++)
        if (t->assumptions[i].kind == ASSUME_ZERO && t->assumptions[i].tensor == f->ref)
            domain_require_at(d, f, t->assumptions[i].s.body, false);
}

/* Multiplications of a sum's terms, beside what its factors cost themselves. */
struct product_ops {
    double each;   /* for every term */
    double result; /* for every result */
    uint32_t vars; /* of the factors that change from term to term */
};

static struct product_ops product_ops(const struct inst *in, const struct factors *f,
                                      uint32_t reduced) {
    struct product_ops p = {0};
    bool above = false, folded = false;
    size_t varying = 0;
    for (size_t i = 0; i < f->n; i++) {
        uint32_t vars = expr_vars(f->e[i]);
        if (vars & reduced) {
            varying++;
            above |= !f->below[i];
            p.vars |= vars;
        } else if (pattern_is_constant(f->e[i])) {
            folded |= !pattern_constant_is(in, f->e[i], 1);
        } else {
            p.result++;
        }
    }
    p.each = varying ? (double)(varying - above) : 0;
    p.result += folded;
    return p;
}

static double nothing_of(enum reduction op) {
    return op == REDUCTION_MAX || op == REDUCTION_ARGMAX   ? -INFINITY
           : op == REDUCTION_MIN || op == REDUCTION_ARGMIN ? INFINITY
           : op == REDUCTION_PROD                          ? 1
                                                           : 0;
}

struct reduction_domains {
    struct domain *outer, *inner;
    double results, terms;
};

static void walk_sum(struct tally *t, const struct reduction_domains *r, const struct expr *e) {
    struct factors f;
    pattern_factors(e->args[0], &f);
    struct product_ops p = product_ops(r->outer->in, &f, reduce_vars(e->reduce));
    double products = p.each * domain_count(r->inner, p.vars);
    t->plain += products + p.result * r->results;
    if (pattern_is_contraction(e))
        t->contraction += products + r->terms;
    for (size_t i = 0; i < f.n; i++)
        walk(t, r->inner, f.e[i]);
}

static void enter_terms(struct domain *d, const struct expr *e, bool sum) {
    struct factors f = {.n = 1, .e = {e->args[0]}};
    domain_enter(d, e->reduce);
    if (sum)
        pattern_factors(e->args[0], &f);
    for (size_t i = 0; i < f.n; i++)
        if (!f.below[i])
            leave_out(d, f.e[i], nothing_of(e->reduce->op));
}

static void walk_reduce(struct tally *t, struct domain *d, const struct expr *e) {
    bool sum = e->reduce->op == REDUCTION_SUM || e->reduce->op == REDUCTION_MEAN;
    bool prefix = pattern_is_prefix(e);
    struct reduction_domains r = {.outer = domain_copy(d)};
    domain_keep(r.outer, expr_vars(e));
    r.inner = domain_copy(r.outer);
    enter_terms(r.inner, e, sum);
    r.results = domain_count(r.outer, r.outer->present);
    r.terms = prefix ? r.results : domain_count(r.inner, r.inner->present);
    t->plain += r.terms + (e->reduce->op == REDUCTION_MEAN ? r.results : 0);
    double full = domain_count(r.inner, reduce_vars(e->reduce));
    double length = prefix ? full : r.terms / r.results;
    t->longest = fmax(t->longest, length);
    if (sum || e->reduce->op == REDUCTION_PROD) {
        t->longest_sum = fmax(t->longest_sum, length);
        t->fullest_sum = fmax(t->fullest_sum, full);
    }
    if (e->reduce->guard)
        walk(t, r.inner, e->reduce->guard);
    if (sum)
        walk_sum(t, &r, e);
    else
        walk(t, r.inner, e->args[0]);
    mem_free(r.inner);
    mem_free(r.outer);
}

static void walk(struct tally *t, struct domain *d, const struct expr *e) {
    if (d->empty || e->kind == EXPR_READ || pattern_is_constant(e))
        return;
    if (e->kind == EXPR_IF) {
        walk_if(t, d, e);
        return;
    }
    if (e->kind == EXPR_REDUCE) {
        if (is_data(e))
            walk_reduce(t, d, e);
        return;
    }
    struct ops o = node_ops(e);
    if (o.plain + o.special > 0) {
        double count = domain_count(d, expr_vars(e));
        t->plain += o.plain * count;
        t->special += o.special * count;
    }
    for (size_t i = 0; i < e->nargs; i++)
        walk(t, d, e->args[i]);
}

static void tally_bytes(const struct inst *in, struct domain *const *domains, struct tally *out) {
    const struct task *t = in->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        double bytes = (double)dtype_info(t->tensors[i].dtype)->bytes;
        if (tensor_is_input(&t->tensors[i])) {
            struct touched touched = touched_of(in, i, domains);
            out->read_bytes += touched.elements * bytes;
            out->elements += touched.elements;
            out->reads += touched.reads;
        }
        if (tensor_is_output(&t->tensors[i]))
            out->write_bytes += written_of(in, i, domains) * bytes;
    }
}

void tally_of(const struct inst *in, struct tally *out) {
    const struct task *t = in->task;
    struct domain *domains[TASK_MAX_STATEMENTS];
    int64_t budget = BUDGET;
    *out = (struct tally){0};
    demand_domains(in, &budget, domains);
    for (size_t i = 0; i < t->nstatements; i++)
        walk(out, domains[i], t->statements[i].body);
    tally_bytes(in, domains, out);
    for (size_t i = 0; i < t->nstatements; i++)
        mem_free(domains[i]);
}

void tally_cost(const struct tally *t, struct cost *out) {
    *out = (struct cost){.flops_add_mul = t->plain,
                         .flops_special = t->special,
                         .flops = total(t),
                         .flops_contraction = t->contraction,
                         .read_bytes = t->read_bytes,
                         .write_bytes = t->write_bytes,
                         .compulsory_bytes = t->read_bytes + t->write_bytes};
    if (out->compulsory_bytes > 0)
        out->intensity = out->flops / out->compulsory_bytes;
}

void cost_of(const struct inst *in, struct cost *out) {
    struct tally t;
    tally_of(in, &t);
    tally_cost(&t, out);
}
