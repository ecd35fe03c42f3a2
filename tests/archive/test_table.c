/* Tables of measured spaces: written, gone on with, cut off, damaged, read back. */
#include "archive/table.h"
#include "base/file.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct err err;
static struct catalogue *c;
static struct briefing brief;
static char *dir;

static const char *path_of(const char *name) {
    return arena_printf(mem, "%s/%s", dir, name).p;
}

static struct table_head head(size_t rows) {
    return (struct table_head){.briefing = &brief,
                               .kept = c,
                               .device = "sim:h200",
                               .toolchain = S("nvrtc 13.0"),
                               .estimated = true,
                               .rows = rows,
                               .seed = 1};
}

static struct strategy random_one(uint64_t i) {
    struct strategy s;
    strategy_random(c, &brief.ground, rng_sub((struct rng){0}, i), &s);
    return s;
}

static str text_of(const struct strategy *s) {
    struct buf b;
    buf_init(&b, 8192);
    strategy_text(c, s, &b);
    str t = arena_str(mem, buf_str(&b));
    buf_release(&b);
    return t;
}

static bool add(struct table_writer *w, uint64_t i, enum verdict v, double time_s) {
    struct strategy s = random_one(i);
    static const char hash[] = "00000000000000ffaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    struct table_line l = {text_of(&s), text_of(&s), true, v, time_s, hash};
    return table_add(w, &l, &err);
}

static void test_round(void) {
    const char *path = path_of("round");
    struct table_head h = head(3);
    struct table_writer *w = NULL;
    struct table t;
    struct strategy refused = random_one(3), first = random_one(1), other = random_one(5);
    CHECK(table_open(path, &h, &w, &err) && table_count(w) == 0);
    CHECK(add(w, 1, VERDICT_ACCEPTED, 2e-5) && add(w, 2, VERDICT_WRONG, INFINITY));
    struct table_line l = {.strategy = text_of(&refused)};
    CHECK(table_add(w, &l, &err));
    table_close(w);
    CHECKF(table_load(path, NULL, mem, &t, &err), "%s", err.text);
    CHECK(t.n == 3 && t.planned == 3 && t.best_s == 2e-5 && t.estimated);
    CHECK(str_is(t.task->name, "t") && t.inst->dims[0] == 4096);
    CHECK(t.gpu->copy_bytes_s == brief.gpu->copy_bytes_s && !strcmp(t.gpu->arch, brief.gpu->arch));
    CHECK(t.briefing.roofline.limit_s == brief.roofline.limit_s);
    size_t at = table_find(&t, &first);
    CHECK(at < t.n && t.rows[at].time_s == 2e-5 && t.rows[at].source == 255);
    at = table_find(&t, &refused);
    CHECK(at < t.n && !t.rows[at].written);
    CHECK(table_find(&t, &other) == t.n);
}

static void test_go_on(void) {
    const char *path = path_of("on");
    struct table_head h = head(3), another = head(4);
    struct table_writer *w = NULL, *second = NULL;
    struct strategy one = random_one(1), two = random_one(2);
    CHECK(table_open(path, &h, &w, &err) && add(w, 1, VERDICT_ACCEPTED, 1e-5));
    CHECK(!table_open(path, &h, &second, &err) && strstr(err.text, "another process"));
    table_close(w);
    /* killed in the middle of a line */
    str text;
    CHECK(file_read(path, 1 << 20, mem, &text, &err));
    CHECK(file_replace(path, arena_printf(mem, "%.*s{\"strat", STR_ARG(text)), &err));
    CHECK(table_open(path, &h, &w, &err) && table_count(w) == 1);
    CHECK(table_has(w, text_of(&one)) && !table_has(w, text_of(&two)));
    CHECK(add(w, 2, VERDICT_ACCEPTED, 3e-5));
    table_close(w);
    struct table t;
    CHECK(table_load(path, NULL, mem, &t, &err) && t.n == 2);
    CHECK(!table_open(path, &another, &w, &err) && strstr(err.text, "another space"));
}

static void test_damaged(void) {
    static const char *const texts[] = {"", "nonsense\n", "{}\n", "{\"space\":99}\n",
                                        "{\"space\":1,\"text\":\"task\"}\n"};
    struct table t;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK(file_replace(path_of("bad"), str_view(texts[i]), &err));
        err = (struct err){0};
        CHECKF(!table_load(path_of("bad"), NULL, mem, &t, &err) && err.kind == ERR_INPUT, "%s",
               texts[i]);
    }
    CHECK(!table_load(path_of("absent"), NULL, mem, &t, &err));
    struct table_head h = head(1);
    struct table_writer *w = NULL;
    CHECK(table_open(path_of("row"), &h, &w, &err));
    table_close(w);
    str text;
    CHECK(file_read(path_of("row"), 1 << 20, mem, &text, &err));
    CHECK(file_replace(path_of("row"),
                       arena_printf(mem, "%.*s{\"strategy\":\"block=7\"}\n", STR_ARG(text)), &err));
    CHECK(!table_load(path_of("row"), NULL, mem, &t, &err) && strstr(err.text, "row 1"));
}

static const struct tap_case cases[] = {
    {"written and read back", test_round},
    {"gone on with, after a cut-off line, by one process at a time", test_go_on},
    {"damaged tables are refused", test_damaged},
};

int main(void) {
    mem = arena_new(512u << 20);
    struct task *t;
    struct inst *in;
    dir = mkdtemp(arena_cstr(mem, S("/tmp/table-XXXXXX")));
    if (!dir || !catalogue_load(NULL, mem, &c, &err) ||
        !task_parse(S("t"),
                    S("task t \"t\"\ndim N = 4096\nin x[N] : f32 ~ normal(0,1)\n"
                      "out y[N] : f32\ny[i] = x[i] + 1\n"),
                    mem, &t, &err) ||
        !task_bind(t, NULL, 0, mem, &in, &err) || !briefing_make(in, c, gpu_at(0), &brief, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(dir, &err);
    arena_free(mem);
    return rc;
}
