/* Any bytes as a model's reply: as a source, as edits of a source, as strategies. What is taken as
 * edits changes the source; what is refused says why. */
#include "agent/llm/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char source[] = "//! launch k<<<1, 32>>>(x)\nint a;\n  int b;\nint a;\n}\n";
    str text = {(const char *)data, size};
    struct arena *a = arena_new((size_t)1 << 28);
    struct reply_source out;
    struct reply_line *lines;
    str idea;
    size_t n;
    struct err err = {0};
    if (size > 1 << 16) {
        arena_free(a);
        return 0;
    }
    bool ok = reply_read_source(text, S(""), a, &out, &err);
    BUG_IF(ok ? out.source.n == 0 : err.text[0] == 0);
    ok = reply_read_source(text, str_view(source), a, &out, &err);
    BUG_IF(ok && out.nedits && str_eq(out.source, str_view(source)));
    ok = reply_read_strategies(text, a, &lines, &n, &idea, &err);
    BUG_IF(ok ? n == 0 : err.text[0] == 0);
    arena_free(a);
    return 0;
}
