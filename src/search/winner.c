/* The winner among the accepted candidates of a search (finalist.h). */
#include "search/finalist.h"
#include "search/search_private.h"

static void refused(void *ctx, str text) {
    search_emit_text(ctx, EVENT_NOTE, S(""), text);
}

bool winner_choose(struct search *s, struct arena *a) {
    struct finalist_options fo = {&s->eo, s->o->archive, s->scratch, refused, s};
    struct finalist *list = mem_alloc((s->nkept + 1) * sizeof *list);
    size_t which;
    for (size_t i = 0; i < s->nkept; i++) {
        const struct kept *k = &s->kept[i];
        list[i] = (struct finalist){.ordinal = s->e.trials[k->trial].ordinal,
                                    .strategy = s->e.trials[k->trial].aligned,
                                    .time_s = s->e.trials[k->trial].time_s,
                                    .source = str_view(k->source),
                                    .record = record_copy(k->record)};
    }
    bool ok = finalist_choose(&fo, list, s->nkept, &which, &s->err) || search_fail(s, &s->err);
    if (ok && which < s->nkept)
        finalist_take(&list[which], a, s->best);
    for (size_t i = 0; i < s->nkept; i++)
        record_free(list[i].record);
    mem_free(list);
    return ok;
}
