/* Operators that read the same elements at other places, pieces of several tensors, and tensors
 * that are made from sizes alone. */
#include "import/ops_private.h"

#include <math.h>
#include <string.h>

/* The argument and its value, or NULL: the graph is not what it should be, said already. */
static const struct value *self_of(struct writer *w, const struct node *n, struct ref *r) {
    if (arg_ref(w, n, "self", r) || arg_ref(w, n, "a", r))
        return graph_value(writer_graph(w), *r);
    cannot(w, n, "an operator without a tensor");
    return NULL;
}

static struct place zero(void) {
    return place_of(ex_of(S("0")));
}

struct ex read_same(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ref r;
    (void)out;
    return self_of(w, n, &r) ? read_at(w, r, at) : ex_of(S("0"));
}

struct ex read_expand(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ref r;
    return self_of(w, n, &r) ? read_broadcast(w, r, at, n->outs[out].rank) : ex_of(S("0"));
}

/* ---- reshapes ---- */

struct digits {
    struct digit d[4 * TASK_MAX_RANK];
    size_t n;
};

static void put_digit(struct digits *all, struct ex e, str extent) {
    if (all->n < 4 * TASK_MAX_RANK && !str_is(extent, "1"))
        all->d[all->n++] = (struct digit){e, extent};
}

static void all_digits(const struct value *v, const struct place *at, struct digits *all) {
    for (size_t i = 0; i < v->rank; i++) {
        for (size_t k = 0; k < at[i].n; k++)
            put_digit(all, at[i].digits[k].e, at[i].digits[k].extent);
        if (!at[i].n)
            put_digit(all, at[i].e, v->extent[i]);
    }
}

/* d0*E1 + d1, from the digits that make one index; outermost first. */
static struct place place_of_digits(struct arena *a, const struct digit *d, size_t n) {
    struct place p = {.e = ex_of(S("0"))};
    for (size_t i = 0; i < n; i++)
        p.e = ex_add(a, ex_mul(a, p.e, i ? ex_size(d[i].extent) : ex_of(S("1"))), d[i].e);
    if (n > 1 && n <= TASK_MAX_RANK) {
        memcpy(p.digits, d, n * sizeof *d);
        p.n = n;
    }
    return p;
}

/* Takes digits off the end until they run through `extent`; splits one where it must. */
static bool take(struct arena *a, struct digits *all, str extent, struct place *out) {
    struct digit taken[TASK_MAX_RANK];
    size_t n = 0;
    struct monomial rest = monomial_of(extent), left;
    while (!monomial_is_one(rest)) {
        if (!all->n || n == TASK_MAX_RANK)
            return false;
        struct digit *last = &all->d[all->n - 1];
        struct monomial size = monomial_of(last->extent);
        if (monomial_over(rest, size, &left)) {
            taken[n++] = *last;
            rest = left;
            all->n--;
        } else if (monomial_over(size, rest, &left)) {
            str part = monomial_text(a, rest);
            taken[n++] = (struct digit){ex_mod(a, last->e, ex_size(part)), part};
            last->e = ex_floordiv(a, last->e, ex_size(part));
            last->extent = monomial_text(a, left);
            break;
        } else {
            return false;
        }
    }
    struct digit ordered[TASK_MAX_RANK];
    for (size_t i = 0; i < n; i++)
        ordered[i] = taken[n - 1 - i];
    *out = place_of_digits(a, ordered, n);
    return true;
}

/* By division of the index through all elements; for reshapes that cut across. */
static void by_division(struct arena *a, const struct digits *all, const struct value *v,
                        struct place *places) {
    struct place flat = place_of_digits(a, all->d, all->n);
    struct ex rest = flat.e;
    for (size_t i = v->rank; i-- > 0;) {
        struct ex size = ex_size(v->extent[i]);
        places[i] = place_of(i ? ex_mod(a, rest, size) : rest);
        rest = ex_floordiv(a, rest, size);
    }
}

struct ex read_reshape(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    struct place places[TASK_MAX_RANK] = {0};
    struct digits all = {.n = 0};
    bool clean = true;
    if (!v)
        return ex_of(S("0"));
    all_digits(&n->outs[out], at, &all);
    struct digits rest = all;
    for (size_t i = v->rank; i-- > 0 && clean;)
        clean = take(a, &rest, v->extent[i], &places[i]);
    if (!clean)
        by_division(a, &all, v, places);
    return read_at(w, r, places);
}

/* ---- permutations ---- */

static struct ex read_permuted(struct writer *w, struct ref r, const struct place *at,
                               const size_t *axis, size_t rank) {
    struct place places[TASK_MAX_RANK] = {0};
    for (size_t i = 0; i < rank; i++)
        places[axis[i]] = at[i];
    return read_at(w, r, places);
}

struct ex read_t(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    static const size_t axis[] = {1, 0}, same[] = {0};
    struct ref r;
    size_t rank = n->outs[out].rank;
    if (!self_of(w, n, &r) || rank > 2)
        return cannot(w, n, "t of rank %zu", rank);
    return read_permuted(w, r, at, rank == 2 ? axis : same, rank);
}

struct ex read_transpose(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    size_t rank = n->outs[out].rank, axis[TASK_MAX_RANK];
    struct ref r;
    if (!self_of(w, n, &r) || !rank)
        return ex_of(S("0"));
    size_t x = axis_of(w, n, arg_i64(n, "dim0", 0), rank),
           y = axis_of(w, n, arg_i64(n, "dim1", 0), rank);
    for (size_t i = 0; i < rank; i++)
        axis[i] = i == x ? y : i == y ? x : i;
    return read_permuted(w, r, at, axis, rank);
}

struct ex read_permute(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    size_t rank = n->outs[out].rank, axis[TASK_MAX_RANK];
    unsigned seen = 0;
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    for (size_t i = 0; i < rank; i++) {
        axis[i] = axis_of(w, n, arg_i64_at(n, "dims", i, 0), rank);
        seen |= 1u << axis[i];
    }
    if (!v || v->rank != rank || seen != (1u << rank) - 1)
        return cannot(w, n, "a permutation that is none");
    return read_permuted(w, r, at, axis, rank);
}

struct ex read_unsqueeze(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    size_t rank = n->outs[out].rank;
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || v->rank + 1 != rank)
        return cannot(w, n, "unsqueeze");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), rank);
    for (size_t i = 0, k = 0; i < rank; i++)
        if (i != axis)
            places[k++] = at[i];
    return read_at(w, r, places);
}

struct ex read_squeeze(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v)
        return ex_of(S("0"));
    unsigned gone = 0;
    const json *dim = json_get(n->args, "dim");
    int64_t one;
    if (json_to_i64(dim, &one))
        gone = 1u << axis_of(w, n, one, v->rank);
    else if (json_is_array(dim))
        for (size_t i = 0; i < json_len(dim); i++)
            gone |= 1u << axis_of(w, n, arg_i64_at(n, "dim", i, 0), v->rank);
    else
        gone = ~0u;
    size_t k = 0;
    for (size_t i = 0; i < v->rank; i++)
        places[i] = (gone >> i & 1) && str_is(v->extent[i], "1") ? zero()
                    : k < n->outs[out].rank                      ? at[k++]
                                                                 : zero();
    return read_at(w, r, places);
}

/* ---- parts ---- */

static bool copy_places(const struct value *v, const struct place *at, struct place *places) {
    for (size_t i = 0; i < v->rank; i++)
        places[i] = at[i];
    return true;
}

/* Where a slice begins: negative ones count from the end. */
static struct ex start_of(struct writer *w, const struct node *n, const json *j, str extent) {
    struct arena *a = writer_arena(w);
    int64_t number;
    if (!j || (!json_to_i64(j, &number) && !json_is_object(j))) {
        str text;
        if (!json_to_str(j, &text))
            return ex_of(S("0"));
        return ex_size(text);
    }
    struct ex e = size_of(w, n, j);
    if (json_to_i64(j, &number) && number < 0)
        return ex_add(a, ex_size(extent), e);
    return e;
}

struct ex read_slice(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    (void)out;
    if (!v || !copy_places(v, at, places))
        return ex_of(S("0"));
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    struct ex start = start_of(w, n, json_get(n->args, "start"), v->extent[axis]);
    struct ex step = ex_integer(a, arg_i64(n, "step", 1));
    if (!ex_is(start, "0") || !ex_is(step, "1"))
        places[axis] = place_of(ex_add(a, ex_mul(a, step, at[axis].e), start));
    return read_at(w, r, places);
}

static struct ex read_selected(struct writer *w, struct ref r, const struct value *v, size_t axis,
                               struct ex index, const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    for (size_t i = 0, k = 0; i < v->rank; i++)
        places[i] = i == axis ? place_of(index) : at[k++];
    return read_at(w, r, places);
}

struct ex read_select(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || v->rank != n->outs[out].rank + 1)
        return cannot(w, n, "select");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    return read_selected(w, r, v, axis, start_of(w, n, json_get(n->args, "index"), v->extent[axis]),
                         at);
}

/* Windows along one dimension: which of them in its place, and where in it as the last dimension.
 */
struct ex read_unfold(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    int64_t step = arg_i64(n, "step", 0);
    if (!v || n->outs[out].rank != v->rank + 1 || !v->rank || step < 1)
        return cannot(w, n, "windows of this kind");
    size_t axis = axis_of(w, n, arg_i64(n, "dimension", 0), v->rank);
    for (size_t i = 0; i < v->rank; i++)
        places[i] = at[i];
    struct ex begin = ex_mul(a, ex_integer(a, step), at[axis].e);
    struct place whole = place_of(ex_add(a, begin, at[v->rank].e));
    if (str_is(n->outs[out].extent[v->rank], arena_cstr(a, ex_integer(a, step).text))) {
        /* side by side: an index through both, which a reshape may take apart again */
        whole.digits[0] = (struct digit){at[axis].e, n->outs[out].extent[axis]};
        whole.digits[1] = (struct digit){at[v->rank].e, n->outs[out].extent[v->rank]};
        whole.n = 2;
    }
    places[axis] = whole;
    return read_at(w, r, places);
}

/* Piece `out` of a tensor cut along one dimension: the pieces before it are as long as they are. */
struct ex read_split(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || !copy_places(v, at, places))
        return ex_of(S("0"));
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    struct ex start = ex_of(S("0"));
    for (size_t i = 0; i < out; i++)
        start = ex_add(a, start, ex_size(n->outs[i].extent[axis]));
    if (out) {
        if (str_eq(n->outs[0].extent[axis], n->outs[out - 1].extent[axis]))
            start = ex_mul(a, ex_integer(a, (int64_t)out), ex_size(n->outs[0].extent[axis]));
        places[axis] = place_of(ex_add(a, at[axis].e, start));
    }
    return read_at(w, r, places);
}

struct ex read_unbind(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || v->rank != n->outs[out].rank + 1)
        return cannot(w, n, "unbind");
    return read_selected(w, r, v, axis_of(w, n, arg_i64(n, "dim", 0), v->rank),
                         ex_integer(writer_arena(w), (int64_t)out), at);
}

struct ex read_flip(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    (void)out;
    if (!v || !copy_places(v, at, places))
        return ex_of(S("0"));
    for (size_t i = 0; i < json_len(json_get(n->args, "dims")); i++) {
        size_t axis = axis_of(w, n, arg_i64_at(n, "dims", i, 0), v->rank);
        struct ex last = ex_sub(a, ex_size(v->extent[axis]), ex_of(S("1")));
        places[axis] = place_of(ex_sub(a, last, at[axis].e));
    }
    return read_at(w, r, places);
}

struct ex read_roll(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    const json *shifts = json_get(n->args, "shifts");
    (void)out;
    if (!v || !copy_places(v, at, places))
        return ex_of(S("0"));
    if (json_len(json_get(n->args, "dims")) != json_len(shifts))
        return cannot(w, n, "roll over a flattened tensor");
    for (size_t i = 0; i < json_len(shifts); i++) {
        size_t axis = axis_of(w, n, arg_i64_at(n, "dims", i, 0), v->rank);
        struct ex size = ex_size(v->extent[axis]), shift = size_of(w, n, json_at(shifts, i));
        int64_t by;
        struct ex from = ex_to_integer(shift, &by) && by < 0 && by > -INT64_MAX
                             ? ex_add(a, at[axis].e, ex_integer(a, -by))
                             : ex_add(a, at[axis].e, ex_sub(a, size, shift));
        places[axis] = place_of(ex_mod(a, from, size));
    }
    return read_at(w, r, places);
}

struct ex read_repeat(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    size_t rank = n->outs[out].rank;
    if (!v || v->rank > rank)
        return cannot(w, n, "repeat");
    for (size_t i = 0; i < v->rank; i++) {
        const struct place *p = &at[rank - v->rank + i];
        bool once = str_eq(v->extent[i], n->outs[out].extent[rank - v->rank + i]);
        places[i] = once                        ? *p
                    : str_is(v->extent[i], "1") ? zero()
                                                : place_of(ex_mod(a, p->e, ex_size(v->extent[i])));
    }
    return read_at(w, r, places);
}

struct ex read_diagonal(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || v->rank < 2 || v->rank != n->outs[out].rank + 1 || arg_i64(n, "offset", 0))
        return cannot(w, n, "a diagonal beside the main one");
    size_t x = axis_of(w, n, arg_i64(n, "dim1", 0), v->rank),
           y = axis_of(w, n, arg_i64(n, "dim2", 1), v->rank);
    for (size_t i = 0, k = 0; i < v->rank; i++)
        places[i] = i == x || i == y ? at[n->outs[out].rank - 1] : at[k++];
    return read_at(w, r, places);
}

struct ex read_nearest(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r), *y = &n->outs[out];
    if (!v || v->rank != y->rank || !copy_places(v, at, places))
        return cannot(w, n, "nearest neighbours");
    for (size_t i = 2; i < v->rank; i++) {
        struct monomial factor;
        if (monomial_over(monomial_of(y->extent[i]), monomial_of(v->extent[i]), &factor))
            places[i] = place_of(ex_floordiv(a, at[i].e, ex_size(monomial_text(a, factor))));
        else
            places[i] = place_of(
                ex_floordiv(a, ex_mul(a, at[i].e, ex_size(v->extent[i])), ex_size(y->extent[i])));
    }
    return read_at(w, r, places);
}

/* ---- of several tensors ---- */

static struct ex below(struct arena *a, struct ex e, struct ex bound) {
    return (struct ex){arena_printf(a, "%.*s < %.*s", STR_ARG(ex_at_least(a, e, LEVEL_SUM)),
                                    STR_ARG(ex_at_least(a, bound, LEVEL_SUM))),
                       LEVEL_COMPARISON};
}

/* if(i < A, a[i], if(i < A + B, b[i - A], …)); tensors without elements are left out. */
struct ex read_cat(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    const json *tensors = json_get(n->args, "tensors");
    size_t count = json_len(tensors), rank = n->outs[out].rank;
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), rank);
    struct ex parts[GRAPH_MAX_OUTS], ends[GRAPH_MAX_OUTS], start = ex_of(S("0"));
    if (!count || count > GRAPH_MAX_OUTS)
        return cannot(w, n, "%zu tensors joined", count);
    for (size_t i = 0; i < count; i++) {
        struct ref r;
        struct place places[TASK_MAX_RANK] = {0};
        if (!graph_ref(writer_graph(w), json_at(tensors, i), &r) ||
            graph_value(writer_graph(w), r)->rank != rank)
            return cannot(w, n, "joined tensors of different ranks");
        const struct value *v = graph_value(writer_graph(w), r);
        copy_places(v, at, places);
        if (i)
            places[axis] = place_of(ex_sub(a, at[axis].e, start));
        if (str_is(v->extent[axis], "1"))
            places[axis] = zero();
        parts[i] = read_at(w, r, places);
        start = ex_add(a, start, ex_size(v->extent[axis]));
        ends[i] = start;
    }
    struct ex all = parts[count - 1];
    for (size_t i = count - 1; i-- > 0;)
        all = ex_if(a, below(a, at[axis].e, ends[i]), parts[i], all);
    return all;
}

struct ex read_stack(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    const json *tensors = json_get(n->args, "tensors");
    size_t count = json_len(tensors), rank = n->outs[out].rank;
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), rank);
    struct place places[TASK_MAX_RANK] = {0};
    struct ex all = ex_of(S("0"));
    for (size_t i = 0, k = 0; i < rank; i++)
        if (i != axis)
            places[k++] = at[i];
    for (size_t i = count; i-- > 0;) {
        struct ref r;
        if (!graph_ref(writer_graph(w), json_at(tensors, i), &r))
            return cannot(w, n, "stack");
        struct ex part = read_at(w, r, places);
        all = i + 1 == count
                  ? part
                  : ex_if(a, below(a, at[axis].e, ex_integer(a, (int64_t)i + 1)), part, all);
    }
    return all;
}

/* ---- parts written ---- */

struct ex read_slice_scatter(struct writer *w, const struct node *n, size_t out,
                             const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r, part;
    const struct value *v = self_of(w, n, &r);
    if (!v || !arg_ref(w, n, "src", &part) || !copy_places(v, at, places))
        return cannot(w, n, "slice_scatter");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    struct ex i = at[axis].e;
    struct ex start = start_of(w, n, json_get(n->args, "start"), v->extent[axis]);
    int64_t step = arg_i64(n, "step", 1);
    struct ex from = ex_sub(a, i, start), by = ex_integer(a, step);
    struct ex size = ex_size(graph_value(writer_graph(w), part)->extent[axis]);
    struct ex inside = {0}, old = read_at(w, r, at);
    if (!ex_is(start, "0"))
        inside = (struct ex){arena_printf(a, "%.*s >= %.*s", STR_ARG(ex_at_least(a, i, LEVEL_SUM)),
                                          STR_ARG(ex_at_least(a, start, LEVEL_SUM))),
                             LEVEL_COMPARISON};
    struct ex end = ex_add(a, start, ex_mul(a, by, size));
    if (!monomial_equal(monomial_of(end.text), monomial_of(v->extent[axis])))
        inside = ex_and(a, inside, below(a, i, end));
    if (step != 1)
        inside = ex_and(a, inside,
                        (struct ex){arena_printf(a, "%.*s == 0", STR_ARG(ex_mod(a, from, by).text)),
                                    LEVEL_COMPARISON});
    places[axis] = place_of(ex_floordiv(a, from, by));
    struct ex fresh = read_broadcast(w, part, places, v->rank);
    (void)out;
    return inside.text.n ? ex_if(a, inside, fresh, old) : fresh;
}

struct ex read_select_scatter(struct writer *w, const struct node *n, size_t out,
                              const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r, part;
    const struct value *v = self_of(w, n, &r);
    (void)out;
    if (!v || !arg_ref(w, n, "src", &part))
        return cannot(w, n, "select_scatter");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    struct ex index = start_of(w, n, json_get(n->args, "index"), v->extent[axis]);
    struct ex here = {arena_printf(a, "%.*s == %.*s",
                                   STR_ARG(ex_at_least(a, at[axis].e, LEVEL_SUM)),
                                   STR_ARG(ex_at_least(a, index, LEVEL_SUM))),
                      LEVEL_COMPARISON};
    for (size_t i = 0, k = 0; i < v->rank; i++)
        if (i != axis)
            places[k++] = at[i];
    return ex_if(a, here, read_broadcast(w, part, places, v->rank - 1), read_at(w, r, at));
}

/* The last dimension first, two numbers each: before and after. */
struct ex read_constant_pad(struct writer *w, const struct node *n, size_t out,
                            const struct place *at) {
    struct arena *a = writer_arena(w);
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    struct ex value = number_of(w, n, json_get(n->args, "value"));
    (void)out;
    if (!v || !copy_places(v, at, places))
        return ex_of(S("0"));
    struct ex inside = {0};
    for (size_t i = 0; i < json_len(json_get(n->args, "pad")) / 2 && i < v->rank; i++) {
        size_t axis = v->rank - 1 - i;
        int64_t before = arg_i64_at(n, "pad", 2 * i, 0), after = arg_i64_at(n, "pad", 2 * i + 1, 0);
        struct ex e = ex_sub(a, at[axis].e, ex_integer(a, before));
        places[axis] = before ? place_of(e) : at[axis];
        if (before > 0)
            inside = ex_and(a, inside,
                            (struct ex){arena_printf(a, "%.*s >= %lld",
                                                     STR_ARG(ex_at_least(a, at[axis].e, LEVEL_SUM)),
                                                     (long long)before),
                                        LEVEL_COMPARISON});
        if (after > 0)
            inside = ex_and(
                a, inside,
                below(a, at[axis].e, ex_add(a, ex_size(v->extent[axis]), ex_integer(a, before))));
    }
    struct ex x = read_at(w, r, places);
    return inside.text.n ? ex_if(a, inside, x, value) : x;
}

static struct ex triangle(struct writer *w, const struct node *n, const struct place *at,
                          const char *sign) {
    struct arena *a = writer_arena(w);
    struct ref r;
    const struct value *v = self_of(w, n, &r);
    if (!v || v->rank < 2)
        return cannot(w, n, "a triangle of a vector");
    struct ex row = ex_add(a, at[v->rank - 2].e, ex_integer(a, arg_i64(n, "diagonal", 0)));
    struct ex keep = {arena_printf(a, "%.*s %s %.*s",
                                   STR_ARG(ex_at_least(a, at[v->rank - 1].e, LEVEL_SUM)), sign,
                                   STR_ARG(ex_at_least(a, row, LEVEL_SUM))),
                      LEVEL_COMPARISON};
    struct ex none = v->dtype == DTYPE_BOOL ? ex_of(S("0 == 1")) : ex_of(S("0"));
    return ex_if(a, keep, read_at(w, r, at), none);
}

struct ex read_tril(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return triangle(w, n, at, "<=");
}

struct ex read_triu(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    return triangle(w, n, at, ">=");
}

/* ---- places from data ---- */

/* Whether a place follows from a number with a fraction. */
static bool is_rounded_down(const struct graph *g, struct ref r, int depth) {
    const struct node *n = &g->nodes[r.node];
    struct ref from;
    if (depth > 16 || !graph_ref(g, json_get(n->args, "self"), &from))
        return false;
    bool fraction = dtype_info(graph_value(g, from)->dtype)->kind == 'f';
    bool whole = dtype_info(graph_value(g, r)->dtype)->kind != 'f';
    return (fraction && whole) || is_rounded_down(g, from, depth + 1);
}

/* Where an index reads. What is computed by way of real numbers is not known to lie inside; PyTorch
 * would have raised an exception if it did not, so that it may be held there. */
static struct place index_place(struct writer *w, struct ref index, struct ex e, str extent) {
    if (!is_rounded_down(writer_graph(w), index, 0))
        return place_of(e);
    struct arena *a = writer_arena(w);
    struct ex last = ex_sub(a, ex_of(extent), ex_of(S("1")));
    return place_of(
        ex_of(arena_printf(a, "clamp(%.*s, 0, %.*s)", STR_ARG(e.text), STR_ARG(last.text))));
}

struct ex read_gather(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r, index;
    const struct value *v = self_of(w, n, &r);
    (void)out;
    if (!v || !arg_ref(w, n, "index", &index) || !copy_places(v, at, places))
        return cannot(w, n, "gather");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    places[axis] = index_place(w, index, read_at(w, index, at), v->extent[axis]);
    return read_at(w, r, places);
}

struct ex read_index_select(struct writer *w, const struct node *n, size_t out,
                            const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r, index;
    const struct value *v = self_of(w, n, &r);
    (void)out;
    if (!v || !arg_ref(w, n, "index", &index) || !copy_places(v, at, places))
        return cannot(w, n, "index_select");
    size_t axis = axis_of(w, n, arg_i64(n, "dim", 0), v->rank);
    places[axis] = index_place(w, index, read_at(w, index, &at[axis]), v->extent[axis]);
    return read_at(w, r, places);
}

struct ex read_embedding(struct writer *w, const struct node *n, size_t out,
                         const struct place *at) {
    struct place places[TASK_MAX_RANK] = {0};
    struct ref table, index;
    size_t rank = n->outs[out].rank;
    if (!arg_ref(w, n, "weight", &table) || !arg_ref(w, n, "indices", &index) || !rank)
        return cannot(w, n, "embedding");
    places[0] = place_of(read_at(w, index, at));
    places[1] = at[rank - 1];
    return read_at(w, table, places);
}

/* x[:, t, …]: tensors of indices side by side; they are broadcast against one another and stand
 * where the first of them is. */
struct ex read_index(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    const json *indices = json_get(n->args, "indices");
    struct place places[TASK_MAX_RANK] = {0};
    struct ref r, index;
    const struct value *v = self_of(w, n, &r);
    size_t count = json_len(indices), first = count, last = 0, given = 0, wide = 0;
    if (!v || count > v->rank)
        return cannot(w, n, "index");
    for (size_t i = 0; i < count; i++)
        if (graph_ref(writer_graph(w), json_at(indices, i), &index)) {
            const struct value *t = graph_value(writer_graph(w), index);
            if (t->dtype == DTYPE_BOOL)
                return cannot(w, n, "a selection by truth values, whose size depends on them");
            first = first == count ? i : first;
            last = i;
            given++;
            wide = t->rank > wide ? t->rank : wide;
        }
    if (!given || last - first + 1 != given)
        return cannot(w, n, "indices that are not side by side");
    for (size_t i = 0, k = 0; i < v->rank; i++) {
        if (i == first)
            k += wide;
        if (i >= first && i <= last) {
            graph_ref(writer_graph(w), json_at(indices, i), &index);
            struct ex e = read_broadcast(w, index, &at[first], wide);
            places[i] = index_place(w, index, e, v->extent[i]);
        } else if (k < n->outs[out].rank) {
            places[i] = at[k++];
        } else {
            return cannot(w, n, "index");
        }
    }
    return read_at(w, r, places);
}

/* ---- from sizes alone ---- */

static struct ex constant_of(struct writer *w, const struct node *n, struct ex e) {
    if (n->outs[0].dtype != DTYPE_BOOL)
        return e;
    (void)w;
    return (struct ex){ex_is(e, "0") ? S("0 == 1") : S("0 == 0"), LEVEL_COMPARISON};
}

struct ex read_fill(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    static const char *const names[] = {"fill_value", "value", "s"};
    (void)out;
    for (size_t i = 0; i < 3; i++) {
        const json *j = json_get(n->args, names[i]);
        struct ref r;
        bool b;
        if (graph_ref(writer_graph(w), j, &r))
            return read_broadcast(w, r, at, n->outs[0].rank);
        if (json_to_bool(j, &b))
            return constant_of(w, n, b ? ex_of(S("1")) : ex_of(S("0")));
        if (j)
            return constant_of(w, n, number_of(w, n, j));
    }
    return cannot(w, n, "a tensor filled with nothing");
}

struct ex read_ones(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    (void)at;
    return constant_of(w, n, ex_of(S("1")));
}

struct ex read_zeros(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    (void)at;
    return constant_of(w, n, ex_of(S("0")));
}

struct ex read_empty(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    (void)at;
    return cannot(w, n, "memory that was never written");
}

struct ex read_arange(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    const json *start = json_get(n->args, "start"), *step = json_get(n->args, "step");
    struct ex by = step ? number_of(w, n, step) : ex_of(S("1"));
    struct ex from = start ? number_of(w, n, start) : ex_of(S("0"));
    (void)out;
    return ex_add(a, ex_mul(a, at[0].e, by), from);
}

struct ex read_linspace(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    struct arena *a = writer_arena(w);
    int64_t steps = arg_i64(n, "steps", 0);
    double start = arg_f64(n, "start", NAN), end = arg_f64(n, "end", NAN);
    (void)out;
    if (steps < 2 || isnan(start) || isnan(end))
        return cannot(w, n, "linspace over a dimension");
    return ex_add(a, ex_mul(a, at[0].e, ex_number(a, (end - start) / (double)(steps - 1))),
                  ex_number(a, start));
}

struct ex read_eye(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct arena *a = writer_arena(w);
    struct ex same = {arena_printf(a, "%.*s == %.*s", STR_ARG(ex_at_least(a, at[0].e, LEVEL_SUM)),
                                   STR_ARG(ex_at_least(a, at[1].e, LEVEL_SUM))),
                      LEVEL_COMPARISON};
    (void)n;
    (void)out;
    return ex_if(a, same, ex_of(S("1")), ex_of(S("0")));
}

/* A small tensor that stands in the user's file: one number, or a choice by the index. */
struct ex read_constant(struct writer *w, const struct node *n, size_t out,
                        const struct place *at) {
    struct arena *a = writer_arena(w);
    const json *values = json_get(n->args, "values");
    size_t count = json_len(values);
    if (!count)
        return cannot(w, n, "a tensor without elements");
    struct ex flat = ex_of(S("0"));
    for (size_t i = 0; i < n->outs[out].rank; i++)
        flat = ex_add(a, ex_mul(a, flat, i ? ex_size(n->outs[out].extent[i]) : ex_of(S("1"))),
                      at[i].e);
    struct ex all = constant_of(w, n, number_of(w, n, json_at(values, count - 1)));
    for (size_t i = count - 1; i-- > 0;)
        all = ex_if(a, below(a, flat, ex_integer(a, (int64_t)i + 1)),
                    constant_of(w, n, number_of(w, n, json_at(values, i))), all);
    return all;
}

/* A leaf is a tensor of the task; one that is not is a buffer made of constants alone. */
struct ex read_leaf(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    struct ref r;
    (void)out;
    if (!arg_ref(w, n, "value", &r))
        return cannot(w, n, "an input without a value");
    return read_at(w, r, at);
}

struct ex read_random(struct writer *w, const struct node *n, size_t out, const struct place *at) {
    (void)out;
    (void)at;
    return cannot(w, n, "random numbers");
}
