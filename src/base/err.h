/* Errors of our environment and of the user's input: one clause of context per layer.
 *
 *     if (!file_read(path, MAX, &text, err))
 *         return err_wrap(err, "task %s", name);
 *
 * prints once, at the top, as `task softmax: open k.task: No such file or directory`. A candidate's
 * failure is never an err but a verdict, and our own mistake is BUG_IF. */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/str.h"

/* The process's exit code follows from the kind. */
enum err_kind {
    ERR_NONE = 0,
    ERR_NO = 1,    /* the answer is no */
    ERR_INPUT = 2, /* bad input or usage */
    ERR_ENV = 3,   /* the environment failed */
};

struct err {
    enum err_kind kind;
    char text[2048]; /* truncated at its end when longer, never unterminated */
};

/* All return false, so that a failing function ends with `return err_set(…)`. */
bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
bool err_errno(struct err *e, enum err_kind kind, const char *fmt, ...) /* appends ": strerror" */
    __attribute__((format(printf, 3, 4)));
bool err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A diagnostic in a source text: `file:line:col: message`, the line, a caret under the `n` bytes at
 * `at`, then `hint: …` when hint is not NULL. `text` is the whole file. Control bytes of the quoted
 * line are shown as `?`, long lines are cut around the caret. */
bool err_at(struct err *e, str file, str text, size_t at, size_t n, const char *hint,
            const char *fmt, ...) __attribute__((format(printf, 7, 8)));
void text_position(str text, size_t at, size_t *line, size_t *col); /* both from 1 */

/* Our own bug: says where, aborts. */
_Noreturn void bug_at(const char *file, int line, const char *what);
#define BUG_IF(cond)                                                                               \
    do {                                                                                           \
        if (cond)                                                                                  \
            bug_at(__FILE__, __LINE__, #cond);                                                     \
    } while (0)

#endif
