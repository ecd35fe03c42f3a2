#include "ui/slurm.h"

#include "base/child.h"
#include "base/file.h"
#include "base/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOB_NAME    "cutepilot"
#define WORDS_MOST  128
#define NODES_MOST  4096
#define ANSWER_MOST (8u << 20)
#define ASK_MS      60000 /* for a command that only asks; a controller may be starting anew */
#define END_MS      1000  /* for salloc to give the allocation back */
#define WHY_MS      5000  /* of waiting for an allocation until it is asked why, … */
#define WHY_NEXT_MS 60000 /* … and then now and then */

/* The guard of an allocation. $0 is not used; scancel is for the case that salloc was killed. */
static const char guard[] =
    "echo \"$SLURM_JOB_ID $SLURM_JOB_NODELIST $SLURM_JOB_CPUS_PER_NODE\"; cat > /dev/null; "
    "scancel \"$SLURM_JOB_ID\"";

struct slurm {
    struct loop *loop;
    struct slurm_events ev;
    struct slurm_request request;
    struct arena *arena;
    const char *job;  /* its number; NULL: not granted yet */
    const char *list; /* of its nodes, as Slurm writes it */
    uint64_t cpus;    /* of the node that has the fewest */
    struct slurm_node *nodes;
    size_t n;
    pid_t pid; /* of salloc; 0: the allocation was there, or is over */
    int in, out;
    struct buf said; /* by the guard */
    uint64_t timer, looking, waiting;
    str why; /* it waits, as was said last */
};

bool slurm_named(const char *cluster, struct arena *a, const char **partition) {
    str s = str_view(cluster);
    *partition = NULL;
    if (str_is(s, "slurm"))
        return true;
    if (!str_starts(s, S("slurm:")) || s.n == 6)
        return false;
    *partition = arena_cstr(a, str_from(s, 6));
    return true;
}

/* ---- questions ---- */

/* Standard output of one of Slurm's commands. */
static bool ask(const struct slurm *s, const char *const *argv, str *out, struct err *err) {
    int status;
    if (!child_output(argv, ANSWER_MOST, ASK_MS, s->request.stop, s->arena, out, &status, err))
        return false;
    char space[64];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    str how = child_status_text(status, space, sizeof space);
    return err_set(err, ERR_ENV, "%s: %.*s", argv[0], STR_ARG(how));
}

/* The value of KEY=… in a line of scontrol. */
static str value_of(str line, const char *key) {
    str word;
    while (str_word(&line, ' ', &word))
        if (str_starts(word, str_view(key)) && word.n > strlen(key) && word.p[strlen(key)] == '=')
            return str_from(word, strlen(key) + 1);
    return S("");
}

/* gpu:h100:8(S:0-1) → h100 */
static str gpu_type(str gres) {
    str word, kind, type;
    while (str_word(&gres, ',', &word)) {
        if (!str_word(&word, ':', &kind) || !str_is(kind, "gpu") || !str_word(&word, ':', &type))
            continue;
        if (type.n && (type.p[0] < '0' || type.p[0] > '9'))
            return type;
    }
    return S("");
}

static void find_types(struct slurm *s) {
    const char *argv[] = {"scontrol", "show", "node", "-o", s->list, NULL};
    struct err ignored;
    str text, line;
    if (!ask(s, argv, &text, &ignored))
        return;
    while (str_line(&text, &line))
        for (size_t i = 0; i < s->n; i++)
            if (str_is(value_of(line, "NodeName"), s->nodes[i].name))
                s->nodes[i].type = gpu_type(value_of(line, "Gres"));
}

static bool find_nodes(struct slurm *s, struct err *err) {
    const char *argv[] = {"scontrol", "show", "hostnames", s->list, NULL};
    str text, line;
    if (!ask(s, argv, &text, err))
        return err_wrap(err, "the nodes of the allocation %s", s->job);
    s->nodes = arena_array(s->arena, struct slurm_node, NODES_MOST);
    s->n = 0;
    while (s->n < NODES_MOST && str_line(&text, &line))
        if (str_trim(line).n)
            s->nodes[s->n++].name = arena_cstr(s->arena, str_trim(line));
    if (!s->n)
        return err_set(err, ERR_ENV, "the allocation %s has no nodes", s->job);
    if (s->request.gpus)
        find_types(s);
    return true;
}

/* Whether another allocation may be asked for after this one. */
static bool ended_by_itself(const struct slurm *s, str *state) {
    static const char *const states[] = {"TIMEOUT",   "PREEMPTED", "NODE_FAIL",
                                         "BOOT_FAIL", "REQUEUED",  "REVOKED"};
    const char *argv[] = {"scontrol", "show", "job", "-o", s->job, NULL};
    struct err ignored;
    str text;
    *state = S("unknown");
    if (!ask(s, argv, &text, &ignored))
        return false;
    *state = value_of(text, "JobState");
    for (size_t i = 0; i < sizeof states / sizeof *states; i++)
        if (str_is(*state, states[i]))
            return true;
    return false;
}

/* [D-]HH:MM:SS, MM:SS */
static bool read_duration(str s, uint64_t *seconds) {
    uint64_t days = 0, sum = 0, part;
    size_t dash = str_find(s, S("-"));
    str word;
    if (dash < s.n) {
        if (!str_to_u64(str_cut(s, 0, dash), &days))
            return false;
        s = str_from(s, dash + 1);
    }
    while (str_word(&s, ':', &word)) {
        if (word.n > 1 && word.p[0] == '0')
            word = str_from(word, 1);
        if (!str_to_u64(word, &part))
            return false;
        sum = 60 * sum + part;
    }
    *seconds = 86400 * days + sum;
    return true;
}

bool slurm_left(const struct slurm *s, uint64_t *seconds) {
    const char *argv[] = {"squeue", "-h", "-j", s->job, "-o", "%L", NULL};
    struct err ignored;
    str text;
    return ask(s, argv, &text, &ignored) && read_duration(str_trim(text), seconds);
}

/* The state of our job among all of this user's: asked for by its number, a job that is unknown and
 * a controller that does not answer look the same. False: nobody answered. */
static bool find_state(const struct slurm *s, str *state) {
    const char *argv[] = {"squeue", "-h", "--me", "-o", "%A %T", NULL};
    struct err ignored;
    str text, line, job;
    *state = S("");
    if (!ask(s, argv, &text, &ignored))
        return false;
    while (str_line(&text, &line))
        if (str_word(&line, ' ', &job) && str_is(job, s->job))
            *state = str_trim(line);
    return true;
}

/* A controller that lost its state does not know the job any more, and salloc does not notice. */
static void look(void *ctx) {
    struct slurm *s = ctx;
    struct err why = {0};
    str state;
    s->looking = 0;
    if (s->request.stop && *s->request.stop)
        return;
    if (!find_state(s, &state) || str_is(state, "RUNNING") || str_is(state, "SUSPENDED"))
        return;
    err_set(&why, ERR_ENV, "the allocation %s is gone (%.*s)", s->job,
            STR_ARG(state.n ? state : S("unknown to the controller")));
    s->ev.ended(s->ev.ctx, slurm_is_ours(s), &why);
}

void slurm_look(struct slurm *s) {
    if (s->job && !s->looking)
        s->looking = loop_timer(s->loop, 0, look, s);
}

/* ---- why there is no allocation yet ---- */

/* By how Slurm's reason begins; the first that fits. */
static const struct {
    const char *reason, *means;
} reasons[] = {
    {"PartitionNodeLimit", "the partition has or allows fewer nodes than --nodes asks for"},
    {"PartitionTimeLimit",
     "the partition does not allow that much time: --slurm '--time=HH:MM:SS' asks for less"},
    {"PartitionConfig", "the partition has fewer nodes, or less of something, than is asked for: "
                        "'sinfo' and 'scontrol show partition' tell"},
    {"Partition", "the partition takes no jobs now: 'sinfo' lists the others"},
    {"QOS",
     "a limit of the quality of service: ask for less, or name another by --slurm '--qos=…'"},
    {"Assoc", "a limit of your account: ask for less, or name another by --slurm '--account=…'"},
    {"InvalidAccount", "name an account by --slurm '--account=…'"},
    {"InvalidQOS", "name a quality of service by --slurm '--qos=…'"},
    {"BadConstraints", "no node has what --slurm asks for"},
    {"ReqNodeNotAvail", "nodes that are needed are down, drained or reserved: 'sinfo -R' says why"},
    {"Reservation", "the nodes are reserved for others at the moment"},
    {"Resources", "it begins when enough nodes are free"},
    {"Priority", "others come before it"},
};

static const char *meaning_of(str reason) {
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (str_starts(reason, str_view(reasons[i].reason)))
            return reasons[i].means;
    return "'squeue' and 'sinfo' may tell more";
}

/* Its number is not known yet: by name and user, of whom more than one command may wait. */
static void tell_why(void *ctx) {
    struct slurm *s = ctx;
    const char *user = arena_printf(s->arena, "%lu", (unsigned long)getuid()).p;
    const char *argv[] = {"squeue", "-h", "-u", user,    "-n", JOB_NAME,
                          "-t",     "PD", "-o", "%i %r", NULL};
    struct err ignored;
    str text, line, job;
    s->waiting = loop_timer(s->loop, WHY_NEXT_MS, tell_why, s);
    if (s->job || !ask(s, argv, &text, &ignored) || str_eq(text, s->why))
        return;
    s->why = text;
    while (str_line(&text, &line))
        if (str_word(&line, ' ', &job) && line.n && !str_is(line, "None"))
            complain("cutepilot: allocation %.*s waits (%.*s): %s\n", STR_ARG(job), STR_ARG(line),
                     meaning_of(line));
}

/* ---- an allocation ---- */

static void close_pipes(struct slurm *s) {
    if (s->in >= 0)
        close(s->in);
    if (s->out >= 0) {
        loop_unwatch(s->loop, s->out);
        close(s->out);
    }
    s->in = s->out = -1;
}

static void tell_granted(void *ctx) {
    struct slurm *s = ctx;
    struct err why = {0};
    s->timer = 0;
    if (find_nodes(s, &why))
        s->ev.granted(s->ev.ctx);
    else
        s->ev.ended(s->ev.ctx, false, &why);
}

/* Of 72(x2),36 the least. */
static uint64_t least_cpus(str list) {
    uint64_t least = 0, n;
    str word, number;
    while (str_word(&list, ',', &word))
        if (str_word(&word, '(', &number) && str_to_u64(number, &n) && (!least || n < least))
            least = n;
    return least;
}

/* The guard's one line: the allocation is there. */
static void on_said(void *ctx, int fd, unsigned events) {
    struct slurm *s = ctx;
    char *to = buf_reserve(&s->said, 4096);
    ssize_t n = to ? read(fd, to, 4096) : 0;
    (void)events;
    if (n <= 0) {
        loop_unwatch(s->loop, fd);
        return;
    }
    buf_grown(&s->said, (size_t)n);
    str rest = buf_str(&s->said), line, job, list, cpus;
    if (s->job || !str_whole_lines(rest).n || !str_line(&rest, &line) ||
        !str_word(&line, ' ', &job) || !str_word(&line, ' ', &list))
        return;
    if (str_word(&line, ' ', &cpus))
        s->cpus = least_cpus(cpus);
    s->job = arena_cstr(s->arena, job);
    s->list = arena_cstr(s->arena, list);
    s->timer = loop_timer(s->loop, 0, tell_granted, s);
    loop_timer_cancel(s->loop, s->waiting);
    s->waiting = 0;
}

static void cancel_timers(struct slurm *s) {
    loop_timer_cancel(s->loop, s->timer);
    loop_timer_cancel(s->loop, s->looking);
    loop_timer_cancel(s->loop, s->waiting);
    s->timer = s->looking = s->waiting = 0;
}

static void on_ended(void *ctx, pid_t pid, int status) {
    struct slurm *s = ctx;
    struct err why = {0};
    char space[64];
    bool again = false;
    str state, how = child_status_text(status, space, sizeof space);
    child_kill_rest(pid);
    s->pid = 0;
    close_pipes(s);
    cancel_timers(s);
    if (s->job) {
        again = ended_by_itself(s, &state);
        err_set(&why, ERR_ENV, "the allocation %s is over (%.*s)", s->job, STR_ARG(state));
    } else {
        err_set(&why, ERR_ENV, "salloc got no allocation (%.*s); what it printed says why%s",
                STR_ARG(how),
                s->request.gpus
                    ? "\nhint: 'sinfo -o \"%P %D %G\"' lists partitions with their nodes "
                      "and GPUs; --cluster slurm:PARTITION names one"
                    : "");
    }
    s->ev.ended(s->ev.ctx, again, &why);
}

static const char **salloc_words(const struct slurm *s) {
    const struct slurm_request *r = &s->request;
    const char **w = arena_array(s->arena, const char *, WORDS_MOST);
    size_t n = 0;
    str rest = str_view(r->options), word;
    w[n++] = "salloc";
    w[n++] = "--job-name=" JOB_NAME;
    w[n++] = "--no-kill"; /* the nodes that are left go on */
    w[n++] = arena_printf(s->arena, "--nodes=%lld", (long long)r->nodes).p;
    if (r->partition)
        w[n++] = arena_printf(s->arena, "--partition=%s", r->partition).p;
    if (r->gpus)
        w[n++] = arena_printf(s->arena, "--gpus-per-node=%lld", (long long)r->gpus).p;
    while (n < WORDS_MOST - 4 && str_word(&rest, ' ', &word))
        if (word.n)
            w[n++] = arena_cstr(s->arena, word);
    w[n++] = "sh";
    w[n++] = "-c";
    w[n++] = guard;
    return w;
}

static bool start_salloc(struct slurm *s, struct err *err) {
    int in[2], out[2];
    struct child child;
    if (!pipe_pair(in, err))
        return false;
    if (!pipe_pair(out, err)) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = salloc_words(s), .fds = fds, .nfds = 3};
    bool ok = child_start(&spec, &child, err);
    close(in[0]);
    close(out[1]);
    s->in = in[1];
    s->out = out[0];
    if (!ok)
        return err_set(
            err, ERR_ENV,
            "--cluster slurm: %s\nhint: run this where 'salloc' works, on a login node of "
            "the cluster; GPUs of other machines can be had without Slurm, by "
            "--worker-command 'ssh HOST cutepilot'",
            arena_cstr(s->arena, str_view(err->text)));
    s->pid = child.pid;
    s->waiting = loop_timer(s->loop, WHY_MS, tell_why, s);
    return loop_watch(s->loop, s->out, LOOP_READ, on_said, s, err) &&
           loop_watch_pid(s->loop, child.pid, child.pidfd, on_ended, s, err);
}

static bool find_ours(struct slurm *s) {
    const char *job = getenv("SLURM_JOB_ID"), *list = getenv("SLURM_JOB_NODELIST");
    if (!job || !*job || !list || !*list)
        return false;
    s->job = job;
    s->list = list;
    s->cpus = least_cpus(str_view(getenv("SLURM_JOB_CPUS_PER_NODE")));
    s->timer = loop_timer(s->loop, 0, tell_granted, s);
    return true;
}

struct slurm *slurm_new(struct loop *l, const struct slurm_request *r,
                        const struct slurm_events *ev, struct err *err) {
    struct slurm *s = mem_alloc(sizeof *s);
    s->loop = l;
    s->ev = *ev;
    s->request = *r;
    s->arena = arena_new(64u << 20);
    s->in = s->out = -1;
    buf_init(&s->said, 1u << 20);
    if (find_ours(s) || start_salloc(s, err))
        return s;
    slurm_free(s);
    return NULL;
}

void slurm_free(struct slurm *s) {
    if (!s)
        return;
    cancel_timers(s);
    close_pipes(s); /* the guard's end of file */
    if (s->pid) {
        loop_unwatch_pid(s->loop, s->pid);
        if (!s->job)
            kill(s->pid, SIGTERM); /* it still waits for one */
        if (!child_wait_until(s->pid, clock_ms() + END_MS))
            child_kill(s->pid);
    }
    buf_release(&s->said);
    arena_free(s->arena);
    mem_free(s);
}

bool slurm_is_ours(const struct slurm *s) {
    return s->pid != 0;
}

const char *slurm_job(const struct slurm *s) {
    return s->job;
}

size_t slurm_nodes(const struct slurm *s, const struct slurm_node **nodes) {
    *nodes = s->nodes;
    return s->n;
}

const char **slurm_command(const struct slurm *s, const char *node, uint64_t workers,
                           struct arena *a) {
    uint64_t cpus = s->cpus > workers ? s->cpus / workers : 1;
    const char *const words[] = {
        "srun",
        arena_printf(a, "--jobid=%s", s->job).p,
        "--overlap",
        "--unbuffered",
        "--nodes=1",
        "--ntasks=1",
        "--mpi=none",
        "--kill-on-bad-exit=0",
        arena_printf(a, "--cpus-per-task=%llu", (unsigned long long)cpus).p,
        arena_printf(a, "--nodelist=%s", node).p};
    size_t n = sizeof words / sizeof *words;
    const char **out = arena_array(a, const char *, n + 1);
    memcpy(out, words, sizeof words);
    return out;
}
