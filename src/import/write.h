/* A graph as the text of a task.
 *
 * Elements are asked for from the outputs backwards: `read_at` gives a value's expression at
 * places, which is a read where the value is a tensor of the task, and otherwise what its operator
 * makes of its arguments. Views cost nothing, pointwise operators stand inside one another, and
 * what is read more than once or is a reduction becomes a let. Operators use what follows. */
#ifndef IMPORT_WRITE_H
#define IMPORT_WRITE_H

#include "import/ops.h"

/* Where one dimension is read. An index that runs through several dimensions at once, as a reshape
 * makes it, keeps them: the next reshape takes it apart again instead of dividing. */
struct digit {
    struct ex e;
    str extent;
};
struct place {
    struct ex e;
    struct digit digits[TASK_MAX_RANK];
    size_t n; /* 0: e alone */
};
struct place place_of(struct ex e);

struct writer;

/* ---- values ---- */
/* `at` has TASK_MAX_RANK places at least; those that are not set are empty. */
struct ex read_at(struct writer *w, struct ref r, const struct place *at);
/* An operand of a pointwise result of this rank: its dimensions are the last ones, those of extent
 * 1 are read at 0. */
struct ex read_broadcast(struct writer *w, struct ref r, const struct place *at, size_t rank);
/* A read that may leave its tensor and is `outside` there. */
struct ex read_padded(struct writer *w, struct ref r, const struct place *at, const char *outside);

/* ---- arguments ---- */
bool arg_ref(struct writer *w, const struct node *n, const char *name, struct ref *out);
const struct value *arg_value(struct writer *w, const struct node *n, const char *name);
int64_t arg_i64(const struct node *n, const char *name, int64_t fallback);
double arg_f64(const struct node *n, const char *name, double fallback);
bool arg_bool(const struct node *n, const char *name);
bool arg_is_null(const struct node *n, const char *name);
int64_t arg_i64_at(const struct node *n, const char *name, size_t i, int64_t fallback);
/* … of a list that may have one number for all dimensions, or none. */
int64_t arg_listed(const struct node *n, const char *name, size_t i, int64_t fallback);
/* A number of the mathematics: a literal, or an expression over sizes. */
struct ex number_of(struct writer *w, const struct node *n, const json *j);
struct ex size_of(struct writer *w, const struct node *n, const json *j);
/* An operand: a tensor, read at the places of the result, or a number. */
struct ex operand(struct writer *w, const struct node *n, const char *name, const struct place *at,
                  size_t rank);
/* A dimension's number; negative ones count from the end. */
size_t axis_of(struct writer *w, const struct node *n, int64_t dim, size_t rank);

/* ---- writing ---- */
struct arena *writer_arena(struct writer *w);
const struct graph *writer_graph(const struct writer *w);
/* A new variable of the statement being written, over this size. The name is a wish. */
struct ex variable(struct writer *w, const char *wish, str extent);
/* OP(variables | guard) body; a variable's range is left out where what it indexes says it. */
struct ex reduction(struct writer *w, const char *op, const struct ex *vars, size_t n,
                    struct ex guard, struct ex body);
/* A let beside a node's own, such as a mean: made once, read at the places. `build` writes it. */
struct ex helper_let(struct writer *w, const struct node *n, const char *tag, size_t rank,
                     const str *extents, const struct place *at,
                     struct ex (*build)(struct writer *w, const struct node *n,
                                        const struct place *at));
/* @x of a template is argument x. */
struct ex fill_template(struct writer *w, const struct node *n, const char *text,
                        const struct place *at, size_t rank);
/* The operator cannot be expressed: said once, with its place in the user's file. */
struct ex cannot(struct writer *w, const struct node *n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The task; false and err (ERR_NO: it cannot be expressed). too_large: every operator can be, but a
 * task has not so many tensors or dimensions. */
bool write_task(struct graph *g, const char *file, struct arena *a, struct buf *out,
                bool *too_large, struct err *err);
bool write_is_word(str name); /* of the task language */

#endif
