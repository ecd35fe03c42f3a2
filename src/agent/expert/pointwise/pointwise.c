/* The pointwise family: maps over one index space, near the memory's limit.
 *
 * The model says what there is to compute (pointwise_model.c), the functions hold its mathematics
 * (pointwise_function.c), the kernel moves the data (pointwise_kernel.c, pointwise_vector.c); here
 * they get their launch and their note. Text that does not depend on the task is in assets/expert/.
 *
 * Decisions, for the planner: memory-bound: vector-width 16 bytes' worth (8 for f16), items 2
 * (4 next), block 256, cache-hint 0; compute-bound: items 1; latency-bound (small tensors): width 2
 * or 1, items 1, block 128 or 64. fast-math 1 where special functions are a large share. */
#include "agent/expert/pointwise/pointwise.h"

#define ACCESS_BYTES 16

/* ---- strategy ---- */

static bool read_strategy(struct pw *p) {
    struct sheet *sh = p->sh;
    p->block = sheet_decision(sh, "block", 256);
    p->items = sheet_decision(sh, "items", 1);
    p->width = sheet_decision(sh, "vector-width", 1);
    p->persistent = sheet_decision(sh, "persistent", 0) != 0;
    p->hint = sheet_decision(sh, "cache-hint", 0) != 0;
    p->cute = sheet_is_cute(sh);
    p->naive = p->items == 1 && p->width == 1 && !p->persistent && !p->cute;
    int most = sh->briefing->gpu->max_threads_block;
    if (p->block < 1 || p->block > most || p->items < 1 || p->items > 64)
        return err_set(sh->err, ERR_INPUT, "block must be 1 to %d and items 1 to 64", most);
    if (p->width < 1 || p->width > 16 || (p->width & (p->width - 1)))
        return err_set(sh->err, ERR_INPUT, "vector-width must be a power of two up to 16");
    return true;
}

static str width_note(struct pw *p) {
    enum dtype t = sheet_dtype(p->sh, p->st, p->outputs[0].s->tensor);
    size_t bytes = (size_t)p->width * dtype_info(t)->bytes;
    if (p->width == 1)
        return S("one element an access");
    if (bytes <= ACCESS_BYTES)
        return sheet_printf(p->sh, "%zu bytes of %s in one access", bytes, dtype_info(t)->name);
    return sheet_printf(p->sh, "%zu bytes of %s in %zu accesses of %d", bytes, dtype_info(t)->name,
                        bytes / ACCESS_BYTES, ACCESS_BYTES);
}

static void put_note(struct pw *p) {
    struct sheet *sh = p->sh;
    const struct used all[] = {{"block", p->block},
                               {"items", p->items},
                               {"vector-width", p->width},
                               {"persistent", p->persistent}};
    str width = width_note(p);
    sheet_note(sh, "pointwise: %.*s%s: %lld threads a block, %.*s,", STR_ARG(p->k.name),
               p->cute ? ", in CuTe" : "", (long long)p->block, STR_ARG(width));
    sheet_note(sh, "  %lld vector%s a thread%s, %s, %s.", (long long)p->items,
               p->items == 1 ? "" : "s",
               p->items == 1 ? "" : ", all of them loaded before the first is used",
               p->persistent ? "a resident grid that strides over the tiles" : "one block a tile",
               p->hint ? "streaming loads and stores" : "ordinary loads and stores");
    sheet_used(sh, all, sizeof all / sizeof *all);
}

/* ---- names ---- */

static str constant(struct pw *p, const char *base, int64_t value, const char *what) {
    str name, key = sheet_printf(p->sh, "%s=%lld", base, (long long)value);
    if (sheet_once(p->sh, key, base, &name))
        buf_printf(&p->sh->functions, "static constexpr int %.*s = %lld;%s\n", STR_ARG(name),
                   (long long)value, what);
    return name;
}

static void put_constants(struct pw *p) {
    if (p->naive)
        return;
    p->block_name = constant(p, "kBlock", p->block, " // threads");
    p->width_name = constant(p, "kWidth", p->width, " // elements in a vector");
    p->items_name = constant(p, "kItems", p->items, " // vectors a thread");
    p->tile_name = constant(p, "kTile", p->block * p->width * p->items, " // elements of a block");
    buf_putc(&p->sh->functions, '\n');
}

static void choose_names(struct pw *p) {
    const struct task *t = p->st->inst->task;
    p->item = scope_name(&p->k, "k");
    p->v = scope_name(&p->k, "v");
    p->tile = scope_name(&p->k, "tile");
    p->end = scope_name(&p->k, "end");
    p->total = scope_int_plan(&p->k, "total", scope_plan_elements(&p->k));
    for (size_t i = 0; i < p->nreads; i++) {
        str name = t->tensors[p->reads[i].e->ref].name;
        p->reads[i].vector = scope_name(&p->k, sheet_printf(p->sh, "%.*s_v", STR_ARG(name)).p);
    }
    for (size_t i = 0; i < p->noutputs; i++) {
        str name = t->tensors[p->outputs[i].s->tensor].name;
        p->outputs[i].vector = scope_name(&p->k, sheet_printf(p->sh, "%.*s_v", STR_ARG(name)).p);
    }
}

/* ---- the step ---- */

static int64_t resident_blocks(const struct pw *p) {
    const struct gpu *gpu = p->sh->briefing->gpu;
    int64_t fit = gpu->max_threads_sm / p->block;
    fit = fit > gpu->max_blocks_sm ? gpu->max_blocks_sm : fit < 1 ? 1 : fit;
    return fit * gpu->sms;
}

static void put_launch(struct pw *p) {
    struct sheet *sh = p->sh;
    str count = scope_plan_elements(&p->k), args = scope_args(&p->k);
    str grid = sheet_printf(sh, "ceil_div(%.*s, %lld)", STR_ARG(count),
                            (long long)(p->block * p->items * p->width));
    if (p->persistent)
        grid = sheet_printf(sh, "min(%.*s, %lld)", STR_ARG(grid), (long long)resident_blocks(p));
    sheet_step(sh, "launch %.*s<<<%.*s, %lld>>>(%.*s)", STR_ARG(p->k.name), STR_ARG(grid),
               (long long)p->block, STR_ARG(args));
}

/* The kernel's scope, after those of its functions. */
static bool begin_kernel(struct pw *p) {
    str first = p->st->inst->task->tensors[p->outputs[0].s->tensor].name;
    str name = sheet_printf(p->sh, "%.*s_kernel", STR_ARG(first));
    if (!scope_init(&p->k, p->sh, p->st, name.p))
        return false;
    p->k.statement = p->space;
    p->e = scope_name(&p->k, "e");
    return true;
}

static bool write_tiles(struct pw *p) {
    if (!pw_write_functions(p) || !begin_kernel(p))
        return false;
    put_constants(p);
    choose_names(p);
    if (p->cute)
        sheet_include(p->sh, "cute/tensor.hpp");
    if (!pw_write_kernel(p))
        return false;
    buf_puts(&p->sh->functions, buf_str(&p->functions));
    put_launch(p);
    put_note(p);
    return !sheet_failed(p->sh);
}

static bool write_step(struct pw *p) {
    struct pin pin;
    pw_build(p);
    if (!read_strategy(p))
        return false;
    if (pw_find_pin(p, &pin))
        return begin_kernel(p) && pw_write_pinned(p, &pin);
    return write_tiles(p);
}

static bool pointwise_write(struct sheet *sh, const struct step *st) {
    struct pw *p = mem_alloc(sizeof *p);
    p->sh = sh;
    p->st = st;
    buf_init(&p->functions, 512u << 10);
    bool ok = write_step(p);
    buf_release(&p->functions);
    mem_free(p);
    return ok;
}

const struct family family_pointwise = {
    .name = "pointwise",
    .workload = WORKLOAD_POINTWISE,
    .cute = true,
    .claim = pw_claim,
    .write = pointwise_write,
};
