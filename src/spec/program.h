/* An expression as a linear program over blocks of lanes. Private to the room.
 *
 * A block is up to LANES consecutive values of one variable, the lane variable, with all other
 * variables held; which one that is, and in what order the others run, is chosen by the loops
 * around it (nest.h). A register holds a value and its variance (value.h) for every lane.
 *
 * Invariants:
 * 1. An instruction only runs again when a variable it depends on has changed (`level`); what does
 *    not depend on the lane variable is computed in lane 0 and spread.
 * 2. The variance of an `exact` register is 0 in all lanes and is never written.
 * 3. No read leaves its tensor, whatever was proved about it: a lane that would gets an undefined
 *    value. So both sides of an `if`, and terms that a guard rejects, may be computed for nothing;
 *    masks only say whose magnitudes count. */
#ifndef SPEC_PROGRAM_H
#define SPEC_PROGRAM_H

#include "spec/domain.h"
#include "spec/value.h"

enum { LANES = 256 };

/* Padded, so that lanes of different registers do not fall on the same lines of a cache: accesses a
 * multiple of 4096 bytes apart wait for each other. */
enum { LANES_PAD = 24 };
struct reg {
    double v[LANES];
    double e[LANES + LANES_PAD];
};

/* False: does not fit. */
bool affine_at(const struct affine *a, const int64_t *at, int64_t *out);

/* An index that a pad watches. */
struct edge {
    struct affine at;
    int64_t extent;
};

enum op {
    OP_LITERAL,
    OP_INDEX,
    OP_READ,
    OP_TO_REAL, /* integer to real: rounds where fp32 would */
    OP_ROUND,   /* a factor to the format of the class: only its error changes */
    OP_NODE,    /* `kind` and `function` say what */
    OP_MASK_THEN,
    OP_MASK_ELSE,
    OP_SELECT,
};

struct instr {
    enum op op;
    enum expr_kind kind;
    enum function function;
    enum value_kind type;
    double number;  /* LITERAL */
    size_t ref;     /* INDEX: the variable; READ: the content */
    uint32_t vars;  /* it depends on */
    bool pure;      /* it depends on variables alone, not on data */
    bool exact;     /* invariant 2 */
    int how;        /* NODE: SETTLE_… and POLE_… of value.h */
    bool truths;    /* compares truth values */
    bool wide;      /* NODE: of integers of 64 bits */
    bool summed;    /* a product of exact operands that the sum makes itself */
    bool lone[2];   /* … of which this operand is uniform, and not spread */
    bool uniform;   /* invariant 1 */
    bool spread;    /* … and somebody reads all lanes */
    unsigned level; /* the loop that makes it run again; 0: none */
    int mask;       /* a register; -1: all lanes count */
    size_t dst;     /* before program_schedule: its own number */
    size_t nargs, src[TASK_MAX_RANK + 1];
    /* READ: the element at `place` plus stride·register for the indices in registers (src), which
     * must each lie below `extent` under a pad. The pad's value is the last of src. */
    bool padded;
    size_t nplaces;
    struct affine place;
    int64_t stride[TASK_MAX_RANK], extent[TASK_MAX_RANK];
    size_t edge, nedges;
};

/* Where reads find data. Inputs in their dtype; lets and the results of reductions as value and
 * variance. Numbered: the tensors of the task, then reductions. */
struct content {
    bool finite; /* no element is NaN or infinite */
    enum dtype dtype;
    const void *value;
    const double *variance; /* NULL: exact where fp32 is */
    const double *peak;     /* largest magnitude on the way to each element, or NULL */
    int64_t first;          /* place of its first element */
    int64_t count;
};

/* A reduction that has been evaluated, as a tensor over the variables it depends on. */
struct stage {
    const struct expr *e;
    size_t content;
    struct affine place;
};

struct program {
    const struct inst *in;
    const struct statement *s;
    const struct stage *stages;
    size_t nstages;
    const struct ranges *ranges; /* of all variables, where terms count */
    struct rules rules;
    bool track_peak;
    struct instr *code;
    size_t n, cap;
    struct edge *edges;
    size_t nedges, edge_cap;
    size_t guard_end; /* instructions of the guard come first */
    int guard;        /* register of the guard, -1: none */
    bool guard_uniform;
    size_t result;  /* register */
    size_t product; /* instruction that is `summed`; SIZE_MAX: none */
    size_t nexact, nregs;
    int lane;       /* variable, -1: none */
    unsigned inner; /* level of the innermost loop */
};

void program_init(struct program *p, const struct inst *in, const struct statement *s,
                  const struct stage *stages, size_t nstages, const struct ranges *ranges,
                  bool track_peak);
void program_release(struct program *p);
/* Appends code for a condition that every term must satisfy (NULL: the variable's own bounds
 * lo <= var < hi, either of which may be NULL). All guards before the body. */
void program_guard(struct program *p, const struct expr *condition);
void program_guard_bounds(struct program *p, size_t var, const struct expr *lo,
                          const struct expr *hi);
/* The value; `real`: converted when it is an integer. */
void program_body(struct program *p, const struct expr *e, bool real);
/* Levels, lanes and registers. order[v]: the level of variable v's loop, from 1; `inner` the
 * deepest. */
void program_schedule(struct program *p, int lane, const unsigned *order, unsigned inner);

/* One thread's registers. */
struct machine {
    const struct program *p;
    const struct content *contents;
    struct reg *regs;
    int64_t at[TASK_MAX_VARS]; /* the lane variable: in lane 0 */
    size_t n;                  /* lanes in use */
    bool careful;              /* make and settle products that sums make themselves, too */
    bool odd;                  /* an infinity may be open: it was read, or made here */
    double peak[LANES];
};
bool machine_init(struct machine *m, const struct program *p, const struct content *contents);
void machine_release(struct machine *m);
/* Instructions [first, last) whose level is at least `level`. */
void machine_run(struct machine *m, size_t first, size_t last, unsigned level);
void machine_note_peak(struct machine *m, size_t lane, double v);

/* No value beyond `most` and, where asked for, no variance without end. */
bool vector_ordinary(const struct reg *d, bool errors, double most, size_t n);

static inline struct value lane_of(const struct reg *a, size_t l) {
    return value_of(a->v[l], a->e[l]);
}

#endif
