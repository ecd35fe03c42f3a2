/* Which sources are one candidate. */
#include "search/search.h"
#include "tap.h"

static bool same_code(const char *x, const char *y) {
    char a[65], b[65];
    search_code_hash(str_view(x), a);
    search_code_hash(str_view(y), b);
    return !strcmp(a, b);
}

static const struct {
    const char *what, *x, *y;
    bool same;
} rows[] = {
    {"the same text", "a\nb\n", "a\nb\n", true},
    {"comments above", "// Strategy: items=1\nint x;\n",
     "// Strategy: items=2\n\t// more\nint x;\n", true},
    {"other code", "int x;\n", "int y;\n", false},
    {"the plan is no comment", "//! let S = 8\nint x;\n", "//! let S = 4\nint x;\n", false},
    {"a comment behind code stays with it", "int x; // 1\n", "int x; // 2\n", false},
    {"lines do not run together", "ab\nc\n", "a\nbc\n", false},
};

static void test_rows(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(same_code(rows[i].x, rows[i].y) == rows[i].same, "%s", rows[i].what);
}

static const struct tap_case cases[] = {{"which sources are one candidate", test_rows}};
TAP_CASES(cases)
