/* Sums of products as matrix products: the model that claims and kernels share, and the pieces that
 * a kernel is put together from.
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
 * it gates. The maps that read folds at their own index are the epilogue.
 *
 * A kernel (assets/expert/contraction/kernel.cu) has four pieces, each a file of this folder: of
 * the pieces of a kind that fit, the one with the least rank is taken.
 *
 * - schedule_*.c: which tile of the results a block has, and what of k.
 *
 * - source_*.c: how an operand's tile comes to shared memory, for each operand.
 *
 * - math_*.c: the main loop, that is which instructions multiply tiles, in which format.
 *
 * - sink_*.c: what becomes of the sums.
 *
 * docs/EXPERT.md says how to add one. */
#ifndef AGENT_EXPERT_CONTRACTION_H
#define AGENT_EXPERT_CONTRACTION_H

#include "agent/expert/sheet/sheet.h"

#define CON_FOLDS      4
#define CON_OPERANDS   (2 * CON_FOLDS)
#define CON_CONDITIONS 8
#define CON_NAMES      32

/* ---- the model ---- */

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
    enum con_axis side;                            /* CON_M or CON_N */
    const struct expr *conditions[CON_CONDITIONS]; /* zero unless all of these hold */
    size_t nconditions;
    bool dense;
    struct expr *side_stride, *k_stride; /* dense: in elements */
    bool k_contiguous, side_contiguous;  /* that stride is 1 */
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
    bool summed; /* struct step */
    struct con_group group[CON_AXES];
    struct con_operand operands[CON_OPERANDS];
    size_t noperands;
    struct con_fold folds[CON_FOLDS];
    size_t nfolds;
    /* The range of a single k, where it depends on m or n: NULL: 0, all. */
    const struct expr *k_lo, *k_hi;
    /* A strided window: so many outer variables of k say whether a term counts, by the conditions
     * `tap_conditions`; results exist where `inside` holds. 0: none. */
    size_t taps, ntap_conditions, ninside;
    const struct expr *tap_conditions[CON_CONDITIONS], *inside[CON_CONDITIONS];
};

/* Whether the statement is a fold this family writes. Nothing is written to `out` but from arena
 * `a`; out->nfolds is 1 then. */
bool con_match(const struct inst *in, const struct statement *s, struct arena *a,
               struct contraction *out);
/* Adds a fold over the same groups. */
bool con_add(struct contraction *c, const struct statement *s);
/* All folds of a step. */
bool con_match_all(const struct inst *in, struct arena *a, struct contraction *out);
/* Takes variables of strided windows apart. Before con_lay_out. */
void con_split_strided(struct contraction *c);
/* Which operands are dense, and how they lie in memory; what of the sides is batch for that. After
 * all folds. */
void con_lay_out(struct contraction *c);

int64_t con_value(const struct inst *in, const struct expr *e); /* of the instance; 0: none */
/* Product of the extents of a group's variables from `from` up to `to`. */
struct expr *con_extents(const struct contraction *c, const struct con_group *g, size_t from,
                         size_t to);
void con_total(const struct contraction *c, struct con_group *g);
uint32_t con_vars(const struct con_group *g, size_t from); /* bits */
/* Elements from one place of dimension d of the operand's tensor to the next. */
struct expr *con_stride(const struct contraction *c, const struct con_operand *o, int d);
/* The variables of the batch that an operand knows. */
void con_batch(const struct contraction *c, const struct con_operand *o, struct con_group *out);
/* In memory: a let without a type is f32. */
enum dtype con_type(const struct contraction *c, const struct con_operand *o);
/* An operand runs along k in memory, or along its side. */
bool con_along_k(const struct contraction *c, const struct con_operand *o);
/* Whether the copy engine can read the operand as it lies: in rows along k, or along its side. */
bool con_is_direct(const struct contraction *c, const struct con_operand *o);
bool con_is_direct_across(const struct contraction *c, const struct con_operand *o);
/* Every place of the operand is a part of the side plus a part of k. */
bool con_is_window(const struct contraction *c, const struct con_operand *o);
/* Whether an index of a padded operand can leave its dimension, by its form. */
bool con_can_leave(const struct contraction *c, const struct con_operand *o, size_t d);

/* ---- the configuration ---- */

/* What is multiplied. */
enum con_format { CON_FP32, CON_TF32, CON_TF32X3, CON_BF16X6, CON_F16X3, CON_F16, CON_BF16 };
struct con_format_info {
    const char *note, *how; /* for the head of the file and the kernel's comment */
    const char *loop;       /* main loops of the format: gemm_<loop> */
    const char *type;       /* of the instruction's operands */
    enum dtype tile;        /* of an element in shared memory */
    int parts, products;    /* numbers an element is split into, products of two elements */
    const char *cute_operand, *cute_atom; /* mma.sync */
    int k;                                /* of an instruction of mma.sync */
};
extern const struct con_format_info con_formats[];

struct con_config;
struct con_writer;
struct con_tile { /* an operand's tile in shared memory */
    const struct con_source *source;
    bool k_contiguous; /* rows along k; otherwise rows are k, along its side */
    bool packed;       /* from a copy in rows along k that an earlier kernel makes */
    int rows, row;     /* rows of `row` elements */
    int pitch;         /* elements from row to row */
    size_t bytes, at;  /* its size, and where it lies in a stage */
};

/* The pieces. Those of a kind are asked in the order of their ranks, no two of which are the same,
 * whether they fit; `fits` may be NULL: always. `write` puts what is theirs into the slots of
 * kernel.cu, and their functions into the file. */
struct con_source {
    int rank;
    bool one_by_one; /* a thread for each element of the side */
    bool awkward;    /* a copy of the operand in rows is better, where it is small */
    bool (*fits)(const struct con_config *g, size_t operand);
    /* Slots loader (declarations in the kernel), load and keep (what the main loop calls). */
    bool (*write)(struct con_writer *w, size_t operand, struct slots *row);
};
struct con_math {
    int rank;
    bool boxes; /* tiles are boxes of the copy engine: rows of 128 bytes along k */
    bool (*fits)(const struct con_config *g);
    /* Threads and warps for the tile; a tile that it cannot do becomes the next one that it can. */
    void (*shape)(struct con_config *g, int warps);
    /* The layout of a tile of this length on its side; k_contiguous is set. */
    void (*lay_out)(const struct con_config *g, int side, struct con_tile *t);
    /* Slots main_loop (a function template over the struct of tiles), load_parameters, shifts and
     * keeps of the kernel; math, a_at and b_at of the struct (tiles.cu). */
    bool (*write)(struct con_writer *w, struct slots *kernel, struct slots *tiles);
};
struct con_sink {
    int rank;
    bool (*fits)(const struct con_config *g);
    void (*prepare)(struct con_writer *w); /* plan lines before all others; NULL: none */
    /* Bytes of shared memory that it needs where the ring of tiles was. */
    size_t (*shared)(const struct con_config *g);
    /* Slots sink (the object that the main loop gives its sums) and results (what is done with them
     * afterwards). */
    bool (*write)(struct con_writer *w, struct slots *kernel);
    bool (*finish)(struct con_writer *w); /* further kernels; NULL: none */
};
struct con_schedule {
    int rank;
    bool (*fits)(const struct con_config *g);
    /* Slots schedule (declares first_m, first_n, k_begin, k_end and the batch's variables) and
     * schedule_end; gives the grid for the plan. */
    str (*write)(struct con_writer *w, struct slots *kernel);
};
/* All of them, each list up to a NULL. math_simt.c has con_math_simt, and so on: the lists are made
 * from the names of the files (pieces.c.in) when Meson configures. */
extern const struct con_source *const con_sources[];
extern const struct con_math *const con_maths[];
extern const struct con_sink *const con_sinks[];
extern const struct con_schedule *const con_schedules[];
/* No two pieces of a kind have the same rank. */
bool con_check_ranks(struct err *err);

struct con_config {
    const struct sheet *sh;
    const struct contraction *c;
    enum con_format format;
    int tensor_path; /* 0: multiply-adds, 1: mma.sync, 2: wgmma */
    int tile_m, tile_n, tile_k, warps_m, warps_n, stages, split, raster;
    int threads;    /* that multiply */
    int producers;  /* threads besides them that only load */
    int warpgroups; /* of wgmma that multiply */
    int chain;      /* of k, in one accumulator */
    int promote;    /* tiles of k after which accumulators are added to fp32 registers; 0: never */
    int blocks;     /* of an SM at once, for which registers are allotted */
    bool swizzle;
    bool pack;       /* operands that cannot be loaded by rows are copied first */
    bool cute;       /* layouts, TiledMMA and copies of CuTe */
    enum dtype type; /* of a stored element */
    int element;     /* its bytes */
    struct con_tile tile[CON_OPERANDS];
    size_t shared, alignment; /* bytes: of shared memory, and where tiles begin in it */
    const struct con_math *math;
    const struct con_sink *sink;
    const struct con_schedule *schedule;
};
/* Decisions, clamped to what the shape and an SM allow. */
void con_configure(const struct sheet *sh, const struct contraction *c, struct con_config *out);
/* What the operands are multiplied in, by their types and the accuracy class. */
enum con_format con_choose_format(const struct sheet *sh, const struct contraction *c);
/* Padded or swizzled rows. */
void con_lay_rows(const struct con_config *g, int side, struct con_tile *t);
bool con_facts(const struct briefing *b, const struct step *st, struct step_facts *out);
/* How many operands a side has, and the tile of the first: all are alike. */
size_t con_side(const struct contraction *c, enum con_axis side);
const struct con_tile *con_side_tile(const struct con_config *g, enum con_axis side);

/* ---- text ---- */

struct con_writer {
    struct sheet *sh;
    const struct step *step;
    struct contraction *c;
    struct con_config g;
    struct scope k;
    const char *index;                           /* type of places: "int", "long long" */
    str total[CON_AXES];                         /* batches, M, N and K in the kernel */
    bool listed;                                 /* k runs through a list of taps */
    bool skips;                                  /* terms that count for nothing are not visited */
    str packed[CON_OPERANDS];                    /* plan name of the copy; empty: none */
    str shift[CON_OPERANDS], wide[CON_OPERANDS]; /* of what parts.c makes beside it */
    str params, args;                            /* what the kernel takes before its scope's */
    str part;               /* plan name of the sums of parts of k; empty: none */
    bool decoded[CON_AXES]; /* the side's variables are declared, for who loads one by one */
    struct {
        str base, name;
    } names[CON_NAMES]; /* of con_name */
    size_t nnames;
};
bool con_kernels(struct con_writer *w);

/* Begins a kernel: its scope, and the sizes of the groups it needs (bits of con_axis). */
bool con_begin(struct con_writer *w, str name, unsigned axes);
/* A local name of the kernel, the same one whenever it is asked for. */
str con_name(struct con_writer *w, str base);
/* Lines that declare a group's index with this value and the variables in it; `flat`: the index. */
str con_decode(struct con_writer *w, enum con_axis axis, str value, str *flat);
/* The name of a part of a variable that is taken apart. */
str con_part(struct con_writer *w, const struct con_index *x);
/* Variables of the other side have no text where this operand is loaded. */
void con_forget(struct con_writer *w, size_t operand);
/* `side < M && k < k_end && …`: an element of the operand is there, and counts. */
str con_exists(struct con_writer *w, const struct con_operand *o, str side, str k, str end);
/* The element at the operand's place, in this type. */
str con_element(struct con_writer *w, const struct con_operand *o, enum dtype to);
const char *con_zero(enum dtype t);
/* Elements before what the side and k run through: the batch's part of the place. */
str con_batch_offset(struct con_writer *w, const struct con_operand *o);
/* Strided windows: lines that declare k's variables from its index in the list (or in the copy,
 * with all taps), elements of k for one tap (in the kernel, or of all taps in the plan), the slots
 * of the list, and where results exist (empty: everywhere). */
str con_decode_taps(struct con_writer *w, str value, str *flat);
str con_rest(struct con_writer *w); /* k is one of the tap's own */
str con_depth(struct con_writer *w);
str con_depth_plan(struct con_writer *w);
void con_list_taps(struct con_writer *w, struct slots *to);
str con_inside(struct con_writer *w);
/* Lines that declare variables [from, to) of a group whose flat index is given. */
str con_decode_run(struct con_writer *w, const struct con_group *g, size_t from, size_t to,
                   const char *type, str flat);
/* Lines that finish the elements of all statements of the step: the folds' own text around `sum`
 * (or sum0, sum1, … where there are several folds: con_fold_number), then the maps after them. */
str con_epilogue(struct con_writer *w);
str con_fold_number(struct con_writer *w, size_t fold);
/* Sums that go through shared memory: what they need of it, and the slots of a sink for them. */
size_t con_staged_bytes(const struct con_config *g);
bool con_write_staged(struct con_writer *w, struct slots *kernel);
/* The kernel that makes an operand's copy, and its plan lines. */
bool con_pack(struct con_writer *w, size_t operand);
/* Elements of a row of the copy, as the plan has it. */
str con_pitch(struct con_writer *w);
/* Whether the operand's copy, made by the kernel that was begun, depends on parameters of the task
 * alone, and its memory is shared with nothing: then it need not be made again. */
bool con_is_once(const struct con_writer *w);
/* Whether threads that copy the operand should be neighbours along k, and the slots decode_batch,
 * decode, exists and value of its element at `row` of the side and `col` of k. */
bool con_copies_along_k(const struct con_operand *o);
void con_put_copied(struct con_writer *w, const struct con_operand *o, enum dtype kept, str row,
                    str col, str depth, struct slots *s);
/* A writer for a kernel that copies this operand: its batch alone counts. */
struct con_writer *con_copier(struct con_writer *w, size_t operand);
/* All operands in parts, for products in three f16 ones: kernels and plan lines. */
bool con_pack_parts(struct con_writer *w);
/* Why class fp32 is not multiplied as three f16 products; NULL: it is, where that was chosen. */
const char *con_refuse_parts(const struct con_config *g);
/* The number of the operand among those of its side. */
size_t con_number(const struct contraction *c, size_t operand);
/* Which of the copies (or of a tensor's leading dimensions) this block's batch reads; empty: the
 * only one. */
str con_slab(struct con_writer *w, size_t operand);
/* Slots that templates have in common: tile_m, threads, index, total_m, cute …; for an operand's
 * loader also tensor, name, tile_at, first (the side's first index) …. */
struct slots con_slots(struct con_writer *w);
struct slots con_loader(struct con_writer *w, size_t operand);
/* Slots for threads that take one element each in every turn, neighbours along k or the side. */
void con_put_turns(struct con_writer *w, size_t operand, bool k_fast, struct slots *s);
/* The loader load_<name> from its template; slots pointer, and offset if its batch has one. */
void con_put_loader(struct con_writer *w, const char *template, struct slots *s, struct slots *row);
/* Copies of 16 or 4 bytes by cp.async: gemm_copy16, gemm_copy4. */
bool con_copy(struct con_writer *w, int bytes);
/* Rounding to TF32: gemm_tf32. */
bool con_rounding(struct con_writer *w);
/* A main loop over a ring of tiles that cp.async fills (loop.cu): its template, with slots of its
 * own and name, type, rounds, splits; the slots of the kernel and of the struct of tiles. */
bool con_ring(struct con_writer *w, const char *template, struct slots *loop, struct slots *kernel,
              struct slots *tiles);
/* The functions around wgmma, and the instruction for tile_n columns of this type; its name is the
 * slot `wgmma`. */
bool con_put_wgmma(struct con_writer *w, const char *type, struct slots *loop);
/* Threads of warp groups, and the layout of a tile in the format's parts. */
void con_shape_groups(struct con_config *g, int warps);
void con_lay_boxes(const struct con_config *g, int side, struct con_tile *t);
/* Threads for fp32 multiply-adds, each with tm x tn results; warps side by side for mma.sync. */
void con_shape_threads(struct con_config *g, int warps);
void con_thread_tile(const struct con_config *g, int *tm, int *tn);
void con_shape_warps(struct con_config *g, int warps);

#endif
