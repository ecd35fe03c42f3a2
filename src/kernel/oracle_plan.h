/* How the oracle evaluates a task: which intermediate values it keeps in memory, how each of them
 * is made, and what is true of every reduction whatever the sizes. Both who writes the kernels
 * (oracle.c) and who runs them (eval/oracle_run.h) go by it.
 *
 * A let that costs little, no function and no reduction, is evaluated where it is read. A reduction
 * is kept in memory where it depends on fewer indices than the statement it stands in, where it
 * stands in another reduction, and where its range grows with an index (a prefix, made in one walk
 * along it). One that depends on all indices is evaluated where it is read, unless the runner gives
 * it memory: of an output, so that it is made once and not at each comparison; or because it has so
 * few results that several threads must share each.
 *
 * The terms of a reduction by index are sorted by result first, and each result, which then has
 * memory, goes through its own.
 *
 * A contraction reads each factor for many results. Of the axes, those that only its first factor
 * depends on are rows, those that only the second does are columns, and a thread may make a block
 * of `rows` by `columns` results: what it reads and computes of a factor serves a whole line of
 * them. */
#ifndef KERNEL_ORACLE_PLAN_H
#define KERNEL_ORACLE_PLAN_H

#include "kernel/oracle_layout.h"
#include "spec/bounds.h"
#include "spec/pattern.h"
#include "spec/task.h"

enum oracle_step_kind {
    ORACLE_LET,
    ORACLE_REDUCE,
    ORACLE_DEFINE, /* a reduction of an input's definition: plain values, no variance */
};

/* One array of intermediate values, in the order in which they are made. */
struct oracle_step {
    enum oracle_step_kind kind;
    size_t tensor;             /* LET: its own; otherwise of the statement */
    const struct statement *s; /* REDUCE, DEFINE: that it stands in */
    const struct expr *e;
    size_t axis[ORACLE_AXES], naxes; /* REDUCE, DEFINE: the variables it depends on, in order */
    const struct reduce *outer[TASK_MAX_VARS];
    size_t nouter; /* reductions it stands in, outermost first */
    bool checked;  /* its reads may leave their tensors: only where the result is not used */
    bool always;   /* it always has memory */
    bool output;   /* it stands in a statement of an output */
    bool needed; /* read when an output is evaluated, all reductions of outputs having memory … */
    bool needed_inline; /* … or none but those that always have it */
    /* Of a reduction: */
    bool fixed;         /* its bounds depend on sizes alone: several threads may share a result */
    int scanned;        /* the axis variable along which its range grows by one; -1: none */
    bool backwards;     /* … with its lower bound */
    bool exact;         /* terms carry no error */
    bool exact_product; /* a sum of products of two exact operands, no term left out: the sum
                         * counts their rounding */
    bool product;       /* … that is a contraction */
    bool uncertain;     /* a contraction whose factors carry errors, no term left out */
    bool partial;       /* a sum of products that leaves terms out: not judged where they are odd,
                         * unless a NaN is among those that are not left out */
    bool index;         /* an output that is an argmax or argmin: judged by the terms themselves */
    bool listed;        /* by index: its terms are sorted by result */
    struct by_index by; /* … */
    uint32_t row_axes, column_axes; /* of a contraction: a bit for each of axis[] */
    int rows, columns;              /* … of the block that a thread may make; 1 by 1: none */
    struct fold fold;
};

struct oracle_plan {
    const struct task *t; /* by_host: without its lets and without the bodies of its outputs */
    bool by_host; /* it has recurrences: what is expected comes from the evaluator of spec, on the
                   * host, and the device compares with that */
    struct oracle_step *steps;
    size_t nsteps;
    int let_step[TASK_MAX_TENSORS]; /* -1: evaluated where it is read */
    bool ties; /* some index of an output may be as good as the one expected, by its terms */
};

bool oracle_plan_make(const struct task *t, struct arena *a, struct oracle_plan *out,
                      struct err *err);
/* The step of a reduction; NULL: one of a definition that is evaluated where it is read. */
const struct oracle_step *oracle_plan_find(const struct oracle_plan *p, const struct expr *e);

/* Its value carries no error, whatever the data; `real`: as an operand of a real operation. */
bool oracle_exact(const struct task *t, const struct expr *e, bool real);

#endif
