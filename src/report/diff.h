/* Two texts, line by line: what is the same, what is gone and what is new, by their longest common
 * subsequence. Private to the room. */
#ifndef REPORT_DIFF_H
#define REPORT_DIFF_H

#include "base/arena.h"

enum diff_kind { DIFF_SAME, DIFF_OLD, DIFF_NEW };
struct diff_line {
    enum diff_kind kind;
    str text;
};
struct diff {
    struct diff_line *lines;        /* of both texts, in order */
    size_t n, old_lines, new_lines; /* the latter two: of their kinds */
};

/* Texts are borrowed. Where both differ in more than DIFF_MOST lines, all of one stand before all
 * of the other. */
#define DIFF_MOST 3000
void diff_of(str before, str after, struct arena *a, struct diff *out);

#endif
