/* Expressions as text: what the languages of tasks (parse.c) and of launch plans (kernel/plan.h)
 * share, and how they differ. A parser has one token ahead; every failure is an err_at that quotes
 * the line, and after one the parser is not used again. Trees live in the parser's arena. */
#ifndef SPEC_LANGUAGE_H
#define SPEC_LANGUAGE_H

#include "spec/expr.h"

/* In a task file a line ends a declaration, except inside brackets and after a comma or an
 * operator, which cannot end one; such line ends, blank lines and comments never reach the parser.
 * A launch plan is read one line at a time. Tokens borrow from the text. */
enum token_kind { TOKEN_END, TOKEN_LINE, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SYMBOL };

struct token {
    enum token_kind kind;
    size_t at, len;
    str text;        /* STRING: without its quotes, escapes still in place */
    double number;   /* NUMBER */
    int64_t integer; /* NUMBER when integral */
    bool integral;   /* written without point and exponent */
};

struct lexer;
/* What the two languages do not share. */
struct lex_rules {
    const char *symbols; /* longer ones first, with spaces between */
    bool file;           /* line ends count, # begins a comment, texts stand in quotes */
    size_t name_most;    /* characters */
    bool (*number)(struct lexer *lx, struct token *out, struct err *err);
    const char *stray; /* said of a character that begins no token */
};

struct lexer {
    const struct lex_rules *rules;
    str file, text;
    size_t at, end; /* where it stands, and what it reads up to */
    size_t open;    /* brackets */
    bool joins;     /* the last token cannot end a line */
    bool started;   /* a token of this declaration was given out */
};

struct lexer lex_start(const struct lex_rules *rules, str file, str text);
bool lex_next(struct lexer *lx, struct token *out, struct err *err);
/* A real number or an integer, as tasks have them; an integer, also in base 16, as plans do. */
bool lex_task_number(struct lexer *lx, struct token *out, struct err *err);
bool lex_plan_number(struct lexer *lx, struct token *out, struct err *err);

bool token_is(const struct token *t, const char *symbol);
bool token_is_name(const struct token *t, const char *name);

/* Which tensors an expression may read. */
enum reading {
    READING_NOTHING, /* dimensions, conditions of assumptions */
    READING_GIVEN,   /* definitions of inputs: random numbers and inputs */
    READING_TASK,    /* statements: inputs and lets */
};

/* The call of a function of the task's own, or of the library, whose right side is being read. */
struct calling {
    str name;
    bool library;   /* its text is not the task's: what is said is said of the call */
    size_t at, len; /* of the outermost call, in the task; len 0: it is read to be checked */
};

struct parser;
struct node;
/* How expressions of tasks and of launch plans differ. */
struct language {
    struct lex_rules lex;
    int depth_most; /* of brackets and of trees */
    /* What is said of deeper ones (`deep` takes the depth) and of a < b < c. */
    const char *deep, *deep_hint, *deep_signs_hint, *chained, *chained_hint;
    bool (*name)(struct parser *p, struct node *out); /* one is next */
    bool (*no_operand)(struct parser *p);             /* fails */
    bool (*close)(struct parser *p, size_t open);     /* takes the ) of the ( there */
    bool (*settle)(struct parser *p, struct expr *e, const char *symbol); /* kinds of operands */
    bool (*after)(struct parser *p); /* fails on an operator that there is not; NULL: none */
};

struct parser {
    const struct language *language;
    struct lexer lx;
    struct token tok; /* the one to look at next */
    size_t end;       /* of the token before it */
    struct arena *arena;
    struct err *err;
    int depth; /* of brackets and prefix operators being read */
    /* The rest is of tasks alone. */
    struct task *task;
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
    struct own_functions *own; /* of the task, and the library */
    const struct frame *frame; /* the call whose right side is being read; NULL: none */
    const struct calling *calling;
    size_t expanded; /* nodes made for calls so far */
};

/* A tree under construction, with its height. */
struct node {
    struct expr *e;
    int height;
};

/* Operators bind from loosely to tightly. */
enum { LEVEL_ANY = 1, LEVEL_AND = 2, LEVEL_COMPARE = 3, LEVEL_SUM = 4, LEVEL_PRODUCT = 5 };

struct binary {
    const char *symbol;
    enum expr_kind kind;
    int level;
};
const struct binary *binary_of(enum expr_kind kind); /* NULL: no operator between two operands */

bool parse_next(struct parser *p);
bool parse_fail(struct parser *p, size_t at, size_t len, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
/* An expression of operators that bind at least so tightly. */
bool parse_level(struct parser *p, int level, struct node *out);
/* A node from `at` up to the last token taken; false: the tree is too high. */
bool node_make(struct parser *p, enum expr_kind kind, size_t at, const struct node *args, size_t n,
               struct node *out);
bool node_raise(struct parser *p, struct node *n, int height);

#endif
