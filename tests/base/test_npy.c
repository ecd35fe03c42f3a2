#include "base/file.h"
#include "base/npy.h"
#include "tap.h"

#include <stdlib.h>
#include <unistd.h>

/* A .npy of version 1.0 around a header and n bytes of data (zeros). */
static str make(struct arena *a, const char *header, size_t n) {
    size_t h = strlen(header);
    char *p = arena_alloc(a, 10 + h + n, 64);
    memcpy(p, "\x93NUMPY\1\0", 8);
    p[8] = (char)(h & 0xff);
    p[9] = (char)(h >> 8);
    memcpy(p + 10, header, h);
    return (str){p, 10 + h + n};
}

static void accepts(void) {
    static const struct {
        const char *header;
        size_t n, rank;
        int64_t last;
        const char *descr;
    } rows[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }   \n", 48, 2, 4, "<f4"},
        {"{'shape':(5,),\"descr\":\"|u1\",'fortran_order':False}", 5, 1, 5, "|u1"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (), }\n", 8, 0, 0, "<f8"},
        {"{'descr': '<f8', 'fortran_order': True, 'shape': (2,), }\n", 16, 1, 2, "<f8"},
        {"{'descr': '|V2', 'fortran_order': False, 'shape': (2,3), }\n", 12, 2, 3, "<V2"},
        {"{'descr': '<i8', 'fortran_order': False, "
         "'shape': (9223372036854775807, 9223372036854775807, 0), }\n",
         0, 3, 0, "<i8"},
        {"{'descr': '|b1', 'fortran_order': False, "
         "'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,7), }\n",
         7, 16, 7, "|b1"},
    };
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        struct npy v;
        bool ok = npy_parse(make(a, rows[i].header, rows[i].n), &v, &e);
        CHECKF(ok, "%s: %s", rows[i].header, e.text);
        if (!ok)
            continue;
        CHECKF(v.rank == rows[i].rank && v.bytes == rows[i].n && !strcmp(v.descr, rows[i].descr),
               "%s", rows[i].header);
        CHECKF(v.rank == 0 || v.shape[v.rank - 1] == rows[i].last, "%s", rows[i].header);
    }
    arena_free(a);
}

#define HEAD(descr, order, shape)                                                                  \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static void refuses(void) {
    static const char *const rows[][2] = {
        {HEAD("<f4", "False", "(4611686018427387904, 4)"), "does not match"},
        {HEAD("<f4", "False", "(9223372036854775807, 9223372036854775807)"), "does not match"},
        {HEAD("<f4", "False", "(9223372036854775808,)"), "not a number that fits"},
        {HEAD("<f4", "False", "(5,)"), "does not match the 16 bytes"},
        {HEAD("<f4", "False", "(3,)"), "does not match"},
        {HEAD("<f4", "False", "(-4,)"), "not a number"},
        {HEAD("<f4", "False", "(4"), "not a number that fits"},
        {HEAD("<f4", "False", "(2 2)"), "',' or ')'"},
        {HEAD("<f4", "False", "(,)"), "not a number"},
        {HEAD("<f4", "False", "[4]"), "not a tuple"},
        {HEAD("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,4)"), "more than 16 dimensions"},
        {HEAD("<f4", "True", "(2, 2)"), "ascontiguousarray"},
        {HEAD("<f4", "Maybe", "(4,)"), "neither True nor False"},
        {HEAD(">f4", "False", "(4,)"), "big endian"},
        {HEAD("<c8", "False", "(2,)"), "'<c8' is not one of"},
        {HEAD("", "False", "(4,)"), "'' is not one of"},
        {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (4,)}", "records"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4,)}", "repeated"},
        {"{'descr': '<f4', 'fortran_order': False}", "lacks"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,), 'x': 1}", "unknown"},
        {"{'descr': '<f4' 'fortran_order': False, 'shape': (4,)}", "',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)} x", "more text"},
        {"{'descr': '<f4", "not a plain type"},
        {"{", "not NumPy's"},
        {"", "not a dictionary"},
    };
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        struct npy v;
        bool ok = npy_parse(make(a, rows[i][0], 16), &v, &e);
        CHECKF(!ok && e.kind == ERR_INPUT && strstr(e.text, rows[i][1]), "%s: %s", rows[i][0],
               e.text);
    }
    arena_free(a);
}

static void cut_short(void) {
    struct arena *a = arena_new(1 << 20);
    str whole = make(a, HEAD("<f4", "False", "(4,)"), 16);
    struct npy v;
    struct err e = {0};
    CHECK(npy_parse(whole, &v, &e));
    for (size_t n = 0; n < whole.n; n++) {
        char *exact = malloc(n ? n : 1); /* so that a sanitizer sees a read past the end */
        memcpy(exact, whole.p, n);
        CHECKF(!npy_parse((str){exact, n}, &v, &e), "%zu bytes", n);
        free(exact);
    }
    char *p = arena_cstr(a, whole);
    p[6] = 2;
    CHECK(!npy_parse((str){p, whole.n}, &v, &e) && strstr(e.text, "version 2.0"));
    arena_free(a);
}

static void round_trip(void) {
    char dir[] = "/tmp/cutepilot-npy-XXXXXX", path[64];
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    float data[6] = {1, 2, 3, 4, 5, NAN};
    CHECK(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/x.npy", dir);
    for (size_t rank = 0; rank <= 3; rank++) {
        struct npy in = {.descr = "<f4",
                         .item = 4,
                         .rank = rank,
                         .shape = {rank == 1 ? 6 : 2, 3, 1},
                         .data = data,
                         .bytes = rank ? 24 : 4},
                   out;
        CHECKF(npy_write(path, &in, &e), "%s", e.text);
        CHECKF(npy_read(path, 1 << 16, a, &out, &e), "%s", e.text);
        CHECK(out.rank == rank && out.bytes == in.bytes && !memcmp(out.data, data, out.bytes));
        CHECK(memcmp(out.shape, in.shape, rank * sizeof *in.shape) == 0 && out.item == 4);
        CHECK((uintptr_t)out.data % 64 == 0);
    }
    struct npy out;
    CHECK(!npy_read(path, 100, a, &out, &e) && strstr(e.text, path));
    /* A header that leaves the data askew. */
    CHECK(file_replace(path, make(a, "{'descr':'<f4','fortran_order':False,'shape':(1,)}   ", 4),
                       &e));
    CHECK(npy_read(path, 1 << 16, a, &out, &e) && (uintptr_t)out.data % 4 == 0);
    CHECK(dir_remove_tree(dir, &e));
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"what NumPy writes", accepts},
    {"what it does not", refuses},
    {"every prefix is refused", cut_short},
    {"written and read back", round_trip},
};
TAP_CASES(cases)
