/* Sections and plan text of a file under construction. */
#include "agent/expert/expert.h"
#include "agent/expert/sheet/sheet_private.h"
#include "base/asset.h"
#include "kernel/emit.h"
#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX (64u << 20)

/* ---- life ---- */

void sheet_init(struct sheet *sh, const struct briefing *b, const struct strategy *s,
                const char *assets, struct err *err) {
    *sh = (struct sheet){.briefing = b, .strategy = s, .assets = assets, .err = err};
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        sh->effective.value[i] = STRATEGY_UNSET;
    sh->mem = arena_new(MEMORY_MAX);
    struct buf *const sections[] = {&sh->note,    &sh->require,   &sh->memory,  &sh->steps,
                                    &sh->library, &sh->functions, &sh->kernels, &sh->includes};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        buf_init(sections[i], EXPERT_SOURCE_MAX);
    sh->fast = sheet_decision(sh, "fast-math", 0) != 0;
    sheet_init_names(sh);
}

void sheet_release(struct sheet *sh) {
    struct buf *const sections[] = {&sh->note,    &sh->require,   &sh->memory,  &sh->steps,
                                    &sh->library, &sh->functions, &sh->kernels, &sh->includes};
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        buf_release(sections[i]);
    sheet_release_names(sh);
    arena_free(sh->mem);
}

bool sheet_failed(const struct sheet *sh) {
    return sh->err->kind != ERR_NONE;
}

/* ---- text ---- */

static str vprint(struct sheet *sh, const char *format, va_list ap) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    buf_vprintf(&b, format, ap);
    str s = arena_str(sh->mem, buf_str(&b));
    buf_release(&b);
    return s;
}

str sheet_printf(struct sheet *sh, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    str s = vprint(sh, format, ap);
    va_end(ap);
    return s;
}

str sheet_fill(struct sheet *sh, const char *format, const str *texts, size_t n) {
    struct buf b;
    str rest = str_view(format);
    buf_init(&b, EXPERT_SOURCE_MAX);
    for (size_t i = 0; i < n; i++) {
        size_t at = str_find(rest, S("$"));
        BUG_IF(at == rest.n);
        buf_puts(&b, str_cut(rest, 0, at));
        buf_puts(&b, texts[i]);
        rest = str_from(rest, at + 1);
    }
    BUG_IF(str_find(rest, S("$")) < rest.n);
    buf_puts(&b, rest);
    str s = arena_str(sh->mem, buf_str(&b));
    buf_release(&b);
    return s;
}

str sheet_number(struct sheet *sh, int64_t v) {
    return sheet_printf(sh, "%lld", (long long)v);
}

str sheet_join(struct sheet *sh, str a, const char *between, str b) {
    return a.n == 0   ? b
           : b.n == 0 ? a
                      : sheet_printf(sh, "%.*s%s%.*s", STR_ARG(a), between, STR_ARG(b));
}

static void put_line(struct buf *out, const char *lead, str line) {
    buf_puts(out, str_view(lead));
    buf_puts(out, line);
    buf_putc(out, '\n');
}

static bool has_line(const struct buf *in, str line) {
    str rest = buf_str(in), one;
    while (str_line(&rest, &one))
        if (str_eq(one, line))
            return true;
    return false;
}

/* A plan line that says what holds, or that there is memory, comes once. */
static void put_line_once(struct sheet *sh, struct buf *out, const char *lead, str line) {
    if (!has_line(out, sheet_printf(sh, "%s%.*s", lead, STR_ARG(line))))
        put_line(out, lead, line);
}

void sheet_note(struct sheet *sh, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    put_line_once(sh, &sh->note, "// ", vprint(sh, format, ap));
    va_end(ap);
}

void sheet_require(struct sheet *sh, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    put_line_once(sh, &sh->require, "//! require ", vprint(sh, format, ap));
    va_end(ap);
}

void sheet_memory(struct sheet *sh, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    put_line_once(sh, &sh->memory, "//! ", vprint(sh, format, ap));
    va_end(ap);
}

void sheet_step(struct sheet *sh, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    put_line(&sh->steps, "//! ", vprint(sh, format, ap));
    va_end(ap);
}

void sheet_include(struct sheet *sh, const char *header) {
    str line = sheet_printf(sh, "#include <%s>", header);
    if (!has_line(&sh->includes, line))
        put_line(&sh->includes, "", line);
}

void sheet_helper(struct sheet *sh, const char *name) {
    sh->helpers |= emit_helper(name);
}

struct slots *sheet_slots(struct sheet *sh) {
    struct slots *s = arena_new_of(sh->mem, struct slots);
    slots_init(s, sh->mem);
    return s;
}

bool sheet_put(struct sheet *sh, const char *template, const struct slots *s, struct buf *out) {
    struct slots used;
    str text, path = sheet_printf(sh, "expert/%s", template);
    if (sheet_failed(sh) || !asset_get(sh->assets, path.p, sh->mem, &text, sh->err))
        return false;
    slots_init(&used, sh->mem);
    for (size_t i = 0; i < s->n; i++)
        if (template_mentions(text, s->at[i].name))
            used.at[used.n++] = s->at[i];
    return template_render(path, text, used.at, used.n, out, sh->err);
}

str sheet_lines(struct sheet *sh, const char *template, const struct slots *s) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    str text = sheet_put(sh, template, s, &b) ? sheet_keep(sh, &b) : S("");
    buf_release(&b);
    return text;
}

bool sheet_function(struct sheet *sh, const char *template, const struct slots *s) {
    str text = sheet_lines(sh, template, s), all = buf_str(&sh->functions);
    if (!sheet_failed(sh) && str_find(all, text) == all.n) {
        buf_puts(&sh->functions, text);
        buf_puts(&sh->functions, S("\n\n"));
    }
    return !sheet_failed(sh);
}

str sheet_keep(struct sheet *sh, struct buf *b) {
    str s = buf_str(b);
    while (s.n && s.p[s.n - 1] == '\n')
        s.n--;
    s = arena_str(sh->mem, s);
    buf_clear(b);
    return s;
}

int64_t sheet_decision(const struct sheet *sh, const char *name, int64_t otherwise) {
    int64_t v = strategy_get(sh->briefing->catalogue, sh->strategy, name);
    return v == STRATEGY_UNSET ? otherwise : v;
}

/* What the catalogue does not list becomes the listed value next to it on the way to what was asked
 * for, which comes to the same. */
static int64_t nearest_listed(const struct decision *d, int64_t used, int64_t asked) {
    int64_t best = asked;
    for (size_t i = 0; i < d->nvalues; i++) {
        int64_t v = d->values[i];
        bool between = used < asked ? v >= used && v <= asked : v >= asked && v <= used;
        if (between && llabs(v - used) < llabs(best - used))
            best = v;
    }
    return best;
}

void sheet_note_effective(struct sheet *sh, const struct used *u) {
    const struct catalogue *c = sh->briefing->catalogue;
    for (size_t i = 0; i < c->n; i++) {
        int64_t asked = sh->strategy->value[i], *effective = &sh->effective.value[i];
        if (asked == STRATEGY_UNSET || !str_is(c->decisions[i].name, u->decision))
            continue;
        int64_t value = nearest_listed(&c->decisions[i], u->value, asked);
        if (*effective == STRATEGY_UNSET || llabs(value - asked) < llabs(*effective - asked))
            *effective = value;
    }
}

void sheet_written(const struct sheet *sh, struct strategy *out) {
    *out = *sh->strategy;
    for (size_t i = 0; i < sh->briefing->catalogue->n; i++)
        if (sh->effective.value[i] != STRATEGY_UNSET)
            out->value[i] = sh->effective.value[i];
}

void sheet_used(struct sheet *sh, const struct used *all, size_t n) {
    str list = S("");
    for (size_t i = 0; i < n; i++)
        sheet_note_effective(sh, &all[i]);
    for (size_t i = 0; i < n; i++)
        if (sheet_decision(sh, all[i].decision, all[i].value) != all[i].value)
            list = sheet_printf(sh, "%.*s%s%s=%lld", STR_ARG(list), list.n ? " " : "",
                                all[i].decision, (long long)all[i].value);
    if (list.n)
        sheet_note(sh, "  shape and hardware decide: %.*s", STR_ARG(list));
}

bool sheet_is_cute(const struct sheet *sh) {
    return sheet_decision(sh, "dialect", 0) == 1;
}

int64_t sheet_shared_most(const struct sheet *sh) {
    return (int64_t)sh->briefing->gpu->shared_block;
}

int64_t sheet_cluster_most(const struct sheet *sh) {
    return sh->briefing->gpu->has.cluster_most;
}

/* ---- plan text ---- */

/* Infix signs of the plan's arithmetic. */
static const char *plan_sign(enum expr_kind k) {
    switch (k) {
    case EXPR_NEG:
        return "-";
    case EXPR_ADD:
        return " + ";
    case EXPR_SUB:
        return " - ";
    case EXPR_MUL:
        return "*";
    case EXPR_MOD:
        return " % ";
    case EXPR_FLOORDIV:
        return " // ";
    default:
        return NULL;
    }
}

static str plan_text(struct sheet *sh, const struct expr *e);

static str plan_call(struct sheet *sh, const struct expr *e) {
    bool max = e->function == FUNCTION_MAXIMUM;
    if (!max && e->function != FUNCTION_MINIMUM) {
        err_set(sh->err, ERR_INPUT, "an extent calls %s, which a launch plan does not have",
                function_info(e->function)->name);
        return S("");
    }
    str a = plan_text(sh, e->args[0]), b = plan_text(sh, e->args[1]);
    return TEXT(sh, max ? "max($, $)" : "min($, $)", a, b);
}

static str plan_text(struct sheet *sh, const struct expr *e) {
    const char *sign = plan_sign(e->kind);
    if (e->kind == EXPR_NUMBER)
        return sheet_printf(sh, "%lld", (long long)e->integer);
    if (e->kind == EXPR_DIM)
        return sh->briefing->inst->task->dims[e->ref].name;
    if (e->kind == EXPR_CALL)
        return plan_call(sh, e);
    if (!sign) {
        err_set(sh->err, ERR_INPUT, "an extent that a launch plan cannot express");
        return S("");
    }
    str last = plan_text(sh, e->args[e->nargs - 1]);
    if (e->nargs == 1)
        return TEXT(sh, "(-$)", last);
    str first = plan_text(sh, e->args[0]);
    if (e->kind == EXPR_MUL && e->args[0]->kind == EXPR_MUL)
        first = str_cut(first, 1, first.n - 2); /* its parentheses */
    return TEXT(sh, "($$$)", first, str_view(sign), last);
}

str sheet_plan(struct sheet *sh, const struct expr *e) {
    return sheet_failed(sh) ? S("") : plan_text(sh, e);
}

str sheet_plan_count(struct sheet *sh, const struct inst *in, size_t tensor) {
    const struct tensor *t = &in->task->tensors[tensor];
    str all = S("");
    for (size_t i = 0; i < t->rank; i++)
        all = sheet_join(sh, all, "*", sheet_plan(sh, t->extent[i]));
    return t->rank ? all : S("1");
}

/* ---- tensors ---- */

bool sheet_is_workspace(const struct sheet *sh, size_t tensor) {
    const struct task *t = sh->briefing->inst->task;
    return tensor >= t->ntensors || t->tensors[tensor].role == TENSOR_LET;
}

enum dtype sheet_dtype(const struct sheet *sh, const struct step *st, size_t tensor) {
    enum dtype t = st->inst->task->tensors[tensor].dtype;
    return t == DTYPE_F64 && sheet_is_workspace(sh, tensor) ? DTYPE_F32 : t;
}

/* Extents as a workspace line has them: one at least. */
static str workspace_extents(struct sheet *sh, const struct tensor *t) {
    str all = S("");
    for (size_t i = 0; i < t->rank; i++)
        all = sheet_join(sh, all, ", ", sheet_plan(sh, t->extent[i]));
    return t->rank ? all : S("1");
}

str sheet_tensor(struct sheet *sh, const struct step *st, size_t tensor) {
    const struct tensor *t = &st->inst->task->tensors[tensor];
    uint64_t bit = UINT64_C(1) << tensor;
    if (!sheet_is_workspace(sh, tensor))
        return t->name;
    if (sh->declared & bit)
        return sh->workspace[tensor];
    /* The plan knows the task's lets by name and has no memory for them. */
    str name = sh->workspace[tensor] = sheet_name(sh, TEXT(sh, "$_kept", t->name));
    str extents = workspace_extents(sh, t);
    sheet_memory(sh, "workspace %.*s[%.*s] : %s", STR_ARG(name), STR_ARG(extents),
                 dtype_info(sheet_dtype(sh, st, tensor))->name);
    sh->declared |= bit;
    return name;
}
