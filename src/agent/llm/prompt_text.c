/* The parts of prompts that are made from a briefing. */
#include "agent/llm/prompt.h"
#include "base/asset.h"

#include <math.h>
#include <stdio.h>

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
               "KiB a block at most), up to %d threads and %d blocks. L2 of %zu MiB. ",
               g->title, g->arch, g->sms, g->clock_hz / 1e9, g->registers_sm, g->shared_sm >> 10,
               g->shared_block >> 10, g->max_threads_sm, g->max_blocks_sm, g->l2_bytes >> 20);
    buf_printf(&b,
               "Reachable: DRAM %.2f TB/s, fp32 %.0f TFLOP/s, TF32 on tensor cores %.0f, bf16 and "
               "f16 %.0f. DRAM latency %.0f ns; a launch takes %.1f us.\n",
               g->copy_bytes_s / 1e12, g->fp32_flops / 1e12, g->tf32_flops / 1e12,
               g->bf16_flops / 1e12, g->dram_latency_s * 1e9, g->launch_s * 1e6);
    return take(p, &b);
}

str prompt_roofline(const struct prompter *p) {
    const struct roofline *r = &p->b->roofline;
    if (p->b->blind)
        return S("");
    return arena_printf(p->mem,
                        "\n# Roofline\n\n%.3g flop a byte: %s-bound. Moving what must be moved "
                        "takes %.4g us, the arithmetic %.4g us; the limit for any kernel is "
                        "%.4g us%s.\n",
                        r->intensity, r->memory_bound ? "memory" : "compute", r->memory_s * 1e6,
                        r->compute_s * 1e6, r->limit_s * 1e6,
                        r->limit_s < p->b->gpu->launch_s
                            ? ", less than a launch: latency and the number of launches decide"
                            : "");
}

str prompt_time(const struct prompter *p, const struct outcome *o) {
    const char *how = o->estimated ? " by the simulator's estimate" : "";
    if (p->b->blind)
        return arena_printf(p->mem, "%.4g us%s", o->time_s * 1e6, how);
    return arena_printf(p->mem, "%.4g us%s, %.0f%% of the limit of %.4g us", o->time_s * 1e6, how,
                        100 * o->limit_share, p->b->roofline.limit_s * 1e6);
}

/* ---- strategies ---- */

/* A paragraph on one line: the prose of a file is broken at its width. */
static void put_prose(str prose, struct buf *out) {
    str line;
    const char *gap = "";
    while (str_line(&prose, &line)) {
        buf_printf(out, "%s%.*s", gap, STR_ARG(str_trim(line)));
        gap = " ";
    }
    buf_putc(out, '\n');
}

str prompt_strategy(const struct prompter *p, const struct strategy *s) {
    const struct catalogue *c = p->b->catalogue;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("`"));
    strategy_text(c, s, &b);
    buf_puts(&b, S("`\n\n"));
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (s->value[i] == STRATEGY_UNSET)
            continue;
        buf_printf(&b, "- %.*s=%lld. ", STR_ARG(d->name), (long long)s->value[i]);
        put_prose(d->prose, &b);
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
        buf_printf(&b, "- %.2f: `", p->b->history[i].time_s);
        strategy_text(p->b->catalogue, &p->b->history[i].strategy, &b);
        buf_puts(&b, S("`\n"));
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
        strategy_text(p->b->catalogue, &t->strategy, &b);
        buf_puts(&b, S("`\n"));
    }
    return take(p, &b);
}

static bool in_workloads(const struct prompter *p, const struct decision *d) {
    for (int w = 0; w < WORKLOAD_COUNT; w++)
        if (d->workload[w] && p->b->ground.workload[w])
            return true;
    return false;
}

str prompt_decisions(const struct prompter *p) {
    const struct catalogue *c = p->b->catalogue;
    struct buf b;
    buf_init(&b, TEXT_MAX);
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (!in_workloads(p, d))
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
    for (size_t i = 0; i < p->b->catalogue->n && n < EXAMPLE_LEAST; i++)
        if (s.value[i] != STRATEGY_UNSET && p->b->catalogue->decisions[i].nvalues > 1)
            buf_printf(&b, "%s%.*s=%lld", n++ ? " " : "",
                       STR_ARG(p->b->catalogue->decisions[i].name), (long long)s.value[i]);
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

/* What calls for a sheet: a decision's value, at least, or words in a source. `always` are those
 * without which nothing is written in CuTe. */
static const struct {
    const char *sheet;
    bool always;
    const char *decision;
    int64_t value;
    bool exact;
    const char *words[3];
} sheets[] = {
    {"layouts", true, NULL, 0, false, {0}},
    {"copy_atoms", true, NULL, 0, false, {"tiled_copy"}},
    {"predication", false, NULL, 0, false, {"copy_if", "identity_tensor"}},
    {"tiled_mma", false, "tensor-path", 1, true, {"SM80_16x8", "tiled_copy_A"}},
    {"swizzle", false, "swizzle", 1, false, {"Swizzle<"}},
    {"cp_async", false, "tensor-path", 1, true, {"cp_async", "CP_ASYNC"}},
    {"tma", false, "tensor-path", 2, false, {"TMA", "tensormap"}},
    {"wgmma", false, "tensor-path", 2, false, {"GMMA", "warpgroup"}},
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
        return source_has(source, sheets[i].words) || strategy_has(p, s, i);
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

bool prompt_dialect(const struct prompter *p, const struct strategy *s, str source, str *out,
                    struct err *err) {
    struct buf b;
    bool ok = true;
    *out = S("");
    if (!is_cute(p, s, source))
        return true;
    buf_init(&b, TEXT_MAX);
    buf_puts(&b, S("\n# CuTe\n\n"));
    if (!source.n)
        buf_puts(&b, S("Write the kernel in CuTe: tiles, threads and values by layouts, copies and "
                       "products by atoms.\n"));
    size_t head = b.n;
    for (size_t i = 0; ok && i < sizeof sheets / sizeof *sheets; i++) {
        str text;
        if (!wanted(p, s, source, i))
            continue;
        char name[64];
        snprintf(name, sizeof name, "prompts/cute/%s.md", sheets[i].sheet);
        ok = asset_get(p->o->assets, name, p->mem, &text, err);
        buf_putc(&b, '\n');
        if (ok)
            buf_puts(&b, text);
    }
    if (source.n && b.n == head)
        buf_clear(&b);
    *out = take(p, &b);
    return ok;
}
