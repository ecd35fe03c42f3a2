/* CUDA C++ with its comments, words and numbers told apart, for people. Private to the room. */
#ifndef REPORT_CODE_H
#define REPORT_CODE_H

#include "base/str.h"

/* One line, without its end. `in_comment`: it begins inside a comment of several lines; false
 * before the first line of a text. */
void code_line(struct buf *out, str line, bool *in_comment);

#endif
