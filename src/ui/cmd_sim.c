/* sim KERNEL.cu --task TASK: a kernel on the simulator, looked at closely.
 *
 * Two evaluations, both by the evaluator that serves every other command: one judges the kernel at
 * small shapes with the checkers on, one observes it at the shape that was asked for, whole where
 * that is small and otherwise in a sample of its blocks. So a kernel that is wrong still shows what
 * it does; one that does not compile shows nothing. */
#include "base/file.h"
#include "base/say.h"
#include "eval/eval.h"
#include "kernel/candidate.h"
#include "ui/sim_report.h"
#include "ui/ui.h"

#include <stdio.h>

struct looking {
    struct ui *ui;
    struct evaluator_options eo;
    str file, source;
    struct cost cost;
    struct roofline limit;
    struct outcome *judged, *seen; /* seen: NULL where nothing could be run */
};

/* ---- words ---- */

static str with_file(const struct looking *l, str text) {
    return ui_with_file(l->ui->arena, text, l->file);
}

static bool has_estimate(const struct looking *l) {
    return l->seen && l->seen->record->nestimate > 0;
}

static void print_verdict(const struct looking *l) {
    const struct record *r = l->judged->record;
    say("verdict    %s%s%.*s\n", verdict_name(l->judged->verdict), *l->judged->why ? ": " : "",
        STR_ARG(with_file(l, str_view(l->judged->why))));
    if (l->judged->verdict == VERDICT_ACCEPTED) {
        say("verified   on %.*s\n", STR_ARG(r->scope));
        say("findings   none of races, unwritten memory or barriers, at the small shapes%s\n",
            l->eo.check_own ? " and the task's own" : "");
    }
    for (size_t i = 0; i < r->nfindings; i++)
        say("finding    %.*s: %.*s\n", STR_ARG(r->findings[i].check),
            STR_ARG(with_file(l, r->findings[i].text)));
    if (r->nfindings && r->shape.p)
        say("           at %.*s\n", STR_ARG(r->shape));
}

static void print_estimate(const struct looking *l) {
    const struct gpu *g = l->eo.device.gpu;
    struct arena *a = l->ui->arena;
    if (!has_estimate(l)) {
        if (l->seen && *l->seen->why)
            say("not run    at the task's shape: %s: %.*s\n", verdict_name(l->seen->verdict),
                STR_ARG(with_file(l, str_view(l->seen->why))));
        return;
    }
    double time_s = l->seen->record->time_s;
    say("estimate   %.*s on an %s, %.0f%% of the limit %.*s: a model's, %s, not a measurement\n",
        STR_ARG(ui_time(a, time_s)), g->title, 100 * l->limit.limit_s / time_s,
        STR_ARG(ui_time(a, l->limit.limit_s)),
        g->calibrated ? "calibrated on hardware" : "not calibrated on hardware");
    if (l->seen->record->has_time_prepared_s)
        say("prepared   %.*s\n", STR_ARG(ui_prepared(a, l->seen->record)));
}

static void print_spills(const struct looking *l, str kernel) {
    const struct record *r = l->seen->record;
    for (size_t i = 0; i < r->nkernels; i++) {
        const struct record_kernel *k = &r->kernels[i];
        if (str_eq(k->name, kernel) && (k->spill_bytes || k->local_bytes))
            say(", %lld bytes of stack, %lld of spills", (long long)k->local_bytes,
                (long long)k->spill_bytes);
    }
}

static void print_launch(const struct looking *l, const struct sim_report *r, size_t i) {
    const struct record_estimate *e = &l->seen->record->estimate[i];
    say("launch %zu of %zu: %.*s, %ux%ux%u blocks of %ux%ux%u threads\n", i + 1, r->nlaunches,
        STR_ARG(e->kernel), e->grid[0], e->grid[1], e->grid[2], e->block[0], e->block[1],
        e->block[2]);
    say("  resources  %lld registers a thread, %lld bytes of shared memory a block",
        (long long)e->registers, (long long)e->shared_bytes);
    print_spills(l, e->kernel);
    say("\n  occupancy  %lld blocks and %lld of %d warps an SM, limited by %.*s\n",
        (long long)e->blocks_sm, (long long)e->warps_sm, l->eo.device.gpu->max_warps_sm,
        STR_ARG(e->occupancy_limiter));
    sim_report_counts(r, i);
    sim_report_lines(r, i);
}

static struct sim_report report_of(const struct looking *l) {
    return (struct sim_report){.a = l->ui->arena,
                               .record = l->seen ? l->seen->record : NULL,
                               .cost = &l->cost,
                               .nlaunches = l->seen ? l->seen->record->nestimate : 0,
                               .source = l->source,
                               .lines = (unsigned)option_int(l->ui->options, "lines")};
}

static void print_report(const struct looking *l) {
    struct sim_report r = report_of(l);
    str label = inst_label(l->eo.inst, l->ui->arena);
    say("%.*s %.*s, class %s, on %s\n", STR_ARG(l->eo.task->name), STR_ARG(label),
        accuracy_name(l->eo.task->accuracy), l->eo.device.text);
    print_verdict(l);
    print_estimate(l);
    for (size_t i = 0; i < r.nlaunches; i++)
        print_launch(l, &r, i);
}

/* ---- JSON ---- */

/* The record's lines with their texts and shares, hottest first, as many as were asked for. */
static json *lines_json(const struct looking *l, const struct sim_report *r, size_t launch) {
    size_t n;
    struct sim_hot_line *hot = sim_hot_lines(l->seen->record, launch, l->ui->arena, &n);
    json *list = json_array();
    for (size_t i = 0; i < n && i < r->lines; i++) {
        const struct sim_line *k = &hot[i].line;
        json *j = fields_to_json(&sim_line_fields, k);
        if (str_is(k->file, CANDIDATE_UNIT_FILE))
            json_set_str(j, "text", sim_source_line(l->source, k->line));
        json_set_f64(j, "share", hot[i].share);
        json_push(list, j);
    }
    return list;
}

static json *launches_json(const struct looking *l) {
    struct sim_report r = report_of(l);
    json *list = json_array();
    for (size_t i = 0; i < r.nlaunches; i++) {
        json *j = fields_to_json(&record_estimate_fields, &l->seen->record->estimate[i]);
        json_set(j, "counters",
                 fields_to_json(&sim_counters_fields, &l->seen->record->counters[i]));
        json_set(j, "lines", lines_json(l, &r, i));
        json_push(list, j);
    }
    return list;
}

static json *findings_json(const struct record *r) {
    json *list = json_array();
    for (size_t i = 0; i < r->nfindings; i++)
        json_push(list, fields_to_json(&wire_finding_fields, &r->findings[i]));
    return list;
}

static json *looking_json(const struct looking *l) {
    json *j = json_object();
    json_set_str(j, "task", l->eo.task->name);
    json_set_str(j, "shape", inst_label(l->eo.inst, l->ui->arena));
    json_set_str(j, "device", str_view(l->eo.device.text));
    json_set_str(j, "gpu", str_view(l->eo.device.gpu->title));
    json_set_bool(j, "model_calibrated", l->eo.device.gpu->calibrated);
    json_set_str(j, "verdict", str_view(verdict_name(l->judged->verdict)));
    json_set_bool(j, "accepted", l->judged->verdict == VERDICT_ACCEPTED);
    json_set_str(j, "why", str_view(l->judged->why));
    json_set(j, "findings", findings_json(l->judged->record));
    if (has_estimate(l)) {
        double time_s = l->seen->record->time_s;
        json_set_bool(j, "estimated", true);
        json_set_f64(j, "time_s", time_s);
        json_set_f64(j, "limit_share", l->limit.limit_s / time_s);
        json_set_str(j, "bound", str_view(l->seen->bound));
    } else if (l->seen) {
        json_set_str(j, "not_run", str_view(l->seen->why));
    }
    json_set_f64(j, "limit_s", l->limit.limit_s);
    json_set_f64(j, "compulsory_bytes", l->cost.compulsory_bytes);
    json_set_f64(j, "flops", l->cost.flops);
    json_set(j, "launches", launches_json(l));
    return j;
}

/* ---- the command ---- */

/* Without code there is nothing to observe. */
static bool was_built(const struct outcome *o) {
    return o->record->nkernels > 0;
}

static bool look(struct looking *l, struct err *err) {
    char *const *args;
    const char *task_file = option_text(l->ui->options, "task");
    const char *gpu = option_text(l->ui->options, "gpu");
    const char *device = arena_printf(l->ui->arena, "sim:%s", gpu).p;
    struct task *task;
    struct inst *inst;
    options_args(l->ui->options, &args);
    if (!task_file)
        return err_set(err, ERR_INPUT, "sim needs --task TASK: what the kernel computes");
    l->file = str_view(args[0]);
    if (!ui_load_task_file(l->ui, task_file, &task, &inst, err) ||
        !candidate_read_file(args[0], l->ui->arena, &l->source, err) ||
        !ui_evaluator_options_on(l->ui, device, task, inst, &l->eo, err))
        return false;
    cost_of(inst, &l->cost);
    l->limit = task_limit(l->eo.device.gpu, inst);
    l->eo.workers = l->eo.compilers = 1;
    struct evaluator_options judging = l->eo, observing = l->eo;
    judging.verify_only = true;
    judging.check_own = l->eo.check_own = option_bool(l->ui->options, "checks");
    judging.small_only = !judging.check_own;
    judging.order = (uint32_t)option_int(l->ui->options, "order");
    observing.observe_only = true;
    if (!evaluate_once(&judging, l->file, l->source, &l->judged, err))
        return false;
    return !was_built(l->judged) || evaluate_once(&observing, l->file, l->source, &l->seen, err);
}

int cmd_sim(struct ui *ui) {
    struct looking l = {.ui = ui};
    struct err err = {0};
    int code;
    if (!look(&l, &err)) {
        code = ui_fail(ui, &err);
    } else {
        code = l.judged->verdict == VERDICT_ACCEPTED ? 0 : ERR_NO;
        if (!ui->as_json)
            print_report(&l);
        else if (!ui_print_json(looking_json(&l)))
            code = ERR_ENV;
    }
    outcome_free(l.judged);
    outcome_free(l.seen);
    return code;
}
