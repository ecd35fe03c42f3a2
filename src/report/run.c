#include "report/run.h"

#include "base/file.h"
#include "base/hash.h"
#include "device/role.h"
#include "eval/eval.h"
#include "kernel/includes.h"
#include "search/archived.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MAX (64u << 20)
#define EVENTS_MAX (256u << 20)
#define SECTOR     32

struct reading {
    struct report_run *r;
    struct archive *archive;
    size_t cap, cap_calls;
    double limit_s; /* as some record has it */
    double best_s;
    struct record *fastest; /* of the accepted ones */
};

/* ---- candidates ---- */

/* What the launches read and write of DRAM at the least; NAN without counters. */
static double dram_bytes(const struct record *r) {
    double bytes = 0;
    for (size_t i = 0; i < r->ncounters; i++)
        bytes += SECTOR * ((double)r->counters[i].footprint_load_sectors +
                           (double)r->counters[i].footprint_store_sectors);
    return bytes > 0 ? bytes : NAN;
}

static void fill_from_record(struct report_run *run, struct report_candidate *c,
                             const struct record *r) {
    c->verdict = r->verdict;
    c->why = arena_str(run->mem, r->why);
    c->step = arena_str(run->mem, r->step);
    c->bound = arena_str(run->mem, r->bound);
    if (r->accepted && r->has_time_s && r->time_s > 0)
        c->time_s = r->time_s;
    if (r->has_ci_low_s && r->has_ci_high_s) {
        c->low_s = r->ci_low_s;
        c->high_s = r->ci_high_s;
    }
    if (r->phases && r->phases->has_decided_at)
        c->decided_at = r->phases->decided_at;
    c->dram_bytes = dram_bytes(r);
    for (size_t i = 0; i < r->nparents && c->nparents < 2; i++)
        for (size_t k = 0; k < run->n; k++)
            if (run->candidates[k].ordinal == (uint64_t)r->parents[i]) {
                c->parents[c->nparents++] = k;
                break;
            }
}

static void keep_fastest(struct reading *rd, struct record *record, double time_s) {
    if (time_s < rd->best_s) {
        record_free(rd->fastest);
        rd->fastest = record;
        rd->best_s = time_s;
    } else {
        record_free(record);
    }
}

static void take_candidate(void *ctx, const struct archive_candidate *from, struct record *record,
                           const struct err *why) {
    struct reading *rd = ctx;
    struct report_run *run = rd->r;
    struct err ignored;
    run->candidates = mem_grow(run->candidates, &rd->cap, run->n + 1, sizeof *run->candidates);
    struct report_candidate c = {.ordinal = from->ordinal,
                                 .generation = from->generation,
                                 .strategy = arena_str(run->mem, from->strategy),
                                 .reason = arena_str(run->mem, from->reason),
                                 .source = arena_str(run->mem, from->source),
                                 .time_s = INFINITY,
                                 .low_s = NAN,
                                 .high_s = NAN,
                                 .decided_at = NAN,
                                 .dram_bytes = NAN};
    c.has_decisions = strategy_parse(run->catalogue, c.strategy, &c.decisions, &ignored);
    if (record) {
        fill_from_record(run, &c, record);
        if (record->has_limit_s)
            rd->limit_s = record->limit_s;
        run->estimated |= record->has_estimated && record->estimated;
    } else {
        c.damaged = true;
        c.why = arena_str(run->mem, str_view(why->text));
    }
    run->naccepted += isfinite(c.time_s);
    run->nunjudged += c.damaged || c.verdict == VERDICT_UNJUDGED;
    run->candidates[run->n++] = c;
    keep_fastest(rd, record, c.time_s);
}

static void take_call(void *ctx, const struct archive_call *from) {
    struct reading *rd = ctx;
    struct report_run *run = rd->r;
    run->calls = mem_grow(run->calls, &rd->cap_calls, run->ncalls + 1, sizeof *run->calls);
    struct archive_call *c = &run->calls[run->ncalls++];
    *c = *from;
    c->role = arena_str(run->mem, c->role);
    c->model = arena_str(run->mem, c->model);
    c->system = c->user = S(""); /* `log --prompts` has them */
    c->reply = arena_str(run->mem, c->reply);
}

/* ---- what it is a run of ---- */

static bool note(struct reading *rd, const char *key, str *out, struct err *err) {
    return archive_get_note(rd->archive, key, rd->r->mem, out, err);
}

static bool read_fingerprint(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    struct err damage;
    str text;
    if (!note(rd, "fingerprint", &text, err))
        return false;
    r->print = text.n ? json_parse(text, &damage) : NULL;
    if (!r->print)
        r->print = json_object();
    json_get_str(r->print, "name", &r->name);
    json_get_str(r->print, "device", &r->device);
    return note(rd, "verify-seed", &r->verify_seed, err);
}

/* "R=512 C=1024" */
static bool bind_label(struct report_run *r, str label, struct err *err) {
    struct binding set[TASK_MAX_DIMS];
    size_t n = 0;
    str word;
    while (n < TASK_MAX_DIMS && str_word(&label, ' ', &word)) {
        size_t at = str_find(word, S("="));
        struct binding *b = &set[n];
        b->name = str_cut(word, 0, at);
        if (str_to_i64(str_from(word, at + 1), &b->value))
            n++;
    }
    return task_bind(r->task, set, n, r->mem, &r->inst, err);
}

static bool read_task(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    struct err unread;
    str label = {0};
    if (!note(rd, "task", &r->task_text, err))
        return false;
    json_get_str(r->print, "shape", &label);
    if (r->task_text.n && task_parse(S("task"), r->task_text, r->mem, &r->task, &unread) &&
        bind_label(r, label, &unread))
        cost_of(r->inst, &r->cost);
    if (!r->inst)
        r->task = NULL;
    return true;
}

/* As the run noted it, or else by the simulator's name for it. */
static bool read_gpu(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    struct device_name d;
    struct err unread;
    str text;
    if (!note(rd, "gpu", &text, err))
        return false;
    if (!text.n || !gpu_parse(S("gpu"), text, r->mem, &r->gpu, &unread))
        r->gpu =
            device_name_parse(arena_cstr(r->mem, r->device), r->mem, &d, &unread) ? d.gpu : NULL;
    r->limit_s = rd->limit_s;
    if (!(r->limit_s > 0) && r->gpu && r->inst)
        r->limit_s = task_limit(r->gpu, r->inst).limit_s;
    return true;
}

static bool read_baseline(struct reading *rd, struct err *err) {
    struct err damage;
    str text;
    if (!note(rd, "baseline", &text, err))
        return false;
    json *j = text.n ? json_parse(text, &damage) : NULL;
    json_get_f64(j, "baseline_s", &rd->r->baseline_s);
    json_get_f64(j, "time_s", &rd->r->against_s);
    json_free(j);
    return true;
}

/* ---- how it ended ---- */

/* The last command on the folder counts: it ended where the last `end` comes after the last
 * `start`. */
static void read_events(struct report_run *r) {
    struct arena *a = arena_new(EVENTS_MAX + (1u << 20));
    str text, line, name;
    struct err ignored;
    const char *path = arena_printf(r->mem, "%s/events.jsonl", r->folder).p;
    bool there = file_exists(path) && file_read(path, EVENTS_MAX, a, &text, &ignored);
    while (there && str_line(&text, &line)) {
        bool start = str_find(line, S("\"event\":\"start\"")) < line.n;
        if (!start && str_find(line, S("\"event\":\"end\"")) == line.n)
            continue;
        json *j = json_parse(line, &ignored);
        str words = S("");
        if (json_get_str(j, "event", &name) && str_is(name, "end")) {
            json_get_str(j, "text", &words);
            json_get_f64(j, "elapsed_s", &r->elapsed_s);
            r->stopped = arena_str(r->mem, str_cut(words, 0, str_find(words, S(";"))));
        } else if (start) {
            r->stopped = S("");
        }
        json_free(j);
    }
    arena_free(a);
}

static void find_state(struct report_run *r) {
    read_events(r);
    if (!r->n)
        r->state = RUN_EMPTY;
    else if (str_is(r->stopped, "interrupted") || str_is(r->stopped, "failed"))
        r->state = RUN_STOPPED;
    else if (!r->stopped.n)
        r->state = RUN_OPEN;
    else
        r->state = r->naccepted ? RUN_DONE : RUN_FAILED;
}

/* ---- the winner ---- */

static struct record *read_outcome(const struct report_run *r) {
    const char *path = arena_printf(r->mem, "%s/outcome.json", r->folder).p;
    struct err unread;
    str text;
    if (!file_exists(path) || !file_read(path, RECORD_MAX, r->mem, &text, &unread))
        return NULL;
    return record_parse(text, &unread);
}

/* The candidate that a record is of, by its source; in a run's folder by kernel.cu, which has lines
 * for nvcc above it. */
static size_t find_source(const struct report_run *r, str sha256) {
    char hex[65], file[65];
    for (size_t i = 0; i < r->n; i++) {
        if (!isfinite(r->candidates[i].time_s))
            continue;
        digest_hex(sha256_of(r->candidates[i].source), hex);
        digest_hex(sha256_of(includes_file(r->candidates[i].source, r->mem)), file);
        if (str_is(sha256, hex) || str_is(sha256, file))
            return i;
    }
    return RUN_NONE;
}

static size_t find_fastest(const struct report_run *r) {
    size_t best = RUN_NONE;
    for (size_t i = 0; i < r->n; i++)
        if (isfinite(r->candidates[i].time_s) &&
            (best == RUN_NONE || r->candidates[i].time_s < r->candidates[best].time_s))
            best = i;
    return best;
}

static bool read_watched(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    struct err damage;
    str text;
    char key[64];
    snprintf(key, sizeof key, "watched_%llu", (unsigned long long)r->candidates[r->winner].ordinal);
    if (!note(rd, key, &text, err))
        return false;
    r->watched = text.n ? record_parse(text, &damage) : NULL;
    return true;
}

/* outcome.json of an earlier command stays where a resumed run is going on: it counts once the run
 * has ended, or while no faster kernel is known. */
static bool read_winner(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    struct record *handed = read_outcome(r);
    size_t fastest = find_fastest(r);
    r->winner = handed && handed->accepted ? find_source(r, handed->source_sha256) : RUN_NONE;
    if (r->winner != RUN_NONE && (r->stopped.n || r->winner == fastest)) {
        r->record = handed;
        return read_watched(rd, err);
    }
    record_free(handed);
    r->winner = fastest;
    r->record = rd->fastest;
    rd->fastest = NULL;
    return true;
}

/* ---- all of it ---- */

static bool read_all(struct reading *rd, struct err *err) {
    struct report_run *r = rd->r;
    if (!read_fingerprint(rd, err) || !read_task(rd, err) ||
        !archive_each_candidate(rd->archive, take_candidate, rd, err) ||
        !archive_each_call(rd->archive, take_call, rd, err) || !read_gpu(rd, err) ||
        !read_baseline(rd, err))
        return false;
    find_state(r);
    r->spent = archived_spent(rd->archive, err);
    return r->spent && read_winner(rd, err);
}

bool report_run_read(const char *folder, const char *assets, struct arena *mem,
                     struct report_run *out, struct err *err) {
    struct reading rd = {.r = out, .limit_s = NAN, .best_s = INFINITY};
    *out = (struct report_run){.folder = folder,
                               .mem = mem,
                               .winner = RUN_NONE,
                               .limit_s = NAN,
                               .elapsed_s = NAN,
                               .baseline_s = NAN,
                               .against_s = NAN};
    if (!catalogue_load(assets, mem, &out->catalogue, err) ||
        !archive_open_read(folder, &rd.archive, err))
        return false;
    bool ok = read_all(&rd, err);
    archive_close(rd.archive);
    record_free(rd.fastest);
    if (!ok) {
        report_run_release(out);
        return err_wrap(err, "run %s", folder);
    }
    return true;
}

void report_run_release(struct report_run *r) {
    mem_free(r->candidates);
    mem_free(r->calls);
    record_free(r->record);
    record_free(r->watched);
    json_free(r->print);
    json_free(r->spent);
    *r = (struct report_run){.winner = RUN_NONE};
}
