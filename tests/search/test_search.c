/* The driver: order of consumption, resuming, budgets, refusals. The evaluator is this file's own,
 * linked in place of the real one: it answers late and out of order, with times that follow from
 * the source. */
#include "origins.h"

#include "archive/calls.h"
#include "archive/history.h"
#include "base/file.h"
#include "base/hash.h"
#include "search/search.h"
#include "tap.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- an evaluator that scrambles ---- */

static struct {
    unsigned slow_ms;       /* of every answer */
    unsigned slow_first_ms; /* … and of the first candidate's */
    bool broken;            /* after a few */
    bool no_second;         /* second verifications end the evaluator */
    size_t unjudged;        /* so many answers from the third on say nothing of the candidate */
    size_t submitted;       /* since the case began */
    size_t refuse;          /* so many second verifications */
    size_t short_of_memory; /* … say nothing of the candidate */
    bool gpu;               /* the run is on a GPU, and the simulator does not start */
} world;

struct evaluator {
    struct loop *loop;
    evaluator_done_fn *done;
    evaluator_broken_fn *broken;
    void *ctx;
    bool dead;
    struct open_job *jobs;
};
struct open_job {
    struct evaluator *e;
    struct open_job *next;
    evaluator_done_fn *done;
    void *ctx;
    bool again; /* a second verification */
    uint64_t id, timer;
    digest source;
};

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err) {
    if (o->watch) {
        err_set(err, ERR_ENV, "no simulator");
        return NULL;
    }
    struct evaluator *e = mem_alloc(sizeof *e);
    *e = (struct evaluator){l, done, broken, ctx, false, NULL};
    return e;
}

static void drop(struct open_job *j) {
    struct open_job **at = &j->e->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    mem_free(j);
}

void evaluator_abandon(struct evaluator *e) {
    while (e->jobs) {
        loop_timer_cancel(e->loop, e->jobs->timer);
        drop(e->jobs);
    }
}

void evaluator_free(struct evaluator *e) {
    if (!e)
        return;
    evaluator_abandon(e);
    mem_free(e);
}

bool evaluator_broken(const struct evaluator *e) {
    return e->dead;
}

static void answer(void *ctx) {
    struct open_job *j = ctx;
    enum verdict v = j->source.b[0] >= 40 ? VERDICT_ACCEPTED : VERDICT_WRONG;
    if (j->again && world.refuse) {
        world.refuse--;
        v = VERDICT_WRONG;
    }
    if (j->again && world.short_of_memory) {
        world.short_of_memory--;
        v = world.short_of_memory % 2 ? VERDICT_UNJUDGED : VERDICT_OUT_OF_MEMORY;
    }
    if (!j->again && j->id >= 2 && j->id - 2 < world.unjudged)
        v = VERDICT_UNJUDGED;
    struct record *r = record_new(v, v == VERDICT_ACCEPTED   ? S("")
                                     : v == VERDICT_UNJUDGED ? S("out of memory")
                                                             : S("it is off by one"));
    fields_set(r, estimated, true);
    fields_set(r, time_s, 1e-5 + j->source.b[1] * 1e-7 + j->source.b[2] * 1e-9);
    struct outcome *o = outcome_of(r);
    struct open_job done = *j;
    drop(j);
    done.done(done.ctx, done.id, o);
}

static void fall_over(void *ctx) {
    struct open_job *j = ctx;
    struct err why = {0};
    struct evaluator *e = j->e;
    drop(j);
    e->dead = true;
    err_set(&why, ERR_ENV, "no worker starts");
    e->broken(e->ctx, &why);
}

unsigned evaluator_workers(const struct evaluator_options *o) {
    return o->workers ? o->workers : 2;
}

size_t evaluator_capacity(const struct evaluator *e) {
    (void)e;
    return 2;
}

static void submit(struct open_job job, str source) {
    struct open_job *j = mem_alloc(sizeof *j);
    *j = job;
    j->source = sha256_of(source);
    j->next = j->e->jobs;
    j->e->jobs = j;
    bool broken = (world.broken && ++world.submitted > 4) || (world.no_second && j->again);
    world.submitted += !world.broken;
    unsigned ms =
        world.slow_ms + j->source.b[3] % 8 + (j->again || j->id ? 0 : world.slow_first_ms);
    j->timer = loop_timer(j->e->loop, ms, broken ? fall_over : answer, j);
}

void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source) {
    (void)file;
    submit((struct open_job){.e = e, .done = e->done, .ctx = e->ctx, .id = id}, source);
}

void evaluator_submit_again(struct evaluator *e, str file, str source, evaluator_done_fn *done,
                            void *ctx) {
    (void)file;
    submit((struct open_job){.e = e, .done = done, .ctx = ctx, .again = true}, source);
}

/* ---- a run ---- */

static struct arena *mem;
static struct err err;
static struct catalogue *c;
static struct briefing brief;
static struct agent expert;

enum { MOST = 400 };
struct seen {
    char line[MOST][256]; /* ordinal, strategy, verdict, time of CANDIDATE events */
    size_t n, notes, bests, replayed, generations, ends;
    size_t interrupt_at; /* 0: never */
    sig_atomic_t interrupted;
};

static void on_event(void *ctx, const struct event *e) {
    struct seen *s = ctx;
    s->notes += e->kind == EVENT_NOTE;
    s->bests += e->kind == EVENT_BEST;
    s->generations += e->kind == EVENT_GENERATION;
    s->ends += e->kind == EVENT_END;
    if (e->kind != EVENT_CANDIDATE)
        return;
    CHECK(e->ordinal == s->n && e->done == s->n + 1);
    s->replayed += e->replayed;
    snprintf(s->line[s->n++], sizeof s->line[0], "%zu %.*s %s %g", (size_t)e->ordinal,
             STR_ARG(e->strategy), verdict_name(e->verdict), e->time_s);
    if (s->n == s->interrupt_at)
        s->interrupted = true;
}

static struct search_options options(struct seen *s, uint64_t candidates) {
    return (struct search_options){.briefing = &brief,
                                   .agent = &expert,
                                   .budget = {.candidates = candidates},
                                   .seed = 42,
                                   .population = 8,
                                   .plateau = 100,
                                   .interrupted = &s->interrupted,
                                   .emit = on_event,
                                   .emit_ctx = s};
}

static bool search(const struct search_options *o, struct search_best *best) {
    struct evaluator_options eo = {.device.kind = world.gpu ? DEVICE_CUDA : DEVICE_SIM,
                                   .device.text = "cuda:0"};
    struct loop *l = loop_new(&err);
    err = (struct err){0};
    bool ok = search_evolve(l, o, &eo, mem, best, &err);
    loop_free(l);
    return ok;
}

static struct archive *archive_at(const char *dir) {
    struct archive *a = NULL;
    json *j = json_object();
    CHECKF(archive_open(dir, j, false, &a, &err), "%s", err.text);
    json_free(j);
    return a;
}

static bool same_run(const struct seen *a, const struct seen *b) {
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = strcmp(a->line[i], b->line[i]) == 0;
    return same;
}

static void test_plain(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 50);
    struct search_best best;
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(s->n == 50 && best.evaluated == 50 && best.replayed == 0);
    CHECK(world.submitted == 51); /* the winner once more */
    CHECK(best.found && !strcmp(best.stopped, "budget") && s->ends == 1);
    CHECK(s->generations == 7 && s->bests > 0);
    CHECK(isfinite(best.time_s) && best.source.n > 100 && best.record);
    CHECK(best.record->accepted && best.record->time_s == best.time_s);
    record_free(best.record);
}

/* ---- what the code has ---- */

/* An expert whose code has vectors of one element, whatever it was asked for. */
static void align_to_one(void *self, const struct briefing *b, const struct strategy *s,
                         const struct strategy *written, const struct record *record,
                         agent_plan_fn *done, void *ctx) {
    (void)self, (void)written, (void)record;
    struct strategy one = *s;
    CHECK(strategy_put(b->catalogue, &one, "vector-width", 1));
    done(ctx, &one, 1, S(""), NULL);
}

static void count_aligned(void *ctx, const struct archive_candidate *kept, struct record *record,
                          const struct err *why) {
    size_t *n = ctx;
    bool one = str_find(kept->strategy, S("vector-width=1")) < kept->strategy.n;
    n[0]++;
    n[1] += one;
    CHECKF(record, "%s", why->text);
    CHECK(one || !record->accepted);
    record_free(record);
}

/* It is what is shown, kept, given back and credited. */
static void test_aligned(void) {
    struct seen *s = arena_new_of(mem, struct seen), *again = arena_new_of(mem, struct seen);
    str dir = arena_printf(mem, "/tmp/search-%ld-aligned", (long)getpid());
    struct agent aligning = expert;
    struct search_best best;
    size_t kept[2] = {0}, accepted = 0;
    aligning.align = align_to_one;
    struct search_options o = options(s, 40);
    o.agent = &aligning;
    o.archive = archive_at(dir.p);
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(best.found && strategy_get(c, &best.strategy, "vector-width") == 1);
    CHECKF(str_find(best.worth, S("vector-width")) == best.worth.n, "%.*s", STR_ARG(best.worth));
    for (size_t i = 0; i < s->n; i++) {
        bool is_accepted = strstr(s->line[i], " accepted ");
        accepted += is_accepted;
        CHECKF(!is_accepted || strstr(s->line[i], "vector-width=1 "), "%s", s->line[i]);
    }
    CHECK(archive_each_candidate(o.archive, count_aligned, kept, &err) && kept[0] == 40);
    CHECKF(accepted > 10 && kept[1] >= accepted, "%zu of %zu", kept[1], accepted);
    struct origins from = origins_in(dir.p);
    CHECKF(from.n == 40 && from.by_plan > 2 && from.by_crossover > 0, "%zu planned, %zu children",
           from.by_plan, from.by_crossover);
    record_free(best.record);
    o.emit_ctx = again;
    CHECK(search(&o, &best) && best.replayed == 40 && same_run(s, again));
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

/* A coder that makes two elements of any vector, and an aligner that believes it. */
static void code_with_two(void *self, const struct briefing *b, const struct strategy *s,
                          agent_code_fn *done, void *ctx) {
    (void)self;
    struct strategy two = *s;
    struct buf text;
    buf_init(&text, 8192);
    strategy_text(b->catalogue, s, &text);
    CHECK(strategy_put(b->catalogue, &two, "vector-width", 2));
    done(ctx, buf_str(&text), &two, NULL);
    buf_release(&text);
}

static void align_as_written(void *self, const struct briefing *b, const struct strategy *s,
                             const struct strategy *written, const struct record *record,
                             agent_plan_fn *done, void *ctx) {
    (void)self, (void)b, (void)s, (void)record;
    done(ctx, written, 1, S(""), NULL);
}

/* What the writer made of a strategy travels with the candidate to the aligner. */
static void test_written(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct agent writing = expert;
    struct search_best best;
    struct search_options o = options(s, 20);
    writing.code = code_with_two;
    writing.align = align_as_written;
    o.agent = &writing;
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(best.found && strategy_get(c, &best.strategy, "vector-width") == 2);
    for (size_t i = 0; i < s->n; i++)
        CHECKF(!strstr(s->line[i], " accepted ") || strstr(s->line[i], "vector-width=2 "), "%s",
               s->line[i]);
    record_free(best.record);
}

/* With one candidate there is nothing to compare. */
static void test_alone(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 1);
    struct search_best best;
    CHECKF(search(&o, &best), "%s", err.text);
    CHECKF(best.evaluated == 1 && best.worth.n == 0, "%.*s", STR_ARG(best.worth));
    record_free(best.record);
}

/* The two fastest fail when they are verified again: the third wins, also when it is asked again.
 */
static void test_winner_must_hold(void) {
    struct seen *s = arena_new_of(mem, struct seen), *t = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 30);
    struct search_best first, third, again;
    CHECKF(search(&o, &first), "%s", err.text);
    str dir = arena_printf(mem, "/tmp/search-%ld-winner", (long)getpid());
    o = options(t, 30);
    o.archive = archive_at(dir.p);
    world.refuse = 2;
    CHECKF(search(&o, &third), "%s", err.text);
    CHECK(world.refuse == 0 && t->notes == s->notes + 2 && third.found);
    CHECK(third.ordinal != first.ordinal && third.time_s >= first.time_s);
    CHECK(third.record->confirmed && third.record->confirmed->accepted);
    archive_close(o.archive);
    o.archive = archive_at(dir.p);
    t->n = world.submitted = 0;
    CHECKF(search(&o, &again), "%s", err.text);
    CHECK(again.ordinal == third.ordinal && world.submitted == 0);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(first.record);
    record_free(third.record);
    record_free(again.record);
}

/* Interrupted after each number of candidates in turn, and gone on with: the same run. */
static void test_resume(void) {
    struct seen *whole = arena_new_of(mem, struct seen);
    struct search_options o = options(whole, 30);
    struct search_best best, again;
    CHECK(search(&o, &best));
    for (size_t k = 1; k < 30; k += 4) {
        str dir = arena_printf(mem, "/tmp/search-%ld-%zu", (long)getpid(), k);
        struct seen *part = arena_new_of(mem, struct seen), *rest = arena_new_of(mem, struct seen);
        struct search_best cut;
        part->interrupt_at = k;
        o = options(part, 30);
        o.archive = archive_at(dir.p);
        CHECK(search(&o, &cut) && !strcmp(cut.stopped, "interrupted") && part->n == k);
        record_free(cut.record);
        archive_close(o.archive);
        o = options(rest, 30);
        o.archive = archive_at(dir.p);
        CHECKF(search(&o, &again), "%s", err.text);
        CHECKF(same_run(whole, rest), "after %zu", k);
        CHECK(rest->replayed >= k && again.replayed == rest->replayed);
        CHECK(again.ordinal == best.ordinal && again.time_s == best.time_s);
        CHECK(str_eq(again.source, best.source) && again.naive_s == best.naive_s);
        record_free(again.record);
        CHECK(archive_count(o.archive) == 30);
        size_t before = world.submitted;
        *rest = (struct seen){0};
        CHECK(search(&o, &again) && world.submitted == before); /* all of it is known */
        record_free(again.record);
        archive_close(o.archive);
        CHECK(dir_remove_tree(dir.p, &err));
    }
    record_free(best.record);
}

static size_t lines_of(const char *path) {
    str text = {0};
    size_t n = 0;
    if (file_exists(path))
        CHECK(file_read(path, 1 << 20, mem, &text, &err));
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* A folder whose empty pool wins over the shipped one, so that runs can be counted. */
static str bare_assets(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-assets", (long)getpid());
    CHECK(dir_make(arena_printf(mem, "%s/history", dir.p).p, &err) &&
          file_replace(arena_printf(mem, "%s/history/pool.jsonl", dir.p).p, S(""), &err));
    return dir;
}

/* A run adds itself to the pool, once; the next begins with it; one that is resumed begins with
 * what it began with, whatever the pool has become; one that is interrupted adds nothing. */
static void test_history(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-history", (long)getpid());
    str pool = arena_printf(mem, "/tmp/search-%ld-pool", (long)getpid());
    struct seen *cold = arena_new_of(mem, struct seen), *warm = arena_new_of(mem, struct seen),
                *part = arena_new_of(mem, struct seen), *rest = arena_new_of(mem, struct seen);
    str assets = bare_assets();
    struct search_options o = options(cold, 30);
    struct search_best best;
    o.assets = assets.p;
    o.pool = pool.p;
    CHECKF(search(&o, &best) && best.precedents == 0, "%s", err.text);
    record_free(best.record);
    CHECK(lines_of(pool.p) == 1);
    str old;
    CHECK(file_read(pool.p, 1 << 20, mem, &old, &err));
    o = options(warm, 30);
    o.assets = assets.p;
    o.pool = pool.p;
    CHECK(search(&o, &best) && best.precedents == 1 && !same_run(cold, warm));
    record_free(best.record);
    CHECK(lines_of(pool.p) == 2);
    CHECK(file_replace(pool.p, old, &err));
    part->interrupt_at = 11;
    o = options(part, 30);
    o.assets = assets.p;
    o.pool = pool.p;
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && !strcmp(best.stopped, "interrupted") && lines_of(pool.p) == 1);
    record_free(best.record);
    archive_close(o.archive);
    CHECK(file_replace(pool.p, S(""), &err));
    o = options(rest, 30);
    o.assets = assets.p;
    o.pool = pool.p;
    o.archive = archive_at(dir.p);
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(same_run(warm, rest) && best.precedents == 1 && lines_of(pool.p) == 1);
    record_free(best.record);
    *rest = (struct seen){0};
    CHECK(search(&o, &best) && lines_of(pool.p) == 1);
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err) && dir_remove_tree(assets.p, &err) && unlink(pool.p) == 0);
}

/* A pool that cannot be written, or not be read, is said, and the run is as good. */
static void test_bad_pool(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 10);
    struct search_best best;
    o.pool = "/proc/no/pool";
    CHECKF(search(&o, &best) && best.found && s->notes == 1, "%s", err.text);
    record_free(best.record);
    str pool = arena_printf(mem, "/tmp/search-%ld-bad", (long)getpid());
    CHECK(file_replace(pool.p, S("nonsense\n"), &err));
    o.pool = pool.p;
    *s = (struct seen){0};
    CHECKF(search(&o, &best) && best.found && s->notes == 1, "%s, %zu notes", err.text, s->notes);
    CHECK(lines_of(pool.p) == 2 && unlink(pool.p) == 0);
    record_free(best.record);
}

/* Other ways to search end as they should; random search takes no history. */
static void test_ways(void) {
    struct seen *s = arena_new_of(mem, struct seen), *t = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 30);
    struct search_best best;
    o.method = SEARCH_RANDOM;
    CHECK(search(&o, &best) && s->n == 30 && !strcmp(best.stopped, "budget"));
    record_free(best.record);
    o = options(t, 0);
    o.method = SEARCH_ONCE;
    CHECK(search(&o, &best) && t->n > 4 && t->n <= 8 && !strcmp(best.stopped, "plan"));
    record_free(best.record);
    CHECK(!same_run(s, t));
}

static void test_killed(void) {
    struct seen *whole = arena_new_of(mem, struct seen), *rest = arena_new_of(mem, struct seen);
    struct search_options o = options(whole, 40);
    struct search_best best;
    CHECK(search(&o, &best));
    record_free(best.record);
    str dir = arena_printf(mem, "/tmp/search-%ld-killed", (long)getpid());
    world.slow_ms = 5;
    fflush(stdout);
    for (int round = 0; round < 4; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            o = options(arena_new_of(mem, struct seen), 40);
            o.archive = archive_at(dir.p);
            search(&o, &best);
            _exit(0);
        }
        usleep(15000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    world.slow_ms = 0;
    o = options(rest, 40);
    o.archive = archive_at(dir.p);
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(same_run(whole, rest));
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

static void test_time(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-time", (long)getpid());
    struct seen *first = arena_new_of(mem, struct seen), *again = arena_new_of(mem, struct seen);
    struct search_best best;
    struct search_options o = options(first, 0);
    o.budget.ms = 300;
    o.archive = archive_at(dir.p);
    world.slow_ms = 20;
    CHECK(search(&o, &best) && !strcmp(best.stopped, "budget"));
    /* How many there are is for the machine's load to say. */
    CHECKF(first->n >= 1 && first->n < 320, "%zu", first->n);
    record_free(best.record);
    archive_close(o.archive);
    size_t before = world.submitted;
    o = options(again, 0);
    o.budget.ms = 300;
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && !strcmp(best.stopped, "budget"));
    CHECK(same_run(first, again) && world.submitted == before);
    record_free(best.record);
    archive_close(o.archive);
    /* More time: it goes on. */
    struct seen *more = arena_new_of(mem, struct seen);
    o = options(more, 0);
    o.budget.ms = 900;
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && !strcmp(best.stopped, "budget") && more->n > first->n);
    CHECK(world.submitted > before);
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

/* ---- whatever ends a run, the best so far is handed over ---- */

static struct {
    size_t n;
    double time_s;
} kept;

static void on_kept(void *ctx, str source, const struct record *r) {
    (void)ctx;
    CHECK(source.n && r->accepted && (!kept.n || r->time_s < kept.time_s));
    kept.n++;
    kept.time_s = r->time_s;
}

/* Nothing is accepted when it breaks, because the first answers are wrong: an error. */
static void test_broken(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 50);
    struct search_best best;
    world.broken = true;
    world.submitted = 4;
    CHECK(!search(&o, &best) && err.kind == ERR_ENV && !strcmp(err.text, "no worker starts"));
    CHECK(s->ends == 1 && !best.record && !best.found);
}

static void test_broken_later(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 50);
    struct search_best best;
    o.keep_best = on_kept;
    kept.n = 0;
    world.broken = true;
    CHECKF(search(&o, &best), "%s", err.text);
    CHECK(best.found && !strcmp(best.stopped, "failed") &&
          str_is(best.failure, "no worker starts"));
    CHECK(best.record && !best.record->confirmed && best.record->unconfirmed_why.n);
    CHECK(kept.n && kept.time_s == best.time_s && s->ends == 1);
    record_free(best.record);
}

/* The search is over, and then nobody can verify its winner again. */
static void test_unconfirmed(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 12);
    struct search_best best;
    world.no_second = true;
    CHECK(search(&o, &best) && best.found && best.failure.n && best.evaluated == 12);
    CHECK(str_is(best.record->unconfirmed_why, "no worker starts"));
    record_free(best.record);
    sig_atomic_t hurry = 1;
    o = options(arena_new_of(mem, struct seen), 12);
    o.hurry = &hurry;
    CHECK(search(&o, &best) && best.found && !best.failure.n);
    CHECK(str_is(best.record->unconfirmed_why, "it was interrupted"));
    record_free(best.record);
}

/* The memory does not suffice to verify the fastest a second time: the next fastest is verified. */
static void test_passed_by(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(arena_new_of(mem, struct seen), 30);
    struct search_best fastest, best;
    CHECK(search(&o, &fastest));
    o = options(s, 30);
    world.short_of_memory = 2;
    CHECK(search(&o, &best) && best.found && !best.failure.n && s->notes >= 2);
    CHECK(best.ordinal != fastest.ordinal && best.time_s >= fastest.time_s);
    CHECK(best.record->confirmed && !best.record->unconfirmed_why.n);
    record_free(best.record);
    /* None of them: the fastest after all, labelled. The same command tries it again. */
    str dir = arena_printf(mem, "/tmp/search-%ld-memory", (long)getpid());
    o = options(arena_new_of(mem, struct seen), 30);
    o.archive = archive_at(dir.p);
    world.short_of_memory = 3;
    CHECK(search(&o, &best) && best.ordinal == fastest.ordinal && !best.record->confirmed);
    CHECKF(str_find(best.record->unconfirmed_why, S("out-of-memory: ")) == 0, "%.*s",
           STR_ARG(best.record->unconfirmed_why));
    CHECK(best.failure.n && world.short_of_memory == 0);
    record_free(best.record);
    archive_close(o.archive);
    o = options(arena_new_of(mem, struct seen), 30);
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.ordinal == fastest.ordinal && best.record->confirmed);
    CHECK(!best.failure.n && best.replayed == 30);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(best.record);
    record_free(fastest.record);
}

/* A run that is gone on with and stopped before it has replayed what it knows: what the archive has
 * is handed over all the same. */
static void test_stopped_at_once(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-at-once", (long)getpid());
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(arena_new_of(mem, struct seen), 20);
    struct search_best best, again;
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.found);
    archive_close(o.archive);
    o = options(s, 0);
    o.archive = archive_at(dir.p);
    s->interrupted = true;
    world.submitted = 0;
    CHECKF(search(&o, &again) && again.found && again.ordinal == best.ordinal, "%s", err.text);
    CHECK(s->n == 0 && again.replayed > 0 && world.submitted == 0 && again.record->confirmed);
    CHECK(again.time_s == best.time_s && str_eq(again.source, best.source));
    CHECK(strategy_equal(c, &again.strategy, &best.strategy));
    record_free(again.record);
    archive_close(o.archive);
    o = options(arena_new_of(mem, struct seen), 0);
    o.archive = archive_at(dir.p);
    o.budget.ms = 1; /* and one whose time was up before it began */
    CHECK(search(&o, &again) && again.found && again.ordinal == best.ordinal);
    record_free(again.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
    record_free(best.record);
}

/* Verified a second time, and then the simulator is not to be had. */
static void test_unwatched(void) {
    struct search_options o = options(arena_new_of(mem, struct seen), 12);
    struct search_best best;
    world.gpu = true;
    CHECK(search(&o, &best) && best.found && best.record->confirmed);
    CHECKF(!best.record->unconfirmed_why.n, "%.*s", STR_ARG(best.record->unconfirmed_why));
    CHECK(str_is(best.record->unwatched_why, "no simulator") &&
          str_is(best.failure, "no simulator"));
    record_free(best.record);
}

/* What rejects the winner when the run is over: the run that is gone on with has another. */
static void test_refused_later(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-refused", (long)getpid());
    struct search_options o = options(arena_new_of(mem, struct seen), 12);
    struct search_best best;
    struct record *wrong = record_new(VERDICT_WRONG, S("it is off by one now and then"));
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.found);
    uint64_t ordinal = best.ordinal;
    double time_s = best.time_s;
    record_free(best.record);
    CHECK(search_refuse(o.archive, ordinal, wrong, &err));
    record_free(wrong);
    archive_close(o.archive);
    o = options(arena_new_of(mem, struct seen), 12);
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.found && best.ordinal != ordinal && best.time_s > time_s);
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

static void test_unjudged(void) {
    struct seen *s = arena_new_of(mem, struct seen), *t = arena_new_of(mem, struct seen),
                *plain = arena_new_of(mem, struct seen), *u = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 40);
    struct search_best best;
    str pool = arena_printf(mem, "/tmp/search-%ld-unjudged-pool", (long)getpid());
    struct history left;
    world.unjudged = 7;
    o.pool = pool.p;
    o.assets = bare_assets().p;
    CHECK(search(&o, &best) && best.found && s->n == 40 && !best.failure.n);
    history_init(&left);
    CHECK(history_load(&left, pool.p, &err) && left.n == 1 && left.runs[0].n == 40 - 7);
    history_release(&left);
    unlink(pool.p);
    CHECK(dir_remove_tree(o.assets, &err));
    CHECKF(strstr(s->line[2], " unjudged "), "%s", s->line[2]);
    record_free(best.record);
    world.unjudged = 8;
    o = options(t, 40);
    str dir = arena_printf(mem, "/tmp/search-%ld-unjudged", (long)getpid());
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.found && t->n < 40);
    CHECK(str_find(best.failure, S("8 candidates in a row")) < best.failure.n);
    record_free(best.record);
    archive_close(o.archive);
    /* The same command goes on: those eight are evaluated again, and what becomes of the search is
     * what would have become of it, also where it was killed on the way there. */
    world.unjudged = 0;
    o = options(plain, 40);
    CHECK(search(&o, &best) && best.found);
    record_free(best.record);
    u->interrupt_at = 20;
    o = options(u, 40);
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best) && best.found);
    record_free(best.record);
    archive_close(o.archive);
    *u = (struct seen){0};
    o = options(u, 40);
    o.archive = archive_at(dir.p);
    CHECKF(search(&o, &best) && best.found && !best.failure.n && best.evaluated == 40, "%.*s",
           STR_ARG(best.failure));
    CHECKF(same_run(plain, u), "%s", u->line[2]);
    CHECK(best.replayed >= 2 && best.replayed < 40);
    record_free(best.record);
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

/* The budget is too short for one candidate: the first that is right is waited for, and known. */
static void test_short_budget(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 0);
    struct search_best best;
    o.budget.ms = 1;
    o.keep_best = on_kept;
    kept.n = 0;
    world.slow_ms = 300;
    CHECK(search(&o, &best) && !strcmp(best.stopped, "budget") && best.found && kept.n);
    CHECKF(best.first_s >= 0.3 && best.first_s < 5 && s->notes >= 1, "%g", best.first_s);
    record_free(best.record);
}

/* The oldest candidate takes long and the others are known: they count. */
static void test_untaken(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 0);
    struct search_best best;
    o.budget.ms = 200;
    world.slow_first_ms = 60000;
    CHECK(search(&o, &best) && !strcmp(best.stopped, "budget"));
    CHECKF(s->n == 0 && best.found && best.evaluated >= 1, "%zu", best.evaluated);
    record_free(best.record);
}

/* ---- a coder that refuses ---- */

static bool refuse_all;
static const char *extra = "";

static void picky_code(void *self, const struct briefing *b, const struct strategy *s,
                       agent_code_fn *done, void *ctx) {
    (void)self;
    struct err why = {0};
    if (refuse_all || strategy_get(b->catalogue, s, "items") >= 4) {
        err_set(&why, ERR_INPUT, "too many items");
        done(ctx, S(""), NULL, &why);
        return;
    }
    struct buf text;
    buf_init(&text, 8192);
    buf_puts(&text, str_view(extra));
    strategy_text(b->catalogue, s, &text);
    done(ctx, buf_str(&text), s, NULL);
    buf_release(&text);
}

static void test_refusing_coder(void) {
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 0);
    struct agent picky = expert;
    struct search_best best;
    picky.code = picky_code;
    o.agent = &picky;
    CHECK(search(&o, &best) && !strcmp(best.stopped, "space"));
    size_t half = (size_t)strategy_space(brief.catalogue, &brief.ground) / 2;
    CHECKF(s->n == half && s->notes == half, "%zu candidates, %zu notes", s->n, s->notes);
    record_free(best.record);
    for (size_t i = 0; i < s->n; i++)
        CHECK(!strstr(s->line[i], "items=4") && !strstr(s->line[i], "items=8"));
    refuse_all = true;
    *s = (struct seen){0};
    o = options(s, 20);
    o.agent = &picky;
    CHECK(!search(&o, &best) && !strcmp(err.text, "too many items") && s->n == 0);
    refuse_all = false;
}

static void test_other_source(void) {
    str dir = arena_printf(mem, "/tmp/search-%ld-other", (long)getpid());
    struct seen *s = arena_new_of(mem, struct seen);
    struct search_options o = options(s, 10);
    struct agent picky = expert;
    struct search_best best;
    picky.code = picky_code;
    o.agent = &picky;
    o.archive = archive_at(dir.p);
    CHECK(search(&o, &best));
    record_free(best.record);
    extra = "// changed\n";
    *s = (struct seen){0};
    CHECK(search(&o, &best) && best.found && best.evaluated);
    CHECK(str_find(best.failure, S("did not replay")) < best.failure.n);
    record_free(best.record);
    extra = "";
    archive_close(o.archive);
    CHECK(dir_remove_tree(dir.p, &err));
}

static void test_event_names(void) {
    CHECK(!strcmp(event_name(EVENT_START), "start") && !strcmp(event_name(EVENT_END), "end"));
    CHECK(!strcmp(event_name(EVENT_COUNT), "unknown"));
}

static void fresh(void (*test)(void)) {
    memset(&world, 0, sizeof world);
    test();
}
#define CASE(f)                                                                                    \
    static void f##_case(void) {                                                                   \
        fresh(f);                                                                                  \
    }
CASE(test_plain)
CASE(test_aligned)
CASE(test_written)
CASE(test_alone)
CASE(test_winner_must_hold)
CASE(test_resume)
CASE(test_killed)
CASE(test_history)
CASE(test_bad_pool)
CASE(test_ways)
CASE(test_time)
CASE(test_broken)
CASE(test_broken_later)
CASE(test_unconfirmed)
CASE(test_passed_by)
CASE(test_stopped_at_once)
CASE(test_unwatched)
CASE(test_refused_later)
CASE(test_unjudged)
CASE(test_short_budget)
CASE(test_untaken)
CASE(test_refusing_coder)
CASE(test_other_source)

static const struct tap_case cases[] = {
    {"a run, consumed in order", test_plain_case},
    {"what the code has is what counts", test_aligned_case},
    {"what the writer made of it is told to the aligner", test_written_case},
    {"one candidate is worth nothing in particular", test_alone_case},
    {"a winner must hold a second time", test_winner_must_hold_case},
    {"interrupted anywhere, resumed, the same run", test_resume_case},
    {"killed, resumed, the same run", test_killed_case},
    {"time ends it, and the same way again", test_time_case},
    {"history begins a run and is archived with it", test_history_case},
    {"pools that cannot be written or read", test_bad_pool_case},
    {"at random, and once", test_ways_case},
    {"a broken evaluator is an error", test_broken_case},
    {"an evaluator that breaks later leaves the best so far", test_broken_later_case},
    {"a winner that nobody could verify again is labelled", test_unconfirmed_case},
    {"a winner that the memory does not suffice for is passed by", test_passed_by_case},
    {"stopped before it has replayed what it knows", test_stopped_at_once_case},
    {"a winner that the simulator did not run is labelled so", test_unwatched_case},
    {"a winner that is rejected later is none", test_refused_later_case},
    {"candidates that could not be judged are set aside", test_unjudged_case},
    {"a budget too short for one candidate", test_short_budget_case},
    {"outcomes that the policy was not given count", test_untaken_case},
    {"strategies that cannot be written are passed over", test_refusing_coder_case},
    {"another source for a recorded ordinal ends the run", test_other_source_case},
    {"names of events", test_event_names},
};

int main(void) {
    mem = arena_new(512u << 20);
    struct task *t;
    struct inst *in;
    if (!catalogue_load(NULL, mem, &c, &err) || !expert_new(NULL, &expert, &err) ||
        !task_parse(S("t"),
                    S("task t \"t\"\ndim N = 99999999\nin x[N] : f32 ~ normal(0,1)\n"
                      "out y[N] : f32\ny[i] = x[i]\n"),
                    mem, &t, &err) ||
        !task_bind(t, NULL, 0, mem, &in, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    brief = (struct briefing){.inst = in, .catalogue = c, .gpu = gpu_at(0)};
    features_of(in, &brief.features);
    brief.ground.workload[WORKLOAD_POINTWISE] = true;
    brief.roofline = (struct roofline){.limit_s = 1e-9, .memory_bound = true};
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    expert.release(expert.self);
    arena_free(mem);
    return rc;
}
