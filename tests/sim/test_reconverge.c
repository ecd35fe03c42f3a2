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

/* A body, run as one block with a buffer of 257 numbers; what the launch leaves open is as asked.
 */
struct body_run {
    int32_t out[257];
    struct sim_result r;
    struct sim_findings f;
    char err[4096];
};

static void run_body(const char *body, struct sim_launch l, struct body_run *run) {
    struct harness h;
    struct arena *a = arena_new(1u << 20);
    memset(run, 0, sizeof *run);
    run->r.status = SIM_UNSUPPORTED;
    if (harness_load_text(&h, harness_kernel(a, body), "k")) {
        uint64_t p = harness_buffer(&h, "out", run->out, sizeof run->out, false);
        l.program = h.program;
        l.grid[0] = l.grid[1] = l.grid[2] = l.block[1] = l.block[2] = 1;
        l.params = &p;
        l.params_size = sizeof p;
        l.findings = l.checks ? &run->f : NULL;
        sim_run(h.machine, &l, &run->r);
    }
    snprintf(run->err, sizeof run->err, "%s%s", run->r.fault.text, h.err.text);
    harness_free(&h);
    arena_free(a);
}

static struct body_run run;

static void test_meeting(void) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        run_body(rows[i].body, (struct sim_launch){.block = {64}, .checks = SIM_CHECK_SYNC}, &run);
        CHECKF(run.r.status == SIM_OK, "%s: %s", rows[i].name, run.err);
        CHECKF(run.f.n == 0, "%s: %s", rows[i].name, run.f.list[0].text);
        for (int t = 0; t < 64; t++)
            CHECKF(run.out[t] == (t % 2 ? rows[i].odd : rows[i].even), "%s: thread %d: %d",
                   rows[i].name, t, run.out[t]);
    }
}

/* Two warps; thread 0 waits for the second one, the other lanes of its warp go on without it. */
#define FLAG "ld.volatile.global.u32 %r4, [%rd1+1024];\n"
#define PHASES                                                                                     \
    ".shared .align 8 .b64 bar;\nmov.u32 %r2, 0;\nmov.u32 %r5, bar;\n"                             \
    "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 32;\nsetp.eq.u32 %p2, %r1, 0;\n"                  \
    "@%p1 mbarrier.init.shared.b64 [%r5], 1;\nbar.sync 0;\n"
#define WAIT(label, parity)                                                                        \
    label ": mbarrier.try_wait.parity.shared.b64 %p3, [%r5], " parity ";\n@!%p3 bra " label ";\n"
#define PART "lanes of its warp"

static const struct {
    const char *name, *body, *found; /* in the only finding; NULL: there is none */
} held_up[] = {
    {"a lane that waits for a phase before the barrier",
     PHASES "@!%p2 bra OTHERS;\n" WAIT(
         "W", "0") "bra.uni MEET;\n"
                   "OTHERS: @%p1 mbarrier.arrive.shared.b64 %rd3, [%r5];\nMEET: bar.sync 0;",
     NULL},
    {"one that counts its rounds, with the barrier at the head of the loop",
     PHASES "HEAD: bar.sync 0;\nand.b32 %r6, %r2, 1;\n@!%p2 bra OTHERS;\n" WAIT(
         "W", "%r6") "bra.uni MEET;\n"
                     "OTHERS: @%p1 mbarrier.arrive.shared.b64 %rd3, [%r5];\n"
                     "MEET: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 9;\n@%p3 bra HEAD;",
     NULL},
    {"a lane that looks at memory, with the barrier at the head of the loop",
     PHASES "HEAD: bar.sync 0;\nadd.u32 %r2, %r2, 1;\n@!%p2 bra OTHERS;\n"
            "SPIN: " FLAG "setp.ne.u32 %p3, %r4, %r2;\n@%p3 bra SPIN;\nbra.uni MEET;\n"
            "OTHERS: @%p1 st.volatile.global.u32 [%rd1+1024], %r2;\n"
            "MEET: setp.lt.u32 %p3, %r2, 9;\n@%p3 bra HEAD;",
     NULL},
    {"half of each warp at a barrier for threads, not for warps",
     PHASES "and.b32 %r6, %r1, 16;\nsetp.ne.u32 %p3, %r6, 0;\n@%p3 bra MEET;\n"
            "barrier.sync 1, 32;\nMEET: bar.sync 0;",
     NULL},
    {"a lane that waits and then goes round the barrier",
     PHASES "@!%p2 bra OTHERS;\n" WAIT(
         "W", "0") "bra.uni MEET;\n"
                   "OTHERS: @%p1 mbarrier.arrive.shared.b64 %rd3, [%r5];\nbar.sync 0;\n"
                   "MEET: mov.u32 %r2, 1;",
     PART},
    {"one that does so in a loop",
     PHASES "HEAD: and.b32 %r6, %r2, 1;\n@!%p2 bra OTHERS;\n" WAIT(
         "W", "%r6") "bra.uni MEET;\n"
                     "OTHERS: @%p1 mbarrier.arrive.shared.b64 %rd3, [%r5];\nbar.sync 0;\n"
                     "MEET: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 2;\n@%p3 bra HEAD;",
     PART},
    {"lanes at two barriers, after one of them has waited",
     PHASES "@!%p2 bra OTHERS;\n" WAIT(
         "W", "0") "bar.sync 0;\nbra.uni MEET;\n"
                   "OTHERS: @%p1 mbarrier.arrive.shared.b64 %rd3, [%r5];\nbar.sync 0;\n"
                   "MEET: mov.u32 %r2, 1;",
     PART},
};

static void run_held_up(size_t row, uint32_t order) {
    const char *name = held_up[row].name, *found = held_up[row].found;
    run_body(held_up[row].body,
             (struct sim_launch){.block = {64}, .order = order, .checks = SIM_CHECK_SYNC}, &run);
    const char *text = run.f.list[0].text;
    CHECKF(found || run.r.status == SIM_OK, "%s: order %u: %s", name, order, run.err);
    CHECKF(found ? run.f.n > 0 : run.f.n == 0, "%s: order %u: %s", name, order, text);
    if (found && run.f.n)
        CHECKF(strstr(text, found), "%s: order %u: %s", name, order, text);
}

static void test_held_up(void) {
    enum { ORDERS = 40 };
    for (size_t i = 0; i < sizeof held_up / sizeof *held_up; i++)
        for (uint32_t order = 0; order < ORDERS; order++)
            run_held_up(i, order);
}

/* Of the numbers of sim_launch.lanes, those with which lanes 0 and 1 have each other's company. */
static unsigned together(const char *body) {
    enum { LAUNCHES = 40 };
    unsigned n = 0;
    for (uint32_t lanes = 0; lanes < LAUNCHES; lanes++) {
        run_body(body, (struct sim_launch){.block = {32}, .lanes = lanes}, &run);
        const int32_t *out = run.out;
        CHECKF(run.r.status == SIM_OK, "%s: %s", body, run.err);
        bool all = out[0] == -1 && out[1] == -1;
        CHECKF(all || (out[0] == 0x55555555 && out[1] == ~0x55555555), "%s: %#x", body,
               (unsigned)out[0]);
        CHECKF(run.r.drawn == !all && (all || lanes), "%s: %u", body, lanes);
        n += all;
    }
    return n;
}

#define PART_WAYS "@%p1 bra JOIN;\nadd.u32 %r4, %r1, 1;\nJOIN: "

static void test_active(void) {
    unsigned n = together(ODD PART_WAYS "activemask.b32 %r2;\n" STORE);
    CHECKF(n > 8 && n < 32, "%u", n);
    CHECK(together(ODD "activemask.b32 %r2;\n" STORE) == 40);
    CHECK(together(ODD PART_WAYS "bar.warp.sync -1;\nactivemask.b32 %r2;\n" STORE) == 40);
    CHECK(together(ODD PART_WAYS "bar.sync 0;\nactivemask.b32 %r2;\n" STORE) == 40);
}

static const struct tap_case cases[] = {
    {"lanes that have parted may be active apart", test_active},
    {"a barrier waits for lanes of its warp that others hold up", test_held_up},
    {"lanes meet where their branch's ways come together", test_meeting},
};
TAP_CASES(cases)
