/* Opening the driver, its facts in one struct, and its error codes in our words. */
#include "device/cuda.h"

#include "base/arena.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ---- */

bool cuda_fail(const struct cuda *c, struct err *err, int code, const char *fmt, ...) {
    const char *name = NULL, *text = NULL;
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (c->error_name && c->error_name(code, &name) == CU_OK && name &&
        c->error_string(code, &text) == CU_OK && text)
        return err_set(err, ERR_ENV, "%s: %s (%d): %s", what, name, code, text);
    return err_set(err, ERR_ENV, "%s: CUDA error %d", what, code);
}

bool cuda_try(const struct cuda *c, int code, struct err *err, const char *what) {
    return code == CU_OK || cuda_fail(c, err, code, "%s", what);
}

enum verdict cuda_verdict(int code) {
    switch (code) {
    case CU_ILLEGAL_ADDRESS:
        return VERDICT_OUT_OF_BOUNDS;
    case CU_LAUNCH_TIMEOUT:
        return VERDICT_TIMEOUT;
    case CU_OUT_OF_MEMORY:
        return VERDICT_OUT_OF_MEMORY;
    case CU_INVALID_VALUE:
    case CU_LAUNCH_OUT_OF_RESOURCES:
    case CU_COOPERATIVE_TOO_LARGE:
    case CU_INVALID_CLUSTER_SIZE:
    case CU_NOT_FOUND:
    case CU_NOT_PERMITTED:
        return VERDICT_LAUNCH_ERROR;
    case CU_INVALID_IMAGE:
    case CU_NO_BINARY_FOR_GPU:
    case CU_INVALID_PTX:
    case CU_UNSUPPORTED_PTX_VERSION:
    case CU_INVALID_SOURCE:
    case CU_SYMBOL_NOT_FOUND:
    case CU_NOT_SUPPORTED:
        return VERDICT_UNSUPPORTED;
    case CU_ASSERT:
    case CU_HARDWARE_STACK_ERROR:
    case CU_ILLEGAL_INSTRUCTION:
    case CU_MISALIGNED_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
    case CU_INVALID_PC:
    case CU_LAUNCH_FAILED:
    case CU_TENSOR_MEMORY_LEAK:
    case CU_UNKNOWN: /* what the driver cannot name, a kernel brought about */
        return VERDICT_CRASH;
    default:
        return VERDICT_ACCEPTED;
    }
}

bool cuda_sticky(int code) {
    switch (code) {
    case CU_ECC_UNCORRECTABLE:
    case CU_NVLINK_UNCORRECTABLE:
    case CU_CONTAINED:
    case CU_ILLEGAL_ADDRESS:
    case CU_LAUNCH_TIMEOUT:
    case CU_ASSERT:
    case CU_HARDWARE_STACK_ERROR:
    case CU_ILLEGAL_INSTRUCTION:
    case CU_MISALIGNED_ADDRESS:
    case CU_INVALID_ADDRESS_SPACE:
    case CU_INVALID_PC:
    case CU_LAUNCH_FAILED:
    case CU_TENSOR_MEMORY_LEAK:
    case CU_EXTERNAL_DEVICE:
    case CU_UNKNOWN:
        return true;
    default:
        return false;
    }
}

/* ---- opening ---- */

static bool find_entries(struct cuda *c, struct err *err) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return err_set(err, ERR_ENV, "no NVIDIA driver: libcuda.so.1 cannot be loaded");
    const struct {
        const char *name;
        void **at;
    } entries[] = {
#define CUDA_API(member, name, params) {#name, (void **)&c->member},
#include "device/cuda_api.def"
#undef CUDA_API
    };
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        *entries[i].at = dlsym(lib, entries[i].name);
        if (!*entries[i].at)
            return err_set(err, ERR_ENV,
                           "the NVIDIA driver is too old: it has no %s; install one for CUDA 13 "
                           "(580 or newer)",
                           entries[i].name);
    }
    return true;
}

static bool init(struct cuda *c, struct err *err) {
    int code = c->init(0);
    switch (code) {
    case CU_OK:
        return true;
    case CU_NO_DEVICE:
        return err_set(err, ERR_ENV, "a driver, but no GPU that it shows to this process");
    case CU_OPERATING_SYSTEM:
        return cuda_fail(c, err, code,
                         "the driver does not initialise (are /dev/nvidia* and /proc open to us?)");
    case CU_SYSTEM_NOT_READY:
    case CU_SYSTEM_DRIVER_MISMATCH:
        return cuda_fail(c, err, code,
                         "the driver does not initialise (kernel module and library must be of one "
                         "version: reboot after an update)");
    default:
        return cuda_fail(c, err, code, "the driver does not initialise");
    }
}

static int attribute(const struct cuda *c, enum cu_device_attribute which) {
    int value = 0;
    return c->device_attribute(&value, which, c->device) == CU_OK && value > 0 ? value : 0;
}

static void format_uuid(const struct cu_uuid *u, char out[48]) {
    const unsigned char *b = u->bytes;
    snprintf(out, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static void read_attributes(const struct cuda *c, struct cuda_facts *f) {
    f->cc_major = attribute(c, CU_CC_MAJOR);
    f->cc_minor = attribute(c, CU_CC_MINOR);
    f->sms = attribute(c, CU_SMS);
    f->clock_khz = attribute(c, CU_CLOCK_KHZ);
    f->memory_clock_khz = attribute(c, CU_MEMORY_CLOCK_KHZ);
    f->memory_bus_bits = attribute(c, CU_MEMORY_BUS_BITS);
    f->max_threads_sm = attribute(c, CU_MAX_THREADS_SM);
    f->max_blocks_sm = attribute(c, CU_MAX_BLOCKS_SM);
    f->max_threads_block = attribute(c, CU_MAX_THREADS_BLOCK);
    f->registers_sm = attribute(c, CU_REGISTERS_SM);
    f->fp32_to_fp64 = attribute(c, CU_FP32_TO_FP64);
    f->l2_bytes = (size_t)attribute(c, CU_L2_BYTES);
    f->persisting_l2_bytes = (size_t)attribute(c, CU_MAX_PERSISTING_L2);
    f->shared_sm = (size_t)attribute(c, CU_SHARED_SM);
    f->shared_block = (size_t)attribute(c, CU_SHARED_BLOCK_OPTIN);
    f->shared_reserved = (size_t)attribute(c, CU_SHARED_RESERVED);
    f->compute_mode = (enum cu_compute_mode)attribute(c, CU_COMPUTE_MODE);
    f->run_time_limit = attribute(c, CU_RUN_TIME_LIMIT);
    f->vmm = attribute(c, CU_VMM);
    f->vmm_fd = attribute(c, CU_VMM_POSIX_FD);
    f->cooperative = attribute(c, CU_COOPERATIVE_LAUNCH);
    f->cluster = attribute(c, CU_CLUSTER_LAUNCH);
    f->tensor_map = attribute(c, CU_TENSOR_MAP_ACCESS);
    f->multicast = attribute(c, CU_MULTICAST);
}

static bool read_facts(struct cuda *c, int ordinal, struct err *err) {
    struct cuda_facts *f = &c->facts;
    struct cu_uuid uuid;
    f->ordinal = ordinal;
    if (!cuda_try(c, c->driver_version(&f->driver), err, "the driver's version") ||
        !cuda_try(c, c->device_count(&f->count), err, "count the GPUs"))
        return false;
    if (!f->count)
        return err_set(err, ERR_ENV, "a driver, but no GPU that it shows to this process");
    if (ordinal < 0 || ordinal >= f->count)
        return err_set(err, ERR_INPUT, "no GPU %d: the driver shows %d, counted from 0", ordinal,
                       f->count);
    if (!cuda_try(c, c->device_get(&c->device, ordinal), err, "find the GPU") ||
        !cuda_try(c, c->device_name(f->name, sizeof f->name, c->device), err, "its name") ||
        !cuda_try(c, c->device_uuid(&uuid, c->device), err, "its uuid") ||
        !cuda_try(c, c->device_memory(&f->memory_bytes, c->device), err, "its memory"))
        return err_wrap(err, "GPU %d", ordinal);
    format_uuid(&uuid, f->uuid);
    read_attributes(c, f);
    return true;
}

bool cuda_load(struct cuda *c, int ordinal, struct err *err) {
    memset(c, 0, sizeof *c);
    return find_entries(c, err) && init(c, err) && read_facts(c, ordinal, err);
}

/* One process at a time is not enough: the judge and the device have a context each. */
static bool refuse_mode(const struct cuda *c, int code, struct err *err) {
    const struct cuda_facts *f = &c->facts;
    if (f->compute_mode == CU_MODE_PROHIBITED)
        return cuda_fail(c, err, code,
                         "GPU %d is in compute mode 'prohibited' (nvidia-smi -i %d -c DEFAULT "
                         "changes that)",
                         f->ordinal, f->ordinal);
    return cuda_fail(c, err, code,
                     "GPU %d is in compute mode 'exclusive process' and in use: the judge and the "
                     "device need a context each (nvidia-smi -i %d -c DEFAULT changes that)",
                     f->ordinal, f->ordinal);
}

bool cuda_open(struct cuda *c, int ordinal, struct err *err) {
    if (!cuda_load(c, ordinal, err))
        return false;
    int code = c->context_flags(c->device, CU_SCHED_SPIN);
    if (code == CU_OK)
        code = c->context_retain(&c->context, c->device);
    if (code == CU_OK)
        code = c->context_set(c->context);
    if (code == CU_OK)
        code = c->stream_create(&c->stream, CU_STREAM_NON_BLOCKING);
    if (code == CU_OK)
        return true;
    if (c->facts.compute_mode != CU_MODE_DEFAULT)
        return refuse_mode(c, code, err);
    return cuda_fail(c, err, code, "GPU %d: no context", ordinal);
}

size_t cuda_free_bytes(const struct cuda *c) {
    size_t left = 0, total = 0;
    return c->memory_info(&left, &total) == CU_OK ? left : 0;
}

/* ---- modules and launches ---- */

/* The driver reads the image's own length from its headers, at the alignment of an ELF file. */
int cuda_module_load(const struct cuda *c, str cubin, cu_module *out) {
    enum { ELF_HEADER = 64 };
    if (cubin.n < ELF_HEADER || memcmp(cubin.p, "\177ELF", 4) != 0)
        return CU_INVALID_IMAGE;
    char *image = mem_alloc(cubin.n);
    memcpy(image, cubin.p, cubin.n);
    int code = c->module_load(out, image);
    mem_free(image);
    return code;
}

int cuda_launch(const struct cuda *c, const struct cuda_launch *l) {
    struct cu_launch_attribute attributes[2] = {0};
    struct cu_launch_config config = {
        .shared = (unsigned)l->shared, .stream = c->stream, .attributes = attributes};
    unsigned cluster = 1;
    for (int i = 0; i < 3; i++) {
        config.grid[i] = l->grid[i] ? l->grid[i] : 1;
        config.block[i] = l->block[i] ? l->block[i] : 1;
        cluster *= l->cluster[i] ? l->cluster[i] : 1;
    }
    if (cluster > 1) {
        struct cu_launch_attribute *a = &attributes[config.nattributes++];
        a->id = CU_LAUNCH_CLUSTER;
        for (int i = 0; i < 3; i++)
            a->value.cluster[i] = l->cluster[i] ? l->cluster[i] : 1;
    }
    if (l->cooperative) {
        struct cu_launch_attribute *a = &attributes[config.nattributes++];
        a->id = CU_LAUNCH_COOPERATIVE;
        a->value.cooperative = 1;
    }
    return c->launch(&config, l->function, l->params, NULL);
}

/* ---- facts on their way ---- */

_Static_assert(sizeof(enum cu_compute_mode) == sizeof(int), "compute_mode travels as an int");
#define FIELDS_AS_TABLES
#include "base/fields_as.h"

BEGIN(cuda_facts)
CHARS(name)
CHARS(uuid)
RANGE(ordinal, 0, INT32_MAX)
RANGE(count, 0, INT32_MAX)
RANGE(driver, 0, INT32_MAX)
RANGE(cc_major, 0, INT32_MAX)
RANGE(cc_minor, 0, INT32_MAX)
RANGE(sms, 0, INT32_MAX)
RANGE(clock_khz, 0, INT32_MAX)
RANGE(memory_clock_khz, 0, INT32_MAX)
RANGE(memory_bus_bits, 0, INT32_MAX)
RANGE(max_threads_sm, 0, INT32_MAX)
RANGE(max_blocks_sm, 0, INT32_MAX)
RANGE(max_threads_block, 0, INT32_MAX)
RANGE(registers_sm, 0, INT32_MAX)
RANGE(fp32_to_fp64, 0, INT32_MAX)
FIELD(SIZE, memory_bytes, )
FIELD(SIZE, memory_free, )
FIELD(SIZE, l2_bytes, )
FIELD(SIZE, persisting_l2_bytes, )
FIELD(SIZE, shared_sm, )
FIELD(SIZE, shared_block, )
FIELD(SIZE, shared_reserved, )
RANGE(compute_mode, 0, INT32_MAX)
FIELD(FLAG, run_time_limit, )
FIELD(FLAG, vmm, )
FIELD(FLAG, vmm_fd, )
FIELD(FLAG, cooperative, )
FIELD(FLAG, cluster, )
FIELD(FLAG, tensor_map, )
FIELD(FLAG, multicast, )
END(cuda_facts)
#include "base/fields_end.h"
