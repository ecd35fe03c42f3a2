/* Any bytes: the parser says what is wrong with them or gives a module whose indices are in range.
 * Seeds: the fixtures in tests/sim/ptx. */
#include "ptx/ptx.h"

static size_t count_of(const struct ptx_module *m, const struct ptx_entry *e, enum ptx_symbol s) {
    switch (s) {
    case PTX_SYM_LABEL:
        return e->nlabels;
    case PTX_SYM_VAR:
        return e->nvars;
    case PTX_SYM_PARAM:
        return e->nparams;
    case PTX_SYM_RET:
        return e->nrets;
    case PTX_SYM_MODULE_VAR:
        return m->nvars;
    case PTX_SYM_FUNCTION:
        return m->nfunctions;
    default:
        return SIZE_MAX;
    }
}

static void check_operand(const struct ptx_module *m, const struct ptx_entry *e,
                          const struct ptx_operand *op) {
    bool named = op->kind == PTX_OP_SYMBOL;
    BUG_IF(op->kind == PTX_OP_REG && op->reg >= e->nregs);
    BUG_IF(op->symbol == PTX_SYM_REG || (named && op->symbol == PTX_SYM_NONE));
    BUG_IF(op->index >= count_of(m, e, op->symbol));
    for (size_t i = 0; i < op->nelem; i++)
        check_operand(m, e, &op->elem[i]);
}

static void check_entry(const struct ptx_module *m, const struct ptx_entry *e) {
    for (size_t k = 0; k < e->nlabels; k++)
        BUG_IF(e->labels[k].target > e->ninstrs);
    for (size_t k = 0; k < e->ninstrs; k++)
        for (size_t o = 0; o < e->instrs[k].nops; o++)
            check_operand(m, e, &e->instrs[k].ops[o]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n > 256u << 10)
        return 0;
    struct arena *a = arena_new((size_t)1 << 30);
    struct ptx_module *m;
    struct err err;
    if (ptx_parse((str){(const char *)data, n}, a, &m, &err)) {
        for (size_t i = 0; i < m->nfunctions; i++)
            BUG_IF(m->functions[i].entry >= (int32_t)m->nentries);
        for (size_t i = 0; i < m->nentries; i++)
            check_entry(m, &m->entries[i]);
    }
    arena_free(a);
    return 0;
}
