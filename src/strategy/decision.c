/* Parses one decision file: `key value...` lines, an empty line, prose. Every key once, but for
 * rules, of which there may be any number, and for names and asked, which may be missing, as may
 * what says when it matters; nothing unknown: a typo must not turn into a default. */
#include "strategy/decision.h"
#include "strategy/reader.h"

enum key {
    KEY_VALUES,
    KEY_DEFAULT,
    KEY_WORKLOADS,
    KEY_REGIMES,
    KEY_MUST, /* those above must be there */
    KEY_NAMES = KEY_MUST,
    KEY_ASKED,
    KEY_NEEDS, /* from here on there may be several */
    KEY_CONFLICTS,
    KEY_MATTERS,
    KEY_COUNT
};
static const char *const key_names[KEY_COUNT] = {
    "values", "default", "workloads", "regimes", "names", "asked", "needs", "conflicts", "matters"};
enum { RULES_MOST = 16 };

struct reading {
    struct reader in;
    struct arena *mem;
    struct decision *d;
    bool seen[KEY_COUNT];
    struct rule rules[RULES_MOST], matters[RULES_MOST];
};

const char *regime_name(enum regime r) {
    static const char *const names[REGIME_COUNT] = {"memory", "compute", "latency"};
    return names[r];
}

/* A word that stands in a strategy's text. */
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

static bool read_values(struct reading *r, str rest, struct err *err) {
    int64_t values[DECISION_MAX_VALUES];
    size_t n = 0;
    str word;
    while (reader_word(&rest, &word)) {
        if (n == DECISION_MAX_VALUES)
            return READER_FAIL(&r->in, err, word, NULL, "more than %d values", DECISION_MAX_VALUES);
        if (!reader_integer(&r->in, word, &values[n], err))
            return false;
        if (n > 0 && values[n] <= values[n - 1])
            return READER_FAIL(&r->in, err, word, NULL, "values must ascend");
        n++;
    }
    r->d->values = arena_array(r->mem, int64_t, n);
    for (size_t i = 0; i < n; i++)
        r->d->values[i] = values[i];
    r->d->nvalues = n;
    return true;
}

/* Words for the values, in their order. */
static bool read_value_names(struct reading *r, str rest, struct err *err) {
    struct decision *d = r->d;
    str word, all = rest;
    size_t n = 0;
    d->names = arena_array(r->mem, str, d->nvalues ? d->nvalues : 1);
    while (reader_word(&rest, &word)) {
        if (!name_good(word) || n == d->nvalues)
            return READER_FAIL(&r->in, err, word,
                               "below the line `values`, a word of a-z, 0-9 and dashes for each",
                               "not a name of a value");
        d->names[n++] = arena_str(r->mem, word);
    }
    return n == d->nvalues ||
           READER_FAIL(&r->in, err, all, NULL, "%zu names for %zu values", n, d->nvalues);
}

static bool read_asked(const struct reading *r, str rest, struct err *err) {
    rest = str_trim(rest);
    for (int f = 0; f < FACT_COUNT; f++)
        if (str_is(rest, fact_name((enum ground_fact)f))) {
            r->d->asked = true;
            r->d->asked_fact = (enum ground_fact)f;
            return true;
        }
    return READER_FAIL(&r->in, err, rest, NULL, "no such fact");
}

/* Marks the words of `rest` in flags[]; names come from name_of(0 … count-1). */
static bool read_names(struct reading *r, str rest, const char *(*name_of)(int), int count,
                       bool *flags, struct err *err) {
    str word;
    while (reader_word(&rest, &word)) {
        int i = 0;
        while (i < count && !str_is(word, name_of(i)))
            i++;
        if (i == count)
            return READER_FAIL(&r->in, err, word, NULL, "unknown name");
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

/* ---- rules ---- */

static bool read_conditions(const struct reading *r, str rest, struct rule *rule, struct err *err) {
    if (!reader_conditions(&r->in, rest, rule->all, &rule->n, err))
        return false;
    for (size_t i = 0; i < rule->n; i++)
        rule->all[i].name = arena_str(r->mem, rule->all[i].name);
    return true;
}

/* "2 3:" before the conditions. */
static bool read_rule_values(const struct reading *r, str list, struct rule *rule,
                             struct err *err) {
    int64_t values[DECISION_MAX_VALUES] = {0};
    str word;
    while (reader_word(&list, &word)) {
        if (rule->nvalues == DECISION_MAX_VALUES)
            return READER_FAIL(&r->in, err, word, NULL, "too many values");
        if (!reader_integer(&r->in, word, &values[rule->nvalues++], err))
            return false;
    }
    rule->values = arena_array(r->mem, int64_t, rule->nvalues ? rule->nvalues : 1);
    for (size_t i = 0; i < rule->nvalues; i++)
        rule->values[i] = values[i];
    return true;
}

static bool read_rule(struct reading *r, bool forbids, str rest, struct err *err) {
    struct rule *rule = &r->rules[r->d->nrules];
    size_t colon = str_find(rest, S(":"));
    if (r->d->nrules == RULES_MOST)
        return READER_FAIL(&r->in, err, rest, NULL, "more than %d rules", RULES_MOST);
    r->d->nrules++;
    *rule = (struct rule){.forbids = forbids};
    if (colon < rest.n) {
        if (!read_rule_values(r, str_cut(rest, 0, colon), rule, err))
            return false;
        rest = str_from(rest, colon + 1);
    }
    return read_conditions(r, rest, rule, err);
}

static bool read_matters(struct reading *r, str rest, struct err *err) {
    if (r->d->nmatters == RULES_MOST)
        return READER_FAIL(&r->in, err, rest, NULL, "more than %d lines `matters`", RULES_MOST);
    return read_conditions(r, rest, &r->matters[r->d->nmatters++], err);
}

/* A conflict without values is about all but the default. */
static bool settle_rules(struct reading *r, struct err *err) {
    struct decision *d = r->d;
    d->matters = arena_array(r->mem, struct rule, d->nmatters ? d->nmatters : 1);
    for (size_t i = 0; i < d->nmatters; i++)
        d->matters[i] = r->matters[i];
    d->rules = arena_array(r->mem, struct rule, d->nrules ? d->nrules : 1);
    for (size_t i = 0; i < d->nrules; i++) {
        struct rule *rule = &d->rules[i];
        *rule = r->rules[i];
        if (rule->forbids && !rule->values) {
            rule->values = arena_array(r->mem, int64_t, d->nvalues);
            for (size_t k = 0; k < d->nvalues; k++)
                if (d->values[k] != d->fallback)
                    rule->values[rule->nvalues++] = d->values[k];
        }
        for (size_t k = 0; k < rule->nvalues; k++) {
            bool known = false;
            for (size_t v = 0; v < d->nvalues; v++)
                known |= d->values[v] == rule->values[k];
            if (!known || rule->values[k] == d->fallback)
                return err_set(err, ERR_INPUT, "%.*s: a rule for %lld, which is %s",
                               STR_ARG(r->in.file), (long long)rule->values[k],
                               known ? "the default" : "none of the values");
        }
    }
    return true;
}

static bool read_key(struct reading *r, enum key key, str rest, struct err *err) {
    str word = rest;
    switch (key) {
    case KEY_VALUES:
        return read_values(r, rest, err);
    case KEY_DEFAULT:
        reader_word(&rest, &word);
        if (str_trim(rest).n)
            return READER_FAIL(&r->in, err, rest, NULL, "one default only");
        return reader_integer(&r->in, word, &r->d->fallback, err);
    case KEY_WORKLOADS:
        return read_names(r, rest, workload_at, WORKLOAD_COUNT, r->d->workload, err);
    case KEY_NAMES:
        return read_value_names(r, rest, err);
    case KEY_ASKED:
        return read_asked(r, rest, err);
    case KEY_NEEDS:
    case KEY_CONFLICTS:
        return read_rule(r, key == KEY_CONFLICTS, rest, err);
    case KEY_MATTERS:
        return read_matters(r, rest, err);
    default:
        return read_names(r, rest, regime_at, REGIME_COUNT, r->d->regime, err);
    }
}

static bool read_line(struct reading *r, str line, struct err *err) {
    str rest = line, word;
    if (line.p[0] == '#' || !reader_word(&rest, &word))
        return true;
    int key = 0;
    while (key < KEY_COUNT && !str_is(word, key_names[key]))
        key++;
    if (key == KEY_COUNT)
        return READER_FAIL(&r->in, err, word,
                           "keys are values, default, workloads, regimes, names, asked, needs, "
                           "conflicts, matters; prose follows an empty line",
                           "unknown key");
    if (key < KEY_NEEDS && r->seen[key])
        return READER_FAIL(&r->in, err, word, NULL, "stated twice");
    r->seen[key] = true;
    if (str_trim(rest).n == 0)
        return READER_FAIL(&r->in, err, word, NULL, "needs a value");
    return read_key(r, (enum key)key, rest, err);
}

static bool check_whole(const struct reading *r, struct err *err) {
    const struct decision *d = r->d;
    for (int k = 0; k < KEY_MUST; k++)
        if (!r->seen[k])
            return err_set(err, ERR_INPUT, "%.*s: no line `%s`", STR_ARG(r->in.file), key_names[k]);
    if (d->prose.n == 0)
        return err_set(err, ERR_INPUT, "%.*s: no prose after an empty line", STR_ARG(r->in.file));
    for (size_t i = 0; i < d->nvalues; i++)
        if (d->values[i] == d->fallback)
            return true;
    return err_set(err, ERR_INPUT, "%.*s: the default is not one of the values",
                   STR_ARG(r->in.file));
}

bool decision_parse(str file, str name, str text, struct arena *a, struct decision *out,
                    struct err *err) {
    struct reading r = {.in = {file, text}, .mem = a, .d = out};
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
    return check_whole(&r, err) && settle_rules(&r, err);
}
