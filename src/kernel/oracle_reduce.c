/* Reductions: loops over terms, and the kernels that make their results. For reduction k
 *
 *     fold_k       how its terms are folded
 *     terms_k      adds some of the terms of one result to a row
 *     look_k       … of a contraction, where they came to something odd
 *     reduced_k    one result: from memory or, where it has none, from all its terms
 *     oracle_reduce_k, oracle_scan_k    make all results
 *
 * A definition's reductions are plain sums in order, and their kernels oracle_define_k. */
#include "base/asset.h"
#include "base/template.h"
#include "kernel/oracle.h"
#include "kernel/oracle_text.h"
#include "spec/pattern.h"

static const char *const op_names[REDUCTION_COUNT] = {
    [REDUCTION_SUM] = "REDUCTION_SUM",       [REDUCTION_PROD] = "REDUCTION_PROD",
    [REDUCTION_MAX] = "REDUCTION_MAX",       [REDUCTION_MIN] = "REDUCTION_MIN",
    [REDUCTION_MEAN] = "REDUCTION_MEAN",     [REDUCTION_ARGMAX] = "REDUCTION_ARGMAX",
    [REDUCTION_ARGMIN] = "REDUCTION_ARGMIN",
};

static bool is_arg(const struct reduce *r) {
    return r->op == REDUCTION_ARGMAX || r->op == REDUCTION_ARGMIN;
}

/* Other indices may be as good as the one chosen, and nobody asks about them later. */
static bool wants_far(const struct oracle_step *p) {
    return is_arg(p->e->reduce) && !p->exact && !p->index;
}

/* ---- loops ---- */

static str bound(struct oracle_code *c, const struct expr *e) {
    return oracle_integer(c->x, c->s, e);
}

void oracle_put_first_term(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    buf_puts(x->out, S("    int64_t terms = 1, rest = first;\n"));
    for (size_t k = r->nvars; k-- > 0;) {
        str name = oracle_variable(x, p->s, r->vars[k].var);
        buf_printf(x->out,
                   "    const int64_t %.*slo = %.*s, %.*shi = %.*s, %.*sn = %.*shi - %.*slo;\n"
                   "    int64_t %.*s = %.*slo + rest %% integer_maximum(%.*sn, 1);\n"
                   "    rest /= integer_maximum(%.*sn, 1);\n"
                   "    terms *= integer_maximum(%.*sn, 0);\n",
                   STR_ARG(name), STR_ARG(oracle_integer(x, p->s, r->vars[k].lo)), STR_ARG(name),
                   STR_ARG(oracle_integer(x, p->s, r->vars[k].hi)), STR_ARG(name), STR_ARG(name),
                   STR_ARG(name), STR_ARG(name), STR_ARG(name), STR_ARG(name), STR_ARG(name),
                   STR_ARG(name));
    }
    buf_puts(x->out, S("    left = first < terms ? integer_minimum(left, terms - first) : 0;\n"));
}

/* Opens the loops; fixed: they go on from where oracle_put_first_term left the variables, for
 * `terms` terms. */
static void put_loops(struct oracle_code *c, const struct reduce *r, bool fixed) {
    struct buf *out = c->x->out;
    for (size_t k = 0; k < r->nvars; k++) {
        str name = oracle_variable(c->x, c->s, r->vars[k].var), inner = {0};
        str lo = bound(c, r->vars[k].lo), hi = bound(c, r->vars[k].hi);
        if (fixed && k + 1 < r->nvars)
            inner = oracle_variable(c->x, c->s, r->vars[k + 1].var);
        buf_printf(out, "%*sfor (", c->indent, "");
        if (!fixed)
            buf_printf(out, "int64_t %.*s = %.*s", STR_ARG(name), STR_ARG(lo));
        buf_printf(out, "; %.*s < %.*s; %.*s++", STR_ARG(name), STR_ARG(hi), STR_ARG(name));
        if (inner.n)
            buf_printf(out, ", %.*s = %.*slo", STR_ARG(inner), STR_ARG(inner));
        buf_puts(out, S(") {\n"));
        c->indent += 4;
    }
    if (fixed)
        buf_printf(out, "%*sif (left-- == 0)\n%*sgoto end;\n", c->indent, "", c->indent + 4, "");
}

static void close_loops(struct oracle_code *c, const struct reduce *r) {
    for (size_t k = 0; k < r->nvars; k++) {
        c->indent -= 4;
        buf_printf(c->x->out, "%*s}\n", c->indent, "");
    }
}

/* ---- terms ---- */

struct term {
    struct oracle_operand guard, value, factor[2];
};

static void put_guard(struct oracle_code *c, const struct oracle_operand *g, const char *leave) {
    if (g->exact)
        buf_printf(c->x->out, "%*sif (!(%.*s != 0))\n", c->indent, "", STR_ARG(g->text));
    else
        buf_printf(c->x->out, "%*sif (!(%.*s.v != 0 || %.*s.e > 0))\n", c->indent, "",
                   STR_ARG(g->text), STR_ARG(g->text));
    buf_printf(c->x->out, "%*s%s;\n", c->indent + 4, "", leave);
}

/* Guard and body; what the guard rejects for certain leaves by `leave`. */
static struct term put_term(struct oracle_code *c, const struct oracle_step *p, const char *leave) {
    const struct reduce *r = p->e->reduce;
    struct term t = {.guard = {S("1.0"), true}};
    c->checked = p->checked;
    if (r->guard) {
        t.guard = oracle_put_value(c, r->guard, false);
        put_guard(c, &t.guard, leave);
        c->checked = true;
    }
    if (p->exact_product)
        for (int k = 0; k < 2; k++)
            t.factor[k] = oracle_put_value(c, p->e->args[0]->args[k], true);
    else
        t.value = oracle_put_value(c, p->e->args[0], !p->fold.integer);
    return t;
}

/* A condition: a pad of the term reads beyond an edge, or only data say where it reads. As deep as
 * the tree. */
static str beyond_text(struct oracle_code *c, const struct expr *e, str sofar) {
    struct oracle_text *x = c->x;
    if (e->kind == EXPR_REDUCE)
        return sofar;
    if (e->kind == EXPR_PAD) {
        const struct expr *read = e->args[0];
        str places = S("");
        bool pure = true;
        for (size_t k = 0; k < read->nargs && pure; k++) {
            pure = pattern_is_pure(read->args[k]);
            if (pure)
                places = arena_printf(x->a, "%.*s, %.*s", STR_ARG(places),
                                      STR_ARG(oracle_integer(x, c->s, read->args[k])));
        }
        if (!pure)
            return S("true");
        sofar = arena_printf(x->a, "%.*s || !inside_%.*s(o%.*s)", STR_ARG(sofar),
                             STR_ARG(x->t->tensors[read->ref].name), STR_ARG(places));
    }
    for (size_t k = 0; k < e->nargs; k++)
        sofar = beyond_text(c, e->args[k], sofar);
    return sofar;
}

static void put_add(struct oracle_code *c, const struct oracle_step *p, const struct term *t) {
    const str none = S("false");
    str beyond = p->partial ? beyond_text(c, p->e->args[0], none) : none;
    str at = oracle_variable(c->x, c->s, p->e->reduce->vars[0].var), value = t->value.text;
    if (p->exact_product)
        value = arena_printf(c->x->a, "%.*s, %.*s", STR_ARG(t->factor[0].text),
                             STR_ARG(t->factor[1].text));
    if (p->product) {
        buf_printf(c->x->out, "%*slook_at_product(seen, s, f, %.*s, %.*s);\n", c->indent, "",
                   STR_ARG(value), STR_ARG(beyond));
        return;
    }
    if (p->exact_product)
        value = arena_printf(c->x->a, "summed_product(%.*s)", STR_ARG(value));
    if (!str_eq(beyond, none))
        value =
            arena_printf(c->x->a, "padded_term(f, %.*s, %.*s)", STR_ARG(value), STR_ARG(beyond));
    buf_printf(c->x->out, "%*schain_add(&c, &r.before, &f, %.*s, %.*s, (double)%.*s);\n", c->indent,
               "", STR_ARG(value), STR_ARG(t->guard.text), STR_ARG(at));
}

/* ---- functions ---- */

static void put_fold(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct fold *f = &p->fold;
    buf_printf(x->out,
               "__device__ static inline fold fold_%zu(const oracle_world *o) {\n"
               "    fold f = {%s, 0, %a, %a, %a, %a, %a, %a};\n",
               k, op_names[p->e->reduce->op], f->relative2, f->unit2, f->least2, f->truncation,
               f->worst, f->most);
}

/* Every content that the terms read: whether it is finite. */
static void put_odd(struct oracle_text *x, const struct expr *e) {
    const struct task *t = x->t;
    const struct oracle_step *inner = e->kind == EXPR_REDUCE ? oracle_plan_find(&x->plan, e) : NULL;
    if (e->kind == EXPR_READ)
        buf_printf(x->out, " | o->odd[%zu]",
                   t->tensors[e->ref].role == TENSOR_LET && x->plan.let_step[e->ref] >= 0
                       ? t->ntensors + (size_t)x->plan.let_step[e->ref]
                       : e->ref);
    if (inner) {
        buf_printf(x->out, " | o->odd[%zu]", t->ntensors + (size_t)(inner - x->plan.steps));
        return;
    }
    for (size_t k = 0; k < e->nargs; k++)
        put_odd(x, e->args[k]);
}

static void put_fold_function(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    put_fold(x, k);
    if (p->partial) {
        buf_puts(x->out, S("    f.unjudged = 0"));
        put_odd(x, p->e->args[0]);
        if (p->e->reduce->guard)
            put_odd(x, p->e->reduce->guard);
        buf_puts(x->out, S(";\n"));
    }
    buf_puts(x->out, S("    return f;\n}\n"));
}

/* The loops and what they add, up to the end of a function. */
static void put_all_terms(struct oracle_text *x, const struct oracle_step *p) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    if (p->fixed)
        oracle_put_first_term(x, p);
    put_loops(&c, p->e->reduce, p->fixed);
    struct term t = put_term(&c, p, "continue");
    put_add(&c, p, &t);
    close_loops(&c, p->e->reduce);
    if (p->fixed)
        buf_puts(x->out, S("end:;\n"));
    oracle_code_end(&c);
}

/* Once more through the terms of a chain that came to something odd. */
static void put_look(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "__device__ __noinline__ static int look_%zu(const oracle_world *o%.*s, int64_t "
               "first, int64_t left, int seen) {\n"
               "    const fold f = fold_%zu(o);\n    double s = 0;\n",
               k, STR_ARG(oracle_parameters(x, p)), k);
    put_all_terms(x, p);
    buf_puts(x->out, S("    return seen;\n}\n"));
}

static void put_terms(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    if (p->product) {
        put_look(x, k);
        oracle_put_products(x, k);
        return;
    }
    buf_printf(x->out,
               "template <int LEVELS>\n__device__ __noinline__ static void terms_%zu(const "
               "oracle_world *o, row_of<LEVELS> &__restrict__ r%.*s, int64_t first, int64_t left) "
               "{\n"
               "    const fold f = fold_%zu(o);\n    chain c = r.c;\n",
               k, STR_ARG(oracle_parameters(x, p)), k);
    put_all_terms(x, p);
    buf_puts(x->out, S("    r.c = c;\n}\n"));
    if (p->uncertain)
        oracle_put_products(x, k);
}

/* How far away another index is that is as good as the one chosen. */
static void put_far(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    str at = oracle_variable(x, p->s, p->e->reduce->vars[0].var);
    buf_printf(x->out,
               "__device__ __noinline__ static double far_%zu(const oracle_world *o%.*s, value "
               "best, double at) {\n    double far = 0;\n",
               k, STR_ARG(oracle_parameters(x, p)));
    put_loops(&c, p->e->reduce, false);
    struct term t = put_term(&c, p, "continue");
    buf_printf(
        x->out,
        "%*sif (fold_ties(RULES.limits.worst, best, %.*s))\n%*sfar = fmax(far, fabs((double)%.*s "
        "- at));\n",
        c.indent, "", STR_ARG(t.value.text), c.indent + 4, "", STR_ARG(at));
    close_loops(&c, p->e->reduce);
    buf_puts(x->out, S("    return far;\n}\n"));
    oracle_code_end(&c);
}

/* The term at an index that somebody else chose. */
static void put_tie(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct reduce_var *v = &p->e->reduce->vars[0];
    struct oracle_code c = oracle_code_begin(x, p->s, false, 4);
    str at = oracle_variable(x, p->s, v->var);
    buf_printf(x->out,
               "__device__ static bool tie_%zu(const oracle_world *o%.*s, value best, double got) "
               "{\n    const int64_t %.*s = (int64_t)got;\n"
               "    if (!(got == (double)%.*s && %.*s >= %.*s && %.*s < %.*s))\n"
               "        return false;\n",
               k, STR_ARG(oracle_parameters(x, p)), STR_ARG(at), STR_ARG(at), STR_ARG(at),
               STR_ARG(bound(&c, v->lo)), STR_ARG(at), STR_ARG(bound(&c, v->hi)));
    struct term t = put_term(&c, p, "return false");
    buf_printf(x->out, "    return fold_ties(RULES.limits.worst, best, %.*s);\n}\n",
               STR_ARG(t.value.text));
    oracle_code_end(&c);
}

/* The element of an array at its axes; `otherwise` where it does not reach. */
static void put_array_place(struct oracle_text *x, size_t k, const char *otherwise) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "    const oracle_array &a = o->array[%zu];\n    int64_t i = 0;\n", k);
    for (size_t i = 0; i < p->naxes; i++) {
        str name = oracle_variable(x, p->s, p->axis[i]);
        buf_printf(x->out,
                   "    if (!inside(%.*s - a.lo[%zu], a.n[%zu]))\n        return %s;\n"
                   "    i += (%.*s - a.lo[%zu]) * a.stride[%zu];\n",
                   STR_ARG(name), i, i, otherwise, STR_ARG(name), i, i);
    }
}

/* Of an argmax that is an output, `best` as well. */
static void put_reduced(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    bool keeps = p->index && !p->exact;
    str arguments = oracle_arguments(x, p);
    buf_printf(x->out, "__device__ static value reduced_%zu(const oracle_world *o%.*s%s) {\n", k,
               STR_ARG(oracle_parameters(x, p)), keeps ? ", value *best" : "");
    if (!p->always)
        buf_printf(x->out,
                   "    if (!o->array[%zu].value) {\n        const fold f = fold_%zu(o);\n"
                   "        row r;\n        row_start(r, f);\n"
                   "        terms_%zu(o, r%.*s, 0, NONE);\n",
                   k, k, k, STR_ARG(arguments));
    if (!p->always && keeps)
        buf_puts(x->out, S("        *best = value(r.c.sum, r.c.variance);\n"));
    if (!p->always && wants_far(p))
        buf_printf(x->out,
                   "        value d = chain_result(&r.c, &r.before, &f);\n        const double far "
                   "= far_%zu(o"
                   "%.*s, value(r.c.sum, r.c.variance), r.c.at);\n"
                   "        return value(d.v, d.e + far * far);\n    }\n",
                   k, STR_ARG(arguments));
    else if (!p->always)
        buf_puts(x->out, S("        return chain_result(&r.c, &r.before, &f);\n    }\n"));
    put_array_place(x, k, "undefined()");
    if (keeps)
        buf_puts(x->out, S("    *best = value(a.best[i], a.best[a.count + i]);\n"));
    buf_puts(x->out, S("    return element_at(a, i);\n}\n"));
}

/* ---- kernels ---- */

void oracle_put_indices(struct oracle_text *x, const struct oracle_step *p, uint32_t axes,
                        const char *prefix, int indent) {
    for (size_t i = p->naxes; i-- > 0;)
        if (axes >> i & 1)
            buf_printf(x->out, "%*s%s%.*s = a.lo[%zu] + rest %% a.n[%zu];\n%*srest /= a.n[%zu];\n",
                       indent, "", prefix, STR_ARG(oracle_variable(x, p->s, p->axis[i])), i, i,
                       indent, "", i);
}

void oracle_put_kernel_head(struct oracle_text *x, const char *bounds, const char *name, size_t k) {
    buf_printf(
        x->out,
        "extern \"C\" __global__ void %soracle_%s_%zu(const __grid_constant__ oracle_op op) {\n"
        "    const oracle_world *o = op.world;\n    const oracle_array a = o->array[%zu];\n"
        "    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n",
        bounds, name, k, k);
}

/* A thread a result, or a segment of its terms. */
static void put_reduce_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    str arguments = oracle_arguments(x, p);
    oracle_put_kernel_head(x, "", "reduce", k);
    buf_puts(x->out, S("    if (n >= a.count * op.segments)\n        return;\n"
                       "    const int64_t i = n / op.segments;\n    int64_t rest = i;\n"));
    oracle_put_indices(x, p, UINT32_MAX, "const int64_t ", 4);
    buf_printf(x->out,
               "    const fold f = fold_%zu(o);\n    row r;\n    row_start(r, f);\n"
               "    terms_%zu(o, r%.*s, n %% op.segments * op.terms, op.terms);\n",
               k, k, STR_ARG(arguments));
    buf_puts(x->out,
             S("    if (op.segments > 1) {\n"
               "        put_part((oracle_part *)op.out + n, r.c, r.before, f);\n"
               "        return;\n    }\n    value d = chain_result(&r.c, &r.before, &f);\n"));
    if (wants_far(p))
        buf_printf(x->out,
                   "    const double far = far_%zu(o%.*s, value(r.c.sum, r.c.variance), r.c.at);\n"
                   "    d.e += far * far;\n",
                   k, STR_ARG(arguments));
    buf_printf(x->out, "    put_result(a, &o->odd[%zu], i, d, value(r.c.sum, r.c.variance));\n}\n",
               x->t->ntensors + k);
}

/* The text that `put` writes, apart. */
static str taken_apart(struct oracle_text *x, const struct oracle_step *p,
                       void (*put)(struct oracle_text *x, const struct oracle_step *p)) {
    struct buf *out = x->out, apart;
    buf_init(&apart, ORACLE_MAX_UNIT);
    x->out = &apart;
    put(x, p);
    x->out = out;
    str text = arena_str(x->a, str_trim(buf_str(&apart)));
    buf_release(&apart);
    return text;
}

static void put_scan_term(struct oracle_text *x, const struct oracle_step *p) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 0);
    struct term t = put_term(&c, p, "break");
    put_add(&c, p, &t);
    oracle_code_end(&c);
}

/* The other axes, and what they contribute to the place of a result. */
static void put_scan_coordinates(struct oracle_text *x, const struct oracle_step *p) {
    uint32_t others = 0;
    for (size_t i = 0; i < p->naxes; i++)
        others |= (int)p->axis[i] == p->scanned ? 0 : UINT32_C(1) << i;
    oracle_put_indices(x, p, others, "const int64_t ", 0);
    for (size_t i = 0; i < p->naxes; i++)
        if (others >> i & 1)
            buf_printf(x->out, "place += (%.*s - a.lo[%zu]) * a.stride[%zu];\n",
                       STR_ARG(oracle_variable(x, p->s, p->axis[i])), i, i);
}

static void put_scan_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    const struct reduce_var *v = &p->e->reduce->vars[0];
    bool back = p->backwards;
    size_t axis = 0;
    str template, coordinates = taken_apart(x, p, put_scan_coordinates);
    while ((int)p->axis[axis] != p->scanned)
        axis++;
    str index = oracle_variable(x, p->s, p->axis[axis]), at = oracle_variable(x, p->s, v->var);
    const struct slot slots[] = {
        {"step", arena_printf(x->a, "%zu", k)},
        {"axis", arena_printf(x->a, "%zu", axis)},
        {"odd", arena_printf(x->a, "%zu", x->t->ntensors + k)},
        {"coordinates", coordinates.n ? coordinates : S("// a single row")},
        {"index", index},
        {"variable", at},
        {"moving", oracle_integer(x, p->s, back ? v->lo : v->hi)},
        {"fixed", oracle_integer(x, p->s, back ? v->hi : v->lo)},
        {"none_from", back ? S("last") : S("first")},
        {"none_while", arena_printf(x->a,
                                    back ? "%.*s >= first && %.*s + offset >= fixed"
                                         : "%.*s <= last && %.*s + offset <= fixed",
                                    STR_ARG(index), STR_ARG(index))},
        {"from", back ? S("fixed - 1") : S("fixed")},
        {"while",
         arena_printf(x->a, back ? "%.*s >= first + offset" : "%.*s < last + offset", STR_ARG(at))},
        {"next", back ? S("--") : S("++")},
        {"past", back ? S("") : S(" + 1")},
        {"term", taken_apart(x, p, put_scan_term)},
    };
    x->failed = x->failed || !asset_get(NULL, "oracle/scan.cu", x->a, &template, x->err) ||
                !template_render(S("oracle/scan.cu"), template, slots, sizeof slots / sizeof *slots,
                                 x->out, x->err);
}

/* ---- definitions ---- */

static void put_plain_loops(struct oracle_code *c, const struct expr *e) {
    const struct reduce *r = e->reduce;
    struct oracle_code in = oracle_code_begin(c->x, c->s, true, c->indent);
    put_loops(&in, r, false);
    if (r->guard) {
        struct oracle_operand g = oracle_put_value(&in, r->guard, false);
        put_guard(&in, &g, "continue");
    }
    struct oracle_operand v = oracle_put_value(&in, e->args[0], false);
    buf_printf(c->x->out, "%*splain_add(&f, %s, %.*s, (double)%.*s);\n", in.indent, "",
               op_names[r->op], STR_ARG(v.text),
               STR_ARG(oracle_variable(c->x, c->s, r->vars[0].var)));
    close_loops(&in, r);
    oracle_code_end(&in);
}

struct oracle_operand oracle_put_plain_reduce(struct oracle_code *c, const struct expr *e) {
    struct oracle_text *x = c->x;
    str name = arena_printf(x->a, "sum%zu", e->at);
    buf_printf(x->out, "%*sdouble %.*s;\n%*s{\n", c->indent, "", STR_ARG(name), c->indent, "");
    c->indent += 4;
    buf_printf(x->out, "%*splain_fold f = plain_start(%s);\n", c->indent, "",
               op_names[e->reduce->op]);
    put_plain_loops(c, e);
    buf_printf(x->out, "%*s%.*s = plain_result(&f, %s);\n", c->indent, "", STR_ARG(name),
               op_names[e->reduce->op]);
    c->indent -= 4;
    buf_printf(x->out, "%*s}\n", c->indent, "");
    return (struct oracle_operand){name, true};
}

static void put_define(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    struct oracle_code c = oracle_code_begin(x, p->s, true, 4);
    buf_printf(x->out, "__device__ static double reduced_%zu(const oracle_world *o%.*s) {\n", k,
               STR_ARG(oracle_parameters(x, p)));
    put_array_place(x, k, "NAN");
    buf_puts(x->out, S("    return a.value[i];\n}\n"));
    oracle_put_kernel_head(x, "", "define", k);
    buf_puts(x->out, S("    if (n >= a.count)\n        return;\n    int64_t rest = n;\n"));
    oracle_put_indices(x, p, UINT32_MAX, "const int64_t ", 4);
    struct oracle_operand v = oracle_put_plain_reduce(&c, p->e);
    buf_printf(x->out, "    a.value[n] = %.*s;\n}\n", STR_ARG(v.text));
    oracle_code_end(&c);
}

void oracle_put_step(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    oracle_put_source(x, p->e->at, p->e->len);
    if (p->kind == ORACLE_DEFINE) {
        put_define(x, k);
        return;
    }
    put_fold_function(x, k);
    if (p->scanned < 0)
        put_terms(x, k);
    if (wants_far(p))
        put_far(x, k);
    if (p->index && !p->exact)
        put_tie(x, k);
    put_reduced(x, k);
    if (p->scanned >= 0)
        put_scan_kernel(x, k);
    else
        put_reduce_kernel(x, k);
    if (p->rows * p->columns > 1)
        oracle_put_block_kernel(x, k);
}
