/* A libcuda.so.1 without a GPU, for tests of what we ask of the driver and in which order. Device
 * memory is host memory (memfds, mapped where the caller reserved), memsets and copies are done,
 * kernels are only written down.
 *
 * A module is "\177ELF", padding to 64 bytes, then one line a kernel: its name, the size of each
 * parameter, =BYTES of local memory if it has any and, where it is to fail, !CODE: its launch is
 * refused for 1, 2 and 701; for others the next synchronisation gives that code, and so does
 * everything after it. `+NAME` makes its launch add one to the first byte of a variable of the
 * module, which a line of its own declares: `@NAME BANK BYTE…`, bytes in hexadecimal. Every call
 * that matters is a line in the file that descriptor FAKE_CUDA_LOG names, if any. */
#include "device/cuda_types.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CUDA_API(member, name, params) int name params;
#include "device/cuda_api.def"
#undef CUDA_API

#define GRANULE       ((size_t)2 << 20)
#define MAX_KERNELS   32
#define MAX_PARAMS    16
#define MAX_VARIABLES 8

struct cu_function {
    char name[64];
    size_t params[MAX_PARAMS], nparams;
    int code, max_dynamic, local_bytes;
    int writes; /* the parameter whose memory it adds 1 to, from 1; 0: none */
    char adds_to[64];
    struct cu_module *module;
};
struct fake_variable {
    char name[64];
    unsigned char bytes[64];
    size_t n;
};
struct cu_module {
    struct cu_function kernels[MAX_KERNELS];
    struct fake_variable variables[MAX_VARIABLES];
    unsigned n, nvariables;
};
struct cu_event {
    int number;
    double at;
};
struct cu_stream {
    int code; /* of the kernel that failed */
    int events;
};

static struct cu_stream the_stream;

__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...) {
    const char *fd = getenv("FAKE_CUDA_LOG");
    if (!fd)
        return;
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    line[n] = '\n';
    if (write((int)strtol(fd, NULL, 10), line, (size_t)n + 1) < 0)
        abort();
}

static int pending(void) {
    return the_stream.code;
}

static int fail_of(const char *what) { /* FAKE_CUDA_FAIL=what=code */
    const char *f = getenv("FAKE_CUDA_FAIL");
    size_t n = strlen(what);
    return f && strncmp(f, what, n) == 0 && f[n] == '=' ? (int)strtol(f + n + 1, NULL, 10) : 0;
}

/* ---- the device ---- */

int cuInit(unsigned flags) {
    return flags ? CU_INVALID_VALUE : fail_of("init");
}
int cuDriverGetVersion(int *version) {
    *version = 13000;
    return 0;
}
int cuGetErrorName(int code, const char **name) {
    *name = code == CU_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
    return 0;
}
int cuGetErrorString(int code, const char **text) {
    *text = code == CU_ILLEGAL_ADDRESS ? "an illegal memory access was encountered" : "an error";
    return 0;
}
int cuDeviceGetCount(int *count) {
    *count = fail_of("count") ? 0 : 2;
    return 0;
}
int cuDeviceGet(int *device, int ordinal) {
    *device = ordinal;
    return 0;
}
int cuDeviceGetName(char *name, int room, int device) {
    snprintf(name, (size_t)room, "Fake GPU %d", device);
    return 0;
}
int cuDeviceGetUuid_v2(struct cu_uuid *uuid, int device) {
    for (int i = 0; i < 16; i++)
        uuid->bytes[i] = (unsigned char)(16 * i + device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    *bytes = (size_t)(device + 1) << 33;
    return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    static const int values[][2] = {
        {CU_SMS, 4},
        {CU_CC_MAJOR, 9},
        {CU_CC_MINOR, 0},
        {CU_L2_BYTES, 1 << 20},
        {CU_MAX_PERSISTING_L2, 1 << 19},
        {CU_SHARED_BLOCK_OPTIN, 232448},
        {CU_SHARED_SM, 233472},
        {CU_MAX_THREADS_SM, 2048},
        {CU_MAX_THREADS_BLOCK, 1024},
        {CU_MAX_BLOCKS_SM, 32},
        {CU_REGISTERS_SM, 65536},
        {CU_CLOCK_KHZ, 1980000},
        {CU_MEMORY_CLOCK_KHZ, 3201000},
        {CU_MEMORY_BUS_BITS, 6144},
        {CU_VMM, 1},
        {CU_VMM_POSIX_FD, 1},
        {CU_COOPERATIVE_LAUNCH, 1},
        {CU_CLUSTER_LAUNCH, 1},
        {CU_TENSOR_MAP_ACCESS, 1},
        {CU_FP32_TO_FP64, 2},
    };
    *value = attribute == CU_COMPUTE_MODE ? fail_of("mode") : 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute)
            *value = values[i][1];
    return device < 0 ? CU_INVALID_DEVICE : 0;
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags) {
    (void)flags;
    return device < 0 ? CU_INVALID_DEVICE : 0;
}
int cuDevicePrimaryCtxRetain(cu_context *context, int device) {
    (void)device;
    *context = (cu_context)&the_stream;
    return fail_of("mode") ? CU_DEVICE_UNAVAILABLE : fail_of("context");
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    (void)device;
    return 0;
}
int cuCtxSetCurrent(cu_context context) {
    return context ? 0 : CU_INVALID_VALUE;
}
int cuCtxSynchronize(void) {
    return pending();
}
int cuCtxSetLimit(int limit, size_t value) {
    say("limit %d %zu", limit, value);
    return 0;
}
int cuCtxGetLimit(size_t *value, int limit) {
    *value = limit == CU_LIMIT_STACK && fail_of("stack") ? (size_t)fail_of("stack") : 256;
    return 0;
}
int cuCtxResetPersistingL2Cache(void) {
    say("reset-l2");
    return pending();
}

/* ---- memory ---- */

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total_bytes) {
    *free_bytes = (size_t)1 << 33;
    *total_bytes = (size_t)1 << 34;
    return 0;
}
int cuMemAlloc_v2(cu_address *address, size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    *address = (cu_address)(uintptr_t)p;
    return p == MAP_FAILED ? CU_OUT_OF_MEMORY : 0;
}
int cuMemFree_v2(cu_address address) {
    return address ? 0 : CU_INVALID_VALUE; /* of processes that end soon */
}
int cuMemcpyHtoDAsync_v2(cu_address to, const void *from, size_t bytes, cu_stream stream) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, cu_address from, size_t bytes, cu_stream stream) {
    (void)stream;
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}
int cuMemcpyDtoDAsync_v2(cu_address to, cu_address from, size_t bytes, cu_stream stream) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}
static int fill(cu_address to, const void *value, size_t size, size_t count) {
    say("memset%zu %zu", 8 * size, count);
    for (size_t i = 0; i < count; i++)
        memcpy((char *)(uintptr_t)to + i * size, value, size);
    return pending();
}
int cuMemsetD8Async(cu_address to, unsigned char value, size_t count, cu_stream stream) {
    (void)stream;
    return fill(to, &value, sizeof value, count);
}
int cuMemsetD16Async(cu_address to, unsigned short value, size_t count, cu_stream stream) {
    (void)stream;
    return fill(to, &value, sizeof value, count);
}
int cuMemsetD32Async(cu_address to, unsigned value, size_t count, cu_stream stream) {
    (void)stream;
    return fill(to, &value, sizeof value, count);
}

int cuMemGetAllocationGranularity(size_t *bytes, const struct cu_memory_prop *prop, int option) {
    *bytes = GRANULE;
    return prop->handle_types == CU_HANDLE_POSIX_FD && !option ? 0 : CU_INVALID_VALUE;
}
int cuMemAddressReserve(cu_address *address, size_t bytes, size_t align, cu_address hint,
                        uint64_t flags) {
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *address = (cu_address)(uintptr_t)p;
    return p == MAP_FAILED || align || hint || flags ? CU_OUT_OF_MEMORY : 0;
}
int cuMemAddressFree(cu_address address, size_t bytes) {
    say("unreserve");
    return munmap((void *)(uintptr_t)address, bytes) ? CU_INVALID_VALUE : 0;
}
int cuMemCreate(cu_memory *memory, size_t bytes, const struct cu_memory_prop *prop,
                uint64_t flags) {
    if (fail_of("create") || bytes % GRANULE || flags || prop->location.type != CU_LOCATION_DEVICE)
        return bytes % GRANULE ? CU_INVALID_VALUE : CU_OUT_OF_MEMORY;
    int fd = memfd_create("fake", MFD_CLOEXEC);
    *memory = (cu_memory)fd;
    return fd < 0 || ftruncate(fd, (off_t)bytes) ? CU_OUT_OF_MEMORY : 0;
}
int cuMemRelease(cu_memory memory) {
    say("release");
    return close((int)memory) ? CU_INVALID_VALUE : 0;
}
int cuMemMap(cu_address address, size_t bytes, size_t offset, cu_memory memory, uint64_t flags) {
    void *p = mmap((void *)(uintptr_t)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
                   (int)memory, (off_t)offset);
    return p == MAP_FAILED || flags ? CU_INVALID_VALUE : 0;
}
int cuMemUnmap(cu_address address, size_t bytes) {
    void *p = mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    say("unmap");
    return p == MAP_FAILED ? CU_INVALID_VALUE : 0;
}
int cuMemSetAccess(cu_address address, size_t bytes, const struct cu_access_desc *desc,
                   size_t count) {
    int prot = desc->flags == CU_ACCESS_READ_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    return count != 1 || mprotect((void *)(uintptr_t)address, bytes, prot) ? CU_INVALID_VALUE : 0;
}
int cuMemExportToShareableHandle(void *shareable, cu_memory memory, int kind, uint64_t flags) {
    *(int *)shareable = dup((int)memory);
    return kind != CU_HANDLE_POSIX_FD || flags ? CU_INVALID_VALUE : 0;
}
int cuMemImportFromShareableHandle(cu_memory *memory, void *shareable, int kind) {
    *memory = (cu_memory)dup((int)(intptr_t)shareable);
    return kind != CU_HANDLE_POSIX_FD || (int)*memory < 0 ? CU_INVALID_VALUE : 0;
}

/* ---- modules ---- */

/* The next piece up to one of `ends`, cut out of the text; NULL at its end. */
static char *next_piece(char **rest, const char *ends) {
    char *piece = *rest + strspn(*rest, ends);
    size_t n = strcspn(piece, ends);
    *rest = piece + n + (piece[n] != 0);
    piece[n] = 0;
    return n ? piece : NULL;
}

static void read_kernel(char *line, struct cu_function *f) {
    for (char *w; (w = next_piece(&line, " "));) {
        if (!f->name[0])
            snprintf(f->name, sizeof f->name, "%s", w);
        else if (*w == '!')
            f->code = (int)strtol(w + 1, NULL, 10);
        else if (*w == '+')
            snprintf(f->adds_to, sizeof f->adds_to, "%s", w + 1);
        else if (*w == '>')
            f->writes = (int)strtol(w + 1, NULL, 10);
        else if (*w == '=')
            f->local_bytes = (int)strtol(w + 1, NULL, 10);
        else if (f->nparams < MAX_PARAMS)
            f->params[f->nparams++] = (size_t)strtol(w, NULL, 10);
    }
}

static void read_variable(char *line, struct fake_variable *v) {
    char *rest = line;
    snprintf(v->name, sizeof v->name, "%s", next_piece(&rest, " "));
    next_piece(&rest, " "); /* the bank is the ELF file's affair */
    for (char *w; v->n < sizeof v->bytes && (w = next_piece(&rest, " "));)
        v->bytes[v->n++] = (unsigned char)strtol(w, NULL, 16);
}

static struct fake_variable *find_variable(cu_module module, const char *name) {
    for (unsigned i = 0; i < module->nvariables; i++)
        if (strcmp(module->variables[i].name, name) == 0)
            return &module->variables[i];
    return NULL;
}

int cuModuleGetGlobal_v2(cu_address *address, size_t *bytes, cu_module module, const char *name) {
    struct fake_variable *v = find_variable(module, name);
    say("variable %s", name);
    if (!v || fail_of("variable"))
        return CU_NOT_FOUND;
    *address = (cu_address)(uintptr_t)v->bytes;
    *bytes = v->n;
    return 0;
}

int cuModuleLoadData(cu_module *module, const void *image) {
    struct cu_module *m = calloc(1, sizeof *m);
    char text[4096], *rest = text;
    *module = m;
    if (!m)
        return CU_OUT_OF_MEMORY;
    snprintf(text, sizeof text, "%s", (const char *)image + 64);
    if (strncmp(text, "broken", 6) == 0) {
        free(m);
        return CU_NO_BINARY_FOR_GPU;
    }
    for (char *line; m->n < MAX_KERNELS && (line = next_piece(&rest, "\n"));)
        if (*line == '@' && m->nvariables < MAX_VARIABLES) {
            read_variable(line + 1, &m->variables[m->nvariables++]);
        } else {
            m->kernels[m->n].module = m;
            read_kernel(line, &m->kernels[m->n++]);
        }
    say("module %u", m->n);
    return 0;
}
int cuModuleUnload(cu_module module) {
    say("unload");
    free(module);
    return 0;
}
int cuModuleGetFunction(cu_function *function, cu_module module, const char *name) {
    for (unsigned i = 0; i < module->n; i++)
        if (strcmp(module->kernels[i].name, name) == 0) {
            *function = &module->kernels[i];
            return 0;
        }
    return CU_NOT_FOUND;
}
int cuModuleGetFunctionCount(unsigned *count, cu_module module) {
    *count = module->n;
    return 0;
}
int cuModuleEnumerateFunctions(cu_function *functions, unsigned count, cu_module module) {
    for (unsigned i = 0; i < count && i < module->n; i++)
        functions[i] = &module->kernels[i];
    return 0;
}
int cuFuncGetName(const char **name, cu_function function) {
    *name = function->name;
    return 0;
}
int cuFuncLoad(cu_function function) {
    return function ? 0 : CU_INVALID_VALUE;
}
int cuFuncGetAttribute(int *value, int attribute, cu_function function) {
    *value = attribute == CU_FN_MAX_THREADS          ? 512
             : attribute == CU_FN_REGISTERS          ? 40
             : attribute == CU_FN_LOCAL_BYTES        ? function->local_bytes
             : attribute == CU_FN_MAX_DYNAMIC_SHARED ? function->max_dynamic
                                                     : 0;
    return 0;
}
int cuFuncSetAttribute(cu_function function, int attribute, int value) {
    say("function %s attribute %d %d", function->name, attribute, value);
    function->max_dynamic = value;
    return 0;
}
int cuFuncGetParamInfo(cu_function function, size_t index, size_t *offset, size_t *bytes) {
    if (index >= function->nparams)
        return CU_INVALID_VALUE;
    *offset = 0;
    for (size_t i = 0; i < index; i++)
        *offset += function->params[i];
    *bytes = function->params[index];
    return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cu_function function, int threads,
                                                size_t shared) {
    (void)function;
    *blocks = threads && shared ? 1 : 2;
    return 0;
}

static void say_launch(const struct cu_launch_config *l, const struct cu_function *f,
                       void **params) {
    char text[256];
    size_t n = 0;
    text[0] = 0;
    for (size_t i = 0; i < f->nparams && n < sizeof text - 24; i++)
        if (f->params[i] == 4)
            n += (size_t)snprintf(text + n, sizeof text - n, " %d", *(int *)params[i]);
        else
            n +=
                (size_t)snprintf(text + n, sizeof text - n, " %s", f->params[i] == 8 ? "q" : "map");
    say("launch %s %u,%u,%u %u,%u,%u %u%s%s (%s )", f->name, l->grid[0], l->grid[1], l->grid[2],
        l->block[0], l->block[1], l->block[2], l->shared,
        l->nattributes && l->attributes[0].id == CU_LAUNCH_CLUSTER ? " cluster" : "",
        l->nattributes && l->attributes[l->nattributes - 1].id == CU_LAUNCH_COOPERATIVE
            ? " cooperative"
            : "",
        text);
}

int cuLaunchKernelEx(const struct cu_launch_config *config, cu_function function, void **params,
                     void **extra) {
    if (extra || config->stream != &the_stream)
        return CU_INVALID_VALUE;
    say_launch(config, function, params);
    if (function->code == CU_LAUNCH_OUT_OF_RESOURCES || function->code == CU_INVALID_VALUE ||
        function->code == CU_OUT_OF_MEMORY)
        return function->code; /* refused, as against failing while it runs */
    if (function->code)
        the_stream.code = function->code;
    struct fake_variable *v = find_variable(function->module, function->adds_to);
    if (v)
        v->bytes[0]++;
    if (function->writes) {
        uint64_t at;
        memcpy(&at, params[function->writes - 1], sizeof at);
        ++*(unsigned char *)(uintptr_t)at;
    }
    return 0;
}
int cuTensorMapEncodeTiled(struct cu_tensor_map *map, int type, uint32_t rank, void *address,
                           const uint64_t *extents, const uint64_t *strides, const uint32_t *box,
                           const uint32_t *steps, int interleave, int swizzle, int l2_promotion,
                           int fill_kind) {
    if (!address || (uintptr_t)map % 64 || rank < 1 || rank > 5 || interleave || !steps[0])
        return CU_INVALID_VALUE;
    memset(map, 0xab, sizeof *map);
    say("map type %d rank %u extent %llu stride %llu box %u swizzle %d promotion %d fill %d", type,
        rank, (unsigned long long)extents[0], (unsigned long long)(rank > 1 ? strides[0] : 0),
        box[0], swizzle, l2_promotion, fill_kind);
    return 0;
}

/* ---- streams and events ---- */

int cuStreamCreate(cu_stream *stream, unsigned flags) {
    *stream = &the_stream;
    return flags == CU_STREAM_NON_BLOCKING ? 0 : CU_INVALID_VALUE;
}
int cuStreamDestroy_v2(cu_stream stream) {
    (void)stream;
    return 0;
}
int cuStreamSynchronize(cu_stream stream) {
    (void)stream;
    say("sync");
    return pending();
}
int cuEventCreate(cu_event *event, unsigned flags) {
    *event = calloc(1, sizeof **event);
    (*event)->number = the_stream.events++;
    return flags ? CU_INVALID_VALUE : 0;
}
int cuEventDestroy_v2(cu_event event) {
    free(event);
    return 0;
}
int cuEventRecord(cu_event event, cu_stream stream) {
    struct timespec t;
    (void)stream;
    clock_gettime(CLOCK_MONOTONIC, &t);
    event->at = 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
    say("event %d", event->number);
    return 0;
}
int cuEventQuery(cu_event event) {
    (void)event;
    return 0;
}
int cuEventSynchronize(cu_event event) {
    say("wait %d", event->number);
    return pending();
}
int cuEventElapsedTime(float *ms, cu_event start, cu_event end) {
    *ms = fail_of("clock") ? 1000 : (float)(end->at - start->at);
    return 0;
}
