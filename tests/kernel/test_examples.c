/* The examples of docs/KERNELS.md: every ```cuda block is a whole candidate for the last ```task
 * block before it, and is accepted as far as this room decides. */
#include "tap.h"

#include "base/file.h"
#include "fixture.h"
#include "kernel/inspect.h"

static struct arena *arena;
static struct loop *loop;
static struct build_pool *pool;
static const char *missing;

/* Up to the closing ```; false: there is no such block any more. */
static bool next_block(str *rest, str *kind, str *text) {
    size_t at = str_find(*rest, S("\n```"));
    str from = str_from(*rest, at + 4);
    size_t end = str_find(from, S("\n```"));
    if (at == rest->n || end == from.n)
        return false;
    str body = str_cut(from, 0, end + 1);
    *rest = str_from(from, end + 4);
    *text = body;
    return str_line(text, kind);
}

static void compile(const struct candidate *c, struct err *err) {
    struct fixture_build f = {.a = arena};
    struct buf unit;
    struct ptx_module *m;
    buf_init(&unit, 2u << 20);
    CHECKF(candidate_unit(c, &unit, err), "%s", err->text);
    CHECK(fixture_compile(loop, pool, buf_str(&unit), false, &f));
    CHECKF(f.b.verdict == VERDICT_ACCEPTED && f.b.log.n == 0, "%.*s", STR_ARG(f.b.log));
    buf_release(&unit);
    if (f.b.verdict != VERDICT_ACCEPTED)
        return;
    bool parsed = ptx_parse(f.b.ptx, arena, &m, err);
    CHECKF(parsed, "%s", err->text);
    if (parsed)
        CHECKF(ptx_inspect(c, m, err) == VERDICT_ACCEPTED, "%s", err->text);
}

static void example(const struct task *t, str source) {
    struct err err = {0};
    struct candidate *c = NULL;
    struct inst *in = NULL;
    struct bound_plan p;
    bool fits = false;
    str which;
    bool ok = candidate_parse(S("KERNELS.md"), source, t, arena, &c, &err) &&
              task_bind(t, NULL, 0, arena, &in, &err) && plan_fits(c, in, &fits, &which, &err) &&
              plan_bind(c, in, arena, &p, &err);
    CHECKF(ok && fits, "%.*s\n# %s", STR_ARG(source), err.text);
    if (ok && !missing)
        compile(c, &err);
}

static void examples(void) {
    const char *root = getenv("SOURCE_ROOT");
    struct err err = {0};
    str text, kind, block;
    const struct task *t = NULL;
    size_t n = 0;
    bool read = file_read(arena_printf(arena, "%s/docs/KERNELS.md", root ? root : ".").p, 1u << 20,
                          arena, &text, &err);
    CHECKF(read, "%s", err.text);
    for (str rest = read ? text : S(""); next_block(&rest, &kind, &block);) {
        if (str_is(kind, "task"))
            t = fixture_task(arena_cstr(arena, block), arena);
        CHECK(!str_is(kind, "cuda") || t);
        if (!str_is(kind, "cuda") || !t)
            continue;
        example(t, block);
        n++;
    }
    CHECKF(n >= 6, "%zu examples", n);
    if (missing)
        SKIP(missing); /* the plans were read, nothing was compiled */
}

static const struct tap_case cases[] = {
    {"the examples of docs/KERNELS.md", examples},
};

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "compiler") == 0)
        return compiler_main(argc - 2, argv + 2);
    struct err err = {0};
    struct nvrtc_root root;
    struct build_pool_options o = {.jobs = 1};
    arena = arena_new((size_t)1 << 30);
    loop = loop_new(&err);
    missing = fixture_nvrtc(&root);
    if (!missing)
        pool = build_pool_new(loop, &root, &o, &err);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    build_pool_free(pool);
    loop_free(loop);
    arena_free(arena);
    return failed;
}
