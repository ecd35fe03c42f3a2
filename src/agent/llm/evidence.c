/* Evidence, of the kinds that the header names. */
#include "agent/llm/evidence.h"
#include <float.h>
#include <math.h>
#include <string.h>

#define SHOWN_LINES   6 /* of the kernel, with a message each */
#define MESSAGE_BYTES 420

struct message {
    str file, text;
    size_t line;        /* of file */
    size_t kernel_line; /* of kernel.cu; 0: none */
    size_t frames;
};

/* `FILE(LINE): error: TEXT`; `line` gets what the header calls it. */
static bool head_of(str line, struct message *m) {
    size_t open = str_find(line, S("(")), close = str_find(line, S("): "));
    uint64_t number;
    if (close == line.n || open > close ||
        !str_to_u64(str_cut(line, open + 1, close - open - 1), &number))
        return false;
    str rest = str_from(line, close + 3);
    if (!str_starts(rest, S("error")) && !str_starts(rest, S("catastrophic error")))
        return false;
    size_t colon = str_find(rest, S(": "));
    *m = (struct message){
        .file = str_cut(line, 0, open), .text = str_from(rest, colon + 2), .line = (size_t)number};
    if (str_ends(m->file, S("kernel.cu")))
        m->kernel_line = m->line;
    return true;
}

/* `… at line 7 of kernel.cu`, a frame of the chain. */
static size_t frame_line(str line) {
    uint64_t number;
    size_t at = line.n;
    for (str rest = line; (at = str_find(rest, S("at line "))) < rest.n;) {
        rest = str_from(rest, at + 8);
        str digits;
        str after = rest;
        str_word(&after, ' ', &digits);
        if (str_starts(str_trim(after), S("of \"kernel.cu\"")) ||
            str_starts(str_trim(after), S("of kernel.cu")))
            return str_to_u64(digits, &number) ? (size_t)number : 0;
    }
    return 0;
}

/* The message and its frames; `rest` moves to the next head. */
static bool next_message(str *rest, struct message *m) {
    str line;
    bool found = false;
    while (rest->n) {
        str here = *rest;
        struct message next;
        str_line(rest, &line);
        if (head_of(line, &next)) {
            if (found) {
                *rest = here;
                return true;
            }
            *m = next;
            found = true;
        } else if (found && str_find(line, S("instantiation of")) < line.n) {
            size_t at = frame_line(line);
            if (at && !m->kernel_line)
                m->kernel_line = at;
            m->frames++;
        }
    }
    return found;
}

/* The names that every type of a header is spelled with say nothing. */
static void put_short(str text, struct buf *out) {
    static const char *const noise[] = {"cuda::std::__4::", "cuda::std::", "cute::"};
    size_t written = 0;
    while (text.n && written < MESSAGE_BYTES) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof noise / sizeof *noise && !skip; i++)
            if (str_starts(text, str_view(noise[i])))
                skip = strlen(noise[i]);
        if (!skip) {
            buf_putc(out, text.p[0]);
            written++;
        }
        text = str_from(text, skip ? skip : 1);
    }
    if (text.n)
        buf_puts(out, S(" …"));
}

static void put_message(const struct message *m, str source, struct buf *out) {
    if (m->kernel_line)
        buf_printf(out, "kernel.cu:%zu: ", m->kernel_line);
    put_short(m->text, out);
    if (!m->kernel_line || m->kernel_line != m->line || m->frames)
        buf_printf(out, " (in %.*s:%zu%s)", STR_ARG(m->file), m->line,
                   m->frames > 1 ? ", frames of templates folded" : "");
    buf_putc(out, '\n');
    if (m->kernel_line)
        evidence_lines(source, m->kernel_line, out);
}

void evidence_compiler(str log, str source, struct buf *out) {
    size_t shown[SHOWN_LINES], n = 0, echoes = 0, others = 0;
    struct message m = {0};
    str rest = log;
    while (next_message(&rest, &m)) {
        bool echo = false;
        for (size_t i = 0; i < n; i++)
            echo |= shown[i] == m.kernel_line;
        if (echo) {
            echoes++;
        } else if (n == SHOWN_LINES) {
            others++;
        } else {
            shown[n++] = m.kernel_line;
            put_message(&m, source, out);
        }
    }
    if (echoes)
        buf_printf(out, "%zu further message%s from the same lines.\n", echoes,
                   echoes == 1 ? "" : "s");
    if (others)
        buf_printf(out, "%zu messages from other lines are left out.\n", others);
    if (!n) {
        buf_puts(out, str_cut(str_trim(log), 0, 8 * MESSAGE_BYTES));
        buf_putc(out, '\n');
    }
}

/* What the first mismatches have in common. Only what holds for all of them is said, and only what
 * points somewhere: a factor, zeros, a shift, a stripe, the edge of a tile. */

#define CLOSE 1e-4 /* relative, of what counts as the same number */

static bool close_to(double a, double b) {
    return fabs(a - b) <= CLOSE * fmax(fabs(a), fabs(b));
}

/* ---- values ---- */

/* The same for all: got by expected, or the difference. */
static bool one_number(const struct mismatches *m, bool factor, double *out) {
    for (size_t i = 0; i < m->n; i++) {
        double got = m->rows[i].got, expected = m->rows[i].expected;
        double x = factor ? got / expected : got - expected;
        if (!isfinite(x) || x == 0 || (i && !close_to(x, *out)))
            return false;
        *out = i ? *out : x;
    }
    return m->n > 1 && !(factor && fabs(*out - 1) <= 1e-3);
}

/* got[i] is what was expected `shift` rows of the list further on, throughout. */
static bool one_shift(const struct mismatches *m, int shift) {
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        size_t j = i + (size_t)shift;
        if (shift < 0 ? i < (size_t)-shift : j >= m->n)
            continue;
        if (!close_to(m->rows[i].got, m->rows[j].expected))
            return false;
        n++;
    }
    return n >= 3;
}

static void say_values(const struct mismatches *m, struct buf *out) {
    double x = 0;
    bool subnormal = true, zero = true, same = true, nan = true;
    for (size_t i = 0; i < m->n; i++) {
        double got = m->rows[i].got, expected = m->rows[i].expected;
        subnormal &= expected != 0 && fabs(expected) < FLT_MIN;
        zero &= got == 0;
        same &= got == m->rows[0].got;
        nan &= isnan(got);
    }
    if (subnormal)
        buf_puts(out, S("The expected values are subnormal: an intermediate product vanished, or "
                        "was flushed to zero. "));
    else if (zero)
        buf_puts(out, S("All of these are zero: the value is never computed, or an accumulator "
                        "that was cleared is what gets stored. "));
    else if (m->n > 1 && same)
        buf_printf(out, "All of these got the same value, %g. ", m->rows[0].got);
    else if (nan)
        buf_puts(out, S("All of these are NaN: infinity minus infinity, 0/0, or memory that "
                        "nothing wrote. "));
    else if (one_number(m, true, &x))
        buf_printf(out, "A constant factor: got = %.6g * expected. ", x);
    else if (one_number(m, false, &x))
        buf_printf(out, "A constant offset: got = expected %+.6g. ", x);
    else if (one_shift(m, 1) || one_shift(m, -1))
        buf_puts(out, S("Shifted by one: an element gets the value that its neighbour should "
                        "have. "));
}

/* ---- places ---- */

/* All mismatches at one distance from each other in the last dimension, in one row. */
static int64_t stripe_of(const struct mismatches *m) {
    size_t last = m->rank - 1;
    int64_t step = 0;
    for (size_t i = 1; i < m->n; i++) {
        int64_t d = m->rows[i].index[last] - m->rows[i - 1].index[last];
        for (size_t k = 0; k < last; k++)
            if (m->rows[i].index[k] != m->rows[0].index[k])
                return 0;
        if (i > 1 && d != step)
            return 0;
        step = d;
    }
    return m->n > 2 ? step : 0;
}

/* The smallest index in a dimension. */
static int64_t least_in(const struct mismatches *m, size_t d, int64_t *most) {
    int64_t least = INT64_MAX;
    *most = 0;
    for (size_t i = 0; i < m->n; i++) {
        int64_t v = m->rows[i].index[d];
        least = v < least ? v : least;
        *most = v > *most ? v : *most;
    }
    return least;
}

static int64_t power_dividing(int64_t v) {
    int64_t p = 1;
    while (p < 256 && v % (2 * p) == 0)
        p *= 2;
    return p;
}

/* Everything before a multiple of a power of two is right, in dimension d. */
static bool say_edge(const struct mismatches *m, size_t d, struct buf *out) {
    int64_t most, least = least_in(m, d, &most);
    if (least < 8 || power_dividing(least) < 8)
        return false;
    buf_printf(out,
               "Dimension %zu is right below %lld, a multiple of %lld: looks like the edge of a "
               "tile or of what one block, warp or vector covers. ",
               d, (long long)least, (long long)power_dividing(least));
    return true;
}

static bool say_last(const struct mismatches *m, size_t d, struct buf *out) {
    int64_t most, least = least_in(m, d, &most), extent = m->extent[d];
    if (extent < 2 || m->wrong > m->count / 2 || least < extent - extent % 32 || least == 0)
        return false;
    buf_printf(out,
               "Only the end of dimension %zu is off (from %lld of %lld): what is left over after "
               "whole tiles. ",
               d, (long long)least, (long long)extent);
    return true;
}

static void say_places(const struct mismatches *m, struct buf *out) {
    bool all = m->wrong && m->wrong == m->count;
    if (all) {
        buf_puts(out, S("Every element is off. "));
        return;
    }
    bool said = false;
    for (size_t d = 0; d < m->rank && m->n > 1; d++)
        said |= say_last(m, d, out) || say_edge(m, d, out);
    int64_t step = m->rank ? stripe_of(m) : 0;
    if (step > 1)
        buf_printf(out, "A stripe: one element in %lld of a row. ", (long long)step);
    else if (step == 1 && !said)
        buf_puts(out, S("A run of consecutive elements. "));
}

void evidence_pattern(const struct mismatches *m, struct buf *out) {
    if (!m->n)
        return;
    say_places(m, out);
    say_values(m, out);
}

#define AROUND         2 /* lines of code before and after */
#define LINE_BYTES     160
#define FINDINGS_SHOWN 4 /* at different lines */
#define WHY_BYTES      1200

void evidence_lines(str source, size_t line, struct buf *out) {
    str text;
    for (size_t n = 1; str_line(&source, &text) && n <= line + AROUND; n++)
        if (n + AROUND >= line)
            buf_printf(out, "%s %4zu | %.*s\n", n == line ? ">" : " ", n,
                       STR_ARG(str_cut(text, 0, LINE_BYTES)));
}

/* ---- mismatches ---- */

/* "R=7 C=257" as bindings. */
static size_t bindings_of(str label, struct binding *set, size_t most) {
    str word;
    size_t n = 0;
    while (n < most && str_word(&label, ' ', &word)) {
        size_t eq = str_find(word, S("="));
        if (str_to_i64(str_from(word, eq + 1), &set[n].value))
            set[n++].name = str_cut(word, 0, eq);
    }
    return n;
}

/* "y[3,17]": indices; the tensor's name apart. False where it is not one. */
static bool read_element(str text, str *name, int64_t *index, size_t *rank) {
    size_t open = str_find(text, S("["));
    str word, rest = str_cut(text, open + 1, text.n - open - 2);
    *name = str_cut(text, 0, open);
    *rank = 0;
    while (open < text.n && str_word(&rest, ',', &word))
        if (*rank == TASK_MAX_RANK || !str_to_i64(str_trim(word), &index[(*rank)++]))
            return false;
    return true;
}

/* "12 of 64 elements …" */
static void read_counts(str why, struct mismatches *m) {
    str a, of, b;
    if (str_word(&why, ' ', &a) && str_word(&why, ' ', &of) && str_is(of, "of") &&
        str_word(&why, ' ', &b) && str_to_u64(a, &m->wrong) && str_to_u64(b, &m->count))
        return;
    m->wrong = m->count = 0;
}

/* The extents that the tensor had at the shape that failed. */
static void read_extents(const struct task *t, str label, str name, struct arena *a,
                         struct mismatches *m) {
    struct binding set[TASK_MAX_DIMS];
    struct inst *in;
    struct err err;
    int tensor = tensor_find(t, name);
    if (tensor < 0 || !label.p ||
        !task_bind(t, set, bindings_of(label, set, TASK_MAX_DIMS), a, &in, &err))
        return;
    for (size_t d = 0; d < m->rank; d++)
        m->extent[d] = in->tensors[tensor].extent[d];
}

static void put_mismatches(const struct record *record, const struct task *t, struct buf *out) {
    const struct wire_judged *d = record->details;
    struct arena *a = arena_new((size_t)16 << 20);
    struct mismatches m = {.rows = arena_array(a, struct mismatch_row, d->nmismatches)};
    str name = {0};
    buf_puts(out, S("First mismatches (element: expected, got):\n"));
    for (size_t i = 0; i < d->nmismatches; i++) {
        const struct wire_mismatch *row = &d->mismatches[i];
        struct mismatch_row *r = &m.rows[m.n];
        r->expected = row->expected;
        r->got = row->got;
        buf_printf(out, "  %.*s: %.9g, %.9g\n", STR_ARG(row->element), r->expected, r->got);
        m.n += read_element(row->element, &name, r->index, &m.rank);
    }
    read_counts(record->why, &m);
    read_extents(t, record->shape, name, a, &m);
    size_t before = out->n;
    buf_puts(out, S("Pattern: "));
    size_t said = out->n;
    evidence_pattern(&m, out);
    if (out->n == said)
        out->n = before;
    else
        buf_putc(out, '\n');
    arena_free(a);
}

/* ---- checkers ---- */

static void put_findings(const struct record *record, str source, struct buf *out) {
    uint32_t seen[FINDINGS_SHOWN];
    size_t n = 0, more = 0;
    for (size_t i = 0; i < record->nfindings; i++) {
        const struct wire_finding *f = &record->findings[i];
        bool again = n == FINDINGS_SHOWN;
        for (size_t k = 0; k < n; k++)
            again |= seen[k] == f->line;
        more += again;
        if (again)
            continue;
        seen[n++] = f->line;
        buf_printf(out, "%.*s\n", STR_ARG(str_cut(f->text, 0, WHY_BYTES)));
        if (f->line > 0)
            evidence_lines(source, f->line, out);
    }
    if (more)
        buf_printf(out, "%zu further finding%s of this kind.\n", more, more == 1 ? "" : "s");
}

/* ---- all of it ---- */

/* "kernel.cu:24: …" or "kernel.cu:24:9: …" */
static size_t line_named(str why) {
    str number, rest = str_from(why, str_find(why, S("kernel.cu:")) + 10);
    uint64_t line;
    return str_word(&rest, ':', &number) && str_to_u64(number, &line) ? (size_t)line : 0;
}

static const char *hint_of(enum verdict v) {
    switch (v) {
    case VERDICT_INACCURATE:
        return "The mathematics is right and the rounding is not: keep operands, partial sums and "
               "functions in the precision that the accuracy class asks for.";
    case VERDICT_COMPILE_LIMIT:
        return "Unrolled loops and deep templates take the compiler's time: fewer elements a "
               "thread, "
               "`#pragma unroll 1` on outer loops, only the headers that are needed.";
    case VERDICT_IMPOSSIBLE:
        return "Do all of the work in every run: read every input that matters and write every "
               "output.";
    case VERDICT_UNSTABLE:
    case VERDICT_DRIFT:
        return "Look for a race, a missing barrier, memory that nothing initialises, or state that "
               "is meant to survive from one run to the next: none does.";
    case VERDICT_MODIFIED_INPUT:
        return "Inputs are read-only; use a workspace.";
    default:
        return NULL;
    }
}

void evidence_write(const struct outcome *o, const struct task *t, str source, struct buf *out) {
    str why = str_view(o->why);
    const char *hint = hint_of(o->verdict);
    buf_printf(out, "Verdict: %s, %s.\n", verdict_name(o->verdict), verdict_meaning(o->verdict));
    const struct record *r = o->record;
    if (r->shape.p && r->data.p)
        buf_printf(out, "At shape %.*s on %.*s data.\n", STR_ARG(r->shape), STR_ARG(r->data));
    if (o->verdict == VERDICT_COMPILE_ERROR) {
        evidence_compiler(why, source, out);
    } else if (r->nfindings) {
        put_findings(r, source, out);
    } else {
        buf_printf(out, "%.*s\n", STR_ARG(str_cut(why, 0, WHY_BYTES)));
        if (line_named(why) && !strchr(o->why, '|'))
            evidence_lines(source, line_named(why), out);
    }
    if (r->details && r->details->nmismatches)
        put_mismatches(r, t, out);
    if (hint)
        buf_printf(out, "%s\n", hint);
}

/* Profile facts, in words and units that a kernel engineer uses. On the simulator they are the time
 * model's parts and exact counters; on a GPU the measured time and what the compiler said. */

#define US 1e6

static void put_sizes(const uint32_t n[3], struct buf *out) {
    buf_printf(out, "%ux%ux%u", n[0], n[1], n[2]);
}

/* The parts of the model that matter, each as if it were alone: those of a twentieth of the time
 * and more. */
static void put_parts(const struct record_estimate *e, struct buf *out) {
    const struct {
        double s;
        const char *what;
    } parts[] = {{e->dram_s, "DRAM"},           {e->l2_s, "L2"},
                 {e->issue_s, "issue slots"},   {e->pipe_s, "arithmetic pipes"},
                 {e->tensor_s, "tensor cores"}, {e->lsu_s, "load/store unit"},
                 {e->latency_s, "latency"},     {e->dispatch_s, "block dispatch"},
                 {e->launch_s, "launch"}};
    const char *gap = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(parts[i].s >= 0.05 * e->time_s))
            continue;
        buf_printf(out, "%s%s %.3g us", gap, parts[i].what, parts[i].s * US);
        gap = ", ";
    }
}

static void put_traffic(const struct sim_counters *c, struct buf *out) {
    double loads = (double)c->load_requests, stores = (double)c->store_requests;
    double shared = (double)c->shared_requests;
    double warps = (double)c->warp_instrs;
    double share = c->ctas ? (double)c->ctas_total / (double)c->ctas : 1;
    buf_printf(
        out,
        "  global loads %.3g MB in %.3g requests (%.1f sectors of 32 bytes each, widest %lld "
        "bytes a lane), stores %.3g MB (%.1f sectors each, widest %lld)\n",
        share * (double)c->load_bytes / 1e6, share * loads,
        loads > 0 ? (double)c->load_sectors / loads : 0, (long long)c->widest_load,
        share * (double)c->store_bytes / 1e6, stores > 0 ? (double)c->store_sectors / stores : 0,
        (long long)c->widest_store);
    if (shared > 0)
        buf_printf(out,
                   "  shared memory %.3g requests, %.2f wavefronts each, %.3g bank conflicts\n",
                   share * shared, (double)c->shared_wavefronts / shared,
                   share * (double)c->shared_conflicts);
    buf_printf(out,
               "  warp instructions %.3g: fp32 %.0f%%, integer %.0f%%, special %.0f%%, memory "
               "%.0f%%, tensor %.0f%%, control %.0f%%; %lld divergent branches\n",
               share * warps, 100 * (double)c->warp_fp32 / warps, 100 * (double)c->warp_int / warps,
               100 * (double)c->warp_special / warps, 100 * (double)c->warp_memory / warps,
               100 * (double)c->warp_tensor / warps, 100 * (double)c->warp_control / warps,
               (long long)c->divergent_branches);
}

static void put_launch(const struct record_estimate *e, const struct sim_counters *counters,
                       struct buf *out) {
    buf_printf(out, "- kernel %.*s: %.4g us, bound by %.*s; grid ", STR_ARG(e->kernel),
               e->time_s * US, STR_ARG(e->bound));
    put_sizes(e->grid, out);
    buf_puts(out, S(", block "));
    put_sizes(e->block, out);
    buf_printf(out,
               "\n  %lld registers a thread, %lld bytes spilled, %lld bytes of shared memory a "
               "block; %lld blocks and %lld warps an SM (limited by %.*s), %.2f waves\n",
               (long long)e->registers, (long long)e->spill_bytes, (long long)e->shared_bytes,
               (long long)e->blocks_sm, (long long)e->warps_sm, STR_ARG(e->occupancy_limiter),
               e->waves);
    buf_puts(out, S("  resources, if each were alone (together more than the largest, in small "
                    "kernels by 10 to 40%): "));
    put_parts(e, out);
    buf_putc(out, '\n');
    if (counters && counters->warp_instrs > 0)
        put_traffic(counters, out);
}

void facts_write(const struct outcome *o, struct buf *out) {
    const struct record *r = o->record;
    for (size_t i = 0; i < r->nestimate; i++)
        put_launch(&r->estimate[i], i < r->ncounters ? &r->counters[i] : NULL, out);
    for (size_t i = 0; !r->nestimate && i < r->nkernels; i++)
        buf_printf(out,
                   "- kernel %.*s: %lld registers a thread, %lld bytes spilled, %lld bytes of "
                   "static shared memory\n",
                   STR_ARG(r->kernels[i].name), (long long)r->kernels[i].registers,
                   (long long)r->kernels[i].spill_bytes, (long long)r->kernels[i].shared_static);
}

void facts_summarise(const struct outcome *o, struct buf *out) {
    for (size_t i = 0; i < o->record->nestimate; i++) {
        const struct record_estimate *e = &o->record->estimate[i];
        buf_printf(out, "%s%.*s %.4g us, %.*s-bound (each alone: ", out->n ? "; " : "",
                   STR_ARG(e->kernel), e->time_s * US, STR_ARG(e->bound));
        put_parts(e, out);
        buf_puts(out, S("), grid "));
        put_sizes(e->grid, out);
        buf_printf(out, ", room for %lld warps an SM, %lld registers", (long long)e->warps_sm,
                   (long long)e->registers);
    }
}

/* ---- what the code does ---- */

struct accesses {
    bool loads, wide, streaming;
};

static void look_at_form(str form, struct accesses *a) {
    bool load = str_starts(form, S("ld.global")), store = str_starts(form, S("st.global"));
    a->loads |= load;
    a->wide |= load && str_ends(form, S(".128"));
    a->streaming |= (load || store) && str_find(form, S(".cs")) < form.n;
}

bool facts_hold(const struct outcome *o, str name) {
    const struct record *r = o->record;
    bool wide = r->nkernels > 0, streaming = false, grouped = false;
    for (size_t i = 0; i < r->nkernels; i++) {
        const struct census *c = r->kernels[i].census;
        struct accesses a = {0};
        for (size_t k = 0; c && k < c->nforms; k++)
            look_at_form(c->forms[k].name, &a);
        wide = wide && c && (a.wide || !a.loads);
        streaming |= a.streaming;
        grouped |= c && census_group_count(c, name) > 0;
    }
    if (str_is(name, "one-launch"))
        return r->nlaunches == 1;
    return str_is(name, "wide") ? wide : str_is(name, "streaming") ? streaming : grouped;
}
