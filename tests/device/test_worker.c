/* The worker's walk through a job, with a device and a judge that do as they are told: this program
 * is its own worker, device and judge. What they are to do is a number in the job's shape, and what
 * a module does is its one byte: */
#include "base/child.h"
#include "base/frame.h"
#include "device/role.h"
#include "device/wire.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum module {
    FINE = 'a', /* and the letters after it, by which their times are told */
    ONCE = 'm', /* has a step that is done once; without it, it takes half the time */
    REFUSED = 'p',
    DEADLY_TO_LOAD,
    DEADLY,
    ENDLESS,
    LARGE, /* asks for more memory than there is */
};

enum script {
    ALL_RIGHT,
    WRONG_AT_CASE_1,
    DRIFTS,    /* right for two rounds, wrong ever after */
    UNSTABLE,  /* wrong once, in the third round */
    DIES_ONCE, /* the first device process, in its run */
    DIES_ALWAYS,
    HANGS,
    WAITS,        /* for a processor, longer than its limit */
    FAULTS,       /* a verdict of the device's own */
    RIVAL_LEAVES, /* the rival ends the first device; the candidate ends the next one once */
    RIVAL_WRONG,
    JUDGE_DIES_ONCE,
    JUDGE_ERRS_FIRST, /* the first judge process, whatever it is asked */
    JUDGE_DIES_ALWAYS,
    JUDGE_DIES_IN_RUN,  /* of its fourth process, which hangs */
    JUDGE_STAYS,        /* and the first device dies; wrong where there was another judge */
    REMEMBERS,          /* takes a third longer on a content that it has not run before */
    REMEMBERS_AT_FIRST, /* … in the first two rounds only */
    NOISY,              /* samples scatter by a hundredth, and the clock rises */
    WRONG_LATE_CONTENT, /* what the first round did not have is wrong */
};

/* ---- the roles ---- */

static int64_t number(const json *o, const char *key) {
    int64_t v = -1;
    json_get_i64(o, key, &v);
    return v;
}

static json *verdict(const char *v, int64_t at) {
    json *j = json_object();
    json_set_str(j, "verdict", str_view(v));
    json_set_str(j, "why", strcmp(v, "accepted") ? S("because") : S(""));
    json_set_i64(j, "at", at);
    return j;
}

static void say(uint32_t type, json *head) {
    struct err err = {0};
    if (!frame_write(ROLE_FD, type, head, (str){0}, NULL, 0, &err))
        _exit(3);
    json_free(head);
}

/* Contents that a role has met, by kind and seed. */
struct contents {
    char text[64][64];
    size_t n;
};

/* The content's number, from 1; *is_new: it was not met before. */
static size_t content_of(struct contents *c, const json *one, bool *is_new) {
    str data = S(""), seed = S("");
    char text[64];
    json_get_str(one, "data", &data);
    json_get_str(one, "seed", &seed);
    snprintf(text, sizeof text, "%.*s %.*s", STR_ARG(data), STR_ARG(seed));
    *is_new = false;
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->text[i], text))
            return i + 1;
    *is_new = c->n < 64;
    if (*is_new)
        memcpy(c->text[c->n++], text, sizeof text);
    return c->n;
}

/* What the judge tells the device beside the worker: where a case's only tensor is. */
static const json *told(const json *one) {
    return json_at(json_get(one, "tensors"), 0);
}

struct fake_device {
    char modules[16]; /* by place */
    bool met[65];     /* contents, by number */
    uint64_t runs, batches;
};

static char module_of(const struct fake_device *d, const json *runs, size_t run) {
    int64_t place = 0;
    json_to_i64(json_at(json_at(runs, run), 1), &place);
    return d->modules[place];
}

/* The run of the module in a place, in an order that only the message tells. */
static int64_t run_of(const json *runs, int64_t place) {
    int64_t p = -1;
    for (size_t i = 0; i < json_len(runs); i++)
        if (json_to_i64(json_at(json_at(runs, i), 1), &p) && p == place)
            return (int64_t)i;
    return 0;
}

static void device_load(struct fake_device *d, const struct frame *f) {
    memset(d->modules, 0, sizeof d->modules);
    memcpy(d->modules, f->blob.p, f->blob.n);
    const char *refused = strchr(d->modules, REFUSED);
    if (strchr(d->modules, DEADLY_TO_LOAD))
        _exit(7);
    if (refused)
        say(WIRE_LOADED, verdict("launch-error", refused - d->modules));
    else
        say(WIRE_LOADED, verdict("accepted", 0));
}

/* Ends or hangs where the script or a module of the batch says so. */
static void device_fail(const struct fake_device *d, int64_t script, int64_t process,
                        const json *runs) {
    static int count;
    if (script == DIES_ALWAYS || ((script == DIES_ONCE || script == JUDGE_STAYS) && process == 1))
        _exit(7);
    while (script == JUDGE_DIES_IN_RUN && ++count >= 4)
        pause();
    if (script == RIVAL_LEAVES && process == 2)
        _exit(7);
    for (size_t i = 0; i < json_len(runs); i++) {
        if (module_of(d, runs, i) == DEADLY)
            _exit(7);
        while (module_of(d, runs, i) == ENDLESS)
            ;
        while (script == HANGS)
            pause();
    }
    if (script == WAITS)
        usleep(900000);
}

/* How long a run takes, in units of its module's time. */
static double run_takes(struct fake_device *d, int64_t script, const json *one) {
    static const double scatter[] = {0, 0.6, -1.2, 0.3, 1.1, -0.4, -0.9, 0.8, 0.1, -0.2, 0.5};
    int64_t content = number(told(one), "bytes");
    bool first = !d->met[content];
    d->met[content] = true;
    uint64_t n = d->runs++;
    if (script < REMEMBERS)
        return 1;
    double t = 1 + 0.01 * scatter[n % 11] - 0.0005 * (double)n;
    bool slow = script == REMEMBERS || (script == REMEMBERS_AT_FIRST && d->batches <= 2);
    return slow && first ? 1.33 * t : t;
}

/* A tenth of a millisecond apart by module, so that a test can tell whose they are. */
static void device_run(struct fake_device *d, const struct frame *f) {
    const json *first = json_at(json_get(f->head, "cases"), 0), *runs = json_get(f->head, "runs");
    int64_t script = number(told(first), "buffer"), process = number(told(first), "offset");
    bool timed = false, prepared = false;
    json_get_bool(f->head, "timed", &timed);
    json_get_bool(f->head, "prepared", &prepared);
    d->batches++;
    device_fail(d, script, process, runs);
    if (script == RIVAL_LEAVES && process == 1) {
        json *j = verdict("out-of-bounds", run_of(runs, 1));
        json_set_bool(j, "leaving", true);
        say(WIRE_RAN, j);
        for (;;) /* its end takes long */
            pause();
    }
    if (script == FAULTS) {
        say(WIRE_RAN, verdict("out-of-bounds", 1));
        return;
    }
    json *j = verdict("accepted", 0), *times = json_array(), *host = json_array();
    for (size_t i = 0; timed && i < json_len(runs); i++) {
        int64_t at = 0;
        json_to_i64(json_at(json_at(runs, i), 0), &at);
        const json *one = json_at(json_get(f->head, "cases"), (size_t)at);
        double module = 1 + module_of(d, runs, i) - FINE;
        double s = module * 1e-4 * run_takes(d, script, one) * (prepared ? 0.5 : 1);
        json_push_f64(times, s);
        json_push_f64(host, 1.1 * s);
    }
    json_set(j, "times_s", times);
    json_set(j, "host_s", host);
    say(WIRE_RAN, j);
}

static void device_serve(struct fake_device *d, const struct frame *f) {
    if (f->type == WIRE_LOAD)
        device_load(d, f);
    else if (f->type == WIRE_RUN)
        device_run(d, f);
}

struct fake_judge {
    int64_t script, device, late; /* late: a case that came after the first round, or -1 */
    size_t cases, compared;
    struct contents met;
};

static void judge_prepare(struct fake_judge *j, const json *head) {
    if (json_len(json_get(head, "workspaces"))) {
        say(WIRE_CASE, verdict("out-of-memory", 0));
        return;
    }
    json *out = json_object(), *cases = json_array(), *buffers = json_object();
    j->script = number(json_get(head, "set"), "script");
    j->device = number(head, "device");
    j->cases = json_len(json_get(head, "cases"));
    json_set(buffers, "buffers", json_array());
    say(WIRE_BUFFERS, buffers);
    j->late = -1;
    for (size_t i = 0; i < j->cases; i++) {
        const json *given = json_at(json_get(head, "cases"), i);
        json *c = json_object(), *tensors = json_array(), *span = json_object();
        bool is_new;
        json_set_i64(span, "buffer", j->script);
        json_set_i64(span, "offset", j->device);
        json_set_i64(span, "bytes", (int64_t)content_of(&j->met, given, &is_new));
        json_push(tensors, span);
        json_set(c, "tensors", tensors);
        json_push(cases, c);
        if (is_new && j->compared)
            j->late = (int64_t)i;
    }
    json_set(out, "cases", cases);
    say(WIRE_CASE, out);
    if (j->script == JUDGE_DIES_IN_RUN) {
        usleep(50000);
        _exit(7);
    }
}

static void judge_compare(struct fake_judge *j, bool first_process) {
    size_t n = j->compared++;
    if (j->script == JUDGE_ERRS_FIRST && first_process) {
        json *why = json_object();
        json_set_str(why, "why", S("in a bad way"));
        say(WIRE_ERROR, why);
        return;
    }
    if (j->script == JUDGE_DIES_ALWAYS || (j->script == JUDGE_DIES_ONCE && first_process))
        _exit(7);
    if (j->script == WRONG_AT_CASE_1 || (j->script == JUDGE_STAYS && !first_process) ||
        (j->script == DRIFTS && n >= 2) || (j->script == UNSTABLE && n == 2))
        say(WIRE_JUDGED, verdict("wrong", 1));
    else if (j->script == WRONG_LATE_CONTENT && j->late >= 0)
        say(WIRE_JUDGED, verdict("wrong", j->late));
    else if (j->script == RIVAL_WRONG && n == 0)
        say(WIRE_JUDGED, verdict("wrong", 1)); /* case 1 of round 0 is the rival's */
    else
        say(WIRE_JUDGED, verdict("accepted", 0));
}

/* A worker's children may write nothing, but the first to read a pipe gets what is in it. */
static bool first_of_its_kind(const char *pipe) {
    char c;
    int fd = open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    bool first = fd >= 0 && read(fd, &c, 1) == 1;
    close(fd);
    return first;
}

/* Devices after the first one may be slow to start, or never come to it. */
static void start_as_told(bool first) {
    const char *ms = getenv("LATER_MS");
    if (ms && !first)
        usleep((useconds_t)strtoul(ms, NULL, 10) * 1000);
}

static int play(const char *role) {
    struct sandbox_report none = {0};
    struct fake_device d = {0};
    struct fake_judge j = {0};
    struct err err = {0};
    struct frame f = {0};
    bool judge = !strcmp(role, "judge"),
         first = first_of_its_kind(getenv(judge ? "JUDGED" : "RAN"));
    if (!judge)
        start_as_told(first);
    if (!role_hello(ROLE_FD, role, &none, NULL, &err))
        return 3;
    while (frame_read(ROLE_FD, 0, &f, &err) > 0) {
        if (judge && f.type == WIRE_PREPARE)
            judge_prepare(&j, f.head);
        else if (judge && f.type == WIRE_COMPARE)
            judge_compare(&j, first);
        else if (!judge)
            device_serve(&d, &f);
        frame_release(&f);
    }
    return 0;
}

/* ---- the coordinator ---- */

struct answer {
    struct frame f;
    char verdict[64];
};

/* A plan that does nothing, with a workspace where it is to ask for too much. */
static json *plan_of(char module) {
    struct bound_workspace work = {S("w"), DTYPE_F32, 4, PLAN_ALIGN};
    struct bound_launch launch = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .cluster = {1, 1, 1}};
    struct bound_step step = {PLAN_LAUNCH, 0};
    struct bound_plan p = {.workspaces = &work, .nworkspaces = module == LARGE};
    if (module == ONCE) {
        p.launches = &launch;
        p.steps = &step;
        p.nlaunches = p.nsteps = p.once_steps = 1;
    }
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        p.align[i] = PLAN_ALIGN;
    return fields_to_json(&bound_plan_fields, &p);
}

/* Only what hangs is to run into its limit: a busy machine may leave anyone waiting for a while. */
static json *job(enum script script, const char *modules, bool timed) {
    const char *text =
        "{\"job\": 1, \"time\": {\"samples\": 8, \"budget_ms\": 60000},"
        " \"shapes\": [{\"label\": \"N=1\", \"set\": {\"script\": 0}}],"
        " \"batches\": [{\"shape\": 0, \"cases\": [{\"data\": \"stated\", \"seed\": \"1\"},"
        " {\"data\": \"signed\", \"seed\": \"1\"}]}]}";
    struct err err = {0};
    json *j = json_parse(str_view(text), &err), *list = json_array(), *plans = json_array();
    json *shape = (json *)json_at(json_get(j, "shapes"), 0);
    for (const char *m = modules; *m; m++) {
        json_push_i64(list, 1);
        json_push(plans, plan_of(*m));
    }
    json_set(j, "modules", list);
    json_set(shape, "plans", plans);
    json_set_i64(j, "limit_ms",
                 script == HANGS || script == WAITS || strchr(modules, ENDLESS) ? 400 : 60000);
    json_set_i64((json *)json_get(shape, "set"), "script", script);
    json_set_bool((json *)json_at(json_get(j, "batches"), 0), "timed", timed);
    return j;
}

/* Everything but signs of life, until an answer to the job. */
static bool next_answer(int fd, struct answer *out) {
    struct err err = {0};
    do {
        frame_release(&out->f);
        memset(&out->f, 0, sizeof out->f);
        if (frame_read(fd, 0, &out->f, &err) <= 0)
            return false;
    } while (out->f.type != WIRE_RESULT && out->f.type != WIRE_FAILED);
    str v = S("");
    json_get_str(out->f.head, "verdict", &v);
    snprintf(out->verdict, sizeof out->verdict, "%.*s", STR_ARG(v));
    return true;
}

struct running {
    struct child child;
    int in, out;
    int tokens[2];
    char folder[40], pipes[2][64]; /* read first by the first of their kind */
};

static void token_make(struct running *r, size_t i, const char *name) {
    snprintf(r->pipes[i], sizeof r->pipes[i], "%s/%s", r->folder, name);
    setenv(name, r->pipes[i], 1);
    CHECK(mkfifo(r->pipes[i], 0600) == 0);
    r->tokens[i] = open(r->pipes[i], O_RDWR | O_CLOEXEC);
    CHECK(write(r->tokens[i], "1", 1) == 1);
}

static void start(struct running *r) {
    char self[4096] = "";
    struct err err = {0};
    int in[2], out[2];
    snprintf(r->folder, sizeof r->folder, "/tmp/cutepilot-worker-XXXXXX");
    CHECK(mkdtemp(r->folder) && readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    token_make(r, 0, "JUDGED");
    token_make(r, 1, "RAN");
    CHECK(pipe_pair(in, &err) && pipe_pair(out, &err));
    const char *argv[] = {self, "worker", NULL};
    struct child_fd fds[] = {{in[0], 0}, {out[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = argv, .fds = fds, .nfds = 3};
    CHECKF(child_start(&spec, &r->child, &err), "%s", err.text);
    close(in[0]);
    close(out[1]);
    r->in = in[1];
    r->out = out[0];
}

static void send_job(const struct running *r, int64_t id, enum script script, const char *modules,
                     bool timed) {
    struct err err = {0};
    json *j = job(script, modules, timed);
    json_set_i64(j, "job", id);
    CHECK(frame_write(r->in, WIRE_JOB, j, str_view(modules), NULL, 0, &err));
    json_free(j);
}

static void send_limited(const struct running *r, int64_t id, enum script script, int64_t ms) {
    struct err err = {0};
    json *j = job(script, "a", false);
    json_set_i64(j, "job", id);
    json_set_i64(j, "limit_ms", ms);
    CHECK(frame_write(r->in, WIRE_JOB, j, S("a"), NULL, 0, &err));
    json_free(j);
}

/* End of file ends a worker. Returns its exit code. */
static int end(struct running *r) {
    close(r->in);
    int status = child_wait(&r->child);
    close(r->out);
    for (size_t i = 0; i < 2; i++) {
        close(r->tokens[i]);
        unlink(r->pipes[i]);
    }
    rmdir(r->folder);
    CHECKF(WIFEXITED(status), "status %x", status);
    return WEXITSTATUS(status);
}

static struct answer run_job(enum script script, const char *modules, bool timed) {
    struct answer a = {0};
    struct running r;
    start(&r);
    send_job(&r, 1, script, modules, timed);
    CHECK(next_answer(r.out, &a));
    CHECK(end(&r) == 0);
    return a;
}

static void ends_with(enum script script, bool timed, const char *wanted) {
    struct answer a = run_job(script, "a", timed);
    CHECKF(!strcmp(a.verdict, wanted), "script %d: %s instead of %s", script, a.verdict, wanted);
    frame_release(&a.f);
}

static void a_right_candidate_is_accepted_with_its_times(void) {
    struct answer a = run_job(ALL_RIGHT, "a", true);
    CHECK(!strcmp(a.verdict, "accepted"));
    const json *times = json_get(a.f.head, "times");
    CHECK(json_len(times) == 1);
    CHECK(json_len(json_get(json_at(times, 0), "samples_s")) >= 8);
    CHECK(json_len(json_get(a.f.head, "runs")) == 2); /* evidence of one round */
    frame_release(&a.f);
    ends_with(ALL_RIGHT, false, "accepted");
}

static void a_wrong_one_says_where(void) {
    struct answer a = run_job(WRONG_AT_CASE_1, "a", false);
    str shape = {0}, data = {0}, why = {0};
    json_get_str(a.f.head, "shape", &shape);
    json_get_str(a.f.head, "data", &data);
    json_get_str(a.f.head, "why", &why);
    CHECK(!strcmp(a.verdict, "wrong") && str_is(shape, "N=1") && str_is(data, "signed"));
    CHECK(str_is(why, "because"));
    frame_release(&a.f);
    ends_with(FAULTS, false, "out-of-bounds");
}

static void wrong_in_a_later_round_is_told_apart(void) {
    ends_with(DRIFTS, true, "drift");
    ends_with(UNSTABLE, true, "unstable");
}

static void a_device_may_die_once(void) {
    ends_with(DIES_ONCE, false, "accepted");
    ends_with(DIES_ALWAYS, false, "crash");
    ends_with(HANGS, false, "timeout");
}

/* The limit of a simulated run is of its own work, not of what else the host is at. */
static void a_busy_host_is_not_its_fault(void) {
    ends_with(WAITS, false, "accepted");
    struct answer a = run_job(ALL_RIGHT, (char[]){ENDLESS, 0}, false);
    str why = {0};
    json_get_str(a.f.head, "why", &why);
    CHECKF(str_starts(why, S("still running after 400 ms of processor time")), "%.*s",
           STR_ARG(why));
    CHECK(str_find(why, S("--run-limit")) < why.n);
    frame_release(&a.f);
}

static void a_judge_may_die_a_few_times(void) {
    ends_with(JUDGE_DIES_ONCE, false, "accepted");
    struct answer a = run_job(JUDGE_DIES_ALWAYS, "a", false);
    CHECK(a.f.type == WIRE_FAILED); /* our own trouble: no verdict */
    frame_release(&a.f);
}

/* A candidate alone on contents of three kinds, as the evaluator makes them. */
static struct answer run_contents(enum script script, size_t contents) {
    static const char *const kinds[] = {"stated", "signed", "spikes"};
    struct answer a = {0};
    struct running r;
    struct err err = {0};
    json *j = job(script, "a", true), *cases = json_array();
    for (size_t i = 0; i < contents; i++) {
        json *c = json_object();
        char seed[24];
        snprintf(seed, sizeof seed, "%zu", 10 + i / 3);
        json_set_str(c, "data", str_view(kinds[i % 3]));
        json_set_str(c, "seed", str_view(seed));
        json_push(cases, c);
    }
    json_set((json *)json_at(json_get(j, "batches"), 0), "cases", cases);
    json_set_i64((json *)json_get(j, "time"), "samples", 16);
    start(&r);
    CHECK(frame_write(r.in, WIRE_JOB, j, S("a"), NULL, 0, &err));
    CHECK(next_answer(r.out, &a));
    json_free(j);
    CHECK(end(&r) == 0);
    return a;
}

static void one_that_remembers_is_found_by_its_times(void) {
    static const size_t contents[] = {8, 3, 1};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        struct answer a = run_contents(REMEMBERS, contents[i]);
        str why = {0};
        int percent = 0;
        json_get_str(a.f.head, "why", &why);
        CHECKF(!strcmp(a.verdict, "drift"), "%zu contents: %s", contents[i], a.verdict);
        size_t at = str_find(why, S("it takes "));
        CHECKF(at < why.n && sscanf(why.p + at, "it takes %d%% longer", &percent) == 1, "%.*s",
               STR_ARG(why));
        CHECKF(percent >= 28 && percent <= 38, "%zu contents: %d%%", contents[i], percent);
        frame_release(&a.f);
    }
}

static void an_honest_one_is_not(void) {
    static const struct {
        enum script script;
        size_t contents;
    } rows[] = {{NOISY, 8}, {NOISY, 3}, {NOISY, 1}, {REMEMBERS_AT_FIRST, 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer a = run_contents(rows[i].script, rows[i].contents);
        CHECKF(!strcmp(a.verdict, "accepted"), "row %zu: %s", i, a.verdict);
        /* Evidence of each content, once, also of those that the first round did not have. */
        CHECKF(json_len(json_get(a.f.head, "runs")) == rows[i].contents, "row %zu: %zu", i,
               json_len(json_get(a.f.head, "runs")));
        frame_release(&a.f);
    }
    struct answer a =
        run_contents(NOISY, 8); /* seven, then eight; no round more than the times need */
    CHECKF(json_len(json_get(json_at(json_get(a.f.head, "times"), 0), "samples_s")) == 23, "%zu",
           json_len(json_get(json_at(json_get(a.f.head, "times"), 0), "samples_s")));
    frame_release(&a.f);
}

/* Nothing was right before: it is wrong, not drift. */
static void a_late_content_that_is_wrong(void) {
    struct answer a = run_contents(WRONG_LATE_CONTENT, 8);
    CHECKF(!strcmp(a.verdict, "wrong"), "%s", a.verdict);
    CHECK(json_len(json_get(a.f.head, "runs")) == 7);
    frame_release(&a.f);
}

static size_t samples_of(const struct answer *a, size_t module) {
    return json_len(json_get(json_at(json_get(a->f.head, "times"), module), "samples_s"));
}

static void rivals_take_turns_and_do_not_count_against_it(void) {
    struct answer a = run_job(ALL_RIGHT, "ab", true);
    const json *times = json_get(a.f.head, "times");
    double mine = 0, other = 0;
    CHECK(!strcmp(a.verdict, "accepted") && json_len(times) == 2);
    CHECK(json_len(json_get(json_at(times, 1), "samples_s")) >= 8);
    json_to_f64(json_at(json_get(json_at(times, 0), "samples_s"), 0), &mine);
    json_to_f64(json_at(json_get(json_at(times, 1), "samples_s"), 0), &other);
    CHECK(mine == 1e-4 && other == 2e-4);
    frame_release(&a.f);
    a = run_job(RIVAL_WRONG, "ab", true);
    CHECK(!strcmp(a.verdict, "accepted"));
    CHECK(samples_of(&a, 0) >= 8 && samples_of(&a, 1) == 0);
    CHECK(number(json_at(json_get(a.f.head, "rivals"), 0), "module") == 1);
    frame_release(&a.f);
}

static double median_of(const struct answer *a, size_t module, const char *list) {
    const json *all = json_get(json_at(json_get(a->f.head, "times"), module), list);
    double s = 0;
    json_to_f64(json_at(all, json_len(all) / 2), &s);
    return s;
}

static bool near(double a, double b) {
    return a > 0.999 * b && a < 1.001 * b;
}

/* Further rounds, whose times are told apart; of modules that have no such steps there are none. */
static void what_is_done_once_is_timed_apart(void) {
    struct answer a = run_job(ALL_RIGHT, "m", true);
    CHECK(!strcmp(a.verdict, "accepted") && samples_of(&a, 0) >= 8);
    CHECK(near(median_of(&a, 0, "samples_s"), 13e-4));
    CHECK(near(median_of(&a, 0, "prepared_s"), 6.5e-4));
    frame_release(&a.f);
    a = run_job(ALL_RIGHT, "am", true);
    CHECK(!strcmp(a.verdict, "accepted"));
    CHECK(!json_get(json_at(json_get(a.f.head, "times"), 0), "prepared_s"));
    CHECK(near(median_of(&a, 1, "samples_s"), 13e-4));
    CHECK(near(median_of(&a, 1, "prepared_s"), 6.5e-4));
    frame_release(&a.f);
    a = run_job(DRIFTS, "m", true);
    CHECK(!strcmp(a.verdict, "drift"));
    frame_release(&a.f);
}

/* In turns nothing tells whose doing a death is, nor for whom there is no memory. */
static void a_rival_fails_for_itself(void) {
    static const struct {
        char module;
        const char *verdict;
    } rows[] = {{REFUSED, "launch-error"},
                {DEADLY_TO_LOAD, "crash"},
                {DEADLY, "crash"},
                {ENDLESS, "timeout"},
                {LARGE, "out-of-memory"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer a = run_job(ALL_RIGHT, (char[]){FINE, rows[i].module, FINE + 2, 0}, true);
        const json *rivals = json_get(a.f.head, "rivals");
        str verdict = {0};
        json_get_str(json_at(rivals, 0), "verdict", &verdict);
        CHECKF(!strcmp(a.verdict, "accepted"), "row %zu: %s", i, a.verdict);
        CHECKF(json_len(rivals) == 1 && number(json_at(rivals, 0), "module") == 1 &&
                   str_is(verdict, rows[i].verdict),
               "row %zu: its rival is '%.*s'", i, STR_ARG(verdict));
        CHECKF(samples_of(&a, 0) >= 8 && samples_of(&a, 1) == 0 && samples_of(&a, 2) >= 8,
               "row %zu: %zu, %zu and %zu samples", i, samples_of(&a, 0), samples_of(&a, 1),
               samples_of(&a, 2));
        frame_release(&a.f);
        a = run_job(ALL_RIGHT, (char[]){rows[i].module, FINE, 0}, true);
        CHECKF(!strcmp(a.verdict, rows[i].verdict) && !json_get(a.f.head, "rivals"),
               "row %zu: the candidate is %s", i, a.verdict);
        frame_release(&a.f);
    }
}

static void each_has_its_turn_before_the_budget_ends(void) {
    struct running r;
    struct answer a = {0};
    struct err err = {0};
    json *j = job(ALL_RIGHT, "abcde", true);
    json_set_i64((json *)json_get(j, "time"), "budget_ms", 0);
    start(&r);
    CHECK(frame_write(r.in, WIRE_JOB, j, S("abcde"), NULL, 0, &err));
    CHECK(next_answer(r.out, &a) && !strcmp(a.verdict, "accepted"));
    for (size_t i = 0; i < 5; i++)
        CHECKF(samples_of(&a, i) > 0, "module %zu has none", i);
    CHECK(samples_of(&a, 0) < 8);
    json_free(j);
    frame_release(&a.f);
    CHECK(end(&r) == 0);
}

/* What a device said before it went is the rival's; that it went does not count. */
static void one_that_leaves_is_not_asked_again(void) {
    struct answer a = run_job(RIVAL_LEAVES, "ab", true);
    str why = {0};
    const json *rival = json_at(json_get(a.f.head, "rivals"), 0);
    json_get_str(rival, "why", &why);
    CHECKF(!strcmp(a.verdict, "accepted"), "%s", a.verdict);
    CHECK(number(rival, "module") == 1 && str_is(why, "because"));
    frame_release(&a.f);
}

static void a_role_in_trouble_is_replaced(void) {
    struct running r;
    struct answer a = {0};
    start(&r);
    send_job(&r, 7, JUDGE_ERRS_FIRST, "a", false);
    send_job(&r, 8, JUDGE_ERRS_FIRST, "a", false);
    CHECK(next_answer(r.out, &a) && a.f.type == WIRE_FAILED); /* no verdict */
    CHECKF(next_answer(r.out, &a) && !strcmp(a.verdict, "accepted"), "%s", a.verdict);
    frame_release(&a.f);
    CHECK(end(&r) == 0);
}

static void the_next_job_may_wait(void) {
    static const struct {
        enum script script;
        const char *verdict;
    } rows[] = {{ALL_RIGHT, "accepted"},
                {FAULTS, "out-of-bounds"},
                {DIES_ALWAYS, "crash"},
                {HANGS, "timeout"},
                {JUDGE_DIES_ALWAYS, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct running r;
        struct answer a = {0};
        start(&r);
        send_job(&r, 7, rows[i].script, "a", false);
        send_job(&r, 8, WRONG_AT_CASE_1, "a", false);
        CHECKF(next_answer(r.out, &a) && number(a.f.head, "job") == 7 &&
                   !strcmp(a.verdict, rows[i].verdict),
               "row %zu: %s", i, a.verdict);
        CHECKF(next_answer(r.out, &a) && number(a.f.head, "job") == 8 &&
                   !strcmp(a.verdict, "wrong"),
               "row %zu, then: %s", i, a.verdict);
        frame_release(&a.f);
        CHECK(end(&r) == 0);
    }
}

/* A run that nobody will judge is not to delay the next job, let alone to be its fault. */
static void the_next_does_not_wait_for_a_lost_run(void) {
    struct running r;
    struct answer a = {0};
    start(&r);
    send_job(&r, 7, JUDGE_DIES_IN_RUN, "a", false);
    send_limited(&r, 8, ALL_RIGHT, 2000);
    CHECK(next_answer(r.out, &a) && a.f.type == WIRE_FAILED && number(a.f.head, "job") == 7);
    CHECKF(next_answer(r.out, &a) && !strcmp(a.verdict, "accepted"), "%s", a.verdict);
    frame_release(&a.f);
    CHECK(end(&r) == 0);
}

/* The limit of the run that the first device died in passes while the second one starts. */
static void a_dead_step_has_no_clock(void) {
    struct running r;
    struct answer a = {0};
    setenv("LATER_MS", "600", 1);
    start(&r);
    send_limited(&r, 1, JUDGE_STAYS, 400);
    CHECKF(next_answer(r.out, &a) && !strcmp(a.verdict, "accepted"), "%s", a.verdict);
    frame_release(&a.f);
    CHECK(end(&r) == 0);
    unsetenv("LATER_MS");
}

static void a_role_that_never_says_hello_is_given_up(void) {
    struct running r;
    struct answer a = {0};
    setenv("LATER_MS", "100000", 1);
    setenv("START_MS", "200", 1);
    start(&r);
    send_job(&r, 1, DIES_ONCE, "a", false);
    CHECK(!next_answer(r.out, &a)); /* it ends, and its coordinator starts another */
    CHECK(end(&r) == 3);
    unsetenv("START_MS");
    unsetenv("LATER_MS");
}

static void but_no_more_than_one(void) {
    struct running r;
    start(&r);
    for (int64_t i = 0; i < 3; i++)
        send_job(&r, i, HANGS, "a", false);
    CHECK(end(&r) == 3);
}

static const struct tap_case cases[] = {
    {"a right candidate is accepted, with its times", a_right_candidate_is_accepted_with_its_times},
    {"a wrong one says where", a_wrong_one_says_where},
    {"wrong in a later round is drift or instability", wrong_in_a_later_round_is_told_apart},
    {"one that remembers is found by its times", one_that_remembers_is_found_by_its_times},
    {"an honest one is not, and costs no round more", an_honest_one_is_not},
    {"a late content that is wrong is wrong", a_late_content_that_is_wrong},
    {"a device may die once", a_device_may_die_once},
    {"a busy host is not its fault", a_busy_host_is_not_its_fault},
    {"a judge may die a few times", a_judge_may_die_a_few_times},
    {"rivals take turns and do not count against it",
     rivals_take_turns_and_do_not_count_against_it},
    {"what is done once is timed apart", what_is_done_once_is_timed_apart},
    {"each has its turn before the budget ends", each_has_its_turn_before_the_budget_ends},
    {"a rival fails for itself", a_rival_fails_for_itself},
    {"a device that leaves is not asked again", one_that_leaves_is_not_asked_again},
    {"a role in trouble is replaced", a_role_in_trouble_is_replaced},
    {"the next job may wait", the_next_job_may_wait},
    {"the next does not wait for a lost run", the_next_does_not_wait_for_a_lost_run},
    {"but no more than one", but_no_more_than_one},
    {"a dead step has no clock", a_dead_step_has_no_clock},
    {"a role that never says hello is given up", a_role_that_never_says_hello_is_given_up},
};

static int work(void) {
    static struct device_name sim;
    struct err err = {0};
    const char *ms = getenv("START_MS");
    if (!device_name_parse("sim", arena_new(1 << 20), &sim, &err))
        return 3;
    return worker_main(&sim, 1, ms ? (unsigned)strtoul(ms, NULL, 10) : WORKER_START_MS);
}

int main(int argc, char **argv) {
    if (argc > 1)
        return !strcmp(argv[1], "worker") ? work() : play(argv[1]);
    return tap_main(cases, sizeof cases / sizeof *cases);
}
