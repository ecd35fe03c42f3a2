/* Vectors in registers, and the functions that move one between them and memory. */
#include "agent/expert/pointwise/pointwise.h"

struct word {
    size_t bytes;
    const char *type;
};
static const struct word words[] = {
    {1, "unsigned char"}, {2, "unsigned short"}, {4, "unsigned int"}, {8, "uint2"}, {16, "uint4"}};

static const struct word *word_of(size_t bytes) {
    size_t i = sizeof words / sizeof *words - 1;
    while (words[i].bytes > bytes)
        i--;
    return &words[i];
}

/* `n` words from one place to another: a statement, or a loop of it. The format has the type of a
 * word where it says %s. */
static str moves(struct pw *p, size_t n, const char *format, const char *word) {
    str one = arena_printf(p->sh->mem, format, word, word);
    if (n == 1)
        return one;
    return sheet_printf(p->sh, "#pragma unroll\nfor (int w = 0; w < %zu; w++)\n    %.*s", n,
                        STR_ARG(one));
}

/* How one word is moved, by [loop][streaming]. */
static const char *const load_forms[2][2] = {
    {"*reinterpret_cast<%s *>(v.at) = *reinterpret_cast<const %s *>(p);",
     "*reinterpret_cast<%s *>(v.at) = __ldcs(reinterpret_cast<const %s *>(p));"},
    {"reinterpret_cast<%s *>(v.at)[w] = reinterpret_cast<const %s *>(p)[w];",
     "reinterpret_cast<%s *>(v.at)[w] = __ldcs(reinterpret_cast<const %s *>(p) + w);"}};
static const char *const store_forms[2][2] = {
    {"*reinterpret_cast<%s *>(p) = *reinterpret_cast<const %s *>(v.at);",
     "__stcs(reinterpret_cast<%s *>(p), *reinterpret_cast<const %s *>(v.at));"},
    {"reinterpret_cast<%s *>(p)[w] = reinterpret_cast<const %s *>(v.at)[w];",
     "__stcs(reinterpret_cast<%s *>(p) + w, reinterpret_cast<const %s *>(v.at)[w]);"}};

static str put_function(struct pw *p, enum dtype t, const char *base, const char *form,
                        const char *template) {
    struct sheet *sh = p->sh;
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    const struct word *word = word_of(bytes);
    str name, type = pw_vector_type(p, t);
    str key = sheet_printf(sh, "%s of %lld", base, (long long)p->width);
    if (!sheet_once(sh, key, base, &name))
        return name;
    struct slot slots[] = {{"vector", type},
                           {"type", str_view(dtype_info(t)->cuda)},
                           {"function", name},
                           {"moves", moves(p, bytes / word->bytes, form, word->type)}};
    sheet_template(sh, template, slots, sizeof slots / sizeof *slots, &sh->functions);
    return name;
}

static bool is_looped(const struct pw *p, enum dtype t) {
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    return bytes > word_of(bytes)->bytes;
}

str pw_vector_load(struct pw *p, enum dtype t, bool stream) {
    str base = sheet_printf(p->sh, "%s_%s", stream ? "stream" : "load", dtype_info(t)->name);
    return put_function(p, t, base.p, load_forms[is_looped(p, t)][stream], "sheet/vector_load.cu");
}

str pw_vector_store(struct pw *p, enum dtype t) {
    str base = sheet_printf(p->sh, "store_%s", dtype_info(t)->name);
    return put_function(p, t, base.p, store_forms[is_looped(p, t)][p->hint],
                        "sheet/vector_store.cu");
}

static str number(struct pw *p, size_t n) {
    return sheet_printf(p->sh, "%zu", n);
}

str pw_vector_type(struct pw *p, enum dtype t) {
    struct sheet *sh = p->sh;
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    const struct word *word = word_of(bytes);
    size_t n = bytes / word->bytes;
    str name, base = sheet_printf(sh, "%s_vector", dtype_info(t)->name);
    str key = sheet_printf(sh, "%.*s of %lld", STR_ARG(base), (long long)p->width);
    if (!sheet_once(sh, key, base.p, &name))
        return name;
    struct slot slots[] = {{"width", number(p, (size_t)p->width)},
                           {"type", str_view(dtype_info(t)->cuda)},
                           {"words", number(p, n)},
                           {"plural", n == 1 ? S("") : S("es")},
                           {"bytes", number(p, word->bytes)},
                           {"s", word->bytes == 1 ? S("") : S("s")},
                           {"vector", name}};
    sheet_template(sh, "sheet/vector_type.cu", slots, sizeof slots / sizeof *slots, &sh->functions);
    return name;
}
