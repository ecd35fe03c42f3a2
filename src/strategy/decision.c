/* Parses one decision file: `key value...` lines, an empty line, prose. Every key once, none left
 * out, nothing unknown: a typo must not turn into a default. */
#include "strategy/decision.h"

enum key { KEY_VALUES, KEY_DEFAULT, KEY_WORKLOADS, KEY_REGIMES, KEY_COUNT };
static const char *const key_names[KEY_COUNT] = {"values", "default", "workloads", "regimes"};

struct reading {
    str file, text;
    struct decision *d;
    struct arena *mem;
    bool seen[KEY_COUNT];
};

const char *regime_name(enum regime r) {
    static const char *const names[REGIME_COUNT] = {"memory", "compute", "latency"};
    return names[r];
}

static bool name_good(str name) {
    if (name.n == 0 || name.n > 40 || name.p[0] < 'a' || name.p[0] > 'z')
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
            return false;
    }
    return true;
}

/* Where a piece of the text stands, for the caret. */
static size_t place(const struct reading *r, str piece) {
    return (size_t)(piece.p - r->text.p);
}

static bool next_word(str *rest, str *word) {
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

static bool read_integer(const struct reading *r, str word, int64_t *out, struct err *err) {
    if (str_to_i64(word, out) && *out != STRATEGY_UNSET)
        return true;
    return err_at(err, r->file, r->text, place(r, word), word.n, NULL, "expected an integer");
}

static bool read_values(struct reading *r, str rest, struct err *err) {
    int64_t values[DECISION_MAX_VALUES];
    size_t n = 0;
    str word;
    while (next_word(&rest, &word)) {
        if (n == DECISION_MAX_VALUES)
            return err_at(err, r->file, r->text, place(r, word), word.n, NULL,
                          "more than %d values", DECISION_MAX_VALUES);
        if (!read_integer(r, word, &values[n], err))
            return false;
        if (n > 0 && values[n] <= values[n - 1])
            return err_at(err, r->file, r->text, place(r, word), word.n, NULL,
                          "values must ascend");
        n++;
    }
    r->d->values = arena_array(r->mem, int64_t, n);
    for (size_t i = 0; i < n; i++)
        r->d->values[i] = values[i];
    r->d->nvalues = n;
    return true;
}

/* Marks the words of `rest` in flags[]; names come from name_of(0 … count-1). */
static bool read_names(struct reading *r, str rest, const char *(*name_of)(int), int count,
                       bool *flags, struct err *err) {
    str word;
    while (next_word(&rest, &word)) {
        int i = 0;
        while (i < count && !str_is(word, name_of(i)))
            i++;
        if (i == count)
            return err_at(err, r->file, r->text, place(r, word), word.n, NULL, "unknown name");
        flags[i] = true;
    }
    return true;
}

static const char *workload_at(int i) {
    return workload_name((enum workload)i);
}
static const char *regime_at(int i) {
    return regime_name((enum regime)i);
}

static bool read_key(struct reading *r, enum key key, str rest, struct err *err) {
    str word = rest;
    switch (key) {
    case KEY_VALUES:
        return read_values(r, rest, err);
    case KEY_DEFAULT:
        next_word(&rest, &word);
        if (str_trim(rest).n)
            return err_at(err, r->file, r->text, place(r, rest), rest.n, NULL, "one default only");
        return read_integer(r, word, &r->d->fallback, err);
    case KEY_WORKLOADS:
        return read_names(r, rest, workload_at, WORKLOAD_COUNT, r->d->workload, err);
    default:
        return read_names(r, rest, regime_at, REGIME_COUNT, r->d->regime, err);
    }
}

static bool read_line(struct reading *r, str line, struct err *err) {
    str rest = line, word;
    if (line.p[0] == '#' || !next_word(&rest, &word))
        return true;
    int key = 0;
    while (key < KEY_COUNT && !str_is(word, key_names[key]))
        key++;
    if (key == KEY_COUNT)
        return err_at(err, r->file, r->text, place(r, word), word.n,
                      "keys are values, default, workloads, regimes; prose follows an empty line",
                      "unknown key");
    if (r->seen[key])
        return err_at(err, r->file, r->text, place(r, word), word.n, NULL, "stated twice");
    r->seen[key] = true;
    if (str_trim(rest).n == 0)
        return err_at(err, r->file, r->text, place(r, word), word.n, NULL, "needs a value");
    return read_key(r, (enum key)key, rest, err);
}

static bool check_whole(const struct reading *r, struct err *err) {
    const struct decision *d = r->d;
    for (int k = 0; k < KEY_COUNT; k++)
        if (!r->seen[k])
            return err_set(err, ERR_INPUT, "%.*s: no line `%s`", STR_ARG(r->file), key_names[k]);
    if (d->prose.n == 0)
        return err_set(err, ERR_INPUT, "%.*s: no prose after an empty line", STR_ARG(r->file));
    for (size_t i = 0; i < d->nvalues; i++)
        if (d->values[i] == d->fallback)
            return true;
    return err_set(err, ERR_INPUT, "%.*s: the default is not one of the values", STR_ARG(r->file));
}

bool decision_parse(str file, str name, str text, struct arena *a, struct decision *out,
                    struct err *err) {
    struct reading r = {file, text, out, a, {false}};
    *out = (struct decision){.name = arena_str(a, name)};
    if (!name_good(name))
        return err_set(err, ERR_INPUT, "%.*s: a decision is named with a-z, 0-9 and dashes",
                       STR_ARG(file));
    if (text.n > DECISION_MAX_BYTES)
        return err_set(err, ERR_INPUT, "%.*s: over %u bytes", STR_ARG(file), DECISION_MAX_BYTES);
    str rest = text, line;
    while (str_line(&rest, &line)) {
        if (str_trim(line).n == 0)
            break;
        if (!read_line(&r, line, err))
            return false;
    }
    out->prose = arena_str(a, str_trim(rest));
    return check_whole(&r, err);
}
