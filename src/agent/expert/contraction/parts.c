/* Operands of class fp32 in parts, for products in three f16 ones.
 *
 * One kernel an operand copies it into rows along k, in tiles of as many rows as a block multiplies
 * and 64 of k. It scales each tile by a power of two and writes every number as two f16 numbers,
 * which hold 22 bits of it, and the tile's exponent. Where a tile has a number that f16 does not
 * hold so well (less than 2^-28 of the largest one, infinity, NaN), the exponent is GEMM_WIDE, and
 * whatever it is multiplied with is multiplied as six bf16 products.
 *
 * Another kernel writes the three bf16 numbers, for the tiles of k that have such a number in any
 * operand. On most data there are none, and it ends at once.
 *
 * Which form a tile has is found exactly, so it decides how fast a product is and never how
 * accurate. */
#include "agent/expert/contraction/contraction.h"

enum {
    DEPTH = 64,       /* of k, in a tile */
    GROUP = 8,        /* tiles that a block of the second kernel writes (pack_wide.cu) */
    PARTS_BYTES = 10, /* of a number, in five parts */
};
#define PARTS_MOST 3.75e9 /* bytes: the simulator has 4 GiB for the workspaces of a plan */

const char *con_refuse_parts(const struct con_config *g) {
    const struct contraction *c = g->c;
    double bytes = 0;
    for (size_t i = 0; i < c->noperands; i++) {
        struct con_group batch;
        con_batch(c, &c->operands[i], &batch);
        bytes += PARTS_BYTES * (double)batch.count * (double)c->group[c->operands[i].side].count *
                 (double)c->group[CON_K].count;
    }
    return g->cute              ? "CuTe has no such main loop"
           : g->sh->before      ? "the plan has no room for their workspaces"
           : bytes > PARTS_MOST ? "their workspaces would take more than 3.75 GB"
                                : NULL;
}

/* ---- what both kernels have in common ---- */

struct copy {             /* of an operand */
    struct con_writer *w; /* of the kernel */
    const struct con_operand *o;
    str tensor, tiles_k, tiles, slabs, pitch; /* the last four in the plan */
    int rows;
};

static struct copy begin_copy(struct con_writer *w, size_t operand) {
    struct copy c = {.w = con_copier(w, operand), .o = &w->c->operands[operand]};
    const struct con_group *g = c.w->c->group;
    c.rows = w->g.tile[operand].rows;
    c.tensor = w->c->in->task->tensors[c.o->read->ref].name;
    c.slabs = sheet_plan(w->sh, g[CON_BATCH].total);
    c.pitch = con_pitch(w);
    c.tiles_k = TEXT(w->sh, "ceil_div($, $)", sheet_plan(w->sh, g[CON_K].total),
                     sheet_number(w->sh, DEPTH));
    c.tiles = TEXT(w->sh, "ceil_div($, $)", sheet_plan(w->sh, g[c.o->side].total),
                   sheet_number(w->sh, c.rows));
    return c;
}

static str times(struct con_writer *w, str factor) {
    return str_is(factor, "1") ? S("") : TEXT(w->sh, "$*", factor);
}

/* The slots of a block's tile, but for `parameters`. */
static struct slots put_tile(struct copy *c) {
    struct con_writer *w = c->w;
    struct slots s = con_slots(w);
    bool along_k = con_copies_along_k(c->o);
    int across = along_k ? DEPTH : c->rows, step = 256 / across;
    str fast = sheet_printf(w->sh, "tid %% %d", across),
        slow = sheet_printf(w->sh, "turn * %d + tid / %d", step, across);
    str pitch = scope_int_plan(&w->k, "pitch", c->pitch);
    con_put_copied(w, c->o, DTYPE_F32, along_k ? slow : fast, along_k ? fast : slow,
                   w->total[CON_K], &s);
    slots_put(&s, "tensor", c->tensor);
    slots_number(&s, "rows", c->rows);
    slots_number(&s, "turns", c->rows * DEPTH / 256);
    slots_put(&s, "depth", w->total[CON_K]);
    slots_put(&s, "total", w->total[c->o->side]);
    slots_put(&s, "pitch", pitch);
    return s;
}

static str put_memory(struct copy *c, const char *kind, int parts, const char *type) {
    struct con_writer *w = c->w;
    str side = sheet_plan(w->sh, w->c->group[c->o->side].total);
    return sheet_scratch(w->sh, TEXT(w->sh, "$_$", str_view(kind), c->tensor),
                         sheet_printf(w->sh, "[%.*s%d, %.*s, %.*s] : %s",
                                      STR_ARG(times(w, c->slabs)), parts, STR_ARG(side),
                                      STR_ARG(c->pitch), type));
}

/* ---- f16 parts and exponents ---- */

static void require_int(struct copy *c) {
    str side = sheet_plan(c->w->sh, c->w->c->group[c->o->side].total);
    if (!c->w->k.wide)
        sheet_require_for(c->w->sh, SCOPE_INT_WHY, "%.*s%.*s*%.*s <= 1073741824",
                          STR_ARG(times(c->w, c->slabs)), STR_ARG(side), STR_ARG(c->pitch));
}

static bool pack_halves(struct con_writer *w, size_t operand) {
    struct copy c = begin_copy(w, operand);
    if (!con_begin(c.w, TEXT(w->sh, "pack_$", c.tensor), 1u << c.o->side | 1u << CON_K))
        return false;
    struct slots s = put_tile(&c);
    slots_put(&s, "parameters", scope_params(&c.w->k));
    str args = scope_args(&c.w->k);
    require_int(&c);
    w->packed[operand] = put_memory(&c, "packed", 2, "f16");
    w->shift[operand] = sheet_scratch(w->sh, TEXT(w->sh, "shift_$", c.tensor),
                                      TEXT(w->sh, "[$, $, $] : i32", c.slabs, c.tiles_k, c.tiles));
    slots_put(&s, "packed", w->packed[operand]);
    slots_put(&s, "shift", w->shift[operand]);
    str launch = sheet_printf(w->sh, "launch %.*s<<<%.*s%.*s*%.*s, 256>>>(%.*s, %.*s, %.*s)",
                              STR_ARG(c.w->k.name), STR_ARG(times(w, c.slabs)), STR_ARG(c.tiles_k),
                              STR_ARG(c.tiles), STR_ARG(args), STR_ARG(w->packed[operand]),
                              STR_ARG(w->shift[operand]));
    if (con_is_once(c.w))
        sheet_once(w->sh, "%.*s", STR_ARG(launch));
    else
        sheet_step(w->sh, "%.*s", STR_ARG(launch));
    return sheet_put(w->sh, "contraction/pack_parts.cu", &s, &w->sh->kernels);
}

/* ---- bf16 parts where they are needed ---- */

static bool same_batch(const struct con_group *a, const struct con_group *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = a->at[i].var == b->at[i].var && a->at[i].part == b->at[i].part;
    return same;
}

/* The exponents of an operand in this tile of k: those of the same batch, or of all batches where
 * the operands have other ones. */
static void put_shifts(struct copy *c, const struct con_writer *w, size_t operand,
                       struct slots *row) {
    struct con_writer *own = c->w;
    const struct con_operand *o = &w->c->operands[operand];
    struct con_group batch;
    con_batch(w->c, o, &batch);
    str tiles = sheet_printf(own->sh, "((%.*s + %d) / %d)", STR_ARG(own->total[o->side]),
                             w->g.tile[operand].rows - 1, w->g.tile[operand].rows);
    bool same = same_batch(&batch, &own->c->group[CON_BATCH]);
    str slabs = same ? S("") : scope_int(&own->k, batch.total);
    slots_put(row, "shift", w->shift[operand]);
    slots_put(row, "count", same ? tiles : TEXT(own->sh, "$ * $", slabs, tiles));
    slots_put(row, "shift_at",
              same ? TEXT(own->sh, "(slab * k_tiles + k_tile) * $ + at", tiles)
                   : TEXT(own->sh, "(($)(at / $) * k_tiles + k_tile) * $ + at % $",
                          str_view(own->index), tiles, tiles, tiles));
}

static bool pack_wide(struct con_writer *w, size_t operand) {
    struct copy c = begin_copy(w, operand);
    if (!con_begin(c.w, TEXT(w->sh, "widen_$", c.tensor), 1u << CON_M | 1u << CON_N | 1u << CON_K))
        return false;
    struct slots s = put_tile(&c);
    str parameters = S(""), shifts = S("");
    for (size_t i = 0; i < w->c->noperands; i++) {
        put_shifts(&c, w, i, slots_row(&s, "shifts"));
        parameters = TEXT(w->sh, "$const int *__restrict__ $, ", parameters, w->shift[i]);
        shifts = TEXT(w->sh, "$$, ", shifts, w->shift[i]);
    }
    w->wide[operand] = put_memory(&c, "wide", 3, "bf16");
    slots_put(&s, "packed", w->wide[operand]);
    slots_put(&s, "shift_parameters", parameters);
    slots_put(&s, "parameters", scope_params(&c.w->k));
    str args = scope_args(&c.w->k);
    sheet_step(w->sh, "launch %.*s<<<%.*s%.*s*ceil_div(%.*s, %d), 256>>>(%.*s, %.*s%.*s)",
               STR_ARG(c.w->k.name), STR_ARG(times(w, c.slabs)), STR_ARG(c.tiles_k),
               STR_ARG(c.tiles), GROUP, STR_ARG(args), STR_ARG(shifts), STR_ARG(w->wide[operand]));
    return sheet_put(w->sh, "contraction/pack_wide.cu", &s, &w->sh->kernels);
}

bool con_pack_parts(struct con_writer *w) {
    bool ok = true;
    w->sh->half = w->sh->bfloat = true;
    ok = sheet_function(w->sh, "contraction/shift.cu", &(struct slots){.n = 0});
    for (size_t i = 0; i < w->c->noperands && ok; i++)
        ok = pack_halves(w, i);
    for (size_t i = 0; i < w->c->noperands && ok; i++)
        ok = pack_wide(w, i);
    return ok;
}
