/* The first byte chooses the parser: strategies or decision files. What is accepted must survive
 * being written and read again. */
#include "strategy/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_strategy(const struct catalogue *c, str text) {
    struct strategy s, back;
    struct err err;
    struct buf b;
    if (!strategy_parse(c, text, &s, &err))
        return;
    buf_init(&b, 64u << 10);
    strategy_text(c, &s, &b);
    bool again = strategy_parse(c, buf_str(&b), &back, &err) && strategy_equal(c, &s, &back);
    BUG_IF(!again);
    buf_release(&b);
}

static void fuzz_decision(struct arena *a, str text) {
    struct decision d;
    struct err err;
    if (!decision_parse(S("fuzz.decision"), S("fuzz"), text, a, &d, &err))
        return;
    struct catalogue c = {.decisions = &d, .n = 1};
    struct ground g = {.workload = {[WORKLOAD_POINTWISE] = true}};
    struct strategy s;
    if (!catalogue_settle(&c, &err))
        return;
    strategy_fallback(&c, &g, &s);
    strategy_mutate(&c, &g, &s, rng_stream(1, S("fuzz")), &s);
    struct strategy legal = s;
    strategy_repair(&c, &g, &legal);
    BUG_IF(!strategy_equal(&c, &s, &legal));
    BUG_IF(strategy_distance(&c, &s, &s) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct arena *a = arena_new(64u << 20);
    str text = {(const char *)data + 1, size - 1};
    struct catalogue *c;
    struct err err;
    if (data[0] & 1)
        fuzz_decision(a, text);
    else if (catalogue_load(NULL, a, &c, &err))
        fuzz_strategy(c, text);
    arena_free(a);
    return 0;
}
