/* Tables of openings: reading them, and the part of them that fits a step. */
#include "agent/expert/plan/openings.h"
#include "agent/expert/expert.h"
#include "base/asset.h"
#include "strategy/reader.h"
#include <string.h>

#define ACCESS_BYTES 16 /* the widest load there is */

enum { KINDS_MOST = 64, OPENINGS_MOST = 128 };

static const struct {
    const char *family, *name;
} facts[STEP_FACTS] = {
#define STEP_FACT(family, id, name, what) {family, name},
#include "agent/expert/plan/step_facts.def"
#undef STEP_FACT
};

/* Values that may be left to the shape. */
static const struct {
    const char *family, *decision;
} open_values[] = {
    {"", "vector-width"},      {"contraction", "tile-m"},  {"contraction", "tile-n"},
    {"contraction", "tile-k"}, {"contraction", "split-k"}, {"contraction", "split-parts"},
};

/* ---- reading ---- */

struct reading {
    struct reader in;
    const char *family;
    const struct catalogue *catalogue;
    struct arena *mem;
    struct openings *out;
    bool explained; /* the last opening has its `why` */
};

static bool is_of(const char *family, const char *of) {
    return of[0] == 0 || strcmp(family, of) == 0;
}

static bool find_fact(const struct reading *r, struct condition *x, struct err *err) {
    for (size_t i = 0; i < STEP_FACTS; i++)
        if (str_is(x->name, facts[i].name) && is_of(r->family, facts[i].family)) {
            x->which = i;
            return true;
        }
    return READER_FAIL(&r->in, err, x->name, "assets/openings/README lists them",
                       "steps of family %s have no such fact", r->family);
}

static bool has_kind(const struct openings *o, str name) {
    for (size_t i = 0; i < o->nkinds; i++)
        if (str_eq(o->kinds[i].name, name))
            return true;
    return false;
}

/* `kind NAME CONDITIONS`; without conditions: whatever is left. */
static bool read_kind(struct reading *r, str word, str rest, struct err *err) {
    struct openings *o = r->out;
    if (o->nkinds == KINDS_MOST)
        return READER_FAIL(&r->in, err, word, NULL, "more than %d kinds", KINDS_MOST);
    struct opening_kind *k = &o->kinds[o->nkinds++];
    if (!reader_word(&rest, &k->name))
        return READER_FAIL(&r->in, err, word, NULL, "a kind needs a name");
    if (str_trim(rest).n && !reader_conditions(&r->in, rest, k->all, &k->n, err))
        return false;
    for (size_t i = 0; i < k->n; i++)
        if (!find_fact(r, &k->all[i], err))
            return false;
    return true;
}

static bool may_be_open(const struct reading *r, str decision) {
    for (size_t i = 0; i < sizeof open_values / sizeof *open_values; i++)
        if (str_is(decision, open_values[i].decision) && is_of(r->family, open_values[i].family))
            return true;
    return false;
}

static const struct decision *find_decision(const struct catalogue *c, str name) {
    for (size_t i = 0; i < c->n; i++)
        if (str_eq(c->decisions[i].name, name))
            return &c->decisions[i];
    return NULL;
}

/* `block=256`, or `vector-width=*`. */
static bool read_value(struct reading *r, str word, struct opening_value *out, struct err *err) {
    size_t eq = str_find(word, S("="));
    str name = str_cut(word, 0, eq), number = eq < word.n ? str_from(word, eq + 1) : S("");
    const struct decision *d = find_decision(r->catalogue, name);
    if (eq == word.n)
        return READER_FAIL(&r->in, err, word, "as in block=256", "expected DECISION=VALUE");
    if (!d)
        return READER_FAIL(&r->in, err, name, NULL, "no such decision");
    *out = (struct opening_value){.decision = arena_cstr(r->mem, name)};
    out->open = str_is(number, "*");
    if (out->open)
        return may_be_open(r, name) ||
               READER_FAIL(&r->in, err, number, NULL, "the shape does not decide this one");
    if (!reader_integer(&r->in, number, &out->number, err))
        return false;
    for (size_t i = 0; i < d->nvalues; i++)
        if (d->values[i] == out->number)
            return true;
    return READER_FAIL(&r->in, err, number, NULL, "not a value of %s", out->decision);
}

/* `try KIND VALUES` */
static bool read_try(struct reading *r, str word, str rest, struct err *err) {
    struct openings *o = r->out;
    if (!r->explained)
        return READER_FAIL(&r->in, err, word, NULL, "the opening above has no line `why`");
    if (o->n == OPENINGS_MOST)
        return READER_FAIL(&r->in, err, word, NULL, "more than %d openings", OPENINGS_MOST);
    struct opening *opening = &o->at[o->n++];
    r->explained = false;
    if (!reader_word(&rest, &opening->kind))
        return READER_FAIL(&r->in, err, word, NULL, "expected a kind and values");
    if (!has_kind(o, opening->kind))
        return READER_FAIL(&r->in, err, opening->kind, NULL, "no line `kind` has it");
    while (reader_word(&rest, &word)) {
        if (opening->nvalues == OPENING_VALUES)
            return READER_FAIL(&r->in, err, word, NULL, "more than %d values", OPENING_VALUES);
        if (!read_value(r, word, &opening->values[opening->nvalues++], err))
            return false;
    }
    return opening->nvalues > 0 || READER_FAIL(&r->in, err, opening->kind, NULL, "no values");
}

static bool read_why(struct reading *r, str word, str rest, struct err *err) {
    if (r->explained)
        return READER_FAIL(&r->in, err, word, NULL, "`why` follows a line `try`");
    r->out->at[r->out->n - 1].why = str_trim(rest);
    r->explained = true;
    return str_trim(rest).n > 0 || READER_FAIL(&r->in, err, word, NULL, "expected the reason");
}

static bool read_line(struct reading *r, str line, struct err *err) {
    str rest = line, word;
    if (line.n == 0 || line.p[0] == '#' || !reader_word(&rest, &word))
        return true;
    if (str_is(word, "kind"))
        return read_kind(r, word, rest, err);
    if (str_is(word, "try"))
        return read_try(r, word, rest, err);
    if (str_is(word, "why"))
        return read_why(r, word, rest, err);
    return READER_FAIL(&r->in, err, word, NULL, "a line begins with kind, try, why or #");
}

bool openings_parse(str file, const char *family, str text, const struct catalogue *c,
                    struct arena *a, struct openings *out, struct err *err) {
    struct reading r = {.in = {file, text}, .family = family, .catalogue = c, .mem = a, .out = out};
    str rest = text, line;
    r.explained = true;
    *out = (struct openings){.family = family,
                             .kinds = arena_array(a, struct opening_kind, KINDS_MOST),
                             .at = arena_array(a, struct opening, OPENINGS_MOST)};
    if (text.n > OPENINGS_MAX_BYTES)
        return err_set(err, ERR_INPUT, "%.*s: over %u bytes", STR_ARG(file), OPENINGS_MAX_BYTES);
    while (str_line(&rest, &line))
        if (!read_line(&r, line, err))
            return false;
    return r.explained ||
           err_set(err, ERR_INPUT, "%.*s: the last opening has no line `why`", STR_ARG(file));
}

bool openings_load(const char *assets, struct arena *a, struct opening_book *out, struct err *err) {
    struct catalogue *c;
    const struct family *const *families = expert_families(&out->n);
    out->tables = arena_array(a, struct openings, out->n);
    if (!catalogue_load(assets, a, &c, err))
        return false;
    for (size_t i = 0; i < out->n; i++) {
        str file = arena_printf(a, "openings/%s.openings", families[i]->name), text;
        if (!asset_get(assets, file.p, a, &text, err) ||
            !openings_parse(file, families[i]->name, text, c, a, &out->tables[i], err))
            return false;
    }
    return true;
}

/* ---- what a step is like ---- */

static bool find_facts(const struct briefing *b, const struct step *st, enum regime regime,
                       struct step_facts *out) {
    size_t n;
    const struct family *const *family = expert_families(&n);
    while (strcmp((*family)->name, st->family) != 0)
        family++;
    *out = (struct step_facts){.value = {[STEP_WGMMA] = b->gpu->has.wgmma,
                                         [STEP_CLUSTER_MOST] = b->gpu->has.cluster_most,
                                         [STEP_MEMORY_BOUND] = regime == REGIME_MEMORY,
                                         [STEP_COMPUTE_BOUND] = regime == REGIME_COMPUTE,
                                         [STEP_LATENCY_BOUND] = regime == REGIME_LATENCY}};
    return !(*family)->facts || (*family)->facts(b, st, out);
}

/* The name of its kind; empty: it is of none. */
static str kind_of(const struct openings *o, const struct step_facts *f) {
    for (size_t i = 0; i < o->nkinds; i++) {
        const struct opening_kind *k = &o->kinds[i];
        bool holds = true;
        for (size_t c = 0; c < k->n; c++)
            holds &= compare_holds(f->value[k->all[c].which], k->all[c].op, k->all[c].number);
        if (holds)
            return k->name;
    }
    return S("");
}

/* Whether this GPU can have all that it says. */
static bool is_possible(const struct briefing *b, const struct opening *o) {
    for (size_t i = 0; i < o->nvalues; i++)
        if (!o->values[i].open && !strategy_possible(b->catalogue, &b->ground,
                                                     o->values[i].decision, o->values[i].number))
            return false;
    return true;
}

size_t openings_of(const struct opening_book *book, const struct briefing *b, const struct step *st,
                   enum regime regime, const struct opening **out, size_t max) {
    struct step_facts f;
    size_t t = 0, n = 0;
    while (strcmp(book->tables[t].family, st->family) != 0)
        t++;
    if (!find_facts(b, st, regime, &f))
        return 0;
    const struct openings *all = &book->tables[t];
    str kind = kind_of(all, &f);
    for (size_t i = 0; i < all->n && n < max; i++)
        if (str_eq(all->at[i].kind, kind) && is_possible(b, &all->at[i]))
            out[n++] = &all->at[i];
    return n;
}

/* ---- what the shape decides ---- */

/* Elements in one access, of the type that most bytes of the step are of. */
static int64_t widest(const struct briefing *b, const struct step *st) {
    const struct task *t = st->inst->task;
    enum dtype type = b->features.dtype;
    size_t most = 0;
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_has_memory(&t->tensors[i]) && st->inst->tensors[i].bytes > most) {
            most = st->inst->tensors[i].bytes;
            type = t->tensors[i].dtype;
        }
    int64_t n = ACCESS_BYTES / (int64_t)dtype_info(type)->bytes;
    return n < 8 ? n : 8;
}

void opening_put(const struct briefing *b, const struct step *st, const struct opening *o,
                 struct strategy *s) {
    for (size_t i = 0; i < o->nvalues; i++) {
        const struct opening_value *v = &o->values[i];
        int64_t number = !v->open ? v->number
                         : strcmp(v->decision, "vector-width") == 0
                             ? widest(b, st)
                             : contraction_fitting(b, st, s, v->decision);
        strategy_put(b->catalogue, s, v->decision, number);
    }
}
