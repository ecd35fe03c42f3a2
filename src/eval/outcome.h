/* What happened to a candidate. Its record is everything that is known of it, put together once, by
 * the evaluator; the search adds where the candidate came from. An outcome is what is asked of it
 * most. Afterwards both are only read: by the search, the archive, the terminal, and people
 * (outcome.json).
 *
 * A record owns what it refers to. Whoever changes one keeps texts and lists in its arena. */
#ifndef EVAL_OUTCOME_H
#define EVAL_OUTCOME_H

#include "device/wire.h"
#include "kernel/census.h"

#define RECORD_SCHEMA 2 /* 1: without schema, ordinal, parents, step, structure and phases */

#define FIELDS_AS_STRUCTS
#include "base/fields_as.h"
#include "eval/record.def"
extern const struct fields census_fields;

struct record *record_new(enum verdict v, str why);
struct record *record_copy(const struct record *r);
void record_free(struct record *r); /* NULL is fine */
json *record_to_json(const struct record *r);
/* "3 of its 64 blocks were run and 192 of their results judged". */
void record_sample_words(const struct result_sample *s, struct buf *out);
/* NULL with err: it says which field is wrong, or that the record is of a newer schema. */
struct record *record_parse(str text, struct err *err);
void record_write(const struct record *r, struct buf *out); /* on one line */

/* The one place where a verdict gets its reason: without one its author is told at least what the
 * verdict means. */
void record_set_verdict(struct record *r, enum verdict v, str why);
double phase_now(void); /* seconds since 1970, UTC */

/* Where a candidate comes from; what the search adds to its record. */
struct origin {
    uint64_t ordinal;
    const char *step; /* of the run that made it: "plan", "crossover", … */
    uint64_t parents[2];
    size_t nparents;
    str structure;   /* empty: nothing was written of it */
    double proposed; /* as phase_now; 0: not known */
};
/* Adds it to a record that does not have it yet. */
void record_set_origin(struct record *r, const struct origin *from);

struct outcome {
    enum verdict verdict;
    double time_s;  /* estimate or measurement; INFINITY when not accepted */
    bool estimated; /* by the simulator's model */
    bool covered;   /* accepted, and everything that was met at the task's own shape was judged */
    const char *bound;     /* what binds it, by the model: "dram", "issue", … */
    double limit_share;    /* limit / time; 0 when not accepted */
    const char *why;       /* for the author; "" when accepted */
    struct record *record; /* owned */
};

struct outcome *outcome_of(struct record *record); /* takes the record */
void outcome_free(struct outcome *o);

#endif
