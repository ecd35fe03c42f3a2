/* Comparison on a sample of tiles: where they lie, and what is found in them. */
#include "eval/poison_value.h"
#include "eval/tiles.h"

#include "tap.h"

#include <string.h>

static const char task_text[] = "task t \"t\"\n"
                                "dim R = 70, C = 300, K = 9\n"
                                "in a[R,K] : f32 ~ normal(0,1)\n"
                                "in b[K,C] : f32 ~ normal(0,1)\n"
                                "out y[R,C] : f32\n"
                                "out top[R,C] : bool\n"
                                "y[i,j] = sum(k) a[i,k] * b[k,j]\n"
                                "top[i,j] = a[i,0] > b[0,j]\n";

#define KEY 99

struct world {
    struct arena *a;
    struct inst *in;
    struct data_scale scale;
    struct reference *refs;
    size_t nrefs;
    char *got[TASK_MAX_TENSORS];
    bool fails;
};

static bool fetch(void *ctx, size_t tensor, int64_t first, size_t count, void *dst,
                  struct err *err) {
    const struct world *w = ctx;
    size_t bytes = dtype_info(w->in->task->tensors[tensor].dtype)->bytes;
    CHECK(first >= 0 && first + (int64_t)count <= w->in->tensors[tensor].count);
    memcpy(dst, w->got[tensor] + (size_t)first * bytes, count * bytes);
    return !w->fails || err_set(err, ERR_ENV, "no GPU");
}

/* Outputs as they should be. */
static struct world world_new(void) {
    struct world w = {.a = arena_new(64u << 20)};
    struct err err = {0};
    struct task *t;
    const void *inputs[TASK_MAX_TENSORS] = {0};
    bool ok = task_parse(S("t.task"), str_view(task_text), w.a, &t, &err) &&
              task_bind(t, NULL, 0, w.a, &w.in, &err) && data_scale_find(w.in, 5, &w.scale, &err);
    CHECKF(ok, "%s", err.text);
    for (size_t i = 0; ok && i < t->ntensors; i++) {
        w.got[i] = arena_alloc(w.a, w.in->tensors[i].bytes, 16);
        if (tensor_is_input(&t->tensors[i]))
            data_fill(w.in, &w.scale, i, DATA_SIGNED, 5, 0, w.in->tensors[i].count, w.got[i]);
        inputs[i] = w.got[i];
    }
    ok = ok && reference_eval(w.in, inputs, 1, &w.refs, &w.nrefs, NULL, &err);
    CHECKF(ok && w.nrefs == 2, "%s", err.text);
    for (size_t i = 0; ok && i < w.nrefs; i++)
        for (size_t k = 0; k < w.refs[i].count; k++)
            if (t->tensors[w.refs[i].tensor].dtype == DTYPE_F32)
                ((float *)w.got[w.refs[i].tensor])[k] = (float)w.refs[i].value[k];
            else
                ((uint8_t *)w.got[w.refs[i].tensor])[k] = w.refs[i].value[k] != 0;
    return w;
}

static void world_free(struct world *w) {
    reference_release(w->refs, w->nrefs);
    arena_free(w->a);
}

static struct ruling judge(struct world *w, uint64_t draw, bool *ok) {
    struct ruling r = {.mem = w->a};
    struct tiles_case c = {w->in, &w->scale, DATA_SIGNED, 5, KEY, draw, 1};
    struct err err = {0};
    ruling_next(&r);
    *ok = tiles_judge(&c, fetch, w, &r, &err);
    return r;
}

static void right_outputs_pass(void) {
    struct world w = world_new();
    bool ok;
    struct ruling r = judge(&w, 1, &ok);
    CHECKF(ok && r.say.verdict == VERDICT_ACCEPTED, "%s", r.why);
    CHECK(r.say.judged > 1000 && r.say.judged < 70 * 300 * 2 && !r.say.skipped);
    w.fails = true;
    judge(&w, 1, &ok);
    CHECK(!ok);
    world_free(&w);
}

static bool covers(const struct part *p, int64_t i, int64_t j) {
    return i >= p->lo[0] && i < p->lo[0] + p->n[0] && j >= p->lo[1] && j < p->lo[1] + p->n[1];
}

static void the_first_and_the_last_are_among_them(void) {
    struct world w = world_new();
    struct part one[TILES_MOST], other[TILES_MOST];
    bool first = false, last = false;
    size_t n = tiles_draw(w.in, 2, 7, one);
    CHECK(n == TILES_MOST && tiles_draw(w.in, 2, 8, other) == n);
    for (size_t i = 0; i < n; i++) {
        first |= covers(&one[i], 0, 0);
        last |= covers(&one[i], 69, 299);
        CHECK(one[i].lo[0] >= 0 && one[i].lo[0] + one[i].n[0] <= 70 && one[i].n[0] > 0);
        CHECK(one[i].lo[1] >= 0 && one[i].lo[1] + one[i].n[1] <= 300 && one[i].n[1] > 0);
    }
    CHECK(first && last && memcmp(one, other, sizeof one) != 0);
    world_free(&w);
}

/* A row that is wrong is found by some keys; everything wrong by all. */
static void what_is_wrong_is_found(void) {
    struct world w = world_new();
    float *y = (float *)w.got[2];
    size_t found = 0;
    bool ok;
    for (size_t j = 0; j < 300; j++)
        y[35 * 300 + j] += 3;
    for (uint64_t key = 1; key <= 20; key++)
        found += judge(&w, key, &ok).say.verdict == VERDICT_WRONG;
    CHECKF(found > 2 && found < 20, "%zu", found);
    for (size_t i = 0; i < 70 * 300; i++)
        y[i] = y[i] * 1.01f + 1;
    struct ruling r = judge(&w, 1, &ok);
    CHECKF(ok && r.say.verdict == VERDICT_WRONG && strstr(r.why, "y["), "%s", r.why);
    world_free(&w);
}

static void what_is_not_written_is_found(void) {
    struct world w = world_new();
    bool ok;
    for (size_t i = 0; i < 70 * 300; i++) {
        uint64_t poison = poison_pattern(DTYPE_F32, KEY, i);
        memcpy(w.got[2] + 4 * i, &poison, 4);
    }
    CHECK(judge(&w, 1, &ok).say.verdict == VERDICT_UNWRITTEN);
    world_free(&w);
    w = world_new();
    for (size_t i = 0; i < 70 * 300; i++)
        w.got[3][i] = poison_pattern(DTYPE_BOOL, KEY, i) % 256 == 7 ? 8 : 7;
    struct ruling r = judge(&w, 1, &ok);
    CHECKF(r.say.verdict == VERDICT_WRONG && strstr(r.why, "0 or 1"), "%s", r.why);
    world_free(&w);
}

static const struct tap_case cases[] = {
    {"right outputs pass", right_outputs_pass},
    {"the first and the last tile are among them", the_first_and_the_last_are_among_them},
    {"what is wrong is found", what_is_wrong_is_found},
    {"what is not written is found", what_is_not_written_is_found},
};

int main(void) {
    return tap_main(cases, sizeof cases / sizeof *cases);
}
