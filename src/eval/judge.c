#include "eval/judge_private.h"

#include "base/say.h"
#include "device/wire.h"

#include <stdio.h>
#include <unistd.h>

static bool answer(const struct judge_ops *j, const struct frame *f, json *out, struct buf *blob,
                   uint32_t *type, struct err *err) {
    switch (f->type) {
    case WIRE_PREPARE:
        *type = WIRE_CASE;
        return j->prepare(j->ctx, f->head, out, err);
    case WIRE_COMPARE:
        *type = WIRE_JUDGED;
        return j->compare(j->ctx, out, err);
    case WIRE_DUMP:
        *type = WIRE_DUMPED;
        return j->dump(j->ctx, out, blob, err);
    case WIRE_PARTS:
        *type = WIRE_JUDGED;
        if (j->parts)
            return j->parts(j->ctx, f, out, err);
        return err_set(err, ERR_ENV, "bad message: parts");
    default:
        return err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
}

static bool serve(const struct judge_ops *j, const struct frame *f, struct err *err) {
    if (f->type == WIRE_TASK)
        return j->task(j->ctx, f, err);
    json *out = json_object();
    struct err why = {0};
    struct buf blob;
    uint32_t type = WIRE_ERROR;
    buf_init(&blob, 256u << 20);
    if (!answer(j, f, out, &blob, &type, &why)) {
        type = WIRE_ERROR;
        json_set_str(out, "why", str_view(why.text));
    }
    str bulk = type == WIRE_DUMPED ? buf_str(&blob) : (str){0};
    bool sent = frame_write(ROLE_FD, type, out, bulk, NULL, 0, err);
    buf_release(&blob);
    json_free(out);
    return sent;
}

int judge_main(const struct device_name *d, unsigned threads) {
    struct judge_ops ops;
    struct err err = {0};
    struct frame f = {0};
    int got = -1;
    bool ok = d->kind == DEVICE_CUDA ? gpu_judge_start(d->ordinal, &ops, &err)
                                     : cpu_judge_start(threads, &ops, &err);
    while (ok && (got = frame_read(ROLE_FD, 0, &f, &err)) > 0) {
        ok = serve(&ops, &f, &err);
        frame_release(&f);
        got = ok ? got : -1;
    }
    if (got < 0)
        complain("cutepilot judge: %s\n", err.text);
    _exit(got < 0 ? 3 : 0); /* without exit handlers, which the sandbox may not allow their work */
}
