/* The kind of work a task is, read off its statements.
 *
 * What a value is made of is followed through lets: which inputs reach it element by element and
 * which through a reduction, whether a contraction lies behind it, and whether a reduction of that
 * (a softmax, say) lies between. The most telling trait names the class. */
#include "spec/cost.h"

#include "spec/bounds.h"
#include "spec/pattern.h"
#include "spec/scalar.h"
#include "spec/tally.h"
#include <math.h>

const char *workload_name(enum workload w) {
    static const char *const names[WORKLOAD_COUNT] = {
        [WORKLOAD_POINTWISE] = "pointwise",
        [WORKLOAD_REDUCTION] = "reduction",
        [WORKLOAD_NORMALISATION] = "normalisation",
        [WORKLOAD_SCAN] = "scan",
        [WORKLOAD_WINDOW] = "window",
        [WORKLOAD_CONTRACTION] = "contraction",
        [WORKLOAD_ATTENTION] = "attention",
        [WORKLOAD_LOSS] = "loss",
        [WORKLOAD_GATHER] = "gather",
    };
    BUG_IF((unsigned)w >= WORKLOAD_COUNT);
    return names[w];
}

/* What a value is made of. Inputs as bits. */
struct origin {
    uint64_t direct, reduced;
    bool contracted; /* of a contraction */
    bool settled;    /* of a reduction of a contraction's results */
};

struct traits {
    const struct task *task;
    struct origin of[TASK_MAX_TENSORS];
    bool contraction, attention, scan, window, gather, normalisation, division;
    size_t reductions;
};

static struct origin united(struct origin a, struct origin b) {
    return (struct origin){a.direct | b.direct, a.reduced | b.reduced, a.contracted || b.contracted,
                           a.settled || b.settled};
}

/* A variable that is reduced over stands beside another one in an index: x[p + r]. */
static bool slides(const struct expr *e, uint32_t reduced) {
    for (size_t k = 0; e->kind == EXPR_READ && k < e->nargs; k++) {
        uint32_t vars = expr_vars(e->args[k]);
        if ((vars & reduced) && (vars & ~reduced))
            return true;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (slides(e->args[i], reduced))
            return true;
    return false;
}

static struct origin trace(struct traits *t, const struct expr *e);

static struct origin trace_parts(struct traits *t, const struct expr *e) {
    struct origin o = {0};
    for (size_t i = 0; i < expr_nparts(e); i++)
        o = united(o, trace(t, expr_part(e, i)));
    return o;
}

static struct origin trace_reduce(struct traits *t, const struct expr *e) {
    struct origin o = trace_parts(t, e);
    bool contraction = pattern_is_contraction(e);
    t->reductions++;
    t->contraction |= contraction;
    t->attention |= contraction && o.settled;
    t->scan |= pattern_is_prefix(e);
    t->window |= slides(e->args[0], reduce_vars(e->reduce));
    o.settled |= o.contracted && !contraction;
    o.contracted |= contraction;
    o.reduced |= o.direct;
    o.direct = 0;
    return o;
}

static struct origin trace(struct traits *t, const struct expr *e) {
    if (e->kind == EXPR_REDUCE)
        return trace_reduce(t, e);
    t->division |= e->kind == EXPR_DIV && e->value_kind == VALUE_REAL;
    if (e->kind != EXPR_READ)
        return trace_parts(t, e);
    t->gather |= pattern_is_gather(e);
    if (!tensor_is_input(&t->task->tensors[e->ref]))
        return t->of[e->ref];
    return (struct origin){.direct = UINT64_C(1) << e->ref};
}

static bool one_number(const struct inst *in) {
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_is_output(&in->task->tensors[i]) && in->tensors[i].count > 1)
            return false;
    return true;
}

static struct traits traits_of(const struct inst *in) {
    struct traits t = {.task = in->task};
    for (size_t i = 0; i < in->task->nstatements; i++) {
        const struct statement *s = &in->task->statements[i];
        struct origin o = trace(&t, s->body);
        t.of[s->tensor] = united(t.of[s->tensor], o);
        t.normalisation |=
            tensor_is_output(&in->task->tensors[s->tensor]) && (o.direct & o.reduced);
    }
    return t;
}

static enum workload workload_of(const struct inst *in, const struct traits *t) {
    return t->reductions && one_number(in) ? WORKLOAD_LOSS
           : t->attention                  ? WORKLOAD_ATTENTION
           : t->contraction                ? WORKLOAD_CONTRACTION
           : t->scan                       ? WORKLOAD_SCAN
           : t->gather                     ? WORKLOAD_GATHER
           : t->normalisation              ? WORKLOAD_NORMALISATION
           : t->window                     ? WORKLOAD_WINDOW
           : t->reductions                 ? WORKLOAD_REDUCTION
                                           : WORKLOAD_POINTWISE;
}

void features_of(const struct inst *in, struct features *out) {
    const struct task *t = in->task;
    struct tally tally;
    struct cost c;
    int64_t largest = 0;
    tally_of(in, &tally);
    tally_cost(&tally, &c);
    struct traits traits = traits_of(in);
    *out = (struct features){.workload = workload_of(in, &traits),
                             .intensity = c.intensity,
                             .folds = traits.reductions,
                             .rereads = traits.normalisation,
                             .special = traits.division || c.flops_special > 0};
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_is_output(&t->tensors[i]))
            continue;
        if (out->outputs++ == 0)
            out->dtype = t->tensors[i].dtype;
        if (in->tensors[i].count > largest) {
            largest = in->tensors[i].count;
            out->rank = t->tensors[i].rank;
        }
    }
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_input(&t->tensors[i])) {
            out->inputs++;
            out->broadcast |= in->tensors[i].count < largest;
        }
    out->log2_elements = largest > 0 ? log2((double)largest) : 0;
    out->log2_bytes = log2(c.compulsory_bytes);
    out->special_share = c.flops > 0 ? c.flops_special / c.flops : 0;
    out->log2_reduced = tally.longest > 1 ? log2(tally.longest) : 0;
    out->reuse = tally.elements > 0 ? tally.reads / tally.elements : 0;
}
