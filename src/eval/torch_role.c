/* `cutepilot torch PYTHON DIR`: confined, then Python.
 *
 * torch.compile starts compilers (gcc, ptxas), so exec and fork stay allowed; what they start is
 * confined alike. No network; every file may be read but those under /dev and /proc that the GPU's
 * driver does not need; DIR alone may be written. The first line on stdout says what is in force.
 */
#include "eval/torch.h"

#include "base/file.h"
#include "base/sandbox.h"
#include "base/say.h"
#include "device/role.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static const char *const *writable(struct arena *a, const char *dir) {
    static const char *const more[] = {"/dev/zero", "/dev/random", "/dev/urandom", "/dev/shm"};
    const char **paths = arena_array(a, const char *, WRITABLE + 1);
    size_t n = 0;
    paths[n++] = dir;
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        paths[n++] = more[i];
    for (size_t i = 0; role_gpu_paths[i] && n < WRITABLE; i++)
        paths[n++] = role_gpu_paths[i];
    return paths;
}

static bool confine(const char *dir, struct arena *a, struct err *err) {
    struct sandbox_report report;
    struct sandbox_policy policy = {.read_only = readable(a, err),
                                    .read_write = writable(a, dir),
                                    .unix_sockets = true,
                                    .exec = true,
                                    .devices = true};
    if (!policy.read_only || !sandbox_enter(&policy, &report, err))
        return err_wrap(err, "torch: sandbox");
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

int torch_main(int argc, char **argv) {
    struct arena *a = arena_new(4u << 20);
    struct err err = {0};
    if (argc != 2) {
        err_set(&err, ERR_INPUT, "torch: expected PYTHON DIR");
    } else if (confine(argv[1], a, &err)) {
        /* Python adds the script's folder to its path, and that is empty but for our files. */
        const char *const words[] = {argv[0], "helper.py", NULL};
        signal(SIGPIPE, SIG_DFL);
        signal(SIGXFSZ, SIG_DFL);
        if (chdir(argv[1]) == 0)
            execvp(argv[0], (char *const *)words);
        err_errno(&err, ERR_ENV, "start %s", argv[0]);
    }
    complain("%s\n", err.text);
    _exit((int)err.kind); /* at once: what runs at exit was not made for the sandbox */
}
