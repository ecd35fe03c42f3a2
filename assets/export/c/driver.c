/* ${title}
 *
 * ${origin}
 *
 * ${name}.h says how to use it. What follows: the driver's entries that are called, arithmetic of
 * launch plans, and for each kernel its plan and its machine code. */
#include "${name}.h"

#include <string.h>

/* ---- the driver ---- */

/* As in cuda.h, which is not needed. */
struct launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};
struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    struct launch_attribute *attributes;
    unsigned nattributes;
};
enum { INVALID_VALUE = 1, NO_BINARY_FOR_GPU = 209 };
enum { SHARED_OPTIN = 97, CC_MAJOR = 75, CC_MINOR = 76 };     /* attributes of a device */
enum { SHARED_STATIC = 1, MAX_DYNAMIC_SHARED = 8 };           /* of a function */
enum { ATTRIBUTE_COOPERATIVE = 2, ATTRIBUTE_CLUSTER = 4 };    /* of a launch */

extern int cuCtxGetDevice(int *device);
extern int cuDeviceGetAttribute(int *value, int attribute, int device);
extern int cuModuleLoadData(void **module, const void *image);
extern int cuModuleUnload(void *module);
extern int cuModuleGetFunction(void **function, void *module, const char *name);
extern int cuFuncGetAttribute(int *value, int attribute, void *function);
extern int cuFuncSetAttribute(void *function, int attribute, int value);
extern int cuLaunchKernelEx(const struct launch_config *config, void *function, void **params,
                            void **extra);
//% if memsets
extern int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream);
extern int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream);
extern int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream);
extern int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height,
                              void *stream);
//% end
//% if copies
struct copy_2d { /* CUDA_MEMCPY2D */
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    uint64_t from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_kind;
    void *to_host;
    uint64_t to;
    void *to_array;
    size_t to_pitch, width, height;
};
enum { DEVICE_MEMORY = 2 };
extern int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream);
extern int cuMemcpy2DAsync_v2(const struct copy_2d *copy, void *stream);
//% if not memsets
extern int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream);
//% end
//% end
//% if maps
struct tensor_map {
    _Alignas(128) uint64_t opaque[16];
};
extern int cuTensorMapEncodeTiled(struct tensor_map *map, int type, uint32_t rank, void *address,
                                  const uint64_t *extents, const uint64_t *strides,
                                  const uint32_t *box, const uint32_t *steps, int interleave,
                                  int swizzle, int l2_promotion, int fill);
//% end

/* ---- plan arithmetic: 64-bit integers; what overflows or has no value sets *bad ---- */

#define PLAN_FUNCTION __attribute__((unused)) static inline

PLAN_FUNCTION int64_t plan_add(int *bad, int64_t a, int64_t b) {
    int64_t r = 0;
    *bad |= __builtin_add_overflow(a, b, &r);
    return r;
}
PLAN_FUNCTION int64_t plan_sub(int *bad, int64_t a, int64_t b) {
    int64_t r = 0;
    *bad |= __builtin_sub_overflow(a, b, &r);
    return r;
}
PLAN_FUNCTION int64_t plan_mul(int *bad, int64_t a, int64_t b) {
    int64_t r = 0;
    *bad |= __builtin_mul_overflow(a, b, &r);
    return r;
}
/* Towards minus infinity; the remainder has the divisor's sign. */
PLAN_FUNCTION int64_t plan_div(int *bad, int64_t a, int64_t b) {
    if (b == 0 || (b == -1 && a == INT64_MIN)) {
        *bad = 1;
        return 0;
    }
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
PLAN_FUNCTION int64_t plan_mod(int *bad, int64_t a, int64_t b) {
    if (b == 0) {
        *bad = 1;
        return 0;
    }
    if (b == -1)
        return 0;
    return a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
}
PLAN_FUNCTION int64_t plan_min(int64_t a, int64_t b) {
    return a < b ? a : b;
}
PLAN_FUNCTION int64_t plan_max(int64_t a, int64_t b) {
    return a > b ? a : b;
}
PLAN_FUNCTION int64_t plan_ceil_div(int *bad, int64_t a, int64_t b) {
    return plan_sub(bad, 0, plan_div(bad, plan_sub(bad, 0, a), b));
}
PLAN_FUNCTION int is_within(int64_t v, int64_t least, int64_t most) {
    return v >= least && v <= most;
}

/* ---- running ---- */

/* Dynamic shared memory beyond 48 KB has to be asked for; what a function can have at all. */
static int allow_shared(void *function, int device) {
    int most = 0, fixed = 0;
    int code = cuDeviceGetAttribute(&most, SHARED_OPTIN, device);
    if (!code)
        code = cuFuncGetAttribute(&fixed, SHARED_STATIC, function);
    return code ? code : cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, most - fixed);
}

static int launch(void *function, struct launch_config *config, const unsigned cluster[3],
                  int cooperative, void **params) {
    struct launch_attribute attributes[2];
    memset(attributes, 0, sizeof attributes);
    config->attributes = attributes;
    if (cluster[0] * cluster[1] * cluster[2] > 1) {
        attributes[config->nattributes].id = ATTRIBUTE_CLUSTER;
        memcpy(attributes[config->nattributes++].value.cluster, cluster, 3 * sizeof *cluster);
    }
    if (cooperative) {
        attributes[config->nattributes].id = ATTRIBUTE_COOPERATIVE;
        attributes[config->nattributes++].value.cooperative = 1;
    }
    return cuLaunchKernelEx(config, function, params, NULL);
}
//% if memsets

/* `count` elements of `size` bytes, each the lower bytes of the pattern. */
static int fill(uint64_t to, uint64_t pattern, unsigned size, uint64_t count, void *stream) {
    uint32_t low = (uint32_t)pattern, high = (uint32_t)(pattern >> 32);
    int code;
    if (size == 1)
        return cuMemsetD8Async(to, (unsigned char)low, count, stream);
    if (size == 2)
        return cuMemsetD16Async(to, (unsigned short)low, count, stream);
    if (size == 4 || low == high)
        return cuMemsetD32Async(to, low, count * (size / 4), stream);
    code = cuMemsetD2D32Async(to, 8, low, 1, count, stream); /* halves of 8 bytes, one by one */
    return code ? code : cuMemsetD2D32Async(to + 4, 8, high, 1, count, stream);
}
//% end
