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
    const char *launches; /* NULL: not known */
    int shuffles;
    bool cute; /* the source */
};
#define LAUNCH(threads, cluster, shared)                                                           \
    "{\"kernel\": \"k\", \"grid\": [9, 1, 1], \"block\": [" threads                                \
    ", 1, 1], \"cluster\": [" cluster ", 1, 1], \"shared_dynamic\": " shared "}"
#define MMA "\"mma.sync.aligned.m16n8k8\": 4, "
static const struct row rows[] = {
    {"vector-width=4 items=2", "\"ld.global.nc.128\": 2, \"st.global.128\": 1", 0,
     "items=2 vector-width=4", ""},
    {"vector-width=4", "\"ld.global.32\": 2, \"st.global.32\": 1", 0, "vector-width=1",
     "vector-width=1, not 4"},
    {"vector-width=8", "\"ld.global.128\": 2", 0, "vector-width=8", ""}, /* two of 16 bytes */
    {"vector-width=4", "\"ld.global.32\": 2, \"cp.async.cg.shared.global\": 1", 0, "vector-width=4",
     ""},
    {"vector-width=4", "\"ld.shared.128\": 2, \"st.global.64\": 1", 0, "vector-width=2",
     "vector-width=2, not 4"},
    {"cache-hint=1", "\"ld.global.128\": 2", 0, "cache-hint=0", "no streaming access"},
    {"cache-hint=1", "\"ld.global.cs.128\": 2", 0, "cache-hint=1", ""},
    {"tensor-path=1", "\"mma.sync.aligned.m16n8k8\": 4", 0, "tensor-path=1", ""},
    {"tensor-path=1", "\"ld.global.128\": 4", 0, "tensor-path=0", "tensor-path=0, not 1"},
    {"tensor-path=2", "\"wgmma.mma_async\": 4", 0, "tensor-path=2", ""},
    {"row-cluster=8", "\"bar.sync\": 4", 0, "row-cluster=1", "no such cluster"},
    {"row-cluster=8", "\"barrier.cluster.arrive\": 4", 0, "row-cluster=8", ""},
    {"fast-math=1", "\"ex2.approx.ftz.f32\": 4", 0, "fast-math=1", ""},
    {"fast-math=1", "\"ld.global.32\": 4", 0, "fast-math=0", "no approximate function"},
    {"items=2", "\"ld.global.32\": 4", 24, "items=2", "spills 24 bytes"},
    {"fast-math=1", "\"div.full.f32\": 1", 0, "fast-math=1", ""},
    {"stages=4", MMA "\"cp.async.wait_group 2\": 1, \"cp.async.wait_group 0\": 1", 0, "stages=4",
     ""},
    {"stages=4", MMA "\"cp.async.wait_group 1\": 1", 0, "stages=3", "stages=3, not 4"},
    {"stages=4", "\"cp.async.wait_group 0\": 1", 0, "stages=4", ""},     /* a tile of a window */
    {"stages=4", MMA "\"cp.async.wait_group 9\": 1", 0, "stages=4", ""}, /* no such value */
    {"warps=8", MMA "\"bar.sync\": 1", 0, "warps=8", "", LAUNCH("256", "1", "0")},
    {"warps=8", MMA "\"bar.sync\": 1", 0, "warps=4", "warps=4, not 8", LAUNCH("128", "1", "0")},
    {"query-tile=128", MMA "\"bar.sync\": 1", 0, "query-tile=64", "query-tile=64, not 128",
     LAUNCH("128", "1", "0")},
    {"row-cluster=8", "\"barrier.cluster.arrive\": 4", 0, "row-cluster=4", "row-cluster=4, not 8",
     LAUNCH("256", "4", "0")},
    {"block=256", "\"ld.global.32\": 4", 0, "block=128", "block=128, not 256",
     LAUNCH("128", "1", "0")},
    {"block=256", "\"ld.global.32\": 4", 0, "block=256", "",
     LAUNCH("128", "1", "0") ", " LAUNCH("512", "1", "0")}, /* whose is it? */
    {"block=256", "\"ld.global.32\": 4", 0, "block=256", "", LAUNCH("96", "1", "0")},
    {"halo=1", "\"ld.global.32\": 4", 0, "halo=0", "no tile", LAUNCH("128", "1", "0")},
    {"halo=1", "\"ld.global.32\": 4", 0, "halo=1", "", LAUNCH("128", "1", "4096")},
    {"split-k=4", MMA "\"bar.sync\": 1", 0, "split-k=1", "adds parts up", LAUNCH("128", "1", "0")},
    {"split-k=4", MMA "\"bar.sync\": 1", 0, "split-k=4", "",
     LAUNCH("128", "1", "0") ", " LAUNCH("128", "1", "0")},
    {"row-split=4 scan-split=4", "\"bar.sync\": 1", 0, "row-split=1 scan-split=1", "row-split=1",
     LAUNCH("128", "1", "0")},
    {"pack=1", MMA "\"bar.sync\": 1", 0, "pack=0", "none that copies", LAUNCH("128", "1", "0")},
    {"scan-lookback=1", "\"bar.sync\": 1", 0, "scan-lookback=0", "no atomic"},
    {"scan-lookback=1", "\"atom.global.add.u32\": 1", 0, "scan-lookback=1", ""},
    {"scan-warp=1", "\"bar.sync\": 1", 0, "scan-warp=0", "barriers", LAUNCH("128", "1", "0")},
    {"scan-warp=1", "\"ld.global.32\": 1", 0, "scan-warp=1", "", LAUNCH("128", "1", "0")},
    {"reduce-kind=1", "\"bar.sync\": 1", 0, "reduce-kind=0", "barriers and shuffles"},
    {"reduce-kind=1", "\"bar.sync\": 1", 0, "reduce-kind=1", "", NULL, 5},
    {"reduce-kind=0", "\"ld.global.32\": 1", 0, "reduce-kind=0", "", NULL, 5}, /* warps alone */
    {"generic-lanes=0", "\"ld.global.32\": 1", 0, "generic-lanes=32", "by the shuffles",
     LAUNCH("128", "1", "0"), 5},
    {"generic-lanes=32", "\"ld.global.32\": 1", 0, "generic-lanes=1", "by the shuffles",
     LAUNCH("128", "1", "0")},
    {"dialect=cute", "\"ld.global.32\": 4", 0, "dialect=cuda", "dialect=0, not 1"},
    {"dialect=cuda", "\"ld.global.32\": 4", 0, "dialect=cuda", ""},
    {"dialect=cuda", "\"ld.global.32\": 4", 0, "dialect=cute", "dialect=1, not 0", NULL, 0, true},
    {"dialect=cute", "\"ld.global.32\": 4", 0, "dialect=cute", "", NULL, 0, true},
    /* Of which step the widest access is, the facts do not say. */
    {"vector-width=1 2:vector-width=4", "\"ld.global.128\": 4", 0,
     "vector-width=1 2:vector-width=4", ""},
};

static const struct inst *bind(void) {
    static const char text[] = "task t \"T\"\ndim N = 64\nin x[N] : f32 ~ normal(0,1)\n"
                               "out y[N] : f32\ny[i] = x[i]\n";
    struct task *t;
    struct inst *in = NULL;
    bool ok = task_parse(S("test.task"), str_view(text), mem, &t, &err) &&
              task_bind(t, NULL, 0, mem, &in, &err);
    BUG_IF(!ok);
    return in;
}

static void check(const struct briefing *b, const struct row *r, const struct record *record) {
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
    struct briefing b = {.catalogue = catalogue, .inst = bind()};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str text = arena_printf(mem,
                                "{\"verdict\": \"accepted\", \"cute\": %s, \"kernels\": "
                                "[{\"name\": \"k\", \"spill_bytes\": %d, "
                                "\"census\": {\"forms\": {%s}, \"groups\": {\"shuffle\": %d}}}], "
                                "\"launches\": [%s]}",
                                rows[i].cute ? "true" : "false", rows[i].spill, rows[i].forms,
                                rows[i].shuffles, rows[i].launches ? rows[i].launches : "");
        struct record *record = record_parse(text, &err);
        CHECKF(record, "%s", err.text);
        if (record)
            check(&b, &rows[i], record);
        record_free(record);
    }
}

/* Of a candidate that was never compiled nothing is known. */
static void test_nothing(void) {
    struct briefing b = {.catalogue = catalogue, .inst = bind()};
    struct row r = {.strategy = "tensor-path=1 vector-width=4",
                    .aligned = "tensor-path=1 vector-width=4",
                    .reason = ""};
    struct record *empty = record_new(VERDICT_ACCEPTED, S(""));
    check(&b, &r, empty);
    record_free(empty);
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
