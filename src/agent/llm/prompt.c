/* Prompts: their parts, made from a briefing, and what each role is told. */
#include "agent/llm/prompt.h"
#include "agent/llm/evidence.h"
#include "base/asset.h"
#include "base/template.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX      (256u << 10)
#define HISTORY_SHOWN 8
#define TRIED_SHOWN   24
#define EXAMPLE_LEAST 3 /* decisions */

static str take(const struct prompter *p, struct buf *b) {
    str text = arena_str(p->mem, buf_str(b));
    buf_release(b);
    return text;
}

/* ---- the task ---- */

static const char *use_of(const struct tensor *t) {
    return t->role == TENSOR_INOUT ? "read and written" : tensor_is_output(t) ? "written" : "read";
}

/* --set may have changed the one that the text states. */
/* which one counts */
static str prompt_shape(const struct prompter *p) {
    str label = inst_label(p->b->inst, p->mem);
    struct inst *stated;
    struct err ignored;
    if (task_bind(p->b->inst->task, NULL, 0, p->mem, &stated, &ignored) &&
        str_eq(label, inst_label(stated, p->mem)))
        return arena_printf(p->mem, "At the shape to be fast at: %.*s.", STR_ARG(label));
    return arena_printf(p->mem,
                        "The shape to be fast at is %.*s: set for this run in place of the one "
                        "under `dim`, which is neither timed nor verified. The check shapes stay. "
                        "At this shape:",
                        STR_ARG(label));
}

static str prompt_sizes(const struct prompter *p) {
    const struct inst *in = p->b->inst;
    const struct task *t = in->task;
    struct cost c;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    cost_of(in, &c);
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_has_memory(&t->tensors[i]))
            buf_printf(&b, "%s%.*s %.3g MB (%s)", b.n ? ", " : "", STR_ARG(t->tensors[i].name),
                       (double)in->tensors[i].bytes / 1e6, use_of(&t->tensors[i]));
    buf_printf(&b, ". Kind of work: %s, %.3g Mflop.", workload_name(p->b->features.workload),
               c.flops / 1e6);
    return take(p, &b);
}

static str prompt_gpu(const struct prompter *p) {
    const struct gpu *g = p->b->gpu;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    buf_printf(&b,
               "%s (%s): %d SMs at %.2f GHz; an SM has %d registers, %zu KiB of shared memory (%zu "
               "KiB a block at most), up to %d threads and %d blocks. ",
               g->title, g->arch, g->sms, g->clock_hz / 1e9, g->registers_sm, g->shared_sm >> 10,
               g->shared_block >> 10, g->max_threads_sm, g->max_blocks_sm);
    buf_printf(
        &b,
        "Reachable: DRAM %.2f TB/s when read, %.2f when read and written alike, L2 (%zu MiB) "
        "%.2g TB/s, fp32 %.0f TFLOP/s, TF32 on tensor cores %.0f, bf16 and f16 %.0f. ",
        g->read_bytes_s / 1e12, g->copy_bytes_s / 1e12, g->l2_bytes >> 20, g->l2_bytes_s / 1e12,
        g->fp32_flops / 1e12, g->tf32_flops / 1e12, g->bf16_flops / 1e12);
    buf_printf(
        &b, "Latency without load: DRAM %.0f ns, L2 %.0f, shared memory %.0f; a launch %.1f us.\n",
        g->dram_latency_s * 1e9, g->l2_latency_clk / g->clock_hz * 1e9,
        g->shared_latency_clk / g->clock_hz * 1e9, g->launch_s * 1e6);
    return take(p, &b);
}

/* empty for a blind briefing */
static str prompt_roofline(const struct prompter *p) {
    const struct roofline *r = &p->b->roofline;
    struct cost c;
    if (p->b->blind)
        return S("");
    cost_of(p->b->inst, &c);
    return arena_printf(
        p->mem,
        "\n# Roofline\n\n%.3g flop a byte: %s-bound. Moving the %.4g MB that must be moved takes "
        "%.4g us (%.2f TB/s at this mix of reads and writes), the arithmetic %.4g us; the limit "
        "for "
        "any kernel is %.4g us%s.\n",
        r->intensity, r->memory_bound ? "memory" : "compute", c.compulsory_bytes / 1e6,
        r->memory_s * 1e6, r->memory_s > 0 ? c.compulsory_bytes / r->memory_s / 1e12 : 0,
        r->compute_s * 1e6, r->limit_s * 1e6,
        r->limit_s < p->b->gpu->launch_s
            ? ", less than a launch: latency and the number of launches decide"
            : ", without its launch");
}

str prompt_outlook(const struct prompter *p, const char *unit, size_t each) {
    const struct outlook *o = &p->b->outlook;
    struct buf b;
    buf_init(&b, 512);
    if (o->stale && *unit && o->stale * each < o->candidates)
        buf_printf(&b, "The run ends after %zu %s%s without gain in a row", o->stale, unit,
                   o->stale == 1 ? "" : "s");
    if (o->candidates != NO_BUDGET)
        buf_printf(&b, "%s %llu more candidate%s, repairs among them",
                   b.n ? ", or" : "The run ends after", (unsigned long long)o->candidates,
                   o->candidates == 1 ? "" : "s");
    if (b.n)
        buf_puts(&b, S(". "));
    if (o->candidates == 1)
        buf_puts(&b, S("No repair will follow. "));
    return take(p, &b);
}

/* The simulator's times have the launches in them, the limit has none. */
static str estimated_time(const struct prompter *p, const struct outcome *o) {
    size_t n = o->record->nestimate;
    double each = p->b->gpu->launch_s, launches = (double)(n ? n : 1) * each;
    str text = arena_printf(p->mem, "%.4g us by the simulator's estimate, of which %.2g us are ",
                            o->time_s * 1e6, launches * 1e6);
    if (n > 1)
        text = arena_printf(p->mem, "%.*sits %zu launches (every candidate pays one)",
                            STR_ARG(text), n);
    else
        text = arena_printf(p->mem, "%.*sthe launch that every candidate pays", STR_ARG(text));
    if (p->b->blind)
        return text;
    text = arena_printf(p->mem, "%.*s; the rest, %.3g us, stands against the limit of %.3g us",
                        STR_ARG(text), (o->time_s - launches) * 1e6, p->b->roofline.limit_s * 1e6);
    if (!(p->b->roofline.limit_s < p->b->gpu->dram_latency_s))
        return text;
    return arena_printf(p->mem, "%.*s and one latency of DRAM, %.2g us", STR_ARG(text),
                        p->b->gpu->dram_latency_s * 1e6);
}

/* What a run has tried, the fastest first; empty: nothing. */
static str prompt_time(const struct prompter *p, const struct outcome *o) {
    if (o->estimated)
        return estimated_time(p, o);
    if (p->b->blind)
        return arena_printf(p->mem, "%.4g us", o->time_s * 1e6);
    return arena_printf(p->mem, "%.4g us, %.3g times the limit of %.4g us", o->time_s * 1e6,
                        o->time_s / p->b->roofline.limit_s, p->b->roofline.limit_s * 1e6);
}

/* ---- strategies ---- */

/* On one line: the prose of a file is broken at its width. */
static void put_prose(str prose, struct buf *out) {
    str line;
    const char *gap = "";
    while (str_line(&prose, &line)) {
        if (!line.n)
            continue;
        buf_printf(out, "%s%.*s", gap, STR_ARG(str_trim(line)));
        gap = " ";
    }
    buf_putc(out, '\n');
}

/* What a writer needs of a decision's prose; of a value that stands for nothing of what the others
 * are about only that. */
static str chosen_prose(const struct prompter *p, const struct decision *d, int64_t value) {
    str general, chosen;
    decision_describe(d, value, &general, &chosen);
    if (!chosen.n)
        return general;
    if (str_starts(chosen, S("none")))
        return chosen;
    return arena_printf(p->mem, "%.*s%s%.*s", STR_ARG(general), general.n ? "Here: " : "",
                        STR_ARG(chosen));
}

/* A decision that the others leave no choice of means nothing beside them. */
static bool has_choice(const struct prompter *p, const struct strategy *s, size_t decision) {
    const struct decision *d = &p->b->catalogue->decisions[decision];
    bool only = true;
    for (size_t v = 0; v < d->nvalues; v++)
        only =
            only && (d->values[v] == s->value[decision] ||
                     !strategy_allows(p->b->catalogue, &p->b->ground, s, decision, d->values[v]));
    return d->nvalues < 2 || !only;
}

static void put_choice(const struct decision *d, int64_t value, struct buf *out) {
    buf_printf(out, "- %.*s=", STR_ARG(d->name));
    for (size_t i = 0; d->names && i < d->nvalues; i++)
        if (d->values[i] == value)
            buf_puts(out, d->names[i]);
    if (!d->names)
        buf_printf(out, "%lld", (long long)value);
}

/* Lines get defaults for what they leave out, so what makes no difference to the task is left out
 * of them; a value that is not the default stays, or two strategies would look alike. */
static void put_text(const struct prompter *p, const struct strategy *s, struct buf *out) {
    const struct catalogue *c = p->b->catalogue;
    struct strategy shown = *s;
    for (size_t i = 0; i < c->n; i++)
        if (shown.value[i] == c->decisions[i].fallback &&
            !strategy_matters(c, &p->b->ground, NULL, i))
            shown.value[i] = STRATEGY_UNSET;
    strategy_text(c, &shown, out);
}

/* What a strategist said about a strategy; empty: nothing. */
static str prompt_note(const struct prompter *p, const struct strategy *s) {
    const struct notebook_entry *e =
        p->notes ? notebook_find(p->notes, strategy_hash(p->b->catalogue, s)) : NULL;
    return e ? e->note : S("");
}

/* A strategy on one line, with what was said about it. */
static void prompt_put_line(const struct prompter *p, const struct strategy *s, struct buf *out) {
    str note = prompt_note(p, s);
    put_text(p, s, out);
    if (note.n)
        buf_printf(out, "  # %.*s", STR_ARG(note));
}

str prompt_strategy(const struct prompter *p, const struct strategy *s) {
    const struct catalogue *c = p->b->catalogue;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("`"));
    put_text(p, s, &b);
    buf_puts(&b, S("`\n\n"));
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (s->value[i] == STRATEGY_UNSET || !has_choice(p, s, i) ||
            !strategy_matters(c, &p->b->ground, s, i))
            continue;
        put_choice(d, s->value[i], &b);
        buf_puts(&b, S(": "));
        put_prose(chosen_prose(p, d, s->value[i]), &b);
    }
    return take(p, &b);
}

/* empty without one */
static str prompt_history(const struct prompter *p) {
    struct buf b;
    if (!p->b->nhistory)
        return S("");
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("\n# What worked on tasks like this one\n\nThe most alike first; times are "
                   "relative to the best of the same run.\n\n"));
    for (size_t i = 0; i < p->b->nhistory && i < HISTORY_SHOWN; i++) {
        const struct tried *t = &p->b->history[i];
        buf_printf(&b, "- %.2f: `", t->time_s);
        put_text(p, &t->strategy, &b);
        buf_printf(&b, "`%s%.*s\n", t->where.n ? ": " : "", STR_ARG(t->where));
    }
    return take(p, &b);
}

/* The fastest first; of the same time, in the order they were tried. */
static void by_time(const struct prompter *p, size_t *order) {
    const struct tried *t = p->b->tried;
    for (size_t i = 0; i < p->b->ntried; i++) {
        size_t at = i;
        for (; at > 0 && t[order[at - 1]].time_s > t[i].time_s; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

static str prompt_tried(const struct prompter *p) {
    struct buf b;
    size_t n = p->b->ntried, *order = arena_array(p->mem, size_t, n + 1);
    if (!n)
        return S("");
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("\n# What was tried in this run\n\n"));
    by_time(p, order);
    for (size_t i = 0; i < n && i < TRIED_SHOWN; i++) {
        const struct tried *t = &p->b->tried[order[i]];
        if (isfinite(t->time_s))
            buf_printf(&b, "- %.4g us: `", t->time_s * 1e6);
        else
            buf_puts(&b, S("- rejected: `"));
        prompt_put_line(p, &t->strategy, &b);
        buf_putc(&b, '`');
        if (t->asked) { /* as such it was tried, too */
            buf_puts(&b, S(", asked for as `"));
            put_text(p, t->asked, &b);
            buf_putc(&b, '`');
        }
        buf_putc(&b, '\n');
    }
    return take(p, &b);
}

static bool in_workloads(const struct prompter *p, const struct decision *d) {
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        if (d->workload[w] && p->b->ground.workload[w])
            return true;
    return false;
}

/* What was asked for with the run is no choice, and stands in every strategy. */
static void put_given(const struct prompter *p, const struct decision *d, int64_t value,
                      struct buf *out) {
    if (value == STRATEGY_UNSET)
        return;
    put_choice(d, value, out);
    buf_puts(out, S(", given, not to be chosen. "));
    put_prose(chosen_prose(p, d, value), out);
}

static str prompt_decisions(const struct prompter *p) {
    const struct catalogue *c = p->b->catalogue;
    struct strategy usual;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    strategy_fallback(c, &p->b->ground, &usual);
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (d->asked)
            put_given(p, d, usual.value[i], &b);
        if (!in_workloads(p, d) || d->asked || !strategy_matters(c, &p->b->ground, NULL, i))
            continue;
        buf_printf(&b, "- %.*s (", STR_ARG(d->name));
        for (size_t v = 0; v < d->nvalues; v++)
            buf_printf(&b, "%s%lld%s", v ? ", " : "", (long long)d->values[v],
                       d->values[v] == d->fallback ? " by default" : "");
        buf_puts(&b, S("). "));
        put_prose(d->prose, &b);
    }
    if (p->b->ground.nsteps > 1)
        buf_puts(&b,
                 S("- A number and a colon before a name, as in 2:block=128: the value holds for "
                   "that step alone, one kernel or a few of those that run one after the other. "
                   "The other steps have the value that is given without a number.\n"));
    return take(p, &b);
}

/* A few decisions of the task on one line, as a strategy is written. */
static str prompt_example(const struct prompter *p) {
    struct strategy s;
    struct buf b;
    size_t n = 0;
    strategy_fallback(p->b->catalogue, &p->b->ground, &s);
    buf_init(&b, TEXT_MAX);
    for (size_t i = 0; i < p->b->catalogue->n && n < EXAMPLE_LEAST; i++) {
        const struct decision *d = &p->b->catalogue->decisions[i];
        if (s.value[i] != STRATEGY_UNSET && d->nvalues > 1 && !d->asked &&
            strategy_matters(p->b->catalogue, &p->b->ground, NULL, i))
            buf_printf(&b, "%s%.*s=%lld", n++ ? " " : "", STR_ARG(d->name), (long long)s.value[i]);
    }
    return take(p, &b);
}

/* ---- sections and sheets ---- */

/* The section `## name` of a text, without its heading. */
static str prompt_section(str text, str name) {
    str line, found = {0};
    bool inside = false;
    while (str_line(&text, &line)) {
        bool heading = str_starts(line, S("## "));
        if (inside && heading)
            return (str){found.p, (size_t)(line.p - found.p)};
        if (heading && str_eq(str_trim(str_from(line, 3)), name)) {
            inside = true;
            found = text;
        }
    }
    return inside ? found : S("");
}

static bool has_one_of(const struct attempt *a, str words) {
    str word;
    while (str_word(&words, '|', &word))
        if (str_starts(word, S("@")) ? facts_hold(a->outcome, str_from(word, 1))
                                     : str_find(a->source, word) < a->source.n)
            return true;
    return false;
}

str prompt_menu(const struct prompter *p, str lines, const struct attempt *a) {
    struct buf b;
    str line;
    buf_init(&b, TEXT_MAX);
    while (str_line(&lines, &line)) {
        if (str_starts(line, S("- ?"))) {
            str rest = str_from(line, 3);
            size_t blank = str_find(rest, S(" "));
            if (has_one_of(a, str_cut(rest, 0, blank)))
                continue;
            buf_printf(&b, "- %.*s\n", STR_ARG(str_from(rest, blank + 1)));
        } else {
            buf_printf(&b, "%.*s\n", STR_ARG(line));
        }
    }
    if (!b.n)
        buf_puts(&b, S("- (All of the usual is there: go by what binds the kernel.)\n"));
    return take(p, &b);
}

/* What calls for a sheet: a decision's value, at least, or words in a source. `always` are those
 * without which nothing is written in CuTe. */
static const struct {
    const char *sheet;
    bool always, edges; /* edges: also for who may change the structure of a source */
    const char *decision;
    int64_t value;
    bool exact;
    const char *words[3];
} sheets[] = {
    {"layouts", true, false, NULL, 0, false, {0}},
    {"copy_atoms", true, true, NULL, 0, false, {"tiled_copy"}},
    {"predication", false, true, NULL, 0, false, {"copy_if", "identity_tensor"}},
    {"tiled_mma", false, false, "tensor-path", 1, true, {"SM80_16x8", "tiled_copy_A"}},
    {"tiled_mma", false, false, "query-tile", 0, false, {0}}, /* attention multiplies too */
    {"swizzle", false, false, "swizzle", 1, false, {"Swizzle<"}},
    {"cp_async", false, false, "tensor-path", 1, true, {"cp_async", "CP_ASYNC"}},
    {"tma", false, false, "tensor-path", 2, false, {"TMA", "tensormap"}},
    {"wgmma", false, false, "tensor-path", 2, false, {"GMMA", "warpgroup"}},
};

static bool source_has(str source, const char *const *words) {
    for (size_t i = 0; i < 3 && words[i]; i++)
        if (str_find(source, str_view(words[i])) < source.n)
            return true;
    return false;
}

static bool strategy_has(const struct prompter *p, const struct strategy *s, size_t sheet) {
    if (!s || !sheets[sheet].decision)
        return false;
    int64_t v = strategy_get(p->b->catalogue, s, sheets[sheet].decision);
    return v != STRATEGY_UNSET &&
           (sheets[sheet].exact ? v == sheets[sheet].value : v >= sheets[sheet].value);
}

/* A coder gets what its strategy asks for and predication, since shapes are odd; roles that see a
 * source get the sheets for what is in it, and for what its strategy asks for where they may still
 * change the structure. */
static bool wanted(const struct prompter *p, const struct strategy *s, str source, size_t i) {
    if (source.n)
        return source_has(source, sheets[i].words) || strategy_has(p, s, i) ||
               (s && sheets[i].edges);
    return sheets[i].always || str_is(str_view(sheets[i].sheet), "predication") ||
           strategy_has(p, s, i);
}

/* The strategy may say it, where the catalogue has the decision. */
static bool is_cute(const struct prompter *p, const struct strategy *s, str source) {
    if (source.n)
        return str_find(source, S("cute/")) < source.n;
    int64_t v = s ? strategy_get(p->b->catalogue, s, "dialect") : STRATEGY_UNSET;
    return v == 1 || p->o->cute;
}

/* Without CuTe there are two sheets: tensor cores by PTX. A source that runs is its own example. */
static bool plain_dialect(const struct prompter *p, const struct strategy *s, str source, bool runs,
                          str *out, struct err *err) {
    static const struct {
        int64_t path;
        const char *word, *file;
    } paths[] = {{1, "mma.sync", "prompts/cuda/mma.md"}, {2, "wgmma", "prompts/cuda/wgmma.md"}};
    int64_t path = s ? strategy_get(p->b->catalogue, s, "tensor-path") : STRATEGY_UNSET;
    *out = S("");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        bool there = str_find(source, str_view(paths[i].word)) < source.n;
        str text;
        if (path != paths[i].path && !there)
            continue;
        if (!asset_get(p->o->assets, paths[i].file, p->mem, &text, err))
            return false;
        if (there && runs)
            text = str_cut(text, 0, str_find(text, S("```")));
        *out = arena_printf(p->mem, "%.*s\n%s%.*s", STR_ARG(*out),
                            out->n ? "" : "# Tensor cores\n\n", STR_ARG(text));
    }
    return true;
}

/* The CuTe fact sheets for a strategy (NULL: none), and for what a source uses. In plain CUDA the
 * one on tensor cores, where they are used; without its example for a source that does and runs. */
static bool prompt_dialect(const struct prompter *p, const struct strategy *s, str source,
                           bool runs, str *out, struct err *err) {
    struct buf b;
    bool ok = true;
    *out = S("");
    if (!is_cute(p, s, source))
        return plain_dialect(p, s, source, runs, out, err);
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("\n# CuTe\n\n"));
    if (!source.n)
        buf_puts(&b, S("Write the kernel in CuTe: tiles, threads and values by layouts, copies and "
                       "products by atoms. Plain CUDA and inline PTX may stand beside it where "
                       "CuTe has no word for something.\n"));
    else
        buf_puts(&b,
                 S("The kernel is in CuTe and should stay so in the main; plain CUDA and inline "
                   "PTX may take the place of a part where that is faster.\n"));
    const char *last = "";
    for (size_t i = 0; ok && i < sizeof sheets / sizeof *sheets; i++) {
        str text;
        if (!wanted(p, s, source, i) || strcmp(last, sheets[i].sheet) == 0)
            continue;
        char name[64];
        last = sheets[i].sheet;
        snprintf(name, sizeof name, "prompts/cute/%s.md", sheets[i].sheet);
        ok = asset_get(p->o->assets, name, p->mem, &text, err);
        buf_putc(&b, '\n');
        if (ok)
            buf_puts(&b, text);
    }
    *out = take(p, &b);
    return ok;
}

#define REPLY_SHOWN 6000 /* bytes of a reply that could not be used */

/* Empty slots leave empty lines behind: of several, one stays. Code is shown as it is, since edits
 * are matched against it. */
static str squeeze(str text, struct arena *mem) {
    struct buf b;
    str line;
    bool code = false, empty = true;
    buf_init(&b, text.n + 2);
    while (str_line(&text, &line)) {
        code ^= str_starts(line, S("```"));
        if (!code && empty && line.n == 0)
            continue;
        empty = line.n == 0;
        buf_puts(&b, line);
        buf_putc(&b, '\n');
    }
    str out = arena_str(mem, buf_str(&b));
    buf_release(&b);
    return out;
}

/* An asset with its slots filled. */
static bool render(const struct prompter *p, const char *name, const struct slot *slots, size_t n,
                   str *out, struct err *err) {
    char path[64];
    str text;
    struct buf b;
    snprintf(path, sizeof path, "prompts/%s.md", name);
    if (!asset_get(p->o->assets, path, p->mem, &text, err))
        return false;
    buf_init(&b, PROMPT_MAX);
    bool ok = template_render(str_view(path), text, slots, n, &b, err);
    if (ok)
        *out = squeeze(buf_str(&b), p->mem);
    buf_release(&b);
    return ok;
}

#define RENDER(p, name, out, err, ...)                                                             \
    render(p, name, (const struct slot[]){__VA_ARGS__},                                            \
           sizeof((const struct slot[]){__VA_ARGS__}) / sizeof(struct slot), out, err)

static bool plain(const struct prompter *p, const char *name, str *out, struct err *err) {
    return render(p, name, NULL, 0, out, err);
}

static bool problem(const struct prompter *p, bool roofline, str *out, struct err *err) {
    const struct inst *in = p->b->inst;
    const char *class = accuracy_name(in->task->accuracy);
    char name[32];
    str accuracy;
    snprintf(name, sizeof name, "class_%s", class);
    if (!plain(p, name, &accuracy, err))
        return false;
    const bool *work = p->b->ground.workload;
    if (!work[WORKLOAD_CONTRACTION] && !work[WORKLOAD_ATTENTION]) /* the rest is about products */
        accuracy = str_cut(accuracy, 0, str_find(accuracy, S("\n")));
    return RENDER(p, "problem", out, err, {"task", str_trim(in->task->text)},
                  {"shape", prompt_shape(p)}, {"sizes", prompt_sizes(p)},
                  {"class", str_view(class)}, {"accuracy", str_trim(accuracy)},
                  {"gpu", prompt_gpu(p)}, {"roofline", roofline ? prompt_roofline(p) : S("")});
}

/* Its example is of decisions that this task has. */
static bool strategist(const struct prompter *p, str *out, struct err *err) {
    return RENDER(p, "strategist", out, err, {"example", prompt_example(p)});
}

static bool writer(const struct prompter *p, str *out, struct err *err) {
    const struct gpu *g = p->b->gpu;
    return RENDER(p, "writer", out, err, {"shared", arena_printf(p->mem, "%zu", g->shared_block)},
                  {"arch", str_view(g->arch)});
}

/* ---- strategists ---- */

static str planner_terms(const struct prompter *p, size_t n, bool fallback) {
    const char *rest = fallback ? " The one with every decision at its default is tried besides: "
                                  "do not propose it."
                                : "";
    if (p->b->in_turn)
        return arena_printf(p->mem,
                            "%.*sPropose %zu strateg%s for a first version, your best guess first. "
                            "The first is written, and refined from then on; a later one is "
                            "written only where the one before it cannot be made right, so let it "
                            "be simpler.%s",
                            STR_ARG(prompt_outlook(p, "", 1)), n, n == 1 ? "y" : "ies", rest);
    return arena_printf(p->mem,
                        "%.*sPropose %zu different strateg%s for a first generation, your best "
                        "guess first; all are written, and children of the best follow. Cover "
                        "different structures, not one structure with small changes.%s",
                        STR_ARG(prompt_outlook(p, "generation", n + fallback)), n,
                        n == 1 ? "y" : "ies", rest);
}

bool prompt_planner(const struct prompter *p, size_t n, bool fallback, struct prompt *out,
                    struct err *err) {
    str task;
    out->remarks_count = true; /* different structures are what it is asked for */
    return strategist(p, &out->system, err) && problem(p, true, &task, err) &&
           RENDER(p, "planner", &out->user, err, {"problem", task},
                  {"decisions", prompt_decisions(p)}, {"history", prompt_history(p)},
                  {"terms", planner_terms(p, n, fallback)});
}

/* Several may come to the same decisions once they are aligned: the parent has its own time. */
static const struct tried *find_tried(const struct prompter *p, const struct parent *x) {
    for (size_t i = 0; i < p->b->ntried; i++)
        if (p->b->tried[i].time_s == x->time_s &&
            strategy_equal(p->b->catalogue, &p->b->tried[i].strategy, &x->strategy))
            return &p->b->tried[i];
    return NULL;
}

static void put_parent(const struct prompter *p, const struct parent *x, const char *name,
                       struct buf *out) {
    const struct tried *t = find_tried(p, x);
    buf_printf(out, "%s: `", name);
    prompt_put_line(p, &x->strategy, out);
    if (isfinite(x->time_s))
        buf_printf(out, "`, %.4g us", x->time_s * 1e6);
    else
        buf_puts(out, S("`, not tried"));
    if (t && t->where.n)
        buf_printf(out, ": %.*s", STR_ARG(t->where));
    buf_putc(out, '\n');
}

/* Questions that are asked together get directions of their own, so that answers differ. One that
 * begins with STRUCTURE leads to what decisions may not tell apart. */
#define STRUCTURE "* "
static str direction(str directions, size_t place) {
    str line, rest;
    size_t lines = 0;
    for (rest = directions; str_line(&rest, &line);)
        lines += line.n > 0;
    BUG_IF(lines == 0);
    size_t wanted = place % lines;
    for (rest = directions; str_line(&rest, &line);)
        if (line.n && wanted-- == 0)
            break;
    return line;
}

static str without_mark(str line) {
    return str_starts(line, S(STRUCTURE)) ? str_from(line, strlen(STRUCTURE)) : line;
}

/* The other children of the generation, as far as they are known: whose, and in which direction. */
static str siblings(const struct prompter *p, str directions) {
    const struct briefing *b = p->b;
    struct buf out;
    if (b->nsiblings < 2)
        return S("");
    buf_init(&out, 1 << 16);
    buf_printf(&out,
               "\n# Asked for at the same moment\n\nOther children of this generation, each with a "
               "direction of its own%s:\n\n",
               b->by_rule ? "; some of them are made by rule instead, by changing parameters" : "");
    for (size_t i = 0; i < b->nsiblings; i++)
        if (i != b->place && isfinite(b->siblings[i].x.time_s))
            buf_printf(&out, "- of the parents at %.4g and %.4g us: %.*s\n",
                       b->siblings[i].x.time_s * 1e6, b->siblings[i].y.time_s * 1e6,
                       STR_ARG(without_mark(direction(directions, i))));
    return take(p, &out);
}

static str difference(bool remarks) {
    if (remarks)
        return S("It must differ from both parents and from everything that was tried, in its "
                 "decisions or in what stands behind `#`.");
    return S("It must differ in its decisions from both parents and from everything that was "
             "tried: of two strategies with equal decisions only one is written, whatever stands "
             "behind `#`.");
}

bool prompt_crossover(const struct prompter *p, const struct parent *x, const struct parent *y,
                      struct prompt *out, struct err *err) {
    struct buf b;
    str task, directions;
    if (!plain(p, "directions", &directions, err))
        return false;
    str own = direction(directions, p->b->place);
    out->remarks_count = str_starts(own, S(STRUCTURE));
    buf_init(&b, 1 << 16);
    put_parent(p, x, "- first", &b);
    put_parent(p, y, "- second", &b);
    str parents = take(p, &b);
    return strategist(p, &out->system, err) && problem(p, true, &task, err) &&
           RENDER(p, "crossover", &out->user, err, {"problem", task},
                  {"decisions", prompt_decisions(p)}, {"parents", parents},
                  {"tried", prompt_tried(p)}, {"siblings", siblings(p, directions)},
                  {"history", prompt_history(p)},
                  {"outlook", prompt_outlook(p, "generation", p->b->nsiblings)},
                  {"direction", without_mark(own)}, {"difference", difference(out->remarks_count)});
}

static str strategy_line(const struct prompter *p, const struct strategy *s) {
    struct buf b;
    buf_init(&b, 1 << 16);
    prompt_put_line(p, s, &b);
    return take(p, &b);
}

bool prompt_aligner(const struct prompter *p, const struct aligning *a, struct prompt *out,
                    struct err *err) {
    str task, against = S("");
    if (a->instead.n)
        against =
            arena_printf(p->mem, "\nWhat its author did instead: %.*s\n", STR_ARG(a->instead));
    if (a->against.n)
        against = arena_printf(p->mem, "%.*s\nWhat the compiled code shows against it: %.*s.\n",
                               STR_ARG(against), STR_ARG(a->against));
    return strategist(p, &out->system, err) && problem(p, false, &task, err) &&
           RENDER(p, "aligner", &out->user, err, {"problem", task},
                  {"decisions", prompt_decisions(p)}, {"strategy", strategy_line(p, a->strategy)},
                  {"against", against}, {"source", str_trim(a->source)});
}

/* ---- writers ---- */

/* A kernel with what is known of it. */
static void put_kernel(const struct prompter *p, const struct notebook_parent *x, const char *name,
                       struct buf *out) {
    put_parent(p, &x->was, name, out);
    buf_printf(out, "\n```cuda\n%.*s\n```\n", STR_ARG(str_trim(x->source)));
}

static str coder_text(const struct prompter *p, const struct strategy *s,
                      const struct notebook_parent *parents) {
    str text = prompt_strategy(p, s), note = prompt_note(p, s);
    struct buf b;
    if (note.n)
        text = arena_printf(
            p->mem, "%.*s- Further, and where it disagrees with the above this counts: %.*s\n",
            STR_ARG(text), STR_ARG(note));
    if (!parents)
        return text;
    buf_init(&b, PROMPT_MAX);
    buf_printf(&b,
               "%.*s\n# Two kernels to combine\n\nBoth are correct, and the decisions above were "
               "drawn from theirs. Write one kernel that takes the better part of each and should "
               "beat both; where a decision is in the way of that, leave it.\n\n",
               STR_ARG(text));
    put_kernel(p, &parents[0], "The first", &b);
    buf_putc(&b, '\n');
    put_kernel(p, &parents[1], "The second", &b);
    return take(p, &b);
}

bool prompt_coder(const struct prompter *p, const struct strategy *s,
                  const struct notebook_parent *parents, struct prompt *out, struct err *err) {
    str task, dialect, reply;
    return writer(p, &out->system, err) && problem(p, false, &task, err) &&
           prompt_dialect(p, s, S(""), false, &dialect, err) &&
           plain(p, "reply_source", &reply, err) &&
           RENDER(p, "coder", &out->user, err, {"problem", task},
                  {"strategy", coder_text(p, s, parents)}, {"dialect", dialect}, {"reply", reply});
}

static str debugger_terms(const struct prompter *p, const struct attempt *a) {
    uint64_t left = p->b->outlook.candidates, more = a->repairs;
    more = left && left - 1 < more ? left - 1 : more;
    if (!more)
        return S("This is the last repair: where it fails, the candidate is dropped.");
    return arena_printf(p->mem, "At most %llu more repair%s may follow; then it is dropped.",
                        (unsigned long long)more, more == 1 ? "" : "s");
}

bool prompt_debugger(const struct prompter *p, const struct attempt *a, str earlier,
                     struct prompt *out, struct err *err) {
    str task, dialect, reply, before = S("");
    struct buf b;
    buf_init(&b, 64u << 10);
    evidence_write(a->outcome, p->b->inst->task, a->source, &b);
    str evidence = take(p, &b);
    if (earlier.n)
        before =
            arena_printf(p->mem, "\n# Repairs that were tried already\n\n%.*s", STR_ARG(earlier));
    return writer(p, &out->system, err) && problem(p, false, &task, err) &&
           prompt_dialect(p, NULL, a->source, false, &dialect, err) &&
           plain(p, "reply_edits", &reply, err) &&
           RENDER(p, "debugger", &out->user, err, {"problem", task},
                  {"source", str_trim(a->source)}, {"evidence", evidence}, {"earlier", before},
                  {"terms", debugger_terms(p, a)}, {"dialect", dialect}, {"reply", reply});
}

/* A menu has a section a stage, and may have one of its own for work whose launch takes longer than
 * its limit. */
static str menu_section(const struct prompter *p, str text, enum stage stage) {
    const char *name = stage_name(stage);
    str small = S("");
    if (briefing_regime(p->b) == REGIME_LATENCY && !p->b->blind)
        small = prompt_section(text, arena_printf(p->mem, "%s, small", name));
    return small.n ? small : prompt_section(text, str_view(name));
}

static bool menu(const struct prompter *p, enum stage stage, const struct attempt *a, str *out,
                 struct err *err) {
    char name[64];
    str text;
    snprintf(name, sizeof name, "menu/%s", workload_name(p->b->features.workload));
    if (!plain(p, name, &text, err))
        return false;
    *out = arena_printf(p->mem,
                        "What often pays for this kind of work at this stage; the source may do "
                        "some of it already, in words of its own:\n\n%.*s",
                        STR_ARG(prompt_menu(p, menu_section(p, text, stage), a)));
    return true;
}

static str profile(const struct prompter *p, const struct attempt *a, const struct guidance *g) {
    struct buf b;
    if (!g->facts)
        return S("");
    buf_init(&b, 64u << 10);
    buf_puts(&b, S("\n# Where its time goes\n\n"));
    facts_write(a->outcome, &b);
    return take(p, &b);
}

/* When the stage ends, and a blank; empty: the run does before. */
static str stage_terms(const struct prompter *p, const struct guidance *g) {
    const char *next = g->stage == STAGE_PARAMETERS ? "the run ends" : "the next stage begins";
    const char *what = g->spent ? "candidate" : "round", *s = g->rounds == 1 ? "" : "s";
    if (g->rounds >= p->b->outlook.candidates)
        return S("");
    return arena_printf(p->mem, "After %zu more %s%s%s %s. ", g->rounds, what, s,
                        g->spent ? "" : " without gain", next);
}

static str optimizer_terms(const struct prompter *p, const struct outcome *o,
                           const struct guidance *g) {
    return arena_printf(p->mem,
                        "It counts when the time falls by %.2g us; otherwise it is dropped and you "
                        "go on from the source above. %.*s%.*sDo not repeat what was tried without "
                        "gain as it was; it may be a part of another change.",
                        g->gain * o->time_s * 1e6, STR_ARG(stage_terms(p, g)),
                        STR_ARG(prompt_outlook(p, g->stage == STAGE_PARAMETERS ? "" : "round", 1)));
}

bool prompt_optimizer(const struct prompter *p, const struct attempt *a, const struct guidance *g,
                      struct prompt *out, struct err *err) {
    const char *stage = stage_name(g->stage);
    const struct strategy *open = g->stage == STAGE_STRUCTURE ? a->strategy : NULL;
    char file[64];
    str task, dialect, reply, text, list;
    snprintf(file, sizeof file, "stage_%s", stage);
    return writer(p, &out->system, err) && problem(p, true, &task, err) &&
           prompt_dialect(p, open, a->source, true, &dialect, err) &&
           plain(p, "reply_edits", &reply, err) && plain(p, file, &text, err) &&
           menu(p, g->stage, a, &list, err) &&
           RENDER(p, "optimizer", &out->user, err, {"problem", task},
                  {"time", prompt_time(p, a->outcome)}, {"source", str_trim(a->source)},
                  {"tried", g->tried.n ? str_trim(g->tried) : S("Nothing yet.")},
                  {"stage", str_view(stage)}, {"stage_text", str_trim(text)}, {"menu", list},
                  {"terms", optimizer_terms(p, a->outcome, g)}, {"facts", profile(p, a, g)},
                  {"dialect", dialect}, {"reply", reply});
}

bool prompt_again(const struct prompter *p, const struct prompt *first, str complaint, str reply,
                  struct prompt *out, struct err *err) {
    out->system = first->system;
    return RENDER(p, "complaint", &out->user, err, {"prompt", str_trim(first->user)},
                  {"complaint", complaint}, {"reply", str_cut(reply, 0, REPLY_SHOWN)});
}
