/* Tensors: where their elements lie, how inputs are made, and how all of them are read. For tensor
 * x
 *
 *     at_x, inside_x    the place of an element, and whether there is one
 *     element_x         an element of an input, or of what inputs are defined from, made anew
 *     read_x            an element as the mathematics reads it
 *     padded_x          … or another value where there is none
 *
 * An inout tensor is read as it was before the run: its elements are made anew. */
#include "kernel/oracle_text.h"

#include "spec/bind.h"

static bool is_made(const struct tensor *t) {
    return tensor_is_input(t) || t->role == TENSOR_RAND;
}

/* "int64_t c0, int64_t c1", or "c0, c1", each behind a comma. */
static str coordinates(struct oracle_text *x, const struct tensor *t, const char *type) {
    str s = S("");
    for (size_t k = 0; k < t->rank; k++)
        s = arena_printf(x->a, "%.*s, %sc%zu", STR_ARG(s), type, k);
    return s;
}

void oracle_put_places(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ntensors; i++) {
        const struct tensor *t = &x->t->tensors[i];
        str parameters = coordinates(x, t, "int64_t ");
        buf_printf(x->out,
                   "__device__ static inline int64_t at_%.*s(const oracle_world *o%.*s) {\n"
                   "    const oracle_tensor &t = o->tensor[%zu];\n    return 0",
                   STR_ARG(t->name), STR_ARG(parameters), i);
        for (size_t k = 0; k < t->rank; k++)
            buf_printf(x->out, k + 1 < t->rank ? " + c%zu * t.stride[%zu]" : " + c%zu", k, k);
        buf_printf(x->out,
                   ";\n}\n__device__ static inline bool inside_%.*s(const oracle_world *o%.*s) {\n"
                   "    const oracle_tensor &t = o->tensor[%zu];\n    return true",
                   STR_ARG(t->name), STR_ARG(parameters), i);
        for (size_t k = 0; k < t->rank; k++)
            buf_printf(x->out, " & inside(c%zu, t.extent[%zu])", k, k);
        buf_puts(x->out, S(";\n}\n"));
    }
}

/* ---- statements by element ---- */

/* From the last dimension to the first: one division each. */
void oracle_put_coordinates(struct oracle_text *x, size_t tensor) {
    size_t rank = x->t->tensors[tensor].rank;
    if (rank > 1)
        buf_puts(x->out, S("    int64_t rest = i;\n"));
    for (size_t k = rank; k-- > 1;)
        buf_printf(x->out,
                   "    const int64_t c%zu = rest %% o->tensor[%zu].extent[%zu];\n"
                   "    rest /= o->tensor[%zu].extent[%zu];\n",
                   k, tensor, k, tensor, k);
    if (rank)
        buf_puts(x->out,
                 rank > 1 ? S("    const int64_t c0 = rest;\n") : S("    const int64_t c0 = i;\n"));
}

void oracle_put_dispatch(struct oracle_text *x, const struct statement *list, size_t n,
                         size_t tensor,
                         void (*found)(struct oracle_text *x, size_t statement, str arguments)) {
    const struct tensor *t = &x->t->tensors[tensor];
    for (size_t i = 0; i < n; i++) {
        const struct statement *s = &list[i];
        str arguments = S(""), test = S("true");
        if (s->tensor != tensor)
            continue;
        for (size_t v = 0; v < s->nindex; v++)
            for (size_t k = 0; k < t->rank; k++)
                if (s->position[k] == (int)v)
                    arguments = arena_printf(x->a, "%.*s, c%zu", STR_ARG(arguments), k);
        for (size_t k = 0; k < t->rank; k++)
            if (s->position[k] < 0)
                test = arena_printf(x->a, "%.*s && c%zu == %.*s", STR_ARG(test), k,
                                    STR_ARG(oracle_integer(x, s, s->constant[k])));
        buf_printf(x->out, "    if (%.*s) {\n", STR_ARG(test));
        found(x, i, arguments);
        buf_puts(x->out, S("    }\n"));
    }
}

/* ---- inputs as they are made ---- */

static str left_parameters(struct oracle_text *x, const struct statement *s) {
    str p = S("");
    for (size_t v = 0; v < s->nindex; v++)
        p = arena_printf(x->a, "%.*s, int64_t %.*s_", STR_ARG(p), STR_ARG(s->index[v]));
    return p;
}

/* A function of the indices on the left side. */
static void put_plain_function(struct oracle_text *x, const char *name, size_t number,
                               const struct statement *s) {
    struct oracle_code c = oracle_code_begin(x, s, true, 4);
    oracle_put_source(x, s->at, s->len);
    buf_printf(x->out, "__device__ static double %s_%zu(const oracle_world *o%.*s) {\n", name,
               number, STR_ARG(left_parameters(x, s)));
    struct oracle_operand v = oracle_put_value(&c, s->body, false);
    buf_printf(x->out, "    return %.*s;\n}\n", STR_ARG(v.text));
    oracle_code_end(&c);
}

static void found_definition(struct oracle_text *x, size_t i, str arguments) {
    buf_printf(x->out, "        return source_computed(defined_%zu(o%.*s));\n", i,
               STR_ARG(arguments));
}

/* What source_value decides by, known here. */
static const char *drawn_as(const struct tensor *t) {
    char kind = dtype_info(t->dtype)->kind;
    bool own = t->role == TENSOR_RAND;
    if ((t->indexes && kind != 'f') || (own && t->dist.kind == DIST_RANDINT))
        return "held";
    if (kind == 'b' || (own && t->dist.kind == DIST_BERNOULLI))
        return "truth";
    return kind == 'f' ? "real" : "whole";
}

static void put_raw(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    if (t->dist.kind == DIST_DEFINED)
        for (size_t i = 0; i < x->t->ndefinitions; i++)
            if (x->t->definitions[i].tensor == tensor)
                put_plain_function(x, "defined", i, &x->t->definitions[i]);
    buf_printf(x->out, "__device__ static double raw_%.*s(const oracle_world *o, int64_t i) {\n",
               STR_ARG(t->name));
    if (t->dist.kind == DIST_DEFINED) {
        oracle_put_coordinates(x, tensor);
        oracle_put_dispatch(x, x->t->definitions, x->t->ndefinitions, tensor, found_definition);
        buf_puts(x->out, S("    return 0;\n}\n"));
    } else
        buf_printf(x->out, "    return source_%s(&o->source[%zu], i);\n}\n", drawn_as(t), tensor);
}

static bool assumes_zero(const struct task *t, size_t tensor, size_t a) {
    return t->assumptions[a].kind == ASSUME_ZERO && t->assumptions[a].tensor == tensor;
}

static bool is_assumed(const struct task *t, size_t tensor) {
    for (size_t a = 0; a < t->nassumptions; a++)
        if (t->assumptions[a].tensor == tensor)
            return true;
    return false;
}

/* The indices of an assumption stand at all dimensions. */
static void put_zeros(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    for (size_t a = 0; a < t->nassumptions; a++) {
        const struct statement *s = &t->assumptions[a].s;
        if (!assumes_zero(t, tensor, a))
            continue;
        str arguments = S("");
        for (size_t v = 0; v < s->nindex; v++)
            for (size_t k = 0; k < t->tensors[tensor].rank; k++)
                if (s->position[k] == (int)v)
                    arguments = arena_printf(x->a, "%.*s, c%zu", STR_ARG(arguments), k);
        buf_printf(x->out, "    if (zero_%zu(o%.*s) != 0)\n        return 0;\n", a,
                   STR_ARG(arguments));
    }
}

static void put_element(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    const struct tensor *own = &t->tensors[tensor];
    char kind = dtype_info(own->dtype)->kind;
    put_raw(x, tensor);
    for (size_t a = 0; a < t->nassumptions; a++)
        if (assumes_zero(t, tensor, a))
            put_plain_function(x, "zero", a, &t->assumptions[a].s);
    buf_printf(
        x->out,
        "__device__ __noinline__ static double element_%.*s(const oracle_world *o, int64_t i) {\n",
        STR_ARG(own->name));
    if (!is_assumed(t, tensor)) {
        buf_printf(x->out, "    return source_stored(&o->source[%zu], '%c', raw_%.*s(o, i));\n}\n",
                   tensor, kind, STR_ARG(own->name));
        return;
    }
    oracle_put_coordinates(x, tensor);
    put_zeros(x, tensor);
    if (own->rank)
        buf_printf(x->out,
                   "    if (o->promise[%zu].symmetric)\n"
                   "        i = promise_mirrors(i, o->tensor[%zu].extent[%zu]);\n",
                   tensor, tensor, own->rank - 1);
    buf_printf(x->out,
               "    const double v = promise_keeps(&o->promise[%zu], &o->source[%zu], '%c', "
               "raw_%.*s(o, i), i);\n    return source_stored(&o->source[%zu], '%c', v);\n}\n",
               tensor, tensor, kind, STR_ARG(own->name), tensor, kind);
}

static bool has_statement(const struct task *t, size_t tensor) {
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (t->definitions[i].tensor == tensor)
            return true;
    return false;
}

/* Those with a distribution first, then definitions in their order, each once. */
void oracle_put_elements(struct oracle_text *x) {
    const struct task *t = x->t;
    bool made[TASK_MAX_TENSORS] = {false};
    for (size_t i = 0; i < t->ntensors; i++)
        if (is_made(&t->tensors[i]))
            buf_printf(x->out,
                       "__device__ __noinline__ static double element_%.*s(const oracle_world *o, "
                       "int64_t i);\n",
                       STR_ARG(t->tensors[i].name));
    for (size_t i = 0; i < t->ntensors; i++)
        if (is_made(&t->tensors[i]) && !has_statement(t, i))
            put_element(x, i);
    for (size_t i = 0; i < x->plan.nsteps; i++)
        if (x->plan.steps[i].kind == ORACLE_DEFINE)
            oracle_put_step(x, i);
    for (size_t i = 0; i < t->ndefinitions; i++)
        if (!made[t->definitions[i].tensor]) {
            made[t->definitions[i].tensor] = true;
            put_element(x, t->definitions[i].tensor);
        }
}

/* ---- reads ---- */

static str limits(struct oracle_text *x, enum dtype t) {
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    if (t == DTYPE_I64)
        hi = 0x1.fffffffffffffp62; /* the largest double below 2^63 */
    return arena_printf(x->a, "%.*s, %.*s", STR_ARG(oracle_number(x, lo)),
                        STR_ARG(oracle_number(x, hi)));
}

bool oracle_is_loaded(const struct tensor *t) {
    return tensor_is_input(t) && t->role != TENSOR_INOUT && t->dtype != DTYPE_F64 && t->rank > 0;
}

/* Loads in either case, from the first element if need be: without a branch, loops keep the sizes
 * they go by in registers. */
static void put_padded_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    str places = coordinates(x, t, "");
    buf_printf(x->out,
               "__device__ static inline double padded_%.*s(const oracle_world *o%.*s, double "
               "otherwise) {\n    const bool in = inside_%.*s(o%.*s);\n"
               "    const int64_t at = at_%.*s(o%.*s);\n"
               "    const double v = load<%s>(o->tensor[%zu].at, in ? at : 0);\n"
               "    return in ? v : otherwise;\n}\n",
               STR_ARG(t->name), STR_ARG(coordinates(x, t, "int64_t ")), STR_ARG(t->name),
               STR_ARG(places), STR_ARG(t->name), STR_ARG(places), oracle_dtype(t->dtype), tensor);
}

static void put_input_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    bool real = dtype_info(t->dtype)->kind == 'f', wide = t->dtype == DTYPE_F64;
    str at = arena_printf(x->a, "at_%.*s(o%.*s)", STR_ARG(t->name), STR_ARG(coordinates(x, t, "")));
    str read = arena_printf(x->a, "load<%s>(o->tensor[%zu].at, %.*s)", oracle_dtype(t->dtype),
                            tensor, STR_ARG(at));
    if (t->role == TENSOR_INOUT)
        read =
            arena_printf(x->a, real ? "element_%.*s(o, %.*s)" : "whole_fit(element_%.*s(o, %.*s)",
                         STR_ARG(t->name), STR_ARG(at));
    if (t->role == TENSOR_INOUT && !real)
        read = arena_printf(x->a, "%.*s, %.*s)", STR_ARG(read), STR_ARG(limits(x, t->dtype)));
    buf_printf(x->out,
               "__device__ static inline %s read_%.*s(const oracle_world *o%.*s) {\n"
               "    return %s(%.*s);\n}\n",
               wide ? "value" : "double", STR_ARG(t->name), STR_ARG(coordinates(x, t, "int64_t ")),
               wide ? "value_input" : "", STR_ARG(read));
    if (oracle_is_loaded(t))
        put_padded_read(x, tensor);
}

static void found_point(struct oracle_text *x, size_t i, str arguments) {
    buf_printf(x->out, "        const value v = point_%zu(o%.*s);\n", i, STR_ARG(arguments));
    const struct tensor *t = &x->t->tensors[x->t->statements[i].tensor];
    if (t->dtype == DTYPE_F64) /* no type was stated */
        buf_puts(x->out, S("        return v;\n"));
    else if (dtype_info(t->dtype)->kind == 'f')
        buf_printf(x->out, "        return let_float(RULES.limits, %s, v);\n",
                   oracle_dtype(t->dtype));
    else
        buf_printf(x->out, "        return let_integer(v, %.*s);\n", STR_ARG(limits(x, t->dtype)));
}

static void put_let_kernel(struct oracle_text *x, size_t tensor, size_t step) {
    const struct tensor *t = &x->t->tensors[tensor];
    buf_printf(x->out,
               "extern \"C\" __global__ void oracle_let_%zu(const __grid_constant__ oracle_op op) "
               "{\n    const oracle_world *o = op.world;\n"
               "    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;\n"
               "    if (i >= o->array[%zu].count)\n        return;\n",
               step, step);
    oracle_put_coordinates(x, tensor);
    buf_printf(x->out,
               "    put_result(o->array[%zu], &o->odd[%zu], i, made_%.*s(o%.*s), 0.0);\n}\n", step,
               x->t->ntensors + step, STR_ARG(t->name), STR_ARG(coordinates(x, t, "")));
}

/* A let is evaluated where it is read, or once and for all. */
static void put_let_read(struct oracle_text *x, size_t tensor) {
    const struct tensor *t = &x->t->tensors[tensor];
    int step = x->plan.let_step[tensor];
    str parameters = coordinates(x, t, "int64_t ");
    buf_printf(x->out, "__device__ static value %s_%.*s(const oracle_world *o%.*s) {\n",
               step < 0 ? "read" : "made", STR_ARG(t->name), STR_ARG(parameters));
    oracle_put_dispatch(x, x->t->statements, x->t->nstatements, tensor, found_point);
    buf_puts(x->out, S("    return undefined();\n}\n"));
    if (step < 0)
        return;
    put_let_kernel(x, tensor, (size_t)step);
    buf_printf(x->out,
               "__device__ static inline value read_%.*s(const oracle_world *o%.*s) {\n"
               "    return element_at(o->array[%d], at_%.*s(o%.*s));\n}\n",
               STR_ARG(t->name), STR_ARG(parameters), step, STR_ARG(t->name),
               STR_ARG(coordinates(x, t, "")));
}

void oracle_put_reads(struct oracle_text *x, size_t tensor) {
    if (x->t->tensors[tensor].role == TENSOR_LET)
        put_let_read(x, tensor);
    else
        put_input_read(x, tensor);
}

/* ---- by number ---- */

void oracle_put_switch(struct oracle_text *x, const char *type, const char *name,
                       const char *parameters, const char *arguments, const char *otherwise,
                       bool (*has)(const struct oracle_text *x, size_t tensor)) {
    buf_printf(
        x->out,
        "\n__device__ static inline %s %s_of(const oracle_world *o, int tensor, int64_t i%s) "
        "{\n    switch (tensor) {\n",
        type, name, parameters);
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (has(x, i))
            buf_printf(x->out, "    case %zu:\n        return %s_%.*s(o, i%s);\n", i, name,
                       STR_ARG(x->t->tensors[i].name), arguments);
    buf_printf(x->out, "    default:\n        return %s;\n    }\n}\n", otherwise);
}

static bool is_input(const struct oracle_text *x, size_t tensor) {
    return tensor_is_input(&x->t->tensors[tensor]);
}

void oracle_put_element_switch(struct oracle_text *x) {
    oracle_put_switch(x, "double", "element", "", "", "NAN", is_input);
}
