/* The pointwise family: maps over one index space, near the memory's limit.
 *
 * The statements of a step run over one index space (the same extents, symbolically): one kernel,
 * one launch, each input element loaded once. A let that another statement of the step reads at its
 * own element is a local of the function that reads it. What remains are reads of memory, and how a
 * read moves with the flat index decides how it is loaded. The mathematics of an element is a
 * device function for each output, which both the vector and the scalar path of the kernel call. It
 * is handed the values that the kernel loads; what is read at other places it reads itself, where
 * the conditions around the read hold.
 *
 * A tile of block × items × width consecutive elements goes to a block; each thread takes `items`
 * vectors of `width`, a block apart, so that a warp's accesses stay contiguous. The last tile, and
 * rows whose length does not divide by the width, go element by element. With one element a thread
 * and no loop the kernel is the naive one.
 *
 * Coordinates of a flat index cost divisions, for every vector of elements. Where the first few
 * indices alone select statistics or parameters, and the others' elements fill tiles, blocks have
 * tiles of rows: the numbers of a block in the grid are those indices, and nothing is divided.
 *
 * A read that is contiguous along another index than the result is (a transposition) comes through
 * shared memory: blocks have tiles of the two indices, which are read along the one and stored
 * along the other, the whole map between. */
#include "agent/expert/sheet/sheet.h"

#include <string.h>

#define ACCESS_BYTES 16
#define PW_READS     64 /* loaded by the kernel, of one step */
#define PW_DIVISORS  4
#define PW_TENSORS   40         /* pointers of one kernel */
#define PW_ASIDE     8          /* reads that are contiguous along another index */
#define TILE_SHARED  (48 << 10) /* bytes of shared memory that a block has without asking */
#define PW_FIELDS    16         /* small structs that one function loads */
#define TILES_A_SM   4
#define TILE_LEAST   16             /* values of either index that make tiles worth their while */
#define GRID_MOST    INT64_C(65535) /* blocks along y or z */

enum pw_access {
    PW_FLAT,  /* element e of the tensor for element e of the space: always vectors */
    PW_ROW,   /* runs along the innermost index from an aligned place: vectors where sizes divide */
    PW_SPLAT, /* does not move with the innermost index: one load for a vector */
    PW_ACROSS, /* runs along another index than the innermost, in tiles through shared memory */
    PW_GATHER, /* any other: inside the element's function, where the guards of if() hold */
};

struct pw_read {
    const struct expr *e;
    enum pw_access access;
    const struct expr *divisor[PW_DIVISORS]; /* ROW: sizes that the vector's width must divide */
    size_t ndivisors;
    str vector; /* of the variable a vector of it is in */
};

struct pw_output {
    const struct statement *s;
    bool flat;            /* its element is the flat index: it is the whole tensor */
    struct scope f;       /* its function */
    bool reads[PW_READS]; /* values the function is handed */
    str value[PW_READS];  /* their names there */
    uint32_t coordinates; /* variables the function is handed */
    str vector;
    struct { /* structs that the function loads whole, by one read of each */
        const struct expr *e;
        str name;
    } fields[PW_FIELDS];
    size_t nfields;
};

/* Variables [first, end) of the space whose values together are one number, in what is read too. */
struct pw_run {
    size_t first, end;
    const struct expr *total;
    struct expr *product; /* the same, of several */
};

struct pw {
    struct sheet *sh;
    const struct step *st;
    struct scope k;
    const struct statement *space; /* the first statement: its extents are everyone's */
    struct pw_output *outputs;
    size_t noutputs;
    struct pw_read reads[PW_READS];
    size_t nreads;
    bool inplace; /* some tensor is read and written */
    int64_t block, items, width;
    bool persistent, hint;
    bool naive; /* one thread, one element, no loop */
    bool cute;  /* full tiles by CuTe's layouts and copies */

    size_t own;      /* tiles of rows: so many first indices are a block's own; 0: flat tiles */
    bool rows_first; /* blocks along x are the rows, along y tiles; or the other way round */
    const struct expr *in_row; /* elements of a row */
    str in_row_name;

    const struct expr *aside[PW_ASIDE]; /* reads that tiles of two indices could serve */
    size_t naside;
    bool transposed;             /* such tiles: */
    struct pw_run along, across; /* as the result lies, and as those reads do */
    int64_t chunks, words;       /* vectors of a tile along, and across */
};

/* ---- claims ---- */

struct claim {
    const struct form *f;
    const bool *done;
    bool *take;
    size_t first;
};

/* Read at the element that is computed, of a tensor that lies in the same order. */
static bool is_own_read(const struct task *t, const struct statement *s, const struct expr *e) {
    const struct tensor *x = &t->tensors[e->ref];
    if (x->rank != s->nindex)
        return false;
    for (size_t i = 0; i < x->rank; i++)
        if (e->args[i]->kind != EXPR_INDEX || e->args[i]->ref != i ||
            !expr_same(x->extent[i], statement_extent(t, s, i)))
            return false;
    return true;
}

/* All of it can be read by a kernel of what is taken: lets are there, or are made at the same
 * element; what is written in place is read at the same element only. */
static bool reads_fit(const struct claim *c, const struct statement *s, const struct expr *e) {
    const struct task *t = c->f->task;
    if (e->kind == EXPR_READ) {
        const struct statement *made = form_definition_in(t, c->take, e->ref);
        bool let = t->tensors[e->ref].role == TENSOR_LET;
        if (made && !(statement_is_whole(t, made) && is_own_read(t, s, e)))
            return false;
        if (let && !made && !form_defined_by(c->f->task, c->done, e->ref))
            return false;
    }
    for (size_t i = 0; i < e->nargs; i++)
        if (!reads_fit(c, s, e->args[i]))
            return false;
    return true;
}

static size_t count_tensors(const struct claim *c) {
    const struct task *t = c->f->task;
    uint64_t tensors = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        if (c->take[i])
            tensors |= UINT64_C(1) << t->statements[i].tensor | expr_tensors(t->statements[i].body);
    for (; tensors; tensors &= tensors - 1)
        n++;
    return n;
}

/* With this one too, every statement taken still fits. */
static bool fits(struct claim *c, size_t i) {
    const struct task *t = c->f->task;
    bool ok = true;
    c->take[i] = true;
    for (size_t k = 0; k < t->nstatements && ok; k++)
        ok = !c->take[k] || reads_fit(c, &t->statements[k], t->statements[k].body);
    ok = ok && count_tensors(c) <= PW_TENSORS;
    c->take[i] = ok;
    return ok;
}

static bool pw_claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                     bool *take) {
    (void)b;
    struct claim c = {f, done, take, first};
    const struct statement *all = f->task->statements;
    if (!form_is_map(&all[first]) || !fits(&c, first))
        return false;
    for (size_t i = first + 1; i < f->task->nstatements; i++)
        if (!done[i] && form_is_map(&all[i]) && statement_same_space(f->task, &all[first], &all[i]))
            fits(&c, i);
    return true;
}

/* ---- reads ---- */

/* The let of the step whose value is read; NULL: a read of memory. */
static const struct statement *pw_local(const struct pw *p, const struct expr *read) {
    const struct task *t = p->st->inst->task;
    for (size_t i = 0; i < t->nstatements; i++)
        if (t->statements[i].tensor == read->ref && t->tensors[read->ref].role != TENSOR_INOUT)
            return &t->statements[i];
    return NULL;
}

/* In bounds for every element by its form alone, whatever guards it stands behind. */
static bool is_safe_index(const struct task *t, const struct pw *p, const struct expr *a,
                          const struct expr *extent) {
    if (a->kind == EXPR_MOD)
        return expr_same(a->args[1], extent);
    if (a->kind == EXPR_NUMBER)
        return a->integer == 0 ||
               (a->integer > 0 && extent->kind == EXPR_NUMBER && a->integer < extent->integer);
    return a->kind == EXPR_INDEX && expr_same(extent, statement_extent(t, p->space, a->ref));
}

static bool is_safe(const struct pw *p, const struct expr *e) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[e->ref];
    for (size_t i = 0; i < x->rank; i++)
        if (!is_safe_index(t, p, e->args[i], x->extent[i]))
            return false;
    return true;
}

static bool is_size(const struct expr *e) {
    return expr_vars(e) == 0 && !expr_has(e, EXPR_READ);
}

/* A size that the width must divide; none is to be had beyond PW_DIVISORS. */
static bool add_divisor(struct pw_read *r, const struct expr *e) {
    for (size_t i = 0; i < r->ndivisors; i++)
        if (expr_same(r->divisor[i], e))
            return true;
    if (r->ndivisors == PW_DIVISORS)
        return false;
    r->divisor[r->ndivisors++] = e;
    return e->kind != EXPR_NUMBER || e->integer % 2 == 0; /* no width divides an odd number */
}

/* Consecutive for consecutive values of the variable within an aligned vector, where the width
 * divides the sizes added to `r`: j, j + E, j % E, (j + E) % D. */
static bool runs_along(const struct expr *e, size_t var, struct pw_read *r) {
    if (e->kind == EXPR_INDEX)
        return e->ref == var;
    bool shifts = e->kind == EXPR_ADD || e->kind == EXPR_SUB || e->kind == EXPR_MOD;
    return shifts && is_size(e->args[1]) && runs_along(e->args[0], var, r) &&
           add_divisor(r, e->args[1]);
}

static bool moves_with(const struct expr *e, size_t var) {
    return expr_vars(e) >> var & 1;
}

static enum pw_access access_of(const struct pw *p, struct pw_read *r, bool guarded) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[r->e->ref];
    size_t n = p->space->nindex, moving = 0;
    if (is_own_read(t, p->space, r->e))
        return PW_FLAT;
    if (guarded && !is_safe(p, r->e))
        return PW_GATHER;
    for (size_t i = 0; i < x->rank && n > 0; i++)
        moving += moves_with(r->e->args[i], n - 1);
    if (moving == 0)
        return PW_SPLAT;
    const struct expr *last = r->e->args[x->rank - 1];
    bool row = moving == 1 && runs_along(last, n - 1, r) && add_divisor(r, x->extent[x->rank - 1]);
    return row ? PW_ROW : PW_GATHER;
}

/* The read among those the kernel loads, or -1 for a gather. */
static int pw_find_read(const struct pw *p, const struct expr *e) {
    for (size_t i = 0; i < p->nreads; i++)
        if (expr_same(p->reads[i].e, e))
            return (int)i;
    return -1;
}

/* The variable whose next value is the next element in memory, where no other index of the read has
 * it: c of x[a,b,c] and of x[a,b,n*C + c]. */
static bool contiguous_variable(const struct pw *p, const struct expr *e, size_t *var) {
    const struct tensor *x = &p->st->inst->task->tensors[e->ref];
    const struct expr *last = x->rank ? e->args[x->rank - 1] : NULL, *v = last;
    uint32_t others = 0;
    if (last && last->kind == EXPR_ADD) {
        v = last->args[last->args[0]->kind != EXPR_INDEX];
        others |= expr_vars(last->args[v == last->args[0]]);
    }
    if (!last || v->kind != EXPR_INDEX)
        return false;
    for (size_t i = 0; i < x->rank; i++) {
        others |= i + 1 < x->rank ? expr_vars(e->args[i]) : 0;
        if (expr_has(e->args[i], EXPR_READ))
            return false;
    }
    *var = v->ref;
    return !(others >> v->ref & 1);
}

/* Contiguous along another variable than the result, which its other indices have. */
static bool is_aside(const struct pw *p, const struct expr *e) {
    size_t var = 0, n = p->space->nindex;
    return n > 1 && contiguous_variable(p, e, &var) && var != n - 1 &&
           (expr_vars(e) >> (n - 1) & 1);
}

static void add_aside(struct pw *p, const struct expr *e) {
    for (size_t i = 0; i < p->naside; i++)
        if (expr_same(p->aside[i], e))
            return;
    if (p->naside < PW_ASIDE)
        p->aside[p->naside++] = e;
}

static void add_read(struct pw *p, const struct expr *e, bool guarded) {
    struct pw_read r = {.e = e};
    r.access = access_of(p, &r, guarded);
    if (r.access == PW_GATHER && (!guarded || is_safe(p, e)) && is_aside(p, e))
        add_aside(p, e);
    if (r.access != PW_GATHER && pw_find_read(p, e) < 0 && p->nreads < PW_READS)
        p->reads[p->nreads++] = r;
}

/* Guarded: behind a condition, so that the read's bounds hold only where the condition does. */
static void find_reads(struct pw *p, const struct expr *e, bool guarded) {
    if (e->kind == EXPR_READ) {
        if (!pw_local(p, e))
            add_read(p, e, guarded);
        return;
    }
    bool guards = e->kind == EXPR_IF || e->kind == EXPR_AND || e->kind == EXPR_OR;
    for (size_t i = 0; i < e->nargs; i++)
        find_reads(p, e->args[i], guarded || e->kind == EXPR_PAD || (guards && i > 0));
}

/* ---- the step ---- */

static enum dtype dtype_of(const struct pw *p, size_t tensor) {
    return sheet_dtype(p->sh, p->st, tensor);
}

static str tensor_name(const struct pw *p, size_t tensor) {
    return p->st->inst->task->tensors[tensor].name;
}

/* Outputs and reads of the step. */
static void pw_build(struct pw *p) {
    const struct task *t = p->st->inst->task;
    p->space = &t->statements[0];
    p->outputs = arena_array(p->sh->mem, struct pw_output, t->nstatements);
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        enum tensor_role role = t->tensors[s->tensor].role;
        find_reads(p, s->body, false);
        p->inplace |= role == TENSOR_INOUT;
        if (role == TENSOR_LET)
            continue;
        p->outputs[p->noutputs++] = (struct pw_output){.s = s, .flat = statement_is_whole(t, s)};
    }
}

/* ---- rows ---- */

/* Variables that an expression names beside what the kernel loads and the values of lets. */
static uint32_t variables_named(const struct pw *p, const struct expr *e) {
    if (e->kind == EXPR_READ && (pw_local(p, e) || pw_find_read(p, e) >= 0))
        return 0;
    uint32_t used = e->kind == EXPR_INDEX ? UINT32_C(1) << e->ref : 0;
    for (size_t i = 0; i < e->nargs; i++)
        used |= variables_named(p, e->args[i]);
    return used;
}

/* Tensors that functions read themselves. */
static uint64_t tensors_gathered(const struct pw *p, const struct expr *e) {
    if (e->kind == EXPR_READ && (pw_local(p, e) || pw_find_read(p, e) >= 0))
        return 0;
    uint64_t read = e->kind == EXPR_READ ? UINT64_C(1) << e->ref : 0;
    for (size_t i = 0; i < e->nargs; i++)
        read |= tensors_gathered(p, e->args[i]);
    return read;
}

/* In rows of which the first `own` indices say which one it is: the read's last indices are the
 * others, so that it runs along the row, and those before are the row's. */
static bool follows_row(const struct pw *p, const struct pw_read *r, size_t own) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[r->e->ref];
    size_t along = p->space->nindex - own, first = x->rank - along;
    if (own == 0 || r->access != PW_ROW || x->rank < along)
        return false;
    for (size_t i = 0; i < x->rank; i++) {
        const struct expr *a = r->e->args[i];
        if (a->kind != EXPR_INDEX || (i < first ? a->ref >= own : a->ref != own + i - first))
            return false;
        if (i >= first && !expr_same(x->extent[i], statement_extent(t, p->space, a->ref)))
            return false;
    }
    return true;
}

/* Variables that some function, offset or place of an output needs, by such rows. */
static uint32_t variables_needed(const struct pw *p, size_t own) {
    const struct task *t = p->st->inst->task;
    uint32_t rows = (UINT32_C(1) << own) - 1, all = (UINT32_C(1) << p->space->nindex) - 1, used = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        used |= variables_named(p, t->statements[i].body);
    for (size_t i = 0; i < p->noutputs; i++)
        used |= p->outputs[i].flat ? 0 : all;
    for (size_t i = 0; i < p->nreads; i++)
        if (p->reads[i].access != PW_FLAT)
            used |= expr_vars(p->reads[i].e) & (follows_row(p, &p->reads[i], own) ? rows : all);
    return used;
}

/* How many of the indices [from, to) that are used take a division: of one there is none. */
static int divisions(uint32_t used, size_t from, size_t to) {
    uint32_t of = ((UINT32_C(1) << to) - 1) & ~((UINT32_C(1) << from) - 1);
    return to - from < 2 ? 0 : __builtin_popcount(used & of);
}

/* Elements at the actual shape of the indices [from, to). */
static int64_t elements_of(const struct pw *p, size_t from, size_t to) {
    int64_t n = 1, extent = 0;
    for (size_t i = from; i < to; i++) {
        const struct expr *e = statement_extent(p->st->inst->task, p->space, i);
        if (!expr_eval_dims(e, p->st->inst->dims, &extent) || __builtin_mul_overflow(n, extent, &n))
            return 0;
    }
    return n;
}

/* Several rows read the same elements along them, too many for the cache to keep until the next row
 * comes: the rows' tiles at one place are best computed at about the same time. */
static bool rows_share_much(const struct pw *p, size_t own) {
    const struct inst *in = p->st->inst;
    uint32_t rows = (UINT32_C(1) << own) - 1;
    double bytes = 0;
    for (size_t i = 0; i < p->nreads; i++) {
        const struct pw_read *r = &p->reads[i];
        const struct bound_tensor *x = &in->tensors[r->e->ref];
        if (follows_row(p, r, own) && (expr_vars(r->e) & rows) != rows)
            bytes +=
                (double)x->count * (double)dtype_info(in->task->tensors[r->e->ref].dtype)->bytes;
    }
    return bytes > (double)p->sh->briefing->gpu->l2_bytes / 8;
}

/* Tiles of such rows are nearly all full, and their numbers fit a grid; `first`: see rows_first. */
static bool rows_fit(const struct pw *p, size_t own, bool *first) {
    int64_t row = elements_of(p, own, p->space->nindex), tile = p->block * p->items * p->width;
    int64_t rows = elements_of(p, 0, own), tiles = (row + tile - 1) / tile;
    if (row < 1 || row > SCOPE_INT_MAX || row % p->width || tiles * tile * 7 > row * 8)
        return false;
    if (p->cute && row % tile)
        return false;
    bool many = elements_of(p, own - 1, own) > GRID_MOST || elements_of(p, 0, own - 1) > GRID_MOST;
    bool possible = rows <= SCOPE_INT_MAX && tiles <= GRID_MOST;
    *first = many || (possible && rows_share_much(p, own));
    return *first ? possible : rows > 0;
}

/* Rows of as many indices as leave the fewest divisions, if that is fewer than flat tiles take. */
static void choose_rows(struct pw *p) {
    size_t n = p->space->nindex;
    int least = divisions(variables_needed(p, 0), 0, n);
    if (p->width < 2 || p->persistent)
        return;
    for (size_t own = 1; own < n; own++) {
        uint32_t used = variables_needed(p, own);
        bool first = false;
        if (!rows_fit(p, own, &first))
            continue;
        int here = divisions(used, own, n) + divisions(used, 0, first ? own : own - 1);
        if (here >= least)
            continue;
        least = here;
        p->own = own;
        p->rows_first = first;
    }
}

/* ---- tiles of two indices ---- */

/* The variables [first, end) are neighbouring dimensions of the read, whole ones, and no other
 * index of it has them. */
static bool reads_run(const struct pw *p, const struct expr *e, size_t first, size_t end) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[e->ref];
    uint32_t run = ((UINT32_C(1) << end) - 1) & ~((UINT32_C(1) << first) - 1);
    size_t at = 0, named = 0;
    while (at < x->rank && !expr_is_variable(e->args[at], first))
        at++;
    if (at + (end - first) > x->rank)
        return false;
    for (size_t i = 0; i < x->rank; i++)
        named += (expr_vars(e->args[i]) & run) != 0;
    for (size_t i = first; i < end; i++, at++)
        if (!expr_is_variable(e->args[at], i) ||
            !expr_same(x->extent[at], statement_extent(t, p->space, i)))
            return false;
    return named == end - first;
}

/* As many variables up to `last` as all reads of tiles have side by side, from `least` on. */
static struct pw_run longest_run(const struct pw *p, size_t least, size_t last) {
    const struct task *t = p->st->inst->task;
    struct pw_run r = {.first = last, .end = last + 1};
    bool fits = true;
    while (fits && r.first > least) {
        for (size_t i = 0; i < p->naside && fits; i++)
            fits = reads_run(p, p->aside[i], r.first - 1, r.end);
        r.first -= fits;
    }
    for (size_t i = r.first; i < r.end; i++) {
        const struct expr *e = statement_extent(t, p->space, i);
        r.product = r.total ? expr_pair(p->sh->mem, EXPR_MUL, r.total, e) : NULL;
        r.total = r.product ? r.product : e;
    }
    return r;
}

static size_t bytes_of(const struct pw *p, size_t tensor) {
    return dtype_info(dtype_of(p, tensor))->bytes;
}

/* Of the reads that tiles could serve, those that are contiguous along the same variable as the
 * largest tensor among them. */
static size_t keep_largest(struct pw *p) {
    double most = -1;
    size_t var = 0, v = 0, n = 0;
    for (size_t i = 0; i < p->naside; i++) {
        const struct expr *e = p->aside[i];
        double bytes = (double)p->st->inst->tensors[e->ref].count * (double)bytes_of(p, e->ref);
        if (bytes > most && contiguous_variable(p, e, &v)) {
            most = bytes;
            var = v;
        }
    }
    for (size_t i = 0; i < p->naside; i++)
        if (contiguous_variable(p, p->aside[i], &v) && v == var)
            p->aside[n++] = p->aside[i];
    p->naside = n;
    return var;
}

/* Elements of a word: two, or four where some are bytes, as far as one access has all of them. */
static int64_t word_width(const struct pw *p) {
    size_t least = ACCESS_BYTES, most = 1;
    for (size_t i = 0; i < p->naside + p->noutputs; i++) {
        size_t tensor = i < p->naside ? p->aside[i]->ref : p->outputs[i - p->naside].s->tensor;
        size_t bytes = bytes_of(p, tensor);
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
    }
    int64_t width = least == 1 && 4 * most <= ACCESS_BYTES ? 4 : 2;
    return p->width < width ? p->width : width;
}

/* Bytes of shared memory that tiles take. */
static int64_t tile_bytes(const struct pw *p, int64_t width) {
    int64_t bytes = 0;
    for (size_t i = 0; i < p->naside; i++)
        bytes += (int64_t)bytes_of(p, p->aside[i]->ref) * width;
    return bytes * p->chunks * width * (p->words + 1);
}

/* Words of a tile across: 32, or as many as have 64 bytes where fewer cover what there is with less
 * beyond its end. */
static void choose_words(struct pw *p, int64_t width, int64_t across) {
    int64_t bytes = (int64_t)bytes_of(p, p->aside[0]->ref) * width, least = -1;
    for (int64_t words = 32; words >= 8 && words * bytes >= 64; words /= 2) {
        int64_t tile = words * width, beyond = (across + tile - 1) / tile * tile - across;
        if (least >= 0 && beyond + across / 8 >= least)
            continue;
        least = beyond;
        p->words = words;
    }
}

/* Tiles of two indices where some read is contiguous along another one than the result, both have
 * values enough, and every SM has several tiles: with fewer, threads that wait for each other take
 * longer than what caches have to bring again. */
static void choose_transposed(struct pw *p) {
    size_t last = p->space->nindex - 1;
    if (p->naside == 0 || p->width < 2 || p->persistent || p->cute || p->inplace ||
        p->nreads + p->naside > PW_READS)
        return;
    size_t var = keep_largest(p);
    int64_t width = word_width(p);
    p->across = longest_run(p, 0, var);
    p->along = longest_run(p, var + 1, last);
    int64_t across = elements_of(p, p->across.first, p->across.end);
    int64_t along = elements_of(p, p->along.first, p->along.end);
    p->chunks = 32 * (p->items < 4 ? p->items : 4);
    choose_words(p, width, across);
    while (p->chunks > 8 && (p->chunks > p->block || tile_bytes(p, width) > TILE_SHARED))
        p->chunks /= 2;
    int64_t all = elements_of(p, 0, last + 1), tile = p->words * width * p->chunks * width;
    if (across < TILE_LEAST || along < TILE_LEAST || tile_bytes(p, width) > TILE_SHARED ||
        all / tile < TILES_A_SM * p->sh->briefing->gpu->sms || all / TILE_LEAST > SCOPE_INT_MAX)
        return;
    p->transposed = true;
    p->width = width;
    p->items = p->chunks < 32 ? 1 : p->chunks / 32;
    for (size_t i = 0; i < p->naside; i++)
        p->reads[p->nreads++] = (struct pw_read){.e = p->aside[i], .access = PW_ACROSS};
}

/* The kernel finds its places in what it reads and writes along rows by 64-bit offsets. */
static uint64_t tensors_by_rows(const struct pw *p) {
    const struct task *t = p->st->inst->task;
    uint64_t by_rows = 0, others = 0;
    for (size_t i = 0; i < p->nreads; i++)
        *(p->reads[i].access == PW_FLAT ? &by_rows : &others) |= UINT64_C(1) << p->reads[i].e->ref;
    for (size_t i = 0; i < t->nstatements; i++) {
        const struct statement *s = &t->statements[i];
        bool flat = t->tensors[s->tensor].role == TENSOR_LET || statement_is_whole(t, s);
        *(flat ? &by_rows : &others) |= UINT64_C(1) << s->tensor;
        others |= tensors_gathered(p, s->body);
    }
    return by_rows & ~others;
}

/* ---- strategy ---- */

static bool read_strategy(struct pw *p) {
    struct sheet *sh = p->sh;
    p->block = sheet_decision(sh, "block", 256);
    p->items = sheet_decision(sh, "items", 1);
    p->width = sheet_decision(sh, "vector-width", 1);
    p->persistent = sheet_decision(sh, "persistent", 0) != 0;
    p->hint = sheet_decision(sh, "cache-hint", 0) != 0;
    p->cute = sheet_is_cute(sh);
    p->naive = p->items == 1 && p->width == 1 && !p->persistent && !p->cute;
    int most = sh->briefing->gpu->max_threads_block;
    if (p->block < 1 || p->block > most || p->items < 1 || p->items > 64)
        return err_set(sh->err, ERR_INPUT, "block must be 1 to %d and items 1 to 64", most);
    if (p->width < 1 || p->width > 16 || (p->width & (p->width - 1)))
        return err_set(sh->err, ERR_INPUT, "vector-width must be a power of two up to 16");
    return true;
}

static str width_note(struct pw *p) {
    enum dtype t = dtype_of(p, p->outputs[0].s->tensor);
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    if (p->width == 1)
        return S("one element an access");
    if (bytes <= ACCESS_BYTES)
        return sheet_printf(p->sh, "%zu bytes of %s in one access", bytes, dtype_info(t)->name);
    return sheet_printf(p->sh, "%zu bytes of %s in %zu accesses of %d", bytes, dtype_info(t)->name,
                        bytes / ACCESS_BYTES, ACCESS_BYTES);
}

static void put_note(struct pw *p) {
    struct sheet *sh = p->sh;
    const struct used all[] = {{"block", p->block},
                               {"items", p->items},
                               {"vector-width", p->width},
                               {"persistent", p->persistent}};
    str width = width_note(p);
    sheet_note(sh, "pointwise: %.*s%s: %lld threads a block, %.*s,", STR_ARG(p->k.name),
               p->cute ? ", in CuTe" : "", (long long)p->block, STR_ARG(width));
    sheet_note(sh, "  %lld vector%s a thread%s, %s, %s.", (long long)p->items,
               p->items == 1 ? "" : "s",
               p->items == 1 ? "" : ", all of them loaded before the first is used",
               p->persistent ? "a resident grid that strides over the tiles"
               : p->own      ? "one block a tile of a row"
                             : "one block a tile",
               p->hint ? "streaming loads and stores" : "ordinary loads and stores");
    sheet_used(sh, all, sizeof all / sizeof *all);
}

/* ---- an output's function: what it is handed ---- */

static str type_of(const struct pw *p, size_t tensor, enum value_kind k) {
    bool wide = dtype_of(p, tensor) == DTYPE_I64;
    return k == VALUE_REAL   ? S("float")
           : k == VALUE_BOOL ? S("bool")
           : wide            ? S("long long")
                             : S("int");
}

/* A tensor whose elements the function reads itself: its pointer has the tensor's name. */
static bool gathers_tensor(const struct pw *p, const struct expr *e, size_t tensor) {
    if (e->kind == EXPR_READ && !pw_local(p, e) && pw_find_read(p, e) >= 0)
        return false;
    if (e->kind == EXPR_READ && e->ref == tensor && !pw_local(p, e))
        return true;
    for (size_t i = 0; i < e->nargs; i++)
        if (gathers_tensor(p, e->args[i], tensor))
            return true;
    return false;
}

static str name_value(struct pw *p, struct pw_output *o, const struct expr *e) {
    str own = tensor_name(p, e->ref);
    bool other = sheet_is_reserved(p->sh, own) || gathers_tensor(p, o->s->body, e->ref);
    for (size_t i = 0; i < p->nreads; i++)
        other |= o->reads[i] && str_eq(o->value[i], own);
    return other ? scope_name(&o->f, TEXT(p->sh, "$_here", own).p) : own;
}

static void put_local(struct pw *p, struct pw_output *o, const struct statement *s, str *locals);

static bool is_held(const struct scope *f, const struct expr *e) {
    for (size_t i = 0; i < f->nheld; i++)
        if (expr_same(f->held[i].e, e))
            return true;
    return false;
}

/* The same read but for its last index. */
static bool same_struct(const struct expr *a, const struct expr *b) {
    if (a->kind != EXPR_READ || b->kind != EXPR_READ || a->ref != b->ref)
        return false;
    for (size_t i = 0; i + 1 < a->nargs; i++)
        if (!expr_same(a->args[i], b->args[i]))
            return false;
    return a->args[a->nargs - 1]->kind == EXPR_NUMBER && b->args[b->nargs - 1]->kind == EXPR_NUMBER;
}

/* Which fields of the struct of a read an expression reads, bits. */
static uint32_t fields_read(const struct expr *e, const struct expr *read) {
    uint32_t all = 0;
    if (same_struct(e, read))
        all |= UINT32_C(1) << e->args[e->nargs - 1]->integer;
    for (size_t i = 0; i < e->nargs; i++)
        all |= fields_read(e->args[i], read);
    return all;
}

/* A field of a small struct, an innermost dimension of 2, 4 or 8 elements that one access has, of
 * which several are read; and all of it is inside, whatever condition the read stands behind. */
static bool is_field(const struct pw *p, const struct expr *e) {
    const struct task *t = p->st->inst->task;
    const struct tensor *x = &t->tensors[e->ref];
    const struct expr *extent = x->rank ? x->extent[x->rank - 1] : NULL;
    if (!extent || extent->kind != EXPR_NUMBER || p->width < 2 || p->cute || !is_safe(p, e) ||
        x->role == TENSOR_INOUT || e->args[x->rank - 1]->kind != EXPR_NUMBER)
        return false;
    int64_t n = extent->integer;
    if ((n != 2 && n != 4 && n != 8) || n * (int64_t)bytes_of(p, e->ref) > ACCESS_BYTES)
        return false;
    uint32_t all = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        all |= fields_read(t->statements[i].body, e);
    return __builtin_popcount(all) > 1;
}

/* The struct as a local, once; the read is its field. */
static void put_field(struct pw *p, struct pw_output *o, const struct expr *e, str *locals) {
    struct sheet *sh = p->sh;
    const struct tensor *x = &p->st->inst->task->tensors[e->ref];
    const struct expr *last = e->args[e->nargs - 1];
    size_t i = 0;
    while (i < o->nfields && !same_struct(o->fields[i].e, e))
        i++;
    if (i == PW_FIELDS)
        return;
    if (i == o->nfields) {
        str name = scope_name(&o->f, TEXT(sh, "$_fields", x->name).p);
        struct expr first = *e;
        first.args = arena_array(sh->mem, struct expr *, e->nargs);
        memcpy(first.args, e->args, e->nargs * sizeof *e->args);
        first.args[e->nargs - 1] = expr_number(sh->mem, 0);
        str base = TEXT(sh, "$ + $", scope_pointer(&o->f, e->ref, false),
                        scope_offset_text(&o->f, &first));
        *locals = sheet_join(sh, *locals, "\n",
                             TEXT(sh, "const auto $ = cp_fetch<$, cp_cached>($);", name,
                                  sheet_number(sh, x->extent[x->rank - 1]->integer), base));
        o->fields[o->nfields].e = e;
        o->fields[o->nfields++].name = name;
    }
    str field = TEXT(sh, "$.at[$]", o->fields[i].name, sheet_number(sh, last->integer));
    scope_hold(&o->f, e, scope_unpacked(&o->f, e->ref, field));
}

/* Values and coordinates an expression needs, and locals before it. */
static void gather_needs(struct pw *p, struct pw_output *o, const struct expr *e, str *locals) {
    const struct statement *let = e->kind == EXPR_READ ? pw_local(p, e) : NULL;
    int i = e->kind == EXPR_READ && !let ? pw_find_read(p, e) : -1;
    if (let) {
        put_local(p, o, let, locals);
        return;
    }
    if (i >= 0) {
        if (!o->reads[i]) {
            o->value[i] = name_value(p, o, e);
            o->reads[i] = true;
            scope_hold(&o->f, e, o->value[i]);
        }
        return;
    }
    if (e->kind == EXPR_INDEX)
        o->coordinates |= UINT32_C(1) << e->ref;
    for (size_t k = 0; k < e->nargs; k++)
        gather_needs(p, o, e->args[k], locals);
    if (e->kind == EXPR_READ && is_field(p, e) && !is_held(&o->f, e))
        put_field(p, o, e, locals);
}

/* A let as a local, rounded to its type where it has one. */
static void put_local(struct pw *p, struct pw_output *o, const struct statement *s, str *locals) {
    const struct expr *read = expr_own(p->st->inst->task, s, p->sh->mem);
    if (is_held(&o->f, read))
        return;
    gather_needs(p, o, s->body, locals);
    str name = scope_name(&o->f, TEXT(p->sh, "$_", tensor_name(p, s->tensor)).p);
    str text = scope_text(&o->f, s->body);
    text = scope_packed(&o->f, s->tensor, s->body->value_kind, text);
    text = scope_unpacked(&o->f, s->tensor, text);
    char kind = dtype_info(dtype_of(p, s->tensor))->kind;
    enum value_kind value = kind == 'f' ? VALUE_REAL : kind == 'b' ? VALUE_BOOL : VALUE_INT;
    str type = type_of(p, s->tensor, value);
    *locals = sheet_join(p->sh, *locals, "\n", TEXT(p->sh, "const $ $ = $;", type, name, text));
    scope_hold(&o->f, read, name);
}

static str function_parameters(struct pw *p, struct pw_output *o) {
    str all = S(""), index = str_view(scope_index_type(&o->f));
    for (size_t i = 0; i < p->nreads; i++) {
        const struct expr *e = p->reads[i].e;
        str type = type_of(p, e->ref, e->value_kind);
        if (o->reads[i])
            all = sheet_join(p->sh, all, ", ", TEXT(p->sh, "$ $", type, o->value[i]));
    }
    for (size_t i = 0; i < p->space->nindex; i++)
        if (o->coordinates >> i & 1)
            all = sheet_join(p->sh, all, ", ", TEXT(p->sh, "$ $", index, o->f.var[i]));
    return sheet_join(p->sh, all, ", ", scope_params(&o->f));
}

static bool put_function(struct pw *p, struct pw_output *o, struct slots *row) {
    size_t tensor = o->s->tensor;
    str locals = S("");
    if (!scope_init(&o->f, p->sh, p->st, TEXT(p->sh, "compute_$", tensor_name(p, tensor)).p))
        return false;
    if (p->own)
        scope_set_far(&o->f, tensors_by_rows(p));
    o->f.statement = o->s;
    for (size_t i = 0; i < o->s->nindex; i++)
        o->f.var[i] = scope_variable(&o->f, i);
    gather_needs(p, o, o->s->body, &locals);
    str value = scope_text(&o->f, o->s->body);
    slots_put(row, "definition", sheet_definition(p->sh, p->st, o->s));
    slots_put(row, "type", str_view(dtype_info(dtype_of(p, tensor))->cuda));
    slots_put(row, "function", o->f.name);
    slots_put(row, "locals", locals);
    slots_put(row, "value", scope_packed(&o->f, tensor, o->s->body->value_kind, value));
    slots_put(row, "parameters", function_parameters(p, o));
    return !sheet_failed(p->sh);
}

/* ---- calls ---- */

/* Streaming accesses have no form for truth values. */
static str as_bytes(struct pw *p, size_t tensor, bool write, str name) {
    if (dtype_of(p, tensor) != DTYPE_BOOL)
        return name;
    return TEXT(p->sh, "reinterpret_cast<$unsigned char *>($)", write ? S("") : S("const "), name);
}

/* The read's own offset; along a row, from the row's place on. */
static str offset_text(struct pw *p, const struct pw_read *r) {
    const struct tensor *x = &p->st->inst->task->tensors[r->e->ref];
    str row = S("");
    if (!follows_row(p, r, p->own))
        return scope_offset_text(&p->k, r->e);
    for (size_t i = 0; i + (p->space->nindex - p->own) < x->rank; i++) {
        str index = p->k.var[r->e->args[i]->ref];
        row = i ? TEXT(p->sh, "($ * $ + $)", row, scope_int(&p->k, x->extent[i]), index) : index;
    }
    return row.n ? TEXT(p->sh, "$ * $ + at", row, p->in_row_name) : S("at");
}

/* A stored element in memory, at the flat index or at the read's own offset. */
static str stored_element(struct pw *p, const struct pw_read *r) {
    str name = scope_pointer(&p->k, r->e->ref, false);
    if (r->access != PW_FLAT)
        return TEXT(p->sh, "$[$]", name, offset_text(p, r));
    if (p->naive && p->hint)
        return TEXT(p->sh, "__ldcs($ + element)$", as_bytes(p, r->e->ref, false, name),
                    dtype_of(p, r->e->ref) == DTYPE_BOOL ? S(" != 0") : S(""));
    return TEXT(p->sh, "$[$]", name, p->space->nindex ? S("element") : S("0"));
}

/* An element of a vector along the result: it has one of each word across. */
static str transposed_element(struct pw *p, const struct pw_read *r, bool vector) {
    if (r->access == PW_ACROSS)
        return TEXT(p->sh, "$[slot].at[line]", r->vector);
    if (vector && r->vector.n)
        return TEXT(p->sh, "$.at[slot]", r->vector);
    str name = scope_pointer(&p->k, r->e->ref, false);
    return TEXT(p->sh, "$[$]", name, scope_offset_text(&p->k, r->e));
}

/* One argument of a function for a value the kernel loads. */
static str value_text(struct pw *p, const struct pw_read *r, bool vector) {
    if (vector && r->access == PW_SPLAT)
        return r->vector;
    if (p->transposed)
        return scope_unpacked(&p->k, r->e->ref, transposed_element(p, r, vector));
    bool flat = r->access == PW_FLAT;
    str element = !vector   ? stored_element(p, r)
                  : p->cute ? TEXT(p->sh, "$(slot$)", r->vector, flat ? S(", item") : S(""))
                            : TEXT(p->sh, "$$.at[slot]", r->vector, flat ? S("[item]") : S(""));
    return scope_unpacked(&p->k, r->e->ref, element);
}

/* The pointers and integers a function takes, in the order of its parameters. */
static str rest_of_arguments(struct pw *p, const struct pw_output *o) {
    const struct scope *f = &o->f;
    str all = S("");
    for (size_t i = 0; i < p->st->inst->task->ntensors; i++)
        if (f->tensors >> i & 1) { /* the function adds a place itself */
            scope_pointer(&p->k, i, false);
            all = sheet_join(p->sh, all, ", ", scope_pointer_name(&p->k, i));
        }
    for (size_t i = 0; i < f->nints; i++) {
        str name = scope_int_plan(&p->k, arena_cstr(p->sh->mem, f->ints[i].name), f->ints[i].plan);
        all = sheet_join(p->sh, all, ", ", name);
        for (size_t k = 0; k < p->k.nints; k++)
            if (str_eq(p->k.ints[k].plan, f->ints[i].plan))
                p->k.ints[k].size |= f->ints[i].size;
    }
    return all;
}

/* compute_y(…), for the element or for element `slot` of the vector that begins there. */
static str call_text(struct pw *p, const struct pw_output *o, bool vector) {
    str all = S("");
    for (size_t i = 0; i < p->nreads; i++)
        if (o->reads[i])
            all = sheet_join(p->sh, all, ", ", value_text(p, &p->reads[i], vector));
    for (size_t i = 0; i < p->space->nindex; i++) {
        bool moves = vector && !p->transposed && i + 1 == p->space->nindex;
        if (o->coordinates >> i & 1)
            all = sheet_join(p->sh, all, ", ",
                             moves ? TEXT(p->sh, "$ + slot", p->k.var[i]) : p->k.var[i]);
    }
    all = sheet_join(p->sh, all, ", ", rest_of_arguments(p, o));
    return TEXT(p->sh, "$($)", o->f.name, all);
}

/* ---- one element ---- */

static str place_text(struct pw *p, const struct pw_output *o) {
    p->k.statement = o->s;
    str place = scope_place_text(&p->k);
    p->k.statement = p->space;
    return place;
}

static str store_text(struct pw *p, const struct pw_output *o, str value) {
    size_t tensor = o->s->tensor;
    str name = scope_pointer(&p->k, tensor, true);
    bool flat = o->flat && p->space->nindex, truth = dtype_of(p, tensor) == DTYPE_BOOL;
    if (flat && p->naive && p->hint)
        return TEXT(p->sh, "__stcs($ + element, $$);", as_bytes(p, tensor, true, name),
                    truth ? S("(unsigned char)") : S(""), value);
    return TEXT(p->sh, "$[$] = $;", name, flat ? S("element") : place_text(p, o), value);
}

/* What is written in place is stored after everyone has read it. */
static void put_element(struct pw *p, const struct pw_output *o, struct slots *row) {
    str value = call_text(p, o, false), made = S("");
    if (p->inplace && p->noutputs > 1) {
        str name = scope_name(&p->k, TEXT(p->sh, "$_new", tensor_name(p, o->s->tensor)).p);
        made = TEXT(p->sh, "const $ $ = $;", slots_get(row, "type"), name, value);
        value = name;
    }
    slots_put(row, "new_element", made);
    slots_put(row, "store_element", store_text(p, o, value));
}

/* Variables that are a block's own, and those that move within its tile. */
static uint32_t own_variables(const struct pw *p) {
    return (UINT32_C(1) << p->own) - 1;
}
static uint32_t coordinates_used(const struct pw *p) {
    return variables_needed(p, p->own) & ~own_variables(p);
}

/* ---- full tiles ---- */

/* A size that the width must divide, once. */
static void put_divides(struct pw *p, const struct expr *e, str *full) {
    str one = TEXT(p->sh, " && $ % kWidth == 0", scope_int(&p->k, e));
    if (str_find(*full, one) == full->n)
        *full = TEXT(p->sh, "$$", *full, one);
}

/* A piece of a tensor that is contiguous along the innermost index: vectors of it are aligned where
 * the tensor's last extent divides. */
static bool is_row_piece(const struct pw *p, const struct pw_output *o) {
    const struct task *t = p->st->inst->task;
    size_t rank = t->tensors[o->s->tensor].rank, n = p->space->nindex;
    const struct expr *own = expr_own(t, o->s, p->sh->mem);
    return !o->flat && p->width > 1 && rank && n && expr_is_variable(own->args[rank - 1], n - 1);
}

/* When a tile goes by vectors: it is whole, and each vector lies within one row where coordinates
 * are used in a space of several rows. Of a row's last tile there may be some vectors only, but for
 * CuTe. */
static void put_full(struct pw *p, struct slots *s) {
    str plain = TEXT(p->sh, "tile + kTile <= $", slots_get(s, "total")), full = plain;
    if (p->own) {
        plain = p->cute ? TEXT(p->sh, "tile + kTile <= $ && ", p->in_row_name) : S("");
        full = TEXT(p->sh, "$$ % kWidth == 0", plain, p->in_row_name);
    }
    if (p->width > 1 && p->space->nindex - p->own > 1 && coordinates_used(p))
        put_divides(p, scope_extent(&p->k, p->space->nindex - 1), &full);
    for (size_t i = 0; i < p->nreads && p->width > 1; i++) {
        const struct pw_read *r = &p->reads[i];
        bool vectors = r->access == PW_ROW && !follows_row(p, r, p->own);
        for (size_t k = 0; vectors && k < r->ndivisors; k++)
            put_divides(p, r->divisor[k], &full);
    }
    for (size_t i = 0; i < p->noutputs; i++) {
        const struct tensor *y = &p->st->inst->task->tensors[p->outputs[i].s->tensor];
        if (is_row_piece(p, &p->outputs[i]))
            put_divides(p, y->extent[y->rank - 1], &full);
    }
    slots_put(s, "full", full);
    slots_flag(s, "crossing", full.n > plain.n);
}

/* CuTe packs truth values to bits: they are moved as bytes. */
static void put_vector(struct pw *p, struct slots *row, size_t tensor, str vector, bool write) {
    enum dtype t = dtype_of(p, tensor);
    slots_put(row, "vector", vector);
    slots_put(row, "type", str_view(dtype_info(t)->cuda));
    slots_put(row, "fragment", t == DTYPE_BOOL ? S("unsigned char") : slots_get(row, "type"));
    slots_put(row, "pointer", scope_pointer(&p->k, tensor, write));
}

static void put_loads(struct pw *p, struct slots *s) {
    slots_list(s, "loads");
    for (size_t i = 0; i < p->nreads; i++)
        if (p->reads[i].access == PW_FLAT)
            put_vector(p, slots_row(s, "loads"), p->reads[i].e->ref, p->reads[i].vector, false);
}

/* What a vector of elements shares, or has along its row. */
static void put_beside(struct pw *p, struct slots *s) {
    slots_list(s, "beside");
    for (size_t i = 0; i < p->nreads; i++) {
        const struct pw_read *r = &p->reads[i];
        if (r->access != PW_ROW && r->access != PW_SPLAT)
            continue;
        struct slots *row = slots_row(s, "beside");
        slots_flag(row, "row", r->access == PW_ROW);
        put_vector(p, row, r->e->ref, r->vector, false);
        if (r->access == PW_ROW)
            slots_put(row, "offset", offset_text(p, r));
        else
            slots_put(row, "value", value_text(p, r, false));
    }
}

/* A piece of a tensor is stored by vectors where it has them, otherwise element by element. */
static void put_result(struct pw *p, const struct pw_output *o, struct slots *row) {
    str *inner = p->space->nindex ? &p->k.var[p->space->nindex - 1] : NULL;
    str first = inner ? *inner : S("");
    bool piece = is_row_piece(p, o) && !p->cute;
    if (inner && !o->flat && !piece)
        *inner = TEXT(p->sh, "($ + slot)", first);
    slots_flag(row, "piece", piece);
    slots_flag(row, "vectors", o->flat || piece);
    slots_put(row, "place", o->flat ? S("") : place_text(p, o));
    if (inner)
        *inner = first;
    put_vector(p, row, o->s->tensor, o->vector, true);
    slots_put(row, "call", call_text(p, o, true));
    slots_flag(row, "flat", o->flat);
}

/* ---- the kernel ---- */

static int64_t resident_blocks(const struct pw *p) {
    const struct gpu *gpu = p->sh->briefing->gpu;
    int64_t fit = gpu->max_threads_sm / p->block;
    fit = fit > gpu->max_blocks_sm ? gpu->max_blocks_sm : fit < 1 ? 1 : fit;
    return fit * gpu->sms;
}

static void require_grid(struct pw *p, str blocks) {
    int64_t n;
    if (!str_to_i64(blocks, &n))
        sheet_require_for(p->sh, "A grid has no more blocks along y and z.", "%.*s <= %lld",
                          STR_ARG(blocks), (long long)GRID_MOST);
}

/* A grid of tiles and rows: of the row's number the last index is along y, the others along z. */
static void launch_rows(struct pw *p, const struct slots *s) {
    struct sheet *sh = p->sh;
    struct scope *k = &p->k;
    str each = sheet_number(sh, p->block * p->items * p->width), grid;
    str tiles = TEXT(sh, "ceil_div($, $)", sheet_plan(sh, p->in_row), each);
    str last = scope_plan_elements(k, UINT32_C(1) << (p->own - 1));
    str others = scope_plan_elements(k, own_variables(p) >> 1);
    if (p->rows_first)
        grid = TEXT(sh, "[$, $]", scope_plan_elements(k, own_variables(p)), tiles);
    else
        grid = p->own == 1 ? TEXT(sh, "[$, $]", tiles, last)
                           : TEXT(sh, "[$, $, $]", tiles, last, others);
    require_grid(p, p->rows_first ? tiles : last);
    if (p->own > 1 && !p->rows_first)
        require_grid(p, others);
    scope_launch(k, grid, slots_get(s, "block"));
}

static void put_launch(struct pw *p, const struct slots *s) {
    struct sheet *sh = p->sh;
    if (p->own) {
        launch_rows(p, s);
        return;
    }
    str each = sheet_number(sh, p->block * p->items * p->width);
    str grid = TEXT(sh, "ceil_div($, $)", scope_plan_elements(&p->k, scope_variables(&p->k)), each);
    if (p->persistent)
        grid = TEXT(sh, "min($, $)", grid, sheet_number(sh, resident_blocks(p)));
    scope_launch(&p->k, grid, slots_get(s, "block"));
}

/* The kernel's scope, after those of its functions. */
static bool begin_kernel(struct pw *p, struct slots *s) {
    str name = TEXT(p->sh, "$_kernel", tensor_name(p, p->outputs[0].s->tensor));
    if (!scope_init(&p->k, p->sh, p->st, name.p))
        return false;
    if (p->own)
        scope_set_far(&p->k, tensors_by_rows(p));
    p->k.statement = p->space;
    slots_put(s, "kernel", p->k.name);
    slots_put(s, "index", str_view(scope_index_type(&p->k)));
    slots_number(s, "block", p->block);
    slots_number(s, "width", p->width);
    slots_number(s, "items", p->items);
    return true;
}

static str vector_name(struct pw *p, size_t tensor) {
    return scope_name(&p->k, TEXT(p->sh, "$_v", tensor_name(p, tensor)).p);
}

/* Which row a block has, and where it begins. */
static void put_row(struct pw *p, struct slots *s) {
    struct sheet *sh = p->sh;
    struct scope *k = &p->k;
    uint32_t used = variables_needed(p, p->own), last = UINT32_C(1) << (p->own - 1);
    const struct expr *size = scope_extent(k, p->own - 1);
    str lines = S(""), row = p->own == 1 ? S("(long long)blockIdx.y") : S("");
    if (p->rows_first) {
        lines = scope_coordinates(k, S("(int)blockIdx.x"), own_variables(p), used);
        row = S("(long long)blockIdx.x");
    } else {
        lines = scope_coordinates(k, S("(int)blockIdx.z"), own_variables(p) & ~last, used);
        lines = sheet_join(sh, lines, "\n", scope_coordinates(k, S("(int)blockIdx.y"), last, used));
        if (p->own > 1)
            row = TEXT(sh, "((long long)blockIdx.z * $ + blockIdx.y)", scope_int(k, size));
    }
    slots_put(s, "row_lines", lines);
    slots_put(s, "base", TEXT(sh, "$ * $", row, p->in_row_name));
    slots_put(s, "tile_number", p->rows_first ? S("blockIdx.y") : S("blockIdx.x"));
    slots_put(s, "in_row", p->in_row_name);
}

/* The elements of a row as a size. */
static void name_row(struct pw *p) {
    struct scope *k = &p->k;
    const struct expr *e = NULL;
    for (size_t i = p->own; i < p->space->nindex; i++)
        e = e ? expr_pair(p->sh->mem, EXPR_MUL, e, scope_extent(k, i)) : scope_extent(k, i);
    p->in_row = e;
    p->in_row_name = scope_int(k, e);
}

/* The lines of a tile; the parameters that they need come after those of single elements. */
static void put_tile(struct pw *p, struct slots *s, struct slots **rows) {
    for (size_t i = 0; i < p->nreads; i++)
        p->reads[i].vector = vector_name(p, p->reads[i].e->ref);
    for (size_t i = 0; i < p->noutputs; i++)
        p->outputs[i].vector = vector_name(p, p->outputs[i].s->tensor);
    put_full(p, s);
    put_loads(p, s);
    put_beside(p, s);
    for (size_t i = 0; i < p->noutputs; i++)
        put_result(p, &p->outputs[i], rows[i]);
    slots_flag(s, "prepares", coordinates_used(p) || p->own);
    slots_put(s, "origin", p->own ? S("base + tile") : S("tile"));
    slots_flag(s, "cute", p->cute);
    slots_put(s, "access", p->hint ? S("cp_streamed") : S("cp_cached"));
    slots_put(s, "tile_lines", sheet_lines(p->sh, "pointwise/tile.cu", s));
}

static bool write_kernel(struct pw *p) {
    struct slots *s = sheet_slots(p->sh), **rows;
    rows = arena_array(p->sh->mem, struct slots *, p->noutputs);
    for (size_t i = 0; i < p->noutputs; i++)
        if (!put_function(p, &p->outputs[i], rows[i] = slots_row(s, "outputs")))
            return false;
    if (!begin_kernel(p, s))
        return false;
    uint32_t all = scope_variables(&p->k);
    slots_flag(s, "by_rows", p->own > 0);
    if (p->own) {
        name_row(p);
        put_row(p, s);
        slots_put(s, "total", p->in_row_name);
    } else {
        slots_put(s, "total", scope_int_plan(&p->k, "total", scope_plan_elements(&p->k, all)));
    }
    slots_put(s, "coordinates",
              scope_coordinates(&p->k, p->own ? S("at") : S("element"), all & ~own_variables(p),
                                coordinates_used(p)));
    for (size_t i = 0; i < p->noutputs; i++)
        put_element(p, &p->outputs[i], rows[i]);
    slots_flag(s, "transposed", false);
    slots_flag(s, "naive", p->naive);
    slots_flag(s, "persistent", p->persistent);
    if (!p->naive)
        put_tile(p, s, rows);
    if (p->cute)
        sheet_include(p->sh, "cute/tensor.hpp");
    slots_put(s, "parameters", scope_params(&p->k));
    put_launch(p, s);
    put_note(p);
    return sheet_put(p->sh, "pointwise/kernel.cu", s, &p->sh->kernels);
}

/* ---- a kernel of tiles of two indices ---- */

static uint32_t run_variables(const struct pw_run *r) {
    return ((UINT32_C(1) << r->end) - 1) & ~((UINT32_C(1) << r->first) - 1);
}

/* From here on the text of a run's number is this one; single variables of several are declared
 * from it where they are used. */
static void set_run(struct pw *p, const struct pw_run *r, str text) {
    struct scope *k = &p->k;
    struct scope_run run = {.n = r->end - r->first, .total = r->product, .text = text};
    if (run.n == 1) {
        k->var[r->first] = text;
        return;
    }
    for (size_t i = 0; i < run.n; i++) {
        run.var[i] = r->first + i;
        run.extent[i] = scope_extent(k, run.var[i]);
        k->var[run.var[i]] = scope_variable(k, run.var[i]);
    }
    scope_put_run(k, &run);
}

/* Which of the variables some text names. */
static uint32_t variables_in(const struct pw *p, uint32_t of, str text) {
    uint32_t used = 0;
    for (size_t i = 0; i < p->space->nindex; i++)
        if ((of >> i & 1) && text_has_word(text, p->k.var[i]))
            used |= UINT32_C(1) << i;
    return used;
}

static str run_name(struct pw *p, const struct pw_run *r) {
    str all = S("");
    for (size_t i = r->first; i < r->end; i++)
        all = sheet_join(p->sh, all, ", ", p->space->index[i]);
    return all;
}

/* The reads that come through shared memory. */
static void put_tiles(struct pw *p, struct slots *s, str *divides) {
    slots_list(s, "tiles");
    for (size_t i = 0; i < p->nreads; i++) {
        struct pw_read *r = &p->reads[i];
        if (r->access != PW_ACROSS)
            continue;
        const struct tensor *x = &p->st->inst->task->tensors[r->e->ref];
        size_t rank = x->rank;
        struct slots *row = slots_row(s, "tiles");
        str name = tensor_name(p, r->e->ref);
        put_vector(p, row, r->e->ref, vector_name(p, r->e->ref), false);
        slots_put(row, "offset", scope_offset_text(&p->k, r->e));
        slots_put(row, "tile", scope_name(&p->k, TEXT(p->sh, "$_tile", name).p));
        r->vector = scope_name(&p->k, TEXT(p->sh, "$_part", name).p);
        slots_put(row, "part", r->vector);
        bool plain = r->e->args[rank - 1]->kind == EXPR_INDEX;
        slots_flag(row, "plain", plain);
        if (plain)
            put_divides(p, p->across.product ? p->across.total : x->extent[rank - 1], divides);
    }
}

/* Contiguous along the result, so that a word of it is one access. */
static bool is_row(const struct pw *p, const struct pw_read *r) {
    const struct tensor *x = &p->st->inst->task->tensors[r->e->ref];
    return r->access == PW_FLAT ||
           (r->access == PW_ROW && expr_is_variable(r->e->args[x->rank - 1], p->space->nindex - 1));
}

/* What else is read once for a word of the result; `all`: texts that may name variables. Where
 * single ones of several along the result select it, every element reads its own. */
static void put_beside_word(struct pw *p, struct slots *s, str *divides, str *all) {
    slots_list(s, "beside");
    for (size_t i = 0; i < p->nreads; i++) {
        struct pw_read *r = &p->reads[i];
        bool row = r->access != PW_ACROSS && is_row(p, r), split = r->access == PW_SPLAT;
        str offset = row || split ? scope_offset_text(&p->k, r->e) : S("");
        bool several = p->along.end - p->along.first > 1;
        r->vector = r->access == PW_ACROSS ? r->vector : S("");
        if (!offset.n || (several && variables_in(p, run_variables(&p->along), offset))) {
            r->access = split ? PW_GATHER : r->access;
            continue;
        }
        struct slots *here = slots_row(s, "beside");
        const struct tensor *x = &p->st->inst->task->tensors[r->e->ref];
        slots_flag(here, "row", row);
        if (row)
            put_divides(p, several ? p->along.total : x->extent[x->rank - 1], divides);
        put_vector(p, here, r->e->ref, vector_name(p, r->e->ref), false);
        slots_put(here, "offset", offset);
        slots_put(here, "value", row ? S("") : value_text(p, r, false));
        r->vector = slots_get(here, "vector");
        *all = sheet_join(p->sh, *all, "\n", offset);
    }
}

/* A word of the result is one access where its last index is the innermost. */
static void put_words(struct pw *p, struct slots **rows, str *divides, str *all) {
    const struct task *t = p->st->inst->task;
    uint32_t along = run_variables(&p->along);
    bool several = p->along.end - p->along.first > 1;
    for (size_t i = 0; i < p->noutputs; i++) {
        struct pw_output *o = &p->outputs[i];
        const struct expr *own = expr_own(t, o->s, p->sh->mem);
        const struct tensor *y = &t->tensors[o->s->tensor];
        size_t rank = y->rank;
        str place = place_text(p, o);
        bool whole = rank && expr_is_variable(own->args[rank - 1], p->space->nindex - 1) &&
                     !(several && variables_in(p, along, place));
        o->vector = vector_name(p, o->s->tensor);
        put_vector(p, rows[i], o->s->tensor, o->vector, true);
        slots_flag(rows[i], "word", whole);
        if (whole)
            put_divides(p, several ? p->along.total : y->extent[rank - 1], divides);
        slots_put(rows[i], "place", place);
        *all = sheet_join(p->sh, *all, "\n", place);
    }
}

/* The same for single elements. */
static void put_calls(struct pw *p, struct slots **rows, str *all) {
    for (size_t i = 0; i < p->noutputs; i++) {
        struct pw_output *o = &p->outputs[i];
        str call = call_text(p, o, true);
        slots_put(rows[i], "call", call);
        *all = sheet_join(p->sh, *all, "\n", call);
        if (!slots_get(rows[i], "word").n) {
            slots_put(rows[i], "place", place_text(p, o));
            *all = sheet_join(p->sh, *all, "\n", slots_get(rows[i], "place"));
        }
    }
}

static str run_coordinates(struct pw *p, const struct pw_run *r, str number, str texts) {
    uint32_t all = run_variables(r);
    if (r->end - r->first == 1)
        return S("");
    return scope_coordinates(&p->k, number, all, variables_in(p, all, texts));
}

static void note_transposed(struct pw *p) {
    struct sheet *sh = p->sh;
    const struct used all[] = {
        {"block", p->block}, {"items", p->items}, {"vector-width", p->width}, {"persistent", 0}};
    str across = run_name(p, &p->across), along = run_name(p, &p->along);
    sheet_note(sh, "pointwise: %.*s: %lld threads a block, a tile of %lld along %.*s by %lld along",
               STR_ARG(p->k.name), (long long)p->block, (long long)(p->words * p->width),
               STR_ARG(across), (long long)(p->chunks * p->width));
    sheet_note(sh, "  %.*s: what is contiguous along the one comes through shared memory.",
               STR_ARG(along));
    sheet_used(sh, all, sizeof all / sizeof *all);
}

/* Sizes and numbers in the grid: tiles across first, then along, then all other indices. */
static void put_grid(struct pw *p, struct slots *s, uint32_t others) {
    struct sheet *sh = p->sh;
    str across = sheet_number(sh, p->words * p->width);
    str along = sheet_number(sh, p->chunks * p->width);
    str grid = TEXT(sh, "ceil_div($, $) * ceil_div($, $)", sheet_plan(sh, p->across.total), across,
                    sheet_plan(sh, p->along.total), along);
    if (others)
        grid = TEXT(sh, "$ * $", grid, scope_plan_elements(&p->k, others));
    scope_launch(&p->k, grid, slots_get(s, "block"));
}

static bool write_transposed(struct pw *p) {
    struct slots *s = sheet_slots(p->sh), **rows;
    struct scope *k = &p->k;
    str lines = S(""), elements = S(""), divides = S("");
    rows = arena_array(p->sh->mem, struct slots *, p->noutputs);
    for (size_t i = 0; i < p->noutputs; i++)
        if (!put_function(p, &p->outputs[i], rows[i] = slots_row(s, "outputs")))
            return false;
    if (!begin_kernel(p, s))
        return false;
    uint32_t others = scope_variables(k) & ~run_variables(&p->along) & ~run_variables(&p->across);
    slots_number(s, "words", p->words);
    slots_number(s, "chunks", p->chunks);
    slots_put(s, "across_name", run_name(p, &p->across));
    slots_put(s, "along_name", run_name(p, &p->along));
    slots_put(s, "across_size", scope_int(k, p->across.total));
    slots_put(s, "along_size", scope_int(k, p->along.total));
    slots_put(s, "access", p->hint ? S("cp_streamed") : S("cp_cached"));
    slots_put(s, "others", scope_coordinates(k, S("others"), others, others));
    set_run(p, &p->across, S("across"));
    set_run(p, &p->along, S("along"));
    put_tiles(p, s, &divides);
    put_beside_word(p, s, &divides, &lines);
    put_words(p, rows, &divides, &lines);
    set_run(p, &p->along, S("(along + slot)"));
    put_calls(p, rows, &elements);
    lines = sheet_join(p->sh, lines, "\n", elements);
    slots_put(s, "line_coordinates", run_coordinates(p, &p->across, S("across"), lines));
    slots_put(s, "coordinates", run_coordinates(p, &p->along, S("(along + slot)"), elements));
    slots_put(s, "parameters", scope_params(k));
    put_grid(p, s, others);
    note_transposed(p);
    slots_put(s, "divides", divides);
    for (int whole = 1; whole >= 0; whole--) {
        slots_flag(s, "whole", whole);
        slots_put(s, whole ? "whole_loads" : "part_loads",
                  sheet_lines(p->sh, "pointwise/transposed_loads.cu", s));
        slots_put(s, whole ? "whole_stores" : "part_stores",
                  sheet_lines(p->sh, "pointwise/transposed_stores.cu", s));
    }
    slots_flag(s, "transposed", true);
    slots_put(s, "transposed_lines", sheet_lines(p->sh, "pointwise/transposed.cu", s));
    return sheet_put(p->sh, "pointwise/kernel.cu", s, &p->sh->kernels);
}

/* ---- pinned ---- */

/* One variable of the space has one value that matters: what is written where s == t[b]. */
struct pin {
    size_t var;
    const struct expr *at;    /* its value, free of it */
    const struct expr *value; /* what is written there */
};

static bool is_pin(const struct expr *v, const struct expr *at, struct pin *out) {
    if (v->kind != EXPR_INDEX || at->value_kind != VALUE_INT || (expr_vars(at) >> v->ref & 1))
        return false;
    *out = (struct pin){.var = v->ref, .at = at};
    return true;
}

/* A tensor written in place of which only one place along an index changes:
 * c[b,s,d] = if(s == t[b], new[b,d], c[b,s,d]). */
static bool find_pin(const struct pw *p, struct pin *out) {
    const struct task *t = p->st->inst->task;
    const struct expr *e = p->space->body, *is;
    if (t->nstatements != 1 || t->tensors[p->space->tensor].role != TENSOR_INOUT ||
        !p->outputs[0].flat || e->kind != EXPR_IF || e->args[0]->kind != EXPR_EQ ||
        e->args[2]->kind != EXPR_READ || e->args[2]->ref != p->space->tensor ||
        !expr_is_own(p->space, e->args[2]) || expr_reads_tensor(e->args[1], p->space->tensor))
        return false;
    is = e->args[0];
    if (!is_pin(is->args[0], is->args[1], out) && !is_pin(is->args[1], is->args[0], out))
        return false;
    out->value = e->args[1];
    return !expr_reads_tensor(out->at, p->space->tensor);
}

/* One thread for each of the other indices; the rest of the tensor is neither read nor written. */
static bool write_pinned(struct pw *p, const struct pin *pin) {
    struct sheet *sh = p->sh;
    struct scope *k = &p->k;
    struct slots *s = sheet_slots(sh);
    if (!begin_kernel(p, s))
        return false;
    uint32_t others = scope_variables(k) & ~(UINT32_C(1) << pin->var);
    str count = scope_plan_elements(k, others), name = scope_variable(k, pin->var);
    size_t tensor = p->space->tensor;
    slots_put(s, "coordinates", scope_coordinates(k, S("element"), others, others));
    k->var[pin->var] = name;
    slots_put(s, "pin", name);
    slots_put(s, "value", scope_text(k, pin->at));
    slots_put(s, "size", scope_int(k, scope_extent(k, pin->var)));
    slots_put(s, "pointer", scope_pointer(k, tensor, true));
    str value = scope_text(k, pin->value);
    slots_put(s, "place", scope_place_text(k));
    slots_put(s, "new", scope_packed(k, tensor, pin->value->value_kind, value));
    slots_put(s, "total", scope_int_plan(k, "total", count));
    slots_put(s, "definition", sheet_definition(sh, p->st, p->space));
    slots_put(s, "parameters", scope_params(k));
    str block = slots_get(s, "block");
    scope_launch(k, TEXT(sh, "ceil_div($, $)", count, block), block);
    sheet_note(sh,
               "pointwise: %.*s%s: %lld threads a block, one element each, at one place along "
               "%.*s.",
               STR_ARG(k->name), p->cute ? ", in CUDA (nothing to tile)" : "", (long long)p->block,
               STR_ARG(name));
    const struct used all[] = {
        {"block", p->block}, {"vector-width", 1}, {"items", 1}, {"persistent", 0}};
    sheet_used(sh, all, sizeof all / sizeof *all);
    return sheet_put(sh, "pointwise/pinned.cu", s, &sh->kernels);
}

/* ---- the step ---- */

static bool pointwise_write(struct sheet *sh, const struct step *st) {
    struct pw *p = arena_new_of(sh->mem, struct pw);
    struct pin pin;
    p->sh = sh;
    p->st = st;
    pw_build(p);
    if (!read_strategy(p))
        return false;
    if (find_pin(p, &pin))
        return write_pinned(p, &pin);
    choose_transposed(p);
    if (p->transposed)
        return write_transposed(p);
    choose_rows(p);
    return write_kernel(p);
}

const struct family family_pointwise = {
    .name = "pointwise",
    .workload = WORKLOAD_POINTWISE,
    .cute = true,
    .claim = pw_claim,
    .write = pointwise_write,
};
