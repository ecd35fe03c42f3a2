/* The coordinator's side of the PyTorch helper: its folder, its environment, lines over pipes.
 *
 * Everything read from it is bounded in size and time; a helper that is late or talks nonsense is
 * killed, and every later request fails with the same words. */
#include "eval/torch.h"

#include "base/asset.h"
#include "base/child.h"
#include "base/file.h"
#include "base/loop.h"
#include "spec/data.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SETS = 3,                  /* of inputs, in rotation */
    PIECE = 1 << 20,           /* elements of a tensor that are made; the helper repeats them */
    LINE_MAX_BYTES = 16 << 20, /* of an answer */
    NOISE_BYTES = 4096,        /* of stderr, the last ones: for the message */
    LAST_READS = 64,           /* … what it wrote last; it may write for ever */
    OPEN_MS = 180000,          /* importing PyTorch from a cold disk, CUDA's start */
    WARM_MS = 600000,          /* compilation */
    TIME_MS = 300000,
};

struct torch_helper {
    struct arena *arena;
    char *dir; /* NULL: none yet */
    struct child child;
    int requests, answers, noise_fd; /* -1: closed */
    struct buf line, noise;
    unsigned limit_ms; /* 0: by the kind of request */
    json *facts;
    struct err gone; /* set once it is lost */
};

const char *torch_mode_name(enum torch_mode m) {
    return m == TORCH_EAGER ? "eager" : "compiled";
}

const char *torch_numerics_name(enum torch_numerics n) {
    return n == TORCH_CLASS ? "class" : "default";
}

/* ---- the folder ---- */

static bool write_helper(struct torch_helper *t, const char *assets, struct err *err) {
    str helper;
    return asset_get(assets, "torch/helper.py", t->arena, &helper, err) &&
           file_replace(arena_printf(t->arena, "%s/helper.py", t->dir).p, helper, err);
}

static bool make_folder(struct torch_helper *t, const char *assets, struct err *err) {
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_cstr(
        t->arena, arena_printf(t->arena, "%s/cutepilot-torch-XXXXXX", tmp && *tmp ? tmp : "/tmp"));
    if (!mkdtemp(dir))
        return err_errno(err, ERR_ENV, "make the folder %s", dir);
    t->dir = dir;
    return write_helper(t, assets, err);
}

static bool write_piece(struct torch_helper *t, const struct inst *in, size_t tensor, size_t set,
                        uint64_t seed, json *files, struct err *err) {
    const struct tensor *x = &in->task->tensors[tensor];
    int64_t count = in->tensors[tensor].count < PIECE ? in->tensors[tensor].count : PIECE;
    size_t bytes = (size_t)count * dtype_info(x->dtype)->bytes;
    str name = arena_printf(t->arena, "input-%zu-%zu", tensor, set);
    void *data = mem_alloc(bytes + 1);
    data_fill(in, NULL, tensor, DATA_STATED, seed + set, 0, count, data);
    json_push_str(files, name);
    bool ok = file_replace(arena_printf(t->arena, "%s/%.*s", t->dir, STR_ARG(name)).p,
                           (str){data, bytes}, err);
    mem_free(data);
    return ok;
}

static json *shape_json(const struct inst *in, size_t tensor) {
    json *shape = json_array();
    for (size_t i = 0; i < in->task->tensors[tensor].rank; i++)
        json_push_i64(shape, in->tensors[tensor].extent[i]);
    return shape;
}

static bool add_tensor(struct torch_helper *t, const struct torch_options *o, size_t i,
                       json *inputs, json *outputs, struct err *err) {
    const struct tensor *x = &o->inst->task->tensors[i];
    bool ok = true;
    if (tensor_is_input(x)) {
        json *j = json_object(), *files = json_array();
        json_set_str(j, "name", x->name);
        json_set_str(j, "dtype", str_view(dtype_info(x->dtype)->name));
        json_set(j, "shape", shape_json(o->inst, i));
        for (size_t k = 0; k < SETS && ok; k++)
            ok = write_piece(t, o->inst, i, k, o->seed, files, err);
        json_set(j, "files", files);
        json_push(inputs, j);
    }
    if (tensor_is_output(x)) {
        json *j = json_object();
        json_set_str(j, "name", x->name);
        json_set(j, "shape", shape_json(o->inst, i));
        json_push(outputs, j);
    }
    return ok;
}

/* The first request; writes the inputs on the way. NULL and err. */
static json *first_request(struct torch_helper *t, const struct torch_options *o, struct err *err) {
    const struct task *task = o->inst->task;
    json *j = json_object(), *dims = json_object(), *inputs = json_array(), *outputs = json_array();
    bool ok = true;
    json_set_str(j, "torch", task->torch);
    json_set_str(j, "class", str_view(accuracy_name(task->accuracy)));
    json_set_str(j, "device", str_view(o->device));
    for (size_t i = 0; i < task->ndims; i++)
        json_set_i64(dims, arena_cstr(t->arena, task->dims[i].name), o->inst->dims[i]);
    for (size_t i = 0; i < task->ntensors && ok; i++)
        ok = add_tensor(t, o, i, inputs, outputs, err);
    json_set(j, "dims", dims);
    json_set(j, "inputs", inputs);
    json_set(j, "outputs", outputs);
    if (ok)
        return j;
    json_free(j);
    return NULL;
}

static bool write_request(struct torch_helper *t, const json *request, struct err *err) {
    struct buf text;
    buf_init(&text, LINE_MAX_BYTES);
    json_write(request, &text);
    bool ok = !text.failed || err_set(err, ERR_INPUT, "the request is too long");
    ok = ok &&
         file_replace(arena_printf(t->arena, "%s/request.json", t->dir).p, buf_str(&text), err);
    buf_release(&text);
    return ok;
}

static bool no_line(const struct torch_options *o, struct err *err) {
    if (!o->inst->task->torch.n)
        err_set(err, ERR_INPUT, "the task has no torch line");
    return !o->inst->task->torch.n;
}

bool torch_write(const struct torch_options *o, const char *dir, struct err *err) {
    if (no_line(o, err))
        return false;
    struct torch_helper t = {.arena = arena_new(64u << 20)};
    t.dir = arena_cstr(t.arena, str_view(dir));
    json *request = write_helper(&t, o->assets, err) ? first_request(&t, o, err) : NULL;
    bool ok = request && write_request(&t, request, err);
    json_free(request);
    arena_free(t.arena);
    return ok;
}

/* ---- the process ---- */

/* What finding Python, PyTorch and a compiler may depend on; no keys, no tokens. */
static const char *const kept[] = {"PATH",
                                   "HOME",
                                   "LANG",
                                   "LC_ALL",
                                   "LD_LIBRARY_PATH",
                                   "CUDA_HOME",
                                   "CUDA_PATH",
                                   "PYTHONPATH",
                                   "PYTHONHOME",
                                   "CUDA_VISIBLE_DEVICES",
                                   "VIRTUAL_ENV",
                                   "PYENV_ROOT",
                                   "PYENV_VERSION",
                                   "CONDA_PREFIX",
                                   "CUDA_DEVICE_ORDER",
                                   "CC",
                                   "CXX",
                                   "PYTHONUSERBASE",
                                   "ASAN_OPTIONS",
                                   "UBSAN_OPTIONS",
                                   "CUTEPILOT_FAULT"};
/* Caches of PyTorch, Triton and the driver go to the folder; compiling in a pool of processes would
 * leave them behind when we kill. */
static const char *const into_folder[] = {
    "TMPDIR",      "XDG_CACHE_HOME",   "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_HOME", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"};
static const char *const fixed[] = {"TORCHINDUCTOR_COMPILE_THREADS=1", "PYTHONDONTWRITEBYTECODE=1",
                                    "PYTHONUNBUFFERED=1"};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const *environment(struct torch_helper *t) {
    const char **env =
        arena_array(t->arena, const char *, COUNT(kept) + COUNT(into_folder) + COUNT(fixed) + 1);
    size_t n = 0;
    for (size_t i = 0; i < COUNT(kept); i++)
        if (getenv(kept[i]))
            env[n++] = arena_printf(t->arena, "%s=%s", kept[i], getenv(kept[i])).p;
    for (size_t i = 0; i < COUNT(into_folder); i++)
        env[n++] = arena_printf(t->arena, "%s=%s/cache", into_folder[i], t->dir).p;
    for (size_t i = 0; i < COUNT(fixed); i++)
        env[n++] = fixed[i];
    return env;
}

static bool start(struct torch_helper *t, const struct torch_options *o, struct err *err) {
    int in[2], out[2], noise[2];
    if (!dir_make(arena_printf(t->arena, "%s/cache", t->dir).p, err) || !pipe_pair(in, err))
        return false;
    t->requests = in[1];
    if (!pipe_pair(out, err)) {
        close(in[0]);
        return false;
    }
    t->answers = out[0];
    bool ok = pipe_pair(noise, err);
    if (ok) {
        t->noise_fd = noise[0];
        const char *self = o->program ? o->program : arena_cstr(t->arena, self_path(t->arena));
        const char *argv[] = {self, "torch", o->python, t->dir, NULL};
        struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {noise[1], 2}};
        struct child_spec spec = {.argv = argv, .env = environment(t), .fds = fds, .nfds = 3};
        ok = child_start(&spec, &t->child, err);
        close(noise[1]);
    }
    close(in[0]);
    close(out[1]);
    return ok;
}

/* ---- lines ---- */

static void close_fd(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void kill_helper(struct torch_helper *t) {
    close_fd(&t->requests);
    close_fd(&t->answers);
    close_fd(&t->noise_fd);
    if (t->child.pid) {
        child_kill(t->child.pid);
        child_wait(&t->child);
        t->child.pid = 0;
    }
}

static void read_noise(struct torch_helper *t) {
    char bytes[4096];
    ssize_t n = read(t->noise_fd, bytes, sizeof bytes);
    if (n <= 0) {
        close_fd(&t->noise_fd);
        return;
    }
    if (t->noise.n + (size_t)n > NOISE_BYTES)
        buf_drop(&t->noise, t->noise.n + (size_t)n - NOISE_BYTES);
    buf_put(&t->noise, bytes, (size_t)n);
}

/* The last line it wrote to stderr: of a Python traceback, the one that says what happened. */
static str last_words(const struct torch_helper *t) {
    str rest = str_trim(buf_str(&t->noise)), line, last = {0};
    while (str_line(&rest, &line))
        if (str_trim(line).n)
            last = str_trim(line);
    return last;
}

__attribute__((format(printf, 2, 3))) static bool lose(struct torch_helper *t, const char *fmt,
                                                       ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct pollfd p = {.fd = t->noise_fd, .events = POLLIN};
    for (int i = 0; i < LAST_READS && t->noise_fd >= 0 && poll(&p, 1, 100) == 1; i++)
        read_noise(t);
    str words = last_words(t);
    err_set(&t->gone, ERR_ENV, "the PyTorch helper %s%s%.*s", text, words.n ? ": " : "",
            STR_ARG(words));
    kill_helper(t);
    return false;
}

/* At least one more byte of the answer, or it is lost. */
static bool read_more(struct torch_helper *t, uint64_t end) {
    struct pollfd p[] = {{.fd = t->answers, .events = POLLIN},
                         {.fd = t->noise_fd, .events = POLLIN}};
    uint64_t now = clock_ms();
    if (now >= end)
        return lose(t, "did not answer in time");
    int ready = poll(p, 2, (int)(end - now));
    if (ready < 0 && errno != EINTR)
        return lose(t, "cannot be waited for: %s", strerror(errno));
    if (ready > 0 && p[1].revents)
        read_noise(t);
    if (ready <= 0 || !p[0].revents)
        return true;
    char bytes[65536];
    ssize_t n = read(t->answers, bytes, sizeof bytes);
    if (n <= 0)
        return lose(t, "ended");
    buf_put(&t->line, bytes, (size_t)n);
    return !t->line.failed || lose(t, "flooded its pipe");
}

/* The next line as JSON; NULL and err, also where it says {"error": …}. */
static json *read_answer(struct torch_helper *t, unsigned limit_ms, struct err *err) {
    uint64_t end = clock_ms() + (t->limit_ms ? t->limit_ms : limit_ms);
    size_t at = str_find(buf_str(&t->line), S("\n"));
    while (!t->gone.kind && at == t->line.n) {
        read_more(t, end);
        at = str_find(buf_str(&t->line), S("\n"));
    }
    if (t->gone.kind) {
        *err = t->gone;
        return NULL;
    }
    struct err wrong = {0};
    json *j = json_parse(str_cut(buf_str(&t->line), 0, at), &wrong);
    buf_drop(&t->line, at + 1);
    str text;
    if (!j || !json_is_object(j)) {
        lose(t, "spoke out of turn");
        *err = t->gone;
    } else if (json_get_str(j, "error", &text)) {
        err_set(err, ERR_ENV, "%.*s", STR_ARG(text));
    } else {
        return j;
    }
    json_free(j);
    return NULL;
}

static json *ask(struct torch_helper *t, const json *request, unsigned limit_ms, struct err *err) {
    struct buf line;
    struct err wrong = {0};
    if (t->gone.kind) {
        *err = t->gone;
        return NULL;
    }
    buf_init(&line, LINE_MAX_BYTES);
    json_write(request, &line);
    buf_putc(&line, '\n');
    bool sent = !line.failed && file_write_all(t->requests, line.p, line.n, &wrong);
    buf_release(&line);
    (void)sent; /* a helper that is gone has said why on its other pipes */
    return read_answer(t, limit_ms, err);
}

/* ---- requests ---- */

static bool introduce(struct torch_helper *t, const struct torch_options *o, struct err *err) {
    json *hello = read_answer(t, OPEN_MS, err);
    json *request = hello ? first_request(t, o, err) : NULL;
    t->facts = request ? ask(t, request, OPEN_MS, err) : NULL;
    if (t->facts && json_get(hello, "sandbox"))
        json_set(t->facts, "sandbox", json_copy(json_get(hello, "sandbox")));
    json_free(hello);
    json_free(request);
    return t->facts != NULL;
}

struct torch_helper *torch_open(const struct torch_options *o, struct err *err) {
    if (no_line(o, err))
        return NULL;
    struct torch_helper *t = mem_alloc(sizeof *t);
    t->arena = arena_new(64u << 20);
    t->limit_ms = o->limit_ms;
    t->requests = t->answers = t->noise_fd = -1;
    buf_init(&t->line, LINE_MAX_BYTES);
    buf_init(&t->noise, NOISE_BYTES);
    if (make_folder(t, o->assets, err) && start(t, o, err) && introduce(t, o, err))
        return t;
    torch_close(t);
    return NULL;
}

void torch_close(struct torch_helper *t) {
    struct err ignored = {0};
    if (!t)
        return;
    kill_helper(t);
    if (t->dir)
        dir_remove_tree(t->dir, &ignored);
    json_free(t->facts);
    buf_release(&t->line);
    buf_release(&t->noise);
    arena_free(t->arena);
    mem_free(t);
}

const json *torch_facts(const struct torch_helper *t) {
    return t->facts;
}

static json *request_for(const char *what, enum torch_mode m, enum torch_numerics n) {
    json *j = json_object();
    json_set_str(j, what, str_view(torch_mode_name(m)));
    json_set_str(j, "numerics", str_view(torch_numerics_name(n)));
    return j;
}

bool torch_warm(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, struct err *err) {
    json *request = request_for("warm", m, n);
    json *answer = ask(t, request, WARM_MS, err);
    bool ok = answer != NULL;
    json_free(request);
    json_free(answer);
    return ok || err_wrap(err, "%s", torch_mode_name(m));
}

static bool read_samples(const json *list, size_t count, double *samples) {
    for (size_t i = 0; i < count; i++)
        if (!json_to_f64(json_at(list, i), &samples[i]) || !(samples[i] > 0))
            return false;
    return json_len(list) == count;
}

bool torch_time(struct torch_helper *t, enum torch_mode m, enum torch_numerics n, size_t count,
                double *samples, struct err *err) {
    json *request = request_for("time", m, n);
    json_set_i64(request, "samples", (int64_t)count);
    json *answer = ask(t, request, TIME_MS, err);
    bool ok = answer != NULL;
    if (ok && !read_samples(json_get(answer, "samples_s"), count, samples))
        ok = err_set(err, ERR_ENV, "the PyTorch helper's samples are not %zu times", count);
    json_free(request);
    json_free(answer);
    return ok || err_wrap(err, "%s", torch_mode_name(m));
}
