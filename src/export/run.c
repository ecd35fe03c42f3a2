#include "export/run.h"

#include "archive/archive.h"
#include "archive/calls.h"
#include "base/file.h"
#include "eval/outcome.h"
#include "ptx/ptx.h"
#include "target/gpu.h"
#include <math.h>
#include <string.h>

#define RECORD_MAX (64u << 20)

struct loading {
    const char *folder;
    struct arena *mem;
    struct export_kernel *out;
    str fingerprint, task_text;
    bool sampled; /* enough */
};

/* ---- files ---- */

static bool read_one(struct loading *l, const char *name, size_t max, str *out, struct err *err) {
    str path = arena_printf(l->mem, "%s/%s", l->folder, name);
    if (!file_exists(path.p))
        return err_set(err, ERR_INPUT,
                       "%s has no %s: the run came to no accepted kernel, or the "
                       "folder is not whole\nhint: 'cutepilot log %s' says what happened",
                       l->folder, name, l->folder);
    return file_read(path.p, max, l->mem, out, err);
}

static bool read_notes(struct loading *l, struct err *err) {
    struct archive *a;
    if (!archive_open_read(l->folder, &a, err))
        return false;
    bool ok = archive_get_note(a, "fingerprint", l->mem, &l->fingerprint, err) &&
              archive_get_note(a, "task", l->mem, &l->task_text, err);
    archive_close(a);
    return ok;
}

/* The fingerprint's value, kept. */
static bool printed(struct loading *l, const char *key, str *out, struct err *err) {
    json *j = json_parse(l->fingerprint, err);
    str value;
    bool ok = j && json_get_str(j, key, &value);
    if (ok)
        *out = arena_str(l->mem, value);
    json_free(j);
    return ok ||
           err_set(err, ERR_INPUT, "%s: the archive does not say the run's %s", l->folder, key);
}

/* ---- the task and its shape ---- */

static bool find_task(struct loading *l, const char *task_file, struct task **out,
                      struct err *err) {
    char hex[65];
    str recorded,
        file = task_file ? str_view(task_file) : arena_printf(l->mem, "%s (task)", l->folder);
    if (l->task_text.n == 0 && !task_file)
        return err_set(err, ERR_INPUT,
                       "%s: the run does not hold its task\nhint: name the task "
                       "file by --task",
                       l->folder);
    if (task_file && !file_read(task_file, TASK_MAX_BYTES, l->mem, &l->task_text, err))
        return false;
    digest_hex(sha256_of(l->task_text), hex);
    if (!printed(l, "task", &recorded, err))
        return false;
    if (!str_is(recorded, hex))
        return err_set(err, ERR_INPUT,
                       "%s: the run was on another task than %.*s, or it was "
                       "changed since",
                       l->folder, STR_ARG(file));
    return task_parse(file, l->task_text, l->mem, out, err);
}

/* "R=512 C=1024" */
static bool bind_shape(struct loading *l, const struct task *t, struct inst **out,
                       struct err *err) {
    struct binding set[TASK_MAX_DIMS];
    size_t n = 0;
    str rest, word;
    if (!printed(l, "shape", &rest, err))
        return false;
    while (n < TASK_MAX_DIMS && str_word(&rest, ' ', &word)) {
        size_t equals = str_find(word, S("="));
        set[n].name = str_cut(word, 0, equals);
        if (!str_to_i64(str_from(word, equals + 1), &set[n++].value))
            return err_set(err, ERR_INPUT, "%s: the archive has a damaged shape", l->folder);
    }
    return task_bind(t, set, n, l->mem, out, err);
}

/* ---- the evidence ---- */

static str time_words(const struct outcome *o, str device, struct arena *a) {
    str gpu = str_starts(device, S("sim:")) ? str_from(device, 4) : device;
    const struct gpu *known = gpu_find(gpu);
    str title = known ? str_view(known->title) : gpu;
    str prepared = S("");
    if (o->record->has_time_prepared_s)
        prepared = arena_printf(a, ", %.4g us of it once the parameters are prepared",
                                o->record->time_prepared_s * 1e6);
    return arena_printf(a, "%.4g us %s on %.*s%.*s", o->time_s * 1e6,
                        o->estimated ? "estimated" : "measured", STR_ARG(title), STR_ARG(prepared));
}

static bool check_record(struct loading *l, const struct outcome *o, struct err *err) {
    struct export_kernel *k = l->out;
    const struct record *r = o->record;
    if (o->verdict != VERDICT_ACCEPTED || !isfinite(o->time_s))
        return err_set(err, ERR_NO, "%s: the kernel was not accepted", l->folder);
    if (r->unconfirmed_why.n)
        return err_set(err, ERR_NO,
                       "%s: the kernel was not verified a second time (%.*s); run the same "
                       "'cutepilot optimize' again",
                       l->folder, STR_ARG(r->unconfirmed_why));
    if (!l->sampled && r->has_task_shape_verified && !r->task_shape_verified)
        return err_set(err, ERR_NO,
                       "%s: at the run's own shape only samples of what the kernel computes were "
                       "judged (%.*s)\nhint: verify it on a GPU, or take it as it is by --sampled",
                       l->folder, STR_ARG(r->scope));
    if (!str_is(r->source_sha256, k->source_hash))
        return err_set(err, ERR_NO,
                       "%s: kernel.cu is not the one that outcome.json is about: it was changed "
                       "after it was verified",
                       l->folder);
    if (r->arch.n == 0)
        return err_set(err, ERR_INPUT, "%s/outcome.json: no arch", l->folder);
    k->arch = arena_str(l->mem, r->arch);
    k->time = time_words(o, k->device, l->mem);
    return true;
}

static bool check_evidence(struct loading *l, struct err *err) {
    struct record *r = record_parse(l->out->record, err);
    if (!r)
        return err_wrap(err, "%s/outcome.json", l->folder);
    struct outcome *o = outcome_of(r);
    digest_hex(sha256_of(l->out->source), l->out->source_hash);
    bool ok = check_record(l, o, err);
    outcome_free(o);
    return ok;
}

/* ---- machine code ---- */

static bool parameter_sizes(struct loading *l, str ptx, struct err *err) {
    const struct candidate *c = l->out->candidate;
    struct ptx_module *m;
    size_t **sizes = arena_array(l->mem, size_t *, c->nlaunches);
    if (!ptx_parse(ptx, l->mem, &m, err))
        return false;
    for (size_t i = 0; i < c->nlaunches; i++) {
        const struct plan_launch *launch = &c->launches[i];
        sizes[i] = arena_array(l->mem, size_t, launch->nargs);
        for (size_t e = 0; e < m->nentries; e++)
            for (size_t k = 0; k < launch->nargs && str_eq(m->entries[e].name, launch->kernel); k++)
                sizes[i][k] = m->entries[e].params[k].size;
    }
    l->out->parameter_bytes = (const size_t *const *)sizes;
    return true;
}

static bool compile(struct loading *l, const struct nvrtc_root *nvrtc, const char *cache,
                    struct err *err) {
    struct export_kernel *k = l->out;
    struct build_pool_options po = {.jobs = 1, .cache = cache};
    struct build_request r = {.arch = arena_cstr(l->mem, k->arch), .fmad = true};
    struct build b;
    struct buf unit;
    buf_init(&unit, 4u << 20);
    bool ok = candidate_unit(k->candidate, &unit, err);
    k->unit = r.unit = arena_str(l->mem, buf_str(&unit));
    ok = ok && build_once(nvrtc, &po, &r, l->mem, &b, err);
    buf_release(&unit);
    if (ok && b.verdict != VERDICT_ACCEPTED)
        ok = err_set(err, ERR_ENV, "%s/kernel.cu does not compile here: %.*s", l->folder,
                     STR_ARG(b.log));
    if (ok)
        k->cubin = b.cubin;
    return ok && parameter_sizes(l, b.ptx, err);
}

static bool load(struct loading *l, const char *task_file, const struct nvrtc_root *nvrtc,
                 const char *cache, struct err *err) {
    struct export_kernel *k = l->out;
    struct task *task;
    struct inst *inst;
    struct candidate *candidate;
    if (!read_notes(l, err) || !read_one(l, "kernel.cu", CANDIDATE_MAX_BYTES, &k->source, err) ||
        !read_one(l, "outcome.json", RECORD_MAX, &k->record, err) ||
        !printed(l, "device", &k->device, err) || !check_evidence(l, err) ||
        !find_task(l, task_file, &task, err) || !bind_shape(l, task, &inst, err))
        return false;
    k->task = task;
    k->inst = inst;
    str file = arena_printf(l->mem, "%s/kernel.cu", l->folder);
    if (!candidate_parse(file, k->source, task, l->mem, &candidate, err))
        return false;
    k->candidate = candidate;
    return compile(l, nvrtc, cache, err);
}

bool export_run_load(const char *folder, const char *task_file, bool sampled,
                     const struct nvrtc_root *nvrtc, const char *cache, struct arena *a,
                     struct export_kernel *out, struct err *err) {
    struct loading l = {.folder = folder, .mem = a, .out = out, .sampled = sampled};
    *out = (struct export_kernel){.run = folder};
    return load(&l, task_file, nvrtc, cache, err);
}

bool export_run_task(const char *folder, struct arena *a, struct export_kernel *out,
                     struct err *err) {
    struct loading l = {.folder = folder, .mem = a, .out = out};
    struct task *task;
    struct inst *inst;
    *out = (struct export_kernel){.run = folder};
    if (!read_notes(&l, err) || !find_task(&l, NULL, &task, err) ||
        !bind_shape(&l, task, &inst, err))
        return false;
    out->task = task;
    out->inst = inst;
    return true;
}
