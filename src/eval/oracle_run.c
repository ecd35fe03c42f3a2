/* The oracle on a GPU: cases (where everything lies, and the making of inputs and intermediate
 * values), checks that are queued, and what becomes of their records. */
#include "eval/oracle_run.h"
#include "base/checked.h"
#include "spec/bind.h"
#include "spec/compare.h"
#include "spec/source.h"
#include <stdio.h>
#include <string.h>

static int64_t oracle_blocks(const struct oracle_case *c, uint64_t select);

enum {
    CHAIN_TERMS = 1024,  /* assets/oracle/fold.cuh */
    GUARDED_CHAINS = 16, /* where a guard selects terms, segments end in chains that are not full */
    SPLIT_TERMS = 4096,  /* results with fewer terms are not worth sharing */
    WARP = 32,
    WARP_NARROW = 4, /* of its threads, along the axes that do not run through memory */
};

/* ---- sizes ---- */

static bool add_axis(struct oracle_array *a, size_t k, int64_t lo, int64_t n, int64_t *count) {
    a->lo[k] = lo;
    a->n[k] = n < 0 ? 0 : n;
    a->stride[k] = *count;
    return mul_i64(*count, a->n[k], count);
}

/* The ranges of its axes are those they have where the reduction stands. */
static bool reduce_shape(const struct inst *in, const struct oracle_step *p,
                         struct oracle_array *a) {
    struct ranges r = ranges_of(in, p->s);
    a->count = 1;
    for (size_t i = 0; i < p->nouter; i++) {
        struct ranges inside = r;
        if (ranges_enter(&inside, p->outer[i]))
            r = inside;
    }
    for (size_t k = p->naxes; k-- > 0;) {
        struct range v = r.index[p->axis[k]];
        int64_t n;
        if (!sub_i64(v.hi, v.lo, &n) || !add_i64(n, 1, &n) || !add_axis(a, k, v.lo, n, &a->count))
            return false;
    }
    return true;
}

/* The number of terms where the sizes alone say it; 0 otherwise. */
static int64_t terms_of(const struct inst *in, const struct oracle_step *p) {
    int64_t terms = 1, lo, hi;
    for (size_t k = 0; k < p->e->reduce->nvars; k++) {
        const struct reduce_var *v = &p->e->reduce->vars[k];
        if (!expr_eval_dims(v->lo, in->dims, &lo) || !expr_eval_dims(v->hi, in->dims, &hi) ||
            hi <= lo || !mul_i64(terms, hi - lo, &terms))
            return 0;
    }
    return terms;
}

/* Segments of 2^k chains for each of `units` threads, so that there are enough of them. */
static void cut(int64_t terms, int64_t each, int64_t units, int64_t wanted,
                struct oracle_memory *m) {
    while ((terms + each - 1) / each > wanted / units)
        each *= 2;
    m->segments = (terms + each - 1) / each;
    m->terms = m->segments > 1 ? each : INT64_MAX;
}

/* Threads share a result where there are few. */
static void split(const struct inst *in, const struct oracle_step *p, int64_t results,
                  int64_t wanted, struct oracle_memory *m) {
    enum reduction op = p->e->reduce->op;
    bool distance = (op == REDUCTION_ARGMAX || op == REDUCTION_ARGMIN) && !p->exact && !p->index;
    int64_t terms = p->fixed && p->scanned < 0 ? terms_of(in, p) : 0;
    int64_t each = p->e->reduce->guard ? GUARDED_CHAINS * CHAIN_TERMS : CHAIN_TERMS;
    m->segments = 1;
    m->terms = INT64_MAX;
    if (terms < SPLIT_TERMS || op == REDUCTION_PROD || distance || results <= 0 ||
        results >= wanted / 2)
        return;
    cut(terms, each, results, wanted, m);
}

static int64_t pieces(int64_t n, int64_t each) {
    return (n + each - 1) / each;
}

/* A warp's threads: mostly along the axes that the last one is of, as far as there are others. */
static struct oracle_tile tile_of(const struct oracle_step *p, const struct oracle_array *a,
                                  int64_t *common) {
    int64_t rows = 1, columns = 1;
    *common = 1;
    for (size_t k = 0; k < p->naxes; k++)
        *(p->row_axes >> k & 1 ? &rows : p->column_axes >> k & 1 ? &columns : common) *= a->n[k];
    struct oracle_tile t = {pieces(rows, p->rows), pieces(columns, p->columns), WARP, 1};
    bool rows_run = p->row_axes >> (p->naxes - 1) & 1;
    int64_t other = rows_run ? t.column_step : t.row_step, narrow = 1;
    while (narrow < WARP_NARROW && narrow < other)
        narrow *= 2;
    t.lane_rows = rows_run ? WARP / narrow : narrow;
    t.lane_columns = WARP / t.lane_rows;
    return t;
}

/* Whether a thread makes several results, given that there are enough of them or of their terms. */
static void set_blocks(const struct inst *in, const struct oracle_step *p,
                       const struct oracle_array *a, int64_t wanted, struct oracle_memory *m) {
    enum { CHAINS = 1 << (ORACLE_LEVELS - 1) };
    int64_t terms = terms_of(in, p), common;
    struct oracle_memory blocked = {.segments = 1, .terms = INT64_MAX};
    if (p->rows * p->columns == 1 || a->count <= 0 || terms == 0)
        return;
    blocked.tile = tile_of(p, a, &common);
    int64_t units = blocked.tile.row_step * blocked.tile.column_step * common;
    if (units < wanted / 2 && terms >= SPLIT_TERMS)
        cut(terms, CHAIN_TERMS, units, wanted, &blocked);
    if (units * blocked.segments < wanted / 2 ||
        (blocked.terms < terms ? blocked.terms : terms) > (int64_t)CHAINS * CHAIN_TERMS)
        return;
    blocked.threads = pieces(blocked.tile.row_step, blocked.tile.lane_rows) *
                      pieces(blocked.tile.column_step, blocked.tile.lane_columns) * WARP * common *
                      blocked.segments;
    *m = blocked;
}

/* A reduction by index, whose terms are sorted by result: as far as their numbers, and those of
 * the lists, fit 31 bits. */
static void set_lists(const struct inst *in, const struct oracle_step *p,
                      const struct oracle_array *a, struct oracle_memory *m) {
    enum { RESULTS_LEAST = 4 };
    int64_t items = 1, lists = 1, all = 0, terms = p->listed ? terms_of(in, p) : 0;
    bool ok = terms > 0;
    for (size_t k = 0; k < p->naxes && ok; k++) {
        if (p->by.shared >> p->axis[k] & 1)
            ok = mul_i64(items, a->n[k], &items);
        if (p->by.pinned >> p->axis[k] & 1)
            ok = ok && mul_i64(lists, a->n[k], &lists);
    }
    ok = ok && lists >= RESULTS_LEAST && mul_i64(items, lists, &lists) &&
         mul_i64(items, terms, &all);
    if (!ok || lists > INT32_MAX - 1 || all > INT32_MAX - 1 || all <= 0)
        return;
    m->lists = lists;
    m->list_terms = terms;
    m->listed = all;
    m->segments = 1;
    m->terms = INT64_MAX;
    m->threads = 0;
}

/* Where the memory of lists begins, one after the other: keys and order, both twice, then digits,
 * totals, starts, doubt; the last is the end. */
enum list_memory {
    LIST_KEYS,
    LIST_ORDER,
    LIST_KEYS_TO,
    LIST_ORDER_TO,
    LIST_DIGITS,
    LIST_TOTALS,
    LIST_START,
    LIST_DOUBT,
    LIST_END
};

enum { SORT_TILE = 1024, SORT_VALUES = 128, SORT_BITS = 7 }; /* assets/oracle/sort.cuh */

static int64_t sort_tiles(const struct oracle_memory *m) {
    return (m->listed + SORT_TILE - 1) / SORT_TILE;
}

static size_t list_offset(const struct oracle_memory *m, enum list_memory what) {
    const size_t words[LIST_END] = {[LIST_KEYS] = (size_t)m->listed,
                                    [LIST_ORDER] = (size_t)m->listed,
                                    [LIST_KEYS_TO] = (size_t)m->listed,
                                    [LIST_ORDER_TO] = (size_t)m->listed,
                                    [LIST_DIGITS] = (size_t)sort_tiles(m) * SORT_VALUES,
                                    [LIST_TOTALS] = SORT_VALUES,
                                    [LIST_START] = (size_t)m->lists + 1,
                                    [LIST_DOUBT] = 2};
    size_t at = 0;
    for (int i = 0; i < (int)what && m->lists; i++)
        at += (words[i] * sizeof(uint32_t) + 255) / 256 * 256;
    return at;
}

/* How often seven bits are sorted by; the number of what belongs to no list is `lists`. */
static int sort_passes(const struct oracle_memory *m) {
    int passes = 1;
    while (m->lists >> (SORT_BITS * passes))
        passes++;
    return passes;
}

static size_t planes_of(const struct oracle_step *p) {
    return p->kind == ORACLE_DEFINE ? 1 : p->index && !p->exact ? 4 : 2;
}

static bool shape_array(struct oracle_case *c, size_t k, struct err *err) {
    const struct oracle_step *p = &c->o->plan.steps[k];
    struct oracle_array *a = &c->arrays[k];
    struct oracle_memory *m = &c->memory[k];
    bool ok = true;
    if (p->kind == ORACLE_LET)
        a->count = c->in->tensors[p->tensor].count;
    else
        ok = reduce_shape(c->in, p, a);
    if (ok && p->kind == ORACLE_REDUCE) {
        int64_t wanted = c->o->e->threads;
        split(c->in, p, a->count, wanted, m);
        set_blocks(c->in, p, a, wanted, m);
        set_lists(c->in, p, a, m);
    }
    if (!ok || !mul_size((size_t)a->count, planes_of(p) * sizeof(double), &m->bytes))
        return err_set(err, ERR_INPUT, "a reduction depends on too many values of its indices");
    return true;
}

/* ---- what is kept ---- */

/* Arrays that a comparison reads and that have memory, given that reductions of outputs have. */
static bool is_kept(const struct oracle_case *c, size_t k, bool outputs) {
    const struct oracle_step *p = &c->o->plan.steps[k];
    if (p->kind == ORACLE_DEFINE)
        return true;
    if (p->always || c->memory[k].segments > 1)
        return outputs ? p->needed : p->needed_inline;
    return p->output && outputs;
}

static bool fits(const struct oracle_case *c, bool outputs, size_t keep_bytes) {
    size_t sum = 0;
    for (size_t k = 0; k < c->o->plan.nsteps; k++)
        if (is_kept(c, k, outputs) && c->o->plan.steps[k].kind != ORACLE_DEFINE &&
            !add_size(sum, c->memory[k].bytes, &sum))
            return false;
    return sum <= keep_bytes;
}

static size_t rounded(size_t bytes) {
    return (bytes + 255) / 256 * 256;
}

/* Reductions of a let whose threads make several results: evaluated beforehand, read by that let
 * alone, so that those of the next take their place. Where they are too large, each thread of the
 * let makes its own. */
static void place_for_lets(struct oracle_case *c, size_t keep_bytes) {
    const struct statement *of = NULL;
    size_t used = 0, most = 0;
    for (size_t k = 0; k < c->o->plan.nsteps; k++) {
        const struct oracle_step *p = &c->o->plan.steps[k];
        struct oracle_memory *m = &c->memory[k];
        used = p->s == of ? used : 0;
        of = p->s;
        size_t end = used + rounded(m->bytes);
        bool fits_in = end <= keep_bytes || c->scratch_need + end <= c->o->scratch_bytes;
        if (m->has || !m->threads || p->output || !fits_in)
            continue;
        m->has = true;
        m->offset = c->scratch_need + used;
        used = end;
        most = used > most ? used : most;
    }
    c->scratch_need += most;
}

static size_t expected_bytes(const struct oracle_case *c, size_t tensor) {
    bool output = tensor_is_output(&c->o->t->tensors[tensor]);
    return output ? rounded((size_t)c->in->tensors[tensor].count * 2 * sizeof(double)) : 0;
}

/* What is expected of all outputs, if it fits. Where an index may be as good as another, finding
 * out takes the arrays. What the host evaluates is kept in any case. */
static size_t place_expected(struct oracle_case *c, size_t keep_bytes) {
    size_t sum = 0;
    c->kept = !c->o->plan.ties;
    for (size_t i = 0; i < c->o->t->ntensors && c->kept; i++)
        c->kept = (uint64_t)c->in->tensors[i].count <= SIZE_MAX / 32 &&
                  add_size(sum, expected_bytes(c, i), &sum) &&
                  (c->o->plan.by_host || sum <= keep_bytes);
    return c->kept ? sum : 0;
}

/* Own memory for all arrays that a comparison reads, or without the reductions of outputs, or for
 * none of it. Sums of definitions are always the case's own: they are small and every look at the
 * inputs needs them. Returns the bytes of its own. */
static size_t place_arrays(struct oracle_case *c, size_t keep_bytes) {
    bool outputs = fits(c, true, keep_bytes);
    bool keeps = !c->kept && (outputs || fits(c, false, keep_bytes));
    size_t own = 0, parts = 0, lists = 0;
    c->remade = !c->kept && !keeps;
    for (size_t k = 0; k < c->o->plan.nsteps; k++) {
        const struct oracle_step *p = &c->o->plan.steps[k];
        struct oracle_memory *m = &c->memory[k];
        bool kept = is_kept(c, k, outputs);
        m->has = p->always || m->segments > 1 || kept;
        m->own = p->kind == ORACLE_DEFINE || (kept && keeps);
        if (!m->has)
            continue;
        size_t sorting = list_offset(m, LIST_END);
        lists = sorting > lists ? sorting : lists;
        size_t *end = m->own ? &own : &c->scratch_need;
        m->offset = *end;
        *end += rounded(m->bytes);
        if (m->segments > 1) {
            size_t need = (size_t)(c->arrays[k].count * m->segments) * sizeof(struct oracle_part);
            parts = need > parts ? need : parts;
        }
    }
    c->parts_offset = c->scratch_need;
    c->scratch_need += rounded(parts);
    c->lists_offset = c->scratch_need;
    c->scratch_need += rounded(lists);
    place_for_lets(c, keep_bytes);
    return own;
}

/* ---- the world ---- */

/* One block of bytes, here and on the device: the head, then its tables. */
static void lay_out(struct oracle_case *c) {
    const struct task *t = c->o->t;
    const size_t sizes[] = {sizeof(struct oracle_world),
                            t->ndims * sizeof(int64_t),
                            t->ntensors * sizeof(struct oracle_tensor),
                            t->ntensors * sizeof(struct source),
                            t->ntensors * sizeof(struct promise),
                            c->o->plan.nsteps * sizeof(struct oracle_array),
                            (t->ntensors + c->o->plan.nsteps) * sizeof(int64_t)};
    size_t at[8] = {0};
    for (size_t i = 0; i < 7; i++)
        at[i + 1] = at[i] + (sizes[i] + 15) / 16 * 16;
    c->world_bytes = at[7];
    c->odd_offset = at[6];
    c->host = mem_alloc(at[7]);
    c->arrays = (struct oracle_array *)(c->host + at[5]);
    struct oracle_world *w = (struct oracle_world *)c->host;
    *w = (struct oracle_world){at[1], at[2], at[3], at[4], at[5], at[6]};
}

static void set_type(const struct tensor *t, struct oracle_tensor *out) {
    const struct dtype_info *type = dtype_info(t->dtype);
    out->type = (int64_t)t->dtype;
    out->item = (int64_t)type->bytes;
    out->whole = type->kind == 'i' || type->kind == 'u';
    out->poisoned = t->role == TENSOR_OUT;
    dtype_limits(t->dtype, &out->lo, &out->hi);
    if (t->dtype == DTYPE_I64)
        out->hi = 0x1.fffffffffffffp62; /* the largest double below 2^63 */
}

static void fill_tables(struct oracle_case *c, const struct data_scale *scale, enum data_kind kind,
                        uint64_t seed, uint64_t params, const uint64_t *addresses) {
    const struct task *t = c->o->t;
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    struct oracle_tensor *tensors = (struct oracle_tensor *)(c->host + w->tensor);
    struct source *sources = (struct source *)(c->host + w->source);
    struct promise *promises = (struct promise *)(c->host + w->promise);
    memcpy(c->host + w->dim, c->in->dims, t->ndims * sizeof(int64_t));
    for (size_t i = 0; i < t->ntensors; i++) {
        const struct bound_tensor *b = &c->in->tensors[i];
        tensors[i].at = addresses[i];
        tensors[i].count = b->count;
        set_type(&t->tensors[i], &tensors[i]);
        for (size_t k = 0; k < t->tensors[i].rank; k++) {
            tensors[i].extent[k] = b->extent[k];
            tensors[i].stride[k] = b->stride[k];
        }
        if (!tensor_is_input(&t->tensors[i]) && t->tensors[i].role != TENSOR_RAND)
            continue;
        sources[i] =
            source_of(c->in, scale, i, kind, t->tensors[i].role == TENSOR_PARAM ? params : seed);
        promises[i] = promise_of(c->in, i);
    }
}

/* Offsets become addresses. */
static void set_addresses(struct oracle_case *c) {
    struct oracle_world *w = (struct oracle_world *)c->host;
    w->dim += c->world;
    w->tensor += c->world;
    w->source += c->world;
    w->promise += c->world;
    w->array += c->world;
    w->odd += c->world;
}

static void set_expected(struct oracle_case *c) {
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    struct oracle_tensor *tensors = (struct oracle_tensor *)(c->host + w->tensor);
    uint64_t at = c->own + c->expected_offset;
    for (size_t i = 0; i < c->o->t->ntensors && c->kept; i++) {
        tensors[i].expected = expected_bytes(c, i) ? at : 0;
        at += expected_bytes(c, i);
    }
}

static void set_arrays(struct oracle_case *c) {
    for (size_t k = 0; k < c->o->plan.nsteps; k++) {
        const struct oracle_memory *m = &c->memory[k];
        struct oracle_array *a = &c->arrays[k];
        uint64_t base = m->own ? c->own : c->o->scratch, plane = (uint64_t)a->count * 8;
        a->value = a->variance = a->best = 0;
        a->order = a->start = a->doubt = 0;
        if (!m->has || !base)
            continue;
        a->value = base + m->offset;
        a->variance = a->value + plane;
        a->best = planes_of(&c->o->plan.steps[k]) == 4 ? a->variance + plane : 0;
        if (m->lists && c->o->scratch) {
            uint64_t lists_at = c->o->scratch + c->lists_offset;
            a->order = lists_at + list_offset(m, sort_passes(m) % 2 ? LIST_ORDER_TO : LIST_ORDER);
            a->start = lists_at + list_offset(m, LIST_START);
            a->doubt = lists_at + list_offset(m, LIST_DOUBT);
            a->terms = m->list_terms;
        }
    }
    c->scratch_seen = c->o->scratch;
}

/* All but the flags, which kernels have set. */
static bool send_world(struct oracle_case *c, struct err *err) {
    const struct engine *e = c->o->e;
    set_arrays(c);
    return e->send(e->ctx, c->world, c->host, c->odd_offset, err);
}

size_t oracle_case_bytes(const struct oracle_case *c) {
    return c->own_bytes;
}

static bool case_memory(struct oracle_case *c, size_t keep_bytes, struct err *err) {
    const struct engine *e = c->o->e;
    size_t expected = place_expected(c, keep_bytes);
    c->expected_offset = place_arrays(c, keep_bytes);
    c->own_bytes = c->expected_offset + expected;
    return (!c->own_bytes || e->alloc(e->ctx, c->own_bytes, &c->own, err)) &&
           e->alloc(e->ctx, c->world_bytes, &c->world, err) &&
           e->zero(e->ctx, c->world, c->world_bytes, err);
}

struct oracle_case *oracle_case_new(struct oracle *o, const struct inst *in,
                                    const struct data_scale *scale, enum data_kind kind,
                                    uint64_t seed, uint64_t params, const uint64_t *addresses,
                                    size_t keep_bytes, struct err *err) {
    struct oracle_case *c = mem_alloc(sizeof *c);
    bool ok = true;
    c->o = o;
    c->in = in;
    c->memory = mem_alloc((o->plan.nsteps + 1) * sizeof *c->memory);
    lay_out(c);
    fill_tables(c, scale, kind, seed, params, addresses);
    for (size_t k = 0; k < o->plan.nsteps && ok; k++)
        ok = shape_array(c, k, err);
    if (ok && case_memory(c, keep_bytes, err)) {
        set_expected(c);
        set_addresses(c);
        if (send_world(c, err))
            return c;
    }
    oracle_case_free(c);
    return NULL;
}

bool oracle_need_of(const struct inst *in, int64_t threads, size_t keep_bytes,
                    struct oracle_need *out, struct err *err) {
    struct engine none = {.threads = threads, .host_threads = 1};
    struct oracle *o = oracle_new(in->task, &none, err);
    struct oracle_case c = {.o = o, .in = in};
    bool ok = o != NULL;
    if (ok) {
        c.memory = mem_alloc((o->plan.nsteps + 1) * sizeof *c.memory);
        lay_out(&c);
    }
    for (size_t k = 0; ok && k < o->plan.nsteps; k++)
        ok = shape_array(&c, k, err);
    if (ok) {
        size_t expected = place_expected(&c, keep_bytes), arrays = place_arrays(&c, keep_bytes);
        *out = (struct oracle_need){expected + arrays + c.world_bytes, c.scratch_need};
    }
    mem_free(c.host);
    mem_free(c.memory);
    oracle_free(o);
    return ok;
}

void oracle_case_free(struct oracle_case *c) {
    if (!c)
        return;
    const struct engine *e = c->o->e;
    if (c->o->scratch_of == c)
        c->o->scratch_of = NULL;
    if (c->own)
        e->release(e->ctx, c->own);
    if (c->world)
        e->release(e->ctx, c->world);
    mem_free(c->host);
    mem_free(c->memory);
    mem_free(c);
}

/* ---- making ---- */

static struct oracle_op oracle_op_of(const struct oracle_case *c) {
    return (struct oracle_op){.world = c->world, .segments = 1, .terms = INT64_MAX};
}

static bool oracle_launch(struct oracle *o, const char *kernel, int64_t blocks, size_t tensors,
                          const void *params, size_t bytes, struct err *err) {
    if (blocks <= 0 || tensors == 0)
        return true;
    if (blocks > INT32_MAX)
        return err_set(err, ERR_ENV, "%s: too many elements for one launch", kernel);
    const uint32_t grid[3] = {(uint32_t)blocks, (uint32_t)tensors, 1};
    return o->e->launch(o->e->ctx, kernel, grid, ORACLE_BLOCK, params, bytes, err) ||
           err_wrap(err, "%s", kernel);
}

static bool launch_step(struct oracle_case *c, const char *name, size_t k, int64_t threads,
                        const struct oracle_op *op, struct err *err) {
    char kernel[64];
    snprintf(kernel, sizeof kernel, "oracle_%s_%zu", name, k);
    return oracle_launch(c->o, kernel, (threads + ORACLE_BLOCK - 1) / ORACLE_BLOCK, 1, op,
                         sizeof *op, err);
}

static bool join_parts(struct oracle_case *c, size_t k, struct err *err) {
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    struct oracle_join j = {.part = c->o->scratch + c->parts_offset,
                            .segments = c->memory[k].segments,
                            .array = c->arrays[k],
                            .how = c->o->plan.steps[k].fold,
                            .odd = w->odd + (c->o->t->ntensors + k) * sizeof(int64_t)};
    return oracle_launch(c->o, "oracle_join_parts",
                         (j.array.count + ORACLE_BLOCK - 1) / ORACLE_BLOCK, 1, &j, sizeof j, err);
}

static bool sort_launch(struct oracle_case *c, const char *kernel, int64_t blocks,
                        const struct oracle_sort *s, struct err *err) {
    return oracle_launch(c->o, kernel, blocks, 1, s, sizeof *s, err);
}

/* Of a reduction by index: the lists of its results. */
static bool make_lists(struct oracle_case *c, size_t k, struct err *err) {
    const struct oracle_memory *m = &c->memory[k];
    const struct engine *e = c->o->e;
    uint64_t at = c->o->scratch + c->lists_offset;
    struct oracle_op op = oracle_op_of(c);
    op.count = m->listed;
    op.terms = m->lists;
    op.out = at + list_offset(m, LIST_KEYS);
    bool ok = e->zero(e->ctx, c->arrays[k].doubt, sizeof(int64_t), err) &&
              launch_step(c, "keys", k, m->listed, &op, err);
    struct oracle_sort s = {.count = m->listed, .tiles = sort_tiles(m), .lists = m->lists};
    s.digits = at + list_offset(m, LIST_DIGITS);
    s.totals = at + list_offset(m, LIST_TOTALS);
    s.start = at + list_offset(m, LIST_START);
    for (int pass = 0; pass < sort_passes(m) && ok; pass++) {
        bool back = pass % 2;
        s.keys = at + list_offset(m, back ? LIST_KEYS_TO : LIST_KEYS);
        s.order = at + list_offset(m, back ? LIST_ORDER_TO : LIST_ORDER);
        s.keys_to = at + list_offset(m, back ? LIST_KEYS : LIST_KEYS_TO);
        s.order_to = at + list_offset(m, back ? LIST_ORDER : LIST_ORDER_TO);
        s.shift = SORT_BITS * pass;
        ok = sort_launch(c, "oracle_sort_count", s.tiles, &s, err) &&
             sort_launch(c, "oracle_sort_offset", SORT_VALUES, &s, err) &&
             sort_launch(c, "oracle_sort_move", s.tiles, &s, err);
    }
    s.keys = s.keys_to;
    return ok &&
           sort_launch(c, "oracle_sort_search", (m->lists + ORACLE_BLOCK) / ORACLE_BLOCK, &s, err);
}

static bool make_reduce(struct oracle_case *c, size_t k, struct err *err) {
    const struct oracle_step *p = &c->o->plan.steps[k];
    const struct oracle_memory *m = &c->memory[k];
    const struct oracle_array *a = &c->arrays[k];
    struct oracle_op op = oracle_op_of(c);
    if (p->scanned >= 0) {
        size_t axis = 0;
        while ((int)p->axis[axis] != p->scanned)
            axis++;
        return launch_step(c, "scan", k, a->count / a->n[axis], &op, err);
    }
    if (m->lists && !make_lists(c, k, err))
        return false;
    op.segments = m->segments;
    op.terms = m->terms;
    op.tile = m->tile;
    op.out = c->o->scratch + c->parts_offset;
    return launch_step(c, m->threads ? "block" : "reduce", k,
                       m->threads ? m->threads : a->count * m->segments, &op, err) &&
           (m->segments == 1 || join_parts(c, k, err));
}

static bool make_step(struct oracle_case *c, size_t k, struct err *err) {
    const struct oracle_step *p = &c->o->plan.steps[k];
    struct oracle_op op = oracle_op_of(c);
    if (!c->memory[k].has || c->arrays[k].count == 0)
        return true;
    switch (p->kind) {
    case ORACLE_DEFINE:
        return true;
    case ORACLE_LET:
        return launch_step(c, "let", k, c->arrays[k].count, &op, err);
    case ORACLE_REDUCE:
        return make_reduce(c, k, err);
    }
    return true;
}

static bool scratch_grow(struct oracle *o, size_t bytes, struct err *err) {
    if (bytes <= o->scratch_bytes)
        return true;
    if (o->scratch)
        o->e->release(o->e->ctx, o->scratch);
    o->scratch = 0;
    o->scratch_bytes = 0;
    o->scratch_of = NULL;
    if (!o->e->alloc(o->e->ctx, bytes, &o->scratch, err))
        return err_wrap(err, "intermediate values of the reference");
    o->scratch_bytes = bytes;
    return true;
}

static bool make_arrays(struct oracle_case *c, struct err *err) {
    struct oracle *o = c->o;
    if (!scratch_grow(o, c->scratch_need, err))
        return false;
    if (c->scratch_seen != o->scratch && !send_world(c, err))
        return false;
    if (c->scratch_need)
        o->scratch_of = NULL;
    for (size_t k = 0; k < o->plan.nsteps; k++)
        if (!make_step(c, k, err))
            return false;
    if (c->scratch_need)
        o->scratch_of = c;
    return true;
}

/* Tensors, a bit each: those that are only read, only written, or both. */
static uint64_t oracle_select(const struct task *t, bool inputs, bool outputs, bool both) {
    uint64_t select = 0;
    for (size_t i = 0; i < t->ntensors; i++) {
        bool in = tensor_is_input(&t->tensors[i]), out = tensor_is_output(&t->tensors[i]);
        if ((in && out) ? both : (in && inputs) || (out && outputs))
            select |= UINT64_C(1) << i;
    }
    return select;
}

/* ---- what the host expects, of a task with recurrences ---- */

/* The inputs as they are on the device. */
static bool fetch_inputs(const struct oracle_case *c, void **inputs, struct err *err) {
    const struct engine *e = c->o->e;
    const struct task *t = c->in->task;
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    const struct oracle_tensor *tensors =
        (const struct oracle_tensor *)(c->host + (w->tensor - c->world));
    for (size_t i = 0; i < t->ntensors; i++) {
        size_t bytes = c->in->tensors[i].bytes;
        if (!tensor_is_input(&t->tensors[i]))
            continue;
        if (!(inputs[i] = mem_try_resize(NULL, bytes)))
            return err_set(err, ERR_ENV, "no memory for %zu bytes of '%.*s'", bytes,
                           STR_ARG(t->tensors[i].name));
        if (!e->fetch(e->ctx, inputs[i], tensors[i].at, bytes, err))
            return false;
    }
    return true;
}

/* Another index that is as good cannot be told here: such an element is not judged. */
static bool has_ties(const struct reference *r, size_t i) {
    for (size_t k = 0; r->ties && k < r->tie_words; k++)
        if (r->ties[i * r->tie_words + k])
            return true;
    return false;
}

static bool send_expected(const struct oracle_case *c, const struct reference *r, struct err *err) {
    const struct engine *e = c->o->e;
    const struct oracle_world *w = (const struct oracle_world *)c->host;
    const struct oracle_tensor *tensors =
        (const struct oracle_tensor *)(c->host + (w->tensor - c->world));
    double *both = mem_alloc(2 * r->count * sizeof *both);
    for (size_t i = 0; i < r->count; i++) {
        both[2 * i] = r->value[i];
        both[2 * i + 1] = has_ties(r, i) ? INFINITY : r->estimate[i];
    }
    bool ok = e->send(e->ctx, tensors[r->tensor].expected, both, 2 * r->count * sizeof *both, err);
    char wait;
    ok = ok && e->fetch(e->ctx, &wait, tensors[r->tensor].expected, 1, err); /* it is sent now */
    mem_free(both);
    return ok;
}

static bool expect_on_host(const struct oracle_case *c, struct err *err) {
    void *inputs[TASK_MAX_TENSORS] = {0};
    struct reference *refs = NULL;
    size_t n = 0;
    bool ok = c->kept || err_set(err, ERR_INPUT,
                                 "the outputs are too large for the reference of a "
                                 "recurrence, which is kept in memory whole");
    ok = ok && fetch_inputs(c, inputs, err) &&
         reference_eval(c->in, (const void *const *)inputs, c->o->e->host_threads, &refs, &n, NULL,
                        err);
    for (size_t i = 0; i < n && ok; i++)
        ok = send_expected(c, &refs[i], err);
    reference_release(refs, n);
    for (size_t i = 0; i < c->in->task->ntensors; i++)
        mem_free(inputs[i]);
    return ok;
}

bool oracle_expect(struct oracle_case *c, struct err *err) {
    if (c->o->plan.by_host)
        return make_arrays(c, err) && expect_on_host(c, err);
    struct oracle_op op = oracle_op_of(c);
    op.select = oracle_select(c->o->t, false, true, true);
    return make_arrays(c, err) &&
           (!c->kept || oracle_launch(c->o, "oracle_compare", oracle_blocks(c, op.select),
                                      c->o->t->ntensors, &op, sizeof op, err));
}

/* Puts the intermediate values that a comparison reads where it reads them. */
static bool oracle_case_ready(struct oracle_case *c, struct err *err) {
    return !c->remade || c->o->scratch_of == c || !c->scratch_need || make_arrays(c, err);
}

static bool make_definitions(struct oracle_case *c, struct err *err) {
    struct oracle_op op = oracle_op_of(c);
    for (size_t k = 0; k < c->o->plan.nsteps && !c->defined; k++)
        if (c->o->plan.steps[k].kind == ORACLE_DEFINE && c->arrays[k].count > 0 &&
            !launch_step(c, "define", k, c->arrays[k].count, &op, err))
            return false;
    c->defined = true;
    return true;
}

/* Blocks for so many elements, and for the largest of some tensors. */
static int64_t oracle_blocks_for(int64_t elements) {
    enum { EACH = 8 * ORACLE_BLOCK, MOST = 4096 };
    int64_t blocks = (elements + EACH - 1) / EACH;
    return blocks < 1 ? 1 : blocks < MOST ? blocks : MOST;
}

static int64_t oracle_blocks(const struct oracle_case *c, uint64_t select) {
    int64_t most = 1;
    for (size_t i = 0; i < c->o->t->ntensors; i++)
        if (select >> i & 1 && c->in->tensors[i].count > most)
            most = c->in->tensors[i].count;
    return oracle_blocks_for(most);
}

static bool fill(struct oracle_case *c, uint64_t select, struct err *err) {
    struct oracle_op op = oracle_op_of(c);
    op.select = select;
    return make_definitions(c, err) &&
           oracle_launch(c->o, "oracle_inputs", oracle_blocks(c, select), c->o->t->ntensors, &op,
                         sizeof op, err);
}

bool oracle_fill(struct oracle_case *c, struct err *err) {
    uint64_t select = oracle_select(c->o->t, true, false, true);
    if (c->o->scratch_of == c) /* what lies there may be of inputs that were changed */
        c->o->scratch_of = NULL;
    return !select || fill(c, select, err);
}

bool oracle_poison(struct oracle_case *c, uint64_t key, struct err *err) {
    const struct task *t = c->o->t;
    struct oracle_op op = oracle_op_of(c);
    uint64_t both = oracle_select(t, false, false, true);
    op.select = oracle_select(t, false, true, false);
    op.key = key;
    return (!op.select || oracle_launch(c->o, "oracle_poison", oracle_blocks(c, op.select),
                                        t->ntensors, &op, sizeof op, err)) &&
           (!both || fill(c, both, err));
}

struct oracle *oracle_new(const struct task *t, const struct engine *e, struct err *err) {
    struct oracle *o = mem_alloc(sizeof *o);
    o->t = t;
    o->e = e;
    o->a = arena_new((size_t)64 << 20);
    if (oracle_plan_make(t, o->a, &o->plan, err))
        return o;
    oracle_free(o);
    return NULL;
}

static void chunks_release(struct oracle *o) {
    for (size_t i = 0; i < o->nchunks; i++)
        o->e->release(o->e->ctx, o->chunks[i].at);
    o->nchunks = 0;
}

void oracle_free(struct oracle *o) {
    if (!o)
        return;
    chunks_release(o);
    if (o->scratch)
        o->e->release(o->e->ctx, o->scratch);
    mem_free(o->chunks);
    mem_free(o->checks);
    mem_free(o->outputs);
    arena_free(o->a);
    mem_free(o);
}

/* ---- queueing ---- */

/* Room for records, the address of which is returned; 0: there is none. */
static uint64_t records_alloc(struct oracle *o, size_t bytes, struct oracle_check *check,
                              struct err *err) {
    const size_t least = (size_t)1 << 20;
    struct oracle_chunk *last = o->nchunks ? &o->chunks[o->nchunks - 1] : NULL;
    bytes = (bytes + 15) / 16 * 16;
    if (!last || last->bytes - last->used < bytes) {
        struct oracle_chunk fresh = {.bytes = bytes > least ? bytes : least};
        if (!o->e->alloc(o->e->ctx, fresh.bytes, &fresh.at, err))
            return 0;
        o->chunks = mem_grow(o->chunks, &o->chunks_cap, o->nchunks + 1, sizeof *o->chunks);
        o->chunks[o->nchunks] = fresh;
        last = &o->chunks[o->nchunks++];
    }
    check->chunk = o->nchunks - 1;
    check->offset = last->used;
    last->used += bytes;
    return last->at + check->offset;
}

static void check_add(struct oracle *o, const struct oracle_check *check) {
    o->checks = mem_grow(o->checks, &o->checks_cap, o->nchecks + 1, sizeof *o->checks);
    o->checks[o->nchecks++] = *check;
}

static bool queue_tensors(struct oracle_case *c, struct oracle_check *check, const char *kernel,
                          size_t record, struct err *err) {
    struct oracle *o = c->o;
    struct oracle_op op = oracle_op_of(c);
    if (!check->select)
        return true;
    check->rows = (size_t)__builtin_popcountll(check->select);
    check->blocks = (size_t)oracle_blocks(c, check->select);
    op.select = check->select;
    op.key = check->key;
    op.out = records_alloc(o, check->rows * check->blocks * record, check, err);
    if (!op.out ||
        !oracle_launch(o, kernel, (int64_t)check->blocks, o->t->ntensors, &op, sizeof op, err))
        return false;
    check_add(o, check);
    return true;
}

bool oracle_queue_inputs(struct oracle_case *c, size_t slot, struct err *err) {
    struct oracle_check check = {.kind = CHECK_INPUTS, .of = c, .slot = slot};
    check.select = oracle_select(c->o->t, true, false, false);
    return queue_tensors(c, &check, "oracle_inputs", sizeof(struct oracle_found), err);
}

bool oracle_queue_compare(struct oracle_case *c, uint64_t key, size_t slot, struct err *err) {
    struct oracle_check check = {.kind = CHECK_OUTPUTS, .of = c, .slot = slot, .key = key};
    check.select = oracle_select(c->o->t, false, true, true);
    return oracle_case_ready(c, err) &&
           queue_tensors(c, &check, "oracle_compare", sizeof(struct oracle_tally), err);
}

/* ORACLE_REGIONS of them, or what is left, from `first` on. */
static size_t regions_some(const struct oracle_region *regions, size_t n, size_t first,
                           struct oracle_regions *out, int64_t *blocks) {
    size_t some = n - first < ORACLE_REGIONS ? n - first : ORACLE_REGIONS;
    int64_t most = 0;
    *out = (struct oracle_regions){0};
    for (size_t i = 0; i < some; i++) {
        out->region[i] = regions[first + i];
        most = out->region[i].bytes > most ? out->region[i].bytes : most;
    }
    *blocks = oracle_blocks_for((most + 7) / 8);
    return some;
}

bool oracle_canary_fill(struct oracle *o, const struct oracle_region *regions, size_t n,
                        struct err *err) {
    struct oracle_regions all;
    int64_t blocks;
    for (size_t at = 0; at < n; at += ORACLE_REGIONS) {
        size_t some = regions_some(regions, n, at, &all, &blocks);
        if (!oracle_launch(o, "oracle_canary_fill", blocks, some, &all, sizeof all, err))
            return false;
    }
    return true;
}

static bool queue_regions(struct oracle *o, enum oracle_check_kind kind, const char *kernel,
                          const struct oracle_region *regions, size_t n, size_t slot,
                          struct err *err) {
    struct oracle_regions all;
    int64_t blocks;
    for (size_t at = 0; at < n; at += ORACLE_REGIONS) {
        struct oracle_check check = {.kind = kind, .slot = slot, .first_row = at};
        check.rows = regions_some(regions, n, at, &all, &blocks);
        check.blocks = (size_t)blocks;
        size_t bytes = check.rows * check.blocks * sizeof(struct oracle_found);
        all.out = records_alloc(o, bytes, &check, err);
        if (!all.out || !oracle_launch(o, kernel, blocks, check.rows, &all, sizeof all, err))
            return false;
        check_add(o, &check);
    }
    return true;
}

bool oracle_queue_canaries(struct oracle *o, const struct oracle_region *regions, size_t n,
                           size_t slot, struct err *err) {
    return queue_regions(o, CHECK_CANARIES, "oracle_canary_check", regions, n, slot, err);
}

bool oracle_queue_digests(struct oracle *o, const struct oracle_region *regions, size_t n,
                          size_t slot, struct err *err) {
    BUG_IF(n > ORACLE_REGIONS);
    return queue_regions(o, CHECK_DIGESTS, "oracle_digest", regions, n, slot, err);
}

/* ---- collecting ---- */

static void seen_add(struct oracle_seen *s, const struct oracle_found *f, size_t where) {
    if (f->count == 0 || (s->count && s->where != where))
        return;
    s->first = s->count == 0 || f->first < s->first ? f->first : s->first;
    s->count += (uint64_t)f->count;
    s->where = where;
}

/* The tensor or region that a row of records is about. */
static size_t row_of(const struct oracle_check *check, size_t row) {
    uint64_t left = check->select;
    if (!left)
        return check->first_row + row;
    while (row-- > 0)
        left &= left - 1;
    return (size_t)__builtin_ctzll(left);
}

static void collect_found(const struct oracle_check *check, const struct oracle_found *records,
                          struct oracle_result *out) {
    struct oracle_seen *seen = check->kind == CHECK_INPUTS ? &out->input : &out->canary;
    for (size_t row = 0; row < check->rows; row++)
        for (size_t b = 0; b < check->blocks; b++)
            seen_add(seen, &records[row * check->blocks + b], row_of(check, row));
}

static void collect_digests(const struct oracle_check *check, const struct oracle_found *records,
                            struct oracle_result *out) {
    for (size_t row = 0; row < check->rows; row++)
        for (size_t b = 0; b < check->blocks; b++)
            out->digest[row] += (uint64_t)records[row * check->blocks + b].count;
}

/* ---- elements one by one ---- */

enum { WINDOW = 16384 };

/* Elements [first, first + n) of an output. */
static bool look(struct oracle_case *c, size_t tensor, uint64_t key, int64_t first, size_t n,
                 struct oracle_mismatch *out, struct err *err) {
    struct oracle *o = c->o;
    struct oracle_check room = {0};
    struct oracle_op op = oracle_op_of(c);
    op.select = UINT64_C(1) << tensor;
    op.key = key;
    op.first = first;
    op.count = (int64_t)n;
    op.more = records_alloc(o, n * sizeof *out, &room, err);
    if (!op.more || !oracle_launch(o, "oracle_compare", oracle_blocks_for((int64_t)n),
                                   o->t->ntensors, &op, sizeof op, err))
        return false;
    bool ok = o->e->fetch(o->e->ctx, out, op.more, n * sizeof *out, err);
    o->chunks[room.chunk].used = room.offset; /* the last piece handed out */
    return ok;
}

/* The lowest mismatches, in the stretches of the blocks that saw any. */
static bool find_mismatches(const struct oracle_check *check, size_t tensor,
                            const struct oracle_tally *blocks, struct compare_sum *s,
                            struct err *err) {
    struct oracle_mismatch *seen = mem_alloc(WINDOW * sizeof *seen);
    int64_t count = check->of->in->tensors[tensor].count;
    bool ok = oracle_case_ready(check->of, err);
    for (size_t b = 0; ok && b < check->blocks && s->nfirst < MISMATCH_KEPT; b++) {
        int64_t left = blocks[b].bad.count, at = blocks[b].bad.first;
        while (ok && left > 0 && at < count && s->nfirst < MISMATCH_KEPT) {
            size_t n = count - at < WINDOW ? (size_t)(count - at) : WINDOW;
            ok = look(check->of, tensor, check->key, at, n, seen, err);
            for (size_t i = 0; ok && i < n && left > 0 && s->nfirst < MISMATCH_KEPT; i++) {
                if (seen[i].index < 0)
                    continue;
                left--;
                s->first[s->nfirst++] = (struct mismatch){seen[i].index, seen[i].expected,
                                                          seen[i].got, seen[i].estimate};
            }
            at += (int64_t)n;
        }
    }
    mem_free(seen);
    return ok;
}

static bool collect_output(struct oracle *o, const struct oracle_check *check, size_t tensor,
                           const struct oracle_tally *blocks, struct oracle_output *out,
                           struct err *err) {
    struct compare_sum sum = {0};
    const struct oracle_world *w = (const struct oracle_world *)check->of->host;
    *out = (struct oracle_output){.tensor = tensor};
    for (size_t b = 0; b < check->blocks; b++) {
        compared_join(&sum.all, &blocks[b].all);
        seen_add(&out->unwritten, &blocks[b].unwritten, out->tensor);
        seen_add(&out->untrue, &blocks[b].untrue, out->tensor);
    }
    if ((sum.all.wrong || sum.all.nonfinite) &&
        !find_mismatches(check, out->tensor, blocks, &sum, err))
        return false;
    compare_conclude(&sum, o->t->accuracy, &out->comparison);
    if (out->untrue.count == 0)
        return true;
    const struct oracle_tensor *t =
        (const struct oracle_tensor *)(check->of->host + (w->tensor - check->of->world));
    return o->e->fetch(o->e->ctx, &out->untrue_byte,
                       t[out->tensor].at + (uint64_t)out->untrue.first, 1, err);
}

static bool collect_check(struct oracle *o, const struct oracle_check *check, const char *records,
                          struct oracle_result *out, struct err *err) {
    records += check->offset;
    if (check->kind == CHECK_DIGESTS) {
        collect_digests(check, (const struct oracle_found *)records, out);
        return true;
    }
    if (check->kind != CHECK_OUTPUTS) {
        collect_found(check, (const struct oracle_found *)records, out);
        return true;
    }
    const struct oracle_tally *tallies = (const struct oracle_tally *)records;
    struct oracle_output *outputs = (struct oracle_output *)out->outputs;
    out->noutputs = 0;
    for (size_t i = 0; i < check->rows; i++)
        if (!collect_output(o, check, row_of(check, i), tallies + i * check->blocks,
                            &outputs[out->noutputs++], err))
            return false;
    return true;
}

static size_t outputs_of(const struct task *t) {
    size_t n = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        n += tensor_is_output(&t->tensors[i]);
    return n;
}

static bool collect_all(struct oracle *o, char *const *chunks, struct oracle_result *results,
                        size_t n, struct err *err) {
    size_t each = outputs_of(o->t);
    o->outputs = mem_grow(o->outputs, &o->outputs_cap, n * each + 1, sizeof *o->outputs);
    for (size_t i = 0; i < n; i++)
        results[i] = (struct oracle_result){.outputs = o->outputs + i * each};
    for (size_t i = 0; i < o->nchecks; i++) {
        BUG_IF(o->checks[i].slot >= n);
        if (!collect_check(o, &o->checks[i], chunks[o->checks[i].chunk],
                           &results[o->checks[i].slot], err))
            return false;
    }
    return true;
}

/* One chunk of the size that was needed takes the place of several. */
static void records_reset(struct oracle *o) {
    size_t used = 0;
    for (size_t i = 0; i < o->nchunks; i++)
        used += o->chunks[i].bytes;
    if (o->nchunks > 1) {
        struct oracle_chunk whole = {.bytes = used};
        struct err ignored;
        chunks_release(o);
        if (o->e->alloc(o->e->ctx, used, &whole.at, &ignored))
            o->chunks[o->nchunks++] = whole;
    } else if (o->nchunks == 1)
        o->chunks[0].used = 0;
    o->nchecks = 0;
}

bool oracle_collect(struct oracle *o, struct oracle_result *results, size_t n, struct err *err) {
    size_t nchunks = o->nchunks;
    char **chunks = mem_alloc((nchunks + 1) * sizeof *chunks);
    bool ok = true;
    for (size_t i = 0; i < nchunks && ok; i++) {
        chunks[i] = mem_alloc(o->chunks[i].used + 1);
        ok = o->e->fetch(o->e->ctx, chunks[i], o->chunks[i].at, o->chunks[i].used, err);
    }
    ok = ok && collect_all(o, chunks, results, n, err);
    for (size_t i = 0; i < nchunks; i++)
        mem_free(chunks[i]);
    mem_free(chunks);
    records_reset(o);
    return ok;
}

bool oracle_reference(struct oracle_case *c, size_t tensor, int64_t first, size_t count,
                      double *value, double *estimate, struct err *err) {
    struct oracle_mismatch *seen = mem_alloc(WINDOW * sizeof *seen);
    bool ok = oracle_case_ready(c, err);
    for (size_t at = 0; at < count && ok; at += WINDOW) {
        size_t n = count - at < WINDOW ? count - at : WINDOW;
        ok = look(c, tensor, 0, first + (int64_t)at, n, seen, err);
        for (size_t i = 0; i < n && ok; i++) {
            value[at + i] = seen[i].expected;
            estimate[at + i] = seen[i].estimate;
        }
    }
    mem_free(seen);
    return ok;
}
