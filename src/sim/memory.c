/* Addresses: from registers to windows and buffers. A warp's request goes to one state space, or,
 * with generic addresses, to several one after the other. */
#include "sim/check.h"

#include "base/rng.h"

#include <string.h>

typedef uint32_t u32_lane __attribute__((may_alias));
typedef uint64_t u64_lane __attribute__((may_alias));

#define BUFFERS_START (UINT64_C(0x7f) << 40)
#define BUFFERS_STEP  (UINT64_C(2) << 20) /* a page of a GPU, as drivers map memory */
#define BUFFERS_STEPS 0x60000u            /* of the start, by the secret */
#define WINDOWS_STEP  (UINT64_C(16) << 20)

/* Addresses as a driver gives them: buffers on pages of their own, with some unmapped between,
 * above the windows of shared and local memory. */
static void place_all(struct sim_machine *m) {
    struct rng r = rng_stream(m->secret, S("addresses"));
    m->next = BUFFERS_START + rng_below(r, 0, BUFFERS_STEPS) * BUFFERS_STEP;
    m->windows = m->next - 2 * WINDOWS_BYTES - rng_below(r, 1, 512) * WINDOWS_STEP;
    m->windows &= ~(WINDOWS_STEP - 1);
}

struct sim_machine *sim_machine_new(uint64_t secret) {
    struct sim_machine *m = mem_alloc(sizeof *m);
    m->secret = secret;
    place_all(m);
    return m;
}

void sim_machine_clear(struct sim_machine *m) {
    for (size_t i = 0; i < m->n; i++) {
        mem_free((void *)m->maps[i].pages);
        mem_free(m->maps[i].written);
        mem_free(m->maps[i].stored);
    }
    m->n = 0;
    place_all(m);
}

void sim_machine_move(struct sim_machine *m, uint64_t secret, bool spread) {
    sim_machine_clear(m);
    m->secret = secret;
    m->spread = spread;
    place_all(m);
}

void sim_machine_free(struct sim_machine *m) {
    if (!m)
        return;
    sim_machine_clear(m);
    mem_free(m->maps);
    mem_free(m);
}

/* At the end of its pages, as on a GPU; every other one is aligned to what it asks and no more. */
static uint64_t place_last(const struct sim_machine *m, const struct sim_buffer *b) {
    struct rng r = rng_stream(m->secret, S("alignment"));
    uint64_t align = b->align, pages = (b->size + 2 * align + BUFFERS_STEP - 1) / BUFFERS_STEP;
    uint64_t base = (m->next + pages * BUFFERS_STEP - b->size) / align * align;
    return base - (rng_below(r, m->n, 2) && base / align % 2 == 0 ? align : 0);
}

uint64_t sim_machine_add(struct sim_machine *m, const struct sim_buffer *b) {
    m->maps = mem_grow(m->maps, &m->cap, m->n + 1, sizeof *m->maps);
    struct mapped *map = &m->maps[m->n++];
    BUG_IF(b->size > UINT64_C(1) << 46);
    uint64_t base = b->align ? place_last(m, b) : m->next;
    *map = (struct mapped){.b = *b, .base = base, .end = base + b->size};
    if (b->touch)
        map->pages = mem_alloc(b->size / SIM_PAGE + 1);
    struct rng r = rng_stream(m->secret, S("gaps"));
    uint64_t gap = BUFFERS_STEP * (1 + (m->spread ? rng_below(r, m->n, 64) : 0));
    m->next = (map->end + gap + BUFFERS_STEP - 1) & ~(BUFFERS_STEP - 1);
    return map->base;
}

struct mapped *memory_find(const struct sim_machine *m, uint64_t address) {
    size_t lo = 0, hi = m->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (address < m->maps[mid].end)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo == m->n || address < m->maps[lo].base ? NULL : &m->maps[lo];
}

/* Blocks that write one place race with each other, as on hardware; that is the simulated kernel's
 * doing and must not be taken for ours. */
#define KERNELS_OWN_RACES __attribute__((no_sanitize("thread")))

/* Between registers and memory, element by element; lanes in order, so that the highest lane of
 * the mask wins where several write one place. */
#define MOVE_IN(T, R)                                                                              \
    for (uint32_t m = mask; m; m &= m - 1) {                                                       \
        unsigned i = (unsigned)__builtin_ctz(m);                                                   \
        T v;                                                                                       \
        memcpy(&v, at[i] + k * sizeof v, sizeof v);                                                \
        ((R *)reg)[i] = (R)v;                                                                      \
    }
#define MOVE_OUT(T, R)                                                                             \
    for (uint32_t m = mask; m; m &= m - 1) {                                                       \
        unsigned i = (unsigned)__builtin_ctz(m);                                                   \
        T v = (T)((const R *)reg)[i];                                                              \
        memcpy(at[i] + k * sizeof v, &v, sizeof v);                                                \
    }

KERNELS_OWN_RACES static void move_in(const struct access *a, unsigned k, uint8_t *reg,
                                      uint32_t mask, uint8_t *const *at) {
    bool wide = a->reg_bytes == 8;
    if (a->width == 8)
        MOVE_IN(uint64_t, u64_lane)
    else if (a->width == 4 && !wide)
        MOVE_IN(uint32_t, u32_lane)
    else if (a->width == 4 && a->sign)
        MOVE_IN(int32_t, u64_lane)
    else if (a->width == 4)
        MOVE_IN(uint32_t, u64_lane)
    else if (wide && a->width == 2 && a->sign)
        MOVE_IN(int16_t, u64_lane)
    else if (wide && a->width == 2)
        MOVE_IN(uint16_t, u64_lane)
    else if (wide && a->sign)
        MOVE_IN(int8_t, u64_lane)
    else if (wide)
        MOVE_IN(uint8_t, u64_lane)
    else if (a->width == 2 && a->sign)
        MOVE_IN(int16_t, u32_lane)
    else if (a->width == 2)
        MOVE_IN(uint16_t, u32_lane)
    else if (a->sign)
        MOVE_IN(int8_t, u32_lane)
    else
        MOVE_IN(uint8_t, u32_lane)
    if (a->reg_bytes == 2 && a->sign) /* 16-bit registers hold their value zero-extended */
        for (unsigned i = 0; i < SIM_LANES; i++)
            ((u32_lane *)reg)[i] &= 0xffff;
}

KERNELS_OWN_RACES static void move_out(const struct access *a, unsigned k, const uint8_t *reg,
                                       uint32_t mask, uint8_t *const *at) {
    if (a->width == 8)
        MOVE_OUT(uint64_t, u64_lane)
    else if (a->reg_bytes == 8 && a->width == 4)
        MOVE_OUT(uint32_t, u64_lane)
    else if (a->reg_bytes == 8 && a->width == 2)
        MOVE_OUT(uint16_t, u64_lane)
    else if (a->reg_bytes == 8)
        MOVE_OUT(uint8_t, u64_lane)
    else if (a->width == 4)
        MOVE_OUT(uint32_t, u32_lane)
    else if (a->width == 2)
        MOVE_OUT(uint16_t, u32_lane)
    else
        MOVE_OUT(uint8_t, u32_lane)
}

void memory_move(struct worker *w, const struct access *a, uint32_t mask, uint8_t *const *at,
                 bool store) {
    for (unsigned k = 0; k < a->count; k++) {
        uint8_t *reg = w->warp->regs + a->reg[k];
        if (store)
            move_out(a, k, reg, mask, at);
        else
            move_in(a, k, reg, mask, at);
    }
}

/* A window: bytes of a block (shared), of a thread (local), or of the launch. */
struct window {
    uint8_t *p;
    size_t size, stride; /* stride: from one lane's to the next */
    const char *name;
};

static struct window window_of(struct worker *w, enum ptx_space s) {
    const struct sim_program *p = w->p;
    switch (s) {
    case PTX_SHARED:
        return (struct window){w->cta->shared, w->la->shared_bytes, 0, "shared memory"};
    case PTX_LOCAL:
        return (struct window){w->warp->local, p->local_bytes, p->local_bytes, "local memory"};
    case PTX_CONST:
        return (struct window){p->const_image, p->const_bytes, 0, "constant memory"};
    case PTX_PARAM:
        return (struct window){(uint8_t *)w->la->l->params, w->la->l->params_size, 0,
                               "the parameters"};
    default:
        return (struct window){p->module_image, p->module_bytes, 0, "the module's variables"};
    }
}

static void window_check(struct worker *w, enum ptx_space s, uint32_t mask, const uint64_t *address,
                         uint32_t bytes, enum use use, uint8_t *const *at) {
    uint32_t several = 0;
    if (use == USE_READ && s == PTX_SHARED)
        mask = check_distinct(mask, address, &several);
    check_begin(w, use);
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        bool other = s == PTX_SHARED && address[i] >> RANK_SHIFT;
        struct touch t = {.space = s,
                          .owner = other ? &w->gang->ctas[(address[i] >> RANK_SHIFT) - 1] : w->cta,
                          .offset = s == PTX_SHARED ? address[i] & RANK_OFFSETS : address[i],
                          .bytes = bytes,
                          .lane = i,
                          .use = use,
                          .at = at[i],
                          .several = several >> i & 1};
        check_touch(w, &t);
    }
}

static bool window_resolve(struct worker *w, enum ptx_space s, uint32_t mask,
                           const uint64_t *address, uint32_t bytes, uint32_t align, enum use use,
                           uint8_t **at) {
    struct window win = window_of(w, s);
    bool store = use != USE_READ;
    w->bytes = bytes;
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        uint64_t offset = address[i];
        if (s == PTX_SHARED && offset >> RANK_SHIFT) { /* another block's, of the cluster */
            uint64_t rank = (offset >> RANK_SHIFT) - 1;
            if (rank >= w->gang->n)
                return fault_window(w, i, offset, win.size, win.name, store);
            win.p = w->gang->ctas[rank].shared;
            offset &= RANK_OFFSETS;
        } else if (s == PTX_SHARED) {
            win.p = w->cta->shared;
        }
        if (win.size < bytes || offset > win.size - bytes)
            return fault_window(w, i, offset, win.size, win.name, store);
        if (offset & (align - 1u))
            return fault_aligned(w, i, offset, align, store);
        at[i] = win.p + i * win.stride + offset;
    }
    if (s == PTX_SHARED && use != USE_BARRIER && !w->proxy && w->in->kind != KIND_COPY)
        shared_count(w, mask, address, bytes);
    if (w->la->check && (s == PTX_SHARED || s == PTX_LOCAL))
        window_check(w, s, mask, address, bytes, use, at);
    return true;
}

static bool space_resolve(struct worker *w, enum ptx_space s, uint32_t mask,
                          const uint64_t *address, uint32_t bytes, uint32_t align, enum use use,
                          uint8_t **at, uint32_t *global) {
    if (s == PTX_GLOBAL) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        if (address[first] < MODULE_START || address[first] >= MODULE_END) {
            *global |= mask;
            return global_resolve(w, mask, address, bytes, align, use, at);
        }
        w->bytes = bytes;
        if (use != USE_READ)
            return fault_read_only(w, first, address[first], S("a variable of the module"));
        uint64_t inside[SIM_LANES];
        for (unsigned i = 0; i < SIM_LANES; i++)
            inside[i] = address[i] - MODULE_START;
        return window_resolve(w, PTX_GLOBAL, mask, inside, bytes, align, use, at);
    }
    w->bytes = bytes;
    if (use != USE_READ && (s == PTX_CONST || s == PTX_PARAM))
        return fault_read_only(w, (unsigned)__builtin_ctz(mask), address[__builtin_ctz(mask)],
                               S("constants or parameters"));
    return window_resolve(w, s, mask, address, bytes, align, use, at);
}

/* Generic addresses: each window's lanes in turn, then what is left as global memory. */
static bool generic_resolve(struct worker *w, uint32_t mask, const uint64_t *address,
                            uint32_t bytes, uint32_t align, enum use use, uint8_t **at,
                            uint32_t *global) {
    static const struct {
        uint64_t offset;
        enum ptx_space space;
    } windows[] = {{WINDOW_SHARED, PTX_SHARED},
                   {WINDOW_LOCAL, PTX_LOCAL},
                   {WINDOW_CONST, PTX_CONST},
                   {WINDOW_PARAM, PTX_PARAM}};
    for (size_t k = 0; k < sizeof windows / sizeof *windows && mask; k++) {
        uint64_t inside[SIM_LANES];
        uint32_t here = 0;
        for (unsigned i = 0; i < SIM_LANES; i++) {
            inside[i] = address[i] - w->la->m->windows - windows[k].offset;
            here |= (uint32_t)(inside[i] < WINDOW_BYTES) << i;
        }
        here &= mask;
        if (here &&
            !space_resolve(w, windows[k].space, here, inside, bytes, align, use, at, global))
            return false;
        mask &= ~here;
    }
    return !mask || space_resolve(w, PTX_GLOBAL, mask, address, bytes, align, use, at, global);
}

bool memory_resolve(struct worker *w, enum ptx_space s, uint32_t mask, const uint64_t *address,
                    uint32_t bytes, uint32_t align, enum use use, uint8_t **at, uint32_t *global) {
    *global = 0;
    if (s == PTX_GENERIC)
        return generic_resolve(w, mask, address, bytes, align, use, at, global);
    return space_resolve(w, s, mask, address, bytes, align, use, at, global);
}

void memory_addresses(const uint8_t *base, int64_t offset, bool wide, uint64_t *address) {
    if (wide)
        for (unsigned i = 0; i < SIM_LANES; i++)
            address[i] = ((const u64_lane *)base)[i] + (uint64_t)offset;
    else
        for (unsigned i = 0; i < SIM_LANES; i++)
            address[i] = (uint32_t)(((const u32_lane *)base)[i] + (uint32_t)offset);
}

void memory_where(const struct worker *w, const struct instr *in, const struct where *at,
                  uint64_t *address) {
    memory_addresses(w->warp->regs + in->reads[at->base], at->offset, at->wide, address);
}

uint8_t *memory_range(struct worker *w, enum ptx_space s, unsigned lane, uint64_t address,
                      uint32_t bytes, uint32_t align, enum use use) {
    uint64_t addresses[SIM_LANES];
    uint8_t *at[SIM_LANES];
    uint32_t global;
    addresses[lane] = address;
    if (s == PTX_GENERIC)
        for (unsigned i = 0; i < SIM_LANES; i++)
            addresses[i] = address;
    return memory_resolve(w, s, 1u << lane, addresses, bytes, align, use, at, &global) ? at[lane]
                                                                                       : NULL;
}

void memory_strong(struct worker *w, const struct access *a, uint32_t mask, const uint64_t *address,
                   bool reads, bool writes) {
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        uint64_t at = address[i];
        if (a->space == PTX_SHARED)
            order_strong(w, i, at, true, reads, writes);
        else if (at - w->la->m->windows < WINDOW_BYTES)
            order_strong(w, i, at - w->la->m->windows, true, reads, writes);
        else
            order_strong(w, i, at, false, reads, writes);
    }
}

/* Is it memory that lanes share? Local memory has the same addresses for each of them. */
static bool is_common(const struct worker *w, const struct access *a, uint32_t mask,
                      const uint64_t *address) {
    uint64_t first = address[__builtin_ctz(mask)];
    return a->space == PTX_GLOBAL || a->space == PTX_SHARED ||
           (a->space == PTX_GENERIC && first - w->la->m->windows - WINDOW_LOCAL >= WINDOW_BYTES);
}

static bool access_any(struct worker *w, const struct instr *in, uint32_t mask,
                       const uint64_t *address, uint32_t late, bool store) {
    const struct access *a = in->mem;
    uint8_t *at[SIM_LANES];
    uint32_t global;
    if (!memory_resolve(w, a->space, mask, address, a->bytes, a->bytes,
                        store ? USE_WRITE : USE_READ, at, &global))
        return false;
    if (late || a->space != PTX_SHARED || mask != FULL || !shared_access(w, in, store, true))
        memory_move(w, a, mask & ~late, at, store);
    if (late)
        memory_move(w, a, late, at, store);
    if (w->la->check && a->strong)
        memory_strong(w, a, mask, address, !store, store);
    return true;
}

bool memory_access(struct worker *w, const struct instr *in, uint32_t mask, bool store) {
    const struct access *a = in->mem;
    bool watched = w->la->check, own = a->space == PTX_SHARED && mask == FULL && !watched;
    bool drawn = store && w->la->l->lanes;
    uint64_t address[SIM_LANES];
    uint32_t late = 0;
    if (own && !drawn && shared_access(w, in, store, false))
        return true;
    memory_addresses(w->warp->regs + in->a, a->offset, a->base_wide, address);
    if (drawn && is_common(w, a, mask, address))
        late = draw_late_lanes(w, a, mask, address);
    if (own && drawn && !late && shared_access(w, in, store, false))
        return true;
    bool far = a->space == PTX_GLOBAL || a->space == PTX_GENERIC;
    if ((mask != FULL || !far || watched || !global_row(w, a, address, store)) &&
        !access_any(w, in, mask, address, late, store))
        return false;
    if (!store && a->polled && warp_polls(w, a, mask, address))
        w->warp->polling = true;
    return true;
}
