/* The oracle itself, checks that are queued, and what becomes of their records. */
#include "eval/oracle_private.h"

#include "spec/compare.h"

#include <string.h>

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

bool oracle_launch(struct oracle *o, const char *kernel, int64_t blocks, size_t tensors,
                   const void *params, size_t bytes, struct err *err) {
    if (blocks <= 0 || tensors == 0)
        return true;
    if (blocks > INT32_MAX)
        return err_set(err, ERR_ENV, "%s: too many elements for one launch", kernel);
    const uint32_t grid[3] = {(uint32_t)blocks, (uint32_t)tensors, 1};
    return o->e->launch(o->e->ctx, kernel, grid, ORACLE_BLOCK, params, bytes, err) ||
           err_wrap(err, "%s", kernel);
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

int64_t oracle_blocks_for(int64_t elements) {
    enum { EACH = 8 * ORACLE_BLOCK, MOST = 4096 };
    int64_t blocks = (elements + EACH - 1) / EACH;
    return blocks < 1 ? 1 : blocks < MOST ? blocks : MOST;
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
