/* What models send, and what they are told when it cannot be read. */
#include "tap.h"

#include "agent/llm/reply.h"

#define PLAN "//! launch k<<<1, 32>>>(x, y)\n"

static struct arena *mem;

static const char shown_source[] = PLAN "void k() {\n"
                                        "    int a = 1;\n"
                                        "    int b = 2;\n"
                                        "    int a = 1;\n"
                                        "    return;\n"
                                        "}\n";

struct row {
    const char *what, *reply, *source, *complaint; /* either */
};

static const struct row whole[] = {
    {"a block", "Here:\n```cuda\n" PLAN "```\nDone.", PLAN, NULL},
    {"no word, longer fence", "````\n" PLAN "````", PLAN, NULL},
    {"tildes, carriage returns", "~~~cpp\r\n" PLAN "~~~\r\n", PLAN, NULL},
    {"a sketch beside it", "```c\nint i;\n```\n```cuda\n" PLAN "```", PLAN, NULL},
    {"a sketch after it", "```cuda\n" PLAN "```\n```cpp\nint i;\n```", PLAN, NULL},
    {"a block of something else", "```text\nno\n```\n```cu\n" PLAN "```\n", PLAN, NULL},
    {"nothing", "I cannot do that.", NULL, "there is no fenced source block"},
    {"empty", "", NULL, "there is no fenced source block"},
    {"no plan", "```cuda\nint i;\n```", NULL, "no launch plan"},
    {"two", "```cuda\n" PLAN "```\nor\n```cuda\n" PLAN "```", NULL, "2 fenced blocks"},
    {"cut off", "```cuda\n" PLAN "void k(", NULL, "never closed"},
    {"edits of nothing", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n", NULL,
     "nothing to edit yet"},
};

#define EDIT(a, b) "<<<<<<< SEARCH\n" a "=======\n" b ">>>>>>> REPLACE\n"

static const struct row edits[] = {
    {"one line", EDIT("    int b = 2;\n", "    int b = 3;\n"),
     PLAN "void k() {\n    int a = 1;\n    int b = 3;\n    int a = 1;\n    return;\n}\n", NULL},
    {"in a fence, blanks at the end",
     "```\n<<<<<<<  SEARCH  \n    int b = 2;  \n======= \n>>>>>>> REPLACE\n```",
     PLAN "void k() {\n    int a = 1;\n    int a = 1;\n    return;\n}\n", NULL},
    {"two, the second on what the first made",
     EDIT("    int b = 2;\n", "    int c = 2;\n")
         EDIT("    int c = 2;\n    int a = 1;\n", "    int d = 2;\n"),
     PLAN "void k() {\n    int a = 1;\n    int d = 2;\n    return;\n}\n", NULL},
    {"a whole file is fine too", "```cuda\n" PLAN "```", PLAN, NULL},
    {"the last line", EDIT("    return;\n}\n", "}\n"),
     PLAN "void k() {\n    int a = 1;\n    int b = 2;\n    int a = 1;\n}\n", NULL},
    {"twice there", EDIT("    int a = 1;\n", "x\n"), NULL,
     "edit 1: its SEARCH lines occur 2 times, from lines 3, 5"},
    {"not there", EDIT("    int b = 2;\n", "b\n") EDIT("    int bb = 2;\n", "x\n"), NULL,
     "edit 2: its SEARCH lines do not occur in the source: there is no line `int bb = 2;`"},
    {"the nearest line", EDIT("    return 0;\n", "x\n"), NULL, "the nearest is line 6, `return;`"},
    {"parts of it", EDIT("    int b = 2;\n    int a = 7;\n", "x\n"), NULL,
     "From line 4 on 1 agree; then SEARCH has `int a = 7;` and the source `int a = 1;`"},
    {"indented otherwise", EDIT("int b = 2;\n", "x\n"), NULL, "nearest is line 4"},
    {"nothing to look for", EDIT("\n", "x\n"), NULL, "edit 1: its SEARCH part is empty"},
    {"no change", EDIT("    int b = 2;\n", "    int b = 2;\n"), NULL, "change nothing"},
    {"no middle", "<<<<<<< SEARCH\na\n>>>>>>> REPLACE\n", NULL, "edit 1 has no line of ======="},
    {"no end", "<<<<<<< SEARCH\na\n=======\nb\n", NULL, "edit 1 has no >>>>>>> REPLACE line"},
    {"no beginning of the end", "<<<<<<< SEARCH\na\n", NULL, "edit 1 has no ======= line"},
    {"one in another", "<<<<<<< SEARCH\na\n<<<<<<< SEARCH\n", NULL, "another SEARCH begins"},
};

static void check_row(const struct row *r, str source) {
    struct reply_source got;
    struct err complaint = {0};
    bool ok = reply_read_source(str_view(r->reply), source, mem, &got, &complaint);
    CHECKF(ok == (r->source != NULL), "%s: %s", r->what, complaint.text);
    if (ok && r->source)
        CHECKF(str_is(got.source, r->source), "%s: %.*s", r->what, STR_ARG(got.source));
    if (!ok && r->complaint)
        CHECKF(strstr(complaint.text, r->complaint), "%s: %s", r->what, complaint.text);
}

static void test_whole(void) {
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        check_row(&whole[i], S(""));
}

static void test_edits(void) {
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        check_row(&edits[i], str_view(shown_source));
}

static void test_too_many(void) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (int i = 0; i <= REPLY_MAX_EDITS; i++)
        buf_puts(&b, S(EDIT("    int b = 2;\n", "    int b = 2;\n")));
    struct reply_source got;
    struct err complaint = {0};
    CHECK(!reply_read_source(buf_str(&b), str_view(shown_source), mem, &got, &complaint));
    CHECKF(strstr(complaint.text, "more than 64 edits"), "%s", complaint.text);
    buf_release(&b);
}

/* What no candidate may be as large as is not carried along, whole or grown by edits. */
static void test_too_large(void) {
    enum { MOST = 1 << 20, GROWTH = 1 << 19 };
    struct arena *small = arena_new((size_t)8 << 20);
    struct reply_source got;
    struct err complaint = {0};
    struct buf b;
    buf_init(&b, (size_t)64 << 20);
    buf_puts(&b, S("```cuda\n" PLAN));
    for (size_t i = 0; i < MOST; i += 8)
        buf_puts(&b, S("// ....\n"));
    buf_puts(&b, S("```\n"));
    CHECK(!reply_read_source(buf_str(&b), S(""), small, &got, &complaint));
    CHECKF(strstr(complaint.text, "over 1024 KiB"), "%s", complaint.text);
    buf_clear(&b);
    for (int k = 0; k < 40; k++) {
        buf_puts(&b, S("<<<<<<< SEARCH\n    int b = 2;\n=======\n    int b = 2;\n"));
        for (size_t i = 0; i < GROWTH; i += 8)
            buf_puts(&b, S("// ....\n"));
        buf_puts(&b, S(">>>>>>> REPLACE\n"));
    }
    CHECK(!reply_read_source(buf_str(&b), str_view(shown_source), small, &got, &complaint));
    CHECKF(strstr(complaint.text, "edit 2: the source would be over"), "%s", complaint.text);
    buf_release(&b);
    arena_free(small);
}

static void test_idea(void) {
    static const struct {
        const char *reply, *idea;
    } rows[] = {
        {"IDEA: wider loads\n", "wider loads"},
        {"Well.\n**IDEA:** wider loads\r\nMore.", "wider loads"},
        {"- Idea: wider loads", "wider loads"},
        {"An IDEA: no", ""},
        {"IDEAS: no", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str text = arena_printf(mem, "%s\n```cuda\n%s```\n", rows[i].reply, PLAN);
        struct reply_source got;
        struct err complaint = {0};
        CHECKF(reply_read_source(text, S(""), mem, &got, &complaint), "%s", complaint.text);
        CHECKF(str_is(got.idea, rows[i].idea), "%s: %.*s", rows[i].reply, STR_ARG(got.idea));
    }
}

static void test_done(void) {
    str why = S("");
    CHECK(reply_is_done(S("Well.\n**DONE:** all that is left is the launch\n"), &why));
    CHECK(str_is(why, "all that is left is the launch"));
    CHECK(reply_is_done(S("IDEA: none\n"), &why) && !reply_is_done(S("IDEA: nothing new\n"), &why));
    CHECK(!reply_is_done(S("That is DONE: no\n"), &why) && !reply_is_done(S(""), &why));
    CHECK(!reply_is_done(S("DONE: here\n```cuda\n" PLAN "```\n"), &why));
    CHECK(!reply_is_done(S("DONE: here\n<<<<<<< SEARCH\na\n=======\n>>>>>>> REPLACE\n"), &why));
}

static void test_strategies(void) {
    struct reply_line *l;
    size_t n = 0;
    str idea;
    struct err complaint = {0};
    CHECK(reply_read_strategies(S("IDEA: far apart\n```strategy\nblock=128 items=2 # small\n\n"
                                  "2. block=256\n- block=512\n# only a comment\n```\n"),
                                mem, &l, &n, &idea, &complaint));
    CHECK(n == 3 && str_is(idea, "far apart"));
    CHECK(n == 3 && str_is(l[0].text, "block=128 items=2") && str_is(l[0].comment, "small"));
    CHECK(n == 3 && str_is(l[1].text, "block=256") && l[1].comment.n == 0);
    CHECK(n == 3 && str_is(l[2].text, "block=512"));
    CHECK(!reply_read_strategies(S("block=128"), mem, &l, &n, &idea, &complaint));
    CHECKF(strstr(complaint.text, "there is no strategy block"), "%s", complaint.text);
    CHECK(!reply_read_strategies(S("```strategy\n\n```"), mem, &l, &n, &idea, &complaint));
    CHECKF(strstr(complaint.text, "is empty"), "%s", complaint.text);
    CHECK(!reply_read_strategies(S("```strategy\na=1\n```\n```strategy\na=2\n```"), mem, &l, &n,
                                 &idea, &complaint));
    CHECKF(strstr(complaint.text, "several"), "%s", complaint.text);
}

static const struct tap_case cases[] = {
    {"a whole source", test_whole},
    {"edits that match once", test_edits},
    {"edits have a ceiling", test_too_many},
    {"and so has the source", test_too_large},
    {"the idea", test_idea},
    {"nothing to change", test_done},
    {"strategies", test_strategies},
};

int main(void) {
    mem = arena_new((size_t)64 << 20);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
