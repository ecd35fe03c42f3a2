/* profile TASK KERNEL.cu: where a kernel's time goes.
 *
 * Three sources, each named in the report: the compiler (registers, spills, instructions), the task
 * (bytes, flops, roofline), and the device (on a GPU the measured time and, with --counters, ncu's
 * counters; on the simulator its exact counts and the time they make). A kernel that does not
 * compile has no profile; one that is wrong has, with its verdict. */
#include "base/file.h"
#include "base/say.h"
#include "eval/eval.h"
#include "kernel/census.h"
#include "kernel/inspect.h"
#include "spec/cost.h"
#include "ui/ncu.h"
#include "ui/sim_report.h"
#include "ui/ui.h"

#include <math.h>
#include <stdio.h>

struct profile {
    struct ui *ui;
    str file;
    struct evaluator_options eo;
    struct candidate *candidate;
    struct bound_plan plan;
    struct build build; /* strings in the ui's arena */
    bool built;
    struct ptx_module *module;
    struct cost cost;
    struct roofline limit;
    struct outcome *outcome;
    json *counters; /* ncu's; NULL: none */
    struct err no_counters;
};

/* ---- the build ---- */

/* The candidate's failures end up in the outcome, which says them better. */
static bool build_kernel(struct profile *p, str file, str source, struct err *err) {
    struct err verdict = {0};
    struct buf unit;
    if (!candidate_parse(file, source, p->eo.task, p->ui->arena, &p->candidate, &verdict) ||
        !plan_bind(p->candidate, p->eo.inst, p->ui->arena, &p->plan, &verdict))
        return true;
    buf_init(&unit, 4u << 20);
    struct build_pool_options po = {
        .jobs = 1, .cache = p->eo.cache, .limit_ms = p->eo.compile_limit_ms};
    struct build_request r = {.arch = p->eo.device.gpu->arch, .fmad = true};
    bool ok = true;
    if (candidate_unit(p->candidate, &unit, &verdict)) {
        r.unit = buf_str(&unit);
        ok = build_once(&p->eo.nvrtc, &po, &r, p->ui->arena, &p->build, err);
    }
    buf_release(&unit);
    p->built = ok && p->build.verdict == VERDICT_ACCEPTED && p->build.ptx.n &&
               ptx_parse(p->build.ptx, p->ui->arena, &p->module, &verdict);
    return ok;
}

static const struct kernel_facts *facts_of(const struct profile *p, str kernel) {
    for (size_t i = 0; i < p->build.nkernels; i++)
        if (str_eq(p->build.kernels[i].name, kernel))
            return &p->build.kernels[i];
    return NULL;
}

static struct census census_of(const struct profile *p, str kernel) {
    struct census c = {0};
    for (size_t i = 0; i < p->module->nentries; i++)
        if (str_eq(p->module->entries[i].name, kernel))
            census_take(p->module, &p->module->entries[i], p->ui->arena, &c);
    return c;
}

/* ---- counters ---- */

static void take_counters(struct profile *p) {
    struct ncu_run r = {.inst = p->eo.inst,
                        .plan = &p->plan,
                        .cubin = p->build.cubin,
                        .ordinal = p->eo.device.ordinal};
    if (!option_bool(p->ui->options, "counters"))
        return;
    if (p->eo.device.kind != DEVICE_CUDA)
        err_set(&p->no_counters, ERR_INPUT,
                "hardware counters need --device cuda; the simulator's own counts are shown");
    else if (p->outcome->verdict != VERDICT_ACCEPTED)
        err_set(&p->no_counters, ERR_NO,
                "counters are not taken of a kernel that is not right: they would be taken "
                "outside the sandbox");
    else if (p->built && !ncu_profile(&r, &p->counters, &p->no_counters))
        p->counters = NULL;
}

/* What is not right is not for other tools either. */
static bool keep_folder(const struct profile *p, struct err *err) {
    const char *dir = option_text(p->ui->options, "keep");
    struct ncu_run r = {.inst = p->eo.inst, .plan = &p->plan, .cubin = p->build.cubin};
    if (!dir || !p->built || p->outcome->verdict != VERDICT_ACCEPTED)
        return true;
    const char *ptx = arena_printf(p->ui->arena, "%s/kernel.ptx", dir).p;
    return ncu_folder(&r, dir, err) && file_replace(ptx, p->build.ptx, err);
}

/* ---- words ---- */

static double ridge(const struct profile *p) {
    const struct roofline *r = &p->limit;
    return r->compute_s > 0 ? r->intensity * r->memory_s / r->compute_s : INFINITY;
}

static void print_time(const struct profile *p) {
    const struct outcome *o = p->outcome;
    struct arena *a = p->ui->arena;
    str time = ui_time(a, o->time_s), limit = ui_time(a, p->limit.limit_s);
    str memory = ui_time(a, p->limit.memory_s), compute = ui_time(a, p->limit.compute_s);
    str launch =
        ui_launch_bound(a, p->eo.device.gpu, p->limit.limit_s, o->time_s, o->record->nlaunches);
    const struct record *r = o->record;
    say("verdict    %s%s%.*s\n", verdict_name(o->verdict), *o->why ? ": " : "",
        STR_ARG(ui_with_file(a, str_view(o->why), p->file)));
    if (o->verdict == VERDICT_ACCEPTED) {
        say("time       %.*s", STR_ARG(time));
        if (o->estimated)
            say(" estimated (%s, not a measurement)", ui_model(o));
        else if (r->has_ci_low_s && r->has_ci_high_s)
            say(" -%.1f%% +%.1f%% measured", 100 * (1 - r->ci_low_s / o->time_s),
                100 * (r->ci_high_s / o->time_s - 1));
        say(", %.0f%% of the limit %.*s\n", 100 * p->limit.limit_s / o->time_s, STR_ARG(limit));
        if (r->has_time_prepared_s)
            say("prepared   %.*s\n", STR_ARG(ui_prepared(a, r)));
        if (launch.n)
            say("launch     %.*s\n", STR_ARG(launch));
        say("achieved   %.3g TB/s of compulsory bytes, %.3g Tflop/s\n",
            p->cost.compulsory_bytes / o->time_s / 1e12, p->cost.flops / o->time_s / 1e12);
    }
    say("work       %.4g MB read, %.4g MB written, %.4g Mflop (%.3g%% special functions)\n",
        p->cost.read_bytes / 1e6, p->cost.write_bytes / 1e6, p->cost.flops / 1e6,
        p->cost.flops > 0 ? 100 * p->cost.flops_special / p->cost.flops : 0);
    say("roofline   %.3g flop a byte, ridge at %.3g: %s-bound (memory %.*s, arithmetic %.*s)\n",
        p->limit.intensity, ridge(p), p->limit.memory_bound ? "memory" : "arithmetic",
        STR_ARG(memory), STR_ARG(compute));
    say("           made of %s\n",
        gpu_limit_source(p->eo.device.gpu, p->eo.device.kind == DEVICE_CUDA));
}

static void print_census(const struct census *c) {
    say("  code       %lld instructions:", (long long)c->instructions);
    for (size_t i = 0; i < c->ngroups; i++)
        say(" %.*s %lld", STR_ARG(c->groups[i].name), (long long)c->groups[i].count);
    say("\n");
    for (size_t i = 0; i < c->nforms; i++)
        say("%s%.*s x%lld", i ? ", " : "  forms      ", STR_ARG(c->forms[i].name),
            (long long)c->forms[i].count);
    if (c->nforms)
        say("\n");
}

static void print_kernel(const struct profile *p, const struct kernel_facts *f) {
    struct census c = census_of(p, f->name);
    say("kernel %.*s\n", STR_ARG(f->name));
    say("  registers  %d a thread, stack %zu bytes, ", f->registers, f->local_bytes);
    if (f->spill_store_bytes < 0)
        say("spills unknown");
    else if (f->spill_store_bytes + f->spill_load_bytes == 0)
        say("no spills");
    else
        say("spills %lld bytes stored, %lld loaded", (long long)f->spill_store_bytes,
            (long long)f->spill_load_bytes);
    say("; %zu bytes of static shared memory\n", f->shared_static);
    print_census(&c);
}

static void print_hardware(const json *launch) {
    for (const struct ncu_metric *m = ncu_metrics; m->name; m++) {
        double v;
        if (json_get_f64(launch, m->name, &v))
            say("  %-21s  %.4g%s%s\n", m->label, v, *m->unit ? " " : "", m->unit);
    }
}

static void print_launch(const struct profile *p, size_t i) {
    const struct bound_launch *l = &p->plan.launches[i];
    const struct gpu *g = p->eo.device.gpu;
    struct occupancy o = launch_occupancy(g, facts_of(p, l->kernel), l);
    struct sim_report r = {.a = p->ui->arena,
                           .record = p->outcome->record,
                           .cost = &p->cost,
                           .nlaunches = p->plan.nlaunches};
    say("launch %zu of %zu: %.*s<<<[%u,%u,%u], [%u,%u,%u], %llu>>>\n", i + 1, p->plan.nlaunches,
        STR_ARG(l->kernel), l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
        l->block[2], (unsigned long long)l->shared);
    say("  occupancy  %d blocks and %d of %d warps an SM, limited by %s\n", o.blocks_sm, o.warps_sm,
        g->max_warps_sm, o.limiter);
    sim_report_counts(&r, i);
    if (p->counters)
        print_hardware(json_at(p->counters, i));
}

static void print_profile(const struct profile *p) {
    const struct task *t = p->eo.task;
    str label = inst_label(p->eo.inst, p->ui->arena);
    say("%.*s %.*s, class %s, on %s\n", STR_ARG(t->name), STR_ARG(label),
        accuracy_name(t->accuracy), p->eo.device.text);
    print_time(p);
    for (size_t i = 0; p->built && i < p->build.nkernels; i++)
        print_kernel(p, &p->build.kernels[i]);
    for (size_t i = 0; p->built && i < p->plan.nlaunches; i++)
        print_launch(p, i);
    if (p->counters)
        say("Counters are ncu's, of one run outside the sandbox on stated data.\n");
}

/* ---- JSON ---- */

static json *kernel_json(const struct profile *p, const struct kernel_facts *f) {
    struct census c = census_of(p, f->name);
    json *j = json_object();
    json_set_str(j, "name", f->name);
    json_set_i64(j, "registers", f->registers);
    json_set_i64(j, "local_bytes", (int64_t)f->local_bytes);
    json_set_i64(j, "spill_store_bytes", f->spill_store_bytes);
    json_set_i64(j, "spill_load_bytes", f->spill_load_bytes);
    json_set_i64(j, "shared_static", (int64_t)f->shared_static);
    json_set(j, "census", fields_to_json(&census_fields, &c));
    return j;
}

static json *launch_json(const struct profile *p, size_t i) {
    const struct bound_launch *l = &p->plan.launches[i];
    struct occupancy o = launch_occupancy(p->eo.device.gpu, facts_of(p, l->kernel), l);
    json *j = json_object(), *grid = json_array(), *block = json_array();
    for (int d = 0; d < 3; d++) {
        json_push_i64(grid, l->grid[d]);
        json_push_i64(block, l->block[d]);
    }
    json_set_str(j, "kernel", l->kernel);
    json_set(j, "grid", grid);
    json_set(j, "block", block);
    json_set_i64(j, "shared", (int64_t)l->shared);
    json_set_i64(j, "blocks_sm", o.blocks_sm);
    json_set_i64(j, "warps_sm", o.warps_sm);
    json_set_i64(j, "max_warps_sm", p->eo.device.gpu->max_warps_sm);
    json_set_str(j, "occupancy_limiter", str_view(o.limiter));
    if (p->counters && json_at(p->counters, i))
        json_set(j, "ncu", json_copy(json_at(p->counters, i)));
    return j;
}

static json *roofline_json(const struct profile *p) {
    json *j = json_object();
    json_set_f64(j, "compulsory_bytes", p->cost.compulsory_bytes);
    json_set_f64(j, "read_bytes", p->cost.read_bytes);
    json_set_f64(j, "write_bytes", p->cost.write_bytes);
    json_set_f64(j, "flops", p->cost.flops);
    json_set_f64(j, "flops_special", p->cost.flops_special);
    json_set_f64(j, "intensity", p->limit.intensity);
    json_set_f64(j, "ridge", ridge(p));
    json_set_f64(j, "memory_s", p->limit.memory_s);
    json_set_f64(j, "compute_s", p->limit.compute_s);
    json_set_f64(j, "limit_s", p->limit.limit_s);
    json_set_str(j, "bound", p->limit.memory_bound ? S("memory") : S("arithmetic"));
    return j;
}

static json *profile_json(const struct profile *p) {
    json *j = json_object(), *kernels = json_array(), *launches = json_array();
    for (size_t i = 0; p->built && i < p->build.nkernels; i++)
        json_push(kernels, kernel_json(p, &p->build.kernels[i]));
    for (size_t i = 0; p->built && i < p->plan.nlaunches; i++)
        json_push(launches, launch_json(p, i));
    json_set_str(j, "task", p->eo.task->name);
    json_set_str(j, "shape", inst_label(p->eo.inst, p->ui->arena));
    json_set_str(j, "device", str_view(p->eo.device.text));
    json_set_str(j, "verdict", str_view(verdict_name(p->outcome->verdict)));
    json_set_bool(j, "accepted", p->outcome->verdict == VERDICT_ACCEPTED);
    json_set(j, "roofline", roofline_json(p));
    json_set(j, "kernels", kernels);
    json_set(j, "launches", launches);
    json_set_str(j, "counters",
                 p->counters           ? S("ncu, one run outside the sandbox on stated data")
                 : p->no_counters.kind ? str_view(p->no_counters.text)
                                       : S("none"));
    json_set(j, "outcome", record_to_json(p->outcome->record));
    return j;
}

/* ---- the command ---- */

static bool look(struct profile *p, struct err *err) {
    char *const *args;
    struct task *task;
    struct inst *inst;
    str source;
    options_args(p->ui->options, &args);
    p->file = str_view(args[1]);
    if (!ui_load_task(p->ui, 0, &task, &inst, err) ||
        !candidate_read_file(args[1], p->ui->arena, &source, err) ||
        !ui_evaluator_options(p->ui, task, inst, &p->eo, err))
        return false;
    cost_of(inst, &p->cost);
    p->limit = task_limit(p->eo.device.gpu, inst);
    if (!build_kernel(p, p->file, source, err) ||
        !evaluate_once(&p->eo, p->file, source, &p->outcome, err))
        return false;
    take_counters(p);
    return keep_folder(p, err);
}

int cmd_profile(struct ui *ui) {
    struct profile p = {.ui = ui};
    struct err err = {0};
    int code;
    if (!look(&p, &err)) {
        code = ui_fail(ui, &err);
    } else {
        code = p.outcome->verdict == VERDICT_ACCEPTED ? 0 : ERR_NO;
        if (p.no_counters.kind)
            complain("cutepilot: no counters: %s\n", p.no_counters.text);
        if (!ui->as_json)
            print_profile(&p);
        else if (!ui_print_json(profile_json(&p)))
            code = ERR_ENV;
    }
    outcome_free(p.outcome);
    json_free(p.counters);
    return code;
}
