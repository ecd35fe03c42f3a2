/* What is kept of a part of a row: a type for each level, with the terms it takes in and the way
 * two parts become one. The text of a fold is here and nowhere else, so a row may be shared by
 * lanes, warps, blocks of a cluster or blocks of a grid without a loop knowing what is folded.
 *
 * A batch of terms is first folded by itself and then added: chains of additions are as long as
 * there are batches, not terms. */
#include "agent/expert/rows/rows.h"

static const struct rows_fold *first_fold(const struct rows *r, const struct rows_unit *u) {
    return &r->g.folds[u->fold];
}
static enum reduction op_of(const struct rows *r, const struct rows_unit *u) {
    return first_fold(r, u)->s->body->reduce->op;
}
static bool is_real(const struct rows *r, const struct rows_unit *u) {
    return first_fold(r, u)->term->value_kind == VALUE_REAL;
}
/* A part of a product may overflow where the whole does not: those of double do not. */
static const char *term_type(const struct rows *r, const struct rows_unit *u) {
    return !is_real(r, u) ? "long long" : op_of(r, u) == REDUCTION_PROD ? "double" : "float";
}

static const char *place_limit(const struct rows *r) {
    return r->short_cols ? "INT_MAX" : "LLONG_MAX";
}

/* Some term of the unit may not count, so that it is told which do. */
static bool is_masked(const struct rows *r, const struct rows_unit *u) {
    bool masked = r->shape.outer || r->shape.shifted || first_fold(r, u)->guard;
    return masked && (u->kind == UNIT_MOMENTS || u->counts);
}

/* What a term that does not count is replaced by; it changes nothing. */
static const char *identity(const struct rows *r, const struct rows_unit *u) {
    return fold_identity(op_of(r, u), is_real(r, u));
}

static str combined(struct rows *r, const struct rows_unit *u, str into, str term) {
    enum reduction op = op_of(r, u);
    if (is_real(r, u) || (op != REDUCTION_MAX && op != REDUCTION_MIN))
        return fold_combine(r->sh, op, into, term);
    return TEXT(r->sh, op == REDUCTION_MAX ? "max($, $)" : "min($, $)", into, term);
}

/* ---- fields ---- */

struct field {
    const char *suffix, *type, *none;
};

/* The fields of a unit, at most three. */
static size_t fields_of(const struct rows *r, const struct rows_unit *u, struct field *out) {
    const char *place = r->short_cols ? "int" : "long long";
    size_t n = 1;
    out[0] = (struct field){"", term_type(r, u), identity(r, u)};
    switch (u->kind) {
    case UNIT_ARG:
        out[n++] = (struct field){"_place", place, place_limit(r)};
        break;
    case UNIT_SOFTMAX:
        out[n++] = (struct field){"_sum", "float", "0.0f"};
        break;
    case UNIT_MOMENTS:
        out[n++] = (struct field){"_squares", "float", "0.0f"};
        out[n++] = (struct field){"_count", "float", "0.0f"};
        break;
    case UNIT_PLAIN:
        if (u->counts)
            out[n++] = (struct field){"_count", place, "0"};
        break;
    }
    return n;
}

static size_t words_of(const struct field *f) {
    return f->type[0] == 'l' || f->type[0] == 'd' ? 2 : 1;
}

/* How many fields of a part have so many words. */
static size_t count_fields(const struct rows *r, const struct rows_level *l, size_t words) {
    size_t found = 0;
    for (size_t i = 0; i < l->nunits; i++) {
        struct field f[3];
        size_t n = fields_of(r, &l->units[i], f);
        for (size_t k = 0; k < n; k++)
            found += words_of(&f[k]) == words;
    }
    return found;
}

/* Long fields come first, and no bytes are left over: copying a part reads all that it has. */
static bool has_filler(const struct rows *r, const struct rows_level *l) {
    return count_fields(r, l, 2) && count_fields(r, l, 1) % 2;
}

size_t rows_part_words(const struct rows *r, size_t level) {
    const struct rows_level *l = &r->levels[level];
    return 2 * count_fields(r, l, 2) + count_fields(r, l, 1) + has_filler(r, l);
}

/* A name beside the unit's own, for its kernel and its type alike. */
static str beside(struct rows *r, const struct rows_unit *u, const char *suffix) {
    str name = TEXT(r->sh, "$$", u->field, str_view(suffix));
    while (sheet_has_name(r->sh, name))
        name = TEXT(r->sh, "$_", name);
    return name;
}

/* ---- units as slots ---- */

/* Arrays of terms as parameters ("const float (&m_terms)[N]") or as arguments ("m_terms"). */
static str term_arrays(struct rows *r, size_t level, bool types) {
    const struct rows_level *l = &r->levels[level];
    str all = S("");
    for (size_t i = 0; i < l->nunits; i++) {
        const struct rows_unit *u = &l->units[i];
        const struct {
            bool there;
            const char *type, *suffix;
        } arrays[] = {{true, term_type(r, u), "_terms"},
                      {is_masked(r, u), "bool", "_in"},
                      {u->kind == UNIT_ARG, rows_col_type(r), "_places"}};
        for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) {
            str name = beside(r, u, arrays[k].suffix);
            if (types)
                name = TEXT(r->sh, "const $ (&$)[kTerms]", str_view(arrays[k].type), name);
            if (arrays[k].there)
                all = sheet_join(r->sh, all, ", ", name);
        }
    }
    return all;
}

str rows_add_call(struct rows *r, size_t level, str part) {
    return TEXT(r->sh, "$.add($);", part, term_arrays(r, level, false));
}

static void put_array(const char *type, str name, str condition, str value, struct slots *s) {
    struct slots *row = slots_row(s, "arrays");
    slots_put(row, "type", str_view(type));
    slots_put(row, "array", name);
    slots_put(row, "condition", condition);
    slots_put(row, "value", value);
}

/* The terms of one column. `inside`: a condition, or empty; `column`: the value of the column. */
static void put_terms(struct rows *r, const struct rows_unit *u, struct slots *s, str inside,
                      str column) {
    struct sheet *sh = r->sh;
    const struct rows_fold *fold = first_fold(r, u);
    str term = scope_text(&r->k, fold->term), counted = inside, condition = S("");
    if (fold->guard)
        counted = sheet_join(sh, inside, " && ", TEXT(sh, "($)", scope_text(&r->k, fold->guard)));
    if (counted.n && (is_masked(r, u) || u->kind == UNIT_ARG)) {
        str name = beside(r, u, "_counts");
        condition = TEXT(sh, "const bool $ = $;", name, counted);
        counted = name;
    }
    if (counted.n) {
        term = TEXT(sh, is_real(r, u) ? "$ ? $ : $" : "$ ? (long long)($) : $", counted, term,
                    str_view(identity(r, u)));
        column = TEXT(sh, "$ ? $ : $", counted, column, str_view(place_limit(r)));
    }
    put_array(term_type(r, u), beside(r, u, "_terms"), condition, term, s);
    if (is_masked(r, u))
        put_array("bool", beside(r, u, "_in"), S(""), counted, s);
    if (u->kind == UNIT_ARG)
        put_array(rows_col_type(r), beside(r, u, "_places"), S(""), column, s);
}

void rows_put_terms(struct rows *r, size_t level, struct slots *s, str inside, str column) {
    const struct rows_level *l = &r->levels[level];
    for (size_t i = 0; i < l->nunits; i++)
        put_terms(r, &l->units[i], s, inside, column);
}

/* ---- types ---- */

static void put_fields(struct rows *r, const struct rows_level *l, size_t words, struct slots *s) {
    for (size_t i = 0; i < l->nunits; i++) {
        struct field f[3];
        size_t n = fields_of(r, &l->units[i], f);
        for (size_t k = 0; k < n; k++) {
            if (words_of(&f[k]) != words)
                continue;
            struct slots *row = slots_row(s, "fields");
            slots_put(row, "type", str_view(f[k].type));
            slots_put(row, "field",
                      f[k].suffix[0] ? beside(r, &l->units[i], f[k].suffix) : l->units[i].field);
            slots_put(row, "nothing", str_view(f[k].none));
        }
    }
}

/* How a unit takes terms in and is merged with another one of its kind. */
static void put_fold(struct rows *r, const struct rows_unit *u, struct slots *s) {
    struct sheet *sh = r->sh;
    struct slots *row = slots_row(s, "units");
    enum reduction op = op_of(r, u);
    static const struct {
        const char *slot, *suffix;
    } names[] = {{"value", ""},       {"sum", "_sum"},      {"squares", "_squares"},
                 {"count", "_count"}, {"place", "_place"},  {"terms", "_terms"},
                 {"masks", "_in"},    {"places", "_places"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        slots_put(row, names[i].slot,
                  names[i].suffix[0] ? beside(r, u, names[i].suffix) : u->field);
    slots_put(row, "type", str_view(term_type(r, u)));
    slots_flag(row, "masked", is_masked(r, u));
    slots_flag(row, "is_place", u->kind == UNIT_ARG);
    bool plain = u->kind == UNIT_PLAIN, sum = op == REDUCTION_SUM || op == REDUCTION_MEAN;
    slots_flag(row, "is_sum", plain && sum);
    slots_flag(row, "is_other", plain && !sum);
    slots_flag(row, "is_softmax", u->kind == UNIT_SOFTMAX);
    slots_flag(row, "is_moments", u->kind == UNIT_MOMENTS);
    slots_flag(row, "counts", plain && u->counts);
    slots_put(row, "extreme", op == REDUCTION_ARGMAX ? S("max") : S("min"));
    slots_put(row, "exp", sh->fast ? S("__expf") : S("expf"));
    slots_put(row, "added", S(""));
    slots_put(row, "merged", S(""));
    if (u->kind == UNIT_SOFTMAX)
        sheet_helper(sh, "maximum");
    if (!plain)
        return;
    str term = TEXT(sh, "$[each]", slots_get(row, "terms")), other = TEXT(sh, "other.$", u->field);
    slots_put(row, "added", combined(r, u, u->field, term));
    slots_put(row, "merged", combined(r, u, u->field, other));
}

static str names_of(struct rows *r, const struct rows_level *l) {
    const struct task *t = r->st->inst->task;
    str all = S("");
    for (size_t i = 0; i < l->nunits; i++) {
        const struct rows_unit *u = &l->units[i];
        all = sheet_join(r->sh, all, ", ", t->tensors[r->g.folds[u->fold].s->tensor].name);
        if (u->kind == UNIT_MOMENTS || u->kind == UNIT_SOFTMAX)
            all = sheet_join(r->sh, all, " and ", t->tensors[r->g.folds[u->second].s->tensor].name);
    }
    return all;
}

bool rows_write_parts(struct rows *r) {
    for (size_t i = 0; i < r->nlevels; i++) {
        const struct rows_level *l = &r->levels[i];
        struct slots *s = sheet_slots(r->sh);
        slots_put(s, "part", l->part);
        slots_put(s, "names", names_of(r, l));
        put_fields(r, l, 2, s);
        put_fields(r, l, 1, s);
        for (size_t k = 0; k < l->nunits; k++)
            put_fold(r, &l->units[k], s);
        slots_flag(s, "filler", has_filler(r, l));
        slots_put(s, "parameters", term_arrays(r, i, true));
        /* Lanes exchange parts, unless they have rows of their own. */
        slots_flag(s, "crosses", !r->shape.outer || r->shape.split > 1);
        if (!sheet_put(r->sh, "rows/part.cu", s, &r->sh->functions))
            return false;
    }
    return true;
}

/* ---- results ---- */

static const struct rows_unit *unit_of(const struct rows *r, size_t fold) {
    const struct rows_level *l = &r->levels[r->g.folds[fold].level];
    for (size_t i = 0; i < l->nunits; i++)
        if (l->units[i].fold == fold || l->units[i].second == fold)
            return &l->units[i];
    return NULL;
}

const char *rows_result_type(const struct rows *r, size_t fold) {
    return r->g.folds[fold].s->body->value_kind == VALUE_REAL ? "float" : "long long";
}

static str plain_value(struct rows *r, size_t fold, str part) {
    struct sheet *sh = r->sh;
    const struct rows_unit *u = unit_of(r, fold);
    bool mean = r->g.folds[fold].s->body->reduce->op == REDUCTION_MEAN;
    bool own = u->kind == UNIT_MOMENTS ? first_fold(r, u)->guard != NULL : u->counts;
    str count = own ? TEXT(sh, "$.$", part, beside(r, u, "_count")) : S("cols");
    str from = TEXT(sh, "$.$", part, u->field);
    if (u->second == fold && u->kind == UNIT_SOFTMAX)
        return TEXT(sh, "$.$", part, beside(r, u, "_sum"));
    if (u->second == fold) {
        str squares = TEXT(sh, "$.$", part, beside(r, u, "_squares"));
        return mean ? TEXT(sh, "$ / (float)$", squares, count) : squares;
    }
    if (u->kind == UNIT_ARG)
        return TEXT(sh, "$.$", part, beside(r, u, "_place"));
    if (op_of(r, u) == REDUCTION_PROD && is_real(r, u))
        return TEXT(sh, "(float)$", from);
    if (!mean || u->kind == UNIT_MOMENTS)
        return from;
    return TEXT(sh, is_real(r, u) ? "$ / (float)$" : "(float)$ / (float)$", from, count);
}

str rows_result_value(struct rows *r, size_t fold, str part) {
    const struct statement *s = r->g.folds[fold].s;
    enum dtype t = r->st->inst->task->tensors[s->tensor].dtype;
    str value = plain_value(r, fold, part);
    if (t != DTYPE_F16 && t != DTYPE_BF16)
        return value;
    str packed = scope_packed(&r->k, s->tensor, s->body->value_kind, value);
    return scope_unpacked(&r->k, s->tensor, packed);
}
