/* candidate_parse and the plan's arithmetic on any text, for one fixed task. */
#include <stdio.h>

#include "fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static struct arena *fixed, *arena;
    static const struct task *task;
    static struct inst *in;
    if (!fixed) {
        fixed = arena_new(1u << 20);
        arena = arena_new(256u << 20);
        task = fixture_task(FIXTURE_TASK, fixed);
        in = fixture_inst(task, 1000, fixed);
    }
    struct err err = {0};
    struct candidate *c;
    arena_reset(arena);
    if (n > 1u << 16 ||
        !candidate_parse(S("k.cu"), (str){(const char *)data, n}, task, arena, &c, &err))
        return 0;
    struct bound_plan p;
    bool fits;
    str which;
    plan_fits(c, in, &fits, &which, &err);
    plan_bind(c, in, arena, &p, &err);
    return 0;
}
