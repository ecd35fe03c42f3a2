/* Reading line-oriented texts, those of decisions and of openings: words, integers and conditions,
 * with errors that point into the text. */
#ifndef STRATEGY_READER_H
#define STRATEGY_READER_H

#include "strategy/strategy.h"

struct reader {
    str file, text; /* the whole of it; every piece below is a part of it */
};

/* Fails at a piece of the text. */
#define READER_FAIL(r, err, piece, hint, ...)                                                      \
    err_at(err, (r)->file, (r)->text, (size_t)((piece).p - (r)->text.p), (piece).n, hint,          \
           __VA_ARGS__)
/* The next word of a line, taken off `rest`. */
bool reader_word(str *rest, str *word);
bool reader_integer(const struct reader *r, str word, int64_t *out, struct err *err);
/* `arch >= 90 && stages > 1` up to the end of the line; names are pieces of the text. */
bool reader_conditions(const struct reader *r, str rest, struct condition *all, size_t *n,
                       struct err *err);
bool compare_holds(int64_t a, enum compare op, int64_t b);

/* ---- one file of assets/strategies/: the text of a decision (its README is the manual) ---- */

#define DECISION_MAX_BYTES  (64u << 10)
#define DECISION_MAX_VALUES 64

/* `name` is the file's name without folder and ending; `file` is for messages. What `out` points to
 * lives in the arena, copied from the text. */
bool decision_parse(str file, str name, str text, struct arena *a, struct decision *out,
                    struct err *err);

#endif
