/* One tile of the results a block, in an order in which neighbours share rows and columns, and all
 * of k that counts for the tile, or with split-k one part of it. */
#include "agent/expert/contraction/contraction.h"
#include "spec/domain.h"

/* The least (or most) value of an end of k's range in a tile, as text; empty: not known. */
static str range_end(struct con_writer *w, const struct expr *e, bool most) {
    struct affine f;
    if (!e || !affine_of(w->c->in, e, &f))
        return S("");
    for (int x = CON_M; x <= CON_N; x++) {
        const struct con_group *g = &w->c->group[x];
        str first = x == CON_M ? S("first_m") : S("first_n"),
            length = x == CON_M ? S("Tiles::BM") : S("Tiles::BN");
        if (!(f.vars & con_vars(g, 0)))
            continue;
        if (g->n != 1 || g->at[0].part != CON_WHOLE)
            return S("");
        bool last = (f.coef[g->at[0].var] > 0) == most;
        w->k.var[g->at[0].var] =
            last ? TEXT(w->sh, "(min($ + $, $) - 1)", first, length, w->total[x]) : first;
    }
    return scope_text(&w->k, e);
}

static void put_range(struct con_writer *w, struct slots *s) {
    bool skips = sheet_decision(w->sh, "skip", 0) != 0;
    str lo = range_end(w, skips ? w->c->k_lo : NULL, false),
        hi = range_end(w, skips ? w->c->k_hi : NULL, true);
    slots_put(s, "taps", S(""));
    slots_put(s, "k_from", S("0"));
    slots_put(s, "k_to", w->total[CON_K]);
    if (w->listed)
        con_list_taps(w, s);
    if (lo.n)
        slots_put(s, "k_from",
                  TEXT(w->sh, "(int)max($, ($)0) / Tiles::BK * Tiles::BK", lo, str_view(w->index)));
    if (hi.n)
        slots_put(s, "k_to", TEXT(w->sh, "(int)min($, $)", hi, w->total[CON_K]));
    slots_flag(s, "skips", lo.n || hi.n);
    w->skips = w->listed || lo.n || hi.n;
}

static str grid_text(struct con_writer *w) {
    const struct con_group *g = w->c->group;
    str m = sheet_plan(w->sh, g[CON_M].total), n = sheet_plan(w->sh, g[CON_N].total),
        batch = sheet_plan(w->sh, g[CON_BATCH].total);
    str grid = TEXT(w->sh, "ceil_div($, $)*ceil_div($, $)", m, sheet_number(w->sh, w->g.tile_m), n,
                    sheet_number(w->sh, w->g.tile_n));
    if (g[CON_BATCH].n)
        grid = TEXT(w->sh, "$*$", grid, batch);
    return w->g.split > 1 ? TEXT(w->sh, "[$, $]", grid, sheet_number(w->sh, w->g.split)) : grid;
}

static str write_tile(struct con_writer *w, struct slots *kernel) {
    struct slots s = con_slots(w);
    str flat;
    slots_number(&s, "raster", w->g.raster);
    slots_put(&s, "batch", con_decode(w, CON_BATCH, S("blockIdx.x / tiles"), &flat));
    put_range(w, &s);
    slots_put(kernel, "schedule", sheet_lines(w->sh, "contraction/tile.cu", &s));
    slots_put(kernel, "schedule_end", S(""));
    return grid_text(w);
}

const struct con_schedule con_schedule_tile = {.rank = 10, .write = write_tile};
