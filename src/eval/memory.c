#include "eval/memory.h"

#include "eval/oracle_run.h"
#include "kernel/plan.h"

#define GRANULE ((size_t)2 << 20) /* of mapped memory */
#define BESIDE_BYTES                                                                               \
    ((size_t)1280 << 20)  /* two contexts, code, local memory, the L2's flushing                   \
                           */
#define USABLE_SHARE 0.95 /* the rest is lost between allocations */

size_t memory_keep_bytes(size_t room, size_t kept) {
    size_t one = (size_t)(MEMORY_KEEP_SHARE * (double)room);
    size_t all = (size_t)(MEMORY_KEPT_SHARE * (double)room);
    size_t left = all > kept ? all - kept : 0;
    return one < left ? one : left;
}

static size_t room_of(size_t memory) {
    return (size_t)(MEMORY_SHARE * (double)memory);
}

static size_t tensors_of(const struct inst *in) {
    size_t sum = 0;
    for (size_t i = 0; i < in->task->ntensors; i++)
        if (tensor_has_memory(&in->task->tensors[i]))
            sum += (in->tensors[i].bytes + 2 * (size_t)PLAN_MAX_ALIGN + GRANULE - 1) / GRANULE *
                   GRANULE;
    return sum;
}

bool memory_need_of(const struct inst *in, size_t memory, struct memory_need *out,
                    struct err *err) {
    struct oracle_need kept, none;
    if (!oracle_need_of(in, MEMORY_THREADS, memory_keep_bytes(room_of(memory), 0), &kept, err) ||
        !oracle_need_of(in, MEMORY_THREADS, 0, &none, err))
        return false;
    *out = (struct memory_need){.tensors = tensors_of(in) + none.own,
                                .kept = kept.own > none.own ? kept.own - none.own : 0,
                                .shared = kept.shared,
                                .remade = none.shared};
    return true;
}

enum keeping { LEVEL_KEPT, LEVEL_REMADE, LEVEL_SAMPLED, LEVELS };

/* Of n contents; as many keep what is expected of them as the judge lets keep it. */
static double bytes_of(const struct memory_need *n, size_t memory, size_t contents,
                       enum keeping level) {
    double room = MEMORY_KEPT_SHARE * (double)room_of(memory), all = (double)contents;
    double keep = level == LEVEL_KEPT && n->kept ? room / (double)n->kept : 0, once = 0;
    keep = keep < all ? (double)(size_t)keep : all;
    if (level == LEVEL_REMADE || (level == LEVEL_KEPT && n->kept && keep < all))
        once = (double)n->remade;
    if (level == LEVEL_KEPT && (double)n->shared > once)
        once = (double)n->shared;
    return all * (double)n->tensors + keep * (double)n->kept + once;
}

struct memory_plan memory_plan_of(const struct memory_need *n, size_t memory, size_t workspaces,
                                  size_t wanted) {
    double usable = USABLE_SHARE * (double)memory - (double)BESIDE_BYTES - (double)workspaces;
    for (enum keeping l = LEVEL_KEPT; l < LEVELS; l++)
        for (size_t c = wanted; c > 0; c--) {
            double bytes = bytes_of(n, memory, c, l);
            if (bytes <= usable)
                return (struct memory_plan){
                    c, l == LEVEL_REMADE, l == LEVEL_SAMPLED,
                    (size_t)(bytes + (double)workspaces + (double)BESIDE_BYTES)};
        }
    return (struct memory_plan){0};
}
