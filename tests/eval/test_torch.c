/* The PyTorch baseline against a fake `torch` (fake_torch/): the helper is the real one, in its
 * real sandbox, under whatever python3 there is. */
#include "eval/torch.h"

#include "base/file.h"
#include "base/sandbox.h"
#include "spec/data.h"
#include "tap.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena *arena;

#define TASK_HEAD                                                                                  \
    "task t \"t\"\ndim R = 3, C = %d\nin x[R,C] : f32 ~ normal(0, 1)\n"                            \
    "in k[R] : i32 ~ randint(0, R)\nout y[R,C] : f32\ny[i,j] = x[k[i],j]\n%s\n"

/* Columns: the second are more than are made and written, the helper repeats them. */
enum { SHORT = 1000, LONG = 1000000 };

static struct inst *make_inst(int columns, const char *rest) {
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    str text = arena_printf(arena, TASK_HEAD, columns, rest);
    bool ok = task_parse(S("t.task"), text, arena, &task, &err) &&
              task_bind(task, NULL, 0, arena, &inst, &err);
    CHECKF(ok, "%s", err.text);
    return ok ? inst : NULL;
}

static struct torch_helper *start_at(int columns, const char *line, const char *python,
                                     const char *device, struct err *err) {
    struct torch_options o = {.inst = make_inst(columns, line),
                              .python = python,
                              .device = device,
                              .seed = 7,
                              .program = getenv("CUTEPILOT")};
    *err = (struct err){0};
    return o.inst ? torch_open(&o, err) : NULL;
}

static struct torch_helper *start(const char *line, const char *python, const char *device,
                                  struct err *err) {
    return start_at(SHORT, line, python, device, err);
}

static bool here(void) {
    return getenv("CUTEPILOT") && getenv("SOURCE_ROOT") &&
           system("python3 -c 'import sys; sys.exit(sys.version_info < (3, 8))'") == 0;
}

#define NEED_PYTHON                                                                                \
    if (!here())                                                                                   \
    SKIP("no python3, or not run by meson test")

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-9;
}

/* Flush (1000), pause (500) and compilation (1e6) lie outside of the events, the work inside. */
static void test_times(void) {
    static const struct {
        enum torch_mode mode;
        enum torch_numerics numerics;
        double want_s;
    } rows[] = {
        {TORCH_EAGER, TORCH_CLASS, 9e-3},
        {TORCH_COMPILED, TORCH_CLASS, 4.5e-3},
        {TORCH_EAGER, TORCH_DEFAULT, 9e-3},
        {TORCH_COMPILED, TORCH_DEFAULT, 4.5e-3},
    };
    struct err err;
    NEED_PYTHON;
    struct torch_helper *t =
        start("torch \"torch.work(x, 9.0 - 2 * torch.backends.cuda.matmul.allow_tf32)\"", "python3",
              "cuda:0", &err);
    CHECKF(t, "%s", err.text);
    for (size_t i = 0; t && i < sizeof rows / sizeof *rows; i++) {
        double s[5] = {0};
        CHECKF(torch_warm(t, rows[i].mode, rows[i].numerics, &err), "%s", err.text);
        CHECKF(torch_time(t, rows[i].mode, rows[i].numerics, 5, s, &err), "%s", err.text);
        for (size_t k = 0; k < 5; k++)
            CHECKF(near(s[k], rows[i].want_s), "row %zu: %g", i, s[k]);
    }
    torch_close(t);
}

static void test_numerics(void) {
    static const struct {
        const char *accuracy;
        enum torch_numerics numerics;
        double matmul_s, cudnn_s;
    } rows[] = {
        {"", TORCH_CLASS, 1e-3, 1e-3},
        {"", TORCH_DEFAULT, 1e-3, 2e-3},
        {"accuracy tf32\n", TORCH_CLASS, 2e-3, 2e-3},
        {"accuracy tf32\n", TORCH_DEFAULT, 1e-3, 2e-3},
        {"accuracy bf16\n", TORCH_CLASS, 2e-3, 2e-3},
    };
    static const char *const lines[] = {
        "torch \"torch.work(x, 1.0 + torch.backends.cuda.matmul.allow_tf32)\"",
        "torch \"torch.work(x, 1.0 + torch.backends.cudnn.allow_tf32)\""};
    NEED_PYTHON;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 2; k++) {
            struct err err;
            double s = 0, want = k ? rows[i].cudnn_s : rows[i].matmul_s;
            struct torch_helper *t =
                start(arena_printf(arena, "%s%s", rows[i].accuracy, lines[k]).p, "python3",
                      "cuda:0", &err);
            CHECKF(t && torch_time(t, TORCH_EAGER, rows[i].numerics, 1, &s, &err), "%s", err.text);
            CHECKF(near(s, want), "row %zu line %d: %g", i, k, s);
            torch_close(t);
        }
}

static void test_facts(void) {
    struct err err;
    str s;
    int64_t sets = 0;
    bool on = false;
    NEED_PYTHON;
    struct torch_helper *t = start("torch \"x\"", "python3", "cuda:0", &err);
    CHECKF(t, "%s", err.text);
    if (!t)
        return;
    const json *f = torch_facts(t);
    CHECK(json_get_str(f, "torch", &s) && str_is(s, "0.0-fake"));
    CHECK(json_get_str(f, "gpu", &s) && str_is(s, "Fake GPU"));
    CHECK(json_get_i64(f, "sets", &sets) && sets == 3);
    CHECK(json_get_bool(json_get(f, "sandbox"), "no_new_privs", &on) && on);
    torch_close(t);
}

/* Values are those of our generator, and a long tensor repeats them. */
static void test_inputs(void) {
    struct err err;
    float x;
    NEED_PYTHON;
    struct torch_helper *t =
        start_at(LONG, "torch \"torch.first_bytes(x)\"", "python3", "cpu", &err);
    CHECKF(t && !torch_warm(t, TORCH_EAGER, TORCH_CLASS, &err), "no error");
    torch_close(t);
    /* The first call takes the second set: seed 7 + 1. */
    data_fill(make_inst(LONG, ""), NULL, 0, DATA_STATED, 8, 0, 1, &x);
    const unsigned char *b = (const unsigned char *)&x;
    str want = arena_printf(arena, "12000000 %02x%02x%02x%02x", b[0], b[1], b[2], b[3]);
    CHECKF(strstr(err.text, want.p) != NULL, "%s, not %s", err.text, want.p);
}

/* Lines that fail do so in words, each at the request that meets it. */
static void test_bad_lines(void) {
    static const struct {
        const char *line, *words;
        bool at_open;
    } rows[] = {
        {"torch \"x +\"", "the torch line is no Python expression", true},
        {"torch \"x); import os; (x\"", "the torch line is no Python expression", true},
        {"", "the task has no torch line", true},
        {"torch \"nothing(x)\"", "NameError", false},
        {"torch \"(x, x)\"", "gives 2 outputs, the task has 1", false},
        {"torch \"k\"", "gives y the shape [3] instead of [3, 1000]", false},
        {"torch \"torch.leave(x)\"", "ended: MemoryError: it is full", false},
        {"torch \"torch.secret(x)\"", "key is unknown", false},
    };
    NEED_PYTHON;
    setenv("ANTHROPIC_API_KEY", "0", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err;
        struct torch_helper *t = start(rows[i].line, "python3", "cuda:0", &err);
        CHECKF((t == NULL) == rows[i].at_open, "row %zu: %s", i, err.text);
        if (t)
            CHECKF(!torch_warm(t, TORCH_EAGER, TORCH_CLASS, &err), "row %zu: no error", i);
        CHECKF(strstr(err.text, rows[i].words), "row %zu: %s", i, err.text);
        torch_close(t);
    }
}

/* What a helper that is gone says, it says to every later request. */
static void test_gone(void) {
    struct err err;
    double s;
    NEED_PYTHON;
    struct torch_helper *t = start("torch \"torch.leave(x)\"", "python3", "cuda:0", &err);
    CHECK(t && !torch_warm(t, TORCH_EAGER, TORCH_CLASS, &err));
    CHECK(t && !torch_time(t, TORCH_EAGER, TORCH_CLASS, 1, &s, &err));
    CHECKF(strstr(err.text, "ended"), "%s", err.text);
    torch_close(t);
}

static void is_late(const char *line) {
    struct torch_options o = {.inst = make_inst(SHORT, line),
                              .python = "python3",
                              .device = "cuda:0",
                              .program = getenv("CUTEPILOT")};
    struct err err = {0};
    struct torch_helper *t = NULL;
    /* Python has to start within the limit too, on a busy machine as well. */
    for (o.limit_ms = 3000; !t && o.limit_ms < 100000; o.limit_ms *= 4)
        t = torch_open(&o, &err);
    CHECKF(t && !torch_warm(t, TORCH_EAGER, TORCH_CLASS, &err), "%s", err.text);
    CHECKF(strstr(err.text, "did not answer in time"), "%s", err.text);
    torch_close(t);
}

static void test_hang(void) {
    NEED_PYTHON;
    is_late("torch \"torch.hang(x)\"");
}

static void test_flood(void) {
    NEED_PYTHON;
    is_late("torch \"torch.flood(x)\"");
}

static void test_noise(void) {
    struct err err;
    double s = 0;
    NEED_PYTHON;
    struct torch_helper *t =
        start("torch \"torch.work(torch.noise(x), 3.0)\"", "python3", "cuda:0", &err);
    CHECKF(t && torch_time(t, TORCH_EAGER, TORCH_CLASS, 1, &s, &err), "%s", err.text);
    CHECK(near(s, 3e-3));
    torch_close(t);
}

static void test_no_python(void) {
    struct err err;
    if (!getenv("CUTEPILOT"))
        SKIP("not run by meson test");
    CHECK(!start("torch \"x\"", "no-such-python", "cuda:0", &err));
    CHECKF(strstr(err.text, "no-such-python"), "%s", err.text);
}

static void test_no_torch(void) {
    struct err err;
    NEED_PYTHON;
    char *kept = arena_cstr(arena, str_view(getenv("PYTHONPATH")));
    setenv("PYTHONPATH", "/nowhere", 1);
    struct torch_helper *t = start("torch \"x\"", "python3", "cuda:0", &err);
    if (!t) /* a real PyTorch without a GPU fails too, with other words */
        CHECKF(strstr(err.text, "no PyTorch") || strstr(err.text, "no GPU"), "%s", err.text);
    torch_close(t);
    setenv("PYTHONPATH", kept, 1);
}

/* The line's code cannot write outside its folder, nor reach the network; its children neither. */
static void test_confined(void) {
    static const struct {
        const char *line, *words;
        unsigned needs;
    } rows[] = {
        {"torch \"torch.touch(x, '/tmp/cutepilot-torch-escaped')\"", "PermissionError",
         SANDBOX_LANDLOCK},
        {"torch \"torch.child(x)\"", "CalledProcessError", SANDBOX_LANDLOCK},
        {"torch \"torch.connect(x)\"", "PermissionError", SANDBOX_SECCOMP},
        {"torch \"torch.touch(x, 'inside')\"", NULL, 0},
    };
    struct sandbox_report report;
    NEED_PYTHON;
    sandbox_probe(&report);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        if ((report.active & rows[i].needs) != rows[i].needs)
            continue;
        struct torch_helper *t = start(rows[i].line, "python3", "cuda:0", &err);
        bool ok = t && torch_warm(t, TORCH_EAGER, TORCH_CLASS, &err);
        CHECKF(t && ok == !rows[i].words, "row %zu: %s", i, err.text);
        CHECKF(!rows[i].words || strstr(err.text, rows[i].words), "row %zu: %s", i, err.text);
        torch_close(t);
    }
    CHECK(!file_exists("/tmp/cutepilot-torch-escaped"));
}

/* What is written for helpers of somebody else's: the first request, its inputs, the helper. */
static void test_written(void) {
    struct torch_options o = {
        .inst = make_inst(LONG, "torch \"x\""), .device = "cuda:0", .seed = 7};
    struct err err = {0};
    char dir[] = "/tmp/cutepilot-test-XXXXXX";
    str text = {0}, line = {0};
    json *request = NULL;
    CHECK(mkdtemp(dir) != NULL);
    CHECKF(torch_write(&o, dir, &err), "%s", err.text);
    CHECK(file_exists(arena_printf(arena, "%s/helper.py", dir).p));
    CHECK(file_read(arena_printf(arena, "%s/input-0-2", dir).p, 8 << 20, arena, &text, &err));
    CHECK(text.n == 4 << 20);
    CHECK(file_read(arena_printf(arena, "%s/request.json", dir).p, 1 << 20, arena, &text, &err));
    request = json_parse(text, &err);
    CHECKF(request && json_get_str(request, "torch", &line) && str_is(line, "x"), "%s", err.text);
    CHECK(json_len(json_get(request, "inputs")) == 2);
    json_free(request);
    dir_remove_tree(dir, &err);
    CHECK(!torch_write(&o, dir, &err));
    o.inst = make_inst(SHORT, "");
    err = (struct err){0};
    CHECK(!torch_write(&o, dir, &err) && strstr(err.text, "no torch line"));
}

static void test_folder_removed(void) {
    struct err err;
    NEED_PYTHON;
    char tmp[] = "/tmp/cutepilot-test-XXXXXX";
    CHECK(mkdtemp(tmp) != NULL);
    setenv("TMPDIR", tmp, 1);
    struct torch_helper *t = start("torch \"x\"", "python3", "cuda:0", &err);
    str *names;
    size_t n = 0;
    CHECK(t && dir_list(tmp, arena, &names, &n, &err) && n == 1);
    torch_close(t);
    CHECK(rmdir(tmp) == 0);
    unsetenv("TMPDIR");
}

static const struct tap_case cases[] = {
    {"samples are the work between the events", test_times},
    {"numerics follow the class", test_numerics},
    {"facts", test_facts},
    {"inputs are our generator's", test_inputs},
    {"lines that fail", test_bad_lines},
    {"a helper that is gone", test_gone},
    {"a helper that hangs", test_hang},
    {"a helper that never stops writing", test_flood},
    {"noise on stdout and stderr", test_noise},
    {"no such Python", test_no_python},
    {"Python without PyTorch", test_no_torch},
    {"the sandbox holds", test_confined},
    {"its folder is removed", test_folder_removed},
    {"what it is given can be written", test_written},
};

int main(void) {
    arena = arena_new(1u << 30);
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    const char *root = getenv("SOURCE_ROOT");
    if (root)
        setenv("PYTHONPATH", arena_printf(arena, "%s/tests/eval/fake_torch", root).p, 1);
    int code = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return code;
}
