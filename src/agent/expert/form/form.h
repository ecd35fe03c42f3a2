/* A task in normal form: what the generators match and write.
 *
 * Every reduction stands alone, as the whole body of a statement (a fold), and its terms hold no
 * other reduction; every other statement holds none (a map). Lets that are maps without a type of
 * their own are inlined where they are read. The form is a task with its instance, so all of spec/
 * works on it: patterns, ranges, affine forms, costs. Dimensions and tensors keep their numbers;
 * what is made here comes after them, role LET, no type (kept in memory as f32).
 *
 * What cannot be brought into this form stays as it is: a reduction whose value depends on a
 * variable of a range that is not a size, or that must not be evaluated where a condition does not
 * hold, stays inside its statement, which is then neither fold nor map; a let that a pad reads
 * stays a let. So do the lets of a recurrence (spec/recur.h), with the reductions that read its
 * steps; what they read beside those is taken out of them and goes before. */
#ifndef AGENT_EXPERT_FORM_H
#define AGENT_EXPERT_FORM_H

#include "spec/expr.h"
#include "spec/scalar.h"

struct form {
    const struct inst *original;
    const struct task *task;
    const struct inst *inst;
};
/* operands: what a contraction multiplies becomes a tensor where it is computed: not a plain (or
 * padded) element of one. */
bool form_make(const struct inst *in, bool operands, struct arena *a, struct form *out,
               struct err *err);

/* A fold's body is the reduction. A map has none. */
bool form_is_fold(const struct statement *s);
bool form_is_map(const struct statement *s);
/* A fold that multiplies matrices: two factors, each with an index of the result that the other has
 * not, and a reduced one that both have. What tensor cores are for. */
bool form_is_product(const struct statement *s);

/* Helpers that every matcher needs, besides those of spec/expr.h. */
bool expr_reads_tensor(const struct expr *e, size_t tensor);
/* Integer expressions of a generator's own making. A product with 1 is the other factor. */
struct expr *expr_number(struct arena *a, int64_t v);
struct expr *expr_pair(struct arena *a, enum expr_kind kind, const struct expr *x,
                       const struct expr *y);
struct expr *expr_times(struct arena *a, struct expr *x, struct expr *y);
struct expr *expr_variable(struct arena *a, size_t var);
bool expr_is_variable(const struct expr *e, size_t var);
uint64_t expr_tensors(const struct expr *e); /* that it reads, bits */
/* The tensor is read at exactly the variables of `s`, in their order: an epilogue of it. */
bool expr_is_own(const struct statement *s, const struct expr *read);
/* The element that a statement defines, as a read. */
struct expr *expr_own(const struct task *t, const struct statement *s, struct arena *a);
/* A copy with variable i replaced by map[i] (NULL: kept); reductions inside are not allowed. */
struct expr *expr_replace(const struct expr *e, struct expr *const *map, struct arena *a);

/* The extent of a variable of the left side; NULL: it is not one of its positions. */
struct expr *statement_extent(const struct task *t, const struct statement *s, size_t var);
/* It defines all of its tensor, with variables in the order of the positions. */
bool statement_is_whole(const struct task *t, const struct statement *s);
/* Their left sides run over the same extents. */
bool statement_same_space(const struct task *t, const struct statement *a,
                          const struct statement *b);
size_t form_definitions(const struct task *t, size_t tensor); /* how many statements it has */
/* The first statement of the set that defines the tensor; NULL: none. */
const struct statement *form_definition_in(const struct task *t, const bool *set, size_t tensor);
/* A statement from number `from` on reads the tensor. */
bool form_is_read(const struct task *t, size_t from, size_t tensor);
/* All that defines the tensor is in the set of statements. */
bool form_defined_by(const struct task *t, const bool *set, size_t tensor);

/* A part of a form as a task of its own: the statements marked in `take`. Tensors they read from
 * elsewhere are inputs there (lets of other parts: IN, f32), those that others read are outputs
 * (OUT); lets that only they use stay lets. An output of the task stays an output. */
struct inst *form_part(const struct form *f, const bool *take, struct arena *a);

#endif
