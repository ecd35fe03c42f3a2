/* A package for C: one header and one source file. Each kernel's plan becomes three functions
 * (which sizes it admits, how much workspace it needs, its launches in order) in
 * assets/export/c/operation.c; assets/export/c/driver.c is what stands before them. */
#include "export/export_private.h"
#include <inttypes.h>

#define TEXT_MOST (64u << 20)

/* ---- types ---- */

str upper_case(str name, struct arena *mem) {
    char *s = arena_cstr(mem, name);
    for (char *p = s; *p; p++)
        if (*p >= 'a' && *p <= 'z')
            *p = (char)(*p - 'a' + 'A');
    return str_view(s);
}

/* Whether the kernels differ in a tensor's type. */
static bool type_varies(const struct export_package *p, size_t tensor) {
    bool varies = false;
    for (size_t i = 1; i < p->n; i++)
        varies |=
            p->kernels[i].task->tensors[tensor].dtype != p->kernels[0].task->tensors[tensor].dtype;
    return varies && tensor_has_memory(&p->kernels[0].task->tensors[tensor]);
}

/* What tells a kernel's types from the others': "F32", or "BF16_F32" where tensors that vary do not
 * all have one type. Empty: there is nothing to tell. */
static str types_name(const struct export_package *p, size_t kernel) {
    const struct task *t = p->kernels[kernel].task;
    const char *names[TASK_MAX_TENSORS];
    size_t n = 0, like_first = 0;
    struct buf b;
    for (size_t i = 0; i < t->ntensors; i++)
        if (type_varies(p, i))
            names[n++] = dtype_info(t->tensors[i].dtype)->name;
    for (size_t i = 0; i < n; i++)
        like_first += names[i] == names[0];
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < (like_first == n ? n > 0 : n); i++)
        buf_printf(&b, "%s%s", i ? "_" : "", names[i]);
    str s = upper_case(kept(p->mem, &b), p->mem);
    buf_release(&b);
    return s;
}

/* The first kernel with the same types. */
static size_t types_first(const struct export_package *p, size_t kernel) {
    size_t i = 0;
    while (!str_eq(types_name(p, i), types_name(p, kernel)))
        i++;
    return i;
}

/* The number of a kernel's types among those of the package. */
static int64_t types_number(const struct export_package *p, size_t kernel) {
    int64_t n = 0;
    for (size_t i = 0; i < types_first(p, kernel); i++)
        n += types_first(p, i) == i;
    return n;
}

/* "x f32, y f32": those that vary. */
static str types_words(const struct export_package *p, size_t kernel) {
    const struct task *t = p->kernels[kernel].task;
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < t->ntensors; i++)
        if (type_varies(p, i))
            put_item(&b, arena_printf(p->mem, "%.*s %s", STR_ARG(t->tensors[i].name),
                                      dtype_info(t->tensors[i].dtype)->name));
    str s = kept(p->mem, &b);
    buf_release(&b);
    return s;
}

static void put_types(const struct export_package *p, struct slots *s) {
    slots_list(s, "types");
    for (size_t i = 0; i < p->n; i++) {
        if (types_name(p, i).n == 0 || types_first(p, i) != i)
            continue;
        struct slots *row = slots_row(s, "types");
        slots_put(row, "type", types_name(p, i));
        slots_put(row, "what", types_words(p, i));
    }
}

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

/* As the members of NAME_dims. */
static str own_dims(const struct export_package *p, size_t kernel) {
    const struct export_kernel *k = &p->kernels[kernel];
    struct arena *mem = p->mem;
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < k->task->ndims; i++)
        if (!k->task->dims[i].derived)
            put_item(&b, arena_printf(mem, "%" PRId64, k->inst->dims[i]));
    if (b.n == 0)
        put_item(&b, S("0"));
    if (types_name(p, kernel).n)
        put_item(&b, arena_printf(mem, "%" PRId64, types_number(p, kernel)));
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

static bool put_kernel(const struct export_package *p, struct plan_writer *w, size_t number,
                       struct slots *library, size_t *functions, struct err *err) {
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
    slots_put(w->slots, "own", own_dims(p, number));
    put_arch(w);
    slots_number(w->slots, "first", (int64_t)w->first);
    size_t n = put_functions(w, library);
    slots_number(w->slots, "functions", (int64_t)n);
    *functions += n;
    slots_put(w->slots, "bytes_of_cubin", cubin_bytes(w));
    return true;
}

/* ---- the interface ---- */

/* The most that a kernel asks of a tensor's address. */
static uint32_t align_of(const struct export_package *p, size_t tensor) {
    uint32_t most = PLAN_ALIGN;
    for (size_t i = 0; i < p->n; i++)
        if (p->kernels[i].candidate->align[tensor] > most)
            most = p->kernels[i].candidate->align[tensor];
    return most;
}

static str tensor_words(const struct export_package *p, struct plan_writer *w,
                        const struct tensor *t) {
    struct buf b;
    buf_init(&b, 1 << 16);
    for (size_t i = 0; i < t->rank; i++)
        put_item(&b, str_cut(w->c->task->text, t->extent[i]->at, t->extent[i]->len));
    str role = t->role == TENSOR_OUT     ? S("written")
               : t->role == TENSOR_INOUT ? S("read and written")
                                         : S("read");
    size_t at = (size_t)(t - w->c->task->tensors);
    uint32_t align = align_of(p, at);
    str s = arena_printf(w->mem, "%s, [%.*s], %.*s",
                         type_varies(p, at) ? "by its types" : dtype_info(t->dtype)->name,
                         STR_ARG(buf_str(&b)), STR_ARG(role));
    if (align > PLAN_ALIGN)
        s = arena_printf(w->mem, "%.*s; aligned to %u bytes", STR_ARG(s), align);
    buf_release(&b);
    return comment_text(s, w->mem);
}

static void put_interface(const struct export_package *p, struct plan_writer *w, struct slots *s) {
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
        slots_put(row, "what", tensor_words(p, w, &t->tensors[i]));
        put_item(&tensors, arena_printf(w->mem, ".%.*s = …", STR_ARG(name)));
    }
    if (types_name(p, 0).n)
        put_item(&dims,
                 arena_printf(w->mem, ".types = %.*s_%.*s", STR_ARG(upper_case(p->name, w->mem)),
                              STR_ARG(types_name(p, 0))));
    slots_put(s, "example_dims", kept(w->mem, &dims));
    slots_put(s, "example_tensors", kept(w->mem, &tensors));
    slots_number(s, "align", PLAN_ALIGN);
    buf_release(&dims);
    buf_release(&tensors);
}

static bool check_dims(const struct export_package *p, struct err *err) {
    for (size_t i = 0; types_name(p, 0).n > 0 && i < p->kernels[0].task->ndims; i++)
        if (str_is(p->kernels[0].task->dims[i].name, "types"))
            return err_set(
                err, ERR_INPUT,
                "the task has a dimension called types, which is what says the types in a "
                "package for several of them: export them one by one");
    return true;
}

bool c_operation_make(struct c_operation *o, struct err *err) {
    struct export_package own = *o->p; /* its kernels alone */
    struct plan_writer w = {.language = EXPORT_C, .mem = own.mem};
    own.kernels = (struct export_kernel *)o->kernels;
    own.n = o->n;
    if (!check_dims(&own, err))
        return false;
    slots_init(&o->slots, own.mem);
    slots_list(&o->slots, "kernels");
    slots_list(&o->slots, "functions");
    for (size_t i = 0; i < o->n; i++) {
        w.k = &o->kernels[i];
        w.c = w.k->candidate;
        if (!put_kernel(&own, &w, i, &o->slots, &o->functions, err))
            return false;
        o->maps |= w.c->nmaps > 0;
        o->memsets |= w.c->nmemsets > 0;
        o->prepares |= w.c->once_steps > 0;
    }
    slots_flag(&o->slots, "prepares", o->prepares);
    slots_flag(&o->slots, "types", types_name(&own, 0).n > 0);
    slots_put(&o->slots, "name", o->name);
    slots_put(&o->slots, "prefix", o->prefix);
    slots_put(&o->slots, "linkage", o->linkage);
    return true;
}

static void put_header(const struct export_package *p, const struct c_operation *o,
                       const struct slots *driver, struct slots *header) {
    struct plan_writer w = {
        .language = EXPORT_C, .mem = p->mem, .k = &p->kernels[0], .c = p->kernels[0].candidate};
    slots_init(header, p->mem);
    put_interface(p, &w, header);
    put_types(p, header);
    slots_put(header, "name", p->name);
    slots_flag(header, "prepares", o->prepares);
    slots_put(header, "guard", upper_case(p->name, p->mem));
    slots_put(header, "title", slots_get(driver, "title"));
    slots_put(header, "origin", slots_get(driver, "origin"));
    slots_number(header, "nkernels", (int64_t)p->n);
    slots_number(header, "nfunctions", (int64_t)o->functions);
}

bool export_c(const struct export_package *p, struct err *err) {
    struct c_operation o = {.p = p, .name = p->name, .kernels = p->kernels, .n = p->n};
    struct slots driver, header;
    struct buf source;
    if (!c_operation_make(&o, err))
        return false;
    slots_init(&driver, p->mem);
    slots_flag(&driver, "maps", o.maps);
    slots_flag(&driver, "memsets", o.memsets);
    slots_flag(&driver, "copies", false);
    slots_put(&driver, "name", p->name);
    slots_put(&driver, "title", comment_text(p->kernels[0].task->title, p->mem));
    slots_put(&driver, "origin", package_origin(p, " * "));
    put_header(p, &o, &driver, &header);
    buf_init(&source, TEXT_MOST);
    str h = arena_printf(p->mem, "%.*s.h", STR_ARG(p->name)),
        c = arena_printf(p->mem, "%.*s.c", STR_ARG(p->name));
    bool ok = package_render(p, "export/c/driver.c", &driver, &source, err) &&
              package_render(p, "export/c/operation.c", &o.slots, &source, err) &&
              package_begin(p, err) &&
              ((package_template(p, h.p, "export/c/header.h", &header, err) &&
                package_file(p, c.p, buf_str(&source), err)) ||
               package_undo(p));
    buf_release(&source);
    return ok;
}
