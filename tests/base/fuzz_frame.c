/* A stream of frames as a peer might send it: the first byte is the noise that is allowed. */
#include "base/frame.h"
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    int fd = memfd_create("frames", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        return 0;
    lseek(fd, 0, SEEK_SET);
    size_t noise = data[0];
    struct frame f;
    struct err err;
    while (frame_read(fd, noise, &f, &err) == 1) {
        BUG_IF(!f.head || f.nfds || f.blob.p[f.blob.n] != 0);
        frame_release(&f);
        noise = 0;
    }
    close(fd);
    return 0;
}
