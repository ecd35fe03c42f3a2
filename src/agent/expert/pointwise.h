/* What the pointwise generator knows about a task before it writes text.
 *
 * Outputs over one index space (the same extents, symbolically) form a group: one kernel, one
 * launch, each input element loaded once. Every output's body is expanded: lets whose index is the
 * output's own become locals, other lets are substituted. What remains are reads of inputs, and how
 * a read moves with the output's flat index decides how it is loaded. */
#ifndef AGENT_EXPERT_POINTWISE_H
#define AGENT_EXPERT_POINTWISE_H

#include "agent/agent.h"

#define PW_NODES_MAX (16u << 10) /* of all expanded bodies of a task */
#define PW_DEPTH_MAX 4000
#define PW_READS_MAX 128                /* loaded by the kernel, in a group */
#define PW_PARAMS    64                 /* integers handed to a kernel */
#define PW_INT_MAX   (INT64_C(1) << 30) /* counts up to this use int: room for a tile beyond */

enum pw_access {
    PW_FLAT,   /* element e of the tensor for element e of the output: always vectors */
    PW_ROW,    /* runs along the innermost index from an aligned row: vectors where rows divide */
    PW_SPLAT,  /* does not move with the innermost index: one load for a vector */
    PW_GATHER, /* any other: inside the element's function, where the guards of if() hold */
};

struct pw_read {
    const struct expr *e;
    enum pw_access access;
    str name, vector; /* of its value; of the variable a vector of it is in */
};

struct pw_param {
    str name, plan; /* in the kernel; as the launch plan computes it */
};

/* A let evaluated at variables of the group. In expanded trees a read of it has no arguments, and
 * one that was substituted has its body as only argument. */
struct pw_local {
    size_t tensor;
    size_t variable[TASK_MAX_RANK];
    const struct expr *body;
    str name;
};

struct pw_output {
    const struct statement *statement;
    const struct tensor *tensor;
    size_t index; /* of the tensor */
    const struct expr *body;
    struct pw_local *locals; /* each before its readers */
    size_t nlocals;
    /* What its function is handed, found while its text is written. */
    bool reads[PW_READS_MAX], params[PW_PARAMS], coordinates[TASK_MAX_RANK];
    bool gathers[TASK_MAX_TENSORS];
    str function, vector;
};

struct pw_group {
    struct pw_output *outputs;
    size_t noutputs;
    const struct tensor *shape; /* of the first output: the index space */
    int64_t count;
    str coordinate[TASK_MAX_RANK];
    struct pw_read reads[PW_READS_MAX];
    size_t nreads;
    struct pw_param params[PW_PARAMS];
    size_t nparams;
    bool inputs[TASK_MAX_TENSORS]; /* pointers the kernel takes */
    bool wide;                     /* indices are long long */
    str kernel;
};

struct pw {
    const struct briefing *briefing;
    const struct task *task;
    struct arena *mem;
    struct err *err;
    struct pw_group *groups;
    size_t ngroups;
    str *taken; /* every name in use */
    size_t ntaken, cap_taken;
    str tensor_name[TASK_MAX_TENSORS];
    str gather_name[TASK_MAX_TENSORS]; /* its pointer in a function that also has its value */
    size_t nodes;
};

/* Fills all of it but what is found while text is written. `p` has briefing, mem and err. */
bool pw_build(struct pw *p);
void pw_release(struct pw *p);

/* A name like `base` that nothing else has. */
str pw_name(struct pw *p, str base);
/* The kernel's integer for an expression over dimensions: a literal, or a parameter's name. */
bool pw_integer(struct pw *p, struct pw_group *g, const struct expr *e, str *name);
/* The expression in the syntax of launch plans. */
bool pw_plan_text(struct pw *p, const struct expr *e, struct buf *out);
bool pw_same(const struct expr *a, const struct expr *b);
bool pw_moves_with(const struct expr *e, size_t variable);
/* The read among those the kernel loads, or -1 for a gather. */
int pw_find_read(const struct pw_group *g, const struct expr *e);

#endif
