/* Shared memory: the common request, all lanes of a warp into their own block's, and its banks.
 *
 * There are 32 banks of 4 bytes. A request is served in wavefronts of up to 128 bytes: 16-byte
 * accesses by quarters of a warp, 8-byte ones by halves, others at once. In each of these a bank
 * gives one word a wavefront; lanes that ask for the same word share it. Narrow accesses of real
 * hardware may be merged further: this is a model, and the same for every kernel. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include "sim/timing.h"

#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

#define BANKS 32u
#define MEMOS 8u

/* Wavefronts of some lanes that are served together. */
static unsigned serve(uint32_t lanes, const uint32_t *address, unsigned words) {
    uint32_t seen[BANKS][8]; /* words of each bank; more than 8 are counted as they come */
    uint8_t n[BANKS] = {0};
    unsigned most = 1;
    for (uint32_t m = lanes; m; m &= m - 1)
        for (unsigned k = 0; k < words; k++) {
            uint32_t word = address[__builtin_ctz(m)] / 4 + k, bank = word % BANKS;
            unsigned i = 0, kept = n[bank] < 8 ? n[bank] : 8;
            while (i < kept && seen[bank][i] != word)
                i++;
            if (i < kept)
                continue;
            if (kept < 8)
                seen[bank][kept] = word;
            n[bank]++;
            most = n[bank] > most ? n[bank] : most;
        }
    return most;
}

static void measure(struct bank_memo *memo, uint32_t mask, const uint32_t *address,
                    uint32_t bytes) {
    unsigned words = bytes < 4 ? 1 : bytes / 4, lanes = BANKS / words, phases = 0, total = 0;
    lanes = lanes ? lanes : 1;
    for (unsigned at = 0; at < SIM_LANES; at += lanes) {
        uint32_t part = mask & (lanes == 32 ? FULL : ((1u << lanes) - 1) << at);
        phases += part != 0;
        total += part ? serve(part, address, words) : 0;
    }
    memo->wavefronts = (uint16_t)total;
    memo->conflicts = (uint16_t)(total - phases);
}

static bool known(const struct bank_memo *memo, uint32_t mask, const uint32_t *address,
                  uint32_t first) {
    uint32_t differs = 0;
    if (memo->mask != mask || memo->place != first % 128)
        return false;
    for (unsigned i = 0; i < SIM_LANES; i++)
        differs |= (address[i] - first) ^ memo->offset[i];
    return !differs;
}

static void learn(struct bank_memo *memo, uint32_t mask, const uint32_t *address, uint32_t first) {
    memo->mask = mask;
    memo->place = first % 128;
    for (unsigned i = 0; i < SIM_LANES; i++)
        memo->offset[i] = address[i] - first;
}

/* `address` of lanes that are not in the mask is the first one's. */
static void count(struct worker *w, uint32_t mask, const uint32_t *address, uint32_t bytes) {
    size_t pc = (size_t)(w->in - w->p->code);
    struct bank_memo *memo = w->memos[pc];
    struct traffic *t = &w->traffic[pc];
    uint32_t first = address[__builtin_ctz(mask)];
    if (!memo)
        memo = w->memos[pc] = mem_alloc(MEMOS * sizeof *memo);
    memo += w->warp->index % MEMOS; /* each warp shows its own pattern, again and again */
    if (!known(memo, mask, address, first)) {
        learn(memo, mask, address, first);
        measure(memo, mask, address, bytes);
    }
    t->shared_requests++;
    t->shared_wavefronts += memo->wavefronts;
    t->shared_conflicts += memo->conflicts;
    if (w->gang->time)
        timing_shared(w, memo->wavefronts);
}

void shared_count(struct worker *w, uint32_t mask, const uint64_t *address, uint32_t bytes) {
    uint32_t first = (uint32_t)address[__builtin_ctz(mask)], all[SIM_LANES];
    for (unsigned i = 0; i < SIM_LANES; i++)
        all[i] = mask >> i & 1 ? (uint32_t)address[i] : first;
    count(w, mask, all, bytes);
}

static bool all_inside(const uint32_t *address, uint32_t bytes, size_t size) {
    uint32_t limit = (uint32_t)size - bytes, high = 0, low = 0;
    if (size < bytes)
        return false;
    for (unsigned i = 0; i < SIM_LANES; i++) {
        high |= (limit - address[i]) | address[i]; /* its highest bit: the address is beyond */
        low |= address[i];
    }
    return !(high >> 31) && !(low & (bytes - 1));
}

/* Four words a lane: rows of four lanes at a time, turned round. */
typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
#define QUAD(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)

#define TURN(r0, r1, r2, r3)                                                                       \
    do {                                                                                           \
        quad t0 = QUAD(r0, r1, 0, 4, 1, 5), t1 = QUAD(r0, r1, 2, 6, 3, 7);                         \
        quad t2 = QUAD(r2, r3, 0, 4, 1, 5), t3 = QUAD(r2, r3, 2, 6, 3, 7);                         \
        r0 = QUAD(t0, t2, 0, 1, 4, 5);                                                             \
        r1 = QUAD(t0, t2, 2, 3, 6, 7);                                                             \
        r2 = QUAD(t1, t3, 0, 1, 4, 5);                                                             \
        r3 = QUAD(t1, t3, 2, 3, 6, 7);                                                             \
    } while (0)
#define AT(p) (*(quad *)(p))

static void load_quads(uint8_t *regs, const uint32_t *reg, const uint8_t *shared,
                       const uint32_t *address) {
    uint8_t *to0 = regs + reg[0], *to1 = regs + reg[1], *to2 = regs + reg[2], *to3 = regs + reg[3];
    for (unsigned i = 0; i < SIM_LANES; i += 4) {
        quad r0 = *(const quad *)(shared + address[i]),
             r1 = *(const quad *)(shared + address[i + 1]),
             r2 = *(const quad *)(shared + address[i + 2]),
             r3 = *(const quad *)(shared + address[i + 3]);
        TURN(r0, r1, r2, r3);
        AT(to0 + 4 * i) = r0;
        AT(to1 + 4 * i) = r1;
        AT(to2 + 4 * i) = r2;
        AT(to3 + 4 * i) = r3;
    }
}

static void store_quads(const uint8_t *regs, const uint32_t *reg, uint8_t *shared,
                        const uint32_t *address) {
    const uint8_t *from0 = regs + reg[0], *from1 = regs + reg[1], *from2 = regs + reg[2],
                  *from3 = regs + reg[3];
    for (unsigned i = 0; i < SIM_LANES; i += 4) {
        quad r0 = *(const quad *)(from0 + 4 * i), r1 = *(const quad *)(from1 + 4 * i),
             r2 = *(const quad *)(from2 + 4 * i), r3 = *(const quad *)(from3 + 4 * i);
        TURN(r0, r1, r2, r3);
        AT(shared + address[i]) = r0;
        AT(shared + address[i + 1]) = r1;
        AT(shared + address[i + 2]) = r2;
        AT(shared + address[i + 3]) = r3;
    }
}

static void move_words(uint8_t *reg, uint8_t *shared, const uint32_t *address, bool store) {
    if (store)
        for (unsigned i = 0; i < SIM_LANES; i++)
            *(u32_lane *)(shared + address[i]) = ((const u32_lane *)reg)[i];
    else
        for (unsigned i = 0; i < SIM_LANES; i++)
            ((u32_lane *)reg)[i] = *(const u32_lane *)(shared + address[i]);
}

bool shared_access(struct worker *w, const struct instr *in, bool store, bool counted) {
    const struct access *a = in->mem;
    uint8_t *regs = w->warp->regs, *shared = w->cta->shared;
    uint32_t address[SIM_LANES];
    if (a->width != 4 || a->reg_bytes != 4 || a->polled)
        return false;
    const uint8_t *base = regs + in->a;
    if (a->base_wide)
        for (unsigned i = 0; i < SIM_LANES; i++) { /* what does not fit is beyond any block's */
            uint64_t v = ((const u64_lane *)base)[i] + (uint64_t)a->offset;
            address[i] = v >> 31 ? UINT32_MAX : (uint32_t)v;
        }
    else
        for (unsigned i = 0; i < SIM_LANES; i++)
            address[i] = ((const u32_lane *)base)[i] + (uint32_t)a->offset;
    if (!all_inside(address, a->bytes, w->la->shared_bytes))
        return false;
    if (!counted)
        count(w, FULL, address, a->bytes);
    if (a->count == 4 && store)
        store_quads(regs, a->reg, shared, address);
    else if (a->count == 4)
        load_quads(regs, a->reg, shared, address);
    for (unsigned k = 0; a->count != 4 && k < a->count; k++)
        move_words(regs + a->reg[k], shared + 4 * k, address, store);
    return true;
}
