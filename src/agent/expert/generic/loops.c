/* Loops for the reductions of an expression, line by line. */
#include "agent/expert/generic/loops.h"
#include "agent/expert/form/guards.h"

#define PLAIN_SUM 1024 /* terms that one chain of fp32 may have */

/* Reductions nest in each other's terms to any depth, so their loops are written line by line. */
static void put_line(struct loops *g, str text) {
    buf_printf(g->out, "%*s%.*s\n", 4 * g->indent, "", STR_ARG(text));
}
#define LINE(g, ...) put_line(g, TEXT((g)->k->sh, __VA_ARGS__))

/* ---- how a reduction is kept ---- */

/* What a reduction's loops add to. */
struct keeper {
    const char *base; /* of its name */
    bool arg, mean, large;
    enum reduction op;
    bool real;
    str type;        /* of a term */
    str part, count; /* variables: what it adds to, and how many terms there were for a mean */
};

/* At most so many terms at every shape. */
static bool is_short(const struct reduce *r) {
    double n = 1;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct expr *hi = r->vars[i].hi, *lo = r->vars[i].lo;
        if (hi->kind != EXPR_NUMBER || lo->kind != EXPR_NUMBER)
            return false;
        n *= (double)(hi->integer - lo->integer);
    }
    return n <= PLAIN_SUM;
}

static struct keeper keeper_of(const struct expr *e) {
    static const char *const bases[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "sum",      [REDUCTION_PROD] = "product", [REDUCTION_MAX] = "largest",
        [REDUCTION_MIN] = "smallest", [REDUCTION_MEAN] = "mean",    [REDUCTION_ARGMAX] = "place",
        [REDUCTION_ARGMIN] = "place",
    };
    enum reduction op = e->reduce->op;
    bool arg = op == REDUCTION_ARGMAX || op == REDUCTION_ARGMIN, mean = op == REDUCTION_MEAN;
    bool real = arg ? e->args[0]->value_kind == VALUE_REAL : e->value_kind == VALUE_REAL;
    bool sum = op == REDUCTION_SUM || mean;
    return (struct keeper){.base = bases[op],
                           .arg = arg,
                           .mean = mean,
                           .large = sum && real && !is_short(e->reduce),
                           .op = op,
                           .real = real,
                           .type = real ? S("float") : S("long long")};
}

static const char *identity(const struct keeper *p) {
    if (p->real)
        return fold_identity(p->op, true);
    return p->op == REDUCTION_PROD  ? "1"
           : p->op == REDUCTION_MAX ? "LLONG_MIN"
           : p->op == REDUCTION_MIN ? "LLONG_MAX"
                                    : "0";
}

static void declare_accumulator(struct loops *g, const struct keeper *p) {
    if (p->arg) {
        sheet_helper(g->k->sh, "best");
        LINE(g, "cp_best<$, $> $;", p->type, p->op == REDUCTION_ARGMAX ? S("true") : S("false"),
             p->part);
    } else if (p->large) {
        sheet_helper(g->k->sh, "long_sum");
        LINE(g, "cp_long_sum $;", p->part);
    } else {
        LINE(g, "$ $ = $;", p->type, p->part, str_view(identity(p)));
    }
    if (p->mean)
        LINE(g, "long long $ = 0;", p->count);
}

static void add_term(struct loops *g, const struct keeper *p, const struct reduce *r, str term) {
    if (p->arg) {
        LINE(g, "$.add($, $);", p->part, term, g->k->var[r->vars[0].var]);
    } else if (p->large) {
        LINE(g, "$.add($);", p->part, term);
    } else if (p->op == REDUCTION_MAX || p->op == REDUCTION_MIN) {
        bool max = p->op == REDUCTION_MAX;
        const char *name = p->real ? max ? "maximum" : "minimum" : max ? "larger" : "smaller";
        sheet_helper(g->k->sh, name);
        LINE(g, "$ = cp_$($, $);", p->part, str_view(name), p->part, term);
    } else {
        LINE(g, "$ $ $;", p->part, p->op == REDUCTION_PROD ? S("*=") : S("+="), term);
    }
}

/* Over the lanes, where they shared the loop. */
static str joined(struct loops *g, const struct keeper *p, str value, bool shared) {
    static const char *const joins[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "warp_sum",     [REDUCTION_PROD] = "warp_product",
        [REDUCTION_MAX] = "warp_maximum", [REDUCTION_MIN] = "warp_minimum",
        [REDUCTION_MEAN] = "warp_sum",
    };
    if (!shared)
        return value;
    sheet_helper(g->k->sh, joins[p->op]);
    return TEXT(g->k->sh, "cp_$($)", str_view(joins[p->op]), value);
}

static str result(struct loops *g, const struct keeper *p, bool shared) {
    if (p->arg) {
        if (shared)
            LINE(g, "$.join_warp();", p->part);
        return TEXT(g->k->sh, "$.at", p->part);
    }
    str value = p->large ? TEXT(g->k->sh, "$.value()", p->part) : p->part;
    value = joined(g, p, value, shared);
    return p->mean ? TEXT(g->k->sh, "$ / float($)", value, joined(g, p, p->count, shared)) : value;
}

/* ---- loops ---- */

static void hoist(struct loops *g, const struct expr *e, bool declared);

int64_t loops_terms(struct ranges *r, const struct reduce_var *v) {
    bool some;
    if (ranges_enter_var(r, v, &some) != RANGE_OK || !some)
        return 1;
    return r->index[v->var].hi - r->index[v->var].lo + 1;
}

/* The variable whose values the lanes share: the last that gives each of them one, or the longest.
 */
static size_t shared_variable(const struct loops *g, const struct reduce *r) {
    struct ranges at = ranges_of(g->k->step->inst, g->k->statement);
    size_t best = 0;
    int64_t most = 0;
    for (size_t i = 0; i < r->nvars; i++) {
        int64_t n = loops_terms(&at, &r->vars[i]);
        if (n >= most || n >= 32) {
            best = i;
            most = n;
        }
    }
    return best;
}

/* Where the loop over a variable begins (ends): its range's end and those that parts of the guard
 * set for it, by what stands further out. So the loop visits few terms that do not count. */
static struct expr *loop_end(const struct loops *g, const struct reduce *r, size_t i, bool upper) {
    enum { ENDS = 4 };
    const struct expr *ends[ENDS];
    struct expr *all = upper ? r->vars[i].hi : r->vars[i].lo;
    uint32_t later = 0;
    for (size_t k = i; k < r->nvars; k++)
        later |= 1u << r->vars[k].var;
    size_t n = r->guard ? form_ends(r->guard, r->vars[i].var, upper, ends, ENDS) : 0;
    for (size_t k = 0; k < n; k++) {
        struct expr *e = (struct expr *)ends[k];
        if (expr_vars(e) & later || expr_reads(e) || expr_has(e, EXPR_REDUCE) ||
            e->value_kind != VALUE_INT)
            continue;
        if (!upper && e->kind == EXPR_INDEX && expr_is_number(all, 0)) {
            all = e;
            continue;
        }
        all = expr_pair(g->k->sh->mem, EXPR_CALL, all, e);
        all->function = upper ? FUNCTION_MINIMUM : FUNCTION_MAXIMUM;
    }
    return all;
}

static void open_loops(struct loops *g, const struct reduce *r, size_t shared, bool braces) {
    struct scope *k = g->k;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        str lo = scope_text(k, loop_end(g, r, i, false)),
            hi = scope_text(k, loop_end(g, r, i, true));
        str name = k->var[v->var] = scope_variable(k, v->var);
        if (i == shared)
            lo = str_is(lo, "0") ? S("lane") : TEXT(k->sh, "$ + lane", lo);
        LINE(g, "for ($ $ = $; $ < $; $$)$", str_view(scope_index_type(k)), name, lo, name, hi,
             name, i == shared ? S(" += 32") : S("++"),
             braces && i + 1 == r->nvars ? S(" {") : S(""));
        g->indent++;
    }
}

static void put_term(struct loops *g, const struct expr *e, const struct keeper *p) {
    const struct expr *body = e->args[0];
    hoist(g, body, false);
    add_term(g, p, e->reduce, scope_text(g->k, body));
    if (p->mean)
        LINE(g, "$++;", p->count);
}

/* Everything inside the loops. */
static void put_guarded(struct loops *g, const struct expr *e, const struct keeper *p) {
    const struct expr *guard = e->reduce->guard;
    if (!guard) {
        put_term(g, e, p);
        return;
    }
    bool several = p->mean || expr_has(e->args[0], EXPR_REDUCE);
    hoist(g, guard, false);
    LINE(g, "if ($)$", scope_text(g->k, guard), several ? S(" {") : S(""));
    g->indent++;
    put_term(g, e, p);
    g->indent--;
    if (several)
        put_line(g, S("}"));
}

/* A reduction's loops, and its value under the name `name`. */
static void put_loops(struct loops *g, const struct expr *e, struct keeper *p, str name,
                      bool declared) {
    const struct reduce *r = e->reduce;
    bool shared = g->warp && !g->divided;
    bool held = p->arg || p->large || p->mean || shared; /* apart from its value */
    p->part = held || declared ? scope_name(g->k, p->arg ? "best" : "part") : name;
    p->count = p->mean ? scope_name(g->k, "count") : S("");
    bool several = (!r->guard && p->mean) || expr_has(e->args[0], EXPR_REDUCE) ||
                   (r->guard && expr_has(r->guard, EXPR_REDUCE));
    declare_accumulator(g, p);
    size_t nheld = g->k->nheld;
    int indent = g->indent;
    open_loops(g, r, shared ? shared_variable(g, r) : r->nvars, several);
    g->divided |= shared;
    put_guarded(g, e, p);
    g->divided &= !shared;
    g->k->nheld = nheld;
    g->indent--;
    if (several)
        put_line(g, S("}"));
    g->indent = indent;
    str value = result(g, p, shared),
        type = p->arg || !p->real ? S("const long long ") : S("const float ");
    if (declared || held)
        LINE(g, "$$ = $;", declared ? S("") : type, name, value);
}

static void put_reduction(struct loops *g, const struct expr *e, bool declared) {
    struct keeper p = keeper_of(e);
    str name = S("");
    for (size_t i = 0; declared && i < g->k->nheld; i++)
        if (g->k->held[i].e == e)
            name = g->k->held[i].text;
    if (!declared)
        name = scope_name(g->k, p.base);
    put_loops(g, e, &p, name, declared);
    if (!declared)
        scope_hold(g->k, e, name);
}

/* The values of the reductions on one side of an `if`, before it. */
static void declare_values(struct loops *g, const struct expr *e) {
    if (e->kind == EXPR_REDUCE) {
        struct keeper p = keeper_of(e);
        str name = scope_name(g->k, p.base);
        LINE(g, "$ $ = 0;", p.arg || !p.real ? S("long long") : S("float"), name);
        scope_hold(g->k, e, name);
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        declare_values(g, e->args[i]);
}

static void hoist_if(struct loops *g, const struct expr *e, bool declared) {
    hoist(g, e->args[0], declared);
    str condition = scope_text(g->k, e->args[0]);
    for (size_t i = 1; i < 3; i++) {
        if (!expr_has(e->args[i], EXPR_REDUCE))
            continue;
        if (!declared)
            declare_values(g, e->args[i]);
        LINE(g, i == 1 ? "if ($) {" : "if (!($)) {", condition);
        g->indent++;
        hoist(g, e->args[i], true);
        g->indent--;
        put_line(g, S("}"));
    }
}

/* Loops for the reductions of an expression, and their values held. */
static void hoist(struct loops *g, const struct expr *e, bool declared) {
    if (sheet_failed(g->k->sh) || !expr_has(e, EXPR_REDUCE))
        return;
    if (e->kind == EXPR_REDUCE)
        put_reduction(g, e, declared);
    else if (e->kind == EXPR_IF)
        hoist_if(g, e, declared);
    else
        for (size_t i = 0; i < e->nargs; i++)
            hoist(g, e->args[i], declared);
}

void loops_hoist(struct loops *g, const struct expr *e) {
    hoist(g, e, false);
}

static void longest(struct ranges r, const struct expr *e, double *most) {
    double n = 1;
    for (size_t i = 0; e->kind == EXPR_REDUCE && i < e->reduce->nvars; i++)
        n *= (double)loops_terms(&r, &e->reduce->vars[i]);
    *most = n > *most ? n : *most;
    for (size_t i = 0; i < expr_nparts(e); i++)
        longest(r, expr_part(e, i), most);
}

double loops_longest(const struct step *st, const struct statement *s, const struct expr *e) {
    double most = 1;
    longest(ranges_of(st->inst, s), e, &most);
    return most;
}
