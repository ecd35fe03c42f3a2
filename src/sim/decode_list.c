/* Lists of registers: what instructions with many operands read and write. */
#include "sim/decode.h"

#include <string.h>

static bool list_add(struct decoder *d, struct operand_list *l, uint32_t at) {
    if (l->n == DECODE_MAX_LIST)
        return decode_refuse(d, "it has too many registers");
    l->reg[l->n++] = at;
    return true;
}

bool list_source(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                 char shape, uint8_t *index) {
    uint32_t at;
    *index = (uint8_t)l->n;
    return decode_source(d, op, shape, &at) && list_add(d, l, at);
}

static const struct ptx_operand *elements(const struct ptx_operand *op, size_t *n) {
    *n = op->kind == PTX_OP_VECTOR ? op->nelem : 1;
    return op->kind == PTX_OP_VECTOR ? op->elem : op;
}

bool list_sources(struct decoder *d, struct operand_list *l, const struct ptx_operand *op, size_t n,
                  char shape) {
    size_t have;
    uint8_t index;
    const struct ptx_operand *e = elements(op, &have);
    if (have != n)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!list_source(d, l, &e[i], shape, &index))
            return false;
    return true;
}

bool list_registers(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                    size_t n, char shape) {
    size_t have;
    uint32_t at;
    const struct ptx_operand *e = elements(op, &have);
    if (have != n)
        return decode_refuse(d, "it names another number of registers");
    for (size_t i = 0; i < n; i++)
        if (!decode_register(d, &e[i], shape, &at) || !list_add(d, l, at))
            return false;
    return true;
}

bool list_where(struct decoder *d, struct operand_list *l, const struct ptx_operand *op,
                enum ptx_space space, struct where *out) {
    struct ptx_operand plain = *op;
    struct access a = {.space = space};
    uint32_t at;
    plain.nelem = 0; /* a tensor's coordinates are the caller's */
    if (!decode_base(d, &plain, &a, &at))
        return false;
    *out = (struct where){(uint8_t)l->n, a.base_wide, a.space, a.offset};
    return list_add(d, l, at);
}

static uint32_t *keep(struct decoder *d, const struct operand_list *l) {
    uint32_t *copy = arena_array(d->arena, uint32_t, l->n + 1u);
    memcpy(copy, l->reg, l->n * sizeof *copy);
    return copy;
}

void list_attach(struct decoder *d, struct instr *i, const struct operand_list *reads,
                 const struct operand_list *writes) {
    if (reads) {
        i->reads = keep(d, reads);
        i->nreads = reads->n;
    }
    if (writes) {
        i->writes = keep(d, writes);
        i->nwrites = writes->n;
    }
}
