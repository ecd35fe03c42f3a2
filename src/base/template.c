/* One pass over the template. A slot's text is copied, never scanned: what a model or a user wrote
 * cannot name another slot. */
#include "base/template.h"

#include "base/arena.h"

struct rendering {
    str name, text;
    const struct slot *slots;
    size_t n;
    bool *used;
    struct buf *out;
    struct err *err;
};

static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The blanks before `at` when nothing else stands on the line of [at, end); empty otherwise. */
static str indentation(str text, size_t at, size_t end) {
    size_t from = at;
    while (from > 0 && (text.p[from - 1] == ' ' || text.p[from - 1] == '\t'))
        from--;
    str after = str_from(text, end);
    bool alone = (from == 0 || text.p[from - 1] == '\n') &&
                 (after.n == 0 || after.p[0] == '\n' || str_starts(after, S("\r\n")));
    return alone ? str_cut(text, from, at - from) : S("");
}

/* Empty lines stay empty. */
static void put_indented(struct buf *out, str text, str indent) {
    for (size_t i = 0; i < text.n; i++) {
        buf_putc(out, text.p[i]);
        if (text.p[i] == '\n' && i + 1 < text.n && text.p[i + 1] != '\n')
            buf_puts(out, indent);
    }
}

/* `at` is the `$` of `${name}`; moves it past the `}`. */
static bool put_slot(struct rendering *r, size_t *at) {
    size_t from = *at + 2, end = from;
    while (end < r->text.n && is_name_char(r->text.p[end]))
        end++;
    str name = str_cut(r->text, from, end - from);
    if (name.n == 0 || end == r->text.n || r->text.p[end] != '}')
        return err_at(r->err, r->name, r->text, *at, end - *at, "write $${ for a literal ${",
                      "a slot is ${name}");
    end++;
    for (size_t i = 0; i < r->n; i++) {
        if (!str_is(name, r->slots[i].name))
            continue;
        r->used[i] = true;
        str indent = indentation(r->text, *at, end);
        if (indent.n)
            put_indented(r->out, r->slots[i].text, indent);
        else
            buf_puts(r->out, r->slots[i].text);
        *at = end;
        return true;
    }
    return err_at(r->err, r->name, r->text, *at, end - *at, NULL, "unknown slot '%.*s'",
                  STR_ARG(name));
}

static bool put_all(struct rendering *r) {
    size_t at = 0;
    while (at < r->text.n) {
        str rest = str_from(r->text, at);
        size_t plain = str_find(rest, S("$"));
        buf_puts(r->out, str_cut(rest, 0, plain));
        at += plain;
        rest = str_from(rest, plain);
        if (str_starts(rest, S("$${"))) {
            buf_puts(r->out, S("${"));
            at += 3;
        } else if (str_starts(rest, S("${"))) {
            if (!put_slot(r, &at))
                return false;
        } else if (rest.n) {
            buf_putc(r->out, '$');
            at++;
        }
    }
    return true;
}

static bool check_used(const struct rendering *r) {
    for (size_t i = 0; i < r->n; i++) {
        if (!r->used[i])
            return err_at(r->err, r->name, r->text, 0, 0, NULL, "the template has no slot '%s'",
                          r->slots[i].name);
    }
    return true;
}

bool template_render(str name, str text, const struct slot *slots, size_t n, struct buf *out,
                     struct err *err) {
    struct rendering r = {name, text, slots, n, mem_alloc(n), out, err};
    bool ok = put_all(&r) && check_used(&r);
    mem_free(r.used);
    if (ok && out->failed)
        return err_set(err, ERR_INPUT, "%.*s: the rendered text is over %zu bytes", STR_ARG(name),
                       out->max);
    return ok;
}
