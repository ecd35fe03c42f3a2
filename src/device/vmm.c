/* Reserving, mapping and handing over of device memory; see vmm.h for the picture. */
#include "device/vmm.h"

#include "base/checked.h"
#include "base/rng.h"

#include <fcntl.h>
#include <string.h>

/* Address space costs nothing; an index that is off by a row should meet nobody. */
#define GUARD_BYTES (UINT64_C(1) << 30)
#define PLACE_BYTES (UINT64_C(16) << 30) /* anywhere within that */

static struct cu_memory_prop prop_of(const struct cuda *c) {
    return (struct cu_memory_prop){
        .type = CU_ALLOCATION_PINNED,
        .handle_types = CU_HANDLE_POSIX_FD,
        .location = {.type = CU_LOCATION_DEVICE, .id = c->device},
    };
}

bool vmm_granularity(const struct cuda *c, size_t *bytes, struct err *err) {
    struct cu_memory_prop prop = prop_of(c);
    if (!c->facts.vmm || !c->facts.vmm_fd)
        return err_set(err, ERR_ENV,
                       "GPU %d cannot share memory by descriptors (virtual memory management is "
                       "not supported here)",
                       c->facts.ordinal);
    return cuda_try(c, c->vmm_granularity(bytes, &prop, CU_GRANULARITY_MINIMUM), err,
                    "granularity of device memory");
}

/* Gives b->memory its addresses. Reservations lie side by side, so without a random place in each a
 * kernel could tell from its own pointers where those of its other runs are. */
static int map(const struct cuda *c, struct vmm_buffer *b, size_t granule, enum cu_access access) {
    struct cu_access_desc desc = {{CU_LOCATION_DEVICE, c->device}, access};
    uint64_t secret;
    if (!rng_secret(&secret))
        return CU_OPERATING_SYSTEM;
    b->reserved = b->mapped + 2 * GUARD_BYTES + PLACE_BYTES;
    int code = c->vmm_reserve(&b->reserved_at, b->reserved, 0, 0, 0);
    if (code != CU_OK) {
        b->reserved = 0;
        return code;
    }
    cu_address at = b->reserved_at + GUARD_BYTES + secret % (PLACE_BYTES / granule) * granule;
    code = c->vmm_map(at, b->mapped, 0, b->memory, 0);
    if (code != CU_OK)
        return code;
    b->address = at;
    return c->vmm_access(at, b->mapped, &desc, 1);
}

bool vmm_create(const struct cuda *c, size_t bytes, struct vmm_buffer *out, bool *full,
                struct err *err) {
    struct cu_memory_prop prop = prop_of(c);
    size_t granule, padded;
    memset(out, 0, sizeof *out);
    if (full)
        *full = false;
    if (!vmm_granularity(c, &granule, err))
        return false;
    if (!add_size(bytes ? bytes : 1, granule - 1, &padded) || padded > SIZE_MAX / 4)
        return err_set(err, ERR_ENV, "a buffer of %zu bytes", bytes);
    out->mapped = padded / granule * granule;
    int code = c->vmm_create(&out->memory, out->mapped, &prop, 0);
    if (code == CU_OK)
        code = map(c, out, granule, CU_ACCESS_READ_WRITE);
    if (code == CU_OK)
        return true;
    if (full)
        *full = code == CU_OUT_OF_MEMORY;
    cuda_fail(c, err, code, "device memory of %zu bytes", out->mapped);
    vmm_release(c, out);
    return false;
}

bool vmm_export(const struct cuda *c, const struct vmm_buffer *b, int *fd, struct err *err) {
    *fd = -1;
    if (!cuda_try(c, c->vmm_export(fd, b->memory, CU_HANDLE_POSIX_FD, 0), err,
                  "a descriptor of device memory"))
        return false;
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return true;
}

bool vmm_import(const struct cuda *c, int fd, size_t mapped, bool read_only, struct vmm_buffer *out,
                struct err *err) {
    size_t granule;
    memset(out, 0, sizeof *out);
    if (!vmm_granularity(c, &granule, err))
        return false;
    if (!mapped || mapped % granule)
        return err_set(err, ERR_ENV, "shared device memory of %zu bytes: no multiple of %zu",
                       mapped, granule);
    out->mapped = mapped;
    int code = c->vmm_import(&out->memory, (void *)(intptr_t)fd, CU_HANDLE_POSIX_FD);
    if (code == CU_OK)
        code = map(c, out, granule, read_only ? CU_ACCESS_READ : CU_ACCESS_READ_WRITE);
    if (code == CU_OK)
        return true;
    cuda_fail(c, err, code, "shared device memory of %zu bytes", mapped);
    vmm_release(c, out);
    return false;
}

void vmm_release(const struct cuda *c, struct vmm_buffer *b) {
    if (b->address)
        c->vmm_unmap(b->address, b->mapped);
    if (b->reserved)
        c->vmm_unreserve(b->reserved_at, b->reserved);
    if (b->memory)
        c->vmm_release(b->memory);
    memset(b, 0, sizeof *b);
}
