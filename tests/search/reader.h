/* An evaluator in place of the real one: what becomes of a source stands in the source (`us=12`,
 * `verdict=wrong`, `threads=64`; accepted in 10 us otherwise). Answers come late, the last
 * submitted first. */
#ifndef TESTS_SEARCH_READER_H
#define TESTS_SEARCH_READER_H

#include "base/file.h"
#include "base/hash.h"
#include "eval/eval.h"
#include "tap.h"
#include <unistd.h>

static struct {
    size_t submitted, most; /* most: at a time */
    bool refuse;            /* the next second verification */
} world;

/* A folder whose empty pool wins over the shipped one, so that runs of history can be counted. */
static const char *bare_assets(struct arena *mem) {
    struct err err = {0};
    str dir = arena_printf(mem, "/tmp/reader-%ld-assets", (long)getpid());
    CHECKF(dir_make(arena_printf(mem, "%s/history", dir.p).p, &err) &&
               file_replace(arena_printf(mem, "%s/history/pool.jsonl", dir.p).p, S(""), &err),
           "%s", err.text);
    return dir.p;
}

enum { READER_MOST = 64 };

struct evaluator {
    struct loop *loop;
    evaluator_done_fn *done;
    void *ctx;
    uint64_t timer;
    struct {
        evaluator_done_fn *done;
        void *ctx;
        bool again; /* a second verification */
        uint64_t id;
        char *source;
    } open[READER_MOST];
    size_t n;
};

struct evaluator *evaluator_new(struct loop *l, const struct evaluator_options *o,
                                evaluator_done_fn *done, evaluator_broken_fn *broken, void *ctx,
                                struct err *err) {
    (void)err, (void)broken, (void)o;
    struct evaluator *e = mem_alloc(sizeof *e);
    e->loop = l;
    e->done = done;
    e->ctx = ctx;
    return e;
}

void evaluator_abandon(struct evaluator *e) {
    loop_timer_cancel(e->loop, e->timer);
    e->timer = 0;
    while (e->n)
        mem_free(e->open[--e->n].source);
}

void evaluator_free(struct evaluator *e) {
    evaluator_abandon(e);
    mem_free(e);
}

bool evaluator_broken(const struct evaluator *e) {
    (void)e;
    return false;
}

static const char *word_after(const char *source, const char *key, char out[32]) {
    const char *at = strstr(source, key);
    if (!at)
        return NULL;
    snprintf(out, 32, "%.*s", (int)strcspn(at + strlen(key), " \n"), at + strlen(key));
    return out;
}

static enum verdict reader_verdict(const char *source) {
    char word[32];
    enum verdict v = VERDICT_ACCEPTED;
    if (word_after(source, "verdict=", word))
        BUG_IF(!verdict_find(str_view(word), &v));
    return v;
}

static struct record *reader_record(const char *source) {
    char word[32], hex[65];
    enum verdict v = reader_verdict(source);
    struct record *r = record_new(v, v == VERDICT_ACCEPTED ? S("") : S("kernel.cu:2: this is why"));
    r->shape = S("R=3 C=5");
    r->data = S("signed");
    digest_hex(sha256_of(str_view(source)), hex);
    r->source_sha256 = arena_str(r->mem, str_view(hex));
    double us = 10;
    if (word_after(source, "us=", word))
        str_to_f64(str_view(word), &us);
    fields_set(r, time_s, us * 1e-6);
    r->kernels = arena_new_of(r->mem, struct record_kernel);
    r->kernels[r->nkernels++] = (struct record_kernel){.name = S("k"), .registers = 77};
    int64_t threads = 0;
    if (word_after(source, "threads=", word) && str_to_i64(str_view(word), &threads)) {
        r->launches = arena_new_of(r->mem, struct record_launch);
        r->launches[r->nlaunches++] = (struct record_launch){.kernel = S("k"),
                                                             .grid = {1, 1, 1},
                                                             .block = {(uint32_t)threads, 1, 1},
                                                             .cluster = {1, 1, 1}};
    }
    return r;
}

static void reader_answer(void *ctx) {
    struct evaluator *e = ctx;
    char *source = e->open[--e->n].source;
    uint64_t id = e->open[e->n].id;
    evaluator_done_fn *done = e->open[e->n].done;
    void *to = e->open[e->n].ctx;
    struct record *r = reader_record(source);
    if (e->open[e->n].again && world.refuse) {
        world.refuse = false;
        record_set_verdict(r, VERDICT_UNSTABLE, S(""));
    }
    mem_free(source);
    e->timer = e->n ? loop_timer(e->loop, 1, reader_answer, e) : 0;
    done(to, id, outcome_of(r));
}

unsigned evaluator_workers(const struct evaluator_options *o) {
    (void)o;
    return 1;
}

size_t evaluator_capacity(const struct evaluator *e) {
    (void)e;
    return 1;
}

static void reader_submit(struct evaluator *e, evaluator_done_fn *done, void *ctx, uint64_t id,
                          bool again, str source) {
    char *copy = mem_alloc(source.n + 1);
    memcpy(copy, source.p, source.n);
    e->open[e->n].done = done;
    e->open[e->n].ctx = ctx;
    e->open[e->n].again = again;
    e->open[e->n].id = id;
    e->open[e->n++].source = copy;
    world.submitted++;
    world.most = e->n > world.most ? e->n : world.most;
    if (!e->timer)
        e->timer = loop_timer(e->loop, 1, reader_answer, e);
}

void evaluator_submit(struct evaluator *e, uint64_t id, str file, str source) {
    (void)file;
    reader_submit(e, e->done, e->ctx, id, false, source);
}

void evaluator_submit_again(struct evaluator *e, str file, str source, evaluator_done_fn *done,
                            void *ctx) {
    (void)file;
    reader_submit(e, done, ctx, 0, true, source);
}

#endif
