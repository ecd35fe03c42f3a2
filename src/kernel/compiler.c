/* The compiler role: NVRTC in a process of its own, that can read the header roots and nothing
 * else.
 *
 * It declares the few NVRTC functions it needs itself, so that building cutepilot needs no CUDA.
 * Library and builtins are loaded before the sandbox closes (NVRTC opens its builtins late). It
 * keeps no clock: its parent does, and kills it. It never writes to stdout or stderr. */
#include "base/file.h"
#include "base/frame.h"
#include "base/sandbox.h"
#include "base/say.h"
#include "kernel/build.h"
#include "kernel/compile.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- where NVRTC is, and which it is ---- */

#define WHAT_TO_DO "run tools/setup build, or set CUTEPILOT_CUDA to a CUDA 13 toolkit"

struct finding {
    struct nvrtc_root *out;
    struct arena *a;
    struct buf looked;  /* "; /usr/local/cuda (no libnvrtc)" for the message */
    const char *denied; /* the first folder that may not be read; NULL: all may */
};

/* Is it there, or hidden behind a folder, without permission to read it? */
static bool is_denied(const char *path) {
    return access(path, R_OK) != 0 && errno == EACCES;
}

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

static void note_denied(struct finding *f, const char *root, const char *const *below, size_t n) {
    if (!f->denied && is_denied(root))
        f->denied = arena_cstr(f->a, str_view(root));
    for (size_t i = 0; i < n && !f->denied; i++) {
        const char *path = arena_printf(f->a, "%s/%s", root, below[i]).p;
        if (is_denied(path))
            f->denied = path;
    }
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
    note_denied(f, root, libs, sizeof libs / sizeof *libs);
    note_denied(f, root, incs, sizeof incs / sizeof *incs);
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

/* In the clone, or installed. */
static const char *const beside[] = {"../.deps", "../../.deps", ".deps", "../lib/cutepilot"};

static bool toolkit_find(struct finding *f) {
    const char *own = getenv("CUTEPILOT_CUDA");
    if (own && *own)
        return toolkit_at(f, "CUTEPILOT_CUDA", own);
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
        const char *root = arena_printf(f->a, "%s%s/cuda", program_dir(f), beside[i]).p;
        if ((file_exists(root) || is_denied(root)) && toolkit_at(f, ".deps/cuda", root))
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
    else if (f.denied)
        err_set(err, ERR_ENV,
                "NVRTC: %s may not be read by this user\nhint: whoever owns it can allow it "
                "(chmod -R a+rX); or set CUTEPILOT_CUDA to a CUDA 13 toolkit",
                f.denied);
    else
        err_set(err, ERR_ENV, "no NVRTC found; looked at %.*s\nhint: " WHAT_TO_DO,
                STR_ARG(buf_str(&f.looked)));
    buf_release(&f.looked);
    arena_free(f.a);
    return ok;
}

#define COMPILER_FD      3
#define COMPILER_OPTIONS 32

/* ---- NVRTC ---- */

typedef struct nvrtc_program_s *nvrtc_program;
enum {
    NVRTC_SUCCESS = 0,
    NVRTC_OUT_OF_MEMORY = 1,
    NVRTC_INVALID_OPTION = 5,
    NVRTC_COMPILATION = 6,
};

/* FUNCTION(member, symbol, parameters); all return a result code. */
#define NVRTC_FUNCTIONS(FUNCTION)                                                                  \
    FUNCTION(create, "nvrtcCreateProgram",                                                         \
             (nvrtc_program *, const char *, const char *, int, const char *const *,               \
              const char *const *))                                                                \
    FUNCTION(destroy, "nvrtcDestroyProgram", (nvrtc_program *))                                    \
    FUNCTION(compile, "nvrtcCompileProgram", (nvrtc_program, int, const char *const *))            \
    FUNCTION(log_size, "nvrtcGetProgramLogSize", (nvrtc_program, size_t *))                        \
    FUNCTION(log, "nvrtcGetProgramLog", (nvrtc_program, char *))                                   \
    FUNCTION(ptx_size, "nvrtcGetPTXSize", (nvrtc_program, size_t *))                               \
    FUNCTION(ptx, "nvrtcGetPTX", (nvrtc_program, char *))                                          \
    FUNCTION(cubin_size, "nvrtcGetCUBINSize", (nvrtc_program, size_t *))                           \
    FUNCTION(cubin, "nvrtcGetCUBIN", (nvrtc_program, char *))

struct nvrtc {
#define FUNCTION(member, symbol, parameters) int(*member) parameters;
    NVRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    int major, minor;
};

/* Object and function pointers are not convertible in C; POSIX makes them so for dlsym. */
static bool symbol_get(void *library, const char *name, void *slot, struct err *err) {
    void *p = dlsym(library, name);
    if (!p)
        return err_set(err, ERR_ENV, "NVRTC has no %s", name);
    memcpy(slot, &p, sizeof p);
    return true;
}

static bool builtins_load(const char *library, const struct nvrtc *n, struct err *err) {
    char path[1024];
    const char *slash = strrchr(library, '/');
    int dir = slash ? (int)(slash - library) : 1;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", dir, slash ? library : ".",
             n->major, n->minor);
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL))
        return err_set(err, ERR_ENV, "load NVRTC's builtins: %s", dlerror());
    return true;
}

/* An old NVRTC is not asked for more than its version: the parent refuses it. */
static bool nvrtc_load(const char *path, struct nvrtc *n, struct err *err) {
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    int (*version)(int *, int *) = NULL;
    if (!library)
        return err_set(err, ERR_ENV, "load NVRTC: %s", dlerror());
    if (!symbol_get(library, "nvrtcVersion", &version, err))
        return false;
    if (version(&n->major, &n->minor) != NVRTC_SUCCESS)
        return err_set(err, ERR_ENV, "NVRTC does not tell its version");
    if (!nvrtc_new_enough(n->major, n->minor))
        return true;
#define FUNCTION(member, symbol, parameters)                                                       \
    if (!symbol_get(library, symbol, &n->member, err))                                             \
        return false;
    NVRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
    return builtins_load(path, n, err);
}

/* ---- one compile ---- */

struct result {
    enum compile_status status;
    struct buf log, out; /* out: PTX, then cubin */
    size_t ptx, cubin;
};

static void take_log(const struct nvrtc *n, nvrtc_program p, struct result *r) {
    size_t size = 0;
    if (n->log_size(p, &size) != NVRTC_SUCCESS || size <= 1)
        return;
    char *space = mem_try_resize(NULL, size);
    if (!space || n->log(p, space) != NVRTC_SUCCESS) {
        mem_free(space);
        return;
    }
    size = strnlen(space, size); /* ptxas's part is padded */
    bool cut = size > COMPILE_MAX_LOG;
    buf_put(&r->log, space, cut ? COMPILE_MAX_LOG : size);
    if (cut)
        buf_puts(&r->log, S("\n[the rest of the log is cut]\n"));
    mem_free(space);
}

typedef int size_fn(nvrtc_program, size_t *);
typedef int data_fn(nvrtc_program, char *);

static enum compile_status take_output(nvrtc_program p, size_fn *size_of, data_fn *data_of,
                                       struct buf *out, size_t *taken) {
    size_t size = 0;
    if (size_of(p, &size) != NVRTC_SUCCESS)
        return COMPILE_BROKEN;
    if (size > COMPILE_MAX_OUTPUT)
        return COMPILE_OUTPUT;
    char *space = buf_reserve(out, size);
    if (!space)
        return COMPILE_OUTPUT;
    if (size && data_of(p, space) != NVRTC_SUCCESS)
        return COMPILE_BROKEN;
    buf_grown(out, size);
    *taken = size;
    return COMPILE_OK;
}

static enum compile_status status_of(int code) {
    return code == NVRTC_SUCCESS         ? COMPILE_OK
           : code == NVRTC_COMPILATION   ? COMPILE_FAILED
           : code == NVRTC_OUT_OF_MEMORY ? COMPILE_MEMORY
                                         : COMPILE_BROKEN;
}

/* unit is NUL-terminated. */
static void compile(const struct nvrtc *n, const char *unit, const char *const *options,
                    int noptions, struct result *r) {
    nvrtc_program p = NULL;
    r->status = status_of(n->create(&p, unit, "kernel.cu", 0, NULL, NULL));
    if (r->status != COMPILE_OK)
        return;
    int code = n->compile(p, noptions, options);
    r->status = status_of(code);
    take_log(n, p, r);
    if (code == NVRTC_INVALID_OPTION && !r->log.n)
        buf_puts(&r->log, S("NVRTC does not know one of its options\n"));
    if (r->status == COMPILE_OK)
        r->status = take_output(p, n->ptx_size, n->ptx, &r->out, &r->ptx);
    if (r->status == COMPILE_OK && r->ptx) { /* its last byte is a NUL */
        r->out.n--;
        r->ptx--;
        r->status = take_output(p, n->cubin_size, n->cubin, &r->out, &r->cubin);
    }
    n->destroy(&p);
}

static void warm_up(const struct nvrtc *n) {
    static const char unit[] = "extern \"C\" __global__ void warm(float *y) { *y = expf(*y); }\n";
    static const char *const options[] = {"--std=c++17", "--gpu-architecture=sm_90a"};
    struct result r = {0};
    buf_init(&r.log, COMPILE_MAX_LOG * 2);
    buf_init(&r.out, COMPILE_MAX_OUTPUT);
    compile(n, unit, options, 2, &r);
    buf_release(&r.log);
    buf_release(&r.out);
}

/* ---- the conversation ---- */

static bool reply(const struct result *r, double ms, struct err *err) {
    bool ok = r->status == COMPILE_OK;
    json *head = json_object();
    json_set_i64(head, "status", r->status);
    json_set_str(head, "log", buf_str(&r->log));
    json_set_f64(head, "ms", ms);
    json_set_i64(head, "ptx", ok ? (int64_t)r->ptx : 0);
    json_set_i64(head, "cubin", ok ? (int64_t)r->cubin : 0);
    bool sent =
        frame_write(COMPILER_FD, FRAME_BUILT, head, ok ? buf_str(&r->out) : S(""), NULL, 0, err);
    json_free(head);
    return sent;
}

/* False ends the role: the peer is gone, or NVRTC is not to be trusted after running out of
 * memory. */
static bool serve(const struct nvrtc *n, const struct frame *f, struct err *err) {
    const json *list = json_get(f->head, "options");
    const char *options[COMPILER_OPTIONS];
    struct arena *a = arena_new(COMPILE_MAX_UNIT + (1u << 20));
    int count = 0;
    str option;
    while (count < COMPILER_OPTIONS && json_to_str(json_at(list, (size_t)count), &option))
        options[count++] = arena_cstr(a, option);
    struct result r = {0};
    buf_init(&r.log, COMPILE_MAX_LOG * 2);
    buf_init(&r.out, 2u * COMPILE_MAX_OUTPUT);
    uint64_t start = clock_us();
    compile(n, arena_cstr(a, str_cut(f->blob, 0, COMPILE_MAX_UNIT)), options, count, &r);
    bool sent = reply(&r, (double)(clock_us() - start) / 1e3, err);
    buf_release(&r.log);
    buf_release(&r.out);
    arena_free(a);
    return sent && r.status != COMPILE_MEMORY && r.status != COMPILE_BROKEN;
}

static int say_error(const struct err *why) {
    struct err ignored;
    json *head = json_object();
    json_set_str(head, "error", str_view(why->text));
    frame_write(COMPILER_FD, FRAME_HELLO, head, S(""), NULL, 0, &ignored);
    json_free(head);
    return ERR_ENV;
}

static bool say_hello(const struct nvrtc *n, const struct sandbox_report *s, struct err *err) {
    json *head = json_object();
    json_set_i64(head, "major", n->major);
    json_set_i64(head, "minor", n->minor);
    json_set_i64(head, "pid", getpid());
    json_set_i64(head, "sandbox", s->active);
    json_set_i64(head, "landlock", s->landlock_abi);
    json_set_str(head, "missing", str_view(s->missing));
    bool ok = frame_write(COMPILER_FD, FRAME_HELLO, head, S(""), NULL, 0, err);
    json_free(head);
    return ok;
}

/* A quoted include is looked for in the working folder first: / has none. */
static bool close_in(const char *include, const char *cutlass, struct sandbox_report *report,
                     struct err *err) {
    const char *const roots[] = {include, *cutlass ? cutlass : NULL, NULL};
    struct sandbox_policy policy = {.read_only = roots};
    if (chdir("/") != 0)
        return err_errno(err, ERR_ENV, "chdir /");
    return sandbox_enter(&policy, report, err);
}

static int compiler_run(char **argv) {
    struct err err = {0};
    struct nvrtc n = {0};
    struct sandbox_report report = {0};
    if (!nvrtc_load(argv[0], &n, &err) || !close_in(argv[1], argv[2], &report, &err))
        return say_error(&err);
    if (!say_hello(&n, &report, &err) || !nvrtc_new_enough(n.major, n.minor))
        return ERR_ENV;
    warm_up(&n);
    if (!frame_write(COMPILER_FD, FRAME_READY, NULL, S(""), NULL, 0, &err))
        return ERR_ENV;
    for (bool go_on = true; go_on;) {
        struct frame f = {0};
        go_on = frame_read(COMPILER_FD, 0, &f, &err) > 0 && f.type == FRAME_COMPILE &&
                serve(&n, &f, &err);
        frame_release(&f);
    }
    return 0;
}

/* Ends the process at once: what a library would do at exit, the sandbox may not let it. */
int compiler_main(int argc, char **argv) {
    if (argc != 3) {
        complain("cutepilot compiler: a role that cutepilot starts itself\n");
        return ERR_INPUT;
    }
    _exit(compiler_run(argv));
}
