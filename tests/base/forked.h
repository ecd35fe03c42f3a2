/* Runs a function in a child process and gives back its exit code (or 128 + the signal) and the
 * start of what it wrote to stderr: for the paths that end the process. */
#ifndef TESTS_BASE_FORKED_H
#define TESTS_BASE_FORKED_H

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct forked {
    int code;
    char err[512];
};

static struct forked forked_run(int (*f)(void)) {
    struct forked r = {.code = -1};
    int ends[2];
    size_t n = 0;
    if (pipe(ends) != 0)
        return r;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(f());
    }
    close(ends[1]);
    for (ssize_t got; n < sizeof r.err - 1; n += (size_t)got) {
        got = read(ends[0], r.err + n, sizeof r.err - 1 - n);
        if (got <= 0)
            break;
    }
    close(ends[0]);
    int status = 0;
    if (pid > 0 && waitpid(pid, &status, 0) == pid)
        r.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return r;
}

#endif
