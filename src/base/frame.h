/* Frames: the messages between roles. A frame is a type, a JSON object and a blob of bytes, with
 * descriptors beside it where the transport is an AF_UNIX socket.
 *
 *     u32 magic "CPF1" | u32 type | u32 json bytes | u32 descriptors | u64 blob bytes
 *
 * (little endian), then the JSON, then the blob. JSON is at most 16 MiB, a blob at most 256 MiB, at
 * most 64 descriptors; a larger header is a broken peer. Types are numbers of the protocol that is
 * spoken (device/wire.h, kernel/compile.h). A reader given `noise` skips up to that many bytes
 * before the first magic (a login banner behind ssh or srun). */
#ifndef BASE_FRAME_H
#define BASE_FRAME_H

#include "base/json.h"
#include "base/loop.h"

#define FRAME_MAX_FDS 64

struct frame {
    uint32_t type;
    json *head;             /* owned; never NULL after reading, {} where the sender gave NULL */
    str blob;               /* owned, heap */
    int fds[FRAME_MAX_FDS]; /* owned */
    size_t nfds;
};
void frame_release(struct frame *f); /* frees, closes the descriptors still ≥ 0; f may be zeroed */

/* Blocking, for roles that serve one request after the other. frame_read returns 1 for a frame, 0
 * at end of file between frames, -1 with err otherwise. head is borrowed and may be NULL. */
int frame_read(int fd, size_t noise, struct frame *out, struct err *err);
bool frame_write(int fd, uint32_t type, const json *head, str blob, const int *fds, size_t nfds,
                 struct err *err);

/* Asynchronous, on a loop: queued writes, a callback per frame. The callback owns the frame. Once
 * the peer is gone or broke the protocol, `closed` is called once, from the loop (never from
 * inside conn_send), and nothing further is delivered. */
struct conn;
typedef void conn_frame_fn(void *ctx, struct frame *f);
typedef void conn_closed_fn(void *ctx, const struct err *why); /* why->kind 0: end of file */
/* Takes the descriptors over (rfd == wfd for a socket). */
struct conn *conn_new(struct loop *l, int rfd, int wfd, size_t noise, conn_frame_fn *frame,
                      conn_closed_fn *closed, void *ctx, struct err *err);
void conn_free(struct conn *c); /* closes; unsent bytes are lost; from a callback too */
void conn_send(struct conn *c, uint32_t type, const json *head, str blob, const int *fds,
               size_t nfds); /* copies all, duplicates the descriptors */
/* The head as text, a JSON object or empty. */
void conn_send_text(struct conn *c, uint32_t type, str head, str blob, const int *fds, size_t nfds);
size_t conn_pending(const struct conn *c); /* bytes not yet written */
/* The start of what came before the first frame, printable; until it is closed. */
str conn_said(const struct conn *c);

#endif
