/* Any statement at all: one kernel, an element a thread or a warp, reductions as loops.
 *
 * What no other family takes comes here: reductions inside conditions or inside each other's terms,
 * guards and bounds of every kind, arg-reductions, pieces, tensors written in place. Correct for
 * every task, fast for none in particular. Loops stand before the expression that uses their value;
 * those on one side of an `if` run only where the condition says so, because only there their reads
 * are known to stay inside. Long sums are kept in parts, so that fp32 stays fp32.
 *
 * Decisions: block 256; generic-lanes 0 (by the shape). */
#include "agent/expert/sheet/sheet.h"
#include "spec/bounds.h"
#include "spec/pattern.h"

#define PLAIN_SUM   1024 /* terms that one chain of fp32 may have */
#define LONG_ENOUGH 64   /* terms worth a warp */

struct generic {
    struct scope k;
    struct buf *out;
    int indent;
    bool warp;    /* lanes share an element */
    bool divided; /* inside a loop that they share: the loops inside are each lane's own */
    str e, lane;
};

/* ---- text ---- */

static void line(struct generic *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct generic *g, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    buf_printf(g->out, "%*s", 4 * g->indent, "");
    buf_vprintf(g->out, format, ap);
    buf_putc(g->out, '\n');
    va_end(ap);
}

/* ---- how a reduction is kept ---- */

/* What a reduction's loops add to. */
struct keeper {
    const char *base; /* of its name */
    bool arg, mean, large;
    enum reduction op;
    bool real;
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
                           .real = real};
}

static const char *identity(const struct keeper *p) {
    if (p->real)
        return fold_identity(p->op);
    return p->op == REDUCTION_PROD  ? "1"
           : p->op == REDUCTION_MAX ? "LLONG_MIN"
           : p->op == REDUCTION_MIN ? "LLONG_MAX"
                                    : "0";
}

static void declare_accumulator(struct generic *g, const struct keeper *p, str a, str count) {
    if (p->arg) {
        sheet_helper(g->k.sh, "best");
        line(g, "cp_best<%s, %s> %.*s;", p->real ? "float" : "long long",
             p->op == REDUCTION_ARGMAX ? "true" : "false", STR_ARG(a));
    } else if (p->large) {
        sheet_helper(g->k.sh, "long_sum");
        line(g, "cp_long_sum %.*s;", STR_ARG(a));
    } else {
        line(g, "%s %.*s = %s;", p->real ? "float" : "long long", STR_ARG(a), identity(p));
    }
    if (p->mean)
        line(g, "long long %.*s = 0;", STR_ARG(count));
}

static void add_term(struct generic *g, const struct keeper *p, const struct reduce *r, str a,
                     str term) {
    if (p->arg) {
        str v = g->k.var[r->vars[0].var];
        line(g, "%.*s.add(%.*s, %.*s);", STR_ARG(a), STR_ARG(term), STR_ARG(v));
    } else if (p->large) {
        line(g, "%.*s.add(%.*s);", STR_ARG(a), STR_ARG(term));
    } else if (p->op == REDUCTION_MAX || p->op == REDUCTION_MIN) {
        bool max = p->op == REDUCTION_MAX;
        const char *name = p->real ? max ? "maximum" : "minimum" : max ? "larger" : "smaller";
        sheet_helper(g->k.sh, name);
        line(g, "%.*s = cp_%s(%.*s, %.*s);", STR_ARG(a), name, STR_ARG(a), STR_ARG(term));
    } else {
        line(g, "%.*s %s %.*s;", STR_ARG(a), p->op == REDUCTION_PROD ? "*=" : "+=", STR_ARG(term));
    }
}

/* Over the lanes, where they shared the loop. */
static str joined(struct generic *g, const struct keeper *p, str value, bool shared) {
    static const char *const joins[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "warp_sum",     [REDUCTION_PROD] = "warp_product",
        [REDUCTION_MAX] = "warp_maximum", [REDUCTION_MIN] = "warp_minimum",
        [REDUCTION_MEAN] = "warp_sum",
    };
    if (!shared)
        return value;
    sheet_helper(g->k.sh, joins[p->op]);
    return sheet_printf(g->k.sh, "cp_%s(%.*s)", joins[p->op], STR_ARG(value));
}

static str result(struct generic *g, const struct keeper *p, str a, str count, bool shared) {
    struct sheet *sh = g->k.sh;
    if (p->arg) {
        if (shared)
            line(g, "%.*s.join_warp();", STR_ARG(a));
        return sheet_printf(sh, "%.*s.at", STR_ARG(a));
    }
    str value = p->large ? sheet_printf(sh, "%.*s.value()", STR_ARG(a)) : a;
    value = joined(g, p, value, shared);
    if (!p->mean)
        return value;
    str n = joined(g, p, count, shared);
    return sheet_printf(sh, "%.*s / float(%.*s)", STR_ARG(value), STR_ARG(n));
}

/* ---- loops ---- */

static void hoist(struct generic *g, const struct expr *e, bool declared);

static int64_t terms_of(struct ranges *r, const struct reduce_var *v) {
    bool some;
    if (ranges_enter_var(r, v, &some) != RANGE_OK || !some)
        return 1;
    return r->index[v->var].hi - r->index[v->var].lo + 1;
}

/* The variable whose values the lanes share: the last that gives each of them one, or the longest.
 */
static size_t shared_variable(const struct generic *g, const struct reduce *r) {
    struct ranges at = ranges_of(g->k.step->inst, g->k.statement);
    size_t best = 0;
    int64_t most = 0;
    for (size_t i = 0; i < r->nvars; i++) {
        int64_t n = terms_of(&at, &r->vars[i]);
        if (n >= most || n >= 32) {
            best = i;
            most = n;
        }
    }
    return best;
}

static void open_loops(struct generic *g, const struct reduce *r, size_t shared, bool braces) {
    struct scope *k = &g->k;
    for (size_t i = 0; i < r->nvars; i++) {
        const struct reduce_var *v = &r->vars[i];
        str lo = scope_text(k, v->lo), hi = scope_text(k, v->hi);
        str name = k->var[v->var] = scope_variable(k, v->var);
        const char *end = braces && i + 1 == r->nvars ? " {" : "", *type = scope_index_type(k);
        bool zero = str_is(lo, "0");
        if (i == shared)
            line(g, "for (%s %.*s = %.*s%s%.*s; %.*s < %.*s; %.*s += 32)%s", type, STR_ARG(name),
                 STR_ARG(zero ? S("") : lo), zero ? "" : " + ", STR_ARG(g->lane), STR_ARG(name),
                 STR_ARG(hi), STR_ARG(name), end);
        else
            line(g, "for (%s %.*s = %.*s; %.*s < %.*s; %.*s++)%s", type, STR_ARG(name), STR_ARG(lo),
                 STR_ARG(name), STR_ARG(hi), STR_ARG(name), end);
        g->indent++;
    }
}

static void put_term(struct generic *g, const struct expr *e, const struct keeper *p, str a,
                     str count) {
    const struct expr *body = e->args[0];
    hoist(g, body, false);
    str term = scope_text(&g->k, body);
    add_term(g, p, e->reduce, a, term);
    if (p->mean)
        line(g, "%.*s++;", STR_ARG(count));
}

/* Everything inside the loops. */
static void put_guarded(struct generic *g, const struct expr *e, const struct keeper *p, str a,
                        str count) {
    const struct expr *guard = e->reduce->guard;
    if (!guard) {
        put_term(g, e, p, a, count);
        return;
    }
    bool several = p->mean || expr_has(e->args[0], EXPR_REDUCE);
    hoist(g, guard, false);
    str condition = scope_text(&g->k, guard);
    line(g, "if (%.*s)%s", STR_ARG(condition), several ? " {" : "");
    g->indent++;
    put_term(g, e, p, a, count);
    g->indent--;
    if (several)
        line(g, "}");
}

/* A reduction's loops, and its value under the name `name`. */
static void put_loops(struct generic *g, const struct expr *e, const struct keeper *p, str name,
                      bool declared) {
    const struct reduce *r = e->reduce;
    bool shared = g->warp && !g->divided;
    bool held = p->arg || p->large || p->mean || shared; /* apart from its value */
    str a = held || declared ? scope_name(&g->k, p->arg ? "best" : "part") : name;
    str count = p->mean ? scope_name(&g->k, "count") : S("");
    bool several = (!r->guard && p->mean) || expr_has(e->args[0], EXPR_REDUCE) ||
                   (r->guard && expr_has(r->guard, EXPR_REDUCE));
    declare_accumulator(g, p, a, count);
    size_t nheld = g->k.nheld;
    open_loops(g, r, shared ? shared_variable(g, r) : r->nvars, several);
    g->divided |= shared;
    put_guarded(g, e, p, a, count);
    g->divided &= !shared;
    g->k.nheld = nheld;
    g->indent -= (int)r->nvars;
    if (several) {
        g->indent += (int)r->nvars - 1;
        line(g, "}");
        g->indent -= (int)r->nvars - 1;
    }
    str value = result(g, p, a, count, shared);
    const char *type = p->arg || !p->real ? "const long long " : "const float ";
    if (declared || held)
        line(g, "%s%.*s = %.*s;", declared ? "" : type, STR_ARG(name), STR_ARG(value));
}

static void put_reduction(struct generic *g, const struct expr *e, bool declared) {
    struct keeper p = keeper_of(e);
    str name = S("");
    for (size_t i = 0; declared && i < g->k.nheld; i++)
        if (g->k.held[i].e == e)
            name = g->k.held[i].text;
    if (!declared)
        name = scope_name(&g->k, p.base);
    put_loops(g, e, &p, name, declared);
    if (!declared)
        scope_hold(&g->k, e, name);
}

/* The values of the reductions on one side of an `if`, before it. */
static void declare_values(struct generic *g, const struct expr *e) {
    if (e->kind == EXPR_REDUCE) {
        struct keeper p = keeper_of(e);
        str name = scope_name(&g->k, p.base);
        bool whole = p.arg || !p.real;
        line(g, "%s %.*s = 0;", whole ? "long long" : "float", STR_ARG(name));
        scope_hold(&g->k, e, name);
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        declare_values(g, e->args[i]);
}

static void hoist_if(struct generic *g, const struct expr *e, bool declared) {
    hoist(g, e->args[0], declared);
    str condition = scope_text(&g->k, e->args[0]);
    for (size_t i = 1; i < 3; i++) {
        if (!expr_has(e->args[i], EXPR_REDUCE))
            continue;
        if (!declared)
            declare_values(g, e->args[i]);
        line(g, i == 1 ? "if (%.*s) {" : "if (!(%.*s)) {", STR_ARG(condition));
        g->indent++;
        hoist(g, e->args[i], true);
        g->indent--;
        line(g, "}");
    }
}

/* Loops for the reductions of an expression, and their values held. */
static void hoist(struct generic *g, const struct expr *e, bool declared) {
    if (sheet_failed(g->k.sh) || !expr_has(e, EXPR_REDUCE))
        return;
    if (e->kind == EXPR_REDUCE)
        put_reduction(g, e, declared);
    else if (e->kind == EXPR_IF)
        hoist_if(g, e, declared);
    else
        for (size_t i = 0; i < e->nargs; i++)
            hoist(g, e->args[i], declared);
}

/* ---- the kernel ---- */

static void longest(struct ranges r, const struct expr *e, double *most) {
    double n = 1;
    for (size_t i = 0; e->kind == EXPR_REDUCE && i < e->reduce->nvars; i++)
        n *= (double)terms_of(&r, &e->reduce->vars[i]);
    *most = n > *most ? n : *most;
    for (size_t i = 0; i < expr_nparts(e); i++)
        longest(r, expr_part(e, i), most);
}

static bool wants_warp(const struct sheet *sh, const struct step *st, const struct statement *s) {
    int64_t lanes = sheet_decision(sh, "generic-lanes", 0);
    const struct gpu *gpu = sh->briefing->gpu;
    struct ranges r = ranges_of(st->inst, s);
    double elements = 1, terms = 1;
    if (!expr_has(s->body, EXPR_REDUCE))
        return false;
    for (size_t i = 0; i < s->nindex; i++)
        elements *= (double)(r.index[i].hi + 1);
    longest(r, s->body, &terms);
    return lanes == 32 || (lanes == 0 && terms >= LONG_ENOUGH &&
                           elements < (double)gpu->sms * gpu->max_threads_sm);
}

/* The flat index is the element's offset where the statement defines all of its tensor. */
static bool is_whole(const struct task *t, const struct statement *s) {
    for (size_t i = 0; i < t->tensors[s->tensor].rank; i++)
        if (s->position[i] != (int)i)
            return false;
    return true;
}

static str store_text(struct generic *g, bool whole) {
    const struct statement *s = g->k.statement;
    struct buf b;
    buf_init(&b, 64u << 10);
    buf_puts(&b, scope_pointer(&g->k, s->tensor, true));
    buf_putc(&b, '[');
    if (whole && s->nindex)
        buf_puts(&b, g->e);
    else
        scope_place(&g->k, &b);
    str value = scope_text(&g->k, s->body);
    value = scope_packed(&g->k, s->tensor, s->body->value_kind, value);
    buf_printf(&b, "] = %.*s;", STR_ARG(value));
    str text = sheet_keep(g->k.sh, &b);
    buf_release(&b);
    return text;
}

static bool put_kernel(struct generic *g, str body, str store) {
    struct sheet *sh = g->k.sh;
    int64_t block = sheet_decision(sh, "block", 256);
    str elements = scope_plan_elements(&g->k);
    str total = scope_int_plan(&g->k, "total", elements);
    struct slot slots[] = {{"definition", sheet_definition(sh, g->k.step, g->k.statement)},
                           {"block", sheet_printf(sh, "%lld", (long long)block)},
                           {"kernel", g->k.name},
                           {"parameters", scope_params(&g->k)},
                           {"index", str_view(scope_index_type(&g->k))},
                           {"e", g->e},
                           {"total", total},
                           {"body", body},
                           {"store", store},
                           {"lane", g->lane}};
    size_t n = sizeof slots / sizeof *slots - !g->warp;
    int64_t each = g->warp ? block / 32 : block;
    const struct gpu *gpu = sh->briefing->gpu;
    str args = scope_args(&g->k);
    sheet_step(sh, "launch %.*s<<<min(ceil_div(%.*s, %lld), %lld), %lld>>>(%.*s)",
               STR_ARG(g->k.name), STR_ARG(elements), (long long)each, (long long)gpu->sms * 16,
               (long long)block, STR_ARG(args));
    sheet_note(sh, "generic: %.*s: a %s an element.", STR_ARG(g->k.name),
               g->warp ? "warp" : "thread");
    const struct used all[] = {{"block", block}, {"generic-lanes", g->warp ? 32 : 1}};
    sheet_used(sh, all, sizeof all / sizeof *all);
    bool ok = sheet_template(sh, g->warp ? "generic/warp.cu" : "generic/thread.cu", slots, n,
                             &sh->kernels);
    buf_putc(&sh->kernels, '\n');
    return ok;
}

static bool write_statement(struct sheet *sh, const struct step *st, const struct statement *s) {
    const struct task *t = st->inst->task;
    struct buf b;
    struct generic g = {.out = &b, .warp = wants_warp(sh, st, s)};
    bool copy = s->len == 0 && s->body->kind == EXPR_READ; /* of step_detach */
    str name =
        sheet_printf(sh, "%.*s_%s", STR_ARG(t->tensors[s->tensor].name), copy ? "copy" : "kernel");
    if (!scope_init(&g.k, sh, st, name.p))
        return false;
    bool whole = is_whole(t, s);
    uint32_t all = s->nindex ? (UINT32_C(1) << s->nindex) - 1 : 0;
    g.k.statement = s;
    g.e = scope_name(&g.k, "e");
    g.lane = scope_name(&g.k, "lane");
    buf_init(&b, 256u << 10);
    scope_coordinates(&g.k, g.e, whole ? expr_uses(s->body) & all : all, &b);
    hoist(&g, s->body, false);
    str body = sheet_keep(sh, &b);
    buf_release(&b);
    str store = store_text(&g, whole);
    return !sheet_failed(sh) && put_kernel(&g, body, store);
}

static bool generic_claim(const struct briefing *b, const struct form *f, const bool *done,
                          size_t first, bool *take) {
    (void)b, (void)f, (void)done;
    take[first] = true;
    return true;
}

static bool generic_write(struct sheet *sh, const struct step *st) {
    struct step own;
    if (!step_detach(sh, st, &own))
        return false;
    for (size_t i = 0; i < own.inst->task->nstatements; i++)
        if (!write_statement(sh, &own, &own.inst->task->statements[i]))
            return false;
    return true;
}

const struct family family_generic = {
    .name = "generic",
    .workload = WORKLOAD_GATHER,
    .claim = generic_claim,
    .write = generic_write,
};
