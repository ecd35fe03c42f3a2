#include "eval/outcome.h"

#include <math.h>
#include <time.h>

#define RECORD_ARENA ((size_t)256 << 20)

#define FIELDS_AS_TABLES
#include "base/fields_as.h"

BEGIN(census)
RANGE(instructions, 0, INT64_MAX)
MAP(struct census_count, groups, 64, )
MAP(struct census_count, forms, CENSUS_MAX_FORMS, )
END(census)

#include "eval/record.def"

/* ---- records ---- */

static struct record *record_alloc(void) {
    struct arena *mem = arena_new(RECORD_ARENA);
    struct record *r = arena_new_of(mem, struct record);
    r->mem = mem;
    return r;
}

struct record *record_new(enum verdict v, str why) {
    struct record *r = record_alloc();
    fields_set(r, schema, RECORD_SCHEMA);
    record_set_verdict(r, v, why);
    return r;
}

struct record *record_copy(const struct record *r) {
    struct record *copy = record_alloc();
    struct arena *mem = copy->mem;
    fields_copy(&record_fields, r, mem, copy);
    copy->mem = mem;
    return copy;
}

void record_free(struct record *r) {
    if (r)
        arena_free(r->mem);
}

json *record_to_json(const struct record *r) {
    return fields_to_json(&record_fields, r);
}

struct record *record_from_json(const json *j, struct err *err) {
    struct record *r = record_alloc();
    struct arena *mem = r->mem;
    bool ok = fields_from_json(&record_fields, j, mem, r, err) || err_wrap(err, "record");
    r->mem = mem;
    r->accepted = r->verdict == VERDICT_ACCEPTED;
    if (ok && r->has_schema && r->schema > RECORD_SCHEMA)
        ok = err_set(err, ERR_INPUT,
                     "the record was written by a newer cutepilot (schema %u, this one knows %d)",
                     r->schema, RECORD_SCHEMA);
    if (ok)
        return r;
    record_free(r);
    return NULL;
}

struct record *record_parse(str text, struct err *err) {
    json *j = json_parse(text, err);
    struct record *r = j ? record_from_json(j, err) : NULL;
    json_free(j);
    return r;
}

void record_write(const struct record *r, struct buf *out) {
    json *j = record_to_json(r);
    json_write(j, out);
    json_free(j);
}

void record_set_verdict(struct record *r, enum verdict v, str why) {
    r->verdict = v;
    r->accepted = v == VERDICT_ACCEPTED;
    if (!r->accepted && !str_trim(why).n)
        why = str_view(verdict_meaning(v));
    r->why = arena_str(r->mem, why);
}

struct record_phases *phases_of(struct record *r) {
    if (!r->phases)
        r->phases = arena_new_of(r->mem, struct record_phases);
    return r->phases;
}

double phase_now(void) {
    struct timespec t = {0};
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    return (double)ms / 1000;
}

void record_set_origin(struct record *r, const struct origin *from) {
    if (r->has_ordinal || !from->step)
        return;
    fields_set(r, ordinal, (int64_t)from->ordinal);
    r->parents = arena_array(r->mem, int64_t, from->nparents);
    for (; r->nparents < from->nparents; r->nparents++)
        r->parents[r->nparents] = (int64_t)from->parents[r->nparents];
    r->step = arena_str(r->mem, str_view(from->step));
    if (from->structure.n)
        r->structure = arena_str(r->mem, from->structure);
    if (from->proposed > 0)
        fields_set(phases_of(r), proposed_at, from->proposed);
}

/* ---- outcomes ---- */

struct outcome *outcome_of(struct record *r) {
    struct outcome *o = mem_alloc(sizeof *o);
    bool accepted = r->verdict == VERDICT_ACCEPTED;
    *o = (struct outcome){.verdict = r->verdict,
                          .time_s = accepted && r->has_time_s ? r->time_s : INFINITY,
                          .estimated = r->estimated,
                          .covered = !r->has_covered || r->covered,
                          .bound = arena_cstr(r->mem, r->bound),
                          .limit_share = accepted ? r->limit_share : 0,
                          .why = arena_cstr(r->mem, r->why),
                          .record = r};
    return o;
}

void outcome_free(struct outcome *o) {
    if (!o)
        return;
    record_free(o->record);
    mem_free(o);
}
