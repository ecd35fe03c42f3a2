/* Which gang runs when.
 *
 * Blocks that know nothing of each other run to their end, one after the other, on any number of
 * threads. Blocks that see each other's work (atomics, fences, flags) run on one thread, so that
 * results do not depend on how many there are: each until it waits for memory to change or has had
 * its share, then the next one starts; rounds over those that have started, until they end. A
 * cooperative launch is this with room for all blocks.
 *
 * Nobody progresses when for many rounds every block that started waits for memory and none has
 * written any. */
#include "sim/timing.h"

#include "base/rng.h"

#include <stdlib.h>

#define DEFAULT_RESIDENT 2048u
#define IDLE_ROUNDS      16u
#define IDLE_DRAWN       1024u /* where the order is drawn */
#define IDLE_INSTRS      (UINT64_C(1) << 20)
#define NEAREST          UINT64_C(16) /* power of two between gangs of a sample, of so many: */
#define POWERS           13

uint64_t grid_clock(const struct worker *w) {
    return w->gang->used + (w->allowed - w->fuel);
}

/* ---- which gangs run, of more than there is time for ---- */

/* The k-th: spread evenly, the last one among them, or drawn from a part of the grid each. */
static uint64_t sample_apart(const struct launch *la, uint64_t k) {
    uint64_t at = (uint64_t)((unsigned __int128)k * (la->gangs_total - 1) / (la->gangs - 1));
    if (!la->l->sample_key || k == 0 || k == la->gangs - 1)
        return at;
    /* Up to where the next one lies. */
    uint64_t room = (la->gangs_total - 1) / (la->gangs - 1);
    return at + rng_below(rng_stream(la->l->sample_key, S("sample")), k, room);
}

/* What blocks share they share with the next one, or with one that is a round number further on:
 * a row, a place in a ring, a flag. */
static uint64_t neighbour(const struct launch *la, uint64_t k, uint64_t of) {
    struct rng r = rng_stream(la->l->sample_key, S("neighbours"));
    uint64_t far = NEAREST << rng_below(r, k, POWERS), left = la->gangs_total - 1 - of;
    while (far > left)
        far /= 2;
    return of + (k / 2 % 2 && far ? far : left > 0);
}

static int by_number(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* No block may run twice: what it works on in place would be worked on again. */
static uint64_t keep_distinct(uint64_t *list, uint64_t n) {
    uint64_t kept = 0;
    qsort(list, n, sizeof *list, by_number);
    for (uint64_t i = 0; i < n; i++)
        if (!i || list[i] != list[i - 1])
            list[kept++] = list[i];
    return kept;
}

static uint64_t in_stretches(const struct launch *la, uint64_t k) {
    uint64_t part = la->gangs_total / (la->gangs / SIM_STRETCH), i = k / SIM_STRETCH;
    struct rng r = rng_stream(la->l->sample_key, S("stretches"));
    return i * part + rng_below(r, i, part - SIM_STRETCH + 1) + k % SIM_STRETCH;
}

void grid_sample(struct launch *la) {
    bool stretches = la->l->sample_draw == SIM_DRAW_STRETCHES;
    if (la->gangs == la->gangs_total || !la->l->sample_key || la->p->ordered ||
        la->l->sample_draw == SIM_DRAW_APART || la->gangs < (stretches ? SIM_STRETCH : 2))
        return;
    if (stretches)
        la->gangs -= la->gangs % SIM_STRETCH;
    uint64_t *list = mem_alloc((la->gangs + la->l->nalso) * sizeof *list);
    for (uint64_t k = 0; k < la->gangs; k++)
        list[k] = stretches                          ? in_stretches(la, k)
                  : k % 2 == 0 || k + 1 == la->gangs ? sample_apart(la, k)
                                                     : neighbour(la, k, list[k - 1]);
    for (size_t i = 0; i < la->l->nalso && !stretches && la->gang_ctas == 1; i++)
        if (la->l->sample_also[i] < la->gangs_total)
            list[la->gangs++] = la->l->sample_also[i];
    la->gangs = keep_distinct(list, la->gangs);
    la->sampled = list;
}

/* The linear index of the k-th gang that runs. */
static uint64_t gang_index(const struct launch *la, uint64_t k) {
    if (la->shuffled)
        return la->shuffled[k];
    if (la->sampled)
        return la->sampled[k];
    if (la->gangs == la->gangs_total || la->gangs == 1 || la->p->ordered)
        return k;
    return sample_apart(la, k);
}

void grid_cta_id(const struct launch *la, uint64_t gang, uint32_t rank, uint32_t id[3]) {
    const uint32_t *n = la->cluster;
    const uint64_t index = gang_index(la, gang), x = la->l->grid[0] / n[0],
                   y = la->l->grid[1] / n[1];
    id[0] = (uint32_t)(index % x) * n[0] + rank % n[0];
    id[1] = (uint32_t)(index / x % y) * n[1] + rank / n[0] % n[1];
    id[2] = (uint32_t)(index / x / y) * n[2] + rank / n[0] / n[1];
}

static void stop_from(struct launch *la, uint64_t ordinal) {
    uint64_t old = atomic_load(&la->stop_at);
    while (ordinal < old && !atomic_compare_exchange_weak(&la->stop_at, &old, ordinal))
        continue;
}

static struct gang *take(struct worker *w, uint64_t ordinal) {
    struct gang *g = w->spare;
    if (g)
        w->spare = g->next;
    else
        g = gang_new(w);
    g->next = NULL;
    gang_start(w, g, ordinal, gang_index(w->la, ordinal));
    return g;
}

static void put_back(struct worker *w, struct gang *g) {
    g->next = w->spare;
    w->spare = g;
}

/* One thread runs all gangs of a stretch. */
static bool stretch_goes_on(const struct launch *la, uint64_t ordinal) {
    return la->sampled && la->l->sample_draw == SIM_DRAW_STRETCHES &&
           (ordinal + 1) % SIM_STRETCH != 0;
}

/* What it ran is accounted for where it ran: a gang's clock is its own. */
static enum gang_end step(struct worker *w, struct gang *g) {
    w->gang = g;
    enum gang_end end = gang_step(w, g);
    bool over = end != GANG_FAILED && !worker_settle(w);
    if (over && !warp_over_budget(w))
        return GANG_FAILED;
    if (end == GANG_DONE) {
        w->c.ctas += g->n;
        w->c.warps += (uint64_t)g->n * w->la->nwarps;
        w->progress++;
        if (g->time)
            timing_end(w, g);
        if (w->stores && !stretch_goes_on(w->la, g->ordinal))
            stores_gang_done(w);
    }
    return end;
}

struct rounds {
    struct gang *first, **last; /* resident, in the order they started */
    uint64_t resident, most;
    uint64_t progress;    /* when last looked at */
    uint64_t idle, since; /* rounds without any; instructions at the first of them */
};

static bool progresses(struct worker *w, struct rounds *r, bool busy, uint64_t used) {
    if (busy || w->progress != r->progress) {
        r->progress = w->progress;
        r->idle = 0;
        r->since = used;
        return true;
    }
    if (w->la->l->order) /* rounds are long there, and every warp had its turn in them */
        return ++r->idle < IDLE_DRAWN;
    return ++r->idle < IDLE_ROUNDS || used - r->since < IDLE_INSTRS;
}

/* Nobody but the gang itself can change what it waits for. */
static enum gang_end run_alone(struct worker *w, struct gang *g) {
    struct rounds r = {.first = g, .progress = w->progress, .since = g->used};
    for (;;) {
        enum gang_end e = step(w, g);
        if (e != GANG_POLLS && e != GANG_BUSY)
            return e;
        if (!progresses(w, &r, e == GANG_BUSY, g->used)) {
            stuck_grid(w, g);
            return GANG_FAILED;
        }
    }
}

static void work_apart(struct worker *w) {
    struct launch *la = w->la;
    for (;;) {
        uint64_t first = atomic_fetch_add(&la->next, la->chunk);
        if (first >= la->gangs)
            return;
        uint64_t end = first + la->chunk < la->gangs ? first + la->chunk : la->gangs;
        for (uint64_t k = first; k < end && k < atomic_load(&la->stop_at); k++) {
            struct gang *g = take(w, k);
            enum gang_end e = run_alone(w, g);
            put_back(w, g);
            if (e == GANG_FAILED) {
                stop_from(la, k);
                return;
            }
        }
    }
}

/* One gang's turn. `*at` is the link to it, moved on to the next one. False: a fault. */
static bool turn(struct worker *w, struct rounds *r, struct gang ***at, bool *busy) {
    struct gang *g = **at;
    enum gang_end e = step(w, g);
    if (e == GANG_FAILED)
        return false;
    *busy |= e == GANG_BUSY;
    if (e != GANG_DONE) {
        *at = &g->next;
        return true;
    }
    **at = g->next;
    if (r->last == &g->next)
        r->last = *at;
    r->resident--;
    put_back(w, g);
    return true;
}

/* Earlier gangs wait perhaps for those that have not started: a few more start each round, the more
 * wait already. One that ends at once makes room for the next without a round. */
static bool admit(struct worker *w, struct rounds *r) {
    struct launch *la = w->la;
    uint64_t new = 1 + r->resident / 8, started = 0;
    while (r->resident < r->most && started < new &&atomic_load(&la->next) < la->gangs) {
        struct gang *g = take(w, atomic_fetch_add(&la->next, 1)), **at = r->last;
        uint64_t before = r->resident;
        bool busy = false;
        *r->last = g;
        r->last = &g->next;
        r->resident++;
        if (!turn(w, r, &at, &busy))
            return false;
        started += r->resident > before;
    }
    return true;
}

uint64_t grid_resident(const struct launch *la) {
    uint64_t asked = la->l->resident_ctas ? la->l->resident_ctas : DEFAULT_RESIDENT;
    uint64_t room = MAX_RESIDENT_BYTES / gang_bytes(la), n = asked / la->gang_ctas;
    if (la->l->cooperative)
        return la->gangs; /* sim_run has looked at the room */
    n = n < room ? n : room;
    return n ? n : 1;
}

static void work_in_turns(struct worker *w) {
    struct launch *la = w->la;
    struct rounds r = {.last = &r.first, .most = grid_resident(la)};
    bool ok = true;
    do {
        bool busy = false;
        uint64_t before = atomic_load(&la->next);
        ok = admit(w, &r);
        for (struct gang **at = &r.first; ok && *at;)
            if ((*at)->drawn && (*at)->next && draw_below(*at, 2))
                at = &(*at)->next;
            else
                ok = turn(w, &r, &at, &busy);
        busy |= atomic_load(&la->next) != before;
        if (ok && r.first && !progresses(w, &r, busy, atomic_load(&la->used)))
            ok = stuck_grid(w, r.first);
    } while (ok && (r.first || atomic_load(&la->next) < la->gangs));
    while (r.first) {
        struct gang *g = r.first;
        r.first = g->next;
        put_back(w, g);
    }
}

void *grid_work(void *worker) {
    struct worker *w = worker;
    w->begun_us = thread_us();
    if (w->p->ordered || w->la->l->cooperative)
        work_in_turns(w);
    else
        work_apart(w);
    return NULL;
}
