/* What the pointwise family knows about a step before it writes text.
 *
 * The statements of a step run over one index space (the same extents, symbolically): one kernel,
 * one launch, each input element loaded once. A let that another statement of the step reads at its
 * own element is a local of the function that reads it. What remains are reads of memory, and how a
 * read moves with the flat index decides how it is loaded. */
#ifndef AGENT_EXPERT_POINTWISE_H
#define AGENT_EXPERT_POINTWISE_H

#include "agent/expert/sheet/sheet_private.h"

#define PW_READS    64 /* loaded by the kernel, of one step */
#define PW_DIVISORS 4
#define PW_TENSORS  40 /* pointers of one kernel */

enum pw_access {
    PW_FLAT,  /* element e of the tensor for element e of the space: always vectors */
    PW_ROW,   /* runs along the innermost index from an aligned place: vectors where sizes divide */
    PW_SPLAT, /* does not move with the innermost index: one load for a vector */
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
};

bool pw_claim(const struct briefing *b, const struct form *f, const bool *done, size_t first,
              bool *take);
/* Outputs and reads of the step. */
void pw_build(struct pw *p);
/* The read among those the kernel loads, or -1 for a gather. */
int pw_find_read(const struct pw *p, const struct expr *e);
/* The let of the step whose value is read; NULL: a read of memory. */
const struct statement *pw_local(const struct pw *p, const struct expr *read);

#endif
