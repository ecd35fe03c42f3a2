/* Every task that comes with the program, on every kind of data: honest fp32 kernels pass, and
 * outputs that are wrong in the usual ways fail on at least one kind. Every sum of products of 64
 * terms and more: operands rounded to a format pass its class, fail a stricter one, and fail their
 * own when they are cut off instead. Emulated kernels, at the largest check shape that is quick;
 * CUTEPILOT_TEST_LONG=1 takes larger shapes, all orders and all kinds, and prints what
 * calibration.py makes a table of; CUTEPILOT_TEST_PART=2/8 takes the second eighth of the tasks. */
#include "emulate.h"

#include "spec/cost.h"
#include <dirent.h>

static bool take_long(void) {
    return getenv("CUTEPILOT_TEST_LONG") != NULL;
}

/* The largest check shape within reach. */
static bool bind_quick(struct fixture *f) {
    double best = -1;
    for (size_t c = 0; c < f->task->nchecks; c++) {
        struct inst *in;
        struct cost cost;
        if (!task_bind_check(f->task, c, f->a, &in, &f->err))
            return false;
        cost_of(in, &cost);
        double work = cost.flops + cost.compulsory_bytes;
        bool within = work < (take_long() ? 5e5 : 6e4);
        if (best < 0 || (within && work > best)) {
            best = within ? work : 0;
            f->in = in;
        }
    }
    return f->in != NULL;
}

typedef void spoil_fn(const struct fixture *f, size_t r, unsigned char *out);

static double element(const struct fixture *f, size_t r, const unsigned char *out, size_t i) {
    enum dtype t = f->task->tensors[f->refs[r].tensor].dtype;
    double v;
    data_load(t, out + i * dtype_info(t)->bytes, 1, &v);
    return v;
}

static void put(const struct fixture *f, size_t r, unsigned char *out, size_t i, double v) {
    enum dtype t = f->task->tensors[f->refs[r].tensor].dtype;
    data_store(t, &v, 1, out + i * dtype_info(t)->bytes);
}

static void all_zero(const struct fixture *f, size_t r, unsigned char *out) {
    memset(out, 0, f->in->tensors[f->refs[r].tensor].bytes);
}
static void all_constant(const struct fixture *f, size_t r, unsigned char *out) {
    for (size_t i = 0; i < f->refs[r].count; i++)
        put(f, r, out, i, 1);
}
static void last_unwritten(const struct fixture *f, size_t r, unsigned char *out) {
    size_t bytes = f->in->tensors[f->refs[r].tensor].bytes, part = bytes / 64 + 1;
    memset(out + bytes - part, 0xa5, part);
}
static void one_wrong(const struct fixture *f, size_t r, unsigned char *out) {
    size_t i = f->refs[r].count / 2;
    double v = element(f, r, out, i);
    bool truth = f->task->tensors[f->refs[r].tensor].dtype == DTYPE_BOOL;
    put(f, r, out, i, truth ? v == 0 : v + 1 + fabs(v));
}
static void shuffled(const struct fixture *f, size_t r, unsigned char *out) {
    size_t n = f->refs[r].count;
    double first = element(f, r, out, 0);
    for (size_t i = 0; i + 1 < n; i++)
        put(f, r, out, i, element(f, r, out, i + 1));
    put(f, r, out, n - 1, first);
}

static const struct {
    const char *name;
    spoil_fn *spoil;
} wrongs[] = {
    {"zeros", all_zero},        {"a constant", all_constant}, {"partly written", last_unwritten},
    {"one element", one_wrong}, {"shuffled", shuffled},
};
enum { WRONGS = sizeof wrongs / sizeof *wrongs };

static void try_wrongs(const struct fixture *f, unsigned failed[WRONGS]) {
    void *out[TASK_MAX_TENSORS] = {0};
    emulate(f, (struct kernel){ORDER_FUSED, OPERAND_FP32, 1}, out);
    for (size_t w = 0; w < WRONGS; w++)
        for (size_t r = 0; r < f->nrefs; r++) {
            size_t bytes = f->in->tensors[f->refs[r].tensor].bytes;
            unsigned char *copy = mem_alloc(bytes);
            struct comparison c;
            memcpy(copy, out[r], bytes);
            wrongs[w].spoil(f, r, copy);
            reference_compare(f->in, &f->refs[r], copy, 1, &c);
            failed[w] += !c.pass;
            mem_free(copy);
        }
    for (size_t r = 0; r < f->nrefs; r++)
        mem_free(out[r]);
}

static bool shuffle_shows(const struct fixture *f) {
    for (size_t r = 0; r < f->nrefs; r++)
        if (f->refs[r].count > 1)
            return true;
    return false;
}

struct seen {
    int tasks;
    double rms, worst;
    char where[2][512];
};

/* One chain of all terms is honest up to 4,096 of them. */
static bool is_honest(const struct fixture *f, enum order o) {
    struct features features;
    features_of(f->in, &features);
    return features.log2_reduced <= 12 || o == ORDER_BLOCKED || o == ORDER_KAHAN ||
           o == ORDER_PAIRWISE;
}

static void try_task(const char *path, const char *name, struct seen *seen) {
    static const enum order orders[] = {ORDER_SEQUENTIAL, ORDER_BLOCKED, ORDER_FUSED,
                                        ORDER_BACKWARDS,  ORDER_KAHAN,   ORDER_PAIRWISE};
    struct fixture f = {.a = arena_new((size_t)64 << 20)};
    unsigned failed[WRONGS] = {0};
    bool ok = task_load(path, f.a, &f.task, &f.err) && bind_quick(&f) &&
              data_scale_find(f.in, 1, &f.scale, &f.err);
    CHECKF(ok, "%s: %s", path, f.err.text);
    for (int kind = 0; ok && kind < DATA_COUNT; kind++) {
        fixture_data(&f, (enum data_kind)kind, 21);
        for (size_t o = 0; o < (take_long() ? 6 : 2); o++) {
            if (!is_honest(&f, orders[o]))
                continue;
            struct comparison c = run_kernel(&f, (struct kernel){orders[o], OPERAND_FP32, 1});
            if (take_long())
                note_result(name, (struct kernel){orders[o], OPERAND_FP32, 1}, f.task->accuracy,
                            data_name((enum data_kind)kind), &c);
            double rms = c.rms / c.rms_limit, worst = c.worst / c.worst_limit;
            CHECKF(c.pass, "%s, order %d on %s: rms %.3g worst %.3g nonfinite %d; %.9g got %.9g",
                   name, (int)orders[o], data_name((enum data_kind)kind), c.rms, c.worst,
                   (int)c.nonfinite, c.first[0].expected, c.first[0].got);
            if (c.pass && rms > seen->rms) {
                seen->rms = rms;
                snprintf(seen->where[0], 512, "%s on %s", name, data_name((enum data_kind)kind));
            }
            if (c.pass && worst > seen->worst) {
                seen->worst = worst;
                snprintf(seen->where[1], 512, "%s on %s", name, data_name((enum data_kind)kind));
            }
        }
        try_wrongs(&f, failed);
    }
    for (size_t w = 0; ok && w < WRONGS; w++)
        CHECKF(failed[w] || (w == WRONGS - 1 && !shuffle_shows(&f)), "%s: %s pass on every kind",
               name, wrongs[w].name);
    fixture_end(&f);
}

/* Kernels of the lower classes, on tasks whose work is sums of products of fp32 numbers. */
static const struct {
    const char *name;
    struct kernel kernel;
    enum accuracy class;
    bool pass; /* on every kind, or fail on at least one */
} classes[] = {
    {"TF32 as tf32", {ORDER_FUSED, OPERAND_TF32, 1}, ACCURACY_TF32, true},
    {"TF32 as tf32, in the tensor core", {ORDER_TRUNCATED, OPERAND_TF32, 1}, ACCURACY_TF32, true},
    {"bf16 as bf16", {ORDER_FUSED, OPERAND_BF16, 1}, ACCURACY_BF16, true},
    {"TF32 as fp32", {ORDER_FUSED, OPERAND_TF32, 1}, ACCURACY_FP32, false},
    {"TF32 cut off as tf32", {ORDER_FUSED, OPERAND_TF32_CUT, 1}, ACCURACY_TF32, false},
    {"bf16 as tf32", {ORDER_FUSED, OPERAND_BF16, 1}, ACCURACY_TF32, false},
};

static bool is_contraction(const struct fixture *f) {
    struct features features;
    struct cost cost;
    features_of(f->in, &features);
    cost_of(f->in, &cost);
    for (size_t i = 0; i < f->task->ntensors; i++) {
        char kind = dtype_info(f->task->tensors[i].dtype)->kind;
        if (tensor_has_memory(&f->task->tensors[i]) && kind == 'f' &&
            f->task->tensors[i].dtype != DTYPE_F32)
            return false;
    }
    return cost.flops_contraction > cost.flops / 2 && features.log2_reduced >= 6 &&
           features.log2_elements >= 6;
}

/* The kinds that tell most come first. */
static void try_class(struct fixture *f, const char *name, size_t c) {
    static const enum data_kind kinds[] = {
        DATA_SIGNED,   DATA_TILE,  DATA_STATED,    DATA_WIDE,     DATA_OFFSET,   DATA_MIXED,
        DATA_SPIKES,   DATA_LARGE, DATA_ONEHOT,    DATA_SORTED,   DATA_CONSTANT, DATA_FAR,
        DATA_LITERALS, DATA_ZEROS, DATA_SUBNORMAL, DATA_INFINITE, DATA_NONFINITE};
    size_t n = take_long() ? sizeof kinds / sizeof *kinds : 6;
    bool failed = false;
    f->task->accuracy = classes[c].class;
    for (size_t k = 0; k < n && (classes[c].pass || !failed || take_long()); k++) {
        fixture_data(f, kinds[k], 22);
        struct comparison got = run_kernel(f, classes[c].kernel);
        if (take_long())
            note_result("contraction", classes[c].kernel, classes[c].class, data_name(kinds[k]),
                        &got);
        failed |= !got.pass;
        CHECKF(got.pass || !classes[c].pass,
               "%s, %s on %s: rms %.3g of %g, worst %.3g of %g, nonfinite %d", name,
               classes[c].name, data_name(kinds[k]), got.rms, got.rms_limit, got.worst,
               got.worst_limit, (int)got.nonfinite);
    }
    CHECKF(failed || classes[c].pass, "%s, %s passes on every kind", name, classes[c].name);
}

/* The smallest check shape whose sums are long enough. */
static bool bind_contraction(struct fixture *f) {
    double least = take_long() ? 2e6 : 4e5;
    for (size_t c = 0; c < f->task->nchecks; c++) {
        struct fixture at = *f;
        struct cost cost;
        if (!task_bind_check(f->task, c, f->a, &at.in, &f->err))
            return false;
        cost_of(at.in, &cost);
        if (is_contraction(&at) && cost.flops < least) {
            least = cost.flops;
            f->in = at.in;
        }
    }
    return f->in != NULL;
}

static void try_classes(const char *path, const char *name, struct seen *seen) {
    struct fixture f = {.a = arena_new((size_t)64 << 20)};
    bool take = task_load(path, f.a, &f.task, &f.err) && bind_contraction(&f) &&
                data_scale_find(f.in, 1, &f.scale, &f.err);
    seen->tasks += take;
    for (size_t c = 0; take && c < sizeof classes / sizeof *classes; c++)
        try_class(&f, name, c);
    fixture_end(&f);
}

typedef void task_fn(const char *path, const char *name, struct seen *seen);

/* Whether the task is in the part that is asked for, or else in the share. By its name: the order
 * of a folder is that of the file system. */
static bool is_ours(const char *name) {
    const char *part = getenv("CUTEPILOT_TEST_PART");
    unsigned which = 0, parts = 1, sum = 0;
    if (part && (sscanf(part, "%u/%u", &which, &parts) != 2 || !parts))
        return false;
    for (const char *p = name; *p; p++)
        sum = sum * 31 + (unsigned char)*p;
    return part ? sum % parts == which % parts : tap_takes(sum);
}

static void for_tasks(task_fn *fn, struct seen *seen) {
    static const char *const folders[] = {"smoke", "layers", "kernelbench/level1"};
    const char *root = getenv("SOURCE_ROOT");
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tasks/%s", root ? root : ".", folders[k]);
        DIR *d = opendir(path);
        CHECKF(d, "%s", path);
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
            char file[8192];
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            if (strstr(e->d_name, ".task") && is_ours(e->d_name))
                fn(file, e->d_name, seen);
        }
        if (d)
            closedir(d);
    }
}

static void every_task(void) {
    struct seen seen = {0};
    tap_share();
    for_tasks(try_task, &seen);
    printf("# of the limits honest kernels reach: rms %.2f (%s), worst %.2f (%s)\n", seen.rms,
           seen.where[0], seen.worst, seen.where[1]);
}

static void every_contraction(void) {
    struct seen seen = {0};
    tap_share();
    for_tasks(try_classes, &seen);
    printf("# %d tasks\n", seen.tasks);
    CHECK((size_t)seen.tasks >= tap_least(5) || getenv("CUTEPILOT_TEST_PART"));
}

static const struct tap_case cases[] = {
    {"every contraction: the classes are told apart", every_contraction},
    {"every task: honest kernels pass, wrong outputs fail", every_task},
};
TAP_CASES(cases)
