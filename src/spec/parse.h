/* The parser of task files, by its parts: the passes over a file (parse.c), declarations
 * (parse_tensor.c), left sides and assumptions (parse_left.c), expressions (parse_expr.c over
 * language.c) and reductions (parse_reduce.c). Private to the room.
 *
 * Two passes. The first reads every declaration and the left side of every definition, and
 * remembers where the right sides begin; the second reads those, when all names are known. So a
 * `let` may stand before or after its use. */
#ifndef SPEC_PARSE_H
#define SPEC_PARSE_H

#include "spec/language.h"

/* parse.c */
/* At the token to look at: "… expected, found …". */
bool parse_expected(struct parser *p, const char *what, const char *hint);
bool parse_symbol(struct parser *p, const char *symbol, const char *hint);
bool parse_at_line_end(const struct parser *p);
/* Words with a meaning of their own: no dimension, tensor or index may be called so. */
bool word_is_reserved(str name);

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
extern const struct language task_language;
bool parse_expression(struct parser *p, struct expr **out);
bool need_number(struct parser *p, const struct expr *e);
bool need_truth(struct parser *p, const struct expr *e);

/* parse_reduce.c: `name` was read, the bracket is next. */
bool reduction_find(str name, enum reduction *out);
bool parse_reduce(struct parser *p, const struct token *name, enum reduction op, struct node *out);
int local_find(const struct parser *p, str name); /* a variable in sight, or -1 */

/* Settles the order of the statements, the extents of `let` tensors, the inferred ranges of
 * reductions, and which tensors compute places (order.c). */
bool task_order(struct parser *p);

#endif
