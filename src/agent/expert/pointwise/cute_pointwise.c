/* The pointwise kernel's full tiles in CuTe: a thread-value layout says what of a tile a thread
 * has, and copies of as many bytes as a vector is aligned to move it between memory and fragments.
 * Everything else (coordinates, functions, the last tile) is the same text as in CUDA. */
#include "agent/expert/pointwise/pointwise.h"

#define ACCESS_BYTES 16

/* CuTe packs truth values to bits: they are moved as bytes. */
static const char *element_type(enum dtype t) {
    return t == DTYPE_BOOL ? "unsigned char" : dtype_info(t)->cuda;
}

static str pointer_text(struct pw *p, size_t tensor, bool write) {
    str name = scope_pointer(&p->k, tensor, write);
    if (sheet_dtype(p->sh, p->st, tensor) != DTYPE_BOOL)
        return name;
    return sheet_printf(p->sh, "reinterpret_cast<%sunsigned char *>(%.*s)", write ? "" : "const ",
                        STR_ARG(name));
}

static str copy_text(struct pw *p, enum dtype t) {
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    return sheet_printf(p->sh, "cute::AutoVectorizingCopyWithAssumedAlignment<%zu>{}",
                        8 * (bytes < ACCESS_BYTES ? bytes : ACCESS_BYTES));
}

/* The functions of tiles of this shape: "tile_part" and "tile_vectors". */
static void part_names(struct pw *p, str *part, str *vectors) {
    struct sheet *sh = p->sh;
    str shape = sheet_printf(sh, "of %lld %lld %lld", (long long)p->width, (long long)p->block,
                             (long long)p->items);
    str part_key = sheet_printf(sh, "tile_part %.*s", STR_ARG(shape));
    str vectors_key = sheet_printf(sh, "tile_vectors %.*s", STR_ARG(shape));
    bool first = sheet_once(sh, part_key, "tile_part", part);
    sheet_once(sh, vectors_key, "tile_vectors", vectors);
    struct slot slots[] = {{"part", *part},
                           {"vectors", *vectors},
                           {"width", p->width_name},
                           {"block", p->block_name},
                           {"items", p->items_name}};
    if (first)
        sheet_template(sh, "pointwise/cute_part.cu", slots, sizeof slots / sizeof *slots,
                       &sh->functions);
}

str pw_cute_row(struct pw *p, enum dtype t) {
    struct sheet *sh = p->sh;
    str name, base = sheet_printf(sh, "row_%s", dtype_info(t)->name);
    str key = sheet_printf(sh, "%.*s of %lld", STR_ARG(base), (long long)p->width);
    if (!sheet_once(sh, key, base.p, &name))
        return name;
    struct slot slots[] = {{"row", name}, {"width", p->width_name}, {"copy", copy_text(p, t)}};
    sheet_template(sh, "pointwise/cute_row.cu", slots, sizeof slots / sizeof *slots,
                   &sh->functions);
    return name;
}

str pw_cute_pointer(struct pw *p, size_t tensor) {
    return pointer_text(p, tensor, false);
}

void pw_cute_load(struct pw *p, const struct pw_read *r, struct buf *declare, struct buf *load) {
    enum dtype t = sheet_dtype(p->sh, p->st, r->e->ref);
    str part, vectors, copy = copy_text(p, t), from = pointer_text(p, r->e->ref, false);
    part_names(p, &part, &vectors);
    buf_printf(declare, "auto %.*s = %.*s<%s>();\n", STR_ARG(r->vector), STR_ARG(vectors),
               element_type(t));
    buf_printf(load, "cute::copy(%.*s, %.*s(%.*s + %.*s), %.*s);\n", STR_ARG(copy), STR_ARG(part),
               STR_ARG(from), STR_ARG(p->tile), STR_ARG(r->vector));
}

void pw_cute_store(struct pw *p, const struct pw_output *o, str value, struct buf *declare,
                   struct buf *compute, struct buf *store) {
    enum dtype t = sheet_dtype(p->sh, p->st, o->s->tensor);
    str part, vectors, copy = copy_text(p, t), to = pointer_text(p, o->s->tensor, true);
    part_names(p, &part, &vectors);
    buf_printf(declare, "auto %.*s = %.*s<%s>();\n", STR_ARG(o->vector), STR_ARG(vectors),
               element_type(t));
    buf_printf(compute, "%.*s(%.*s, %.*s) = %.*s;\n", STR_ARG(o->vector), STR_ARG(p->v),
               STR_ARG(p->item), STR_ARG(value));
    buf_printf(store, "cute::copy(%.*s, %.*s, %.*s(%.*s + %.*s));\n", STR_ARG(copy),
               STR_ARG(o->vector), STR_ARG(part), STR_ARG(to), STR_ARG(p->tile));
}

/* The place of a vector's first element, where something asks for it. */
str pw_cute_place(struct pw *p, str prepare) {
    if (!prepare.n)
        return prepare;
    return sheet_printf(p->sh,
                        "const %s %.*s = %.*s + (%.*s * %.*s + (int)threadIdx.x) * %.*s;\n%.*s",
                        scope_index_type(&p->k), STR_ARG(p->e), STR_ARG(p->tile), STR_ARG(p->item),
                        STR_ARG(p->block_name), STR_ARG(p->width_name), STR_ARG(prepare));
}
