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
        struct slot slots[] = {{"a", str_view(table[i].a)}, {"b", str_view(table[i].b)}};
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
    struct slot slot = {"a", S("0123456789")};
    buf_init(&out, 15);
    CHECK(!template_render(S("t"), S("${a}${a}"), &slot, 1, &out, &e));
    CHECK(strstr(e.text, "over 15 bytes") != NULL);
    buf_release(&out);
}

static const struct tap_case cases[] = {
    {"slots, escapes, indentation, errors", rows},
    {"the output's ceiling is an error", ceiling},
};
TAP_CASES(cases)
