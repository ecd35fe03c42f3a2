#include "eval/outcome.h"

#include "base/arena.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct outcome *outcome_from_record(json *record, struct err *err) {
    str verdict = {0}, why = {0}, bound = {0};
    struct outcome *o = mem_alloc(sizeof *o);
    o->record = record;
    json_get_str(record, "verdict", &verdict);
    json_get_str(record, "why", &why);
    json_get_str(record, "bound", &bound);
    o->why = mem_alloc(why.n + 1);
    if (why.n)
        memcpy(o->why, why.p, why.n);
    snprintf(o->bound, sizeof o->bound, "%.*s", STR_ARG(bound));
    json_get_bool(record, "estimated", &o->estimated);
    o->covered = true;
    json_get_bool(record, "covered", &o->covered);
    if (!verdict_find(verdict, &o->verdict)) {
        err_set(err, ERR_ENV, "an outcome has the unknown verdict '%.*s'", STR_ARG(verdict));
        outcome_free(o);
        return NULL;
    }
    if (o->verdict != VERDICT_ACCEPTED || !json_get_f64(record, "time_s", &o->time_s))
        o->time_s = INFINITY;
    if (o->verdict == VERDICT_ACCEPTED)
        json_get_f64(record, "limit_share", &o->limit_share);
    return o;
}

void outcome_free(struct outcome *o) {
    if (!o)
        return;
    json_free(o->record);
    mem_free(o->why);
    mem_free(o);
}
