/* The parts of a report that can be said exactly: escaping, diffs, marks of axes, mathematics. */
#include "base/file.h"
#include "base/rng.h"
#include "report/chart.h"
#include "report/code.h"
#include "report/diff.h"
#include "report/html.h"
#include "report/mathml.h"
#include "tap.h"

#include <stdlib.h>

/* ---- escaping ---- */

static str escaped(struct buf *b, str s) {
    buf_clear(b);
    html_text(b, s);
    return buf_str(b);
}

static void test_text(void) {
    static const struct {
        str in;
        const char *out;
    } rows[] = {
        {S("plain, with\nlines\tand tabs"), "plain, with\nlines\tand tabs"},
        {S("<script>alert('x')</script>"), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"},
        {S("a & b &amp; \"c\""), "a &amp; b &amp;amp; &quot;c&quot;"},
        {S("\x1b[31mred\x07"), "\\x1b[31mred\\x07"},
        {S("\xff\xc0 é ∑"), "\\xff\\xc0 é ∑"},
        {S("a\0b"), "a\\x00b"},
        {S("\xe2\x80\xae"
           "evil"
           "\xe2\x81\xa6"),
         "\\u202eevil\\u2066"},
        {S("\xc2\x9b"
           "31m"),
         "\\u009b31m"},
        {S(""), ""},
    };
    struct buf b;
    buf_init(&b, 4096);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(str_is(escaped(&b, rows[i].in), rows[i].out), "row %zu: %s", i, b.p);
    buf_release(&b);
}

/* What a reader of HTML makes of escaped text. */
static void unescape(str s, struct buf *out) {
    static const struct {
        str entity;
        char c;
    } entities[] = {{S("&amp;"), '&'},
                    {S("&lt;"), '<'},
                    {S("&gt;"), '>'},
                    {S("&quot;"), '"'},
                    {S("&#39;"), '\''}};
    for (size_t i = 0; i < s.n;) {
        size_t k = 0, n = sizeof entities / sizeof *entities;
        while (k < n && !str_starts(str_from(s, i), entities[k].entity))
            k++;
        buf_putc(out, k < n ? entities[k].c : s.p[i]);
        i += k < n ? entities[k].entity.n : 1;
    }
}

/* Bytes of which many are of the dangerous kind. */
static str random_bytes(struct rng r, uint64_t at, char *room, size_t most) {
    static const char likely[] = "<>&\"'\\/!-; \n\t\x1b\x7f\xc2\x9b\xe2\x80\xaex";
    size_t n = rng_u64(r, 1000 * at) % most;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = rng_u64(r, 1000 * at + i + 1);
        room[i] = v & 1 ? (char)(v >> 8) : likely[(v >> 8) % (sizeof likely - 1)];
    }
    return (str){room, n};
}

/* No character of markup is left, and reading it back gives the text that a terminal may be shown.
 */
static void test_text_property(void) {
    struct rng r = rng_stream(1, S("report"));
    struct buf b, back, shown;
    char room[200];
    buf_init(&b, 1u << 16);
    buf_init(&back, 1u << 16);
    buf_init(&shown, 1u << 16);
    for (uint64_t i = 0; i < 20000; i++) {
        str s = random_bytes(r, i, room, sizeof room);
        str e = escaped(&b, s);
        bool safe = true;
        for (size_t k = 0; k < e.n; k++)
            safe &= !strchr("<>\"'", e.p[k]) &&
                    ((unsigned char)e.p[k] >= ' ' || e.p[k] == '\n' || e.p[k] == '\t');
        CHECKF(safe, "round %llu: %s", (unsigned long long)i, b.p);
        buf_clear(&back);
        unescape(e, &back);
        buf_clear(&shown);
        buf_put_printable(&shown, s);
        if (str_find(s, S("\xe2\x80")) == s.n && str_find(s, S("\xe2\x81")) == s.n)
            CHECKF(str_eq(buf_str(&back), buf_str(&shown)), "round %llu", (unsigned long long)i);
    }
    buf_release(&b);
    buf_release(&back);
    buf_release(&shown);
}

/* The block reads back as the same tree, and nothing in it ends a script or opens a comment. */
static void test_json_property(void) {
    struct rng r = rng_stream(2, S("report"));
    struct buf b, plain, again;
    char room[200];
    buf_init(&b, 1u << 16);
    buf_init(&plain, 1u << 16);
    buf_init(&again, 1u << 16);
    for (uint64_t i = 0; i < 5000; i++) {
        json *j = json_object();
        struct err err;
        json_set_str(j, "</script>", random_bytes(r, i, room, sizeof room));
        buf_clear(&b);
        html_json(&b, j);
        CHECK(str_find(buf_str(&b), S("<")) == b.n && str_find(buf_str(&b), S(">")) == b.n);
        json *back = json_parse(buf_str(&b), &err);
        CHECK(back != NULL);
        buf_clear(&plain);
        buf_clear(&again);
        json_write(j, &plain);
        if (back)
            json_write(back, &again);
        CHECK(str_eq(buf_str(&plain), buf_str(&again)));
        json_free(j);
        json_free(back);
    }
    buf_release(&b);
    buf_release(&plain);
    buf_release(&again);
}

/* Without its markup a line of code is the line. */
static void test_code_property(void) {
    struct rng r = rng_stream(3, S("report"));
    struct buf b, bare, shown;
    char room[120];
    bool in_comment = false;
    buf_init(&b, 1u << 16);
    buf_init(&bare, 1u << 16);
    buf_init(&shown, 1u << 16);
    for (uint64_t i = 0; i < 5000; i++) {
        str s = random_bytes(r, i, room, sizeof room);
        for (size_t k = 0; k < s.n; k++) /* ASCII: pieces of a character would show as escapes */
            room[k] = (char)(room[k] & 0x7f);
        buf_clear(&b);
        code_line(&b, s, &in_comment);
        buf_clear(&bare);
        for (size_t k = 0; k < b.n; k++) {
            if (b.p[k] == '<')
                while (k < b.n && b.p[k] != '>')
                    k++;
            else
                buf_putc(&bare, b.p[k]);
        }
        buf_clear(&shown);
        html_text(&shown, s);
        CHECKF(str_eq(buf_str(&bare), buf_str(&shown)), "round %llu: %s | %s",
               (unsigned long long)i, bare.p, shown.p);
    }
    buf_release(&b);
    buf_release(&bare);
    buf_release(&shown);
}

static void test_base64(void) {
    struct buf b;
    buf_init(&b, 256);
    html_base64(&b, sha256_of(S("")));
    CHECK(str_is(buf_str(&b), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="));
    buf_release(&b);
}

static void test_numbers(void) {
    struct arena *a = arena_new(1u << 20);
    CHECK(str_is(html_time(a, 3.6716e-6), "3.67 µs"));
    CHECK(str_is(html_time(a, 0.9999e-3), "1.00 ms"));
    CHECK(str_is(html_time(a, 2), "2.00 s"));
    CHECK(str_is(html_time(a, INFINITY), "–"));
    CHECK(str_is(html_time_mark(a, 20e-6), "20 µs"));
    CHECK(str_is(html_quantity(a, 4.26e12, "B/s"), "4.26 TB/s"));
    CHECK(str_is(html_percent(a, 0.274), "27%"));
    CHECK(str_is(html_percent(a, 0.0012), "0.1%"));
    CHECK(str_is(html_count(a, 1, "kernel"), "1 kernel"));
    CHECK(str_is(html_date(a, 1794979466), "2026-11-18 05:24 UTC"));
    CHECK(str_is(html_cut(a, S("aé∑b"), 4), "aé…"));
    CHECK(str_is(html_cut(a, S("ab"), 4), "ab"));
    arena_free(a);
}

/* ---- diffs ---- */

/* A text of few different lines, so that there is something in common. */
static str random_text(struct rng r, uint64_t at, struct arena *a) {
    struct buf b;
    buf_init(&b, 1u << 16);
    for (uint64_t i = 0, n = rng_u64(r, 100 * at) % 40; i < n; i++)
        buf_printf(&b, "line %d\n", (int)(rng_u64(r, 100 * at + i + 1) % 5));
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

/* Each text is what is the same and its own lines; equal texts have no changes. */
static void test_diff(void) {
    struct rng r = rng_stream(4, S("report"));
    struct arena *a = arena_new(64u << 20);
    struct buf x, y;
    struct diff d;
    buf_init(&x, 1u << 16);
    buf_init(&y, 1u << 16);
    for (uint64_t i = 0; i < 500; i++) {
        str before = random_text(r, 2 * i, a), after = random_text(r, 2 * i + 1, a);
        diff_of(before, after, a, &d);
        buf_clear(&x);
        buf_clear(&y);
        for (size_t k = 0; k < d.n; k++) {
            if (d.lines[k].kind != DIFF_NEW)
                buf_printf(&x, "%.*s\n", STR_ARG(d.lines[k].text));
            if (d.lines[k].kind != DIFF_OLD)
                buf_printf(&y, "%.*s\n", STR_ARG(d.lines[k].text));
        }
        CHECK(str_eq(buf_str(&x), before) && str_eq(buf_str(&y), after));
        diff_of(before, before, a, &d);
        CHECK(d.old_lines == 0 && d.new_lines == 0);
        arena_reset(a);
    }
    diff_of(S("a\nb\nc\n"), S("a\nx\nc\n"), a, &d);
    CHECK(d.n == 4 && d.old_lines == 1 && d.new_lines == 1 && d.lines[1].kind == DIFF_OLD);
    buf_release(&x);
    buf_release(&y);
    arena_free(a);
}

/* ---- axes ---- */

static void test_ticks(void) {
    static const struct {
        double from, to;
        bool logarithmic;
    } rows[] = {{0, 3.9, false},      {0, 1250, false},   {1e-6, 50e-6, true},
                {1e-6, 1.2e-6, true}, {1e-9, 1e3, true},  {0.09, 30, true},
                {0, 1e-3, false},     {1e11, 5e13, true}, {0, 28.6, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct axis x = {
            .from = rows[i].from, .to = rows[i].to, .logarithmic = rows[i].logarithmic};
        double t[12];
        size_t n = axis_ticks(&x, t, 8);
        CHECKF(n >= 2 && n <= 8, "row %zu: %zu marks", i, n);
        for (size_t k = 0; k < n; k++)
            CHECKF(t[k] >= x.from * 0.999 && t[k] <= x.to * 1.001 && (!k || t[k] > t[k - 1]),
                   "row %zu: %g", i, t[k]);
    }
}

/* ---- mathematics ---- */

static str math_of(const char *statement, struct arena *a) {
    struct task *t;
    struct err err = {0};
    struct buf b;
    str text =
        arena_printf(a,
                     "task t \"t\"\ndim N = 8\nin x[N] : f32 ~ normal(0, 1)\nout y[N] : f32\n%s\n"
                     "check N = 3\n",
                     statement);
    buf_init(&b, 1u << 16);
    if (task_parse(S("t.task"), text, a, &t, &err))
        mathml_statement(t, &t->statements[0], &b);
    else
        printf("# %s\n", err.text);
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

static void test_math(void) {
    static const struct {
        const char *statement, *part;
    } rows[] = {
        {"y[i] = x[i] + 1", "<msub><mi>x</mi><mrow><mi>i</mi></mrow></msub><mo>+</mo><mn>1</mn>"},
        {"y[i] = x[i] / 3", "<mfrac><mrow><msub>"},
        {"y[i] = sqrt(x[i])", "<msqrt>"},
        {"y[i] = sum(j) x[j] * x[i]", "<munder><mo>∑</mo><mrow><mi>j</mi></mrow></munder>"},
        {"y[i] = sum(j <= i) x[j]", "<mi>j</mi><mo>≤</mo><mi>i</mi>"},
        {"y[i] = if(x[i] < 0, 0, x[i])", "<mtext>otherwise</mtext>"},
        {"y[i] = (x[i] + 1) * 2", "<mrow><mo>(</mo>"},
        {"y[i] = 0.7978845608028654 * x[i]", "<mn>0.7978846…</mn>"},
        {"y[i] = exp(x[i])", "<msup><mi>e</mi>"},
        {"y[i] = abs(x[i])", "<mo>|</mo>"},
        {"y[i] = 1e-12 + x[i]",
         "=</mo><msup><mn>10</mn><mrow><mo form=\"prefix\">−</mo><mn>12</mn>"},
    };
    struct arena *a = arena_new(16u << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str m = math_of(rows[i].statement, a);
        CHECKF(str_find(m, str_view(rows[i].part)) < m.n, "%s: %.*s", rows[i].statement,
               STR_ARG(m));
    }
    arena_free(a);
}

/* Every element is closed, in order. */
static bool is_balanced(str s) {
    str open[256];
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] != '<')
            continue;
        bool closes = i + 1 < s.n && s.p[i + 1] == '/';
        size_t from = i + 1 + closes, end = from;
        while (end < s.n && s.p[end] != ' ' && s.p[end] != '>')
            end++;
        str name = str_cut(s, from, end - from);
        if (!closes && n < 256)
            open[n++] = name;
        else if (!closes || !n || !str_eq(open[--n], name))
            return false;
    }
    return n == 0;
}

static void check_tasks(const char *folder) {
    struct arena *a = arena_new(256u << 20);
    struct err err = {0};
    str *names;
    size_t n;
    struct buf b;
    buf_init(&b, 16u << 20);
    CHECK(dir_list(folder, a, &names, &n, &err));
    for (size_t i = 0; i < n; i++) {
        struct task *t;
        if (!str_ends(names[i], S(".task")))
            continue;
        CHECKF(task_load(arena_printf(a, "%s/%.*s", folder, STR_ARG(names[i])).p, a, &t, &err),
               "%s", err.text);
        buf_clear(&b);
        for (size_t k = 0; k < t->nstatements; k++) {
            mathml_statement(t, &t->statements[k], &b);
            mathml_ranges(t, &t->statements[k], &b);
        }
        for (size_t k = 0; k < t->ntensors; k++)
            mathml_tensor(t, k, &b);
        CHECKF(is_balanced(buf_str(&b)), "%.*s", STR_ARG(names[i]));
    }
    buf_release(&b);
    arena_free(a);
}

static void test_all_tasks(void) {
    static const char *const folders[] = {"tasks/smoke", "tasks/layers",
                                          "tasks/kernelbench/level1"};
    const char *root = getenv("SOURCE_ROOT");
    char path[4096];
    if (!root)
        SKIP("SOURCE_ROOT is not set");
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        check_tasks(path);
    }
}

static const struct tap_case cases[] = {
    {"markup, controls and directions in a text show as text", test_text},
    {"no bytes get through as markup", test_text_property},
    {"the page's JSON reads back, and ends no script", test_json_property},
    {"a coloured line of code is the line", test_code_property},
    {"base64 of a hash", test_base64},
    {"numbers for people", test_numbers},
    {"a diff has both texts in it", test_diff},
    {"marks of an axis lie on it, in order", test_ticks},
    {"statements as MathML", test_math},
    {"the MathML of every task is balanced", test_all_tasks},
};
TAP_CASES(cases)
