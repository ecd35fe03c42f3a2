/* The names that templates use. A member of something (`.x`, `->x`, `::x`), text in quotes and
 * comments are no names; a name that touches a slot is the beginning or the end of a composed one.
 */
#include "agent/expert/sheet/sheet_private.h"
#include <ctype.h>

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static bool is_in(const str *list, size_t n, str name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(list[i], name))
            return true;
    return false;
}

static void add(str **list, size_t *n, size_t *cap, str name) {
    if (is_in(*list, *n, name))
        return;
    *list = mem_grow(*list, cap, *n + 1, sizeof **list);
    (*list)[(*n)++] = name;
}

/* Past a comment, a text in quotes, or a slot's own name; otherwise where it was. */
static size_t skip(str text, size_t at) {
    str rest = str_from(text, at);
    if (str_starts(rest, S("//")))
        return at + str_find(rest, S("\n"));
    if (str_starts(rest, S("${")))
        return at + str_find(rest, S("}")) + 1;
    if (rest.p[0] != '"')
        return at;
    size_t end = at + 1;
    while (end < text.n && text.p[end] != '"')
        end += text.p[end] == '\\' ? 2 : 1;
    return end + 1;
}

static void add_word(struct words *w, str text, size_t from, size_t end) {
    str name = str_cut(text, from, end - from), before = str_cut(text, 0, from);
    bool member =
        str_ends(before, S(".")) || str_ends(before, S("->")) || str_ends(before, S("::"));
    bool begins = str_starts(str_from(text, end), S("${")), ends = str_ends(before, S("}"));
    if (begins && !ends)
        add(&w->prefix, &w->nprefixes, &w->cap_prefixes, name);
    else if (ends)
        add(&w->suffix, &w->nsuffixes, &w->cap_suffixes, name);
    else if (!member)
        add(&w->name, &w->nnames, &w->cap_names, name);
}

void words_of_template(struct words *w, str text) {
    if (str_starts(text, S("//% library\n")))
        return;
    for (size_t at = 0; at < text.n;) {
        size_t next = skip(text, at), end = at;
        if (next > at) {
            at = next;
            continue;
        }
        while (end < text.n && is_word_char(text.p[end]))
            end++;
        if (end > at && !isdigit((unsigned char)text.p[at]))
            add_word(w, text, at, end);
        at = end > at ? end : at + 1;
    }
}

bool words_have(const struct words *w, str name) {
    bool found = is_in(w->name, w->nnames, name);
    for (size_t i = 0; i < w->nprefixes && !found; i++)
        found = str_starts(name, w->prefix[i]);
    for (size_t i = 0; i < w->nsuffixes && !found; i++)
        found = str_ends(name, w->suffix[i]);
    return found;
}

void words_clear(struct words *w) {
    w->nnames = w->nprefixes = w->nsuffixes = 0;
}

void words_release(struct words *w) {
    mem_free(w->name);
    mem_free(w->prefix);
    mem_free(w->suffix);
}
