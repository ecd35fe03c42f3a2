/* PTX as data: what NVRTC's text says, parsed into modules, entries and instructions.
 *
 * A module lives in the arena it was parsed into and borrows nothing from the text. The parser
 * knows syntax only; whether an instruction can be run is the simulator's question, whether it may
 * be run the kernel room's. Anything it cannot read is an error with line and text. */
#ifndef PTX_PTX_H
#define PTX_PTX_H

#include "base/arena.h"
#include "base/err.h"

#define PTX_MAX_BYTES (64u << 20)

enum ptx_type {
    PTX_PRED,
    PTX_B8,
    PTX_B16,
    PTX_B32,
    PTX_B64,
    PTX_B128,
    PTX_U8,
    PTX_U16,
    PTX_U32,
    PTX_U64,
    PTX_S8,
    PTX_S16,
    PTX_S32,
    PTX_S64,
    PTX_F16,
    PTX_F16X2,
    PTX_BF16,
    PTX_BF16X2,
    PTX_TF32,
    PTX_F32,
    PTX_F64,
    PTX_NO_TYPE,
};
size_t ptx_type_bytes(enum ptx_type t);

enum ptx_space {
    PTX_SPACE_NONE,
    PTX_REG,
    PTX_GENERIC,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_LOCAL,
    PTX_CONST,
    PTX_PARAM,
};

struct ptx_param {
    str name;
    enum ptx_type type; /* of an element; PTX_B8 for structs */
    size_t size, align;
    bool grid_constant_pointer; /* declared .ptr */
};

/* Module-scope or kernel-scope variable. */
struct ptx_var {
    str name;
    enum ptx_space space;
    size_t size, align;
    bool external;       /* .extern: dynamic shared memory */
    const uint8_t *init; /* size bytes, or NULL */
};

/* What a name stands for at the place where it is used: the innermost scope that is open there and
 * has declared it by then decides; labels are also found when they come later in their scope.
 * Users go by this and never look a name up again, because the same name may stand for something
 * else elsewhere. */
enum ptx_symbol {
    PTX_SYM_NONE,       /* the operand is not a name */
    PTX_SYM_WORD,       /* a word of the language: `_`, WARP_SZ */
    PTX_SYM_REG,        /* only while parsing: such operands are PTX_OP_REG */
    PTX_SYM_LABEL,      /* index into labels of the entry */
    PTX_SYM_VAR,        /* index into vars of the entry */
    PTX_SYM_PARAM,      /* index into params of the entry */
    PTX_SYM_RET,        /* index into rets of the entry */
    PTX_SYM_MODULE_VAR, /* index into vars of the module */
    PTX_SYM_FUNCTION,   /* index into functions of the module */
};

enum ptx_operand_kind {
    PTX_OP_REG,     /* index into regs */
    PTX_OP_IMM,     /* bits: integers sign-extended, floats as their bits in `fbits` type */
    PTX_OP_SYMBOL,  /* a name that `symbol` and `index` say the meaning of */
    PTX_OP_SPECIAL, /* %tid.x, %laneid, … by name */
    PTX_OP_ADDRESS, /* [base + offset]; base is a register or a symbol */
    PTX_OP_VECTOR,  /* {a, b, …} */
};
struct ptx_operand {
    enum ptx_operand_kind kind;
    uint32_t reg;
    bool negated; /* !%p */
    uint64_t imm;
    enum ptx_type imm_type; /* PTX_F32 for 0f…, PTX_F64 for 0d…, PTX_S64 for integers */
    str name;               /* as written, for messages */
    enum ptx_symbol symbol; /* SYMBOL, and ADDRESS whose base is one */
    uint32_t index;
    int64_t offset;
    bool base_is_reg;
    struct ptx_operand *elem; /* VECTOR */
    size_t nelem;
};
/* Also VECTORs: a pair of destinations `%r1|%p1`, and the lists `(…)` of a call. What follows the
 * base in `[base, {x, y}]` is the ADDRESS's elem. `.branchtargets` is an instruction of that name.
 */

struct ptx_instr {
    str op;    /* "ld" */
    str *mods; /* "global", "v4", "f32" … */
    size_t nmods;
    str text; /* "ld.global.v4.f32 {%f1, …}, [%rd3];" for messages */
    struct ptx_operand *ops;
    size_t nops;
    int32_t guard; /* register of @p, or -1 */
    bool guard_negated;
    uint32_t line;     /* of the PTX text */
    uint32_t src_line; /* of the .cu file by .loc; 0: unknown */
    uint32_t src_file; /* .file number */
};

struct ptx_label {
    str name;
    size_t target; /* instruction index; == ninstrs for the end */
};

struct ptx_entry {
    str name;
    bool is_kernel; /* .entry; .func otherwise */
    struct ptx_param *params;
    size_t nparams;
    enum ptx_type *regs; /* type of each register */
    size_t nregs;
    struct ptx_var *vars; /* .shared and .local of its own */
    size_t nvars;
    struct ptx_instr *instrs;
    size_t ninstrs;
    struct ptx_label *labels;
    size_t nlabels;
    uint32_t maxntid[3], reqntid[3], minnctapersm; /* 0: not given */
    uint32_t cluster[3];                           /* .reqnctapercluster; 0: not given */
    struct ptx_param *rets;                        /* of a .func */
    size_t nrets;
};

struct ptx_function {
    str name;
    int32_t entry; /* index into entries; -1: declared only */
};

struct ptx_module {
    str version, target; /* "9.0", "sm_90a" */
    struct ptx_entry *entries;
    size_t nentries;
    struct ptx_var *vars;
    size_t nvars;
    struct ptx_function *functions; /* all that are declared or defined, kernels too */
    size_t nfunctions;
    str *externs; /* functions declared but not defined: vprintf, malloc, … */
    size_t nexterns;
    str *files; /* by .file number; empty where unused */
    size_t nfiles;
};

bool ptx_parse(str text, struct arena *a, struct ptx_module **out, struct err *err);
const struct ptx_entry *ptx_find_entry(const struct ptx_module *m, str name);

#endif
