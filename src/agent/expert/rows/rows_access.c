/* Packs in registers: their types, and the text that moves them. */
#include "agent/expert/rows/rows.h"
#include "agent/expert/sheet/pieces.h"

const char *rows_element_type(const struct rows *r, size_t tensor) {
    return dtype_info(r->st->inst->task->tensors[tensor].dtype)->cuda;
}

/* A pack that a map fills, and its element v. */
str rows_result_pack(struct rows *r, const struct rows_read *q) {
    if (r->shape.cute)
        return rows_cute_pack(r, q);
    str type = rows_pack_type(r, q->e->ref);
    return sheet_printf(r->sh, "%.*s %.*s;", STR_ARG(type), STR_ARG(q->name));
}

str rows_result_element(struct rows *r, const struct rows_read *q) {
    return sheet_printf(r->sh, r->shape.cute ? "%.*s(%.*s)" : "%.*s.at[%.*s]", STR_ARG(q->name),
                        STR_ARG(r->n.v));
}

str rows_pack_type(struct rows *r, size_t tensor) {
    const char *type = rows_element_type(r, tensor);
    return r->shape.vec == 1 ? str_view(type) : sheet_printf(r->sh, "cp_pack<%s, kVec>", type);
}

/* Element v of pack k. */
static str element_text(struct rows *r, str name) {
    if (r->shape.cute)
        return sheet_printf(r->sh, "%.*s(%.*s, %.*s)", STR_ARG(name),
                            STR_ARG(r->shape.vec == 1 ? S("0") : r->n.v), STR_ARG(r->n.k));
    return r->shape.vec == 1 ? sheet_printf(r->sh, "%.*s[%.*s]", STR_ARG(name), STR_ARG(r->n.k))
                             : sheet_printf(r->sh, "%.*s[%.*s].at[%.*s]", STR_ARG(name),
                                            STR_ARG(r->n.k), STR_ARG(r->n.v));
}

static bool is_used(const struct rows_read *q, size_t pass) {
    return q->kind == READ_PACK && (q->passes >> pass & 1);
}

bool rows_is_first_use(const struct rows_read *q, size_t pass) {
    return !(q->passes & ((UINT32_C(1) << pass) - 1));
}

bool rows_is_loaded(const struct rows *r, const struct rows_read *q, size_t pass) {
    return is_used(q, pass) && !(q->cached && r->shape.cache == 1 && !rows_is_first_use(q, pass));
}

void rows_hold_reads(struct rows *r, size_t pass) {
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        if (is_used(q, pass))
            scope_hold(&r->k, q->e, scope_unpacked(&r->k, q->e->ref, element_text(r, q->name)));
        else if (q->kind == READ_ROW)
            scope_hold(&r->k, q->e, q->name);
    }
}

str rows_declarations(struct rows *r, size_t pass, bool kept) {
    str all = S("");
    for (size_t i = 0; i < r->nreads; i++) {
        const struct rows_read *q = &r->reads[i];
        bool lives = q->cached && r->shape.cache == 1;
        if (kept ? !lives : lives || !is_used(q, pass))
            continue;
        str type = rows_pack_type(r, q->e->ref);
        str line = r->shape.cute
                       ? rows_cute_packs(r, q)
                       : sheet_printf(r->sh, "%.*s %.*s[kItems];", STR_ARG(type), STR_ARG(q->name));
        all = rows_lines(r, all, line);
    }
    return all;
}

/* Truth values have no streaming access of their own. */
static bool is_streamed(const struct rows *r, size_t tensor) {
    return r->shape.hint && r->st->inst->task->tensors[tensor].dtype != DTYPE_BOOL;
}

static bool has_gather(const struct expr *e) {
    for (size_t i = 0; i < e->nargs; i++)
        if (expr_has(e->args[i], EXPR_READ))
            return true;
    return false;
}

/* Read by one row only, and by no later pass: the others stay in the caches. */
static bool is_read_once(const struct rows *r, const struct expr *e, uint32_t passes) {
    uint32_t kept = (UINT32_C(1) << r->g.nkept) - 1;
    bool again = r->shape.cache == 0 && (passes & (passes - 1));
    return (expr_uses(e) & kept) == kept && !has_gather(e) && !again;
}

static str rows_load_value(struct rows *r, const struct rows_read *q, str pointer, str offset) {
    bool stream = is_streamed(r, q->e->ref) && is_read_once(r, q->e, q->passes);
    bool kept = r->shape.hint && !stream;
    const char *form = r->shape.vec > 1
                           ? kept ? "cp_reload<kVec>(%.*s + %.*s)" : "cp_load<kVec>(%.*s + %.*s)"
                       : stream ? "__ldcs(%.*s + %.*s)"
                                : "%.*s[%.*s]";
    bool plain = r->shape.vec == 1 && !stream;
    if (!plain && str_find(offset, S(" ")) < offset.n)
        offset = sheet_printf(r->sh, "(%.*s)", STR_ARG(offset));
    return sheet_printf(r->sh, form, STR_ARG(pointer), STR_ARG(offset));
}

str rows_load_line(struct rows *r, const struct rows_read *q, str pointer, str offset) {
    if (r->shape.cute)
        return rows_cute_load(r, q, pointer, offset);
    str value = rows_load_value(r, q, pointer, offset);
    return sheet_printf(r->sh, "%.*s[%.*s] = %.*s;", STR_ARG(q->name), STR_ARG(r->n.k),
                        STR_ARG(value));
}

str rows_store_line(struct rows *r, size_t tensor, str pointer, str offset, str value, bool pack) {
    bool plain = !pack && !is_streamed(r, tensor);
    if (!plain && str_find(offset, S(" ")) < offset.n)
        offset = sheet_printf(r->sh, "(%.*s)", STR_ARG(offset));
    return sheet_printf(r->sh,
                        pack    ? r->shape.cute ? "cp_put(%.*s + %.*s, %.*s);"
                                                : "cp_store(%.*s + %.*s, %.*s);"
                        : plain ? "%.*s[%.*s] = %.*s;"
                                : "__stcs(%.*s + %.*s, %.*s);",
                        STR_ARG(pointer), STR_ARG(offset), STR_ARG(value));
}

str rows_offset(struct rows *r, const struct expr *e) {
    struct buf b;
    buf_init(&b, 64u << 10);
    scope_offset(&r->k, e, &b);
    str s = sheet_keep(r->sh, &b);
    buf_release(&b);
    return s;
}

str rows_pointer(struct rows *r, size_t tensor, bool write) {
    return scope_pointer(&r->k, tensor, write || (r->k.written >> tensor & 1));
}
