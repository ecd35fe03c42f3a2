/* ${title}
 *
 * ${origin}
 *
 * A library of one module, whose tasks run in their order: link ${name}.c and libcuda (-lcuda),
 * nothing else. It allocates nothing, starts no thread and never waits for the GPU, so that calls may
 * be captured into a CUDA graph. Every function works in the CUDA context that is current. Results of
 * type int are CUresult: 0 is success.
 *
 *     ${name}_op op;
 *     ${name}_dims dims = {${example_dims}};
 *     ${name}_tensors tensors = {…};
 *     if (${name}_load(&op) == 0 && ${name}_admits(&op, &dims)) {
 *         size_t bytes = ${name}_workspace_bytes(&op, &dims);  // of device memory, yours to allocate
//% if prepares
 *         size_t kept = ${name}_prepared_bytes(&op, &dims);     // and so is this
 *         ${name}_prepare(&op, &dims, &tensors, prepared, kept, stream);  // whenever parameters change
 *         ${name}_forward(&op, &dims, &tensors, prepared, workspace, bytes, stream);
//% else
 *         ${name}_forward(&op, &dims, &tensors, workspace, bytes, stream);
//% end
 *     }
 */
#ifndef CUTEPILOT_${guard}_H
#define CUTEPILOT_${guard}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes, as the module names them. */
typedef struct ${name}_dims {
//% each dims
    int64_t ${dim};
//% end
//% if not dims
    int64_t none; /* the module has no dimension */
//% end
} ${name}_dims;

/* Addresses in device memory, dense, outermost dimension first, aligned to ${align} bytes. */
typedef struct ${name}_tensors {
//% each tensors
    ${const}void *${tensor}; /* ${what} */
//% end
} ${name}_tensors;

/* The loaded kernels of each task; their content is the library's. One a context; any number of
 * threads may run it. */
//% each parts
struct ${op}_op {
    void *module[${nkernels}];
    void *function[${nfunctions}];
};
//% end
typedef struct ${name}_op {
//% each parts
    struct ${op}_op part_${part}; /* ${what} */
//% end
} ${name}_op;

/* Loads the kernels that were made for the current device. 209 (CUDA_ERROR_NO_BINARY_FOR_GPU): a task
 * has none for it. */
int ${name}_load(${name}_op *op);
void ${name}_unload(${name}_op *op);

/* 1: there are kernels for these sizes. 0: there are not; run something else. */
int ${name}_admits(const ${name}_op *op, const ${name}_dims *dims);

/* Bytes of device memory that a run needs beside its tensors, for what flows between tasks and for
 * what each needs itself, at an address that is a multiple of 256; its content may be anything before
 * and is undefined after. Runs that overlap need one each. */
size_t ${name}_workspace_bytes(const ${name}_op *op, const ${name}_dims *dims);

//% if prepares
/* Bytes of device memory in which parameters are kept in the form that the kernels read, at an
 * address that is a multiple of 256. 0: the kernels for these sizes need none. */
size_t ${name}_prepared_bytes(const ${name}_op *op, const ${name}_dims *dims);

/* Queues what has to be done once: before the first run, and again whenever the content or the
 * address of a parameter has changed. What it fills serves any number of runs with the same
 * sizes and parameters, also at the same time; of the tensors only parameters are looked at. Runs
 * must come after it, by the same stream or by an event. */
int ${name}_prepare(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
        void *prepared, size_t prepared_bytes, void *stream);

//% end
/* Queues all tasks, in their order, on a stream (a CUstream; NULL: the default stream). 1
 * (CUDA_ERROR_INVALID_VALUE): sizes that are not admitted, a workspace that is too small, or an
 * address that is NULL or not aligned; tasks before the one that refused it may be queued then. */
int ${name}_forward(const ${name}_op *op, const ${name}_dims *dims, const ${name}_tensors *tensors,
//% if prepares
        const void *prepared, void *workspace, size_t workspace_bytes, void *stream);
//% else
        void *workspace, size_t workspace_bytes, void *stream);
//% end

#ifdef __cplusplus
}
#endif
#endif
