/* The report of a suite: every task in one table, the worst first, and how the shares of the limit
 * are spread, over all of them and by family. */
#include "report/chart.h"
#include "report/page.h"
#include "report/report.h"

#include "archive/calls.h"
#include "base/file.h"

#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUITE_MAX (64u << 20)
#define BINS      10

struct suite_row {
    str file, task, family, strategy, error;
    str unconfirmed;    /* why its kernel was not verified a second time; empty: it was */
    const char *folder; /* of its run; NULL: there is none */
    bool found, estimated;
    int64_t tried;
    double time_s, limit_s, share, plain_s, baseline_s; /* NAN: not known */
};

struct suite {
    const char *folder;
    struct arena *mem;
    json *json; /* texts of the rows are in it */
    struct suite_row *rows;
    size_t n, found, unconfirmed;
    bool estimated, measured;
    str devices; /* of the runs, in words */
};

/* ---- reading ---- */

/* suite.json names task files, and each run lies below the suite's folder as its file lies below
 * the folder of tasks: the longest end of the path that is a run here. */
static const char *find_run(const struct suite *s, str file) {
    str end = str_ends(file, S(".task")) ? str_cut(file, 0, file.n - 5) : file;
    while (end.n) {
        const char *run = arena_printf(s->mem, "%s/%.*s", s->folder, STR_ARG(end)).p;
        if (file_exists(arena_printf(s->mem, "%s/run.db", run).p))
            return run;
        size_t slash = str_find(end, S("/"));
        if (slash == end.n)
            break;
        end = str_from(end, slash + 1);
    }
    return NULL;
}

static double number_of(const json *row, const char *key) {
    double v;
    return json_get_f64(row, key, &v) && v > 0 ? v : NAN;
}

static void read_row(struct suite *s, const json *j) {
    struct suite_row r = {0};
    json_get_str(j, "file", &r.file);
    json_get_str(j, "task", &r.task);
    json_get_str(j, "workload", &r.family);
    json_get_str(j, "strategy", &r.strategy);
    json_get_str(j, "error", &r.error);
    json_get_str(j, "unconfirmed", &r.unconfirmed);
    json_get_bool(j, "found", &r.found);
    json_get_bool(j, "estimated", &r.estimated);
    json_get_i64(j, "evaluated", &r.tried);
    r.time_s = number_of(j, "time_s");
    r.limit_s = number_of(j, "limit_s");
    r.plain_s = number_of(j, "naive_s");
    r.baseline_s = number_of(j, "baseline_s");
    r.found &= isfinite(r.time_s);
    r.share = r.found ? r.limit_s / r.time_s : NAN;
    r.folder = find_run(s, r.file);
    s->found += r.found;
    s->unconfirmed += r.found && r.unconfirmed.n;
    s->estimated |= r.found && r.estimated;
    s->measured |= r.found && !r.estimated;
    s->rows[s->n++] = r;
}

static bool suite_read(const char *folder, struct arena *mem, struct suite *s, struct err *err) {
    const char *path = arena_printf(mem, "%s/suite.json", folder).p;
    str text;
    *s = (struct suite){.folder = folder, .mem = mem};
    if (!file_read(path, SUITE_MAX, mem, &text, err))
        return false;
    s->json = json_parse(text, err);
    if (!s->json)
        return err_wrap(err, "%s", path);
    if (!json_is_array(s->json)) {
        json_free(s->json);
        return err_set(err, ERR_INPUT, "%s: it is not the list of a suite's tasks", path);
    }
    s->rows = arena_array(mem, struct suite_row, json_len(s->json) + 1);
    for (size_t i = 0; i < json_len(s->json); i++)
        read_row(s, json_at(s->json, i));
    return true;
}

bool report_is_suite(const char *folder) {
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/suite.json", folder) < (int)sizeof path &&
           file_exists(path);
}

bool report_suite_runs(const char *folder, struct arena *a, const char ***runs, size_t *n,
                       struct err *err) {
    struct suite s;
    *n = 0;
    if (!suite_read(folder, a, &s, err))
        return false;
    *runs = arena_array(a, const char *, s.n + 1);
    for (size_t i = 0; i < s.n; i++)
        if (s.rows[i].folder)
            (*runs)[(*n)++] = s.rows[i].folder;
    json_free(s.json);
    return true;
}

/* The devices that the runs' fingerprints name, each once. */
static void find_devices(struct suite *s) {
    struct buf b;
    buf_init(&b, 1u << 16);
    for (size_t i = 0; i < s->n; i++) {
        struct archive *a;
        struct err ignored;
        str text = {0}, device;
        if (!s->rows[i].folder || !archive_open_read(s->rows[i].folder, &a, &ignored))
            continue;
        json *j = archive_get_note(a, "fingerprint", s->mem, &text, &ignored) && text.n
                      ? json_parse(text, &ignored)
                      : NULL;
        if (json_get_str(j, "device", &device) && str_find(buf_str(&b), device) == b.n)
            buf_printf(&b, "%s%.*s", b.n ? ", " : "", STR_ARG(device));
        json_free(j);
        archive_close(a);
    }
    s->devices = b.n ? arena_str(s->mem, buf_str(&b)) : S("not known");
    buf_release(&b);
}

/* Those without a kernel first, then by the share of the limit. */
static int worst_first(const void *x, const void *y) {
    const struct suite_row *a = x, *b = y;
    if (a->found != b->found)
        return a->found ? 1 : -1;
    if (a->found && a->share != b->share && isfinite(a->share) && isfinite(b->share))
        return a->share < b->share ? -1 : 1;
    return str_cmp(a->task, b->task);
}

/* ---- numbers ---- */

static int ascending(const void *x, const void *y) {
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Shares of the rows of a family (all where it is empty), ascending. */
static size_t shares_of(const struct suite *s, str family, bool all, double *out) {
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if ((all || str_eq(s->rows[i].family, family)) && isfinite(s->rows[i].share))
            out[n++] = s->rows[i].share;
    if (n)
        qsort(out, n, sizeof *out, ascending);
    return n;
}

static double median(const double *v, size_t n) {
    return n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : NAN;
}

/* Geometric mean of how many times as fast as something else; *n: over how many. */
static double mean_gain(const struct suite *s, bool baseline, size_t *n) {
    double logs = 0;
    *n = 0;
    for (size_t i = 0; i < s->n; i++) {
        double other = baseline ? s->rows[i].baseline_s : s->rows[i].plain_s;
        if (!s->rows[i].found || !isfinite(other))
            continue;
        logs += log(other / s->rows[i].time_s);
        ++*n;
    }
    return *n ? exp(logs / (double)*n) : NAN;
}

/* ---- parts of the page ---- */

static void put_gain_tile(struct page *p, const struct suite *s, bool baseline, const char *label) {
    size_t n;
    double gain = mean_gain(s, baseline, &n);
    if (n)
        page_tile(p, label, arena_printf(p->mem, "%.2f×", gain),
                  arena_printf(p->mem, "geometric mean of %s", html_count(p->mem, n, "task").p));
}

static void put_result(struct page *p, const struct suite *s) {
    double *shares = mem_alloc((s->n + 1) * sizeof *shares);
    size_t n = shares_of(s, S(""), true, shares);
    page_section(p, "result", "Result");
    if (!s->n)
        page_put(p, "<p class=\"banner\">The suite has no task.</p>");
    page_put(p, "<div class=\"tiles\">");
    page_tile(p, "tasks with a kernel", arena_printf(p->mem, "%zu of %zu", s->found, s->n),
              s->unconfirmed     ? arena_printf(p->mem,
                                                "%zu not verified a second time, as the table "
                                                    "says",
                                                s->unconfirmed)
              : s->found == s->n ? S("every one verified")
                                 : S("the others stand first in the table"));
    if (n) {
        page_tile(p, "of the limit, at the median", html_percent(p->mem, median(shares, n)),
                  arena_printf(p->mem, "from %.*s to %.*s",
                               STR_ARG(html_percent(p->mem, shares[0])),
                               STR_ARG(html_percent(p->mem, shares[n - 1]))));
    }
    put_gain_tile(p, s, true, "against PyTorch");
    put_gain_tile(p, s, false, "against the plain kernels");
    page_put(p, "</div><dl class=\"facts\">");
    page_fact(
        p, "Times",
        s->estimated && s->measured
            ? S("Some are measured and some are the simulator's estimates; the table says which.")
        : s->estimated ? S("The simulator's estimates, from exact counts and a model; nothing was "
                           "timed.")
                       : S("Measured: medians of timed runs on a GPU."));
    page_fact(p, "Device", s->devices);
    page_fact(p, "Limit",
              S("The time that no kernel can undercut: the bytes that the task has to move, or "
                "its arithmetic, at the GPU's ceilings. It counts no launch, so that small "
                "tasks reach a small share of it."));
    page_fact(p, "Folder", str_view(s->folder));
    page_put(p, "</dl>");
    mem_free(shares);
}

static str bin_label(struct arena *a, double v) {
    return arena_printf(a, "%.0f%%", 100 * v);
}

static str whole_number(struct arena *a, double v) {
    return v == floor(v) ? arena_printf(a, "%.0f", v) : S("");
}

/* How many tasks reach 0 to 10% of the limit, 10 to 20%, …; what is above 100% stands with the
 * last.
 */
static void put_histogram(struct page *p, const struct suite *s) {
    size_t bins[BINS] = {0}, most = 1;
    struct buf words;
    buf_init(&words, 4096);
    for (size_t i = 0; i < s->n; i++) {
        double share = s->rows[i].share;
        if (isfinite(share))
            bins[share >= 1 ? BINS - 1 : (size_t)(share * BINS)]++;
    }
    for (size_t i = 0; i < BINS; i++) {
        most = bins[i] > most ? bins[i] : most;
        buf_printf(&words, "%s%zu tasks at %zu to %zu%%", i ? ", " : "", bins[i], 100 * i / BINS,
                   100 * (i + 1) / BINS);
    }
    struct chart c = {.out = &p->body,
                      .mem = p->mem,
                      .id = "distribution",
                      .width = 640,
                      .height = 300,
                      .x = {0, 1, false, 48, 620, "share of the limit", bin_label},
                      .y = {0, (double)most * 1.1, false, 246, 40, "tasks", whole_number}};
    page_put(p, "<figure><figcaption><h3>Shares of the limit</h3></figcaption>");
    chart_begin(&c, S("Shares of the limit"), buf_str(&words));
    for (size_t i = 0; i < BINS; i++) {
        double left = axis_at(&c.x, (double)i / BINS) + 2,
               right = axis_at(&c.x, (i + 1.0) / BINS) - 2;
        double top = axis_at(&c.y, (double)bins[i]);
        page_putf(p, "<rect class=\"bin\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>",
                  left, top, right - left, c.y.start - top);
        if (bins[i])
            chart_label(&c, "note", "middle", (i + 0.5) / BINS, (double)bins[i], 0, -6,
                        arena_printf(p->mem, "%zu", bins[i]));
    }
    chart_end(&c);
    page_put(p, "</figure>");
    buf_release(&words);
}

static void put_family(struct page *p, const struct suite *s, str family, double *shares) {
    size_t n = shares_of(s, family, false, shares), all = 0;
    for (size_t i = 0; i < s->n; i++)
        all += str_eq(s->rows[i].family, family);
    page_put(p, "<tr>");
    html_element(&p->body, "th scope=\"row\"", family.n ? family : S("not read"));
    page_putf(p, "<td class=\"number\">%zu</td><td class=\"number\" data-value=\"%.4f\">", all,
              n ? median(shares, n) : -1);
    html_text(&p->body, n ? html_percent(p->mem, median(shares, n)) : S("–"));
    page_put(p, "</td><td class=\"wide\">");
    page_putf(p,
              "<svg class=\"strip\" viewBox=\"0 0 320 24\" role=\"img\" aria-label=\"median %.0f "
              "percent\"><path class=\"track\" d=\"M8 12H308\"/>",
              100 * (n ? median(shares, n) : 0));
    if (n) {
        page_putf(p, "<path class=\"median\" d=\"M8 12H%.1f\"/><path class=\"dots\" d=\"",
                  8 + 300 * fmin(median(shares, n), 1.03));
        for (size_t i = 0; i < n; i++)
            page_putf(p, "M%.1f 12h.01", 8 + 300 * fmin(shares[i], 1.03));
        page_put(p, "\"/>");
    }
    page_put(p, "</svg></td></tr>\n");
}

static void put_families(struct page *p, const struct suite *s) {
    double *shares = mem_alloc((s->n + 1) * sizeof *shares);
    page_put(p,
             "<figure><figcaption><h3>By family</h3></figcaption><div class=\"scroll\" "
             "tabindex=\"0\" role=\"region\" aria-label=\"families\"><table class=\"sortable "
             "families\"><thead><tr><th scope=\"col\">family</th><th scope=\"col\" "
             "class=\"number\">tasks</th><th scope=\"col\" class=\"number\">median</th><td "
             "class=\"wide "
             "scale\"><span>0</span><span>50%</span><span>100%</span></td></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->n; i++) {
        bool first = true;
        for (size_t k = 0; k < i && first; k++)
            first = !str_eq(s->rows[k].family, s->rows[i].family);
        if (first)
            put_family(p, s, s->rows[i].family, shares);
    }
    page_put(p, "</tbody></table></div><p class=\"remark\">A dot is a task, the bar ends at the "
                "median.</p></figure>");
    mem_free(shares);
}

/* ---- the table ---- */

/* Another path from the folder of the page; empty: there is no report. */
static str link_to(const struct suite_row *r, const char *page, struct arena *a) {
    char from[PATH_MAX], to[PATH_MAX];
    struct buf b;
    size_t same = 0;
    if (!r->folder || !file_exists(arena_printf(a, "%s/" REPORT_FILE, r->folder).p) ||
        !realpath(dirname(arena_cstr(a, str_view(page))), from) || !realpath(r->folder, to))
        return (str){0};
    for (size_t i = 0; from[i] == to[i] || (!from[i] && to[i] == '/'); i++) {
        same = !from[i] || from[i] == '/' ? i : same;
        if (!from[i] || !to[i]) {
            same = i;
            break;
        }
    }
    buf_init(&b, 4 * PATH_MAX);
    for (const char *c = from + same; *c; c++)
        if (*c == '/')
            buf_puts(&b, S("../"));
    for (const char *c = to + same + (to[same] == '/'); *c; c++) {
        if (strchr("/-_.~", *c) || (*c >= '0' && *c <= '9') || (*c >= 'a' && *c <= 'z') ||
            (*c >= 'A' && *c <= 'Z'))
            buf_putc(&b, *c);
        else
            buf_printf(&b, "%%%02X", (unsigned char)*c);
    }
    buf_puts(&b, S("/" REPORT_FILE));
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static void put_times_cell(struct page *p, double other, double time_s) {
    if (isfinite(other) && isfinite(time_s))
        page_putf(p, "<td class=\"number\" data-value=\"%.6g\">%.2f×</td>", other / time_s,
                  other / time_s);
    else
        page_put(p, "<td class=\"number\"></td>");
}

static void put_task_row(struct page *p, const struct suite_row *r, const char *page) {
    str link = link_to(r, page, p->mem);
    page_put(p, "<tr><th scope=\"row\">");
    if (link.n) {
        page_put(p, "<a");
        html_attribute(&p->body, "href", link);
        page_put(p, ">");
    }
    html_text(&p->body, r->task);
    page_put(p, link.n ? "</a></th>" : "</th>");
    html_element(&p->body, "td", r->family);
    if (r->found) {
        page_putf(p, "<td class=\"number\" data-value=\"%.6g\">", r->time_s);
        html_text(&p->body, html_time(p->mem, r->time_s));
        page_putf(p, "</td><td class=\"share\" data-value=\"%.4f\" style=\"--share:%.4f\"><span>",
                  r->share, fmin(r->share, 1));
        html_text(&p->body, html_percent(p->mem, r->share));
        page_put(p, "</span></td>");
    } else {
        page_put(
            p,
            "<td class=\"number\"></td><td class=\"share bad\" data-value=\"-1\">no kernel</td>");
    }
    put_times_cell(p, r->baseline_s, r->time_s);
    put_times_cell(p, r->plain_s, r->time_s);
    page_putf(p, "<td class=\"number\">%lld</td>", (long long)r->tried);
    str words = r->found ? r->strategy : r->error;
    if (r->found && r->unconfirmed.n)
        words = arena_printf(p->mem, "Not verified a second time (%.*s). %.*s",
                             STR_ARG(r->unconfirmed), STR_ARG(words));
    html_element(&p->body, "td class=\"why\"", words);
    page_put(p, "</tr>\n");
}

static void put_tasks(struct page *p, const struct suite *s, const char *page) {
    page_section(p, "tasks", "Tasks, the worst first");
    page_put(
        p, "<p class=\"tools\"><label>Show rows with <input type=\"search\" "
           "data-filters=\"task-table\"></label></p><div class=\"scroll\" tabindex=\"0\" "
           "role=\"region\" aria-label=\"tasks\"><table id=\"task-table\" "
           "class=\"sortable\"><thead><tr><th scope=\"col\">task</th><th "
           "scope=\"col\">family</th><th scope=\"col\" class=\"number\">time</th><th scope=\"col\" "
           "class=\"share\">of the limit</th><th scope=\"col\" class=\"number\">PyTorch</th><th "
           "scope=\"col\" class=\"number\">plain</th><th scope=\"col\" "
           "class=\"number\">tried</th><th scope=\"col\">strategy, or why there is no "
           "kernel</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < s->n; i++)
        put_task_row(p, &s->rows[i], page);
    page_put(p, "</tbody></table></div>");
}

static void put_suite(struct page *p, const struct suite *s, const char *page) {
    p->kind = S("suite");
    p->heading = arena_printf(p->mem, "Suite of %s", html_count(p->mem, s->n, "task").p);
    p->subtitle = arena_printf(p->mem, "%zu with a verified kernel, %s", s->found - s->unconfirmed,
                               s->estimated ? "times estimated" : "times measured");
    p->title = arena_printf(p->mem, "%.*s – cutepilot report", STR_ARG(p->heading));
    json_set_i64(p->data, "schema", 1);
    json_set_str(p->data, "kind", S("suite"));
    json_set_str(p->data, "cutepilot", S(CUTEPILOT_VERSION));
    json_set(p->data, "tasks", json_copy(s->json));
    put_result(p, s);
    if (s->found) {
        page_section(p, "spread", "How near the limit");
        page_put(p, "<div class=\"figures\">");
        put_families(p, s);
        put_histogram(p, s);
        page_put(p, "</div>");
    }
    put_tasks(p, s, page);
}

bool report_suite(const char *folder, const char *assets, const char *page, struct buf *out,
                  struct err *err) {
    struct arena *mem = arena_new(REPORT_MEMORY);
    struct suite s;
    struct page p;
    bool ok = suite_read(folder, mem, &s, err);
    if (ok) {
        find_devices(&s);
        if (s.n)
            qsort(s.rows, s.n, sizeof *s.rows, worst_first);
        page_init(&p, mem);
        put_suite(&p, &s, page);
        ok = page_write(&p, assets, out, err);
        page_release(&p);
        json_free(s.json);
    }
    arena_free(mem);
    return ok;
}
