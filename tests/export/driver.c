/* A stand-in for libcuda: it does nothing on a GPU, and prints what it was asked to do, one line a
 * call, so that a test can hold every argument against the plan. Functions are their names; a
 * parameter's bytes are those that the program is told by PARAMETERS ("kernel:8,8,4;…"). Shared
 * memory beyond 48 KB is refused unless it was asked for. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
struct function {
    char name[128];
    int dynamic_shared;
};

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

int cuCtxGetDevice(int *device);
int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75   ? number("CC_MAJOR", 9)
             : attribute == 76 ? number("CC_MINOR", 0)
                               : 232448;
    return device;
}
int cuModuleLoadData(void **module, const void *image);
int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)image;
    return memcmp(image, "\177ELF", 4) ? 200 : number("LOAD_RESULT", 0);
}
int cuModuleUnload(void *module);
int cuModuleUnload(void *module) {
    printf("unload %d\n", module != NULL);
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuModuleGetFunction(void **function, void *module, const char *name) {
    struct function *f = calloc(1, sizeof *f);
    snprintf(f->name, sizeof f->name, "%s", name);
    *function = f;
    return module ? 0 : 400;
}
int cuFuncGetAttribute(int *value, int attribute, void *function);
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == 1 ? 1024 : 0;
    return function ? 0 : 400;
}
int cuFuncSetAttribute(void *function, int attribute, int value);
int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == 8)
        ((struct function *)function)->dynamic_shared = value;
    return value > 232448 - 1024;
}

/* The bytes of a kernel's parameters, after its name in PARAMETERS. */
static const char *parameters_of(const char *name) {
    const char *at = getenv("PARAMETERS");
    size_t n = strlen(name);
    while (at && *at) {
        if (!strncmp(at, name, n) && at[n] == ':')
            return at + n + 1;
        at = strchr(at, ';');
        at = at ? at + 1 : NULL;
    }
    return "";
}

int cuLaunchKernelEx(const struct launch_config *c, void *function, void **params, void **extra);
int cuLaunchKernelEx(const struct launch_config *c, void *function, void **params, void **extra) {
    const struct function *f = function;
    unsigned cluster[3] = {1, 1, 1};
    int cooperative = 0;
    for (unsigned i = 0; i < c->nattributes; i++) {
        if (c->attributes[i].id == 4)
            memcpy(cluster, c->attributes[i].value.cluster, sizeof cluster);
        else if (c->attributes[i].id == 2)
            cooperative = c->attributes[i].value.cooperative;
        else
            return 1;
    }
    if (extra || (c->shared > 49152 && c->shared > (unsigned)f->dynamic_shared))
        return 1;
    printf("launch %s grid %u,%u,%u block %u,%u,%u cluster %u,%u,%u cooperative %d shared %u "
           "stream %p",
           f->name, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
           cluster[0], cluster[1], cluster[2], cooperative, c->shared, c->stream);
    const char *sizes = parameters_of(f->name);
    for (int i = 0; *sizes && *sizes != ';'; i++) {
        long bytes = strtol(sizes, (char **)&sizes, 10);
        sizes += *sizes == ',';
        int64_t value = 0;
        if (bytes == 128)
            memcpy(&value, params[i], 8);
        else
            memcpy(&value, params[i], (size_t)bytes);
        if (bytes == 4)
            value = (int32_t)value;
        printf(" %s%lld", bytes == 128 ? "map:" : "", (long long)value);
    }
    printf("\n");
    return 0;
}

static int set(uint64_t to, unsigned long long value, int size, size_t count, void *stream) {
    printf("set %llu value %llu size %d count %zu stream %p\n", (unsigned long long)to, value, size,
           count, stream);
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    return set(to, value, 1, count, stream);
}
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream);
int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count, void *stream) {
    return set(to, value, 2, count, stream);
}
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream);
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
    return set(to, value, 4, count, stream);
}
int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream);
int cuMemsetD2D32Async(uint64_t to, size_t pitch, unsigned value, size_t width, size_t height,
                       void *stream) {
    printf("every %zu width %zu: ", pitch, width);
    return set(to, value, 4, height, stream);
}

int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int l2_promotion,
                           int fill);
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int l2_promotion,
                           int fill) {
    memset(map, 0, 128);
    memcpy(map, &address, sizeof address); /* so that a launch shows whose map it got */
    printf("map type %d address %llu interleave %d swizzle %d promotion %d fill %d", type,
           (unsigned long long)(uintptr_t)address, interleave, swizzle, l2_promotion, fill);
    for (uint32_t i = 0; i < rank; i++)
        printf(" %llu/%llu/%u/%u", (unsigned long long)extents[i],
               i ? (unsigned long long)strides[i - 1] : 0ULL, box[i], steps[i]);
    printf("\n");
    return (uintptr_t)map % 64 || (uintptr_t)address % 16;
}
