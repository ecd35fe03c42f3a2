/* Arithmetic on a warp: each operation is a loop over 32 lanes that the compiler turns into vector
 * instructions. The table is built from ops.def three times, for any CPU, for x86-64 with AVX2
 * and FMA, and with AVX-512, and the best one is chosen when a program is loaded.
 *
 * A register is 32 lanes of 4 or 8 bytes. Registers of 8 and 16 bits use 4 bytes a lane and hold
 * their value zero-extended; a predicate's lane is 0 or ~0. Operations compute all 32 lanes,
 * whatever the mask: the caller keeps the lanes that are active. They therefore never trap and are
 * defined for every operand (shifts past the width, division by zero, NaN to integer).
 *
 * Destinations may be one of the sources, never partly overlap one. */
#ifndef SIM_LANES_H
#define SIM_LANES_H

#include <stddef.h>
#include <stdint.h>

#define SIM_LANES 32

enum op_class {
    CLASS_FP32,
    CLASS_FP64,
    CLASS_INT,
    CLASS_SPECIAL,
    CLASS_MEMORY,
    CLASS_CONTROL,
    CLASS_TENSOR,
};

typedef void lane_fn(void *d, const void *a, const void *b, const void *c, void *e);

/* `shape` gives the destination and then the sources: p predicate, h up to 16 bits, 4, 8 bytes. A
 * trailing c: e is the carry flag (0 or 1 a lane), read and written. */
struct lane_op {
    const char
        *name; /* "add.ftz.f32"; a name that starts with % is a step of another instruction */
    lane_fn *fn;
    const char *shape;
    uint8_t class;
    uint8_t flops; /* a lane */
};

extern const struct lane_op lanes_any[];
extern const size_t lanes_any_count;
#if defined(__x86_64__)
extern const struct lane_op lanes_x86v3[], lanes_x86v4[];
extern const size_t lanes_x86v3_count, lanes_x86v4_count;
#endif
const struct lane_op *lanes_table(size_t *count);

#endif
