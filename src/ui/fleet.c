#include "ui/fleet.h"

#include "base/child.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/say.h"
#include "eval/eval.h"
#include "eval/gpu.h"
#include "ui/slurm.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIES      6     /* of a job whose environment fails: 31 s of waiting between them */
#define WAIT_MS    1000  /* after the first of them; after each further one twice as long */
#define REST_MS    10000 /* of a place where one failed, while there are others */
#define END_MS     3500  /* for jobs to end after a signal */
#define KILL_MS    300   /* … and for those to be gone that did not */
#define POLL_MS    50
#define SAID_MOST  (64u << 20)
#define MARGIN_S   60 /* before the end of an allocation that is not ours to renew */
#define SHORT_MS   10000
#define SHORT_MOST 3 /* allocations in a row that were over at once */
#define WORDS_MOST 512

enum { INTERRUPTED = 4 }; /* exit code of a command that a signal ended */

static const char *const place_options[] = {"cluster",        "nodes", "gpus-per-node", "slurm",
                                            "worker-command", "place", "device",        "workers"};

/* ---- state ---- */

struct slot {
    struct worker_place place;
    str type;
    size_t job; /* that has it; NONE */
    uint64_t rests_until;
};
#define NONE SIZE_MAX

struct run {
    struct fleet_state *r;
    enum { JOB_QUEUED, JOB_RUNNING, JOB_DONE } state;
    pid_t pid;
    int out; /* -1: closed, or not captured */
    struct buf said;
    unsigned tries;
    bool started;         /* once, at least */
    uint64_t waits_until; /* its environment failed, and may need a moment */
    bool again;           /* killed by us, to be started again */
};

struct fleet_state {
    struct fleet *f;
    struct loop *loop;
    struct arena *arena;
    struct run *jobs;
    struct slot *slots;
    size_t nslots, done;
    const char *device; /* of a cluster's places */
    struct slurm *slurm;
    struct slurm_request request;
    uint64_t granted_ms, stop_ms, timer;
    unsigned briefs; /* allocations in a row that were over at once */
    struct err failed;
};

static volatile sig_atomic_t signalled;

static void on_signal(int sig) {
    (void)sig;
    signalled = 1;
}

/* ---- words ---- */

static bool is_one_of(const char *name, const char *const *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, list[i]))
            return true;
    return false;
}

static size_t count(const char *const *list) {
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

const char **fleet_words(struct ui *ui, const char *command, const char *argument,
                         const char *const *without, const char *const *more, struct arena *a) {
    const char **w = arena_array(a, const char *, WORDS_MOST);
    size_t n = 0;
    w[n++] = command;
    for (size_t i = 0; i < ui->set->ndefs && n < WORDS_MOST / 2; i++) {
        const struct option_def *d = &ui->set->defs[i];
        const char *const *list;
        if (!option_given(ui->options, d->name) ||
            is_one_of(d->name, place_options, sizeof place_options / sizeof *place_options) ||
            is_one_of(d->name, without, count(without)))
            continue;
        if (d->kind != OPTION_LIST) {
            w[n++] = arena_printf(a, "--%s=%s", d->name, option_text(ui->options, d->name)).p;
            continue;
        }
        size_t values = option_list(ui->options, d->name, &list);
        for (size_t k = 0; k < values && n < WORDS_MOST / 2; k++)
            w[n++] = arena_printf(a, "--%s=%s", d->name, list[k]).p;
    }
    w[n++] = "--cluster=none"; /* whatever a file or the environment says */
    for (size_t i = 0; more[i]; i++)
        w[n++] = more[i];
    w[n++] = argument;
    return w;
}

/* What it is for: the task of a suite that it is the process of, or its argument. */
static const char *name_of(const struct fleet_job *j) {
    static const char only[] = "--only=";
    size_t n = count(j->words);
    for (size_t i = 0; i < n; i++)
        if (!strncmp(j->words[i], only, sizeof only - 1))
            return j->words[i] + sizeof only - 1;
    return j->words[n - 1];
}

static void put_place(const struct slot *s, struct buf *out) {
    buf_printf(out, "--place=%s", s->place.device.text);
    for (size_t i = 0; s->place.command && s->place.command[i]; i++)
        buf_printf(out, "%c%s", i ? ' ' : '=', s->place.command[i]);
}

/* ---- a job ---- */

static void pump(struct fleet_state *r);

static void free_slots(struct fleet_state *r, size_t job, uint64_t rest_ms) {
    for (size_t i = 0; i < r->nslots; i++)
        if (r->slots[i].job == job) {
            r->slots[i].job = NONE;
            r->slots[i].rests_until = rest_ms ? clock_ms() + rest_ms : 0;
        }
}

static void close_out(struct run *j) {
    if (j->out < 0)
        return;
    loop_unwatch(j->r->loop, j->out);
    close(j->out);
    j->out = -1;
}

/* False: the end, or nothing now. */
static bool read_out(struct run *j) {
    char bytes[65536];
    ssize_t n = j->out >= 0 ? read(j->out, bytes, sizeof bytes) : 0;
    if (n > 0)
        buf_put(&j->said, bytes, (size_t)n);
    return n > 0;
}

static void on_out(void *ctx, int fd, unsigned events) {
    struct run *j = ctx;
    (void)fd, (void)events;
    if (!read_out(j))
        close_out(j);
}

static void wake(void *ctx) {
    struct fleet_state *r = ctx;
    r->timer = 0;
    pump(r);
}

static void on_ended(void *ctx, pid_t pid, int status) {
    struct run *j = ctx;
    struct fleet_state *r = j->r;
    size_t index = (size_t)(j - r->jobs);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : ERR_ENV;
    bool stopping = r->stop_ms != 0, failed = code == ERR_ENV && !j->again && !stopping;
    child_kill_rest(pid);
    while (read_out(j))
        ;
    close_out(j);
    j->pid = 0;
    free_slots(r, index, failed && r->nslots > 1 ? REST_MS : 0);
    if (j->again || (failed && ++j->tries < TRIES)) {
        j->again = false;
        j->state = JOB_QUEUED;
        buf_clear(&j->said);
        if (failed) {
            /* A controller that starts anew, for one, refuses steps on every node for seconds. */
            uint64_t wait_ms = (uint64_t)WAIT_MS << (j->tries - 1);
            j->waits_until = clock_ms() + wait_ms;
            complain("cutepilot: %s is started again in %u s\n", name_of(&r->f->jobs[index]),
                     (unsigned)(wait_ms / 1000));
        }
    } else {
        j->state = JOB_DONE;
        r->done++;
        r->f->done(r->f->ctx, index, code, buf_str(&j->said));
        buf_release(&j->said);
        buf_init(&j->said, SAID_MOST);
    }
    if (failed && r->slurm)
        slurm_look(r->slurm);
    pump(r);
}

static bool start(struct run *j, const char *const *argv, struct err *err) {
    struct fleet_state *r = j->r;
    int out[2] = {-1, STDOUT_FILENO};
    struct child child;
    if (r->f->captured && !pipe_pair(out, err))
        return false;
    struct child_fd fds[] = {{out[1], 1}, {2, 2}};
    /* A coordinator as we are: it may need the keys of model servers. */
    struct child_spec spec = {
        .argv = argv, .env = (const char *const *)environ, .fds = fds, .nfds = 2};
    bool ok = child_start(&spec, &child, err);
    if (r->f->captured)
        close(out[1]);
    if (!ok) {
        if (out[0] >= 0)
            close(out[0]);
        return false;
    }
    j->pid = child.pid;
    j->out = out[0];
    j->state = JOB_RUNNING;
    j->started = true;
    return (j->out < 0 || loop_watch(r->loop, j->out, LOOP_READ, on_out, j, err)) &&
           loop_watch_pid(r->loop, child.pid, child.pidfd, on_ended, j, err);
}

/* ---- who has which places ---- */

static bool is_free(const struct slot *s, str type) {
    return s->job == NONE && s->rests_until <= clock_ms() && (!type.n || str_eq(s->type, type));
}

static size_t count_free(const struct fleet_state *r, str type) {
    size_t n = 0;
    for (size_t i = 0; i < r->nslots; i++)
        n += is_free(&r->slots[i], type);
    return n;
}

static size_t count_queued(const struct fleet_state *r, str type) {
    size_t n = 0;
    for (size_t i = 0; i < r->f->n; i++)
        n += r->jobs[i].state == JOB_QUEUED && str_eq(r->f->jobs[i].type, type);
    return n;
}

/* The types in turns, by place, so that each has its share; of a single job the most frequent. */
static str choose_type(const struct fleet_state *r, size_t job) {
    size_t best = 0, most = 0;
    if (r->f->n > 1)
        return r->slots[job % r->nslots].type;
    for (size_t i = 0; i < r->nslots; i++) {
        size_t n = 0;
        for (size_t k = 0; k < r->nslots; k++)
            n += str_eq(r->slots[k].type, r->slots[i].type);
        if (n > most) {
            most = n;
            best = i;
        }
    }
    return r->slots[best].type;
}

static bool has_type(const struct fleet_state *r, str type) {
    for (size_t i = 0; i < r->nslots; i++)
        if (str_eq(r->slots[i].type, type))
            return true;
    return false;
}

/* A type that no place has any more is chosen anew. */
static void settle_type(const struct fleet_state *r, size_t job) {
    str *type = &r->f->jobs[job].type;
    if (type->n && has_type(r, *type))
        return;
    *type = arena_str(r->f->ui->arena, choose_type(r, job));
}

static bool launch(struct fleet_state *r, size_t job, size_t places, struct err *err) {
    const struct fleet_job *f = &r->f->jobs[job];
    const char **argv = arena_array(r->arena, const char *, WORDS_MOST + r->nslots);
    size_t n = 0, given = 0, words = count(f->words);
    argv[n++] = arena_cstr(r->arena, self_path(r->arena));
    for (size_t i = 0; i + 1 < words; i++) /* the last one is the argument */
        if (!r->jobs[job].started || strcmp(f->words[i], "--fresh=yes") != 0)
            argv[n++] = f->words[i]; /* a job that is started again goes on with what it has */
    for (size_t i = 0; i < r->nslots && given < places; i++) {
        struct buf b;
        if (!is_free(&r->slots[i], f->type))
            continue;
        r->slots[i].job = job;
        given++;
        buf_init(&b, 65536);
        put_place(&r->slots[i], &b);
        argv[n++] = arena_cstr(r->arena, buf_str(&b));
        buf_release(&b);
    }
    argv[n++] = arena_printf(r->arena, "--workers=%zu", given).p;
    argv[n++] = f->words[words - 1];
    argv[n] = NULL;
    return start(&r->jobs[job], argv, err);
}

static void fail(struct fleet_state *r, const struct err *why) {
    if (!r->failed.kind)
        r->failed = *why;
}

/* Starts what can be started. Where there are more free places than jobs, a job gets several. */
static void pump(struct fleet_state *r) {
    struct err err = {0};
    bool waits = false;
    if (!r->nslots || r->stop_ms)
        return;
    for (size_t i = 0; i < r->f->n; i++)
        if (r->jobs[i].state == JOB_QUEUED)
            settle_type(r, i);
    for (size_t i = 0; i < r->f->n && !r->failed.kind; i++) {
        const struct fleet_job *f = &r->f->jobs[i];
        if (r->jobs[i].state != JOB_QUEUED)
            continue;
        size_t have = count_free(r, f->type), share = have / count_queued(r, f->type);
        share = share < 1 ? 1 : share > f->most ? f->most : share;
        if (!have || r->jobs[i].waits_until > clock_ms())
            waits = true;
        else if (!launch(r, i, share, &err))
            fail(r, &err);
        else if (r->f->begun)
            r->f->begun(r->f->ctx);
    }
    if (waits && !r->timer) /* for places that rest, and jobs that wait */
        r->timer = loop_timer(r->loop, 1000, wake, r);
}

/* ---- places ---- */

/* The simulator's by what it stands for, a GPU's by its name. */
static bool find_type(struct fleet_state *r, const struct worker_place *p, str *type,
                      struct err *err) {
    unsigned limit_ms = 1000 * (unsigned)option_int(r->f->ui->options, "hello-limit");
    struct gpu_here here;
    bool sim = p->device.kind == DEVICE_SIM;
    if (!sim && !gpu_here_ask(p, limit_ms, &here, err))
        return false;
    *type = sim ? str_view(p->device.text) : arena_str(r->arena, str_view(here.facts.name));
    return true;
}

static bool check_types(const struct fleet_state *r, struct err *err) {
    const struct fleet *f = r->f;
    for (size_t i = 0; i < f->n && f->may_change; i++)
        if (f->jobs[i].type.n && !has_type(r, f->jobs[i].type) && !f->may_change(f->ctx, i, err))
            return false;
    return true;
}

/* A place that cannot be asked for its GPU is left out, or tasks would wait for it. */
static bool use_places(struct fleet_state *r, struct err *err) {
    struct worker_place *places;
    size_t n;
    const char *device = option_text(r->f->ui->options, "device");
    if (!ui_places(r->f->ui, device, true, &places, &n, err))
        return false;
    r->slots = arena_array(r->arena, struct slot, n);
    for (size_t i = 0; i < n; i++) {
        struct slot s = {.place = places[i], .job = NONE};
        struct err why = {0};
        if (find_type(r, &places[i], &s.type, &why)) {
            r->slots[r->nslots++] = s;
        } else {
            complain("cutepilot: %s\nThis device is left out.\n", why.text);
        }
    }
    if (!r->nslots)
        return err_set(err, ERR_ENV, "no device can be used");
    if (!check_types(r, err))
        return false;
    pump(r);
    return true;
}

static bool add_node(struct fleet_state *r, const struct slurm_node *node, struct err *err) {
    size_t each = (size_t)option_int(r->f->ui->options, "gpus-per-node");
    const char **command = slurm_command(r->slurm, node->name, each, r->arena);
    size_t n = count(command);
    const char **whole = arena_array(r->arena, const char *, n + 2);
    memcpy(whole, command, n * sizeof *command);
    whole[n] = arena_cstr(r->arena, self_path(r->arena));
    for (size_t i = 0; i < each; i++) {
        struct slot s = {.job = NONE, .type = node->type, .place.command = whole};
        const char *device =
            strcmp(r->device, "cuda") != 0 ? r->device : arena_printf(r->arena, "cuda:%zu", i).p;
        if (!device_name_parse(device, r->arena, &s.place.device, err))
            return false;
        if (s.place.device.kind == DEVICE_SIM)
            s.type = arena_str(r->arena, str_view(s.place.device.text));
        r->slots[r->nslots++] = s;
    }
    return true;
}

static void near_the_end(void *ctx) {
    struct fleet_state *r = ctx;
    (void)r;
    complain(
        "cutepilot: the allocation comes to its end: runs end with their best; the same command "
        "goes on with them\n");
    signalled = 1;
}

/* An allocation that was there ends with this process in it, and not without warning. */
static void heed_its_end(struct fleet_state *r) {
    uint64_t left;
    if (slurm_is_ours(r->slurm) || !slurm_left(r->slurm, &left))
        return;
    uint64_t margin = left < 10 * MARGIN_S ? left / 10 : MARGIN_S;
    loop_timer(r->loop, 1000 * (left - margin), near_the_end, r);
}

static void on_granted(void *ctx) {
    struct fleet_state *r = ctx;
    const struct slurm_node *nodes;
    struct err err = {0};
    size_t n = slurm_nodes(r->slurm, &nodes);
    r->granted_ms = clock_ms();
    r->nslots = 0;
    r->slots = arena_array(r->arena, struct slot,
                           n * (size_t)option_int(r->f->ui->options, "gpus-per-node"));
    for (size_t i = 0; i < n; i++)
        if (!add_node(r, &nodes[i], &err)) {
            fail(r, &err);
            return;
        }
    complain("cutepilot: allocation %s: %zu node%s, %zu worker%s\n", slurm_job(r->slurm), n,
             n == 1 ? "" : "s", r->nslots, r->nslots == 1 ? "" : "s");
    heed_its_end(r);
    pump(r);
}

static void on_allocation_ended(void *ctx, bool again, const struct err *why);

static bool ask_for_nodes(struct fleet_state *r, struct err *err) {
    struct slurm_events ev = {r, on_granted, on_allocation_ended};
    r->slurm = slurm_new(r->loop, &r->request, &ev, err);
    return r->slurm != NULL;
}

static void ask_again(void *ctx) {
    struct fleet_state *r = ctx;
    struct err err = {0};
    slurm_free(r->slurm);
    if (!ask_for_nodes(r, &err))
        fail(r, &err);
}

/* Its workers are gone. What runs is stopped at once, and begins anew on the next nodes with what
 * it has recorded. */
static void on_allocation_ended(void *ctx, bool again, const struct err *why) {
    struct fleet_state *r = ctx;
    r->nslots = 0;
    loop_timer_cancel(r->loop, r->timer);
    r->timer = 0;
    r->briefs = clock_ms() - r->granted_ms < SHORT_MS ? r->briefs + 1 : 0;
    for (size_t i = 0; i < r->f->n; i++)
        if (r->jobs[i].pid && !r->stop_ms) {
            r->jobs[i].again = true;
            child_kill(r->jobs[i].pid);
        }
    if (!again || r->briefs >= SHORT_MOST || r->stop_ms) {
        fail(r, why);
        return;
    }
    complain("cutepilot: %s; another one is asked for\n", why->text);
    loop_timer(r->loop, 0, ask_again, r);
}

static bool cluster_places(struct fleet_state *r, const char *cluster, struct err *err) {
    const struct options *o = r->f->ui->options;
    const char *device = option_text(o, "device");
    r->request = (struct slurm_request){
        .nodes = option_int(o, "nodes"), .options = option_text(o, "slurm"), .stop = &signalled};
    if (!slurm_named(cluster, r->arena, &r->request.partition))
        return err_set(err, ERR_INPUT,
                       "--cluster %s: expected slurm or slurm:PARTITION, or none for no cluster",
                       cluster);
    r->device = strcmp(device, "auto") ? device : "cuda";
    if (!str_starts(str_view(r->device), S("sim")) && strcmp(r->device, "cuda") != 0)
        return err_set(err, ERR_INPUT,
                       "--device %s: on a cluster it is cuda, all GPUs of a node by "
                       "--gpus-per-node, or the simulator",
                       device);
    if (!strcmp(r->device, "cuda"))
        r->request.gpus = option_int(o, "gpus-per-node");
    return ask_for_nodes(r, err);
}

bool fleet_asked_for(struct ui *ui, bool here, size_t *places, struct err *err) {
    const struct options *o = ui->options;
    struct worker_place *list;
    *places = 0;
    if (strcmp(option_text(o, "cluster"), "none") != 0)
        *places = (size_t)(option_int(o, "nodes") * option_int(o, "gpus-per-node"));
    else if (here && !ui_places(ui, option_text(o, "device"), true, &list, places, err))
        return false;
    else if (*places == 1)
        *places = 0;
    return true;
}

/* ---- the whole ---- */

static void stop_all(struct fleet_state *r) {
    r->stop_ms = clock_ms();
    r->f->interrupted = true;
    for (size_t i = 0; i < r->f->n; i++)
        if (r->jobs[i].pid)
            kill(r->jobs[i].pid, SIGTERM);
}

static bool any_runs(const struct fleet_state *r) {
    for (size_t i = 0; i < r->f->n; i++)
        if (r->jobs[i].pid)
            return true;
    return false;
}

static bool goes_on(struct fleet_state *r) {
    if (signalled && !r->stop_ms)
        stop_all(r);
    if (r->failed.kind)
        return false;
    if (r->stop_ms)
        return any_runs(r) && clock_ms() - r->stop_ms < END_MS;
    return r->done < r->f->n;
}

static void release(struct fleet_state *r) {
    for (size_t i = 0; i < r->f->n; i++)
        if (r->jobs[i].pid) {
            loop_unwatch_pid(r->loop, r->jobs[i].pid);
            child_kill(r->jobs[i].pid);
        }
    uint64_t until = clock_ms() + KILL_MS;
    for (size_t i = 0; i < r->f->n; i++) {
        struct run *j = &r->jobs[i];
        if (j->pid)
            child_wait_until(j->pid, until);
        close_out(j);
        buf_release(&j->said);
    }
    slurm_free(r->slurm);
    loop_free(r->loop);
    mem_free(r->jobs);
    arena_free(r->arena);
}

bool fleet_run(struct fleet *f, struct err *err) {
    struct fleet_state r = {.f = f, .arena = arena_new((size_t)1 << 30)};
    const char *cluster = option_text(f->ui->options, "cluster");
    r.jobs = mem_alloc((f->n + 1) * sizeof *r.jobs);
    for (size_t i = 0; i < f->n; i++) {
        r.jobs[i] = (struct run){.r = &r, .out = -1};
        buf_init(&r.jobs[i].said, SAID_MOST);
    }
    ui_catch_signals(on_signal);
    r.loop = loop_new(err);
    bool ok = r.loop && (strcmp(cluster, "none") != 0 ? cluster_places(&r, cluster, err)
                                                      : use_places(&r, err));
    while (ok && goes_on(&r))
        ok = loop_step(r.loop, POLL_MS, err);
    if (ok && r.failed.kind && !r.stop_ms) {
        *err = r.failed;
        ok = false;
    }
    release(&r);
    return ok;
}

/* ---- one command ---- */

struct alone {
    int code;
};

static void alone_done(void *ctx, size_t job, int code, str said) {
    struct alone *a = ctx;
    (void)job, (void)said;
    a->code = code;
}

int fleet_run_command(struct ui *ui, const char *command, size_t most) {
    static const char *const none[] = {NULL};
    char *const *args;
    struct err err = {0};
    struct alone a = {.code = -1};
    options_args(ui->options, &args);
    struct fleet_job job = {.words = fleet_words(ui, command, args[0], none, none, ui->arena),
                            .most = most};
    struct fleet f = {.ui = ui, .jobs = &job, .n = 1, .done = alone_done, .ctx = &a};
    if (!fleet_run(&f, &err))
        return ui_fail(ui, &err);
    return a.code >= 0 ? a.code : f.interrupted ? INTERRUPTED : ERR_ENV;
}
