/* A job, step by step: LOAD, then for each batch PREPARE → RUN → COMPARE. Of a shape that is not
 * run whole, MEASURE, then SAMPLE and, at the judge, PARTS; after that the batches that are there
 * for coverage, as long as something is not covered. One request is in flight at a time, so the
 * state is the step. A role that dies in mid-step is started again and the batch is done again from
 * PREPARE, which poisons afresh; a device that dies twice in the same batch is the doing of the
 * module that it has, a judge that keeps dying is our own trouble.
 */
#include "device/worker.h"

#include "base/child.h"
#include "base/say.h"
#include "device/wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define JUDGE_LIMIT_MS    120000
#define CEILINGS_LIMIT_MS 60000
#define MAX_TRIES         2 /* of a batch on the device that ends by itself */
#define MAX_KILLED        6 /* …by SIGKILL, which mostly comes from outside */
#define MAX_JUDGES        4 /* in one job */

/* ---- what the job says ---- */

static const json *batch_now(const struct job *j) {
    return json_at(json_get(j->frame.head, "batches"), j->batch);
}

static const json *shape_of(const struct job *j, const json *batch) {
    int64_t shape = -1;
    json_get_i64(batch, "shape", &shape);
    return shape < 0 ? NULL : json_at(json_get(j->frame.head, "shapes"), (size_t)shape);
}

static bool flag(const json *o, const char *key) {
    bool set = false;
    json_get_bool(o, key, &set);
    return set;
}

/* ---- the job's end ---- */

static void forget(json **j) {
    json_free(*j);
    *j = NULL;
}

static void job_clear(struct worker *w) {
    struct job *j = &w->job;
    loop_timer_cancel(w->loop, w->timer);
    loop_timer_cancel(w->loop, w->alive);
    w->timer = w->alive = 0;
    json *all[] = {j->order,  j->evidence, j->counters, j->ran,     j->clocks,
                   j->rivals, j->lines,    j->sample,   j->coverage};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        json_free(all[i]);
    times_release(j);
    meet_clear(j);
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
    json_set_i64(head, "job", w->job.id);
    conn_send(w->up, type, head, (str){0}, NULL, 0);
    json_free(head);
    job_clear(w);
    if (w->next.type)
        start_next(w);
}

static void set_steps(const struct job *j, json *head) {
    static const struct {
        const char *name;
        enum step step;
    } steps[] = {{"load", STEP_LOAD},
                 {"prepare", STEP_PREPARE},
                 {"run", STEP_RUN},
                 {"compare", STEP_COMPARE}};
    json *o = json_object();
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        json_set_f64(o, steps[i].name, (double)j->spent_us[steps[i].step] / 1000);
    json_set(head, "steps_ms", o);
}

static void set_evidence(struct job *j, json *head) {
    json_set(head, "runs", j->evidence);
    j->evidence = NULL;
    double all_ms = (double)(clock_us() - j->started_us) / 1000;
    double time_ms = (double)j->timing_us / 1000;
    json_set_f64(head, "waited_ms", (double)j->waited_us / 1000);
    json_set_f64(head, "verify_ms", all_ms - time_ms);
    json_set_f64(head, "time_ms", time_ms);
    set_steps(j, head);
    if (j->sample)
        json_set(head, "sample", json_copy(j->sample));
    if (j->coverage)
        json_set(head, "coverage", json_copy(j->coverage));
    if (json_len(j->rivals))
        json_set(head, "rivals", json_copy(j->rivals));
    if (!j->timed[0].n)
        return;
    json_set(head, "times", times_json(j));
    if (j->clocks)
        json_set(head, "clocks", json_copy(j->clocks));
}

static const json *sample_now(const struct job *j) {
    return json_at(json_get(j->frame.head, "samples"), j->sampled);
}

/* Where in the job it happened, for every verdict but acceptance. at: the case. */
static void set_place(struct worker *w, size_t at, json *head) {
    const json *batch = batch_now(&w->job), *shape = shape_of(&w->job, batch);
    const json *own =
        w->step == STEP_MEASURE ? json_get(w->job.frame.head, "measure") : sample_now(&w->job);
    str label, data = S("stated");
    if (w->step == STEP_MEASURE || w->step == STEP_SAMPLE || w->step == STEP_PARTS) {
        if (json_get_str(own, "label", &label))
            json_set_str(head, "shape", label);
        json_get_str(own, "data", &data);
        json_set_str(head, "data", data);
        return;
    }
    if (!shape || w->step == STEP_LOAD)
        return;
    if (json_get_str(shape, "label", &label))
        json_set_str(head, "shape", label);
    if (json_get_str(json_at(json_get(batch, "cases"), meet_case(&w->job, at)), "data", &data))
        json_set_str(head, "data", data);
    if (w->job.drawn)
        json_set_i64(head, "order", w->job.drawn);
    json_set_bool(head, "timed", flag(batch, "timed"));
}

/* details: the judge's or the device's answer */
static void finish(struct worker *w, str verdict, str why, size_t at, const json *details) {
    json *head = json_object();
    char text[1024];
    if (w->job.drawn)
        snprintf(text, sizeof text, "in order %lld of events: %.*s", (long long)w->job.drawn,
                 STR_ARG(why));
    json_set_str(head, "verdict", verdict);
    json_set_str(head, "why", w->job.drawn ? str_view(text) : why);
    set_place(w, at, head);
    if (json_get(details, "findings"))
        json_set(head, "findings", json_copy(json_get(details, "findings")));
    else if (details)
        json_set(head, "details", json_copy(details));
    set_evidence(&w->job, head);
    job_end(w, WIRE_RESULT, head);
}

static void finish_accepted(struct worker *w) {
    const struct job *j = &w->job;
    json *head = json_object();
    json_set_str(head, "verdict", str_view(verdict_name(VERDICT_ACCEPTED)));
    json_set_str(head, "why", (str){0});
    if (j->counters)
        json_set(head, "counters", json_copy(j->counters));
    if (j->lines)
        json_set(head, "lines", json_copy(j->lines));
    set_evidence(&w->job, head);
    job_end(w, WIRE_RESULT, head);
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
    return step == STEP_CEILINGS ? CEILINGS_LIMIT_MS : (uint64_t)w->job.limit_ms;
}

static void clock_ran_out(void *ctx) {
    struct worker *w = ctx;
    struct role *r = step_is_device(w->step) ? &w->device : &w->judge;
    w->timer = 0;
    w->job.timed_out = r == &w->device;
    if (r->pid)
        child_kill(r->pid);
}

static void ask(struct worker *w, enum step step, uint32_t type, const json *head, str blob) {
    struct role *r = step_is_device(step) ? &w->device : &w->judge;
    uint64_t limit = r == &w->device ? device_limit(w, step) : JUDGE_LIMIT_MS;
    loop_timer_cancel(w->loop, w->timer);
    w->timer = loop_timer(w->loop, limit, clock_ran_out, w);
    w->step = step;
    w->job.asked_us = clock_us();
    conn_send(r->conn, type, head, blob, NULL, 0);
}

static void ask_load(struct worker *w) {
    json *head = json_object();
    struct buf blob;
    buf_init(&blob, w->job.frame.blob.n + 1);
    json_set(head, "modules", modules_sizes(&w->job, &blob));
    ask(w, STEP_LOAD, WIRE_LOAD, head, buf_str(&blob));
    buf_release(&blob);
    json_free(head);
}

static void ask_prepare(struct worker *w) {
    const json *batch = batch_now(&w->job), *shape = shape_of(&w->job, batch);
    static const char *const keys[] = {"set", "align"};
    json *head = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_get(shape, keys[i]))
            json_set(head, keys[i], json_copy(json_get(shape, keys[i])));
    json_set(head, "workspaces", modules_workspaces(&w->job, json_get(shape, "plans")));
    json_set(head, "cases", meet_cases(w));
    json_set_i64(head, "device", w->generation);
    w->job.prepared = true;
    w->job.batch_us = clock_us();
    ask(w, STEP_PREPARE, WIRE_PREPARE, head, (str){0});
    json_free(head);
}

/* The clock was the dead role's. */
static void wait_roles(struct worker *w) {
    loop_timer_cancel(w->loop, w->timer);
    w->timer = 0;
    w->step = STEP_WAIT_ROLES;
}

/* ---- for coverage ---- */

static bool is_extra(const struct job *j) {
    return flag(batch_now(j), "extra");
}

static bool all_covered(const struct job *j) {
    int64_t uncovered = 0;
    json_get_i64(j->coverage, "uncovered", &uncovered);
    return uncovered == 0;
}

/* Batches that were only there for coverage, once everything is covered or their time is over. */
static void skip_extra(struct job *j) {
    int64_t most_ms = 0;
    json_get_i64(j->frame.head, "cover_ms", &most_ms);
    while (is_extra(j) && (all_covered(j) || (int64_t)j->covering_us / 1000 >= most_ms))
        j->batch++;
}

/* The next part of what is done with blocks of the task's own shape; NULL: that is done. */
static const json *next_part(const struct job *j, const json *part) {
    return json_is_object(part) && (!batch_now(j) || is_extra(j)) ? part : NULL;
}

void job_next(struct worker *w) {
    struct job *j = &w->job;
    const json *measure = j->measured ? NULL : next_part(j, json_get(j->frame.head, "measure"));
    const json *sample = next_part(j, sample_now(j));
    if (!measure && !sample)
        skip_extra(j);
    if (!w->device.ready || !w->judge.ready)
        wait_roles(w);
    else if (j->frame.type == WIRE_CEILINGS)
        ask(w, STEP_CEILINGS, WIRE_CEILINGS, j->frame.head, (str){0});
    else if (!j->loaded)
        ask_load(w);
    else if (measure)
        ask(w, STEP_MEASURE, WIRE_MEASURE, measure, (str){0});
    else if (sample)
        ask(w, STEP_SAMPLE, WIRE_SAMPLE, sample, (str){0});
    else if (batch_now(j))
        ask_prepare(w);
    else
        finish_accepted(w);
}

/* ---- whose doing it is ---- */

/* A rival that fails says nothing about the candidate: that is noted, and the others go on.
 * at: the case. */
static void blame(struct worker *w, size_t module, str verdict, str why, size_t at,
                  const json *details) {
    if (!module) {
        finish(w, verdict, why, at, details);
        return;
    }
    module_drop(&w->job, module, verdict, why);
    job_next(w);
}

/* Where nothing tells which of them it was. */
static void blame_some(struct worker *w, str verdict, str why) {
    if (modules_part(&w->job))
        job_next(w);
    else
        blame(w, module_at(&w->job, 0), verdict, why, 0, NULL);
}

/* ---- deaths ---- */

void job_device_died(struct worker *w, int status) {
    struct job *j = &w->job;
    char space[64], why[160];
    bool late = j->timed_out;
    j->loaded = j->prepared = j->timed_out = false;
    if (!step_is_device(w->step))
        return; /* loaded and prepared again before the next run */
    if (late) {
        snprintf(why, sizeof why, "still running after %llu ms",
                 (unsigned long long)device_limit(w, w->step));
        blame_some(w, str_view(verdict_name(VERDICT_TIMEOUT)), str_view(why));
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
    blame_some(w, str_view(verdict_name(memory ? VERDICT_OUT_OF_MEMORY : VERDICT_CRASH)),
               str_view(why));
}

void job_judge_died(struct worker *w, int status) {
    struct job *j = &w->job;
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

static bool accepted(const struct frame *f, str *verdict, str *why) {
    *verdict = S("crash");
    *why = S("");
    json_get_str(f->head, "verdict", verdict);
    json_get_str(f->head, "why", why);
    return str_is(*verdict, verdict_name(VERDICT_ACCEPTED));
}

static void got_case(struct worker *w, struct frame *f) {
    struct job *j = &w->job;
    const json *batch = batch_now(j);
    const json *cases = json_get(f->head, "cases");
    str verdict, why;
    if (json_get(f->head, "verdict")) {
        accepted(f, &verdict, &why);
        blame_some(w, verdict, why);
        return;
    }
    if (!j->loaded || !j->prepared || !w->device.ready) {
        job_next(w); /* the device that it was made for is gone */
        return;
    }
    forget(&j->order);
    j->order = order_make(w, json_len(cases), flag(batch, "timed"));
    json *head = json_object();
    json_set(head, "cases", json_copy(cases));
    if (json_get(f->head, "workspaces"))
        json_set(head, "workspaces", json_copy(json_get(f->head, "workspaces")));
    json_set(head, "plans", modules_plans(j, json_get(shape_of(j, batch), "plans")));
    json_set(head, "runs", json_copy(j->order));
    json_set_bool(head, "counted", flag(batch, "counted"));
    json_set_bool(head, "checked", flag(batch, "checked"));
    json_set_bool(head, "covers", flag(j->frame.head, "covers"));
    json_set_bool(head, "fresh", flag(batch, "timed") || flag(j->frame.head, "fresh"));
    if (json_get(batch, "patience_ms"))
        json_set(head, "patience_ms", json_copy(json_get(batch, "patience_ms")));
    json_set_bool(head, "checked_drawn", flag(batch, "checked_drawn"));
    if (json_get(batch, "order"))
        json_set(head, "order", json_copy(json_get(batch, "order")));
    json_set_bool(head, "timed", flag(batch, "timed"));
    j->drawn = 0;
    ask(w, STEP_RUN, WIRE_RUN, head, (str){0});
    json_free(head);
}

static size_t at_of(const struct frame *f) {
    int64_t at = 0;
    json_get_i64(f->head, "at", &at);
    return at < 0 ? 0 : (size_t)at;
}

static void next_batch(struct job *j) {
    j->batch++;
    j->round = 0;
    j->rechecks = 0;
    meet_clear(j);
    memset(j->tries, 0, sizeof j->tries);
}

static void keep_coverage(struct job *j, const struct frame *f) {
    if (!json_get(f->head, "coverage"))
        return;
    forget(&j->coverage);
    j->coverage = json_copy(json_get(f->head, "coverage"));
}

static void got_ran(struct worker *w, struct frame *f) {
    struct job *j = &w->job;
    str verdict, why;
    json_get_i64(f->head, "order", &j->drawn);
    if (!accepted(f, &verdict, &why)) {
        size_t run = at_of(f);
        blame(w, order_module(j, run), verdict, why, order_case(j, run),
              json_get(f->head, "findings") ? f->head : NULL);
        return;
    }
    forget(&j->ran);
    j->ran = json_copy(f->head);
    keep_coverage(j, f);
    if (flag(f->head, "late")) { /* too slow here to be judged, which says nothing of the kernel */
        j->covering_us += clock_us() - j->batch_us;
        next_batch(j);
        job_next(w);
        return;
    }
    if (j->prepared && w->judge.ready)
        ask(w, STEP_COMPARE, WIRE_COMPARE, NULL, (str){0});
    else
        job_next(w); /* the judge that knew the answer is gone */
}

static void keep_evidence(struct job *j, const struct frame *f) {
    const json *batch = batch_now(j), *cases = json_get(batch, "cases");
    for (size_t i = 0; i < j->meet.nsent; i++) {
        size_t at = meet_case(j, i);
        if (j->meet.met[at])
            continue;
        json *run = json_object();
        const json *worst = json_at(json_get(f->head, "worst"), i);
        const json *rms = json_at(json_get(f->head, "rms"), i);
        json_set(run, "shape", json_copy(json_get(shape_of(j, batch), "label")));
        json_set(run, "data", json_copy(json_get(json_at(cases, at), "data")));
        if (worst)
            json_set(run, "worst", json_copy(worst));
        if (rms)
            json_set(run, "rms", json_copy(rms));
        json_push(j->evidence, run);
    }
    const json *counters = json_get(j->ran, "counters");
    if (counters) {
        forget(&j->counters);
        j->counters = json_copy(counters);
    }
}

/* Wrong where it was right before. Once more: right again is instability, wrong is drift. */
static void recheck(struct worker *w, const struct frame *f, str why) {
    struct job *j = &w->job;
    if (!j->rechecks++) {
        err_set(&j->failed, ERR_NO, "%.*s", STR_ARG(why));
        job_next(w);
        return;
    }
    finish(w, str_view(verdict_name(VERDICT_DRIFT)), why, at_of(f), f->head);
}

static void got_wrong(struct worker *w, const struct frame *f, str verdict, str why) {
    struct job *j = &w->job;
    size_t module = order_module_of(j, at_of(f));
    bool again = j->round > 0 && !meet_is_first(j, at_of(f));
    if (!module && (again || j->rechecks))
        recheck(w, f, why);
    else
        blame(w, module, verdict, why, at_of(f), f->head);
}

/* All of it is right, and it was timed often enough. */
static void settle_batch(struct worker *w) {
    struct job *j = &w->job;
    double slower = 0;
    char why[200];
    switch (meet_judge(j, &slower)) {
    case MEET_FINE:
        next_batch(j);
        break;
    case MEET_AGAIN:
        break;
    case MEET_DRIFT:
        snprintf(why, sizeof why,
                 "where it meets a content for the first time it takes %.0f%% longer than where it "
                 "meets one again, in five rounds: nothing may be kept from launch to launch",
                 100 * slower);
        finish(w, str_view(verdict_name(VERDICT_DRIFT)), str_view(why), 0, NULL);
        return;
    }
    job_next(w);
}

static void got_judged(struct worker *w, const struct frame *f) {
    struct job *j = &w->job;
    bool timed = flag(batch_now(j), "timed");
    str verdict, why;
    if (timed)
        j->timing_us += clock_us() - j->batch_us;
    if (is_extra(j))
        j->covering_us += clock_us() - j->batch_us;
    if (!accepted(f, &verdict, &why)) {
        got_wrong(w, f, verdict, why);
        return;
    }
    if (j->rechecks) {
        finish(w, str_view(verdict_name(VERDICT_UNSTABLE)), str_view(j->failed.text), 0, NULL);
        return;
    }
    keep_evidence(j, f);
    meet_keep(j);
    if (timed) {
        times_keep(j);
        j->round++;
        j->loaded = j->loaded && !j->apart; /* the next has its turn */
    }
    if (!timed || j->meet.further || times_suffice(j))
        settle_batch(w);
    else
        job_next(w);
}

/* ---- answers ---- */

static void got_loaded(struct worker *w, const struct frame *f) {
    str verdict, why;
    w->job.loaded = accepted(f, &verdict, &why);
    if (w->job.loaded)
        job_next(w);
    else
        blame(w, module_at(&w->job, at_of(f)), verdict, why, 0, NULL);
}

static json *copy_of(const json *head, const char *key) {
    return json_get(head, key) ? json_copy(json_get(head, key)) : NULL;
}

static void got_measured(struct worker *w, const struct frame *f) {
    struct job *j = &w->job;
    str verdict, why;
    if (!accepted(f, &verdict, &why)) {
        finish(w, verdict, why, 0, NULL);
        return;
    }
    j->measured = true;
    forget(&j->counters);
    forget(&j->lines);
    j->counters = copy_of(f->head, "counters");
    j->lines = copy_of(f->head, "lines");
    keep_coverage(j, f);
    job_next(w);
}

/* ---- blocks of the task's own shape ---- */

static void add_to(json *facts, const char *name, const json *from, const char *key) {
    int64_t sum = 0, more = 0;
    json_get_i64(facts, name, &sum);
    json_get_i64(from, key, &more);
    json_set_i64(facts, name, sum + more);
}

static void got_sampled(struct worker *w, const struct frame *f) {
    struct job *j = &w->job;
    static const char *const facts[] = {"blocks_total", "unjudged"};
    static const char *const asked[] = {"set", "data", "seed", "most"};
    const json *sample = sample_now(j);
    str verdict, why;
    if (!accepted(f, &verdict, &why)) {
        finish(w, verdict, why, 0, json_get(f->head, "findings") ? f->head : NULL);
        return;
    }
    if (!j->sampled) {
        forget(&j->sample);
        j->sample = json_object();
        for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
            json_set(j->sample, facts[i], copy_of(f->head, facts[i]));
    }
    add_to(j->sample, "blocks", f->head, "blocks");
    keep_coverage(j, f);
    json *head = json_object();
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        json_set(head, asked[i], copy_of(sample, asked[i]));
    json_set(head, "parts", copy_of(f->head, "parts"));
    if (w->judge.ready)
        ask(w, STEP_PARTS, WIRE_PARTS, head, f->blob);
    else
        wait_roles(w); /* and the blocks are run again */
    json_free(head);
}

static void got_parts(struct worker *w, const struct frame *f) {
    struct job *j = &w->job;
    str verdict, why;
    if (!accepted(f, &verdict, &why)) {
        finish(w, verdict, why, 0, f->head);
        return;
    }
    add_to(j->sample, "elements", f->head, "judged");
    add_to(j->sample, "skipped", f->head, "skipped");
    j->sampled++;
    job_next(w);
}

static void got_dumped(struct worker *w, const struct frame *f) {
    json *head = json_copy(f->head);
    json_set_i64(head, "job", w->job.id);
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

/* Outputs for another judge: what was computed is handed up as it is. */
static bool dumps(const struct worker *w) {
    return flag(w->job.frame.head, "dump");
}

/* An answer is expected from one role at a time; anything else is stale or broken. */
void job_answer(struct worker *w, struct role *r, struct frame *f) {
    str why = S("no reason given"), verdict;
    if (f->type != WIRE_BUFFERS)
        w->job.spent_us[w->step] += clock_us() - w->job.asked_us;
    if (f->type == WIRE_BUFFERS && r == &w->judge) {
        if (w->device.ready)
            conn_send(w->device.conn, WIRE_BUFFERS, f->head, (str){0}, f->fds, f->nfds);
    } else if (f->type == WIRE_ERROR) {
        json_get_str(f->head, "why", &why);
        role_dismiss(r); /* what it cannot do now it may never do again, where a fresh one can */
        fail(w, why);
    } else if (f->type == WIRE_CASE && w->step == STEP_PREPARE) {
        got_case(w, f);
    } else if (f->type == WIRE_JUDGED && w->step == STEP_COMPARE) {
        got_judged(w, f);
    } else if (f->type == WIRE_LOADED && w->step == STEP_LOAD) {
        got_loaded(w, f);
    } else if (f->type == WIRE_RAN && w->step == STEP_RUN) {
        if (dumps(w) && accepted(f, &verdict, &why) && w->job.prepared && w->judge.ready)
            ask(w, STEP_DUMP, WIRE_DUMP, NULL, (str){0});
        else
            got_ran(w, f);
    } else if (f->type == WIRE_DUMPED && w->step == STEP_DUMP) {
        got_dumped(w, f);
    } else if (f->type == WIRE_MEASURED && w->step == STEP_MEASURE) {
        got_measured(w, f);
    } else if (f->type == WIRE_SAMPLED && w->step == STEP_SAMPLE) {
        got_sampled(w, f);
    } else if (f->type == WIRE_JUDGED && w->step == STEP_PARTS) {
        got_parts(w, f);
    } else if (f->type == WIRE_CEILED && w->step == STEP_CEILINGS) {
        got_ceilings(w, f);
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

void job_start(struct worker *w, struct frame *f) {
    struct job *j = &w->job;
    struct err err = {0};
    memset(j, 0, sizeof *j);
    j->frame = *f;
    j->id = -1;
    j->limit_ms = 20000;
    json_get_i64(f->head, "job", &j->id);
    json_get_i64(f->head, "limit_ms", &j->limit_ms);
    j->rivals = json_array();
    j->started_us = clock_us();
    if (w->next_us)
        j->waited_us = j->started_us - w->next_us;
    w->next_us = 0;
    j->evidence = json_array();
    w->alive = loop_timer(w->loop, WIRE_ALIVE_MS, say_alive, w);
    if (modules_init(j, &err))
        job_next(w);
    else
        fail(w, str_view(err.text));
}
