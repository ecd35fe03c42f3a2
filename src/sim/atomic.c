/* Atomics: lanes one after the other, lowest first, so that sums of floats come out the same every
 * time; where lanes of one place can tell their order by what they get or leave, it is drawn with
 * sim_launch.lanes. Blocks on several threads do them only where the order cannot be seen: integer
 * reductions without a result (flow_find_order); those exchange their word with the host's atomics.
 */
#include "sim/check.h"
#include "sim/lane_math.h"

#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

static uint64_t min_max(const struct instr *in, uint64_t x, uint64_t y) {
    bool less;
    switch (in->mem->type) {
    case PTX_S32:
        less = (int32_t)x < (int32_t)y;
        break;
    case PTX_S64:
        less = (int64_t)x < (int64_t)y;
        break;
    default:
        less = x < y;
    }
    return (in->mode == ATOMIC_MIN) == less ? x : y;
}

static float flush(float v) {
    return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

/* In global memory f32 sums flush subnormals, in shared memory they do not. */
static uint64_t add_f32(uint64_t x, uint64_t y, bool global) {
    float a = float_of((uint32_t)x), b = float_of((uint32_t)y);
    return bits_of(global ? flush(flush(a) + flush(b)) : a + b);
}

typedef uint32_t half_fn(uint32_t, uint32_t);

static uint64_t halves(half_fn *fn, uint64_t x, uint64_t y, bool two) {
    uint32_t low = fn((uint32_t)x & 0xffff, (uint32_t)y & 0xffff);
    return two ? low | fn((uint32_t)x >> 16, (uint32_t)y >> 16) << 16 : low;
}

static uint64_t half_op(const struct instr *in, uint64_t x, uint64_t y) {
    bool two = in->mem->type == PTX_F16X2 || in->mem->type == PTX_BF16X2;
    bool brain = in->mem->type == PTX_BF16 || in->mem->type == PTX_BF16X2;
    half_fn *fn = in->mode == ATOMIC_ADD   ? (brain ? bh_add : h_add)
                  : in->mode == ATOMIC_MIN ? (brain ? bh_min : h_min)
                                           : (brain ? bh_max : h_max);
    return halves(fn, x, y, two);
}

static uint64_t add(const struct instr *in, uint64_t x, uint64_t y, bool global) {
    switch (in->mem->type) {
    case PTX_F32:
        return add_f32(x, y, global);
    case PTX_F64:
        return bits_of_double(double_of(x) + double_of(y));
    default:
        return x + y;
    }
}

static uint64_t combine(const struct instr *in, uint64_t x, uint64_t y, uint64_t z, bool global) {
    enum ptx_type t = in->mem->type;
    bool half = t == PTX_F16 || t == PTX_F16X2 || t == PTX_BF16 || t == PTX_BF16X2;
    switch ((enum atomic_mode)in->mode) {
    case ATOMIC_ADD:
        return half ? half_op(in, x, y) : add(in, x, y, global);
    case ATOMIC_MIN:
    case ATOMIC_MAX:
        return half ? half_op(in, x, y) : min_max(in, x, y);
    case ATOMIC_AND:
        return x & y;
    case ATOMIC_OR:
        return x | y;
    case ATOMIC_XOR:
        return x ^ y;
    case ATOMIC_EXCH:
        return y;
    case ATOMIC_CAS:
        return x == y ? z : x;
    case ATOMIC_INC:
        return x >= y ? 0 : x + 1;
    case ATOMIC_DEC:
        return x == 0 || x > y ? y : x - 1;
    }
    return x;
}

static uint64_t reg_value(const uint8_t *regs, uint32_t at, unsigned bytes, unsigned lane) {
    return bytes == 8 ? ((const u64_lane *)(regs + at))[lane]
                      : ((const u32_lane *)(regs + at))[lane];
}

static void reg_set(uint8_t *regs, uint32_t at, unsigned bytes, unsigned lane, uint64_t v) {
    if (bytes == 8)
        ((u64_lane *)(regs + at))[lane] = v;
    else
        ((u32_lane *)(regs + at))[lane] = (uint32_t)v;
}

static uint64_t masked(uint64_t v, unsigned width) {
    return width == 8 ? v : v & ((UINT64_C(1) << 8 * width) - 1);
}

/* With other threads at work: 4 or 8 bytes, exchanged as a whole. */
static void exchange(const struct instr *in, uint8_t *at, uint64_t y) {
    if (in->mem->width == 8) {
        uint64_t old = __atomic_load_n((uint64_t *)(void *)at, __ATOMIC_RELAXED), next;
        do
            next = combine(in, old, y, 0, true);
        while (!__atomic_compare_exchange_n((uint64_t *)(void *)at, &old, next, false,
                                            __ATOMIC_RELAXED, __ATOMIC_RELAXED));
        return;
    }
    uint32_t old = __atomic_load_n((uint32_t *)(void *)at, __ATOMIC_RELAXED), next;
    do
        next = (uint32_t)combine(in, old, y, 0, true);
    while (!__atomic_compare_exchange_n((uint32_t *)(void *)at, &old, next, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
}

/* One element of one lane. Returns whether memory changed. */
static bool update(const struct instr *in, uint8_t *regs, unsigned lane, unsigned k, uint8_t *at,
                   bool global, bool alone) {
    const struct access *a = in->mem;
    uint64_t y = masked(reg_value(regs, a->from[k], a->reg_bytes, lane), a->width);
    if (!alone) {
        exchange(in, at, y);
        return true;
    }
    uint64_t old = 0, z = 0;
    memcpy(&old, at, a->width);
    if (in->mode == ATOMIC_CAS)
        z = masked(reg_value(regs, a->other[0], a->reg_bytes, lane), a->width);
    uint64_t next = masked(combine(in, old, y, z, global), a->width);
    memcpy(at, &next, a->width);
    if (a->result)
        reg_set(regs, a->reg[k], a->reg_bytes, lane, old);
    return next != old;
}

/* exch and cas of 16 bytes: registers in pairs, lower half first. */
static bool update_wide(const struct instr *in, uint8_t *regs, unsigned lane, uint8_t *at) {
    const struct access *a = in->mem;
    uint64_t old[2], next[2], y[2], z[2];
    memcpy(old, at, 16);
    for (unsigned k = 0; k < 2; k++) {
        y[k] = reg_value(regs, a->from[k], 8, lane);
        z[k] = in->mode == ATOMIC_CAS ? reg_value(regs, a->other[k], 8, lane) : 0;
    }
    bool same = old[0] == y[0] && old[1] == y[1];
    for (unsigned k = 0; k < 2; k++) {
        next[k] = in->mode == ATOMIC_EXCH ? y[k] : same ? z[k] : old[k];
        if (a->result)
            reg_set(regs, a->reg[k], 8, lane, old[k]);
    }
    memcpy(at, next, 16);
    return memcmp(old, next, 16) != 0;
}

/* The lanes of the mask in the order they come. Returns how many they are. */
static unsigned order_lanes(struct worker *w, const struct instr *in, uint32_t mask,
                            const uint64_t *address, uint8_t *order) {
    bool told = in->mem->result || in->mode == ATOMIC_EXCH || in->mode == ATOMIC_CAS;
    unsigned n = 0;
    for (uint32_t m = mask; m; m &= m - 1)
        order[n++] = (uint8_t)__builtin_ctz(m);
    if (told && n > 1 && w->la->l->lanes)
        draw_lane_order(w, in->mem, mask, address, order);
    return n;
}

bool atomic_run(struct worker *w, const struct instr *in, uint32_t mask) {
    const struct access *a = in->mem;
    uint64_t address[SIM_LANES];
    uint8_t *at[SIM_LANES], *regs = w->warp->regs, order[SIM_LANES];
    uint32_t global;
    bool changed = false;
    memory_addresses(regs + in->a, a->offset, a->base_wide, address);
    if (!memory_resolve(w, a->space, mask, address, a->bytes, a->bytes, USE_ATOMIC, at, &global))
        return false;
    unsigned n = order_lanes(w, in, mask, address, order);
    for (unsigned next = 0; next < n; next++) {
        unsigned i = order[next];
        bool far = global >> i & 1;
        if (a->width == 16)
            changed |= update_wide(in, regs, i, at[i]);
        for (unsigned k = 0; a->width < 16 && k < a->count; k++)
            changed |=
                update(in, regs, i, k, at[i] + (size_t)k * a->width, far, w->la->alone || !far);
    }
    if (w->la->check)
        memory_strong(w, a, mask, address, true, true);
    w->progress += changed;
    w->c.atomic_requests += global != 0;
    if (a->result && a->width < 16 && !changed && warp_polls(w, a, mask, address))
        w->warp->polling = true;
    return true;
}
