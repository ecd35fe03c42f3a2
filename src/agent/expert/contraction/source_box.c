/* Tiles as boxes of the tensor copy engine: of the tensor itself where its rows run along k, of a
 * copy otherwise. One thread starts the copies of a stage; they arrive at the stage's barrier. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g, size_t operand) {
    (void)operand;
    return g->math->boxes;
}

/* ---- tensor maps ---- */

static str extents_between(struct con_writer *w, const struct con_operand *o, int from, int to) {
    const struct tensor *t = &w->c->in->task->tensors[o->read->ref];
    str s = S("");
    for (int d = from; d < to; d++)
        s = sheet_join(w->sh, s, "*", sheet_plan(w->sh, t->extent[d]));
    return s.n ? s : S("1");
}

static str map_text(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    const struct con_tile *t = &w->g.tile[operand];
    str box = sheet_printf(w->sh, "box=[%d, %d, 1]", t->row, t->rows);
    if (t->packed)
        return TEXT(w->sh, "tiled($, $, swizzle=128)", w->packed[operand], box);
    str k = extents_between(w, o, o->k_first, o->k_last + 1);
    str side = extents_between(w, o, o->first, o->last + 1);
    str lead = extents_between(w, o, 0, o->first < o->k_first ? o->first : o->k_first);
    str tensor = sheet_tensor(w->sh, w->step, o->read->ref);
    str inner = t->k_contiguous ? k : side, rows = t->k_contiguous ? side : k;
    sheet_require(w->sh, "%.*s %% 8 == 0", STR_ARG(inner));
    return TEXT(w->sh, "tiled($, $, shape=[$, $, $], swizzle=128)", tensor, box, inner, rows, lead);
}

/* The same map is one in the plan, whichever products read it. */
static void put_map(struct con_writer *w, size_t operand, str parameter) {
    str text = map_text(w, operand), map = sheet_shared_name(w->sh, text, parameter.p);
    sheet_memory(w->sh, "tensormap %.*s = %.*s", STR_ARG(map), STR_ARG(text));
    w->params = TEXT(w->sh, "$const __grid_constant__ CUtensorMap $, ", w->params, parameter);
    w->args = TEXT(w->sh, "$$, ", w->args, map);
}

/* ---- copies ---- */

static str slab_text(struct con_writer *w, size_t operand, int part) {
    int parts = con_formats[w->g.format].parts;
    str slab = con_slab(w, operand), wide = w->k.wide ? S("(int)") : S("");
    if (!slab.n)
        return sheet_number(w->sh, part);
    if (parts > 1)
        slab = sheet_printf(w->sh, "(%d * %.*s + %d)", parts, STR_ARG(slab), part);
    return TEXT(w->sh, "$$", wide, slab);
}

static bool write_box(struct con_writer *w, size_t operand, struct slots *row) {
    struct slots s = con_loader(w, operand);
    const struct con_tile *t = &w->g.tile[operand];
    size_t bytes = (size_t)(t->rows * t->row) * (size_t)w->g.element, boxes = t->bytes / bytes;
    str first = TEXT(w->sh, "$$", w->k.wide ? S("(int)") : S(""), slots_get(&s, "first"));
    put_map(w, operand, TEXT(w->sh, "map_$", slots_get(&s, "name")));
    for (size_t i = 0; i < boxes; i++) { /* parts of a split operand, or pieces of its side */
        struct slots *box = slots_row(&s, "boxes");
        bool across = !t->k_contiguous;
        str beside = across && i
                         ? sheet_printf(w->sh, "%.*s + %zu", STR_ARG(first), i * (size_t)t->row)
                         : first;
        slots_put(box, "inner", across ? beside : S("k0"));
        slots_put(box, "row", across ? S("k0") : first);
        slots_put(box, "slab", slab_text(w, operand, across ? 0 : (int)i));
        slots_number(box, "at", (int64_t)(t->at + i * bytes));
    }
    slots_put(row, "load", sheet_lines(w->sh, "contraction/load_box.cu", &s));
    if (w->g.cute)
        sheet_include(w->sh, "cute/arch/copy_sm90_tma.hpp");
    return sheet_function(w->sh, "contraction/box.cu", &s);
}

const struct con_source con_source_box = {.rank = 10, .fits = fits, .write = write_box};
