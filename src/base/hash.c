/* The one file that includes libcrypto. Its configuration file is never loaded: a digest must not
 * depend on the machine's, and a sandboxed process could not open it. */
#include "base/hash.h"

#include "base/arena.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

void sha256_init(struct sha256 *h) {
    OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
    h->ctx = EVP_MD_CTX_new();
    if (!h->ctx || !EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL))
        mem_exhausted();
}

void sha256_put(struct sha256 *h, const void *p, size_t n) {
    if (n && !EVP_DigestUpdate(h->ctx, p, n))
        mem_exhausted();
}

void sha256_put_str(struct sha256 *h, str s) {
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)s.n >> (8 * i));
    sha256_put(h, length, sizeof length);
    sha256_put(h, s.p, s.n);
}

digest sha256_end(struct sha256 *h) {
    digest d;
    if (!EVP_DigestFinal_ex(h->ctx, d.b, NULL))
        mem_exhausted();
    EVP_MD_CTX_free(h->ctx);
    h->ctx = NULL;
    return d;
}

digest sha256_of(str s) {
    struct sha256 h;
    sha256_init(&h);
    sha256_put(&h, s.p, s.n);
    return sha256_end(&h);
}

void digest_hex(digest d, char out[65]) {
    static const char hex[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof d.b; i++) {
        out[2 * i] = hex[d.b[i] >> 4];
        out[2 * i + 1] = hex[d.b[i] & 15];
    }
    out[64] = 0;
}
