#include "base/say.h"

#include <stdio.h>

#define SAY_MAX ((size_t)64 << 20)

static void put(FILE *to, str text) {
    struct buf shown;
    buf_init(&shown, SIZE_MAX / 2);
    buf_put_printable(&shown, text);
    fwrite(shown.p, 1, shown.n, to);
    buf_release(&shown);
}

static void vsay(FILE *to, const char *fmt, va_list ap) {
    struct buf text;
    buf_init(&text, SAY_MAX);
    buf_vprintf(&text, fmt, ap);
    put(to, text.failed ? S("(too long to be shown)\n") : buf_str(&text));
    buf_release(&text);
}

void say(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsay(stdout, fmt, ap);
    va_end(ap);
}

void say_text(str text) {
    put(stdout, text);
}

void complain(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsay(stderr, fmt, ap);
    va_end(ap);
}
