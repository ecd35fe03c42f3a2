#include "eval/gpu.h"

#include "base/child.h"
#include "base/file.h"
#include "base/say.h"
#include "device/ceilings.h"
#include "device/probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ANSWER  65536
#define MAX_COMMAND 64

/* ---- another machine's ---- */

static bool run_probe(const char *const *argv, struct arena *a, str *out, struct err *err) {
    int fds[2];
    struct child child;
    if (!pipe_pair(fds, err))
        return false;
    struct child_fd give[] = {{fds[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = argv, .fds = give, .nfds = 2};
    bool ok = child_start(&spec, &child, err);
    close(fds[1]);
    bool started = ok;
    if (started && !file_read_fd(fds[0], MAX_ANSWER, a, out, err)) {
        ok = err_wrap(err, "'%s … probe'", argv[0]);
        child_kill(child.pid); /* it may talk on for ever */
    }
    close(fds[0]);
    int status = started ? child_wait(&child) : 0;
    if (ok && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
        ok = err_set(err, ERR_ENV, "'%s … probe' found no GPU", argv[0]);
    return ok;
}

/* Login banners come before the answer: it is the last line. */
static str last_line(str text) {
    text = str_trim(text);
    size_t at = text.n;
    while (at && text.p[at - 1] != '\n')
        at--;
    return str_from(text, at);
}

static bool ask_there(const struct device_name *d, const char *const *command,
                      struct cuda_facts *out, struct err *err) {
    const char *argv[MAX_COMMAND + 3];
    struct arena *a = arena_new(1 << 20);
    size_t n = 0;
    str text;
    for (; n < MAX_COMMAND && command[n]; n++)
        argv[n] = command[n];
    argv[n++] = "probe";
    argv[n++] = d->text;
    argv[n] = NULL;
    bool ok = run_probe(argv, a, &text, err);
    if (ok) {
        json *j = json_parse(last_line(text), err);
        ok = j && (fields_from_json(&cuda_facts_fields, j, a, out, err) ||
                   err_set(err, ERR_ENV, "'%s … probe' gave no facts of a GPU", argv[0]));
        json_free(j);
    }
    arena_free(a);
    return ok;
}

int gpu_probe_main(int argc, char **argv) {
    struct device_name d;
    struct cuda_facts f;
    struct err err = {0};
    struct buf b;
    struct arena *a = arena_new(1 << 20);
    bool found =
        argc > 0 && device_name_parse(argv[0], a, &d, &err) && gpu_probe(d.ordinal, &f, &err);
    arena_free(a);
    if (!found) {
        complain("cutepilot probe: %s\n", argc < 1 ? "which device?" : err.text);
        return 3;
    }
    json *j = fields_to_json(&cuda_facts_fields, &f);
    buf_init(&b, MAX_ANSWER);
    json_write(j, &b);
    buf_putc(&b, '\n');
    bool ok = !b.failed && file_write_all(STDOUT_FILENO, b.p, b.n, NULL);
    buf_release(&b);
    json_free(j);
    return ok ? 0 : 3;
}

/* ---- this one's ---- */

bool gpu_here_find(const struct device_name *d, const char *const *command, struct gpu_here *out,
                   struct err *err) {
    *out = (struct gpu_here){0};
    bool ok =
        command ? ask_there(d, command, &out->facts, err) : gpu_probe(d->ordinal, &out->facts, err);
    if (!ok)
        return err_wrap(err, "--device %s (--device sim runs kernels in the simulator)", d->text);
    if (out->facts.compute_mode == CU_MODE_EXCLUSIVE)
        return err_set(err, ERR_ENV,
                       "%s is in exclusive-process mode, where only one process can use it: the "
                       "judge could not have a context apart from the candidate's. Set the default "
                       "mode (nvidia-smi -c DEFAULT), or use --device sim",
                       out->facts.name);
    return gpu_from_facts(&out->facts, &out->gpu, err);
}

static bool measure(const struct evaluator_options *o, struct ceilings *m, struct err *err) {
    json *answer = NULL;
    bool ok = evaluate_ceilings(o, &answer, err) &&
              (ceilings_from_json(answer, m) ||
               err_set(err, ERR_ENV, "the device's ceilings do not make sense"));
    json_free(answer);
    return ok;
}

/* One at a time on a machine: two that measure at once both measure half a GPU. Whoever waited
 * finds the other's result. Without a lock it is measured all the same. */
static int wait_for_turn(const char *cache) {
    struct arena *a = arena_new(1 << 16);
    struct err ignored = {0};
    int fd = -1;
    if (dir_make(cache, &ignored)) {
        fd = open(arena_printf(a, "%s/ceilings.lock", cache).p, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
            close(fd);
            fd = -1;
        }
    }
    arena_free(a);
    return fd;
}

static bool have_ceilings(const struct evaluator_options *o, const struct cuda_facts *f,
                          struct ceilings *m, struct err *err) {
    struct err ignored = {0};
    if (ceilings_load(o->cache, f, m, &ignored))
        return true;
    int turn = wait_for_turn(o->cache);
    bool ok = ceilings_load(o->cache, f, m, &ignored) || measure(o, m, err);
    if (ok)
        ceilings_store(o->cache, f, m, &ignored); /* or again next time */
    if (turn >= 0)
        close(turn);
    return ok;
}

bool gpu_here_use(struct evaluator_options *o, struct gpu_here *out, struct err *err) {
    struct ceilings m;
    if (!gpu_here_find(&o->device, o->worker_command, out, err))
        return false;
    o->device.gpu = &out->gpu;
    o->memory_bytes = out->facts.memory_free;
    o->facts = &out->facts;
    if (!have_ceilings(o, &out->facts, &m, err))
        return false;
    ceilings_apply(&m, &out->gpu);
    out->measured = true;
    return true;
}
