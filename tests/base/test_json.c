#include "base/json.h"
#include "tap.h"

#include <stdlib.h>

static void rewrite(const char *text, char out[256]) {
    struct err e = {0};
    struct buf b;
    buf_init(&b, 255);
    json *j = json_parse(str_view(text), &e);
    if (j)
        json_write(j, &b);
    else
        buf_printf(&b, "error: %.200s", e.text);
    snprintf(out, 256, "%s", b.p);
    buf_release(&b);
    json_free(j);
}

static void reads_and_writes(void) {
    static const char *const rows[][2] = {
        {"{}", "{}"},
        {" [ 1 , -2 ,\t3.5 ]\r\n", "[1,-2,3.5]"},
        {"{\"b\":1,\"a\":{\"x\":[null,true,false]}}", "{\"b\":1,\"a\":{\"x\":[null,true,false]}}"},
        {"[0.1,1e22,1.0,-0.0,-0,0,5e-324]", "[0.1,1e+22,1.0,-0.0,-0.0,0,4.94065645841247e-324]"},
        {"[9223372036854775807,-9223372036854775808]",
         "[9223372036854775807,-9223372036854775808]"},
        {"[9223372036854775808]", "[9.223372036854776e+18]"},
        {"[100000000000000000000000000000]", "[1e+29]"},
        {"\"a\\/\\u00e4\\n\\\"\\\\\"", "\"a/\xc3\xa4\\n\\\"\\\\\""},
        {"\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""},
        {"\"\\ud83dx\"", "\"\xef\xbf\xbdx\""},
        {"\"\\ude00\"", "\"\xef\xbf\xbd\""},
        {"\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
                               "A\""},
        {"\"\\u0000\"", "\"\\u0000\""},
        {"17", "17"},
        {"true", "true"},
        {"[999999999999999.0,-3.0,1e15,1234567.5]", "[999999999999999.0,-3.0,1e+15,1234567.5]"},
        {"{\"\\u0061b\":{\"\":1},\"\\u00e4\":\"x\\ty\"}",
         "{\"ab\":{\"\":1},\"\xc3\xa4\":\"x\\ty\"}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[256];
        rewrite(rows[i][0], out);
        CHECKF(strcmp(out, rows[i][1]) == 0, "%s: %s", rows[i][0], out);
    }
}

static void refuses(void) {
    static const char *const rows[][2] = {
        {"", "line 1 column 1: the text ends too early"},
        {"null", "JSON: the document is null"},
        {"{", "line 1 column 2: the text ends too early"},
        {"{} x", "line 1 column 4: more text after the document"},
        {"{}{}", "line 1 column 3: more text"},
        {"[1,]", "line 1 column 4: a value is needed"},
        {"{\"a\":1,}", "line 1 column 8: a string is needed"},
        {"{a:1}", "line 1 column 2: a string is needed"},
        {"{'a':1}", "line 1 column 2: a string is needed"},
        {"{\"a\" 1}", "line 1 column 6: ':' is needed"},
        {"[1 2]", "line 1 column 4: ',' or ']' is needed"},
        {"{\"a\":1 \"b\":2}", "line 1 column 8: ',' or '}' is needed"},
        {"{\"a\":1,\n \"a\":2}", "line 2 column 2: the key occurs twice"},
        {"{\"a\\u0000b\":1}", "line 1 column 2: a key must not hold U+0000"},
        {"[NaN]", "line 1 column 2: a value is needed"},
        {"[Infinity]", "a value is needed"},
        {"[-Infinity]", "a digit is needed"},
        {"[01]", "line 1 column 3: a number has no leading zeros"},
        {"[+1]", "a value is needed"},
        {"[.5]", "a value is needed"},
        {"[1.]", "a digit is needed after the point"},
        {"[1e]", "a digit is needed in the exponent"},
        {"[1e999]", "line 1 column 2: the number is out of range"},
        {"[tru]", "a value is needed"},
        {"[truex]", "',' or ']' is needed"},
        {"\"\\x\"", "unknown escape"},
        {"\"\\u12g4\"", "four hexadecimal digits"},
        {"\"\\u12", "the text ends too early"},
        {"\"abc", "the text ends too early"},
        {"\"a\tb\"", "line 1 column 3: a control byte"},
        {"\"\x80\"", "not UTF-8"},
        {"\"\xed\xa0\x80\"", "not UTF-8"},
        {"/* c */ 1", "a value is needed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        json *j = json_parse(str_view(rows[i][0]), &e);
        CHECKF(!j && e.kind == ERR_INPUT && strstr(e.text, rows[i][1]), "%s: %s", rows[i][0],
               e.text);
        json_free(j);
    }
    struct err e = {0};
    CHECK(!json_parse(S("[1]\0"), &e) && !json_parse(S("\0"), &e) &&
          !json_parse(S("[\"\0\"]"), &e));
}

static void depth(void) {
    enum { MANY = 100000 };
    static char text[2 * MANY + 1];
    struct err e = {0};
    for (int levels = 63; levels <= 65; levels++) {
        memset(text, '[', (size_t)levels);
        memset(text + levels, ']', (size_t)levels);
        json *j = json_parse((str){text, 2 * (size_t)levels}, &e);
        CHECKF((j != NULL) == (levels <= 64), "%d levels", levels);
        json_free(j);
    }
    CHECK(strstr(e.text, "column 65: nested more than 64 levels") != NULL);
    memset(text, '[', MANY);
    CHECK(!json_parse((str){text, MANY}, &e));
    for (int i = 0; i < MANY / 5; i++)
        memcpy(text + 5 * i, "{\"\":", 5);
    CHECK(!json_parse((str){text, MANY}, &e));
}

static void getters(void) {
    struct err e = {0};
    json *j = json_parse(
        S("{\"s\":\"x\\u0000y\",\"i\":-7,\"d\":2.5,\"b\":true,\"n\":null,\"a\":[1,\"z\"]}"), &e);
    str s;
    int64_t i = 0;
    double d = 0;
    bool b = false;
    CHECK(json_get_str(j, "s", &s) && s.n == 3 && memcmp(s.p, "x\0y", 3) == 0);
    CHECK(json_get_i64(j, "i", &i) && i == -7 && json_get_f64(j, "i", &d) && d == -7);
    CHECK(json_get_f64(j, "d", &d) && d == 2.5 && !json_get_i64(j, "d", &i) && i == -7);
    CHECK(json_get_bool(j, "b", &b) && b && !json_get_i64(j, "b", &i));
    CHECK(!json_get(j, "n") && !json_get(j, "absent") && !json_get_str(j, "n", &s));
    CHECK(!json_get_str(j, "i", &s) && !json_get_bool(j, "i", &b) && !json_get_f64(j, "s", &d));
    const json *a = json_get(j, "a");
    CHECK(json_is_array(a) && !json_is_object(a) && json_len(a) == 2 && json_len(j) == 6);
    CHECK(json_to_i64(json_at(a, 0), &i) && i == 1 && json_to_str(json_at(a, 1), &s));
    CHECK(!json_at(a, 2) && !json_at(j, 0) && !json_get(a, "s") && !json_at(NULL, 0));
    CHECK(!json_get(NULL, "x") && json_len(NULL) == 0 && !json_is_object(NULL));
    json_free(j);
    json_free(NULL);
}

static void collect(void *ctx, const char *key, const json *value) {
    int64_t v = -1;
    json_to_i64(value, &v);
    buf_printf(ctx, "%s=%d ", key, (int)v);
}

static void building(void) {
    json *j = json_object(), *a = json_array();
    json_push_i64(a, INT64_MIN);
    json_push_f64(a, 0.1);
    json_push_f64(a, NAN);
    json_push_f64(a, -INFINITY);
    json_push_str(a, S("\xff<\xe2\x82"));
    json_push(a, NULL);
    json_set(j, "list", a);
    json_set_str(j, "path", S("a/b"));
    json_set_bool(j, "ok", false);
    json_set_i64(j, "n", 1);
    json_set_i64(j, "n", 2);
    json *copy = json_copy(j);
    json_set_i64(j, "later", 3);
    struct buf b;
    buf_init(&b, 4096);
    json_write(copy, &b);
    CHECKF(strcmp(b.p, "{\"list\":[-9223372036854775808,0.1,null,null,"
                       "\"\xef\xbf\xbd<\xef\xbf\xbd\xef\xbf\xbd\",null],"
                       "\"path\":\"a/b\",\"ok\":false,\"n\":2}") == 0,
           "%s", b.p);
    buf_clear(&b);
    json_each(j, collect, &b);
    CHECK(strcmp(b.p, "list=-1 path=-1 ok=-1 n=2 later=3 ") == 0);
    json_free(copy);
    json_free(j);
    buf_clear(&b);
    json_write(NULL, &b);
    CHECK(strcmp(b.p, "null") == 0);
    buf_clear(&b);
    j = json_object();
    json_set_i64(j, "a", 1);
    json_write_pretty(j, &b);
    CHECKF(strcmp(b.p, "{\n  \"a\": 1\n}") == 0, "%s", b.p);
    json_free(j);
    buf_release(&b);
}

/* Any bit pattern of a double comes back, through a copy and two readings. */
static void doubles_come_back(void) {
    uint64_t state = 1;
    for (int i = 0; i < 20000; i++) {
        double v, back = 0;
        state = state * 6364136223846793005u + 1442695040888963407u;
        memcpy(&v, &state, sizeof v);
        if (!isfinite(v))
            continue;
        json *a = json_array();
        json_push_f64(a, v);
        struct buf b;
        struct err e = {0};
        buf_init(&b, 100);
        json_write(a, &b);
        json *again = json_parse(buf_str(&b), &e), *copy = json_copy(again);
        CHECKF(json_to_f64(json_at(copy, 0), &back) && memcmp(&v, &back, sizeof v) == 0, "%s", b.p);
        json_free(a);
        json_free(again);
        json_free(copy);
        buf_release(&b);
    }
}

static const struct tap_case cases[] = {
    {"reads and writes", reads_and_writes},
    {"refuses, and says where", refuses},
    {"64 levels and no more", depth},
    {"getters keep quiet about other types", getters},
    {"building", building},
    {"doubles come back", doubles_come_back},
};
TAP_CASES(cases)
