/* The simulator against an H200, kernel by kernel (corpus/corpus.h): the same PTX, the same inputs.
 * Where no answers have been recorded the comparison is skipped, and says so; the kernels still
 * have to run, alike on one thread and on two, and without a finding. Where a plain model of a
 * kernel is short, its results are held to that as well (corpus/models.h). */
#include "corpus/forms.h"
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
    CHECKF(result.status == SIM_OK, "%s: %s", corpus_name(r), result.fault.text);
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

/* What a comparison found, in one line. */
static void compare_answers(const struct corpus_row *r, const struct corpus_answer *got,
                            const struct corpus_answer *gpu) {
    uint32_t differ = 0, first = 0, chunk = UINT32_MAX;
    CHECKF(got->words == gpu->words && got->nsample == gpu->nsample,
           "%s: the answer is of another launch; record again", corpus_name(r));
    if (got->words != gpu->words || got->nsample != gpu->nsample)
        return;
    for (uint32_t i = got->ndigests; i-- > 0;)
        if (got->digest[i] != gpu->digest[i])
            chunk = i;
    for (uint32_t i = got->nsample; i-- > 0;)
        if (!corpus_equal(r->compare, got->sample[i], gpu->sample[i], i)) {
            differ++;
            first = i;
        }
    CHECKF(!differ && chunk == UINT32_MAX,
           "%s: plane %d; %u of %u kept words differ, first %u: %08x, the GPU gave %08x",
           corpus_name(r), (int)chunk, differ, got->nsample, first, got->sample[first],
           gpu->sample[first]);
}

static uint32_t results[3][CORPUS_MAX_WORDS];

static void run_group(const char *file) {
    static struct corpus_answer got, gpu;
    static struct sim_findings findings;
    struct arena *a = arena_new(8u << 20);
    str golden = read_golden(a);
    unsigned missing = 0;
    for (size_t i = 0; i < CORPUS_ROWS; i++) {
        const struct corpus_row *r = &corpus[i];
        struct harness h;
        if (strcmp(r->file, file))
            continue;
        if (load_row(&h, r)) {
            uint32_t n = run_row(&h, r, 2, NULL, results[0]);
            corpus_answer(r, results[0], n, &got);
            if (!n || !find_answer(golden, corpus_name(r), &gpu))
                missing++;
            else
                compare_answers(r, &got, &gpu);
            run_row(&h, r, 1, &findings, results[1]);
            CHECKF(findings.n == 0, "%s: %s", corpus_name(r), findings.list[0].text);
            CHECKF(!memcmp(results[0], results[1], (size_t)4 * n), "%s: other bits when watched",
                   corpus_name(r));
        }
        harness_free(&h);
    }
    arena_free(a);
    if (missing)
        SKIP("answers are missing from " CORPUS_FILE ": tests/sim/hardware/run on a GPU");
}

#define X(id, file)                                                                                \
    static void test_##id(void) {                                                                  \
        run_group(file);                                                                           \
    }
CORPUS_FILES(X)
#undef X

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

static void test_names(void) {
    CHECK(CORPUS_ROWS >= 150);
    for (size_t i = 0; i < CORPUS_ROWS; i++)
        for (size_t k = 0; k < i; k++)
            CHECKF(strcmp(corpus_name(&corpus[i]), corpus_name(&corpus[k])), "%s is there twice",
                   corpus_name(&corpus[i]));
}

static const struct tap_case cases[] = {
    {"the forms are those of the table of operations", test_written},
    {"every row has a name of its own", test_names},
#define X(id, file) {file ": bits of an H200", test_##id},
    CORPUS_FILES(X)
#undef X
};
TAP_CASES(cases)
