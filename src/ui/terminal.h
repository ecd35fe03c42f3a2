/* What can be shown at the other end of a descriptor, and text made to fit it. Widths are columns
 * of a terminal: an East Asian character or an emoji takes two, a combining mark none. */
#ifndef UI_TERMINAL_H
#define UI_TERMINAL_H

#include "base/str.h"

#define TERMINAL_USUAL 80 /* columns, where nothing is known */

int terminal_columns(int fd); /* asked each time: a window may be resized */
/* Whether lines can be drawn over, and set in bold type: a terminal, and not one that calls itself
 * dumb; for bold also that NO_COLOR is not set. */
bool terminal_is_live(int fd);
bool terminal_is_bold(int fd);
/* "→", or "->" where the locale is not UTF-8. */
const char *terminal_arrow(void);

size_t text_columns(str s);
/* The beginning of s that fits so many columns, on one line: ends of lines and tabs become blanks,
 * and what is cut ends in "…". What a terminal would obey is shown as an escape. */
void text_fit(str s, size_t columns, struct buf *out);
/* s in lines of so many columns, broken at blanks: the first behind what stands on the line already
 * (`used` columns), the others behind `indent` blanks. Ends with an end of line. */
void text_wrap(str s, size_t columns, size_t indent, size_t used, struct buf *out);

/* The decisions of strategy `to` that differ from those of `from`, as "block 128 → 256, items 1 →
 * 2" in so many columns, the rest counted ("and 3 more"). Texts that are no strategies (a model's
 * idea) are shown as they are. */
void text_changes(str from, str to, size_t columns, struct buf *out);
/* "5% slower", of a time beside the best before it; empty where one of them is not finite. */
void text_against(double time_s, double best_s, char out[24]);

#endif
