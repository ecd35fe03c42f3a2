/* The lines of a plan, private to the kernel room: the readers of each kind of line, and arithmetic
 * over the task's dimensions and earlier lets. The arithmetic is spec's (spec/language.h) without
 * kinds of values: everything is a 64-bit integer, truth is 1 and 0, and a let is an EXPR_INDEX.
 *
 * A reader walks one line of the candidate at a time. */
#ifndef KERNEL_PLAN_H
#define KERNEL_PLAN_H

#include "kernel/candidate.h"
#include "spec/language.h"

#define PLAN_MAX_DEPTH 64 /* of a tree; chains like 1+1+1+… count one a term */

/* aligned(x, n), which is no arithmetic: it is noted here, and as an expression it is the number 1.
 */
struct plan_aligned {
    const struct expr *node;
    enum arg_kind of;
    size_t ref;
    uint32_t bytes;
};
#define PLAN_MAX_ALIGNED 16 /* in one line */

struct plan_reader {
    struct parser p;
    const struct task *task;
    const struct plan_let *lets; /* those already known */
    size_t nlets;
    struct candidate *c;          /* the plan so far; NULL: arithmetic alone */
    struct plan_aligned *aligned; /* where to note them; NULL: not allowed here */
    size_t naligned;
};

/* A diagnostic at a place of the reader's source. */
#define PLAN_FAIL(r, at, len, hint, ...)                                                           \
    err_at((r)->p.err, (r)->p.lx.file, (r)->p.lx.text, (at), (len), (hint), __VA_ARGS__)

struct plan_reader plan_reader_on(str file, str source, const struct task *t, struct arena *a,
                                  struct err *err);
bool reader_expect(struct plan_reader *r, const char *sign, const char *after);
bool reader_at_end(struct plan_reader *r, const char *after);
struct expr *plan_expr_parse(struct plan_reader *r); /* NULL and err */
bool plan_name_is_function(str name);

/* What a name alone stands for: a tensor, a workspace or a map. ARG_INTEGER: none of them. */
enum arg_kind plan_name_find(const struct plan_reader *r, str name, size_t *ref);
const char *plan_kind_name(enum arg_kind kind); /* "a workspace" */
/* Takes the name of a tensor that has memory, or of a workspace. `what` wants it. */
bool reader_memory(struct plan_reader *r, const char *what, enum arg_kind *of, size_t *ref);
/* Takes a name that is still free in the plan; `example` is a whole line. */
bool reader_new_name(struct plan_reader *r, const char *what, const char *example, str *out);
/* `[a, b, …]`, one to `most` expressions. */
bool reader_list(struct plan_reader *r, const char *after, struct expr **out, size_t most,
                 size_t *n);
enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref);

/* What follows the first word of a line. `at` is where that word stands. */
bool parse_workspace(struct plan_reader *r, size_t at);
bool parse_memset(struct plan_reader *r, size_t at);
bool parse_tensormap(struct plan_reader *r, size_t at);
bool parse_launch(struct plan_reader *r, size_t at);

/* Binding, for one instance. */
struct binding_run {
    const struct candidate *c;
    const struct inst *in;
    struct err *err;
    int64_t lets[CANDIDATE_MAX_LINES];
    size_t nlets; /* how many have a value */
};
#define BIND_FAIL(b, at, len, hint, ...)                                                           \
    err_at((b)->err, (b)->c->file, (b)->c->source, (at), (len), (hint), __VA_ARGS__)
bool bind_value(struct binding_run *b, const struct expr *e, int64_t *out);
bool bind_workspace(struct binding_run *b, const struct plan_workspace *w,
                    struct bound_workspace *out);
bool bind_memset(struct binding_run *b, const struct plan_memset *m, const struct bound_plan *p,
                 struct bound_memset *out);
bool bind_tensormap(struct binding_run *b, const struct plan_tensormap *m,
                    struct bound_tensormap *out);

#endif
