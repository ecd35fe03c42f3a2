/* Private to the sim room: turning PTX instructions into steps. Every operand is checked here for
 * kind and width; what runs later trusts it. */
#ifndef SIM_DECODE_H
#define SIM_DECODE_H

#include "sim/program.h"

#define DECODE_MAX_CALLS 16u

struct op_slot { /* of the hash table of lane_ops */
    const struct lane_op *op;
};

/* A function while it is inlined. Registers and variables are the function's, not the call's: there
 * is no recursion, so its calls never overlap. */
struct frame {
    const struct ptx_entry *f;
    uint32_t *reg_at;       /* place of each register; 0: not used yet */
    size_t *var_at;         /* place of each variable; SIZE_MAX: not placed yet */
    const size_t *param_at; /* of a .func: local memory of the caller's variables */
    const size_t *ret_at;
    bool active;
};

struct decoder {
    const struct ptx_module *m;
    struct arena *arena;
    struct err *err;
    struct sim_program *prog;
    struct frame *frames; /* one for each entry of the module */
    struct frame *frame;
    unsigned depth;
    struct instr *code;
    size_t ncode, code_cap;
    struct constant *constants;
    size_t nconstants, constants_cap;
    struct special_use *specials;
    size_t nspecials, specials_cap;
    struct param_use *params;
    size_t nparams, params_cap;
    struct place *places; /* all that were given out, in order */
    size_t nplaces, places_cap;
    size_t *module_at; /* place of each module variable; SIZE_MAX: not placed yet */
    struct op_slot *ops;
    const struct ptx_instr *in; /* being decoded */
    uint32_t temp[2];           /* places for steps between; 0: not made yet */
    bool first_step;            /* the next step is the one that counts */
};

struct symbol {
    enum ptx_space space;
    uint64_t at; /* in its window */
    size_t size;
    bool dynamic; /* add the size of static shared memory */
};

bool decode_refuse(struct decoder *d, const char *why);
bool decode_alu(struct decoder *d);
bool decode_mov(struct decoder *d);
bool decode_cvt(struct decoder *d);
bool decode_access(struct decoder *d, bool store);
bool decode_cvta(struct decoder *d);
bool decode_isspacep(struct decoder *d);
bool decode_sync(struct decoder *d, bool *known); /* barriers, shuffles, votes */
bool decode_atomic(struct decoder *d, bool result);
bool decode_tensor(struct decoder *d, bool *known); /* mma, wmma, wgmma, matrices */
bool decode_async(struct decoder *d, bool *known);  /* copies that end later, mbarriers */
bool decode_clock(struct decoder *d, bool *known);  /* mov of a register that counts */

/* Registers of an instruction that has many, gathered before its step is made. */
#define DECODE_MAX_LIST 160u
struct operand_list {
    uint32_t reg[DECODE_MAX_LIST];
    uint16_t n;
};
bool list_source(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                 char shape, uint8_t *index);
/* {a, b, …} or a alone: `n` of them. */
bool list_sources(struct decoder *d, struct operand_list *l, const struct ptx_operand *op, size_t n,
                  char shape);
bool list_registers(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                    size_t n, char shape);
bool list_where(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                enum ptx_space space, struct where *out);
void list_attach(struct decoder *d, struct instr *i, const struct operand_list *reads,
                 const struct operand_list *writes);

/* Building blocks. */
const struct lane_op *decode_find(const struct decoder *d, const char *name);
/* The variable or parameter that the operand names. */
bool decode_symbol(struct decoder *d, const struct ptx_operand *op, struct symbol *out);
uint32_t decode_temp(struct decoder *d, int i);
uint32_t decode_constant(struct decoder *d, uint64_t bits, uint8_t bytes, bool after_static);
uint32_t decode_place(struct decoder *d, uint8_t bytes);
/* A constant of 8 bytes: the address of a window, or with sign -1 what takes it away. */
uint32_t decode_window(struct decoder *d, uint64_t base, int8_t sign);
enum ptx_type decode_reg_type(const struct decoder *d, uint32_t reg);
uint8_t decode_reg_bytes(enum ptx_type t); /* 2, 4 or 8; 0: predicates and wider ones */
bool decode_register(struct decoder *d, const struct ptx_operand *op, char shape, uint32_t *at);
bool decode_source(struct decoder *d, const struct ptx_operand *op, char shape, uint32_t *at);
struct instr *decode_step(struct decoder *d, uint8_t kind, uint8_t class);
bool decode_lanes(struct decoder *d, const char *name, uint32_t to, uint32_t a, uint32_t b);
bool decode_mod(const struct decoder *d, const char *mod);
bool decode_space(str mod, enum ptx_space *out);
bool decode_ordering(str mod, struct access *a); /* false: not a word about order or caches */
/* The base's place; a symbol's address is a constant, and says which space it is in. */
bool decode_base(struct decoder *d, const struct ptx_operand *op, struct access *a, uint32_t *at);
bool decode_wide(struct decoder *d, const struct ptx_operand *op, uint32_t at[2]);
bool decode_shape_ok(const struct decoder *d, const struct ptx_operand *op, char shape);

#endif
