#include "eval/judge_private.h"

#include "base/say.h"

#include <stdio.h>
#include <unistd.h>

/* Each of these reads the message, has it answered and sends the answer; false: not answered. */

static bool serve_prepare(const struct judge_ops *j, const struct frame *f, struct arena *a,
                          struct err *err) {
    struct wire_prepare m;
    struct wire_cases out = {0};
    return wire_read(&wire_prepare_fields, f->head, a, &m, err) &&
           j->prepare(j->ctx, &m, a, &out, err) &&
           wire_write(ROLE_FD, WIRE_CASE, &wire_cases_fields, &out, (str){0}, err);
}

static bool serve_ruling(const struct judge_ops *j, const struct frame *f, struct arena *a,
                         struct err *err) {
    struct wire_parts m;
    struct ruling r;
    bool parts = f->type == WIRE_PARTS;
    ruling_init(&r, a);
    if (parts && !j->parts)
        return err_set(err, ERR_ENV, "bad message: parts");
    if (parts ? !wire_read(&wire_parts_fields, f->head, a, &m, err) ||
                    !j->parts(j->ctx, &m, f->blob, &r, err)
              : !j->compare(j->ctx, &r, err))
        return false;
    ruling_end(&r);
    return wire_write(ROLE_FD, WIRE_JUDGED, &wire_judged_fields, &r.say, (str){0}, err);
}

static bool serve_dump(const struct judge_ops *j, struct err *err) {
    struct buf blob;
    buf_init(&blob, 256u << 20);
    bool ok = j->dump(j->ctx, &blob, err) &&
              (!blob.failed || err_set(err, ERR_ENV, "a batch too large to dump")) &&
              frame_write(ROLE_FD, WIRE_DUMPED, NULL, buf_str(&blob), NULL, 0, err);
    buf_release(&blob);
    return ok;
}

static bool answer(const struct judge_ops *j, const struct frame *f, struct arena *a,
                   struct err *err) {
    switch (f->type) {
    case WIRE_PREPARE:
        return serve_prepare(j, f, a, err);
    case WIRE_COMPARE:
    case WIRE_PARTS:
        return serve_ruling(j, f, a, err);
    case WIRE_DUMP:
        return serve_dump(j, err);
    default:
        return err_set(err, ERR_ENV, "unexpected message %u", f->type);
    }
}

static bool complain_up(const struct err *why, struct err *err) {
    json *head = json_object();
    json_set_str(head, "why", str_view(why->text));
    bool sent = frame_write(ROLE_FD, WIRE_ERROR, head, (str){0}, NULL, 0, err);
    json_free(head);
    return sent;
}

static bool serve(const struct judge_ops *j, const struct frame *f, struct err *err) {
    struct arena *a = arena_new(256u << 20);
    struct wire_task task;
    struct err why = {0};
    bool ok = f->type == WIRE_TASK ? wire_read(&wire_task_fields, f->head, a, &task, err) &&
                                         j->task(j->ctx, &task, f->blob, err)
                                   : answer(j, f, a, &why) || complain_up(&why, err);
    arena_free(a);
    return ok;
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
