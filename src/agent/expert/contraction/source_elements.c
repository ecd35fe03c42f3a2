/* Operands element by element, each thread along what runs in memory: the place of an element, and
 * whether it exists, stand as text of the operand's own index expressions. Elements of 4 bytes that
 * need no conversion are copied in the background; others are held in registers until the tile in
 * use has been multiplied, and stored then. */
#include "agent/expert/contraction/contraction.h"

/* Threads run along k. */
static bool is_fast_along_k(struct con_writer *w, size_t operand) {
    const struct con_operand *o = &w->c->operands[operand];
    if (o->dense)
        return o->k_contiguous;
    if (w->g.format != CON_FP32)
        return w->g.tile[operand].k_contiguous;
    const struct con_group *g = &w->c->group[o->side];
    const struct expr *last = o->read->args[o->read->nargs - 1];
    return !(expr_vars(last) >> g->at[g->n - 1].var & 1);
}

/* Variables of the side and of k, each where it changes. */
static void put_variables(struct con_writer *w, size_t operand, bool k_fast, struct slots *s) {
    const struct con_operand *o = &w->c->operands[operand];
    bool by_rows = w->g.tile[operand].k_contiguous;
    str row = slots_get(s, "tile_row"), col = slots_get(s, "tile_col"), side, k;
    str first = slots_get(s, "first");
    str sides = con_decode(w, o->side, TEXT(w->sh, "$ + $", first, by_rows ? row : col), &side);
    str ks = con_decode(w, CON_K, TEXT(w->sh, "k0 + $", by_rows ? col : row), &k);
    slots_put(s, "exists", con_exists(w, o, side, k, S("k_end")));
    slots_put(s, "before", k_fast || w->decoded[o->side] ? S("") : sides);
    slots_put(s, "once", k_fast ? ks : S(""));
    slots_put(s, "each", k_fast ? sides : ks);
    w->decoded[o->side] |= !k_fast;
}

static bool write_elements(struct con_writer *w, size_t operand, struct slots *row) {
    struct slots s = con_loader(w, operand);
    const struct con_operand *o = &w->c->operands[operand];
    bool k_fast = is_fast_along_k(w, operand);
    bool copied = con_type(w->c, o) == w->g.type && w->g.element == 4;
    con_put_turns(w, operand, k_fast, &s);
    put_variables(w, operand, k_fast, &s);
    slots_put(&s, "pointer", scope_pointer(&w->k, o->read->ref, false));
    slots_put(&s, "offset", scope_offset_text(&w->k, o->read));
    slots_put(&s, "value", copied ? S("") : con_element(w, o, w->g.type));
    slots_put(&s, "zero", str_view(con_zero(w->g.type)));
    slots_put(&s, "unroll", copied ? S("8") : S(""));
    slots_put(&s, "why",
              !o->dense ? S("its places are computed")
              : copied  ? S("its rows are not aligned")
                        : S("it is converted or not aligned"));
    con_put_loader(w, "contraction/load_elements.cu", &s, row);
    if (copied)
        return con_copy(w, 4);
    slots_put(row, "keep", TEXT(w->sh, "keep_$(stage);", slots_get(&s, "name")));
    return true;
}

const struct con_source con_source_elements = {
    .rank = 40, .one_by_one = true, .awkward = true, .write = write_elements};
