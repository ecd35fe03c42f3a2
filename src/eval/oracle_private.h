/* What oracle_run.c and oracle_case.c share. */
#ifndef EVAL_ORACLE_PRIVATE_H
#define EVAL_ORACLE_PRIVATE_H

#include "eval/oracle_run.h"
#include "kernel/oracle_plan.h"

/* Device memory that checks write their records to; pieces are handed out from the front. */
struct oracle_chunk {
    uint64_t at;
    size_t bytes, used;
};

enum oracle_check_kind { CHECK_INPUTS, CHECK_CANARIES, CHECK_DIGESTS, CHECK_OUTPUTS };

/* A check under way: a row of records, of `blocks` blocks, for each selected tensor or region. */
struct oracle_check {
    enum oracle_check_kind kind;
    struct oracle_case *of; /* NULL: canaries */
    size_t slot;
    uint64_t key;
    uint64_t select; /* of tensors; canaries: all regions */
    size_t chunk, offset, first_row, rows, blocks;
};

struct oracle {
    const struct task *t;
    const struct engine *e;
    struct arena *a; /* of the plan */
    struct oracle_plan plan;
    uint64_t scratch; /* shared by all cases */
    size_t scratch_bytes;
    struct oracle_case *scratch_of; /* whose values lie there */
    struct oracle_chunk *chunks;
    size_t nchunks, chunks_cap;
    struct oracle_check *checks;
    size_t nchecks, checks_cap;
    struct oracle_output *outputs; /* of the last collect */
    size_t outputs_cap;
};

/* How one array of intermediate values lies in this case. */
struct oracle_memory {
    bool has;                /* it has memory */
    bool own;                /* … of the case */
    size_t offset, bytes;    /* in the case's memory, or in the scratch */
    int64_t segments, terms; /* of a reduction: threads a result, terms a thread */
    struct oracle_tile tile; /* … where each makes several */
    int64_t threads;         /* … and how many there are then; 0: each makes one */
};

struct oracle_case {
    struct oracle *o;
    const struct inst *in;
    struct oracle_memory *memory; /* by step */
    bool kept;    /* what is expected of outputs, which is all that comparisons read */
    bool remade;  /* what a comparison reads is in the scratch */
    bool defined; /* sums of definitions have been made */
    uint64_t own; /* device memory: arrays, then what is expected */
    size_t own_bytes, expected_offset;
    uint64_t world; /* struct oracle_world and all it points to */
    char *host;     /* the same bytes here */
    size_t world_bytes, odd_offset;
    struct oracle_array *arrays; /* in host */
    size_t scratch_need;         /* arrays, then parts of reductions */
    size_t parts_offset;
    uint64_t scratch_seen; /* the address that `arrays` were last sent with */
};

bool oracle_launch(struct oracle *o, const char *kernel, int64_t blocks, size_t tensors,
                   const void *params, size_t bytes, struct err *err);
/* Blocks for so many elements, and for the largest of some tensors. */
int64_t oracle_blocks_for(int64_t elements);
int64_t oracle_blocks(const struct oracle_case *c, uint64_t select);
/* Tensors, a bit each: those that are only read, only written, or both. */
uint64_t oracle_select(const struct task *t, bool inputs, bool outputs, bool both);
struct oracle_op oracle_op_of(const struct oracle_case *c);
/* Puts the intermediate values that a comparison reads where it reads them. */
bool oracle_case_ready(struct oracle_case *c, struct err *err);

#endif
