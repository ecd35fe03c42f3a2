/* Starting a process: everything that allocates or looks something up happens before the child is
 * there; until exec the child only makes system calls. What fails there is sent back through a
 * close-on-exec pipe as (step, errno); end of file on it means that exec has happened.
 *
 * Until exec the child shares our memory, as after vfork, because copying the page tables of a
 * coordinator of some hundred megabytes takes milliseconds. So it runs on a stack of its own, with
 * all signals blocked until its handlers are the default ones, and writes to nothing but that
 * stack, errno and its `struct launch`; the thread that starts it waits meanwhile. Handlers, mask,
 * limits and descriptors are the child's own in any case. A sanitizer's run time keeps a record of
 * memory that such a child would spoil: there it is an ordinary fork.
 *
 * PR_SET_PDEATHSIG follows the parent *thread*: children are started from a thread that lives as
 * long as they should. */
#include "base/child.h"

#include "base/arena.h"
#include "base/fault.h"
#include "base/loop.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1u << 2)
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHARES_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SHARES_MEMORY 0
#endif
#endif
#ifndef SHARES_MEMORY
#define SHARES_MEMORY 1
#endif

#define STACK_BYTES (64u << 10) /* of the child until exec */
#define GUARD_BYTES (64u << 10) /* below it; a multiple of every page size */
#define STOP_MS     100         /* between looks at whether a command is still wanted */

enum step { STEP_GROUP, STEP_FDS, STEP_LIMITS, STEP_NICE, STEP_EXEC };
static const char *const step_names[] = {"setpgid", "descriptors", "limits", "nice", "exec"};

struct failure {
    enum step step;
    int error;
};

/* All that the child needs, made before it is there. */
struct launch {
    const struct child_spec *spec;
    const char *path;
    pid_t parent;
    int report; /* write end of the pipe */
    int *moved; /* spec->nfds numbers above every target */
    int above;  /* the first number above every target, at least 3 */
    int most;   /* descriptors to look at where close_range is missing */
    const char **env;
};

/* ---- before the child is there ---- */

static bool is_program(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool program_find(const char *name, char path[PATH_MAX], struct err *err) {
    if (strchr(name, '/')) {
        if ((size_t)snprintf(path, PATH_MAX, "%s", name) < PATH_MAX)
            return true;
        errno = ENAMETOOLONG;
        return err_errno(err, ERR_ENV, "start a program");
    }
    const char *dirs = getenv("PATH");
    str rest = str_view(dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"), dir;
    while (*name && str_word(&rest, ':', &dir)) {
        int n = snprintf(path, PATH_MAX, "%.*s/%s", STR_ARG(dir.n ? dir : S(".")), name);
        if (n < PATH_MAX && is_program(path))
            return true;
    }
    return err_set(err, ERR_ENV, "start %s: no such program in PATH", name);
}

static bool is_key(const char *variable) {
    str name = str_cut(str_view(variable), 0, strcspn(variable, "="));
    return str_ends(name, S("_API_KEY")) || str_is(name, "CUTEPILOT_PROVIDER_KEY");
}

/* The children are compilers, devices and the like: none has business with a model server. */
static const char **environment_without_keys(void) {
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    const char **env = mem_alloc((n + 1) * sizeof *env);
    for (size_t i = 0; i < n; i++)
        if (!is_key(environ[i]))
            env[kept++] = environ[i];
    return env;
}

static int descriptor_count(void) {
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_cur > 1 << 20)
        return 1 << 20;
    return (int)r.rlim_cur;
}

/* ---- in the child ---- */

_Noreturn static void child_fail(const struct launch *l, enum step step) {
    struct failure f = {step, errno};
    while (write(l->report, &f, sizeof f) < 0 && errno == EINTR)
        ;
    _exit(127);
}

static void child_reset_signals(void) {
    struct sigaction dfl = {.sa_handler = SIG_DFL};
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &dfl, NULL); /* SIGKILL, SIGSTOP and libc's own refuse */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool child_wants(const struct child_spec *s, int fd) {
    for (size_t i = 0; i < s->nfds; i++)
        if (s->fds[i].to == fd)
            return true;
    return false;
}

/* Two passes: first every source to a number above all targets, then down to the targets, so that
 * no target overwrites a source that is still needed. */
static bool child_map_fds(struct launch *l) {
    const struct child_spec *s = l->spec;
    int report = fcntl(l->report, F_DUPFD_CLOEXEC, l->above);
    if (report < 0)
        return false;
    l->report = report;
    for (size_t i = 0; i < s->nfds; i++)
        if ((l->moved[i] = fcntl(s->fds[i].from, F_DUPFD_CLOEXEC, l->above)) < 0)
            return false;
    for (size_t i = 0; i < s->nfds; i++)
        if (dup2(l->moved[i], s->fds[i].to) < 0)
            return false;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        if (!child_wants(s, fd) && (fd == null ? fcntl(fd, F_SETFD, 0) : dup2(null, fd)) < 0)
            return false;
    return true;
}

static void close_on_exec(const struct launch *l, unsigned first, unsigned last) {
    if (first > last)
        return;
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, last, CLOSE_RANGE_CLOEXEC) == 0)
        return;
#endif
    for (unsigned fd = first; fd <= last && fd < (unsigned)l->most; fd++)
        fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

/* Marked rather than closed: the report pipe is needed until exec. */
static void child_drop_fds(const struct launch *l) {
    unsigned first = 3;
    for (unsigned fd = 3; fd < (unsigned)l->above; fd++)
        if (child_wants(l->spec, (int)fd)) {
            close_on_exec(l, first, fd - 1);
            first = fd + 1;
        }
    close_on_exec(l, first, ~0u);
}

/* Lowered only: raising the hard limit is not ours to do. */
static bool child_limit(int what, rlim_t soft, rlim_t hard) {
    struct rlimit r;
    if (getrlimit(what, &r) != 0)
        return false;
    if (r.rlim_max > hard)
        r.rlim_max = hard;
    r.rlim_cur = soft < r.rlim_max ? soft : r.rlim_max;
    return setrlimit(what, &r) == 0;
}

static bool child_limits_set(const struct child_limits *l) {
    return child_limit(RLIMIT_CORE, 0, 0) &&
           (!l->address_bytes || child_limit(RLIMIT_AS, l->address_bytes, l->address_bytes)) &&
           (!l->file_bytes || child_limit(RLIMIT_FSIZE, l->file_bytes, l->file_bytes)) &&
           /* A second between them, so that SIGXCPU tells what happened before SIGKILL does. */
           (!l->cpu_s || child_limit(RLIMIT_CPU, l->cpu_s, (rlim_t)l->cpu_s + 1)) &&
           (!l->open_files || child_limit(RLIMIT_NOFILE, l->open_files, l->open_files));
}

static int child_run(void *launch) {
    struct launch *l = launch;
    const struct child_spec *s = l->spec;
    if (setpgid(0, 0) != 0)
        child_fail(l, STEP_GROUP);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != l->parent)
        _exit(127); /* it died before the line above */
    child_reset_signals();
    if (!child_map_fds(l))
        child_fail(l, STEP_FDS);
    child_drop_fds(l);
    if (!child_limits_set(&s->limits))
        child_fail(l, STEP_LIMITS);
    if (s->nice && setpriority(PRIO_PROCESS, 0, s->nice) != 0)
        child_fail(l, STEP_NICE);
    const char *const *env = s->env ? s->env : (const char *const *)l->env;
    execve(l->path, (char *const *)s->argv, (char *const *)env);
    child_fail(l, STEP_EXEC);
}

/* ---- in the parent ---- */

static pid_t child_copy(struct launch *l) {
    pid_t pid = fork();
    if (pid == 0)
        child_run(l);
    return pid;
}

/* Returns when the child has called exec or has ended. */
static pid_t child_share(struct launch *l) {
    char *stack = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -1;
    pid_t pid = -1;
    if (mprotect(stack, GUARD_BYTES, PROT_NONE) == 0)
        pid = clone(child_run, stack + GUARD_BYTES + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
                    l);
    int error = errno;
    munmap(stack, GUARD_BYTES + STACK_BYTES);
    errno = error;
    return pid;
}

/* With all signals held, so that none of our handlers runs in the child. */
static pid_t child_fork(struct launch *l) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    l->parent = getpid();
    pid_t pid = SHARES_MEMORY ? child_share(l) : child_copy(l);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return pid;
}

static bool child_adopt(pid_t pid, int report, const char *path, struct child *out,
                        struct err *err) {
    setpgid(pid, pid); /* the child does it, too: whoever comes first */
    *out = (struct child){pid, (int)syscall(SYS_pidfd_open, pid, 0)};
    if (out->pidfd < 0) {
        err_errno(err, ERR_ENV, "start %s: pidfd_open", path);
        child_kill(pid);
        child_wait(out);
        return false;
    }
    struct failure f;
    ssize_t n;
    do
        n = read(report, &f, sizeof f);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof f)
        return true;
    child_wait(out);
    errno = f.error;
    return f.step == STEP_EXEC ? err_errno(err, ERR_ENV, "start %s", path)
                               : err_errno(err, ERR_ENV, "start %s: %s", path, step_names[f.step]);
}

bool child_start(const struct child_spec *spec, struct child *out, struct err *err) {
    *out = (struct child){0, -1};
    char path[PATH_MAX];
    int report[2];
    if (!program_find(spec->argv[0], path, err))
        return false;
    if (fault_hit(FAULT_CHILD)) {
        errno = EAGAIN;
        return err_errno(err, ERR_ENV, "start %s", path);
    }
    if (!pipe_pair(report, err))
        return err_wrap(err, "start %s", path);
    struct launch l = {.spec = spec, .path = path, .report = report[1], .above = 3};
    l.moved = mem_alloc((spec->nfds + 1) * sizeof *l.moved);
    l.most = descriptor_count();
    l.env = environment_without_keys();
    for (size_t i = 0; i < spec->nfds; i++) {
        BUG_IF(spec->fds[i].from < 0 || spec->fds[i].to < 0 || spec->fds[i].to >= 1 << 16);
        if (spec->fds[i].to >= l.above)
            l.above = spec->fds[i].to + 1;
    }
    pid_t pid = child_fork(&l);
    int fork_error = errno;
    mem_free(l.moved);
    mem_free(l.env);
    close(report[1]);
    errno = fork_error;
    bool ok = pid < 0 ? err_errno(err, ERR_ENV, "start %s", path)
                      : child_adopt(pid, report[0], path, out, err);
    close(report[0]);
    return ok;
}

void child_kill(pid_t pid) {
    if (pid <= 1)
        return; /* kill(-1) and kill(0) mean everybody */
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL); /* it may not have made its group yet */
}

/* A number is not given to another process while there is a group of that number. Where nothing is
 * left of the group the number may be in use again, but as a group's only if that process leads
 * one: so the process itself is not signalled. */
void child_kill_rest(pid_t pid) {
    if (pid > 1)
        kill(-pid, SIGKILL);
}

int child_wait(struct child *c) {
    int status = 0;
    if (c->pid > 0) {
        pid_t got;
        do
            got = waitpid(c->pid, &status, 0);
        while (got < 0 && errno == EINTR);
        if (got != c->pid)
            status = W_EXITCODE(255, 0); /* SIGCHLD is ignored here: how it ended is lost */
        if (c->pidfd >= 0)
            close(c->pidfd);
    }
    *c = (struct child){0, -1};
    return status;
}

bool child_wait_until(pid_t pid, uint64_t until_ms) {
    while (waitpid(pid, NULL, WNOHANG) == 0) {
        if (clock_ms() >= until_ms)
            return false;
        usleep(1000);
    }
    return true;
}

static bool read_until(int fd, struct buf *b, const char *who, unsigned limit_ms,
                       const volatile sig_atomic_t *stop, struct err *err) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t until_ms = clock_ms() + limit_ms;
    for (;;) {
        uint64_t now = clock_ms(), left = now < until_ms ? until_ms - now : 0;
        /* A signal may come just before poll: it looks again soon. */
        int ready = poll(&p, 1, (int)(stop && left > STOP_MS ? STOP_MS : left));
        if (stop && *stop)
            return err_set(err, ERR_ENV, "'%s' was given up because of a signal", who);
        if ((ready < 0 && errno == EINTR) || (ready == 0 && left > STOP_MS))
            continue;
        if (ready <= 0)
            return err_set(err, ERR_ENV, "'%s' did not end within %g s", who, limit_ms / 1000.0);
        char *to = buf_reserve(b, 4096);
        if (!to)
            return err_set(err, ERR_ENV, "'%s' printed more than %zu bytes", who, b->max);
        ssize_t n = read(fd, to, 4096);
        if (n < 0 && errno != EINTR)
            return err_errno(err, ERR_ENV, "'%s'", who);
        if (n == 0)
            return true;
        buf_grown(b, n > 0 ? (size_t)n : 0);
    }
}

bool child_output(const char *const *argv, size_t max, unsigned limit_ms,
                  const volatile sig_atomic_t *stop, struct arena *a, str *out, int *status,
                  struct err *err) {
    int fds[2];
    struct child child;
    if (!pipe_pair(fds, err))
        return false;
    struct child_fd give[] = {{fds[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = argv, .fds = give, .nfds = 2};
    bool ok = child_start(&spec, &child, err);
    close(fds[1]);
    if (ok) {
        struct buf b;
        buf_init(&b, max);
        ok = read_until(fds[0], &b, argv[0], limit_ms, stop, err);
        if (!ok)
            child_kill(child.pid); /* it may talk on, or wait, for ever */
        *status = child_wait(&child);
        *out = arena_str(a, buf_str(&b));
        buf_release(&b);
    }
    close(fds[0]);
    return ok;
}

str child_status_text(int status, char *space, size_t n) {
    BUG_IF(n == 0);
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));
        if (name)
            snprintf(space, n, "killed by SIG%s", name);
        else
            snprintf(space, n, "killed by signal %d", WTERMSIG(status));
    } else if (WIFEXITED(status)) {
        snprintf(space, n, "exit code %d", WEXITSTATUS(status));
    } else {
        snprintf(space, n, "wait status 0x%x", (unsigned)status);
    }
    return str_view(space);
}

bool pipe_pair(int out[2], struct err *err) {
    return pipe2(out, O_CLOEXEC) == 0 || err_errno(err, ERR_ENV, "pipe");
}

bool socket_pair(int out[2], struct err *err) {
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0 ||
           err_errno(err, ERR_ENV, "socketpair");
}

bool fd_is_channel(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}
