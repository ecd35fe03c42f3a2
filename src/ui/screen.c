#include "ui/screen.h"

#include "base/say.h"
#include "ui/terminal.h"

#include <stdio.h>
#include <unistd.h>

#define INDENT   2
#define ABOUT    34  /* columns of what a line is about */
#define READABLE 100 /* columns: longer lines are hard to follow */

static size_t width(void) {
    return isatty(STDOUT_FILENO) ? (size_t)terminal_columns(STDOUT_FILENO) - 1 : TERMINAL_USUAL;
}

void screen_heading(const char *text) {
    bool bold = terminal_is_bold(STDOUT_FILENO);
    say("\n");
    if (bold)
        fputs("\033[1m", stdout);
    say("%s", text);
    if (bold)
        fputs("\033[0m", stdout);
    say("\n");
}

void screen_paragraph(size_t hang, str text) {
    struct buf b;
    buf_init(&b, 1 << 20);
    for (size_t i = 0; i < INDENT; i++)
        buf_putc(&b, ' ');
    text_wrap(text, width() < READABLE ? width() : READABLE, INDENT + hang, INDENT, &b);
    say_text(buf_str(&b));
    buf_release(&b);
}

void screen_line(const char *about, str what) {
    if (INDENT + ABOUT + text_columns(what) <= width())
        say("%*s%-*s%.*s\n", INDENT, "", ABOUT, about, STR_ARG(what));
    else
        say("%*s%s\n%*s%.*s\n", INDENT, "", about, 2 * INDENT, "", STR_ARG(what));
}
