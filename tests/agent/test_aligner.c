/* Strategies read off what the code shows. */
#include "agent/agent.h"
#include "agent/expert/expert.h"
#include "tap.h"

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;

struct row {
    const char *strategy;
    const char *forms; /* of the kernel */
    int spill;
    const char *aligned, *reason;
    bool cute; /* the source */
};
static const struct row rows[] = {
    {"vector-width=4 items=2", "\"ld.global.nc.128\": 2, \"st.global.128\": 1", 0,
     "items=2 vector-width=4", ""},
    {"vector-width=4", "\"ld.global.32\": 2, \"st.global.32\": 1", 0, "vector-width=1",
     "vector-width=1, not 4"},
    {"vector-width=8", "\"ld.global.128\": 2", 0, "vector-width=8", ""}, /* two of 16 bytes */
    {"vector-width=4", "\"ld.shared.128\": 2, \"st.global.64\": 1", 0, "vector-width=2",
     "vector-width=2, not 4"},
    {"cache-hint=1", "\"ld.global.128\": 2", 0, "cache-hint=0", "no streaming access"},
    {"cache-hint=1", "\"ld.global.cs.128\": 2", 0, "cache-hint=1", ""},
    {"tensor-path=1", "\"mma.sync.aligned.m16n8k8\": 4", 0, "tensor-path=1", ""},
    {"tensor-path=1", "\"ld.global.128\": 4", 0, "tensor-path=0", "tensor-path=0, not 1"},
    {"tensor-path=2", "\"wgmma.mma_async\": 4", 0, "tensor-path=2", ""},
    {"row-cluster=8", "\"bar.sync\": 4", 0, "row-cluster=1", "no cluster barrier"},
    {"row-cluster=8", "\"barrier.cluster.arrive\": 4", 0, "row-cluster=8", ""},
    {"fast-math=1", "\"ex2.approx.ftz.f32\": 4", 0, "fast-math=1", ""},
    {"fast-math=1", "\"ld.global.32\": 4", 0, "fast-math=0", "no approximate function"},
    {"items=2", "\"ld.global.32\": 4", 24, "items=2", "spills 24 bytes"},
    {"dialect=cute", "\"ld.global.32\": 4", 0, "dialect=cuda", "dialect=0, not 1"},
    {"dialect=cuda", "\"ld.global.32\": 4", 0, "dialect=cuda", ""},
    {"dialect=cuda", "\"ld.global.32\": 4", 0, "dialect=cute", "dialect=1, not 0", true},
    {"dialect=cute", "\"ld.global.32\": 4", 0, "dialect=cute", "", true},
};

static void check(const struct briefing *b, const struct row *r, const json *record) {
    struct strategy s, aligned;
    struct buf text, reason;
    buf_init(&text, 4096);
    buf_init(&reason, 4096);
    CHECKF(strategy_parse(catalogue, str_view(r->strategy), &s, &err), "%s", err.text);
    aligner_align(b, &s, record, &aligned, &reason);
    strategy_text(catalogue, &aligned, &text);
    CHECKF(str_is(buf_str(&text), r->aligned), "%s: %.*s", r->strategy, STR_ARG(buf_str(&text)));
    CHECKF(*r->reason ? str_find(buf_str(&reason), str_view(r->reason)) < reason.n : !reason.n,
           "%s: '%.*s'", r->strategy, STR_ARG(buf_str(&reason)));
    buf_release(&text);
    buf_release(&reason);
}

static void test_rows(void) {
    struct briefing b = {.catalogue = catalogue, .features = {.dtype = DTYPE_F32}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str text = arena_printf(mem,
                                "{\"cute\": %s, \"kernels\": [{\"name\": \"k\", "
                                "\"spill_bytes\": %d, \"census\": {\"forms\": {%s}}}]}",
                                rows[i].cute ? "true" : "false", rows[i].spill, rows[i].forms);
        json *record = json_parse(text, &err);
        CHECKF(record, "%s", err.text);
        if (record)
            check(&b, &rows[i], record);
        json_free(record);
    }
}

/* Of a candidate that was never compiled nothing is known. */
static void test_nothing(void) {
    struct briefing b = {.catalogue = catalogue, .features = {.dtype = DTYPE_F32}};
    struct row r = {.strategy = "tensor-path=1 vector-width=4",
                    .aligned = "tensor-path=1 vector-width=4",
                    .reason = ""};
    json *empty = json_object();
    check(&b, &r, empty);
    json_free(empty);
}

static const struct tap_case cases[] = {
    {"by the instructions", test_rows},
    {"without any", test_nothing},
};

int main(void) {
    mem = arena_new((size_t)16 << 20);
    if (!catalogue_load(NULL, mem, &catalogue, &err))
        BUG_IF(true);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
