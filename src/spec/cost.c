/* Costs and features, read off the tree.
 *
 * Work on integers is address arithmetic and counts nothing, as does what a compiler folds (no
 * index, no read). Of an `if` the dearer side counts. Compulsory bytes are the elements that must
 * be touched: a read under a condition that depends on data need not happen, so it is left out. */
#include "spec/cost.h"

#include "spec/bounds.h"
#include <math.h>
#include <string.h>

struct ops {
    double plain, special;
};

static bool is_constant(const struct expr *e) {
    if (e->kind == EXPR_READ || e->kind == EXPR_INDEX)
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!is_constant(e->args[i]))
            return false;
    return true;
}

static struct ops call_ops(enum function f) {
    switch (f) {
    case FUNCTION_ABS:
    case FUNCTION_FLOOR:
    case FUNCTION_MAXIMUM:
    case FUNCTION_MINIMUM:
        return (struct ops){1, 0};
    case FUNCTION_CLAMP:
        return (struct ops){2, 0};
    default:
        return (struct ops){0, 1};
    }
}

/* The node's own work. */
static struct ops node_ops(const struct expr *e) {
    switch (e->kind) {
    case EXPR_ADD:
    case EXPR_SUB:
    case EXPR_MUL:
    case EXPR_DIV:
        return (struct ops){e->value_kind == VALUE_REAL, 0};
    case EXPR_CALL:
        return e->value_kind == VALUE_REAL ? call_ops(e->function) : (struct ops){0, 0};
    case EXPR_EQ:
    case EXPR_NE:
    case EXPR_LT:
    case EXPR_LE:
    case EXPR_GT:
    case EXPR_GE:
        return (struct ops){
            e->args[0]->value_kind == VALUE_REAL || e->args[1]->value_kind == VALUE_REAL, 0};
    default:
        return (struct ops){0, 0};
    }
}

static struct ops ops_of(const struct expr *e) {
    struct ops sum = node_ops(e);
    if (e->kind == EXPR_READ || is_constant(e))
        return (struct ops){0, 0};
    if (e->kind == EXPR_IF) {
        struct ops c = ops_of(e->args[0]), a = ops_of(e->args[1]), b = ops_of(e->args[2]);
        struct ops dear = a.plain + a.special >= b.plain + b.special ? a : b;
        return (struct ops){c.plain + dear.plain, c.special + dear.special};
    }
    for (size_t i = 0; i < e->nargs; i++) {
        struct ops o = ops_of(e->args[i]);
        sum.plain += o.plain;
        sum.special += o.special;
    }
    return sum;
}

/* What the reads of one tensor touch. Each read touches at most as many elements as its index
 * variables have values, and as its bounding box holds; all together at most their sum, and the
 * box around them. Reads that are spelled alike, under the same guards, count once. */
struct touched {
    size_t tensor;
    double sum;
    struct range box[TASK_MAX_RANK];
    struct seen {
        const struct expr *e;
        const struct statement *s;
        struct range index[TASK_MAX_RANK]; /* under its guards */
    } seen[32];                            /* further ones are counted as if they were new */
    size_t nseen;
};

static bool same_expr(const struct expr *a, const struct expr *b) {
    if (a->kind != b->kind || a->nargs != b->nargs || a->ref != b->ref ||
        a->integer != b->integer || a->function != b->function)
        return false;
    for (size_t i = 0; i < a->nargs; i++)
        if (!same_expr(a->args[i], b->args[i]))
            return false;
    return true;
}

static void variables_of(const struct expr *e, bool used[TASK_MAX_RANK]) {
    if (e->kind == EXPR_INDEX)
        used[e->ref] = true;
    for (size_t i = 0; i < e->nargs; i++)
        variables_of(e->args[i], used);
}

static double width(struct range r) {
    return (double)(r.hi - r.lo) + 1;
}

static bool seen_before(struct touched *t, const struct ranges *r, const struct statement *s,
                        const struct expr *e) {
    for (size_t i = 0; i < t->nseen; i++)
        if (t->seen[i].s->tensor == s->tensor && same_expr(t->seen[i].e, e) &&
            memcmp(t->seen[i].index, r->index, sizeof r->index) == 0)
            return true;
    if (t->nseen < sizeof t->seen / sizeof *t->seen) {
        struct seen *new = &t->seen[t->nseen++];
        new->e = e;
        new->s = s;
        memcpy(new->index, r->index, sizeof r->index);
    }
    return false;
}

static void touch(struct touched *t, const struct ranges *r, const struct statement *s,
                  const struct expr *e) {
    bool used[TASK_MAX_RANK] = {false};
    bool first = t->nseen == 0;
    double box = 1, combinations = 1;
    if (seen_before(t, r, s, e))
        return;
    for (size_t k = 0; k < e->nargs; k++) {
        struct range got = {0, 0};
        if (range_of(r, e->args[k], &got) != RANGE_OK)
            return;
        variables_of(e->args[k], used);
        box *= width(got);
        if (first || got.lo < t->box[k].lo)
            t->box[k].lo = got.lo;
        if (first || got.hi > t->box[k].hi)
            t->box[k].hi = got.hi;
    }
    for (size_t v = 0; v < s->nindex; v++)
        combinations *= used[v] ? width(r->index[v]) : 1;
    t->sum += fmin(box, combinations);
}

static void touch_reads(struct touched *t, const struct ranges *r, const struct statement *s,
                        const struct expr *e) {
    if (e->kind == EXPR_READ && e->ref == t->tensor)
        touch(t, r, s, e);
    if (e->kind != EXPR_IF) {
        for (size_t i = 0; i < e->nargs; i++)
            touch_reads(t, r, s, e->args[i]);
        return;
    }
    touch_reads(t, r, s, e->args[0]);
    for (int side = 0; side < 2 && !expr_reads(e->args[0]); side++) {
        struct ranges inner = *r;
        if (ranges_narrow(&inner, e->args[0], side == 0))
            touch_reads(t, &inner, s, e->args[1 + side]);
    }
}

static double touched_elements(const struct inst *in, size_t tensor) {
    struct touched t = {.tensor = tensor};
    double box = 1;
    for (size_t i = 0; i < in->task->nstatements; i++) {
        const struct statement *s = &in->task->statements[i];
        struct ranges r = ranges_of(in, s);
        touch_reads(&t, &r, s, s->body);
    }
    for (size_t k = 0; k < in->task->tensors[tensor].rank; k++)
        box *= width(t.box[k]);
    return fmin(t.sum, box);
}

void cost_of(const struct inst *in, struct cost *out) {
    const struct task *t = in->task;
    *out = (struct cost){0};
    for (size_t i = 0; i < t->nstatements; i++) {
        struct ops o = ops_of(t->statements[i].body);
        double count = (double)in->tensors[t->statements[i].tensor].count;
        out->flops_add_mul += o.plain * count;
        out->flops_special += o.special * count;
    }
    for (size_t i = 0; i < t->ntensors; i++) {
        double bytes = (double)dtype_info(t->tensors[i].dtype)->bytes;
        if (tensor_is_input(&t->tensors[i]))
            out->read_bytes += touched_elements(in, i) * bytes;
        else if (t->tensors[i].role == TENSOR_OUT)
            out->write_bytes += (double)in->tensors[i].bytes;
    }
    out->flops = out->flops_add_mul + out->flops_special;
    out->compulsory_bytes = out->read_bytes + out->write_bytes;
    out->intensity = out->compulsory_bytes > 0 ? out->flops / out->compulsory_bytes : 0;
}

const char *workload_name(enum workload w) {
    BUG_IF((unsigned)w >= WORKLOAD_COUNT);
    return "pointwise";
}

void features_of(const struct inst *in, struct features *out) {
    const struct task *t = in->task;
    struct cost c;
    int64_t largest = 0;
    cost_of(in, &c);
    *out = (struct features){.workload = WORKLOAD_POINTWISE, .intensity = c.intensity};
    for (size_t i = 0; i < t->ntensors; i++) {
        if (t->tensors[i].role != TENSOR_OUT)
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
}
