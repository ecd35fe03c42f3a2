/* The table of prices: assets/models/prices, one model a line, `name in out`. A name stands for
 * itself and for itself with a date or -latest behind it; a model that merely begins alike is
 * another model at another price. */
#include "agent/llm/account.h"

#include "base/asset.h"

#include <math.h>

static bool is_date(str s) {
    size_t digits = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool digit = s.p[i] >= '0' && s.p[i] <= '9';
        if (!digit && s.p[i] != '-')
            return false;
        digits += digit;
    }
    return digits == 8 && str_starts(s, S("-20"));
}

static bool names(str name, str model) {
    str rest = str_from(model, name.n);
    return str_starts(model, name) && (!rest.n || str_is(rest, "-latest") || is_date(rest));
}

static bool next_word(str *rest, str *word) {
    do
        if (!str_word(rest, ' ', word))
            return false;
    while (!word->n);
    return true;
}

static bool row(str line, str model, struct price *out, bool *found) {
    str name, in, made, more;
    struct price p;
    line = str_trim(line);
    if (!line.n || line.p[0] == '#')
        return true;
    if (!next_word(&line, &name) || !next_word(&line, &in) || !next_word(&line, &made) ||
        next_word(&line, &more) || !str_to_f64(in, &p.in) || !str_to_f64(made, &p.out) ||
        !(p.in >= 0 && p.out >= 0))
        return false;
    if (names(name, model)) {
        *out = p;
        *found = true;
    }
    return true;
}

bool price_find(const char *assets, str model, struct price *out, struct err *err) {
    struct arena *a = arena_new(4 << 20);
    str text, line;
    bool found = false, ok = asset_get(assets, "models/prices", a, &text, err);
    *out = (struct price){NAN, NAN};
    for (size_t number = 1; ok && !found && str_line(&text, &line); number++)
        if (!row(line, model, out, &found))
            ok = err_set(err, ERR_INPUT,
                         "assets models/prices:%zu: expected NAME and two prices, got '%.*s'",
                         number, STR_ARG(str_cut(line, 0, 80)));
    arena_free(a);
    return ok;
}
