/* What was verified of the winner, and what became of all candidates. */
#include "report/run_page.h"

#include "kernel/candidate.h"
#include "spec/value.h"

#include <math.h>
#include <stdlib.h>

#define SHAPES_MOST  64
#define REASONS_MOST 400 /* different ones that are told apart */
#define REASONS_EACH 6   /* of a verdict that are shown */
#define REASON_BYTES 300

/* ---- shapes × kinds of data ---- */

struct cell {
    double worst, rms; /* the largest of all runs; worst NAN: not judged by value */
    size_t runs;
};
struct matrix {
    str shapes[SHAPES_MOST];
    size_t n;
    struct cell cells[SHAPES_MOST][DATA_COUNT];
    bool used[DATA_COUNT];
};

static size_t shape_row(struct matrix *m, str shape) {
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->shapes[i], shape))
            return i;
    if (m->n == SHAPES_MOST)
        return SHAPES_MOST;
    m->shapes[m->n] = shape;
    return m->n++;
}

static void add_runs(struct matrix *m, const struct record *r) {
    for (size_t i = 0; r && i < r->nruns; i++) {
        const struct result_run *run = &r->runs[i];
        size_t row = shape_row(m, run->shape);
        if (row == SHAPES_MOST)
            continue;
        struct cell *c = &m->cells[row][run->data];
        if (!c->runs++)
            c->worst = c->rms = NAN;
        c->worst = run->has_worst ? fmax(c->worst, run->worst) : c->worst;
        c->rms = run->has_rms ? fmax(c->rms, run->rms) : c->rms;
        m->used[run->data] = true;
    }
}

/* The task's own shape stands first. */
static void matrix_of(const struct report_run *r, struct arena *a, struct matrix *m) {
    *m = (struct matrix){0};
    if (r->inst)
        shape_row(m, inst_label(r->inst, a));
    add_runs(m, r->record);
    add_runs(m, r->record ? r->record->confirmed : NULL);
}

double run_worst(const struct report_run *r, double *limit) {
    struct matrix *m = mem_alloc(sizeof *m);
    double worst = NAN;
    matrix_of(r, r->mem, m);
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < DATA_COUNT; k++)
            if (m->cells[i][k].runs)
                worst = fmax(worst, m->cells[i][k].worst);
    mem_free(m);
    *limit = r->task ? accuracy_limits(r->task->accuracy).worst : NAN;
    return worst;
}

/* ---- shapes that the winner refuses ---- */

static struct candidate *winner_plan(const struct report_run *r, struct arena *a) {
    struct candidate *c;
    struct err ignored;
    if (!r->task || !report_has_winner(r) ||
        !candidate_parse(S("kernel.cu"), r->candidates[r->winner].source, r->task, a, &c, &ignored))
        return NULL;
    return c;
}

/* Whether the winner's require lines refuse check i; `which` is the line. */
static bool refuses(const struct report_run *r, const struct candidate *c, size_t i,
                    struct arena *a, str *label, str *which) {
    struct inst *in;
    struct err ignored;
    bool fits = true;
    if (!task_bind_check(r->task, i, a, &in, &ignored))
        return false;
    *label = inst_label(in, a);
    return plan_fits(c, in, &fits, which, &ignored) && !fits;
}

str run_refused(const struct report_run *r, struct arena *a) {
    struct candidate *c = winner_plan(r, a);
    struct buf b;
    str label, which;
    buf_init(&b, 16384);
    for (size_t i = 0; c && i < r->task->nchecks; i++)
        if (refuses(r, c, i, a, &label, &which))
            buf_printf(&b, "%s%.*s (require %.*s)", b.n ? "; " : "", STR_ARG(label),
                       STR_ARG(which));
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static size_t used_kinds(const struct matrix *m) {
    size_t n = 0;
    for (size_t k = 0; k < DATA_COUNT; k++)
        n += m->used[k];
    return n;
}

static void put_refused(struct page *p, const struct report_run *r, const struct matrix *m) {
    struct candidate *c = winner_plan(r, p->mem);
    str label, which;
    for (size_t i = 0; c && i < r->task->nchecks; i++) {
        if (!refuses(r, c, i, p->mem, &label, &which))
            continue;
        page_put(p, "<tr>");
        html_element(&p->body, "th scope=\"row\"", label);
        page_putf(p,
                  "<td class=\"refused\" colspan=\"%zu\">not run: the kernel says <code>require ",
                  used_kinds(m));
        html_text(&p->body, which);
        page_put(p, "</code></td></tr>\n");
    }
}

/* ---- the table ---- */

/* Shading by the logarithm: what matters is how near the limit is. */
static double nearness(double worst, double limit) {
    if (!(worst > 0) || !(limit > 0))
        return 0;
    double part = 1 + log10(worst / limit) / 3;
    return part < 0 ? 0 : part > 1 ? 1 : part;
}

static void put_cell(struct page *p, const struct matrix *m, size_t row, size_t kind,
                     double limit) {
    const struct cell *c = &m->cells[row][kind];
    if (!c->runs) {
        page_put(p, "<td class=\"cell none\" title=\"not run\"><span class=\"unseen\">not "
                    "run</span></td>");
        return;
    }
    str words = arena_printf(p->mem,
                             "%.*s on %s data: %s; worst error %.3g, rms %.3g, of their "
                             "estimates",
                             STR_ARG(m->shapes[row]), data_name((enum data_kind)kind),
                             html_count(p->mem, c->runs, "run").p, c->worst, c->rms);
    page_putf(p, "<td class=\"cell\" style=\"--near:%.2f\"", nearness(c->worst, limit));
    html_attribute(&p->body, "title", words);
    page_put(p, ">");
    html_text(&p->body, !isfinite(c->worst)               ? S("✓")
                        : c->worst > 0 && c->worst < 1e-3 ? S("<.001")
                                                          : html_number(p->mem, c->worst));
    page_put(p, "</td>");
}

static const struct result_sample *sample_of(const struct record *r) {
    if (r && r->confirmed && r->confirmed->sample)
        return r->confirmed->sample;
    return r ? r->sample : NULL;
}

/* The cells of a shape; of the task's own, where it was not run whole, what was judged of it. */
static void put_cells(struct page *p, const struct report_run *r, const struct matrix *m,
                      size_t row, double limit) {
    const struct result_sample *s = r->inst && row == 0 ? sample_of(r->record) : NULL;
    size_t runs = 0;
    for (size_t k = 0; k < DATA_COUNT; k++)
        runs += m->cells[row][k].runs;
    if (s && !runs) {
        page_putf(
            p,
            "<td class=\"partly\" colspan=\"%zu\">too large to run whole: %lld of its %lld blocks "
            "were run, and %lld elements of their results judged</td>",
            used_kinds(m), (long long)s->blocks, (long long)s->blocks_total,
            (long long)s->elements);
        return;
    }
    for (size_t k = 0; k < DATA_COUNT; k++)
        if (m->used[k])
            put_cell(p, m, row, k, limit);
}

static json *matrix_json(const struct matrix *m) {
    json *list = json_array();
    for (size_t i = 0; i < m->n; i++)
        for (size_t k = 0; k < DATA_COUNT; k++) {
            const struct cell *c = &m->cells[i][k];
            if (!c->runs)
                continue;
            json *j = json_object();
            json_set_str(j, "shape", m->shapes[i]);
            json_set_str(j, "data", str_view(data_name((enum data_kind)k)));
            json_set_f64(j, "worst", c->worst);
            json_set_f64(j, "rms", c->rms);
            json_set_i64(j, "runs", (int64_t)c->runs);
            json_push(list, j);
        }
    return list;
}

static void put_table(struct page *p, const struct report_run *r, const struct matrix *m,
                      double limit) {
    page_put(
        p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"errors by shape and "
           "kind of data\"><table class=\"matrix\"><thead><tr><th scope=\"col\">shape</th>");
    for (size_t k = 0; k < DATA_COUNT; k++)
        if (m->used[k]) {
            page_put(p, "<th scope=\"col\"");
            html_attribute(&p->body, "title", str_view(data_meaning((enum data_kind)k)));
            page_putf(p, "><span>%s</span></th>", data_name((enum data_kind)k));
        }
    page_put(p, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < m->n; i++) {
        page_put(p, "<tr><th scope=\"row\">");
        html_text(&p->body, m->shapes[i]);
        if (r->inst && i == 0)
            page_put(p, " <span class=\"chip\">the task's own</span>");
        page_put(p, "</th>");
        put_cells(p, r, m, i, limit);
        page_put(p, "</tr>\n");
    }
    put_refused(p, r, m);
    page_put(p, "</tbody></table></div>");
}

void run_matrix(struct page *p, const struct report_run *r) {
    struct matrix *m = mem_alloc(sizeof *m);
    double limit = r->task ? accuracy_limits(r->task->accuracy).worst : NAN;
    matrix_of(r, p->mem, m);
    page_section(p, "verification", "What it was verified on");
    if (!used_kinds(m)) {
        page_put(p, "<p class=\"absent\">The record of the winner lists no runs.</p>");
    } else {
        html_elementf(&p->body, "p",
                      "The worst error of an output element, in units of the error that an honest "
                      "evaluation is expected to make; up to %.3g are allowed in class %s. Empty: "
                      "that shape was not run on that kind of data.",
                      limit, r->task ? accuracy_name(r->task->accuracy) : "of the task");
        put_table(p, r, m, limit);
        json_set(p->data, "matrix", matrix_json(m));
    }
    mem_free(m);
}

/* ---- verdicts ---- */

struct reason {
    enum verdict verdict;
    str text; /* its first line */
    size_t n;
    uint64_t ordinal; /* of the first */
};

static str first_line(str text) {
    str line = {0};
    str_line(&text, &line);
    return line;
}

static size_t collect_reasons(const struct report_run *r, struct reason *out) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct report_candidate *c = &r->candidates[i];
        struct reason why = {c->verdict, first_line(c->why), 1, c->ordinal};
        size_t k = 0;
        if (c->damaged || c->verdict == VERDICT_ACCEPTED)
            continue;
        while (k < n && !(out[k].verdict == why.verdict && str_eq(out[k].text, why.text)))
            k++;
        if (k < n)
            out[k].n++;
        else if (n < REASONS_MOST)
            out[n++] = why;
    }
    return n;
}

static int by_number(const void *x, const void *y) {
    const struct reason *a = x, *b = y;
    if (a->n != b->n)
        return a->n < b->n ? 1 : -1;
    return (a->ordinal > b->ordinal) - (a->ordinal < b->ordinal);
}

static void put_reasons(struct page *p, const struct reason *list, size_t n, enum verdict v) {
    size_t shown = 0, left = 0;
    page_put(p, "<ul class=\"reasons\">");
    for (size_t i = 0; i < n; i++) {
        if (list[i].verdict != v || (shown == REASONS_EACH && ++left))
            continue;
        shown++;
        page_putf(p, "<li><span class=\"times\">%zu×</span> ", list[i].n);
        html_text(&p->body, html_cut(p->mem, list[i].text, REASON_BYTES));
        page_putf(p, " <a href=\"#k%llu\">kernel %llu</a></li>",
                  (unsigned long long)list[i].ordinal, (unsigned long long)list[i].ordinal);
    }
    if (left)
        page_putf(p, "<li>and %zu other reasons</li>", left);
    page_put(p, "</ul>");
}

void run_verdicts(struct page *p, const struct report_run *r) {
    size_t counts[VERDICT_COUNT] = {0}, damaged = 0, most = 1;
    struct reason *reasons = mem_alloc(REASONS_MOST * sizeof *reasons);
    size_t n = collect_reasons(r, reasons);
    json *j = json_object();
    for (size_t i = 0; i < r->n; i++) {
        damaged += r->candidates[i].damaged;
        if (!r->candidates[i].damaged)
            counts[r->candidates[i].verdict]++;
    }
    for (size_t v = 0; v < VERDICT_COUNT; v++)
        most = counts[v] > most ? counts[v] : most;
    if (n)
        qsort(reasons, n, sizeof *reasons, by_number);
    page_section(p, "verdicts", "Verdicts");
    page_put(p, "<table class=\"verdicts\"><thead class=\"unseen\"><tr><th "
                "scope=\"col\">verdict</th><th scope=\"col\">kernels</th><th "
                "scope=\"col\">why</th></tr></thead><tbody>");
    for (size_t v = 0; v < VERDICT_COUNT; v++) {
        if (!counts[v])
            continue;
        json_set_i64(j, verdict_name((enum verdict)v), (int64_t)counts[v]);
        page_putf(p,
                  "<tr><th scope=\"row\">%s</th><td class=\"share\" style=\"--share:%.4f\"><span "
                  "class=\"%s\">%zu</span></td><td>%s",
                  verdict_name((enum verdict)v), (double)counts[v] / (double)most,
                  v == VERDICT_ACCEPTED ? "good" : "bad", counts[v],
                  verdict_meaning((enum verdict)v));
        if (v != VERDICT_ACCEPTED)
            put_reasons(p, reasons, n, (enum verdict)v);
        page_put(p, "</td></tr>\n");
    }
    page_put(p, "</tbody></table>");
    if (damaged)
        page_putf(p,
                  "<p class=\"absent\">%zu rows of the archive are damaged and stand in no line "
                  "above.</p>",
                  damaged);
    json_set(p->data, "verdicts", j);
    mem_free(reasons);
}
