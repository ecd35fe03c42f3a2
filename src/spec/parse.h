/* The parser's own state, shared by its parts: the passes over a file (parse.c), declarations
 * (parse_tensor.c), left sides and assumptions (parse_left.c), expressions (parse_expr.c) and
 * reductions (parse_reduce.c). Private to the room.
 *
 * Two passes. The first reads every declaration and the left side of every definition, and
 * remembers where the right sides begin; the second reads those, when all names are known. So a
 * `let` may stand before or after its use. */
#ifndef SPEC_PARSE_H
#define SPEC_PARSE_H

#include "spec/lex.h"
#include "spec/task.h"

/* Which tensors an expression may read. */
enum reading {
    READING_NOTHING, /* dimensions, conditions of assumptions */
    READING_GIVEN,   /* definitions of inputs: random numbers and inputs */
    READING_TASK,    /* statements: inputs and lets */
};

struct parser {
    struct lexer lx;
    struct token tok; /* the one to look at next */
    size_t end;       /* of the token before it */
    struct arena *arena;
    struct task *task;
    struct err *err;
    /* What names may mean here: with a statement its index variables, without one dimensions
     * alone; then the variables of the reductions around. */
    struct statement *scope;
    enum reading reading;
    size_t implicit; /* this many unknown names become index variables of the scope */
    struct local {
        str name;
        size_t var;
    } locals[TASK_MAX_VARS];
    size_t nlocals;
    bool has_accuracy;
    int depth; /* of brackets and prefix operators being read */
};

/* A tree under construction, with its height. */
struct node {
    struct expr *e;
    int height;
};

/* Operators bind from loosely to tightly. */
enum { LEVEL_ANY = 1, LEVEL_AND = 2, LEVEL_COMPARE = 3, LEVEL_SUM = 4, LEVEL_PRODUCT = 5 };

/* parse.c */
bool parse_next(struct parser *p);
bool parse_fail(struct parser *p, size_t at, size_t len, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* At the token to look at: "… expected, found …". */
bool parse_expected(struct parser *p, const char *what, const char *hint);
bool parse_symbol(struct parser *p, const char *symbol, const char *hint);
bool parse_at_line_end(const struct parser *p);
/* Words with a meaning of their own: no dimension, tensor or index may be called so. */
bool word_is_reserved(str name);
int dim_find(const struct task *t, str name); /* -1: none */

/* parse_tensor.c: what follows the keyword, up to the end of the line or an `=`. */
bool parse_new_name(struct parser *p, const char *what, struct token *out);
bool parse_dim_expression(struct parser *p, struct expr **out);
bool parse_dtype(struct parser *p, enum dtype *out);
bool parse_dims(struct parser *p);
bool parse_tensor(struct parser *p, enum tensor_role role, struct statement *definition);
bool add_tensor(struct parser *p, const struct tensor *t);

/* parse_left.c */
bool parse_let(struct parser *p, struct statement *s);
bool parse_definition(struct parser *p, struct statement *s);
bool parse_assume(struct parser *p);

/* parse_expr.c */
bool parse_expression(struct parser *p, struct expr **out);
bool parse_level(struct parser *p, int level, struct node *out);
bool node_make(struct parser *p, enum expr_kind kind, size_t at, const struct node *args, size_t n,
               struct node *out);
bool node_raise(struct parser *p, struct node *n, int height);
bool need_number(struct parser *p, const struct expr *e);
bool need_truth(struct parser *p, const struct expr *e);
/* The first part, in reading order, of that kind; NULL: none. */
const struct expr *expr_find(const struct expr *e, enum expr_kind kind);

/* parse_reduce.c: `name` was read, the bracket is next. */
bool reduction_find(str name, enum reduction *out);
bool parse_reduce(struct parser *p, const struct token *name, enum reduction op, struct node *out);
int local_find(const struct parser *p, str name); /* a variable in sight, or -1 */

/* Settles the order of the statements, the extents of `let` tensors, the inferred ranges of
 * reductions, and which tensors compute places (order.c). */
bool task_order(struct parser *p);

#endif
