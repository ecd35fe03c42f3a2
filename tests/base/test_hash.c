#include "base/hash.h"
#include "tap.h"

static bool same(digest a, digest b) {
    return memcmp(a.b, b.b, sizeof a.b) == 0;
}

/* FIPS 180-4's examples. */
static void known_answers(void) {
    static const struct {
        const char *text, *hex;
    } rows[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char hex[65];
        digest_hex(sha256_of(str_view(rows[i].text)), hex);
        CHECKF(strcmp(hex, rows[i].hex) == 0, "'%s': %s", rows[i].text, hex);
    }
}

static digest of_pieces(str a, str b) {
    struct sha256 h;
    sha256_init(&h);
    sha256_put_str(&h, a);
    sha256_put_str(&h, b);
    return sha256_end(&h);
}

static void pieces(void) {
    struct sha256 h;
    sha256_init(&h);
    sha256_put(&h, "a", 1);
    sha256_put(&h, NULL, 0);
    sha256_put(&h, "bc", 2);
    CHECK(same(sha256_end(&h), sha256_of(S("abc"))));
    CHECK(!same(of_pieces(S("ab"), S("c")), of_pieces(S("a"), S("bc"))));
    CHECK(!same(of_pieces(S(""), S("x")), of_pieces(S("x"), S(""))));
    CHECK(same(of_pieces(S("a"), S("")), sha256_of(S("\1\0\0\0\0\0\0\0a\0\0\0\0\0\0\0\0"))));
}

static const struct tap_case cases[] = {
    {"known answers", known_answers},
    {"pieces cannot be confused", pieces},
};
TAP_CASES(cases)
