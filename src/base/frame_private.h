/* What the blocking (frame.c) and the asynchronous half (conn.c) share: the header, the reader that
 * takes a frame in as many pieces as it comes, and one sending call. Private to those two. */
#ifndef BASE_FRAME_PRIVATE_H
#define BASE_FRAME_PRIVATE_H

#include "base/frame.h"
#include <sys/types.h>

#define FRAME_HEADER_BYTES 24
#define FRAME_MAX_JSON     ((size_t)16 << 20)
#define FRAME_MAX_BLOB     ((size_t)256 << 20)

/* Reads never go past the end of the frame, so nothing has to be kept for the next one, and memory
 * grows with the bytes that came, not with what the header promises. */
struct frame_reader {
    size_t noise;   /* bytes that may still be skipped before the magic */
    bool skipped;   /* some were */
    char said[120]; /* the start of what was skipped: often the reason why no frame came */
    size_t nsaid;
    unsigned char header[FRAME_HEADER_BYTES];
    size_t have; /* bytes of the part being read: header, JSON, blob */
    enum { PART_HEADER, PART_JSON, PART_BLOB } part;
    size_t json_bytes, blob_bytes, promised_fds;
    char *bytes; /* of the JSON, then of the blob */
    size_t cap;
    struct frame frame; /* what is complete of it */
};

enum frame_step {
    STEP_MORE,  /* some bytes came */
    STEP_FRAME, /* a frame is complete and was moved to out */
    STEP_WAIT,  /* nothing there now */
    STEP_END,   /* end of file between frames */
    STEP_BROKEN /* err says why */
};

void frame_reader_init(struct frame_reader *r, size_t noise);
void frame_reader_release(struct frame_reader *r);
/* One receiving call. */
enum frame_step frame_reader_step(struct frame_reader *r, int fd, bool is_socket, struct frame *out,
                                  struct err *err);

bool frame_limits_check(size_t json_bytes, size_t blob_bytes, size_t nfds, struct err *err);
void frame_header_put(unsigned char header[FRAME_HEADER_BYTES], uint32_t type, size_t json_bytes,
                      size_t nfds, size_t blob_bytes);
bool fd_is_socket(int fd);
/* One sending call, without SIGPIPE. fds go with its first byte. -1 and errno as of write. */
struct iovec;
ssize_t frame_send_some(int fd, bool is_socket, struct iovec *iov, size_t niov, const int *fds,
                        size_t nfds);

#endif
