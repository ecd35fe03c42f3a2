/* The simulator against an H200, kernel by kernel (corpus/corpus.h): the same PTX, the same inputs.
 * Where no answers have been recorded the comparison is skipped, and says so; the kernels still
 * have to run, alike on one thread and on two, and without a finding. Where a plain model of a
 * kernel is short, its results are held to that as well (corpus/models.h). */
#include "corpus/forms.h"
#include "corpus/models.h"
#include "corpus/table.h"
#include "tap.h"

#include "harness.h"

static uint32_t memory[CORPUS_BUFFERS][CORPUS_MAX_WORDS];

static str read_golden(struct arena *a) {
    const char *root = getenv("SOURCE_ROOT");
    struct err err = {0};
    str text = {0};
    str path = arena_printf(a, "%s/" CORPUS_FILE, root ? root : ".");
    return file_read(path.p, 4u << 20, a, &text, &err) ? text : (str){0};
}

static bool find_answer(str golden, const char *name, struct corpus_answer *a) {
    for (size_t used; corpus_answer_read(golden.p, golden.n, a, &used);
         golden = str_from(golden, used))
        if (!strncmp(a->name, name, CORPUS_NAME))
            return true;
    return false;
}

static bool put_map(const struct corpus_map *from, uint64_t global, uint8_t *to, struct err *err) {
    struct tile_map m = {.global = global,
                         .rank = from->rank,
                         .type = (enum tile_map_type)from->type,
                         .swizzle = from->swizzle ? 16u << from->swizzle : 0,
                         .fill_nan = from->nan};
    for (uint32_t i = 0; i < from->rank; i++) {
        m.extent[i] = from->extent[i];
        m.stride[i] = i ? from->pitch[i] : tile_map_type_bytes(m.type);
        m.box[i] = from->box[i];
        m.step[i] = from->step[i];
    }
    return sim_tensormap(&m, to, err);
}

struct launch {
    _Alignas(
        64) uint8_t params[CORPUS_MAPS * TILE_MAP_BYTES + 8 * CORPUS_BUFFERS + 4 * CORPUS_INTS];
    size_t n;
};

static bool make_params(struct harness *h, const struct corpus_row *r, struct launch *l) {
    static const char *const names[] = {"b0", "b1", "b2", "b3", "b4"};
    uint64_t at[CORPUS_BUFFERS] = {0};
    l->n = 0;
    for (uint32_t b = 0; b < CORPUS_BUFFERS && r->buffers[b].words; b++) {
        corpus_fill(r, b, memory[b]);
        struct sim_buffer buffer = {.name = str_view(names[b]),
                                    .host = memory[b],
                                    .size = (size_t)4 * r->buffers[b].words,
                                    .undefined = r->buffers[b].fill == FILL_POISON};
        at[b] = sim_machine_add(h->machine, &buffer);
    }
    for (uint32_t m = 0; m < CORPUS_MAPS && r->maps[m].rank; m++, l->n += TILE_MAP_BYTES)
        if (!put_map(&r->maps[m], at[r->maps[m].buffer], l->params + l->n, &h->err))
            return false;
    for (uint32_t b = 0; b < CORPUS_BUFFERS && r->buffers[b].words; b++, l->n += 8)
        memcpy(l->params + l->n, &at[b], 8);
    memcpy(l->params + l->n, r->ints, (size_t)4 * r->nints);
    l->n += (size_t)4 * r->nints;
    return true;
}

/* The results of a row, one output after the other. */
static uint32_t run_row(struct harness *h, const struct corpus_row *r, unsigned threads,
                        struct sim_findings *findings, uint32_t *out) {
    struct launch l;
    sim_machine_clear(h->machine);
    bool ok = make_params(h, r, &l);
    CHECKF(ok, "%s: %s", corpus_name(r), h->err.text);
    if (!ok)
        return 0;
    struct sim_launch launch = {.program = h->program,
                                .grid = {r->grid[0], r->grid[1], r->grid[2]},
                                .block = {r->block, 1, 1},
                                .dynamic_shared = r->shared,
                                .cooperative = r->cooperative,
                                .params = l.params,
                                .params_size = l.n,
                                .threads = threads,
                                .checks = findings ? SIM_CHECK_ALL : 0,
                                .findings = findings};
    struct sim_result result;
    sim_run(h->machine, &launch, &result);
    CHECKF(result.status == (r->illegal ? SIM_TRAP : SIM_OK), "%s: %s", corpus_name(r),
           result.status == SIM_OK ? "runs, though it is illegal" : result.fault.text);
    uint32_t n = 0;
    for (uint32_t b = 0; b < CORPUS_BUFFERS; b++)
        if (r->buffers[b].out) {
            memcpy(out + n, memory[b], (size_t)4 * r->buffers[b].words);
            n += r->buffers[b].words;
        }
    return result.status == SIM_OK ? n : 0;
}

static bool load_row(struct harness *h, const struct corpus_row *r) {
    struct arena *a = arena_new(8u << 20);
    char file[64];
    snprintf(file, sizeof file, "%s.ptx", r->file);
    bool ok = harness_load_text(h, harness_text(a, "sim", file), r->kernel);
    CHECKF(ok, "%s: %s", r->kernel, h->err.text[0] ? h->err.text : "no such kernel");
    arena_free(a);
    return ok;
}

/* Otherwise `why` says in one line where they differ. */
static bool answers_agree(const struct corpus_row *r, const struct corpus_answer *got,
                          const struct corpus_answer *gpu, char *why, size_t room) {
    uint32_t differ = 0, first = 0, plane = UINT32_MAX;
    if (got->words != gpu->words || got->nsample != gpu->nsample) {
        snprintf(why, room, "the answer is of another launch; record again");
        return false;
    }
    for (uint32_t i = got->ndigests; i-- > 0;)
        if (got->digest[i] != gpu->digest[i])
            plane = i;
    for (uint32_t i = got->nsample; i-- > 0;)
        if (!corpus_equal(r->compare, got->sample[i], gpu->sample[i], i)) {
            differ++;
            first = i;
        }
    snprintf(why, room, "plane %d; %u of %u kept words differ, first %u: %08x, the GPU gave %08x",
             (int)plane, differ, got->nsample, first, got->sample[first], gpu->sample[first]);
    return !differ && plane == UINT32_MAX;
}

static uint32_t results[2][CORPUS_MAX_WORDS];

/* Rows of a group by how they agree with the GPU. */
struct tally {
    unsigned rows, equal, within, refused, missing;
};
static void compare_row(const struct corpus_row *r, str golden, uint32_t n, struct tally *t) {
    static struct corpus_answer got, gpu;
    char why[160];
    t->rows++;
    if (!find_answer(golden, corpus_name(r), &gpu)) {
        printf("# %s: no answer of a GPU\n", corpus_name(r));
        t->missing++;
        return;
    }
    corpus_answer(r, results[0], n, &got);
    bool agree = answers_agree(r, &got, &gpu, why, sizeof why);
    CHECKF(agree, "%s: %s", corpus_name(r), why);
    bool same = agree && !memcmp(got.sample, gpu.sample, (size_t)4 * got.nsample);
    t->refused += agree && r->illegal;
    t->equal += same && !r->illegal;
    t->within += agree && !same;
}

static void run_group(const char *file) {
    static struct sim_findings findings;
    struct arena *a = arena_new(8u << 20);
    str golden = read_golden(a);
    struct tally tally = {0};
    for (size_t i = 0; i < CORPUS_ROWS; i++) {
        const struct corpus_row *r = &corpus[i];
        struct harness h;
        if (strcmp(r->file, file))
            continue;
        if (load_row(&h, r)) {
            uint32_t n = run_row(&h, r, 2, NULL, results[0]);
            compare_row(r, golden, n, &tally);
            run_row(&h, r, 1, &findings, results[1]);
            CHECKF(findings.n == 0, "%s: %s", corpus_name(r), findings.list[0].text);
            CHECKF(!memcmp(results[0], results[1], (size_t)4 * n), "%s: other bits when watched",
                   corpus_name(r));
        }
        harness_free(&h);
    }
    arena_free(a);
    printf("# %u rows: %u equal, %u within their units, %u refused by both\n", tally.rows,
           tally.equal, tally.within, tally.refused);
    if (tally.missing)
        SKIP("answers are missing from " CORPUS_FILE ": tests/sim/hardware/run on a GPU");
}

#define X(id, file)                                                                                \
    static void test_##id(void) {                                                                  \
        run_group(file);                                                                           \
    }
CORPUS_FILES(X)
#undef X

static const struct corpus_row *find_row(const char *name) {
    for (size_t i = 0; i < CORPUS_ROWS; i++)
        if (!strcmp(corpus_name(&corpus[i]), name))
            return &corpus[i];
    return NULL;
}

static uint32_t inputs[CORPUS_BUFFERS][CORPUS_MAX_WORDS];
static double expected[CORPUS_MAX_WORDS];

static void check_model(size_t which, const struct corpus_row *r) {
    const uint32_t *in[CORPUS_BUFFERS];
    enum model_result t = models[which].result;
    struct harness h;
    memset(expected, 0, sizeof expected);
    for (uint32_t b = 0; b < CORPUS_BUFFERS; b++) {
        corpus_fill(r, b, inputs[b]);
        in[b] = inputs[b];
    }
    struct model_case c = {.row = r, .in = in, .want = expected, .n = r->ints[0]};
    models[which].run(&c);
    uint32_t n = load_row(&h, r) ? run_row(&h, r, 2, NULL, results[0]) : 0, wrong = 0, first = 0;
    n = t == RESULT_F16 ? 2 * n : t == RESULT_F64 ? n / 2 : n;
    for (uint32_t i = n; i-- > 0;) {
        double want = expected[i], allow = models[which].allow * fmax(1, fabs(want));
        if (!isnan(want) && !(fabs(model_result(t, results[0], i) - want) <= allow)) {
            wrong++;
            first = i;
        }
    }
    CHECKF(n && !wrong, "%s: %u of %u, first %u: %.9g, not %.9g", corpus_name(r), wrong, n, first,
           model_result(t, results[0], first), expected[first]);
    harness_free(&h);
}

static void test_models(void) {
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const struct corpus_row *r = find_row(models[i].kernel);
        CHECKF(r, "%s is not in the table", models[i].kernel);
        if (r)
            check_model(i, r);
    }
}

/* What the simulator can do, the corpus asks. */
static void test_written(void) {
    struct arena *a = arena_new(8u << 20);
    struct buf ptx, def;
    buf_init(&ptx, 1u << 20);
    buf_init(&def, 1u << 16);
    forms_write(&ptx, &def);
    CHECK(str_eq(harness_text(a, "sim/corpus", "forms.ptx"), buf_str(&ptx)));
    CHECK(str_eq(harness_text(a, "sim/corpus", "forms.def"), buf_str(&def)));
    buf_release(&ptx);
    buf_release(&def);
    arena_free(a);
}

/* The comparison itself. */
static void test_compare(void) {
    static const struct {
        const char *what;
        struct corpus_compare how;
        uint32_t x, y;
        bool equal;
    } rows[] = {
        {"a bit is a bit", SAME, 0x3f800000, 0x3f800001, false},
        {"zeros are not the same bits", SAME, 0, 0x80000000, false},
        {"one unit", ULPS_F32(1), 0x3f800000, 0x3f800001, true},
        {"two units", ULPS_F32(1), 0x3f800000, 0x3f800002, false},
        {"zeros are no unit apart", ULPS_F32(0), 0, 0x80000000, true},
        {"across zero", ULPS_F32(2), 1, 0x80000001, true},
        {"NaN is NaN", ULPS_F32(0), 0x7fc00000, 0x7fffffff, true},
        {"NaN is no number", ULPS_F32(1000), 0x7fc00000, 0x7f800000, false},
        {"infinity after the largest", ULPS_F32(1), 0x7f800000, 0x7f7fffff, true},
        {"infinities of both signs", ULPS_F32(1000), 0x7f800000, 0xff800000, false},
        {"small ones by their difference", NEAR_F32(1), 0x33800000, 0x34000000, true},
        {"too far apart", NEAR_F32(1), 0x33800000, 0x34a00000, false},
        {"large ones by units", NEAR_F32(1), 0x40000000, 0x40000002, false},
        {"both halves", ULPS_F16(1), 0x3c003c00, 0x3c013c01, true},
        {"the upper half", ULPS_F16(1), 0x3c003c00, 0x3c023c00, false},
        {"bf16", ULPS_BF16(1), 0x3f803f80, 0x3f813f82, false},
        {"the lower half of a double", UPPER_F64(0), 1, 2, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(corpus_equal(rows[i].how, rows[i].x, rows[i].y, 0) == rows[i].equal, "%s",
               rows[i].what);
}

/* Answers as the recorder writes them: what is changed is found, what is cut off is not read. */
static void test_answers(void) {
    static struct corpus_answer got, gpu;
    static char file[sizeof got];
    char why[160];
    size_t used;
    const struct corpus_row *r = &corpus[0];
    for (uint32_t i = 0; i < 4 * CORPUS_N; i++)
        results[0][i] = i * 77;
    corpus_answer(r, results[0], 4 * CORPUS_N, &got);
    memcpy(file, &got, CORPUS_HEAD);
    memcpy(file + CORPUS_HEAD, got.digest, (size_t)4 * got.ndigests);
    memcpy(file + CORPUS_HEAD + (size_t)4 * got.ndigests, got.sample, (size_t)4 * got.nsample);
    size_t n = CORPUS_HEAD + 4 * (size_t)(got.ndigests + got.nsample);
    CHECK(corpus_answer_read(file, n, &gpu, &used) && used == n);
    CHECK(answers_agree(r, &got, &gpu, why, sizeof why));
    CHECK(find_answer((str){file, n}, corpus_name(r), &gpu));
    CHECK(!find_answer((str){file, n}, "nothing", &gpu));
    CHECK(!corpus_answer_read(file, n - 1, &gpu, &used));
    CHECK(!corpus_answer_read(file, CORPUS_HEAD - 1, &gpu, &used));
    results[0][CORPUS_N + 1]++; /* not among the kept words */
    corpus_answer(r, results[0], 4 * CORPUS_N, &gpu);
    CHECK(!answers_agree(r, &got, &gpu, why, sizeof why) && strstr(why, "plane 1;"));
    corpus_answer(r, results[0], 3 * CORPUS_N, &gpu);
    CHECK(!answers_agree(r, &got, &gpu, why, sizeof why) && strstr(why, "another launch"));
    gpu.nsample = UINT32_MAX;
    memcpy(file, &gpu, CORPUS_HEAD);
    CHECK(!corpus_answer_read(file, n, &gpu, &used));
}

/* What is not in the table of operations, by the list in docs/SIM.md. */
static void test_listed(void) {
    static const char *const texts[] = {
        "ld.global.nc",
        "ldu.global",
        "ld.volatile.",
        "ld.relaxed",
        "ld.acquire",
        "ld.mmio",
        "ld.shared",
        "ld.shared::cluster",
        "ld.local",
        "ld.const",
        "ld.param",
        "L2::cache_hint",
        "st.release",
        "st.local",
        "st.shared::cluster",
        ".b128",
        "atom.global.cas.b16",
        "atom.global.cas.b128",
        "atom.global.exch.b128",
        "atom.global.v2.f32",
        "red.global.add",
        "noftz.f16x2",
        "noftz.bf16x2",
        "red.shared::cluster",
        "atom.shared",
        "cvta.",
        "isspacep",
        "mapa.",
        "getctarank",
        "prefetch.global",
        "prefetchu",
        "applypriority",
        "createpolicy",
        "cp.async.ca",
        "cp.async.cg",
        "cp.async.wait_all",
        "cp.async.mbarrier.arrive.noinc",
        "cp.async.mbarrier.arrive.shared",
        "cp.async.bulk.shared::cluster.global",
        "cp.async.bulk.global.shared::cta",
        "cp.async.bulk.shared::cluster.shared::cta",
        "multicast::cluster",
        "cp.async.bulk.wait_group.read",
        "cp.async.bulk.prefetch",
        "cp.reduce.async.bulk.global",
        "cp.async.bulk.tensor.1d",
        "cp.async.bulk.tensor.5d",
        "cp.reduce.async.bulk.tensor",
        "st.async",
        "red.async",
        "tensormap.replace",
        "fence.proxy.async",
        "fence.proxy.tensormap",
        "mbarrier.init",
        "mbarrier.inval",
        "mbarrier.arrive_drop",
        "mbarrier.expect_tx",
        "mbarrier.complete_tx",
        "mbarrier.test_wait",
        "mbarrier.try_wait",
        "mbarrier.pending_count",
        "mma.sync.aligned",
        "wmma.load.a",
        "wmma.mma",
        "wmma.store.d",
        "ldmatrix",
        "stmatrix",
        "movmatrix",
        "wgmma.fence",
        "wgmma.mma_async",
        "wgmma.commit_group",
        "wgmma.wait_group",
        "bar.sync",
        "barrier.cta.arrive",
        "bar.red",
        "barrier.cta.red",
        "bar.warp.sync",
        "barrier.cluster",
        "shfl.sync",
        "vote.sync",
        "match.any.sync",
        "match.all.sync",
        "elect.sync",
        "redux.sync",
        "activemask",
        "membar",
        "fence.acq_rel",
        "griddepcontrol",
        "setmaxnreg",
        "nanosleep",
        "pmevent",
        "brx.idx",
        "call",
        "exit",
        "trap",
        "%lanemask_ge",
        "%cluster_ctarank",
        "%is_explicit_cluster",
        "%dynamic_smem_size",
        "%clock64",
        "%globaltimer",
        "%smid",
    };
    struct arena *a = arena_new(32u << 20);
    struct buf all;
    buf_init(&all, 16u << 20);
#define X(id, file) buf_puts(&all, harness_text(a, "sim", file ".ptx"));
    CORPUS_FILES(X)
#undef X
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECKF(str_find(buf_str(&all), str_view(texts[i])) < all.n, "no %s in the corpus",
               texts[i]);
    buf_release(&all);
    arena_free(a);
}

static void test_names(void) {
    CHECK(CORPUS_ROWS >= 150);
    for (size_t i = 0; i < CORPUS_ROWS; i++)
        for (size_t k = 0; k < i; k++)
            CHECKF(strcmp(corpus_name(&corpus[i]), corpus_name(&corpus[k])), "%s is there twice",
                   corpus_name(&corpus[i]));
}

static const struct tap_case cases[] = {
    {"the forms are those of the table of operations", test_written},
    {"what is listed is asked", test_listed},
    {"every row has a name of its own", test_names},
    {"bits, units and differences", test_compare},
    {"answers are read, compared, refused", test_answers},
    {"whole kernels: a plain model's results", test_models},
#define X(id, file) {file ": bits of an H200", test_##id},
    CORPUS_FILES(X)
#undef X
};
TAP_CASES(cases)
