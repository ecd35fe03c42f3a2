#include "agent/llm/evidence.h"

#include <string.h>

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

static void put_place(const struct record *r, struct buf *out) {
    if (r->shape.p && r->data.p)
        buf_printf(out, "At shape %.*s on %.*s data.\n", STR_ARG(r->shape), STR_ARG(r->data));
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
    put_place(o->record, out);
    if (o->verdict == VERDICT_COMPILE_ERROR) {
        evidence_compiler(why, source, out);
    } else if (o->record->nfindings) {
        put_findings(o->record, source, out);
    } else {
        buf_printf(out, "%.*s\n", STR_ARG(str_cut(why, 0, WHY_BYTES)));
        if (line_named(why) && !strchr(o->why, '|'))
            evidence_lines(source, line_named(why), out);
    }
    if (o->record->details && o->record->details->nmismatches)
        put_mismatches(o->record, t, out);
    if (hint)
        buf_printf(out, "%s\n", hint);
}
