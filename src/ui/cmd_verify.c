/* verify TASK KERNEL.cu…: candidates through the whole evaluation, and their verdicts. */
#include "base/file.h"
#include "base/say.h"
#include "eval/eval.h"
#include "kernel/candidate.h"
#include "ui/ui.h"

#include <stdio.h>

struct verifying {
    struct ui *ui;
    bool lines; /* JSON, one a line; or, of a single evaluation, pretty */
    bool named; /* there are several files */
    const char *dump;
    const struct source_file *files;
    struct record **watched; /* what the simulator's checkers say, by file; NULL: nothing */
    unsigned rejected;
    bool unsaid; /* stdout took none of it */
    bool gpu;
    const struct gpu *on;
    const char *device;
};

static void print_time(struct ui *ui, const struct gpu *g, const struct outcome *o) {
    const struct record *r = o->record;
    str launch = ui_launch_bound(ui->arena, g, o->limit_share * o->time_s, o->time_s, r->nlaunches);
    str time = ui_time(ui->arena, o->time_s);
    if (o->estimated)
        say("estimated %.*s (%s-bound, %.0f%% of the limit; %s, not a measurement)\n",
            STR_ARG(time), o->bound, 100 * o->limit_share, ui_model(o));
    else if (r->has_ci_low_s && r->has_ci_high_s)
        say("measured %.*s (%.*s to %.*s, %zu runs), %.0f%% of the limit\n", STR_ARG(time),
            STR_ARG(ui_time(ui->arena, r->ci_low_s)), STR_ARG(ui_time(ui->arena, r->ci_high_s)),
            r->nsamples_s, 100 * o->limit_share);
    if (r->has_time_prepared_s)
        say("%.*s\n", STR_ARG(ui_prepared(ui->arena, r)));
    if (launch.n)
        say("%.*s\n", STR_ARG(launch));
}

/* The command that judges the kernel on the very data on which it was rejected. */
static str again(const struct verifying *v, const struct source_file *f, const struct record *r) {
    struct arena *a = v->ui->arena;
    const char *const *sets;
    char *const *args;
    size_t nsets = option_list(v->ui->options, "set", &sets), n = 0;
    const char **words = arena_array(a, const char *, nsets * 2 + 9);
    options_args(v->ui->options, &args);
    words[n++] = "verify";
    words[n++] = args[0];
    words[n++] = arena_cstr(a, f->file);
    words[n++] = "--device";
    words[n++] = v->device;
    for (size_t i = 0; i < nsets; i++) {
        words[n++] = "--set";
        words[n++] = sets[i];
    }
    if (option_bool(v->ui->options, "must-admit"))
        words[n++] = "--must-admit";
    return arena_printf(a, "%.*s --verify-seed %llu", STR_ARG(ui_command_words(v->ui, words)),
                        (unsigned long long)r->verify_seed);
}

static void print_outcome(const struct verifying *v, const struct source_file *f,
                          const struct outcome *o) {
    struct ui *ui = v->ui;
    const struct record *r = o->record;
    say("%s", verdict_name(o->verdict));
    if (r->shape.p && r->data.p)
        say(" at %.*s on %.*s data", STR_ARG(r->shape), STR_ARG(r->data));
    if (*o->why)
        say(": %.*s", STR_ARG(ui_with_file(ui->arena, str_view(o->why), f->file)));
    say("\n");
    if (o->verdict != VERDICT_ACCEPTED) {
        if (r->has_verify_seed)
            say("again: %.*s\n", STR_ARG(again(v, f, r)));
        return;
    }
    say("verified on %.*s\n", STR_ARG(r->scope));
    if (r->nskipped)
        say("not tried: %.*s\n", STR_ARG(ui_skipped(ui->arena, r)));
    if (r->simulated_scope.p)
        say("and on %.*s\n", STR_ARG(r->simulated_scope));
    else if (r->unwatched_why.p)
        say("not under the simulator's checkers: %.*s\n", STR_ARG(r->unwatched_why));
    print_time(ui, v->on, o);
}

static void print_dumped(const struct verifying *v, const struct source_file *f) {
    say("%.*s: ran, written to %s; nothing was judged\n", STR_ARG(f->file), v->dump);
}

/* Of what was only written nothing is known but that it ran. */
static json *each_json(const struct verifying *v, const struct source_file *f,
                       const struct outcome *o, bool dumped) {
    json *j = dumped ? json_object() : record_to_json(o->record);
    json_set_str(j, "file", f->file);
    if (dumped)
        json_set_str(j, "dumped", str_view(v->dump));
    return j;
}

/* ---- a GPU's verdict, and the simulator's ---- */

static void keep_watched(void *ctx, const struct source_file *f, const struct outcome *o) {
    struct verifying *v = ctx;
    struct record **kept = &v->watched[f - v->files];
    record_free(*kept);
    *kept = record_copy(o->record);
}

/* All files at once: what they do under the simulator's checkers does not depend on the GPU. */
static bool watch_all(struct verifying *v, const struct evaluator_options *eo, size_t n,
                      struct err *err) {
    struct evaluator_options watching;
    if (eo->device.kind != DEVICE_CUDA || eo->dump || option_bool(v->ui->options, "fast"))
        return true;
    v->watched = arena_array(v->ui->arena, struct record *, n);
    if (!evaluator_options_watching(eo, v->ui->arena, &watching, err))
        return false;
    watching.candidates = n;
    return evaluate_many(&watching, v->files, n, 1, keep_watched, v, err);
}

/* The record of a kernel that the GPU found right, with the simulator's opinion. */
static struct record *with_opinion(const struct verifying *v, const struct source_file *f,
                                   const struct outcome *o) {
    struct record *r = record_copy(o->record);
    const struct record *w = v->watched ? v->watched[f - v->files] : NULL;
    fields_set(r, watched, w && w->accepted);
    if (r->watched) {
        fields_set(r, covered, !w->has_covered || w->covered);
        r->simulated_scope = w->scope;
    } else if (!w || w->verdict == VERDICT_UNSUPPORTED || w->verdict == VERDICT_OUT_OF_MEMORY) {
        r->unwatched_why = w ? w->why : S("--fast");
    } else {
        record_set_verdict(
            r, w->verdict,
            arena_printf(r->mem, "under the simulator's checkers: %.*s", STR_ARG(w->why)));
        r->scope = (str){0};
        r->has_task_shape_verified = false;
        fields_set(r, verify_seed, w->verify_seed);
        r->shape = w->shape;
        r->data = w->data;
        r->order = w->order;
        r->findings = w->findings;
        r->nfindings = w->nfindings;
    }
    return r;
}

static void print_each(struct verifying *v, const struct source_file *f, const struct outcome *o);

static void each(void *ctx, const struct source_file *f, const struct outcome *gpu) {
    struct verifying *v = ctx;
    bool whole = !v->gpu || v->dump || gpu->verdict != VERDICT_ACCEPTED;
    struct outcome *both = whole ? NULL : outcome_of(with_opinion(v, f, gpu));
    print_each(v, f, both ? both : gpu);
    outcome_free(both);
}

static void print_each(struct verifying *v, const struct source_file *f, const struct outcome *o) {
    bool dumped = v->dump && o->verdict == VERDICT_ACCEPTED;
    v->rejected += o->verdict != VERDICT_ACCEPTED;
    if (v->ui->as_json) {
        json *j = each_json(v, f, o, dumped);
        v->unsaid |= v->lines ? !ui_print_json_line(j) : !ui_print_json(j);
    } else if (dumped) {
        print_dumped(v, f);
    } else {
        if (v->named)
            say("%.*s: ", STR_ARG(f->file));
        print_outcome(v, f, o);
    }
}

static bool read_kernels(struct ui *ui, struct source_file **out, size_t *n, struct err *err) {
    char *const *args;
    *n = options_args(ui->options, &args) - 1;
    *out = arena_array(ui->arena, struct source_file, *n);
    for (size_t i = 0; i < *n; i++) {
        (*out)[i].file = str_view(args[i + 1]);
        if (!candidate_read_file(args[i + 1], ui->arena, &(*out)[i].text, err))
            return false;
    }
    return true;
}

int cmd_verify(struct ui *ui) {
    struct verifying v = {.ui = ui};
    struct evaluator_options eo;
    struct source_file *files;
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    size_t n, repeat = (size_t)option_int(ui->options, "repeat");
    if (!ui_load_task(ui, 0, &task, &inst, &err) || !read_kernels(ui, &files, &n, &err) ||
        !ui_evaluator_options(ui, task, inst, &eo, &err))
        return ui_fail(ui, &err);
    eo.thorough = true;
    eo.candidates = n * repeat;
    eo.fresh_seeds = true;
    v.named = n > 1;
    v.lines = n * repeat > 1;
    v.dump = eo.dump = option_text(ui->options, "dump");
    eo.verify_only = eo.dump != NULL; /* what it computed is for somebody else to judge */
    v.files = files;
    v.gpu = eo.device.kind == DEVICE_CUDA;
    v.on = eo.device.gpu;
    v.device = eo.device.text;
    bool ok = watch_all(&v, &eo, n, &err) && evaluate_many(&eo, files, n, repeat, each, &v, &err);
    for (size_t i = 0; v.watched && i < n; i++)
        record_free(v.watched[i]);
    if (!ok)
        return ui_fail(ui, &err);
    return v.unsaid ? ERR_ENV : v.rejected ? ERR_NO : 0;
}
