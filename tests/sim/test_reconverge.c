/* Where lanes that parted meet again: kernels whose text does not have the code of a branch between
 * the branch and the place behind it. Each kernel has a barrier where lanes have met, which the
 * checkers watch, and leaves a number for each thread. */
#include "tap.h"

#include "harness.h"

#define STORE "mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd2, %rd1, %rd2;\nst.global.u32 [%rd2], %r2;"
#define ODD                                                                                        \
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, 0;\nand.b32 %r3, %r1, 1;\nsetp.ne.u32 %p1, %r3, 0;\n"

static const struct {
    const char *name, *body;
    int32_t even, odd; /* what threads leave */
} rows[] = {
    {"a body behind the barrier",
     ODD "@%p1 bra FAR;\nMEET: bar.sync 0;\n" STORE "\nret;\n"
         "FAR: add.u32 %r2, %r2, 5;\nbra.uni MEET;",
     0, 5},
    {"two bodies behind it, one within the other",
     ODD "and.b32 %r4, %r1, 3;\nsetp.eq.u32 %p2, %r4, 3;\n"
         "@%p1 bra FAR;\nMEET: bar.sync 0;\n" STORE "\nret;\n"
         "INNER: add.u32 %r2, %r2, 0;\nbra.uni BACK;\n"
         "FAR: @%p2 bra INNER;\nBACK: bar.warp.sync 0xaaaaaaaa;\nadd.u32 %r2, %r2, 7;\n"
         "bra.uni MEET;",
     0, 7},
    {"a loop's way out in its midst, its tail behind the barrier",
     ODD "add.u32 %r5, %r3, 2;\n"
         "LOOP: add.u32 %r2, %r2, 1;\nsetp.ge.u32 %p2, %r2, %r5;\n@!%p2 bra TAIL;\n"
         "bar.sync 0;\n" STORE "\nret;\nTAIL: add.u32 %r4, %r4, 1;\nbra.uni LOOP;",
     2, 3},
    {"a barrier at the head of a loop that lanes come back to from two places",
     ODD "HEAD: bar.sync 0;\nsetp.ge.u32 %p2, %r2, 4;\n@%p2 bra OUT;\n"
         "@%p1 bra SECOND;\nadd.u32 %r2, %r2, 1;\nbra.uni HEAD;\n"
         "SECOND: add.u32 %r2, %r2, 1;\nbra.uni HEAD;\nOUT: " STORE,
     4, 4},
    {"a table of branches whose bodies lie behind",
     ODD "and.b32 %r4, %r1, 1;\nTS: .branchtargets L0, L1;\nbrx.idx %r4, TS;\n"
         "MEET: bar.sync 0;\n" STORE "\nret;\n"
         "L1: add.u32 %r2, %r2, 3;\nbra.uni MEET;\nL0: add.u32 %r2, %r2, 2;\nbra.uni MEET;",
     2, 3},
    {"lanes that leave early do not hold up the others",
     ODD STORE "\n@%p1 bra FAR;\nMEET: @%p1 ret;\nbar.sync 0;\nadd.u32 %r2, %r2, 1;\n" STORE
               "\nret;\nFAR: add.u32 %r4, %r4, 1;\nbra.uni MEET;",
     1, 0},
    {"lanes that wait for a lane that has gone ahead",
     ODD "setp.eq.u32 %p2, %r1, 0;\n@%p2 bra FIRST;\n"
         "SPIN: ld.volatile.global.u32 %r4, [%rd1+1024];\nsetp.eq.u32 %p3, %r4, 0;\n"
         "@%p3 bra SPIN;\nbra.uni MEET;\n"
         "FIRST: st.volatile.global.u32 [%rd1+1024], 1;\nMEET: bar.sync 0;\n" STORE,
     0, 0},
};

static void test_meeting(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct harness h;
        struct arena *a = arena_new(1u << 20);
        static struct sim_findings f;
        int32_t out[257] = {0};
        struct sim_result r = {.status = SIM_UNSUPPORTED};
        memset(&f, 0, sizeof f);
        if (harness_load_text(&h, harness_kernel(a, rows[i].body), "k")) {
            uint64_t p = harness_buffer(&h, "out", out, sizeof out, false);
            struct sim_launch l = {.program = h.program,
                                   .grid = {1, 1, 1},
                                   .block = {64, 1, 1},
                                   .params = &p,
                                   .params_size = sizeof p,
                                   .checks = SIM_CHECK_SYNC,
                                   .findings = &f};
            sim_run(h.machine, &l, &r);
        }
        CHECKF(r.status == SIM_OK, "%s: %s%s", rows[i].name, r.fault.text, h.err.text);
        CHECKF(f.n == 0, "%s: %s", rows[i].name, f.list[0].text);
        for (int t = 0; t < 64; t++)
            CHECKF(out[t] == (t % 2 ? rows[i].odd : rows[i].even), "%s: thread %d: %d",
                   rows[i].name, t, out[t]);
        harness_free(&h);
        arena_free(a);
    }
}

static const struct tap_case cases[] = {
    {"lanes meet where their branch's ways come together", test_meeting},
};
TAP_CASES(cases)
