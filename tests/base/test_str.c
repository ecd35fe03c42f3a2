#include "base/str.h"
#include "tap.h"

#include <stdlib.h>

static void slices(void) {
    str s = S("  hello world\r\n");
    CHECK(str_is(str_trim(s), "hello world"));
    CHECK(str_is(str_trim(S(" \t\n")), ""));
    CHECK(str_starts(s, S("  h")) && !str_starts(S("h"), S("he")));
    CHECK(str_ends(S("a.task"), S(".task")) && !str_ends(S("k"), S(".task")));
    CHECK(str_is(str_from(S("abc"), 1), "bc") && str_from(S("abc"), 9).n == 0);
    CHECK(str_is(str_cut(S("abcdef"), 2, 3), "cde") &&
          str_is(str_cut(S("abc"), 1, SIZE_MAX), "bc"));
    CHECK(str_find(S("abcabd"), S("abd")) == 3 && str_find(S("abc"), S("x")) == 3);
    CHECK(str_find(S("abc"), S("")) == 0 && str_find(S(""), S("x")) == 0);
    CHECK(str_view(NULL).n == 0 && str_eq(str_view(NULL), S("")));
    CHECK(str_cmp(S("a"), S("b")) < 0 && str_cmp(S("ab"), S("a")) > 0 && !str_cmp(S("a"), S("a")));
    CHECK(str_cmp(S("\x80"), S("a")) > 0);
    CHECK(!str_eq(S("a\0b"), S("a\0c")));
}

static void printable(void) {
    static const struct {
        str raw;
        const char *shown;
    } table[] = {
        {S("plain text\n\twith a tab\n"), "plain text\n\twith a tab\n"},
        {S("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m"},
        {S("title\x1b]0;x\a"), "title\\x1b]0;x\\x07"},
        {S("over\rwritten\b"), "over\\x0dwritten\\x08"},
        {S("line\r\nline\r\n"), "line\nline\n"},
        {S("a\0b\x7f"), "a\\x00b\\x7f"},
        {S("\xc2\x9b"
           "31m"),
         "\\u009b31m"},
        {S("\x9b"
           "31m \xff\xc3"),
         "\\x9b31m \\xff\\xc3"},
        {S("\xc3\xa4\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80"),
         "\xc3\xa4\xc2\xa0\xe2\x82\xac\xf0\x9f\x98\x80"},
        {S("safe\u202e kcatta \u2066x\u200f"), "safe\\u202e kcatta \\u2066x\\u200f"},
        {S("\u2013\u2192\u2070"), "\u2013\u2192\u2070"},
        {S(""), ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct buf b;
        buf_init(&b, 1000);
        buf_put_printable(&b, table[i].raw);
        CHECKF(str_is(buf_str(&b), table[i].shown), "%zu: %s", i, b.p);
        buf_release(&b);
    }
}

static void shell_words(void) {
    static const struct {
        const char *word, *shown;
    } table[] = {
        {"runs/bias_gelu", "runs/bias_gelu"}, {"--to", "--to"}, {"", "''"},
        {"two words", "'two words'"},         {"a;b", "'a;b'"}, {"it's", "'it'\\''s'"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct buf b;
        buf_init(&b, 1000);
        buf_put_shell_word(&b, str_view(table[i].word));
        CHECKF(str_is(buf_str(&b), table[i].shown), "%s", b.p);
        buf_release(&b);
    }
}

static void pieces(void) {
    str rest = S("one\r\n\ntwo"), line;
    CHECK(str_line(&rest, &line) && str_is(line, "one"));
    CHECK(str_line(&rest, &line) && str_is(line, ""));
    CHECK(str_line(&rest, &line) && str_is(line, "two"));
    CHECK(!str_line(&rest, &line));
    CHECK(str_is(str_whole_lines(S("one\ntwo")), "one\n") && !str_whole_lines(S("one")).n);
    rest = S("a,,b");
    CHECK(str_word(&rest, ',', &line) && str_is(line, "a"));
    CHECK(str_word(&rest, ',', &line) && str_is(line, ""));
    CHECK(str_word(&rest, ',', &line) && str_is(line, "b"));
    CHECK(!str_word(&rest, ',', &line));
}

static void integers(void) {
    static const struct {
        const char *text;
        bool ok;
        int64_t value;
    } signed_rows[] = {
        {"0", true, 0},
        {"-1", true, -1},
        {"9223372036854775807", true, INT64_MAX},
        {"-9223372036854775808", true, INT64_MIN},
        {"9223372036854775808", false, 0},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"+1", false, 0},
        {"0x10", false, 0},
        {"1a", false, 0},
    };
    for (size_t i = 0; i < sizeof signed_rows / sizeof *signed_rows; i++) {
        int64_t v = 7;
        bool ok = str_to_i64(str_view(signed_rows[i].text), &v);
        CHECKF(ok == signed_rows[i].ok && v == (ok ? signed_rows[i].value : 7), "'%s'",
               signed_rows[i].text);
    }
    uint64_t u;
    CHECK(str_to_u64(S("18446744073709551615"), &u) && u == UINT64_MAX);
    CHECK(str_to_u64(S("0xfFfFfFfFfFfFfFfF"), &u) && u == UINT64_MAX);
    CHECK(!str_to_u64(S("18446744073709551616"), &u) && !str_to_u64(S("0x10000000000000000"), &u));
    CHECK(!str_to_u64(S("0x"), &u) && !str_to_u64(S("-1"), &u) && !str_to_u64(S("0xg"), &u));
}

static void doubles(void) {
    static const struct {
        const char *text;
        bool ok;
        double value;
    } rows[] = {
        {"1", true, 1},      {"-0.5e2", true, -50},    {".5", true, 0.5},   {"0x1p-3", true, 0.125},
        {"+2", true, 2},     {"5e-324", true, 5e-324}, {"1e-999", true, 0}, {"1e309", false, 0},
        {"inf", false, 0},   {"-inf", false, 0},       {"nan", false, 0},   {"", false, 0},
        {"1 ", false, 0},    {" 1", false, 0},         {"0x", false, 0},    {"1e", false, 0},
        {"1.2.3", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double v = 7;
        bool ok = str_to_f64(str_view(rows[i].text), &v);
        CHECKF(ok == rows[i].ok && v == (ok ? rows[i].value : 7), "'%s'", rows[i].text);
    }
    double v;
    CHECK(!str_to_f64(S("1\0"), &v)); /* the slice ends with a NUL that is part of it */
}

static void utf8(void) {
    static const struct {
        const char *bytes;
        size_t n;
    } rows[] = {
        {"a", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x82\xac", 3},
        {"\xf0\x9f\x98\x80", 4},
        {"\x80", 0},
        {"\xc0\x80", 0},
        {"\xc1\xbf", 0},
        {"\xe0\x9f\xbf", 0},
        {"\xed\xa0\x80", 0},
        {"\xf0\x8f\xbf\xbf", 0},
        {"\xf4\x90\x80\x80", 0},
        {"\xf5\x80\x80\x80", 0},
        {"\xe2\x82", 0},
        {"\xe2\x82z", 0},
        {"\xff", 0},
        {"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(str_utf8(str_view(rows[i].bytes)) == rows[i].n, "row %zu", i);
}

static void buf_keeps_its_ceiling(void) {
    struct buf b;
    buf_init(&b, 10);
    CHECK(b.p[0] == 0);
    buf_puts(&b, S("hello"));
    buf_printf(&b, "%05d", 42);
    CHECK(!b.failed && str_is(buf_str(&b), "hello00042") && b.p[10] == 0);
    buf_putc(&b, '!');
    CHECK(b.failed && b.n == 10);
    buf_puts(&b, S(""));
    buf_drop(&b, 5);
    buf_putc(&b, '!');
    CHECK(b.failed && str_is(buf_str(&b), "00042")); /* sticks */
    buf_clear(&b);
    CHECK(!b.failed && b.n == 0 && b.p[0] == 0);
    CHECK(buf_reserve(&b, 11) == NULL && b.failed);
    buf_clear(&b);
    char *p = buf_reserve(&b, 10);
    CHECK(p != NULL);
    memcpy(p, "xyz", 3);
    buf_grown(&b, 3);
    CHECK(str_is(buf_str(&b), "xyz") && b.p[3] == 0);
    buf_drop(&b, 99);
    CHECK(b.n == 0);
    buf_release(&b);
    CHECK(b.n == 0 && b.p[0] == 0);
    buf_release(&b);
}

static void buf_grows(void) {
    struct buf b;
    buf_init(&b, SIZE_MAX);
    for (int i = 0; i < 100000; i++)
        buf_printf(&b, "%d,", i % 10);
    CHECK(!b.failed && b.n == 200000 && strlen(b.p) == b.n && b.p[199998] == '9');
    CHECK(!buf_reserve(&b, SIZE_MAX - 10) && b.failed);
    buf_release(&b);
    buf_init(&b, 0);
    buf_puts(&b, S(""));
    CHECK(!b.failed);
    buf_putc(&b, 'x');
    CHECK(b.failed);
    buf_release(&b);
}

static const struct tap_case cases[] = {
    {"slices", slices},
    {"words for a shell", shell_words},
    {"lines and words", pieces},
    {"text that a terminal may be shown", printable},
    {"integers: whole slice or nothing", integers},
    {"doubles: whole slice or nothing", doubles},
    {"UTF-8 is recognised strictly", utf8},
    {"a buf never grows past its ceiling", buf_keeps_its_ceiling},
    {"a buf grows", buf_grows},
};
TAP_CASES(cases)
