/* The plan of a GPU's memory: arithmetic over sizes, and over the tasks of Level 1 at their own
 * shapes on GPUs of 24, 80 and 141 GB. */
#include "eval/memory.h"

#include "base/file.h"
#include "eval/oracle_run.h"
#include "tap.h"

#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static struct arena *mem;

/* ---- the arithmetic ---- */

static void fewer_contents_come_first(void) {
    struct memory_need n = {.tensors = GIB, .kept = GIB, .shared = 0, .remade = GIB / 2};
    struct memory_plan all = memory_plan_of(&n, 100 * GIB, 0, 8);
    CHECKF(all.contents == 8 && !all.remade && all.bytes <= 100 * GIB, "%zu", all.contents);
    struct memory_plan some = memory_plan_of(&n, 12 * GIB, 0, 8);
    CHECKF(some.contents < 8 && some.contents > 2 && !some.remade, "%zu", some.contents);
    struct memory_plan spaces = memory_plan_of(&n, 12 * GIB, 4 * GIB, 8);
    CHECKF(spaces.contents < some.contents && spaces.contents && spaces.bytes <= 12 * GIB, "%zu",
           spaces.contents);
    CHECK(memory_plan_of(&n, 2 * GIB, 0, 8).contents == 0);
}

/* What is expected would take more than its share: the judge would not keep it either. */
static void then_nothing_is_kept(void) {
    struct memory_need n = {.tensors = 2 * GIB, .kept = 2 * GIB, .shared = 4 * GIB, .remade = GIB};
    struct memory_plan p = memory_plan_of(&n, 6 * GIB, 0, 8);
    CHECKF(p.contents == 1 && p.remade && p.bytes <= 6 * GIB, "%zu", p.contents);
}

/* Then not even made: the tensors alone have to fit. */
static void then_tiles_are_compared(void) {
    struct memory_need n = {
        .tensors = 2 * GIB, .kept = 2 * GIB, .shared = 9 * GIB, .remade = 8 * GIB};
    struct memory_plan p = memory_plan_of(&n, 8 * GIB, 0, 8);
    CHECKF(p.contents == 3 && p.sampled && !p.remade && p.bytes <= 8 * GIB, "%zu", p.contents);
    CHECK(memory_plan_of(&n, 8 * GIB, 5 * GIB, 8).contents == 0);
}

static void what_may_be_kept(void) {
    size_t room = 100 * GIB;
    CHECK(memory_keep_bytes(room, 0) == (size_t)(MEMORY_KEEP_SHARE * (double)room));
    CHECK(memory_keep_bytes(room, 35 * GIB) ==
          (size_t)(MEMORY_KEPT_SHARE * (double)room) - 35 * GIB);
    CHECK(memory_keep_bytes(room, 50 * GIB) == 0);
}

/* ---- the tasks ---- */

static bool need_at(const char *file, size_t memory, struct memory_need *n, struct err *err) {
    str text;
    struct task *t;
    struct inst *in;
    return file_read(file, MIB, mem, &text, err) &&
           task_parse(str_view(file), text, mem, &t, err) && task_bind(t, NULL, 0, mem, &in, err) &&
           memory_need_of(in, memory, n, err);
}

static void level_1_at_its_own_shapes(void) {
    static const struct {
        double gb;
        size_t together; /* tasks that have room for three contents at a time, at least */
        size_t sampled;  /* … and for everything but what is expected, at most */
    } gpus[] = {{24, 50, 5}, {80, 100, 0}, {141, 100, 0}};
    const char *root = getenv("SOURCE_ROOT");
    const char *dir = arena_printf(mem, "%s/tasks/kernelbench/level1", root ? root : ".").p;
    struct err err = {0};
    str *names;
    size_t n;
    if (!dir_list(dir, mem, &names, &n, &err)) {
        SKIP("no tasks");
        return;
    }
    CHECK(n == 100);
    for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
        size_t memory = (size_t)(0.97e9 * gpus[g].gb), together = 0, sampled = 0;
        for (size_t i = 0; i < n; i++) {
            struct memory_need need = {0};
            const char *file = arena_printf(mem, "%s/%.*s", dir, STR_ARG(names[i])).p;
            CHECKF(need_at(file, memory, &need, &err), "%s: %s", file, err.text);
            struct memory_plan p = memory_plan_of(&need, memory, 0, 8);
            CHECKF(p.contents && p.bytes <= memory,
                   "%.*s on %g GB: tensors of %zu MiB, references of %zu, %zu and %zu MiB",
                   STR_ARG(names[i]), gpus[g].gb, need.tensors / MIB, need.kept / MIB,
                   need.shared / MIB, need.remade / MIB);
            together += p.contents >= 3;
            sampled += p.sampled;
        }
        printf("# %g GB: %zu tasks with room for three contents, %zu of which tiles are compared\n",
               gpus[g].gb, together, sampled);
        CHECK(together >= gpus[g].together && sampled <= gpus[g].sampled);
    }
}

static const struct tap_case cases[] = {
    {"fewer contents come first", fewer_contents_come_first},
    {"then nothing is kept", then_nothing_is_kept},
    {"then tiles are compared", then_tiles_are_compared},
    {"what may be kept", what_may_be_kept},
    {"the tasks of level 1 at their own shapes", level_1_at_its_own_shapes},
};

int main(void) {
    mem = arena_new((size_t)1 << 30);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
