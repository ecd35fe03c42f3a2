/* Kernels of the expert as they are compiled, and what can be measured of them: facts of the PTX
 * (the instruction census, or words of its text) and of the plan as it is bound for the task. */
#ifndef TESTS_AGENT_COMPILING_H
#define TESTS_AGENT_COMPILING_H

#include "writing.h"

#include "kernel/build.h"
#include "kernel/census.h"
#include <stdlib.h>

/* ---- kernels ---- */

struct variant { /* a kernel of the table */
    struct briefing brief;
    struct strategy strategy;
    str source;
    struct bound_plan plan;
    str ptx;
    struct census census[CANDIDATE_MAX_LAUNCHES];
    str names[CANDIDATE_MAX_LAUNCHES]; /* of its kernels */
    size_t nkernels;
    bool built;
};
enum { MAX_VARIANTS = 1024 };
static struct variant variants[MAX_VARIANTS];
static size_t nvariants, open_builds;

static void on_build(void *ctx, const struct build *b) {
    struct variant *v = ctx;
    struct ptx_module *m;
    open_builds--;
    CHECKF(b->verdict == VERDICT_ACCEPTED, "%.*s\n%.*s", STR_ARG(b->log), STR_ARG(v->source));
    if (b->verdict != VERDICT_ACCEPTED)
        return;
    v->ptx = arena_str(mem, b->ptx);
    if (!ptx_parse(v->ptx, mem, &m, &err))
        return;
    for (size_t i = 0; i < m->nentries && v->nkernels < CANDIDATE_MAX_LAUNCHES; i++)
        if (m->entries[i].is_kernel) {
            v->names[v->nkernels] = m->entries[i].name;
            census_take(m, &m->entries[i], mem, &v->census[v->nkernels++]);
        }
    v->built = true;
}

/* PTX is what is measured; that ptxas takes it too costs as much again, and is for CI. */
static bool start_build(struct build_pool *pool, struct variant *v) {
    const struct briefing *b = &v->brief;
    const char *arch = getenv("THOROUGH") ? b->gpu->arch : "compute_90a";
    struct candidate *c;
    struct buf unit;
    buf_init(&unit, 4u << 20);
    bool ok = candidate_parse(S("kernel.cu"), v->source, b->inst->task, mem, &c, &err) &&
              plan_bind(c, b->inst, mem, &v->plan, &err) && candidate_unit(c, &unit, &err);
    struct build_request r = {.unit = buf_str(&unit), .arch = arch, .fmad = true};
    ok = ok && build_submit(pool, &r, on_build, v, &err);
    open_builds += ok;
    buf_release(&unit);
    return ok;
}

/* What an agent is told of it: as much of a candidate's record as the code decides. */
static inline struct record *record_of(const struct variant *v) {
    struct record *r = record_new(VERDICT_ACCEPTED, S(""));
    r->kernels = arena_array(r->mem, struct record_kernel, v->nkernels);
    for (; r->nkernels < v->nkernels; r->nkernels++)
        r->kernels[r->nkernels] = (struct record_kernel){
            .name = v->names[r->nkernels], .census = (struct census *)&v->census[r->nkernels]};
    r->launches = arena_array(r->mem, struct record_launch, v->plan.nlaunches);
    for (; r->nlaunches < v->plan.nlaunches; r->nlaunches++) {
        const struct bound_launch *l = &v->plan.launches[r->nlaunches];
        struct record_launch *to = &r->launches[r->nlaunches];
        *to = (struct record_launch){.kernel = l->kernel, .shared_dynamic = (int64_t)l->shared};
        memcpy(to->block, l->block, sizeof to->block);
        memcpy(to->cluster, l->cluster, sizeof to->cluster);
    }
    return r;
}

/* ---- facts ---- */

static uint64_t product(const uint32_t n[3]) {
    return (uint64_t)n[0] * n[1] * n[2];
}

static bool is_larger(const struct bound_launch *a, const struct bound_launch *b) {
    if (a->shared != b->shared)
        return a->shared > b->shared;
    return product(a->grid) * product(a->block) > product(b->grid) * product(b->block);
}

static int64_t plan_fact(const struct bound_plan *p, str what) {
    const struct bound_launch *most = &p->launches[0];
    uint64_t bytes = 0;
    for (size_t i = 1; i < p->nlaunches; i++)
        if (is_larger(&p->launches[i], most))
            most = &p->launches[i];
    for (size_t i = 0; i < p->nworkspaces; i++)
        bytes += p->workspaces[i].bytes;
    const struct {
        const char *name;
        uint64_t value;
    } all[] = {{"blocks", product(most->grid)},
               {"threads", product(most->block)},
               {"all-threads", product(most->grid) * product(most->block)},
               {"shared", most->shared},
               {"cluster", product(most->cluster)},
               {"launches", p->nlaunches},
               {"memsets", p->nmemsets},
               {"maps", p->nmaps},
               {"workspace", bytes}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (str_is(what, all[i].name))
            return (int64_t)all[i].value;
    return -1;
}

/* A pattern whose stars stand for anything. */
static bool matches(str pattern, str name) {
    size_t star = str_find(pattern, S("*"));
    if (star == pattern.n)
        return str_eq(pattern, name);
    if (!str_starts(name, str_cut(pattern, 0, star)))
        return false;
    str rest = str_from(pattern, star + 1), part;
    name = str_from(name, star);
    while (str_word(&rest, '*', &part)) {
        size_t at = str_find(name, part);
        if (part.n && at == name.n)
            return false;
        if (!rest.n)
            return str_ends(name, part);
        name = str_from(name, at + part.n);
    }
    return true;
}

static int64_t census_fact(const struct variant *v, str pattern, bool bits) {
    int64_t count = 0, widest = 0;
    for (size_t k = 0; k < v->nkernels; k++)
        for (size_t i = 0; i < v->census[k].nforms; i++) {
            const struct census_count *f = &v->census[k].forms[i];
            int64_t n = 0;
            size_t dot = f->name.n;
            if (!matches(pattern, f->name))
                continue;
            while (dot > 0 && f->name.p[dot - 1] != '.')
                dot--;
            str_to_i64(str_from(f->name, dot), &n);
            widest = n > widest ? n : widest;
            count += f->count;
        }
    return bits ? widest : count;
}

static int64_t text_fact(str text, str words, bool number) {
    int64_t count = 0, largest = -1;
    for (size_t at; (at = str_find(text, words)) < text.n; count++) {
        text = str_from(text, at + words.n);
        long n = text.n && strchr("0123456789", text.p[0]) ? strtol(text.p, NULL, 10) : -1;
        largest = n > largest ? n : largest;
    }
    return number ? largest : count;
}

/* The number at the end of the first instruction of that name. */
static int64_t operand_fact(str text, str op) {
    str line = str_from(text, str_find(text, op)), last = S("");
    line = str_cut(line, 0, str_find(line, S(";")));
    while (str_word(&line, ' ', &last))
        continue;
    int64_t n = -1;
    return str_to_i64(last, &n) ? n : -1;
}

/* Loads of global memory one after the other, without arithmetic on what they bring in between. */
static int64_t flight_fact(str text) {
    int64_t run = 0, longest = 0;
    str line;
    while (str_word(&text, '\n', &line)) {
        line = str_trim(line);
        bool moves = str_starts(line, S("ld.")) || str_starts(line, S("mov."));
        if (str_starts(line, S("ld.global")))
            run++;
        else if (!moves && str_find(line, S(".f32")) < line.n)
            run = 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static int64_t measure(const struct variant *v, const char *fact) {
    str rest = str_view(fact), word;
    str_word(&rest, ' ', &word);
    if (str_is(word, "count") || str_is(word, "bits"))
        return census_fact(v, rest, str_is(word, "bits"));
    if (str_is(word, "ptx") || str_is(word, "number"))
        return text_fact(v->ptx, rest, str_is(word, "number"));
    if (str_is(word, "operand"))
        return operand_fact(v->ptx, rest);
    if (str_is(word, "in-flight"))
        return flight_fact(v->ptx);
    int64_t n = plan_fact(&v->plan, str_view(fact));
    CHECKF(n >= 0, "%s: not a fact", fact);
    return n;
}

#endif
