#include "strategy/reader.h"

bool reader_word(str *rest, str *word) {
    *rest = str_trim(*rest);
    if (rest->n == 0)
        return false;
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    *word = str_cut(*rest, 0, n);
    *rest = str_from(*rest, n);
    return true;
}

bool reader_integer(const struct reader *r, str word, int64_t *out, struct err *err) {
    if (str_to_i64(word, out) && *out != STRATEGY_UNSET)
        return true;
    return READER_FAIL(r, err, word, NULL, "expected an integer");
}

static bool read_condition(const struct reader *r, str *rest, struct condition *out,
                           struct err *err) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    str name, sign, number;
    *rest = str_trim(*rest);
    if (!reader_word(rest, &name) || !reader_word(rest, &sign) || !reader_word(rest, &number))
        return err_at(err, r->file, r->text, (size_t)(rest->p - r->text.p), 1, "as in `wgmma == 1`",
                      "expected a name, a comparison and a number");
    int op = 0;
    while (op < (int)(sizeof signs / sizeof *signs) && !str_is(sign, signs[op]))
        op++;
    if (op > COMPARE_GE)
        return READER_FAIL(r, err, sign, NULL, "expected one of == != < <= > >=");
    *out = (struct condition){.name = name, .op = (enum compare)op};
    return reader_integer(r, number, &out->number, err);
}

bool reader_conditions(const struct reader *r, str rest, struct condition *all, size_t *n,
                       struct err *err) {
    str word;
    do {
        if (*n == RULE_MAX_CONDITIONS)
            return err_at(err, r->file, r->text, (size_t)(rest.p - r->text.p), 1, NULL,
                          "more than %d conditions", RULE_MAX_CONDITIONS);
        if (!read_condition(r, &rest, &all[(*n)++], err))
            return false;
        if (!reader_word(&rest, &word))
            return true;
    } while (str_is(word, "&&"));
    return READER_FAIL(r, err, word, NULL, "expected && or the end");
}

bool compare_holds(int64_t a, enum compare op, int64_t b) {
    switch (op) {
    case COMPARE_EQ:
        return a == b;
    case COMPARE_NE:
        return a != b;
    case COMPARE_LT:
        return a < b;
    case COMPARE_LE:
        return a <= b;
    case COMPARE_GT:
        return a > b;
    default:
        return a >= b;
    }
}
