/* Whether first meetings are slower: kernels that remember are found, honest ones are left alone,
 * at every noise that a GPU's clock has. The rounds are drawn as the worker makes them. */
#include "tap.h"

#include "base/rng.h"
#include "device/meetings.h"

#include <math.h>

#define MAX_MEETINGS 4096
#define TRIALS       20000

struct world {
    size_t contents;     /* 8: three kinds, one of each held back; 3 or 1: nothing is */
    size_t rounds;       /* before the question is put */
    double noise, drift; /* of a sample; of the clock, from round to round and within one */
    double start;        /* what the first run of a round costs more */
    double outliers;     /* how many samples take a third more */
    double gain;         /* of a repeated meeting: 0 for a kernel that remembers nothing */
    double seconds;
};

struct history {
    const struct world *w;
    struct rng r;
    uint64_t drawn;
    struct meeting m[MAX_MEETINGS];
    size_t n, round;
};

static double unit(struct history *h) {
    return rng_unit(h->r, h->drawn++);
}

static void sample(struct history *h, size_t kind, bool first, bool start, double at) {
    const struct world *w = h->w;
    static const double kinds[] = {1, 1.1, 0.8};
    double t = w->seconds * kinds[kind] * (1 + w->drift * ((double)h->round + at));
    t *= 1 + w->noise * rng_normal(h->r, h->drawn++) + (start ? w->start : 0);
    t *= unit(h) < w->outliers ? 1.33 : 1;
    t *= first ? 1 : 1 - w->gain;
    h->m[h->n++] = (struct meeting){
        .kind = kind, .round = h->round, .first = first, .start = start, .seconds = t};
}

/* One content of each kind is a first meeting where `fresh` says so (of 8), or one of all. */
static void add_round(struct history *h, bool first, bool fresh) {
    size_t n = h->w->contents, order[8], from = h->n;
    bool is_first[8] = {false};
    size_t held = h->round % n; /* of few contents: in turn */
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        is_first[i] = first || (fresh && (n == 8 ? i < 3 : i == held));
        if (!(first && n == 8 && i < 3)) /* held back */
            order[used++] = i;
    }
    for (size_t i = used; i > 1; i--) {
        size_t k = (size_t)rng_below(h->r, h->drawn++, i), t = order[k];
        order[k] = order[i - 1];
        order[i - 1] = t;
    }
    for (size_t i = 1; i < used && is_first[order[0]]; i++) {
        size_t t = order[0];
        order[0] = order[i];
        order[i] = t;
    }
    for (size_t i = 0; i < used; i++)
        sample(h, order[i] % 3, is_first[order[i]], i == 0, (double)i / (double)used);
    CHECK(h->n > from);
    h->round++;
}

/* As the worker asks: 0 fine, 1 suspected, 2 drift. */
static int ask(const struct world *w, uint64_t trial) {
    static struct history h;
    double slower;
    h = (struct history){.w = w, .r = rng_sub(rng_stream(7, S("meetings")), trial)};
    add_round(&h, true, false);
    for (size_t i = 1; i < w->rounds; i++)
        add_round(&h, false, i == 1 && w->contents == 8);
    if (!meetings_slower(h.m, h.n, w->contents == 8 ? 1 : 0, &slower))
        return 0;
    for (int i = 0; i < 2; i++) {
        add_round(&h, false, true);
        if (!meetings_slower(h.m, h.n, h.round - 1, &slower))
            return 1;
    }
    return 2;
}

static void rates(const struct world *w, size_t trials, double *suspected, double *drift) {
    size_t counts[3] = {0};
    for (size_t i = 0; i < trials; i++)
        counts[ask(w, i)]++;
    *suspected = (double)(counts[1] + counts[2]) / (double)trials;
    *drift = (double)counts[2] / (double)trials;
}

/* At most one in a thousand is looked at more closely, and none of twenty thousand is refused. */
static void honest_kernels(void) {
    static const struct world rows[] = {
        {8, 2, 0.005, 0, 0, 0, 0, 1e-4},      {8, 2, 0.01, 0.01, 0.3, 0, 0, 1e-4},
        {8, 2, 0.02, 0.01, 0, 0, 0, 1e-4},    {8, 2, 0.03, 0, 0, 0, 0, 1e-4},
        {8, 2, 0.03, -0.02, 0.2, 0, 0, 1e-4}, {8, 6, 0.01, 0.01, 0.1, 0, 0, 1e-4},
        {8, 6, 0.03, 0.01, 0, 0, 0, 1e-4},    {8, 12, 0.03, -0.01, 0.2, 0, 0, 1e-3},
        {3, 6, 0.005, 0, 0.1, 0, 0, 1e-2},    {3, 6, 0.03, 0, 0, 0, 0, 1e-2},
        {3, 2, 0.03, 0.02, 0.2, 0, 0, 1e-2},  {1, 6, 0.01, 0, 0, 0, 0, 1e-2},
        {8, 2, 0.03, 0.02, 0.5, 0, 0, 3e-6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double suspected, drift;
        rates(&rows[i], TRIALS, &suspected, &drift);
        printf("# %zu contents, %zu rounds, noise %g, drift %g: %.4f looked at, %.5f refused\n",
               rows[i].contents, rows[i].rounds, rows[i].noise, rows[i].drift, suspected, drift);
        CHECKF(suspected <= 0.002, "row %zu: %g are looked at", i, suspected);
        CHECKF(drift == 0, "row %zu: %g are refused", i, drift);
    }
}

/* Memory that no kernel has touched costs up to 3% on an H200 (page tables), and that is no memory
 * of results. */
static void untouched_memory(void) {
    static const struct world rows[] = {
        {8, 2, 0.005, 0, 0, 0, 0.03, 1e-4},  {8, 2, 0.01, 0.01, 0.1, 0, 0.03, 1e-4},
        {8, 2, 0.02, 0, 0, 0, 0.03, 1e-4},   {8, 4, 0.02, 0, 0, 0, 0.03, 1e-4},
        {8, 4, 0.03, 0, 0.1, 0, 0.03, 1e-4}, {3, 6, 0.01, 0, 0, 0, 0.03, 1e-2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double suspected, drift;
        rates(&rows[i], TRIALS, &suspected, &drift);
        printf("# row %zu: %.4f looked at, %.5f refused\n", i, suspected, drift);
        CHECKF(suspected < 0.05 && drift <= 0.0001, "row %zu: %g and %g", i, suspected, drift);
    }
}

/* Samples far out, and a first round at a lower clock, raise a suspicion and no more. */
static void rough_times(void) {
    static const struct world rows[] = {
        {8, 2, 0.01, 0.02, 0.3, 0.02, 0, 1e-4}, {8, 6, 0.005, 0, 0, 0.05, 0, 1e-4},
        {3, 6, 0.005, -0.03, 0, 0, 0, 1e-2},    {3, 8, 0.01, -0.02, 0.2, 0.02, 0, 1e-2},
        {1, 6, 0.005, -0.03, 0, 0, 0, 1e-2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double suspected, drift;
        rates(&rows[i], TRIALS, &suspected, &drift);
        printf("# row %zu: %.4f looked at, %.5f refused\n", i, suspected, drift);
        CHECKF(drift <= 0.0002, "row %zu: %g are refused", i, drift);
    }
}

static void kernels_that_remember(void) {
    static const struct {
        struct world w;
        double found; /* at least */
    } rows[] = {
        {{8, 2, 0.005, 0.01, 0.2, 0, 0.10, 1e-4}, 0.99},
        {{8, 2, 0.01, 0, 0, 0, 0.15, 1e-4}, 0.99},
        {{8, 2, 0.03, 0, 0, 0, 0.40, 1e-4}, 0.95},
        {{8, 6, 0.01, 0.01, 0.1, 0, 0.1, 1e-4}, 0.95},
        {{3, 6, 0.005, 0, 0, 0, 0.15, 1e-2}, 0.95},
        {{3, 6, 0.01, 0.005, 0.1, 0, 0.4, 1e-2}, 0.95},
        {{1, 6, 0.01, 0, 0, 0, 0.30, 1e-2}, 0.95},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double suspected, drift;
        rates(&rows[i].w, 2000, &suspected, &drift);
        CHECKF(drift >= rows[i].found, "row %zu: %g of them are found", i, drift);
    }
}

static void too_little_to_tell(void) {
    double slower;
    struct meeting m[] = {{0, 0, true, true, 1e-4}, {0, 1, false, true, 0.5e-4}};
    CHECK(!meetings_slower(NULL, 0, 0, &slower));
    CHECK(!meetings_slower(m, 1, 0, &slower));
    CHECK(!meetings_slower(m, 2, 0, &slower)); /* two samples have no error */
    CHECK(!meetings_slower(m, 2, 7, &slower));
}

static const struct tap_case cases[] = {
    {"honest kernels are left alone", honest_kernels},
    {"memory that nobody has touched is no offence", untouched_memory},
    {"rough times raise a suspicion at most", rough_times},
    {"kernels that remember are found", kernels_that_remember},
    {"too little to tell", too_little_to_tell},
};

int main(void) {
    return tap_main(cases, sizeof cases / sizeof *cases);
}
