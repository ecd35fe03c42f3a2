/* `cutepilot profile-run DIR ORDINAL`: a plan, once, on stated inputs, for ncu to look at. Not
 * confined (ui/ncu.h says why), not judged. Every kernel of the process is the candidate's: inputs
 * are copied, memory is set by the driver. */
#include "ui/ncu.h"

#include "base/file.h"
#include "base/say.h"
#include "device/cuda_plan.h"
#include "device/wire.h"
#include "spec/data.h"

#include <stdio.h>
#include <string.h>

enum {
    FILE_BYTES = 64 << 20,
    PIECE = 1 << 22, /* elements of a tensor that are made; longer ones repeat them */
    SEED = 1,
};

struct runner {
    struct arena *a;
    struct inst *inst;
    struct bound_plan plan;
    str cubin;
    struct cuda cuda;
    struct cuda_memory memory;
};

static bool read_json(const char *dir, const char *name, const struct fields *of, struct arena *a,
                      void *out, struct err *err) {
    str text;
    if (!file_read(arena_printf(a, "%s/%s", dir, name).p, FILE_BYTES, a, &text, err))
        return false;
    json *j = json_parse(text, err);
    bool ok = j && fields_from_json(of, j, a, out, err);
    json_free(j);
    return ok || err_wrap(err, "%s", name);
}

static bool read_folder(struct runner *r, const char *dir, struct err *err) {
    struct wire_shape shape;
    struct task *task;
    return task_load(arena_printf(r->a, "%s/task.task", dir).p, r->a, &task, err) &&
           read_json(dir, "set.json", &wire_shape_fields, r->a, &shape, err) &&
           task_bind(task, shape.set, shape.nset, r->a, &r->inst, err) &&
           read_json(dir, "plan.json", &bound_plan_fields, r->a, &r->plan, err) &&
           plan_check(&r->plan, err) &&
           file_read(arena_printf(r->a, "%s/kernel.cubin", dir).p, FILE_BYTES, r->a, &r->cubin,
                     err);
}

/* The first piece from the generator, then the tensor doubles itself. */
static bool fill_input(struct runner *r, size_t tensor, struct err *err) {
    const struct bound_tensor *t = &r->inst->tensors[tensor];
    const struct cuda *c = &r->cuda;
    int64_t count = t->count < PIECE ? t->count : PIECE;
    size_t have = (size_t)count * dtype_info(r->inst->task->tensors[tensor].dtype)->bytes;
    cu_address at = r->memory.tensors[tensor].at;
    void *data = mem_alloc(have + 1);
    data_fill(r->inst, NULL, tensor, DATA_STATED, SEED, 0, count, data);
    bool ok = cuda_try(c, c->copy_to_device(at, data, have, c->stream), err, "copy an input");
    for (; ok && have < t->bytes; have *= 2) {
        size_t some = t->bytes - have < have ? t->bytes - have : have;
        ok = cuda_try(c, c->copy_on_device(at + have, at, some, c->stream), err, "repeat an input");
    }
    ok = ok && cuda_try(c, c->stream_sync(c->stream), err, "copy an input");
    mem_free(data);
    return ok;
}

/* cuMemAlloc aligns to 256 bytes, the most a plan may ask for. */
static bool span_new(struct runner *r, size_t bytes, struct cuda_span *out, struct err *err) {
    out->bytes = bytes;
    return cuda_try(&r->cuda, r->cuda.memory_alloc(&out->at, bytes ? bytes : 1), err,
                    "allocate memory");
}

static bool make_memory(struct runner *r, struct err *err) {
    const struct task *t = r->inst->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        if (!span_new(r, r->inst->tensors[i].bytes, &r->memory.tensors[i], err) ||
            (tensor_is_input(&t->tensors[i]) && !fill_input(r, i, err)))
            return err_wrap(err, "%.*s", STR_ARG(t->tensors[i].name));
    }
    for (size_t i = 0; i < r->plan.nworkspaces; i++)
        if (!span_new(r, r->plan.workspaces[i].bytes, &r->memory.workspaces[i], err))
            return false;
    return true;
}

/* Patterns of 8 bytes are set by a kernel of ours elsewhere, which must not be counted here. */
static bool can_profile(const struct bound_plan *p, struct err *err) {
    for (size_t i = 0; i < p->nmemsets; i++)
        if (p->memsets[i].size == 8)
            return err_set(err, ERR_INPUT, "a memset of 8-byte elements cannot be profiled");
    return true;
}

static bool launch(struct runner *r, struct err *err) {
    const struct cuda *c = &r->cuda;
    const struct harness none = {0};
    struct ready_plan ready;
    enum verdict verdict = VERDICT_ACCEPTED;
    cu_module module;
    size_t at = 0;
    if (!cuda_try(c, cuda_module_load(c, r->cubin, &module), err, "load the kernel") ||
        !ready_plan_make(c, module, &r->plan, &r->memory, r->a, &ready, &verdict, err))
        return false;
    return cuda_try(c, ready_plan_queue(c, &none, &ready, 0, ready.nsteps, true, &at), err,
                    "run the kernel");
}

int profile_run_main(int argc, char **argv) {
    struct runner r = {.a = arena_new(512u << 20)};
    struct err err = {0};
    int64_t ordinal = 0;
    bool ok = argc == 2 && str_to_i64(str_view(argv[1]), &ordinal);
    if (!ok)
        err_set(&err, ERR_INPUT, "expected DIR ORDINAL");
    ok = ok && read_folder(&r, argv[0], &err) && can_profile(&r.plan, &err) &&
         cuda_open(&r.cuda, (int)ordinal, &err) && make_memory(&r, &err) && launch(&r, &err);
    if (!ok)
        complain("profile-run: %s\n", err.text);
    arena_free(r.a);
    return ok ? 0 : (int)err.kind;
}
