#include "search/twin.h"
#include "base/hash.h"

static bool is_comment(str line) {
    line = str_trim(line);
    return str_starts(line, S("//")) && !str_starts(line, S("//!"));
}

void twin_hash(str source, char hex[65]) {
    struct sha256 h;
    str line;
    sha256_init(&h);
    while (str_line(&source, &line))
        if (!is_comment(line))
            sha256_put_str(&h, line);
    digest_hex(sha256_end(&h), hex);
}
