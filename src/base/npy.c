/* The header is a Python dictionary; only the one that NumPy writes is read: three known keys, each
 * once, in any order. What it claims is checked against the bytes that are there before anyone
 * allocates by it. */
#include "base/npy.h"

#include "base/checked.h"
#include "base/file.h"

#include <stdio.h>
#include <string.h>

enum { PREAMBLE = 10, ALIGNMENT = 64 };

static const struct {
    const char *descr, *as;
    size_t item;
} types[] = {
    {"<f4", "<f4", 4}, {"<f8", "<f8", 8}, {"<f2", "<f2", 2}, {"|i1", "|i1", 1}, {"|u1", "|u1", 1},
    {"<i4", "<i4", 4}, {"<i8", "<i8", 8}, {"|b1", "|b1", 1}, {"<V2", "<V2", 2}, {"|V2", "<V2", 2},
};

static bool bad(struct err *err, const char *what) {
    return err_set(err, ERR_INPUT, "npy: %s", what);
}

static void skip_blanks(str *s) {
    while (s->n && s->p[0] == ' ')
        *s = str_from(*s, 1);
}

static bool take(str *s, str word) {
    skip_blanks(s);
    if (!str_starts(*s, word))
        return false;
    *s = str_from(*s, word.n);
    return true;
}

static bool take_quoted(str *s, str *out) {
    skip_blanks(s);
    if (s->n == 0 || (s->p[0] != '\'' && s->p[0] != '"'))
        return false;
    str rest = str_from(*s, 1);
    size_t n = str_find(rest, (str){s->p, 1});
    if (n == rest.n)
        return false;
    *out = str_cut(rest, 0, n);
    *s = str_from(rest, n + 1);
    return true;
}

static bool read_descr(str *s, struct npy *out, struct err *err) {
    str d;
    if (!take_quoted(s, &d))
        return bad(err, "'descr' is not a plain type (records are not supported)");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!str_is(d, types[i].descr))
            continue;
        snprintf(out->descr, sizeof out->descr, "%s", types[i].as);
        out->item = types[i].item;
        return true;
    }
    if (str_starts(d, S(">")))
        return bad(err, "big endian; save it with .astype('<...')");
    return err_set(err, ERR_INPUT,
                   "npy: type '%.*s' is not one of <f2 <f4 <f8 |i1 |u1 <i4 <i8 |b1 <V2 (bf16)",
                   STR_ARG(str_cut(d, 0, 32)));
}

static bool read_order(str *s, bool *fortran, struct err *err) {
    if (take(s, S("True")))
        *fortran = true;
    else if (!take(s, S("False")))
        return bad(err, "'fortran_order' is neither True nor False");
    return true;
}

static bool read_shape(str *s, struct npy *out, struct err *err) {
    if (!take(s, S("(")))
        return bad(err, "'shape' is not a tuple");
    while (!take(s, S(")"))) {
        size_t n = 0;
        while (n < s->n && s->p[n] >= '0' && s->p[n] <= '9')
            n++;
        if (out->rank == NPY_MAX_RANK)
            return err_set(err, ERR_INPUT, "npy: more than %d dimensions", NPY_MAX_RANK);
        if (!str_to_i64(str_cut(*s, 0, n), &out->shape[out->rank]))
            return bad(err, "a dimension in 'shape' is not a number that fits");
        out->rank++;
        *s = str_from(*s, n);
        if (take(s, S(",")))
            skip_blanks(s);
        else if (!str_starts(*s, S(")")))
            return bad(err, "',' or ')' is missing in 'shape'");
    }
    return true;
}

static bool read_header(str s, struct npy *out, bool *fortran, struct err *err) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    bool seen[3] = {false, false, false};
    if (!take(&s, S("{")))
        return bad(err, "the header is not a dictionary");
    while (!take(&s, S("}"))) {
        str key;
        int k = 0;
        if (!take_quoted(&s, &key) || !take(&s, S(":")))
            return bad(err, "the header is not NumPy's");
        while (k < 3 && !str_is(key, keys[k]))
            k++;
        if (k == 3 || seen[k])
            return bad(err, "the header has an unknown or repeated key");
        seen[k] = true;
        bool ok = k == 0   ? read_descr(&s, out, err)
                  : k == 1 ? read_order(&s, fortran, err)
                           : read_shape(&s, out, err);
        if (!ok)
            return false;
        if (!take(&s, S(",")) && (skip_blanks(&s), !str_starts(s, S("}"))))
            return bad(err, "',' or '}' is missing in the header");
    }
    if (!seen[0] || !seen[1] || !seen[2])
        return bad(err, "the header lacks 'descr', 'fortran_order' or 'shape'");
    return str_trim(s).n == 0 || bad(err, "more text after the header's dictionary");
}

/* A zero anywhere makes the array empty, whatever the other dimensions claim. */
static bool array_bytes(const struct npy *a, size_t *bytes) {
    size_t n = a->item;
    bool fits = true, empty = false;
    for (size_t i = 0; i < a->rank; i++) {
        empty |= a->shape[i] == 0;
        fits = fits && mul_size(n, (size_t)a->shape[i], &n);
    }
    *bytes = empty ? 0 : n;
    return fits || empty;
}

bool npy_parse(str content, struct npy *out, struct err *err) {
    struct npy a = {.rank = 0};
    bool fortran = false;
    if (!str_starts(content, S("\x93NUMPY")) || content.n < PREAMBLE)
        return bad(err, "not a .npy file");
    if (content.p[6] != 1 || content.p[7] != 0)
        return err_set(err, ERR_INPUT, "npy: version %u.%u, only 1.0 is read",
                       (unsigned char)content.p[6], (unsigned char)content.p[7]);
    size_t n = (unsigned char)content.p[8] | (size_t)(unsigned char)content.p[9] << 8;
    if (n > content.n - PREAMBLE)
        return bad(err, "the file ends inside its header");
    if (!read_header(str_cut(content, PREAMBLE, n), &a, &fortran, err))
        return false;
    if (fortran && a.rank > 1)
        return bad(err, "Fortran order; save it with np.ascontiguousarray");
    str data = str_from(content, PREAMBLE + n);
    if (!array_bytes(&a, &a.bytes) || a.bytes != data.n)
        return err_set(err, ERR_INPUT, "npy: the shape does not match the %zu bytes of data",
                       data.n);
    a.data = data.p;
    *out = a;
    return true;
}

bool npy_read(const char *path, size_t max, struct arena *a, struct npy *out, struct err *err) {
    str content;
    if (!file_read(path, max, a, &content, err))
        return false;
    if (!npy_parse(content, out, err))
        return err_wrap(err, "%s", path);
    /* NumPy pads its header; another writer's data may lie askew. */
    if ((uintptr_t)out->data % out->item) {
        void *copy = arena_alloc(a, out->bytes, ALIGNMENT);
        memcpy(copy, out->data, out->bytes);
        out->data = copy;
    }
    return true;
}

static void put_header(struct buf *b, const struct npy *in) {
    buf_printf(b, "{'descr': '%s', 'fortran_order': False, 'shape': (", in->descr);
    for (size_t i = 0; i < in->rank; i++)
        buf_printf(b, i ? ", %lld" : "%lld", (long long)in->shape[i]);
    buf_puts(b, in->rank == 1 ? S(",), }") : S("), }"));
    while ((PREAMBLE + b->n + 1) % ALIGNMENT)
        buf_putc(b, ' ');
    buf_putc(b, '\n');
}

bool npy_write(const char *path, const struct npy *in, struct err *err) {
    size_t bytes;
    struct buf header;
    BUG_IF(in->rank > NPY_MAX_RANK || !array_bytes(in, &bytes) || bytes != in->bytes);
    buf_init(&header, 4096);
    put_header(&header, in);
    BUG_IF(header.failed); /* the rank bounds it */
    char preamble[PREAMBLE] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    preamble[8] = (char)(header.n & 0xff);
    preamble[9] = (char)(header.n >> 8);
    str parts[] = {{preamble, PREAMBLE}, buf_str(&header), {in->data, in->bytes}};
    bool ok = file_replace_parts(path, parts, 3, err);
    buf_release(&header);
    return ok;
}
