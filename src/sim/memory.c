/* Addresses: from registers to windows and buffers. A warp's request goes to one state space, or,
 * with generic addresses, to several one after the other. */
#include "base/rng.h"
#include "sim/check.h"
#include "sim/lane_math.h"
#include "sim/timing.h"
#include <sched.h>
#include <string.h>

static void memory_move(struct worker *w, const struct access *a, uint32_t mask, uint8_t *const *at,
                        bool store);

/* ---- shared memory: the common request, all lanes into their own block's, and banks ----
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
static void count_conflicts(struct worker *w, uint32_t mask, const uint32_t *address,
                            uint32_t bytes) {
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

static void shared_count(struct worker *w, uint32_t mask, const uint64_t *address, uint32_t bytes) {
    uint32_t first = (uint32_t)address[__builtin_ctz(mask)], all[SIM_LANES];
    for (unsigned i = 0; i < SIM_LANES; i++)
        all[i] = mask >> i & 1 ? (uint32_t)address[i] : first;
    count_conflicts(w, mask, all, bytes);
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

/* All lanes, the block's own memory. False: it is not that simple, nothing was done. `counted`: its
 * banks are counted already. */
static bool shared_access(struct worker *w, const struct instr *in, bool store, bool counted) {
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
        count_conflicts(w, FULL, address, a->bytes);
    if (a->count == 4 && store)
        store_quads(regs, a->reg, shared, address);
    else if (a->count == 4)
        load_quads(regs, a->reg, shared, address);
    for (unsigned k = 0; a->count != 4 && k < a->count; k++)
        move_words(regs + a->reg[k], shared + 4 * k, address, store);
    return true;
}

/* ---- global memory: bounds, alignment, sectors, footprints, pages made on first touch ----
 *
 * A request counts the distinct 32-byte sectors of its active lanes. The common request, all lanes
 * active and neighbours in memory, is checked and copied as a whole. */

#define LINE 128u /* bytes that L1 serves at a time */

static void repeat(uint8_t *to, const void *pattern, size_t size, uint64_t bytes) {
    memcpy(to, pattern, size);
    for (uint64_t done = size, piece = size, n; done < bytes; done += n) {
        n = piece < bytes - done ? piece : bytes - done;
        memcpy(to + done, to, n);
        piece *= piece < SIM_PAGE ? 2 : 1; /* what is copied from stays in the cache */
    }
}

static void make_page(const struct mapped *b, size_t at, size_t n) {
    uint8_t *to = (uint8_t *)b->b.host + at;
    if (b->pattern_bytes)
        repeat(to, b->pattern, b->pattern_bytes, n);
    else
        b->b.touch(b->b.touch_ctx, at, n, to);
}

static void fill_page(struct mapped *b, size_t page) {
    uint8_t expected = PAGE_UNTOUCHED;
    if (atomic_compare_exchange_strong(&b->pages[page], &expected, PAGE_FILLING)) {
        size_t at = page * SIM_PAGE, n = b->b.size - at < SIM_PAGE ? b->b.size - at : SIM_PAGE;
        make_page(b, at, n);
        atomic_store_explicit(&b->pages[page], PAGE_READY, memory_order_release);
        return;
    }
    while (atomic_load_explicit(&b->pages[page], memory_order_acquire) != PAGE_READY)
        sched_yield();
}

static void touch(struct mapped *b, uint64_t offset, size_t n) {
    if (!b->pages)
        return;
    for (size_t page = offset / SIM_PAGE; page <= (offset + n - 1) / SIM_PAGE; page++)
        if (atomic_load_explicit(&b->pages[page], memory_order_acquire) != PAGE_READY)
            fill_page(b, page);
}

/* Of pages that are overwritten nothing has to be made. */
static void touch_to_fill(struct mapped *b, uint64_t offset, uint64_t n) {
    uint64_t end = offset + n, first = (offset + SIM_PAGE - 1) / SIM_PAGE;
    uint64_t last = end == b->b.size ? (end + SIM_PAGE - 1) / SIM_PAGE : end / SIM_PAGE;
    if (!b->pages)
        return;
    for (uint64_t page = first; page < last; page++)
        atomic_store_explicit(&b->pages[page], PAGE_READY, memory_order_relaxed);
    touch(b, offset, 1);
    touch(b, end - 1, 1);
}

/* All of it, which is done a page at a time when it is touched. */
static void fill_later(struct mapped *b, const void *pattern, size_t size) {
    memcpy(b->pattern, pattern, size);
    b->pattern_bytes = size;
    for (size_t page = 0; page <= b->b.size / SIM_PAGE; page++)
        atomic_store_explicit(&b->pages[page], PAGE_UNTOUCHED, memory_order_relaxed);
    mem_free(b->written);
    b->written = NULL;
    b->b.undefined = false;
}

bool sim_machine_fill(struct sim_machine *m, uint64_t address, const void *pattern, size_t size,
                      uint64_t count) {
    struct mapped *b = memory_find(m, address);
    if (!count || !size)
        return true;
    if (!b || b->b.read_only || count > (b->end - address) / size)
        return false;
    uint64_t offset = address - b->base, bytes = count * size;
    if (b->pages && bytes == b->b.size && size <= sizeof b->pattern && SIM_PAGE % size == 0) {
        fill_later(b, pattern, size);
        return true;
    }
    touch_to_fill(b, offset, bytes);
    repeat((uint8_t *)b->b.host + offset, pattern, size, bytes);
    check_filled(b, offset, bytes);
    return true;
}

void sim_machine_protect(struct sim_machine *m, uint64_t address) {
    struct mapped *b = memory_find(m, address);
    BUG_IF(!b);
    b->b.read_only = b->b.prepared = true;
}

static void mark_word(struct worker *w, _Atomic uint64_t *word, uint64_t bits) {
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    if ((old & bits) == bits)
        return;
    if (w->la->alone)
        atomic_store_explicit(word, old | bits, memory_order_relaxed);
    else
        atomic_fetch_or_explicit(word, bits, memory_order_relaxed);
}

struct gang_stores *stores_new(const struct launch *la) {
    bool any = false;
    for (size_t i = 0; i < la->m->n; i++)
        any |= la->m->maps[i].b.result;
    if (!any)
        return NULL;
    struct gang_stores *s = mem_alloc(sizeof *s);
    s->bits = mem_alloc((la->m->n + 1) * sizeof *s->bits);
    for (size_t i = 0; i < la->m->n; i++)
        if (la->m->maps[i].b.result)
            s->bits[i] = mem_alloc((la->m->maps[i].b.size / SECTOR / 64 + 1) * sizeof(uint64_t));
    return s;
}

void stores_free(const struct launch *la, struct gang_stores *s) {
    for (size_t i = 0; s && i < la->m->n; i++)
        mem_free(s->bits[i]);
    if (s) {
        mem_free(s->bits);
        mem_free(s->words);
    }
    mem_free(s);
}

void stores_gang_done(struct worker *w) {
    struct gang_stores *s = w->stores;
    for (size_t i = 0; i < s->nwords; i++)
        s->bits[s->words[i].buffer][s->words[i].word] = 0;
    s->sum += (double)s->sectors;
    s->squares += (double)s->sectors * (double)s->sectors;
    s->gangs++;
    s->storing += s->sectors > 0;
    s->nwords = s->sectors = 0;
}

static void stores_mark(struct gang_stores *s, size_t buffer, size_t word, uint64_t bits) {
    uint64_t *at = s->bits[buffer] ? &s->bits[buffer][word] : NULL;
    if (!at || !(bits & ~*at))
        return;
    if (!*at) {
        s->words = mem_grow(s->words, &s->cap, s->nwords + 1, sizeof *s->words);
        s->words[s->nwords++] = (struct stored_word){buffer, word};
    }
    s->sectors += (uint64_t)__builtin_popcountll(bits & ~*at);
    *at |= bits;
}

static void mark(struct worker *w, const struct mapped *b, uint64_t offset, size_t n, bool store) {
    size_t buffer = (size_t)(b - w->la->m->maps);
    const struct touched *t = &w->la->touched[buffer];
    _Atomic uint64_t *map = store ? t->stores : t->loads;
    uint64_t first = offset / SECTOR, last = (offset + n - 1) / SECTOR;
    if (w->gang->time && !store)
        timing_load(w, b->base + offset, n);
    while (first <= last) {
        uint64_t in_word = 64 - first % 64, left = last - first + 1;
        uint64_t take = left < in_word ? left : in_word;
        uint64_t bits = (take == 64 ? ~UINT64_C(0) : (UINT64_C(1) << take) - 1) << first % 64;
        mark_word(w, &map[first / 64], bits);
        if (store && w->stores)
            stores_mark(w->stores, buffer, first / 64, bits);
        first += take;
    }
}

static void count(struct worker *w, uint32_t each, uint32_t mask, uint64_t sectors, bool store) {
    uint64_t lanes = mask == FULL ? SIM_LANES : (uint64_t)__builtin_popcount(mask);
    uint64_t bytes = lanes * each;
    uint64_t *requests = store ? &w->c.store_requests : &w->c.load_requests;
    uint64_t *total = store ? &w->c.store_sectors : &w->c.load_sectors;
    uint64_t *sum = store ? &w->c.store_bytes : &w->c.load_bytes;
    uint32_t *widest = store ? &w->c.widest_store : &w->c.widest_load;
    struct traffic *t = &w->traffic[w->in - w->p->code];
    t->requests++;
    t->sectors += sectors;
    t->bytes += bytes;
    *requests += 1;
    *total += sectors;
    *sum += bytes;
    if (w->agent)
        return;
    *widest = each > *widest ? each : *widest;
    if (store && sectors * SECTOR > bytes)
        w->c.store_rest_bytes += sectors * SECTOR - bytes;
}

/* All lanes, one after the other in memory: one copy, or one strided loop an element. */
static void move_row(struct worker *w, const struct access *a, uint8_t *p, bool store) {
    if (a->count == 1 && a->width == a->reg_bytes && a->width >= 4) {
        uint8_t *reg = w->warp->regs + a->reg[0];
        memcpy(store ? p : reg, store ? reg : p, (size_t)a->width * SIM_LANES);
        return;
    }
    if (a->width == 4 && a->reg_bytes == 4) {
        for (unsigned k = 0; k < a->count; k++) {
            uint8_t *reg = w->warp->regs + a->reg[k], *at = p + 4 * k;
            if (store)
                for (unsigned i = 0; i < SIM_LANES; i++)
                    memcpy(at + (size_t)i * a->bytes, reg + 4 * i, 4);
            else
                for (unsigned i = 0; i < SIM_LANES; i++)
                    memcpy(reg + 4 * i, at + (size_t)i * a->bytes, 4);
        }
        return;
    }
    uint8_t *at[SIM_LANES];
    for (unsigned i = 0; i < SIM_LANES; i++)
        at[i] = p + (size_t)i * a->bytes;
    memory_move(w, a, FULL, at, store);
}

static bool is_row(const uint64_t *address, unsigned bytes) {
    uint64_t off = 0;
    for (unsigned i = 0; i < SIM_LANES; i++)
        off |= address[i] ^ (address[0] + (uint64_t)i * bytes);
    return off == 0;
}

static struct mapped *buffer_at(struct worker *w, uint64_t address, size_t n) {
    struct sim_machine *m = w->la->m;
    struct mapped *b = w->last < m->n ? &m->maps[w->last] : NULL;
    if (!b || address < b->base || address >= b->end) {
        b = memory_find(m, address);
        w->last = b ? (size_t)(b - m->maps) : w->last;
    }
    return b && b->end - address >= n ? b : NULL;
}

static bool global_row(struct worker *w, const struct access *a, const uint64_t *address,
                       bool store) {
    size_t n = (size_t)a->bytes * SIM_LANES;
    if (!is_row(address, a->bytes))
        return false;
    uint64_t first = address[0];
    struct mapped *b = buffer_at(w, first, n);
    if (!b || (first & (a->bytes - 1u)) || (store && b->b.read_only))
        return false; /* the slow way finds out which lane it is */
    uint64_t offset = first - b->base;
    touch(b, offset, n);
    move_row(w, a, (uint8_t *)b->b.host + offset, store);
    mark(w, b, offset, n, store);
    uint64_t sectors = (first + n - 1) / SECTOR - first / SECTOR + 1;
    count(w, a->bytes, FULL, sectors, store);
    if (w->gang->time)
        timing_request(w, sectors, (first + n - 1) / LINE - first / LINE + 1);
    w->progress += store;
    return true;
}

static uint64_t distinct(uint64_t *s, unsigned n) {
    for (unsigned i = 1; i < n; i++) { /* mostly sorted already */
        uint64_t v = s[i];
        unsigned k = i;
        for (; k > 0 && s[k - 1] > v; k--)
            s[k] = s[k - 1];
        s[k] = v;
    }
    uint64_t sum = n > 0;
    for (unsigned i = 1; i < n; i++)
        sum += s[i] != s[i - 1];
    return sum;
}

/* Lines of 128 bytes among sectors in order. */
static uint64_t lines_of(const uint64_t *s, unsigned n) {
    uint64_t sum = n > 0;
    for (unsigned i = 1; i < n; i++)
        sum += s[i] * SECTOR / LINE != s[i - 1] * SECTOR / LINE;
    return sum;
}

static void bulk_piece(struct worker *w, uint64_t first, uint64_t more, uint32_t bytes,
                       bool store) {
    struct bulk_count *b = &w->bulk;
    b->sectors += more + (b->last != first + 1);
    b->last = first + more + 1;
    b->bytes += bytes;
    b->store = store;
}

uint8_t *global_bulk(struct worker *w, uint64_t address, uint32_t bytes, bool store) {
    struct mapped *b = buffer_at(w, address, bytes);
    if (!b || w->la->check || (store && b->b.read_only))
        return NULL;
    uint64_t offset = address - b->base, first = address / SECTOR;
    touch(b, offset, bytes);
    mark(w, b, offset, bytes, store);
    bulk_piece(w, first, (address + bytes - 1) / SECTOR - first, bytes, store);
    w->progress += store;
    return (uint8_t *)b->b.host + offset;
}

void global_bulk_done(struct worker *w) {
    if (w->bulk.bytes)
        count(w, (uint32_t)w->bulk.bytes, 1, w->bulk.sectors, w->bulk.store);
    w->bulk = (struct bulk_count){0};
}

static bool global_resolve(struct worker *w, uint32_t mask, const uint64_t *address, uint32_t bytes,
                           uint32_t align, enum use use, uint8_t **at) {
    uint64_t sectors[SIM_LANES], more = 0;
    unsigned n = 0;
    bool store = use != USE_READ;
    w->bytes = bytes;
    if (w->la->check)
        check_begin(w, use);
    for (uint32_t m = mask; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctz(m);
        struct mapped *b = buffer_at(w, address[i], bytes);
        if (!b)
            return fault_bounds(w, i, address[i], store);
        if (address[i] & (align - 1u))
            return fault_aligned(w, i, address[i], align, store);
        if (store && b->b.read_only)
            return fault_read_only(w, i, address[i], (str){0});
        uint64_t offset = address[i] - b->base;
        at[i] = (uint8_t *)b->b.host + offset;
        uint64_t sector = address[i] / SECTOR;
        more += (address[i] + bytes - 1) / SECTOR - sector;
        if (n == 0 || sectors[n - 1] != sector) {
            touch(b, offset, bytes);
            mark(w, b, offset, bytes, store);
            sectors[n++] = sector;
        }
        if (w->la->check) {
            struct touch t = {.space = PTX_GLOBAL,
                              .map = (size_t)(b - w->la->m->maps),
                              .offset = offset,
                              .bytes = bytes,
                              .lane = i,
                              .use = use,
                              .at = at[i]};
            check_touch(w, &t);
        }
    }
    if (w->agent) {
        bulk_piece(w, sectors[0], more, bytes, store);
    } else {
        uint64_t all = distinct(sectors, n) + more;
        count(w, bytes, mask, all, store);
        if (w->gang->time)
            timing_request(w, all, lines_of(sectors, n));
    }
    w->progress += use == USE_WRITE;
    return true;
}

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

static void memory_move(struct worker *w, const struct access *a, uint32_t mask, uint8_t *const *at,
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

static void memory_addresses(const uint8_t *base, int64_t offset, bool wide, uint64_t *address) {
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

/* Checks: what strong accesses tell each other. */
static void memory_strong(struct worker *w, const struct access *a, uint32_t mask,
                          const uint64_t *address, bool reads, bool writes) {
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

/* ---- atomics ----
 *
 * Lanes one after the other, lowest first, so that sums of floats come out the same every time;
 * where lanes of one place can tell their order by what they get or leave, it is drawn with
 * sim_launch.lanes. Blocks on several threads do them only where the order cannot be seen: integer
 * reductions without a result (flow_find_order); those exchange their word with the host's atomics.
 */

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
