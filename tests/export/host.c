/* A stand-in for libcuda on which kernels of one thread compute: device memory is the process's
 * own, copies are memcpy, and a launch calls the kernel, which is linked as a function of C under
 * the name NAME_call with the array of its parameters. Everything happens at once, in the order of
 * the calls. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct launch_config {
    unsigned grid[3], block[3], shared;
    void *stream;
    void *attributes;
    unsigned nattributes;
};
struct copy_2d {
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
unsigned host_launches;

int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? 9 : attribute == 76 ? 0 : 232448;
    return device;
}
int cuModuleLoadData(void **module, const void *image) {
    *module = (void *)image;
    return memcmp(image, "\177ELF", 4) ? 200 : 0;
}
int cuModuleUnload(void *module) {
    return module ? 0 : 400;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    char call[200];
    snprintf(call, sizeof call, "%s_call", name);
    *function = dlsym(RTLD_DEFAULT, call);
    return module && *function ? 0 : 500;
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
    *value = attribute == 1 ? 1024 : 0;
    return function ? 0 : 400;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
    return !function || attribute < 0 || value < 0;
}
int cuLaunchKernelEx(const struct launch_config *c, void *function, void **params, void **extra) {
    unsigned threads =
        c->grid[0] * c->grid[1] * c->grid[2] * c->block[0] * c->block[1] * c->block[2];
    if (extra || threads != 1)
        return 1;
    ((void (*)(void **))function)(params);
    host_launches++;
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream) {
    memset((void *)(uintptr_t)to, value, count);
    return stream == NULL;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return stream == NULL;
}
int cuMemcpy2DAsync_v2(const struct copy_2d *c, void *stream) {
    if (c->from_kind != 2 || c->to_kind != 2 || c->from_x || c->from_y || c->to_x || c->to_y ||
        c->width > c->from_pitch || c->width > c->to_pitch)
        return 1;
    for (size_t i = 0; i < c->height; i++)
        memcpy((char *)(uintptr_t)c->to + i * c->to_pitch,
               (const char *)(uintptr_t)c->from + i * c->from_pitch, c->width);
    return stream == NULL;
}
