#include "eval/gpu.h"

#include "base/asset.h"
#include "base/child.h"
#include "base/file.h"
#include "base/say.h"
#include "device/ceilings.h"
#include "device/probe.h"
#include "device/wire.h"
#include "eval/eval.h"
#include "eval/links.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the ceilings of a GPU, measured once by its own harness kernels ---- */

#define HARNESS "device/harness.cu"
#define TRIES   8 /* of measuring, when a process dies meanwhile */

struct measuring {
    struct links *links;
    json *answer;
    struct err broken;
    bool sent;
    int lost;
    const struct evaluator_options *o;
};

static void built(void *ctx, const struct build *b) {
    struct measuring *m = ctx;
    if (b->verdict != VERDICT_ACCEPTED) {
        err_set(&m->broken, ERR_ENV, "the device's harness does not compile: %.*s",
                STR_ARG(b->log));
        return;
    }
    struct wire_task none = {.harness = b->cubin.n};
    links_set_task(m->links, fields_to_json(&wire_task_fields, &none), b->cubin);
}

static void on_idle(void *ctx) {
    struct measuring *m = ctx;
    char head[48];
    if (!m->links || m->sent)
        return;
    snprintf(head, sizeof head, "{\"job\":%lld}", (long long)links_next(m->links));
    m->sent = links_send(m->links, WIRE_CEILINGS, m, str_view(head), (str){0});
}

/* What died is replaced, and measures again: at once, or when it says that it takes a job. */
static void on_lost(void *ctx, void *job, str why) {
    struct measuring *m = ctx;
    (void)job;
    m->sent = false;
    if (++m->lost >= TRIES)
        err_set(&m->broken, ERR_ENV, "%.*s", STR_ARG(why));
    else
        on_idle(m);
}

static void on_result(void *ctx, void *job, const struct worker_where *where, const json *head) {
    struct measuring *m = ctx;
    str why;
    (void)where;
    if (json_get_str(head, "why", &why) && why.n)
        on_lost(ctx, job, why);
    else
        m->answer = json_copy(head);
}

static void on_broken(void *ctx, const struct err *why) {
    struct measuring *m = ctx;
    m->broken = *why;
}

static bool run(struct loop *l, struct build_pool *pool, struct measuring *m, struct err *err) {
    struct arena *a = arena_new(1 << 20);
    struct build_request r = {.arch = m->o->device.gpu->arch, .fmad = true};
    bool ok = asset_get(NULL, HARNESS, a, &r.unit, err) && build_submit(pool, &r, built, m, err);
    while (ok && !m->answer && !m->broken.kind)
        ok = loop_step(l, -1, err);
    arena_free(a);
    if (ok && m->broken.kind)
        *err = m->broken;
    return ok && !m->broken.kind;
}

bool evaluate_ceilings(const struct evaluator_options *o, json **out, struct err *err) {
    struct measuring m = {.o = o};
    struct links_events ev = {&m, on_idle, on_result, NULL, on_lost, NULL, on_broken, NULL};
    struct build_pool_options po = {.jobs = 1, .cache = o->cache};
    struct worker_place here = {.device = o->device};
    struct links_options lo = {.places = o->nplaces ? o->places : &here,
                               .nplaces = 1,
                               .workers = 1,
                               .threads = 1,
                               .hello_ms = o->hello_ms};
    struct loop *l = loop_new(err);
    struct build_pool *pool = l ? build_pool_new(l, &o->nvrtc, &po, err) : NULL;
    if (pool)
        m.links = links_new(l, &lo, &ev, err);
    bool ok = m.links && run(l, pool, &m, err);
    links_free(m.links);
    build_pool_free(pool);
    loop_free(l);
    if (ok)
        *out = m.answer;
    else
        json_free(m.answer);
    return ok || err_wrap(err, "measure the ceilings of %s", o->device.text);
}

#define MAX_ANSWER  65536
#define MAX_COMMAND 64
#define PROBE_MS    120000 /* a login, a queue, a driver */
#define PROBE_NONE  3      /* the exit code of `cutepilot probe` where there is no GPU */

/* ---- another machine's ---- */

/* "ssh gpu1 cutepilot probe cuda:0", which a person can try by hand. */
static str words_of(const char *const *argv, struct arena *a) {
    struct buf b;
    buf_init(&b, 4096);
    for (size_t i = 0; argv[i]; i++)
        buf_printf(&b, "%s%s", i ? " " : "", argv[i]);
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static bool run_probe(const char *const *argv, unsigned limit_ms, struct arena *a, str *out,
                      bool *absent, struct err *err) {
    int status;
    char space[64];
    if (!child_output(argv, MAX_ANSWER, limit_ms, NULL, a, out, &status, err))
        return err_wrap(err, "'%.*s'", STR_ARG(words_of(argv, a)));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    str how = child_status_text(status, space, sizeof space);
    *absent = WIFEXITED(status) && WEXITSTATUS(status) == PROBE_NONE;
    return err_set(err, ERR_ENV, "'%.*s' %s (%.*s)", STR_ARG(words_of(argv, a)),
                   *absent ? "found no GPU" : "did not answer", STR_ARG(how));
}

/* Login banners come before the answer: it is the last line. */
static str last_line(str text) {
    text = str_trim(text);
    size_t at = text.n;
    while (at && text.p[at - 1] != '\n')
        at--;
    return str_from(text, at);
}

static bool ask_there(const struct device_name *d, const char *const *command, unsigned limit_ms,
                      struct gpu_here *out, struct err *err) {
    const char *argv[MAX_COMMAND + 3];
    struct arena *a = arena_new(1 << 20);
    size_t n = 0;
    str text;
    for (; n < MAX_COMMAND && command[n]; n++)
        argv[n] = command[n];
    argv[n++] = "probe";
    argv[n++] = d->text;
    argv[n] = NULL;
    bool ok = run_probe(argv, limit_ms ? limit_ms : PROBE_MS, a, &text, &out->absent, err);
    if (ok) {
        json *j = json_parse(last_line(text), err);
        ok = j &&
             (fields_from_json(&cuda_facts_fields, j, a, &out->facts, err) ||
              err_set(err, ERR_ENV, "'%.*s' gave no facts of a GPU", STR_ARG(words_of(argv, a))));
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
        return PROBE_NONE;
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
    return gpu_here_ask(&(struct worker_place){command, *d}, 0, out, err);
}

bool gpu_here_ask(const struct worker_place *place, unsigned limit_ms, struct gpu_here *out,
                  struct err *err) {
    const struct device_name *d = &place->device;
    *out = (struct gpu_here){0};
    bool ok = place->command ? ask_there(d, place->command, limit_ms, out, err)
                             : gpu_probe(d->ordinal, &out->facts, err);
    if (!ok) {
        struct err why = *err;
        return err_set(err, why.kind,
                       "--device %s: %s\nhint: --device sim runs kernels on the simulator", d->text,
                       why.text);
    }
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
    if (dir_make_private(cache, &ignored)) {
        fd = open(arena_printf(a, "%s/ceilings.lock", cache).p, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd >= 0 && flock(fd, LOCK_EX) != 0) {
            close(fd);
            fd = -1;
        }
    }
    arena_free(a);
    return fd;
}

/* There is a cache, and nobody else can have put there what is read. */
static bool is_usable(const char *cache) {
    struct err ignored;
    return cache && (!file_exists(cache) || dir_check_private(cache, &ignored));
}

static bool have_ceilings(const struct evaluator_options *o, const struct cuda_facts *f,
                          struct ceilings *m, struct err *err) {
    struct err ignored = {0};
    if (!is_usable(o->cache))
        return measure(o, m, err);
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

/* The first place that can be asked: a machine that is down does not end the run of the others, and
 * its worker says what is wrong with it. */
static bool find_first(const struct evaluator_options *o, size_t *at, struct gpu_here *out,
                       struct err *err) {
    for (*at = 0; *at < o->nplaces; ++*at) {
        struct err why = {0};
        if (gpu_here_ask(&o->places[*at], o->hello_ms, out, &why))
            return true;
        if (*at == 0)
            *err = why;
    }
    return false;
}

bool gpu_here_use(struct evaluator_options *o, struct gpu_here *out, struct err *err) {
    struct worker_place here = {.device = o->device};
    struct evaluator_options one = *o; /* of the place that answered, for the ceilings */
    struct ceilings m;
    size_t at = 0;
    if (!o->nplaces) {
        one.places = &here;
        one.nplaces = 1;
    }
    if (!find_first(&one, &at, out, err))
        return false;
    one.places += at;
    one.nplaces = 1;
    one.device = one.places->device;
    one.device.gpu = &out->gpu;
    if (!have_ceilings(&one, &out->facts, &m, err))
        return false;
    o->device = one.device;
    o->memory_bytes = out->facts.memory_free;
    o->facts = &out->facts;
    ceilings_apply(&m, &out->gpu);
    out->measured = true;
    return true;
}
