/* Which contents of a timed batch are run in a round, and what first meetings cost.
 *
 * One content, drawn for each job among those whose kind of data has several, is held back in the
 * first round. In the second round it is met for the first time while the others of its kind are
 * met again, under the same conditions. That costs next to nothing: the rounds are made anyway.
 *
 * Where first meetings look slower (meetings.h), four further rounds follow, each with contents
 * that nobody has met: seeds that are drawn for that round alone take the place of those that were
 * held back. Slower in both as well is drift.
 *
 * Large tensors leave room for one content of each kind. Nothing can be held back then, and a
 * further content would cost its expected values for every candidate. The first round is compared
 * with the later ones instead: that the clock was still low looks alike, so it is a reason to look
 * closer and nothing more. In the further rounds one content in turn is a new one, in the memory of
 * the one that it stands for. The same holds where contents are timed one by one.
 *
 * Candidates alone: those that are timed in turns with others have been through this. */
#include "device/worker.h"

#include "base/rng.h"

#define FURTHER_ROUNDS 4

static size_t count(const struct job_walk *j) {
    return batch_now(j)->ncases;
}

static bool applies(const struct job_walk *j) {
    return batch_now(j)->timed && !j->asked.dump && j->nmodules == 1;
}

/* The kinds are numbered as they come. */
static void number_kinds(struct job_walk *j) {
    const struct job_case *cases = batch_now(j)->cases;
    struct meet *m = &j->meet;
    size_t kinds = 0;
    for (size_t i = 0; i < count(j); i++) {
        size_t same = 0;
        while (same < i && cases[same].data != cases[i].data)
            same++;
        m->kind[i] = same < i ? m->kind[same] : kinds++;
    }
}

static size_t draw(struct worker *w, size_t n) {
    return (size_t)rng_below(rng_stream(w->random, S("meetings")), w->drawn++, n);
}

static bool has_likes(const struct job_walk *j, size_t at) {
    size_t n = 0;
    for (size_t i = 0; i < count(j); i++)
        n += j->meet.kind[i] == j->meet.kind[at];
    return n > 1;
}

static void hold_back(struct worker *w) {
    struct job_walk *j = &w->job;
    size_t of[WIRE_MAX_CASES], n = 0;
    for (size_t i = 0; i < count(j); i++)
        if (has_likes(j, i))
            of[n++] = i;
    if (!n)
        return;
    j->meet.held[of[draw(w, n)]] = true;
    j->meet.holds = true;
}

/* In the round that comes: is the content a new one, in another's place? */
static bool is_replaced(const struct job_walk *j, size_t at) {
    if (!j->meet.further || j->preparing)
        return false;
    return j->meet.holds ? j->meet.held[at] : at == (j->meet.from + j->round) % count(j);
}

struct job_case *meet_cases(struct worker *w, size_t *n, struct arena *a) {
    struct job_walk *j = &w->job;
    struct meet *m = &j->meet;
    struct job_case *list = arena_array(a, struct job_case, count(j));
    if (applies(j) && !m->drawn) {
        number_kinds(j);
        hold_back(w);
        m->from = draw(w, count(j) ? count(j) : 1);
    }
    m->drawn = true;
    m->nsent = 0;
    for (size_t i = 0; i < count(j); i++) {
        if (j->round == 0 && m->held[i])
            continue;
        struct job_case *c = &list[m->nsent];
        *c = batch_now(j)->cases[i];
        if (is_replaced(j, i)) /* a new content */
            c->seed = rng_u64(rng_stream(w->random, S("contents")), w->drawn++) >> 1;
        m->sent[m->nsent++] = i;
    }
    *n = m->nsent;
    return list;
}

size_t meet_case(const struct job_walk *j, size_t place) {
    return place < j->meet.nsent ? j->meet.sent[place] : 0;
}

bool meet_is_first(const struct job_walk *j, size_t place) {
    size_t at = meet_case(j, place);
    return !j->meet.met[at] || is_replaced(j, at);
}

void meet_keep(struct job_walk *j) {
    struct meet *m = &j->meet;
    for (size_t i = 0; i < j->ran.ntimes_s && applies(j); i++) {
        size_t place = order_case(j, i);
        double s = j->ran.times_s[i];
        if (!(s > 0))
            continue;
        m->list = mem_grow(m->list, &m->room, m->n + 1, sizeof *m->list);
        m->list[m->n++] = (struct meeting){.kind = m->kind[meet_case(j, place)],
                                           .round = j->round,
                                           .first = meet_is_first(j, place),
                                           .start = i == 0,
                                           .seconds = s};
    }
    for (size_t i = 0; i < m->nsent; i++)
        m->met[m->sent[i]] = true;
}

enum meet_verdict meet_judge(struct job_walk *j, double *slower) {
    struct meet *m = &j->meet;
    size_t round = m->further ? j->round - 1 : m->holds ? 1 : 0;
    if (!applies(j) || !meetings_slower(m->list, m->n, round, slower))
        return MEET_FINE;
    return m->further++ < FURTHER_ROUNDS ? MEET_AGAIN : MEET_DRIFT;
}

void meet_clear(struct job_walk *j) {
    mem_free(j->meet.list);
    j->meet = (struct meet){0};
}
