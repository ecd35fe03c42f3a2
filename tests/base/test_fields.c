#include "base/fields.h"
#include "tap.h"

#include <math.h>

struct test_pair {
    str name;
    int64_t value;
};
#define FIELDS_AS_STRUCTS
#include "base/fields_as.h"
#include "fields.def"
#define FIELDS_AS_TABLES
#include "base/fields_as.h"
#include "fields.def"

/* In the order of the list, and as compact as json_write. */
static const char full[] =
    "{\"flag\":true,\"integer\":9223372036854775807,\"seed\":\"18446744073709551615\",\"real\":1.5,"
    "\"text\":\"t\",\"maybe_flag\":false,\"maybe_real\":2.0,\"maybe_text\":\"\",\"grid\":[1,2,"
    "4294967295],\"reals\":[0.5,null],\"texts\":[\"a\",\"b\"],\"inner\":{\"name\":\"i\",\"bytes\":"
    "7},"
    "\"pointer\":{\"name\":\"p\"},\"runs\":[[3,4],[5,6]],\"more\":[{\"name\":\"m\"}],"
    "\"counts\":{\"fma\":-1,\"ld\":2}}";
static const char least[] =
    "{\"flag\":false,\"integer\":0,\"seed\":\"0\",\"real\":0.0,\"text\":\"\",\"grid\":[0,0,0],"
    "\"reals\":[],\"inner\":{\"name\":\"\"},\"runs\":[],\"counts\":{}}";

static bool reads(const char *text, struct arena *a, struct test_all *out, struct err *err) {
    json *j = json_parse(str_view(text), err);
    bool ok = j && fields_from_json(&test_all_fields, j, a, out, err);
    json_free(j);
    return ok;
}

static void check_text(const struct test_all *all, const char *text) {
    struct buf b;
    json *j = fields_to_json(&test_all_fields, all);
    buf_init(&b, 1 << 16);
    json_write(j, &b);
    CHECKF(str_is(buf_str(&b), text), "%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
    json_free(j);
}

static void everything_goes_round(void) {
    struct arena *a = arena_new(1 << 20), *b = arena_new(1 << 20);
    struct test_all all, copy;
    struct err err = {0};
    CHECKF(reads(full, a, &all, &err), "%s", err.text);
    CHECK(all.flag && all.integer == INT64_MAX && all.seed == UINT64_MAX && all.real == 1.5);
    CHECK(all.has_maybe_flag && !all.maybe_flag && all.has_maybe_real && all.maybe_text.p);
    CHECK(all.grid[2] == UINT32_MAX && all.nreals == 2 && isnan(all.reals[1]) && all.ntexts == 2);
    CHECK(all.inner.has_bytes && all.inner.bytes == 7 && all.pointer && !all.pointer->has_bytes);
    CHECK(all.nruns == 2 && all.runs[1].at == 5 && all.runs[1].module == 6);
    CHECK(all.ncounts == 2 && str_is(all.counts[0].name, "fma") && all.counts[0].value == -1);
    check_text(&all, full);
    fields_copy(&test_all_fields, &all, b, &copy);
    memset(&all, 0, sizeof all);
    arena_free(a); /* the copy refers to nothing of it */
    check_text(&copy, full);
    arena_free(b);
}

static void what_may_be_absent_is(void) {
    struct arena *a = arena_new(1 << 20);
    struct test_all all, copy;
    struct err err = {0};
    CHECKF(reads(least, a, &all, &err), "%s", err.text);
    CHECK(!all.has_maybe_flag && !all.has_maybe_real && !all.maybe_text.p && !all.pointer);
    CHECK(!all.ntexts && !all.nmore);
    fields_copy(&test_all_fields, &all, a, &copy);
    check_text(&copy, least);
    memset(&all, 0, sizeof all);
    check_text(&all, least);
    arena_free(a);
}

/* The full text with one piece of it exchanged, and the start of what is said. */
static void what_is_wrong_is_named(void) {
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"\"flag\":true", "\"flag\":1", "flag: true or false is needed"},
        {"\"integer\":9223372036854775807", "\"integer\":-1", "integer: -1 is not from 0"},
        {"\"integer\":9223372036854775807", "\"integer\":1.5", "integer: an integer is needed"},
        {"\"integer\":", "\"other\":", "integer: an integer is needed"},
        {"\"18446744073709551615\"", "\"18446744073709551616\"", "seed: 64 bits"},
        {"\"18446744073709551615\"", "7", "seed: 64 bits"},
        {"\"real\":1.5", "\"real\":\"1.5\"", "real: a number is needed"},
        {"\"text\":\"t\"", "\"text\":null", "text: a text is needed"},
        {"\"maybe_flag\":false", "\"maybe_flag\":0", "maybe_flag: true or false"},
        {"\"maybe_text\":\"\"", "\"maybe_text\":[]", "maybe_text: a text is needed"},
        {"[1,2,4294967295]", "[1,2,4294967296]", "grid: 2: 4294967296 is not from 0"},
        {"[1,2,4294967295]", "[1,2]", "grid: a list of 3 is needed"},
        {"[1,2,4294967295]", "[1,2,3,4]", "grid: a list of 3 is needed"},
        {"[0.5,null]", "[0,0,0,0,0]", "reals: a list of at most 4 is needed"},
        {"[0.5,null]", "[0,{}]", "reals: 1: a number is needed"},
        {"\"reals\":", "\"others\":", "reals: a list of at most 4 is needed"},
        {"[\"a\",\"b\"]", "[\"a\",7]", "texts: 1: a text is needed"},
        {"\"bytes\":7", "\"bytes\":true", "inner: bytes: an integer is needed"},
        {"{\"name\":\"i\",\"bytes\":7}", "[]", "inner: an object is needed"},
        {"{\"name\":\"p\"}", "{}", "pointer: name: a text is needed"},
        {"[5,6]", "[5]", "runs: 1: module: an integer is needed"},
        {"[5,6]", "{\"at\":5,\"module\":6}", "runs: 1: a list is needed"},
        {"[[3,4],[5,6]]", "[[3,4],[5,6],[7,8]]", "runs: a list of at most 2"},
        {"{\"name\":\"m\"}", "null", "more: 0: an object is needed"},
        {"\"ld\":2", "\"ld\":\"2\"", "counts: an integer is needed for every name"},
        {"\"ld\":2", "\"ld\":2,\"st\":3", "counts: an object of at most 2 members"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena *a = arena_new(1 << 20);
        struct test_all all;
        struct err err = {0};
        str text = str_view(full), from = str_view(rows[i].from);
        size_t at = str_find(text, from);
        CHECKF(at < text.n, "%s is not there", rows[i].from);
        str bad = arena_printf(a, "%.*s%s%s", (int)at, text.p, rows[i].to, text.p + at + from.n);
        CHECKF(!reads(bad.p, a, &all, &err), "%s passed", rows[i].to);
        CHECKF(str_starts(str_view(err.text), str_view(rows[i].says)), "%s: %s", rows[i].to,
               err.text);
        CHECK(err.kind == ERR_INPUT);
        arena_free(a);
    }
}

static void what_an_older_version_lacks(void) {
    struct arena *a = arena_new(1 << 20);
    struct test_open open;
    struct err err = {0};
    json *j = json_parse(S("{\"inner\":{},\"list\":[{\"bytes\":1},{}]}"), &err);
    CHECKF(fields_from_json(&test_open_fields, j, a, &open, &err), "%s", err.text);
    CHECK(!open.integer && !open.inner.name.n && open.nlist == 2 && open.list[0].bytes == 1);
    json_free(j);
    j = json_parse(S("{\"integer\":\"1\"}"), &err); /* there, and wrong */
    CHECK(!fields_from_json(&test_open_fields, j, a, &open, &err));
    json_free(j);
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"everything goes round", everything_goes_round},
    {"what may be absent is", what_may_be_absent_is},
    {"what is wrong is named", what_is_wrong_is_named},
    {"what an older version lacks is 0", what_an_older_version_lacks},
};
TAP_CASES(cases)
