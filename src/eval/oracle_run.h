/* Runs the oracle (kernel/oracle.h): makes the inputs of cases, their expected results and the
 * comparison with what a candidate wrote, through an engine: CUDA in the judge, the simulator in
 * tests.
 *
 * The caller owns the tensors' memory and says where it lies. A case owns what its comparisons read
 * beside it: what is expected of every element of its outputs, value and estimate. Where that does
 * not fit in keep_bytes, or an index may be as good as the one expected, elements are evaluated in
 * the comparison and the case owns the intermediate values for it instead, as far as those fit.
 * Others live in memory that all cases of an oracle share and are made again where another case has
 * been there since. What is kept is what would be evaluated, to the last bit.
 *
 * Work is queued in order and nothing waits but oracle_collect and oracle_reference. Checks report
 * into slots, which the caller numbers; between queueing a check and collecting it the memory it
 * looks at must stay as it is. Nothing here trusts what a candidate may have written. */
#ifndef EVAL_ORACLE_RUN_H
#define EVAL_ORACLE_RUN_H

#include "kernel/oracle_layout.h"
#include "kernel/oracle_plan.h"
#include "spec/data.h"
#include "spec/reference.h"

/* Device memory that no candidate sees, and kernels of the task's oracle by name. All operations
 * happen in the order they are asked for; `params` is copied before launch returns. */
struct engine {
    void *ctx;
    bool (*alloc)(void *ctx, size_t bytes, uint64_t *address, struct err *err);
    void (*release)(void *ctx, uint64_t address);
    bool (*launch)(void *ctx, const char *kernel, const uint32_t grid[3], uint32_t block,
                   const void *params, size_t bytes, struct err *err);
    bool (*fetch)(void *ctx, void *dst, uint64_t src, size_t bytes, struct err *err); /* waits */
    bool (*send)(void *ctx, uint64_t dst, const void *src, size_t bytes, struct err *err);
    bool (*zero)(void *ctx, uint64_t dst, size_t bytes, struct err *err);
    int64_t threads;       /* that it takes to keep it busy: below that, threads share results */
    unsigned host_threads; /* for what is evaluated on the host; at least 1 */
};

struct oracle;
struct oracle_case;

/* The engine and the task outlive it. */
struct oracle *oracle_new(const struct task *t, const struct engine *e, struct err *err);
void oracle_free(struct oracle *o); /* after its cases; NULL is fine */

/* What a case of these sizes would take of an engine's memory, given that it may keep so much. */
struct oracle_need {
    size_t own;    /* of the case: what its comparisons read */
    size_t shared; /* of the oracle: intermediate values, of one case at a time */
};
bool oracle_need_of(const struct inst *in, int64_t threads, size_t keep_bytes,
                    struct oracle_need *out, struct err *err);

/* addresses: of each tensor's first element, by tensor; 0 for those without memory. params: the
 * seed of the task's parameters, `seed` or another. */
struct oracle_case *oracle_case_new(struct oracle *o, const struct inst *in,
                                    const struct data_scale *scale, enum data_kind kind,
                                    uint64_t seed, uint64_t params, const uint64_t *addresses,
                                    size_t keep_bytes, struct err *err);
void oracle_case_free(struct oracle_case *c);          /* NULL is fine */
size_t oracle_case_bytes(const struct oracle_case *c); /* that it keeps on the device */

/* All inputs, into their places. */
bool oracle_fill(struct oracle_case *c, struct err *err);
/* What the comparison reads beside inputs and outputs; after oracle_fill, while inputs are whole.
 */
bool oracle_expect(struct oracle_case *c, struct err *err);
/* Outputs get the poison of `key`; those that are inputs as well their content. */
bool oracle_poison(struct oracle_case *c, uint64_t key, struct err *err);

/* Bytes around tensors. */
bool oracle_canary_fill(struct oracle *o, const struct oracle_region *regions, size_t n,
                        struct err *err);

/* ---- checks ---- */

/* Are inputs that nobody may write what they were? */
bool oracle_queue_inputs(struct oracle_case *c, size_t slot, struct err *err);
bool oracle_queue_canaries(struct oracle *o, const struct oracle_region *regions, size_t n,
                           size_t slot, struct err *err);
/* Of at most ORACLE_REGIONS: a number that depends on every byte and, secretly, on their keys. The
 * quick way to see whether anything has changed. */
bool oracle_queue_digests(struct oracle *o, const struct oracle_region *regions, size_t n,
                          size_t slot, struct err *err);
/* Outputs: written at all (key: of their poison), truth values, and values. */
bool oracle_queue_compare(struct oracle_case *c, uint64_t key, size_t slot, struct err *err);

struct oracle_seen {
    uint64_t count; /* 0: all is well */
    int64_t first;  /* the lowest element, or byte of a region */
    size_t where;   /* the tensor, or the region: the first with anything to report */
};
struct oracle_output {
    size_t tensor;
    struct oracle_seen unwritten, untrue; /* untrue: truth values that are neither 0 nor 1 */
    uint8_t untrue_byte;
    struct comparison comparison;
};
/* What a slot was told; zero where nothing was asked. */
struct oracle_result {
    struct oracle_seen input, canary;
    uint64_t digest[ORACLE_REGIONS];
    const struct oracle_output *outputs; /* by declaration; the oracle's until the next collect */
    size_t noutputs;
};
/* Waits for everything queued. results[n]: of slots 0 … n-1. */
bool oracle_collect(struct oracle *o, struct oracle_result *results, size_t n, struct err *err);

/* Value and estimate of elements of an output, for people. */
bool oracle_reference(struct oracle_case *c, size_t tensor, int64_t first, size_t count,
                      double *value, double *estimate, struct err *err);

/* ---- for oracle_run.c and its tests alone ---- */

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
    bool has;                          /* it has memory */
    bool own;                          /* … of the case */
    size_t offset, bytes;              /* in the case's memory, or in the scratch */
    int64_t segments, terms;           /* of a reduction: threads a result, terms a thread */
    struct oracle_tile tile;           /* … where each makes several */
    int64_t threads;                   /* … and how many there are then; 0: each makes one */
    int64_t lists, list_terms, listed; /* by index: lists, terms of each item, of all; 0: none */
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
    size_t parts_offset, lists_offset;
    uint64_t scratch_seen; /* the address that `arrays` were last sent with */
};

#endif
