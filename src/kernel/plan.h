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
    size_t naligned, lines;
    bool once;     /* the line is a step that is done once */
    bool argument; /* what is read is an argument of a launch */
};

struct plan_reader plan_reader_on(str file, str source, const struct task *t, struct arena *a,
                                  struct err *err);
struct expr *plan_expr_parse(struct plan_reader *r); /* NULL and err */
enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref);

#endif
