/* The parser's own state, shared by its two halves: declarations (parse.c) and expressions
 * (parse_expr.c). Private to the room.
 *
 * Two passes. The first reads every declaration and the left side of every definition, and
 * remembers where the right sides begin; the second reads those, when all names are known. So a
 * `let` may stand before or after its use. */
#ifndef SPEC_PARSE_H
#define SPEC_PARSE_H

#include "spec/lex.h"
#include "spec/task.h"

struct parser {
    struct lexer lx;
    struct token tok; /* the one to look at next */
    size_t end;       /* of the token before it */
    struct arena *arena;
    struct task *task;
    struct err *err;
    /* What names may mean here: with a statement its index variables and tensors, without one
     * dimensions alone. */
    const struct statement *scope;
    int depth; /* of brackets and prefix operators being read */
};

bool parse_next(struct parser *p);
bool parse_fail(struct parser *p, size_t at, size_t len, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* At the token to look at: "… expected, found …". */
bool parse_expected(struct parser *p, const char *what, const char *hint);
bool parse_symbol(struct parser *p, const char *symbol, const char *hint);
bool parse_at_line_end(const struct parser *p);

bool parse_expression(struct parser *p, struct expr **out);

/* Words with a meaning of their own: no dimension, tensor or index may be called so. */
bool word_is_reserved(str name);
/* What the full language has and this version has not: NULL, or what to call it in a message. */
const char *word_missing(str name);

/* Settles the order of the statements and the extents of `let` tensors (order.c). */
bool task_order(struct parser *p);

#endif
