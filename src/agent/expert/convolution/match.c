/* Which products are convolutions: what every index of the input is made of. */
#include "agent/expert/convolution/convolution.h"
#include "spec/domain.h"

enum { TAPS_MOST = 64, LINES_MOST = 256, STRIDE_MOST = 8, PLANES_MOST = 64 };

#define BIT(v) (UINT32_C(1) << (v))

static const struct con_index *index_of(const struct con_group *g, uint32_t vars) {
    for (size_t i = 0; i < g->n; i++)
        if (vars == BIT(g->at[i].var))
            return &g->at[i];
    return NULL;
}

int64_t conv_tap_at(const struct conv_axis *a, int64_t tap, int64_t phase, int64_t *part) {
    int64_t ahead = phase + a->step * tap + a->ahead;
    *part = ahead % a->stride;
    return ahead % a->spread ? -1 : ahead / a->stride / a->spread;
}

const struct conv_axis *conv_last(const struct convolution *v) {
    return &v->axes[v->naxes - 1];
}

static int64_t quotient_down(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

/* Where taps lie, from the constant of the index on. */
static bool place_taps(struct conv_axis *x, int64_t constant) {
    bool any = false;
    x->first = 0;
    for (int64_t phase = 0; phase < x->spread; phase++)
        for (int64_t tap = 0; tap < x->taps; tap++) {
            int64_t at = phase + x->step * tap + constant;
            if (at % x->spread)
                continue;
            at = quotient_down(at, x->spread);
            x->first = !any || at < x->first ? at : x->first;
            any = true;
        }
    x->ahead = constant - x->spread * x->first;
    x->reach = 0;
    for (int64_t phase = 0; phase < x->spread; phase++)
        for (int64_t tap = 0; tap < x->taps; tap++) {
            int64_t part, at = conv_tap_at(x, tap, phase, &part);
            x->reach = at > x->reach ? at : x->reach;
        }
    return any;
}

/* The condition under which a term counts: `e` % spread == 0. */
static bool has_condition(const struct con_operand *o, const struct expr *e, int64_t spread) {
    for (size_t i = 0; i < o->nconditions; i++) {
        const struct expr *c = o->conditions[i];
        if (c->kind == EXPR_EQ && expr_is_number(c->args[1], 0) && c->args[0]->kind == EXPR_MOD &&
            expr_same(c->args[0]->args[0], e) && expr_is_number(c->args[0]->args[1], spread))
            return true;
    }
    return false;
}

/* Only sizes that stand in the text may be part of the index. */
static bool match_axis(const struct contraction *c, const struct con_operand *o, size_t d,
                       struct conv_axis *out) {
    const struct con_group *pixels = &c->group[CON_N], *sum = &c->group[CON_K];
    const struct expr *e = o->read->args[d];
    uint32_t vars = expr_vars(e), of_pixels = vars & con_vars(pixels, 0),
             of_sum = vars & con_vars(sum, 0);
    const struct con_index *pixel = index_of(pixels, of_pixels), *tap = index_of(sum, of_sum);
    int64_t spread = 1;
    struct affine f;
    if (!pixel || !tap || vars != (of_pixels | of_sum) || pixel->part != CON_WHOLE ||
        expr_has(e, EXPR_DIM) || expr_reads(e))
        return false;
    if (e->kind == EXPR_FLOORDIV && e->args[1]->kind == EXPR_NUMBER) {
        spread = e->args[1]->integer;
        e = e->args[0];
        if (spread < 1 || spread > STRIDE_MOST || !has_condition(o, e, spread))
            return false;
    }
    if (!affine_of(c->in, e, &f) || f.coef[pixel->var] < 1 || f.coef[pixel->var] > STRIDE_MOST ||
        f.coef[tap->var] == 0 || (spread > 1 && f.coef[pixel->var] != 1))
        return false;
    *out = (struct conv_axis){.out = *pixel,
                              .tap = *tap,
                              .dim = d,
                              .stride = f.coef[pixel->var],
                              .spread = spread,
                              .step = f.coef[tap->var],
                              .taps = con_value(c->in, tap->extent)};
    return out->taps >= 1 && out->taps <= TAPS_MOST && place_taps(out, f.c);
}

static bool add_axis(struct convolution *v, const struct conv_axis *x) {
    size_t at = v->naxes;
    if (at == CONV_AXES)
        return false;
    for (size_t i = 0; i < v->naxes; i++)
        if (v->axes[i].out.var == x->out.var ||
            (v->axes[i].tap.var == x->tap.var && x->tap.var != CONV_PLAIN))
            return false;
    for (; at > 0 && v->axes[at - 1].out.var > x->out.var; at--)
        v->axes[at] = v->axes[at - 1];
    v->axes[at] = *x;
    v->naxes++;
    return true;
}

static bool match_axes(struct convolution *v) {
    const struct contraction *c = v->c;
    uint32_t both[2] = {con_vars(&c->group[CON_N], 0), con_vars(&c->group[CON_K], 0)}, used = 0;
    for (size_t d = 0; d < v->input->read->nargs; d++) {
        const struct expr *e = v->input->read->args[d];
        struct conv_axis x;
        if (!(expr_vars(e) & both[0]) || !(expr_vars(e) & both[1]))
            continue;
        if (!match_axis(c, v->input, d, &x) || !add_axis(v, &x))
            return false;
    }
    for (size_t i = 0; i < v->naxes; i++)
        used |= BIT(v->axes[i].out.var) | BIT(v->axes[i].tap.var);
    for (size_t d = 0; d < v->input->read->nargs; d++) { /* each of them in that one index alone */
        uint32_t vars = expr_vars(v->input->read->args[d]) & used;
        if (vars && __builtin_popcount(vars) != 2)
            return false;
    }
    size_t spread = 0;
    for (size_t i = 0; i < v->naxes; i++)
        spread += v->axes[i].spread > 1;
    return v->naxes > 0 && v->input->nconditions == spread;
}

/* Positions further in than the last axis, which taps do not move: axes of one tap. */
static bool add_plain_axes(struct convolution *v) {
    const struct contraction *c = v->c;
    const struct statement *s = c->folds[0].statement;
    size_t first = conv_last(v)->out.var + 1;
    for (size_t var = first; var < s->nindex; var++) {
        const struct con_index *pixel = index_of(&c->group[CON_N], BIT(var));
        size_t found = SIZE_MAX, uses = 0;
        for (size_t d = 0; d < v->input->read->nargs; d++) {
            uses += expr_vars(v->input->read->args[d]) >> var & 1;
            found = expr_is_variable(v->input->read->args[d], var) ? d : found;
        }
        if (!pixel || pixel->part != CON_WHOLE || found == SIZE_MAX || uses != 1)
            return false;
        struct conv_axis x = {.out = *pixel,
                              .tap = {.var = CONV_PLAIN, .extent = expr_number(c->mem, 1)},
                              .dim = found,
                              .stride = 1,
                              .spread = 1,
                              .step = 1,
                              .taps = 1};
        if (!place_taps(&x, 0) || !add_axis(v, &x))
            return false;
    }
    return true;
}

/* Results are stored in runs along the last axis, so that has to be their innermost variable. */
static bool runs_along_axis(const struct convolution *v) {
    const struct statement *s = v->c->folds[0].statement;
    return v->axes[v->naxes - 1].out.var == s->nindex - 1;
}

static void make_groups(struct convolution *v) {
    struct contraction *c = v->c;
    uint32_t axes = 0;
    v->images.n = v->channels.n = v->taps.n = v->lines.n = 0;
    v->planes = v->phases = 1;
    for (size_t i = 0; i < v->naxes; i++) {
        struct conv_axis *x = &v->axes[i];
        axes |= BIT(x->out.var);
        if (x->tap.var != CONV_PLAIN)
            axes |= BIT(x->tap.var);
        x->tap.extent = expr_number(c->mem, x->taps);
        x->count = x->out.extent;
        if (x->spread > 1)
            x->count = expr_pair(
                c->mem, EXPR_FLOORDIV,
                expr_pair(c->mem, EXPR_ADD, x->out.extent, expr_number(c->mem, x->spread - 1)),
                expr_number(c->mem, x->spread));
        x->padded = x->reach ? expr_pair(c->mem, EXPR_ADD, x->count, expr_number(c->mem, x->reach))
                             : x->count;
        v->planes *= x->stride;
        v->phases *= i + 1 < v->naxes ? x->spread : 1;
        if (x->tap.var == CONV_PLAIN)
            continue;
        v->taps.at[v->taps.n++] = x->tap;
        if (i + 1 < v->naxes)
            v->lines.at[v->lines.n++] = x->tap;
    }
    for (size_t i = 0; i < c->group[CON_N].n; i++)
        if (!(axes >> c->group[CON_N].at[i].var & 1))
            v->images.at[v->images.n++] = c->group[CON_N].at[i];
    for (size_t i = 0; i < c->group[CON_K].n; i++)
        if (!(axes >> c->group[CON_K].at[i].var & 1))
            v->channels.at[v->channels.n++] = c->group[CON_K].at[i];
    con_total(c, &v->images);
    con_total(c, &v->channels);
    con_total(c, &v->taps);
    con_total(c, &v->lines);
}

bool conv_match(struct contraction *c, struct convolution *out) {
    *out = (struct convolution){.c = c};
    if (c->nfolds != 1 || c->noperands != 2 || c->k_lo || c->k_hi ||
        c->folds[0].statement->body->reduce->op != REDUCTION_SUM)
        return false;
    for (size_t i = 0; i < 2; i++) {
        *(c->operands[i].side == CON_N ? &out->input : &out->filter) = &c->operands[i];
    }
    if (out->filter->factor->kind != EXPR_READ || out->filter->nconditions || !match_axes(out) ||
        !add_plain_axes(out) || !runs_along_axis(out))
        return false;
    make_groups(out);
    return out->channels.n > 0 && out->lines.count <= LINES_MOST && out->planes <= PLANES_MOST &&
           out->phases <= PLANES_MOST;
}

struct expr *conv_inner(const struct convolution *v, size_t from) {
    struct expr *e = expr_number(v->c->mem, 1);
    for (size_t i = from; i < v->naxes; i++)
        e = expr_times(v->c->mem, e, v->axes[i].padded);
    return e;
}

struct expr *conv_plane(const struct convolution *v) {
    return conv_inner(v, 0);
}

struct expr *conv_used(const struct convolution *v) {
    struct arena *a = v->c->mem;
    struct expr *e = v->axes[v->naxes - 1].count;
    for (size_t i = 0; i + 1 < v->naxes; i++) {
        struct expr *before = expr_pair(a, EXPR_SUB, v->axes[i].count, expr_number(a, 1));
        e = expr_pair(a, EXPR_ADD, expr_times(a, before, conv_inner(v, i + 1)), e);
    }
    return e;
}
