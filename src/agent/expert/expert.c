/* The expert: the roles answered from rules and code generators, at once and from inside the call.
 * A task is brought into normal form and cut into steps, each of which one family of kernels
 * writes; docs/EXPERT.md says what a new family needs. */
#include "agent/expert/expert.h"
#include "agent/expert/form/partition.h"
#include "agent/expert/plan/openings.h"

#define FORM_MAX     (64u << 20)
#define OPENINGS_MAX (16u << 20)

/* ---- families ---- */

static const struct family *const families[] = {
#define FAMILY(name) &family_##name,
#include "agent/expert/families.def"
#undef FAMILY
};

const struct family *const *expert_families(size_t *n) {
    *n = sizeof families / sizeof *families;
    return families;
}

struct partition *expert_steps(const struct briefing *b, struct arena *a, struct err *err) {
    struct partition *p = arena_new_of(a, struct partition);
    size_t n = sizeof families / sizeof *families;
    return partition_make(b, families, n, a, p, err) ? p : NULL;
}

_Static_assert((int)PARTITION_STEPS <= (int)STRATEGY_MAX_STEPS, "each step has a number");

bool expert_workloads(const struct briefing *b, struct ground *out, struct err *err) {
    struct arena *a = arena_new(FORM_MAX);
    const struct partition *p = expert_steps(b, a, err);
    for (size_t i = 0; p && i < p->n; i++) {
        out->workload[p->family[i]->workload] = true;
        out->step[i] = p->family[i]->workload;
    }
    out->nsteps = p ? p->n : 0;
    arena_free(a);
    return p != NULL;
}

/* ---- roles ---- */

struct expert {
    const char *assets; /* NULL: the embedded ones */
    struct opening_book openings;
    struct arena *mem;
};

static void expert_plan(void *self, const struct briefing *b, size_t n, struct rng r,
                        agent_plan_fn *done, void *ctx) {
    const struct expert *x = self;
    struct strategy *list = mem_alloc((n ? n : 1) * sizeof *list);
    struct buf reason;
    buf_init(&reason, 4096);
    size_t found = planner_plan(&x->openings, b, n, r, list, &reason);
    done(ctx, list, found, buf_str(&reason), NULL);
    buf_release(&reason);
    mem_free(list);
}

static void expert_cross(void *self, const struct briefing *b, const struct parent *x,
                         const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx) {
    (void)self;
    struct strategy child;
    struct buf reason;
    buf_init(&reason, 4096);
    planner_cross(b, x, y, r, &child, &reason);
    done(ctx, &child, 1, buf_str(&reason), NULL);
    buf_release(&reason);
}

/* Who wrote what, where the family has not said it itself. */
static void note_step(struct sheet *sh, const struct step *st, bool cute) {
    const struct task *t = st->inst->task;
    str names = S("");
    for (size_t i = 0; i < t->ntensors; i++)
        if (tensor_is_output(&t->tensors[i]))
            names = sheet_join(sh, names, ", ", t->tensors[i].name);
    sheet_note(sh, "%s: %.*s%s", st->family, STR_ARG(names), cute ? ", in CuTe" : "");
}

static bool write_steps(struct sheet *sh, const struct partition *p) {
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        if (p->stored[i] != SIZE_MAX)
            sheet_store(sh, i, p->stored[i]);
    for (size_t i = 0; i < p->n; i++) {
        size_t noted = sh->note.n;
        bool ok = sheet_begin_step(sh, p->family[i]->name) && p->family[i]->write(sh, &p->steps[i]);
        if (sh->note.n == noted)
            note_step(sh, &p->steps[i], p->family[i]->cute && sheet_is_cute(sh));
        sheet_end_step(sh);
        if (sheet_is_cute(sh) && !p->family[i]->cute)
            sheet_note(sh, "  in CUDA: %s has no writer of CuTe.", p->family[i]->name);
        BUG_IF(!ok && !sheet_failed(sh));
        if (sheet_failed(sh))
            return err_wrap(sh->err, "step %zu, %s", i + 1, p->family[i]->name);
    }
    return true;
}

/* Once more where there are more workspaces than a plan may have. */
static bool write_file(struct sheet *sh, const struct partition *p, struct buf *out,
                       struct strategy *written) {
    struct sheet again, *last = sh;
    bool ok = write_steps(sh, p);
    if (ok && sheet_is_crowded(sh)) {
        sheet_init(&again, sh->briefing, sh->strategy, sh->assets, sh->err);
        again.before = sh;
        last = &again;
        ok = write_steps(last, p);
    }
    ok = ok && sheet_finish(last, out);
    sheet_written(last, written);
    if (last != sh)
        sheet_release(last);
    return ok;
}

static bool write_kernels(const char *assets, const struct briefing *b, const struct strategy *s,
                          struct buf *out, struct strategy *written, struct err *err) {
    struct arena *a = arena_new(FORM_MAX);
    const struct partition *p = expert_steps(b, a, err);
    bool ok = p != NULL;
    if (ok) {
        struct sheet sh;
        sheet_init(&sh, b, s, assets, err);
        ok = write_file(&sh, p, out, written);
        sheet_release(&sh);
    }
    arena_free(a);
    return ok || err_wrap(err, "task %.*s", STR_ARG(b->inst->task->name));
}

static void expert_code(void *self, const struct briefing *b, const struct strategy *s,
                        agent_code_fn *done, void *ctx) {
    const struct expert *x = self;
    struct buf source;
    struct err err = {0};
    buf_init(&source, EXPERT_SOURCE_MAX);
    struct strategy written;
    bool ok = write_kernels(x->assets, b, s, &source, &written, &err);
    done(ctx, buf_str(&source), &written, ok ? NULL : &err);
    buf_release(&source);
}

static void say_written(const struct catalogue *c, const struct strategy *asked,
                        const struct strategy *written, struct buf *reason) {
    for (size_t i = 0; i < c->n; i++)
        if (written->value[i] != asked->value[i])
            buf_printf(reason, "%s%.*s=%lld, not %lld", reason->n ? ", " : "",
                       STR_ARG(c->decisions[i].name), (long long)written->value[i],
                       (long long)asked->value[i]);
    for (size_t i = 0; i < asked->nown; i++) {
        const struct own_value *o = &asked->own[i];
        int64_t became = strategy_value_in(written, o->step, o->decision);
        if (became != o->value)
            buf_printf(reason, "%s%u:%.*s=%lld, not %d", reason->n ? ", " : "", o->step,
                       STR_ARG(c->decisions[o->decision].name), (long long)became, o->value);
    }
    if (reason->n)
        buf_puts(reason, S(": shape and hardware decide"));
}

/* The writer knows best what it made of the strategy; what the compiler made of that, and decisions
 * that no writer settles, the code shows. */
static void expert_align(void *self, const struct briefing *b, const struct strategy *s,
                         const struct strategy *written, const struct record *record,
                         agent_plan_fn *done, void *ctx) {
    (void)self;
    struct strategy aligned;
    struct buf reason;
    buf_init(&reason, 4096);
    say_written(b->catalogue, s, written, &reason);
    aligner_align(b, written, record, &aligned, &reason);
    done(ctx, &aligned, 1, buf_str(&reason), NULL);
    buf_release(&reason);
}

static void expert_free(void *self) {
    struct expert *x = self;
    arena_free(x->mem);
    mem_free(x);
}

bool expert_new(const char *assets, struct agent *out, struct err *err) {
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (families[i]->check && !families[i]->check(err))
            return false;
    struct expert *x = mem_alloc(sizeof *x);
    x->mem = arena_new(OPENINGS_MAX);
    x->assets = assets ? arena_cstr(x->mem, str_view(assets)) : NULL;
    if (!openings_load(assets, x->mem, &x->openings, err)) {
        expert_free(x);
        return false;
    }
    *out = (struct agent){.name = "expert",
                          .self = x,
                          .plan = expert_plan,
                          .cross = expert_cross,
                          .code = expert_code,
                          .align = expert_align,
                          .release = expert_free};
    return true;
}
