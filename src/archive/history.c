#include "archive/history.h"

#include "base/asset.h"
#include "base/file.h"
#include "base/hash.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HISTORY_FORMAT    1
#define HISTORY_MAX_BYTES (64u << 20)
#define LINE_MAX_BYTES    (1u << 20)
#define TRIALS_MOST       96
#define TRIALS_FASTEST    48
#define WEIGHT_LEAST      0.02 /* less alike than this is another kind of task */

void history_init(struct history *h) {
    *h = (struct history){.mem = arena_new((size_t)1 << 30)};
}

void history_release(struct history *h) {
    mem_free(h->runs);
    arena_free(h->mem);
}

/* ---- features as JSON: one list ---- */

#define FEATURES(X)                                                                                \
    X(log2_elements)                                                                               \
    X(log2_bytes)                                                                                  \
    X(intensity)                                                                                   \
    X(special_share)                                                                               \
    X(log2_reduced)                                                                                \
    X(reuse)

static json *features_json(const struct features *f) {
    json *j = json_object();
    json_set_str(j, "workload", str_view(workload_name(f->workload)));
    json_set_str(j, "dtype", str_view(dtype_info(f->dtype)->name));
#define X(name) json_set_f64(j, #name, f->name);
    FEATURES(X)
#undef X
    json_set_i64(j, "inputs", (int64_t)f->inputs);
    json_set_i64(j, "outputs", (int64_t)f->outputs);
    json_set_i64(j, "rank", (int64_t)f->rank);
    json_set_bool(j, "broadcast", f->broadcast);
    return j;
}

static bool workload_find(str name, enum workload *out) {
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        if (str_is(name, workload_name((enum workload)w))) {
            *out = (enum workload)w;
            return true;
        }
    return false;
}

static bool features_parse(const json *j, struct features *f) {
    str workload = {0}, dtype = {0};
    int64_t inputs = 0, outputs = 0, rank = 0;
    bool ok = json_get_str(j, "workload", &workload) && workload_find(workload, &f->workload) &&
              json_get_str(j, "dtype", &dtype) && dtype_find(dtype, &f->dtype);
#define X(name) ok = ok && json_get_f64(j, #name, &f->name);
    FEATURES(X)
#undef X
    ok = ok && json_get_i64(j, "inputs", &inputs) && json_get_i64(j, "outputs", &outputs) &&
         json_get_i64(j, "rank", &rank) && json_get_bool(j, "broadcast", &f->broadcast);
    f->inputs = (size_t)inputs;
    f->outputs = (size_t)outputs;
    f->rank = (size_t)rank;
    return ok;
}

/* ---- a line ---- */

static json *run_json(const struct history_run *r) {
    json *j = json_object(), *trials = json_array();
    json_set_i64(j, "history", HISTORY_FORMAT);
    json_set_str(j, "task", r->task);
    json_set_str(j, "shape", r->shape);
    json_set_str(j, "device", r->device);
    json_set_str(j, "text_hash", r->text_hash);
    json_set_bool(j, "estimated", r->estimated);
    json_set_i64(j, "arch", r->arch);
    json_set_f64(j, "best_s", r->best_s);
    if (r->weight > 0)
        json_set_f64(j, "weight", r->weight);
    json_set(j, "features", features_json(&r->features));
    for (size_t i = 0; i < r->n; i++) {
        json *t = json_array();
        json_push_str(t, r->trials[i].strategy);
        if (isfinite(r->trials[i].ratio))
            json_push_f64(t, r->trials[i].ratio);
        json_push(trials, t);
    }
    json_set(j, "trials", trials);
    return j;
}

static void put_line(const struct history_run *r, struct buf *out) {
    json *j = run_json(r);
    json_write(j, out);
    buf_putc(out, '\n');
    json_free(j);
}

static bool trials_parse(const json *list, struct arena *a, struct history_run *r) {
    r->n = json_len(list);
    r->trials = arena_array(a, struct history_trial, r->n + 1);
    for (size_t i = 0; i < r->n; i++) {
        const json *t = json_at(list, i);
        str strategy;
        if (!json_to_str(json_at(t, 0), &strategy))
            return false;
        r->trials[i] = (struct history_trial){arena_str(a, strategy), INFINITY};
        if (json_len(t) > 1 &&
            (!json_to_f64(json_at(t, 1), &r->trials[i].ratio) || !(r->trials[i].ratio >= 1)))
            return false;
    }
    return true;
}

static bool run_parse(const json *j, struct arena *a, struct history_run *r) {
    int64_t format = 0;
    *r = (struct history_run){0};
    bool ok = json_get_i64(j, "history", &format) && format == HISTORY_FORMAT &&
              json_get_str(j, "task", &r->task) && json_get_str(j, "shape", &r->shape) &&
              json_get_str(j, "device", &r->device) &&
              json_get_str(j, "text_hash", &r->text_hash) &&
              json_get_bool(j, "estimated", &r->estimated) && json_get_i64(j, "arch", &r->arch) &&
              json_get_f64(j, "best_s", &r->best_s) && r->best_s > 0 &&
              features_parse(json_get(j, "features"), &r->features) &&
              trials_parse(json_get(j, "trials"), a, r);
    json_get_f64(j, "weight", &r->weight);
    r->task = arena_str(a, r->task);
    r->shape = arena_str(a, r->shape);
    r->device = arena_str(a, r->device);
    r->text_hash = arena_str(a, r->text_hash);
    return ok;
}

static void push(struct history *h, const struct history_run *r) {
    h->runs = mem_grow(h->runs, &h->cap, h->n + 1, sizeof *h->runs);
    h->runs[h->n++] = *r;
}

static bool add_line(struct history *h, str line) {
    struct history_run r;
    struct err ignored;
    json *j = json_parse(line, &ignored);
    bool ok = j && run_parse(j, h->mem, &r);
    json_free(j);
    if (ok)
        push(h, &r);
    return ok;
}

/* The lines that are not one are passed over; their number, and the first one's place. */
static size_t add_lines(struct history *h, str text, size_t *first) {
    size_t bad = 0;
    str line;
    for (size_t number = 1; str_line(&text, &line); number++)
        if (str_trim(line).n && !add_line(h, line) && bad++ == 0)
            *first = number;
    return bad;
}

bool history_parse(struct history *h, str file, str text, struct err *err) {
    size_t first = 0, before = h->n;
    if (!add_lines(h, text, &first))
        return true;
    h->n = before;
    return err_set(err, ERR_INPUT, "%.*s:%zu: not a line of a history pool", STR_ARG(file), first);
}

/* A last line without an end may be what another run is writing, or was killed writing; where it is
 * whole it counts. */
bool history_load(struct history *h, const char *path, struct err *err) {
    str text;
    if (!file_exists(path))
        return true;
    if (!file_read(path, HISTORY_MAX_BYTES, h->mem, &text, err))
        return false;
    str whole = str_whole_lines(text), last = str_from(text, whole.n);
    bool ok = history_parse(h, str_view(path), whole, err);
    if (ok && last.n)
        add_line(h, last);
    return ok;
}

void history_load_pool(struct history *h, const char *path, struct err *warning) {
    str text;
    *warning = (struct err){0};
    if (!file_exists(path))
        return;
    if (!file_read(path, HISTORY_MAX_BYTES, h->mem, &text, warning)) {
        err_wrap(warning, "the history pool is left out");
        return;
    }
    str whole = str_whole_lines(text), last = str_from(text, whole.n);
    size_t first = 0, bad = add_lines(h, whole, &first);
    if (last.n)
        add_line(h, last);
    if (bad)
        err_set(warning, ERR_INPUT,
                "%s:%zu: not a line of a history pool; %zu such line%s passed over\nhint: remove "
                "%s, or the file",
                path, first, bad, bad == 1 ? " is" : "s are", bad == 1 ? "it" : "them");
}

bool history_load_shipped(struct history *h, const char *assets, struct err *err) {
    static const char name[] = "history/pool.jsonl";
    str text;
    return asset_get(assets, name, h->mem, &text, err) &&
           history_parse(h, str_view(name), text, err);
}

str history_path(struct arena *a) {
    str dir = data_dir(a);
    return dir.n ? arena_printf(a, "%.*s/history.jsonl", STR_ARG(dir)) : dir;
}

/* ---- making ---- */

bool history_is_of(const struct history_run *run, const struct task *t) {
    char hex[65];
    digest_hex(sha256_of(t->text), hex);
    return str_is(run->text_hash, hex);
}

void history_describe(const struct briefing *b, const char *device, bool estimated, struct arena *a,
                      struct history_run *out) {
    char hex[65];
    digest_hex(sha256_of(b->inst->task->text), hex);
    *out = (struct history_run){.task = b->inst->task->name,
                                .shape = inst_label(b->inst, a),
                                .device = arena_str(a, str_view(device)),
                                .text_hash = arena_str(a, str_view(hex)),
                                .estimated = estimated,
                                .arch = b->ground.fact[FACT_ARCH],
                                .features = b->features,
                                .best_s = INFINITY};
}

static int by_number(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* The time up to which trials are among the fastest that are kept in any case. */
static double fast_ratio(const struct history_run *r) {
    double *sorted = mem_alloc((r->n + 1) * sizeof *sorted);
    for (size_t i = 0; i < r->n; i++)
        sorted[i] = r->trials[i].ratio;
    qsort(sorted, r->n, sizeof *sorted, by_number);
    double ratio = r->n > TRIALS_MOST ? sorted[TRIALS_FASTEST - 1] : INFINITY;
    mem_free(sorted);
    return ratio;
}

/* What four digits do not tell apart no clock did. */
static double rounded(double ratio) {
    return isfinite(ratio) ? round(ratio * 1e4) / 1e4 : ratio;
}

void history_add(struct history *h, const struct history_run *run) {
    struct history_run r = *run;
    double fast = fast_ratio(run);
    size_t step = run->n / (TRIALS_MOST - TRIALS_FASTEST) + 1, fastest = 0;
    r.n = 0;
    r.trials = arena_array(h->mem, struct history_trial, run->n + 1);
    for (size_t i = 0; i < run->n; i++) {
        bool is_fast =
            run->trials[i].ratio <= fast && (run->n <= TRIALS_MOST || ++fastest <= TRIALS_FASTEST);
        if (!is_fast && i % step)
            continue;
        r.trials[r.n++] = (struct history_trial){arena_str(h->mem, run->trials[i].strategy),
                                                 rounded(run->trials[i].ratio)};
    }
    r.task = arena_str(h->mem, run->task);
    r.shape = arena_str(h->mem, run->shape);
    r.device = arena_str(h->mem, run->device);
    r.text_hash = arena_str(h->mem, run->text_hash);
    push(h, &r);
}

void history_text(const struct history *h, struct buf *out) {
    for (size_t i = 0; i < h->n; i++)
        put_line(&h->runs[i], out);
}

/* ---- the file ---- */

static bool has_line(str text, str line) {
    str own;
    while (str_line(&text, &own))
        if (str_eq(own, str_cut(line, 0, line.n - 1)))
            return true;
    return false;
}

static bool is_line(str text) {
    struct history h;
    struct err ignored = {0};
    history_init(&h);
    bool is = history_parse(&h, S(""), text, &ignored) && h.n == 1;
    history_release(&h);
    return is;
}

static bool append_to(int fd, const struct history *h, size_t *added, struct err *err) {
    struct arena *a = arena_new(HISTORY_MAX_BYTES * 2);
    struct buf all, line;
    str text = {0};
    bool ok = file_read_fd(fd, HISTORY_MAX_BYTES, a, &text, err);
    buf_init(&all, HISTORY_MAX_BYTES);
    buf_init(&line, LINE_MAX_BYTES);
    /* What a killed writer left of a line goes; a whole one that only lacks its end gets it. */
    str whole = str_whole_lines(text);
    if (ok && whole.n < text.n && is_line(str_from(text, whole.n)))
        buf_putc(&all, '\n');
    else
        text = whole;
    for (size_t i = 0; ok && i < h->n; i++) {
        buf_clear(&line);
        put_line(&h->runs[i], &line);
        if (line.failed || has_line(text, buf_str(&line)) ||
            has_line(buf_str(&all), buf_str(&line)))
            continue;
        buf_puts(&all, buf_str(&line));
        ++*added;
    }
    ok = ok && (ftruncate(fd, (off_t)text.n) == 0 && lseek(fd, 0, SEEK_END) >= 0
                    ? file_write_all(fd, all.p, all.n, err)
                    : err_errno(err, ERR_ENV, "write"));
    buf_release(&line);
    buf_release(&all);
    arena_free(a);
    return ok;
}

static bool make_folder_of(const char *path, struct err *err) {
    const char *slash = strrchr(path, '/');
    struct arena *a = arena_new(1 << 20);
    bool ok = !slash || slash == path ||
              dir_make(arena_printf(a, "%.*s", (int)(slash - path), path).p, err);
    arena_free(a);
    return ok;
}

bool history_append(const char *path, const struct history *h, size_t *added, struct err *err) {
    *added = 0;
    if (!make_folder_of(path, err))
        return false;
    int fd = file_open_locked(path, true, err);
    if (fd < 0)
        return false;
    bool ok = append_to(fd, h, added, err);
    close(fd);
    return ok || err_wrap(err, "%s", path);
}

/* ---- retrieval ---- */

static double squared(double x) {
    return x * x;
}

static double unlikeness(const struct history_run *x, const struct history_run *y) {
    const struct features *a = &x->features, *b = &y->features;
    double d = 0;
    d += a->workload == b->workload ? 0 : 2;
    d += squared((a->log2_elements - b->log2_elements) / 8);
    d += squared((a->log2_reduced - b->log2_reduced) / 5);
    d += squared(log2((a->intensity + 0.01) / (b->intensity + 0.01)) / 5);
    d += squared((log2(a->reuse + 1) - log2(b->reuse + 1)) / 5);
    d += a->dtype == b->dtype ? 0 : 0.5;
    d += x->arch == y->arch ? 0 : 0.7;
    d += x->estimated == y->estimated ? 0 : 0.5;
    d += 0.1 * fabs((double)a->inputs - (double)b->inputs);
    d += a->broadcast == b->broadcast ? 0 : 0.1;
    return d;
}

/* Most alike first; equally alike ones as they stand. */
static size_t most_alike(const struct history *h, const struct history_run *like, bool itself,
                         const bool *taken, double *weight) {
    size_t best = h->n;
    *weight = WEIGHT_LEAST;
    for (size_t i = 0; i < h->n; i++) {
        if (taken[i] || (!itself && str_eq(h->runs[i].text_hash, like->text_hash) &&
                         str_eq(h->runs[i].shape, like->shape)))
            continue;
        double w = exp(-unlikeness(&h->runs[i], like));
        if (w > *weight) {
            *weight = w;
            best = i;
        }
    }
    return best;
}

void history_retrieve(const struct history *h, const struct history_run *like, bool itself,
                      size_t most, struct history *out) {
    bool *taken = mem_alloc(h->n + 1);
    for (size_t k = 0; k < most; k++) {
        double weight;
        size_t i = most_alike(h, like, itself, taken, &weight);
        if (i == h->n)
            break;
        taken[i] = true;
        history_add(out, &h->runs[i]);
        out->runs[out->n - 1].weight = weight;
    }
    mem_free(taken);
}
