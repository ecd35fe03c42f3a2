/* Private to the ptx room: what its files share while a text is parsed. Growing lists live on the
 * heap and are copied into the arena when their owner is complete. */
#ifndef PTX_PARSER_H
#define PTX_PARSER_H

#include "ptx/lex.h"
#include "ptx/names.h"

#define PTX_MAX_VAR_BYTES (64u << 20)
#define PTX_MAX_VECTOR    128u
#define PTX_MAX_INSTRS    (4u << 20)
#define PTX_MAX_FILES     4096u

struct list { /* of elements of one size */
    void *p;
    size_t n, cap;
};

struct parser {
    struct lexer lex;
    struct arena *arena;
    struct ptx_module *module;
    struct list entries, vars, functions, files;
    struct names names; /* of the module, and of the function that is being read */
};

void *list_add(struct list *l, size_t size);                                /* a zeroed element */
void *list_finish(struct list *l, size_t size, struct arena *a, size_t *n); /* releases the list */

bool is_word_of_language(str name); /* `_`, WARP_SZ: never a name */
/* An error when the scope that begins at `scope` has the name already, or it is a word of PTX. */
bool declare(struct parser *p, size_t scope, enum ptx_symbol kind, str name, size_t index);

bool ptx_type_named(str name, enum ptx_type *out);
bool parse_type(struct parser *p, enum ptx_type *out);
/* After the state space: `.align 4 .b8 name[24] = {…}`, up to but without `;`. */
bool parse_variable(struct parser *p, enum ptx_space space, bool external, struct ptx_var *out);
bool parse_params(struct parser *p, struct ptx_param **out, size_t *n); /* `( … )` */
bool parse_body(struct parser *p, struct ptx_entry *e);                 /* `{ … }` */
bool parse_skip(struct parser *p, char until); /* `;` or `}`, over nested braces */

#endif
