/* Plans: what they mean for a shape, and how their errors read. */
#include "tap.h"

#include "base/file.h"
#include "fixture.h"
#include "kernel/includes.h"
#include "kernel/verdict.h"

#define LAUNCH "//! launch k<<<1, 32>>>(x, y, N)\n"

static struct arena *arena;
static const struct task *task;

static void example(void) {
    struct err err = {0};
    struct candidate *c = fixture_candidate(task,
                                            "//! let V = 4\n"
                                            "  //! require N % V == 0\n"
                                            "//!launch relu<<<ceil_div(N, 64*V), 64, V*16>>>"
                                            "(x, y, N, N/V)\n"
                                            "//! launch two<<<[2, 3, V], [8, 4, 2]>>>()\n"
                                            "__global__ void relu() {} // ! launch nothing\n",
                                            arena, &err);
    CHECKF(c != NULL, "%s", err.text);
    if (!c)
        return;
    CHECK(c->nlets == 1 && c->nrequires == 1 && c->nlaunches == 2);
    CHECK(str_is(c->requires_[0].text, "N % V == 0"));
    struct bound_plan p;
    CHECK(plan_bind(c, fixture_inst(task, 1000, arena), arena, &p, &err));
    const struct bound_launch *l = p.launches;
    CHECK(p.nlaunches == 2 && str_is(l[0].kernel, "relu") && str_is(l[1].kernel, "two"));
    CHECK(l[0].grid[0] == 4 && l[0].grid[1] == 1 && l[0].grid[2] == 1);
    CHECK(l[0].block[0] == 64 && l[0].block[1] == 1 && l[0].shared == 64);
    CHECK(l[0].nargs == 4 && l[0].args[0].kind == ARG_TENSOR && l[0].args[1].kind == ARG_TENSOR);
    CHECK(l[0].args[0].ref == (size_t)tensor_find(task, S("x")));
    CHECK(l[0].args[1].ref == (size_t)tensor_find(task, S("y")));
    CHECK(l[0].args[2].kind == ARG_INTEGER && l[0].args[2].value == 1000);
    CHECK(l[0].args[3].value == 250 && l[0].cluster[0] == 1 && !l[0].cooperative);
    CHECK(p.nsteps == 2 && p.steps[1].kind == PLAN_LAUNCH && p.steps[1].index == 1);
    CHECK(p.nworkspaces == 0 && p.nmaps == 0 && p.nmemsets == 0 && p.align[0] == 16);
    CHECK(l[1].grid[0] == 2 && l[1].grid[1] == 3 && l[1].grid[2] == 4 && l[1].block[2] == 2);
    CHECK(l[1].nargs == 0 && l[1].shared == 0);
}

/* Editors put one at the start of a file; it is no part of the source. */
static void byte_order_mark(void) {
    struct err err = {0};
    struct candidate *c = fixture_candidate(task, "\xef\xbb\xbf" LAUNCH "int i;\n", arena, &err);
    CHECKF(c && str_is(c->source, LAUNCH "int i;\n"), "%s", err.text);
    c = fixture_candidate(task, "\xef\xbb\xbf//! lunch k\n", arena, &err);
    CHECKF(!c && strstr(err.text, ":1:5: a plan line cannot begin with 'lunch'"), "%s", err.text);
    c = fixture_candidate(task, " \xef\xbb\xbf" LAUNCH, arena, &err);
    CHECK(!c && strstr(err.text, "no launch")); /* only there */
}

static void requires_hold(void) {
    static const struct {
        const char *plan;
        int64_t n;
        bool ok, fits;
        const char *which;
    } rows[] = {
        {"", 1000, true, true, ""},
        {"//! require N % 8 == 0\n", 1000, true, true, ""},
        {"//! require N % 8 == 0\n", 1001, true, false, "N % 8 == 0"},
        {"//! require 1\n//! require M < 7 \r\n", 1000, true, false, "M < 7"},
        {"//! let A = N - 1000\n//! require A != 0\n//! let B = 1 / A\n", 1000, true, false,
         "A != 0"},
        {"//! let A = N - 1000\n//! let B = 1 / A\n//! require A != 0\n", 1000, false, false, ""},
        {"//! require 1 / (N - 1000)\n", 1000, false, false, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        char source[512];
        snprintf(source, sizeof source, "%s" LAUNCH, rows[i].plan);
        struct candidate *c = fixture_candidate(task, source, arena, &err);
        CHECKF(c != NULL, "row %zu: %s", i, err.text);
        bool fits = false;
        str which = S("");
        bool ok = c && plan_fits(c, fixture_inst(task, rows[i].n, arena), &fits, &which, &err);
        CHECKF(ok == rows[i].ok, "row %zu: %s", i, err.text);
        CHECKF(!ok || fits == rows[i].fits, "row %zu", i);
        CHECKF(!ok || fits || str_is(which, rows[i].which), "row %zu: %.*s", i, STR_ARG(which));
    }
}

static void bad_plans(void) {
    static const struct {
        const char *source, *says;
    } rows[] = {
        {"", "no launch"},
        {"// ! launch k<<<1, 1>>>(y)\n", "no launch"},
        {"//! launch k<<<1, 32>>>(x, N)\n", "output y is never passed to a launch"},
        {"//! let N = 4\n" LAUNCH, "'N' is a dimension"},
        {"//! let x = 4\n" LAUNCH, "'x' is a tensor"},
        {"//! let min = 4\n" LAUNCH, "'min' is a function"},
        {"//! let V = 4\n//! let V = 5\n" LAUNCH, "'V' is already a let"},
        {"//! let V\n" LAUNCH, "expected '='"},
        {"//! let 4 = V\n" LAUNCH, "expected a name"},
        {"//! let V = 4 5\n" LAUNCH, "unexpected '5'"},
        {"//! let V = W\n//! let W = 1\n" LAUNCH, "unknown name 'W'"},
        {"//! launch k<<<V, 32>>>(x, y)\n//! let V = 1\n", "unknown name 'V'"},
        {"//! 17\n" LAUNCH,
         "a plan has let, require, workspace, tensormap, memset, launch and once"},
        {"//! workspaces p[4] : f32\n" LAUNCH, "a plan line cannot begin with 'workspaces'"},
        {"//! launch <<<1, 32>>>(x, y)\n", "expected a kernel's name"},
        {"//! launch k<<<1>>>(x, y)\n", "expected ','"},
        {"//! launch k<<<[1,2,3,4], 32>>>(x, y)\n", "more than 3 numbers"},
        {"//! launch k<<<[], 32>>>(x, y)\n", "expected a number"},
        {"//! launch k<<<1, 32>>(x, y)\n", "expected"},
        {"//! launch k<<<1, 32>>>x, y\n", "expected '('"},
        {"//! launch k<<<1, 32>>>(x, y\n", "expected ')'"},
        {"//! launch k<<<1, 32>>>(x, y,)\n", "expected an argument"},
        {"//! launch k<<<1, 32>>>(x, y);\n", "unexpected"},
        {"//! launch k<<<1, 32>>>(x + 1, y)\n", "is a tensor, not a number"},
        {"//! launch k<<<1, 32, 0, 0>>>(x, y)\n", "there are no streams"},
        {"//! launch k<<<1, 32, cooperative, 64>>>(x, y)\n",
         "the bytes of shared memory stand right after the block"},
        {"//! launch k<<<1, 32, cluster=[2,1], cluster=2>>>(x, y)\n", "cluster is given twice"},
        {"//! launch k<<<1, 32, cluster>>>(x, y)\n", "expected '=' after cluster"},
        {"//! launch k<<<1, 32, cluster=[1,1,1,1]>>>(x, y)\n", "more than 3 numbers"},
        {"//! launch k<<<1, 32, clusters=2>>>(x, y)\n", "unknown name 'clusters'"},
        {"//! launch k<<<1, 32>>>(t, y)\n", "is an intermediate"},
        {"//! launch k<<<1, 32>>>(z, y)\n", "unknown name 'z'"},
        {"//! launch k<<<1, x>>>(x, y)\n", "is a tensor"},
        {"//! workspace part[4] : f32\n//! launch k<<<1, 32>>>(x, y, pat)\n",
         "hint: did you mean part? known here: x w y part N M"},
        {"//! launch k<<<1, nn>>>(x, y)\n", "hint: known here: N"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        CHECKF(!fixture_candidate(task, rows[i].source, arena, &err), "%s parsed", rows[i].source);
        CHECKF(strstr(err.text, rows[i].says), "%s: %s", rows[i].source, err.text);
        CHECKF(err.kind == ERR_INPUT && strstr(err.text, "k.cu"), "%s: %s", rows[i].source,
               err.text);
    }
}

static void errors_point(void) {
    struct err err = {0};
    CHECK(!fixture_candidate(task, "int a;\n  //! let V = N +* 2\n", arena, &err));
    CHECKF(strstr(err.text, "k.cu:2:18:") && strstr(err.text, "//! let V = N +* 2") &&
               strchr(err.text, '^'),
           "%s", err.text);
}

static void bad_shapes(void) {
    static const struct {
        const char *launch, *says;
    } rows[] = {
        {"<<<0, 32>>>", "grid.x is 0"},
        {"<<<N - 1001, 32>>>", "grid.x is -1"},
        {"<<<2147483648, 32>>>", "grid.x is 2147483648"},
        {"<<<[1, 65536], 32>>>", "grid.y is 65536, it must be from 1 to 65535"},
        {"<<<[1, 1, 65536], 32>>>", "grid.z is 65536"},
        {"<<<1, 0>>>", "block.x is 0"},
        {"<<<1, 1025>>>", "block.x is 1025"},
        {"<<<1, [1, 1, 65]>>>", "block.z is 65"},
        {"<<<1, [32, 33]>>>", "32x33x1 has 1056 threads"},
        {"<<<1, 32, -1>>>", "-1 bytes of dynamic shared memory"},
        {"<<<1, 32, 232449>>>", "232449 bytes of dynamic shared memory"},
        {"<<<1 / (N - 1000), 32>>>", "division by zero"},
        {"<<<16, 32, cluster=16>>>", "16 is not portable"},
        {"<<<[8, 4], 32, 0, cluster=[4, 4]>>>", "a cluster of 16 blocks, more than 8"},
        {"<<<[8, 3], 32, cluster=[2, 2]>>>", "cluster.y is 2, which does not divide grid.y, 3"},
        {"<<<8, 32, cluster=0>>>", "cluster.x is 0, it must be from 1 to 16"},
        {"<<<32, 32, cluster=17>>>", "cluster.x is 17"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        char source[256];
        struct bound_plan p;
        snprintf(source, sizeof source, "//! launch k%s(x, y, N)\n", rows[i].launch);
        struct candidate *c = fixture_candidate(task, source, arena, &err);
        CHECKF(c != NULL, "%s: %s", rows[i].launch, err.text);
        bool ok = c && plan_bind(c, fixture_inst(task, 1000, arena), arena, &p, &err);
        CHECKF(!ok && strstr(err.text, rows[i].says), "%s: %s", rows[i].launch, err.text);
    }
    struct err err = {0};
    struct bound_plan p;
    struct candidate *c = fixture_candidate(
        task, "//! launch k<<<[2147483647, 65535, 65535], [16, 1, 64], 232448>>>(x, y)\n", arena,
        &err);
    CHECK(c && plan_bind(c, fixture_inst(task, 1000, arena), arena, &p, &err));
}

static void limits(void) {
    struct err err = {0};
    struct buf b;
    buf_init(&b, 4u << 20);
    for (int i = 0; i <= CANDIDATE_MAX_LINES; i++)
        buf_puts(&b, S("//! require 1\n"));
    CHECK(!fixture_candidate(task, b.p, arena, &err) && strstr(err.text, "lines of plan"));
    buf_clear(&b);
    for (int i = 0; i <= CANDIDATE_MAX_LAUNCHES; i++)
        buf_puts(&b, S(LAUNCH));
    CHECK(!fixture_candidate(task, b.p, arena, &err) && strstr(err.text, "launches"));
    buf_clear(&b);
    buf_puts(&b, S("//! launch k<<<1, 1>>>(y"));
    for (int i = 0; i < CANDIDATE_MAX_ARGS; i++)
        buf_puts(&b, S(", 1"));
    buf_puts(&b, S(")\n"));
    CHECK(!fixture_candidate(task, b.p, arena, &err) && strstr(err.text, "arguments"));
    buf_clear(&b);
    while (b.n <= CANDIDATE_MAX_BYTES)
        buf_puts(&b, S("////////////////////////////////////////////////////////////////\n"));
    CHECK(!fixture_candidate(task, b.p, arena, &err) && strstr(err.text, "more than"));
    buf_release(&b);
    struct candidate *c;
    CHECK(!candidate_parse(S("k.cu"), S(LAUNCH "\0"), task, arena, &c, &err) &&
          strstr(err.text, "NUL"));
}

static void verdicts(void) {
    for (int v = 0; v < VERDICT_COUNT; v++) {
        enum verdict back = VERDICT_COUNT;
        CHECK(verdict_find(str_view(verdict_name((enum verdict)v)), &back) && (int)back == v);
        CHECK(*verdict_meaning((enum verdict)v));
    }
    enum verdict none;
    CHECK(!verdict_find(S("fine"), &none));
    CHECK(strcmp(verdict_name(VERDICT_BAD_PLAN), "bad-plan") == 0);
}

/* The source as it is, its lines numbered from 1, and the checks under the launch's number. */
static void unit_text(void) {
    struct err err = {0};
    struct buf out;
    buf_init(&out, 1u << 20);
    struct candidate *c =
        fixture_candidate(task, "\n\n//! launch k<<<1, 32>>>(x, y, N*2)\nint \\", arena, &err);
    CHECK(c && candidate_unit(c, &out, &err));
    str s = buf_str(&out);
    size_t source = str_find(s, S("#line 1 \"kernel.cu\"\n\n\n//! launch k"));
    CHECK(source < s.n && str_find(s, S("INFINITY")) < source);
    CHECK(str_find(str_from(s, source), S("#line 3 \"kernel.cu\"\n")) < s.n - source);
    CHECK(str_find(s, S("kernel k, argument 3 (N*2): expected an integer type")) < s.n);
    CHECK(str_find(s, S("kernel k, argument 2 (y): expected a non-const pointer to float")) < s.n);
    buf_clear(&out);
    c = fixture_candidate(task, includes_file(S("\n\n" LAUNCH), arena).p, arena, &err);
    CHECK(c && candidate_unit(c, &out, &err));
    s = buf_str(&out);
    CHECK(str_find(s, S("#include <cuda.h>")) == s.n);
    CHECK(str_find(s, S("#line 7 \"kernel.cu\"\n\n\n//! launch k")) < s.n);
    buf_release(&out);
    buf_init(&out, 100);
    CHECK(c && !candidate_unit(c, &out, &err));
    buf_release(&out);
}

/* A folder's prelude wins over the built-in one. */
static void own_assets(void) {
    struct err err = {0};
    struct buf out;
    char folder[] = "/tmp/test-kernel-assets.XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/kernel", folder);
    CHECK(dir_make(path, &err));
    snprintf(path, sizeof path, "%s/kernel/prelude.cuh", folder);
    CHECK(file_replace(path, S("#define OWN 1\n"), &err));
    buf_init(&out, 1u << 20);
    struct candidate *c = fixture_candidate(task, LAUNCH, arena, &err);
    if (c)
        c->assets = folder;
    CHECKF(c && candidate_unit(c, &out, &err), "%s", err.text);
    str s = buf_str(&out);
    CHECK(str_starts(s, S("#define OWN 1\n")) && str_find(s, S("INFINITY")) == s.n);
    CHECK(str_find(s, S("cutepilot_checks")) < s.n);
    buf_release(&out);
    dir_remove_tree(folder, &err);
}

static const struct tap_case cases[] = {
    {"an example", example},
    {"a byte order mark", byte_order_mark},
    {"require lines", requires_hold},
    {"bad plans", bad_plans},
    {"errors point at the place", errors_point},
    {"numbers out of range", bad_shapes},
    {"limits", limits},
    {"verdicts have names", verdicts},
    {"the text that is compiled", unit_text},
    {"assets of the user's own", own_assets},
};

int main(void) {
    arena = arena_new(256u << 20);
    task = fixture_task(FIXTURE_TASK, arena);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
