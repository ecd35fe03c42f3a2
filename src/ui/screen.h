/* The one screen at the end of a command, on stdout: sections with a heading, paragraphs that are
 * broken at the terminal's width, and lines of a thing and where it is. */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "base/str.h"

void screen_heading(const char *text); /* in bold type where that can be shown */
/* Behind a few blanks; longer lines go on behind `hang` more. */
void screen_paragraph(size_t hang, str text);
/* The command comes last, whole: it is there to be copied. Where it does not fit beside what it
 * does, it has a line of its own. */
void screen_line(const char *about, str what);

#endif
