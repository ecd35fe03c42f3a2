/* Private to the sim room: a decoded program.
 *
 * A warp's register file is one block of memory; operands are byte offsets into it. Constants and
 * special registers have places there too, so that every operation takes its operands alike.
 * Functions are inlined, each at its call: code is one array, with a rank for each instruction that
 * says which lanes of a warp run first. */
#ifndef SIM_PROGRAM_H
#define SIM_PROGRAM_H

#include "sim/lanes.h"
#include "sim/sim.h"
#include "sim/tile.h"
#include "sim/tile_tma.h"

#define SIM_MAX_CODE           (1u << 22)
#define SIM_MAX_SHARED         (227u << 10)
#define SIM_MAX_PARAMS         32764u
#define SIM_MAX_LOCAL          (512u << 10)
#define SIM_MAX_IMAGE          (64u << 20)
#define SIM_MAX_VECTOR         8u
#define SIM_MAX_REGISTER_BYTES (64u << 20)

/* Generic addresses of the windows, from where the machine has them (memory.c). */
#define WINDOW_BYTES  (UINT64_C(1) << 32)
#define WINDOW_SHARED UINT64_C(0)
#define WINDOW_LOCAL  WINDOW_BYTES
#define WINDOW_CONST  (2 * WINDOW_BYTES)
#define WINDOW_PARAM  (3 * WINDOW_BYTES)
#define WINDOWS_BYTES (4 * WINDOW_BYTES)
#define MODULE_START  (UINT64_C(0x7ee0) << 32) /* the module's .global variables, up to … */
#define MODULE_END    (MODULE_START + WINDOW_BYTES)

enum op_kind {
    KIND_LANES,
    KIND_CARRY, /* KIND_LANES with e written too */
    KIND_ROUND, /* KIND_LANES in another rounding mode */
    KIND_LOAD,
    KIND_STORE,
    KIND_BRANCH,
    KIND_BRANCH_TABLE,
    KIND_EXIT,
    KIND_TRAP,
    KIND_BARRIER,
    KIND_WARP_SYNC,
    KIND_CLUSTER_BARRIER,
    KIND_SHUFFLE,
    KIND_VOTE,
    KIND_REDUX,
    KIND_MATCH,
    KIND_ELECT,
    KIND_ACTIVE,
    KIND_ATOMIC,
    KIND_CLOCK,
    KIND_MAPA,  /* mapa, getctarank */
    KIND_PAUSE, /* nanosleep */
    KIND_FENCE,
    KIND_MATRIX,   /* ldmatrix, stmatrix, movmatrix */
    KIND_MMA,      /* mma, wmma.mma */
    KIND_FRAGMENT, /* wmma.load, wmma.store */
    KIND_WGMMA,
    KIND_WGMMA_COMMIT,
    KIND_WGMMA_WAIT,
    KIND_MBARRIER,
    KIND_COPY,        /* cp.async */
    KIND_COPY_COMMIT, /* and of bulk copies */
    KIND_COPY_WAIT,
    KIND_COPY_ARRIVE, /* cp.async.mbarrier.arrive */
    KIND_BULK,        /* cp.async.bulk, cp.reduce.async.bulk, st.async, red.async */
    KIND_MAP_REPLACE, /* tensormap.replace */
    KIND_NOTHING,     /* prefetches, hints */
    KIND_WGMMA_FENCE,
    KIND_REGISTERS, /* setmaxnreg, to `target` */
};

enum shuffle_mode { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BFLY, SHUFFLE_IDX };
enum vote_mode { VOTE_ALL, VOTE_ANY, VOTE_UNI, VOTE_BALLOT };
enum redux_mode {
    REDUX_ADD,
    REDUX_MIN_S,
    REDUX_MAX_S,
    REDUX_MIN_U,
    REDUX_MAX_U,
    REDUX_AND,
    REDUX_OR,
    REDUX_XOR
};
enum barrier_mode { BARRIER_SYNC, BARRIER_POPC, BARRIER_AND, BARRIER_OR, BARRIER_ARRIVE };
enum trap_mode { TRAP_PLAIN, TRAP_ASSERT };
enum match_mode { MATCH_ANY, MATCH_ALL };
enum cluster_mode { CLUSTER_ARRIVE, CLUSTER_WAIT };
enum mapa_mode { MAPA_MAP, MAPA_RANK };
enum clock_mode { CLOCK_CYCLES, CLOCK_HIGH, CLOCK_NANOSECONDS, CLOCK_NANOSECONDS_HIGH };
enum fence_mode { FENCE_CTA, FENCE_CLUSTER, FENCE_GPU, FENCE_PROXY };
enum atomic_mode {
    ATOMIC_ADD,
    ATOMIC_MIN,
    ATOMIC_MAX,
    ATOMIC_AND,
    ATOMIC_OR,
    ATOMIC_XOR,
    ATOMIC_EXCH,
    ATOMIC_CAS,
    ATOMIC_INC,
    ATOMIC_DEC,
};

struct access {
    enum ptx_space space;
    uint8_t width;     /* of an element */
    uint8_t count;     /* elements */
    uint8_t bytes;     /* a lane */
    uint8_t reg_bytes; /* of the registers: 2, 4 or 8 */
    bool sign;         /* extend */
    bool base_wide;    /* the base is a 64-bit register; otherwise 32 bits */
    bool strong;       /* volatile, relaxed, acquire, release, or an atomic */
    bool acquire, release;
    bool unordered;     /* volatile: seen by others, which orders no lanes */
    bool guess;         /* a plain load of what a compare-and-swap will look at again */
    bool narrow;        /* .cta: for threads of the block alone */
    bool fixed_content; /* .nc: nothing writes there while the kernel runs */
    bool polled;        /* a load that kernels wait with for others' stores */
    int64_t offset;
    uint32_t reg[SIM_MAX_VECTOR];
    /* Of atomics: */
    enum ptx_type type;
    uint32_t from[SIM_MAX_VECTOR]; /* b */
    uint32_t other[2];             /* c, of cas */
    bool result;                   /* reg is written */
};

/* Operands by their place in an instruction's list of reads or writes, so that registers have one
 * list that names them. */
struct where {    /* an address */
    uint8_t base; /* of reads */
    bool wide;
    enum ptx_space space;
    int64_t offset;
};

enum matrix_mode { MATRIX_LOAD, MATRIX_STORE, MATRIX_MOVE };
enum mbarrier_mode {
    MBARRIER_INIT,
    MBARRIER_INVALIDATE,
    MBARRIER_ARRIVE,
    MBARRIER_DROP,
    MBARRIER_EXPECT_TX,
    MBARRIER_ARRIVE_EXPECT_TX,
    MBARRIER_DROP_EXPECT_TX,
    MBARRIER_COMPLETE_TX,
    MBARRIER_TEST,
    MBARRIER_TRY,
    MBARRIER_PENDING,
};
enum bulk_mode {
    BULK_LOAD,  /* global to shared */
    BULK_STORE, /* shared to global */
    BULK_SHARE, /* shared to another block's shared */
    BULK_WRITE, /* st.async, red.async: registers to another block's shared */
};

/* What the suffixes and operands of the larger instructions said. */
struct tile_op {
    union {
        struct tile_mma mma;
        struct tile_wgmma wgmma;
        struct tile_matrix matrix;
        struct tile_fragment fragment;
    };
    struct where at;
    bool store;      /* of a fragment */
    bool has_stride; /* reads[1] */
};

struct async_op {
    struct where to, from, bar;
    uint8_t size, source_size;      /* of reads; source_size 0: as size */
    uint8_t multicast;              /* of reads; 0: none */
    uint8_t coordinate, rank;       /* of reads, the first; rank 0: not a tensor */
    uint8_t value, nvalues, nbytes; /* BULK_WRITE: of reads; bytes of each; cp.async: bytes */
    bool grouped;                   /* completes a bulk group, not an mbarrier */
    bool reduces, ignorable;        /* ignorable: source_size is a predicate that means none */
    bool read_only, no_increase;    /* wait_group.read; arrive.noinc */
    bool parity, counted, result; /* mbarrier: waits by parity; a count is given; a token wanted */
    enum tile_reduce_op op;
    enum tile_map_type type;
    str field; /* tensormap.replace */
    uint32_t ord;
};

/* What a KIND_LANES instruction needs to run, and nothing more: a straight line of them is a walk
 * through these. */
struct lane_step {
    lane_fn *fn;
    uint32_t d, a, b, c, e;
    uint16_t straight; /* so many from here on, unguarded; 0: it is none */
    uint16_t quiet;    /* so many of them that use no registers of a wgmma */
    uint16_t plain;    /* so many of them that make no choice (coverage.c) */
};

/* What an instruction decides, as coverage sees it; several may be set. */
enum choice {
    CHOICE_GUARD = 1,   /* runs where its guard says so; of a branch: goes there */
    CHOICE_SELECT = 2,  /* takes one of two values, by the predicate c */
    CHOICE_COMPARE = 4, /* makes the predicate d */
    CHOICE_HEAD = 8,    /* a loop begins here */
    CHOICE_BACK = 16,   /* goes back to the head of a loop */
    CHOICE_TABLE = 32,  /* the target of a branch by a table */
    CHOICE_EQUAL = 64,  /* … by whether the integers a and b are equal, of 32 bits */
    CHOICE_WIDE = 128,  /* … of 64 */
    CHOICE_ORDER = 256, /* … by which of a and b is the larger: CHOICE_EQUAL or CHOICE_WIDE too */
};

struct instr {
    uint8_t kind, mode, class;
    bool pinned;     /* its registers are in use beyond it */
    bool watched;    /* it uses registers that a wgmma uses */
    uint16_t choice; /* of enum choice: what coverage records of it; 0: nothing */
    uint16_t loop;   /* CHOICE_HEAD, CHOICE_BACK: its number */
    uint32_t flops;
    uint8_t dst_bytes; /* a lane of d */
    uint8_t round;     /* index of rounding_modes[] */
    bool counted;      /* false: a further step of the PTX instruction before it */
    bool guard_negated;
    bool waits;  /* for global memory */
    bool negate; /* vote: the predicate is taken as its opposite; mapa: generic addresses; arriving
                    at a cluster's barrier: relaxed */
    bool wide;   /* match, mapa: a is 64 bits; barrier: the whole warp has to be there */
    int32_t guard;
    uint32_t d, a, b, c, e;
    uint32_t d2; /* shuffle's predicate; 0: none */
    uint32_t target;
    uint32_t rank;  /* of the lanes of a warp, those at the lowest run first (flow.c) */
    uint32_t late;  /* the rank of lanes that go back to a loop's head from here; 0: the head's */
    uint32_t join;  /* of a branch: where its lanes meet again; UINT32_MAX: nowhere */
    uint32_t reach; /* lanes at a lower rank than this may come here */
    uint32_t ntargets;
    const uint32_t *targets;
    lane_fn *fn;
    struct access *mem;
    const struct tile_op *tile;
    const struct async_op *async;
    uint32_t *reads, *writes; /* further registers */
    uint16_t nreads, nwrites;
    const struct ptx_instr *src;
};

enum special {
    SPECIAL_TID_X,
    SPECIAL_TID_Y,
    SPECIAL_TID_Z,
    SPECIAL_NTID_X,
    SPECIAL_NTID_Y,
    SPECIAL_NTID_Z,
    SPECIAL_CTAID_X,
    SPECIAL_CTAID_Y,
    SPECIAL_CTAID_Z,
    SPECIAL_NCTAID_X,
    SPECIAL_NCTAID_Y,
    SPECIAL_NCTAID_Z,
    SPECIAL_LANEID,
    SPECIAL_WARPID,
    SPECIAL_NWARPID,
    SPECIAL_LANEMASK_EQ,
    SPECIAL_LANEMASK_LT,
    SPECIAL_LANEMASK_LE,
    SPECIAL_LANEMASK_GT,
    SPECIAL_LANEMASK_GE,
    SPECIAL_DYNAMIC_SHARED,
    SPECIAL_TOTAL_SHARED,
    SPECIAL_AGGREGATE_SHARED,
    SPECIAL_SMID,
    SPECIAL_NSMID,
    SPECIAL_GRIDID,
    SPECIAL_CLUSTERID_X,
    SPECIAL_CLUSTERID_Y,
    SPECIAL_CLUSTERID_Z,
    SPECIAL_NCLUSTERID_X,
    SPECIAL_NCLUSTERID_Y,
    SPECIAL_NCLUSTERID_Z,
    SPECIAL_CLUSTER_CTAID_X,
    SPECIAL_CLUSTER_CTAID_Y,
    SPECIAL_CLUSTER_CTAID_Z,
    SPECIAL_CLUSTER_NCTAID_X,
    SPECIAL_CLUSTER_NCTAID_Y,
    SPECIAL_CLUSTER_NCTAID_Z,
    SPECIAL_CLUSTER_CTARANK,
    SPECIAL_CLUSTER_NCTARANK,
    SPECIAL_EXPLICIT_CLUSTER,
    SPECIAL_WORKSPACE_HIGH, /* where a cooperative grid counts who has arrived */
    SPECIAL_WORKSPACE_LOW,
    SPECIAL_ZERO,
    SPECIAL_COUNT,
};

struct constant {
    uint64_t bits;
    uint32_t at; /* in the register file */
    uint8_t bytes;
    bool after_static_shared; /* dynamic shared memory's address: known when decoding ends */
    int8_t window; /* 1: the windows' place is added when a launch begins, -1: taken away */
};

struct special_use {
    enum special what;
    uint32_t at;
    bool wide; /* 64 bits */
};

struct unset_use {
    uint32_t at;
    char shape; /* as a place's */
};

/* A parameter's place: launches fill it, so that loading a parameter is a move. */
struct param_use {
    uint32_t at;
    uint32_t offset;
    uint8_t width, reg_bytes;
    bool sign;
};

struct sim_program {
    const struct ptx_module *module;
    const struct ptx_entry *entry;
    struct instr *code;
    struct lane_step *steps; /* of the same index */
    size_t ncode;
    struct constant *constants;
    size_t nconstants;
    struct special_use *specials;
    size_t nspecials;
    struct param_use *params;
    size_t nparams;
    struct unset_use *unset; /* registers that may be read before they are written */
    size_t nunset;
    uint32_t register_bytes; /* of a warp's file; the first 256 stay zero */
    uint32_t carry;          /* the flag's place; 0: not used */
    size_t static_shared, dynamic_align, local_bytes, params_bytes;
    uint8_t *const_image, *module_image;
    size_t const_bytes, module_bytes;
    bool meets;   /* warps of a block meet: barriers, or memory that one waits for */
    bool ordered; /* blocks see each other's work while they run: one after the other, in turns */
    bool uses_cluster;
    bool uses_copies; /* cp.async */
    bool uses_async;  /* mbarriers and what completes on them */
    bool uses_wgmma;
    uint32_t nloops; /* that coverage tells apart */
    unsigned sm;     /* 90 for sm_90a */
};

/* Offsets in the register file below this belong to nobody: they read as zero. */
#define REGISTERS_START 256u

/* The .cu file an instruction came from, without its folders. */
str program_file(const struct ptx_module *m, const struct ptx_instr *in);
void flow_find_straight(struct sim_program *p, struct arena *a);
void flow_find_watched(struct sim_program *p);     /* before the straight lines */
void coverage_find_choices(struct sim_program *p); /* and this */
/* Sets `rank`, `late`, `join` and `reach`; before the straight lines. */
void reconverge_find(struct sim_program *p);
/* The registers an instruction writes and reads; at most FLOW_MAX_OPERANDS. */
#define FLOW_MAX_OPERANDS 512u
unsigned flow_writes(const struct instr *i, uint32_t *reg);
unsigned flow_reads(const struct instr *i, uint32_t *reg);
/* A register's, constant's or step's place in the file, as decoding gave it out. */
struct place {
    uint32_t at, bytes; /* of a lane: 4 or 8 */
    char shape;         /* p: a predicate, all ones or zeros; h: 16 bits, zero-extended */
};
/* Gives out the places anew, shared where lives do not overlap, and fills `unset`. */
void slots_assign(struct sim_program *p, struct arena *a, const struct place *places, size_t n);
/* Sets `waits`: the instructions that use a value loaded from global memory first. */
void flow_mark_waits(struct sim_program *p);
/* Sets `meets` and `ordered`, and forgets results of atomics that nothing reads. */
void flow_find_order(struct sim_program *p);

#endif
