/* Matrices, mma and wmma: the whole warp, at once. */
#include "sim/machine.h"

#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));

#define MAX_REGS 32u

static void pointers(const struct worker *w, const uint32_t *at, unsigned n, void **out) {
    for (unsigned i = 0; i < n; i++)
        out[i] = w->warp->regs + at[i];
}

static bool run_matrix(struct worker *w, const struct instr *in) {
    const struct tile_matrix *f = &in->tile->matrix;
    void *data[4];
    uint64_t address[SIM_LANES];
    uint8_t *row[SIM_LANES];
    uint32_t global;
    if (in->mode == MATRIX_MOVE) {
        tile_matrix_move((uint32_t *)(void *)(w->warp->regs + in->writes[0]),
                         (const uint32_t *)(void *)(w->warp->regs + in->reads[0]));
        return true;
    }
    bool load = in->mode == MATRIX_LOAD;
    uint32_t lanes = f->count == 4 ? FULL : (1u << 8 * f->count) - 1;
    memory_where(w, in, &in->tile->at, address);
    if (!memory_resolve(w, in->tile->at.space, lanes, address, TILE_MATRIX_ROW_BYTES,
                        TILE_MATRIX_ROW_BYTES, load ? USE_READ : USE_WRITE, row, &global))
        return false;
    pointers(w, load ? in->writes : in->reads + 1, f->count, data);
    if (load)
        tile_matrix_load(f, (const uint8_t *const *)row, (uint32_t *const *)data);
    else
        tile_matrix_store(f, row, (const uint32_t *const *)data);
    return true;
}

static void run_mma(struct worker *w, const struct instr *in) {
    const struct tile_mma *f = &in->tile->mma;
    void *d[MAX_REGS], *abc[MAX_REGS];
    pointers(w, in->writes, in->nwrites, d);
    pointers(w, in->reads, in->nreads, abc);
    const void *const *from = (const void *const *)abc;
    tile_mma_run(f, worker_tiles(w), d, from, from + f->na, from + f->na + f->nb);
}

/* One piece of one register, in every lane. */
static bool move_piece(struct worker *w, const struct instr *in, const uint64_t *base,
                       uint32_t stride, unsigned reg, unsigned piece) {
    const struct tile_fragment *f = &in->tile->fragment;
    int64_t offset[SIM_LANES];
    uint64_t address[SIM_LANES];
    uint8_t *at[SIM_LANES];
    uint32_t global, first = in->tile->has_stride ? 2 : 1;
    bool store = in->tile->store;
    tile_fragment_offsets(f, reg, piece, stride, offset);
    for (unsigned i = 0; i < SIM_LANES; i++)
        address[i] = base[i] + (uint64_t)offset[i];
    if (!memory_resolve(w, in->tile->at.space, FULL, address, f->piece_bytes, f->piece_bytes,
                        store ? USE_WRITE : USE_READ, at, &global))
        return false;
    uint8_t *r = w->warp->regs + (store ? in->reads[first + reg] : in->writes[reg]);
    for (unsigned i = 0; i < SIM_LANES; i++) {
        uint8_t *lane = r + (size_t)i * f->reg_bytes + (size_t)piece * f->piece_bytes;
        memcpy(store ? at[i] : lane, store ? lane : at[i], f->piece_bytes);
    }
    return true;
}

static bool run_fragment(struct worker *w, const struct instr *in) {
    const struct tile_fragment *f = &in->tile->fragment;
    uint64_t base[SIM_LANES];
    uint32_t stride = in->tile->has_stride ? *(const u32_lane *)(w->warp->regs + in->reads[1]) : 0;
    memory_where(w, in, &in->tile->at, base);
    for (unsigned r = 0; r < f->distinct; r++)
        for (unsigned p = 0; p < f->pieces; p++)
            if (!move_piece(w, in, base, stride, r, p))
                return false;
    for (unsigned r = f->distinct; !in->tile->store && r < f->nregs; r++)
        memcpy(w->warp->regs + in->writes[r], w->warp->regs + in->writes[r % f->distinct],
               (size_t)f->reg_bytes * SIM_LANES);
    return true;
}

bool tensor_run(struct worker *w, const struct instr *in) {
    if (in->kind == KIND_MATRIX)
        return run_matrix(w, in);
    if (in->kind == KIND_FRAGMENT)
        return run_fragment(w, in);
    run_mma(w, in);
    return true;
}
