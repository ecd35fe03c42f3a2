/* sim_run: checks the launch, starts threads, adds up what they counted.
 *
 * The fault that is reported is the one of the lowest gang, whichever thread met it first: after a
 * fault only gangs below it still run. */
#include "sim/check.h"
#include "sim/timing.h"

#include "base/rng.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_THREADS     64u
#define MAX_GRID_X      INT32_MAX
#define MAX_GRID_YZ     65535u
#define MAX_BLOCK       1024u
#define MAX_BLOCK_Z     64u
#define MAX_COOPERATIVE 16384u /* more than any GPU holds: its own limit is eval/fit.c's */

static bool bad_launch(struct sim_result *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static bool bad_launch(struct sim_result *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->fault.text, sizeof r->fault.text, fmt, ap);
    va_end(ap);
    r->status = SIM_BAD_LAUNCH;
    return false;
}

static bool check_shape(const struct sim_launch *l, struct sim_result *r) {
    const uint32_t *g = l->grid, *b = l->block;
    if (!g[0] || !g[1] || !g[2] || !b[0] || !b[1] || !b[2])
        return bad_launch(r, "grid (%u,%u,%u) or block (%u,%u,%u) has a zero", g[0], g[1], g[2],
                          b[0], b[1], b[2]);
    if (g[0] > MAX_GRID_X || g[1] > MAX_GRID_YZ || g[2] > MAX_GRID_YZ)
        return bad_launch(r, "grid (%u,%u,%u) is over the limits of 2147483647, 65535, 65535", g[0],
                          g[1], g[2]);
    uint64_t threads =
        (uint64_t)b[0] * b[1] > MAX_BLOCK ? UINT64_MAX : (uint64_t)b[0] * b[1] * b[2];
    if (b[0] > MAX_BLOCK || b[1] > MAX_BLOCK || b[2] > MAX_BLOCK_Z || threads > MAX_BLOCK)
        return bad_launch(r, "block (%u,%u,%u) is over the limit of %u threads (z: %u)", b[0], b[1],
                          b[2], MAX_BLOCK, MAX_BLOCK_Z);
    return true;
}

static bool check_entry(const struct sim_launch *l, struct sim_result *r) {
    const struct sim_program *p = l->program;
    const struct ptx_entry *e = p->entry;
    const uint32_t *b = l->block;
    uint64_t most = (uint64_t)e->maxntid[0] * e->maxntid[1] * e->maxntid[2];
    if (most && (uint64_t)b[0] * b[1] * b[2] > most)
        return bad_launch(r,
                          "block (%u,%u,%u) has more threads than kernel %.*s allows (%" PRIu64
                          ", from __launch_bounds__)",
                          b[0], b[1], b[2], STR_ARG(e->name), most);
    if (e->reqntid[0] && (b[0] != e->reqntid[0] || b[1] != e->reqntid[1] || b[2] != e->reqntid[2]))
        return bad_launch(r, "block (%u,%u,%u) is not the (%u,%u,%u) kernel %.*s requires", b[0],
                          b[1], b[2], e->reqntid[0], e->reqntid[1], e->reqntid[2],
                          STR_ARG(e->name));
    if (l->dynamic_shared > SIM_MAX_SHARED || p->static_shared > SIM_MAX_SHARED - l->dynamic_shared)
        return bad_launch(r, "%zu + %zu bytes of shared memory are over the limit of %u",
                          p->static_shared, l->dynamic_shared, SIM_MAX_SHARED);
    if (l->params_size != p->params_bytes)
        return bad_launch(r, "%zu bytes of parameters were given, kernel %.*s takes %zu",
                          l->params_size, STR_ARG(e->name), p->params_bytes);
    return true;
}

/* The blocks of a cluster, by the launch, by the kernel, or one. */
static void cluster_of(const struct sim_launch *l, uint32_t out[3]) {
    const uint32_t *given = l->cluster[0] ? l->cluster : l->program->entry->cluster;
    for (int i = 0; i < 3; i++)
        out[i] = given[i] ? given[i] : 1;
}

static bool check_cluster(const struct sim_launch *l, struct sim_result *r) {
    const uint32_t *fixed = l->program->entry->cluster;
    uint32_t c[3];
    cluster_of(l, c);
    for (int i = 0; i < 3; i++) {
        if (fixed[i] && c[i] != fixed[i])
            return bad_launch(r,
                              "a cluster of (%u,%u,%u) blocks is not the (%u,%u,%u) kernel %.*s "
                              "requires",
                              c[0], c[1], c[2], fixed[0], fixed[1], fixed[2],
                              STR_ARG(l->program->entry->name));
        if (c[i] > MAX_CLUSTER || l->grid[i] % c[i] != 0)
            return bad_launch(r,
                              "a grid of (%u,%u,%u) blocks cannot be divided into clusters of "
                              "(%u,%u,%u)",
                              l->grid[0], l->grid[1], l->grid[2], c[0], c[1], c[2]);
    }
    if (c[0] * c[1] * c[2] > MAX_CLUSTER)
        return bad_launch(r, "a cluster of (%u,%u,%u) has more than %u blocks", c[0], c[1], c[2],
                          MAX_CLUSTER);
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (l->cooperative && blocks > MAX_COOPERATIVE)
        return bad_launch(r,
                          "%" PRIu64 " blocks of a cooperative launch cannot all run at the same "
                          "time; the simulator has room for %u",
                          blocks, MAX_COOPERATIVE);
    return true;
}

/* When the launch is over its budget in some gang, lower ones still run, for they may find a fault
 * that comes first; each of them is then held to the whole budget alone. */
uint64_t thread_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

bool worker_settle(struct worker *w) {
    struct launch *la = w->la;
    uint64_t ran = w->allowed - w->fuel;
    uint64_t used = atomic_fetch_add(&la->used, ran) + ran;
    w->gang->used += ran;
    w->fuel = w->allowed = WORKER_FUEL;
    if (la->l->patience_us && thread_us() - w->begun_us > la->l->patience_us) {
        atomic_store(&la->late, true);
        return false;
    }
    if (used <= la->budget)
        return true;
    uint64_t stop = atomic_load(&la->stop_at);
    return stop != UINT64_MAX && w->gang->ordinal < stop && w->gang->used <= la->budget;
}

/* Aligned as its declaration asks. */
struct tile_scratch *worker_tiles(struct worker *w) {
    const uintptr_t align = _Alignof(struct tile_scratch);
    if (!w->tiles)
        w->tiles = mem_alloc(sizeof(struct tile_scratch) + align);
    return (struct tile_scratch *)(((uintptr_t)w->tiles + align - 1) & ~(align - 1));
}

static struct worker *worker_new(struct launch *la) {
    const struct sim_program *p = la->p;
    struct worker *w = mem_alloc(sizeof *w);
    *w = (struct worker){
        .la = la, .p = p, .fault_ordinal = UINT64_MAX, .fuel = WORKER_FUEL, .allowed = WORKER_FUEL};
    w->scratch = mem_alloc(16 * SIM_LANES);
    w->warp_counts = mem_alloc(p->ncode * sizeof *w->warp_counts);
    w->lane_counts = mem_alloc(p->ncode * sizeof *w->lane_counts);
    w->straight = mem_alloc((p->ncode + 1) * sizeof *w->straight);
    w->traffic = mem_alloc(p->ncode * sizeof *w->traffic);
    w->memos = mem_alloc(p->ncode * sizeof *w->memos);
    w->covered = la->l->covered ? mem_alloc(p->ncode) : NULL;
    w->misses =
        la->l->misses && la->gang_ctas == 1 ? mem_alloc(p->ncode * sizeof *w->misses) : NULL;
    if (!p->ordered && !la->l->cooperative)
        w->stores = stores_new(la);
    return w;
}

static void worker_free(struct worker *w) {
    while (w->spare) {
        struct gang *g = w->spare;
        w->spare = g->next;
        gang_free(w->la, g);
    }
    mem_free(w->scratch);
    mem_free(w->tiles);
    mem_free(w->warp_counts);
    mem_free(w->lane_counts);
    mem_free(w->straight);
    mem_free(w->traffic);
    for (size_t k = 0; k < w->p->ncode; k++)
        mem_free(w->memos[k]);
    mem_free(w->memos);
    mem_free(w->covered);
    mem_free(w->misses);
    stores_free(w->la, w->stores);
    mem_free(w);
}

/* Straight lines become counts of their instructions. */
static void unroll(struct worker *w) {
    int64_t warps = 0;
    for (size_t k = 0; k < w->p->ncode; k++) {
        warps += w->straight[k];
        w->warp_counts[k] += (uint64_t)warps;
        w->lane_counts[k] += (uint64_t)warps * SIM_LANES;
    }
}

static void add_counts(const struct worker *w, struct sim_counters *c) {
    for (size_t k = 0; k < w->p->ncode; k++) {
        const struct instr *in = &w->p->code[k];
        uint64_t warps = w->warp_counts[k], lanes = w->lane_counts[k];
        *(in->class == CLASS_TENSOR ? &c->tensor_flops : &c->flops) += lanes * in->flops;
        c->warp_waits += in->waits ? warps : 0;
        c->shared_requests += w->traffic[k].shared_requests;
        c->shared_wavefronts += w->traffic[k].shared_wavefronts;
        c->shared_conflicts += w->traffic[k].shared_conflicts;
        if (!in->counted)
            continue;
        c->warp_instrs += warps;
        c->lane_instrs += lanes;
        uint64_t *class = in->class == CLASS_FP32      ? &c->warp_fp32
                          : in->class == CLASS_FP64    ? &c->warp_fp64
                          : in->class == CLASS_INT     ? &c->warp_int
                          : in->class == CLASS_SPECIAL ? &c->warp_special
                          : in->class == CLASS_MEMORY  ? &c->warp_memory
                          : in->class == CLASS_TENSOR  ? &c->warp_tensor
                                                       : &c->warp_control;
        *class += warps;
    }
}

void sim_counters_add(struct sim_counters *s, const struct sim_counters *c) {
    uint32_t load = c->widest_load > s->widest_load ? c->widest_load : s->widest_load;
    uint32_t store = c->widest_store > s->widest_store ? c->widest_store : s->widest_store;
#define COUNTER(type, name) s->name += c->name;
#include "sim/counters.def"
#undef COUNTER
    s->widest_load = load;
    s->widest_store = store;
}

static bool untouched(const struct mapped *b, size_t page) {
    return b->pages &&
           atomic_load_explicit(&b->pages[page], memory_order_relaxed) == PAGE_UNTOUCHED;
}

/* Of pages that nobody touched not even the bits are: of a large workspace they are many. */
static uint64_t count_bits(const _Atomic uint64_t *map, const struct mapped *b) {
    const size_t words = SIM_PAGE / SECTOR / 64, all = b->b.size / SECTOR / 64 + 1;
    uint64_t n = 0;
    for (size_t i = 0; i < all; i++) {
        if (untouched(b, i / words))
            continue;
        n += (uint64_t)__builtin_popcountll(atomic_load_explicit(&map[i], memory_order_relaxed));
    }
    return n;
}

/* Sixteenth parts of a buffer without a single one. */
static unsigned untouched_parts(const _Atomic uint64_t *map, size_t bytes) {
    const size_t parts = 16, words = bytes / SECTOR / 64;
    unsigned n = 0;
    for (size_t p = 0; p < parts; p++) {
        size_t i = words * p / parts, end = words * (p + 1) / parts;
        while (i < end && !atomic_load_explicit(&map[i], memory_order_relaxed))
            i++;
        n += i == end && end > words * p / parts;
    }
    return n;
}

static void touched_new(struct launch *la) {
    la->touched = mem_alloc((la->m->n + 1) * sizeof *la->touched);
    for (size_t i = 0; i < la->m->n; i++) {
        size_t bytes = (la->m->maps[i].b.size / SECTOR / 64 + 1) * sizeof(uint64_t);
        la->touched[i].loads = mem_alloc(bytes);
        la->touched[i].stores = mem_alloc(bytes);
    }
}

/* What the whole launch would touch: what the sample did, in proportion, but never more than there
 * is. Of blocks that share what they read this is too much until all of it is read. */
static uint64_t scaled(const struct sim_counters *c, uint64_t sectors, size_t bytes) {
    uint64_t all = bytes / SECTOR + 1;
    double whole = c->ctas ? (double)sectors * (double)c->ctas_total / (double)c->ctas : 0;
    return whole < (double)all ? (uint64_t)whole : all;
}

static void touched_free(struct launch *la, struct sim_counters *c, struct sim_stores *results) {
    for (size_t i = 0; i < la->m->n; i++) {
        size_t size = la->m->maps[i].b.size;
        uint64_t loads = count_bits(la->touched[i].loads, &la->m->maps[i]);
        uint64_t stores = count_bits(la->touched[i].stores, &la->m->maps[i]);
        if (la->m->maps[i].b.result) {
            results->distinct += (double)stores;
            results->untouched += untouched_parts(la->touched[i].stores, size);
        }
        c->touched_load_sectors += loads;
        c->touched_store_sectors += stores;
        c->footprint_load_sectors += scaled(c, loads, size);
        c->footprint_store_sectors += scaled(c, stores, size);
        mem_free((void *)la->touched[i].loads);
        mem_free((void *)la->touched[i].stores);
    }
    mem_free(la->touched);
}

static void finish(struct worker **workers, unsigned n, struct sim_result *out) {
    uint64_t lowest = UINT64_MAX;
    for (unsigned i = 0; i < n; i++) {
        struct worker *w = workers[i];
        unroll(w);
        out->drawn |= w->drawn;
        add_counts(w, &w->c);
        sim_counters_add(&out->counters, &w->c);
        for (size_t k = 0; w->covered && k < w->p->ncode; k++)
            w->la->l->covered[k] |= w->covered[k];
        if (w->misses)
            coverage_merge_misses(w->la->l->misses, w->misses, w->p->ncode);
        if (w->stores) {
            out->stores.gangs += w->stores->gangs;
            out->stores.storing += w->stores->storing;
            out->stores.sum += w->stores->sum;
            out->stores.squares += w->stores->squares;
        }
        if (w->status != SIM_OK && w->fault_ordinal < lowest) {
            lowest = w->fault_ordinal;
            out->status = w->status;
            out->fault = w->fault;
        }
    }
}

static uint64_t divisor(uint64_t a, uint64_t b) {
    return b ? divisor(b, a % b) : a;
}

/* What a GPU shows of itself: which SM has which block, and how long it has run. */
static void deal(struct launch *la) {
    struct rng r = rng_stream(la->l->noise, S("machine"));
    uint32_t sms = la->l->sms ? la->l->sms : DEFAULT_SMS;
    la->sm_step = 1;
    la->clock = 4000;
    if (!la->l->noise)
        return;
    la->sm_first = (uint32_t)rng_below(r, 0, sms);
    la->sm_step = 1 + (uint32_t)rng_below(r, 1, sms);
    while (divisor(la->sm_step, sms) != 1)
        la->sm_step++;
    la->clock = (UINT64_C(1) << 40) + rng_below(r, 2, UINT64_C(1) << 48);
}

static void launch_init(struct launch *la, struct sim_machine *m, const struct sim_launch *l) {
    *la = (struct launch){.l = l, .p = l->program, .m = m};
    cluster_of(l, la->cluster);
    la->gang_ctas = la->cluster[0] * la->cluster[1] * la->cluster[2];
    la->gangs_total = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / la->gang_ctas;
    uint64_t sample = (l->sample_ctas + la->gang_ctas - 1) / la->gang_ctas;
    la->gangs = sample && sample < la->gangs_total && !l->cooperative ? sample : la->gangs_total;
    grid_sample(la);
    la->together = l->program->meets || la->gang_ctas > 1 || l->cooperative || l->checks ||
                   l->clocks || l->order;
    la->threads = l->block[0] * l->block[1] * l->block[2];
    la->nwarps = (la->threads + SIM_LANES - 1) / SIM_LANES;
    la->slots = la->nwarps + 1 + (l->program->uses_wgmma ? (la->nwarps + 3) / 4 : 0);
    la->shared_bytes = l->program->static_shared + l->dynamic_shared;
    for (int d = 0; d < 3; d++)
        la->tid[d] = mem_alloc(la->nwarps * SIM_LANES * sizeof *la->tid[d]);
    for (uint32_t t = 0; t < la->nwarps * SIM_LANES; t++) {
        la->tid[0][t] = t % l->block[0];
        la->tid[1][t] = t / l->block[0] % l->block[1];
        la->tid[2][t] = t / l->block[0] / l->block[1];
    }
    uint64_t ctas = la->gangs * la->gang_ctas;
    uint64_t warps = ctas > UINT32_MAX ? UINT32_MAX : ctas * la->nwarps;
    la->budget = l->max_warp_instrs ? l->max_warp_instrs : (UINT64_C(1) << 28) + (warps << 20);
    la->noise = noise_new(l->noise);
    deal(la);
    atomic_init(&la->used, 0);
    atomic_init(&la->late, false);
    atomic_init(&la->stop_at, UINT64_MAX);
    atomic_init(&la->next, 0);
}

static void launch_release(struct launch *la) {
    mem_free(la->noise);
    mem_free(la->shuffled);
    mem_free(la->sampled);
    for (int d = 0; d < 3; d++)
        mem_free(la->tid[d]);
}

/* The driver gives a cooperative grid some memory, in which its threads find their barrier. Here it
 * is the machine's last buffer while the launch runs. */
static void workspace_add(struct launch *la) {
    const struct sim_buffer b = {
        .name = S("the grid's barrier"), .host = la->counts, .size = sizeof la->counts};
    if (la->l->cooperative)
        la->workspace = sim_machine_add(la->m, &b);
}

static void workspace_remove(struct launch *la) {
    if (!la->workspace)
        return;
    la->m->n--;
    la->m->next = la->workspace;
}

static unsigned thread_count(const struct launch *la) {
    const struct sim_launch *l = la->l;
    if (l->program->ordered || l->cooperative || l->checks)
        return 1;
    unsigned n = l->threads < 1 ? 1 : l->threads > MAX_THREADS ? MAX_THREADS : l->threads;
    return n > la->gangs ? (unsigned)la->gangs : n;
}

void sim_run(struct sim_machine *m, const struct sim_launch *l, struct sim_result *out) {
    *out = (struct sim_result){.status = SIM_OK};
    if (!check_shape(l, out) || !check_entry(l, out) || !check_cluster(l, out))
        return;
    struct launch la;
    launch_init(&la, m, l);
    if (l->cooperative && la.gangs > MAX_RESIDENT_BYTES / gang_bytes(&la)) {
        bad_launch(out,
                   "%" PRIu64 " blocks of a cooperative launch need more memory than the "
                   "simulator gives them",
                   la.gangs * la.gang_ctas);
        launch_release(&la);
        return;
    }
    unsigned n = thread_count(&la);
    la.shuffled = n == 1 ? draw_shuffle(&la) : NULL;
    la.chunk = la.sampled ? SIM_STRETCH : la.gangs / n / 16 + 1;
    la.alone = n == 1;
    workspace_add(&la);
    touched_new(&la);
    la.timing = timing_new(&la);
    if (l->checks) {
        la.check = check_new(&la);
        if (l->findings)
            *l->findings = (struct sim_findings){0};
    }
    struct worker *workers[MAX_THREADS];
    pthread_t threads[MAX_THREADS];
    bool started[MAX_THREADS] = {false};
    for (unsigned i = 0; i < n; i++)
        workers[i] = worker_new(&la);
    for (unsigned i = 1; i < n; i++) /* where no thread can be had, the others do its work */
        started[i] = pthread_create(&threads[i], NULL, grid_work, workers[i]) == 0;
    grid_work(workers[0]);
    for (unsigned i = 1; i < n; i++)
        if (started[i])
            pthread_join(threads[i], NULL);
    finish(workers, n, out);
    if (l->lines)
        lines_collect(&la, workers, n, out);
    for (unsigned i = 0; i < n; i++)
        worker_free(workers[i]);
    out->counters.ctas_total = la.gangs_total * la.gang_ctas;
    out->late = out->status == SIM_BUDGET && atomic_load(&la.late);
    out->stores.gangs_total = la.gangs_total;
    touched_free(&la, &out->counters, &out->stores);
    check_free(&la, la.check);
    timing_free(la.timing);
    workspace_remove(&la);
    launch_release(&la);
}
