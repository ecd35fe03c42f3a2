/* Evolution with a model's agents on scripted replies: phases, questions in flight, repairs,
 * alignment, resuming without a new call. */
#include "origins.h"
#include "reader.h"

#include "agent/llm/llm.h"
#include "archive/history.h"
#include "base/file.h"
#include "search/archived.h"
#include "search/search.h"
#include <unistd.h>

static struct arena *mem;
static struct err err;
static struct catalogue *catalogue;
static struct briefing brief;

struct seen {
    char line[128][200];
    size_t n, generations, interrupt_at;
    sig_atomic_t interrupted;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->generations += e->kind == EVENT_GENERATION;
    if (e->kind != EVENT_CANDIDATE)
        return;
    snprintf(s->line[s->n++], sizeof s->line[0], "%zu %s %g %.*s", (size_t)e->ordinal,
             verdict_name(e->verdict), e->time_s, STR_ARG(e->strategy));
    s->interrupted |= s->n == s->interrupt_at;
}

/* ---- replies that follow from the request ---- */

/* The script is a function here: which reply a role's k-th request gets, whatever the order. */
static char replies[6][32][512];

static const char *role_names[] = {"planner",   "coder",     "debugger",
                                   "optimizer", "crossover", "aligner"};

struct asked {
    char role[16];
    str user;
};

struct model {
    struct asked kept[256];
    size_t nkept;
    size_t fail_after; /* requests; 0: never */
    struct pending_reply {
        struct model *m;
        llm_done_fn *done;
        void *ctx;
        const char *text;
    } open[64];
    size_t nopen, most, asked;
    struct loop *late;
    uint64_t timer;
};

static void send(struct pending_reply *p) {
    struct err e = {0};
    struct llm_reply r = {.text = str_view(p->text), .tokens_in = 10, .tokens_out = 1};
    err_set(&e, ERR_ENV, "the line is dead");
    p->done(p->ctx, p->text ? &r : NULL, p->text ? NULL : &e);
}

static void fire(void *ctx) {
    struct model *m = ctx;
    m->timer = 0;
    while (m->nopen) {
        struct pending_reply p = m->open[--m->nopen];
        send(&p);
    }
}

static const char *reply_for(const struct llm_request *q) {
    for (size_t r = 0; r < 6; r++)
        if (!strcmp(role_names[r], q->role))
            return replies[r][q->ordinal / LLM_TRIES];
    return NULL;
}

static uint64_t model_ask(void *self, const struct llm_request *q, llm_done_fn *done, void *ctx) {
    struct model *m = self;
    struct asked *a = &m->kept[m->nkept++];
    snprintf(a->role, sizeof a->role, "%s", q->role);
    a->user = arena_str(mem, q->user);
    struct pending_reply p = {m, done, ctx, reply_for(q)};
    if (m->fail_after && m->asked >= m->fail_after)
        p.text = NULL;
    m->asked++;
    if (!m->late) {
        send(&p);
        return 0;
    }
    m->open[m->nopen++] = p;
    m->most = m->nopen > m->most ? m->nopen : m->most;
    if (!m->timer)
        m->timer = loop_timer(m->late, 1, fire, m);
    return m->nopen;
}

static void model_cancel(void *self, uint64_t call) {
    struct model *m = self;
    (void)call;
    m->asked--; /* as if it had never been asked: nobody was paid */
    loop_timer_cancel(m->late, m->timer);
}

/* Two generations of three: a wrong one that is repaired, one that never is. */
static void write_replies(void) {
    memset(replies, 0, sizeof replies);
    snprintf(replies[0][0], 512, "IDEA: p\n```strategy\nvector-width=4 # a\nblock=512 # b\n```");
    for (int i = 0; i < 32; i++) {
        snprintf(replies[1][i], 512,
                 "%s```cuda\n//! launch k<<<1, 32>>>(x, y)\nvoid k() {} // %s us=%d\n```",
                 i < 2 ? "INSTEAD: two elements\n" : "",
                 i == 1   ? "verdict=wrong"
                 : i == 4 ? "verdict=race"
                          : "",
                 30 - i);
        snprintf(replies[2][i], 512,
                 "IDEA: mend %d\n```cuda\n//! launch k<<<1, 32>>>(x, y)\nvoid k() {} // %s r%d "
                 "us=%d\n```",
                 i, i ? "verdict=race" : "", i, i ? 1 : 29);
        snprintf(replies[4][i], 512, "IDEA: child\n```strategy\nitems=%d block=%d\n```",
                 1 << (i % 4), i % 2 ? 128 : 64);
        snprintf(replies[5][i], 512, "```strategy\nvector-width=2 block=%d\n```",
                 i % 2 ? 128 : 512);
    }
}

struct run {
    struct model model;
    struct seen seen;
    struct search_best best;
    struct llm_options lo;
    bool late;
    const char *pool, *assets;
};

static bool evolve(struct run *r, uint64_t candidates, const char *dir) {
    struct loop *l = loop_new(&err);
    struct evaluator_options eo = {.device = {.kind = DEVICE_SIM, .text = "sim:h200"}};
    struct provider inner = {"model", "m", &r->model, model_ask, model_cancel, NULL, NULL};
    struct provider archived;
    struct agent agent;
    struct archive *a = NULL;
    json *print = json_object();
    err = (struct err){0};
    r->model.late = r->late ? l : NULL;
    if (dir)
        CHECKF(archive_open(dir, print, false, &a, &err), "%s", err.text);
    if (a)
        archived_provider(&inner, a, &archived);
    llm_new(a ? &archived : &inner, &r->lo, &agent);
    struct search_options o = {.briefing = &brief,
                               .agent = &agent,
                               .archive = a,
                               .budget = {.candidates = candidates},
                               .seed = 1,
                               .population = 3,
                               .pool = r->pool,
                               .assets = r->assets,
                               .interrupted = &r->seen.interrupted,
                               .emit = on_event,
                               .emit_ctx = &r->seen};
    bool ok = search_generations(l, &o, &eo, mem, &r->best, &err);
    agent.release(agent.self);
    if (a)
        archived.release(archived.self);
    archive_close(a);
    json_free(print);
    loop_free(l);
    return ok;
}

static bool same(const struct seen *a, const struct seen *b) {
    bool yes = a->n == b->n;
    for (size_t i = 0; i < a->n || i < b->n; i++)
        if (i >= a->n || i >= b->n || strcmp(a->line[i], b->line[i])) {
            printf("# %zu: '%s' and '%s'\n", i, a->line[i], b->line[i]);
            return false;
        }
    return yes;
}

static size_t asked_of(const struct model *m, const char *role) {
    size_t n = 0;
    for (size_t i = 0; i < m->nkept; i++)
        n += !strcmp(m->kept[i].role, role);
    return n;
}

static const struct asked *nth(const struct model *m, const char *role, size_t k) {
    for (size_t i = 0; i < m->nkept; i++)
        if (!strcmp(m->kept[i].role, role) && k-- == 0)
            return &m->kept[i];
    return NULL;
}

static bool told(const struct asked *a, const char *text) {
    return a && str_find(a->user, str_view(text)) < a->user.n;
}

static void test_phases(void) {
    struct run *r = arena_new_of(mem, struct run);
    r->late = true;
    world.most = 0;
    CHECKF(evolve(r, 9, NULL), "%s", err.text);
    CHECKF(r->best.found && r->best.evaluated == 9, "%zu", r->best.evaluated);
    CHECK(!strcmp(r->best.stopped, "budget") && r->seen.generations == 2);
    CHECKF(r->model.most == 3 && world.most == 3, "%zu in flight, %zu evaluated at once",
           r->model.most, world.most);
    const struct model *m = &r->model;
    CHECK(asked_of(m, "planner") == 1 && asked_of(m, "crossover") == 3);
    CHECK(asked_of(m, "coder") == 6 && asked_of(m, "aligner") == 2);
    CHECKF(asked_of(m, "debugger") == 3, "%zu", asked_of(m, "debugger"));
    CHECK(told(nth(m, "debugger", 0), "Verdict: wrong"));
    CHECK(told(nth(m, "debugger", 1), "Verdict: race"));
    CHECK(told(nth(m, "crossover", 0), "vector-width=2")); /* as the aligner has it */
    CHECK(!told(nth(m, "crossover", 0), "void k()"));
    CHECKF(fabs(r->best.time_s - 25e-6) < 1e-9, "%g", r->best.time_s);
    record_free(r->best.record);
}

/* The first is the fastest: it is given back as the aligner has it. */
static void test_aligned(void) {
    struct run *r = arena_new_of(mem, struct run);
    snprintf(replies[1][0], 512,
             "INSTEAD: two elements\n"
             "```cuda\n//! launch k<<<1, 32>>>(x, y)\nvoid k() {} // us=2\n```");
    CHECKF(evolve(r, 9, NULL) && r->best.found && r->best.ordinal == 0, "%s", err.text);
    CHECK(strategy_get(catalogue, &r->best.strategy, "vector-width") == 2);
    record_free(r->best.record);
    write_replies();
}

static void test_order(void) {
    struct run *a = arena_new_of(mem, struct run), *b = arena_new_of(mem, struct run);
    b->late = true;
    CHECK(evolve(a, 12, NULL) && evolve(b, 12, NULL) && same(&a->seen, &b->seen));
    CHECK(a->best.ordinal == b->best.ordinal);
    record_free(a->best.record);
    record_free(b->best.record);
}

static void test_resume(void) {
    struct run *whole = arena_new_of(mem, struct run);
    CHECK(evolve(whole, 12, NULL));
    for (size_t k = 1; k < 12; k++) {
        str dir = arena_printf(mem, "/tmp/generations-%ld-%zu", (long)getpid(), k);
        struct run *part = arena_new_of(mem, struct run), *rest = arena_new_of(mem, struct run);
        part->late = rest->late = true;
        part->seen.interrupt_at = k;
        CHECKF(evolve(part, 12, dir.p), "%s", err.text);
        record_free(part->best.record);
        CHECKF(evolve(rest, 12, dir.p), "%s", err.text);
        CHECKF(same(&whole->seen, &rest->seen), "after %zu", k);
        CHECKF(part->model.asked + rest->model.asked == whole->model.asked, "%zu: %zu + %zu of %zu",
               k, part->model.asked, rest->model.asked, whole->model.asked);
        CHECK(rest->best.ordinal == whole->best.ordinal && rest->best.replayed >= k);
        record_free(rest->best.record);
        CHECK(dir_remove_tree(dir.p, &err));
    }
    record_free(whole->best.record);
}

/* The line goes dead after each number of requests: the best so far, and nothing asked twice. */
static void test_outage(void) {
    struct run *whole = arena_new_of(mem, struct run);
    CHECK(evolve(whole, 12, NULL));
    for (size_t k = 5; k < whole->model.asked; k += 3) {
        str dir = arena_printf(mem, "/tmp/generations-%ld-dead-%zu", (long)getpid(), k);
        struct run *part = arena_new_of(mem, struct run), *rest = arena_new_of(mem, struct run);
        part->model.fail_after = k;
        part->late = true;
        CHECKF(evolve(part, 12, dir.p), "%s", err.text);
        CHECKF(part->best.found && !strcmp(part->best.stopped, "no answer"), "%zu: %s", k,
               part->best.stopped);
        record_free(part->best.record);
        CHECKF(evolve(rest, 12, dir.p), "%s", err.text);
        CHECKF(same(&whole->seen, &rest->seen), "after %zu", k);
        CHECKF(k + rest->model.asked == whole->model.asked, "%zu: %zu of %zu", k, rest->model.asked,
               whole->model.asked);
        record_free(rest->best.record);
        CHECK(dir_remove_tree(dir.p, &err));
    }
    record_free(whole->best.record);
    struct run *never = arena_new_of(mem, struct run);
    memset(replies[0][0], 0, 512);
    memset(replies[1], 0, sizeof replies[1]); /* nothing anybody could use */
    CHECK(!evolve(never, 12, NULL) || !never->best.found);
    write_replies();
}

/* ---- what a run leaves ---- */

/* Strategies as the aligner has them; in the last generation, where nobody is asked, as the code
 * shows. */
static void test_history(void) {
    str pool = arena_printf(mem, "/tmp/generations-%ld-pool", (long)getpid());
    struct run *r = arena_new_of(mem, struct run), *next = arena_new_of(mem, struct run);
    struct history h;
    r->pool = next->pool = pool.p;
    r->assets = next->assets = bare_assets(mem);
    CHECKF(evolve(r, 9, NULL), "%s", err.text);
    history_init(&h);
    CHECKF(history_load(&h, pool.p, &err) && h.n == 1 && h.runs[0].n == 6, "%s", err.text);
    const struct history_trial *t = h.runs[0].trials;
    CHECK(str_find(t[0].strategy, S("vector-width=2")) < t[0].strategy.n);
    CHECKF(fabs(t[0].ratio - 30.0 / 25) < 1e-9, "%g", t[0].ratio);
    CHECK(t[5].ratio == 1 && isinf(t[4].ratio));
    history_release(&h);
    CHECK(evolve(next, 9, NULL) && next->best.precedents == 1);
    CHECK(told(nth(&next->model, "planner", 0), "tasks like this one"));
    CHECK(unlink(pool.p) == 0 && dir_remove_tree(next->assets, &err));
    record_free(r->best.record);
    record_free(next->best.record);
}

static int64_t number(const json *j, const char *key) {
    int64_t v = -1;
    json_get_i64(j, key, &v);
    return v;
}

/* Every call but the plan is some candidate's, whichever command made it. */
static void test_account(void) {
    str dir = arena_printf(mem, "/tmp/generations-%ld-account", (long)getpid());
    struct run *part = arena_new_of(mem, struct run), *rest = arena_new_of(mem, struct run);
    struct archive *a;
    part->late = rest->late = true;
    part->seen.interrupt_at = 4;
    CHECKF(evolve(part, 9, dir.p) && evolve(rest, 9, dir.p), "%s", err.text);
    CHECKF(archive_open_read(dir.p, &a, &err), "%s", err.text);
    json *spent = archived_spent(a, &err);
    const json *candidates = json_get(spent, "candidates");
    CHECK(number(spent, "calls") == 15 && number(spent, "tokens_in") == 150);
    CHECK(number(json_get(json_get(spent, "roles"), "crossover"), "calls") == 3);
    CHECK(json_len(candidates) == 9);
    CHECK(number(json_get(candidates, "0"), "calls") == 2);      /* coder, aligner */
    CHECK(number(json_get(candidates, "1"), "calls") == 1);      /* coder: wrong */
    CHECK(number(json_get(candidates, "3"), "calls") == 2);      /* debugger, aligner */
    CHECK(number(json_get(candidates, "4"), "calls") == 2);      /* crossover, coder */
    CHECK(number(json_get(candidates, "8"), "tokens_in") == 10); /* debugger */
    json_free(spent);
    archive_close(a);
    struct origins from = origins_in(dir.p);
    CHECKF(from.n == 9 && from.by_plan == 3 && from.by_crossover == 3 && from.by_repair == 3,
           "%zu planned, %zu children, %zu repairs", from.by_plan, from.by_crossover,
           from.by_repair);
    CHECKF(from.with_structure >= 3, "%zu", from.with_structure); /* at least of the repairs */
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(part->best.record);
    record_free(rest->best.record);
}

static void test_code_crossover(void) {
    struct run *r = arena_new_of(mem, struct run);
    r->lo.cross_code = true;
    CHECKF(evolve(r, 9, NULL), "%s", err.text);
    CHECK(asked_of(&r->model, "crossover") < 3);
    CHECK(told(nth(&r->model, "coder", 3), "Two kernels to combine"));
    record_free(r->best.record);
}

static void test_hybrid(void) {
    struct loop *l = loop_new(&err);
    struct evaluator_options eo = {0};
    struct run *r = arena_new_of(mem, struct run);
    struct provider p = {"model", "m", &r->model, model_ask, model_cancel, NULL, NULL};
    struct agent expert, llm, hybrid;
    CHECK(expert_new(NULL, &expert, &err));
    llm_new(&p, &r->lo, &llm);
    hybrid_new(&expert, &llm, &hybrid);
    struct search_options o = {.briefing = &brief,
                               .agent = &hybrid,
                               .budget = {.candidates = 16},
                               .seed = 1,
                               .population = 4,
                               .plateau = 100,
                               .emit = on_event,
                               .emit_ctx = &r->seen};
    CHECKF(search_generations(l, &o, &eo, mem, &r->best, &err), "%s", err.text);
    CHECK(r->best.evaluated == 16 && asked_of(&r->model, "planner") == 0);
    CHECK(asked_of(&r->model, "crossover") > 0 && asked_of(&r->model, "coder") > 0);
    CHECK(asked_of(&r->model, "coder") < 12);
    record_free(r->best.record);
    hybrid.release(hybrid.self);
    llm.release(llm.self);
    expert.release(expert.self);
    loop_free(l);
}

static const struct tap_case cases[] = {
    {"phases, and all of a phase at once", test_phases},
    {"the winner is as the aligner has it", test_aligned},
    {"the order of answers does not matter", test_order},
    {"resuming costs no call", test_resume},
    {"an outage at any request", test_outage},
    {"a run is left to history", test_history},
    {"what each candidate took", test_account},
    {"crossover of code", test_code_crossover},
    {"hybrid: seeds by the expert, children by both", test_hybrid},
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
    write_replies();
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
