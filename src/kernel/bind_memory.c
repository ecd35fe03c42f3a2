/* Workspaces, memsets and tensor maps for one instance.
 *
 * The rules of tensor maps are those of cuTensorMapEncodeTiled without interleaving, checked here
 * so that a plan fails with a reason and a place instead of with "invalid value". That the address
 * is aligned to 16 bytes is not among them: every tensor and workspace is. */
#include "kernel/plan.h"

#include "base/checked.h"
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- workspaces ---- */

static bool bind_extents(struct binding_run *b, const struct plan_workspace *w,
                         int64_t extent[TASK_MAX_RANK]) {
    for (size_t i = 0; i < w->rank; i++) {
        const struct expr *e = w->extent[i];
        if (!bind_value(b, e, &extent[i]))
            return false;
        if (extent[i] < 1)
            return BIND_FAIL(b, e->at, e->len, NULL,
                             "an extent of workspace %.*s is %" PRId64 ", it must be at least 1",
                             STR_ARG(w->name), extent[i]);
    }
    return true;
}

bool bind_workspace(struct binding_run *b, const struct plan_workspace *w,
                    struct bound_workspace *out) {
    int64_t extent[TASK_MAX_RANK], bytes = (int64_t)dtype_info(w->dtype)->bytes;
    if (!bind_extents(b, w, extent))
        return false;
    for (size_t i = 0; i < w->rank; i++)
        if (!mul_i64(bytes, extent[i], &bytes))
            return BIND_FAIL(b, w->at, w->len, NULL,
                             "the bytes of workspace %.*s do not fit 64 bits", STR_ARG(w->name));
    *out = (struct bound_workspace){w->name, w->dtype, (uint64_t)bytes, w->align};
    return true;
}

/* ---- memsets ---- */

/* The half that is this number, where there is one. */
static bool half_bits(double v, uint64_t *out) {
    int exponent;
    double m = fabs(v);
    uint64_t sign = signbit(v) ? 0x8000 : 0;
    if (m == 0 || isinf(m)) {
        *out = sign | (m == 0 ? 0 : 0x7c00);
        return true;
    }
    double significand = ldexp(frexp(m, &exponent), 11); /* in [1024, 2048) where it is exact */
    if (m < 1 || m > 65504 || significand != floor(significand))
        return false;
    *out = sign | (uint64_t)(exponent - 1 + 15) << 10 | ((uint64_t)significand & 1023);
    return true;
}

/* v is an integer or an infinity; false: the type does not have it. */
static bool float_bits(enum dtype t, double v, uint64_t *out) {
    float f = (float)v;
    uint32_t single;
    memcpy(&single, &f, sizeof single);
    switch (t) {
    case DTYPE_F64:
        memcpy(out, &v, sizeof v);
        return true;
    case DTYPE_F32:
        *out = single;
        return (double)f == v;
    case DTYPE_BF16:
        *out = single >> 16;
        return (double)f == v && !(single & 0xffff);
    default:
        return half_bits(v, out);
    }
}

static bool integer_bits(enum dtype t, int64_t v, uint64_t *out) {
    const struct dtype_info *type = dtype_info(t);
    unsigned bits = type->kind == 'b' ? 1 : (unsigned)type->bytes * 8;
    bool is_signed = type->kind == 'i';
    *out = (uint64_t)v;
    if (bits < 64)
        *out &= (UINT64_C(1) << type->bytes * 8) - 1;
    if (!is_signed)
        return v >= 0 && v < INT64_C(1) << bits;
    return bits == 64 || (v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1));
}

static bool memset_pattern(struct binding_run *b, const struct plan_memset *m, enum dtype t,
                           uint64_t *out) {
    int64_t v;
    if (!m->value)
        return float_bits(t, m->negative ? -INFINITY : INFINITY, out);
    if (!bind_value(b, m->value, &v))
        return false;
    /* Back again: an int64 between two doubles is one of those no float has. */
    double d = (double)v;
    bool exact = fabs(d) < 0x1p63 && (int64_t)d == v;
    if (dtype_info(t)->kind == 'f' ? exact && float_bits(t, d, out) : integer_bits(t, v, out))
        return true;
    return BIND_FAIL(b, m->value->at, m->value->len, NULL, "%" PRId64 " is not a value of %s", v,
                     dtype_info(t)->name);
}

bool bind_memset(struct binding_run *b, const struct plan_memset *m, const struct bound_plan *p,
                 struct bound_memset *out) {
    enum dtype t = plan_memory_dtype(b->c, m->of, m->ref);
    size_t size = dtype_info(t)->bytes;
    uint64_t bytes =
        m->of == ARG_TENSOR ? b->in->tensors[m->ref].bytes : p->workspaces[m->ref].bytes;
    *out = (struct bound_memset){
        .of = m->of, .ref = m->ref, .size = (unsigned)size, .count = bytes / size};
    return memset_pattern(b, m, t, &out->pattern);
}

/* ---- tensor maps ---- */

#define BOX_MAX    256
#define STEP_MAX   8
#define EXTENT_MAX (INT64_C(1) << 32)
#define STRIDE_MAX (INT64_C(1) << 40)
#define BOX_BYTES  (UINT64_C(227) << 10)

/* Extents as the map sees them: what it reshapes to, or the tensor's own the other way round. */
static bool map_extents(struct binding_run *b, const struct plan_tensormap *m,
                        int64_t out[TENSORMAP_MAX_RANK], int64_t *count) {
    int64_t own[TASK_MAX_RANK];
    *count = 1;
    if (m->of == ARG_WORKSPACE && !bind_extents(b, &b->c->workspaces[m->ref], own))
        return false;
    size_t rank =
        m->of == ARG_WORKSPACE ? b->c->workspaces[m->ref].rank : b->c->task->tensors[m->ref].rank;
    if (m->of == ARG_TENSOR)
        memcpy(own, b->in->tensors[m->ref].extent, sizeof own);
    for (size_t i = 0; i < rank; i++)
        *count *= own[i]; /* fits: its bytes did */
    for (size_t i = 0; i < m->rank; i++)
        if (!m->shape[0])
            out[i] = own[rank - 1 - i];
        else if (!bind_value(b, m->shape[i], &out[i]))
            return false;
    return true;
}

static bool check_extents(struct binding_run *b, const struct plan_tensormap *m,
                          const int64_t extent[TENSORMAP_MAX_RANK], int64_t count) {
    int64_t product = 1;
    for (size_t i = 0; i < m->rank; i++) {
        if (extent[i] < 1 || extent[i] >= EXTENT_MAX)
            return BIND_FAIL(b, m->at, m->len, NULL,
                             "extent %zu of tensormap %.*s is %" PRId64
                             ", it must be from 1 to 2^32-1",
                             i, STR_ARG(m->name), extent[i]);
        if (!mul_i64(product, extent[i], &product))
            product = -1;
        if (product < 0)
            break;
    }
    if (product == count)
        return true;
    return BIND_FAIL(b, m->shape[0]->at, m->shape[0]->len,
                     "the shape has the same elements, counted another way",
                     "the shape of tensormap %.*s does not have the %" PRId64
                     " elements of the tensor",
                     STR_ARG(m->name), count);
}

/* Dense: each stride is the one before times the extent before. */
static bool bind_strides(struct binding_run *b, const struct plan_tensormap *m,
                         struct bound_tensormap *out) {
    int64_t stride = (int64_t)dtype_info(out->dtype)->bytes;
    for (size_t i = 0; i + 1 < m->rank; i++) {
        stride *= (int64_t)out->extent[i]; /* fits: the whole does */
        if (stride % 16)
            return BIND_FAIL(b, m->at, m->len,
                             "add a require line that makes it so, or pass the tensor itself",
                             "tensormap %.*s: dimension %zu has a stride of %" PRId64
                             " bytes, it must be a multiple of 16",
                             STR_ARG(m->name), i + 1, stride);
        if (stride >= STRIDE_MAX)
            return BIND_FAIL(b, m->at, m->len, NULL,
                             "tensormap %.*s: dimension %zu has a stride of %" PRId64
                             " bytes, it must be less than 2^40",
                             STR_ARG(m->name), i + 1, stride);
        out->stride[i] = (uint64_t)stride;
    }
    return true;
}

static bool bind_within(struct binding_run *b, const struct expr *e, const char *what, int64_t most,
                        uint32_t *out) {
    int64_t v;
    if (!bind_value(b, e, &v))
        return false;
    if (v < 1 || v > most)
        return BIND_FAIL(b, e->at, e->len, NULL,
                         "%s of a tensormap is %" PRId64 ", it must be from 1 to %" PRId64, what, v,
                         most);
    *out = (uint32_t)v;
    return true;
}

static bool bind_box(struct binding_run *b, const struct plan_tensormap *m,
                     struct bound_tensormap *out) {
    uint64_t bytes = dtype_info(out->dtype)->bytes;
    for (size_t i = 0; i < m->rank; i++) {
        out->step[i] = 1;
        if (!bind_within(b, m->box[i], "the box", BOX_MAX, &out->box[i]) ||
            (m->step[0] && !bind_within(b, m->step[i], "a step", STEP_MAX, &out->step[i])))
            return false;
        bytes *= (out->box[i] + out->step[i] - 1) / out->step[i];
    }
    if (out->step[0] != 1)
        return BIND_FAIL(b, m->step[0]->at, m->step[0]->len,
                         "only the outer dimensions can be stepped through",
                         "the innermost step of a tensormap must be 1");
    if (bytes > BOX_BYTES)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, NULL,
                         "a box of %" PRIu64 " bytes does not fit shared memory, %" PRIu64, bytes,
                         BOX_BYTES);
    return true;
}

/* The innermost row of the box against 16 bytes and the span that is swizzled. */
static bool bind_swizzle(struct binding_run *b, const struct plan_tensormap *m,
                         struct bound_tensormap *out) {
    int64_t span = 0, row = (int64_t)(out->box[0] * dtype_info(out->dtype)->bytes);
    if (m->swizzle && !bind_value(b, m->swizzle, &span))
        return false;
    if (span != 0 && span != 32 && span != 64 && span != 128)
        return BIND_FAIL(b, m->swizzle->at, m->swizzle->len, NULL,
                         "swizzle is %" PRId64 ", it must be 0, 32, 64 or 128", span);
    if (row % 16)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, NULL,
                         "the innermost row of the box has %" PRId64 " bytes (%" PRIu32
                         " elements of %s), it must be a multiple of 16",
                         row, out->box[0], dtype_info(out->dtype)->name);
    if (span && row > span)
        return BIND_FAIL(b, m->box[0]->at, m->box[0]->len, "make the box narrower and load several",
                         "the innermost row of the box has %" PRId64
                         " bytes, more than the %" PRId64 " that are swizzled",
                         row, span);
    out->swizzle = (unsigned)span;
    return true;
}

bool bind_tensormap(struct binding_run *b, const struct plan_tensormap *m,
                    struct bound_tensormap *out) {
    int64_t extent[TENSORMAP_MAX_RANK] = {0}, count;
    *out = (struct bound_tensormap){.of = m->of,
                                    .ref = m->ref,
                                    .dtype = plan_memory_dtype(b->c, m->of, m->ref),
                                    .rank = (unsigned)m->rank,
                                    .fill_nan = m->fill_nan};
    if (!map_extents(b, m, extent, &count) || !check_extents(b, m, extent, count))
        return false;
    for (size_t i = 0; i < m->rank; i++)
        out->extent[i] = (uint64_t)extent[i];
    return bind_strides(b, m, out) && bind_box(b, m, out) && bind_swizzle(b, m, out);
}
