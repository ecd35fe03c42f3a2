/* Which strategies, their sources, their outcomes, their rows. */
#include "ui/space_run.h"
#include "base/say.h"
#include "search/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A distinct source, and the strategies that come to it. */
struct space_source {
    char hash[65];
    str text;
    size_t first, last; /* of the chain of strategies: their indices in the lattice */
};

/* ---- which ---- */

static void take_first(void *ctx, const struct strategy *s, size_t n, str reason,
                       const struct err *err) {
    (void)reason;
    if (n && !err)
        *(struct strategy *)ctx = s[0];
}

static void choose(struct space *s) {
    const struct options *o = s->ui->options;
    struct lattice_options lo = {.catalogue = s->catalogue,
                                 .ground = s->briefing.ground,
                                 .regime = briefing_regime(&s->briefing),
                                 .limit = (size_t)option_int(o, "limit"),
                                 .seed = (uint64_t)option_int(o, "seed")};
    strategy_fallback(s->catalogue, &lo.ground, &lo.first);
    s->agent.plan(s->agent.self, &s->briefing, 2, (struct rng){0}, take_first, &lo.first);
    lattice_make(&lo, s->ui->arena, &s->lattice);
}

static str text_of(const struct space *s, const struct strategy *strategy) {
    return strategy_as_text(s->catalogue, strategy, s->ui->arena);
}

/* ---- writing the sources ---- */

struct written {
    struct arena *a;
    bool ok;
    str source;
    struct strategy *strategy; /* with what its decisions became */
};
static void take_source(void *ctx, str source, const struct strategy *written,
                        const struct err *err) {
    struct written *w = ctx;
    w->ok = !err;
    if (!err)
        *w->strategy = *written;
    w->source = err ? (str){0} : arena_str(w->a, source);
}

static void add_source(struct space *s, size_t strategy, str text) {
    char hash[65];
    search_code_hash(text, hash);
    for (size_t i = 0; i < s->nsources; i++)
        if (!strcmp(s->sources[i].hash, hash)) {
            s->next[s->sources[i].last] = strategy;
            s->sources[i].last = strategy;
            return;
        }
    struct space_source *n = &s->sources[s->nsources++];
    *n = (struct space_source){.text = text, .first = strategy, .last = strategy};
    memcpy(n->hash, hash, sizeof hash);
}

/* Those without a row yet, grouped by source. What cannot be written is a row at once. */
static bool write_sources(struct space *s, struct err *err) {
    size_t n = s->lattice.n;
    s->sources = arena_array(s->ui->arena, struct space_source, n);
    s->next = arena_array(s->ui->arena, size_t, n);
    s->written = arena_array(s->ui->arena, struct strategy, n);
    for (size_t i = 0; i < n; i++) {
        struct written w = {.a = s->ui->arena, .strategy = &s->written[i]};
        struct table_line line = {.strategy = text_of(s, &s->lattice.at[i])};
        s->next[i] = n;
        if (table_has(s->table, line.strategy))
            continue;
        s->agent.code(s->agent.self, &s->briefing, &s->lattice.at[i], take_source, &w);
        if (w.ok)
            add_source(s, i, w.source);
        else if (!table_add(s->table, &line, err))
            return false;
        s->refused += !w.ok;
    }
    return true;
}

/* ---- evaluation ---- */

static void take_aligned(void *ctx, const struct strategy *s, size_t n, str reason,
                         const struct err *err) {
    (void)reason;
    if (n && !err)
        *(struct strategy *)ctx = s[0];
}

/* One line that is written over on a terminal, its last state elsewhere. */
static void show(const struct space *s, bool last) {
    double minutes = (double)(clock_ms() - s->start_ms) / 60000;
    if (s->ui->as_json || (!last && !isatty(STDERR_FILENO)))
        return;
    fprintf(stderr, "\r%zu of %zu sources, %zu accepted, best %.*s, %.0f/min%s", s->done,
            s->nsources, s->accepted, STR_ARG(ui_time(s->ui->arena, s->best_s)),
            minutes > 0 ? (double)s->done / minutes : 0, last ? "\n" : "");
}

static void on_outcome(void *ctx, const struct source_file *f, const struct outcome *o) {
    struct space *s = ctx;
    const struct space_source *source = NULL;
    for (size_t i = 0; i < s->nsources && !source; i++)
        source = s->sources[i].text.p == f->text.p ? &s->sources[i] : NULL;
    BUG_IF(!source);
    for (size_t i = source->first; i < s->lattice.n; i = s->next[i]) {
        struct strategy aligned = s->lattice.at[i];
        if (o->verdict == VERDICT_ACCEPTED)
            s->agent.align(s->agent.self, &s->briefing, &s->lattice.at[i], &s->written[i],
                           o->record, take_aligned, &aligned);
        struct table_line line = {.strategy = text_of(s, &s->lattice.at[i]),
                                  .aligned = text_of(s, &aligned),
                                  .written = true,
                                  .verdict = o->verdict,
                                  .time_s = o->time_s,
                                  .source_hash = source->hash};
        if (!s->err.kind)
            table_add(s->table, &line, &s->err);
    }
    s->done++;
    s->accepted += o->verdict == VERDICT_ACCEPTED;
    s->best_s = o->verdict == VERDICT_ACCEPTED ? fmin(s->best_s, o->time_s) : s->best_s;
    show(s, false);
}

static bool evaluate(struct space *s, struct err *err) {
    struct source_file *files = arena_array(s->ui->arena, struct source_file, s->nsources + 1);
    for (size_t i = 0; i < s->nsources; i++)
        files[i] = (struct source_file){S("kernel.cu"), s->sources[i].text};
    s->start_ms = clock_ms();
    s->best_s = INFINITY;
    bool ok = s->nsources == 0 || evaluate_many(&s->eo, files, s->nsources, 1, on_outcome, s, err);
    if (ok && s->err.kind)
        *err = s->err;
    if (s->nsources)
        show(s, true);
    return ok && !s->err.kind;
}

/* ---- the whole ---- */

static bool describe(struct space *s, struct err *err) {
    const char *assets = option_text(s->ui->options, "assets");
    s->eo.assets = assets;
    return catalogue_load(assets, s->ui->arena, &s->catalogue, err) &&
           expert_new(assets, &s->agent, err) &&
           briefing_make(s->inst, s->catalogue, s->eo.device.gpu, &s->briefing, err);
}

static bool open_table(struct space *s, struct err *err) {
    struct arena *a = s->ui->arena;
    struct table_head h = {.briefing = &s->briefing,
                           .kept = &s->lattice.catalogue,
                           .device = s->eo.device.text,
                           .toolchain =
                               arena_printf(a, "nvrtc %d.%d", s->eo.nvrtc.major, s->eo.nvrtc.minor),
                           .estimated = s->eo.device.kind == DEVICE_SIM,
                           .rows = s->lattice.n,
                           .seed = (uint64_t)option_int(s->ui->options, "seed")};
    if (!s->path)
        s->path = arena_printf(a, "%.*s.space", STR_ARG(s->task->name)).p;
    if (!table_open(s->path, &h, &s->table, err))
        return false;
    s->before = table_count(s->table);
    return true;
}

bool space_run(struct space *s, struct err *err) {
    if (!ui_load_task_file(s->ui, s->task_path, &s->task, &s->inst, err) ||
        !ui_evaluator_options(s->ui, s->task, s->inst, &s->eo, err) || !describe(s, err))
        return false;
    choose(s);
    return open_table(s, err) && write_sources(s, err) && evaluate(s, err);
}

void space_release(struct space *s) {
    table_close(s->table);
    if (s->agent.release)
        s->agent.release(s->agent.self);
}
