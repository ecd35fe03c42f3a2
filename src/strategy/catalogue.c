/* The catalogue: every strategies/NAME.decision, embedded or in the user's assets folder. */
#include "base/asset.h"
#include "base/file.h"
#include "strategy/decision.h"
#include <string.h>

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

const char *fact_name(enum ground_fact f) {
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
