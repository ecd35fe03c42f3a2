/* Where the candidates of an archive come from, as their records say. */
#ifndef TESTS_SEARCH_ORIGINS_H
#define TESTS_SEARCH_ORIGINS_H

#include "archive/calls.h"
#include "tap.h"

struct origins {
    size_t n, by_plan, by_crossover, by_repair, by_improvement, with_structure;
};

static void origin_of(void *ctx, const struct archive_candidate *c, struct record *r,
                      const struct err *why) {
    struct origins *o = ctx;
    o->n++;
    CHECKF(r && r->has_ordinal && r->ordinal == (int64_t)c->ordinal && r->step.n, "%d: %s",
           (int)c->ordinal, why->text);
    for (size_t i = 0; r && i < r->nparents; i++)
        CHECKF(r->parents[i] < r->ordinal, "%d has the parent %d", (int)r->ordinal,
               (int)r->parents[i]);
    if (r) {
        bool child = str_is(r->step, "crossover"), repair = str_is(r->step, "repair");
        bool better = str_is(r->step, "improve");
        CHECKF((r->nparents > 0) == (child || repair || better), "%d by %.*s", (int)r->ordinal,
               STR_ARG(r->step));
        CHECK(r->phases && r->phases->has_proposed_at);
        o->by_plan += str_is(r->step, "plan");
        o->by_crossover += child;
        o->by_repair += repair;
        o->by_improvement += better;
        o->with_structure += r->structure.n > 0;
    }
    record_free(r);
}

/* Of a folder; parents are earlier candidates. */
static struct origins origins_in(const char *dir) {
    struct origins o = {0};
    struct archive *a = NULL;
    struct err err = {0};
    CHECKF(archive_open_read(dir, &a, &err) && archive_each_candidate(a, origin_of, &o, &err), "%s",
           err.text);
    archive_close(a);
    return o;
}

#endif
