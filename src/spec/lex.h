/* Tokens of the task language.
 *
 * A line ends a declaration, except inside brackets and after a comma or an operator, which cannot
 * end one; such line ends, blank lines and comments never reach the parser. Tokens borrow from the
 * text. */
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

struct lexer {
    str file, text;
    size_t at;
    size_t open;  /* brackets */
    bool joins;   /* the last token cannot end a line */
    bool started; /* a token of this declaration was given out */
};

struct lexer lex_start(str file, str text);
bool lex_next(struct lexer *lx, struct token *out, struct err *err);

bool token_is(const struct token *t, const char *symbol);
bool token_is_name(const struct token *t, const char *name);

#endif
