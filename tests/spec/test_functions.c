/* What docs/TASKS.md says of functions is made from function.def: the list in the grammar and the
 * table of roundings. `test-spec-functions write` (make docs) puts both there. */
#include "base/file.h"
#include "spec/value.h"

#include "tap.h"
#include <stdlib.h>

static bool same_rounding(const struct function_info *a, const struct function_info *b) {
    return a->of_result == b->of_result && a->of_argument == b->of_argument &&
           a->absolute == b->absolute && a->least == b->least && a->args == b->args;
}

static bool is_exact(const struct function_info *f) {
    return f->result != RESULT_ROUNDED;
}

static void put_units(struct buf *out, double units) {
    if (units != 0)
        buf_printf(out, " %g u", units);
    buf_puts(out, S(" |"));
}

static void put_least(struct buf *out, double least) {
    CHECK(least == 0 || least == ldexp(1, ilogb(least)));
    if (least != 0)
        buf_printf(out, " 2^%d", ilogb(least));
    buf_puts(out, S(" |\n"));
}

/* A row for all functions that are rounded like this one; none where an earlier one has it. */
static void put_row(struct buf *out, enum function first) {
    const struct function_info *f = function_info(first);
    for (int g = 0; g < FUNCTION_COUNT; g++)
        if (same_rounding(function_info((enum function)g), f) && g < (int)first)
            return;
    buf_puts(out, S("|"));
    for (int g = 0; g < FUNCTION_COUNT; g++)
        if (same_rounding(function_info((enum function)g), f))
            buf_printf(out, f->args > 1 ? " `%s(x, y)`" : " `%s`",
                       function_info((enum function)g)->name);
    buf_puts(out, S(" |"));
    put_units(out, f->of_result);
    if (first == FUNCTION_POW)
        buf_puts(out, S(" y·ln\\|x\\| u of the result |"));
    else
        put_units(out, f->of_argument);
    put_units(out, f->absolute);
    put_least(out, f->least);
}

static const char table_head[] = "| | of the result | of the argument | absolute | least |\n";

static void put_table(struct buf *out) {
    buf_puts(out, str_view(table_head));
    buf_puts(out, S("|---|---|---|---|---|\n| `+` `-` | 1 u | | | |\n"
                    "| `*` `/` | 1 u | | | 2^-150 |\n"
                    "| a literal that fp32 does not hold | u/√3 | | | |\n"));
    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (!is_exact(function_info((enum function)f)))
            put_row(out, (enum function)f);
    buf_puts(out, S("|"));
    for (int f = 0; f < FUNCTION_COUNT; f++)
        if (is_exact(function_info((enum function)f)))
            buf_printf(out, " `%s`", function_info((enum function)f)->name);
    buf_puts(out, S(" `-` | 0 | | | |\n"));
}

static const char list_head[] = "function    = ";

/* Lines as long as the others of the grammar. */
static void put_list(struct buf *out) {
    size_t column = sizeof list_head - 1;
    buf_puts(out, str_view(list_head));
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        const char *name = function_info((enum function)f)->name;
        size_t n = strlen(name) + 2 + (f ? 3 : 0);
        if (column + n > 98) {
            buf_puts(out, S("\n           "));
            column = 11;
        }
        buf_printf(out, f ? " | \"%s\"" : "\"%s\"", name);
        column += n;
    }
    buf_puts(out, S(" ;\n"));
}

static str document(struct arena *a, char *path, size_t size) {
    const char *root = getenv("SOURCE_ROOT");
    struct err err = {0};
    str text = {0};
    snprintf(path, size, "%s/docs/TASKS.md", root ? root : ".");
    CHECKF(file_read(path, 1 << 20, a, &text, &err), "%s", err.text);
    return text;
}

/* From `head` to the end of the last line that belongs to it. */
static str part_of(str text, const char *head, const char *end) {
    str from = str_from(text, str_find(text, str_view(head)));
    size_t n = str_find(from, str_view(end));
    return str_cut(from, 0, n < from.n ? n + 1 : from.n);
}

static void check_part(str text, const char *head, const char *end, void (*put)(struct buf *out)) {
    struct buf want;
    buf_init(&want, 1 << 16);
    put(&want);
    CHECKF(str_eq(part_of(text, head, end), buf_str(&want)),
           "docs/TASKS.md is not what function.def says; make docs would put there\n%.*s",
           STR_ARG(buf_str(&want)));
    buf_release(&want);
}

static void tables(void) {
    struct arena *a = arena_new(4 << 20);
    char path[1024], bias[128];
    str text = document(a, path, sizeof path);
    check_part(text, table_head, "\n\n", put_table);
    check_part(text, list_head, "\n```", put_list);
    /* The accumulator's bias, of all partial sums and of a positive sum, whose partial sums are
     * half of it on average. */
    double bias_units = rules_of(ACCURACY_TF32).truncation * 0x1p24;
    snprintf(bias, sizeof bias,
             "%g·2^-24 of the sum of all partial sums, that is %g·K units of a positive sum",
             bias_units, bias_units / 2);
    CHECKF(str_find(text, str_view(bias)) < text.n, "docs/TASKS.md does not say: %s", bias);
    arena_free(a);
}

static void replace(struct buf *out, str text, const char *head, const char *end,
                    void (*put)(struct buf *out)) {
    str part = part_of(text, head, end);
    buf_puts(out, str_cut(text, 0, (size_t)(part.p - text.p)));
    put(out);
    buf_puts(out, str_from(text, (size_t)(part.p - text.p) + part.n));
}

static int write_tables(void) {
    struct arena *a = arena_new(4 << 20);
    char path[1024];
    struct buf list, all;
    struct err err = {0};
    buf_init(&list, 1 << 20);
    buf_init(&all, 1 << 20);
    replace(&list, document(a, path, sizeof path), list_head, "\n```", put_list);
    replace(&all, buf_str(&list), table_head, "\n\n", put_table);
    bool ok = !tap_failed_checks && file_replace(path, buf_str(&all), &err);
    if (!ok)
        fprintf(stderr, "%s\n", err.text);
    buf_release(&list);
    buf_release(&all);
    arena_free(a);
    return ok ? 0 : 1;
}

static const struct tap_case cases[] = {
    {"the document says what the table says", tables},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "write") == 0)
        return write_tables();
    return tap_main(cases, sizeof cases / sizeof *cases);
}
