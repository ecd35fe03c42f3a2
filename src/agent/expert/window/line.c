/* Windows of many places along the innermost axis, as filters of some hundred taps: multiply-adds
 * are the limit, so each element comes from shared memory once for all results of a thread. How
 * long the window is stays a size of the kernel. */
#include "agent/expert/window/window.h"
#include "spec/pattern.h"

enum { STEP = 16, ITEMS_LEAST = 2, WEIGHTS_MOST = 4 };

struct line {
    struct sheet *sh;
    const struct inst *in;
    const struct statement *fold;
    const struct window_shape *shape;
    size_t last, reduced;          /* variables */
    int64_t block, items, results; /* results: of a thread, two an item */
    const struct expr *weights[WEIGHTS_MOST];
    str names[WEIGHTS_MOST];
    size_t nweights;
    struct scope k;
    struct slots slots;
};

/* ---- what fits ---- */

/* Collects the reads of the term that go along with the window and are the same for neighbouring
 * results. False: the term is made of something else that moves along. */
static bool find_weights(const struct window_shape *shape, const struct expr *e, size_t last,
                         const struct expr **out, size_t *n) {
    uint32_t reduced = UINT32_C(1) << shape->axes[0].reduced, vars = expr_vars(e);
    if (expr_same(e, shape->taps[0].node) || !(vars & (reduced | UINT32_C(1) << last)))
        return true;
    if (e->kind == EXPR_INDEX || e->kind == EXPR_PAD || e->kind == EXPR_IF)
        return false;
    if (e->kind == EXPR_READ) {
        if ((vars >> last & 1) || e->value_kind != VALUE_REAL)
            return false;
        for (size_t i = 0; i < *n; i++)
            if (expr_same(out[i], e))
                return true;
        if (*n == WEIGHTS_MOST)
            return false;
        out[(*n)++] = e;
        return true;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (!find_weights(shape, e->args[i], last, out, n))
            return false;
    return true;
}

bool window_is_line(const struct statement *s, const struct window_shape *shape) {
    const struct expr *body = s->body, *weights[WEIGHTS_MOST];
    const struct window_tap *tap = &shape->taps[0];
    const struct window_axis *x = &shape->axes[0];
    size_t last = s->nindex - 1, n = 0;
    bool pads = tap->node->kind == EXPR_PAD;
    return shape->naxes == 1 && shape->ntaps == 1 && x->out == last && x->stride == 1 &&
           x->dilation == 1 && !body->reduce->guard && body->value_kind == VALUE_REAL &&
           tap->node->value_kind == VALUE_REAL &&
           tap->along[0].index == (int)tap->read->nargs - 1 &&
           (!pads || !(expr_vars(tap->node->args[1]) || expr_reads(tap->node->args[1]))) &&
           find_weights(shape, body->args[0], last, weights, &n);
}

/* ---- text ---- */

static const struct expr *extent_of(const struct line *l) {
    return l->in->task->tensors[l->fold->tensor].extent[l->last];
}

static const struct expr *size_of(const struct line *l) {
    return l->fold->body->reduce->vars[0].hi;
}

static uint32_t outer_vars(const struct line *l) {
    return (UINT32_C(1) << l->last) - 1;
}

static void name_variables(struct line *l) {
    for (size_t v = 0; v < l->fold->nindex; v++)
        l->k.var[v] = scope_variable(&l->k, v);
}

/* The tap at the column of the input, and whether it lies inside. */
static void put_input(struct line *l) {
    struct sheet *sh = l->sh;
    const struct window_tap *tap = &l->shape->taps[0];
    const struct tensor *x = &l->in->task->tensors[tap->read->ref];
    const struct tensor *y = &l->in->task->tensors[l->fold->tensor];
    struct expr *read = arena_new_of(sh->mem, struct expr), *map[TASK_MAX_VARS] = {NULL};
    size_t k = tap->read->nargs - 1;
    str type = l->k.wide ? S("unsigned long long") : S("unsigned"), inside = S("");
    map[l->reduced] = expr_number(sh->mem, 0);
    l->k.var[l->last] = S("(corner + place)");
    slots_put(&l->slots, "column",
              scope_text(&l->k, expr_replace(tap->read->args[k], map, sh->mem)));
    *read = *tap->read;
    read->args = arena_array(sh->mem, struct expr *, read->nargs);
    for (size_t d = 0; d < read->nargs; d++)
        read->args[d] = d == k ? expr_variable(sh->mem, l->fold->nvars) : tap->read->args[d];
    l->k.var[l->fold->nvars] = S("column");
    for (size_t d = 0; d < read->nargs; d++) {
        const struct expr *e = tap->read->args[d];
        bool bare = e->kind == EXPR_INDEX && e->ref < l->fold->nindex &&
                    expr_same(x->extent[d], y->extent[e->ref]);
        if (d != k && (bare || tap->sure))
            continue;
        inside = sheet_join(sh, inside, " && ",
                            TEXT(sh, "($)($) < ($)$", type, scope_text(&l->k, read->args[d]), type,
                                 scope_int(&l->k, x->extent[d])));
    }
    slots_put(&l->slots, "inside", inside);
    slots_put(&l->slots, "input", scope_text(&l->k, read));
    slots_put(&l->slots, "padding",
              tap->node->kind == EXPR_PAD ? scope_text(&l->k, tap->node->args[1]) : S("0.0f"));
}

static void put_weights(struct line *l) {
    str at = scope_name(&l->k, "tap_at");
    slots_list(&l->slots, "weights");
    for (size_t i = 0; i < l->nweights; i++) {
        struct slots *row = slots_row(&l->slots, "weights");
        str x = l->in->task->tensors[l->weights[i]->ref].name;
        l->names[i] = sheet_name(l->sh, TEXT(l->sh, "$_kept", x));
        l->k.var[l->reduced] = at;
        slots_put(row, "weight", l->names[i]);
        slots_put(row, "at", at);
        slots_number(row, "number", (int64_t)i);
        slots_put(row, "value", scope_text(&l->k, l->weights[i]));
    }
    slots_number(&l->slots, "weight_count", (int64_t)l->nweights);
}

/* The term at a place of the window, combined with a result. */
static void put_step(struct line *l) {
    struct sheet *sh = l->sh;
    const struct expr *body = l->fold->body;
    scope_hold(&l->k, l->shape->taps[0].node, S("part[result + tap]"));
    for (size_t i = 0; i < l->nweights; i++)
        scope_hold(&l->k, l->weights[i], TEXT(sh, "$_here[tap]", l->names[i]));
    str term = scope_text(&l->k, body->args[0]);
    bool bare = str_find(term, S(" ")) == term.n;
    bool plain = body->reduce->op == REDUCTION_MAX || body->reduce->op == REDUCTION_MIN ||
                 (body->args[0]->kind == EXPR_MUL && body->reduce->op != REDUCTION_PROD);
    slots_put(
        &l->slots, "combined",
        fold_step(sh, l->fold, S("acc[result]"), bare || plain ? term : TEXT(sh, "($)", term)));
    slots_put(&l->slots, "result",
              body->reduce->op == REDUCTION_MEAN ? S("sum / (float)size") : S("sum"));
}

static bool put_results(struct line *l) {
    struct maps maps;
    name_variables(l);
    slots_put(&l->slots, "along", l->k.var[l->last]);
    slots_put(&l->slots, "extent", scope_int(&l->k, extent_of(l)));
    slots_list(&l->slots, "stores");
    bool ok = maps_write(&l->k, l->fold, S("value"), &l->slots, &maps);
    for (size_t i = 0; ok && i < maps.n; i++) {
        str to = scope_pointer(&l->k, maps.out[i].tensor, true), at = scope_place_text(&l->k);
        slots_put(slots_row(&l->slots, "stores"), "store",
                  TEXT(l->sh, "$[$] = $", to, at, maps.out[i].packed));
    }
    return ok;
}

/* ---- the kernel ---- */

static void launch(struct line *l, str across) {
    struct sheet *sh = l->sh;
    str outer = place_count(sh, l->in, l->fold, outer_vars(l)), args = scope_args(&l->k);
    str step = sheet_number(sh, STEP), size = sheet_plan(sh, size_of(l)),
        whole = TEXT(sh, "ceil_div($, $)*$", size, step, step),
        places = TEXT(sh, "($ + $)", sheet_number(sh, l->block * l->results), whole);
    str shared = TEXT(sh, "4*($*$ + $ + ceil_div($, 32)*4)", sheet_number(sh, (int64_t)l->nweights),
                      whole, places, places);
    sheet_require(sh, "%.*s >= 1", STR_ARG(size));
    sheet_require(sh, "%.*s <= %d", STR_ARG(size), WINDOW_LINE);
    sheet_step(sh, "launch %.*s<<<%.*s*%.*s, %lld, %.*s>>>(%.*s)", STR_ARG(l->k.name),
               STR_ARG(across), STR_ARG(outer), (long long)l->block, STR_ARG(shared),
               STR_ARG(args));
}

static void put_note(struct line *l) {
    const struct used all[] = {{"block", l->block}, {"items", l->items}, {"tile-w", l->block},
                               {"halo", 1},         {"vector-width", 1}, {"separable", 0},
                               {"cache-hint", 0}};
    sheet_note(l->sh,
               "window: %.*s: %lld threads a block, %lld neighbouring results a thread, through "
               "which the input moves in registers",
               STR_ARG(l->in->task->tensors[l->fold->tensor].name), (long long)l->block,
               (long long)l->results);
    sheet_used(l->sh, all, sizeof all / sizeof *all);
}

bool window_write_line(struct sheet *sh, const struct step *st, const struct statement *fold,
                       const struct window_shape *shape) {
    struct line *l = arena_new_of(sh->mem, struct line);
    *l = (struct line){.sh = sh,
                       .in = st->inst,
                       .fold = fold,
                       .shape = shape,
                       .last = fold->nindex - 1,
                       .reduced = shape->axes[0].reduced};
    l->block = sheet_decision(sh, "block", 256);
    l->items = sheet_decision(sh, "items", 8);
    l->items = l->items < ITEMS_LEAST ? ITEMS_LEAST : l->items;
    l->results = 2 * l->items;
    find_weights(shape, fold->body->args[0], l->last, l->weights, &l->nweights);
    put_note(l);
    struct slots *s = &l->slots;
    slots_init(s, sh->mem);
    scope_init(&l->k, sh, st, TEXT(sh, "window_$", l->in->task->tensors[fold->tensor].name).p);
    l->k.statement = fold;
    name_variables(l);
    slots_put(s, "kernel", l->k.name);
    slots_put(s, "index", str_view(scope_index_type(&l->k)));
    slots_put(s, "suffix", l->k.wide ? S("LL") : S(""));
    slots_put(s, "identity", fold_start(fold));
    slots_number(s, "block", l->block);
    slots_number(s, "items", l->results);
    slots_number(s, "step", STEP);
    slots_number(s, "results", l->block * l->results);
    slots_put(s, "size", scope_int(&l->k, size_of(l)));
    put_weights(l);
    put_input(l);
    put_step(l);
    bool ok = put_results(l);
    str used = slots_texts(sh, s), across = TEXT(sh, "ceil_div($, $)", sheet_plan(sh, extent_of(l)),
                                                 sheet_number(sh, l->block * l->results));
    name_variables(l);
    str tiles = scope_int_plan(&l->k, "tiles_across", across);
    slots_put(s, "tiles_across", l->k.wide ? TEXT(sh, "(int)$", tiles) : tiles);
    slots_put(s, "coordinates",
              place_coordinates(&l->k, fold, outer_vars(l), S("outer"), true, used));
    slots_put(s, "params", scope_params(&l->k));
    launch(l, across);
    return ok && sheet_put(sh, "window/line.cu", s, &sh->kernels);
}
