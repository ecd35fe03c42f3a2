/* Sums of products as a matrix product: the model that claims and kernels share.
 *
 * The variables of a fold fall into four groups, each run through as one index: `batch` (in both
 * factors), `m` and `n` (in one of them; n has the result's innermost variable), and `k` (summed).
 * A variable that one factor knows only as v//D and the other as both (a grouped convolution's
 * channel) is taken apart into v//D and v%D.
 *
 * A factor is an operand. It is dense when its place is one stride times its side's index plus
 * another times k's; then its tile is copied in rows. Any other, a convolution's window with its
 * padding and its guards, is gathered: the text of its place stands in the kernel, for one element.
 * Where a term is left out, the operand that knows why is zero.
 *
 * Several folds with the same groups make one kernel when a map reads them all: a gate beside what
 * it gates. The maps that read folds at their own index are the epilogue. */
#ifndef AGENT_EXPERT_CONTRACTION_H
#define AGENT_EXPERT_CONTRACTION_H

#include "agent/expert/sheet/sheet.h"

#define CON_FOLDS      4
#define CON_OPERANDS   (2 * CON_FOLDS)
#define CON_CONDITIONS 8
#define CON_STAGES     8

enum con_axis { CON_BATCH, CON_M, CON_N, CON_K, CON_AXES };

enum con_part { CON_WHOLE, CON_QUOTIENT, CON_REMAINDER };
struct con_index {
    size_t var;
    enum con_part part; /* of the variable, by `divisor` */
    const struct expr *divisor;
    struct expr *extent;
};
struct con_group {
    struct con_index at[TASK_MAX_VARS]; /* outermost first */
    size_t n;
    struct expr *total; /* product of the extents */
    int64_t count;      /* of the instance */
};

struct con_operand {
    const struct expr *factor; /* a READ, or a PAD of one with a constant */
    const struct expr *read;
    enum con_axis side;                      /* CON_M or CON_N */
    const struct expr *only[CON_CONDITIONS]; /* zero unless all of these hold */
    size_t nonly;
    bool dense;
    struct expr *side_stride, *k_stride; /* dense: in elements */
    bool k_runs, side_runs;              /* that stride is 1 */
    struct expr *row;                    /* dense: elements from one row to the next */
    int first, last, k_first, k_last;    /* dense: dimensions the side and k run through */
    bool whole;                          /* k runs through all of its dimensions */
};

struct con_fold {
    const struct statement *statement;
    size_t operand[2]; /* of CON_M and CON_N */
    bool rest;         /* the body is more than the product of the two */
};

struct contraction {
    const struct inst *in;
    struct arena *mem;
    struct con_group group[CON_AXES];
    struct con_operand operands[CON_OPERANDS];
    size_t noperands;
    struct con_fold folds[CON_FOLDS];
    size_t nfolds;
    /* The range of a single k, where it depends on m or n: NULL: 0, all. */
    const struct expr *k_lo, *k_hi;
    /* A window with gaps: so many outer variables of k say whether a term counts, by the conditions
     * `hits`; results exist where `inside` holds. 0: none. */
    size_t taps, nhits, ninside;
    const struct expr *hits[CON_CONDITIONS], *inside[CON_CONDITIONS];
};

/* Whether the statement is a fold this family writes. Nothing is written to `out` but from arena
 * `a`; out->nfolds is 1 then. */
bool contraction_match(const struct inst *in, const struct statement *s, struct arena *a,
                       struct contraction *out);
/* Adds a fold over the same groups. */
bool contraction_add(struct contraction *c, const struct statement *s);
/* Takes variables apart whose strides leave gaps. Before contraction_settle. */
void contraction_phase(struct contraction *c);
/* The groups of which operands are dense, and how they lie in memory. After all folds. */
void contraction_settle(struct contraction *c);

int64_t con_value(const struct inst *in, const struct expr *e); /* of the instance; 0: none */

/* How a kernel computes. */
enum con_path {
    CON_SIMT,   /* fp32 FMAs */
    CON_TF32,   /* mma.sync, operands rounded to TF32 */
    CON_TF32X3, /* mma.sync, each operand as the sum of two TF32 numbers */
    CON_BF16X6, /* wgmma, each operand as the sum of three bf16 numbers */
    CON_F16,    /* mma.sync of 16-bit operands */
    CON_BF16,
};
struct con_tile {    /* an operand's tile in shared memory */
    bool k_runs;     /* rows along k; otherwise rows are k, along its side */
    bool window;     /* place by place, the side's part and k's apart */
    bool vector;     /* copied in pieces of 16 bytes */
    bool packed;     /* from a copy in rows along k that an earlier kernel makes */
    bool async;      /* by cp.async; otherwise through registers, where it is converted */
    int rows, row;   /* rows of `row` elements */
    int pitch;       /* elements from row to row */
    enum dtype type; /* stored in shared memory */
    size_t bytes;
};
struct con_config {
    enum con_path path;
    int tile_m, tile_n, tile_k, warps_m, warps_n, stages, split, raster;
    int threads;
    int chain;   /* of k, in one accumulator */
    int promote; /* tiles of k after which accumulators are added to fp32 registers; 0: never */
    bool swizzle;
    bool pack;      /* operands that cannot be loaded by rows are copied first */
    bool warpgroup; /* wgmma, tiles by the tensor copy engine */
    int warpgroups; /* of them that multiply */
    int parts;      /* numbers an element of a packed operand is split into */
    bool cute;      /* layouts, TiledMMA and copies of CuTe */
    int element;    /* bytes of a stored element */
    struct con_tile tile[CON_OPERANDS];
    size_t shared; /* bytes */
};
/* Decisions, clamped to what the shape and an SM allow. */
void contraction_configure(const struct sheet *sh, const struct contraction *c,
                           struct con_config *out);

/* Where tiles in shared memory begin: at multiples of so many bytes. */
#define CON_SWIZZLED 4096 /* the longest pattern of a swizzle in CuTe: four rows of 256 floats */
size_t contraction_alignment(const struct con_config *g);
/* The longest k that the kernel is accurate for; 0: any. */
int64_t contraction_chain(const struct con_config *g);

/* ---- text ---- */
struct con_writer {
    struct sheet *sh;
    const struct step *step;
    struct contraction *c;
    struct con_config g;
    struct scope k;
    const char *index;        /* type of places: "int", "long long" */
    str total[CON_AXES];      /* batches, M, N and K in the kernel */
    bool listed;              /* k runs through a list of taps */
    bool skips;               /* terms that count for nothing are not visited */
    int taps_at;              /* where in the list their number stands */
    str packed[CON_OPERANDS]; /* plan name of the copy; empty: none */
    struct buf params, args;  /* what the kernel takes besides its scope's */
    bool decoded[CON_AXES];   /* the side's variables are declared, for who loads one by one */
};
/* A local name, the same in every kernel unless the task uses it. */
str contraction_local(struct con_writer *w, const char *name);
/* Declares a group's index with this value and the variables in it; gives the index's name. */
str contraction_decode(struct con_writer *w, enum con_axis axis, str value, struct buf *out);
/* What declares and defines load_<n>, and keep_<n> where registers are between. */
bool contraction_loader(struct con_writer *w, size_t operand, struct buf *out);
/* Results of the accumulators `acc[f]`: the folds' values, and the maps after them. */
bool contraction_epilogue(struct con_writer *w, const str *acc, struct buf *out);
bool contraction_kernels(struct con_writer *w);
/* Functions for the sheet, the one that makes the product, and the struct of tiles it is given. */
bool contraction_functions(struct con_writer *w);
const char *contraction_product(struct con_writer *w);
bool contraction_config(struct con_writer *w, str name);
/* A fold's sum: its name, and the declarations of all of them from shared memory. */
str contraction_sum(struct con_writer *w, size_t fold);
str contraction_sums(struct con_writer *w);
/* Sums of a part of k into the workspace, and the kernel that adds the parts. */
void contraction_parts(struct con_writer *w, str m, str n, struct buf *out);
bool contraction_finish(struct con_writer *w, str part, str count_plan);
/* The name of a part of a variable that is taken apart. */
str contraction_part(struct con_writer *w, const struct con_index *x);
/* Windows with gaps: k's variables from its index in the list (or in the copy, with all taps), what
 * limits the inner ones, the list, the elements of k for one tap, and where results exist. */
str contraction_decode_taps(struct con_writer *w, str value, struct buf *out);
str contraction_rest(struct con_writer *w);
str contraction_taps(struct con_writer *w);
str contraction_depth(struct con_writer *w);
str contraction_depth_plan(struct con_writer *w);
str contraction_inside(struct con_writer *w);
/* The sizes of the groups as the kernel of w->k knows them, those that it needs. */
void contraction_totals(struct con_writer *w, unsigned axes);
/* The kernel that makes an operand's copy, and its plan lines. */
bool contraction_pack(struct con_writer *w, size_t operand);
/* Which of the copies (or of a tensor's leading dimensions) this block's batch reads. */
str contraction_slab(struct con_writer *w, size_t operand);
/* Elements of a row of the copy, as the plan has it. */
str contraction_pitch(struct con_writer *w);
/* The variables of the batch that an operand knows. */
void contraction_batch(const struct contraction *c, const struct con_operand *o,
                       struct con_group *out);
/* `x && y`: an element of the operand is one that counts. */
void contraction_exists(struct con_writer *w, const struct con_operand *o, struct buf *out);
str contraction_value(struct con_writer *w, const struct con_operand *o, enum dtype to);
const char *contraction_zero(enum dtype t);
/* Whether an index of a padded operand can leave its dimension, by its form. */
bool contraction_can_leave(const struct contraction *c, const struct con_operand *o, size_t d);
/* `float *const to = …;`: the operand's tile in a stage. */
str contraction_tile(struct con_writer *w, size_t operand);
/* Operands of which every place is a part of the side plus a part of k. */
bool contraction_is_window(const struct contraction *c, const struct con_operand *o);
bool contraction_load_window(struct con_writer *w, size_t operand, struct buf *out);
str contraction_loader_name(struct con_writer *w, const char *what, size_t operand);
/* Declares the tensor map of an operand's tile: a parameter of the kernel. */
str contraction_map(struct con_writer *w, size_t operand);
/* Where rows come from: a pointer (its declaration: `base`, or empty) and the elements from one row
 * to the next. */
struct con_rows {
    str pointer, base, pitch;
};
/* A template among the functions, once in the file; `mark` is what it defines. */
bool contraction_once(struct con_writer *w, const char *name, const char *mark,
                      const struct slot *slots, size_t n);
const struct con_tile *contraction_side_tile(const struct con_writer *w, enum con_axis side);
size_t contraction_side_count(const struct con_writer *w, enum con_axis side);
/* Results of a thread, of FMAs: tm x tn. */
void contraction_simt_threads(const struct con_config *g, int *tm, int *tn);

/* The same in CuTe (cute_contraction.c). */
bool contraction_cute_functions(struct con_writer *w);
bool contraction_cute_config(struct con_writer *w, str name);
bool contraction_cute_rows(struct con_writer *w, size_t operand, const struct con_rows *r,
                           struct buf *out);
/* Whether the copy engine can read the operand as it lies. */
bool contraction_is_direct(const struct contraction *c, const struct con_operand *o);

#endif
