/* The driver API's types, enumerations and layouts that we use, each once, with the names we use
 * them by. The build needs no CUDA headers, and the driver's binary interface does not change: a
 * layout is fixed by the version of the entry that takes it (cuda_api.def names those). Sizes and
 * offsets are held against NVIDIA's in tests/device/test_cuda.c. */
#ifndef DEVICE_CUDA_TYPES_H
#define DEVICE_CUDA_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* Handles are pointers that nobody looks through; a device address is 64 bits on every host. */
typedef struct cu_context *cu_context;
typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;
typedef struct cu_event *cu_event;
typedef uint64_t cu_address;
typedef uint64_t cu_memory; /* CUmemGenericAllocationHandle */

/* CUresult, where a code is treated apart from the rest. */
enum cu_code {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_DEVICE_UNAVAILABLE = 46,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_NO_BINARY_FOR_GPU = 209,
    CU_ECC_UNCORRECTABLE = 214,
    CU_INVALID_PTX = 218,
    CU_NVLINK_UNCORRECTABLE = 220,
    CU_UNSUPPORTED_PTX_VERSION = 222,
    CU_CONTAINED = 226,
    CU_INVALID_SOURCE = 300,
    CU_SYMBOL_NOT_FOUND = 302,
    CU_OPERATING_SYSTEM = 304,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_LAUNCH_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_HARDWARE_STACK_ERROR = 714,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_INVALID_ADDRESS_SPACE = 717,
    CU_INVALID_PC = 718,
    CU_LAUNCH_FAILED = 719,
    CU_COOPERATIVE_TOO_LARGE = 720,
    CU_TENSOR_MEMORY_LEAK = 721,
    CU_NOT_PERMITTED = 800,
    CU_NOT_SUPPORTED = 801,
    CU_SYSTEM_NOT_READY = 802,
    CU_SYSTEM_DRIVER_MISMATCH = 803,
    CU_EXTERNAL_DEVICE = 911,
    CU_INVALID_CLUSTER_SIZE = 912,
    CU_UNKNOWN = 999,
};

enum cu_device_attribute {
    CU_MAX_THREADS_BLOCK = 1,
    CU_CLOCK_KHZ = 13,
    CU_SMS = 16,
    CU_RUN_TIME_LIMIT = 17,
    CU_COMPUTE_MODE = 20,
    CU_MEMORY_CLOCK_KHZ = 36,
    CU_MEMORY_BUS_BITS = 37,
    CU_L2_BYTES = 38,
    CU_MAX_THREADS_SM = 39,
    CU_CC_MAJOR = 75,
    CU_CC_MINOR = 76,
    CU_SHARED_SM = 81,
    CU_REGISTERS_SM = 82,
    CU_FP32_TO_FP64 = 87,
    CU_COOPERATIVE_LAUNCH = 95,
    CU_SHARED_BLOCK_OPTIN = 97,
    CU_VMM = 102,
    CU_VMM_POSIX_FD = 103,
    CU_MAX_BLOCKS_SM = 106,
    CU_MAX_PERSISTING_L2 = 108,
    CU_SHARED_RESERVED = 111,
    CU_CLUSTER_LAUNCH = 120,
    CU_TENSOR_MAP_ACCESS = 127,
    CU_MULTICAST = 132,
};

enum cu_compute_mode { CU_MODE_DEFAULT = 0, CU_MODE_PROHIBITED = 2, CU_MODE_EXCLUSIVE = 3 };

enum cu_context_flag { CU_SCHED_SPIN = 1, CU_SCHED_YIELD = 2, CU_SCHED_BLOCKING = 4 };

enum cu_limit {
    CU_LIMIT_STACK = 0,
    CU_LIMIT_PRINTF_FIFO = 1,
    CU_LIMIT_MALLOC_HEAP = 2,
    CU_LIMIT_PERSISTING_L2 = 6,
};

enum cu_stream_flag { CU_STREAM_NON_BLOCKING = 1 };
enum cu_event_flag { CU_EVENT_DEFAULT = 0, CU_EVENT_BLOCKING = 1, CU_EVENT_NO_TIMING = 2 };

enum cu_function_attribute {
    CU_FN_MAX_THREADS = 0,
    CU_FN_SHARED_STATIC = 1,
    CU_FN_LOCAL_BYTES = 3,
    CU_FN_REGISTERS = 4,
    CU_FN_MAX_DYNAMIC_SHARED = 8,
};

/* ---- memory ---- */

enum { CU_LOCATION_DEVICE = 1, CU_ALLOCATION_PINNED = 1, CU_HANDLE_POSIX_FD = 1 };
enum { CU_GRANULARITY_MINIMUM = 0 };
enum cu_access { CU_ACCESS_NONE = 0, CU_ACCESS_READ = 1, CU_ACCESS_READ_WRITE = 3 };

struct cu_location {
    int type, id;
};

struct cu_memory_prop {
    int type;
    int handle_types;
    struct cu_location location;
    void *win32;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};

struct cu_access_desc {
    struct cu_location location;
    int flags;
};

struct cu_uuid {
    unsigned char bytes[16];
};

/* ---- launches ---- */

enum cu_launch_attribute_id { CU_LAUNCH_COOPERATIVE = 2, CU_LAUNCH_CLUSTER = 4 };

struct cu_launch_attribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        unsigned cluster[3];
    } value;
};

struct cu_launch_config {
    unsigned grid[3], block[3], shared;
    cu_stream stream;
    struct cu_launch_attribute *attributes;
    unsigned nattributes;
};

/* ---- tensor maps ---- */

struct cu_tensor_map {
    _Alignas(128) uint64_t opaque[16];
};

enum cu_tensor_map_type {
    CU_MAP_U8 = 0,
    CU_MAP_I32 = 3,
    CU_MAP_I64 = 5,
    CU_MAP_F16 = 6,
    CU_MAP_F32 = 7,
    CU_MAP_F64 = 8,
    CU_MAP_BF16 = 9,
};
enum { CU_MAP_NO_INTERLEAVE = 0, CU_MAP_L2_PROMOTION_128B = 2 };
enum cu_tensor_map_swizzle { CU_SWIZZLE_NONE, CU_SWIZZLE_32, CU_SWIZZLE_64, CU_SWIZZLE_128 };
enum cu_tensor_map_fill { CU_FILL_ZERO, CU_FILL_NAN };

#endif
