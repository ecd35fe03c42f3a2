/* Puts the unit together: what the two compilers share, what is the same for every task
 * (assets/oracle), and the task's own functions in the order in which they use each other. */
#include "kernel/oracle.h"

#include "base/asset.h"
#include "kernel/oracle_text.h"
#include "spec/value.h"

/* Lists (.def) where they are included; without the other lines that C includes by. */
static bool put_lines(struct oracle_text *x, str text, struct err *err) {
    str line, list;
    while (str_line(&text, &line)) {
        if (str_starts(line, S("#include \"spec/")) && str_ends(line, S(".def\""))) {
            str name = str_cut(line, 15, line.n - 16);
            str path = arena_printf(x->a, "oracle/%.*s", STR_ARG(name));
            if (!asset_get(NULL, arena_cstr(x->a, path), x->a, &list, err) ||
                !put_lines(x, list, err))
                return false;
        } else if (!str_starts(line, S("#include"))) {
            buf_puts(x->out, line);
            buf_putc(x->out, '\n');
        }
    }
    return true;
}

static bool put_assets(struct oracle_text *x, const char *const *names, struct err *err) {
    str text;
    for (; *names; names++) {
        if (!asset_get(NULL, *names, x->a, &text, err) || !put_lines(x, text, err))
            return false;
    }
    return true;
}

/* Normal numbers take long to compile. */
static void put_normal(struct oracle_text *x) {
    bool normal = false;
    for (size_t i = 0; i < x->t->ntensors; i++)
        normal |= x->t->tensors[i].dist.kind == DIST_NORMAL;
    buf_printf(x->out, "#define ANY_NORMAL %d\n", normal);
}

/* The rules of the task's class: constants, once they are inlined. */
static void put_rules(struct oracle_text *x) {
    struct rules r = rules_of(x->t->accuracy);
    buf_printf(x->out,
               "\n// Accuracy class %s.\n"
               "__device__ static inline rules task_rules() {\n"
               "    const rules r = {{%a, %a}, %a, %a, %a, %a, %a};\n    return r;\n}\n"
               "#define RULES task_rules()\n#define CLASS_UNIT %a\n\n",
               accuracy_name(x->t->accuracy), r.limits.worst, r.limits.rms, r.unit2, r.least2,
               r.operand2, r.truncation, r.format2, accuracy_unit(x->t->accuracy));
}

/* What C lays out must be what CUDA finds. */
static void put_sizes(struct oracle_text *x) {
#define SIZE(T)                                                                                    \
    buf_printf(x->out, "static_assert(sizeof(" #T ") == %zu, \"laid out as in C\");\n",            \
               sizeof(struct T))
    SIZE(source);
    SIZE(promise);
    SIZE(oracle_tensor);
    SIZE(oracle_array);
    SIZE(oracle_world);
    SIZE(oracle_tile);
    SIZE(oracle_op);
    SIZE(oracle_join);
    SIZE(oracle_part);
    SIZE(oracle_tally);
    SIZE(oracle_regions);
#undef SIZE
}

static void put_dims(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ndims; i++)
        buf_printf(x->out, "#define dim_%.*s (o->dim[%zu])\n", STR_ARG(x->t->dims[i].name), i);
}

/* Reductions before the statement they stand in, statements before what reads them. */
static void put_statements(struct oracle_text *x) {
    const struct task *t = x->t;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        bool last = true;
        for (size_t k = 0; k < x->plan.nsteps; k++)
            if (x->plan.steps[k].s == s && x->plan.steps[k].kind == ORACLE_REDUCE)
                oracle_put_step(x, k);
        oracle_put_points(x, i);
        for (size_t k = i + 1; k < t->nstatements; k++)
            last = last && t->statements[k].tensor != s->tensor;
        if (last && t->tensors[s->tensor].role == TENSOR_LET)
            oracle_put_reads(x, s->tensor);
    }
}

static bool put_unit(struct oracle_text *x, struct err *err) {
    static const char *const shared[] = {
        "oracle/shared.h",        "rng/philox.cuh",         "oracle/rng.cuh",
        "oracle/enums.h",         "oracle/convert_value.h", "oracle/source_value.h",
        "oracle/poison_value.h",  "oracle/value.h",         "oracle/chain.h",
        "oracle/compare_value.h", "oracle/layout.h",        NULL};
    static const char *const own[] = {"oracle/value.cuh", "oracle/element.cuh", "oracle/fold.cuh",
                                      "oracle/check.cuh", "oracle/kept.cuh",    NULL};
    static const char *const kernels[] = {"oracle/kernels.cuh", NULL};
    put_normal(x);
    if (!put_assets(x, shared, err))
        return false;
    put_rules(x);
    if (!put_assets(x, own, err))
        return false;
    put_sizes(x);
    put_dims(x);
    oracle_put_places(x);
    oracle_put_elements(x);
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (tensor_is_input(&x->t->tensors[i]))
            oracle_put_reads(x, i);
    put_statements(x);
    oracle_put_element_switch(x);
    oracle_put_outputs(x);
    return put_assets(x, kernels, err);
}

bool oracle_unit(const struct task *t, struct buf *out, struct err *err) {
    struct oracle_text x = {.t = t, .out = out, .a = arena_new((size_t)256 << 20), .err = err};
    buf_printf(out, "// Oracle of task %.*s\n", STR_ARG(t->name));
    bool ok = oracle_plan_make(t, x.a, &x.plan, err) && put_unit(&x, err) && !x.failed;
    arena_free(x.a);
    if (ok && out->failed)
        return err_set(err, ERR_INPUT, "task %.*s: its oracle is too long", STR_ARG(t->name));
    return ok;
}
