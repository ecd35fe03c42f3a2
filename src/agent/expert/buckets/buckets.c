/* The buckets family: folds by index, `y[k,d] = sum(t | e[t] == k) x[t,d]`: histograms, sums and
 * means by group, the gradient of an embedding. Data say which result a term belongs to
 * (pattern_is_by_index), and each term is visited once.
 *
 * Three ways, by the decision `buckets`. Terms are added to their results in memory by atomic
 * operations (add.cu), or to those of the block in shared memory first; or they are sorted by
 * result, and each result goes through its own in their order (sort.cu, run.cu).
 *
 * Atomic operations come in any order, so they are such that the order does not matter: whole
 * numbers wrap, extremes are compared as unsigned integers, and sums of floats are kept in double
 * precision, where a rounding is 2^-29 of one of fp32. All begin at zero bits, of which memory is
 * cleared; a last kernel makes results of them, and with these the maps that follow. Sorting is
 * stable, and gives the same bits on every run. */
#include "agent/expert/plan/step_facts.h"
#include "agent/expert/sheet/pieces.h"
#include "agent/expert/sheet/sheet.h"
#include "spec/pattern.h"
#include <math.h>

enum way { WAY_GLOBAL, WAY_SHARED, WAY_SORTED };

enum { PARTS_OF_CONDITION = 16, WIDTH_MOST = 8 };

/* A variable of the terms or of the results, and how many values it takes. */
struct digit {
    size_t var;
    const struct expr *lo, *size; /* lo NULL: 0 */
};

struct buckets {
    struct sheet *sh;
    const struct step *st;
    const struct inst *in;
    const struct statement *fold;
    struct by_index by;
    enum reduction op;
    bool real; /* what is folded */
    bool mean;
    enum way way;
    int64_t block, width;
    uint32_t results; /* all variables of the left side */
    uint32_t columns; /* … that no condition equates and no key depends on */
    bool terms_inner; /* neighbouring terms lie next to each other, not neighbouring columns */
    bool narrow;      /* whole numbers that wrap at 32 bits like the tensor they are stored in */
    struct digit digit[TASK_MAX_VARS]; /* of a term's element, the innermost last */
    size_t ndigits;
    str key[BY_INDEX_MOST]; /* of the kernel at hand: the numbers that say which result */
    struct scope k;
};

/* ---- claims ---- */

static bool is_ready(const struct form *f, const bool *done, const struct expr *e) {
    if (e->kind == EXPR_READ && f->task->tensors[e->ref].role == TENSOR_LET &&
        !form_defined_by(f->task, done, e->ref))
        return false;
    if (e->kind == EXPR_REDUCE)
        return false;
    for (size_t i = 0; i < e->nargs; i++)
        if (!is_ready(f, done, e->args[i]))
            return false;
    return true;
}

static bool may_fold(const struct expr *e) {
    enum reduction op = e->reduce->op;
    bool known =
        op == REDUCTION_SUM || op == REDUCTION_MEAN || op == REDUCTION_MAX || op == REDUCTION_MIN;
    return known && e->args[0]->value_kind != VALUE_BOOL;
}

/* A mean over all terms, some of which are 0, is none of those that are chosen. */
static bool recognise(const struct statement *s, struct by_index *out) {
    return form_is_fold(s) && may_fold(s->body) && pattern_is_by_index(s->body, out) &&
           !(s->body->reduce->op == REDUCTION_MEAN && out->chosen);
}

static bool claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take) {
    const struct statement *s = &f->task->statements[first];
    struct by_index by;
    (void)b;
    if (!recognise(s, &by) || !maps_plain_left(f->task, s) ||
        form_definitions(f->task, s->tensor) != 1 || !is_ready(f, done, s->body->args[0]) ||
        (by.guard && !is_ready(f, done, by.guard)))
        return false;
    maps_claim(f, done, first, take);
    return true;
}

/* ---- what runs over what ---- */

static const struct expr *size_of(const struct buckets *b, const struct reduce_var *v) {
    if (expr_is_number(v->lo, 0))
        return v->hi;
    return expr_pair(b->sh->mem, EXPR_SUB, v->hi, v->lo);
}

static void add_results(struct buckets *b, uint32_t vars) {
    for (size_t v = 0; v < b->fold->nindex; v++)
        if (vars >> v & 1)
            b->digit[b->ndigits++] =
                (struct digit){v, NULL, statement_extent(b->in->task, b->fold, v)};
}

static void add_terms(struct buckets *b) {
    const struct reduce *r = b->fold->body->reduce;
    for (size_t i = 0; i < r->nvars; i++)
        b->digit[b->ndigits++] =
            (struct digit){r->vars[i].var, expr_is_number(r->vars[i].lo, 0) ? NULL : r->vars[i].lo,
                           size_of(b, &r->vars[i])};
}

/* Of the first read that has a column: neighbours of it are terms. As deep as the tree. */
static bool runs_along_terms(const struct buckets *b, const struct expr *e, bool *found) {
    if (e->kind == EXPR_READ && e->nargs > 1 && (expr_vars(e) & b->columns)) {
        uint32_t last = expr_vars(e->args[e->nargs - 1]);
        *found = true;
        return (last & b->by.reduced) && !(last & b->columns);
    }
    for (size_t i = 0; i < e->nargs && !*found; i++)
        if (runs_along_terms(b, e->args[i], found))
            return true;
    return false;
}

static void lay_out(struct buckets *b) {
    bool found = false;
    b->results = (UINT32_C(1) << b->fold->nindex) - 1;
    b->columns = b->results & ~(b->by.pinned | b->by.shared);
    b->terms_inner = runs_along_terms(b, b->by.term, &found);
    add_results(b, b->by.shared);
    if (b->terms_inner)
        add_results(b, b->columns);
    add_terms(b);
    if (!b->terms_inner)
        add_results(b, b->columns);
}

/* How many elements the digits of `vars` have together, in plan syntax and at the shape asked for.
 */
static str plan_of(struct buckets *b, uint32_t vars) {
    str all = S("");
    for (size_t i = 0; i < b->ndigits; i++)
        if (vars >> b->digit[i].var & 1)
            all = sheet_join(b->sh, all, "*", sheet_plan(b->sh, b->digit[i].size));
    return all.n ? all : S("1");
}

static double count_of(const struct buckets *b, uint32_t vars) {
    double all = 1;
    int64_t n;
    for (size_t i = 0; i < b->ndigits; i++)
        if (vars >> b->digit[i].var & 1)
            all *= expr_eval_dims(b->digit[i].size, b->in->dims, &n) ? (double)n : 1;
    return all;
}

static str results_plan(struct buckets *b, uint32_t vars) {
    return place_count(b->sh, b->in, b->fold, vars);
}

static double results_count(const struct buckets *b, uint32_t vars) {
    double all = 1;
    for (size_t v = 0; v < b->fold->nindex; v++)
        all *= vars >> v & 1 ? (double)b->in->tensors[b->fold->tensor].extent[v] : 1;
    return all;
}

/* Bytes of what is kept of a result while terms come to it. */
static int64_t kept_bytes(const struct buckets *b) {
    bool sum = b->op == REDUCTION_SUM || b->mean;
    int64_t word = (b->real && !sum) || b->narrow ? 4 : 8;
    return word + (b->mean ? 4 : 0);
}

/* ---- texts ---- */

/* Declarations of the variables `vars` from a flat number over those of `over`, where `used`
 * mentions them. */
static str digits_text(struct buckets *b, str flat, uint32_t over, uint32_t vars, str used) {
    struct scope *k = &b->k;
    str all = S(""), below = S(""), type = str_view(scope_index_type(k));
    size_t left = 0;
    for (size_t i = 0; i < b->ndigits; i++)
        left += over >> b->digit[i].var & 1;
    for (size_t i = b->ndigits; i-- > 0;) {
        const struct digit *d = &b->digit[i];
        if (!(over >> d->var & 1))
            continue;
        bool first = --left == 0;
        str size = first ? S("") : scope_int(k, d->size);
        str value = TEXT(k->sh, first ? "$$$" : "$$ % $", flat, below, size);
        if (d->lo)
            value = TEXT(k->sh, "$ + ($)", scope_int(k, d->lo), value);
        if ((vars >> d->var & 1) && text_has_word(used, k->var[d->var]))
            all = sheet_join(k->sh, all, "\n",
                             TEXT(k->sh, "const $ $ = $;", type, k->var[d->var], value));
        below = TEXT(k->sh, "$ / $", below, size);
    }
    return all;
}

/* Where the result lies among those of `vars`, by Horner's rule. */
static str number_text(struct buckets *b, uint32_t vars) {
    struct scope *k = &b->k;
    str all = S("");
    for (size_t v = 0; v < b->fold->nindex; v++) {
        if (!(vars >> v & 1))
            continue;
        str size = scope_int(k, statement_extent(b->in->task, b->fold, v));
        bool product = str_find(all, S(" ")) < all.n;
        all = all.n ? TEXT(k->sh, product ? "($) * $ + $" : "$ * $ + $", all, size, k->var[v])
                    : k->var[v];
    }
    return all.n ? all : S("0");
}

/* Parts of a condition that do not say which result a term belongs to. */
static void add_condition(struct buckets *b, const struct expr *e, str *all) {
    if (!e)
        return;
    if (e->kind == EXPR_AND) {
        add_condition(b, e->args[0], all);
        add_condition(b, e->args[1], all);
        return;
    }
    if (!pattern_equates(&b->by, e)) {
        str part = scope_text(&b->k, e);
        *all = sheet_join(b->sh, *all, " && ", TEXT(b->sh, "($)", part));
    }
}

static str condition_text(struct buckets *b) {
    str all = S("");
    add_condition(b, b->by.guard, &all);
    add_condition(b, b->by.chosen, &all);
    return all;
}

/* The numbers that say which result; returns all texts of them. */
static str put_pins(struct buckets *b, struct slots *s, bool compared) {
    str all = S("");
    slots_list(s, "pins");
    for (size_t i = 0; i < b->by.npins; i++) {
        size_t var = b->by.pin[i].var;
        struct slots *row = slots_row(s, "pins");
        str value = scope_text(&b->k, b->by.pin[i].key);
        b->key[i] = scope_name(&b->k, TEXT(b->sh, "$_key", b->k.var[var]).p);
        slots_put(row, "key", b->key[i]);
        slots_put(row, "value", value);
        slots_put(row, "name", b->k.var[var]);
        if (compared)
            slots_put(row, "extent", scope_int(&b->k, statement_extent(b->in->task, b->fold, var)));
        all = sheet_join(b->sh, all, " ", value);
    }
    return all;
}

static void name_variables(struct buckets *b) {
    for (size_t v = 0; v < b->fold->nindex; v++)
        b->k.var[v] = scope_variable(&b->k, v);
    for (size_t i = 0; i < b->fold->body->reduce->nvars; i++) {
        size_t v = b->fold->body->reduce->vars[i].var;
        b->k.var[v] = scope_variable(&b->k, v);
    }
}

/* ---- kernels ---- */

static bool begin_kernel(struct buckets *b, struct slots *s, const char *what) {
    str name = b->in->task->tensors[b->fold->tensor].name;
    slots_init(s, b->sh->mem);
    if (!scope_init(&b->k, b->sh, b->st, TEXT(b->sh, "$_$", name, str_view(what)).p))
        return false;
    b->k.statement = b->fold;
    name_variables(b);
    slots_put(s, "definition", sheet_definition(b->sh, b->st, b->fold));
    slots_put(s, "kernel", b->k.name);
    slots_put(s, "index", str_view(scope_index_type(&b->k)));
    slots_number(s, "block", b->block);
    slots_flag(s, "mean", b->mean);
    return true;
}

/* Memory that the step has beside its tensors. */
struct memory {
    str params, args;
};

static void add_memory(struct buckets *b, struct memory *m, const char *type, str what) {
    m->params = sheet_join(b->sh, m->params, ", ", TEXT(b->sh, "$ *$", str_view(type), what));
}

static bool end_kernel(struct buckets *b, struct slots *s, const char *template, str grid,
                       str after, struct memory m) {
    b->k.own_param = m.params;
    b->k.own_arg = m.args;
    slots_put(s, "parameters", scope_params(&b->k));
    scope_launch(&b->k, grid, TEXT(b->sh, "$$", sheet_number(b->sh, b->block), after));
    return !sheet_failed(b->sh) && sheet_put(b->sh, template, s, &b->sh->kernels);
}

/* As many blocks as there are elements for, and no more than all SMs hold at a time. */
static str grid_for(struct buckets *b, str elements, int64_t each) {
    const struct gpu *gpu = b->sh->briefing->gpu;
    int64_t most = (int64_t)gpu->sms *
                   (gpu->max_threads_sm / b->block > 1 ? gpu->max_threads_sm / b->block : 1);
    return TEXT(b->sh, "min(ceil_div($, $), $)", elements, sheet_number(b->sh, each),
                sheet_number(b->sh, most));
}

static void require_ints(struct buckets *b, str elements) {
    if (!b->k.wide)
        sheet_require_for(b->sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(elements),
                          (long long)SCOPE_INT_MAX);
}

/* ---- sums by atomic operations ---- */

static const char *word_type(const struct buckets *b) {
    bool sum = b->op == REDUCTION_SUM || b->mean;
    return b->real     ? sum ? "double" : "unsigned int"
           : b->narrow ? "unsigned int"
                       : "unsigned long long";
}

static const char *memory_type(const struct buckets *b, bool plan) {
    bool sum = b->op == REDUCTION_SUM || b->mean;
    if (b->real && sum)
        return plan ? "f64" : "double";
    bool wide = !b->real && !b->narrow;
    return plan ? wide ? "i64" : "i32" : wide ? "long long" : "int";
}

/* A term as the word that is added or compared. */
static str word_of(struct buckets *b, str term) {
    const char *of_real = b->op == REDUCTION_MAX   ? "cp_ordered((float)($))"
                          : b->op == REDUCTION_MIN ? "cp_ordered(-(float)($))"
                                                   : "(double)($)";
    const char *of_whole = b->op == REDUCTION_MAX
                               ? "(unsigned long long)($) ^ 0x8000000000000000ull"
                           : b->op == REDUCTION_MIN
                               ? "(unsigned long long)(-1 - (long long)($)) ^ 0x8000000000000000ull"
                           : b->narrow ? "(unsigned int)($)"
                                       : "(unsigned long long)($)";
    return TEXT(b->sh, b->real ? of_real : of_whole, term);
}

/* What the word of a result stands for. */
static str value_of_word(struct buckets *b) {
    if (b->mean)
        return S("(float)(sums[element] / (double)terms[element])");
    if (b->real)
        return str_view(
            b->op == REDUCTION_MAX   ? "cp_of_ordered((unsigned int)sums[element], -INFINITY)"
            : b->op == REDUCTION_MIN ? "-cp_of_ordered((unsigned int)sums[element], -INFINITY)"
                                     : "(float)sums[element]");
    return str_view(
        b->op == REDUCTION_MAX
            ? "(long long)((unsigned long long)sums[element] ^ 0x8000000000000000ull)"
        : b->op == REDUCTION_MIN
            ? "-1 - (long long)((unsigned long long)sums[element] ^ 0x8000000000000000ull)"
            : "(long long)sums[element]");
}

static struct memory clear_memory(struct buckets *b) {
    struct memory m = {S(""), S("")};
    str all = results_plan(b, b->results);
    str sums = sheet_scratch(b->sh, S("sums"),
                             TEXT(b->sh, "[$] : $", all, str_view(memory_type(b, true))));
    sheet_step(b->sh, "memset %.*s = 0", STR_ARG(sums));
    add_memory(b, &m, memory_type(b, false), S("sums"));
    m.args = sums;
    if (b->mean) {
        str terms = sheet_scratch(b->sh, S("terms"), TEXT(b->sh, "[$] : i32", all));
        sheet_step(b->sh, "memset %.*s = 0", STR_ARG(terms));
        add_memory(b, &m, "int", S("terms"));
        m.args = sheet_join(b->sh, m.args, ", ", terms);
    }
    return m;
}

/* Blocks that share the results of one item of the shared variables. */
static str put_own(struct buckets *b, struct slots *s, str elements, str *after) {
    struct sheet *sh = b->sh;
    uint32_t own = b->results & ~b->by.shared;
    str plan = results_plan(b, own);
    const struct gpu *gpu = sh->briefing->gpu;
    int64_t bytes = kept_bytes(b), per_sm = gpu->max_threads_sm / b->block;
    double items = count_of(b, b->by.shared),
           room = (double)sheet_shared_most(sh) / (results_count(b, own) * (double)bytes);
    double fit = fmax(fmin((double)per_sm, floor(room)), 1);
    int64_t most = (int64_t)((double)gpu->sms * fit / items);
    str parts = TEXT(sh, "min(ceil_div($, max($, $)), $)", elements, sheet_number(sh, b->block * 2),
                     plan, sheet_number(sh, most > 1 ? most : 1));
    sheet_require_for(sh, "The results of a block fit its shared memory.", "%.*s*%lld <= %lld",
                      STR_ARG(plan), (long long)bytes, (long long)sheet_shared_most(sh));
    slots_put(s, "buckets", scope_int_plan(&b->k, "buckets", plan));
    slots_put(s, "parts", scope_int_plan(&b->k, "parts", parts));
    slots_put(s, "bucket", number_text(b, own));
    *after = TEXT(sh, ", $*$", plan, sheet_number(sh, bytes));
    return b->by.shared ? TEXT(sh, "$*$", plan_of(b, b->by.shared), parts) : parts;
}

static bool write_add(struct buckets *b, struct memory m) {
    struct slots s;
    bool own = b->way == WAY_SHARED;
    if (!begin_kernel(b, &s, "add"))
        return false;
    uint32_t over = own ? ~b->by.shared : ~UINT32_C(0);
    str elements = plan_of(b, over), after = S("");
    require_ints(b, elements);
    slots_flag(&s, "own", own);
    slots_put(&s, "elements", scope_int_plan(&b->k, "elements", elements));
    str grid = own ? put_own(b, &s, elements, &after) : grid_for(b, elements, b->block * 4);
    if (!own)
        slots_put(&s, "parts", S("gridDim.x"));
    str used = put_pins(b, &s, true), condition = condition_text(b),
        term = scope_text(&b->k, b->by.term);
    str place = number_text(b, b->results);
    used = TEXT(b->sh, "$ $ $ $", used, condition, term, place);
    slots_put(&s, "condition", condition);
    slots_put(&s, "place", place);
    slots_put(&s, "word", str_view(word_type(b)));
    slots_put(&s, "word_term", word_of(b, term));
    bool sum = b->op == REDUCTION_SUM || b->mean;
    slots_put(&s, "atomic", sum ? S("atomicAdd") : S("atomicMax"));
    slots_put(&s, "coordinates", digits_text(b, S("element"), over, ~b->by.pinned, used));
    if (own) {
        uint32_t shared = b->by.shared, rest = b->results & ~shared;
        slots_put(&s, "item_coordinates", digits_text(b, S("item"), shared, shared, used));
        slots_put(&s, "bucket_coordinates",
                  place_coordinates(&b->k, b->fold, rest, S("bucket"), false, place));
    }
    return end_kernel(b, &s, "buckets/add.cu", grid, after, m);
}

/* Where element 0 of a vector lies: the variable of its columns has `column` there. */
static bool put_results(struct buckets *b, struct slots *s, size_t last, str column, str *used) {
    struct maps maps;
    if (!maps_write(&b->k, b->fold, S("value"), s, &maps))
        return false;
    if (last != SIZE_MAX)
        b->k.var[last] = column;
    slots_list(s, "results");
    *used = slots_get(s, "maps");
    for (size_t i = 0; i < maps.n; i++) {
        struct slots *row = slots_row(s, "results");
        str place = scope_place_text(&b->k);
        size_t tensor = maps.out[i].tensor;
        slots_put(row, "to", scope_pointer(&b->k, tensor, true));
        str name = scope_pointer_name(&b->k, tensor);
        slots_put(row, "pack", scope_name(&b->k, TEXT(b->sh, "$_pack", name).p));
        slots_put(row, "element_type",
                  str_view(dtype_info(sheet_dtype(b->sh, b->st, tensor))->cuda));
        slots_put(row, "place", place);
        slots_put(row, "packed", maps.out[i].packed);
        *used = TEXT(b->sh, "$ $ $", *used, place, maps.out[i].packed);
    }
    slots_put(s, "value_type", b->real ? S("float") : S("long long"));
    return true;
}

static bool write_finish(struct buckets *b, struct memory m) {
    struct slots s;
    str used, all = results_plan(b, b->results);
    if (!begin_kernel(b, &s, "finish") || !put_results(b, &s, SIZE_MAX, S(""), &used))
        return false;
    slots_put(&s, "total", scope_int_plan(&b->k, "total", all));
    slots_put(&s, "value", value_of_word(b));
    slots_put(&s, "coordinates",
              place_coordinates(&b->k, b->fold, b->results, S("element"), false, used));
    m.params = TEXT(b->sh, "const $", m.params);
    if (b->mean)
        m.params = S("const double *sums, const int *terms");
    return end_kernel(b, &s, "buckets/finish.cu", grid_for(b, all, b->block), S(""), m);
}

static bool write_added(struct buckets *b) {
    struct memory m = clear_memory(b);
    return write_add(b, m) && write_finish(b, m);
}

/* ---- sorted terms ---- */

/* Names of what sorts, and of its memory. */
struct sorted {
    str count, offset, move, search;
    str keys[2], order[2], digits, totals, starts;
    str terms, results, tiles; /* plan syntax: numbers of terms, of results that they belong to */
    int passes;
    bool within; /* every term belongs to a result: no key says that it belongs to none */
};

/* The bits of the largest key, eight a pass. */
static int passes_for(double keys) {
    int passes = 1;
    while (ldexp(1, 8 * passes) < keys)
        passes++;
    return passes;
}

/* `extent - 1`, or less by itself. */
static bool is_below(const struct expr *extent, const struct assumption *a) {
    const struct expr *n = a->number;
    return (a->op == EXPR_LT && expr_same(n, extent)) ||
           (a->op == EXPR_LE && n->kind == EXPR_SUB && expr_same(n->args[0], extent) &&
            expr_is_number(n->args[1], 1));
}

/* Assumed, at whatever shape, to be the number of a result. */
static bool is_within(const struct buckets *b, const struct expr *key, const struct expr *extent) {
    const struct task *t = b->in->task;
    bool above = false, below = false;
    for (size_t i = 0; i < t->nassumptions; i++) {
        const struct assumption *a = &t->assumptions[i];
        if (key->kind != EXPR_READ || a->kind != ASSUME_COMPARE || a->tensor != key->ref)
            continue;
        above |= (a->op == EXPR_GE && expr_is_number(a->number, 0)) ||
                 (a->op == EXPR_GT && expr_is_number(a->number, -1));
        below |= is_below(extent, a);
    }
    return above && below;
}

static bool all_within(const struct buckets *b) {
    for (size_t i = 0; i < b->by.npins; i++)
        if (!is_within(b, b->by.pin[i].key,
                       statement_extent(b->in->task, b->fold, b->by.pin[i].var)))
            return false;
    return true;
}

static void name_sorted(struct buckets *b, struct sorted *o) {
    struct sheet *sh = b->sh;
    o->count = sheet_shared_name(sh, S("count_keys"), "count_keys");
    o->offset = sheet_shared_name(sh, S("offset_keys"), "offset_keys");
    o->move = sheet_shared_name(sh, S("move_keys"), "move_keys");
    o->search = sheet_shared_name(sh, S("find_buckets"), "find_buckets");
    for (int i = 0; i < 2; i++) {
        o->keys[i] =
            sheet_scratch(sh, i ? S("keys_sorted") : S("keys"), TEXT(sh, "[$] : i32", o->terms));
        o->order[i] =
            sheet_scratch(sh, i ? S("order_sorted") : S("order"), TEXT(sh, "[$] : i32", o->terms));
    }
    o->digits = sheet_scratch(sh, S("digits"), TEXT(sh, "[256, $] : i32", o->tiles));
    o->totals = sheet_scratch(sh, S("totals"), S("[256] : i32"));
    o->starts = sheet_scratch(sh, S("starts"), TEXT(sh, "[$ + 1] : i32", o->results));
}

static bool put_sort(struct buckets *b, const struct sorted *o) {
    struct sheet *sh = b->sh;
    struct slots s;
    slots_init(&s, sh->mem);
    slots_put(&s, "count", o->count);
    slots_put(&s, "offset", o->offset);
    slots_put(&s, "move", o->move);
    slots_put(&s, "search", o->search);
    slots_put(&s, "before", sheet_shared_name(sh, S("sum_before"), "sum_before"));
    for (int pass = 0; pass < o->passes; pass++) {
        str from = o->keys[pass % 2], to = o->keys[!(pass % 2)], shift = sheet_number(sh, 8 * pass);
        str order = o->order[pass % 2], order_to = o->order[!(pass % 2)];
        str counted = TEXT(sh, "launch $<<<$, 256>>>($, $, $, $, $)", o->count, o->tiles, from,
                           o->digits, o->terms, o->tiles, shift);
        str moved =
            TEXT(sh, "launch $<<<$, 256>>>($, $, $, $, $, $, $, $, $)", o->move, o->tiles, from,
                 order, o->digits, o->totals, to, order_to, o->terms, o->tiles, shift);
        sheet_step(sh, "%.*s", STR_ARG(counted));
        sheet_step(sh, "launch %.*s<<<256, 256>>>(%.*s, %.*s, %.*s)", STR_ARG(o->offset),
                   STR_ARG(o->digits), STR_ARG(o->totals), STR_ARG(o->tiles));
        sheet_step(sh, "%.*s", STR_ARG(moved));
    }
    str found =
        TEXT(sh, "launch $<<<min(ceil_div($ + 1, 256), 4096), 256>>>($, $, $, $)", o->search,
             o->results, o->keys[o->passes % 2], o->starts, o->terms, o->results);
    sheet_step(sh, "%.*s", STR_ARG(found));
    return sheet_function(sh, "buckets/sort.cu", &s);
}

static bool write_keys(struct buckets *b, const struct sorted *o) {
    struct slots s;
    struct memory m = {S("int *keys"), o->keys[0]};
    uint32_t over = b->by.shared | b->by.reduced, to = b->by.shared | b->by.pinned;
    if (!begin_kernel(b, &s, "keys"))
        return false;
    str used = put_pins(b, &s, !o->within);
    /* A result's number by the keys themselves, which are in range. */
    for (size_t i = 0; i < b->by.npins; i++)
        b->k.var[b->by.pin[i].var] = b->key[i];
    str bucket = number_text(b, to);
    used = TEXT(b->sh, "$ $", used, bucket);
    slots_put(&s, "bucket", bucket);
    slots_flag(&s, "within", o->within);
    if (!o->within)
        slots_put(&s, "none", scope_int_plan(&b->k, "none", o->results));
    slots_put(&s, "total", scope_int_plan(&b->k, "total", o->terms));
    slots_put(&s, "coordinates", digits_text(b, S("element"), over, over, used));
    return end_kernel(b, &s, "buckets/keys.cu", grid_for(b, o->terms, b->block), S(""), m);
}

/* The column that neighbouring threads have next to each other; SIZE_MAX: none. */
static size_t last_column(const struct buckets *b) {
    size_t last = b->fold->nindex - 1;
    return b->columns >> last & 1 ? last : SIZE_MAX;
}

/* Read at neighbouring places for neighbouring columns. */
static bool is_row(const struct buckets *b, const struct expr *e) {
    size_t last = last_column(b);
    if (e->kind != EXPR_READ || !e->nargs || last == SIZE_MAX)
        return false;
    for (size_t i = 0; i + 1 < e->nargs; i++)
        if (expr_vars(e->args[i]) >> last & 1)
            return false;
    return expr_is_variable(e->args[e->nargs - 1], last);
}

/* The widest vector, of at most 16 bytes, that all rows of the term allow. */
static void fit_rows(const struct buckets *b, const struct expr *e, int64_t *width, bool *some) {
    if (is_row(b, e)) {
        const struct tensor *x = &b->in->task->tensors[e->ref];
        int64_t bytes = (int64_t)dtype_info(sheet_dtype(b->sh, b->st, e->ref))->bytes;
        *some = true;
        while (*width > 1 &&
               (*width * bytes > 16 || !inst_divides(b->in, x->extent[x->rank - 1], *width)))
            *width /= 2;
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        fit_rows(b, e->args[i], width, some);
}

static int64_t row_width(const struct buckets *b) {
    int64_t width = WIDTH_MOST;
    bool some = false;
    if (last_column(b) == SIZE_MAX)
        return 1;
    const struct expr *extent = statement_extent(b->in->task, b->fold, last_column(b));
    fit_rows(b, b->by.term, &width, &some);
    while (width > 1 && !inst_divides(b->in, extent, width))
        width /= 2;
    return some ? width : 1;
}

static void put_packs(struct buckets *b, struct slots *s, const struct expr *e, str *used) {
    if (is_row(b, e)) {
        for (size_t i = 0; i < b->k.nheld; i++)
            if (expr_same(b->k.held[i].e, e))
                return;
        struct slots *row = slots_row(s, "packs");
        const struct tensor *x = &b->in->task->tensors[e->ref];
        str pack = scope_name(&b->k, TEXT(b->sh, "$_pack", x->name).p);
        slots_put(row, "element_type",
                  str_view(dtype_info(sheet_dtype(b->sh, b->st, e->ref))->cuda));
        slots_put(row, "pack", pack);
        slots_put(row, "from", scope_pointer(&b->k, e->ref, false));
        str offset = scope_offset_text(&b->k, e);
        slots_put(row, "offset", offset);
        *used = sheet_join(b->sh, *used, " ", offset);
        scope_hold(&b->k, e, scope_unpacked(&b->k, e->ref, TEXT(b->sh, "$.at[v]", pack)));
        str plan = sheet_plan(b->sh, x->extent[x->rank - 1]);
        sheet_require_for(b->sh, "Rows are read as whole vectors.", "%.*s %% %lld == 0",
                          STR_ARG(plan), (long long)b->width);
        return;
    }
    for (size_t i = 0; i < e->nargs; i++)
        put_packs(b, s, e->args[i], used);
}

static str better_of(struct buckets *b, str into, str term) {
    if (!b->real)
        return fold_step(b->sh, b->fold, into, term);
    return fold_combine(b->sh, b->op, into, TEXT(b->sh, "(float)($)", term));
}

/* How a result is kept while its terms come. */
static void put_fold(struct buckets *b, struct slots *s, str term, bool warp) {
    struct sheet *sh = b->sh;
    bool sum = b->op == REDUCTION_SUM || b->mean, parts = sum && b->real;
    str value = parts ? S("fold[v].value()") : S("fold[v]");
    const char *join = sum ? "warp_sum" : b->op == REDUCTION_MAX ? "warp_maximum" : "warp_minimum";
    if (parts)
        sheet_helper(sh, "long_sum");
    if (warp) {
        sheet_helper(sh, join);
        value = TEXT(sh, "cp_$($)", str_view(join), value);
    }
    if (b->mean)
        value = TEXT(sh, warp ? "$ / (float)cp_warp_sum(count[v])" : "$ / (float)count[v]", value);
    slots_put(s, "type", parts ? S("cp_long_sum") : b->real ? S("float") : S("long long"));
    slots_put(s, "start", parts ? S("cp_long_sum()") : str_view(fold_identity(b->op, b->real)));
    slots_put(s, "take",
              parts ? TEXT(sh, "fold[v].add($);", term)
              : sum ? TEXT(sh, "fold[v] += $;", term)
                    : TEXT(sh, "fold[v] = $;", better_of(b, S("fold[v]"), term)));
    slots_put(s, "value", value);
}

static bool write_run(struct buckets *b, const struct sorted *o) {
    struct slots s;
    struct memory m = {S("const int *starts, const int *order"),
                       TEXT(b->sh, "$, $", o->starts, o->order[o->passes % 2])};
    bool warp = count_of(b, b->columns) < 32;
    size_t last = last_column(b);
    uint32_t over = b->by.shared | b->by.reduced, shared = b->by.shared;
    str results = results_plan(b, b->results), used, packs = S("");
    if (!begin_kernel(b, &s, "run"))
        return false;
    b->width = warp ? 1 : row_width(b);
    slots_number(&s, "width", b->width);
    slots_flag(&s, "warp", warp);
    slots_list(&s, "packs");
    str bucket = number_text(b, shared | b->by.pinned);
    if (b->width > 1)
        put_packs(b, &s, b->by.term, &packs);
    str one = last == SIZE_MAX ? S("") : b->k.var[last];
    if (b->width > 1)
        b->k.var[last] = TEXT(b->sh, "($ + v)", one);
    str condition = condition_text(b), term = scope_text(&b->k, b->by.term);
    slots_put(&s, "condition", condition);
    put_fold(b, &s, term, warp);
    if (!put_results(b, &s, last, one, &used))
        return false;
    used = TEXT(b->sh, "$ $ $ $ $", used, packs, bucket, condition, term);
    slots_put(&s, "bucket", bucket);
    slots_put(&s, "term_coordinates", digits_text(b, S("term"), over, b->by.reduced, used));
    str elements =
        b->width > 1 ? TEXT(b->sh, "$/$", results, sheet_number(b->sh, b->width)) : results;
    str flat =
        b->width > 1 ? TEXT(b->sh, "(element * $)", sheet_number(b->sh, b->width)) : S("element");
    slots_put(&s, "total", scope_int_plan(&b->k, "total", elements));
    slots_put(&s, "coordinates", place_coordinates(&b->k, b->fold, b->results, flat, false, used));
    str grid = TEXT(b->sh, "min(ceil_div($, $), 65536)", elements,
                    sheet_number(b->sh, warp ? b->block / 32 : b->block));
    return end_kernel(b, &s, "buckets/run.cu", grid, S(""), m);
}

static bool write_sorted(struct buckets *b) {
    struct sheet *sh = b->sh;
    double results = results_count(b, b->by.shared | b->by.pinned);
    bool within = all_within(b);
    struct sorted o = {.passes = passes_for(within ? results : results + 1), .within = within};
    o.terms = plan_of(b, b->by.shared | b->by.reduced);
    o.results = results_plan(b, b->by.shared | b->by.pinned);
    o.tiles = TEXT(sh, "ceil_div($, 2048)", o.terms);
    sheet_require_for(sh, SCOPE_INT_WHY, "%.*s <= %lld", STR_ARG(o.terms),
                      (long long)SCOPE_INT_MAX);
    if (o.passes < 4)
        sheet_require_for(sh, "The numbers of results have as many bits as are sorted by.",
                          "%.*s %s %lld", STR_ARG(o.results), within ? "<=" : "<",
                          1LL << (8 * o.passes));
    name_sorted(b, &o);
    return write_keys(b, &o) && put_sort(b, &o) && write_run(b, &o);
}

/* ---- the step ---- */

static bool fits_shared(const struct buckets *b) {
    return results_count(b, b->results & ~b->by.shared) * (double)kept_bytes(b) <=
           (double)sheet_shared_most(b->sh);
}

static bool is_narrow(const struct buckets *b) {
    enum dtype t = sheet_dtype(b->sh, b->st, b->fold->tensor);
    bool alone = b->in->task->nstatements == 1;
    bool small = t == DTYPE_I32 || t == DTYPE_I8 || t == DTYPE_U8;
    return b->op == REDUCTION_SUM && !b->real && alone && small;
}

static void put_note(struct buckets *b) {
    static const char *const ways[] = {
        [WAY_GLOBAL] = "each term is added to its result in memory",
        [WAY_SHARED] = "blocks add terms up in shared memory, then to the results in memory",
        [WAY_SORTED] = "terms are sorted by result, and folded in their order",
    };
    str name = b->in->task->tensors[b->fold->tensor].name;
    const struct used all[] = {{"block", b->block}, {"buckets", b->way}, {"generic-lanes", 0}};
    sheet_note(b->sh, "buckets: %.*s: %s; %lld threads a block.", STR_ARG(name), ways[b->way],
               (long long)b->block);
    sheet_used(b->sh, all, sizeof all / sizeof *all);
}

static bool describe(struct buckets *b) {
    b->fold = fold_find(b->in->task);
    if (!b->fold || !recognise(b->fold, &b->by))
        return false;
    b->op = b->fold->body->reduce->op;
    b->mean = b->op == REDUCTION_MEAN;
    /* The largest of no whole numbers is -inf where it is kept as a float. */
    enum dtype kept = sheet_dtype(b->sh, b->st, b->fold->tensor);
    b->real = b->mean || b->by.term->value_kind == VALUE_REAL ||
              (b->op != REDUCTION_SUM && dtype_info(kept)->kind == 'f');
    lay_out(b);
    return true;
}

static bool write(struct sheet *sh, const struct step *st) {
    struct buckets b = {.sh = sh, .st = st, .in = st->inst, .width = 1};
    if (!describe(&b))
        return err_set(sh->err, ERR_INPUT, "a fold by index that is none");
    b.narrow = is_narrow(&b);
    b.block = sheet_decision(sh, "block", 256);
    b.way = (enum way)sheet_decision(sh, "buckets", WAY_GLOBAL);
    if (b.way == WAY_SHARED && !fits_shared(&b))
        b.way = WAY_GLOBAL;
    if (b.way == WAY_SORTED && results_count(&b, b.by.shared | b.by.pinned) > (double)SCOPE_INT_MAX)
        b.way = WAY_GLOBAL;
    put_note(&b);
    return b.way == WAY_SORTED ? write_sorted(&b) : write_added(&b);
}

/* ---- for planners ---- */

static bool buckets_facts(const struct briefing *br, const struct step *st,
                          struct step_facts *out) {
    struct sheet sh = {.briefing = br, .mem = arena_new(1u << 20)};
    struct buckets b = {.sh = &sh, .st = st, .in = st->inst};
    bool known = describe(&b);
    if (known) {
        double own = results_count(&b, b.results & ~b.by.shared),
               terms = count_of(&b, b.by.reduced | b.columns);
        double elements = terms * count_of(&b, b.by.shared);
        out->value[STEP_RESULT_SHARE] = (int64_t)ceil(
            fmin(own * (double)kept_bytes(&b) * 100 / (double)sheet_shared_most(&sh), 1e6));
        out->value[STEP_TERMS_PER_RESULT] = (int64_t)(terms / fmax(own, 1));
        out->value[STEP_COLUMNS_EACH] = (int64_t)count_of(&b, b.columns);
        out->value[STEP_TERM_ELEMENTS] = (int64_t)log2(fmax(elements, 1));
    }
    arena_free(sh.mem);
    return known;
}

const struct family family_buckets = {.name = "buckets",
                                      .workload = WORKLOAD_GATHER,
                                      .facts = buckets_facts,
                                      .claim = claim,
                                      .write = write};
