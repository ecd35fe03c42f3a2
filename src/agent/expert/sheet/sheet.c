/* A file under construction: its names, its sections, its plan, and the finished text. */
#include "agent/expert/sheet/sheet.h"
#include "agent/expert/expert.h"
#include "base/asset.h"
#include "kernel/emit.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- words in text ---- */

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

bool text_has_word(str text, str word) {
    for (size_t at = 0; at < text.n;) {
        size_t i = at + str_find(str_from(text, at), word);
        if (i >= text.n)
            break;
        bool begins = i == 0 || !is_word_char(text.p[i - 1]);
        if (begins && (i + word.n == text.n || !is_word_char(text.p[i + word.n])))
            return true;
        at = i + 1;
    }
    return false;
}

/* ---- words of templates ---- */
/* A member of something (`.x`, `->x`, `::x`), text in quotes and comments are no names; a name that
 * touches a slot is the beginning or the end of a composed one. */

static void add(struct words *w, enum word_kind kind, str text) {
    for (size_t i = 0; i < w->n; i++)
        if (w->at[i].kind == kind && str_eq(w->at[i].text, text))
            return;
    w->at = mem_grow(w->at, &w->cap, w->n + 1, sizeof *w->at);
    w->at[w->n].kind = kind;
    w->at[w->n++].text = text;
}

/* Past a comment, a text in quotes, or a slot's own name; otherwise where it was. */
static size_t skip(str text, size_t at) {
    str rest = str_from(text, at);
    if (str_starts(rest, S("//")))
        return at + str_find(rest, S("\n"));
    if (str_starts(rest, S("${")))
        return at + str_find(rest, S("}")) + 1;
    if (rest.p[0] != '"')
        return at;
    size_t end = at + 1;
    while (end < text.n && text.p[end] != '"')
        end += text.p[end] == '\\' ? 2 : 1;
    return end + 1;
}

static void add_word(struct words *w, str text, size_t from, size_t end) {
    str name = str_cut(text, from, end - from), before = str_cut(text, 0, from);
    bool member =
        str_ends(before, S(".")) || str_ends(before, S("->")) || str_ends(before, S("::"));
    bool begins = str_starts(str_from(text, end), S("${")), ends = str_ends(before, S("}"));
    if (begins || ends || !member)
        add(w, ends ? WORD_SUFFIX : begins ? WORD_PREFIX : WORD_NAME, name);
}

static void words_of_template(struct words *w, str text) {
    if (str_starts(text, S("//% library\n")))
        return;
    for (size_t at = 0; at < text.n;) {
        size_t next = skip(text, at), end = at;
        if (next > at) {
            at = next;
            continue;
        }
        while (end < text.n && is_word_char(text.p[end]))
            end++;
        if (end > at && !isdigit((unsigned char)text.p[at]))
            add_word(w, text, at, end);
        at = end > at ? end : at + 1;
    }
}

static bool words_have(const struct words *w, str name) {
    for (size_t i = 0; i < w->n; i++) {
        str text = w->at[i].text;
        bool same = str_eq(name, text), prefix = w->at[i].kind == WORD_PREFIX;
        if (w->at[i].kind == WORD_NAME ? same
            : prefix                   ? str_starts(name, text)
                                       : str_ends(name, text))
            return true;
    }
    return false;
}

/* ---- names ---- */

/* Words that a name of the task must not be in CUDA text: keywords and builtins. The task language
 * reserves its own functions and types, so `exp` or `max` cannot come from there. */
static const char reserved[] =
    "alignas alignof and asm auto bitand bitor blockDim blockIdx bool break case catch "
    "char char16_t char32_t char8_t CHAR_BIT class co_await co_return co_yield compl "
    "concept const const_cast consteval constexpr constinit continue cuda cute cutlass "
    "decltype default delete do double dynamic else enum explicit export extern fabsf "
    "false float float2 float4 fmaf fmaxf fminf fmodf for friend goto gridDim half "
    "INFINITY inline int int4 llabs long mutable namespace NAN new noexcept not nullptr "
    "operator or private protected public register reinterpret_cast requires return rintf "
    "short signed sizeof static static_cast struct switch template this threadIdx throw "
    "true try typedef typeid typename uint2 uint4 union unsigned using virtual void "
    "volatile warpSize wchar_t while xor";

static bool is_cuda_word(str name) {
    if (text_has_word(str_view(reserved), name))
        return true;
    /* Macros of the prelude and helpers of the emitted expressions. */
    if (str_starts(name, S("__")) || str_starts(name, S("cp_")) || str_starts(name, S("M_")) ||
        str_ends(name, S("_MAX")) || str_ends(name, S("_MIN")) || str_ends(name, S("_EPSILON")))
        return true;
    /* expf, tanhf, …: what emitted expressions call. */
    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (str_ends(name, S("f")) &&
            str_is(str_cut(name, 0, name.n - 1), function_info((enum function)f)->name))
            return true;
    return false;
}

/* Functions that are declared in every file, most of them also with an f at the end: nothing else
 * at file scope can have their names. */
static const char *const functions[] = {"abs",
                                        "acos",
                                        "acosh",
                                        "asin",
                                        "asinh",
                                        "assert",
                                        "atan",
                                        "atan2",
                                        "atanh",
                                        "cbrt",
                                        "ceil",
                                        "clock",
                                        "copysign",
                                        "cos",
                                        "cosh",
                                        "cospi",
                                        "cyl_bessel_i0",
                                        "cyl_bessel_i1",
                                        "erf",
                                        "erfc",
                                        "erfcinv",
                                        "erfcx",
                                        "erfinv",
                                        "exp",
                                        "exp10",
                                        "exp2",
                                        "expm1",
                                        "fabs",
                                        "fdim",
                                        "floor",
                                        "fma",
                                        "fmax",
                                        "fmin",
                                        "fmod",
                                        "free",
                                        "frexp",
                                        "hypot",
                                        "ilogb",
                                        "j0",
                                        "j1",
                                        "jn",
                                        "labs",
                                        "ldexp",
                                        "lgamma",
                                        "llmax",
                                        "llmin",
                                        "llrint",
                                        "llround",
                                        "log",
                                        "log10",
                                        "log1p",
                                        "log2",
                                        "logb",
                                        "lrint",
                                        "lround",
                                        "main",
                                        "malloc",
                                        "max",
                                        "memcpy",
                                        "memset",
                                        "min",
                                        "modf",
                                        "nan",
                                        "nearbyint",
                                        "nextafter",
                                        "norm",
                                        "norm3d",
                                        "norm4d",
                                        "normcdf",
                                        "normcdfinv",
                                        "pow",
                                        "printf",
                                        "rcbrt",
                                        "remainder",
                                        "remquo",
                                        "rhypot",
                                        "rint",
                                        "rnorm",
                                        "rnorm3d",
                                        "rnorm4d",
                                        "round",
                                        "rsqrt",
                                        "scalbln",
                                        "scalbn",
                                        "sin",
                                        "sincos",
                                        "sincospi",
                                        "sinh",
                                        "sinpi",
                                        "sqrt",
                                        "std",
                                        "tan",
                                        "tanh",
                                        "tgamma",
                                        "trunc",
                                        "ullmax",
                                        "ullmin",
                                        "umax",
                                        "umin",
                                        "y0",
                                        "y1",
                                        "yn"};

static bool is_function(str name) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        str f = str_view(functions[i]);
        if (str_starts(name, f) && (name.n == f.n || str_is(str_from(name, f.n), "f")))
            return true;
    }
    return false;
}

bool sheet_is_reserved(const struct sheet *sh, str name) {
    return is_cuda_word(name) || str_starts(name, S("gemm_")) || words_have(&sh->words, name);
}

bool sheet_reserve_words(struct sheet *sh, const char *family) {
    str own = sheet_printf(sh, "expert/%s/", family), text;
    for (const struct asset *a = asset_table; a->name; a++) {
        if (!str_starts(str_view(a->name), own))
            continue;
        if (!asset_get(sh->assets, a->name, sh->mem, &text, sh->err))
            return false;
        words_of_template(&sh->words, text);
    }
    return true;
}

/* That of the step, or, before and after all of them, what they share. */
static void sheet_take_strategy(struct sheet *sh) {
    strategy_of_step(sh->briefing->catalogue, &sh->briefing->ground, sh->strategy, sh->step,
                     &sh->now);
    sh->fast = sheet_decision(sh, "fast-math", 0) != 0;
}

/* What follows is said of all steps. */
static void sheet_leave_steps(struct sheet *sh) {
    sh->step = sh->kernels_before = 0;
    sheet_take_strategy(sh);
}

bool sheet_begin_step(struct sheet *sh, const char *family) {
    sh->words.n = 0;
    sh->step++;
    sh->kernels_before = sh->kernels.n;
    sheet_take_strategy(sh);
    return sheet_reserve_words(sh, family) && sheet_reserve_words(sh, "sheet");
}

static bool is_taken(const struct sheet *sh, str name) {
    for (size_t i = 0; i < sh->ntaken; i++)
        if (str_eq(sh->taken[i], name))
            return true;
    for (size_t i = 0; i < sh->nlocal; i++)
        if (str_eq(sh->local[i], name))
            return true;
    return false;
}

static void take(struct sheet *sh, str name) {
    sh->taken = mem_grow(sh->taken, &sh->cap_taken, sh->ntaken + 1, sizeof *sh->taken);
    sh->taken[sh->ntaken++] = name;
}

str sheet_name(struct sheet *sh, str base) {
    str name = arena_str(sh->mem, base);
    if (is_cuda_word(name) || is_function(name))
        name = arena_printf(sh->mem, "the_%.*s", STR_ARG(name));
    while (is_taken(sh, name))
        name = arena_printf(sh->mem, "%.*s_", STR_ARG(name));
    take(sh, name);
    return name;
}

str sheet_shared_name(struct sheet *sh, str key, const char *base) {
    for (size_t i = 0; i < sh->nshared; i++)
        if (str_eq(sh->shared[i].key, key))
            return sh->shared[i].name;
    str name = sheet_name(sh, str_view(base));
    if (sh->nshared == SHEET_SHARED && !sheet_failed(sh))
        err_set(sh->err, ERR_INPUT, "too many functions in one kernel");
    if (sh->nshared < SHEET_SHARED) {
        sh->shared[sh->nshared].key = arena_str(sh->mem, key);
        sh->shared[sh->nshared++].name = name;
    }
    return name;
}

static void take_variables(struct sheet *sh, const struct expr *e) {
    for (size_t i = 0; e->kind == EXPR_REDUCE && i < e->reduce->nvars; i++)
        take(sh, e->reduce->vars[i].name);
    for (size_t i = 0; i < expr_nparts(e); i++)
        take_variables(sh, expr_part(e, i));
}

/* The task's names, those of its statements' variables included: what is made is none of them. */
static void sheet_init_names(struct sheet *sh) {
    const struct task *t = sh->briefing->inst->task;
    for (size_t i = 0; i < t->ndims; i++)
        take(sh, t->dims[i].name);
    for (size_t i = 0; i < t->ntensors; i++)
        take(sh, t->tensors[i].name);
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        for (size_t k = 0; k < s->nindex; k++)
            take(sh, s->index[k]);
        take_variables(sh, s->body);
    }
}

bool sheet_has_name(const struct sheet *sh, str name) {
    return is_cuda_word(name) || is_taken(sh, name);
}

/* Sections and plan text of a file under construction. */

#define MEMORY_MAX (64u << 20)

/* ---- life ---- */

enum { SECTIONS = 9 };
static struct buf *section(struct sheet *sh, size_t i) {
    struct buf *const all[SECTIONS] = {&sh->note,      &sh->require, &sh->memory,
                                       &sh->once,      &sh->steps,   &sh->library,
                                       &sh->functions, &sh->kernels, &sh->includes};
    return all[i];
}

void sheet_init(struct sheet *sh, const struct briefing *b, const struct strategy *s,
                const char *assets, struct err *err) {
    *sh = (struct sheet){.briefing = b, .strategy = s, .assets = assets, .err = err};
    sh->effective = *s;
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        sh->effective.value[i] = STRATEGY_UNSET;
    sh->mem = arena_new(MEMORY_MAX);
    for (size_t i = 0; i < SECTIONS; i++)
        buf_init(section(sh, i), EXPERT_SOURCE_MAX);
    sheet_take_strategy(sh);
    sheet_init_names(sh);
}

void sheet_release(struct sheet *sh) {
    for (size_t i = 0; i < SECTIONS; i++)
        buf_release(section(sh, i));
    mem_free(sh->words.at);
    mem_free(sh->taken);
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

void sheet_line(struct sheet *sh, struct buf *out, const char *lead, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    str line = vprint(sh, format, ap);
    va_end(ap);
    if (out == &sh->steps || out == &sh->once ||
        !has_line(out, sheet_printf(sh, "%s%.*s", lead, STR_ARG(line))))
        put_line(out, lead, line);
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
    sheet_put(sh, template, s, &b);
    return sheet_keep(sh, &b);
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
    buf_release(b);
    return s;
}

int64_t sheet_decision(const struct sheet *sh, const char *name, int64_t otherwise) {
    int64_t v = strategy_get(sh->briefing->catalogue, &sh->now, name);
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

/* The step's own value of a decision in the strategy; NULL: it has none. */
static struct own_value *own_effective(struct sheet *sh, size_t decision) {
    for (size_t i = 0; i < sh->effective.nown; i++)
        if (sh->effective.own[i].step == sh->step && sh->effective.own[i].decision == decision)
            return &sh->effective.own[i];
    return NULL;
}

static bool is_own(struct sheet *sh, const char *decision) {
    for (size_t i = 0; i < sh->briefing->catalogue->n; i++)
        if (str_is(sh->briefing->catalogue->decisions[i].name, decision))
            return own_effective(sh, i) != NULL;
    return false;
}

/* What became of a decision, whatever the head says of it. */
static void sheet_note_effective(struct sheet *sh, const struct used *u) {
    const struct catalogue *c = sh->briefing->catalogue;
    for (size_t i = 0; i < c->n; i++) {
        int64_t asked = sh->now.value[i], *effective = &sh->effective.value[i];
        if (asked == STRATEGY_UNSET || !str_is(c->decisions[i].name, u->decision))
            continue;
        int64_t value = nearest_listed(&c->decisions[i], u->value, asked);
        struct own_value *own = own_effective(sh, i);
        if (own)
            own->value = (int32_t)value;
        else if (asked != sh->strategy->value[i])
            continue; /* other values of this step's own made it another one here */
        else if (*effective == STRATEGY_UNSET || llabs(value - asked) < llabs(*effective - asked))
            *effective = value;
    }
}

void sheet_written(const struct sheet *sh, struct strategy *out) {
    *out = *sh->strategy;
    for (size_t i = 0; i < sh->briefing->catalogue->n; i++)
        if (sh->effective.value[i] != STRATEGY_UNSET)
            out->value[i] = sh->effective.value[i];
    out->nown = 0;
    for (size_t i = 0; i < sh->effective.nown; i++)
        if (sh->effective.own[i].value != out->value[sh->effective.own[i].decision])
            out->own[out->nown++] = sh->effective.own[i];
}

void sheet_used(struct sheet *sh, const struct used *all, size_t n) {
    str list = S("");
    for (size_t i = 0; i < n; i++)
        sheet_note_effective(sh, &all[i]);
    for (size_t i = 0; i < n; i++)
        if (sheet_decision(sh, all[i].decision, all[i].value) != all[i].value)
            list = sheet_printf(sh, "%.*s%s%s=%lld instead of %lld", STR_ARG(list),
                                list.n ? ", " : "", all[i].decision, (long long)all[i].value,
                                (long long)sheet_decision(sh, all[i].decision, all[i].value));
    if (list.n)
        sheet_note(sh, "  changed by shape and hardware: %.*s", STR_ARG(list));
}

bool sheet_is_cute(const struct sheet *sh) {
    return sheet_decision(sh, "dialect", 0) == 1;
}

int64_t sheet_shared_most(const struct sheet *sh) {
    return (int64_t)sh->briefing->gpu->shared_block;
}

/* ---- plan text ---- */

/* Signs of the plan's arithmetic; NULL: it has none. */
static const char *plan_sign(enum expr_kind k) {
    static const char *const signs[] = {
        [EXPR_NEG] = "-", [EXPR_ADD] = " + ", [EXPR_SUB] = " - ",
        [EXPR_MUL] = "*", [EXPR_MOD] = " % ", [EXPR_FLOORDIV] = " // ",
    };
    return k < sizeof signs / sizeof *signs ? signs[k] : NULL;
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

/* The tensors that share a workspace with this one, those with numbers below `end`. */
static size_t count_alike(const struct sheet *before, size_t tensor, size_t end) {
    size_t n = 0;
    for (size_t i = 0; i < end; i++)
        n += ((before->declared & ~before->alone) >> i & 1) &&
             str_eq(before->kept[i], before->kept[tensor]);
    return n;
}

static bool is_shared(const struct sheet *sh, size_t tensor) {
    const struct sheet *b = sh->before;
    return b && ((b->declared & ~b->alone) >> tensor & 1) &&
           count_alike(b, tensor, TASK_MAX_TENSORS) > 1;
}

size_t sheet_place(const struct sheet *sh, size_t tensor) {
    return is_shared(sh, tensor) ? count_alike(sh->before, tensor, tensor) : 0;
}

str sheet_place_size(struct sheet *sh, const struct step *st, size_t tensor) {
    return TEXT(sh, "ceil_div($, 64)*64", sheet_plan_count(sh, st->inst, tensor));
}

/* The plan knows the task's lets by name and has no memory for them: they get a workspace (f32, or
 * their own type). */
str sheet_kept(struct sheet *sh, const struct step *st, size_t tensor) {
    const struct tensor *t = &st->inst->task->tensors[tensor];
    uint64_t bit = UINT64_C(1) << tensor;
    if (!sheet_is_workspace(sh, tensor))
        return t->name;
    if (sh->declared & bit)
        return sh->workspace[tensor];
    str name = sh->workspace[tensor] = sheet_name(sh, TEXT(sh, "$_kept", t->name));
    str type = str_view(dtype_info(sheet_dtype(sh, st, tensor))->name);
    sh->kept[tensor] = TEXT(sh, "[$] : $", workspace_extents(sh, t), type);
    if (!is_shared(sh, tensor))
        sheet_memory(sh, "workspace %.*s%.*s", STR_ARG(name), STR_ARG(sh->kept[tensor]));
    sh->declared |= bit;
    return name;
}

void sheet_store(struct sheet *sh, size_t let, size_t output) {
    uint64_t bit = UINT64_C(1) << let;
    sh->workspace[let] = sh->briefing->inst->task->tensors[output].name;
    sh->output[let] = output;
    sh->stored |= bit;
    sh->declared |= bit;
    sh->alone |= bit;
}

str sheet_tensor(struct sheet *sh, const struct step *st, size_t tensor) {
    sh->alone |= UINT64_C(1) << tensor;
    return sheet_kept(sh, st, tensor);
}

str sheet_argument(struct sheet *sh, const struct step *st, size_t tensor) {
    str own = sheet_kept(sh, st, tensor);
    if (!is_shared(sh, tensor))
        return own;
    str name = sheet_shared_name(sh, TEXT(sh, "kept $", sh->kept[tensor]), "kept");
    str size = sheet_place_size(sh, st, tensor);
    sheet_memory(sh, "workspace %.*s[%zu, %.*s] : %s", STR_ARG(name),
                 count_alike(sh->before, tensor, TASK_MAX_TENSORS), STR_ARG(size),
                 dtype_info(sheet_dtype(sh, st, tensor))->name);
    return name;
}

str sheet_scratch(struct sheet *sh, str base, str what) {
    for (size_t i = 0; sh->before && i < sh->nscratch; i++)
        if (sh->scratch[i].step != sh->step && str_eq(sh->scratch[i].what, what)) {
            sh->scratch[i].step = sh->step;
            return sh->scratch[i].name;
        }
    str name = sheet_name(sh, base);
    sheet_memory(sh, "workspace %.*s%.*s", STR_ARG(name), STR_ARG(what));
    if (sh->nscratch < PLAN_MAX_WORKSPACES) {
        sh->scratch[sh->nscratch].what = what;
        sh->scratch[sh->nscratch].name = name;
        sh->scratch[sh->nscratch++].step = sh->step;
    }
    return name;
}

static size_t count_lines(const struct buf *b, str lead) {
    str rest = buf_str(b), line;
    size_t n = 0;
    while (str_line(&rest, &line))
        n += str_starts(line, lead);
    return n;
}

bool sheet_is_crowded(const struct sheet *sh) {
    return count_lines(&sh->memory, S("//! workspace ")) > PLAN_MAX_WORKSPACES;
}

/* False: the plan would be refused, err says why. */
static bool sheet_fits_plan(struct sheet *sh) {
    size_t launches = count_lines(&sh->steps, S("//! launch ")) +
                      count_lines(&sh->once, S("//! once launch ")),
           workspaces = count_lines(&sh->memory, S("//! workspace "));
    if (workspaces > PLAN_MAX_WORKSPACES)
        return err_set(sh->err, ERR_INPUT,
                       "%zu kinds of results are kept between its kernels, and a plan has room for "
                       "%d\nhint: write fewer lets, or cut the task in two",
                       workspaces, PLAN_MAX_WORKSPACES);
    return launches <= CANDIDATE_MAX_LAUNCHES ||
           err_set(sh->err, ERR_INPUT,
                   "it takes %zu kernels, and a plan has room for %d\nhint: write fewer lets, or "
                   "cut the task in two",
                   launches, CANDIDATE_MAX_LAUNCHES);
}

/* The finished file: the head comment, the plan, the code, laid out as a person would. */

#define MARGIN 100

/* ---- the comment ---- */

/* Text of the task inside a comment line: no control bytes, no backslash that continues it. */
static void put_quoted(str s, struct buf *out) {
    s = str_cut(s, 0, 400);
    for (size_t i = 0; i < s.n; i++)
        buf_putc(out, (unsigned char)s.p[i] < ' ' || s.p[i] == '\\' ? ' ' : s.p[i]);
}

static void put_definitions(const struct task *t, struct buf *out) {
    for (size_t i = 0; i < t->nstatements; i++) {
        bool let = t->tensors[t->statements[i].tensor].role == TENSOR_LET;
        buf_puts(out, let ? S("//     let ") : S("//     "));
        put_quoted(str_cut(t->text, t->statements[i].at, t->statements[i].len), out);
        buf_putc(out, '\n');
    }
}

/* What the form has made has no text of its own: its tensor is named. */
str sheet_definition(struct sheet *sh, const struct step *st, const struct statement *s) {
    const struct task *t = st->inst->task;
    struct buf b;
    buf_init(&b, 4096);
    if (s->len)
        put_quoted(str_cut(t->text, s->at, s->len), &b);
    else
        buf_puts(&b, t->tensors[s->tensor].name);
    return sheet_keep(sh, &b);
}

/* Whether the code has any of these pieces of text, the last of which is NULL; of kernels, those of
 * the step under way. Functions may be shared with earlier steps. */
static bool has_text(const struct sheet *sh, const char *const *pieces) {
    str text[] = {buf_str(&sh->functions), str_from(buf_str(&sh->kernels), sh->kernels_before),
                  sh->step ? S("") : buf_str(&sh->library)};
    for (; *pieces; pieces++)
        for (size_t k = 0; k < sizeof text / sizeof *text; k++)
            if (str_find(text[k], str_view(*pieces)) < text[k].n)
                return true;
    return false;
}

/* ---- libraries ---- */

static bool is_called(const struct sheet *sh, const char *name) {
    str word = str_view(name);
    return text_has_word(buf_str(&sh->library), word) ||
           text_has_word(buf_str(&sh->functions), word) ||
           text_has_word(buf_str(&sh->kernels), word);
}

/* The names of the `//% if cp_…` blocks of a library, as flags that are not set. False: an earlier
 * library has a block of that name, and code that calls it would get both. */
static bool add_blocks(struct sheet *sh, const char *library, str text, struct slots *s) {
    str line, lead = S("//% if cp_");
    size_t earlier = s->n;
    while (str_line(&text, &line)) {
        if (!str_starts(line, lead))
            continue;
        str name = str_from(line, lead.n - 3);
        for (size_t i = 0; i < earlier; i++)
            if (str_is(name, s->at[i].name))
                return err_set(sh->err, ERR_INPUT, "%s: another library has %.*s", library,
                               STR_ARG(name));
        slots_flag(s, arena_cstr(sh->mem, name), false);
    }
    return true;
}

static bool is_library(const char *asset) {
    str name = str_view(asset);
    return str_starts(name, S("expert/")) && str_ends(name, S("/library.cu"));
}

/* What all families share comes first, since their own libraries call it. */
static bool render_libraries(struct sheet *sh, const struct slots *s) {
    static const char *const shared = "expert/sheet/library.cu";
    buf_clear(&sh->library);
    if (!sheet_put(sh, shared + 7, s, &sh->library))
        return false;
    for (const struct asset *a = asset_table; a->name; a++)
        if (is_library(a->name) && !str_is(str_view(a->name), shared) &&
            !sheet_put(sh, a->name + 7, s, &sh->library))
            return false;
    return true;
}

/* The blocks of library.cu files whose name the code has, and those that these call in turn. */
static bool put_libraries(struct sheet *sh) {
    struct slots s;
    str text;
    slots_init(&s, sh->mem);
    for (const struct asset *a = asset_table; a->name; a++) {
        if (!is_library(a->name))
            continue;
        if (!asset_get(sh->assets, a->name, sh->mem, &text, sh->err) ||
            !add_blocks(sh, a->name, text, &s))
            return false;
    }
    size_t blocks = s.n;
    slots_flag(&s, "stream", sheet_decision(sh, "cache-hint", 0) != 0);
    for (bool more = true; more;) {
        more = false;
        if (!render_libraries(sh, &s))
            return false;
        for (size_t i = 0; i < blocks; i++)
            if (s.at[i].text.n == 0 && is_called(sh, s.at[i].name)) {
                slots_flag(&s, s.at[i].name, true);
                more = true;
            }
    }
    return true;
}

/* Decisions that any step may follow: what this step, or all of them, had no use for. */
static void note_unused(struct sheet *sh) {
    static const struct {
        const char *decision, *why, *trace[5];
    } all[] = {
        {"fast-math",
         "has a faster form",
         {"__expf(", "__logf(", "cp_fast_", "cp_quotient(", "cp_divide("}},
        {"cache-hint", "is read or written once", {"__ldcs(", "__stcs("}},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int64_t value = sheet_decision(sh, all[i].decision, 0);
        if (!value || has_text(sh, all[i].trace) || (sh->step && !is_own(sh, all[i].decision)))
            continue;
        sheet_note(sh, "%s%s=0 instead of %lld: nothing here %s", sh->step ? "  " : "",
                   all[i].decision, (long long)value, all[i].why);
        sheet_note_effective(sh, &(struct used){all[i].decision, 0});
    }
}

void sheet_end_step(struct sheet *sh) {
    str list = S("");
    for (size_t i = 0; i < sh->strategy->nown; i++) {
        const struct own_value *o = &sh->strategy->own[i];
        if (o->step == sh->step)
            list = sheet_printf(sh, "%.*s %.*s=%d", STR_ARG(list),
                                STR_ARG(sh->briefing->catalogue->decisions[o->decision].name),
                                o->value);
    }
    if (list.n)
        sheet_note(sh, "  step %zu has values of its own:%.*s", sh->step, STR_ARG(list));
    note_unused(sh);
}

static void put_comment(struct sheet *sh, struct buf *out) {
    const struct briefing *b = sh->briefing;
    const struct task *t = b->inst->task;
    buf_printf(out, "// %.*s: ", STR_ARG(t->name));
    put_quoted(t->title, out);
    buf_puts(out, S("\n//\n"));
    put_definitions(t, out);
    str label = inst_label(b->inst, sh->mem);
    buf_printf(out, "//\n// At %.*s on %s the limit is %.4g us: %s, %.2g flop a byte.\n",
               STR_ARG(label), b->gpu->title, b->roofline.limit_s * 1e6,
               b->roofline.memory_bound ? "memory-bound" : "compute-bound", b->roofline.intensity);
    buf_puts(out, S("// Strategy: "));
    strategy_text(b->catalogue, sh->strategy, out);
    buf_putc(out, '\n');
    buf_puts(out, buf_str(&sh->note));
}

/* ---- layout ---- */

/* Where to break the first `room` bytes of a line: at the last comma, or at the last blank. Every
 * blank of code is a place to break: there are no literals with blanks. 0: nowhere. */
static size_t break_at(str line, size_t from, size_t room) {
    size_t comma = 0, blank = 0;
    for (size_t i = from + 1; i < room; i++) {
        if (line.p[i] != ' ')
            continue;
        blank = i;
        comma = line.p[i - 1] == ',' ? i : comma;
    }
    return comma > room / 2 ? comma : blank;
}

/* The last blank of the first `room` bytes; 0: none. */
static size_t blank_before(str line, size_t room) {
    size_t at = room < line.n ? room : line.n;
    while (at > 0 && (at == line.n || line.p[at] != ' '))
        at--;
    return at;
}

static void put_wrapped(str line, struct buf *out) {
    size_t indent = 0, lead = 0;
    while (indent < line.n && line.p[indent] == ' ')
        indent++;
    bool code = str_find(line, S("//")) == line.n && str_find(line, S("\"")) == line.n &&
                !str_ends(line, S("\\")) && !str_starts(str_trim(line), S("#"));
    for (size_t at; code && lead + line.n > MARGIN; line = str_from(line, at + 1)) {
        at = break_at(line, lead ? 0 : indent, MARGIN - lead);
        if (at == 0)
            break;
        buf_printf(out, "%*s%.*s\n", (int)lead, "", (int)at, line.p);
        lead = indent + 8;
    }
    buf_printf(out, "%*s%.*s\n", (int)lead, "", STR_ARG(line));
}

/* Comments are broken at blanks, and go on where their words begin; definitions a little deeper. */
static void put_remark(str line, struct buf *out) {
    size_t begin = str_find(line, S("//")) + 2, deeper, room;
    while (begin < line.n && line.p[begin] == ' ')
        begin++;
    str lead = str_cut(line, 0, begin), words = str_from(line, begin);
    deeper = str_ends(lead, S("     ")) ? 4 : 0;
    room = MARGIN - begin;
    buf_puts(out, lead);
    for (size_t at; words.n > room && (at = blank_before(words, room)) > 0;
         words = str_from(words, at + 1), room = MARGIN - begin - deeper)
        buf_printf(out, "%.*s\n%.*s%*s", (int)at, words.p, STR_ARG(lead), (int)deeper, "");
    buf_printf(out, "%.*s\n", STR_ARG(words));
}

/* Plans are read by the line, and so is the strategy. */
static bool is_remark(str bare) {
    return str_starts(bare, S("// ")) && !str_starts(bare, S("// Strategy:"));
}

/* What templates leave to do: the lines of empty slots go, directives stand at the margin, long
 * lines are broken. */
static void put_tidy(str text, struct buf *out) {
    str line;
    bool blank = false; /* one is due before the next line */
    while (str_line(&text, &line)) {
        str bare = str_trim(line);
        if (bare.n == 0) {
            blank = (blank || line.n == 0) && out->n > 0;
            continue;
        }
        buf_puts(out, blank ? S("\n") : S(""));
        blank = false;
        while (line.p[line.n - 1] == ' ')
            line.n--;
        if (is_remark(bare))
            put_remark(line, out);
        else
            put_wrapped(str_starts(bare, S("#")) ? bare : line, out);
    }
}

static void put_section(str text, struct buf *out) {
    if (text.n == 0)
        return;
    buf_puts(out, text);
    if (text.p[text.n - 1] != '\n')
        buf_putc(out, '\n');
    buf_putc(out, '\n');
}

static void put_plan(const struct sheet *sh, struct buf *out) {
    buf_puts(out, buf_str(&sh->require));
    buf_puts(out, buf_str(&sh->memory));
    buf_puts(out, buf_str(&sh->once));
    buf_puts(out, buf_str(&sh->steps));
    buf_putc(out, '\n');
}

static void put_includes(struct sheet *sh, struct buf *out) {
    if (sh->bfloat)
        sheet_include(sh, "cuda_bf16.h");
    if (sh->half)
        sheet_include(sh, "cuda_fp16.h");
    put_section(buf_str(&sh->includes), out);
}

static bool any_failed(struct sheet *sh) {
    bool failed = false;
    for (size_t i = 0; i < SECTIONS; i++)
        failed |= section(sh, i)->failed;
    return failed;
}

bool sheet_finish(struct sheet *sh, struct buf *out) {
    struct buf b, helpers;
    if (sheet_failed(sh) || !put_libraries(sh) || !sheet_fits_plan(sh))
        return false;
    buf_init(&b, 2 * EXPERT_SOURCE_MAX);
    buf_init(&helpers, EXPERT_SOURCE_MAX);
    sheet_leave_steps(sh);
    note_unused(sh);
    put_comment(sh, &b);
    put_plan(sh, &b);
    put_includes(sh, &b);
    emit_helper_texts(sh->helpers, &helpers);
    put_section(buf_str(&helpers), &b);
    put_section(buf_str(&sh->library), &b);
    put_section(buf_str(&sh->functions), &b);
    buf_puts(&b, buf_str(&sh->kernels));
    put_tidy(buf_str(&b), out);
    bool fits = !any_failed(sh) && !b.failed && !out->failed;
    buf_release(&b);
    buf_release(&helpers);
    return fits || err_set(sh->err, ERR_INPUT, "the kernel's text is too long");
}
