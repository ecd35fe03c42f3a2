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
//% each kernels

/* ---- kernel ${number}: ${about} ---- */

static int admits_${number}(const ${name}_dims *dims) {
    int bad = 0;
    ${sizes}
//% each checks
    if (!(${holds}) || bad)
        return 0; /* ${text} */
//% end
    return !bad;
}

static size_t workspace_${number}(const ${name}_dims *dims) {
    size_t at = 0;
    int bad = 0;
    ${sizes}
//% each workspaces
    at = (at + ${align} - 1) / ${align} * ${align} + (size_t)(${bytes});
//% end
    return bad ? SIZE_MAX : at;
}
//% if prepares

static size_t prepared_${number}(const ${name}_dims *dims) {
    size_t at = 0;
    int bad = 0;
    ${sizes}
//% each prepared
    at = (at + ${align} - 1) / ${align} * ${align} + (size_t)(${bytes});
//% end
    return bad ? SIZE_MAX : at;
}

static int prepare_${number}(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
                     void *prepared, void *stream) {
    int bad = 0, code = 0;
    ${sizes}
//% if prepared
    size_t at = 0;
//% end
//% each parameters
    uint64_t tensor_${tensor} = (uint64_t)(uintptr_t)tensors->${tensor};
//% end
//% each prepared
    at = (at + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)prepared + at;
    at += (size_t)(${bytes});
//% end
//% each parameters
    bad |= !tensor_${tensor} || tensor_${tensor} % ${align};
//% end
    (void)op, (void)tensors, (void)prepared, (void)stream;
    if (bad)
        return INVALID_VALUE;
//% each once_maps
    struct tensor_map map_${map};
    {
        const uint64_t extents[] = {${extents}}, strides[] = {${strides}};
        const uint32_t box[] = {${box}}, steps[] = {${steps}};
        code = cuTensorMapEncodeTiled(&map_${map}, ${type}, ${rank}, (void *)(uintptr_t)${of}, extents, strides,
                                      box, steps, 0, ${swizzle}, 2, ${fill});
        if (code)
            return code;
    }
//% end
//% each once
//% if memset
    code = fill(${of}, UINT64_C(${pattern}), ${size}, (uint64_t)(${count}), stream);
    if (code)
        return code;
//% else
    {
        struct launch_config config = {.grid = {${grid}},
                                       .block = {${block}},
                                       .shared = ${shared},
                                       .stream = stream};
        const unsigned cluster[3] = {${cluster}};
//% each integers
        int64_t argument_${at} = ${value};
//% end
        void *params[] = {${params}};
        code = launch(op->function[${function}], &config, cluster, ${cooperative}, params);
        if (code)
            return code;
    }
//% end
//% end
    return code;
}
//% end

static int run_${number}(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
                 const void *prepared, void *workspace, void *stream) {
//% else
                 void *workspace, void *stream) {
//% end
    int bad = 0, code = 0;
    ${sizes}
//% if prepared
    size_t kept = 0;
//% end
//% if workspaces
    size_t at = 0;
//% end
//% each addresses
    uint64_t tensor_${tensor} = (uint64_t)(uintptr_t)tensors->${tensor};
//% end
//% each workspaces
    at = (at + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)workspace + at;
    at += (size_t)(${bytes});
//% end
//% each prepared
    kept = (kept + ${align} - 1) / ${align} * ${align};
    uint64_t work_${workspace} = (uint64_t)(uintptr_t)prepared + kept;
    kept += (size_t)(${bytes});
    (void)work_${workspace};
//% end
//% each addresses
    bad |= !tensor_${tensor} || tensor_${tensor} % ${align};
//% end
    (void)op, (void)workspace;
//% if prepares
    (void)prepared;
//% end
    if (bad)
        return INVALID_VALUE;
//% each maps
    struct tensor_map map_${map};
    {
        const uint64_t extents[] = {${extents}}, strides[] = {${strides}};
        const uint32_t box[] = {${box}}, steps[] = {${steps}};
        code = cuTensorMapEncodeTiled(&map_${map}, ${type}, ${rank}, (void *)(uintptr_t)${of}, extents, strides,
                                      box, steps, 0, ${swizzle}, 2, ${fill});
        if (code)
            return code;
    }
//% end
//% each steps
//% if memset
    code = fill(${of}, UINT64_C(${pattern}), ${size}, (uint64_t)(${count}), stream);
    if (code)
        return code;
//% else
    {
        struct launch_config config = {.grid = {${grid}},
                                       .block = {${block}},
                                       .shared = ${shared},
                                       .stream = stream};
        const unsigned cluster[3] = {${cluster}};
//% each integers
        int64_t argument_${at} = ${value};
//% end
        void *params[] = {${params}};
        code = launch(op->function[${function}], &config, cluster, ${cooperative}, params);
        if (code)
            return code;
    }
//% end
//% end
    return code;
}

/* The cubin for ${arch}; SHA-256 of its source: ${source_hash}. */
_Alignas(16) static const unsigned char cubin_${number}[] = {
${bytes_of_cubin}};
//% end

/* ---- the library ---- */

struct kernel {
    int major, minor, exact; /* compute capability; exact: of this one alone, not of later ones */
    const unsigned char *cubin;
    int first, functions; /* in ${name}_op.function */
    ${name}_dims own;     /* the sizes that it was made for */
    int (*admits)(const ${name}_dims *dims);
    size_t (*workspace)(const ${name}_dims *dims);
    int (*run)(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
               const void *prepared, void *workspace, void *stream);
    size_t (*prepared)(const ${name}_dims *dims);
    int (*prepare)(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
                   void *prepared, void *stream);
//% else
               void *workspace, void *stream);
//% end
};
static const struct kernel kernels[] = {
//% each kernels
    {${major}, ${minor}, ${exact}, cubin_${number}, ${first}, ${functions}, {${own}}, admits_${number}, workspace_${number}, run_${number},
//% if prepares
     prepared_${number}, prepare_${number},
//% end
    },
//% end
};
static const char *const function_names[] = {
//% each functions
    "${function}",
//% end
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Dynamic shared memory beyond 48 KB has to be asked for; what a function can have at all. */
static int allow_shared(void *function, int device) {
    int most = 0, fixed = 0;
    int code = cuDeviceGetAttribute(&most, SHARED_OPTIN, device);
    if (!code)
        code = cuFuncGetAttribute(&fixed, SHARED_STATIC, function);
    return code ? code : cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED, most - fixed);
}

static int load_kernel(${name}_op *op, int k, int device) {
    int code = cuModuleLoadData(&op->module[k], kernels[k].cubin);
    for (int i = kernels[k].first; !code && i < kernels[k].first + kernels[k].functions; i++) {
        code = cuModuleGetFunction(&op->function[i], op->module[k], function_names[i]);
        if (!code)
            code = allow_shared(op->function[i], device);
    }
    return code;
}

int ${name}_load(${name}_op *op) {
    int device = 0, major = 0, minor = 0, loaded = 0;
    memset(op, 0, sizeof *op);
    int code = cuCtxGetDevice(&device);
    if (!code)
        code = cuDeviceGetAttribute(&major, CC_MAJOR, device);
    if (!code)
        code = cuDeviceGetAttribute(&minor, CC_MINOR, device);
    for (int k = 0; !code && k < KERNELS; k++) {
        const struct kernel *kernel = &kernels[k];
        if (major != kernel->major || minor < kernel->minor || (kernel->exact && minor != kernel->minor))
            continue;
        code = load_kernel(op, k, device);
        loaded++;
    }
    if (code)
        ${name}_unload(op);
    return code ? code : loaded ? 0 : NO_BINARY_FOR_GPU;
}

void ${name}_unload(${name}_op *op) {
    for (int k = 0; k < KERNELS; k++)
        if (op->module[k])
            cuModuleUnload(op->module[k]);
    memset(op, 0, sizeof *op);
}

/* The kernel that was made for these sizes, or else the first that admits them. */
static const struct kernel *choose(const ${name}_op *op, const ${name}_dims *dims) {
    for (int own = 1; own >= 0; own--)
        for (int k = 0; k < KERNELS; k++)
            if (op->module[k] && (!own || memcmp(&kernels[k].own, dims, sizeof *dims) == 0) &&
//% if types
                kernels[k].own.types == dims->types &&
//% end
                kernels[k].admits(dims))
                return &kernels[k];
    return NULL;
}

int ${name}_admits(const ${name}_op *op, const ${name}_dims *dims) {
    return choose(op, dims) != NULL;
}

size_t ${name}_workspace_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    const struct kernel *kernel = choose(op, dims);
    return kernel ? kernel->workspace(dims) : 0;
}

//% if prepares
static int is_kept(const void *prepared, size_t needed) {
    return !needed || (prepared && (uintptr_t)prepared % 256 == 0);
}

size_t ${name}_prepared_bytes(const ${name}_op *op, const ${name}_dims *dims) {
    const struct kernel *kernel = choose(op, dims);
    return kernel ? kernel->prepared(dims) : 0;
}

int ${name}_prepare(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
        void *prepared, size_t prepared_bytes, void *stream) {
    const struct kernel *kernel = choose(op, dims);
    size_t needed = kernel ? kernel->prepared(dims) : 0;
    if (!kernel || needed > prepared_bytes || !is_kept(prepared, needed))
        return INVALID_VALUE;
    return kernel->prepare(op, dims, tensors, prepared, stream);
}

//% end
int ${name}_run(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
        const void *prepared, void *workspace, size_t workspace_bytes, void *stream) {
//% else
        void *workspace, size_t workspace_bytes, void *stream) {
//% end
    const struct kernel *kernel = choose(op, dims);
    if (!kernel)
        return INVALID_VALUE;
    size_t needed = kernel->workspace(dims);
    if (needed > workspace_bytes || (needed && (!workspace || (uintptr_t)workspace % 256)))
        return INVALID_VALUE;
//% if prepares
    if (!is_kept(prepared, kernel->prepared(dims)))
        return INVALID_VALUE;
    return kernel->run(op, dims, tensors, prepared, workspace, stream);
//% else
    return kernel->run(op, dims, tensors, workspace, stream);
//% end
}
