/* The sandbox, in four layers that do not depend on each other: no_new_privs, empty namespaces,
 * Landlock for paths, seccomp for system calls. Each that cannot be had adds a clause to `missing`
 * and the next is tried all the same. The order is forced: unshare is denied by our own filter, and
 * the uid map is written before Landlock closes /proc.
 *
 * Descriptors that are already open keep working; that is how a sandboxed role talks. */
#include "base/sandbox.h"

#include "base/landlock.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void report_missing(struct sandbox_report *r,
                                                                 const char *fmt, ...) {
    size_t n = strlen(r->missing), room = sizeof r->missing - n;
    if (n)
        n += (size_t)snprintf(r->missing + n, room, "; ");
    if (n >= sizeof r->missing)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->missing + n, sizeof r->missing - n, fmt, ap);
    va_end(ap);
}

/* ---- namespaces ---- */

static bool write_file(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = write(fd, text, strlen(text));
    close(fd);
    return n == (ssize_t)strlen(text);
}

/* The same ids inside as outside, so that files keep their owners. */
static bool map_ids(uid_t uid, gid_t gid) {
    char map[64];
    write_file("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%lu %lu 1", (unsigned long)uid, (unsigned long)uid);
    if (!write_file("/proc/self/uid_map", map))
        return false;
    snprintf(map, sizeof map, "%lu %lu 1", (unsigned long)gid, (unsigned long)gid);
    return write_file("/proc/self/gid_map", map);
}

/* The highest number of a process is each pid namespace's own since Linux 6.14; before, it is the
 * machine's and must be left alone. */
static bool limit_numbers(void) {
    struct utsname kernel;
    char most[16], *rest;
    if (uname(&kernel) != 0)
        return false;
    unsigned long major = strtoul(kernel.release, &rest, 10);
    unsigned long minor = *rest == '.' ? strtoul(rest + 1, NULL, 10) : 0;
    if (major < 6 || (major == 6 && minor < 14))
        return false;
    snprintf(most, sizeof most, "%d", SANDBOX_MAX_PROCESSES);
    return write_file("/proc/sys/kernel/pid_max", most);
}

/* A user namespace counts the processes of its users from nought; root's are never limited so. */
static bool limit_user(bool own_user) {
    struct rlimit limit = {SANDBOX_MAX_PROCESSES, SANDBOX_MAX_PROCESSES};
    return own_user && geteuid() != 0 && setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* The first process of the new namespace goes on; we wait for it and end as it does. */
static void enter_first_process(bool own_user, struct sandbox_report *r) {
    pid_t pid = fork();
    if (pid < 0) {
        report_missing(r, "no processes of its own (fork: %s)", strerror(errno));
        return;
    }
    if (pid > 0) {
        int status;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    r->active |= SANDBOX_PROCESSES;
    if (!limit_numbers() && !limit_user(own_user))
        report_missing(r, "no limit on processes");
}

static void enter_namespaces(const struct sandbox_policy *p, struct sandbox_report *r) {
    int flags =
        CLONE_NEWIPC | (p->network ? 0 : CLONE_NEWNET) | (p->own_processes ? CLONE_NEWPID : 0);
    uid_t uid = geteuid();
    gid_t gid = getegid();
    bool own_user = false;
    if (unshare(flags) == 0) {
        r->active |= SANDBOX_NAMESPACES;
    } else if (unshare(CLONE_NEWUSER | flags) == 0) {
        r->active |= SANDBOX_NAMESPACES;
        own_user = true;
        if (!map_ids(uid, gid))
            report_missing(r, "the user namespace has no ids (%s)", strerror(errno));
    } else {
        report_missing(r, "no namespaces (unshare: %s)", strerror(errno));
    }
    if (p->own_processes && (r->active & SANDBOX_NAMESPACES))
        enter_first_process(own_user, r);
    else if (p->own_processes)
        report_missing(r, "no limit on processes");
}

/* ---- Landlock ---- */

static uint64_t landlock_rights(int abi) {
    uint64_t all = LL_ABI_1_ALL;
    all |= abi >= 2 ? LL_REFER : 0;
    all |= abi >= 3 ? LL_TRUNCATE : 0;
    all |= abi >= 5 ? LL_IOCTL_DEV : 0;
    return all;
}

/* A path that is not there, or that we could not open anyway, needs no permission. */
static bool landlock_allow(int ruleset, const char *path, uint64_t rights) {
    struct ll_beneath rule = {.parent_fd = open(path, O_PATH | O_CLOEXEC)};
    struct stat st;
    if (rule.parent_fd < 0)
        return true;
    bool folder = fstat(rule.parent_fd, &st) == 0 && S_ISDIR(st.st_mode);
    rule.allowed = folder ? rights : rights & LL_FILE_RIGHTS;
    bool ok = syscall(LANDLOCK_SYS_ADD_RULE, ruleset, LANDLOCK_RULE_BENEATH, &rule, 0) == 0;
    int error = errno;
    close(rule.parent_fd);
    errno = error;
    return ok;
}

static bool landlock_allow_all(int ruleset, const struct sandbox_policy *p, uint64_t all) {
    uint64_t read = LL_READ_FILE | LL_READ_DIR;
    if (p->exec)
        read |= LL_EXECUTE;
    if (p->devices)
        read |= all & LL_IOCTL_DEV;
    uint64_t write = (all & ~(LL_EXECUTE | LL_IOCTL_DEV)) | read;
    for (size_t i = 0; p->read_only && p->read_only[i]; i++)
        if (!landlock_allow(ruleset, p->read_only[i], read))
            return false;
    for (size_t i = 0; p->read_write && p->read_write[i]; i++)
        if (!landlock_allow(ruleset, p->read_write[i], write))
            return false;
    return true;
}

static void report_landlock_gaps(const struct sandbox_policy *p, struct sandbox_report *r) {
    int abi = r->landlock_abi;
    if (abi < 3)
        report_missing(r, "Landlock ABI %d does not stop truncation", abi);
    if (abi < 5 && !p->devices)
        report_missing(r, "Landlock ABI %d does not stop device ioctls", abi);
    if (abi < 6)
        report_missing(r, "Landlock ABI %d does not stop signals to others", abi);
}

static void enter_landlock(const struct sandbox_policy *p, struct sandbox_report *r) {
    int abi = (int)syscall(LANDLOCK_SYS_CREATE, NULL, 0, LANDLOCK_FLAG_VERSION);
    if (abi <= 0) {
        report_missing(r, "no Landlock (%s)", strerror(errno));
        return;
    }
    r->landlock_abi = abi;
    uint64_t all = landlock_rights(abi);
    struct ll_ruleset set = {.handled_fs = all};
    if (abi >= 4 && !p->network)
        set.handled_net = LL_NET_BIND_TCP | LL_NET_CONNECT_TCP;
    if (abi >= 6)
        set.scoped = LL_SCOPE_ABSTRACT_UNIX | LL_SCOPE_SIGNAL;
    int fd = (int)syscall(LANDLOCK_SYS_CREATE, &set, sizeof set, 0);
    if (fd >= 0 && landlock_allow_all(fd, p, all) && syscall(LANDLOCK_SYS_RESTRICT, fd, 0) == 0) {
        r->active |= SANDBOX_LANDLOCK;
        report_landlock_gaps(p, r);
    } else {
        report_missing(r, "no Landlock (ABI %d: %s)", abi, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
}

/* ---- seccomp ---- */

static const int denied[] = {
    /* other processes */
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(kcmp),
    /* the file system as others see it */
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(open_tree),
    SCMP_SYS(move_mount),
    SCMP_SYS(mount_setattr),
    SCMP_SYS(fsopen),
    SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount),
    SCMP_SYS(fspick),
    SCMP_SYS(open_by_handle_at),
    /* namespaces */
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    /* parts of the kernel that are attacked most */
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter),
    SCMP_SYS(io_uring_register),
    /* keys */
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    /* the machine */
    SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(delete_module),
    SCMP_SYS(reboot),
    SCMP_SYS(swapon),
    SCMP_SYS(swapoff),
    SCMP_SYS(acct),
    SCMP_SYS(iopl),
    SCMP_SYS(ioperm),
    SCMP_SYS(settimeofday),
    SCMP_SYS(clock_settime),
    SCMP_SYS(sethostname),
    SCMP_SYS(setdomainname),
};

static const int denied_without_exec[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
};

/* Without a pid namespace: its process group is what is killed, and nothing may leave it. */
static const int denied_to_leave[] = {
    SCMP_SYS(setsid),
    SCMP_SYS(setpgid),
};

static const unsigned long new_namespaces[] = {
    CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWNET,    CLONE_NEWPID,
    CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP,
};

#define DENY SCMP_ACT_ERRNO(EPERM)

static bool filter_deny(scmp_filter_ctx f, const int *calls, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (seccomp_rule_add(f, DENY, calls[i], 0) != 0)
            return false;
    return true;
}

/* Threads are clones with CLONE_THREAD. The flags of clone3 lie in memory, where a filter cannot
 * look: it answers ENOSYS and libc falls back to clone. */
static bool filter_clone(scmp_filter_ctx f, bool exec) {
    if (seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) != 0)
        return false;
    if (!exec && seccomp_rule_add(f, DENY, SCMP_SYS(clone), 1,
                                  SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)) != 0)
        return false;
    for (size_t i = 0; i < sizeof new_namespaces / sizeof *new_namespaces; i++) {
        unsigned long flag = new_namespaces[i];
        if (seccomp_rule_add(f, DENY, SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)) != 0)
            return false;
    }
    return true;
}

static bool family_allowed(const struct sandbox_policy *p, int family) {
    switch (family) {
    case AF_UNIX:
        return p->unix_sockets;
    case AF_INET:
    case AF_INET6:
    case AF_NETLINK: /* the resolver asks for the interfaces */
        return p->network;
    default:
        return false;
    }
}

/* One rule a family that is denied and one for all above: a rule may compare an argument only
 * once. Families with bits above the 32 that the kernel reads are caught by the last. */
static bool filter_sockets(scmp_filter_ctx f, const struct sandbox_policy *p) {
    for (unsigned family = 0; family < AF_MAX; family++)
        if (!family_allowed(p, (int)family) &&
            seccomp_rule_add(f, DENY, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family)) != 0)
            return false;
    /* A pair of connected AF_UNIX sockets reaches nobody else. */
    return seccomp_rule_add(f, DENY, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GE, AF_MAX)) == 0 &&
           seccomp_rule_add(f, DENY, SCMP_SYS(socketpair), 1, SCMP_A0(SCMP_CMP_NE, AF_UNIX)) == 0;
}

static void enter_seccomp(const struct sandbox_policy *p, struct sandbox_report *r) {
    scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
    int error = ENOMEM;
    if (f && filter_deny(f, denied, sizeof denied / sizeof *denied) &&
        (p->exec || filter_deny(f, denied_without_exec,
                                sizeof denied_without_exec / sizeof *denied_without_exec)) &&
        (!p->own_processes || (r->active & SANDBOX_PROCESSES) ||
         filter_deny(f, denied_to_leave, sizeof denied_to_leave / sizeof *denied_to_leave)) &&
        filter_clone(f, p->exec) && filter_sockets(f, p)) {
        /* System calls of another architecture would pass by number. */
        seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, DENY);
        /* A sanitizer's background thread has started before us. */
        seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
        error = -seccomp_load(f);
    }
    if (error == 0)
        r->active |= SANDBOX_SECCOMP;
    else
        report_missing(r, "no seccomp (%s)", strerror(error));
    if (f)
        seccomp_release(f);
}

/* ---- all of it ---- */

static bool paths_check(const char *const *paths, struct err *err) {
    for (size_t i = 0; paths && paths[i]; i++)
        if (!paths[i][0])
            return err_set(err, ERR_INPUT, "sandbox: an empty path");
    return true;
}

bool sandbox_enter(const struct sandbox_policy *p, struct sandbox_report *out, struct err *err) {
    *out = (struct sandbox_report){0};
    if (!paths_check(p->read_only, err) || !paths_check(p->read_write, err))
        return false;
    enter_namespaces(p, out);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
        out->active |= SANDBOX_NO_NEW_PRIVS;
    else
        report_missing(out, "no no_new_privs (%s)", strerror(errno));
    enter_landlock(p, out);
    enter_seccomp(p, out);
    return true;
}

static void probe_read(int fd, struct sandbox_report *out) {
    char *p = (char *)out;
    size_t have = 0;
    ssize_t n = 1;
    while (have < sizeof *out && (n > 0 || (n < 0 && errno == EINTR))) {
        n = read(fd, p + have, sizeof *out - have);
        have += n > 0 ? (size_t)n : 0;
    }
    if (have == sizeof *out)
        return;
    *out = (struct sandbox_report){0};
    report_missing(out, "the probe ended without an answer");
}

void sandbox_probe(struct sandbox_report *out) {
    *out = (struct sandbox_report){0};
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        report_missing(out, "not probed (pipe: %s)", strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct sandbox_report r;
        struct err err;
        bool ok = sandbox_enter(&(struct sandbox_policy){0}, &r, &err);
        _exit(!ok || write(fds[1], &r, sizeof r) != (ssize_t)sizeof r);
    }
    int error = errno;
    close(fds[1]);
    if (pid < 0) {
        report_missing(out, "not probed (fork: %s)", strerror(error));
    } else {
        probe_read(fds[0], out);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(fds[0]);
}
