/* Inputs as a kernel gets them: the kinds (source_value.h), definitions evaluated over them,
 * assumptions respected.
 *
 * A defined input is its expression over the random tensors under the same kind, so whatever the
 * definition guarantees (rows that sum to one, a symmetric matrix) holds under every kind. An
 * assumption is made true element by element: of a symmetric matrix the upper triangle is made and
 * mirrored, values outside an assumed range are folded back into it. */
#include "spec/data.h"

#include "base/parallel.h"
#include "spec/bind.h"
#include "spec/scalar.h"
#include "spec/source.h"

enum { CHUNK = SOURCE_MANY };

static const char *const names[DATA_COUNT] = {
#define DATA(id, name, what) name,
#include "spec/data.def"
#undef DATA
};

const char *data_name(enum data_kind k) {
    BUG_IF((unsigned)k >= DATA_COUNT);
    return names[k];
}

bool data_find(str name, enum data_kind *out) {
    for (int i = 0; i < DATA_COUNT; i++)
        if (str_is(name, names[i])) {
            *out = (enum data_kind)i;
            return true;
        }
    return false;
}

/* A tensor being made, and those its definition reads. */
struct maker;
struct making {
    struct maker *m;
    size_t tensor;
    struct source source;
    struct promise promise;
    struct scalar scalar; /* for its definition and conditions */
};
struct maker {
    const struct inst *in;
    const struct data_scale *scale;
    enum data_kind kind;
    uint64_t seed;
    struct making *of[TASK_MAX_TENSORS]; /* made on first use */
};

static double element(struct making *k, int64_t i);

static struct making *making_of(struct maker *m, size_t tensor);

static double read_element(void *ctx, size_t tensor, int64_t linear) {
    return element(making_of(ctx, tensor), linear);
}

static struct making *making_of(struct maker *m, size_t tensor) {
    if (!m->of[tensor]) {
        struct making *k = mem_alloc(sizeof *k);
        k->m = m;
        k->tensor = tensor;
        k->source = source_of(m->in, m->scale, tensor, m->kind, m->seed);
        k->promise = promise_of(m->in, tensor);
        k->scalar.in = m->in;
        k->scalar.read = read_element;
        k->scalar.ctx = m;
        m->of[tensor] = k;
    }
    return m->of[tensor];
}

static void maker_release(struct maker *m) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        mem_free(m->of[i]);
}

/* As the tensor's type stores it: its own, whatever the source draws. */
static double stored(const struct making *k, double v) {
    return source_stored(&k->source, dtype_info(k->source.dtype)->kind, v);
}

/* Sets the variables of the left side of `s` to element i. False: the statement defines others. */
static bool place(struct making *k, const struct statement *s, int64_t i) {
    const struct inst *in = k->m->in;
    const struct bound_tensor *b = &in->tensors[k->tensor];
    for (size_t d = 0; d < in->task->tensors[k->tensor].rank; d++) {
        int64_t at = i / b->stride[d] % b->extent[d], constant;
        if (s->position[d] >= 0)
            k->scalar.var[s->position[d]] = at;
        else if (!expr_eval_dims(s->constant[d], in->dims, &constant) || constant != at)
            return false;
    }
    return true;
}

/* Reductions are remembered for a row; conditions of assumptions and definitions hold different
 * variables, so what one left behind never matches the other. */
static double defined(struct making *k, int64_t i) {
    const struct task *t = k->m->in->task;
    for (size_t d = 0; d < t->ndefinitions; d++)
        if (t->definitions[d].tensor == k->tensor && place(k, &t->definitions[d], i))
            return scalar_eval(&k->scalar, t->definitions[d].body);
    return 0;
}

static bool assumed_zero(struct making *k, int64_t i) {
    const struct task *t = k->m->in->task;
    for (size_t a = 0; a < t->nassumptions; a++)
        if (t->assumptions[a].kind == ASSUME_ZERO && t->assumptions[a].tensor == k->tensor &&
            place(k, &t->assumptions[a].s, i) &&
            scalar_eval(&k->scalar, t->assumptions[a].s.body) != 0)
            return true;
    return false;
}

static int64_t mirrored(const struct making *k, int64_t i) {
    size_t rank = k->m->in->task->tensors[k->tensor].rank;
    return promise_mirrors(i, k->m->in->tensors[k->tensor].extent[rank - 1]);
}

static double kept(const struct making *k, double v, int64_t i) {
    return promise_keeps(&k->promise, &k->source, dtype_info(k->source.dtype)->kind, v, i);
}

static double raw(struct making *k, int64_t i) {
    bool by_statement = k->m->in->task->tensors[k->tensor].dist.kind == DIST_DEFINED;
    return by_statement ? source_computed(defined(k, i)) : source_value(&k->source, i);
}

static double element(struct making *k, int64_t i) {
    if (!k->promise.any)
        return stored(k, raw(k, i));
    if (assumed_zero(k, i))
        return 0;
    int64_t from = k->promise.symmetric ? mirrored(k, i) : i;
    return stored(k, kept(k, raw(k, from), from));
}

static void elements(struct making *k, int64_t first, size_t n, double *out) {
    bool by_statement = k->m->in->task->tensors[k->tensor].dist.kind == DIST_DEFINED;
    if (k->promise.any || by_statement) {
        for (size_t l = 0; l < n; l++)
            out[l] = element(k, first + (int64_t)l);
        return;
    }
    source_value_many(&k->source, first, n, out);
    source_stored_many(&k->source, dtype_info(k->source.dtype)->kind, out, n);
}

void data_fill(const struct inst *in, const struct data_scale *scale, size_t tensor,
               enum data_kind kind, uint64_t seed, int64_t first, int64_t count, void *dst) {
    struct maker m = {.in = in, .scale = scale, .kind = kind, .seed = seed};
    struct making *k = making_of(&m, tensor);
    size_t size = dtype_info(k->source.dtype)->bytes;
    double chunk[CHUNK];
    BUG_IF(!tensor_is_input(&in->task->tensors[tensor]));
    BUG_IF(first < 0 || count < 0 || first > in->tensors[tensor].count - count);
    for (int64_t at = 0; at < count; at += CHUNK) {
        int64_t n = count - at < CHUNK ? count - at : CHUNK;
        elements(k, first + at, (size_t)n, chunk);
        data_store(k->source.dtype, chunk, (size_t)n, (char *)dst + (size_t)at * size);
    }
    maker_release(&m);
}

struct filling {
    const struct inst *in;
    const struct data_scale *scale;
    size_t tensor;
    enum data_kind kind;
    uint64_t seed;
    char *dst;
};

static void fill_piece(void *ctx, unsigned part, int64_t first, int64_t last) {
    const struct filling *f = ctx;
    size_t size = dtype_info(f->in->task->tensors[f->tensor].dtype)->bytes;
    (void)part;
    data_fill(f->in, f->scale, f->tensor, f->kind, f->seed, first, last - first,
              f->dst + (size_t)first * size);
}

void data_fill_all(const struct inst *in, const struct data_scale *scale, size_t tensor,
                   enum data_kind kind, uint64_t seed, unsigned threads, void *dst) {
    struct filling f = {in, scale, tensor, kind, seed, dst};
    parallel_for(threads, in->tensors[tensor].count, fill_piece, &f);
}
