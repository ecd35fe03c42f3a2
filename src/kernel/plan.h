/* Plan arithmetic, private to the kernel room: the tokens of a `//!` line, expressions over the
 * task's dimensions and earlier lets, and their evaluation in checked 64-bit integers; and the
 * readers of each kind of line.
 *
 * A reader walks one line of the candidate with one token ahead. Every failure is an err_at that
 * quotes the line; after one the reader is not used again. Trees live in the reader's arena. */
#ifndef KERNEL_PLAN_H
#define KERNEL_PLAN_H

#include "kernel/candidate.h"

#define PLAN_MAX_DEPTH 64 /* of a tree; chains like 1+1+1+… count one a term */

enum plan_op {
    PLAN_NUMBER,
    PLAN_DIM,
    PLAN_LET,
    PLAN_NEG,
    PLAN_NOT,
    PLAN_ADD,
    PLAN_SUB,
    PLAN_MUL,
    PLAN_DIV, /* floor, as is MOD */
    PLAN_MOD,
    PLAN_EQ,
    PLAN_NE,
    PLAN_LT,
    PLAN_LE,
    PLAN_GT,
    PLAN_GE,
    PLAN_AND, /* do not evaluate b when a settles it */
    PLAN_OR,
    PLAN_MIN,
    PLAN_MAX,
    PLAN_CEIL_DIV,
};

struct plan_expr {
    enum plan_op op;
    unsigned depth;
    size_t at, len; /* in the candidate's source */
    int64_t value;  /* NUMBER */
    size_t ref;     /* DIM, LET */
    struct plan_expr *a, *b;
};

/* aligned(x, n), which is no arithmetic: it is noted here, and as an expression it is the number 1.
 */
struct plan_aligned {
    const struct plan_expr *node;
    enum arg_kind of;
    size_t ref;
    uint32_t bytes;
};
#define PLAN_MAX_ALIGNED 16 /* in one line */

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN };
struct token {
    enum token_kind kind;
    size_t at;
    str text;
    int64_t number;
};

struct plan_reader {
    str file, source;
    size_t at, end;     /* what is left of the line */
    struct token token; /* the one ahead */
    const struct task *task;
    const struct plan_let *lets; /* those already known */
    size_t nlets;
    struct candidate *c;          /* the plan so far; NULL: arithmetic alone */
    struct plan_aligned *aligned; /* where to note them; NULL: not allowed here */
    size_t naligned;
    struct arena *arena;
    struct err *err;
};

/* A diagnostic at a place of the reader's source. */
#define PLAN_FAIL(r, at, len, hint, ...)                                                           \
    err_at((r)->err, (r)->file, (r)->source, (at), (len), (hint), __VA_ARGS__)

bool reader_next(struct plan_reader *r); /* moves on by one token */
bool reader_is(const struct plan_reader *r, const char *sign);
bool reader_expect(struct plan_reader *r, const char *sign, const char *after);
bool reader_at_end(struct plan_reader *r, const char *after);
struct plan_expr *plan_expr_parse(struct plan_reader *r); /* NULL and err */
int plan_dim_find(const struct task *t, str name);        /* -1: none */
bool plan_name_is_function(str name);

/* What a name alone stands for: a tensor, a workspace or a map. ARG_INTEGER: none of them. */
enum arg_kind plan_name_find(const struct plan_reader *r, str name, size_t *ref);
const char *plan_kind_name(enum arg_kind kind); /* "a workspace" */
/* Takes the name of a tensor that has memory, or of a workspace. `what` wants it. */
bool reader_memory(struct plan_reader *r, const char *what, enum arg_kind *of, size_t *ref);
/* Takes a name that is still free in the plan; `example` is a whole line. */
bool reader_new_name(struct plan_reader *r, const char *what, const char *example, str *out);
/* `[a, b, …]`, one to `most` expressions. */
bool reader_list(struct plan_reader *r, const char *after, struct plan_expr **out, size_t most,
                 size_t *n);
enum dtype plan_memory_dtype(const struct candidate *c, enum arg_kind of, size_t ref);

/* What follows the first word of a line. `at` is where that word stands. */
bool parse_workspace(struct plan_reader *r, size_t at);
bool parse_memset(struct plan_reader *r, size_t at);
bool parse_tensormap(struct plan_reader *r, size_t at);
bool parse_launch(struct plan_reader *r, size_t at);

/* Binding, for one instance. */
struct binding_run {
    const struct candidate *c;
    const struct inst *in;
    struct err *err;
    int64_t lets[CANDIDATE_MAX_LINES];
    size_t nlets; /* how many have a value */
};
#define BIND_FAIL(b, at, len, hint, ...)                                                           \
    err_at((b)->err, (b)->c->file, (b)->c->source, (at), (len), (hint), __VA_ARGS__)
bool bind_value(struct binding_run *b, const struct plan_expr *e, int64_t *out);
bool bind_workspace(struct binding_run *b, const struct plan_workspace *w,
                    struct bound_workspace *out);
bool bind_memset(struct binding_run *b, const struct plan_memset *m, const struct bound_plan *p,
                 struct bound_memset *out);
bool bind_tensormap(struct binding_run *b, const struct plan_tensormap *m,
                    struct bound_tensormap *out);

/* False: `where` is the expression that has no value and `why` says it. */
bool plan_expr_eval(const struct plan_expr *e, const int64_t *dims, const int64_t *lets,
                    int64_t *out, const struct plan_expr **where, const char **why);

#endif
