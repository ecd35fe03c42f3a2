/* Operations on strategies. A strategy holds values; most arithmetic here is on their ranks in the
 * decision's list, so that "next larger" and "far apart" do not depend on the unit of a decision.
 * Everything random is a function of the stream it is given. */
#include "strategy/decision.h"
#include "strategy/reader.h"
#include <math.h>
#include <string.h>

/* Chances of a mutation: to move to a neighbouring value rather than any, and to go on to another
 * decision. */
#define NEIGHBOUR_SHARE 0.7
#define FURTHER_SHARE   0.3

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

bool strategy_applies(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                      size_t decision) {
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

void strategy_repair(const struct catalogue *c, const struct ground *g, struct strategy *s) {
    for (size_t k = 0; k < c->n; k++) {
        size_t i = c->order[k];
        if (!strategy_applies(c, g, s, i))
            s->value[i] = STRATEGY_UNSET;
        else if (!strategy_allows(c, g, s, i, s->value[i]))
            s->value[i] = usual(c, g, s, i);
    }
}

void strategy_fallback(const struct catalogue *c, const struct ground *g, struct strategy *out) {
    strategy_clear(out);
    strategy_repair(c, g, out);
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

bool strategy_impose(const struct catalogue *c, const struct ground *g,
                     const struct strategy *named, struct strategy *s, struct err *err) {
    for (size_t i = 0; i < c->n; i++)
        if (named->value[i] != STRATEGY_UNSET)
            s->value[i] = named->value[i];
    strategy_repair(c, g, s);
    for (size_t i = 0; i < c->n; i++)
        if (named->value[i] != STRATEGY_UNSET && s->value[i] != named->value[i])
            return refuse_choice(c, g, i, named->value[i], s, err);
    return true;
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

static bool parse_setting(const struct catalogue *c, str word, struct strategy *out,
                          struct err *err) {
    size_t eq = str_find(word, S("="));
    str name = str_cut(word, 0, eq), value = str_from(word, eq + 1);
    if (eq == word.n)
        return err_set(err, ERR_INPUT, "strategy: expected name=value, not `%.*s`",
                       STR_ARG(str_cut(word, 0, 40)));
    int i = decision_find(c, name);
    if (i < 0)
        return err_set(err, ERR_INPUT, "strategy: no decision is called `%.*s`",
                       STR_ARG(str_cut(name, 0, 40)));
    if (out->value[i] != STRATEGY_UNSET)
        return err_set(err, ERR_INPUT, "strategy: %.*s is stated twice", STR_ARG(name));
    int64_t v;
    if (!parse_value(&c->decisions[i], value, &v))
        return refuse_value(&c->decisions[i], value, err);
    out->value[i] = v;
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
    if (s->remark)
        sha256_put(&h, &s->remark, sizeof s->remark);
    return sha256_end(&h);
}

bool strategy_equal(const struct catalogue *c, const struct strategy *a, const struct strategy *b) {
    return memcmp(a->value, b->value, c->n * sizeof a->value[0]) == 0 && a->remark == b->remark;
}

int strategy_order(const void *x, const void *y) {
    const struct strategy *a = x, *b = y;
    for (size_t i = 0; i < STRATEGY_MAX_DECISIONS; i++)
        if (a->value[i] != b->value[i])
            return a->value[i] < b->value[i] ? -1 : 1;
    return (a->remark > b->remark) - (a->remark < b->remark);
}

double strategy_distance(const struct catalogue *c, const struct strategy *a,
                         const struct strategy *b) {
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct decision *d = &c->decisions[i];
        bool in_a = a->value[i] != STRATEGY_UNSET, in_b = b->value[i] != STRATEGY_UNSET;
        if ((!in_a && !in_b) || (in_a && in_b && d->nvalues < 2))
            continue;
        n++;
        if (in_a && in_b)
            sum += fabs((double)rank_of(d, a->value[i]) - rank_of(d, b->value[i])) /
                   (double)(d->nvalues - 1);
        else
            sum += 1;
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

/* Decisions are drawn without repetition, so no move undoes an earlier one; the first that moves
 * ends it, or goes on by chance. What a move forbids elsewhere is repaired, which may also undo the
 * move itself: then the next one is tried. */
void strategy_mutate(const struct catalogue *c, const struct ground *g, const struct strategy *s,
                     struct rng r, struct strategy *out) {
    size_t movable[STRATEGY_MAX_DECISIONS], n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (s->value[i] != STRATEGY_UNSET && !c->decisions[i].asked)
            movable[n++] = i;
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
