/* A package for C: one header and one source file. Each kernel's plan becomes three functions
 * (which sizes it admits, how much workspace it needs, its launches in order) in
 * assets/export/c/source.c. */
#include "export/export_private.h"
#include <inttypes.h>

#define TEXT_MOST (64u << 20)

/* ---- a kernel ---- */

static str cubin_bytes(struct plan_writer *w) {
    struct buf b;
    buf_init(&b, TEXT_MOST);
    for (size_t i = 0; i < w->k->cubin.n; i++)
        buf_printf(&b, "%s%d,%s", i % 24 ? "" : "    ", (unsigned char)w->k->cubin.p[i],
                   i % 24 == 23 || i + 1 == w->k->cubin.n ? "\n" : "");
    str s = kept(w->mem, &b);
    buf_release(&b);
    return s;
}

/* "sm_90a": 9, 0 and that it is of this architecture alone. */
static void put_arch(struct plan_writer *w) {
    str digits = str_from(w->k->arch, 3);
    bool exact = digits.n && (digits.p[digits.n - 1] < '0' || digits.p[digits.n - 1] > '9');
    int64_t version = 0;
    if (exact)
        digits.n--;
    str_to_i64(digits, &version);
    slots_number(w->slots, "major", version / 10);
    slots_number(w->slots, "minor", version % 10);
    slots_number(w->slots, "exact", exact);
}

static str own_dims(const struct export_kernel *k, struct arena *mem) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < k->task->ndims; i++)
        if (!k->task->dims[i].derived)
            put_item(&b, arena_printf(mem, "%" PRId64, k->inst->dims[i]));
    if (b.n == 0)
        put_item(&b, S("0"));
    str s = kept(mem, &b);
    buf_release(&b);
    return s;
}

static size_t put_functions(struct plan_writer *w, struct slots *library) {
    size_t n = 0;
    for (size_t i = 0; i < w->c->nlaunches; i++)
        if (plan_function(w->c, w->c->launches[i].kernel) == n) {
            slots_put(slots_row(library, "functions"), "function", w->c->launches[i].kernel);
            n++;
        }
    return n;
}

static bool put_kernel(struct plan_writer *w, size_t number, struct slots *library,
                       size_t *functions, struct err *err) {
    w->slots = slots_row(library, "kernels");
    w->first = *functions;
    if (!put_plan_rows(w, err))
        return false;
    slots_number(w->slots, "number", (int64_t)number);
    slots_put(
        w->slots, "about",
        comment_text(arena_printf(w->mem, "made for %.*s; %.*s",
                                  STR_ARG(inst_label(w->k->inst, w->mem)), STR_ARG(w->k->time)),
                     w->mem));
    slots_put(w->slots, "own", own_dims(w->k, w->mem));
    put_arch(w);
    slots_number(w->slots, "first", (int64_t)w->first);
    size_t n = put_functions(w, library);
    slots_number(w->slots, "functions", (int64_t)n);
    *functions += n;
    slots_put(w->slots, "bytes_of_cubin", cubin_bytes(w));
    return true;
}

/* ---- the interface ---- */

static str tensor_words(struct plan_writer *w, const struct tensor *t) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < t->rank; i++)
        put_item(&b, str_cut(w->c->task->text, t->extent[i]->at, t->extent[i]->len));
    str role = t->role == TENSOR_OUT     ? S("written")
               : t->role == TENSOR_INOUT ? S("read and written")
                                         : S("read");
    uint32_t align = w->c->align[t - w->c->task->tensors];
    str s = arena_printf(w->mem, "%s, [%.*s], %.*s", dtype_info(t->dtype)->name,
                         STR_ARG(buf_str(&b)), STR_ARG(role));
    if (align > PLAN_ALIGN)
        s = arena_printf(w->mem, "%.*s; aligned to %u bytes", STR_ARG(s), align);
    buf_release(&b);
    return comment_text(s, w->mem);
}

static void put_interface(struct plan_writer *w, struct slots *s) {
    const struct task *t = w->c->task;
    struct buf dims, tensors;
    buf_init(&dims, TEXT_MOST);
    buf_init(&tensors, TEXT_MOST);
    slots_list(s, "dims");
    slots_list(s, "tensors");
    for (size_t i = 0; i < t->ndims; i++) {
        if (t->dims[i].derived)
            continue;
        str name = member_name(t->dims[i].name, w->mem);
        slots_put(slots_row(s, "dims"), "dim", name);
        put_item(&dims,
                 arena_printf(w->mem, ".%.*s = %" PRId64, STR_ARG(name), w->k->inst->dims[i]));
    }
    for (size_t i = 0; i < t->ntensors; i++) {
        if (!tensor_has_memory(&t->tensors[i]))
            continue;
        struct slots *row = slots_row(s, "tensors");
        str name = member_name(t->tensors[i].name, w->mem);
        slots_put(row, "tensor", name);
        slots_put(row, "const", tensor_is_output(&t->tensors[i]) ? S("") : S("const "));
        slots_put(row, "what", tensor_words(w, &t->tensors[i]));
        put_item(&tensors, arena_printf(w->mem, ".%.*s = …", STR_ARG(name)));
    }
    slots_put(s, "example_dims", kept(w->mem, &dims));
    slots_put(s, "example_tensors", kept(w->mem, &tensors));
    slots_number(s, "align", PLAN_ALIGN);
    buf_release(&dims);
    buf_release(&tensors);
}

static str upper(str name, struct arena *mem) {
    char *s = arena_cstr(mem, name);
    for (char *p = s; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return str_view(s);
}

bool export_c(const struct export_package *p, struct err *err) {
    struct slots header, source;
    size_t functions = 0;
    bool maps = false, memsets = false;
    slots_init(&source, p->mem);
    slots_list(&source, "kernels");
    slots_list(&source, "functions");
    struct plan_writer w = {.language = EXPORT_C, .mem = p->mem};
    for (size_t i = 0; i < p->n; i++) {
        w.k = &p->kernels[i];
        w.c = w.k->candidate;
        if (!put_kernel(&w, i, &source, &functions, err))
            return false;
        maps |= w.c->nmaps > 0;
        memsets |= w.c->nmemsets > 0;
    }
    slots_flag(&source, "maps", maps);
    slots_flag(&source, "memsets", memsets);
    slots_put(&source, "name", p->name);
    slots_put(&source, "title", comment_text(p->kernels[0].task->title, p->mem));
    slots_put(&source, "origin", package_origin(p, " * "));
    slots_init(&header, p->mem);
    w.k = &p->kernels[0];
    w.c = w.k->candidate;
    put_interface(&w, &header);
    slots_put(&header, "name", p->name);
    slots_put(&header, "guard", upper(p->name, p->mem));
    slots_put(&header, "title", slots_get(&source, "title"));
    slots_put(&header, "origin", slots_get(&source, "origin"));
    slots_number(&header, "nkernels", (int64_t)p->n);
    slots_number(&header, "nfunctions", (int64_t)functions);
    str h = arena_printf(p->mem, "%.*s.h", STR_ARG(p->name)),
        c = arena_printf(p->mem, "%.*s.c", STR_ARG(p->name));
    return package_begin(p, err) &&
           ((package_template(p, h.p, "export/c/header.h", &header, err) &&
             package_template(p, c.p, "export/c/source.c", &source, err)) ||
            package_undo(p));
}
