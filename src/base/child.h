/* Child processes with limits, each in a process group of its own, dying with their parent.
 *
 * A child gets exactly the descriptors listed, nothing else (0, 1 and 2 are /dev/null where not
 * listed: a file opened later must not become its stderr), signals and their mask at their
 * defaults, PR_SET_PDEATHSIG = SIGKILL, and the environment it is given. Failure to exec is
 * reported as an err by child_start itself (through a close-on-exec pipe). */
#ifndef BASE_CHILD_H
#define BASE_CHILD_H

#include "base/arena.h"
#include "base/err.h"
#include <signal.h>
#include <sys/types.h>

struct child_fd {
    int from, to; /* the parent's descriptor and its number in the child */
};

struct child_limits { /* 0 = leave as it is */
    size_t address_bytes;
    size_t file_bytes;
    unsigned cpu_s;
    unsigned open_files;
};

struct child_spec {
    const char *const *argv; /* argv[0] is the program's path, or a name looked up in PATH */
    const char *const *env;  /* NULL: ours without keys: …_API_KEY, CUTEPILOT_PROVIDER_KEY */
    const struct child_fd *fds;
    size_t nfds;
    struct child_limits limits;
    int nice;
};

struct child {
    pid_t pid; /* 0: none */
    int pidfd; /* owned until given to loop_watch_pid */
};

bool child_start(const struct child_spec *spec, struct child *out, struct err *err);
/* SIGKILL to the group, then to the process, which must not have been waited for: its number might
 * be another's by now. */
void child_kill(pid_t pid);
void child_kill_rest(pid_t pid); /* …to what it left in its group, once it was waited for */
/* Blocks until it ended; closes pidfd if it is still owned. Returns the wait status. */
int child_wait(struct child *c);
/* Reaps it if it ends by then (clock_ms); false: it did not. */
bool child_wait_until(pid_t pid, uint64_t until_ms);
/* Runs a command and takes its stdout, at most `max` bytes; its stderr is ours. False: it did not
 * start, said more than that, or was killed, after limit_ms or because *stop became true (NULL:
 * never). */
bool child_output(const char *const *argv, size_t max, unsigned limit_ms,
                  const volatile sig_atomic_t *stop, struct arena *a, str *out, int *status,
                  struct err *err);
/* "exit code 3", "killed by SIGSEGV" */
str child_status_text(int status, char *space, size_t n);

/* Both ends close-on-exec. */
bool pipe_pair(int out[2], struct err *err);
bool socket_pair(int out[2], struct err *err); /* AF_UNIX stream */
bool fd_is_channel(int fd); /* a pipe or a socket: another process may be at its other end */

#endif
