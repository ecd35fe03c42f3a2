/* The report of a run: what was found and how sure that is, first; then how it came about. */
#include "report/run_page.h"

#include "report/mathml.h"
#include "report/report.h"
#include "report/story.h"
#include "search/search.h"

#include <math.h>
#include <stdio.h>

#define REPLY_BYTES 20000 /* of a model's reply that are shown; `log` has all of it */
#define WHY_BYTES   400   /* of a rejection's reason in the table */
#define LONG_BYTES  56    /* of a statement, which as mathematics is about half as wide */
#define IDEA_BYTES  160   /* of why an accepted one was tried */

typedef unsigned long long ull;

/* ---- words ---- */

str run_gpu(const struct report_run *r) {
    return r->gpu ? str_view(r->gpu->title) : r->device.n ? r->device : S("a device not named");
}

str run_times(const struct report_run *r, struct arena *a) {
    str gpu = run_gpu(r);
    if (!r->estimated)
        return arena_printf(a, "measured on %.*s", STR_ARG(gpu));
    return arena_printf(a, "estimated for %.*s", STR_ARG(gpu));
}

static str state_words(const struct report_run *r, struct arena *a) {
    switch (r->state) {
    case RUN_EMPTY:
        return S("Nothing has been evaluated in this run.");
    case RUN_OPEN:
        return arena_printf(a,
                            "This run has not ended: it is still going on, or it was killed. What "
                            "follows is what its archive holds after %s.",
                            html_count(a, r->n, "kernel").p);
    case RUN_STOPPED:
        return arena_printf(
            a, "This run %s after %s. The same command again goes on where it stopped.",
            str_is(r->stopped, "failed") ? "ended because its environment failed,"
                                         : "was interrupted",
            html_count(a, r->n, "kernel").p);
    case RUN_FAILED:
        return arena_printf(
            a, "No kernel was accepted: all %zu were rejected, for the reasons below.", r->n);
    default:
        return (str){0};
    }
}

/* ---- the headline ---- */

static str interval_words(const struct report_run *r, struct arena *a) {
    const struct report_candidate *w = &r->candidates[r->winner];
    if (r->estimated)
        return S("an estimate, not a measurement");
    if (!isfinite(w->low_s))
        return S("the median of its samples");
    return arena_printf(a, "95%% interval %.*s to %.*s", STR_ARG(html_time(a, w->low_s)),
                        STR_ARG(html_time(a, w->high_s)));
}

static void put_tiles(struct page *p, const struct report_run *r, size_t plain) {
    const struct report_candidate *w = &r->candidates[r->winner];
    struct arena *a = p->mem;
    page_put(p, "<div class=\"tiles\">");
    if (r->limit_s > 0)
        page_tile(p, "of the limit", html_percent(a, r->limit_s / w->time_s),
                  arena_printf(a, "no kernel can take less than %.*s",
                               STR_ARG(html_time(a, r->limit_s))));
    if (r->baseline_s > 0)
        page_tile(p, "against PyTorch", arena_printf(a, "%.2f×", r->baseline_s / r->against_s),
                  arena_printf(a, "the better of eager and compiled takes %.*s",
                               STR_ARG(html_time(a, r->baseline_s))));
    if (plain != RUN_NONE && plain != r->winner)
        page_tile(p, "against the plain kernel",
                  arena_printf(a, "%.2f×", r->candidates[plain].time_s / w->time_s),
                  arena_printf(a, "kernel %llu takes %.*s", (ull)r->candidates[plain].ordinal,
                               STR_ARG(html_time(a, r->candidates[plain].time_s))));
    page_tile(
        p, "kernels tried", arena_printf(a, "%zu", r->n),
        r->nunjudged
            ? arena_printf(a, "%zu accepted, %zu rejected, %zu not judged", r->naccepted,
                           r->n - r->naccepted - r->nunjudged, r->nunjudged)
            : arena_printf(a, "%zu accepted, %zu rejected", r->naccepted, r->n - r->naccepted));
    page_put(p, "</div>");
}

static str estimate_words(const struct report_run *r, struct arena *a) {
    bool calibrated = r->record && r->record->has_model_calibrated && r->record->model_calibrated;
    return arena_printf(
        a,
        "The simulator's estimate for one launch sequence on %.*s, from exact counts of "
        "instructions and memory traffic and a model that was %s. Nothing was timed.",
        STR_ARG(run_gpu(r)),
        calibrated ? "calibrated on that hardware" : "not calibrated on that hardware");
}

static str measured_words(const struct report_run *r, struct arena *a) {
    const struct record *rec = r->record;
    const struct wire_clocks *c = rec ? rec->clocks : NULL;
    struct buf b;
    buf_init(&b, 4096);
    buf_printf(&b, "The median of %zu timed runs on %.*s", rec ? rec->nsamples_s : 0,
               STR_ARG(run_gpu(r)));
    if (!str_eq(run_gpu(r), r->device))
        buf_printf(&b, " (%.*s)", STR_ARG(r->device));
    if (c && c->has_sm_mhz)
        buf_printf(&b, ", SMs at %.0f MHz", c->sm_mhz);
    if (c && c->nslowed)
        buf_printf(&b, "; the driver held clocks back: %.*s", STR_ARG(c->slowed[0]));
    buf_puts(&b, S("."));
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static str confirmed_words(const struct report_run *r, struct arena *a) {
    const struct record *again = r->record ? r->record->confirmed : NULL;
    if (r->record && r->record->unconfirmed_why.n)
        return arena_printf(a, "No: %.*s.", STR_ARG(r->record->unconfirmed_why));
    if (again)
        return arena_printf(a, "Yes, on %s that it had not met: %.*s; %s.",
                            r->verify_seed.n ? "a seed of its own" : "a secret seed",
                            STR_ARG(again->scope), html_count(a, again->nruns, "run").p);
    if (!r->stopped.n)
        return S("Not yet: the search verifies its winner once more when it ends.");
    return S("The record does not say so.");
}

static str checkers_words(const struct report_run *r, struct arena *a) {
    const struct record *rec = r->record;
    if (r->estimated)
        return S(
            "At small shapes the simulator watches every access for races, memory that nothing "
            "wrote, accesses outside of buffers and wrong use of barriers, in several drawn orders "
            "of "
            "events.");
    if (rec && rec->has_watched && rec->watched)
        return arena_printf(a, "The simulator's checkers accepted it too: %.*s.",
                            STR_ARG(rec->simulated_scope));
    return arena_printf(a, "The simulator's checkers did not run it%s%.*s.",
                        rec && rec->unwatched_why.n ? ": " : "",
                        STR_ARG(rec ? rec->unwatched_why : S("")));
}

/* How launches, which the limit does not count, matter at this shape; empty where they do not. */
static str size_words(const struct report_run *r, struct arena *a) {
    double time_s = r->candidates[r->winner].time_s;
    double least_s = r->limit_s + (double)r->record->nlaunches * r->gpu->launch_s;
    switch (gpu_launch_share(r->gpu, r->limit_s, time_s, r->record->nlaunches)) {
    case LAUNCHES_HARDLY_COUNT:
        break;
    case LAUNCHES_EXPLAIN:
        return arena_printf(
            a,
            "At this shape an empty launch takes %.*s, which the limit of %.*s does not count: a "
            "small share of the limit is expected.",
            STR_ARG(html_time(a, r->gpu->launch_s)), STR_ARG(html_time(a, r->limit_s)));
    case LAUNCHES_ARE_LESS:
        return arena_printf(
            a, "The limit and its %s are %.*s together; the other %.*s are the kernel's.",
            r->record->nlaunches == 1 ? "launch" : "launches", STR_ARG(html_time(a, least_s)),
            STR_ARG(html_time(a, time_s - least_s)));
    }
    return S("");
}

static void put_conditions(struct page *p, const struct report_run *r) {
    struct arena *a = p->mem;
    double limit, worst = run_worst(r, &limit);
    str refused = run_refused(r, a);
    page_put(p, "<dl class=\"facts\">");
    page_fact(p, "Time", r->estimated ? estimate_words(r, a) : measured_words(r, a));
    if (r->gpu && r->limit_s > 0)
        page_fact(p, "Limit",
                  arena_printf(a, "%.*s, made of %s.", STR_ARG(html_time(a, r->limit_s)),
                               gpu_limit_source(r->gpu, !r->estimated)));
    if (r->record && r->record->has_time_prepared_s)
        page_fact(p, "Parameters prepared",
                  arena_printf(a,
                               "%.*s %s without the steps that are done once for the same "
                               "parameters. No other figure of this page leaves them out.",
                               STR_ARG(html_time(a, r->record->time_prepared_s)),
                               r->estimated ? "estimated" : "measured"));
    if (r->record && r->record->scope.n)
        page_fact(p, "Verified on", arena_printf(a, "%.*s.", STR_ARG(r->record->scope)));
    page_fact(p, "Confirmed", confirmed_words(r, a));
    page_fact(p, "Checkers", checkers_words(r, a));
    if (isfinite(worst))
        page_fact(p, "Worst error",
                  arena_printf(a,
                               "%.*s times the expected error of an element; class %s allows %.3g.",
                               STR_ARG(html_number(a, worst)),
                               r->task ? accuracy_name(r->task->accuracy) : "of the task", limit));
    if (refused.n)
        page_fact(p, "Not verified",
                  arena_printf(a, "Shapes that the task states and the kernel refuses: %.*s.",
                               STR_ARG(refused)));
    if (r->gpu && r->record && size_words(r, a).n)
        page_fact(p, "Size", size_words(r, a));
    page_put(p, "</dl>");
}

static void put_headline(struct page *p, const struct report_run *r, size_t plain) {
    str state = state_words(r, p->mem);
    page_section(p, "result", "Result");
    if (state.n)
        html_element(&p->body, "p class=\"banner\"", state);
    if (!report_has_winner(r))
        return;
    const struct report_candidate *w = &r->candidates[r->winner];
    page_put(p, "<div class=\"headline\"><div class=\"big\">");
    html_element(&p->body, "span class=\"label\"", run_times(r, p->mem));
    html_element(&p->body, "span class=\"value\"", html_time(p->mem, w->time_s));
    html_element(&p->body, "span class=\"remark\"", interval_words(r, p->mem));
    page_put(p, "</div>");
    put_tiles(p, r, plain);
    page_put(p, "</div>");
    put_conditions(p, r);
}

/* ---- the task ---- */

static void put_statements(struct page *p, const struct task *t) {
    page_put(p,
             "<div class=\"statements\" tabindex=\"0\" role=\"region\" aria-label=\"statements\">");
    for (size_t i = 0; i < t->nstatements; i++) {
        page_put(p, "<div class=\"statement\">");
        mathml_statement(t, &t->statements[i], &p->body);
        if (t->statements[i].nindex) {
            page_put(p, "<span class=\"ranges\">for ");
            mathml_ranges(t, &t->statements[i], &p->body);
            page_put(p, "</span>");
        }
        page_put(p, "</div>");
    }
    page_put(p, "</div>");
}

static void put_tensors(struct page *p, const struct report_run *r) {
    static const char *const roles[] = {[TENSOR_IN] = "input",
                                        [TENSOR_PARAM] = "parameter",
                                        [TENSOR_OUT] = "output",
                                        [TENSOR_INOUT] = "input, overwritten"};
    page_put(
        p,
        "<table class=\"tensors\"><thead><tr><th scope=\"col\">tensor</th><th "
        "scope=\"col\">role</th><th scope=\"col\" class=\"number\">size</th></tr></thead><tbody>");
    for (size_t i = 0; i < r->task->ntensors; i++) {
        if (!tensor_has_memory(&r->task->tensors[i]))
            continue;
        page_put(p, "<tr><th scope=\"row\"");
        html_attribute(&p->body, "aria-label", r->task->tensors[i].name);
        page_put(p, ">");
        mathml_tensor(r->task, i, &p->body);
        page_putf(p, "</th><td>%s</td>", roles[r->task->tensors[i].role]);
        html_element(&p->body, "td class=\"number\"",
                     html_quantity(p->mem, (double)r->inst->tensors[i].bytes, "B"));
        page_put(p, "</tr>");
    }
    page_put(p, "</tbody></table>");
}

static void put_task_facts(struct page *p, const struct report_run *r) {
    struct arena *a = p->mem;
    page_put(p, "<dl class=\"facts\">");
    page_fact(p, "Shape", inst_label(r->inst, a));
    page_fact(p, "Accuracy class", str_view(accuracy_name(r->task->accuracy)));
    page_fact(p, "Work",
              arena_printf(a, "%.*s, %.*s to move at the least: %.3g FLOP a byte",
                           STR_ARG(html_quantity(a, r->cost.flops, "FLOP")),
                           STR_ARG(html_quantity(a, r->cost.compulsory_bytes, "B")),
                           r->cost.intensity));
    if (r->task->torch.n)
        page_fact(p, "PyTorch", r->task->torch);
    page_put(p, "</dl>");
}

/* Whether a statement needs the width of the page. */
static bool has_long(const struct task *t) {
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].len > LONG_BYTES)
            return true;
    return false;
}

static void put_task(struct page *p, const struct report_run *r) {
    page_section(p, "task", "The task");
    if (!r->inst) {
        page_put(
            p,
            "<p class=\"absent\">The folder does not hold the text of its task, as runs of older "
            "versions do not, or the text does not read.</p>");
        if (r->task_text.n)
            html_element(&p->body,
                         "pre tabindex=\"0\" role=\"region\" aria-label=\"text of the task\"",
                         r->task_text);
        return;
    }
    page_put(p, has_long(r->task) ? "<div class=\"task long\"><div>" : "<div class=\"task\"><div>");
    put_statements(p, r->task);
    put_tensors(p, r);
    page_put(p, "</div><div>");
    html_element(&p->body, "pre tabindex=\"0\" role=\"region\" aria-label=\"text of the task\"",
                 r->task_text);
    put_task_facts(p, r);
    page_put(p, "</div></div>");
}

/* ---- candidates ---- */

/* The decisions in which it differs from the winner. */
static void put_difference(struct buf *out, const struct report_run *r,
                           const struct report_candidate *c, struct arena *a) {
    const struct report_candidate *w = report_has_winner(r) ? &r->candidates[r->winner] : NULL;
    struct strategy_change all[STRATEGY_MAX_CHANGES];
    if (!w || !w->has_decisions || !c->has_decisions) {
        buf_puts(out, c->strategy);
        return;
    }
    size_t n = strategy_changes(r->catalogue, &w->decisions, &c->decisions, all);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%.*s=%.*s", i ? " " : "",
                   STR_ARG(strategy_change_name(r->catalogue, &all[i], a)),
                   STR_ARG(story_value(r->catalogue, all[i].decision, all[i].to, a)));
    if (!n)
        buf_puts(out, c == w ? S("the winner") : S("the same decisions"));
}

static void put_candidate(struct page *p, const struct report_run *r,
                          const struct report_candidate *c, str difference) {
    page_putf(p, "<tr id=\"k%llu\"><th scope=\"row\" class=\"number\">%llu</th>", (ull)c->ordinal,
              (ull)c->ordinal);
    html_element(&p->body, "td", c->step);
    if (c->damaged) {
        page_put(p, "<td class=\"bad\">damaged row</td>");
    } else {
        page_putf(p, "<td class=\"%s\">%s</td>", isfinite(c->time_s) ? "good" : "bad",
                  verdict_name(c->verdict));
    }
    if (isfinite(c->time_s)) {
        page_putf(p, "<td class=\"number\" data-value=\"%.6g\">", c->time_s);
        html_text(&p->body, html_time(p->mem, c->time_s));
        page_putf(p, "</td><td class=\"number\" data-value=\"%.6g\">",
                  c->time_s / r->candidates[r->winner].time_s);
        page_putf(p, "%.2f×</td>", c->time_s / r->candidates[r->winner].time_s);
    } else {
        page_put(p, "<td class=\"number\"></td><td class=\"number\"></td>");
    }
    html_element(&p->body, "td class=\"decisions\"", difference);
    html_element(&p->body, "td class=\"why\"",
                 c->why.n ? html_cut(p->mem, c->why, WHY_BYTES)
                          : html_cut(p->mem, c->reason, IDEA_BYTES));
    page_put(p, "</tr>\n");
}

static json *candidate_json(const struct report_candidate *c, str difference) {
    json *j = json_object();
    json_set_i64(j, "ordinal", (int64_t)c->ordinal);
    json_set_str(j, "step", c->step);
    json_set_str(j, "verdict", c->damaged ? S("damaged") : str_view(verdict_name(c->verdict)));
    json_set_f64(j, "time_s", c->time_s);
    if (isfinite(c->low_s)) {
        json_set_f64(j, "ci_low_s", c->low_s);
        json_set_f64(j, "ci_high_s", c->high_s);
    }
    json_set_str(j, "differs", difference);
    return j;
}

static void put_candidates(struct page *p, const struct report_run *r) {
    json *list = json_array();
    struct buf difference;
    buf_init(&difference, 1u << 16);
    page_section(p, "kernels", "Every kernel that was tried");
    page_putf(
        p,
        "<details class=\"all\"%s><summary>%zu kernels</summary><p class=\"tools\"><label>Show "
        "rows with <input type=\"search\" data-filters=\"kernel-table\"></label></p><div "
        "class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"kernels\"><table "
        "id=\"kernel-table\" class=\"sortable\"><thead><tr><th scope=\"col\" "
        "class=\"number\">kernel</th><th scope=\"col\">step</th><th scope=\"col\">verdict</th><th "
        "scope=\"col\" class=\"number\">time</th><th scope=\"col\" class=\"number\">of the "
        "winner's</th><th scope=\"col\">differs from the winner in</th><th scope=\"col\">why it "
        "was tried, or rejected</th></tr></thead><tbody>\n",
        r->n <= 64 ? " open" : "", r->n);
    for (size_t i = 0; i < r->n; i++) {
        const struct report_candidate *c = &r->candidates[i];
        buf_clear(&difference);
        put_difference(&difference, r, c, p->mem);
        put_candidate(p, r, c, buf_str(&difference));
        json_push(list, candidate_json(c, buf_str(&difference)));
    }
    page_put(p, "</tbody></table></div></details>");
    json_set(p->data, "candidates", list);
    buf_release(&difference);
}

/* ---- models ---- */

static void put_spent_row(struct page *p, const char *name, const json *row) {
    int64_t calls = 0, in = 0, out = 0;
    double cost = NAN;
    json_get_i64(row, "calls", &calls);
    json_get_i64(row, "tokens_in", &in);
    json_get_i64(row, "tokens_out", &out);
    page_put(p, "<tr>");
    html_element(&p->body, "th scope=\"row\"", str_view(name));
    page_putf(p,
              "<td class=\"number\">%lld</td><td class=\"number\">%lld</td><td "
              "class=\"number\">%lld</td>",
              (long long)calls, (long long)in, (long long)out);
    if (json_get_f64(row, "cost", &cost) && isfinite(cost))
        page_putf(p, "<td class=\"number\">$%.4f</td></tr>", cost);
    else
        page_put(p, "<td class=\"number\">not known</td></tr>");
}

static void put_role(void *ctx, const char *name, const json *row) {
    put_spent_row(ctx, name, row);
}

static void put_call(struct page *p, const struct archive_call *c) {
    page_put(p, "<details class=\"call\"><summary><b>");
    html_text(&p->body, c->role);
    page_putf(p, " %llu</b> ", (ull)c->ordinal);
    if (c->candidate != UINT64_MAX)
        page_putf(p, "for kernel %llu, ", (ull)c->candidate);
    html_text(&p->body, c->model);
    page_putf(p, ", %llu tokens in, %llu out, %.1f s", (ull)c->tokens_in, (ull)c->tokens_out,
              c->seconds);
    if (isfinite(c->cost))
        page_putf(p, ", $%.4f", c->cost);
    page_put(p, c->cut ? ", cut off at its limit</summary>" : "</summary>");
    html_element(&p->body, "pre tabindex=\"0\" role=\"region\" aria-label=\"reply\"",
                 html_cut(p->mem, c->reply, REPLY_BYTES));
    if (c->reply.n > REPLY_BYTES)
        page_putf(p,
                  "<p class=\"remark\">The first %d of %zu bytes; <code>cutepilot log</code> has "
                  "all.</p>",
                  REPLY_BYTES, c->reply.n);
    page_put(p, "</details>\n");
}

static void put_models(struct page *p, const struct report_run *r) {
    if (!r->ncalls)
        return;
    page_section(p, "models", "Model calls and what they cost");
    page_put(p, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"what roles "
                "cost\"><table><thead><tr><th scope=\"col\">role</th><th scope=\"col\" "
                "class=\"number\">calls</th><th scope=\"col\" class=\"number\">tokens in</th><th "
                "scope=\"col\" class=\"number\">tokens out</th><th scope=\"col\" "
                "class=\"number\">cost</th></tr></thead><tbody>");
    json_each(json_get(r->spent, "roles"), put_role, p);
    put_spent_row(p, "the run", r->spent);
    page_put(p, "</tbody></table></div>");
    page_putf(p, "<details><summary>%zu replies</summary>", r->ncalls);
    for (size_t i = 0; i < r->ncalls; i++)
        put_call(p, &r->calls[i]);
    page_put(p, "</details>");
    json_set(p->data, "spent", json_copy(r->spent));
}

/* ---- provenance ---- */

static void put_option(struct buf *out, const json *print, const char *key) {
    const json *value = json_get(print, key);
    str text;
    int64_t number;
    if (json_to_str(value, &text) && text.n) {
        buf_printf(out, " \\\n    --%s ", key);
        buf_put_shell_word(out, text);
    } else if (json_to_i64(value, &number)) {
        buf_printf(out, " \\\n    --%s %lld", key, (long long)number);
    }
}

/* What the fingerprint says, as options; a run goes as far again as this one did. */
static str repeat_command(const struct report_run *r, struct arena *a) {
    static const char *const keys[] = {"device",  "seed",      "population", "search",   "roofline",
                                       "history", "dialect",   "agents",     "workflow", "provider",
                                       "model",   "crossover", "profiling"};
    struct buf b;
    str shape = {0}, word;
    buf_init(&b, 1u << 16);
    buf_puts(&b, S("cutepilot optimize "));
    buf_put_shell_word(&b, arena_printf(a, "%.*s.task", STR_ARG(r->name)));
    json_get_str(r->print, "shape", &shape);
    while (str_word(&shape, ' ', &word)) {
        buf_puts(&b, S(" --set "));
        buf_put_shell_word(&b, word);
    }
    buf_printf(&b, " \\\n    --budget %zuc --stop budget", r->n);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put_option(&b, r->print, keys[i]);
    bool must_admit = false;
    if (json_get_bool(r->print, "must_admit", &must_admit) && must_admit)
        buf_puts(&b, S(" \\\n    --must-admit"));
    if (r->verify_seed.n) {
        buf_puts(&b, S(" \\\n    --verify-seed "));
        buf_put_shell_word(&b, r->verify_seed);
    }
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static str plain_value(const json *value, struct arena *a) {
    struct buf b;
    str s;
    if (json_to_str(value, &s))
        return s;
    buf_init(&b, 1u << 16);
    json_write(value, &b);
    s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static void put_print(void *ctx, const char *key, const json *value) {
    struct page *p = ctx;
    html_element(&p->body, "dt", str_view(key));
    html_element(&p->body, "dd", plain_value(value, p->mem));
}

static void put_kernels(struct page *p, const struct record *r) {
    for (size_t i = 0; r && i < r->nlaunches; i++) {
        const struct record_launch *l = &r->launches[i];
        struct buf b;
        buf_init(&b, 4096);
        buf_printf(&b, "%.*s: %u×%u×%u blocks of %u×%u×%u threads", STR_ARG(l->kernel), l->grid[0],
                   l->grid[1], l->grid[2], l->block[0], l->block[1], l->block[2]);
        for (size_t k = 0; k < r->nkernels; k++)
            if (str_eq(r->kernels[k].name, l->kernel))
                buf_printf(&b, ", %lld registers a thread, %lld bytes of shared memory a block",
                           (long long)r->kernels[k].registers,
                           (long long)(r->kernels[k].shared_static + l->shared_dynamic));
        page_fact(p, "launch", buf_str(&b));
        buf_release(&b);
    }
}

static void put_provenance(struct page *p, const struct report_run *r) {
    struct arena *a = p->mem;
    const struct record *rec = r->record;
    page_section(p, "provenance", "Provenance");
    html_element(&p->body, "h3", S("To repeat it"));
    html_element(&p->body, "pre tabindex=\"0\" role=\"region\" aria-label=\"command\"",
                 repeat_command(r, a));
    page_put(p,
             "<p class=\"remark\">With the task's text above in that file. On the simulator the "
             "same seed gives the same kernels and estimates, if the history pool holds the same "
             "runs; on a GPU times differ from run to run. ");
    page_put(p,
             r->verify_seed.n
                 ? "Verdicts are the same too, as verification has its seed.</p>"
                 : "Verification draws data of its own each time: a kernel that is wrong in rare "
                   "cases alone may have another verdict.</p>");
    html_element(&p->body, "h3", S("What made it"));
    page_put(p, "<dl class=\"facts\">");
    json_each(r->print, put_print, p);
    if (rec && rec->source_sha256.n)
        page_fact(p, "kernel, SHA-256", rec->source_sha256);
    if (rec && rec->arch.n)
        page_fact(p, "compiled for", rec->arch);
    if (rec && rec->has_verify_seed)
        page_fact(p, "verification seed", arena_printf(a, "%llu", (ull)rec->verify_seed));
    put_kernels(p, rec);
    if (r->n && isfinite(r->candidates[0].decided_at))
        page_fact(p, "first verdict", html_date(a, r->candidates[0].decided_at));
    if (isfinite(r->elapsed_s))
        page_fact(p, "time spent", arena_printf(a, "%.1f s", r->elapsed_s));
    if (r->stopped.n)
        page_fact(p, "ended because", str_view(search_why_ended(r->stopped)));
    page_fact(p, "folder", str_view(r->folder));
    page_put(p, "</dl>");
}

/* ---- data ---- */

static void set_data(struct page *p, const struct report_run *r) {
    static const char *const states[] = {[RUN_EMPTY] = "empty",
                                         [RUN_OPEN] = "open",
                                         [RUN_STOPPED] = "stopped",
                                         [RUN_FAILED] = "failed",
                                         [RUN_DONE] = "done"};
    json *j = p->data;
    json_set_i64(j, "schema", 1);
    json_set_str(j, "kind", S("run"));
    json_set_str(j, "cutepilot", S(CUTEPILOT_VERSION));
    json_set_str(j, "state", str_view(states[r->state]));
    json_set_str(j, "gpu", run_gpu(r));
    json_set_bool(j, "estimated", r->estimated);
    json_set_f64(j, "limit_s", r->limit_s);
    if (report_has_winner(r)) {
        json_set_i64(j, "winner", (int64_t)r->candidates[r->winner].ordinal);
        json_set_f64(j, "time_s", r->candidates[r->winner].time_s);
        json_set_bool(j, "confirmed", r->record && r->record->confirmed);
        json_set_str(j, "strategy", r->candidates[r->winner].strategy);
    }
    json_set(j, "run", json_copy(r->print));
    json_set_str(j, "task", r->task_text);
}

static void put_run(struct page *p, const struct report_run *r) {
    size_t plain = story_plain(r);
    p->kind = S("run");
    p->heading = r->task ? r->task->name : r->name.n ? r->name : str_view(r->folder);
    p->title = arena_printf(p->mem, "%.*s – cutepilot report", STR_ARG(p->heading));
    p->subtitle = arena_printf(p->mem, "%.*s%s%.*s", STR_ARG(r->task ? r->task->title : S("")),
                               r->task && r->task->title.n ? ", " : "",
                               STR_ARG(r->n ? run_times(r, p->mem) : S("nothing evaluated")));
    set_data(p, r);
    put_headline(p, r, plain);
    put_task(p, r);
    if (report_has_winner(r)) {
        page_section(p, "search", "The search");
        page_put(p, "<div class=\"figures\">");
        run_progress(p, r);
        run_roofline(p, r);
        page_put(p, "</div>");
        run_lineage(p, r, plain);
        run_worth(p, r);
        run_source(p, r);
        run_matrix(p, r);
    }
    if (r->n) {
        run_verdicts(p, r);
        put_candidates(p, r);
    }
    put_models(p, r);
    put_provenance(p, r);
}

bool report_run(const char *folder, const char *assets, struct buf *out, struct err *err) {
    struct arena *mem = arena_new(REPORT_MEMORY);
    struct report_run r;
    struct page p;
    bool ok = report_run_read(folder, assets, mem, &r, err);
    if (ok) {
        page_init(&p, mem);
        put_run(&p, &r);
        ok = page_write(&p, assets, out, err);
        page_release(&p);
        report_run_release(&r);
    }
    arena_free(mem);
    return ok;
}
