#include "base/template.h"
#include "tap.h"

#include <stdlib.h>

static void rows(void) {
    static const struct {
        const char *text, *a, *b, *expect; /* b NULL: not given; expect NULL: an error */
        const char *error;
    } table[] = {
        {"x ${a} y", "1", NULL, "x 1 y", NULL},
        {"${a}${a}", "1", NULL, "11", NULL},
        {"${a}", "", NULL, "", NULL},
        {"$ $$ $x ${a} $", "1", NULL, "$ $$ $x 1 $", NULL},
        {"$${a} ${a}", "1", NULL, "${a} 1", NULL},
        {"$$${a} ${a}", "1", NULL, "$${a} 1", NULL},
        {"f {\n    ${a}\n}\n", "x;\ny;\n\nz;", NULL, "f {\n    x;\n    y;\n\n    z;\n}\n", NULL},
        {"\t${a}", "x\ny", NULL, "\tx\n\ty", NULL},
        {"  ${a}\r\n", "x\ny", NULL, "  x\n  y\r\n", NULL},
        {"  ${a} // tail\n", "x\ny", NULL, "  x\ny // tail\n", NULL},
        {"  k ${a}\n", "x\ny", NULL, "  k x\ny\n", NULL},
        {"${a} ${b}", "${b} $${", "2", "${b} $${ 2", NULL},
        {"one\n  ${c}\n${a}", "1", NULL, NULL, "t:2:3: unknown slot 'c'"},
        {"one\n${a", "1", NULL, NULL, "t:2:1: a slot is ${name}"},
        {"${a} ${}", "1", NULL, NULL, "t:1:6: a slot is ${name}"},
        {"${a} ${a b}", "1", NULL, NULL, "t:1:6: a slot is ${name}"},
        {"${a} ${", "1", NULL, NULL, "t:1:6: a slot is ${name}"},
        {"${a}", "1", "2", NULL, "the template has no slot 'b'"},
        {"", "1", NULL, NULL, "the template has no slot 'a'"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct slot slots[] = {{.name = "a", .text = str_view(table[i].a)},
                               {.name = "b", .text = str_view(table[i].b)}};
        struct err e = {0};
        struct buf out;
        buf_init(&out, 1000);
        bool ok =
            template_render(S("t"), str_view(table[i].text), slots, table[i].b ? 2 : 1, &out, &e);
        if (table[i].expect)
            CHECKF(ok && strcmp(out.p, table[i].expect) == 0, "row %zu: '%s' %s", i, out.p, e.text);
        else
            CHECKF(!ok && e.kind == ERR_INPUT && strstr(e.text, table[i].error), "row %zu: %s", i,
                   e.text);
        buf_release(&out);
    }
}

static void ceiling(void) {
    struct err e = {0};
    struct buf out;
    struct slot slot = {.name = "a", .text = S("0123456789")};
    buf_init(&out, 15);
    CHECK(!template_render(S("t"), S("${a}${a}"), &slot, 1, &out, &e));
    CHECK(strstr(e.text, "over 15 bytes") != NULL);
    buf_release(&out);
}

/* Blocks: `on` and `off` are flags, `none` is a list without rows, `list` has two with `n` and
 * `of`, of which only the first has rows of its own in `sub`. */
static void blocks(void) {
    static const struct {
        const char *text, *expect, *error; /* expect NULL: an error */
    } table[] = {
        {"a\n//% if on\nb\n//% end\nc\n", "a\nb\nc\n", NULL},
        {"a\n//% if off\nb\n//% end\nc\n", "a\nc\n", NULL},
        {"//% if not off\nb\n//% end\n", "b\n", NULL},
        {"//% if not on\nb\n//% end\n", "", NULL},
        {"//% if off\nb\n//% else\nc\n//% end\n", "c\n", NULL},
        {"//% if on\nb\n//% else\nc\n//% end", "b\n", NULL},
        {"    //%   if  on  \r\n    b\r\n\t//% end\r\n", "    b\r\n", NULL},
        {"//% if list\nsome\n//% end\n//% if none\nnone\n//% end\n", "some\n", NULL},
        {"//% each list\n  ${n};\n//% end\n", "  1;\n  2;\n", NULL},
        {"a\n//% each none\n${n}\n//% end\nb\n", "a\nb\n", NULL},
        {"//% each list\n${n}${name}\n//% end\n${name}\n", "1t\n2t\nt\n", NULL},
        {"//% each list\n${of}\n//% end\n${of}\n", "row\nouter\nouter\n", NULL},
        {"//% each list\n{\n    ${lines}\n}\n//% end\n", "{\n    p\n    q\n}\n{\n    p\n    q\n}\n",
         NULL},
        {"//% each list\n//% if first\n${n}\n//% else\nnot ${n}\n//% end\n//% end\n", "1\nnot 2\n",
         NULL},
        {"//% each list\n${n}:\n//% each sub\n${n}.${m}\n//% end\n//% end\n", "1:\n1.7\n1.8\n2:\n",
         NULL},
        {"//% if on\n//% if off\na\n//% else\nb\n//% end\n//% else\nc\n//% end\n", "b\n", NULL},
        {"//% library\na\n", "a\n", NULL},
        {"//%if on\na //% end\n", "//%if on\na //% end\n", NULL},
        {"a\n//% if on\nb\n", NULL, "t:2:5: no //% end"},
        {"//% each list\n//% if on\n//% end\n", NULL, "t:1:5: no //% end"},
        {"a\n//% end\n", NULL, "t:2:5: nothing begins or ends here"},
        {"//% else\n", NULL, "t:1:5: nothing begins or ends here"},
        {"//% when on\n//% end\n", NULL, "t:1:5: nothing begins or ends here"},
        {"a\nb\n  //% if what\n//% end\n", NULL, "t:3:10: unknown slot 'what'"},
        {"//% if not what\n//% end\n", NULL, "t:1:12: unknown slot 'what'"},
        {"//% each what\n//% end\n", NULL, "t:1:10: unknown slot 'what'"},
        {"//% each list\n${n}\n//% end\n${n}\n", NULL, "t:4:1: unknown slot 'n'"},
        {"//% each list\n\n  ${what}\n//% end\n", NULL, "t:3:3: unknown slot 'what'"},
        /* What a block leaves out is not looked at. */
        {"//% if off\n${what}\n//% end\n", "", NULL},
    };
    struct arena *mem = arena_new(1u << 20);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct slots s, used;
        struct err e = {0};
        struct buf out;
        buf_init(&out, 1000);
        slots_init(&s, mem);
        slots_flag(&s, "on", true);
        slots_flag(&s, "off", false);
        slots_put(&s, "name", S("t"));
        slots_put(&s, "of", S("outer"));
        slots_put(&s, "lines", S("p\nq"));
        slots_list(&s, "none");
        for (int64_t n = 1; n <= 2; n++) {
            struct slots *row = slots_row(&s, "list");
            slots_number(row, "n", n);
            slots_flag(row, "first", n == 1);
            slots_list(row, "sub");
            if (n == 1)
                slots_put(row, "of", S("row"));
            for (int64_t m = 7; n == 1 && m <= 8; m++)
                slots_number(slots_row(row, "sub"), "m", m);
        }
        slots_init(&used, mem);
        for (size_t k = 0; k < s.n; k++)
            if (template_mentions(str_view(table[i].text), s.at[k].name))
                used.at[used.n++] = s.at[k];
        bool ok = template_render(S("t"), str_view(table[i].text), used.at, used.n, &out, &e);
        if (table[i].expect)
            CHECKF(ok && str_is(buf_str(&out), table[i].expect), "row %zu: '%s' %s", i, out.p,
                   e.text);
        else
            CHECKF(!ok && e.kind == ERR_INPUT && strstr(e.text, table[i].error), "row %zu: %s", i,
                   e.text);
        buf_release(&out);
    }
    arena_free(mem);
}

static void nesting(void) {
    struct slot on = {"on", S("1"), NULL, 0};
    for (int depth = 1; depth < 40; depth++) {
        struct err e = {0};
        struct buf text, out;
        buf_init(&text, 4096);
        buf_init(&out, 4096);
        for (int i = 0; i < depth; i++)
            buf_puts(&text, S("//% if on\n"));
        buf_puts(&text, S("a\n"));
        for (int i = 0; i < depth; i++)
            buf_puts(&text, S("//% end\n"));
        bool ok = template_render(S("t"), buf_str(&text), &on, 1, &out, &e);
        CHECKF(ok == (depth <= 16), "%d: %s", depth, e.text);
        CHECKF(ok ? str_is(buf_str(&out), "a\n") : strstr(e.text, "t:18:1:") != NULL, "%d: %s",
               depth, e.text);
        buf_release(&text);
        buf_release(&out);
    }
}

static void sets(void) {
    struct arena *mem = arena_new(1u << 20);
    struct slots s, copy;
    slots_init(&s, mem);
    slots_put(&s, "a", S("1"));
    slots_number(slots_row(&s, "list"), "n", -4);
    copy = s;
    slots_put(&copy, "a", S("2"));
    slots_row(&copy, "list");
    slots_list(&s, "list"); /* it has a row, which stays */
    CHECK(s.n == 2 && str_is(slots_get(&s, "a"), "1") && str_is(slots_get(&copy, "a"), "2"));
    CHECK(s.at[1].nrows == 1 && copy.at[1].nrows == 2);
    CHECK(str_is(slots_get(s.at[1].rows[0], "n"), "-4"));
    arena_free(mem);
}

static const struct tap_case cases[] = {
    {"optional, repeated and nested lines", blocks}, {"blocks in blocks have a limit", nesting},
    {"a copy of a set of slots is its own", sets},   {"slots, escapes, indentation, errors", rows},
    {"the output's ceiling is an error", ceiling},
};
TAP_CASES(cases)
