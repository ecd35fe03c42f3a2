/* Each case forks, enters a policy in the child and tries things there. The child's exit code is
 * the number of the first expectation that failed, 0 when all held. */
#include "base/sandbox.h"
#include "tap.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct err err;
static struct sandbox_report possible;
static char inside[64], outside[64];

static const char *const system_paths[] = {"/usr", "/lib", "/lib64", "/etc", "/nonexistent", NULL};

#define EXPECT(n, cond)                                                                            \
    do {                                                                                           \
        if (!(cond))                                                                               \
            return (n);                                                                            \
    } while (0)

static int run(int (*body)(void), const struct sandbox_policy *policy) {
    pid_t pid = fork();
    if (pid == 0) {
        struct sandbox_report r;
        _exit(sandbox_enter(policy, &r, &err) ? body() : 100);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

#define CHECK_RUN(body, policy)                                                                    \
    do {                                                                                           \
        int failed_ = run(body, policy);                                                           \
        CHECKF(failed_ == 0, "expectation %d", failed_);                                           \
    } while (0)

static void make_folders(void) {
    char path[96];
    snprintf(inside, sizeof inside, "/tmp/sandbox-in-%ld", (long)getpid());
    snprintf(outside, sizeof outside, "/tmp/sandbox-out-%ld", (long)getpid());
    mkdir(inside, 0700);
    mkdir(outside, 0700);
    snprintf(path, sizeof path, "%s/secret", outside);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    snprintf(path, sizeof path, "%s/given", inside);
    close(open(path, O_CREAT | O_WRONLY, 0600));
}

static void remove_folders(void) {
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s %s", inside, outside);
    CHECK(system(command) == 0);
}

static int open_at(const char *dir, const char *name, int flags) {
    char path[96];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return open(path, flags, 0600);
}

static void probe(void) {
    sandbox_probe(&possible);
    printf("# active %u, Landlock ABI %d, missing: %s\n", possible.active, possible.landlock_abi,
           possible.missing);
    unsigned all = SANDBOX_NO_NEW_PRIVS | SANDBOX_SECCOMP | SANDBOX_LANDLOCK | SANDBOX_NAMESPACES;
    CHECK((possible.active & all) == all || possible.missing[0]);
    CHECK(!(possible.active & SANDBOX_LANDLOCK) == !possible.landlock_abi || possible.missing[0]);
    CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0); /* we ourselves are as free as before */
}

static void wrong_policy(void) {
    const char *const empty[] = {"", NULL};
    struct sandbox_report r;
    CHECK(!sandbox_enter(&(struct sandbox_policy){.read_write = empty}, &r, &err));
    CHECK(err.kind == ERR_INPUT);
}

static int held_fd;

static int try_files(void) {
    EXPECT(1, open_at(outside, "secret", O_RDONLY) < 0 && errno == EACCES);
    EXPECT(2, open_at(outside, "new", O_CREAT | O_WRONLY) < 0 && errno == EACCES);
    EXPECT(3, open_at(inside, "given", O_RDWR) >= 0);
    EXPECT(4, open_at(inside, "new", O_CREAT | O_WRONLY) >= 0);
    EXPECT(5, open("/etc/passwd", O_RDONLY) >= 0);
    EXPECT(6, open("/etc/passwd", O_WRONLY) < 0 && errno == EACCES);
    EXPECT(7, write(held_fd, "x", 1) == 1); /* open since before */
    EXPECT(8, open("/proc/self/status", O_RDONLY) < 0);
    EXPECT(9, possible.landlock_abi < 3 || truncate("/etc/passwd", 0) < 0);
    return 0;
}

static void files(void) {
    if (!(possible.active & SANDBOX_LANDLOCK))
        SKIP("no Landlock");
    const char *const rw[] = {inside, NULL};
    make_folders();
    held_fd = open_at(outside, "secret", O_WRONLY);
    CHECK_RUN(try_files, (&(struct sandbox_policy){.read_only = system_paths, .read_write = rw}));
    close(held_fd);
    remove_folders();
}

static int try_single_file(void) {
    EXPECT(1, open_at(inside, "given", O_RDONLY) >= 0);
    EXPECT(2, open_at(inside, "given", O_WRONLY) < 0 && errno == EACCES);
    EXPECT(3, open_at(inside, "new", O_CREAT | O_WRONLY) < 0 && errno == EACCES);
    return 0;
}

static void single_file(void) {
    if (!(possible.active & SANDBOX_LANDLOCK))
        SKIP("no Landlock");
    make_folders();
    char path[96];
    snprintf(path, sizeof path, "%s/given", inside);
    const char *const ro[] = {path, NULL};
    CHECK_RUN(try_single_file, &(struct sandbox_policy){.read_only = ro});
    remove_folders();
}

static bool denied_socket(int family) {
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd >= 0)
        close(fd);
    return fd < 0 && errno == EPERM;
}

static int try_no_sockets(void) {
    int pair[2];
    EXPECT(1, denied_socket(AF_INET));
    EXPECT(2, denied_socket(AF_INET6));
    EXPECT(3, denied_socket(AF_NETLINK));
    EXPECT(4, denied_socket(AF_UNIX));
    EXPECT(5, denied_socket(AF_VSOCK));
    EXPECT(6, denied_socket(AF_PACKET));
    EXPECT(7, denied_socket(4711));
    EXPECT(8, syscall(SYS_socket, (1L << 32) | AF_INET, SOCK_STREAM, 0) < 0 && errno == EPERM);
    EXPECT(9, socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    return 0;
}

static int try_unix_sockets(void) {
    EXPECT(1, denied_socket(AF_INET));
    EXPECT(2, socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
    return 0;
}

static int try_network(void) {
    EXPECT(1, socket(AF_INET, SOCK_STREAM, 0) >= 0);
    EXPECT(2, denied_socket(AF_UNIX));
    EXPECT(3, denied_socket(AF_PACKET));
    return 0;
}

static void sockets(void) {
    if (!(possible.active & SANDBOX_SECCOMP))
        SKIP("no seccomp");
    CHECK_RUN(try_no_sockets, &(struct sandbox_policy){0});
    CHECK_RUN(try_unix_sockets, &(struct sandbox_policy){.unix_sockets = true});
    CHECK_RUN(try_network, &(struct sandbox_policy){.network = true});
}

static ino_t net_inode, ipc_inode;

static ino_t inode_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int try_namespaces(void) {
    EXPECT(1, inode_of("/proc/self/ns/net") != net_inode);
    EXPECT(2, inode_of("/proc/self/ns/ipc") != ipc_inode);
    EXPECT(3, geteuid() != 65534);
    return 0;
}

static int try_network_kept(void) {
    EXPECT(1, inode_of("/proc/self/ns/net") == net_inode);
    EXPECT(2, inode_of("/proc/self/ns/ipc") != ipc_inode);
    return 0;
}

static void namespaces(void) {
    if (!(possible.active & SANDBOX_NAMESPACES))
        SKIP("no namespaces");
    const char *const proc[] = {"/proc", NULL};
    net_inode = inode_of("/proc/self/ns/net");
    ipc_inode = inode_of("/proc/self/ns/ipc");
    CHECK_RUN(try_namespaces, &(struct sandbox_policy){.read_only = proc});
    CHECK_RUN(try_network_kept, (&(struct sandbox_policy){.read_only = proc, .network = true}));
}

static int as_nobody(void) {
    struct sandbox_report r;
    if (setgid(54321) != 0 || setuid(54321) != 0)
        return 77;
    prctl(PR_SET_DUMPABLE, 1); /* or /proc/self stays root's after setuid */
    const char *const proc[] = {"/proc", NULL};
    EXPECT(1, sandbox_enter(&(struct sandbox_policy){.read_only = proc}, &r, &err));
    EXPECT(2, (r.active & SANDBOX_NAMESPACES) || strstr(r.missing, "unshare"));
    EXPECT(3, geteuid() == 54321 && getegid() == 54321);
    EXPECT(4, r.active & SANDBOX_NO_NEW_PRIVS);
    return 0;
}

/* Without root a user namespace is needed for the others; ids stay what they were. */
static void unprivileged(void) {
    if (geteuid() != 0)
        SKIP("only root can become somebody else");
    pid_t pid = fork();
    if (pid == 0)
        _exit(as_nobody());
    int status = 0;
    waitpid(pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        SKIP("may not change ids");
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "expectation %d", WEXITSTATUS(status));
}

static int try_processes(void) {
    char *const argv[] = {"/bin/true", NULL}, *const none[] = {NULL};
    EXPECT(1, execve(argv[0], argv, none) < 0 && errno == EPERM);
    EXPECT(2, fork() < 0 && errno == EPERM);
    EXPECT(3, syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS);
    EXPECT(4, unshare(CLONE_NEWNS) < 0 && errno == EPERM);
    EXPECT(5, ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 && errno == EPERM);
    EXPECT(6, syscall(SYS_bpf, 0, NULL, 0) < 0 && errno == EPERM);
    EXPECT(7, syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0) < 0 && errno == EPERM);
    EXPECT(8, syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0) < 0 && errno == EPERM);
    EXPECT(9, syscall(SYS_io_uring_setup, 1, NULL) < 0 && errno == EPERM);
    EXPECT(10, syscall(SYS_userfaultfd, 0) < 0 && errno == EPERM);
    EXPECT(11, syscall(SYS_mount, "a", "/", "tmpfs", 0, NULL) < 0 && errno == EPERM);
    return 0;
}

static int try_exec(void) {
    EXPECT(1, syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) < 0 &&
                  errno == EPERM);
    pid_t pid = fork();
    if (pid == 0) {
        char *const argv[] = {"/bin/true", NULL}, *const none[] = {NULL};
        execve(argv[0], argv, none);
        _exit(9);
    }
    int status = -1;
    EXPECT(2, pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    return 0;
}

static void processes(void) {
    if (!(possible.active & SANDBOX_SECCOMP))
        SKIP("no seccomp");
    CHECK_RUN(try_processes, &(struct sandbox_policy){.read_only = system_paths});
}

static void processes_with_exec(void) {
    const char *const ro[] = {"/usr", "/bin", "/lib", "/lib64", "/etc", NULL};
    CHECK_RUN(try_exec, (&(struct sandbox_policy){.read_only = ro, .exec = true}));
}

static void *add_one(void *p) {
    ++*(int *)p;
    return p;
}

static int try_threads_and_memory(void) {
    pthread_t t;
    int n = 0;
    EXPECT(1, pthread_create(&t, NULL, add_one, &n) == 0 && pthread_join(t, NULL) == 0 && n == 1);
    int fd = memfd_create("m", MFD_CLOEXEC);
    EXPECT(2, fd >= 0 && ftruncate(fd, 8192) == 0);
    char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT(3, p != MAP_FAILED);
    p[8191] = 1;
    EXPECT(4, mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
    return 0;
}

static void threads_and_memory(void) {
    CHECK_RUN(try_threads_and_memory, &(struct sandbox_policy){0});
}

static int try_signal(void) {
    EXPECT(1, kill(getppid(), 0) < 0 && errno == EPERM);
    EXPECT(2, kill(getpid(), 0) == 0);
    return 0;
}

static void signals(void) {
    if (possible.landlock_abi < 6)
        SKIP("Landlock before ABI 6 does not scope signals");
    CHECK_RUN(try_signal, &(struct sandbox_policy){0});
}

static int try_abstract(void) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "sandbox-test-%ld", (long)getppid());
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT(1, fd >= 0);
    EXPECT(2, connect(fd, (struct sockaddr *)&a, sizeof a) < 0);
    return 0;
}

static void abstract_sockets(void) {
    if (possible.landlock_abi < 6 && !(possible.active & SANDBOX_NAMESPACES))
        SKIP("neither namespaces nor Landlock ABI 6");
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path + 1, sizeof a.sun_path - 1, "sandbox-test-%ld", (long)getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 4) == 0);
    CHECK_RUN(try_abstract, &(struct sandbox_policy){.unix_sockets = true});
    /* network keeps the namespace, so that the scope alone has to hold */
    if (possible.landlock_abi >= 6)
        CHECK_RUN(try_abstract, (&(struct sandbox_policy){.unix_sockets = true, .network = true}));
    close(fd);
}

/* Leaves a process in a session of its own that holds a lock on `given`. */
static int try_to_outlive(void) {
    int fd = open_at(inside, "given", O_RDWR);
    EXPECT(1, fd >= 0);
    pid_t pid = fork();
    EXPECT(2, pid >= 0);
    if (pid == 0) {
        setsid();
        flock(fd, LOCK_EX);
        for (;;)
            pause();
    }
    int mine = open_at(inside, "given", O_RDWR);
    for (int i = 0; i < 2000 && flock(mine, LOCK_EX | LOCK_NB) == 0; i++) {
        flock(mine, LOCK_UN);
        usleep(1000);
    }
    EXPECT(3, flock(mine, LOCK_EX | LOCK_NB) < 0);
    return 0;
}

/* Thousands of copies of a process with a sanitizer's memory are too many. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static int try_many(void) {
    int n = 0;
    for (pid_t pid; n <= SANDBOX_MAX_PROCESSES && (pid = fork()) >= 0; n++)
        if (pid == 0)
            for (;;)
                pause();
    EXPECT(1, n > 1000); /* enough for a compiler, or threads on many cores */
    EXPECT(2, n <= SANDBOX_MAX_PROCESSES);
    return 0;
}

static int report_processes(void) {
    struct sandbox_report r;
    struct sandbox_policy p = {.exec = true, .own_processes = true};
    return !sandbox_enter(&p, &r, &err)         ? 100
           : !(r.active & SANDBOX_PROCESSES)    ? 1
           : strstr(r.missing, "no limit") != 0 ? 2
                                                : 0;
}

static int run_plain(int (*body)(void)) {
    pid_t pid = fork();
    if (pid == 0)
        _exit(body());
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

static long most_processes(void) {
    long n = 0;
    FILE *f = fopen("/proc/sys/kernel/pid_max", "re");
    if (f && fscanf(f, "%ld", &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

/* Whatever it starts ends with it; how many it may start is limited, for it alone. */
static void own_processes(void) {
    const char *const rw[] = {inside, NULL};
    struct sandbox_policy p = {.read_write = rw, .exec = true, .own_processes = true};
    long before = most_processes();
    int lacks = run_plain(report_processes);
    if (lacks == 1)
        SKIP("no pid namespaces");
    make_folders();
    CHECK_RUN(try_to_outlive, &p);
    int fd = open_at(inside, "given", O_RDWR);
    CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    close(fd);
    if (lacks == 0 && !SANITIZED)
        CHECK_RUN(try_many, &p);
    CHECK(most_processes() == before);
    remove_folders();
}

static int try_no_ioctl(void) {
    int n, fd = open("/dev/zero", O_RDONLY);
    EXPECT(1, fd >= 0);
    EXPECT(2, syscall(SYS_ioctl, fd, 0x5413 /* TIOCGWINSZ */, &n) < 0 && errno == EACCES);
    return 0;
}

static int try_ioctl(void) {
    int n, fd = open("/dev/zero", O_RDONLY);
    EXPECT(1, fd >= 0);
    EXPECT(2, syscall(SYS_ioctl, fd, 0x5413, &n) < 0 && errno == ENOTTY); /* the device answers */
    return 0;
}

static void devices(void) {
    if (possible.landlock_abi < 5)
        SKIP("Landlock before ABI 5 does not control ioctl");
    const char *const rw[] = {"/dev/zero", NULL};
    CHECK_RUN(try_no_ioctl, &(struct sandbox_policy){.read_write = rw});
    CHECK_RUN(try_ioctl, (&(struct sandbox_policy){.read_write = rw, .devices = true}));
}

static const struct tap_case cases[] = {
    {"probe", probe},
    {"a wrong policy is refused", wrong_policy},
    {"files: inside yes, outside no", files},
    {"a rule on one file", single_file},
    {"sockets beyond the policy", sockets},
    {"empty namespaces", namespaces},
    {"an unprivileged user", unprivileged},
    {"no processes, no tracing, no mounts", processes},
    {"processes where the policy allows them", processes_with_exec},
    {"threads, memfd and mmap work", threads_and_memory},
    {"signals to others", signals},
    {"abstract sockets of others", abstract_sockets},
    {"ioctl on devices", devices},
    {"processes of its own", own_processes},
};
TAP_CASES(cases)
