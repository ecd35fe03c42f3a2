/* Rows copied by cp.async in pieces of 16 bytes: of a dense operand with aligned rows, or of a
 * copy.
 */
#include "agent/expert/contraction/contraction.h"

static bool fits(const struct con_config *g, size_t operand) {
    const struct contraction *c = g->c;
    const struct con_operand *o = &c->operands[operand];
    int piece = 16 / g->element;
    if (g->tile[operand].packed)
        return true;
    return con_type(c, o) == g->type && !c->taps && o->dense &&
           (o->k_contiguous || o->side_contiguous) &&
           o->k_contiguous == g->tile[operand].k_contiguous && inst_divides(c->in, o->row, piece) &&
           inst_divides(c->in, c->group[o->k_contiguous ? CON_K : o->side].total, piece);
}

/* ---- where rows come from ---- */

/* The plan promises rows of whole pieces. */
static void require_pieces(struct con_writer *w, const struct con_operand *o, int piece) {
    str row = sheet_plan(w->sh, o->row),
        run = sheet_plan(w->sh, w->c->group[o->k_contiguous ? CON_K : o->side].total);
    static const char why[] = "Rows are copied in whole pieces of 16 bytes.";
    sheet_require_for(w->sh, why, "%.*s %% %d == 0", STR_ARG(row), piece);
    if (!str_eq(row, run))
        sheet_require_for(w->sh, why, "%.*s %% %d == 0", STR_ARG(run), piece);
}

/* Slots pointer, offset (of the batch) and pitch (from one row to the next). */
static void put_dense(struct con_writer *w, const struct con_operand *o, struct slots *s) {
    require_pieces(w, o, 16 / w->g.element);
    slots_put(s, "pointer", scope_pointer(&w->k, o->read->ref, false));
    slots_put(s, "offset", con_batch_offset(w, o));
    slots_put(s, "pitch", scope_int(&w->k, o->k_contiguous ? o->side_stride : o->k_stride));
}

static void put_packed(struct con_writer *w, size_t operand, struct slots *s) {
    enum con_axis side = w->c->operands[operand].side;
    str pitch = scope_int_plan(&w->k, "pitch", con_pitch(w));
    str slab = con_slab(w, operand);
    slots_put(s, "pointer", w->packed[operand]);
    slots_put(s, "offset", slab.n ? TEXT(w->sh, "$ * $ * $", slab, w->total[side], pitch) : slab);
    slots_put(s, "pitch", pitch);
}

/* ---- the loader ---- */

/* The place of row `slow`, column `fast`; k in the list of taps becomes k in the copy. */
static void put_places(struct con_writer *w, size_t operand, struct slots *s) {
    const struct con_tile *t = &w->g.tile[operand];
    str first = slots_get(s, "first");
    str side = TEXT(w->sh, t->k_contiguous ? "$ + row" : "$ + col", first);
    str k = t->k_contiguous ? S("k0 + col") : S("k0 + row"), at_k = k;
    if (t->packed && w->listed) {
        str depth = con_depth(w);
        at_k = TEXT(w->sh, "taps[($) / $] * $ + ($) % $", k, depth, depth, k, depth);
    }
    slots_put(s, "at_side", side);
    slots_put(s, "at_k", k);
    slots_put(s, "source",
              TEXT(w->sh, "($)($) * $ + $", str_view(w->index), t->k_contiguous ? side : at_k,
                   slots_get(s, "pitch"), t->k_contiguous ? at_k : side));
    slots_put(s, "first_row", t->k_contiguous ? first : S("k0"));
    slots_put(s, "first_col", t->k_contiguous ? S("k0") : first);
    slots_put(s, "end_row", t->k_contiguous ? slots_get(s, "total") : S("k_end"));
    slots_put(s, "end_col", t->k_contiguous ? S("k_end") : slots_get(s, "total"));
}

static bool write_rows(struct con_writer *w, size_t operand, struct slots *row) {
    struct slots s = con_loader(w, operand);
    const struct con_tile *t = &w->g.tile[operand];
    int piece = 16 / w->g.element, pieces = t->row / piece, all = t->rows * pieces;
    bool cute = w->g.cute && !w->listed;
    if (t->packed)
        put_packed(w, operand, &s);
    else
        put_dense(w, &w->c->operands[operand], &s);
    put_places(w, operand, &s);
    slots_flag(&s, "cute", cute);
    slots_number(&s, "turns", (all + w->g.threads - 1) / w->g.threads);
    slots_number(&s, "pieces", pieces);
    slots_number(&s, "elements", piece);
    slots_put(&s, "pieces_end", all % w->g.threads ? sheet_number(w->sh, all) : S(""));
    con_put_loader(w, "contraction/load_rows.cu", &s, row);
    return cute ? sheet_function(w->sh, "contraction/copy_rows.cu", &s) : con_copy(w, 16);
}

const struct con_source con_source_rows = {.rank = 20, .fits = fits, .write = write_rows};
