/* The driver of refine on scripted replies: repairs, regressions, what the roles are told, resuming
 * without a new call. */
#include "origins.h"
#include "reader.h"
#include "scripted.h"

#include "agent/llm/llm.h"
#include "archive/history.h"
#include "base/file.h"
#include "base/hash.h"
#include "search/archived.h"
#include "search/search.h"
#include <unistd.h>

/* ---- a run ---- */

static struct arena *mem;
static struct err err;
static struct catalogue *catalogue;
static struct briefing brief;

struct seen {
    char line[128][160];
    size_t n, bests, notes, interrupt_at;
    sig_atomic_t interrupted;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->bests += e->kind == EVENT_BEST;
    s->notes += e->kind == EVENT_NOTE;
    if (e->kind != EVENT_CANDIDATE)
        return;
    snprintf(s->line[s->n++], sizeof s->line[0], "%zu %s %g %.*s", (size_t)e->ordinal,
             verdict_name(e->verdict), e->time_s, STR_ARG(e->strategy));
    s->interrupted = s->n == s->interrupt_at;
}

struct run {
    struct scripted script;
    struct seen seen;
    struct search_best best;
    struct refine_options ro;
    struct llm_options lo;
    struct budget budget;
    bool late, blind;
    const char *pool, *assets;
};

static bool refine(struct run *r, const struct script_entry *entries, size_t n, const char *dir) {
    struct loop *l = loop_new(&err);
    struct evaluator_options eo = {.device = {.kind = DEVICE_SIM, .text = "sim:h200"}};
    struct provider inner = script_provider(&r->script, mem, entries, n), archived;
    struct agent agent;
    struct archive *a = NULL;
    json *print = json_object();
    r->script.late = r->late ? l : NULL;
    r->seen.n = r->seen.bests = r->seen.notes = 0;
    r->seen.interrupted = false;
    err = (struct err){0};
    if (dir)
        CHECKF(archive_open(dir, print, false, &a, &err), "%s", err.text);
    if (a)
        archived_provider(&inner, a, &archived);
    llm_new(a ? &archived : &inner, &r->lo, &agent);
    struct search_options o = {.briefing = &brief,
                               .agent = &agent,
                               .archive = a,
                               .blind = r->blind,
                               .budget = r->budget,
                               .seed = 1,
                               .pool = r->pool,
                               .assets = r->assets,
                               .interrupted = &r->seen.interrupted,
                               .emit = on_event,
                               .emit_ctx = &r->seen};
    bool ok = search_refine(l, &o, &r->ro, &eo, mem, &r->best, &err);
    agent.release(agent.self);
    if (a)
        archived.release(archived.self);
    archive_close(a);
    json_free(print);
    loop_free(l);
    return ok;
}

static struct run *run_new(void) {
    return arena_new_of(mem, struct run);
}

#define PLAN                                                                                       \
    { "planner", "```strategy\nvector-width=4\nblock=512\n```", 0 }
#define SOURCE(words) "//! launch k<<<1, 32>>>(x, y)\nvoid k() {} // " words "\n"
#define CODE(words)                                                                                \
    { "coder", "IDEA: first\n```cuda\n" SOURCE(words) "```\n", 0 }
#define WHOLE(r, i, w)                                                                             \
    { r, "IDEA: " i "\n```cuda\n" SOURCE(w) "```\n", 0 }
#define EDIT(r, i, a, b)                                                                           \
    {                                                                                              \
        r,                                                                                         \
            "IDEA: " i "\n<<<<<<< SEARCH\nvoid k() {} // " a "\n=======\nvoid k() {} // " b        \
            "\n>>>>>>> REPLACE\n",                                                                 \
            0                                                                                      \
    }

/* ---- the way to a right kernel ---- */

static const struct script_entry mistakes[] = {
    PLAN,
    CODE("verdict=wrong index"),
    EDIT("debugger", "malformed", "verdict=no", "us=20"), /* matches nothing */
    EDIT("debugger", "index", "verdict=wrong index", "verdict=race"),
    EDIT("debugger", "barrier", "verdict=race", "us=20"),
    EDIT("optimizer", "slower", "us=20", "us=30"),
    EDIT("optimizer", "faster", "us=20", "us=9"),
    EDIT("optimizer", "breaks", "us=9", "verdict=nonfinite us=1"),
    EDIT("debugger", "repairs", "verdict=nonfinite us=1", "us=8"),
    EDIT("optimizer", "the same again", "us=8", "us=9"),
    {"optimizer", "I have no idea.", 0},
    {"optimizer", "Really.", 0},
    {"optimizer", "None.", 0},
    EDIT("optimizer", "parameters", "us=8", "us=7"),
    EDIT("optimizer", "p2", "us=7", "us=7.5"),
    {"optimizer", "**DONE:** the launch is all that is left.", 0},
};
static const size_t nmistakes = sizeof mistakes / sizeof *mistakes;

static void test_mistakes(void) {
    struct run *r = run_new();
    CHECKF(refine(r, mistakes, nmistakes, NULL), "%s", err.text);
    CHECKF(r->best.found && fabs(r->best.time_s - 7e-6) < 1e-9, "%g", r->best.time_s);
    CHECK(!strcmp(r->best.stopped, "plateau") && r->best.evaluated == 9);
    CHECK(r->script.nasked == nmistakes && r->seen.bests == 4);
    const struct scripted *s = &r->script;
    CHECK(script_told(s, 2, "Verdict: wrong") && script_told(s, 2, "At shape R=3 C=5 on signed"));
    CHECK(script_told(s, 2, ">    2 | void k() {} // verdict=wrong index"));
    CHECK(script_told(s, 3, "edit 1: its SEARCH lines do not occur"));
    CHECK(script_told(s, 4, "Verdict: race") && script_told(s, 4, "index: race:"));
    CHECK(script_told(s, 6, "slower: 30 us instead of 20, no gain; dropped"));
    CHECK(script_told(s, 6, "// us=20") && !script_told(s, 6, "// us=30"));
    CHECK(script_told(s, 7, "faster: 9 us instead of 20, kept"));
    CHECK(script_told(s, 8, "Verdict: nonfinite"));
    CHECK(script_told(s, 10, "the same again: the same source as an earlier one"));
    CHECK(script_told(s, 13, "no usable reply"));
    record_free(r->best.record);
}

/* A winner that does not hold a second time is none. */
static void test_winner_must_hold(void) {
    struct run *r = run_new();
    world.refuse = true;
    CHECKF(refine(r, mistakes, nmistakes, NULL), "%s", err.text);
    CHECKF(r->best.found && fabs(r->best.time_s - 7.5e-6) < 1e-9, "%g", r->best.time_s);
    record_free(r->best.record);
}

static void test_second_strategy(void) {
    static const struct script_entry script[] = {
        PLAN, CODE("verdict=wrong"), EDIT("debugger", "1", "verdict=wrong", "verdict=wrong 1"),
        EDIT("debugger", "2", "verdict=wrong 1", "verdict=wrong 2"), CODE("us=5")};
    struct run *r = run_new();
    r->ro.repairs = 2;
    CHECKF(refine(r, script, 5, NULL), "%s", err.text);
    CHECK(r->best.found && script_told(&r->script, 4, "block=512"));
    CHECK(!strcmp(r->best.stopped, "no answer")); /* the script has ended */
    record_free(r->best.record);
    r = run_new();
    r->ro.repairs = 2;
    CHECKF(refine(r, script, 4, NULL), "%s", err.text);
    CHECK(!r->best.found && r->best.evaluated == 3);
    r = run_new();
    CHECK(!refine(r, script, 0, NULL) && err.kind == ERR_ENV); /* nobody ever answered */
}

/* A planner that never names a strategy costs its plan, not the run. */
static void test_no_plan(void) {
    static const struct script_entry script[] = {{"planner", "Let me think.", 0},
                                                 {"planner", "Vectors, surely.", 0},
                                                 {"planner", "No strategy today.", 0},
                                                 CODE("us=20"),
                                                 EDIT("optimizer", "faster", "us=20", "us=9")};
    struct run *r = run_new();
    CHECKF(refine(r, script, 5, NULL), "%s", err.text);
    CHECK(r->best.found && fabs(r->best.time_s - 9e-6) < 1e-9 && r->seen.notes == 2);
    CHECK(!strcmp(r->best.stopped, "no answer")); /* the script has ended */
    record_free(r->best.record);
    r = run_new();
    CHECK(!refine(r, script, 3, NULL) && err.kind == ERR_ENV); /* nor a coder that answers */
}

/* ---- cheats ---- */

/* Whatever the reason for the rejection: it does not win, and the model is told the verdict. */
static void test_rejections(void) {
    for (int v = 0; v < VERDICT_COUNT; v++) {
        if (v == VERDICT_ACCEPTED)
            continue;
        str cheat = arena_printf(mem,
                                 "IDEA: cheat\n```cuda\n//! launch k<<<1, 32>>>(x, y)\n"
                                 "void k() {} // verdict=%s us=0.001\n```\n",
                                 verdict_name((enum verdict)v));
        struct script_entry script[] = {
            PLAN, CODE("us=20"), {"optimizer", cheat.p, 0}, {"debugger", cheat.p, 0}};
        struct run *r = run_new();
        CHECKF(refine(r, script, 4, NULL), "%s", err.text);
        CHECKF(r->best.found && r->best.ordinal == 0, "%s won", verdict_name((enum verdict)v));
        str told = arena_printf(mem, "Verdict: %s", verdict_name((enum verdict)v));
        CHECKF(script_told(&r->script, 3, told.p), "%s", told.p);
        record_free(r->best.record);
    }
}

/* ---- ends ---- */

static void test_budget(void) {
    struct run *r = run_new();
    r->budget.candidates = 4;
    CHECKF(refine(r, mistakes, nmistakes, NULL), "%s", err.text);
    CHECK(r->best.evaluated == 4 && !strcmp(r->best.stopped, "budget"));
    CHECK(r->script.nasked == 6); /* nothing is asked that could not be tried */
    record_free(r->best.record);
}

static bool same(const struct seen *a, const struct seen *b) {
    bool yes = a->n == b->n;
    for (size_t i = 0; yes && i < a->n; i++)
        yes = strcmp(a->line[i], b->line[i]) == 0;
    return yes;
}

/* Interrupted after each candidate in turn, and gone on with: the same run, no call twice. */
static void test_resume(void) {
    struct run *whole = run_new();
    CHECK(refine(whole, mistakes, nmistakes, NULL));
    for (size_t k = 1; k < whole->seen.n; k++) {
        str dir = arena_printf(mem, "/tmp/refine-%ld-%zu", (long)getpid(), k);
        struct run *part = run_new(), *rest = run_new();
        part->late = true;
        part->seen.interrupt_at = k;
        CHECK(refine(part, mistakes, nmistakes, dir.p));
        CHECKF(!strcmp(part->best.stopped, "interrupted") && part->seen.n == k, "%zu", k);
        record_free(part->best.record);
        size_t asked = part->script.nasked - part->script.cancelled;
        rest->late = true;
        CHECKF(refine(rest, mistakes + asked, nmistakes - asked, dir.p), "%s", err.text);
        CHECKF(same(&whole->seen, &rest->seen), "after %zu", k);
        CHECKF(asked + rest->script.nasked == nmistakes, "after %zu: %zu and %zu", k, asked,
               rest->script.nasked);
        CHECK(rest->best.ordinal == whole->best.ordinal && rest->best.replayed == k);
        struct origins from = origins_in(dir.p);
        CHECKF(from.n == whole->seen.n && from.by_repair && from.by_improvement,
               "%zu repairs, %zu improvements", from.by_repair, from.by_improvement);
        CHECK(from.with_structure == from.by_repair + from.by_improvement);
        record_free(rest->best.record);
        size_t before = world.submitted;
        struct run *again = run_new();
        CHECK(refine(again, NULL, 0, dir.p) && same(&whole->seen, &again->seen));
        CHECK(again->script.nasked == 0 && world.submitted == before);
        record_free(again->best.record);
        CHECK(dir_remove_tree(dir.p, &err));
    }
    record_free(whole->best.record);
}

/* Nobody answers any more: the best so far, and the same command goes on when somebody does. */
static void test_outage(void) {
    str dir = arena_printf(mem, "/tmp/refine-%ld-outage", (long)getpid());
    struct script_entry down[8];
    struct run *whole = run_new(), *first = run_new(), *rest = run_new();
    memcpy(down, mistakes, sizeof down);
    down[7] = (struct script_entry){NULL, NULL, ERR_ENV};
    CHECK(refine(whole, mistakes, nmistakes, NULL));
    CHECKF(refine(first, down, 8, dir.p), "%s", err.text);
    CHECK(first->best.found && !strcmp(first->best.stopped, "no answer") && first->seen.notes == 1);
    CHECK(fabs(first->best.time_s - 9e-6) < 1e-9);
    CHECKF(refine(rest, mistakes + 7, nmistakes - 7, dir.p), "%s", err.text);
    CHECK(same(&whole->seen, &rest->seen) && rest->best.ordinal == whole->best.ordinal);
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(whole->best.record);
    record_free(first->best.record);
    record_free(rest->best.record);
}

/* Roles are told how much of the budget is left. A run that is gone on with under another budget
 * asks in the words it used before, and of the new one what is left of that. */
static void test_other_budget(void) {
    str dir = arena_printf(mem, "/tmp/refine-%ld-budget", (long)getpid());
    struct run *first = run_new(), *rest = run_new(), *whole = run_new();
    CHECK(refine(whole, mistakes, nmistakes, NULL));
    CHECK(!script_told(&whole->script, 0, "more candidate"));
    first->budget.candidates = 4;
    CHECKF(refine(first, mistakes, nmistakes, dir.p), "%s", err.text);
    CHECK(script_told(&first->script, 0, "after 4 more candidates") && first->script.nasked == 6);
    record_free(first->best.record);
    rest->budget.candidates = 100;
    CHECKF(refine(rest, mistakes + 6, nmistakes - 6, dir.p), "%s", err.text);
    CHECK(same(&whole->seen, &rest->seen) && rest->best.replayed == 4);
    CHECK(script_told(&rest->script, 0, "or 96 more candidates"));
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(whole->best.record);
    record_free(rest->best.record);
}

/* A folder whose calls were made with other prompts is another run's: nothing new is made of it,
 * and what it came to is handed over. */
static void test_other_prompts(void) {
    str dir = arena_printf(mem, "/tmp/refine-%ld-other", (long)getpid());
    struct run *r = run_new();
    CHECKF(refine(r, mistakes, nmistakes, dir.p), "%s", err.text);
    record_free(r->best.record);
    r = run_new();
    r->blind = true;
    CHECK(refine(r, mistakes, nmistakes, dir.p) && r->best.found && r->best.evaluated);
    CHECK(r->best.replayed == r->best.evaluated);
    CHECKF(str_find(r->best.failure, S("another prompt")) < r->best.failure.n, "%.*s",
           STR_ARG(r->best.failure));
    record_free(r->best.record);
    CHECK(dir_remove_tree(dir.p, &err));
}

/* ---- history ---- */

/* The pool gets each strategy as its code has it, with its fastest time; the next run begins with
 * that. A run that was interrupted leaves nothing. */
static void test_history(void) {
    static const struct script_entry script[] = {
        PLAN,
        CODE("verdict=wrong"),
        EDIT("debugger", "right", "verdict=wrong", "us=20 threads=128"),
        EDIT("optimizer", "faster", "us=20 threads=128", "us=16 threads=128"),
        EDIT("optimizer", "small blocks", "us=16 threads=128", "us=8 threads=64"),
    };
    str pool = arena_printf(mem, "/tmp/refine-%ld-pool", (long)getpid());
    struct run *cut = run_new(), *first = run_new(), *next = run_new();
    struct history h;
    cut->pool = first->pool = next->pool = pool.p;
    cut->assets = first->assets = next->assets = bare_assets(mem);
    cut->late = true;
    cut->seen.interrupt_at = 2;
    CHECK(refine(cut, script, 5, NULL) && cut->best.found && !file_exists(pool.p));
    CHECKF(refine(first, script, 5, NULL) && first->best.found, "%s", err.text);
    history_init(&h);
    CHECKF(history_load(&h, pool.p, &err) && h.n == 1 && h.runs[0].n == 3, "%s", err.text);
    const struct history_trial *t = h.runs[0].trials;
    CHECK(str_starts(t[0].strategy, S("block=256")) && isinf(t[0].ratio));
    CHECKF(str_starts(t[1].strategy, S("block=128")) && t[1].ratio == 2, "%g", t[1].ratio);
    CHECK(str_starts(t[2].strategy, S("block=64")) && t[2].ratio == 1);
    history_release(&h);
    CHECK(refine(next, script, 5, NULL));
    CHECK(!script_told(&first->script, 0, "- 1.00: `block=64"));
    CHECK(script_told(&next->script, 0, "- 1.00: `block=64"));
    CHECK(unlink(pool.p) == 0 && dir_remove_tree(next->assets, &err));
    record_free(cut->best.record);
    record_free(first->best.record);
    record_free(next->best.record);
}

/* ---- what the roles are told ---- */

static void test_profiling(void) {
    static const struct {
        enum profiling p;
        bool early, late;
    } rows[] = {{PROFILING_DELAYED, false, true},
                {PROFILING_NOW, true, true},
                {PROFILING_NEVER, false, false}};
    static const struct script_entry script[] = {
        PLAN, CODE("us=20"), EDIT("optimizer", "slower", "us=20", "us=30"),
        EDIT("optimizer", "slower still", "us=20", "us=40")};
    for (size_t i = 0; i < 3; i++) {
        struct run *r = run_new();
        r->ro.profiling = rows[i].p;
        CHECKF(refine(r, script, 4, NULL), "%s", err.text);
        CHECK(script_told(&r->script, 2, "77 registers") == rows[i].early);
        CHECK(script_told(&r->script, 2, "The stage: structure"));
        CHECK(script_told(&r->script, 3, "77 registers") == rows[i].late);
        CHECK(script_told(&r->script, 3, "The stage: details"));
        record_free(r->best.record);
    }
}

/* Ten rounds with a kernel of eight kilobytes stay under the size that was promised. */
static void test_size(void) {
    struct script_entry script[12] = {PLAN};
    char *body = arena_alloc(mem, 8193, 1);
    memset(body, 'x', 8192);
    for (size_t i = 99; i < 8192; i += 100)
        memcpy(body + i - 3, "\n//", 3);
    for (size_t i = 1; i < 12; i++)
        script[i] = (struct script_entry){
            i == 1 ? "coder" : "optimizer",
            arena_printf(mem, "IDEA: round %zu\n```cuda\n%s//%s\nvoid k() {} // us=%zu\n```\n", i,
                         "//! launch k<<<1, 32>>>(x, y)\n", body, 100 - i)
                .p,
            0};
    struct run *r = run_new();
    CHECKF(refine(r, script, 12, NULL), "%s", err.text);
    CHECK(r->best.evaluated == 11);
    CHECKF(r->script.bytes < 480 * 1024, "%zu bytes", r->script.bytes);
    record_free(r->best.record);
}

static const struct tap_case cases[] = {
    {"mistakes are repaired, regressions dropped", test_mistakes},
    {"the winner holds a second time", test_winner_must_hold},
    {"the next strategy where repairs fail", test_second_strategy},
    {"the default strategy where none is planned", test_no_plan},
    {"no rejected candidate wins, and its author is told", test_rejections},
    {"a budget of candidates", test_budget},
    {"resuming costs no call", test_resume},
    {"an outage", test_outage},
    {"another budget is the same run", test_other_budget},
    {"other prompts are another run", test_other_prompts},
    {"a run is left to history", test_history},
    {"profiling now, delayed, never", test_profiling},
    {"ten rounds fit", test_size},
};

int main(void) {
    static const char text[] = "task gelu \"GELU\"\ndim R = 1024, C = 2048\n"
                               "in x[R,C] : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
                               "y[i,j] = 0.5 * x[i,j] * (1 + erf(x[i,j] * 0.7))\n";
    struct task *t;
    struct inst *in;
    mem = arena_new((size_t)2 << 30);
    if (!catalogue_load(NULL, mem, &catalogue, &err) ||
        !task_parse(S("t.task"), str_view(text), mem, &t, &err) ||
        !task_bind(t, NULL, 0, mem, &in, &err) ||
        !briefing_make(in, catalogue, gpu_find(S("h200")), &brief, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
