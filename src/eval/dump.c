#include "eval/dump.h"

#include "base/file.h"
#include "base/npy.h"
#include "device/wire.h"

#include <stdio.h>
#include <string.h>

struct dump {
    const char *folder; /* of the case */
    const struct inst *inst;
    struct arena *arena;
};

static bool write_tensor(const struct dump *d, size_t tensor, const char *suffix, const void *data,
                         struct err *err) {
    const struct tensor *t = &d->inst->task->tensors[tensor];
    const struct bound_tensor *b = &d->inst->tensors[tensor];
    const struct dtype_info *type = dtype_info(t->dtype);
    struct npy npy = {.item = type->bytes, .rank = t->rank, .data = data, .bytes = b->bytes};
    snprintf(npy.descr, sizeof npy.descr, "%s", type->npy);
    memcpy(npy.shape, b->extent, t->rank * sizeof *npy.shape);
    str path = arena_printf(d->arena, "%s/%.*s%s.npy", d->folder, STR_ARG(t->name), suffix);
    return npy_write(path.p, &npy, err);
}

/* What was written in place has overwritten its input, which is made again. */
static bool write_before(const struct dump *d, size_t tensor, const struct job_case *c,
                         struct err *err) {
    struct data_scale scale;
    if (!data_scale_find(d->inst, c->seed, &scale, err))
        return false;
    void *data = mem_alloc(d->inst->tensors[tensor].bytes);
    data_fill(d->inst, &scale, tensor, c->data, c->seed, 0, d->inst->tensors[tensor].count, data);
    bool ok = write_tensor(d, tensor, "", data, err);
    mem_free(data);
    return ok;
}

static bool write_case(const struct dump *d, const struct job_case *c, str *bytes,
                       struct err *err) {
    const struct task *t = d->inst->task;
    for (size_t i = 0; i < t->ntensors; i++) {
        bool inout = t->tensors[i].role == TENSOR_INOUT;
        size_t size = d->inst->tensors[i].bytes;
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        if (bytes->n < size)
            return err_set(err, ERR_ENV, "bad message: dump");
        if ((inout && !write_before(d, i, c, err)) ||
            !write_tensor(d, i, inout ? ".out" : "", bytes->p, err))
            return false;
        *bytes = str_from(*bytes, size);
    }
    return true;
}

static bool write_facts(const struct dump *d, const struct job_case *c, struct err *err) {
    struct wire_dump facts = {.data = c->data, .seed = c->seed};
    struct buf text;
    facts.set = set_of(d->inst, d->arena, &facts.nset);
    json *j = fields_to_json(&wire_dump_fields, &facts);
    buf_init(&text, 1 << 20);
    json_write_pretty(j, &text);
    bool ok =
        file_replace(arena_printf(d->arena, "%s/case.json", d->folder).p, buf_str(&text), err);
    buf_release(&text);
    json_free(j);
    return ok;
}

bool dump_write(const char *folder, const struct trials *t, const struct frame *f,
                struct err *err) {
    int64_t batch = -1;
    json_get_i64(f->head, "batch", &batch);
    if (batch < 0 || (size_t)batch >= t->nbatches)
        return err_set(err, ERR_ENV, "bad message: dump");
    const struct job_batch *b = &t->batches[batch];
    struct dump d = {.inst = t->shapes[b->shape].inst, .arena = arena_new(64u << 20)};
    str bytes = f->blob;
    size_t number = 0;
    bool ok = true;
    for (int64_t i = 0; i < batch; i++)
        number += t->batches[i].ncases;
    for (size_t i = 0; ok && i < b->ncases; i++) {
        d.folder = arena_printf(d.arena, "%s/%03zu", folder, number + i).p;
        ok = dir_make(d.folder, err) && write_facts(&d, &b->cases[i], err) &&
             write_case(&d, &b->cases[i], &bytes, err);
    }
    arena_free(d.arena);
    return ok;
}
