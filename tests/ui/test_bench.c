/* The baseline of `bench` with a fake PyTorch and no kernels: which of its ways a speedup is stated
 * against, and what is said where there is none. This file is also the program that is started as
 * the helper's launcher. */
#include "ui/bench_run.h"

#include "tap.h"
#include "ui/ui.h"

#include <signal.h>
#include <stdlib.h>

extern char **environ;

static struct arena *arena;

static bool run(struct bench *b, enum bench_baseline baseline, enum device_kind kind,
                const char *line) {
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    str text =
        arena_printf(arena,
                     "task t \"t\"\ndim N = 8\nin x[N] : f32 ~ normal(0, 1)\nout y[N] : f32\n"
                     "y[i] = x[i]\n%s\n",
                     line);
    *b = (struct bench){.baseline = baseline, .python = "python3"};
    if (!task_parse(S("t.task"), text, arena, &task, &err) ||
        !task_bind(task, NULL, 0, arena, &inst, &err)) {
        CHECKF(false, "%s", err.text);
        return false;
    }
    b->eo.task = task;
    b->eo.inst = inst;
    b->eo.device.kind = kind;
    memcpy(b->eo.device.text, "cuda:0", sizeof "cuda:0");
    return bench_run(b, arena, &err);
}

#define NEED_PYTHON                                                                                \
    if (!getenv("SOURCE_ROOT") ||                                                                  \
        system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))'") != 0)               \
    SKIP("no python3, or not run by meson test")

/* cudnn's default allows TF32, so PyTorch's own numerics are the faster here; the class's count. */
#define LINE "torch \"torch.work(x, 8.0 - 4 * torch.backends.cudnn.allow_tf32)\""

static void test_best_way(void) {
    static const struct {
        enum bench_baseline baseline;
        double baseline_s;
        bool ok[BENCH_WAYS];
    } rows[] = {
        {BASELINE_TORCH, 4e-3, {true, true, true, true}},
        {BASELINE_TORCH_EAGER, 8e-3, {true, false, true, false}},
    };
    NEED_PYTHON;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        CHECK(run(&b, rows[i].baseline, DEVICE_CUDA, LINE));
        CHECKF(fabs(b.baseline_s - rows[i].baseline_s) < 1e-9, "row %zu: %g %s", i, b.baseline_s,
               b.no_baseline.text);
        CHECK(!b.no_baseline.kind && b.torch && b.blocks == 3);
        for (size_t w = 0; w < BENCH_WAYS; w++) {
            CHECKF(b.ways[w].ok == rows[i].ok[w], "row %zu way %zu: %s", i, w, b.ways[w].why.text);
            CHECKF(b.ways[w].samples.n == (rows[i].ok[w] ? 60u : 0u), "row %zu way %zu", i, w);
        }
        bench_release(&b);
    }
}

static void test_no_baseline(void) {
    static const struct {
        const char *line, *words;
        enum device_kind kind;
    } rows[] = {
        {"", "no PyTorch baseline: the task has no torch line", DEVICE_CUDA},
        {"torch \"nothing(x)\"", "no PyTorch baseline: eager: NameError", DEVICE_CUDA},
        {"torch \"torch.leave(x)\"", "MemoryError: it is full", DEVICE_CUDA},
        {LINE, "use --device cuda", DEVICE_SIM},
    };
    NEED_PYTHON;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bench b;
        CHECKF(run(&b, BASELINE_TORCH, rows[i].kind, rows[i].line), "row %zu", i);
        CHECKF(b.no_baseline.kind && strstr(b.no_baseline.text, rows[i].words), "row %zu: %s", i,
               b.no_baseline.text);
        CHECK(b.baseline_s == 0);
        bench_release(&b);
    }
}

static const struct tap_case cases[] = {
    {"the better of eager and compiled in the class's numerics", test_best_way},
    {"no baseline, and why", test_no_baseline},
};

int main(int argc, char **argv) {
    if (argc > 1)
        return ui_main(argc, argv, environ);
    arena = arena_new(256u << 20);
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    const char *root = getenv("SOURCE_ROOT");
    if (root)
        setenv("PYTHONPATH", arena_printf(arena, "%s/tests/eval/fake_torch", root).p, 1);
    int code = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return code;
}
