/* Any bytes: the parser says what is wrong with them or gives a module whose indices are in range.
 * Seeds: the fixtures in tests/sim/ptx. */
#include "ptx/ptx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n > 256u << 10)
        return 0;
    struct arena *a = arena_new((size_t)1 << 30);
    struct ptx_module *m;
    struct err err;
    if (ptx_parse((str){(const char *)data, n}, a, &m, &err))
        for (size_t i = 0; i < m->nentries; i++) {
            const struct ptx_entry *e = &m->entries[i];
            for (size_t k = 0; k < e->nlabels; k++)
                BUG_IF(e->labels[k].target > e->ninstrs);
            for (size_t k = 0; k < e->ninstrs; k++)
                for (size_t o = 0; o < e->instrs[k].nops; o++) {
                    const struct ptx_operand *op = &e->instrs[k].ops[o];
                    BUG_IF(op->kind == PTX_OP_REG && op->reg >= e->nregs);
                    BUG_IF(op->label >= (int32_t)e->nlabels);
                }
        }
    arena_free(a);
    return 0;
}
