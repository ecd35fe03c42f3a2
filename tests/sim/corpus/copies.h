/* Tensor copies: extents, boxes, places, for the table; the kernels are copies.cu's. Types and
 * swizzles by the driver's numbers. Coordinates may lie outside, on two conditions that no manual
 * spells out in full: the innermost one is a multiple of 16 bytes, and no coordinate of a store is
 * negative. */
#ifndef CORPUS_COPIES_H
#define CORPUS_COPIES_H

#define L(...)                                                                                     \
    { __VA_ARGS__ }
/* name, type, rank, extents, pitches, box, steps, swizzle, NaN outside, bytes of the box, place */
#define CORPUS_LOADS(X)                                                                            \
    X(1d, 7, 1, L(1000), L(0), L(64), L(1), 0, 0, 256, F32, 960)                                   \
    X(1d_negative, 7, 1, L(1000), L(0), L(64), L(1), 0, 0, 256, F32, -4)                           \
    X(2d, 6, 2, L(61, 33), L(0, 128), L(64, 8), L(1, 1), 0, 0, 1024, F16, 0, 0)                    \
    X(2d_edge, 6, 2, L(61, 33), L(0, 128), L(64, 8), L(1, 1), 0, 0, 1024, F16, 32, 28)             \
    X(2d_32, 6, 2, L(61, 33), L(0, 128), L(16, 16), L(1, 1), 1, 0, 512, F16, 8, 2)                 \
    X(2d_64, 6, 2, L(61, 33), L(0, 128), L(32, 16), L(1, 1), 2, 0, 1024, F16, -8, -1)              \
    X(2d_128, 6, 2, L(61, 33), L(0, 128), L(64, 16), L(1, 1), 3, 0, 2048, F16, 0, 20)              \
    X(2d_128_short, 7, 2, L(40, 33), L(0, 160), L(8, 16), L(1, 1), 3, 0, 512, F32, 4, 1)           \
    X(2d_64_bytes, 0, 2, L(100, 50), L(0, 112), L(48, 10), L(1, 1), 2, 0, 480, INT, 64, 45)        \
    X(2d_nan, 9, 2, L(61, 33), L(0, 128), L(64, 4), L(1, 1), 3, 1, 512, BF16, -8, 31)              \
    X(2d_nan_f32, 7, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, 1, 512, F32, 12, -2)           \
    X(2d_nan_f64, 8, 2, L(30, 33), L(0, 256), L(16, 4), L(1, 1), 0, 1, 512, F64, 20, -2)           \
    X(3d, 7, 3, L(20, 9, 7), L(0, 80, 720), L(8, 4, 3), L(1, 1, 1), 0, 0, 384, F32, 16, 7, 5)      \
    X(3d_steps, 7, 3, L(20, 9, 7), L(0, 80, 720), L(8, 7, 5), L(1, 3, 2), 0, 0, 288, F32, 4, 1, 0) \
    X(4d_128, 6, 4, L(64, 5, 4, 3), L(0, 128, 640, 2560), L(64, 2, 2, 2), L(1, 1, 1, 1), 3, 0,     \
      1024, F16, 0, 4, -1, 2)                                                                      \
    X(5d, 7, 5, L(12, 7, 5, 4, 3), L(0, 48, 336, 1680, 6720), L(8, 4, 3, 2, 2), L(1, 1, 1, 1, 1),  \
      0, 0, 1536, F32, 4, -1, 1, 3, 1)                                                             \
    X(ftz, 10, 1, L(1000), L(0), L(256), L(1), 0, 0, 1024, F32, 0)                                 \
    X(tf32, 11, 1, L(1000), L(0), L(256), L(1), 0, 0, 1024, F32, 0)                                \
    X(tf32_ftz, 12, 1, L(1000), L(0), L(256), L(1), 0, 0, 1024, F32, 0)

/* kernel, name, type, rank, extents, pitches, box, steps, swizzle, contents, place. Of the odd ones
 * rows end inside of 16 bytes, and inside of 32. */
#define CORPUS_STORES(X)                                                                           \
    X(1d, tf32, 11, 1, L(1000), L(0), L(64), L(1), 0, F32, 0)                                      \
    X(2d, 128, 6, 2, L(61, 33), L(0, 128), L(64, 8), L(1, 1), 3, F16, 8, 30)                       \
    X(2d, 64, 7, 2, L(30, 33), L(0, 128), L(16, 8), L(1, 1), 2, F32, 20, 28)                       \
    X(3d, steps, 7, 3, L(20, 9, 7), L(0, 80, 720), L(8, 7, 5), L(1, 3, 2), 0, F32, 16, 1, 0)       \
    X(4d, 32, 6, 4, L(64, 5, 4, 3), L(0, 128, 640, 2560), L(16, 2, 2, 2), L(1, 1, 1, 1), 1, F16,   \
      48, 4, 1, 2)                                                                                 \
    X(5d, plain, 7, 5, L(12, 7, 5, 4, 3), L(0, 48, 336, 1680, 6720), L(8, 4, 3, 2, 2),             \
      L(1, 1, 1, 1, 1), 0, F32, 4, 1, 1, 3, 1)                                                     \
    X(2d, odd, 7, 2, L(25, 33), L(0, 128), L(32, 4), L(1, 1), 0, F32, 0, 0)                        \
    X(2d, odd_bytes, 0, 2, L(100, 50), L(0, 112), L(48, 10), L(1, 1), 2, INT, 64, 45)              \
    X(add, odd, 7, 2, L(25, 33), L(0, 128), L(32, 4), L(1, 1), 0, F32, 0, 0)                       \
    X(add, u32, 2, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 28, 31)                     \
    X(add, u64, 4, 2, L(16, 33), L(0, 128), L(16, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(add, f16, 6, 2, L(61, 33), L(0, 128), L(64, 4), L(1, 1), 3, F16, 0, 0)                       \
    X(add, bf16, 9, 2, L(61, 33), L(0, 128), L(64, 4), L(1, 1), 0, BF16, 0, 0)                     \
    X(add, f32, 7, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, F32, 0, 0)                       \
    X(add, f64, 8, 2, L(16, 33), L(0, 128), L(16, 4), L(1, 1), 0, F64, 0, 0)                       \
    X(min, f16, 6, 2, L(61, 33), L(0, 128), L(64, 4), L(1, 1), 0, F16, 0, 0)                       \
    X(max, bf16, 9, 2, L(61, 33), L(0, 128), L(64, 4), L(1, 1), 0, BF16, 0, 0)                     \
    X(min, s32, 3, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(max, u64, 4, 2, L(16, 33), L(0, 128), L(16, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(min, s64, 5, 2, L(16, 33), L(0, 128), L(16, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(inc, u32, 2, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(dec, u32, 2, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(and, u32, 2, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 0, 0)                       \
    X(or, u64, 4, 2, L(16, 33), L(0, 128), L(16, 4), L(1, 1), 0, INT, 0, 0)                        \
    X(xor, s32, 3, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, 0, 0)

/* Copies that are illegal instructions: their innermost coordinate lies between multiples of 16
 * bytes, or they store from a negative coordinate on. */
#define CORPUS_ILLEGAL_LOADS(X)                                                                    \
    X(1d_between, 7, 1, L(1000), L(0), L(64), L(1), 0, 0, 256, F32, -3)                            \
    X(2d_between, 6, 2, L(61, 33), L(0, 128), L(64, 8), L(1, 1), 0, 0, 1024, F16, 30, 28)          \
    X(2d_between_64, 6, 2, L(61, 33), L(0, 128), L(32, 16), L(1, 1), 2, 0, 1024, F16, -5, -1)      \
    X(2d_between_bytes, 0, 2, L(100, 50), L(0, 112), L(48, 10), L(1, 1), 2, 0, 480, INT, 60, 45)   \
    X(5d_between, 7, 5, L(12, 7, 5, 4, 3), L(0, 48, 336, 1680, 6720), L(8, 4, 3, 2, 2),            \
      L(1, 1, 1, 1, 1), 0, 0, 1536, F32, 6, -1, 1, 3, 1)
#define CORPUS_ILLEGAL_STORES(X)                                                                   \
    X(2d, negative, 7, 2, L(30, 33), L(0, 128), L(16, 8), L(1, 1), 2, F32, 20, -1)                 \
    X(3d, between, 7, 3, L(20, 9, 7), L(0, 80, 720), L(8, 7, 5), L(1, 3, 2), 0, F32, 14, 1, 0)     \
    X(add, negative, 2, 2, L(30, 33), L(0, 128), L(32, 4), L(1, 1), 0, INT, -4, 31)

#endif
