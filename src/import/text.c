#include "import/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ex ex_of(str text) {
    return (struct ex){text, LEVEL_PRIMARY};
}

struct ex ex_integer(struct arena *a, int64_t v) {
    return (struct ex){arena_printf(a, "%" PRId64, v), v < 0 ? LEVEL_PREFIX : LEVEL_PRIMARY};
}

/* The fewest digits that read back the same. */
struct ex ex_number(struct arena *a, double v) {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    if (!strcmp(text, "inf") || !strcmp(text, "-inf"))
        return (struct ex){arena_str(a, str_view(text)),
                           text[0] == '-' ? LEVEL_PREFIX : LEVEL_PRIMARY};
    return (struct ex){arena_str(a, str_view(text)), v < 0 ? LEVEL_PREFIX : LEVEL_PRIMARY};
}

bool ex_is(struct ex e, const char *text) {
    return str_is(e.text, text);
}

bool ex_to_integer(struct ex e, int64_t *out) {
    return str_to_i64(e.text, out);
}

str ex_at_least(struct arena *a, struct ex e, enum level least) {
    return e.level >= least ? e.text : arena_printf(a, "(%.*s)", STR_ARG(e.text));
}

static struct ex joined(struct arena *a, struct ex x, const char *sign, struct ex y,
                        enum level level, enum level left, enum level right) {
    str l = ex_at_least(a, x, left), r = ex_at_least(a, y, right);
    return (struct ex){arena_printf(a, "%.*s%s%.*s", STR_ARG(l), sign, STR_ARG(r)), level};
}

static struct ex negated_literal(struct ex y) {
    return (struct ex){str_from(y.text, 1), LEVEL_PRIMARY};
}

static bool is_negative_literal(struct ex y) {
    return y.level == LEVEL_PREFIX && y.text.n > 1 && y.text.p[0] == '-' &&
           isdigit((unsigned char)y.text.p[1]);
}

struct ex ex_add(struct arena *a, struct ex x, struct ex y) {
    int64_t m, n;
    if (ex_is(x, "0"))
        return y;
    if (ex_is(y, "0"))
        return x;
    if (ex_to_integer(x, &m) && ex_to_integer(y, &n) && !__builtin_add_overflow(m, n, &m))
        return ex_integer(a, m);
    if (is_negative_literal(y))
        return joined(a, x, " - ", negated_literal(y), LEVEL_SUM, LEVEL_SUM, LEVEL_PREFIX);
    return joined(a, x, " + ", y, LEVEL_SUM, LEVEL_SUM, LEVEL_REDUCTION);
}

struct ex ex_sub(struct arena *a, struct ex x, struct ex y) {
    int64_t m, n;
    if (ex_is(y, "0"))
        return x;
    if (ex_to_integer(x, &m) && ex_to_integer(y, &n) && !__builtin_sub_overflow(m, n, &m))
        return ex_integer(a, m);
    if (is_negative_literal(y))
        return joined(a, x, " + ", negated_literal(y), LEVEL_SUM, LEVEL_SUM, LEVEL_PREFIX);
    return joined(a, x, " - ", y, LEVEL_SUM, LEVEL_SUM, LEVEL_REDUCTION);
}

struct ex ex_mul(struct arena *a, struct ex x, struct ex y) {
    int64_t m, n;
    if (ex_is(x, "1"))
        return y;
    if (ex_is(y, "1"))
        return x;
    if (ex_to_integer(x, &m) && ex_to_integer(y, &n) && !__builtin_mul_overflow(m, n, &m))
        return ex_integer(a, m);
    return joined(a, x, "*", y, LEVEL_PRODUCT, LEVEL_PRODUCT, LEVEL_PREFIX);
}

struct ex ex_floordiv(struct arena *a, struct ex x, struct ex y) {
    if (ex_is(y, "1"))
        return x;
    return joined(a, x, "//", y, LEVEL_PRODUCT, LEVEL_PRODUCT, LEVEL_PREFIX);
}

struct ex ex_mod(struct arena *a, struct ex x, struct ex y) {
    if (ex_is(y, "1"))
        return ex_of(S("0"));
    return joined(a, x, "%", y, LEVEL_PRODUCT, LEVEL_PRODUCT, LEVEL_PREFIX);
}

struct ex ex_and(struct arena *a, struct ex x, struct ex y) {
    if (!x.text.n)
        return y;
    if (!y.text.n)
        return x;
    return joined(a, x, " && ", y, LEVEL_AND, LEVEL_AND, LEVEL_COMPARISON);
}

struct ex ex_if(struct arena *a, struct ex condition, struct ex yes, struct ex no) {
    return ex_of(arena_printf(a, "if(%.*s, %.*s, %.*s)", STR_ARG(condition.text), STR_ARG(yes.text),
                              STR_ARG(no.text)));
}

struct ex ex_size(str text) {
    enum level level = LEVEL_PRIMARY;
    int depth = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        depth += (c == '(') - (c == ')');
        if (depth == 0 && (c == '+' || c == '-'))
            level = LEVEL_SUM;
        else if (depth == 0 && (c == '*' || c == '/') && level > LEVEL_PRODUCT)
            level = LEVEL_PRODUCT;
    }
    return (struct ex){text, level};
}

/* ---- products ---- */

static void put_factor(struct monomial *p, str name, int power) {
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->factors[i].name, name)) {
            p->factors[i].power += power;
            if (!p->factors[i].power)
                p->factors[i] = p->factors[--p->n];
            return;
        }
    if (p->n < MONOMIAL_FACTORS)
        p->factors[p->n++] = (struct factor){name, power};
}

static int64_t common_divisor(int64_t m, int64_t n) {
    while (n) {
        int64_t rest = m % n;
        m = n;
        n = rest;
    }
    return m ? m : 1;
}

/* No tensor is so large that a product of its sizes ends at the limit. */
static int64_t times_at_most(int64_t m, int64_t n) {
    int64_t product;
    return __builtin_mul_overflow(m, n, &product) || product < 0 ? INT64_MAX : product;
}

static void put_number(struct monomial *p, int64_t number, int64_t below) {
    p->number = times_at_most(p->number, number);
    p->below = times_at_most(p->below ? p->below : 1, below ? below : 1);
    int64_t by = common_divisor(p->number, p->below);
    p->number /= by;
    p->below /= by;
}

static void put_monomial(struct monomial *p, const struct monomial *q, int power) {
    put_number(p,
               power > 0  ? q->number
               : q->below ? q->below
                          : 1,
               power > 0 ? q->below : q->number);
    for (size_t i = 0; i < q->n; i++)
        put_factor(p, q->factors[i].name, power * q->factors[i].power);
}

enum { LONGEST_SIZE = 512 }; /* that is taken apart: each bracket is a call */

/* One factor between the operators of a product. */
static void put_text(struct monomial *p, str text, int power) {
    int64_t n;
    text = str_trim(text);
    if (str_to_i64(text, &n)) {
        put_number(p, power > 0 ? n : 1, power > 0 ? 1 : n);
    } else if (text.n > 2 && text.n < LONGEST_SIZE && text.p[0] == '(' &&
               text.p[text.n - 1] == ')') {
        struct monomial inside = monomial_of(str_cut(text, 1, text.n - 2));
        put_monomial(p, &inside, power);
    } else {
        put_factor(p, text, power);
    }
}

struct monomial monomial_of(str size) {
    struct monomial p = {.number = 1, .below = 1};
    struct monomial whole = {.number = 1, .below = 1, .factors = {{size, 1}}, .n = 1};
    int depth = 0, power = 1;
    size_t from = 0;
    for (size_t i = 0; i <= size.n; i++) {
        char c = i < size.n ? size.p[i] : '*';
        depth += (c == '(') - (c == ')');
        if (depth)
            continue;
        if (c == '+' || c == '-' || c == '%')
            return whole;
        if (c != '*' && c != '/')
            continue;
        put_text(&p, str_cut(size, from, i - from), power);
        power = c == '*' ? 1 : -1;
        if (c == '/' && i + 1 < size.n && size.p[i + 1] == '/')
            i++;
        from = i + 1;
    }
    return p;
}

static int power_of(const struct monomial *p, str name) {
    for (size_t i = 0; i < p->n; i++)
        if (str_eq(p->factors[i].name, name))
            return p->factors[i].power;
    return 0;
}

/* What stands below the line must have stood there before, and something above it still. */
bool monomial_over(struct monomial x, struct monomial y, struct monomial *out) {
    bool above = false, below = false;
    if (!y.number)
        return false;
    *out = x;
    put_monomial(out, &y, -1);
    for (size_t i = 0; i < out->n; i++) {
        int power = out->factors[i].power;
        if (power < 0 && power_of(&x, out->factors[i].name) > power)
            return false;
        above = above || power > 0;
        below = below || power < 0;
    }
    if (out->below > 1 && (!x.below || x.below % out->below))
        return false;
    return above || !(below || out->below > 1);
}

bool monomial_equal(struct monomial x, struct monomial y) {
    struct monomial one;
    return monomial_over(x, y, &one) && monomial_is_one(one);
}

bool monomial_is_one(struct monomial x) {
    return x.number == 1 && x.below <= 1 && x.n == 0;
}

struct monomial monomial_times(struct monomial x, struct monomial y) {
    put_monomial(&x, &y, 1);
    return x;
}

str monomial_text(struct arena *a, struct monomial x) {
    struct ex e = ex_integer(a, x.number);
    for (size_t i = 0; i < x.n; i++)
        for (int k = 0; k < x.factors[i].power; k++)
            e = ex_mul(a, e, ex_size(x.factors[i].name));
    for (size_t i = 0; i < x.n; i++)
        for (int k = 0; k < -x.factors[i].power; k++)
            e = ex_floordiv(a, e, ex_size(x.factors[i].name));
    return x.below > 1 ? ex_floordiv(a, e, ex_integer(a, x.below)).text : e.text;
}

bool text_mentions(str text, str name) {
    for (size_t from = 0; from < text.n;) {
        size_t at = from + str_find(str_from(text, from), name), end = at + name.n;
        if (at >= text.n)
            return false;
        bool begins = !at || !(isalnum((unsigned char)text.p[at - 1]) || text.p[at - 1] == '_');
        bool ends = end >= text.n || !(isalnum((unsigned char)text.p[end]) || text.p[end] == '_');
        if (begins && ends)
            return true;
        from = at + 1;
    }
    return false;
}
