/* The cursor over PTX text: blanks, comments, words and numbers. Knows no grammar. Lines are
 * counted as it goes; an error is set once and carries `PTX line N`, what was met and why. */
#ifndef PTX_LEX_H
#define PTX_LEX_H

#include "ptx/ptx.h"

struct lexer {
    str text;
    size_t at;
    uint32_t line;
    struct err *err;
};

bool lex_fail(struct lexer *l, const char *what) __attribute__((nonnull));
void lex_blank(struct lexer *l);        /* skips blanks and comments */
char lex_peek(struct lexer *l);         /* next character after blanks; 0 at the end */
bool lex_take(struct lexer *l, char c); /* takes it if it is next */
bool lex_need(struct lexer *l, char c);

/* A name: letters, digits, _ $ %, not starting with a digit. Empty when there is none. */
str lex_name(struct lexer *l);
/* `.word`, without its dot, `::` included; empty when there is none. */
str lex_dotted(struct lexer *l);
bool lex_dotted_is(struct lexer *l, const char *word); /* takes it if it is next */
bool lex_string(struct lexer *l, str *out);            /* "…", without the quotes */

/* A number: 12, 0x1F, 0b1, 017, each with U; 0f3F800000, 0d…; 1.5e3. The sign belongs to it. */
struct lex_number {
    uint64_t bits;
    enum ptx_type type; /* PTX_S64, PTX_F32 or PTX_F64 */
};
bool lex_number(struct lexer *l, struct lex_number *out);
bool lex_u64(struct lexer *l, uint64_t max, uint64_t *out); /* an integer from 0 to max */

#endif
