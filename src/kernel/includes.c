/* Finding #include directives so that none can hide.
 *
 * The scan keeps no state of comments and strings, which is what such hiding lives on: any `#` (or
 * `%:`) that is followed by include, include_next, import or embed is taken for a directive, with
 * lines spliced and comments between the two skipped as the compiler does. The price is that a
 * refused include in a comment or a string is refused as well. An operand that is not a plain
 * <name> or "name" (a macro, say) is refused too: what it expands to is not known here. */
#include "kernel/includes.h"

#include <string.h>

#define DIRECTIVE_MOST 1024 /* bytes from the # to the end of its operand */

const char includes_list[] = "cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h, "
                             "cooperative_groups/*, cuda/std/*, cute/*, cutlass/*";

/* A name that ends in / stands for all below it. */
static const char *const allowed[] = {
    "cuda_fp16.h",         "cuda_bf16.h", "cuda_fp8.h", "mma.h",   "cooperative_groups.h",
    "cooperative_groups/", "cuda/std/",   "cute/",      "cutlass/"};

/* What people include out of habit, and what to do instead. */
static const struct {
    const char *name, *hint;
} habits[] = {
    {"cuda_runtime.h", "it is not needed here: remove it"},
    {"cuda.h", "it is not needed here: remove it"},
    {"device_launch_parameters.h", "it is not needed here: remove it"},
    {"math.h", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"cmath", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"math_constants.h", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"float.h", "FLT_MAX and the like are there already: remove it"},
    {"cfloat", "FLT_MAX and the like are there already: remove it"},
    {"limits.h", "INT_MAX and the like are there already: remove it"},
    {"climits", "INT_MAX and the like are there already: remove it"},
    {"stdint.h", "uint32_t and the like are there already: remove it"},
    {"cstdint", "uint32_t and the like are there already: remove it"},
    {"stdio.h", "printf is not allowed: remove it"},
    {"cstdio", "printf is not allowed: remove it"},
};

static bool plain_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_./+-", c);
}

bool include_allowed(str name) {
    for (size_t i = 0; i < name.n; i++)
        if (!name.p[i] || !plain_character(name.p[i]) || str_starts(str_from(name, i), S("..")))
            return false;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        str entry = str_view(allowed[i]);
        if (str_ends(entry, S("/")) ? str_starts(name, entry) : str_eq(name, entry))
            return true;
    }
    return false;
}

static const char *reason(str name) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (str_is(name, habits[i].name))
            return habits[i].hint;
    return "it is not on the list of headers";
}

/* ---- the text as the compiler sees it ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Backslash, blanks, newline: nothing. Some compilers allow the blanks, so they hide nothing. */
static size_t splice_at(str s, size_t i) {
    size_t n = 1;
    if (s.p[i] != '\\')
        return 0;
    while (i + n < s.n && is_blank(s.p[i + n]))
        n++;
    return i + n < s.n && s.p[i + n] == '\n' ? n + 1 : 0;
}

static str without_splices(str s, struct arena *a) {
    char *p = arena_alloc(a, s.n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        size_t skip = splice_at(s, i);
        if (skip)
            i += skip;
        else
            p[n++] = s.p[i++];
    }
    return (str){p, n};
}

/* Past blanks and comments; a // comment ends the directive, so it is left standing. */
static size_t past_blanks(str s, size_t i) {
    while (i < s.n) {
        if (is_blank(s.p[i])) {
            i++;
        } else if (str_starts(str_from(s, i), S("/*"))) {
            size_t end = str_find(str_from(s, i + 2), S("*/"));
            i = i + 2 + end + 2;
        } else {
            break;
        }
    }
    return i < s.n ? i : s.n;
}

static str word_at(str s, size_t i) {
    size_t n = 0;
    while (i + n < s.n && ((s.p[i + n] >= 'a' && s.p[i + n] <= 'z') || s.p[i + n] == '_'))
        n++;
    return str_cut(s, i, n);
}

/* ---- operands ---- */

static void refuse(struct includes *out, str operand, const char *why) {
    if (!out->allowed)
        return; /* the first is enough */
    out->allowed = false;
    operand = str_trim(operand);
    out->refused = operand.n ? operand : S("of nothing");
    out->why = why;
}

static void check_operand(str rest, struct includes *out) {
    str line = rest;
    str_line(&rest, &line);
    char close = line.n && line.p[0] == '<' ? '>' : '"';
    const char *end = line.n > 1 && (line.p[0] == '<' || line.p[0] == '"')
                          ? memchr(line.p + 1, close, line.n - 1)
                          : NULL;
    if (!end) {
        refuse(out, str_cut(line, 0, 120), "an include must name a header, not a macro");
        return;
    }
    str name = {line.p + 1, (size_t)(end - line.p) - 1};
    if (!include_allowed(name))
        refuse(out, str_cut(line, 0, name.n + 2), reason(name));
    else if (str_starts(name, S("cute/")) || str_starts(name, S("cutlass/")))
        out->cute = true;
}

/* Looks a bounded way ahead, so that the whole scan is linear in the text. */
static void check_directive(str text, size_t at, struct includes *out) {
    str ahead = str_cut(text, at, DIRECTIVE_MOST);
    size_t i = past_blanks(ahead, 0);
    if (i == ahead.n && ahead.n == DIRECTIVE_MOST)
        refuse(out, S("#"), "an over-long comment inside a directive");
    str word = word_at(ahead, i);
    if (str_is(word, "embed"))
        refuse(out, word, "files cannot be embedded");
    else if (str_is(word, "include") || str_is(word, "include_next") || str_is(word, "import"))
        check_operand(str_from(ahead, past_blanks(ahead, i + word.n)), out);
}

void includes_scan(str unit, struct arena *a, struct includes *out) {
    *out = (struct includes){.allowed = true};
    str text = without_splices(unit, a);
    for (size_t i = 0; i < text.n && out->allowed; i++) {
        if (text.p[i] == '#')
            check_directive(text, i + 1, out);
        else if (str_starts(str_from(text, i), S("%:")))
            check_directive(text, i + 2, out);
        else if (str_starts(str_from(text, i), S("\?\?=")))
            check_directive(text, i + 3, out);
    }
}

bool includes_unopened(str log, str *name) {
    static const char says[] = "cannot open source file \"";
    size_t at = str_find(log, str_view(says));
    if (at == log.n)
        return false;
    str rest = str_from(log, at + sizeof says - 1);
    return str_word(&rest, '"', name);
}
