/* The winner's source, with what the simulator counted for each of its lines. */
#include "report/code.h"
#include "report/run_page.h"

#include "kernel/candidate.h"

#include <math.h>
#include <stdlib.h>

#define OTHERS_SHOWN 12
#define HOT_SHOWN    5

typedef unsigned long long ull;

struct heat {
    struct sim_line *lines; /* by line of the kernel, from 1; counters of all launches */
    size_t n;
    struct sim_line *others; /* of other files, which the kernel includes */
    size_t nothers;
    double clocks, hottest; /* of all lines together; of the hottest line */
    bool known, sampled;
};

/* The record that has counters by line: of the simulator's verification of the winner. */
static const struct record *counted_record(const struct report_run *r) {
    const struct record *list[] = {r->watched, r->record ? r->record->confirmed : NULL, r->record};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] && list[i]->nlines)
            return list[i];
    return NULL;
}

static void add_line(struct sim_line *to, const struct sim_line *from) {
    to->warp_instrs += from->warp_instrs;
    to->lane_instrs += from->lane_instrs;
    to->flops += from->flops;
    to->tensor_flops += from->tensor_flops;
    to->divergent_branches += from->divergent_branches;
    to->requests += from->requests;
    to->sectors += from->sectors;
    to->bytes += from->bytes;
    to->shared_requests += from->shared_requests;
    to->shared_wavefronts += from->shared_wavefronts;
    to->shared_conflicts += from->shared_conflicts;
}

static int by_clocks(const void *x, const void *y) {
    double a = sim_line_clocks(x), b = sim_line_clocks(y);
    return (a < b) - (a > b);
}

static void heat_of(const struct report_run *r, size_t lines, struct arena *a, struct heat *h) {
    const struct record *rec = counted_record(r);
    size_t all = 0;
    *h = (struct heat){.lines = arena_array(a, struct sim_line, lines + 1), .n = lines};
    for (size_t i = 0; rec && i < rec->nlines; i++)
        all += rec->lines[i].nlist;
    h->others = arena_array(a, struct sim_line, all + 1);
    for (size_t i = 0; rec && i < rec->nlines; i++)
        for (size_t k = 0; k < rec->lines[i].nlist; k++) {
            const struct sim_line *l = &rec->lines[i].list[k];
            bool ours = str_is(l->file, CANDIDATE_UNIT_FILE) && l->line >= 1 && l->line <= lines;
            h->clocks += sim_line_clocks(l);
            if (ours)
                add_line(&h->lines[l->line], l);
            else if (sim_line_clocks(l) > 0)
                h->others[h->nothers++] = *l;
        }
    for (size_t i = 1; i <= lines; i++)
        h->hottest = fmax(h->hottest, sim_line_clocks(&h->lines[i]));
    for (size_t i = 0; rec && i < rec->ncounters; i++)
        h->sampled |= rec->counters[i].ctas < rec->counters[i].ctas_total;
    h->known = h->clocks > 0;
    if (h->nothers)
        qsort(h->others, h->nothers, sizeof *h->others, by_clocks);
}

/* Counters in words, for whoever points at the line. */
static str line_words(const struct sim_line *l, struct arena *a) {
    struct buf b;
    buf_init(&b, 4096);
    buf_printf(&b, "%llu warp instructions", (ull)l->warp_instrs);
    if (l->warp_instrs && l->lane_instrs < 32 * l->warp_instrs)
        buf_printf(&b, ", %.1f of 32 lanes at work",
                   (double)l->lane_instrs / (double)l->warp_instrs);
    if (l->requests)
        buf_printf(&b, "; %llu global requests of %.3g sectors", (ull)l->requests,
                   (double)l->sectors / (double)l->requests);
    if (l->shared_requests)
        buf_printf(&b, "; %llu shared requests of %.3g wavefronts, %llu bank conflicts",
                   (ull)l->shared_requests,
                   (double)l->shared_wavefronts / (double)l->shared_requests,
                   (ull)l->shared_conflicts);
    if (l->tensor_flops)
        buf_printf(&b, "; %.4g Mflop on tensor cores", (double)l->tensor_flops / 1e6);
    if (l->divergent_branches)
        buf_printf(&b, "; %llu divergent branches", (ull)l->divergent_branches);
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static void put_heat(struct page *p, const struct heat *h, size_t line) {
    const struct sim_line *l = &h->lines[line];
    double clocks = sim_line_clocks(l);
    if (!(clocks > 0)) {
        page_put(p, "<td class=\"heat\"></td><td class=\"count\"></td>");
        return;
    }
    page_putf(p, "<td class=\"heat\" style=\"--heat:%.3f\"", clocks / h->hottest);
    html_attribute(&p->body, "title", line_words(l, p->mem));
    page_put(p, ">");
    html_text(&p->body, html_percent(p->mem, clocks / h->clocks));
    page_put(p, "</td><td class=\"count\">");
    if (l->requests)
        page_putf(p, "%.3g sectors", (double)l->sectors / (double)l->requests);
    else if (l->shared_requests)
        page_putf(p, "%.3g wavefronts", (double)l->shared_wavefronts / (double)l->shared_requests);
    page_put(p, "</td>");
}

static void put_others(struct page *p, const struct heat *h) {
    if (!h->nothers)
        return;
    page_put(p, "<details><summary>Lines of other files that the kernel includes</summary><ul>");
    for (size_t i = 0; i < h->nothers && i < OTHERS_SHOWN; i++) {
        const struct sim_line *l = &h->others[i];
        page_put(p, "<li>");
        html_element(&p->body, "b", html_percent(p->mem, sim_line_clocks(l) / h->clocks));
        page_put(p, " ");
        if (l->file.n) {
            html_text(&p->body, l->file);
            page_putf(p, ":%u", l->line);
        } else {
            page_put(p, "instructions that belong to no line");
        }
        page_put(p, ": ");
        html_text(&p->body, line_words(l, p->mem));
        page_put(p, "</li>");
    }
    page_put(p, "</ul></details>");
}

/* The hottest lines, each with its text. */
static void put_hottest(struct page *p, const struct heat *h, const str *texts) {
    struct sim_line *order = arena_array(p->mem, struct sim_line, h->n + 1);
    size_t n = 0;
    for (size_t i = 1; i <= h->n; i++) {
        order[n] = h->lines[i];
        order[n++].line = (uint32_t)i;
    }
    qsort(order, n, sizeof *order, by_clocks);
    page_put(p, "<ol class=\"hottest\" aria-label=\"hottest lines\">");
    for (size_t i = 0; i < n && i < HOT_SHOWN && sim_line_clocks(&order[i]) > 0; i++) {
        page_put(p, "<li>");
        html_element(&p->body, "b", html_percent(p->mem, sim_line_clocks(&order[i]) / h->clocks));
        page_putf(p, "<a href=\"#L%u\">line %u</a>", order[i].line, order[i].line);
        html_element(&p->body, "code", str_trim(texts[order[i].line]));
        page_put(p, "</li>");
    }
    page_put(p, "</ol>");
}

static void put_intro(struct page *p, const struct report_run *r, const struct heat *h) {
    if (!h->known) {
        page_put(p,
                 "<p class=\"absent\">Without counters: the run holds none by line of the source. "
                 "They are kept for a winner that the simulator has run.</p>");
        return;
    }
    page_putf(
        p,
        "<p>The column on the left is the share of an SM's time that a line takes up at the "
        "least, by the simulator's counters at the task's own shape%s: instructions issued, "
        "wavefronts of shared memory, sectors of global memory, tensor operations. Beside it: "
        "sectors a global request, or wavefronts a shared one. Point at a line for "
        "its counts.%s</p>",
        h->sampled ? ", on a sample of its blocks" : "",
        r->estimated ? "" : " They are the simulator's, not the GPU's own (ncu).");
}

/* From 1. */
static str *lines_of(str source, struct arena *a, size_t *n) {
    str rest = source, line, *texts;
    *n = 0;
    while (str_line(&rest, &line))
        ++*n;
    texts = arena_array(a, str, *n + 1);
    for (size_t i = 1; str_line(&source, &line); i++)
        texts[i] = line;
    return texts;
}

static void put_lines(struct page *p, const struct heat *h, const str *texts) {
    bool in_comment = false;
    page_putf(
        p,
        "<div class=\"scroll source%s\" tabindex=\"0\" role=\"region\" aria-label=\"source of "
        "the winner\"><table><thead class=\"unseen\"><tr>",
        h->known ? "" : " cold");
    if (h->known)
        page_put(p, "<th scope=\"col\">share</th><th scope=\"col\">a request</th>");
    page_put(p, "<th scope=\"col\">line</th><th scope=\"col\">source</th></tr></thead><tbody>\n");
    for (size_t i = 1; i <= h->n; i++) {
        page_putf(p, "<tr id=\"L%zu\">", i);
        if (h->known)
            put_heat(p, h, i);
        page_putf(p, "<td class=\"line\">%zu</td><td class=\"code\">", i);
        code_line(&p->body, texts[i], &in_comment);
        page_put(p, "</td></tr>\n");
    }
    page_put(p, "</tbody></table></div>");
}

void run_source(struct page *p, const struct report_run *r) {
    size_t n;
    struct heat h;
    str *texts = lines_of(r->candidates[r->winner].source, p->mem, &n);
    heat_of(r, n, p->mem, &h);
    page_section(p, "source", "The winner's source");
    put_intro(p, r, &h);
    if (h.known)
        put_hottest(p, &h, texts);
    put_lines(p, &h, texts);
    put_others(p, &h);
}
