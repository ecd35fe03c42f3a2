#include "base/err.h"
#include "forked.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static void clauses(void) {
    struct err e = {0};
    errno = ENOENT;
    CHECK(!err_errno(&e, ERR_INPUT, "open %s", "k.task"));
    CHECK(e.kind == ERR_INPUT);
    CHECK(!err_wrap(&e, "task %s", "softmax"));
    CHECK(strcmp(e.text, "task softmax: open k.task: No such file or directory") == 0);
    CHECK(e.kind == ERR_INPUT);
    CHECK(!err_set(&e, ERR_ENV, "again: %s", e.text)); /* its own text as an argument */
    CHECK(strncmp(e.text, "again: task softmax", 19) == 0 && e.kind == ERR_ENV);
    CHECK(!err_set(NULL, ERR_ENV, "nobody listens") && !err_wrap(NULL, "x"));
}

static void never_overflows(void) {
    struct err e = {0};
    char big[5000];
    memset(big, 'x', sizeof big);
    big[sizeof big - 1] = 0;
    err_set(&e, ERR_NO, "%s", big);
    CHECK(strlen(e.text) == sizeof e.text - 1);
    err_wrap(&e, "front");
    CHECK(strlen(e.text) == sizeof e.text - 1 && strncmp(e.text, "front: xxx", 10) == 0);
    err_wrap(&e, "%s", big);
    errno = EIO;
    err_errno(&e, ERR_ENV, "%s", big);
    CHECK(strlen(e.text) == sizeof e.text - 1);
    err_at(&e, str_view(big), str_view(big), 4000, 900, big, "%s", big);
    CHECK(strlen(e.text) == sizeof e.text - 1);
}

static void positions(void) {
    str t = S("ab\n\xc3\xa4x\n");
    static const struct {
        size_t at, line, col;
    } rows[] = {{0, 1, 1}, {2, 1, 3}, {3, 2, 1}, {5, 2, 2}, {6, 2, 3}, {7, 3, 1}, {99, 3, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t line, col;
        text_position(t, rows[i].at, &line, &col);
        CHECKF(line == rows[i].line && col == rows[i].col, "at %zu: %zu:%zu", rows[i].at, line,
               col);
    }
}

static void carets(void) {
    static const struct {
        const char *text;
        size_t at, n;
        const char *hint, *expect;
    } rows[] = {
        {"a\nb\ny[i] = foo[i]\nd\n", 11, 3, "declare it with 'in' or 'let'",
         "gelu.task:3:8: unknown name 'foo'\n"
         "  3 | y[i] = foo[i]\n"
         "    |        ^~~\n"
         "hint: declare it with 'in' or 'let'"},
        {"x", 0, 0, NULL, "gelu.task:1:1: unknown name 'foo'\n  1 | x\n    | ^"},
        {"x\n", 2, 1, NULL, "gelu.task:2:1: unknown name 'foo'\n  2 | \n    | ^"},
        {"", 0, 5, NULL, "gelu.task:1:1: unknown name 'foo'\n  1 | \n    | ^"},
        {"\tx\r\n", 1, 99, NULL, "gelu.task:1:2: unknown name 'foo'\n  1 |  x\n    |  ^"},
        {"\x1b[31m\x80 \xc2\x9bz", 9, 1, NULL,
         "gelu.task:1:8: unknown name 'foo'\n  1 | ?[31m? ?z\n    |         ^"},
        {"\xc3\xa4\xc3\xa4 foo", 5, 3, NULL,
         "gelu.task:1:4: unknown name 'foo'\n  1 | \xc3\xa4\xc3\xa4 foo\n    |    ^~~"},
        /* One byte is marked, the whole character is shown. */
        {"x = \xe2\x88\x91 y", 4, 1, NULL,
         "gelu.task:1:5: unknown name 'foo'\n  1 | x = \xe2\x88\x91 y\n    |     ^"},
        {"a \xc3\x96\xc3\x96", 2, 3, NULL,
         "gelu.task:1:3: unknown name 'foo'\n  1 | a \xc3\x96\xc3\x96\n    |   ^~"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err e = {0};
        CHECK(!err_at(&e, S("gelu.task"), str_view(rows[i].text), rows[i].at, rows[i].n,
                      rows[i].hint, "unknown name '%s'", "foo"));
        CHECKF(e.kind == ERR_INPUT && strcmp(e.text, rows[i].expect) == 0, "row %zu:\n%s\n", i,
               e.text);
    }
}

static void long_lines_are_cut(void) {
    char line[3001];
    struct err e;
    memset(line, 'a', 3000);
    line[3000] = 0;
    memcpy(line + 1500, "foo", 3);
    err_at(&e, S("f"), str_view(line), 1500, 3, NULL, "m");
    char *quoted = strchr(e.text, '\n') + 1;
    char *caret = strchr(quoted, '\n') + 1;
    CHECK(strlen(e.text) < 300);
    CHECK(strncmp(quoted + (strchr(caret, '^') - caret), "foo", 3) == 0);
    CHECK(strncmp(quoted, "  1 | ...a", 10) == 0 && strncmp(caret - 5, "a...\n", 5) == 0);
    CHECK(strcmp(strchr(caret, '^'), "^~~") == 0);
}

static int a_bug(void) {
    int two = 2;
    BUG_IF(two + two == 4);
    return 0;
}

static void bugs_abort(void) {
    struct forked r = forked_run(a_bug);
    CHECK(r.code == 128 + SIGABRT);
    CHECK(strstr(r.err, "test_err.c") && strstr(r.err, "two + two == 4"));
}

static const struct tap_case cases[] = {
    {"one clause a layer", clauses},
    {"texts are cut, never overrun", never_overflows},
    {"positions in a text", positions},
    {"diagnostics with a caret", carets},
    {"long lines are cut around the caret", long_lines_are_cut},
    {"BUG_IF says where and aborts", bugs_abort},
};
TAP_CASES(cases)
