/* A statement as a linear program over blocks of LANES consecutive output elements. Private to the
 * room.
 *
 * A register holds, for every lane, a value in fp64 and the variance of the error that an honest
 * evaluation has made so far (for truth values: 0 certain, 1 may go either way). The variance is
 * infinite where the mathematics leaves the value undefined. Registers are used as a stack: the
 * result of an expression lies below its operands, so no instruction works in place. Under an `if`
 * an instruction runs with a mask; lanes outside read nothing, count for nothing and are never
 * selected. */
#ifndef SPEC_PROGRAM_H
#define SPEC_PROGRAM_H

#include "spec/task.h"

enum { LANES = 256 };

/* The factors of the two tests (docs/TASKS.md): an element may be off by `worst` estimates, a
 * tensor by `rms` in the root mean square. */
struct limits {
    double worst, rms;
};
struct limits accuracy_limits(enum accuracy a);

struct reg {
    double v[LANES];
    double e[LANES];
};

enum op {
    OP_LITERAL,
    OP_INDEX,
    OP_READ,
    OP_TO_REAL, /* integer to real: rounds where fp32 would */
    OP_NODE,    /* the expression's own kind says what */
    OP_MASK_THEN,
    OP_MASK_ELSE,
    OP_SELECT,
};

/* Where a read finds its elements: base + Σ coef·variable, or, when that does not describe it,
 * Σ stride·argument with the arguments in registers. */
struct access {
    size_t tensor;
    bool affine;
    bool contiguous; /* the same linear index as the element being computed */
    int64_t base, coef[TASK_MAX_RANK];
};

struct instr {
    enum op op;
    const struct expr *e;
    size_t dst; /* operands at dst+1, dst+2, dst+3 */
    size_t nargs;
    int mask;  /* -1: all lanes */
    bool root; /* its result is stored */
    struct limits limits;
    struct access access; /* READ */
};

struct program {
    const struct inst *in;
    const struct statement *s;
    struct instr *code;
    size_t n, cap;
    size_t nregs, nmasks;
    size_t result; /* register */
    bool needs_index;
};

void program_compile(const struct inst *in, const struct statement *s, struct program *out);
void program_release(struct program *p);

/* Where reads find data. Inputs in their dtype, lets as value and variance. */
struct memory {
    const void *const *inputs;
    double *const *let_value;
    double *const *let_variance;
};

/* One thread's registers. */
struct machine {
    const struct program *p;
    const struct memory *mem;
    struct reg *regs;
    unsigned char (*masks)[LANES];
    int64_t (*index)[LANES]; /* [rank] */
    bool track_peak;
    double peak;
};
bool machine_init(struct machine *m, const struct program *p, const struct memory *mem,
                  bool track_peak);
void machine_release(struct machine *m);
/* Elements [first, first+n), n ≤ LANES; the result is in p->result. */
void machine_run(struct machine *m, int64_t first, size_t n);

/* vector.c: one instruction of kind OP_NODE, OP_TO_REAL or OP_SELECT, for n lanes. */
void vector_node(const struct instr *i, struct reg *d, const struct reg *a, size_t n);
void vector_to_real(struct reg *d, const struct reg *a, size_t n);
void vector_select(struct reg *d, const struct reg *a, size_t n);
/* The result is infinite because the function is, there; not because it overflowed. */
bool vector_is_pole(const struct instr *i, const struct reg *a, size_t lane);

#endif
