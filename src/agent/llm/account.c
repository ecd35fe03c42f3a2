/* Sums and caps. */
#include "agent/llm/account.h"
#include "base/arena.h"
#include "base/asset.h"
#include "strategy/reader.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct spent {
    char name[32];
    uint64_t calls, tokens_in, tokens_out;
    double cost;
};

struct ledger { /* one row a role, or a candidate */
    struct spent *rows;
    size_t n, cap;
};

struct account {
    struct caps caps;
    struct price price;
    struct spent all;
    uint64_t started; /* calls, for their cap */
    struct reservation reserved;
    struct ledger roles, candidates;
};

struct account *account_new(struct caps caps, struct price price) {
    struct account *a = mem_alloc(sizeof *a);
    a->caps = caps;
    a->price = price;
    return a;
}

void account_free(struct account *a) {
    if (!a)
        return;
    mem_free(a->roles.rows);
    mem_free(a->candidates.rows);
    mem_free(a);
}

/* Text and code are three to four bytes a token. */
uint64_t tokens_estimate(uint64_t bytes) {
    return (bytes + 2) / 3;
}

/* More than any text of ours has been seen to be, with the frame that servers add. */
static uint64_t tokens_at_most(uint64_t bytes) {
    return bytes / 2 + 64;
}

double price_cost(struct price p, uint64_t tokens_in, uint64_t tokens_out) {
    return ((double)tokens_in * p.in + (double)tokens_out * p.out) / 1e6;
}

/* ---- caps ---- */

/* Where an unknown price meets a cap on money, the comparison fails and so nothing is spent. */
static enum admission fits(double used, double reserved, double need, double cap) {
    if (cap == 0)
        return ADMIT_YES;
    if (!(used + need <= cap))
        return ADMIT_NEVER;
    return used + reserved + need <= cap ? ADMIT_YES : ADMIT_WAIT;
}

enum admission account_admit(struct account *a, bool first, uint64_t prompt_bytes,
                             uint64_t max_tokens, struct reservation *out, struct err *err) {
    uint64_t in = tokens_at_most(prompt_bytes);
    struct reservation r = {in + max_tokens, price_cost(a->price, in, max_tokens)};
    uint64_t used = a->all.tokens_in + a->all.tokens_out;
    if (first && a->caps.calls && a->started >= a->caps.calls) {
        err_set(err, ERR_NO, "the cap of %" PRIu64 " model calls is reached", a->caps.calls);
        return ADMIT_NEVER;
    }
    enum admission tokens =
        fits((double)used, (double)a->reserved.tokens, (double)r.tokens, (double)a->caps.tokens);
    enum admission cost = fits(a->all.cost, a->reserved.cost, r.cost, a->caps.cost);
    if (tokens == ADMIT_NEVER)
        err_set(err, ERR_NO,
                "the next model call (up to %" PRIu64 " tokens) might pass the cap of %" PRIu64
                " tokens, of which %" PRIu64 " are used",
                r.tokens, a->caps.tokens, used);
    else if (cost == ADMIT_NEVER)
        err_set(err, ERR_NO,
                "the next model call (up to $%.4f) might pass the cap of $%.2f, of which $%.4f are "
                "spent",
                r.cost, a->caps.cost, a->all.cost);
    if (tokens == ADMIT_NEVER || cost == ADMIT_NEVER)
        return ADMIT_NEVER;
    if (tokens == ADMIT_WAIT || cost == ADMIT_WAIT)
        return ADMIT_WAIT;
    r.cost = isnan(r.cost) ? 0 : r.cost;
    a->reserved.tokens += r.tokens;
    a->reserved.cost += r.cost;
    a->started += first;
    *out = r;
    return ADMIT_YES;
}

void account_settle(struct account *a, struct reservation *r) {
    a->reserved.tokens -= r->tokens;
    a->reserved.cost -= r->cost;
    if (!a->reserved.tokens)
        a->reserved.cost = 0; /* no residue of rounding: it would grow */
    *r = (struct reservation){0};
}

/* ---- sums ---- */

/* Shorter names first, so that numbers are in their order. */
static int by_name(const char *a, const char *b) {
    size_t m = strlen(a), n = strlen(b);
    return m != n ? (m < n ? -1 : 1) : strcmp(a, b);
}

/* In the order of names: answers come in any order, and accounts of a run are to be the same. */
static struct spent *row_of(struct ledger *l, const char *name) {
    size_t at = 0;
    while (at < l->n && by_name(l->rows[at].name, name) < 0)
        at++;
    if (at < l->n && !strcmp(l->rows[at].name, name))
        return &l->rows[at];
    l->rows = mem_grow(l->rows, &l->cap, l->n + 1, sizeof *l->rows);
    memmove(&l->rows[at + 1], &l->rows[at], (l->n++ - at) * sizeof *l->rows);
    l->rows[at] = (struct spent){0};
    snprintf(l->rows[at].name, sizeof l->rows[at].name, "%s", name);
    return &l->rows[at];
}

static void add(struct spent *s, const struct charge *c) {
    s->calls += c->answered;
    s->tokens_in += c->tokens_in;
    s->tokens_out += c->tokens_out;
    s->cost += c->cost;
}

void account_charge(struct account *a, const struct charge *c) {
    char name[32];
    add(&a->all, c);
    snprintf(name, sizeof name, "%s", c->role);
    add(row_of(&a->roles, name), c);
    snprintf(name, sizeof name, "%" PRIu64, c->candidate);
    if (c->candidate != UINT64_MAX)
        add(row_of(&a->candidates, name), c);
}

static json *spent_json(const struct spent *s) {
    json *j = json_object();
    json_set_i64(j, "calls", (int64_t)s->calls);
    json_set_i64(j, "tokens_in", (int64_t)s->tokens_in);
    json_set_i64(j, "tokens_out", (int64_t)s->tokens_out);
    json_set_f64(j, "cost", s->cost);
    return j;
}

static json *ledger_json(const struct ledger *l) {
    json *j = json_object();
    for (size_t i = 0; i < l->n; i++)
        json_set(j, l->rows[i].name, spent_json(&l->rows[i]));
    return j;
}

json *account_json(const struct account *a) {
    json *j = spent_json(&a->all);
    json_set(j, "roles", ledger_json(&a->roles));
    json_set(j, "candidates", ledger_json(&a->candidates));
    return j;
}

/* The table of prices: assets/models/prices, one model a line, `name in out`. A name stands for
 * itself and for itself with a date or -latest behind it; a model that merely begins alike is
 * another model at another price. */

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

static bool row(str line, str model, struct price *out, bool *found) {
    str name, in, made, more;
    struct price p;
    line = str_trim(line);
    if (!line.n || line.p[0] == '#')
        return true;
    if (!reader_word(&line, &name) || !reader_word(&line, &in) || !reader_word(&line, &made) ||
        reader_word(&line, &more) || !str_to_f64(in, &p.in) || !str_to_f64(made, &p.out) ||
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
