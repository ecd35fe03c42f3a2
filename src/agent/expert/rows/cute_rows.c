/* Rows in CuTe: packs are fragments of (neighbour, pack), which copies of their layout move between
 * registers, global and shared memory; at the ends of a row they are predicated. Loops, parts and
 * the way they are merged are the same text as in CUDA. */
#include "agent/expert/rows/rows.h"

/* CuTe packs truth values to bits: they are moved as bytes. */
static const char *fragment_type(const struct rows *r, size_t tensor) {
    bool truth = r->st->inst->task->tensors[tensor].dtype == DTYPE_BOOL;
    return truth ? "unsigned char" : rows_element_type(r, tensor);
}

str rows_cute_packs(struct rows *r, const struct rows_read *q) {
    return sheet_printf(r->sh, "auto %.*s = cp_packs<%s, kVec, kItems>();", STR_ARG(q->name),
                        fragment_type(r, q->e->ref));
}

str rows_cute_pack(struct rows *r, const struct rows_read *q) {
    return sheet_printf(r->sh, "auto %.*s = cute::make_tensor<%s>(cute::Shape<cute::Int<kVec>>{});",
                        STR_ARG(q->name), fragment_type(r, q->e->ref));
}

static str pack_text(struct rows *r, const struct rows_read *q) {
    return sheet_printf(r->sh, "%.*s(cute::_, %.*s)", STR_ARG(q->name), STR_ARG(r->n.k));
}

str rows_cute_load(struct rows *r, const struct rows_read *q, str pointer, str offset) {
    if (str_find(offset, S(" ")) < offset.n)
        offset = sheet_printf(r->sh, "(%.*s)", STR_ARG(offset));
    return sheet_printf(r->sh, "cp_get(%.*s + %.*s, %.*s);", STR_ARG(pointer), STR_ARG(offset),
                        STR_ARG(pack_text(r, q)));
}

str rows_cute_edge(struct rows *r, const struct rows_read *q) {
    return sheet_printf(r->sh, "cp_get_edge(%.*s, %.*s, %.*s, %.*s);", STR_ARG(q->pointer),
                        STR_ARG(r->n.col), STR_ARG(r->n.cols), STR_ARG(pack_text(r, q)));
}

str rows_cute_kept(struct rows *r, const struct rows_read *q, str slot, bool load) {
    str pack = pack_text(r, q);
    str kept = sheet_printf(r->sh, "cp_kept(%.*s + %.*s, %.*s)", STR_ARG(q->cache), STR_ARG(slot),
                            STR_ARG(pack));
    return sheet_printf(r->sh, "cute::copy(cp_vectors(%.*s), %.*s, %.*s);", STR_ARG(pack),
                        STR_ARG(load ? kept : pack), STR_ARG(load ? pack : kept));
}

bool rows_cute_functions(struct rows *r) {
    struct sheet *sh = r->sh;
    const struct {
        bool wanted;
        const char *mark, *name;
    } all[] = {{true, "cp_packs()", "rows/cute_pack.cu"},
               {r->shape.shifted, "cp_get_edge(", "rows/cute_edge.cu"},
               {r->shape.cache == 2, "cp_kept(", "rows/cute_kept.cu"}};
    sheet_include(sh, "cute/tensor.hpp");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        str text = buf_str(&sh->functions);
        if (all[i].wanted && str_find(text, str_view(all[i].mark)) == text.n &&
            !sheet_template(sh, all[i].name, NULL, 0, &sh->functions))
            return false;
    }
    return true;
}
