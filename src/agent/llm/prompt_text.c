/* The parts of prompts that are made from a briefing. */
#include "agent/llm/evidence.h"
#include "agent/llm/prompt.h"
#include "base/asset.h"

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
str prompt_shape(const struct prompter *p) {
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

str prompt_sizes(const struct prompter *p) {
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

str prompt_gpu(const struct prompter *p) {
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

str prompt_roofline(const struct prompter *p) {
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

str prompt_time(const struct prompter *p, const struct outcome *o) {
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

static bool begins_sentence(str prose, size_t at) {
    return at == 0 || (at >= 2 && strchr(" \n", prose.p[at - 1]) && strchr(".:", prose.p[at - 2]));
}

/* Where the text about one value begins ("1: …"); the text's length: nowhere. */
static size_t value_begins(str prose, int64_t value) {
    char mark[32];
    snprintf(mark, sizeof mark, "%lld: ", (long long)value);
    for (size_t at = 0; at < prose.n; at++) {
        at += str_find(str_from(prose, at), str_view(mark));
        if (at < prose.n && begins_sentence(prose, at))
            return at;
    }
    return prose.n;
}

/* What a writer needs of a decision's prose: of its first paragraph what stands before the texts
 * about single values, and the chosen one's; of one that stands for nothing of the sort only that.
 * The rest is for who chooses. */
static str chosen_prose(const struct prompter *p, const struct decision *d, int64_t value) {
    str prose = str_cut(d->prose, 0, str_find(d->prose, S("\n\n")));
    size_t end = prose.n, from = value_begins(prose, value), first = end, next = end;
    for (size_t v = 0; v < d->nvalues; v++) {
        size_t at = value_begins(prose, d->values[v]);
        first = at < first ? at : first;
        next = at > from && at < next ? at : next;
    }
    if (from == end)
        return str_cut(prose, 0, first ? first : end);
    str text = str_cut(prose, from, next - from);
    text = str_from(text, str_find(text, S(": ")) + 2);
    if (str_starts(text, S("none"))) /* of what the others are about */
        return text;
    return arena_printf(p->mem, "%.*s%s%.*s", STR_ARG(str_cut(prose, 0, first)),
                        first ? "Here: " : "", STR_ARG(text));
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

str prompt_note(const struct prompter *p, const struct strategy *s) {
    const struct notebook_entry *e =
        p->notes ? notebook_find(p->notes, strategy_hash(p->b->catalogue, s)) : NULL;
    return e ? e->note : S("");
}

void prompt_put_line(const struct prompter *p, const struct strategy *s, struct buf *out) {
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

str prompt_history(const struct prompter *p) {
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

str prompt_tried(const struct prompter *p) {
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

str prompt_decisions(const struct prompter *p) {
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
    return take(p, &b);
}

str prompt_example(const struct prompter *p) {
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

str prompt_section(str text, str name) {
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

bool prompt_dialect(const struct prompter *p, const struct strategy *s, str source, bool runs,
                    str *out, struct err *err) {
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
