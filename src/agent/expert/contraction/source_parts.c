/* Tiles of an operand in parts, as boxes of the tensor copy engine: two parts at a time, of the f16
 * ones or of the bf16 ones. */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g, size_t operand) {
    (void)operand;
    return g->format == CON_F16X3;
}

static str put_map(struct con_writer *w, size_t operand, str packed, const char *kind, str name) {
    const struct con_tile *t = &w->g.tile[operand];
    str text = sheet_printf(w->sh, "tiled(%.*s, box=[%d, %d, 1], swizzle=128)", STR_ARG(packed),
                            t->row, t->rows);
    str parameter = TEXT(w->sh, "$_$", str_view(kind), name);
    str map = sheet_shared_name(w->sh, text, parameter.p);
    sheet_memory(w->sh, "tensormap %.*s = %.*s", STR_ARG(map), STR_ARG(text));
    w->params = TEXT(w->sh, "$const __grid_constant__ CUtensorMap $, ", w->params, parameter);
    w->args = TEXT(w->sh, "$$, ", w->args, map);
    return parameter;
}

static bool write_parts(struct con_writer *w, size_t operand, struct slots *row) {
    const struct con_operand *o = &w->c->operands[operand];
    struct slots s = con_loader(w, operand);
    str slab = con_slab(w, operand), name = slots_get(&s, "name"), shift = w->shift[operand];
    slots_put(&s, "map", put_map(w, operand, w->packed[operand], "map", name));
    slots_put(&s, "wide_map", put_map(w, operand, w->wide[operand], "wide_map", name));
    w->params = TEXT(w->sh, "$const int *__restrict__ $, ", w->params, shift);
    w->args = TEXT(w->sh, "$$, ", w->args, shift);
    slots_put(&s, "slab", slab.n ? slab : S("0"));
    slots_put(&s, "wide", w->k.wide ? S("(int)") : S(""));
    slots_put(&s, "shift", shift);
    slots_put(&s, "exponents", o->side == CON_M ? S("exponents_m") : S("exponents_n"));
    slots_number(&s, "number", (int64_t)con_number(w->c, operand));
    slots_put(&s, "tile", o->side == CON_M ? S("tile_m") : S("tile_n"));
    slots_put(&s, "tiles", o->side == CON_M ? S("tiles_m") : S("tiles_n"));
    slots_put(&s, "depth", w->total[CON_K]);
    slots_number(&s, "second_at", (int64_t)(w->g.tile[operand].at + w->g.tile[operand].bytes / 2));
    slots_put(row, "load", sheet_lines(w->sh, "contraction/load_parts.cu", &s));
    slots_put(row, "shift", sheet_lines(w->sh, "contraction/load_shift.cu", &s));
    return sheet_function(w->sh, "contraction/box.cu", &s);
}

const struct con_source con_source_parts = {.rank = 5, .fits = fits, .write = write_parts};
