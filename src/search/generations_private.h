/* One run of `evolve` with a model, shared by the files that are its phases: generations.c drives
 * them and evaluates, generations_propose.c gets strategies. Private to the two. */
#ifndef SEARCH_GENERATIONS_PRIVATE_H
#define SEARCH_GENERATIONS_PRIVATE_H

#include "search/evolve.h"
#include "search/finalist.h"
#include "search/generations.h"
#include "search/journal.h"
#include "search/recall.h"

#define GENERATIONS_MOST 64 /* members, for streams of their own */

/* A place in the generation. */
struct member {
    struct generations *g;
    bool alive;  /* it has a candidate, or may still get one */
    bool open;   /* a question about it is in flight */
    bool waits;  /* its candidate is under evaluation */
    bool unable; /* the last question had no usable answer */
    bool is_aligned, settled;
    size_t trial;
    struct parent x, y;
    struct strategy strategy, aligned;
    struct origin origin; /* of its first candidate */
    struct entry entry;
    bool fresh;        /* the entry is of the present round */
    double asked;      /* when its source was, as phase_now */
    uint64_t reserved; /* ordinal, should there be a candidate */
    uint64_t slot;     /* … and its place */
};

struct generations {
    struct loop *loop;
    const struct search_options *o;
    struct evaluator_options eo;
    struct evaluator *evaluator;
    struct arena *mem;
    struct briefing briefing;
    struct history history;
    struct recalled recalled;
    struct journal j;
    struct evolve e;
    struct strategy fallback;
    struct member *members;
    size_t n, population;     /* n: of the generation */
    struct sibling *siblings; /* of the generation's children */
    struct tried *tried;      /* of generations before */
    size_t ntried, cap_tried;
    bool estimated; /* times are the simulator's */
    struct strategy *plan;
    size_t nplan;
    str plan_reason;
    bool plan_open;
    bool gone;          /* the agent cannot answer any more */
    uint64_t ordinal;   /* the next; one is reserved for every question that asks for a source */
    uint64_t evaluated; /* of the budget */
    char (*hashes)[65]; /* of every source so far */
    size_t nhashes, cap_hashes;
    struct finalist *finalists;
    size_t nfinalists, cap_finalists;
    size_t stale, plateau, empty; /* empty: generations without a candidate, in a row */
    double gain_from_s;
    struct search_best *out;
    struct err unwritten;
};

/* ---- questions ---- */

/* True: there is an answer that can be used. */
bool generations_usable(struct generations *g, const struct err *err);
/* Until nothing is asked or evaluated any more. False: the run ends. */
bool generations_await(struct generations *g);
/* What a question is about, and how far the run may still go. */
struct briefing generations_brief(const struct generations *g, uint64_t candidate);

/* ---- strategies (generations_propose.c) ---- */

/* Of the first generation: planned. */
bool generations_plan(struct generations *g);
/* Of later ones: children of two parents each. */
bool generations_cross(struct generations *g);
/* Every member gets a strategy that was not tried, at or near its proposal. */
void generations_claim(struct generations *g);

#endif
