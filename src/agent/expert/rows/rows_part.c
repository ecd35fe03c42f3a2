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
static const char *exponential(const struct rows *r) {
    return r->sh->fast ? "__expf" : "expf";
}

static const char *place_limit(const struct rows *r) {
    return r->short_cols ? "INT_MAX" : "LLONG_MAX";
}

bool rows_unit_masks(const struct rows *r, const struct rows_unit *u) {
    bool masked = r->shape.outer || r->shape.shifted || first_fold(r, u)->guard;
    return masked && (u->kind == UNIT_MOMENTS || u->counts);
}

/* What a term that does not count is replaced by; it changes nothing. */
static const char *identity(const struct rows *r, const struct rows_unit *u) {
    static const char *const integers[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "0LL",          [REDUCTION_PROD] = "1LL",
        [REDUCTION_MAX] = "LLONG_MIN",    [REDUCTION_MIN] = "LLONG_MAX",
        [REDUCTION_MEAN] = "0LL",         [REDUCTION_ARGMAX] = "LLONG_MIN",
        [REDUCTION_ARGMIN] = "LLONG_MAX",
    };
    return is_real(r, u) ? fold_identity(op_of(r, u)) : integers[op_of(r, u)];
}

static str combined(struct rows *r, const struct rows_unit *u, str into, str term) {
    enum reduction op = op_of(r, u);
    if (is_real(r, u) || (op != REDUCTION_MAX && op != REDUCTION_MIN))
        return fold_combine(r->sh, op, into, term);
    return sheet_printf(r->sh, "%s(%.*s, %.*s)", op == REDUCTION_MAX ? "max" : "min", STR_ARG(into),
                        STR_ARG(term));
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

static void put_fields(struct rows *r, const struct rows_unit *u, size_t words, struct buf *fields,
                       struct buf *none, struct buf *across) {
    struct field f[3];
    size_t n = fields_of(r, u, f);
    for (size_t k = 0; k < n; k++) {
        if (words_of(&f[k]) != words)
            continue;
        str name = sheet_printf(r->sh, "%.*s%s", STR_ARG(u->field), f[k].suffix);
        buf_printf(fields, "%s %.*s;\n", f[k].type, STR_ARG(name));
        buf_printf(none, "p.%.*s = %s;\n", STR_ARG(name), f[k].none);
        buf_printf(across, "p.%.*s = __shfl_xor_sync(0xffffffff, %.*s, d);\n", STR_ARG(name),
                   STR_ARG(name));
    }
}

/* ---- taking terms in ---- */

static str loop(struct rows *r, str body) {
    return sheet_printf(r->sh, "#pragma unroll\nfor (int e = 0; e < N; e++)\n    %.*s",
                        STR_ARG(body));
}

static str add_plain(struct rows *r, const struct rows_unit *u) {
    struct sheet *sh = r->sh;
    enum reduction op = op_of(r, u);
    str f = u->field, term = sheet_printf(sh, "%.*s_terms[e]", STR_ARG(f)), text;
    if (op == REDUCTION_SUM || op == REDUCTION_MEAN) {
        str more = sheet_printf(sh, "%.*s_more", STR_ARG(f));
        str each = loop(r, sheet_printf(sh, "%.*s += %.*s;", STR_ARG(more), STR_ARG(term)));
        text = sheet_printf(sh, "%s %.*s = 0;\n%.*s\n%.*s += %.*s;", term_type(r, u), STR_ARG(more),
                            STR_ARG(each), STR_ARG(f), STR_ARG(more));
    } else {
        str value = combined(r, u, f, term);
        text = loop(r, sheet_printf(sh, "%.*s = %.*s;", STR_ARG(f), STR_ARG(value)));
    }
    if (!u->counts)
        return text;
    return rows_lines(
        r, text, loop(r, sheet_printf(sh, "%.*s_count += %.*s_in[e];", STR_ARG(f), STR_ARG(f))));
}

static str add_arg(struct rows *r, const struct rows_unit *u) {
    const char *which = op_of(r, u) == REDUCTION_ARGMAX ? "max" : "min";
    return loop(r, sheet_printf(
                       r->sh, "cp_next_%s(%.*s, %.*s_place, %.*s_terms[e], %.*s_places[e]);", which,
                       STR_ARG(u->field), STR_ARG(u->field), STR_ARG(u->field), STR_ARG(u->field)));
}

static str add_softmax(struct rows *r, const struct rows_unit *u) {
    struct slot slots[] = {{"f", u->field}, {"exp", str_view(exponential(r))}};
    sheet_helper(r->sh, "maximum");
    return ROWS_RENDER(r, "rows/add_softmax.cu", slots);
}

static str add_moments(struct rows *r, const struct rows_unit *u) {
    struct slot slots[] = {{"f", u->field}};
    return rows_unit_masks(r, u) ? ROWS_RENDER(r, "rows/add_moments_some.cu", slots)
                                 : ROWS_RENDER(r, "rows/add_moments.cu", slots);
}

static str add_text(struct rows *r, const struct rows_unit *u) {
    switch (u->kind) {
    case UNIT_ARG:
        return add_arg(r, u);
    case UNIT_SOFTMAX:
        return add_softmax(r, u);
    case UNIT_MOMENTS:
        return add_moments(r, u);
    case UNIT_PLAIN:
        break;
    }
    return add_plain(r, u);
}

static str merge_text(struct rows *r, const struct rows_unit *u) {
    struct sheet *sh = r->sh;
    str f = u->field;
    struct slot slots[] = {{"f", f}, {"exp", str_view(exponential(r))}};
    if (u->kind == UNIT_SOFTMAX)
        return ROWS_RENDER(r, "rows/merge_softmax.cu", slots);
    if (u->kind == UNIT_MOMENTS)
        return sheet_printf(sh,
                            "cp_merge_moments(%.*s_count, %.*s, %.*s_squares, o.%.*s_count, "
                            "o.%.*s, o.%.*s_squares);",
                            STR_ARG(f), STR_ARG(f), STR_ARG(f), STR_ARG(f), STR_ARG(f), STR_ARG(f));
    if (u->kind == UNIT_ARG)
        return sheet_printf(sh, "cp_take_%s(%.*s, %.*s_place, o.%.*s, o.%.*s_place);",
                            op_of(r, u) == REDUCTION_ARGMAX ? "max" : "min", STR_ARG(f), STR_ARG(f),
                            STR_ARG(f), STR_ARG(f));
    str value = combined(r, u, f, sheet_printf(sh, "o.%.*s", STR_ARG(f)));
    str text = sheet_printf(sh, "%.*s = %.*s;", STR_ARG(f), STR_ARG(value));
    if (!u->counts)
        return text;
    return rows_lines(r, text,
                      sheet_printf(sh, "%.*s_count += o.%.*s_count;", STR_ARG(f), STR_ARG(f)));
}

/* ---- parameters of add ---- */

static void put_parameters(struct rows *r, const struct rows_unit *u, struct buf *out) {
    const char *lead = out->n ? ", " : "";
    buf_printf(out, "%sconst %s (&%.*s_terms)[N]", lead, term_type(r, u), STR_ARG(u->field));
    if (rows_unit_masks(r, u))
        buf_printf(out, ", const bool (&%.*s_in)[N]", STR_ARG(u->field));
    if (u->kind == UNIT_ARG)
        buf_printf(out, ", const %s (&%.*s_places)[N]", rows_col_type(r), STR_ARG(u->field));
}

str rows_declare_terms(struct rows *r, size_t level, const char *count) {
    const struct rows_level *l = &r->levels[level];
    str all = S("");
    for (size_t i = 0; i < l->nunits; i++) {
        const struct rows_unit *u = &l->units[i];
        all = rows_lines(
            r, all,
            sheet_printf(r->sh, "%s %.*s_terms[%s];", term_type(r, u), STR_ARG(u->field), count));
        if (rows_unit_masks(r, u))
            all = rows_lines(r, all,
                             sheet_printf(r->sh, "bool %.*s_in[%s];", STR_ARG(u->field), count));
        if (u->kind == UNIT_ARG)
            all = rows_lines(r, all,
                             sheet_printf(r->sh, "%s %.*s_places[%s];", rows_col_type(r),
                                          STR_ARG(u->field), count));
    }
    return all;
}

str rows_add_call(struct rows *r, size_t level, str part) {
    const struct rows_level *l = &r->levels[level];
    str args = S("");
    for (size_t i = 0; i < l->nunits; i++) {
        const struct rows_unit *u = &l->units[i];
        str f = u->field;
        args = sheet_printf(r->sh, "%.*s%s%.*s_terms", STR_ARG(args), i ? ", " : "", STR_ARG(f));
        if (rows_unit_masks(r, u))
            args = sheet_printf(r->sh, "%.*s, %.*s_in", STR_ARG(args), STR_ARG(f));
        if (u->kind == UNIT_ARG)
            args = sheet_printf(r->sh, "%.*s, %.*s_places", STR_ARG(args), STR_ARG(f));
    }
    return sheet_printf(r->sh, "%.*s.add(%.*s);", STR_ARG(part), STR_ARG(args));
}

static str unit_terms(struct rows *r, const struct rows_unit *u, str inside, str place, str index) {
    struct sheet *sh = r->sh;
    const struct rows_fold *fold = first_fold(r, u);
    str f = u->field, term = scope_text(&r->k, fold->term), cond = inside, text = S("");
    if (fold->guard) {
        str guard = scope_text(&r->k, fold->guard);
        cond = sheet_printf(sh, "%.*s%s(%.*s)", STR_ARG(inside), inside.n ? " && " : "",
                            STR_ARG(guard));
    }
    bool several = cond.n && (rows_unit_masks(r, u) || u->kind == UNIT_ARG);
    if (several) {
        text = sheet_printf(sh, "const bool %.*s_counts = %.*s;", STR_ARG(f), STR_ARG(cond));
        cond = sheet_printf(sh, "%.*s_counts", STR_ARG(f));
    }
    str value = !cond.n         ? term
                : is_real(r, u) ? sheet_printf(sh, "%.*s ? %.*s : %s", STR_ARG(cond), STR_ARG(term),
                                               identity(r, u))
                                : sheet_printf(sh, "%.*s ? (long long)(%.*s) : %s", STR_ARG(cond),
                                               STR_ARG(term), identity(r, u));
    text = rows_lines(
        r, text,
        sheet_printf(sh, "%.*s_terms[%.*s] = %.*s;", STR_ARG(f), STR_ARG(index), STR_ARG(value)));
    if (rows_unit_masks(r, u))
        text = rows_lines(
            r, text,
            sheet_printf(sh, "%.*s_in[%.*s] = %.*s;", STR_ARG(f), STR_ARG(index), STR_ARG(cond)));
    if (u->kind != UNIT_ARG)
        return text;
    value =
        cond.n ? sheet_printf(sh, "%.*s ? %.*s : %s", STR_ARG(cond), STR_ARG(place), place_limit(r))
               : place;
    return rows_lines(
        r, text,
        sheet_printf(sh, "%.*s_places[%.*s] = %.*s;", STR_ARG(f), STR_ARG(index), STR_ARG(value)));
}

str rows_terms_text(struct rows *r, size_t level, str inside, str place, str index) {
    const struct rows_level *l = &r->levels[level];
    str all = S("");
    for (size_t i = 0; i < l->nunits; i++)
        all = rows_lines(r, all, unit_terms(r, &l->units[i], inside, place, index));
    return all;
}

/* ---- types ---- */

static bool has_kind(const struct rows *r, enum unit_kind kind) {
    for (size_t l = 0; l < r->nlevels; l++)
        for (size_t i = 0; i < r->levels[l].nunits; i++)
            if (r->levels[l].units[i].kind == kind)
                return true;
    return false;
}

/* A function that every step shares comes once. */
static bool write_once(struct rows *r, const char *mark, const char *template) {
    if (str_find(buf_str(&r->sh->functions), str_view(mark)) < r->sh->functions.n)
        return true;
    return sheet_template(r->sh, template, NULL, 0, &r->sh->functions);
}

static void put_with_end(struct buf *out, str text) {
    buf_puts(out, text);
    buf_putc(out, '\n');
}

/* Lanes exchange parts, unless they have rows of their own. */
static str across_text(struct rows *r, str part, struct buf *fields) {
    struct slot slots[] = {{"part", part}, {"fields", sheet_keep(r->sh, fields)}};
    return r->shape.outer && r->shape.split == 1 ? S("")
                                                 : ROWS_RENDER(r, "rows/part_across.cu", slots);
}

static str fold_name(struct rows *r, size_t fold) {
    return r->st->inst->task->tensors[r->g.folds[fold].s->tensor].name;
}

static str names_of(struct rows *r, const struct rows_level *l) {
    str all = S("");
    for (size_t i = 0; i < l->nunits; i++) {
        const struct rows_unit *u = &l->units[i];
        str name = fold_name(r, u->fold);
        all = sheet_printf(r->sh, "%.*s%s%.*s", STR_ARG(all), i ? ", " : "", STR_ARG(name));
        if (u->kind == UNIT_MOMENTS || u->kind == UNIT_SOFTMAX) {
            name = fold_name(r, u->second);
            all = sheet_printf(r->sh, "%.*s and %.*s", STR_ARG(all), STR_ARG(name));
        }
    }
    return all;
}

static bool write_part(struct rows *r, size_t level) {
    const struct rows_level *l = &r->levels[level];
    struct buf fields, none, across, params, adds, merges;
    struct buf *const all[] = {&fields, &none, &across, &params, &adds, &merges};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_init(all[i], 64u << 10);
    for (size_t words = 2; words > 0; words--)
        for (size_t i = 0; i < l->nunits; i++)
            put_fields(r, &l->units[i], words, &fields, &none, &across);
    if (has_filler(r, l)) {
        buf_puts(&fields, S("int filler; // so that no byte of a copy is unwritten\n"));
        buf_puts(&none, S("p.filler = 0;\n"));
        buf_puts(&across, S("p.filler = 0;\n"));
    }
    for (size_t i = 0; i < l->nunits; i++) {
        put_parameters(r, &l->units[i], &params);
        put_with_end(&adds, add_text(r, &l->units[i]));
        put_with_end(&merges, merge_text(r, &l->units[i]));
    }
    struct slot slots[] = {{"part", l->part},
                           {"names", names_of(r, l)},
                           {"fields", sheet_keep(r->sh, &fields)},
                           {"none", sheet_keep(r->sh, &none)},
                           {"params", sheet_keep(r->sh, &params)},
                           {"adds", sheet_keep(r->sh, &adds)},
                           {"merges", sheet_keep(r->sh, &merges)},
                           {"across", across_text(r, l->part, &across)}};
    bool ok = sheet_template(r->sh, "rows/part.cu", slots, sizeof slots / sizeof *slots,
                             &r->sh->functions);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        buf_release(all[i]);
    return ok;
}

bool rows_write_parts(struct rows *r) {
    bool ok =
        (!has_kind(r, UNIT_MOMENTS) || write_once(r, "cp_merge_moments", "rows/moments.cu")) &&
        (!has_kind(r, UNIT_ARG) || write_once(r, "cp_take_max", "rows/take.cu"));
    for (size_t l = 0; l < r->nlevels && ok; l++)
        ok = write_part(r, l);
    return ok;
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

static str count_text(struct rows *r, const struct rows_unit *u, str from) {
    bool own = u->kind == UNIT_MOMENTS ? first_fold(r, u)->guard != NULL : u->counts;
    return own ? sheet_printf(r->sh, "%.*s_count", STR_ARG(from)) : r->n.cols;
}

static str plain_value(struct rows *r, size_t fold, str part) {
    struct sheet *sh = r->sh;
    const struct rows_unit *u = unit_of(r, fold);
    str from = sheet_printf(sh, "%.*s.%.*s", STR_ARG(part), STR_ARG(u->field));
    str count = count_text(r, u, from);
    bool mean = r->g.folds[fold].s->body->reduce->op == REDUCTION_MEAN;
    if (u->second == fold && u->kind == UNIT_SOFTMAX)
        return sheet_printf(sh, "%.*s_sum", STR_ARG(from));
    if (u->second == fold)
        return sheet_printf(sh, mean ? "%.*s_squares / (float)%.*s" : "%.*s_squares", STR_ARG(from),
                            STR_ARG(count));
    if (u->kind == UNIT_ARG)
        return sheet_printf(sh, "%.*s_place", STR_ARG(from));
    if (op_of(r, u) == REDUCTION_PROD && is_real(r, u))
        return sheet_printf(sh, "(float)%.*s", STR_ARG(from));
    if (!mean || u->kind == UNIT_MOMENTS)
        return from;
    return sheet_printf(sh, is_real(r, u) ? "%.*s / (float)%.*s" : "(float)%.*s / (float)%.*s",
                        STR_ARG(from), STR_ARG(count));
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
