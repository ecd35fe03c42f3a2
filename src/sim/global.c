/* Global memory: bounds, alignment, sectors, footprints, pages made on first touch.
 *
 * A request counts the distinct 32-byte sectors of its active lanes. The common request, all lanes
 * active and neighbours in memory, is checked and copied as a whole. */
#include "sim/check.h"
#include "sim/timing.h"

#include <sched.h>
#include <string.h>

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
    if (!w->agent) /* how wide a thread's accesses are */
        *widest = each > *widest ? each : *widest;
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

bool global_row(struct worker *w, const struct access *a, const uint64_t *address, bool store) {
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

bool global_resolve(struct worker *w, uint32_t mask, const uint64_t *address, uint32_t bytes,
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
