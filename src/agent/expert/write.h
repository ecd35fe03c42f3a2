/* The pointwise generator's text: what is shared by the files that write it. Private to the room.
 */
#ifndef AGENT_EXPERT_WRITE_H
#define AGENT_EXPERT_WRITE_H

#include "agent/expert/expert.h"
#include "agent/expert/pointwise.h"
#include "base/template.h"

/* What of a dtype's vector functions the kernels call. */
struct vector_use {
    bool any, load, stream, store;
};

struct writer {
    struct pw p;
    const char *assets;
    const struct strategy *strategy;
    int64_t block, items, width;
    bool persistent, hint;
    bool naive; /* one thread, one element, no loop */
    struct vector_use use[DTYPE_COUNT];
    /* Names of variables and constants that the task leaves free. */
    str e, k, v, tile, end, total, block_name, items_name, width_name, tile_name;
    str vector_type[DTYPE_COUNT], load[DTYPE_COUNT], stream[DTYPE_COUNT], store[DTYPE_COUNT];
    struct buf functions, kernels, vectors;
};

bool write_template(struct writer *w, const char *name, const struct slot *slots, size_t n,
                    struct buf *out);
#define WRITE_TEMPLATE(w, name, slots, out)                                                        \
    write_template(w, "expert/" name, slots, sizeof(slots) / sizeof *(slots), out)
/* The content of a buf, kept in the arena without the last line's end; the buf is emptied. */
str write_keep(struct writer *w, struct buf *b);
str write_number(struct writer *w, int64_t v);

/* Before and after a stored element, to make it a value to compute with. */
const char *write_unpack(enum dtype t);
const char *write_unpack_end(enum dtype t);
/* A computed value as an element of the dtype: floats to nearest, integers to the nearest that the
 * type holds. Lets without a type are never rounded. */
void write_packed(enum dtype t, enum value_kind kind, str value, struct buf *out);

/* Where an expression is written: inside an output's function, whose integers are long long, or in
 * the kernel, where int coordinates are widened before arithmetic. */
struct place {
    struct writer *w;
    struct pw_group *g;
    struct pw_output *o; /* NULL: in the kernel */
    bool failed;
};
bool write_expr(struct place *at, const struct expr *e, struct buf *out);
bool write_let(struct place *at, enum dtype t, const struct expr *body, struct buf *out);
bool write_integer(struct place *at, const struct expr *e, struct buf *out);
bool write_offset(struct place *at, const struct expr *e, struct buf *out);

/* The functions and the kernel of a group, into w->functions and w->kernels. */
bool write_group(struct writer *w, struct pw_group *g);

#endif
