/* GPUs from files: what is stated holds, what is wrong is told with its place. */
#include "target/gpu.h"

#include "tap.h"

#include <stdlib.h>

static bool parse(struct arena *a, const char *text, const struct gpu **g, struct err *err) {
    *err = (struct err){0};
    return gpu_parse(S("my.gpu"), str_view(text), a, g, err);
}

static void like_another(void) {
    struct arena *a = arena_new(1 << 20);
    const struct gpu *g = NULL, *h = gpu_find(S("h200"));
    struct err err;
    bool ok = parse(a,
                    "# a smaller one\n"
                    "like  = h200\n"
                    "name  = h100-pcie\n"
                    "title = NVIDIA H100 PCIe  # as the driver says\n"
                    "sms   = 114\n"
                    "l2_bytes = 50M\n"
                    "shared_block = 227K\n"
                    "dram_bytes_s = 2.0e12\n",
                    &g, &err);
    CHECKF(ok, "%s", err.text);
    if (ok) {
        CHECK(!strcmp(g->name, "h100-pcie") && !strcmp(g->title, "NVIDIA H100 PCIe"));
        CHECK(g->sms == 114 && g->dram_bytes_s == 2.0e12 && g->l2_bytes == (size_t)50 << 20);
        CHECK(g->shared_block == (size_t)227 << 10 && g->clock_hz == h->clock_hz);
        CHECK(!strcmp(g->arch, h->arch) && !g->calibrated && !*g->measured);
        CHECK(!strcmp(gpu_source(g, S("bf16_flops")), "public"));
    }
    arena_free(a);
}

/* What is not stated of features is the architecture's; what is stated holds. */
static void features(void) {
    static const struct {
        const char *text;
        bool wgmma, tma;
        int cluster_most;
    } rows[] = {
        {"like = h200\nname = x\ntitle = y\n", true, true, 8},
        {"like = h200\nname = x\ntitle = y\narch = sm_80\n", false, false, 1},
        {"like = a100\nname = x\ntitle = y\narch = sm_120a\n", false, true, 8},
        {"like = h200\nname = x\ntitle = y\narch = sm_90\n", false, true, 8},
        {"like = h200\nname = x\ntitle = y\nwgmma = no\ncluster_most = 4\n", false, true, 4},
        {"like = h200\nname = x\ntitle = y\nwgmma = yes\narch = sm_80\n", true, false, 1},
        {"like = h200\nname = x\ntitle = y\narch = sm_999\ncp_async = yes\nmma = yes\n"
         "mma_fp8 = no\ntma = no\nwgmma = no\ntcgen05 = no\ncluster_most = 2\nsum_bits = 25\n",
         false, false, 2},
    };
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpu *g = NULL;
        struct err err;
        CHECKF(parse(a, rows[i].text, &g, &err), "row %zu: %s", i, err.text);
        CHECKF(g && g->has.wgmma == rows[i].wgmma && g->has.tma == rows[i].tma &&
                   g->has.cluster_most == rows[i].cluster_most,
               "row %zu", i);
    }
    arena_free(a);
}

/* Every fact survives, and nothing of it is measured unless the file says so. */
static void written_and_read(void) {
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < gpu_count(); i++) {
        struct buf one, two;
        const struct gpu *g = NULL;
        struct err err;
        buf_init(&one, GPU_FILE_BYTES);
        buf_init(&two, GPU_FILE_BYTES);
        gpu_text(gpu_at(i), &one);
        bool ok = gpu_parse(S("x.gpu"), buf_str(&one), a, &g, &err);
        CHECKF(ok, "%s: %s", gpu_at(i)->name, err.text);
        if (ok)
            gpu_text(g, &two);
        CHECKF(str_eq(buf_str(&one), buf_str(&two)), "%s", gpu_at(i)->name);
        buf_release(&one);
        buf_release(&two);
    }
    arena_free(a);
}

static void wrong_files(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"", "'name' is not stated"},
        {"name = x\ntitle = y\narch = sm_80\n", "'sms' is not stated"},
        {"like = h200\n", "'name' is not stated"},
        {"like = nothing\n", "my.gpu:1:8"},
        {"name = x\nlike = h200\n", "'like' comes once"},
        {"like = h200\nlike = a100\n", "'like' comes once"},
        {"like = h200\nsm = 3\n", "my.gpu:2:1: unknown fact"},
        {"like = h200\nsms\n", "expected 'fact = value'"},
        {"like = h200\nsms = many\n", "my.gpu:2:7: expected a number"},
        {"like = h200\nsms = 1.5\n", "expected a whole number"},
        {"like = h200\nsms = 0\n", "expected a positive number"},
        {"like = h200\nclock_hz = -1\n", "expected a positive number"},
        {"like = h200\nclock_hz = nan\n", "expected a number"},
        {"like = h200\nclock_hz = 1e300\n", "expected a positive number"},
        {"like = h200\nsms = 5000000000\n", "expected a whole number"},
        {"like = h200\nsms = 3\nsms = 4\n", "stated twice"},
        {"like = h200\ncalibrated = maybe\n", "expected yes or no"},
        {"like = h200\nname =\n", "expected a name"},
        {"like = h200\nwgmma = 1\n", "expected yes or no"},
        {"like = h200\ncluster_most = 0\n", "expected a positive number"},
        {"like = h200\nmeasured = sms nothing\n", "my.gpu:2:16: unknown fact"},
        {"like = h200\nname = x\ntitle = y\narch = sm_999\n", "'cp_async' is not stated"},
        {"like = h200\nl2_bytes = 5X\n", "64K"},
        {"like = h200\nname = x\ntitle = y\nshared_block = 1M\n", "contradict"},
    };
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct gpu *g;
        struct err err;
        bool ok = parse(a, rows[i].text, &g, &err);
        CHECKF(!ok && err.kind == ERR_INPUT && strstr(err.text, rows[i].says), "%s: %s",
               rows[i].text, ok ? "accepted" : err.text);
    }
    arena_free(a);
}

static void by_name(void) {
    struct arena *a = arena_new(1 << 20);
    const struct gpu *g;
    const char *path;
    struct err err = {0};
    char dir[] = "/tmp/cutepilot-gpu-XXXXXX", file[128], command[256];
    CHECK(mkdtemp(dir) != NULL);
    setenv("XDG_DATA_HOME", dir, 1);
    CHECK(gpu_named(S("a100"), a, &g, &path, &err) && g == gpu_find(S("a100")) && !path);
    CHECK(!gpu_named(S("mine"), a, &g, &path, &err) && err.kind == ERR_INPUT &&
          strstr(err.text, "h200"));
    CHECK(!gpu_named(S(""), a, &g, &path, &err));
    CHECK(!gpu_named(S("./none.gpu"), a, &g, &path, &err) && strstr(err.text, "none.gpu"));
    snprintf(file, sizeof file, "%s/cutepilot/gpus/mine.gpu", dir);
    snprintf(
        command, sizeof command,
        "mkdir -p %s/cutepilot/gpus && printf 'like = a100\\nname = mine\\ntitle = Mine\\n' > %s",
        dir, file);
    CHECK(system(command) == 0);
    CHECK(gpu_named(S("mine"), a, &g, &path, &err) && !strcmp(g->title, "Mine") &&
          !strcmp(path, file));
    CHECK(gpu_named(str_view(file), a, &g, &path, &err) && g->sms == 108);
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(system(command) == 0);
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"like another, with what differs", like_another},
    {"features, stated and by the architecture", features},
    {"a file of all facts gives the same GPU", written_and_read},
    {"what is wrong is told with its place", wrong_files},
    {"by name, by path, in the user's folder", by_name},
};
TAP_CASES(cases)
