/* How the winner came about, and what its decisions are worth. */
#include "report/chart.h"
#include "report/diff.h"
#include "report/run_page.h"
#include "report/story.h"

#include <math.h>

#define CONTEXT   3    /* lines around a change */
#define DIFF_ROWS 4000 /* of a diff that are shown */

typedef unsigned long long ull;

/* ---- diffs ---- */

static void put_changes(struct page *p, const struct report_run *r,
                        const struct report_candidate *x, const struct report_candidate *y) {
    struct strategy_change all[STRATEGY_MAX_CHANGES];
    size_t n = 0;
    if (x->has_decisions && y->has_decisions)
        n = strategy_changes(r->catalogue, &x->decisions, &y->decisions, all);
    page_put(p, "<ul class=\"changes\">");
    for (size_t i = 0; i < n; i++) {
        page_put(p, "<li>");
        html_element(&p->body, "b", strategy_change_name(r->catalogue, &all[i], p->mem));
        page_put(p, " <span class=\"was\">");
        html_text(&p->body, story_value(r->catalogue, all[i].decision, all[i].from, p->mem));
        page_put(p, "</span> → <span class=\"is\">");
        html_text(&p->body, story_value(r->catalogue, all[i].decision, all[i].to, p->mem));
        page_put(p, "</span></li>");
    }
    if (!n)
        page_put(p, "<li class=\"none\">the same decisions</li>");
    page_put(p, "</ul>");
}

/* Lines that are shown: changes, and some around each. */
static bool *shown_lines(const struct diff *d, struct arena *a) {
    bool *shown = arena_array(a, bool, d->n + 1);
    for (size_t i = 0; i < d->n; i++) {
        if (d->lines[i].kind == DIFF_SAME)
            continue;
        size_t from = i > CONTEXT ? i - CONTEXT : 0;
        for (size_t k = from; k <= i + CONTEXT && k < d->n; k++)
            shown[k] = true;
    }
    return shown;
}

static void put_diff(struct page *p, const struct report_candidate *x,
                     const struct report_candidate *y) {
    static const char *const tags[] = {"span class=\"same\"", "del", "ins"};
    static const char signs[] = {' ', '-', '+'};
    struct diff d;
    size_t rows = 0;
    diff_of(x->source, y->source, p->mem, &d);
    bool *shown = shown_lines(&d, p->mem), gap = false;
    page_putf(p,
              "<details class=\"diff\"><summary>Source of %llu against that of %llu: <span "
              "class=\"plus\">+%zu</span> <span class=\"minus\">−%zu</span> lines</summary><pre "
              "tabindex=\"0\" role=\"region\" aria-label=\"source diff\">",
              (ull)y->ordinal, (ull)x->ordinal, d.new_lines, d.old_lines);
    for (size_t i = 0; i < d.n && rows < DIFF_ROWS; i++) {
        if (!shown[i]) {
            gap = true;
            continue;
        }
        if (gap && rows)
            page_put(p, "<span class=\"gap\">⋯\n</span>");
        gap = false;
        page_putf(p, "<%s>%c ", tags[d.lines[i].kind], signs[d.lines[i].kind]);
        html_text(&p->body, d.lines[i].text);
        page_putf(p, "\n</%s>", d.lines[i].kind == DIFF_SAME ? "span" : tags[d.lines[i].kind]);
        rows++;
    }
    if (rows == DIFF_ROWS)
        page_put(p, "<span class=\"gap\">⋯ the rest is left out\n</span>");
    page_put(p, "</pre></details>");
}

/* ---- lineage ---- */

static str step_words(const struct report_candidate *c) {
    static const struct {
        const char *step, *words;
    } steps[] = {{"plan", "planned"},
                 {"crossover", "a child of two kernels"},
                 {"credit", "chosen by credit"},
                 {"random", "drawn at random"},
                 {"first", "the first"},
                 {"improve", "an improvement"},
                 {"repair", "a repair"}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        if (str_is(c->step, steps[i].step))
            return str_view(steps[i].words);
    return c->step.n ? c->step : S("tried");
}

static void put_from(struct page *p, const struct report_run *r, const struct story_step *s) {
    static const char *const links[] = {[LINK_PARENT] = "made from kernel",
                                        [LINK_REPAIR] = "repairs kernel",
                                        [LINK_NEAREST] = "nearest earlier kernel:",
                                        [LINK_PLAIN] = "for comparison the plain kernel,"};
    const struct report_candidate *c = &r->candidates[s->at];
    page_putf(p, "<p class=\"from\">%s <a href=\"#k%llu\">%llu</a>", links[s->link],
              (ull)r->candidates[s->from].ordinal, (ull)r->candidates[s->from].ordinal);
    for (size_t i = 0; s->link == LINK_PARENT && i < c->nparents; i++)
        if (c->parents[i] != s->from)
            page_putf(p, " and, slower, <a href=\"#k%llu\">%llu</a>",
                      (ull)r->candidates[c->parents[i]].ordinal,
                      (ull)r->candidates[c->parents[i]].ordinal);
    page_put(p, "</p>");
}

static void put_gain(struct page *p, const struct report_candidate *before,
                     const struct report_candidate *after) {
    if (!isfinite(before->time_s)) {
        html_elementf(&p->body, "span class=\"gain\"", "%s → accepted",
                      verdict_name(before->verdict));
        return;
    }
    double times = before->time_s / after->time_s;
    if (fabs(times - 1) < 0.005)
        page_put(p, "<span class=\"gain\">as fast, within 0.5%</span>");
    else
        html_elementf(&p->body, times > 1 ? "span class=\"gain good\"" : "span class=\"gain bad\"",
                      "%.2f× as fast", times);
}

static void put_step(struct page *p, const struct report_run *r, const struct story_step *s,
                     bool last) {
    const struct report_candidate *c = &r->candidates[s->at];
    page_putf(p, "<li%s><div class=\"step\"><span class=\"number\">%llu</span>",
              last ? " class=\"last\"" : "", (ull)c->ordinal);
    html_element(&p->body, "span class=\"how\"", step_words(c));
    html_element(&p->body, "span class=\"time\"",
                 isfinite(c->time_s) ? html_time(p->mem, c->time_s)
                                     : str_view(verdict_name(c->verdict)));
    if (s->link != LINK_NONE && isfinite(c->time_s))
        put_gain(p, &r->candidates[s->from], c);
    page_put(p, "</div>");
    if (s->link != LINK_NONE) {
        put_from(p, r, s);
        put_changes(p, r, &r->candidates[s->from], c);
    }
    if (c->reason.n && !str_starts(c->reason, S("child of [")))
        html_element(&p->body, "p class=\"reason\"", c->reason);
    if (s->link != LINK_NONE)
        put_diff(p, &r->candidates[s->from], c);
    page_put(p, "</li>\n");
}

void run_lineage(struct page *p, const struct report_run *r, size_t plain) {
    struct story_step steps[STORY_MOST];
    size_t n = story_lineage(r, plain, steps);
    page_section(p, "lineage", "How the winner came about");
    page_put(p, "<ol class=\"lineage\">");
    for (size_t i = 0; i < n; i++)
        put_step(p, r, &steps[i], i + 1 == n);
    page_put(p, "</ol>");
}

/* ---- worth ---- */

/* Median and range on a logarithmic scale, with a line where nothing is gained. */
static void put_interval(struct page *p, const struct axis *x, const struct story_worth *w) {
    double low = axis_at(x, w->least), mid = axis_at(x, w->times), high = axis_at(x, w->most);
    page_putf(
        p,
        "<svg class=\"interval\" viewBox=\"0 0 %.0f 24\" role=\"img\" aria-label=\"%.2f times, "
        "from %.2f to %.2f\"><path class=\"one\" d=\"M%.1f 2V22\"/><path class=\"%s\" "
        "d=\"M%.1f 12H%.1f\"/><circle class=\"%s\" cx=\"%.1f\" cy=\"12\" r=\"5\"/></svg>",
        x->end + 10, w->times, w->least, w->most, axis_at(x, 1),
        w->times >= 1 ? "range good" : "range bad", low, high, w->times >= 1 ? "good" : "bad", mid);
}

static void put_worth_row(struct page *p, const struct report_run *r, const struct axis *x,
                          const struct story_worth *w) {
    const struct decision *d = &r->catalogue->decisions[w->decision];
    page_put(p, "<tr>");
    html_element(&p->body, "th scope=\"row\"", d->name);
    html_element(&p->body, "td",
                 story_value(r->catalogue, w->decision,
                             r->candidates[r->winner].decisions.value[w->decision], p->mem));
    page_put(p, "<td>");
    html_text(&p->body, story_value(r->catalogue, w->decision, w->other, p->mem));
    if (w->other == d->fallback)
        page_put(p, " <span class=\"chip\">default</span>");
    if (w->times < 1)
        page_put(p, " <span class=\"chip\">in other kernels than the winner</span>");
    page_putf(p, "</td><td class=\"number\" data-value=\"%.6g\">%.2f×</td><td class=\"wide\">",
              w->times, w->times);
    put_interval(p, x, w);
    page_putf(p, "</td><td class=\"number\">%zu</td></tr>\n", w->pairs);
}

static json *worth_json(const struct report_run *r, const struct story_worth *w, struct arena *a) {
    json *j = json_object();
    json_set_str(j, "decision", r->catalogue->decisions[w->decision].name);
    json_set_str(j, "value",
                 story_value(r->catalogue, w->decision,
                             r->candidates[r->winner].decisions.value[w->decision], a));
    json_set_str(j, "other", story_value(r->catalogue, w->decision, w->other, a));
    json_set_f64(j, "times", w->times);
    json_set_f64(j, "least", w->least);
    json_set_f64(j, "most", w->most);
    json_set_i64(j, "pairs", (int64_t)w->pairs);
    return j;
}

/* Decisions of the winner that no pair tells anything about. */
static void put_untold(struct page *p, const struct report_run *r, const struct story_worth *w,
                       size_t n) {
    size_t untold = 0;
    for (size_t d = 0; d < r->catalogue->n; d++) {
        bool told = r->candidates[r->winner].decisions.value[d] == STRATEGY_UNSET;
        for (size_t i = 0; i < n; i++)
            told |= w[i].decision == d;
        if (told)
            continue;
        page_put(p, untold++ ? ", "
                             : "<p class=\"remark\">No two kernels that were tried differ in "
                               "one of these alone: ");
        html_text(&p->body, r->catalogue->decisions[d].name);
    }
    if (untold)
        page_put(p, ".</p>");
}

void run_worth(struct page *p, const struct report_run *r) {
    size_t n;
    struct story_worth *w = story_worth(r, p->mem, &n);
    struct axis x = {.from = 1, .to = 1, .logarithmic = true, .start = 10, .end = 250};
    json *list = json_array();
    page_section(p, "worth", "What each decision is worth");
    if (!n) {
        page_put(p, "<p class=\"absent\">No two accepted kernels differ in one decision alone, so "
                    "nothing can be said.</p>");
        json_free(list);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        axis_hold(&x, w[i].least);
        axis_hold(&x, w[i].most);
        json_push(list, worth_json(r, &w[i], p->mem));
    }
    axis_pad(&x, 0.02);
    json_set(p->data, "worth", list);
    page_put(p,
             "<p>The winner's value of a decision against another value of it, by pairs of tried "
             "kernels that are alike in all other decisions: how many times as fast it is, at the "
             "median, and from the least to the most.</p><div class=\"scroll\" tabindex=\"0\" "
             "role=\"region\" aria-label=\"decisions\"><table class=\"sortable\"><thead><tr><th "
             "scope=\"col\">decision</th><th scope=\"col\">winner</th><th "
             "scope=\"col\">against</th><th scope=\"col\" class=\"number\">times as fast</th><td "
             "class=\"wide\">least to most; the line is 1×</td><th scope=\"col\" "
             "class=\"number\">pairs</th></tr></thead><tbody>");
    for (size_t i = 0; i < n; i++)
        put_worth_row(p, r, &x, &w[i]);
    page_put(p, "</tbody></table></div>");
    put_untold(p, r, w, n);
}
