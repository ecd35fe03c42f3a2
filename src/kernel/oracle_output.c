/* Statements as functions of their indices, and outputs as they are expected: for statement s
 * point_s, for output y expected_y and, where it is the place of an extreme, tie_y, which says
 * whether another place is as good. */
#include "kernel/oracle_text.h"

#include "spec/bind.h"
#include "spec/pattern.h"

static const struct oracle_step *index_step(const struct oracle_text *x,
                                            const struct statement *s) {
    const struct oracle_step *p =
        pattern_is_index(x->t, s) ? oracle_plan_find(&x->plan, s->body) : NULL;
    return p && !p->exact ? p : NULL;
}

void oracle_put_points(struct oracle_text *x, size_t statement) {
    const struct statement *s = &x->t->statements[statement];
    struct oracle_code c = oracle_code_begin(x, s, false, 4);
    const struct oracle_step *index = index_step(x, s);
    oracle_put_source(x, s->at, s->len);
    buf_printf(x->out, "__device__ static value point_%zu(const oracle_world *o", statement);
    for (size_t v = 0; v < s->nindex; v++)
        buf_printf(x->out, ", int64_t %.*s_", STR_ARG(s->index[v]));
    buf_puts(x->out, index ? S(", value *best) {\n") : S(") {\n"));
    if (index)
        buf_printf(x->out, "    return reduced_%zu(o%.*s, best);\n}\n",
                   (size_t)(index - x->plan.steps), STR_ARG(oracle_arguments(x, index)));
    else {
        c.root = s->body;
        struct oracle_operand v = oracle_put_value(&c, s->body, false);
        buf_printf(x->out, "    return value(%.*s);\n}\n", STR_ARG(v.text));
    }
    oracle_code_end(&c);
}

static void found_output(struct oracle_text *x, size_t i, str arguments) {
    const struct statement *s = &x->t->statements[i];
    enum dtype t = x->t->tensors[s->tensor].dtype;
    bool index = index_step(x, s);
    double lo, hi;
    dtype_limits(t, &lo, &hi);
    buf_printf(x->out, "        value best = 0.0;\n        const value v = point_%zu(o%.*s%s);\n",
               i, STR_ARG(arguments), index ? ", &best" : "");
    if (dtype_info(t)->kind == 'f')
        buf_printf(x->out, "        expected e = output_float(%s, v);\n", oracle_dtype(t));
    else
        buf_printf(x->out, "        expected e = output_integer(v, %.*s, %.*s);\n",
                   STR_ARG(oracle_number(x, lo)), STR_ARG(oracle_number(x, hi)));
    buf_puts(x->out, S("        e.best = best;\n        return e;\n"));
}

static void found_tie(struct oracle_text *x, size_t i, str arguments) {
    const struct oracle_step *p = index_step(x, &x->t->statements[i]);
    if (p)
        buf_printf(x->out, "        return tie_%zu(o%.*s, best, got);\n",
                   (size_t)(p - x->plan.steps), STR_ARG(arguments));
    else
        buf_puts(x->out, S("        return false;\n"));
}

static void put_head(struct oracle_text *x, size_t tensor, const char *type, const char *name,
                     const char *more) {
    const struct tensor *t = &x->t->tensors[tensor];
    buf_printf(x->out,
               "__device__ __noinline__ static %s %s_%.*s(const oracle_world *o, int64_t i%s) {\n",
               type, name, STR_ARG(t->name), more);
    oracle_put_coordinates(x, tensor);
}

static bool has_ties(const struct oracle_text *x, size_t tensor) {
    for (size_t i = 0; i < x->t->nstatements; i++)
        if (x->t->statements[i].tensor == tensor && index_step(x, &x->t->statements[i]))
            return true;
    return false;
}

static void put_expected(struct oracle_text *x, size_t tensor) {
    const struct task *t = x->t;
    put_head(x, tensor, "expected", "expected", "");
    oracle_put_dispatch(x, t->statements, t->nstatements, tensor, found_output);
    buf_puts(x->out, S("    return output_integer(undefined(), 0, 0);\n}\n"));
    if (!has_ties(x, tensor))
        return;
    put_head(x, tensor, "bool", "tie", ", value best, double got");
    oracle_put_dispatch(x, t->statements, t->nstatements, tensor, found_tie);
    buf_puts(x->out, S("    return false;\n}\n"));
}

static bool is_output(const struct oracle_text *x, size_t tensor) {
    return tensor_is_output(&x->t->tensors[tensor]);
}

/* Comparisons with what a case keeps, by the types that outputs have; of integers and truth values,
 * one element at a time is as much as their number asks for. */
static void put_kept_switch(struct oracle_text *x) {
    uint32_t done = 0;
    buf_puts(x->out, S("\n__device__ static inline int64_t compare_kept_of(const oracle_op &op, "
                       "int64_t i, int64_t last, oracle_tally &tally) {\n"
                       "    switch ((dtype)op.world->tensor[blockIdx.y].type) {\n"));
    for (size_t i = 0; i < x->t->ntensors && !x->plan.ties; i++) {
        enum dtype t = x->t->tensors[i].dtype;
        if (!is_output(x, i) || dtype_info(t)->kind != 'f' || done >> t & 1)
            continue;
        done |= UINT32_C(1) << t;
        buf_printf(x->out, "    case %s:\n        return compare_kept<%s>(op, i, last, tally);\n",
                   oracle_dtype(t), oracle_dtype(t));
    }
    buf_puts(x->out, S("    default:\n        return i;\n    }\n}\n"));
}

void oracle_put_outputs(struct oracle_text *x) {
    for (size_t i = 0; i < x->t->ntensors; i++)
        if (tensor_is_output(&x->t->tensors[i]))
            put_expected(x, i);
    oracle_put_switch(x, "expected", "expected", "", "", "output_integer(undefined(), 0, 0)",
                      is_output);
    oracle_put_switch(x, "bool", "tie", ", value best, double got", ", best, got", "false",
                      has_ties);
    put_kept_switch(x);
}
