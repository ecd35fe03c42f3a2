#include "base/child.h"
#include "base/fault.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;

/* Runs sh -c script with its stdout in `out`; returns the wait status, -1 where it did not start.
 */
static int shell(const char *script, struct child_spec *spec, char *out, size_t n) {
    const char *argv[] = {"sh", "-c", script, NULL};
    struct child_fd fds[8];
    struct child c;
    int p[2];
    memcpy(fds, spec->fds ? spec->fds : fds, spec->nfds * sizeof *fds);
    if (!pipe_pair(p, &err))
        return -1;
    fds[spec->nfds] = (struct child_fd){p[1], 1};
    struct child_spec s = *spec;
    s.argv = argv;
    s.fds = fds;
    s.nfds++;
    bool ok = child_start(&s, &c, &err);
    close(p[1]);
    size_t have = 0;
    ssize_t got = 1;
    while (ok && have + 1 < n && got > 0) {
        got = read(p[0], out + have, n - 1 - have);
        have += got > 0 ? (size_t)got : 0;
    }
    out[have] = 0;
    close(p[0]);
    return ok ? child_wait(&c) : -1;
}

static void runs_and_reports(void) {
    char out[64], text[64];
    int status = shell("echo hello; exit 3", &(struct child_spec){0}, out, sizeof out);
    CHECKF(strcmp(out, "hello\n") == 0, "%s", out);
    CHECK(str_is(child_status_text(status, text, sizeof text), "exit code 3"));
    status = shell("kill -SEGV $$", &(struct child_spec){0}, out, sizeof out);
    CHECK(str_is(child_status_text(status, text, sizeof text), "killed by SIGSEGV"));
    CHECK(child_status_text(status, text, 5).n == 4);
}

static void exec_failure_is_reported(void) {
    static const struct {
        const char *program, *message;
    } rows[] = {
        {"/nonexistent/program", "start /nonexistent/program: No such file or directory"},
        {"/etc/hostname", "start /etc/hostname: Permission denied"},
        {"no-such-program-anywhere", "start no-such-program-anywhere: no such program in PATH"},
        {"", "start : no such program in PATH"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *argv[] = {rows[i].program, NULL};
        struct child c;
        if (rows[i].program[0] == '/' && access(rows[i].program, X_OK) == 0)
            continue;
        CHECK(!child_start(&(struct child_spec){.argv = argv}, &c, &err));
        CHECKF(err.kind == ERR_ENV && strcmp(err.text, rows[i].message) == 0, "%s", err.text);
        CHECK(c.pid == 0 && c.pidfd == -1);
    }
    CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD); /* none is left as a zombie */
}

static void bad_descriptor_is_reported(void) {
    const char *argv[] = {"true", NULL};
    struct child_fd fds[] = {{9999, 5}};
    struct child c;
    CHECK(!child_start(&(struct child_spec){.argv = argv, .fds = fds, .nfds = 1}, &c, &err));
    CHECKF(strstr(err.text, "descriptors: Bad file descriptor"), "%s", err.text);
}

static void limits_hold(void) {
    static const struct {
        const char *script, *want;
        struct child_limits limits;
    } rows[] = {
        {"ulimit -c", "0\n", {0}},
        {"ulimit -v", "1048576\n", {.address_bytes = (size_t)1 << 30}},
        {"ulimit -t", "5\n", {.cpu_s = 5}},
        {"ulimit -n", "32\n", {.open_files = 32}},
        {"ulimit -f", "8\n", {.file_bytes = 4096}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[64];
        shell(rows[i].script, &(struct child_spec){.limits = rows[i].limits}, out, sizeof out);
        CHECKF(strcmp(out, rows[i].want) == 0, "%s: %s", rows[i].script, out);
    }
}

static void cpu_limit_kills(void) {
    char out[8], text[64];
    int status =
        shell("while :; do :; done", &(struct child_spec){.limits.cpu_s = 1}, out, sizeof out);
    CHECK(str_is(child_status_text(status, text, sizeof text), "killed by SIGXCPU"));
}

static void nice_is_set(void) {
    char out[64];
    shell("cut -d' ' -f19 /proc/self/stat", &(struct child_spec){.nice = 7}, out, sizeof out);
    CHECKF(strcmp(out, "7\n") == 0, "%s", out);
}

static void environment(void) {
    const char *env[] = {"ONLY=this", NULL};
    char out[256];
    setenv("CHILD_TEST", "inherited", 1);
    shell("echo $ONLY$CHILD_TEST", &(struct child_spec){.env = env}, out, sizeof out);
    CHECKF(strcmp(out, "this\n") == 0, "%s", out);
    shell("echo $CHILD_TEST", &(struct child_spec){0}, out, sizeof out);
    CHECKF(strcmp(out, "inherited\n") == 0, "%s", out);
}

/* A child that is given no environment gets ours, but no key; one that is given ours gets all. */
static void keys_stay_here(void) {
    char out[256];
    const char *script = "echo [$OPENAI_API_KEY$CUTEPILOT_PROVIDER_KEY$MY_API_KEYS]";
    setenv("OPENAI_API_KEY", "secret", 1);
    setenv("CUTEPILOT_PROVIDER_KEY", "secret", 1);
    setenv("MY_API_KEYS", "no key", 1);
    shell(script, &(struct child_spec){0}, out, sizeof out);
    CHECKF(strcmp(out, "[no key]\n") == 0, "%s", out);
    shell(script, &(struct child_spec){.env = (const char *const *)environ}, out, sizeof out);
    CHECKF(strcmp(out, "[secretsecretno key]\n") == 0, "%s", out);
    unsetenv("OPENAI_API_KEY");
    unsetenv("CUTEPILOT_PROVIDER_KEY");
}

static int text_fd(const char *text) {
    int p[2];
    CHECK(pipe_pair(p, &err));
    CHECK(write(p[1], text, strlen(text)) == (ssize_t)strlen(text));
    close(p[1]);
    return p[0];
}

/* Three descriptors change places in the child: each source number is another's target. */
static void permutations_survive(void) {
    int a = text_fd("A"), b = text_fd("B"), c = text_fd("C");
    struct child_fd fds[] = {{a, b}, {b, c}, {c, a}, {a, 0}};
    char out[64], script[128];
    snprintf(script, sizeof script, "cat /proc/self/fd/%d /proc/self/fd/%d /proc/self/fd/%d", a, b,
             c);
    shell(script, &(struct child_spec){.fds = fds, .nfds = 4}, out, sizeof out);
    CHECKF(strcmp(out, "CAB") == 0, "%s", out);
    close(a);
    close(b);
    close(c);
}

/* A descriptor onto its own number must come through although it is close-on-exec here. */
static void same_number_survives(void) {
    int a = text_fd("same");
    struct child_fd fds[] = {{a, a}};
    char out[64], script[64];
    snprintf(script, sizeof script, "cat /proc/self/fd/%d", a);
    shell(script, &(struct child_spec){.fds = fds, .nfds = 1}, out, sizeof out);
    CHECKF(strcmp(out, "same") == 0, "%s", out);
    close(a);
}

static void no_descriptor_leaks(void) {
    int leak = open("/dev/null", O_RDONLY), high = fcntl(leak, F_DUPFD, 200);
    int kept = fcntl(leak, F_DUPFD, 50);
    struct child_fd fds[] = {{kept, 17}};
    char out[256];
    shell("for f in /proc/$$/fd/*; do printf '%s ' ${f##*/}; done",
          &(struct child_spec){.fds = fds, .nfds = 1}, out, sizeof out);
    /* 3 is the shell's own, with which it reads the folder. */
    CHECKF(strcmp(out, "0 1 17 2 3 ") == 0, "%s", out);
    shell("readlink /proc/$$/fd/0 /proc/$$/fd/2", &(struct child_spec){0}, out, sizeof out);
    CHECKF(strcmp(out, "/dev/null\n/dev/null\n") == 0, "%s", out);
    close(leak);
    close(high);
    close(kept);
}

static void signals_are_reset(void) {
    char out[256];
    sigset_t block, before;
    sigemptyset(&block);
    sigaddset(&block, SIGTERM);
    sigprocmask(SIG_BLOCK, &block, &before);
    signal(SIGPIPE, SIG_IGN);
    shell("grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '[:space:]'", &(struct child_spec){0},
          out, sizeof out);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    unsigned long long blocked = 1, ignored = 1;
    sscanf(out, "SigBlk:%llxSigIgn:%llx", &blocked, &ignored);
    /* 32 and 33 are the C library's own: whoever started us may have left them ignored */
    ignored &= ~(3ull << 31);
    CHECKF(blocked == 0 && ignored == 0, "%s", out);
}

static long read_number(int fd) {
    char text[32] = {0};
    size_t n = 0;
    while (n + 1 < sizeof text && read(fd, text + n, 1) == 1 && text[n] != '\n')
        n++;
    return strtol(text, NULL, 10);
}

/* As a subreaper we inherit orphans, and so learn how they ended. */
static int end_of_orphan(pid_t pid) {
    int status = 0;
    for (int i = 0; i < 6000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return status;
        usleep(10000);
    }
    return -1;
}

/* A shell whose command tells the process that it leaves in the background, which is returned. */
static pid_t start_with_grandchild(const char *command, struct child *c) {
    const char *argv[] = {"sh", "-c", command, NULL};
    int p[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHECK(pipe_pair(p, &err));
    struct child_fd fds[] = {{p[1], 1}};
    CHECK(child_start(&(struct child_spec){.argv = argv, .fds = fds, .nfds = 1}, c, &err));
    close(p[1]);
    pid_t grandchild = (pid_t)read_number(p[0]);
    CHECK(grandchild > 1 && kill(grandchild, 0) == 0);
    close(p[0]);
    return grandchild;
}

static void is_killed(pid_t orphan) {
    int status = end_of_orphan(orphan);
    CHECK(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void group_kill_takes_grandchildren(void) {
    struct child c;
    pid_t grandchild = start_with_grandchild("sleep 1000 & echo $!; wait", &c);
    CHECK(getpgid(grandchild) == c.pid);
    child_kill(c.pid);
    CHECK(WTERMSIG(child_wait(&c)) == SIGKILL);
    is_killed(grandchild);
}

static void what_it_left_is_killed(void) {
    struct child c;
    pid_t grandchild = start_with_grandchild("sleep 1000 & echo $!", &c), group = c.pid;
    CHECK(child_wait(&c) == 0);
    CHECK(kill(grandchild, 0) == 0);
    child_kill_rest(group);
    is_killed(grandchild);
}

static void dies_with_its_parent(void) {
    int p[2];
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    CHECK(pipe_pair(p, &err));
    pid_t parent = fork();
    if (parent == 0) {
        const char *argv[] = {"sleep", "1000", NULL};
        struct child c;
        bool ok = child_start(&(struct child_spec){.argv = argv}, &c, &err);
        dprintf(p[1], "%ld\n", ok ? (long)c.pid : 0);
        _exit(0);
    }
    pid_t pid = (pid_t)read_number(p[0]);
    waitpid(parent, NULL, 0);
    CHECK(pid > 1);
    int status = end_of_orphan(pid);
    CHECK(status != -1 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(p[0]);
    close(p[1]);
}

static volatile sig_atomic_t handled;

static void count_signal(int sig) {
    (void)sig;
    handled++;
}

static size_t mappings(void) {
    size_t lines = 0;
    int c;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && (c = getc(f)) != EOF)
        lines += c == '\n';
    if (f)
        fclose(f);
    return lines;
}

/* The child shares our memory until exec: whether it comes that far or fails in any of its steps,
 * our handlers, mask, limits and mappings are as before. */
static void the_parent_stays_as_it_was(void) {
    static const char *const rows[] = {"true", "/nonexistent/program"};
    struct child_fd bad[] = {{9999, 5}};
    struct child_spec spec = {.limits = {.cpu_s = 5, .open_files = 32}, .nice = 3};
    struct sigaction act = {.sa_handler = count_signal}, old;
    struct rlimit before, after;
    sigset_t mask, now;
    sigaction(SIGUSR1, &act, &old);
    getrlimit(RLIMIT_NOFILE, &before);
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR2);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    size_t maps = mappings();
    for (size_t i = 0; i < 3; i++) {
        const char *argv[] = {rows[i % 2], NULL};
        struct child c;
        spec.argv = argv;
        spec.fds = bad;
        spec.nfds = i == 2;
        CHECK(child_start(&spec, &c, &err) == (i == 0));
        child_wait(&c);
    }
    CHECK(mappings() == maps);
    raise(SIGUSR1);
    CHECK(handled == 1);
    sigprocmask(SIG_SETMASK, NULL, &now);
    CHECK(sigismember(&now, SIGUSR2) && !sigismember(&now, SIGUSR1));
    getrlimit(RLIMIT_NOFILE, &after);
    CHECK(after.rlim_cur == before.rlim_cur && getpriority(PRIO_PROCESS, 0) == 0);
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(SIGUSR1, &old, NULL);
}

static double start_cpu_ms(int n) {
    const char *argv[] = {"true", NULL};
    struct rusage u[2];
    getrusage(RUSAGE_SELF, &u[0]);
    for (int i = 0; i < n; i++) {
        struct child c;
        CHECK(child_start(&(struct child_spec){.argv = argv}, &c, &err));
        child_wait(&c);
    }
    getrusage(RUSAGE_SELF, &u[1]);
    double ms[2];
    for (int i = 0; i < 2; i++)
        ms[i] = 1e3 * (double)(u[i].ru_utime.tv_sec + u[i].ru_stime.tv_sec) +
                1e-3 * (double)(u[i].ru_utime.tv_usec + u[i].ru_stime.tv_usec);
    return ms[1] - ms[0];
}

/* A coordinator of many workers has some hundred megabytes, and replaces workers by the second. */
static void a_large_process_starts_as_fast(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
    SKIP("with a sanitizer it is a fork");
#endif
    size_t bytes = (size_t)256 << 20;
    double small = start_cpu_ms(20);
    char *much = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(much != MAP_FAILED);
    madvise(much, bytes, MADV_NOHUGEPAGE); /* 65536 pages to copy, not 128 */
    memset(much, 1, bytes);
    double large = start_cpu_ms(20);
    CHECKF(large < 2 * small + 10, "%g ms, %g ms", small, large);
    munmap(much, bytes);
}

static void kill_guards(void) {
    child_kill(0); /* would be our own group */
    child_kill(-1);
    child_kill_rest(0);
    child_kill_rest(-1);
    struct child none = {0, -1};
    CHECK(child_wait(&none) == 0);
}

static void start_can_be_made_to_fail(void) {
#ifndef CUTEPILOT_FAULTS
    SKIP("built without -Dfaults=true");
#endif
    pid_t pid = fork();
    if (pid == 0) {
        const char *argv[] = {"true", NULL};
        struct child c;
        setenv("CUTEPILOT_FAULT", "child:2", 1);
        fault_init("test");
        bool first = child_start(&(struct child_spec){.argv = argv}, &c, &err);
        child_wait(&c);
        bool second = child_start(&(struct child_spec){.argv = argv}, &c, &err);
        _exit(!(first && !second && strstr(err.text, strerror(EAGAIN))));
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void pairs(void) {
    int p[2];
    CHECK(socket_pair(p, &err));
    CHECK(fcntl(p[0], F_GETFD) == FD_CLOEXEC && fcntl(p[1], F_GETFD) == FD_CLOEXEC);
    close(p[0]);
    close(p[1]);
    CHECK(pipe_pair(p, &err));
    CHECK(fcntl(p[0], F_GETFD) == FD_CLOEXEC && fcntl(p[1], F_GETFD) == FD_CLOEXEC);
    close(p[0]);
    close(p[1]);
}

static const struct tap_case cases[] = {
    {"runs and reports", runs_and_reports},
    {"failure to exec is reported", exec_failure_is_reported},
    {"a bad descriptor is reported", bad_descriptor_is_reported},
    {"limits hold", limits_hold},
    {"the CPU limit kills", cpu_limit_kills},
    {"nice is set", nice_is_set},
    {"environment", environment},
    {"keys are not inherited", keys_stay_here},
    {"permuted descriptors survive", permutations_survive},
    {"a descriptor onto its own number survives", same_number_survives},
    {"no descriptor leaks", no_descriptor_leaks},
    {"signals are reset", signals_are_reset},
    {"killing the group takes grandchildren", group_kill_takes_grandchildren},
    {"what it left in its group is killed", what_it_left_is_killed},
    {"dies with its parent", dies_with_its_parent},
    {"the parent stays as it was", the_parent_stays_as_it_was},
    {"a large process starts one as fast as a small one", a_large_process_starts_as_fast},
    {"kill and wait of nobody", kill_guards},
    {"starting can be made to fail", start_can_be_made_to_fail},
    {"pairs are close-on-exec", pairs},
};
TAP_CASES(cases)
