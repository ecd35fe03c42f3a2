/* Contractions: a thread makes a block of results at once, so that loading and converting a factor,
 * and finding its place, is paid once for a line of them. For reduction k
 *
 *     rows_k, columns_k    where a row, or a column, of results is: the indices that only one
 *                          factor depends on
 *     products_k           adds some of the terms of a block of results to their rows
 *     terms_k              the same for one result; where factors carry errors, oracle_reduce.c's
 *     oracle_block_k       makes all results, a block a thread
 *
 * Terms come run by run along the innermost variable. Where a factor is a single read, the place of
 * a run's first term is computed and the others are steps from there. */
#include "kernel/oracle_text.h"

#include "spec/pattern.h"
#include "spec/scalar.h"

static bool has_axis(uint32_t axes, size_t i) {
    return axes >> i & 1;
}

static bool is_common(const struct oracle_step *p, size_t i) {
    return !has_axis(p->row_axes | p->column_axes, i);
}

static str axis_name(struct oracle_text *x, const struct oracle_step *p, size_t i) {
    return oracle_variable(x, p->s, p->axis[i]);
}

/* ---- the terms of a block ---- */

static void put_place_type(struct oracle_text *x, size_t k, const char *name, uint32_t axes) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "struct %s_%zu {\n", name, k);
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            buf_printf(x->out, "    int64_t %.*s;\n", STR_ARG(axis_name(x, p, i)));
    buf_puts(x->out, S("};\n"));
}

/* ", int64_t b_" or ", b_" of the indices that both factors depend on. */
static str common_text(struct oracle_text *x, const struct oracle_step *p, const char *type) {
    str s = S("");
    for (size_t i = 0; i < p->naxes; i++)
        if (is_common(p, i))
            s = arena_printf(x->a, "%.*s, %s%.*s", STR_ARG(s), type, STR_ARG(axis_name(x, p, i)));
    return s;
}

/* All indices of the result in row u and column v, each behind a comma. */
static str result_arguments(struct oracle_text *x, const struct oracle_step *p) {
    str s = S("");
    for (size_t i = 0; i < p->naxes; i++)
        s = arena_printf(x->a, "%.*s, %s%.*s", STR_ARG(s),
                         has_axis(p->row_axes, i)      ? "row[u]."
                         : has_axis(p->column_axes, i) ? "column[v]."
                                                       : "",
                         STR_ARG(axis_name(x, p, i)));
    return s;
}

/* The innermost variable has come to its end. */
static void put_next_run(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    int indent = 12;
    for (size_t k = r->nvars; k-- > 1; indent += 4) {
        str name = oracle_variable(x, p->s, r->vars[k].var);
        str outer = oracle_variable(x, p->s, r->vars[k - 1].var);
        buf_printf(x->out, "%*sif (%.*s == %.*shi) {\n%*s%.*s = %.*slo;\n%*s%.*s++;\n", indent, "",
                   STR_ARG(name), STR_ARG(name), indent + 4, "", STR_ARG(name), STR_ARG(name),
                   indent + 4, "", STR_ARG(outer));
    }
    for (; indent > 12; indent -= 4)
        buf_printf(x->out, "%*s}\n", indent - 4, "");
}

/* ---- factors ---- */

/* By how much an index grows with `var`: false where that is not the same everywhere. As deep as
 * the tree. */
static bool slope(struct oracle_text *x, const struct oracle_step *p, const struct expr *e,
                  size_t var, str *out) {
    str a, b;
    bool depends[2] = {false, false};
    for (size_t k = 0; k < 2 && k < e->nargs; k++)
        depends[k] = expr_vars(e->args[k]) >> var & 1;
    *out = e->kind == EXPR_INDEX && e->ref == var ? S("1ll") : S("0ll");
    if (e->kind == EXPR_INDEX || !(expr_vars(e) >> var & 1))
        return true;
    if (e->kind == EXPR_MUL && depends[0] != depends[1]) {
        const struct expr *by = e->args[depends[0] ? 1 : 0];
        if (!slope(x, p, e->args[depends[0] ? 0 : 1], var, &a))
            return false;
        *out =
            arena_printf(x->a, "(%.*s * %.*s)", STR_ARG(a), STR_ARG(oracle_integer(x, p->s, by)));
        return true;
    }
    if ((e->kind != EXPR_ADD && e->kind != EXPR_SUB) || !slope(x, p, e->args[0], var, &a) ||
        !slope(x, p, e->args[1], var, &b))
        return false;
    *out = arena_printf(x->a, "(%.*s %s %.*s)", STR_ARG(a), e->kind == EXPR_ADD ? "+" : "-",
                        STR_ARG(b));
    return true;
}

/* A factor that is one read, whose place moves by the same distance from term to term of a run. */
struct walked {
    const struct expr *read; /* NULL: it is none */
    bool padded;
    str slope[TASK_MAX_RANK];
    size_t moving; /* the index that changes, where it is padded */
};

static struct walked walked_of(struct oracle_text *x, const struct oracle_step *p,
                               const struct expr *e) {
    const struct reduce *r = p->e->reduce;
    size_t var = r->vars[r->nvars - 1].var, moving = 0;
    struct walked w = {.padded = e->kind == EXPR_PAD}, none = {0};
    const struct expr *read = w.padded ? e->args[0] : e;
    if (read->kind != EXPR_READ || !oracle_is_loaded(&x->t->tensors[read->ref]) || p->checked)
        return none;
    if (w.padded && !(e->args[1]->kind == EXPR_NUMBER && e->args[1]->number == 0))
        return none;
    for (size_t k = 0; k < read->nargs; k++) {
        if (!pattern_is_pure(read->args[k]) || !slope(x, p, read->args[k], var, &w.slope[k]))
            return none;
        if (expr_vars(read->args[k]) >> var & 1) {
            w.moving = k;
            moving++;
        }
    }
    w.read = w.padded && moving != 1 ? NULL : read;
    return w;
}

/* How far it is to the next term's element. */
static str step_text(struct oracle_text *x, const struct walked *w) {
    str s = S("0");
    size_t tensor = w->read->ref, rank = w->read->nargs;
    for (size_t k = 0; k < rank; k++) {
        if (str_eq(w->slope[k], S("0ll")))
            continue;
        s = arena_printf(x->a, "%.*s + %.*s", STR_ARG(s), STR_ARG(w->slope[k]));
        if (k + 1 < rank)
            s = arena_printf(x->a, "%.*s * o->tensor[%zu].stride[%zu]", STR_ARG(s), tensor, k);
    }
    return s;
}

/* Which of the indices that stay are beyond the edges. */
static str out_text(struct oracle_text *x, const struct walked *w, const str *at) {
    str s = S("false");
    for (size_t k = 0; k < w->read->nargs; k++)
        if (k != w->moving)
            s = arena_printf(x->a, "%.*s | !inside(%.*s, o->tensor[%zu].extent[%zu])", STR_ARG(s),
                             STR_ARG(at[k]), w->read->ref, k);
    return s;
}

static void put_walk(struct oracle_text *x, const struct oracle_step *p, const struct walked *w,
                     const char *name) {
    const struct tensor *t = &x->t->tensors[w->read->ref];
    const char *type = oracle_dtype(t->dtype);
    str at[TASK_MAX_RANK], all = S("");
    for (size_t k = 0; k < w->read->nargs; k++) {
        at[k] = oracle_integer(x, p->s, w->read->args[k]);
        all = arena_printf(x->a, "%.*s, %.*s", STR_ARG(all), STR_ARG(at[k]));
    }
    str walk = arena_printf(x->a, "walk<%s>(o->tensor[%zu].at, at_%.*s(o%.*s), %.*s)", type,
                            w->read->ref, STR_ARG(t->name), STR_ARG(all), STR_ARG(step_text(x, w)));
    if (w->padded)
        walk = arena_printf(
            x->a, "padded_walk<%s>(%.*s, %.*s, %.*s, %.*s, o->tensor[%zu].extent[%zu])", type,
            STR_ARG(walk), STR_ARG(out_text(x, w, at)), STR_ARG(at[w->moving]),
            STR_ARG(w->slope[w->moving]), w->read->ref, w->moving);
    buf_printf(x->out, "                %s = %.*s;\n", name, STR_ARG(walk));
}

/* The two sides of a block. */
struct side {
    const char *place, *index, *count, *value;
    uint32_t axes;
    const struct expr *factor;
    struct walked w;
    bool exact; /* it is a double, not a value */
};

static struct side side_of(struct oracle_text *x, const struct oracle_step *p, int which) {
    const struct expr *factor = p->e->args[0]->args[which];
    struct side rows = {"row", "u", "ROWS", "x", p->row_axes, factor, walked_of(x, p, factor),
                        true};
    struct side columns = {"column", "v", "COLUMNS", "y", p->column_axes, factor, rows.w, true};
    struct side s = which == 0 ? rows : columns;
    s.exact = oracle_exact(x->t, factor, true);
    return s;
}

static void put_side_loop(struct oracle_text *x, const struct oracle_step *p, const struct side *s,
                          int indent) {
    buf_printf(x->out, "#pragma unroll\n%*sfor (int %s = 0; %s < %s; %s++) {\n", indent, "",
               s->index, s->index, s->count, s->index);
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(s->axes, i))
            buf_printf(x->out, "%*sconst int64_t %.*s = %s[%s].%.*s;\n", indent + 4, "",
                       STR_ARG(axis_name(x, p, i)), s->place, s->index,
                       STR_ARG(axis_name(x, p, i)));
}

/* Before a run: where its first term reads. */
static void put_side_start(struct oracle_text *x, const struct oracle_step *p,
                           const struct side *s) {
    if (!s->w.read)
        return;
    str name = arena_printf(x->a, "%s_walk[%s]", s->place, s->index);
    buf_printf(x->out, "            %swalk<%s> %s_walk[%s];\n", s->w.padded ? "padded_" : "",
               oracle_dtype(x->t->tensors[s->w.read->ref].dtype), s->place, s->count);
    put_side_loop(x, p, s, 12);
    put_walk(x, p, &s->w, arena_cstr(x->a, name));
    buf_puts(x->out, S("            }\n"));
}

/* A term: the factor, for all rows or columns of the block. */
static void put_factor(struct oracle_text *x, const struct oracle_step *p, const struct side *s) {
    struct oracle_code c = oracle_code_begin(x, p->s, false, 20);
    c.checked = p->checked;
    if (s->w.read) {
        buf_printf(x->out,
                   "#pragma unroll\n                for (int %s = 0; %s < %s; %s++)\n"
                   "                    %s[%s] = %s_walk[%s].next();\n",
                   s->index, s->index, s->count, s->index, s->value, s->index, s->place, s->index);
        return;
    }
    put_side_loop(x, p, s, 16);
    struct oracle_operand v = oracle_put_value(&c, s->factor, true);
    buf_printf(x->out, "%*s%s[%s] = %.*s;\n                }\n", c.indent, "", s->value, s->index,
               STR_ARG(v.text));
    oracle_code_end(&c);
}

/* ---- chains ---- */

static void put_chain(struct oracle_text *x, const struct oracle_step *p) {
    const struct reduce *r = p->e->reduce;
    str inner = oracle_variable(x, p->s, r->vars[r->nvars - 1].var);
    struct side side[2] = {side_of(x, p, 0), side_of(x, p, 1)};
    buf_printf(x->out,
               "        for (int rest = some; rest > 0;) {\n"
               "            const int run = (int)integer_minimum(rest, %.*shi - %.*s);\n",
               STR_ARG(inner), STR_ARG(inner));
    for (int k = 0; k < 2; k++)
        put_side_start(x, p, &side[k]);
    buf_printf(x->out, "            for (int i = 0; i < run; i++, %.*s++) {\n", STR_ARG(inner));
    for (int k = 0; k < 2; k++) {
        buf_printf(x->out, "                %s %s[%s];\n", side[k].exact ? "double" : "value",
                   side[k].value, side[k].count);
        put_factor(x, p, &side[k]);
    }
    buf_printf(x->out,
               "#pragma unroll\n"
               "                for (int u = 0; u < ROWS; u++)\n#pragma unroll\n"
               "                    for (int v = 0; v < COLUMNS; v++)\n"
               "                        %s_add(c[u][v], f, x[u], y[v]);\n"
               "            }\n            rest -= run;\n",
               p->product ? "products" : "sums");
    put_next_run(x, p);
    buf_puts(x->out, S("        }\n"));
}

/* Opens a loop over all results of the block. */
static void put_each(struct oracle_text *x) {
    buf_puts(x->out, S("#pragma unroll\n        for (int u = 0; u < ROWS; u++)\n#pragma unroll\n"
                       "            for (int v = 0; v < COLUMNS; v++) {\n"
                       "                row_of<LEVELS> &d = r[u * COLUMNS + v];\n"));
}

static void put_chain_start(struct oracle_text *x, const struct oracle_step *p) {
    buf_printf(x->out, "        %s c[ROWS][COLUMNS] = {};\n", p->product ? "products" : "sums");
    if (p->product)
        return;
    put_each(x);
    buf_puts(x->out, S("                c[u][v].last = d.c.last;\n"
                       "                c[u][v].lost = d.c.lost;\n            }\n"));
}

static void put_chain_end(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    str arguments = result_arguments(x, p);
    put_each(x);
    if (p->product)
        buf_printf(x->out,
                   "                if (products_are_odd(c[u][v], f))\n"
                   "                    d.c.seen = look_%zu(o%.*s, first, some, d.c.seen);\n"
                   "                take_products(d.c, d.before, own, c[u][v], 0, some);\n",
                   k, STR_ARG(arguments));
    else
        buf_printf(x->out,
                   "                if (sums_are_odd(c[u][v], f))\n"
                   "                    terms_%zu(o, d%.*s, first, some);\n                else\n"
                   "                    take_sums(d.c, d.before, own, c[u][v], some);\n",
                   k, STR_ARG(arguments));
    buf_puts(x->out, S("            }\n"));
}

/* "const rows_3 row[1] = {{i_, j_}};" */
static void put_one_place(struct oracle_text *x, size_t k, const char *type, const char *name,
                          uint32_t axes) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out, "    const %s_%zu %s[1] = {", type, k, name);
    for (size_t i = 0, n = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            buf_printf(x->out, "%s%.*s", n++ ? ", " : "{", STR_ARG(axis_name(x, p, i)));
    buf_puts(x->out, axes ? S("}};\n") : S("};\n"));
}

static void put_terms(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "__device__ __noinline__ static void terms_%zu(const oracle_world *o, row &r%.*s, "
               "int64_t first, int64_t left) {\n",
               k, STR_ARG(oracle_parameters(x, p)));
    put_one_place(x, k, "rows", "row", p->row_axes);
    put_one_place(x, k, "columns", "column", p->column_axes);
    buf_printf(x->out, "    products_%zu(o, &r, row, column%.*s, first, left);\n}\n", k,
               STR_ARG(common_text(x, p, "")));
}

void oracle_put_products(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    put_place_type(x, k, "rows", p->row_axes);
    put_place_type(x, k, "columns", p->column_axes);
    buf_printf(x->out,
               "template <int ROWS, int COLUMNS, int LEVELS>\n"
               "__device__ static inline void products_%zu(const oracle_world *o, row_of<LEVELS> "
               "*r, const rows_%zu (&row)[ROWS], const columns_%zu (&column)[COLUMNS]%.*s, "
               "int64_t first, int64_t left) {\n"
               "    const fold f = fold_%zu(o), own = f; // own: who asks for its address\n",
               k, k, k, STR_ARG(common_text(x, p, "int64_t ")), k);
    oracle_put_first_term(x, p);
    buf_puts(x->out, S("    for (; left > 0; first += CHAIN, left -= CHAIN) {\n"
                       "        const int some = (int)integer_minimum(left, CHAIN);\n"));
    put_chain_start(x, p);
    put_chain(x, p);
    put_chain_end(x, k);
    buf_puts(x->out, S("    }\n}\n"));
    if (p->product)
        put_terms(x, k);
}

/* ---- the kernel ---- */

/* "1 * a.n[0] * a.n[2]" */
static str extent_text(struct oracle_text *x, const struct oracle_step *p, uint32_t axes) {
    str s = S("1");
    for (size_t i = 0; i < p->naxes; i++)
        if (has_axis(axes, i))
            s = arena_printf(x->a, "%.*s * a.n[%zu]", STR_ARG(s), i);
    return s;
}

static void put_lines(struct oracle_text *x, const struct oracle_step *p, bool rows) {
    const char *line = rows ? "row" : "column", *index = rows ? "u" : "v";
    buf_printf(x->out,
               "#pragma unroll\n    for (int %s = 0; %s < %d; %s++) {\n"
               "        int64_t rest = integer_minimum(t.%s + %s * op.tile.%s_step, %ss - 1);\n",
               index, index, rows ? p->rows : p->columns, index, line, index, line, line);
    oracle_put_indices(x, p, rows ? p->row_axes : p->column_axes, rows ? "row[u]." : "column[v].",
                       8);
    buf_puts(x->out, S("    }\n"));
}

static void put_results(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    buf_printf(x->out,
               "#pragma unroll\n    for (int u = 0; u < %d; u++)\n#pragma unroll\n"
               "        for (int v = 0; v < %d; v++) {\n            const int64_t i = 0",
               p->rows, p->columns);
    for (size_t i = 0; i < p->naxes; i++)
        buf_printf(x->out, " + (%s%.*s - a.lo[%zu]) * a.stride[%zu]",
                   has_axis(p->row_axes, i)      ? "row[u]."
                   : has_axis(p->column_axes, i) ? "column[v]."
                                                 : "",
                   STR_ARG(axis_name(x, p, i)), i, i);
    buf_printf(x->out,
               ";\n            if (t.row + u * op.tile.row_step < rows && t.column + v * "
               "op.tile.column_step < columns)\n"
               "                put_block_result(op, a, &o->odd[%zu], r[u * %d + v].c, r[u * %d + "
               "v].before, f, i, segment);\n        }\n}\n",
               x->t->ntensors + k, p->columns, p->columns);
}

void oracle_put_block_kernel(struct oracle_text *x, size_t k) {
    const struct oracle_step *p = &x->plan.steps[k];
    uint32_t all = (UINT32_C(1) << p->naxes) - 1, common = all & ~(p->row_axes | p->column_axes);
    bool rows_run = has_axis(p->row_axes, p->naxes - 1);
    /* Three blocks a multiprocessor: what spills then is used between runs of terms, not in them.
     */
    oracle_put_kernel_head(x, "__launch_bounds__(ORACLE_BLOCK, 3) ", "block", k);
    buf_printf(x->out,
               "    const int64_t rows = %.*s, columns = %.*s, common = %.*s;\n"
               "    const block_place t = place_block<%s>(op.tile, n);\n"
               "    if (t.row >= op.tile.row_step || t.column >= op.tile.column_step || t.rest >= "
               "common * op.segments)\n        return;\n"
               "    const int64_t segment = t.rest / common;\n",
               STR_ARG(extent_text(x, p, p->row_axes)), STR_ARG(extent_text(x, p, p->column_axes)),
               STR_ARG(extent_text(x, p, common)), rows_run ? "true" : "false");
    if (common)
        buf_puts(x->out, S("    int64_t rest = t.rest % common;\n"));
    oracle_put_indices(x, p, common, "const int64_t ", 4);
    buf_printf(x->out, "    rows_%zu row[%d];\n    columns_%zu column[%d];\n", k, p->rows, k,
               p->columns);
    put_lines(x, p, true);
    put_lines(x, p, false);
    buf_printf(x->out,
               "    const fold f = fold_%zu(o);\n    row_of<ORACLE_LEVELS> r[%d];\n"
               "    for (int i = 0; i < %d; i++)\n        row_start(r[i], f);\n"
               "    products_%zu(o, r, row, column%.*s, segment * op.terms, op.terms);\n",
               k, p->rows * p->columns, p->rows * p->columns, k, STR_ARG(common_text(x, p, "")));
    put_results(x, k);
}
