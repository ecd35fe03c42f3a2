/* What a process may touch after it has started. Each role calls sandbox_enter once, right after it
 * loaded what it needs; there is no way back. What the kernel lacks is left out and reported, never
 * silently: the report travels in the role's first frame and `doctor` prints it. */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

#include "base/err.h"

struct sandbox_policy {
    const char *const *read_only;  /* NULL-terminated paths (files or folders) that may be read */
    const char *const *read_write; /* … and changed */
    bool network;                  /* AF_INET/AF_INET6 sockets */
    bool unix_sockets;             /* AF_UNIX (CUDA needs them) */
    bool exec;                     /* execve and fork */
    bool devices;                  /* ioctl on device files under the paths above */
    bool own_processes; /* what it starts ends with it, and there is a limit on how many */
};

enum { /* bits of a report */
       SANDBOX_NO_NEW_PRIVS = 1,
       SANDBOX_SECCOMP = 2,
       SANDBOX_LANDLOCK = 4,
       SANDBOX_NAMESPACES = 8, /* empty network and ipc namespaces */
       SANDBOX_PROCESSES = 16, /* a pid namespace of its own: see own_processes */
};

enum { SANDBOX_MAX_PROCESSES = 4096 }; /* … and threads, with own_processes */

struct sandbox_report {
    unsigned active;
    int landlock_abi;  /* 0: none */
    char missing[256]; /* what is not in force and why, for people; empty when all is */
};

/* Fails only when the policy itself is wrong; missing kernel features are reported. Threads must
 * not have been started yet. seccomp denies, with EPERM, execve*, fork and clone of processes
 * (threads are allowed; clone3 answers ENOSYS), ptrace, process_vm_*, mount, unshare, setns, bpf,
 * perf_event_open, io_uring_*, keyctl, kexec, init_module, userfaultfd, and sockets beyond the
 * policy.
 *
 * With own_processes it returns in another process: the first of a pid namespace, with which all
 * others there end, while the caller waits for it and ends as it does. Where there is no such
 * namespace setsid and setpgid are denied instead, so that whoever kills the process group reaches
 * everything. */
bool sandbox_enter(const struct sandbox_policy *p, struct sandbox_report *out, struct err *err);
/* What a process here could have, without entering: tried in a throw-away child. */
void sandbox_probe(struct sandbox_report *out);

#endif
