/* Which of the two made a strategy decides who writes and aligns it: the model's are remembered by
 * their hash. A strategy that the search moved away from the model's proposal is the expert's. */
#include "agent/llm/llm.h"
#include "base/hash.h"

#include <string.h>

#define MODEL_SHARE 0.5        /* of the children of a generation */
#define WHO         UINT64_MAX /* the part of a slot's stream that decides it */

struct hybrid {
    struct agent *expert, *llm;
    const struct catalogue *catalogue;
    digest *mine; /* the model's */
    size_t n, cap;
    struct relay *open;
};

/* A child that the model proposes, on its way back. */
struct relay {
    struct hybrid *h;
    struct relay *next;
    agent_plan_fn *done;
    void *ctx;
};

static bool is_models(const struct hybrid *h, const struct briefing *b, const struct strategy *s) {
    digest d = strategy_hash(b->catalogue, s);
    for (size_t i = 0; i < h->n; i++)
        if (memcmp(&h->mine[i], &d, sizeof d) == 0)
            return true;
    return false;
}

static struct agent *author(struct hybrid *h, const struct briefing *b, const struct strategy *s) {
    return is_models(h, b, s) ? h->llm : h->expert;
}

static void hybrid_plan(void *self, const struct briefing *b, size_t n, struct rng r,
                        agent_plan_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->expert->plan(h->expert->self, b, n, r, done, ctx);
}

static void relay_free(struct relay *r) {
    struct relay **at = &r->h->open;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    mem_free(r);
}

static void on_child(void *ctx, const struct strategy *s, size_t n, str reason,
                     const struct err *err) {
    struct relay *r = ctx;
    struct hybrid *h = r->h;
    for (size_t i = 0; !err && i < n; i++) {
        h->mine = mem_grow(h->mine, &h->cap, h->n + 1, sizeof *h->mine);
        h->mine[h->n++] = strategy_hash(h->catalogue, &s[i]);
    }
    agent_plan_fn *done = r->done;
    void *to = r->ctx;
    relay_free(r);
    done(to, s, n, reason, err);
}

static void hybrid_cross(void *self, const struct briefing *b, const struct parent *x,
                         const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx) {
    struct hybrid *h = self;
    if (!(rng_unit(rng_sub(r, WHO), 0) < MODEL_SHARE)) {
        h->expert->cross(h->expert->self, b, x, y, r, done, ctx);
        return;
    }
    struct relay *relay = mem_alloc(sizeof *relay);
    *relay = (struct relay){h, h->open, done, ctx};
    h->open = relay;
    h->catalogue = b->catalogue;
    struct briefing told = *b;
    told.by_rule = true;
    h->llm->cross(h->llm->self, &told, x, y, r, on_child, relay);
}

static void hybrid_code(void *self, const struct briefing *b, const struct strategy *s,
                        agent_code_fn *done, void *ctx) {
    struct agent *a = author(self, b, s);
    a->code(a->self, b, s, done, ctx);
}

static void hybrid_align(void *self, const struct briefing *b, const struct strategy *s,
                         const struct strategy *written, const struct record *record,
                         agent_plan_fn *done, void *ctx) {
    struct agent *a = author(self, b, s);
    a->align(a->self, b, s, written, record, done, ctx);
}

static str hybrid_remarks(void *self, const char *source_hash, struct arena *a) {
    struct hybrid *h = self;
    return h->llm->remarks(h->llm->self, source_hash, a);
}

static void hybrid_debug(void *self, const struct briefing *b, const struct attempt *a, str earlier,
                         agent_edit_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->llm->debug(h->llm->self, b, a, earlier, done, ctx);
}

static void hybrid_improve(void *self, const struct briefing *b, const struct attempt *a,
                           const struct guidance *g, agent_edit_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->llm->improve(h->llm->self, b, a, g, done, ctx);
}

static void hybrid_free(void *self) {
    struct hybrid *h = self;
    while (h->open)
        relay_free(h->open);
    mem_free(h->mine);
    mem_free(h);
}

void hybrid_new(struct agent *expert, struct agent *llm, struct agent *out) {
    struct hybrid *h = mem_alloc(sizeof *h);
    *h = (struct hybrid){.expert = expert, .llm = llm};
    *out = (struct agent){.name = "hybrid",
                          .self = h,
                          .plan = hybrid_plan,
                          .cross = hybrid_cross,
                          .code = hybrid_code,
                          .align = hybrid_align,
                          .remarks = hybrid_remarks,
                          .release = hybrid_free,
                          .debug = hybrid_debug,
                          .improve = hybrid_improve};
}
