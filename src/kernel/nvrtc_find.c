/* Where NVRTC is, and which it is. */
#include "kernel/build.h"

#include "base/file.h"
#include "kernel/compile.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT_TO_DO "run tools/setup build, or set CUTEPILOT_CUDA to a CUDA 13 toolkit"

struct finding {
    struct nvrtc_root *out;
    struct arena *a;
    struct buf looked; /* "; /usr/local/cuda (no libnvrtc)" for the message */
};

/* ---- one toolkit ---- */

/* 13 of libnvrtc.so.13, 0 of libnvrtc.so, -1 of another file. */
static int library_major(str name) {
    if (str_is(name, "libnvrtc.so"))
        return 0;
    str rest = str_from(name, S("libnvrtc.so.").n), word;
    int64_t major;
    if (!str_starts(name, S("libnvrtc.so.")) || !str_word(&rest, '.', &word) ||
        !str_to_i64(word, &major) || major < 0 || major > 1000)
        return -1;
    return (int)major;
}

/* The newest there is, so that an old toolkit is found and then refused by its version. */
static bool library_in(struct finding *f, const char *dir) {
    str *names, best = {0};
    size_t n;
    struct err none;
    if (!dir_list(dir, f->a, &names, &n, &none))
        return false;
    int major = -1;
    for (size_t i = 0; i < n; i++)
        if (library_major(names[i]) > major) {
            major = library_major(names[i]);
            best = names[i];
        }
    char path[PATH_MAX];
    if (major < 0 || !realpath(dir, path))
        return false;
    size_t need =
        (size_t)snprintf(f->out->library, sizeof f->out->library, "%s/%.*s", path, STR_ARG(best));
    return need < sizeof f->out->library;
}

static bool headers_in(struct finding *f, const char *dir, const char *probe, char out[512]) {
    char path[PATH_MAX];
    const char *file = arena_printf(f->a, "%s/%s", dir, probe).p;
    if (!file_exists(file) || !realpath(dir, path) || strlen(path) >= 512)
        return false;
    memcpy(out, path, strlen(path) + 1);
    return true;
}

static bool toolkit_at(struct finding *f, const char *origin, const char *root) {
    static const char *const libs[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
    static const char *const incs[] = {"include", "targets/x86_64-linux/include"};
    bool lib = false, inc = false;
    for (size_t i = 0; !lib && i < sizeof libs / sizeof *libs; i++)
        lib = library_in(f, arena_printf(f->a, "%s/%s", root, libs[i]).p);
    for (size_t i = 0; !inc && i < sizeof incs / sizeof *incs; i++)
        inc = headers_in(f, arena_printf(f->a, "%s/%s", root, incs[i]).p, "cuda_fp16.h",
                         f->out->include);
    if (lib && inc) {
        snprintf(f->out->origin, sizeof f->out->origin, "%s", origin);
        return true;
    }
    buf_printf(&f->looked, "%s%s = %s (%s)", f->looked.n ? "; " : "", origin, root,
               !file_exists(root) ? "not there"
               : !lib             ? "no libnvrtc in lib64 or lib"
                                  : "no cuda_fp16.h in include");
    return false;
}

/* ---- all places ---- */

static const char *program_dir(struct finding *f) {
    str path = self_path(f->a);
    size_t n = path.n;
    while (n > 1 && path.p[n - 1] != '/')
        n--;
    return arena_cstr(f->a, str_cut(path, 0, n));
}

static const char *const beside[] = {"../.deps", "../../.deps", ".deps"};

static bool toolkit_find(struct finding *f) {
    const char *own = getenv("CUTEPILOT_CUDA");
    if (own && *own)
        return toolkit_at(f, "CUTEPILOT_CUDA", own);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const char *root = arena_printf(f->a, "%s%s/cuda", program_dir(f), beside[i]).p;
        if (file_exists(root) && toolkit_at(f, ".deps/cuda", root))
            return true;
    }
    static const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *root = getenv(variables[i]);
        if (root && *root && toolkit_at(f, variables[i], root))
            return true;
    }
    return toolkit_at(f, "/usr/local/cuda", "/usr/local/cuda");
}

/* Optional: without it only CuTe kernels cannot be compiled. */
static void cutlass_find(struct finding *f) {
    const char *own = getenv("CUTEPILOT_CUTLASS");
    f->out->cutlass[0] = 0;
    if (own && *own) {
        if (!headers_in(f, own, "cute/tensor.hpp", f->out->cutlass))
            headers_in(f, arena_printf(f->a, "%s/include", own).p, "cute/tensor.hpp",
                       f->out->cutlass);
        return;
    }
    for (size_t i = 0; !f->out->cutlass[0] && i < sizeof beside / sizeof *beside; i++)
        headers_in(f, arena_printf(f->a, "%s%s/cutlass/include", program_dir(f), beside[i]).p,
                   "cute/tensor.hpp", f->out->cutlass);
}

bool nvrtc_find(struct nvrtc_root *out, struct err *err) {
    *out = (struct nvrtc_root){0};
    struct finding f = {.out = out, .a = arena_new(16u << 20)};
    buf_init(&f.looked, 1024);
    bool ok = toolkit_find(&f);
    if (ok)
        cutlass_find(&f);
    else
        err_set(err, ERR_ENV, "no NVRTC found; looked at %.*s\nhint: " WHAT_TO_DO,
                STR_ARG(buf_str(&f.looked)));
    buf_release(&f.looked);
    arena_free(f.a);
    return ok;
}
