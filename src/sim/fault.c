/* The sentences for what went wrong: where in the source, which thread, how far from which buffer.
 */
#include "sim/machine.h"

#include <inttypes.h>
#include <stdio.h>

void text_say(struct text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->p + t->n, t->cap - t->n, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->n += (size_t)n < t->cap - t->n ? (size_t)n : t->cap - t->n - 1;
}

struct text fault_begin(struct worker *w, enum sim_status status, unsigned lane) {
    struct sim_fault *f = &w->fault;
    const uint32_t *block = w->la->l->block;
    const struct ptx_instr *src = w->in->src;
    uint32_t t = w->warp->index * SIM_LANES + lane;
    *f = (struct sim_fault){.src_line = src->src_line};
    for (int i = 0; i < 3; i++)
        f->cta[i] = w->cta->id[i];
    f->thread[0] = t % block[0];
    f->thread[1] = t / block[0] % block[1];
    f->thread[2] = t / block[0] / block[1];
    w->status = status;
    w->fault_ordinal = w->gang->ordinal;
    struct text out = {f->text, 0, sizeof f->text};
    if (src->src_line)
        text_say(&out, "%.*s:%u: ", STR_ARG(str_cut(program_file(w->p->module, src), 0, 80)),
                 src->src_line);
    else
        text_say(&out, "PTX line %u: ", src->line);
    text_say(&out, "thread (%u,%u,%u) of block (%u,%u,%u) ", f->thread[0], f->thread[1],
             f->thread[2], f->cta[0], f->cta[1], f->cta[2]);
    return out;
}

static void say_access(struct worker *w, struct text *t, uint64_t address, bool store) {
    w->fault.address = address;
    w->fault.bytes = w->bytes;
    w->fault.store = store;
    text_say(t, "%s %u bytes at ", store ? "writes" : "reads", w->bytes);
}

/* The buffer whose nearest byte is nearest. */
static const struct mapped *nearest(const struct sim_machine *m, uint64_t address) {
    const struct mapped *best = NULL;
    uint64_t distance = UINT64_MAX;
    for (size_t i = 0; i < m->n; i++) {
        const struct mapped *b = &m->maps[i];
        uint64_t far = address < b->base   ? b->base - address
                       : address >= b->end ? address - b->end
                                           : 0;
        if (far < distance) {
            best = b;
            distance = far;
        }
    }
    return distance < UINT64_C(1) << 40 ? best : NULL;
}

static void say_place(struct text *t, const struct mapped *b, uint64_t address) {
    if (address >= b->base)
        text_say(t, "%.*s + %" PRIu64, STR_ARG(str_cut(b->b.name, 0, 60)), address - b->base);
    else
        text_say(t, "%.*s - %" PRIu64, STR_ARG(str_cut(b->b.name, 0, 60)), b->base - address);
}

bool fault_bounds(struct worker *w, unsigned lane, uint64_t address, bool store) {
    struct text t = fault_begin(w, SIM_OUT_OF_BOUNDS, lane);
    say_access(w, &t, address, store);
    const struct mapped *b = address < 1u << 20 ? NULL : nearest(w->la->m, address);
    if (address < 1u << 20) {
        text_say(&t, "address %#" PRIx64 ": a null pointer%s", address,
                 address ? " with an offset" : "");
    } else if (address - w->la->m->windows < WINDOWS_BYTES) {
        text_say(&t, "%#" PRIx64 ", which is not global memory", address);
    } else if (!b) {
        text_say(&t, "%#" PRIx64 ", where no buffer is", address);
    } else {
        say_place(&t, b, address);
        str name = str_cut(b->b.name, 0, 60);
        if (address >= b->end)
            text_say(&t, ", %" PRIu64 " bytes past the end of %.*s", address - b->end,
                     STR_ARG(name));
        else if (address >= b->base)
            text_say(&t, ", reaching %" PRIu64 " bytes past the end of %.*s",
                     address + w->bytes - b->end, STR_ARG(name));
        else
            text_say(&t, ", %" PRIu64 " bytes before the start of %.*s", b->base - address,
                     STR_ARG(name));
        text_say(&t, " (%zu bytes)", b->b.size);
    }
    return false;
}

void fault_place(const struct worker *w, struct text *t, uint64_t address) {
    const struct mapped *b = nearest(w->la->m, address);
    if (b && address >= b->base)
        say_place(t, b, address);
    else if (address - w->la->m->windows < WINDOW_BYTES)
        text_say(t, "shared memory + %" PRIu64, address - w->la->m->windows);
    else
        text_say(t, "%#" PRIx64, address);
}

bool fault_aligned(struct worker *w, unsigned lane, uint64_t address, uint32_t align, bool store) {
    struct text t = fault_begin(w, SIM_MISALIGNED, lane);
    say_access(w, &t, address, store);
    fault_place(w, &t, address);
    text_say(&t,
             ", which is not a multiple of %u; vector accesses must be aligned to their whole size",
             align);
    return false;
}

bool fault_read_only(struct worker *w, unsigned lane, uint64_t address, str what) {
    struct text t = fault_begin(w, SIM_WROTE_INPUT, lane);
    say_access(w, &t, address, true);
    const struct mapped *b = nearest(w->la->m, address);
    if (what.n) {
        text_say(&t, "%#" PRIx64 ", in %.*s, which a kernel may not change", address,
                 STR_ARG(what));
    } else if (b) {
        say_place(&t, b, address);
        text_say(&t, ", but %.*s %s and may not be changed", STR_ARG(str_cut(b->b.name, 0, 60)),
                 b->b.prepared ? "was prepared by steps that are done once" : "is an input");
    }
    return false;
}

bool fault_window(struct worker *w, unsigned lane, uint64_t at, size_t size, const char *what,
                  bool store) {
    struct text t = fault_begin(w, SIM_OUT_OF_BOUNDS, lane);
    say_access(w, &t, at, store);
    text_say(&t, "%s + %" PRIi64 ", outside its %zu bytes", what, (int64_t)at, size);
    return false;
}

bool fault_plain(struct worker *w, enum sim_status status, unsigned lane, const char *what) {
    struct text t = fault_begin(w, status, lane);
    text_say(&t, "%s", what);
    return false;
}
