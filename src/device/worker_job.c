/* A job, step by step: LOAD, then for each batch PREPARE → RUN → COMPARE. Of a shape that is not
 * run whole, MEASURE, then SAMPLE and, at the judge, PARTS; after that the batches that are there
 * for coverage, as long as something is not covered. One request is in flight at a time, so the
 * state is the step. A role that dies in mid-step is started again and the batch is done again from
 * PREPARE, which poisons afresh; a device that dies twice in the same batch is the doing of the
 * module that it has, a judge that keeps dying is our own trouble.
 *
 * At a shape of one element a kernel that leaves out a factor near one is no more than inaccurate.
 * So that verdict waits until a few other shapes have been tried on the same kind of data; what is
 * worse there takes its place.
 */
#include "device/worker.h"

#include "base/child.h"
#include "base/say.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define JUDGE_LIMIT_MS    120000
#define CEILINGS_LIMIT_MS 60000
#define BUSY_HOST         6 /* limits that a simulated run may take that waits for a processor */
#define MAX_TRIES         2 /* of a batch on the device that ends by itself */
#define MAX_KILLED        6 /* …by SIGKILL, which mostly comes from outside */
#define MAX_JUDGES        4 /* in one job */
#define MAX_HELD          3 /* shapes that an inaccurate kernel is tried on before it is called so */

#define JOB_ARENA (1u << 30)

/* ---- what the job says ---- */

const struct job_batch *batch_now(const struct job_walk *j) {
    return j->batch < j->asked.nbatches ? &j->asked.batches[j->batch] : NULL;
}

static const struct job_shape *shape_now(const struct job_walk *j) {
    return &j->asked.shapes[batch_now(j)->shape];
}

static const struct job_sample *sample_now(const struct job_walk *j) {
    return j->sampled < j->asked.nsamples ? &j->asked.samples[j->sampled] : NULL;
}

/* ---- the job's end ---- */

static void job_clear(struct worker *w) {
    struct job_walk *j = &w->job;
    loop_timer_cancel(w->loop, w->timer);
    loop_timer_cancel(w->loop, w->alive);
    w->timer = w->alive = 0;
    times_release(j);
    meet_clear(j);
    arena_free(j->mem);
    arena_free(j->ran_mem);
    frame_release(&j->frame);
    memset(j, 0, sizeof *j);
    w->step = STEP_IDLE;
}

static void start_next(struct worker *w) {
    struct frame next = w->next;
    w->next = (struct frame){0};
    job_start(w, &next);
}

static void job_end(struct worker *w, uint32_t type, json *head) {
    json_set_i64(head, "job", w->job.asked.job);
    conn_send(w->up, type, head, (str){0}, NULL, 0);
    json_free(head);
    job_clear(w);
    if (w->next.type)
        start_next(w);
}

static double milliseconds(uint64_t us) {
    return (double)us / 1000;
}

static void set_evidence(struct job_walk *j, struct result *r) {
    double all_ms = milliseconds(clock_us() - j->started_us);
    fields_set(r, waited_ms, milliseconds(j->waited_us));
    fields_set(r, verify_ms, all_ms - milliseconds(j->timing_us));
    fields_set(r, time_ms, milliseconds(j->timing_us));
    r->steps_ms = arena_new_of(j->mem, struct result_steps);
    *r->steps_ms = (struct result_steps){.load = milliseconds(j->spent_us[STEP_LOAD]),
                                         .prepare = milliseconds(j->spent_us[STEP_PREPARE]),
                                         .run = milliseconds(j->spent_us[STEP_RUN]),
                                         .compare = milliseconds(j->spent_us[STEP_COMPARE])};
    if (j->timed[0].n)
        times_report(j, r);
    else
        r->clocks = NULL;
}

/* Where in the job it happened, for every verdict but acceptance. at: the case. */
static void set_place(struct worker *w, size_t at, struct result *r) {
    const struct job_walk *j = &w->job;
    enum data_kind data = DATA_STATED;
    if (w->step == STEP_MEASURE) {
        r->shape = j->asked.measure->label;
    } else if (w->step == STEP_SAMPLE || w->step == STEP_PARTS) {
        r->shape = sample_now(j)->label;
        data = sample_now(j)->data;
    } else if (batch_now(j) && w->step != STEP_LOAD) {
        r->shape = shape_now(j)->label;
        data = batch_now(j)->cases[meet_case(j, at)].data;
        r->order = j->drawn;
    } else {
        return;
    }
    r->data = str_view(data_name(data));
}

/* details: what the judge said, where it did */
static void set_verdict(struct worker *w, enum verdict verdict, str why, size_t at,
                        const struct wire_judged *details) {
    struct job_walk *j = &w->job;
    struct result *r = &j->found;
    bool ordered = j->drawn && verdict != VERDICT_ACCEPTED;
    r->verdict = verdict;
    r->why =
        ordered ? arena_printf(j->mem, "in order %u of events: %.*s", j->drawn, STR_ARG(why)) : why;
    r->findings = j->ran.findings;
    r->nfindings = j->ran.nfindings;
    r->details = r->nfindings ? NULL : (struct wire_judged *)details;
    if (verdict != VERDICT_ACCEPTED) {
        set_place(w, at, r);
        r->ncounters = r->nlines = 0;
    }
}

static void finish_found(struct worker *w) {
    struct result *r = &w->job.found;
    set_evidence(&w->job, r);
    job_end(w, WIRE_RESULT, fields_to_json(&result_fields, r));
}

static void finish(struct worker *w, enum verdict verdict, str why, size_t at,
                   const struct wire_judged *details) {
    set_verdict(w, verdict, why, at, details);
    finish_found(w);
}

static void fail(struct worker *w, str why) {
    json *head = json_object();
    json_set_str(head, "why", why);
    job_end(w, WIRE_FAILED, head);
}

/* ---- asking ---- */

bool step_is_device(enum step s) {
    return s == STEP_LOAD || s == STEP_RUN || s == STEP_MEASURE || s == STEP_SAMPLE ||
           s == STEP_CEILINGS;
}

bool step_is_judge(enum step s) {
    return s == STEP_PREPARE || s == STEP_COMPARE || s == STEP_DUMP || s == STEP_PARTS;
}

static uint64_t device_limit(const struct worker *w, enum step step) {
    return step == STEP_CEILINGS ? CEILINGS_LIMIT_MS : (uint64_t)w->job.asked.limit_ms;
}

/* Processor time of a process; 0: not known. */
static uint64_t cpu_ms(pid_t pid) {
    clockid_t clock;
    struct timespec t;
    if (!pid || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* How much longer the simulator may run: it has its limit in processor time, as a busy host says
 * nothing of the kernel. 0: not any longer. */
static uint64_t time_owed(const struct worker *w) {
    uint64_t limit = device_limit(w, w->step), now = cpu_ms(w->device.pid);
    uint64_t used = now - w->job.asked_cpu_ms, gone = (clock_us() - w->job.asked_us) / 1000;
    if (w->name->kind != DEVICE_SIM || !now || used >= limit || gone >= BUSY_HOST * limit)
        return 0;
    uint64_t left = BUSY_HOST * limit - gone;
    return limit - used < left ? limit - used : left;
}

static void clock_ran_out(void *ctx) {
    struct worker *w = ctx;
    struct role *r = step_is_device(w->step) ? &w->device : &w->judge;
    uint64_t more = r == &w->device ? time_owed(w) : 0;
    w->timer = more ? loop_timer(w->loop, more, clock_ran_out, w) : 0;
    if (more)
        return;
    w->job.timed_out = r == &w->device;
    if (r->pid)
        child_kill(r->pid);
}

static void ask(struct worker *w, enum step step, uint32_t type, const struct fields *of,
                const void *message, str blob) {
    struct role *r = step_is_device(step) ? &w->device : &w->judge;
    uint64_t limit = r == &w->device ? device_limit(w, step) : JUDGE_LIMIT_MS;
    json *head = of ? fields_to_json(of, message) : NULL;
    loop_timer_cancel(w->loop, w->timer);
    w->timer = loop_timer(w->loop, limit, clock_ran_out, w);
    w->step = step;
    w->job.asked_us = clock_us();
    w->job.asked_cpu_ms = cpu_ms(r->pid);
    conn_send(r->conn, type, head, blob, NULL, 0);
    json_free(head);
}

static void ask_load(struct worker *w) {
    struct buf blob;
    buf_init(&blob, w->job.frame.blob.n + 1);
    struct wire_load m = modules_load(&w->job, &blob, w->job.mem);
    ask(w, STEP_LOAD, WIRE_LOAD, &wire_load_fields, &m, buf_str(&blob));
    buf_release(&blob);
}

static void ask_prepare(struct worker *w) {
    struct job_walk *j = &w->job;
    const struct job_shape *s = shape_now(j);
    struct wire_prepare m = {.set = s->set,
                             .nset = s->nset,
                             .align = s->align,
                             .nalign = s->nalign,
                             .device = w->generation,
                             .remade = batch_now(j)->remade,
                             .sampled = batch_now(j)->sampled};
    m.workspaces = modules_workspaces(j, s, &m.nworkspaces, j->mem);
    m.cases = meet_cases(w, &m.ncases, j->mem);
    j->prepared = true;
    j->batch_us = clock_us();
    ask(w, STEP_PREPARE, WIRE_PREPARE, &wire_prepare_fields, &m, (str){0});
}

/* The clock was the dead role's. */
static void wait_roles(struct worker *w) {
    loop_timer_cancel(w->loop, w->timer);
    w->timer = 0;
    w->step = STEP_WAIT_ROLES;
}

/* ---- for coverage ---- */

static bool is_extra(const struct job_walk *j) {
    return batch_now(j) && batch_now(j)->extra;
}

static bool all_covered(const struct job_walk *j) {
    return !j->found.coverage || j->found.coverage->uncovered == 0;
}

/* Batches that were only there for coverage, once everything is covered or their time is over. */
static void skip_extra(struct job_walk *j) {
    while (is_extra(j) && (all_covered(j) || (int64_t)j->covering_us / 1000 >= j->asked.cover_ms))
        j->batch++;
}

void job_next(struct worker *w) {
    struct job_walk *j = &w->job;
    /* Blocks of the task's own shape come after the batches that are not only for coverage. */
    bool parts = !batch_now(j) || is_extra(j);
    const struct job_measure *measure = parts && !j->measured ? j->asked.measure : NULL;
    const struct job_sample *sample = parts ? sample_now(j) : NULL;
    if (!measure && !sample)
        skip_extra(j);
    if (!w->device.ready || !w->judge.ready)
        wait_roles(w);
    else if (j->frame.type == WIRE_CEILINGS)
        ask(w, STEP_CEILINGS, WIRE_CEILINGS, NULL, NULL, (str){0});
    else if (!j->loaded)
        ask_load(w);
    else if (measure)
        ask(w, STEP_MEASURE, WIRE_MEASURE, &job_measure_fields, measure, (str){0});
    else if (sample)
        ask(w, STEP_SAMPLE, WIRE_SAMPLE, &job_sample_fields, sample, (str){0});
    else if (batch_now(j))
        ask_prepare(w);
    else
        finish(w, VERDICT_ACCEPTED, S(""), 0, NULL);
}

/* ---- whose doing it is ---- */

/* A rival that fails says nothing about the candidate: that is noted, and the others go on.
 * at: the case. */
static void blame(struct worker *w, size_t module, enum verdict verdict, str why, size_t at,
                  const struct wire_judged *details) {
    if (!module) {
        finish(w, verdict, why, at, details);
        return;
    }
    w->job.ran = (struct wire_answer){0};
    module_drop(&w->job, module, verdict, why);
    job_next(w);
}

/* Where nothing tells which of them it was. */
static void blame_some(struct worker *w, enum verdict verdict, str why) {
    if (modules_part(&w->job))
        job_next(w);
    else
        blame(w, module_at(&w->job, 0), verdict, why, 0, NULL);
}

/* ---- deaths ---- */

/* In numbers that do not depend on the host. */
static void say_late(const struct worker *w, char *why, size_t n) {
    uint64_t limit = device_limit(w, w->step), gone = (clock_us() - w->job.asked_us) / 1000;
    bool sim = w->name->kind == DEVICE_SIM, waited = sim && gone >= BUSY_HOST * limit;
    const char *of = waited ? ", most of it not at work" : sim ? " of processor time" : "";
    snprintf(why, n, "still running after %llu ms%s%s",
             (unsigned long long)(waited ? BUSY_HOST * limit : limit), of,
             w->step == STEP_CEILINGS ? "" : "; --run-limit allows longer runs");
}

void job_device_died(struct worker *w, int status) {
    struct job_walk *j = &w->job;
    char space[64], why[160];
    bool late = j->timed_out;
    j->loaded = j->prepared = j->timed_out = false;
    if (!step_is_device(w->step))
        return; /* loaded and prepared again before the next run */
    if (late) {
        say_late(w, why, sizeof why);
        blame_some(w, VERDICT_TIMEOUT, str_view(why));
        return;
    }
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    unsigned tries = ++j->tries[module_at(j, 0)];
    if (tries < (killed ? MAX_KILLED : MAX_TRIES)) {
        wait_roles(w);
        return;
    }
    str how = child_status_text(status, space, sizeof space);
    bool memory = killed || (WIFEXITED(status) && WEXITSTATUS(status) == 3);
    snprintf(why, sizeof why, "the device process ended %u times: %.*s", tries, STR_ARG(how));
    blame_some(w, memory ? VERDICT_OUT_OF_MEMORY : VERDICT_CRASH, str_view(why));
}

void job_judge_died(struct worker *w, int status) {
    struct job_walk *j = &w->job;
    char space[64], why[128];
    j->prepared = false;
    if (w->step == STEP_IDLE)
        return;
    if (++j->judges >= MAX_JUDGES) {
        str how = child_status_text(status, space, sizeof space);
        snprintf(why, sizeof why, "the judge process ended %u times: %.*s", j->judges,
                 STR_ARG(how));
        if (step_is_device(w->step))
            role_dismiss(&w->device); /* the next job must not wait behind this run */
        fail(w, str_view(why));
    } else if (step_is_judge(w->step)) {
        wait_roles(w);
    }
}

/* ---- a batch ---- */

static void got_case(struct worker *w, const struct wire_cases *made) {
    struct job_walk *j = &w->job;
    const struct job_batch *batch = batch_now(j);
    if (made->has_verdict) {
        blame_some(w, made->verdict, made->why);
        return;
    }
    if (!j->loaded || !j->prepared || !w->device.ready) {
        job_next(w); /* the device that it was made for is gone */
        return;
    }
    order_make(w, made->ncases, batch->timed);
    struct wire_run m = {.cases = made->cases,
                         .ncases = made->ncases,
                         .workspaces = made->workspaces,
                         .nworkspaces = made->nworkspaces,
                         .runs = j->order,
                         .nruns = j->norder,
                         .counted = batch->counted,
                         .checked = batch->checked,
                         .checked_drawn = batch->checked_drawn,
                         .covers = j->asked.covers,
                         .fresh = batch->timed || j->asked.fresh,
                         .timed = batch->timed,
                         .keeps = batch->keeps,
                         .prepared = j->preparing,
                         .order = batch->order,
                         .patience_ms = batch->patience_ms};
    m.plans = modules_plans(j, shape_now(j), &m.nplans, j->mem);
    j->drawn = 0;
    ask(w, STEP_RUN, WIRE_RUN, &wire_run_fields, &m, (str){0});
}

static void next_batch(struct job_walk *j) {
    j->batch++;
    j->round = 0;
    j->preparing = false;
    j->rechecks = 0;
    meet_clear(j);
    memset(j->tries, 0, sizeof j->tries);
}

static void keep_coverage(struct job_walk *j) {
    if (!j->ran.coverage)
        return;
    j->found.coverage = arena_new_of(j->mem, struct wire_coverage);
    fields_copy(&wire_coverage_fields, j->ran.coverage, j->mem, j->found.coverage);
}

static void got_ran(struct worker *w) {
    struct job_walk *j = &w->job;
    j->drawn = j->ran.order;
    if (j->ran.verdict != VERDICT_ACCEPTED) {
        blame(w, order_module(j, j->ran.at), j->ran.verdict, j->ran.why, order_case(j, j->ran.at),
              NULL);
        return;
    }
    keep_coverage(j);
    if (j->ran.late) { /* too slow here to be judged, which says nothing of the kernel */
        j->covering_us += clock_us() - j->batch_us;
        next_batch(j);
        job_next(w);
        return;
    }
    if (j->prepared && w->judge.ready)
        ask(w, STEP_COMPARE, WIRE_COMPARE, NULL, NULL, (str){0});
    else
        job_next(w); /* the judge that knew the answer is gone */
}

static void add_run(struct job_walk *j, const struct result_run *run) {
    struct result *r = &j->found;
    if (r->nruns == j->room_runs) {
        size_t room = j->room_runs ? 2 * j->room_runs : 64;
        struct result_run *more = arena_array(j->mem, struct result_run, room);
        if (r->nruns)
            memcpy(more, r->runs, r->nruns * sizeof *more);
        r->runs = more;
        j->room_runs = room;
    }
    r->runs[r->nruns++] = *run;
}

static void keep_counters(struct job_walk *j) {
    struct result *r = &j->found;
    struct wire_answer kept;
    if (!j->ran.ncounters)
        return;
    fields_copy(&wire_answer_fields, &j->ran, j->mem, &kept);
    r->counters = kept.counters;
    r->ncounters = kept.ncounters;
    r->lines = kept.lines;
    r->nlines = kept.nlines;
}

static void keep_evidence(struct job_walk *j, const struct wire_judged *said) {
    for (size_t i = 0; i < j->meet.nsent; i++) {
        size_t at = meet_case(j, i);
        if (j->meet.met[at])
            continue;
        struct result_run run = {.shape = shape_now(j)->label,
                                 .data = batch_now(j)->cases[at].data};
        if (i < said->nworst)
            fields_set(&run, worst, said->worst[i]);
        if (i < said->nrms)
            fields_set(&run, rms, said->rms[i]);
        add_run(j, &run);
    }
    keep_counters(j);
}

/* Wrong where it was right before. Once more: right again is instability, wrong is drift. */
static void recheck(struct worker *w, const struct wire_judged *said) {
    struct job_walk *j = &w->job;
    if (!j->rechecks++) {
        err_set(&j->failed, ERR_NO, "%.*s", STR_ARG(said->why));
        job_next(w);
        return;
    }
    finish(w, VERDICT_DRIFT, said->why, said->at, said);
}

/* ---- a verdict that waits for other shapes ---- */

/* Those that are there for counts, times or coverage are not run for it. */
static bool may_tell(const struct job_batch *b, enum data_kind data) {
    bool has = false;
    for (size_t i = 0; i < b->ncases; i++)
        has |= b->cases[i].data == data;
    return has && !b->timed && !b->counted && !b->extra;
}

/* To the next shape that may tell more; where there is none, the verdict is what was seen. */
static void hold_on(struct worker *w) {
    struct job_walk *j = &w->job;
    size_t shape = batch_now(j)->shape;
    do
        next_batch(j);
    while (batch_now(j) && (batch_now(j)->shape == shape || !may_tell(batch_now(j), j->held.data)));
    if (batch_now(j) && j->held.further++ < MAX_HELD)
        job_next(w);
    else
        finish_found(w);
}

/* What the judge said is kept, where it is the first or has more elements that are off. */
static void hold(struct worker *w, const struct wire_judged *said, enum data_kind data) {
    struct job_walk *j = &w->job;
    const struct wire_judged *before = j->found.details;
    struct wire_judged *kept = arena_new_of(j->mem, struct wire_judged);
    if (!j->held.is || (before && said->nmismatches > before->nmismatches)) {
        fields_copy(&wire_judged_fields, said, j->mem, kept);
        set_verdict(w, said->verdict, kept->why, said->at, kept);
        j->found.findings = NULL;
        j->found.nfindings = 0;
    }
    j->held.is = true;
    j->held.data = data;
    hold_on(w);
}

static void got_wrong(struct worker *w, const struct wire_judged *said) {
    struct job_walk *j = &w->job;
    const struct job_batch *b = batch_now(j);
    enum data_kind data = b->cases[meet_case(j, said->at)].data;
    bool imprecise = said->verdict == VERDICT_INACCURATE;
    if (j->held.is && data != j->held.data) {
        hold_on(w);
        return;
    }
    if (imprecise && (j->held.is || (j->nmodules == 1 && !b->timed && !b->extra))) {
        hold(w, said, data);
        return;
    }
    size_t module = order_module_of(j, said->at);
    bool again = j->round > 0 && !meet_is_first(j, said->at);
    if (!module && (again || j->rechecks))
        recheck(w, said);
    else
        blame(w, module, said->verdict, said->why, said->at, said);
}

/* All of it is right, and it was timed often enough. */
static void settle_batch(struct worker *w) {
    struct job_walk *j = &w->job;
    double slower = 0;
    char why[200];
    switch (meet_judge(j, &slower)) {
    case MEET_FINE:
        j->preparing = times_have_once(j);
        if (!j->preparing)
            next_batch(j);
        break;
    case MEET_AGAIN:
        break;
    case MEET_DRIFT:
        snprintf(why, sizeof why,
                 "where it meets a content for the first time it takes %.0f%% longer than where it "
                 "meets one again, in five rounds: nothing may be kept from launch to launch",
                 100 * slower);
        finish(w, VERDICT_DRIFT, str_view(why), 0, NULL);
        return;
    }
    job_next(w);
}

static void got_judged(struct worker *w, const struct wire_judged *said) {
    struct job_walk *j = &w->job;
    bool timed = batch_now(j)->timed;
    if (timed)
        j->timing_us += clock_us() - j->batch_us;
    if (is_extra(j))
        j->covering_us += clock_us() - j->batch_us;
    if (said->verdict != VERDICT_ACCEPTED) {
        got_wrong(w, said);
        return;
    }
    if (j->held.is) {
        hold_on(w);
        return;
    }
    if (j->rechecks) {
        finish(w, VERDICT_UNSTABLE, str_view(j->failed.text), 0, NULL);
        return;
    }
    keep_evidence(j, said);
    if (!j->preparing)
        meet_keep(j);
    if (timed) {
        times_keep(j);
        j->round++;
        j->loaded = j->loaded && !j->apart; /* the next has its turn */
    }
    if (j->preparing) {
        if (times_suffice_prepared(j))
            next_batch(j);
        job_next(w);
        return;
    }
    if (!timed || j->meet.further || times_suffice(j))
        settle_batch(w);
    else
        job_next(w);
}

/* ---- answers ---- */

static void got_loaded(struct worker *w) {
    struct job_walk *j = &w->job;
    j->loaded = j->ran.verdict == VERDICT_ACCEPTED;
    if (j->loaded)
        job_next(w);
    else
        blame(w, module_at(j, j->ran.at), j->ran.verdict, j->ran.why, 0, NULL);
}

static void got_measured(struct worker *w) {
    struct job_walk *j = &w->job;
    if (j->ran.verdict != VERDICT_ACCEPTED) {
        finish(w, j->ran.verdict, j->ran.why, 0, NULL);
        return;
    }
    j->measured = true;
    keep_counters(j);
    keep_coverage(j);
    job_next(w);
}

/* ---- blocks of the task's own shape ---- */

static void keep_sample(struct job_walk *j) {
    struct wire_answer kept;
    if (!j->found.sample)
        j->found.sample = arena_new_of(j->mem, struct result_sample);
    struct result_sample *s = j->found.sample;
    if (!j->sampled) { /* later ones are of other data */
        fields_copy(&wire_answer_fields, &j->ran, j->mem, &kept);
        *s = (struct result_sample){.blocks_total = kept.blocks_total,
                                    .unjudged = kept.unjudged,
                                    .nunjudged = kept.nunjudged};
    }
    s->blocks += j->ran.blocks;
}

static void got_sampled(struct worker *w, str contents) {
    struct job_walk *j = &w->job;
    const struct job_sample *sample = sample_now(j);
    if (j->ran.verdict != VERDICT_ACCEPTED) {
        finish(w, j->ran.verdict, j->ran.why, 0, NULL);
        return;
    }
    keep_sample(j);
    keep_coverage(j);
    struct wire_parts m = {.set = sample->set,
                           .nset = sample->nset,
                           .data = sample->data,
                           .seed = sample->seed,
                           .most = sample->most,
                           .parts = j->ran.parts,
                           .nparts = j->ran.nparts};
    if (w->judge.ready)
        ask(w, STEP_PARTS, WIRE_PARTS, &wire_parts_fields, &m, contents);
    else
        wait_roles(w); /* and the blocks are run again */
}

static void got_parts(struct worker *w, const struct wire_judged *said) {
    struct job_walk *j = &w->job;
    if (said->verdict != VERDICT_ACCEPTED) {
        finish(w, said->verdict, said->why, 0, said);
        return;
    }
    j->found.sample->elements += said->judged;
    j->found.sample->skipped += said->skipped;
    j->sampled++;
    job_next(w);
}

static void got_dumped(struct worker *w, const struct frame *f) {
    json *head = json_object();
    json_set_i64(head, "job", w->job.asked.job);
    json_set_i64(head, "batch", (int64_t)w->job.batch);
    conn_send(w->up, WIRE_DUMPED, head, f->blob, NULL, 0);
    json_free(head);
    next_batch(&w->job);
    job_next(w);
}

static void got_ceilings(struct worker *w, const struct frame *f) {
    json *head = json_copy(f->head);
    job_end(w, WIRE_CEILED, head);
}

/* An answer is expected from one role at a time; anything else is stale or broken. */
static bool is_expected(enum step step, uint32_t type) {
    static const uint32_t answers[STEP_COUNT] = {
        [STEP_LOAD] = WIRE_LOADED,    [STEP_PREPARE] = WIRE_CASE, [STEP_RUN] = WIRE_RAN,
        [STEP_COMPARE] = WIRE_JUDGED, [STEP_DUMP] = WIRE_DUMPED,  [STEP_MEASURE] = WIRE_MEASURED,
        [STEP_SAMPLE] = WIRE_SAMPLED, [STEP_PARTS] = WIRE_JUDGED, [STEP_CEILINGS] = WIRE_CEILED};
    return type && answers[step] == type;
}

static void device_answered(struct worker *w, const struct frame *f) {
    struct job_walk *j = &w->job;
    if (w->step == STEP_LOAD)
        got_loaded(w);
    else if (w->step == STEP_MEASURE)
        got_measured(w);
    else if (w->step == STEP_SAMPLE)
        got_sampled(w, f->blob);
    else if (j->asked.dump && j->ran.verdict == VERDICT_ACCEPTED && j->prepared && w->judge.ready)
        ask(w, STEP_DUMP, WIRE_DUMP, NULL, NULL, (str){0}); /* for another judge, as it is */
    else
        got_ran(w);
}

static void judge_answered(struct worker *w, const struct wire_judged *said) {
    if (w->step == STEP_PARTS)
        got_parts(w, said);
    else
        got_judged(w, said);
}

/* False: the message cannot be read. */
static bool take_answer(struct worker *w, const struct frame *f, struct arena *a, struct err *err) {
    struct job_walk *j = &w->job;
    struct wire_judged said;
    struct wire_cases made;
    if (f->type == WIRE_CASE) {
        if (!wire_read(&wire_cases_fields, f->head, a, &made, err))
            return false;
        got_case(w, &made);
    } else if (f->type == WIRE_JUDGED) {
        if (!wire_read(&wire_judged_fields, f->head, a, &said, err))
            return false;
        judge_answered(w, &said);
    } else if (f->type == WIRE_DUMPED) {
        got_dumped(w, f);
    } else if (f->type == WIRE_CEILED) {
        got_ceilings(w, f);
    } else {
        arena_reset(j->ran_mem);
        if (!wire_read(&wire_answer_fields, f->head, j->ran_mem, &j->ran, err))
            return false;
        device_answered(w, f);
    }
    return true;
}

void job_answer(struct worker *w, struct role *r, struct frame *f) {
    str why = S("no reason given");
    struct err err = {0};
    if (f->type == WIRE_BUFFERS && r == &w->judge) {
        if (w->device.ready)
            conn_send(w->device.conn, WIRE_BUFFERS, f->head, (str){0}, f->fds, f->nfds);
        return;
    }
    w->job.spent_us[w->step] += clock_us() - w->job.asked_us;
    if (f->type == WIRE_ERROR) {
        json_get_str(f->head, "why", &why);
        role_dismiss(r); /* what it cannot do now it may never do again, where a fresh one can */
        fail(w, why);
    } else if (is_expected(w->step, f->type)) {
        struct arena *a = arena_new(JOB_ARENA);
        if (!take_answer(w, f, a, &err))
            fail(w, str_view(err.text));
        arena_free(a);
    } else {
        complain("cutepilot worker: unexpected message %u from the %s\n", f->type, r->name);
        child_kill(r->pid);
    }
}

/* ---- the beginning ---- */

/* Silence for long means a worker that is stopped or a connection that is gone. */
static void say_alive(void *ctx) {
    struct worker *w = ctx;
    conn_send(w->up, WIRE_ALIVE, NULL, (str){0}, NULL, 0);
    w->alive = loop_timer(w->loop, WIRE_ALIVE_MS, say_alive, w);
}

/* What the message's parts refer to is there. */
static bool holds_together(const struct job *j) {
    bool ok = true;
    for (size_t i = 0; ok && i < j->nshapes; i++)
        ok = j->shapes[i].nplans == j->nmodules;
    for (size_t i = 0; ok && i < j->nbatches; i++)
        ok = j->batches[i].shape < j->nshapes && j->batches[i].ncases;
    return ok;
}

static bool read_job(struct job_walk *j, struct err *err) {
    if (j->frame.type == WIRE_CEILINGS) {
        json_get_i64(j->frame.head, "job", &j->asked.job);
        return true;
    }
    return wire_read(&job_fields, j->frame.head, j->mem, &j->asked, err) &&
           (holds_together(&j->asked) ||
            err_set(err, ERR_ENV, "bad message: a job whose parts do not belong together"));
}

void job_start(struct worker *w, struct frame *f) {
    struct job_walk *j = &w->job;
    struct err err = {0};
    memset(j, 0, sizeof *j);
    j->frame = *f;
    j->mem = arena_new(JOB_ARENA);
    j->ran_mem = arena_new(JOB_ARENA);
    j->found.rivals = arena_array(j->mem, struct result_rival, WIRE_MAX_MODULES);
    j->started_us = clock_us();
    if (w->next_us)
        j->waited_us = j->started_us - w->next_us;
    w->next_us = 0;
    w->alive = loop_timer(w->loop, WIRE_ALIVE_MS, say_alive, w);
    if (!read_job(j, &err) || !modules_init(j, &err)) {
        fail(w, str_view(err.text));
        return;
    }
    if (j->asked.new_device)
        role_dismiss(&w->device);
    job_next(w);
}
