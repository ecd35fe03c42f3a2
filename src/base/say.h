/* Text for people, on stdout and stderr.
 *
 * What is shown often quotes others: a model's reply, a kernel, a compiler's log, a file's name. A
 * terminal would obey the control characters in it, so all that is said here is first made
 * printable (str.h: buf_put_printable). What programs read, JSON and kernels, does not pass here.
 */
#ifndef BASE_SAY_H
#define BASE_SAY_H

#include "base/str.h"

void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void say_text(str text); /* as it is otherwise, of any length */
/* To stderr. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
