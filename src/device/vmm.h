/* Device memory that two processes share: physical memory behind a file descriptor, mapped by each
 * into its own address space, with nothing mapped before and behind, so that what walks off an end
 * faults (CUDA error 700) instead of finding a neighbour.
 *
 * The judge creates a buffer and exports it; the device imports the descriptor. The memory lives as
 * long as one of the two holds it: a process that dies gives up its part, and the last one (a
 * descriptor in flight counts as a holder) gives it back to the GPU.
 *
 *     reserved: [ guard, of random size | mapped: whole granules, 2 MiB as a rule | guard ]
 *
 * A buffer says nothing about what lies in it; content is placed by the judge, at its end. */
#ifndef DEVICE_VMM_H
#define DEVICE_VMM_H

#include "device/cuda.h"

struct vmm_buffer {
    cu_address address; /* of the first mapped byte; 0: none */
    size_t mapped;      /* bytes, a multiple of the granularity */
    cu_memory memory;
    cu_address reserved_at;
    size_t reserved;
};

bool vmm_granularity(const struct cuda *c, size_t *bytes, struct err *err);
/* At least `bytes`, mapped for reading and writing. Fails with *full set where the GPU has not that
 * much left. full may be NULL. */
bool vmm_create(const struct cuda *c, size_t bytes, struct vmm_buffer *out, bool *full,
                struct err *err);
/* A descriptor of it, close-on-exec, for the caller to close. */
bool vmm_export(const struct cuda *c, const struct vmm_buffer *b, int *fd, struct err *err);
/* `mapped` is what the creator's buffer says. The descriptor stays the caller's and may be closed
 * afterwards. Read-only memory faults when it is written. */
bool vmm_import(const struct cuda *c, int fd, size_t mapped, bool read_only, struct vmm_buffer *out,
                struct err *err);
/* Unmaps and gives up; b becomes zero. Nothing may be running that uses it. */
void vmm_release(const struct cuda *c, struct vmm_buffer *b);

#endif
