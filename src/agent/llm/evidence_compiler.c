/* NVRTC's messages, folded. A message is `FILE(LINE): error: TEXT`, then the line and a caret, then
 * for templates the chain of instantiations from the inside out. An author needs the text and the
 * line of the kernel that led there; frames inside the headers are counted, not shown. Messages
 * that come from one line of the kernel are mostly echoes of the first. */
#include "agent/llm/evidence.h"

#include <string.h>

#define SHOWN_LINES   6 /* of the kernel, with a message each */
#define MESSAGE_BYTES 420

struct message {
    str file, text;
    size_t line;        /* of file */
    size_t kernel_line; /* of kernel.cu; 0: none */
    size_t frames;
};

/* `FILE(LINE): error: TEXT`; `line` gets what the header calls it. */
static bool head_of(str line, struct message *m) {
    size_t open = str_find(line, S("(")), close = str_find(line, S("): "));
    uint64_t number;
    if (close == line.n || open > close ||
        !str_to_u64(str_cut(line, open + 1, close - open - 1), &number))
        return false;
    str rest = str_from(line, close + 3);
    if (!str_starts(rest, S("error")) && !str_starts(rest, S("catastrophic error")))
        return false;
    size_t colon = str_find(rest, S(": "));
    *m = (struct message){
        .file = str_cut(line, 0, open), .text = str_from(rest, colon + 2), .line = (size_t)number};
    if (str_ends(m->file, S("kernel.cu")))
        m->kernel_line = m->line;
    return true;
}

/* `… at line 7 of kernel.cu`, a frame of the chain. */
static size_t frame_line(str line) {
    uint64_t number;
    size_t at = line.n;
    for (str rest = line; (at = str_find(rest, S("at line "))) < rest.n;) {
        rest = str_from(rest, at + 8);
        str digits;
        str after = rest;
        str_word(&after, ' ', &digits);
        if (str_starts(str_trim(after), S("of \"kernel.cu\"")) ||
            str_starts(str_trim(after), S("of kernel.cu")))
            return str_to_u64(digits, &number) ? (size_t)number : 0;
    }
    return 0;
}

/* The message and its frames; `rest` moves to the next head. */
static bool next_message(str *rest, struct message *m) {
    str line;
    bool found = false;
    while (rest->n) {
        str here = *rest;
        struct message next;
        str_line(rest, &line);
        if (head_of(line, &next)) {
            if (found) {
                *rest = here;
                return true;
            }
            *m = next;
            found = true;
        } else if (found && str_find(line, S("instantiation of")) < line.n) {
            size_t at = frame_line(line);
            if (at && !m->kernel_line)
                m->kernel_line = at;
            m->frames++;
        }
    }
    return found;
}

/* The names that every type of a header is spelled with say nothing. */
static void put_short(str text, struct buf *out) {
    static const char *const noise[] = {"cuda::std::__4::", "cuda::std::", "cute::"};
    size_t written = 0;
    while (text.n && written < MESSAGE_BYTES) {
        size_t skip = 0;
        for (size_t i = 0; i < sizeof noise / sizeof *noise && !skip; i++)
            if (str_starts(text, str_view(noise[i])))
                skip = strlen(noise[i]);
        if (!skip) {
            buf_putc(out, text.p[0]);
            written++;
        }
        text = str_from(text, skip ? skip : 1);
    }
    if (text.n)
        buf_puts(out, S(" …"));
}

static void put_message(const struct message *m, str source, struct buf *out) {
    if (m->kernel_line)
        buf_printf(out, "kernel.cu:%zu: ", m->kernel_line);
    put_short(m->text, out);
    if (!m->kernel_line || m->kernel_line != m->line || m->frames)
        buf_printf(out, " (in %.*s:%zu%s)", STR_ARG(m->file), m->line,
                   m->frames > 1 ? ", frames of templates folded" : "");
    buf_putc(out, '\n');
    if (m->kernel_line)
        evidence_lines(source, m->kernel_line, out);
}

void evidence_compiler(str log, str source, struct buf *out) {
    size_t shown[SHOWN_LINES], n = 0, echoes = 0, others = 0;
    struct message m = {0};
    str rest = log;
    while (next_message(&rest, &m)) {
        bool echo = false;
        for (size_t i = 0; i < n; i++)
            echo |= shown[i] == m.kernel_line;
        if (echo) {
            echoes++;
        } else if (n == SHOWN_LINES) {
            others++;
        } else {
            shown[n++] = m.kernel_line;
            put_message(&m, source, out);
        }
    }
    if (echoes)
        buf_printf(out, "%zu further message%s from the same lines.\n", echoes,
                   echoes == 1 ? "" : "s");
    if (others)
        buf_printf(out, "%zu messages from other lines are left out.\n", others);
    if (!n) {
        buf_puts(out, str_cut(str_trim(log), 0, 8 * MESSAGE_BYTES));
        buf_putc(out, '\n');
    }
}
