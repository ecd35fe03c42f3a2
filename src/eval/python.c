#include "eval/python.h"

#include "base/asset.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/sandbox.h"
#include "base/say.h"
#include "device/role.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    LINE_MAX_BYTES = 64 << 20, /* of an answer */
    NOISE_BYTES = 4096,        /* of stderr, the last ones: for the message */
    LAST_READS = 64,           /* … what it wrote last; it may write for ever */
};

#define WORK "work"

struct python {
    struct arena *arena;
    struct python_options o;
    char *dir;  /* NULL: none yet */
    char *work; /* … in it: the one that the process may write to */
    struct child child;
    int requests, answers, noise_fd; /* -1: closed */
    struct buf line, noise;
    struct err gone; /* set once it is lost */
};

/* ---- the folder ---- */

bool python_write_script(const char *assets, const char *script, const char *dir, struct err *err) {
    struct arena *a = arena_new(4u << 20);
    str text;
    bool ok = asset_get(assets, script, a, &text, err) &&
              file_replace(arena_printf(a, "%s/helper.py", dir).p, text, err);
    arena_free(a);
    return ok;
}

static bool make_folder(struct python *t, struct err *err) {
    const char *tmp = getenv("TMPDIR");
    char *dir = arena_cstr(t->arena, arena_printf(t->arena, "%s/cutepilot-%s-XXXXXX",
                                                  tmp && *tmp ? tmp : "/tmp", t->o.role));
    if (!mkdtemp(dir))
        return err_errno(err, ERR_ENV, "make the folder %s", dir);
    t->dir = dir;
    t->work = arena_cstr(t->arena, arena_printf(t->arena, "%s/" WORK, dir));
    return dir_make(arena_printf(t->arena, "%s/cache", t->work).p, err) &&
           python_write_script(t->o.assets, t->o.script, dir, err);
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

static const char *const *environment(struct python *t) {
    const char **env =
        arena_array(t->arena, const char *, COUNT(kept) + COUNT(into_folder) + COUNT(fixed) + 1);
    size_t n = 0;
    for (size_t i = 0; i < COUNT(kept); i++)
        if (getenv(kept[i]))
            env[n++] = arena_printf(t->arena, "%s=%s", kept[i], getenv(kept[i])).p;
    for (size_t i = 0; i < COUNT(into_folder); i++)
        env[n++] = arena_printf(t->arena, "%s=%s/cache", into_folder[i], t->work).p;
    for (size_t i = 0; i < COUNT(fixed); i++)
        env[n++] = fixed[i];
    return env;
}

static bool start(struct python *t, struct err *err) {
    int in[2], out[2], noise[2];
    if (!pipe_pair(in, err))
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
        const char *self = t->o.program ? t->o.program : arena_cstr(t->arena, self_path(t->arena));
        const char *argv[] = {self, t->o.role, t->o.python, t->dir, NULL};
        struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {noise[1], 2}};
        struct child_spec spec = {
            .argv = argv, .env = environment(t), .fds = fds, .nfds = 3, .limits = t->o.limits};
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

static void kill_helper(struct python *t) {
    close_fd(&t->requests);
    close_fd(&t->answers);
    close_fd(&t->noise_fd);
    if (t->child.pid) {
        child_kill(t->child.pid);
        child_wait(&t->child);
        t->child.pid = 0;
    }
}

static void read_noise(struct python *t) {
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
static str last_words(const struct python *t) {
    str rest = str_trim(buf_str(&t->noise)), line, last = {0};
    while (str_line(&rest, &line))
        if (str_trim(line).n)
            last = str_trim(line);
    return last;
}

__attribute__((format(printf, 2, 3))) static bool lose(struct python *t, const char *fmt, ...) {
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    struct pollfd p = {.fd = t->noise_fd, .events = POLLIN};
    for (int i = 0; i < LAST_READS && t->noise_fd >= 0 && poll(&p, 1, 100) == 1; i++)
        read_noise(t);
    str words = last_words(t);
    err_set(&t->gone, ERR_ENV, "%s %s%s%.*s", t->o.what, text, words.n ? ": " : "", STR_ARG(words));
    kill_helper(t);
    return false;
}

/* At least one more byte of the answer, or it is lost. */
static bool read_more(struct python *t, uint64_t end) {
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

/* What it says went wrong, and where. */
static void said(const json *j, str text, struct err *err) {
    str kind = {0}, at = {0};
    json_get_str(j, "kind", &kind);
    json_get_str(j, "at", &at);
    err_set(err, str_is(kind, "input") ? ERR_INPUT : ERR_ENV, "%.*s%s%.*s", STR_ARG(at),
            at.n ? ": " : "", STR_ARG(text));
}

/* The next line as JSON; NULL and err, also where it says {"error": …}. */
static json *read_answer(struct python *t, unsigned limit_ms, struct err *err) {
    uint64_t end = clock_ms() + (t->o.limit_ms ? t->o.limit_ms : limit_ms);
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
        said(j, text, err);
    } else {
        return j;
    }
    json_free(j);
    return NULL;
}

json *python_ask(struct python *t, const json *request, unsigned limit_ms, struct err *err) {
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

/* ---- its life ---- */

/* The role changes its folder before it starts Python. Links stay: a virtual environment is one. */
static const char *absolute(struct arena *a, const char *program) {
    char here[PATH_MAX];
    if (program[0] == '/' || !strchr(program, '/') || !getcwd(here, sizeof here))
        return program;
    return arena_printf(a, "%s/%s", here, program).p;
}

struct python *python_open(const struct python_options *o, struct err *err) {
    struct python *t = mem_alloc(sizeof *t);
    t->arena = arena_new(64u << 20);
    t->o = *o;
    t->o.python = absolute(t->arena, o->python);
    t->requests = t->answers = t->noise_fd = -1;
    buf_init(&t->line, LINE_MAX_BYTES);
    buf_init(&t->noise, NOISE_BYTES);
    if (make_folder(t, err))
        return t;
    python_close(t);
    return NULL;
}

bool python_start(struct python *t, unsigned limit_ms, json **hello, struct err *err) {
    json *first = start(t, err) ? read_answer(t, limit_ms, err) : NULL;
    bool ok = first != NULL;
    if (hello)
        *hello = first;
    else
        json_free(first);
    return ok;
}

const char *python_dir(const struct python *t) {
    return t->dir;
}

/* Also where nothing confines the process: no link is followed. */
bool python_give(const struct python *t, str name, str bytes, struct err *err) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%.*s", t->dir, STR_ARG(name));
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_errno(err, ERR_ENV, "create %s", path);
    bool ok = file_write_all(fd, bytes.p, bytes.n, err);
    close(fd);
    return ok || err_wrap(err, "%s", path);
}

bool python_take(const struct python *t, str name, size_t max, struct arena *a, str *out,
                 struct err *err) {
    const char *path = arena_printf(a, "%s/%.*s", t->work, STR_ARG(name)).p;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 && errno == ELOOP)
        return err_set(err, ERR_INPUT, "%.*s is a link, not a file", STR_ARG(name));
    if (fd < 0)
        return err_errno(err, ERR_INPUT, "open %s", path);
    bool ok = fstat(fd, &st) == 0 || err_errno(err, ERR_ENV, "stat %s", path);
    if (ok && !S_ISREG(st.st_mode))
        ok = err_set(err, ERR_INPUT, "%.*s is no regular file", STR_ARG(name));
    ok = ok && file_read_fd(fd, max, a, out, err);
    close(fd);
    unlink(path); /* taken: what is there next time was written then */
    return ok;
}

void python_close(struct python *t) {
    struct err ignored = {0};
    if (!t)
        return;
    kill_helper(t);
    if (t->dir)
        dir_remove_tree(t->dir, &ignored);
    buf_release(&t->line);
    buf_release(&t->noise);
    arena_free(t->arena);
    mem_free(t);
}

/* ---- `cutepilot torch PYTHON DIR`, `cutepilot module PYTHON DIR`: confined, then Python ----
 *
 * Python itself is started after, and torch.compile starts compilers (gcc, ptxas), so exec and fork
 * stay allowed; what they start is confined alike. No network; every file may be read but those
 * under /dev and /proc, of which `torch` may have what the GPU's driver needs; DIR/work alone may
 * be written. The first line on stdout says what is in force. */

enum { TOP_FOLDERS = 256, WRITABLE = 32 };

static bool is_special(str name) {
    return str_is(name, "dev") || str_is(name, "proc");
}

/* Everything below / but device files and other processes. */
static const char *const *readable(struct arena *a, struct err *err) {
    const char **paths = arena_array(a, const char *, TOP_FOLDERS + 1);
    size_t n = 0, count;
    str *names;
    if (!dir_list("/", a, &names, &count, err))
        return NULL;
    for (size_t i = 0; i < count && n < TOP_FOLDERS; i++)
        if (!is_special(names[i]))
            paths[n++] = arena_printf(a, "/%.*s", STR_ARG(names[i])).p;
    return paths;
}

static const char *const *writable(struct arena *a, const char *dir, bool gpu) {
    static const char *const more[] = {"/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"};
    const char **paths = arena_array(a, const char *, WRITABLE + 1);
    size_t n = 0;
    paths[n++] = dir;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        paths[n++] = more[i];
    if (gpu)
        paths[n++] = "/dev/shm";
    for (size_t i = 0; gpu && role_gpu_paths[i] && n < WRITABLE; i++)
        paths[n++] = role_gpu_paths[i];
    return paths;
}

static bool confine(const char *dir, bool gpu, struct arena *a, bool *first, struct err *err) {
    struct sandbox_report report;
    struct sandbox_policy policy = {.read_only = readable(a, err),
                                    .read_write = writable(a, dir, gpu),
                                    .unix_sockets = gpu,
                                    .exec = true,
                                    .devices = gpu,
                                    .own_processes = !gpu};
    if (!policy.read_only || !sandbox_enter(&policy, &report, err))
        return err_wrap(err, "Python: sandbox");
    *first = report.active & SANDBOX_PROCESSES;
    json *j = json_object();
    struct buf line;
    json_set(j, "sandbox", sandbox_to_json(&report));
    buf_init(&line, 1u << 16);
    json_write(j, &line);
    buf_putc(&line, '\n');
    bool ok = file_write_all(STDOUT_FILENO, line.p, line.n, err);
    buf_release(&line);
    json_free(j);
    return ok;
}

/* The first process of a pid namespace: it starts the second, which goes on, and waits for all;
 * once the second ends, so do the others. */
static bool start_second(struct err *err) {
    pid_t pid = fork(), ended;
    int status;
    if (pid < 0)
        return err_errno(err, ERR_ENV, "fork");
    if (pid == 0)
        return true;
    do
        ended = waitpid(-1, &status, 0);
    while (ended != pid && (ended > 0 || errno == EINTR));
    _exit(ended == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static int become_python(int argc, char **argv, bool gpu) {
    struct arena *a = arena_new(4u << 20);
    struct err err = {0};
    bool first = false;
    const char *work = argc == 2 ? arena_printf(a, "%s/" WORK, argv[1]).p : NULL;
    if (!work) {
        err_set(&err, ERR_INPUT, "expected PYTHON DIR");
    } else if (confine(work, gpu, a, &first, &err) && (!first || start_second(&err))) {
        /* Python adds the script's folder to its path, and that is empty but for our files. */
        const char *const words[] = {argv[0], arena_printf(a, "%s/helper.py", argv[1]).p,
                                     first ? "--own-processes" : NULL, NULL};
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        if (chdir(work) == 0)
            execvp(argv[0], (char *const *)words);
        err_errno(&err, ERR_ENV, "start %s", argv[0]);
    }
    complain("%s\n", err.text);
    _exit((int)err.kind); /* at once: what runs at exit was not made for the sandbox */
}

int torch_main(int argc, char **argv) {
    return become_python(argc, argv, true);
}

int module_main(int argc, char **argv) {
    return become_python(argc, argv, false);
}
