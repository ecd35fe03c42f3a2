#include "eval/tiles.h"

#include "base/rng.h"
#include "eval/poison_value.h"

#include <string.h>

#define ROWS    4
#define COLUMNS 64
#define COST    3e7 /* terms of the reference of one tile */

/* ---- which ---- */

/* The box that ends at the tensor's end or begins at this element, within the tensor. */
static struct part box_at(const struct inst *in, size_t tensor, int64_t element, int64_t rows,
                          int64_t columns) {
    const struct bound_tensor *b = &in->tensors[tensor];
    size_t rank = in->task->tensors[tensor].rank;
    struct part p = {.tensor = tensor};
    for (size_t k = 0; k < rank; k++) {
        int64_t most = k + 1 == rank ? columns : k + 2 == rank ? rows : 1;
        p.n[k] = most < b->extent[k] ? most : b->extent[k];
        p.lo[k] = element / b->stride[k] % b->extent[k];
        if (p.lo[k] > b->extent[k] - p.n[k])
            p.lo[k] = b->extent[k] - p.n[k];
    }
    return p;
}

/* Smaller, where making what is expected of it would take long. */
static struct part affordable(const struct inst *in, size_t tensor, int64_t element) {
    int64_t rows = ROWS, columns = COLUMNS;
    struct part p = box_at(in, tensor, element, rows, columns);
    while (!(part_cost(in, &p) <= COST) && rows * columns > 1) {
        rows = rows > 1 ? rows / 2 : 1;
        columns = columns > 1 ? columns / 2 : 1;
        p = box_at(in, tensor, element, rows, columns);
    }
    return p;
}

size_t tiles_draw(const struct inst *in, size_t tensor, uint64_t key, struct part out[TILES_MOST]) {
    struct rng r = rng_sub(rng_stream(key, S("tiles")), tensor);
    int64_t count = in->tensors[tensor].count;
    size_t n = 0;
    for (; count > 0 && n < TILES_MOST; n++) {
        int64_t at = n == 0 ? 0 : n == 1 ? count - 1 : (int64_t)rng_below(r, n, (uint64_t)count);
        out[n] = affordable(in, tensor, at);
    }
    return n;
}

/* ---- one of them ---- */

struct tile {
    const struct tiles_case *c;
    const struct part *p;
    const struct dtype_info *type;
    char *got;   /* its elements, row after row */
    int64_t *at; /* … and their places in the tensor */
    size_t n;    /* elements */
};

static int64_t element_of(const struct inst *in, const struct part *p, size_t i) {
    const struct bound_tensor *b = &in->tensors[p->tensor];
    int64_t at = 0, rest = (int64_t)i;
    for (size_t k = in->task->tensors[p->tensor].rank; k-- > 0; rest /= p->n[k])
        at += (p->lo[k] + rest % p->n[k]) * b->stride[k];
    return at;
}

static size_t elements_of(const struct inst *in, const struct part *p) {
    size_t n = 1;
    for (size_t k = 0; k < in->task->tensors[p->tensor].rank; k++)
        n *= (size_t)p->n[k];
    return n;
}

/* A stretch along the last dimension at a time. */
static bool fetch_tile(struct tile *t, tiles_fetch_fn *fetch, void *ctx, struct err *err) {
    size_t rank = t->c->in->task->tensors[t->p->tensor].rank, bytes = t->type->bytes;
    size_t run = rank ? (size_t)t->p->n[rank - 1] : 1;
    for (size_t i = 0; i < t->n; i += run)
        if (!fetch(ctx, t->p->tensor, t->at[i], run, t->got + i * bytes, err))
            return false;
    return true;
}

/* Elements that still hold the poison; *first is the lowest. */
static uint64_t poisoned(const struct tile *t, int64_t *first) {
    enum dtype type = t->c->in->task->tensors[t->p->tensor].dtype;
    uint64_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        uint64_t poison = poison_pattern(type, t->c->poison, (uint64_t)t->at[i]);
        if (memcmp(t->got + i * t->type->bytes, &poison, t->type->bytes) != 0)
            continue;
        *first = n && *first < t->at[i] ? *first : t->at[i];
        n++;
    }
    return n;
}

/* Whole numbers may have any bits, so only what is also wrong was not written. */
static bool rule_tile(const struct tile *t, const struct comparison *cmp, struct ruling *r) {
    const struct tensor *of = &t->c->in->task->tensors[t->p->tensor];
    bool whole = t->type->kind == 'i' || t->type->kind == 'u';
    int64_t first = 0;
    uint64_t left = of->role == TENSOR_OUT ? poisoned(t, &first) : 0;
    if (left && (!whole || !cmp->pass))
        return rule_unwritten(r, t->c->in, t->p->tensor, left, first);
    for (size_t i = 0; of->dtype == DTYPE_BOOL && i < t->n; i++)
        if ((uint8_t)t->got[i] > 1)
            return rule_no_bool(r, t->c->in, t->p->tensor, t->at[i], (uint8_t)t->got[i]);
    return rule_values(r, t->c->in, t->p->tensor, cmp);
}

static bool judge_tile(struct tile *t, tiles_fetch_fn *fetch, void *ctx, struct ruling *r,
                       struct err *err) {
    const struct tiles_case *c = t->c;
    struct reference ref;
    struct comparison cmp;
    if (!(part_cost(c->in, t->p) <= COST)) {
        r->say.skipped++;
        return true;
    }
    if (!fetch_tile(t, fetch, ctx, err) ||
        !part_reference(c->in, c->scale, c->data, c->seed, t->p, c->threads, &ref, err))
        return false;
    part_compare(c->in, t->p, &ref, t->got, &cmp);
    part_release(&ref);
    r->say.judged += (int64_t)t->n;
    rule_tile(t, &cmp, r);
    /* As for blocks of a shape that is not run whole: long sums of equal terms round one way. */
    if (c->data == DATA_MIXED && r->say.verdict == VERDICT_INACCURATE)
        ruling_forgive(r);
    return true;
}

static bool judge_box(const struct tiles_case *c, const struct part *p, tiles_fetch_fn *fetch,
                      void *ctx, struct ruling *r, struct err *err) {
    struct tile t = {.c = c,
                     .p = p,
                     .type = dtype_info(c->in->task->tensors[p->tensor].dtype),
                     .n = elements_of(c->in, p)};
    t.got = mem_alloc(t.n * t.type->bytes);
    t.at = mem_alloc(t.n * sizeof *t.at);
    for (size_t i = 0; i < t.n; i++)
        t.at[i] = element_of(c->in, p, i);
    bool ok = judge_tile(&t, fetch, ctx, r, err);
    mem_free(t.got);
    mem_free(t.at);
    return ok;
}

bool tiles_judge(const struct tiles_case *c, tiles_fetch_fn *fetch, void *ctx, struct ruling *r,
                 struct err *err) {
    struct part boxes[TILES_MOST];
    int64_t before = r->say.judged;
    r->say.has_judged = r->say.has_skipped = true;
    for (size_t i = 0; i < c->in->task->ntensors && r->say.verdict == VERDICT_ACCEPTED; i++) {
        bool output = tensor_is_output(&c->in->task->tensors[i]);
        size_t n = output ? tiles_draw(c->in, i, c->draw, boxes) : 0;
        for (size_t k = 0; k < n && r->say.verdict == VERDICT_ACCEPTED; k++)
            if (!judge_box(c, &boxes[k], fetch, ctx, r, err))
                return false;
    }
    return r->say.judged > before ||
           err_set(err, ERR_ENV, "what is expected takes too long to make, even of a few elements");
}
