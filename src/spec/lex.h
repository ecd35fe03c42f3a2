/* Tokens of task files and of launch plans.
 *
 * In a task file a line ends a declaration, except inside brackets and after a comma or an
 * operator, which cannot end one; such line ends, blank lines and comments never reach the parser.
 * A launch plan is read one line at a time. Tokens borrow from the text. */
#ifndef SPEC_LEX_H
#define SPEC_LEX_H

#include "base/err.h"

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
/* A real number or an integer, as tasks have them; a plain integer, also in base 16, as plans do.
 */
bool lex_task_number(struct lexer *lx, struct token *out, struct err *err);
bool lex_plan_number(struct lexer *lx, struct token *out, struct err *err);

bool token_is(const struct token *t, const char *symbol);
bool token_is_name(const struct token *t, const char *name);

#endif
