/* The table of openings. */
#include "agent/expert/plan/openings.h"
#include "agent/expert/contraction/kind.h"
#include "agent/expert/rows/rows_kind.h"
#include "agent/expert/scan/scan_kind.h"
#include <stdio.h>
#include <string.h>

#define ACCESS_BYTES 16 /* the widest load there is */

enum {
    MEMORY = 1u << REGIME_MEMORY,
    COMPUTE = 1u << REGIME_COMPUTE,
    LATENCY = 1u << REGIME_LATENCY,
};

/* ---- rows ---- */

#define ROWS_ARE(name, kind)                                                                       \
    static bool name(const struct briefing *b, const struct step *st) {                            \
        return rows_kind_of(b, st) == kind;                                                        \
    }
ROWS_ARE(rows_outer, ROWS_OUTER)
ROWS_ARE(rows_outer_few, ROWS_OUTER_FEW)
ROWS_ARE(rows_one, ROWS_ONE)
ROWS_ARE(rows_few, ROWS_FEW)
ROWS_ARE(rows_some, ROWS_SOME)
ROWS_ARE(rows_lanes, ROWS_LANES)
ROWS_ARE(rows_warp, ROWS_WARP)
ROWS_ARE(rows_block, ROWS_BLOCK)
ROWS_ARE(rows_shared, ROWS_SHARED)
ROWS_ARE(rows_cluster, ROWS_CLUSTER)
ROWS_ARE(rows_wide, ROWS_WIDE)
ROWS_ARE(rows_stream, ROWS_STREAM)

#define ROWS_ALL "vector-width=* reduce-kind=1 fast-math=1 "

/* ---- scans and windows ---- */

#define SCAN_IS(name, kind)                                                                        \
    static bool name(const struct briefing *b, const struct step *st) {                            \
        return scan_kind_of(b, st) == kind;                                                        \
    }
SCAN_IS(scan_short, SCAN_SHORT)
SCAN_IS(scan_long, SCAN_LONG)
SCAN_IS(scan_few, SCAN_FEW)
SCAN_IS(scan_parts, SCAN_PARTS)
SCAN_IS(scan_columns, SCAN_COLUMNS)
SCAN_IS(scan_narrow, SCAN_NARROW)

#define WINDOW_IS(name, kind)                                                                      \
    static bool name(const struct briefing *b, const struct step *st) {                            \
        return window_kind_of(b, st) == kind;                                                      \
    }
WINDOW_IS(window_line, WINDOW_LINE)
WINDOW_IS(window_apart, WINDOW_APART)
WINDOW_IS(window_pool, WINDOW_POOL)
WINDOW_IS(window_slabs, WINDOW_SLABS)
WINDOW_IS(window_weighted, WINDOW_WEIGHTED)

/* ---- attention ---- */

/* The last extent of what the step stores. */
static int64_t head_of(const struct step *st) {
    const struct task *t = st->inst->task;
    const struct statement *last = &t->statements[t->nstatements - 1];
    size_t rank = t->tensors[last->tensor].rank;
    return rank ? st->inst->tensors[last->tensor].extent[rank - 1] : 1;
}
static bool head_small(const struct briefing *b, const struct step *st) {
    (void)b;
    return head_of(st) <= 64;
}
static bool head_usual(const struct briefing *b, const struct step *st) {
    (void)b;
    return head_of(st) > 64 && head_of(st) <= 128;
}
static bool head_large(const struct briefing *b, const struct step *st) {
    (void)b;
    return head_of(st) > 128;
}

/* ---- contractions ---- */

#define CONTRACTION_IS(name, kind)                                                                 \
    static bool name(const struct briefing *b, const struct step *st) {                            \
        return contraction_kind_of(b, st) == kind;                                                 \
    }
CONTRACTION_IS(contraction_wide, CONTRACTION_WIDE)
CONTRACTION_IS(contraction_pair, CONTRACTION_PAIR)
CONTRACTION_IS(contraction_exact, CONTRACTION_EXACT)
CONTRACTION_IS(contraction_triangle, CONTRACTION_TRIANGLE)
CONTRACTION_IS(contraction_gaps_thin, CONTRACTION_GAPS_THIN)
CONTRACTION_IS(contraction_gaps, CONTRACTION_GAPS)
CONTRACTION_IS(contraction_few, CONTRACTION_FEW)
CONTRACTION_IS(contraction_few_short, CONTRACTION_FEW_SHORT)
CONTRACTION_IS(contraction_few_small, CONTRACTION_FEW_SMALL)
CONTRACTION_IS(contraction_split, CONTRACTION_SPLIT)
CONTRACTION_IS(contraction_split_thin, CONTRACTION_SPLIT_THIN)
CONTRACTION_IS(contraction_thin, CONTRACTION_THIN)
CONTRACTION_IS(contraction_half, CONTRACTION_HALF)
CONTRACTION_IS(contraction_large, CONTRACTION_LARGE)
CONTRACTION_IS(contraction_small, CONTRACTION_SMALL)

static const struct opening openings[] = {
    /* contraction: tensor cores fed without a pause */
    {"contraction", 0, contraction_wide,
     "tensor-path=2 tile-m=* tile-n=256 stages=4 raster=8 pack=1",
     "warp groups on tiles of 128 x 256, four on their way"},
    {"contraction", 0, contraction_wide,
     "tensor-path=2 tile-m=128 tile-n=128 tile-k=64 stages=4 raster=8 pack=1",
     "smaller tiles, more of them"},
    {"contraction", 0, contraction_wide,
     "tensor-path=1 tile-m=128 tile-n=128 tile-k=32 warps=8 stages=4 raster=8 pack=1",
     "warps instead of warp groups"},
    {"contraction", 0, contraction_exact,
     "tensor-path=2 tile-m=128 tile-n=128 tile-k=64 stages=2 raster=8 pack=1",
     "warp groups on operands split into three bf16 numbers"},
    {"contraction", 0, contraction_exact,
     "tensor-path=1 tile-m=128 tile-n=128 tile-k=32 warps=8 stages=3 raster=8 pack=1",
     "warps on operands split into two TF32 numbers"},
    {"contraction", 0, contraction_pair,
     "tensor-path=2 tile-m=128 tile-n=128 tile-k=64 stages=4 raster=8 pack=1",
     "warp groups, two results a tile"},
    {"contraction", 0, contraction_pair,
     "tensor-path=1 tile-m=128 tile-n=64 tile-k=32 warps=8 stages=3 raster=8 pack=1",
     "warps instead of warp groups"},
    {"contraction", 0, contraction_triangle,
     "tensor-path=2 tile-m=128 tile-n=128 tile-k=64 stages=4 raster=8 skip=1 pack=1",
     "tiles of k that hold no term are not visited"},
    {"contraction", 0, contraction_triangle,
     "tensor-path=1 tile-m=128 tile-n=128 tile-k=32 warps=8 stages=3 raster=1 skip=1 pack=1",
     "warps instead of warp groups"},
    {"contraction", 0, contraction_triangle,
     "tensor-path=1 tile-m=64 tile-n=64 tile-k=32 warps=4 stages=3 raster=1 skip=1 pack=1",
     "small tiles waste less at the edge"},
    {"contraction", 0, contraction_gaps_thin,
     "tensor-path=1 tile-m=32 tile-n=128 tile-k=32 warps=4 stages=3 skip=1 pack=1",
     "places of the window that the stride leaves out are not visited"},
    {"contraction", 0, contraction_gaps_thin,
     "tensor-path=1 tile-m=32 tile-n=128 tile-k=32 warps=4 stages=3 pack=1",
     "tiles as thin as the matrix"},
    {"contraction", 0, contraction_gaps,
     "tensor-path=1 tile-m=64 tile-n=128 tile-k=32 warps=4 stages=3 raster=8 skip=1 pack=1",
     "places of the window that the stride leaves out are not visited"},
    {"contraction", 0, contraction_gaps,
     "tensor-path=1 tile-m=64 tile-n=128 tile-k=32 warps=4 stages=3 raster=8 pack=1",
     "tiles of half a side, 32 x 64 a warp"},
    {"contraction", 0, contraction_few,
     "tensor-path=2 tile-m=* tile-n=* stages=4 raster=8 split-k=* pack=1",
     "warp groups, so many of them a tile that every SM has one"},
    {"contraction", 0, contraction_few,
     "tensor-path=2 tile-m=64 tile-n=128 stages=4 raster=8 split-k=* pack=1",
     "smaller tiles, fewer parts of each sum"},
    {"contraction", 0, contraction_few_short,
     "tensor-path=2 tile-m=64 tile-n=128 stages=4 raster=8 split-k=* pack=1",
     "warp groups on small tiles for all SMs"},
    {"contraction", 0, contraction_few_short,
     "tensor-path=2 tile-m=64 tile-n=64 stages=4 raster=8 pack=1", "smaller ones"},
    {"contraction", 0, contraction_few_small,
     "tensor-path=2 tile-m=64 tile-n=64 stages=4 raster=8 split-k=* pack=1",
     "warp groups on tiles of 64 x 64"},
    {"contraction", 0, contraction_few_small,
     "tensor-path=1 tile-m=64 tile-n=64 tile-k=* warps=4 stages=3 pack=1",
     "warps instead of warp groups"},
    {"contraction", 0, contraction_split,
     "tensor-path=1 tile-m=64 tile-n=128 tile-k=* warps=4 stages=3 split-k=* pack=1",
     "blocks share each tile's sums, two an SM"},
    {"contraction", 0, contraction_split,
     "tensor-path=1 tile-m=128 tile-n=128 tile-k=* warps=8 stages=3 split-k=* pack=1",
     "larger tiles, more parts of each sum"},
    {"contraction", 0, contraction_split_thin,
     "tensor-path=1 tile-m=* tile-n=* tile-k=* warps=4 stages=3 split-k=* pack=1",
     "blocks share the sums of tiles as thin as the matrix"},
    {"contraction", 0, contraction_split_thin,
     "tensor-path=1 tile-m=64 tile-n=64 tile-k=* warps=4 stages=3 split-k=* pack=1",
     "square tiles"},
    {"contraction", 0, contraction_thin,
     "tensor-path=1 tile-m=32 tile-n=128 tile-k=32 warps=4 stages=3 pack=1",
     "tiles as thin as the matrix"},
    {"contraction", 0, contraction_thin,
     "tensor-path=1 tile-m=128 tile-n=32 tile-k=32 warps=4 stages=3 pack=1", "the other way round"},
    {"contraction", 0, contraction_half,
     "tensor-path=1 tile-m=64 tile-n=128 tile-k=32 warps=4 stages=3 raster=8 pack=1",
     "tiles of half a side, 32 x 64 a warp"},
    {"contraction", 0, contraction_half,
     "tensor-path=1 tile-m=128 tile-n=64 tile-k=32 warps=4 stages=3 raster=8 pack=1",
     "the other way round"},
    {"contraction", 0, contraction_large,
     "tensor-path=1 tile-m=128 tile-n=128 tile-k=32 warps=8 stages=3 raster=8 pack=1",
     "tiles of 128 x 128, three on their way"},
    {"contraction", 0, contraction_large,
     "tensor-path=1 tile-m=128 tile-n=64 tile-k=32 warps=8 stages=4 raster=8 pack=1",
     "fewer registers, four on their way"},
    {"contraction", 0, contraction_small,
     "tensor-path=1 tile-m=64 tile-n=64 tile-k=32 warps=4 stages=3 pack=1",
     "small tiles for all SMs"},
    {"contraction", 0, contraction_small,
     "tensor-path=1 tile-m=64 tile-n=128 tile-k=32 warps=8 stages=3 pack=1", "larger ones"},
    /* attention: keys are read once a block, scores live in registers */
    {"attention", 0, head_small, "query-tile=128 key-tile=128 stages=2",
     "wide steps: a small head leaves registers"},
    {"attention", 0, head_small, "query-tile=128 key-tile=64 stages=3", "more tiles in flight"},
    {"attention", 0, head_usual, "query-tile=128 key-tile=64 stages=2",
     "128 queries share each tile of keys"},
    {"attention", 0, head_usual, "query-tile=64 key-tile=64 stages=2", "smaller blocks, two an SM"},
    {"attention", 0, head_large, "query-tile=64 key-tile=32 stages=2",
     "narrow steps: a large head takes the registers"},
    /* scans: every element read once and written once, loads under way while the last are scanned
     */
    {"scan", 0, scan_long, "vector-width=* block=256 items=2 prefetch=1 fast-math=1",
     "a block a row, the next chunk loaded ahead"},
    {"scan", 0, scan_long, "vector-width=* block=512 items=2 prefetch=1 fast-math=1",
     "larger chunks, fewer barriers"},
    {"scan", 0, scan_long, "vector-width=* block=128 items=4 prefetch=1 cache-hint=1 fast-math=1",
     "fewer warps to a barrier, streamed"},
    {"scan", 0, scan_short, "vector-width=* block=128 items=2 scan-warp=1 fast-math=1",
     "a warp a row: no barrier"},
    {"scan", 0, scan_short, "vector-width=* block=256 items=4 scan-warp=1 fast-math=1",
     "more in flight"},
    {"scan", 0, scan_few, "vector-width=* block=256 items=4 scan-lookback=1 fast-math=1",
     "few long rows: chunks look back"},
    {"scan", 0, scan_few, "vector-width=* block=256 items=2 scan-split=64 prefetch=1 fast-math=1",
     "few long rows in parts"},
    {"scan", 0, scan_parts, "vector-width=* block=256 items=2 scan-split=64 prefetch=1 fast-math=1",
     "few long rows in parts"},
    {"scan", 0, scan_parts, "vector-width=* block=256 items=2 scan-split=16 prefetch=1 fast-math=1",
     "fewer parts"},
    {"scan", 0, scan_columns, "vector-width=* block=128 items=8 fast-math=1",
     "a thread walks down neighbouring columns"},
    {"scan", 0, scan_columns, "vector-width=1 block=128 items=8 fast-math=1",
     "more threads, a column each"},
    {"scan", 0, scan_narrow, "vector-width=1 block=64 items=8 scan-split=16 fast-math=1",
     "few columns: parts of them"},
    {"scan", 0, scan_narrow, "vector-width=2 block=64 items=8 scan-split=64 fast-math=1",
     "more parts"},
    /* windows: every element comes once through L2, and meets all results that need it on chip */
    {"window", 0, window_line, "vector-width=* halo=1 block=256 items=8 fast-math=1",
     "a line of input in shared memory, eight results share what a thread has read"},
    {"window", 0, window_line, "vector-width=* halo=1 block=512 items=4 fast-math=1",
     "a longer one"},
    {"window", 0, window_apart,
     "vector-width=* halo=1 separable=1 block=128 items=1 tile-w=128 fast-math=1",
     "windows apart: rows in order through shared memory"},
    {"window", 0, window_apart,
     "vector-width=* halo=1 separable=1 block=64 items=1 tile-w=64 fast-math=1",
     "smaller tiles, more of them"},
    {"window", 0, window_pool,
     "vector-width=* halo=1 separable=1 block=256 items=8 tile-w=128 fast-math=1",
     "a tile in shared memory, eight results share a thread's rows"},
    {"window", 0, window_pool,
     "vector-width=* halo=1 separable=1 block=256 items=8 tile-w=64 fast-math=1", "taller tiles"},
    {"window", 0, window_pool, "halo=0 separable=1 block=256 items=8 tile-w=64 fast-math=1",
     "no tile, no barrier: rows meet in L1"},
    {"window", 0, window_slabs,
     "vector-width=* halo=1 separable=1 block=256 items=4 tile-w=64 fast-math=1",
     "a slab of rows in shared memory"},
    {"window", 0, window_slabs, "halo=0 separable=1 block=256 items=4 tile-w=64 fast-math=1",
     "no slab: rows meet in L1"},
    {"window", 0, window_weighted, "vector-width=* halo=1 block=256 items=8 tile-w=128 fast-math=1",
     "a tile in shared memory, weights in registers"},
    {"window", 0, window_weighted, "vector-width=* halo=1 block=256 items=4 tile-w=64 fast-math=1",
     "fewer registers"},
    {"window", 0, window_weighted, "halo=0 block=256 items=4 tile-w=64 fast-math=1",
     "no tile, no barrier"},
    /* rows: read memory once, with enough in flight */
    {"rows", 0, rows_outer,
     ROWS_ALL "row-threads=4 block=512 items=4 row-cache=1 row-online=1 row-split=1",
     "four threads share the columns of a row, lanes have neighbouring rows"},
    {"rows", 0, rows_outer,
     ROWS_ALL "row-threads=8 block=512 items=8 row-cache=1 row-online=1 row-split=1",
     "eight threads a row, more in flight"},
    {"rows", 0, rows_outer,
     ROWS_ALL "row-threads=8 block=256 items=8 row-cache=1 row-online=1 row-split=1",
     "smaller blocks"},
    {"rows", 0, rows_outer_few,
     ROWS_ALL "row-threads=8 block=256 items=8 row-online=1 row-split=16",
     "few rows with their columns far apart: blocks share them"},
    {"rows", 0, rows_one, ROWS_ALL "row-split=1024 row-threads=256 items=4 row-online=1",
     "one result: eight blocks an SM share it"},
    {"rows", 0, rows_one,
     ROWS_ALL "row-split=512 row-threads=512 items=4 row-online=1 cache-hint=1",
     "larger blocks, streamed"},
    {"rows", 0, rows_few, ROWS_ALL "row-split=64 row-threads=256 items=4 row-online=1",
     "few results: blocks share each"},
    {"rows", 0, rows_some, ROWS_ALL "row-split=16 row-threads=256 items=4 row-online=1",
     "fewer results than blocks the GPU holds"},
    {"rows", 0, rows_lanes, ROWS_ALL "row-threads=8 block=128 row-cache=1 row-online=0",
     "short rows, four of them a warp"},
    {"rows", 0, rows_lanes, ROWS_ALL "row-threads=16 block=256 row-cache=1 row-online=0",
     "two of them a warp"},
    {"rows", 0, rows_warp, ROWS_ALL "row-threads=32 block=128 row-cache=1 row-online=0",
     "a warp a row, in registers"},
    {"rows", 0, rows_warp, ROWS_ALL "row-threads=64 row-cache=1 row-online=0", "two warps a row"},
    {"rows", 0, rows_block, ROWS_ALL "row-threads=256 row-cache=1 row-online=0",
     "a block a row, in registers"},
    {"rows", 0, rows_block, ROWS_ALL "row-threads=512 row-cache=1 row-online=0",
     "more threads, fewer registers"},
    {"rows", 0, rows_shared, ROWS_ALL "row-threads=512 items=8 row-cache=2 row-online=0",
     "a row in shared memory, two blocks an SM"},
    {"rows", 0, rows_shared, ROWS_ALL "row-threads=1024 row-cache=1 row-cluster=2 row-online=0",
     "a row in the registers of two blocks"},
    {"rows", 0, rows_cluster,
     ROWS_ALL "row-threads=512 items=8 row-cache=2 row-cluster=4 row-online=0",
     "a row in the shared memory of four blocks, two of them an SM"},
    {"rows", 0, rows_cluster,
     ROWS_ALL "row-threads=1024 items=4 row-cache=2 row-cluster=2 row-online=1",
     "of two blocks, one an SM"},
    {"rows", 0, rows_wide,
     ROWS_ALL "row-threads=512 items=8 row-cache=2 row-cluster=8 row-online=1",
     "a row in the shared memory of eight blocks"},
    {"rows", 0, rows_wide,
     ROWS_ALL "row-threads=1024 items=4 row-cache=2 row-cluster=8 row-online=1 cache-hint=1",
     "more threads, streamed"},
    {"rows", 0, rows_stream, ROWS_ALL "row-threads=256 items=4 row-cache=0 row-online=1",
     "long rows, read once a pass"},
    {"rows", 0, rows_stream,
     ROWS_ALL "row-threads=512 items=4 row-cache=0 row-online=1 cache-hint=1",
     "larger blocks, streamed"},
    /* pointwise: the bytes in flight decide */
    {"pointwise", MEMORY, NULL, "vector-width=* items=2 block=256",
     "16-byte accesses, two in flight a thread"},
    {"pointwise", MEMORY, NULL, "vector-width=* items=4 block=256 persistent=1",
     "a resident grid, four in flight"},
    {"pointwise", MEMORY, NULL, "vector-width=* items=4 block=256", "four in flight"},
    {"pointwise", MEMORY, NULL, "vector-width=* items=1 block=256", "occupancy instead"},
    {"pointwise", MEMORY, NULL, "vector-width=* items=2 block=512 cache-hint=1",
     "streamed past the caches"},
    {"pointwise", MEMORY, NULL, "vector-width=* items=2 block=256 persistent=1 cache-hint=1",
     "both"},
    {"pointwise", COMPUTE, NULL, "vector-width=* items=1 block=256", "few registers a thread"},
    {"pointwise", COMPUTE, NULL, "vector-width=2 items=1 block=256", "fewer"},
    {"pointwise", COMPUTE, NULL, "vector-width=* items=1 block=128", "small blocks"},
    {"pointwise", COMPUTE, NULL, "vector-width=* items=2 block=128 persistent=1",
     "a resident grid"},
    {"pointwise", LATENCY, NULL, "vector-width=2 items=1 block=128", "small blocks over all SMs"},
    {"pointwise", LATENCY, NULL, "vector-width=1 items=1 block=128",
     "as many threads as there are"},
    {"pointwise", LATENCY, NULL, "vector-width=1 items=1 block=64", "smaller blocks"},
    {"pointwise", LATENCY, NULL, "vector-width=* items=1 block=64", "fewer threads"},
};

struct opening_value {
    char name[48];
    bool open; /* a `*` */
    int64_t number;
};

static bool next_value(str *rest, struct opening_value *out) {
    str word;
    if (!str_word(rest, ' ', &word))
        return false;
    size_t eq = str_find(word, S("="));
    BUG_IF(eq == word.n || eq >= sizeof out->name);
    snprintf(out->name, sizeof out->name, "%.*s", STR_ARG(str_cut(word, 0, eq)));
    out->open = str_is(str_from(word, eq + 1), "*");
    BUG_IF(!out->open && !str_to_i64(str_from(word, eq + 1), &out->number));
    return true;
}

/* Whether this GPU can have all that it says. */
static bool is_possible(const struct briefing *b, const struct opening *o) {
    str rest = str_view(o->values);
    struct opening_value v;
    while (next_value(&rest, &v))
        if (!v.open && !strategy_possible(b->catalogue, &b->ground, v.name, v.number))
            return false;
    return true;
}

const struct opening *opening_of(const struct briefing *b, const struct step *st,
                                 enum regime regime, size_t i) {
    for (size_t k = 0; k < sizeof openings / sizeof *openings; k++) {
        const struct opening *o = &openings[k];
        if (strcmp(o->family, st->family) != 0 || (o->regimes && !(o->regimes >> regime & 1)) ||
            (o->when && !o->when(b, st)) || !is_possible(b, o))
            continue;
        if (i-- == 0)
            return o;
    }
    return NULL;
}

/* Elements in one access, of the type that most bytes are of. */
static int64_t widest(const struct briefing *b) {
    const struct task *t = b->inst->task;
    enum dtype type = b->features.dtype;
    size_t most = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_has_memory(&t->tensors[i]) && b->inst->tensors[i].bytes > most) {
            most = b->inst->tensors[i].bytes;
            type = t->tensors[i].dtype;
        }
    int64_t n = ACCESS_BYTES / (int64_t)dtype_info(type)->bytes;
    return n < 8 ? n : 8;
}

void opening_put(const struct briefing *b, const struct step *st, const struct opening *o,
                 struct strategy *s) {
    str rest = str_view(o->values);
    struct opening_value v;
    while (next_value(&rest, &v)) {
        if (v.open)
            v.number = strcmp(v.name, "vector-width") == 0 ? widest(b)
                                                           : contraction_fitting(b, st, s, v.name);
        strategy_put(b->catalogue, s, v.name, v.number);
    }
}
