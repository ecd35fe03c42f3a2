/* Decisions, the catalogue of them, and strategies. A strategy holds values; most arithmetic here
 * is on their ranks in the decision's list, so that "next larger" and "far apart" do not depend on
 * the unit of a decision. Everything random is a function of the stream it is given. */
#include "base/asset.h"
#include "base/file.h"
#include "strategy/reader.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *fact_name(enum ground_fact f);

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

/* ---- one decision file: `key value...` lines, an empty line, prose ----
 *
 * Every key once, but for rules, of which there may be any number, and for names and asked, which
 * may be missing, as may what says when it matters; nothing unknown: a typo must not turn into a
 * default. */

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

static const char *regime_name(enum regime r) {
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

/* ---- the catalogue: every strategies/NAME.decision, embedded or in the user's assets folder ----
 */

static const char folder[] = "strategies/";
static const char ending[] = ".decision";

struct names {
    str at[STRATEGY_MAX_DECISIONS];
    size_t n;
};

/* Keeps the list sorted and free of doubles. */
static bool add_name(struct names *list, str name, struct err *err) {
    size_t i = 0;
    while (i < list->n && str_cmp(list->at[i], name) < 0)
        i++;
    if (i < list->n && str_eq(list->at[i], name))
        return true;
    if (list->n == STRATEGY_MAX_DECISIONS)
        return err_set(err, ERR_INPUT, "more than %d decisions", STRATEGY_MAX_DECISIONS);
    memmove(&list->at[i + 1], &list->at[i], (list->n - i) * sizeof list->at[0]);
    list->at[i] = name;
    list->n++;
    return true;
}

static bool add_file(struct names *list, str file, struct err *err) {
    if (!str_ends(file, str_view(ending)))
        return true;
    return add_name(list, str_cut(file, 0, file.n - (sizeof ending - 1)), err);
}

static bool find_names(const char *assets, struct arena *a, struct names *list, struct err *err) {
    for (const struct asset *f = asset_table; f->name; f++) {
        str path = str_view(f->name);
        if (str_starts(path, str_view(folder)) &&
            !add_file(list, str_from(path, sizeof folder - 1), err))
            return false;
    }
    if (!assets)
        return true;
    str dir = arena_printf(a, "%s/strategies", assets), *files;
    size_t n;
    if (!file_exists(dir.p))
        return true;
    if (!dir_list(dir.p, a, &files, &n, err))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!add_file(list, files[i], err))
            return false;
    return true;
}

static const char *fact_name(enum ground_fact f) {
    static const char *const names[] = {
#define FACT(id, name, what) name,
#include "strategy/fact.def"
#undef FACT
    };
    return names[f];
}

static bool find_name(const struct catalogue *c, struct condition *x) {
    for (size_t i = 0; i < FACT_COUNT; i++)
        if (str_is(x->name, fact_name((enum ground_fact)i))) {
            x->is_fact = true;
            x->which = i;
            return true;
        }
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(x->name, c->decisions[i].name)) {
            x->which = i;
            return true;
        }
    return false;
}

static bool find_names_in(struct catalogue *c, const struct decision *d, struct rule *rules,
                          size_t n, struct err *err) {
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < rules[i].n; k++)
            if (!find_name(c, &rules[i].all[k]))
                return err_set(err, ERR_INPUT, "%s%.*s%s: `%.*s` is neither a decision nor a fact",
                               folder, STR_ARG(d->name), ending, STR_ARG(rules[i].all[k].name));
    return true;
}

static bool asks_about(const struct decision *d, size_t other) {
    for (size_t i = 0; i < d->nrules; i++)
        for (size_t k = 0; k < d->rules[i].n; k++)
            if (!d->rules[i].all[k].is_fact && d->rules[i].all[k].which == other)
                return true;
    return false;
}

bool catalogue_settle(struct catalogue *c, struct err *err) {
    bool placed[STRATEGY_MAX_DECISIONS] = {false};
    for (size_t i = 0; i < c->n; i++)
        if (!find_names_in(c, &c->decisions[i], c->decisions[i].rules, c->decisions[i].nrules,
                           err) ||
            !find_names_in(c, &c->decisions[i], c->decisions[i].matters, c->decisions[i].nmatters,
                           err))
            return false;
    for (size_t n = 0; n < c->n; n++) {
        size_t next = c->n;
        for (size_t i = 0; i < c->n && next == c->n; i++) {
            bool ready = !placed[i];
            for (size_t k = 0; ready && k < c->n; k++)
                ready = placed[k] || !asks_about(&c->decisions[i], k);
            next = ready ? i : next;
        }
        if (next == c->n)
            return err_set(err, ERR_INPUT,
                           "decisions whose rules ask about each other in a circle");
        placed[next] = true;
        c->order[n] = next;
    }
    return true;
}

bool catalogue_load(const char *assets, struct arena *a, struct catalogue **out, struct err *err) {
    struct names list = {.n = 0};
    if (!find_names(assets, a, &list, err))
        return err_wrap(err, "strategies");
    struct catalogue *c = arena_new_of(a, struct catalogue);
    c->decisions = arena_array(a, struct decision, list.n);
    c->n = list.n;
    for (size_t i = 0; i < list.n; i++) {
        str file = arena_printf(a, "%s%.*s%s", folder, STR_ARG(list.at[i]), ending), text;
        if (!asset_get(assets, file.p, a, &text, err) ||
            !decision_parse(file, list.at[i], text, a, &c->decisions[i], err))
            return false;
    }
    *out = c;
    return catalogue_settle(c, err);
}

/* Chances of a mutation: to move to a neighbouring value rather than any, and to go on to another
 * decision. */
#define NEIGHBOUR_SHARE 0.7
#define FURTHER_SHARE   0.3
/* Chance of a mutation that it is of one step alone, where there are several; its stream. */
#define STEP_SHARE  0.3
#define STEP_STREAM 1000

static int decision_find(const struct catalogue *c, str name) {
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->decisions[i].name, name))
            return (int)i;
    return -1;
}

static int rank_of(const struct decision *d, int64_t value) {
    for (size_t i = 0; i < d->nvalues; i++)
        if (d->values[i] == value)
            return (int)i;
    return -1;
}

static void strategy_clear(struct strategy *s) {
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        s->value[i] = STRATEGY_UNSET;
    s->nown = 0;
    s->remark = 0;
}

/* ---- what is legal ---- */

static bool condition_holds(const struct condition *x, const struct ground *g,
                            const struct strategy *s) {
    int64_t v = x->is_fact ? g->fact[x->which] : s->value[x->which];
    return v != STRATEGY_UNSET && compare_holds(v, x->op, x->number);
}

static bool rule_holds(const struct rule *r, const struct ground *g, const struct strategy *s) {
    bool all = true;
    for (size_t i = 0; i < r->n; i++)
        all = all && condition_holds(&r->all[i], g, s);
    return all != r->forbids;
}

static bool is_about(const struct rule *r, int64_t value) {
    for (size_t i = 0; i < r->nvalues; i++)
        if (r->values[i] == value)
            return true;
    return false;
}

static bool in_workloads(const struct decision *d, const struct ground *g) {
    for (size_t w = 0; w < WORKLOAD_COUNT; w++)
        if (d->workload[w] && g->workload[w])
            return true;
    return false;
}

static bool strategy_applies(const struct catalogue *c, const struct ground *g,
                             const struct strategy *s, size_t decision) {
    const struct decision *d = &c->decisions[decision];
    bool ok = in_workloads(d, g);
    for (size_t i = 0; ok && i < d->nrules; i++)
        ok = d->rules[i].values || rule_holds(&d->rules[i], g, s);
    return ok;
}

bool strategy_allows(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     size_t decision, int64_t value) {
    const struct decision *d = &c->decisions[decision];
    for (size_t i = 0; i < d->nrules; i++)
        if (is_about(&d->rules[i], value) && !rule_holds(&d->rules[i], g, s))
            return false;
    return rank_of(d, value) >= 0;
}

static bool is_of_facts(const struct rule *r) {
    bool facts = true;
    for (size_t i = 0; i < r->n; i++)
        facts = facts && r->all[i].is_fact;
    return facts;
}

bool strategy_possible(const struct catalogue *c, const struct ground *g, const char *name,
                       int64_t value) {
    int at = decision_find(c, str_view(name));
    for (size_t i = 0; at >= 0 && i < c->decisions[at].nrules; i++) {
        const struct rule *r = &c->decisions[at].rules[i];
        if (is_about(r, value) && is_of_facts(r) && !rule_holds(r, g, NULL))
            return false;
    }
    return true;
}

bool strategy_matters(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t decision) {
    const struct decision *d = &c->decisions[decision];
    bool any = d->nmatters == 0;
    for (size_t i = 0; i < d->nmatters; i++) {
        const struct rule *r = &d->matters[i];
        bool all = true;
        for (size_t k = 0; k < r->n; k++)
            all = all && ((!s && !r->all[k].is_fact) || condition_holds(&r->all[k], g, s));
        any = any || all;
    }
    return any;
}

/* What a strategy has that does not say. */
static int64_t usual(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     size_t decision) {
    const struct decision *d = &c->decisions[decision];
    int64_t asked = d->asked ? g->fact[d->asked_fact] : d->fallback;
    return strategy_allows(c, g, s, decision, asked) ? asked : d->fallback;
}

static void repair_shared(const struct catalogue *c, const struct ground *g, struct strategy *s) {
    for (size_t k = 0; k < c->n; k++) {
        size_t i = c->order[k];
        if (!strategy_applies(c, g, s, i))
            s->value[i] = STRATEGY_UNSET;
        else if (!strategy_allows(c, g, s, i, s->value[i]))
            s->value[i] = usual(c, g, s, i);
    }
}

bool strategy_step_has(const struct catalogue *c, const struct ground *g, size_t step,
                       size_t decision) {
    const struct decision *d = &c->decisions[decision];
    return step >= 1 && step <= g->nsteps && d->workload[g->step[step - 1]] && !d->asked;
}

void strategy_of_step(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t step, struct strategy *out) {
    bool any = false;
    *out = *s;
    out->nown = 0;
    for (size_t i = 0; i < s->nown; i++)
        if (s->own[i].step == step) {
            out->value[s->own[i].decision] = s->own[i].value;
            any = true;
        }
    if (any)
        repair_shared(c, g, out);
}

/* Own values that are not legal, or are those of all steps, go. */
static void repair_own(const struct catalogue *c, const struct ground *g, struct strategy *s) {
    struct strategy whole = *s, step;
    size_t number = 0;
    s->nown = 0;
    for (size_t i = 0; i < whole.nown; i++) {
        const struct own_value *o = &whole.own[i];
        if (o->step != number)
            strategy_of_step(c, g, &whole, number = o->step, &step);
        if (strategy_step_has(c, g, number, o->decision) && step.value[o->decision] == o->value &&
            o->value != whole.value[o->decision])
            s->own[s->nown++] = *o;
    }
}

void strategy_repair(const struct catalogue *c, const struct ground *g, struct strategy *s) {
    repair_shared(c, g, s);
    repair_own(c, g, s);
}

/* Where it is, or would be. */
static size_t own_place(const struct strategy *s, size_t step, size_t decision) {
    size_t at = 0;
    while (at < s->nown &&
           (s->own[at].step < step || (s->own[at].step == step && s->own[at].decision < decision)))
        at++;
    return at;
}

static bool has_own(const struct strategy *s, size_t step, size_t decision) {
    size_t at = own_place(s, step, decision);
    return at < s->nown && s->own[at].step == step && s->own[at].decision == decision;
}

int64_t strategy_value_in(const struct strategy *s, size_t step, size_t decision) {
    return has_own(s, step, decision) ? s->own[own_place(s, step, decision)].value
                                      : s->value[decision];
}

bool strategy_is_shared(const struct catalogue *c, const struct strategy *s, const char *name) {
    for (size_t i = 0; i < s->nown; i++)
        if (str_is(c->decisions[s->own[i].decision].name, name))
            return false;
    return true;
}

/* False: there is no more room. */
static bool set_own(struct strategy *s, size_t step, size_t decision, int64_t value) {
    size_t at = own_place(s, step, decision);
    if (!has_own(s, step, decision)) {
        if (s->nown == STRATEGY_MAX_OWN)
            return false;
        memmove(&s->own[at + 1], &s->own[at], (s->nown - at) * sizeof *s->own);
        s->nown++;
    }
    s->own[at] = (struct own_value){(uint16_t)step, (uint16_t)decision, (int32_t)value};
    return true;
}

bool strategy_put_own(const struct catalogue *c, const struct ground *g, struct strategy *s,
                      size_t step, size_t decision, int64_t value) {
    struct strategy result = *s, after;
    if (!strategy_step_has(c, g, step, decision) || rank_of(&c->decisions[decision], value) < 0 ||
        !set_own(&result, step, decision, value))
        return false;
    strategy_repair(c, g, &result);
    strategy_of_step(c, g, &result, step, &after);
    if (after.value[decision] != value)
        return false;
    *s = result;
    return true;
}

void strategy_fallback(const struct catalogue *c, const struct ground *g, struct strategy *out) {
    strategy_clear(out);
    strategy_repair(c, g, out);
}

void strategy_impose_on_step(const struct catalogue *c, const struct ground *g,
                             const struct strategy *wanted, size_t step, struct strategy *s) {
    for (size_t i = 0; i < c->n; i++)
        if (strategy_step_has(c, g, step, i) && wanted->value[i] != STRATEGY_UNSET &&
            wanted->value[i] != s->value[i])
            set_own(s, step, i, wanted->value[i]);
    strategy_repair(c, g, s);
}

/* ---- what a person asks for ---- */

/* The rule that forbids a value of a decision; NULL: none, it is of other workloads. */
static const struct rule *broken_rule(const struct decision *d, const struct ground *g,
                                      const struct strategy *s, int64_t value) {
    for (size_t i = 0; i < d->nrules; i++) {
        const struct rule *r = &d->rules[i];
        if ((!r->values || is_about(r, value)) && !rule_holds(r, g, s))
            return r;
    }
    return NULL;
}

static void put_conditions(const struct rule *r, const struct ground *g, const struct strategy *s,
                           struct buf *out) {
    for (size_t i = 0; i < r->n; i++) {
        int64_t v = r->all[i].is_fact ? g->fact[r->all[i].which] : s->value[r->all[i].which];
        buf_printf(out, "%s%.*s", i ? " and " : "with ", STR_ARG(r->all[i].name));
        if (v == STRATEGY_UNSET)
            buf_puts(out, S(" not in it"));
        else
            buf_printf(out, "=%lld", (long long)v);
    }
}

static bool refuse_choice(const struct catalogue *c, const struct ground *g, size_t decision,
                          int64_t value, const struct strategy *s, struct err *err) {
    const struct decision *d = &c->decisions[decision];
    const struct rule *r = broken_rule(d, g, s, value);
    struct buf b;
    buf_init(&b, 4096);
    if (r && in_workloads(d, g)) {
        put_conditions(r, g, s, &b);
        err_set(err, ERR_INPUT, "strategy: %.*s=%lld cannot be chosen %s", STR_ARG(d->name),
                (long long)value, b.p ? b.p : "");
    } else {
        for (size_t i = 0; i < c->n; i++)
            if (s->value[i] != STRATEGY_UNSET)
                buf_printf(&b, " %.*s", STR_ARG(c->decisions[i].name));
        err_set(err, ERR_INPUT, "strategy: %.*s does not apply to this task; what does is%s",
                STR_ARG(d->name), b.p ? b.p : " nothing");
    }
    buf_release(&b);
    return false;
}

static bool refuse_own(const struct catalogue *c, const struct ground *g, const struct own_value *o,
                       const struct strategy *s, struct err *err) {
    const struct decision *d = &c->decisions[o->decision];
    struct strategy step;
    if (o->step > g->nsteps)
        return err_set(err, ERR_INPUT, "strategy: %u:%.*s: the task has %zu step%s", o->step,
                       STR_ARG(d->name), g->nsteps, g->nsteps == 1 ? "" : "s");
    if (!strategy_step_has(c, g, o->step, o->decision))
        return err_set(err, ERR_INPUT, "strategy: %u:%.*s: step %u does not go by %.*s", o->step,
                       STR_ARG(d->name), o->step, STR_ARG(d->name));
    strategy_of_step(c, g, s, o->step, &step);
    return refuse_choice(c, g, o->decision, o->value, &step, err) ||
           err_wrap(err, "step %u", o->step);
}

/* The own values of `named`, all of a step at once, since one may need another. */
static bool impose_own(const struct catalogue *c, const struct ground *g,
                       const struct strategy *named, struct strategy *s, struct err *err) {
    struct strategy step;
    for (size_t i = 0; i < named->nown; i++)
        if (!set_own(s, named->own[i].step, named->own[i].decision, named->own[i].value))
            return err_set(err, ERR_INPUT, "strategy: more than %d values of single steps",
                           STRATEGY_MAX_OWN);
    strategy_repair(c, g, s);
    for (size_t i = 0; i < named->nown; i++) {
        strategy_of_step(c, g, s, named->own[i].step, &step);
        if (step.value[named->own[i].decision] != named->own[i].value ||
            !strategy_step_has(c, g, named->own[i].step, named->own[i].decision))
            return refuse_own(c, g, &named->own[i], s, err);
    }
    return true;
}

/* All steps share the decision. */
static void drop_own(struct strategy *s, size_t decision) {
    size_t n = 0;
    for (size_t i = 0; i < s->nown; i++)
        if (s->own[i].decision != decision)
            s->own[n++] = s->own[i];
    s->nown = n;
}

bool strategy_impose(const struct catalogue *c, const struct ground *g,
                     const struct strategy *named, struct strategy *s, struct err *err) {
    for (size_t i = 0; i < c->n; i++)
        if (named->value[i] != STRATEGY_UNSET) {
            s->value[i] = named->value[i];
            drop_own(s, i);
        }
    strategy_repair(c, g, s);
    for (size_t i = 0; i < c->n; i++)
        if (named->value[i] != STRATEGY_UNSET && s->value[i] != named->value[i])
            return refuse_choice(c, g, i, named->value[i], s, err);
    return impose_own(c, g, named, s, err);
}

/* ---- text and comparison ---- */

static void put_value(const struct decision *d, int64_t value, struct buf *out) {
    int rank = d->names ? rank_of(d, value) : -1;
    if (rank >= 0)
        buf_puts(out, d->names[rank]);
    else
        buf_printf(out, "%lld", (long long)value);
}

void strategy_text(const struct catalogue *c, const struct strategy *s, struct buf *out) {
    const char *gap = "";
    for (size_t i = 0; i < c->n; i++) {
        if (s->value[i] == STRATEGY_UNSET)
            continue;
        buf_printf(out, "%s%.*s=", gap, STR_ARG(c->decisions[i].name));
        put_value(&c->decisions[i], s->value[i], out);
        gap = " ";
    }
    for (size_t i = 0; i < s->nown; i++) {
        const struct decision *d = &c->decisions[s->own[i].decision];
        buf_printf(out, "%s%u:%.*s=", gap, s->own[i].step, STR_ARG(d->name));
        put_value(d, s->own[i].value, out);
        gap = " ";
    }
}

str strategy_as_text(const struct catalogue *c, const struct strategy *s, struct arena *a) {
    struct buf b;
    buf_init(&b, 1 << 16);
    strategy_text(c, s, &b);
    str line = arena_str(a, buf_str(&b));
    buf_release(&b);
    return line;
}

static bool refuse_value(const struct decision *d, str value, struct err *err) {
    struct buf list;
    buf_init(&list, 1024);
    for (size_t i = 0; i < d->nvalues; i++) {
        buf_putc(&list, ' ');
        put_value(d, d->values[i], &list);
    }
    err_set(err, ERR_INPUT, "strategy: %.*s cannot be `%.*s`; its values are%s", STR_ARG(d->name),
            STR_ARG(str_cut(value, 0, 40)), list.p ? list.p : "");
    buf_release(&list);
    return false;
}

/* By name, or by number: rules and models write either. */
static bool parse_value(const struct decision *d, str text, int64_t *out) {
    for (size_t i = 0; d->names && i < d->nvalues; i++)
        if (str_eq(d->names[i], text)) {
            *out = d->values[i];
            return true;
        }
    return str_to_i64(text, out) && rank_of(d, *out) >= 0;
}

/* "3:" before the name: of step 3 alone. 0: of all. */
static bool parse_step(str *word, uint64_t *step, struct err *err) {
    size_t colon = str_find(*word, S(":")), eq = str_find(*word, S("="));
    *step = 0;
    if (colon >= eq)
        return true;
    if (!str_to_u64(str_cut(*word, 0, colon), step) || *step < 1 || *step > STRATEGY_MAX_STEPS)
        return err_set(err, ERR_INPUT,
                       "strategy: expected the number of a step from 1 to %d before the colon of "
                       "`%.*s`",
                       STRATEGY_MAX_STEPS, STR_ARG(str_cut(*word, 0, 40)));
    *word = str_from(*word, colon + 1);
    return true;
}

static bool parse_setting(const struct catalogue *c, str word, struct strategy *out,
                          struct err *err) {
    uint64_t step;
    int64_t v;
    if (!parse_step(&word, &step, err))
        return false;
    size_t eq = str_find(word, S("="));
    str name = str_cut(word, 0, eq), value = str_from(word, eq + 1);
    if (eq == word.n)
        return err_set(err, ERR_INPUT, "strategy: expected name=value, not `%.*s`",
                       STR_ARG(str_cut(word, 0, 40)));
    int i = decision_find(c, name);
    if (i < 0)
        return err_set(err, ERR_INPUT, "strategy: no decision is called `%.*s`",
                       STR_ARG(str_cut(name, 0, 40)));
    if (step ? has_own(out, step, (size_t)i) : out->value[i] != STRATEGY_UNSET)
        return err_set(err, ERR_INPUT,
                       "strategy: %.*s is stated twice\nhint: the line `// Strategy:` of a kernel "
                       "can be copied and edited",
                       STR_ARG(name));
    if (!parse_value(&c->decisions[i], value, &v))
        return refuse_value(&c->decisions[i], value, err);
    if (!step)
        out->value[i] = v;
    else if (!set_own(out, step, (size_t)i, v))
        return err_set(err, ERR_INPUT, "strategy: more than %d values of single steps",
                       STRATEGY_MAX_OWN);
    return true;
}

bool strategy_parse(const struct catalogue *c, str text, struct strategy *out, struct err *err) {
    str word;
    strategy_clear(out);
    while (str_word(&text, ' ', &word)) {
        word = str_trim(word);
        if (word.n && !parse_setting(c, word, out, err))
            return false;
    }
    return true;
}

digest strategy_hash(const struct catalogue *c, const struct strategy *s) {
    struct sha256 h;
    sha256_init(&h);
    for (size_t i = 0; i < c->n; i++) {
        if (s->value[i] == STRATEGY_UNSET)
            continue;
        sha256_put_str(&h, c->decisions[i].name);
        sha256_put(&h, &s->value[i], sizeof s->value[i]);
    }
    for (size_t i = 0; i < s->nown; i++) {
        sha256_put(&h, &s->own[i].step, sizeof s->own[i].step);
        sha256_put_str(&h, c->decisions[s->own[i].decision].name);
        sha256_put(&h, &s->own[i].value, sizeof s->own[i].value);
    }
    if (s->remark)
        sha256_put(&h, &s->remark, sizeof s->remark);
    return sha256_end(&h);
}

bool strategy_equal(const struct catalogue *c, const struct strategy *a, const struct strategy *b) {
    return memcmp(a->value, b->value, c->n * sizeof a->value[0]) == 0 && a->remark == b->remark &&
           a->nown == b->nown && memcmp(a->own, b->own, a->nown * sizeof *a->own) == 0;
}

int strategy_order(const void *x, const void *y) {
    const struct strategy *a = x, *b = y;
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        if (a->value[i] != b->value[i])
            return a->value[i] < b->value[i] ? -1 : 1;
    if (a->nown != b->nown)
        return a->nown < b->nown ? -1 : 1;
    int own = memcmp(a->own, b->own, a->nown * sizeof *a->own);
    return own ? own : (a->remark > b->remark) - (a->remark < b->remark);
}

/* Of the steps that a and b have a value for, each once, of both where both do. */
size_t strategy_changes(const struct catalogue *c, const struct strategy *a,
                        const struct strategy *b,
                        struct strategy_change out[STRATEGY_MAX_CHANGES]) {
    const struct strategy *const both[2] = {a, b};
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (a->value[i] != b->value[i])
            out[n++] = (struct strategy_change){0, i, a->value[i], b->value[i]};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->nown; i++) {
            const struct own_value *o = &both[k]->own[i];
            int64_t from = strategy_value_in(a, o->step, o->decision);
            int64_t to = strategy_value_in(b, o->step, o->decision);
            if (from != to && !(k == 1 && has_own(a, o->step, o->decision)))
                out[n++] = (struct strategy_change){o->step, o->decision, from, to};
        }
    return n;
}

str strategy_change_name(const struct catalogue *c, const struct strategy_change *x,
                         struct arena *a) {
    str name = c->decisions[x->decision].name;
    return x->step ? arena_printf(a, "%zu:%.*s", x->step, STR_ARG(name)) : name;
}

/* Of two values of a decision: 0 the same … 1 opposite ends, or in one of them only. */
static double apart(const struct decision *d, int64_t a, int64_t b) {
    if (a == b)
        return 0;
    if (a == STRATEGY_UNSET || b == STRATEGY_UNSET)
        return 1;
    return fabs((double)rank_of(d, a) - rank_of(d, b)) / (double)(d->nvalues - 1);
}

/* The mean over what all steps share and the steps that have a value of their own in a or b. */
static double decision_apart(const struct catalogue *c, const struct strategy *a,
                             const struct strategy *b, size_t decision) {
    const struct decision *d = &c->decisions[decision];
    const struct strategy *const both[2] = {a, b};
    double sum = apart(d, a->value[decision], b->value[decision]), n = 1;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->nown; i++) {
            size_t step = both[k]->own[i].step;
            if (both[k]->own[i].decision != decision || (k == 1 && has_own(a, step, decision)))
                continue;
            sum += apart(d, strategy_value_in(a, step, decision),
                         strategy_value_in(b, step, decision));
            n++;
        }
    return sum / n;
}

double strategy_distance(const struct catalogue *c, const struct strategy *a,
                         const struct strategy *b) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        bool in_a = a->value[i] != STRATEGY_UNSET, in_b = b->value[i] != STRATEGY_UNSET;
        if ((!in_a && !in_b) || (in_a && in_b && c->decisions[i].nvalues < 2))
            continue;
        n++;
        sum += decision_apart(c, a, b, i);
    }
    return n ? sum / (double)n : 0;
}

int64_t strategy_get(const struct catalogue *c, const struct strategy *s, const char *name) {
    int i = decision_find(c, str_view(name));
    return i < 0 ? STRATEGY_UNSET : s->value[i];
}

bool strategy_put(const struct catalogue *c, struct strategy *s, const char *name, int64_t v) {
    int i = decision_find(c, str_view(name));
    if (i < 0 || rank_of(&c->decisions[i], v) < 0)
        return false;
    s->value[i] = v;
    return true;
}

/* ---- random ones ---- */

/* The ranks of the values that are allowed. */
static size_t allowed(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t decision, size_t *ranks) {
    const struct decision *d = &c->decisions[decision];
    size_t n = 0;
    for (size_t i = 0; i < d->nvalues; i++)
        if (strategy_allows(c, g, s, decision, d->values[i]))
            ranks[n++] = i;
    return n;
}

void strategy_random(const struct catalogue *c, const struct ground *g, struct rng r,
                     struct strategy *out) {
    size_t ranks[DECISION_MAX_VALUES];
    strategy_clear(out);
    for (size_t k = 0; k < c->n; k++) {
        size_t i = c->order[k];
        if (!strategy_applies(c, g, out, i))
            continue;
        size_t n = allowed(c, g, out, i, ranks);
        out->value[i] = c->decisions[i].asked ? usual(c, g, out, i)
                                              : c->decisions[i].values[ranks[rng_below(r, i, n)]];
    }
}

void strategy_random_in_steps(const struct catalogue *c, const struct ground *g, struct rng r,
                              struct strategy *out) {
    struct strategy wanted;
    strategy_random(c, g, r, out);
    for (size_t step = 1; g->nsteps > 1 && step <= g->nsteps; step++) {
        strategy_random(c, g, rng_sub(r, step), &wanted);
        strategy_impose_on_step(c, g, &wanted, step, out);
    }
}

/* An allowed value other than the present one; the present one where there is none. */
static int64_t moved(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     size_t decision, struct rng r, uint64_t position) {
    const struct decision *d = &c->decisions[decision];
    size_t ranks[DECISION_MAX_VALUES], n = allowed(c, g, s, decision, ranks), at = 0;
    while (at < n && d->values[ranks[at]] != s->value[decision])
        at++;
    if (n < 2 || at == n)
        return s->value[decision];
    if (rng_unit(r, position) < NEIGHBOUR_SHARE) {
        bool up = at == 0 || (at < n - 1 && rng_below(r, position + 1, 2));
        return d->values[ranks[up ? at + 1 : at - 1]];
    }
    size_t other = rng_below(r, position + 1, n - 1);
    return d->values[ranks[other + (other >= at)]];
}

/* One value of one step moved. False: the task has one step, or nothing moves. */
static bool mutate_step(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                        struct rng r, struct strategy *out) {
    size_t movable[STRATEGY_MAX_DECISIONS], n = 0;
    struct strategy of_step;
    if (g->nsteps < 2)
        return false;
    size_t step = 1 + rng_below(r, 0, g->nsteps);
    strategy_of_step(c, g, s, step, &of_step);
    for (size_t i = 0; i < c->n; i++)
        if (of_step.value[i] != STRATEGY_UNSET && strategy_step_has(c, g, step, i))
            movable[n++] = i;
    if (n == 0)
        return false;
    size_t pick = movable[rng_below(r, 1, n)];
    *out = *s;
    out->remark = 0;
    return strategy_put_own(c, g, out, step, pick, moved(c, g, &of_step, pick, r, 2)) &&
           !strategy_equal(c, out, s);
}

/* Decisions are drawn without repetition, so no move undoes an earlier one; the first that moves
 * ends it, or goes on by chance. What a move forbids elsewhere is repaired, which may also undo the
 * move itself: then the next one is tried. */
void strategy_mutate(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     struct rng r, struct strategy *out) {
    size_t movable[STRATEGY_MAX_DECISIONS], n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (s->value[i] != STRATEGY_UNSET && !c->decisions[i].asked)
            movable[n++] = i;
    struct rng steps = rng_sub(r, STEP_STREAM);
    if (rng_unit(steps, 0) < STEP_SHARE && mutate_step(c, g, s, rng_sub(steps, 1), out))
        return;
    struct strategy result = *s;
    for (uint64_t position = 0; n > 0; position += 4) {
        size_t pick = rng_below(r, position, n), i = movable[pick];
        if (result.value[i] != STRATEGY_UNSET)
            result.value[i] = moved(c, g, &result, i, r, position + 1);
        strategy_repair(c, g, &result);
        movable[pick] = movable[--n];
        if (!strategy_equal(c, &result, s) && !(rng_unit(r, position + 3) < FURTHER_SHARE))
            break;
    }
    result.remark = 0; /* it was said of other decisions */
    *out = result;
}

/* A step's own values go together. */
static void inherit_own(const struct strategy *parent, size_t step, struct strategy *child) {
    for (size_t i = 0; i < parent->nown; i++)
        if (parent->own[i].step == step)
            set_own(child, step, parent->own[i].decision, parent->own[i].value);
}

void strategy_cross(const struct catalogue *c, const struct ground *g, const struct strategy *a,
                    const struct strategy *b, struct rng r, struct strategy *out) {
    struct strategy result;
    strategy_clear(&result);
    for (size_t i = 0; i < c->n; i++) {
        bool from_a = rng_below(r, i, 2) == 0;
        if (a->value[i] == STRATEGY_UNSET || b->value[i] == STRATEGY_UNSET)
            from_a = b->value[i] == STRATEGY_UNSET;
        result.value[i] = from_a ? a->value[i] : b->value[i];
    }
    for (size_t step = 1; step <= g->nsteps; step++)
        inherit_own(rng_below(r, STRATEGY_MAX_DECISIONS + step, 2) ? a : b, step, &result);
    strategy_repair(c, g, &result);
    *out = result;
}

uint64_t strategy_space(const struct catalogue *c, const struct ground *g) {
    uint64_t n = 1;
    for (size_t i = 0; i < c->n; i++)
        if (in_workloads(&c->decisions[i], g) && !c->decisions[i].asked &&
            __builtin_mul_overflow(n, c->decisions[i].nvalues, &n))
            return UINT64_MAX;
    return n;
}

void strategy_at(const struct catalogue *c, const struct ground *g, uint64_t index,
                 struct strategy *out) {
    strategy_clear(out);
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        if (!in_workloads(d, g) || d->asked)
            continue;
        out->value[i] = d->values[index % d->nvalues];
        index /= d->nvalues;
    }
    strategy_repair(c, g, out);
}

/* ---- what the prose says ---- */

static bool begins_sentence(str prose, size_t at) {
    return at == 0 || (at >= 2 && strchr(" \n", prose.p[at - 1]) && strchr(".:", prose.p[at - 2]));
}

/* Where the text about one value begins ("1: …"); the text's length: nowhere. */
static size_t value_begins(str prose, int64_t value) {
    char mark[32];
    snprintf(mark, sizeof mark, "%lld: ", (long long)value);
    for (size_t at = 0; at < prose.n; at++) {
        at += str_find(str_from(prose, at), str_view(mark));
        if (at < prose.n && begins_sentence(prose, at))
            return at;
    }
    return prose.n;
}

void decision_describe(const struct decision *d, int64_t value, str *general, str *chosen) {
    str prose = str_cut(d->prose, 0, str_find(d->prose, S("\n\n")));
    size_t end = prose.n, from = value_begins(prose, value), first = end, next = end;
    for (size_t v = 0; v < d->nvalues; v++) {
        size_t at = value_begins(prose, d->values[v]);
        first = at < first ? at : first;
        next = at > from && at < next ? at : next;
    }
    *general = str_cut(prose, 0, first || from < end ? first : end);
    *chosen = str_cut(prose, from, next - from);
    *chosen = str_from(*chosen, str_find(*chosen, S(": ")) + 2);
}
