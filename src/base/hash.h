/* SHA-256 (libcrypto). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

struct sha256 {
    void *ctx;
};
typedef struct {
    uint8_t b[32];
} digest;

void sha256_init(struct sha256 *h);
void sha256_put(struct sha256 *h, const void *p, size_t n);
void sha256_put_str(struct sha256 *h, str s); /* length first, so that pieces cannot be confused */
digest sha256_end(struct sha256 *h);          /* releases */
digest sha256_of(str s);
void digest_hex(digest d, char out[65]);

#endif
