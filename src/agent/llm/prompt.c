#include "agent/llm/prompt.h"
#include "agent/llm/evidence.h"
#include "base/asset.h"
#include "base/template.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    str text = arena_str(p->mem, buf_str(&out));
    buf_release(&out);
    return text;
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
    str parents = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
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
    str text = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
    return text;
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
    text = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
    return text;
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
    str evidence = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
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
    str text = arena_str(p->mem, buf_str(&b));
    buf_release(&b);
    return text;
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
