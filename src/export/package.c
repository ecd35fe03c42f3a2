/* What every package has, whatever it is for: its folder, its documents and the evidence. */
#include "base/asset.h"
#include "base/file.h"
#include "export/export_private.h"
#include "export/graph.h"
#include "spec/expr.h"

#define FILE_MAX (256u << 20)

static bool same_statement(const struct statement *a, const struct statement *b) {
    bool same = a->tensor == b->tensor && a->nindex == b->nindex && !a->body == !b->body &&
                (!a->body || expr_same(a->body, b->body));
    for (size_t i = 0; same && i < TASK_MAX_RANK; i++)
        same = a->position[i] == b->position[i] && !a->constant[i] == !b->constant[i] &&
               (!a->constant[i] || expr_same(a->constant[i], b->constant[i]));
    return same;
}

/* The same names, in order. */
static bool same_tensors(const struct task *a, const struct task *b) {
    bool same = a->ndims == b->ndims && a->ntensors == b->ntensors;
    for (size_t i = 0; same && i < a->ndims; i++)
        same = str_eq(a->dims[i].name, b->dims[i].name) &&
               a->dims[i].derived == b->dims[i].derived &&
               (!a->dims[i].derived || expr_same(a->dims[i].value, b->dims[i].value));
    for (size_t i = 0; same && i < a->ntensors; i++) {
        const struct tensor *x = &a->tensors[i], *y = &b->tensors[i];
        same = str_eq(x->name, y->name) && x->role == y->role && extents_same(x, y);
    }
    return same;
}

/* What is computed, and for which data. */
static bool same_mathematics(const struct task *a, const struct task *b) {
    bool same = a->nstatements == b->nstatements && a->nassumptions == b->nassumptions;
    for (size_t i = 0; same && i < a->nstatements; i++)
        same = same_statement(&a->statements[i], &b->statements[i]);
    for (size_t i = 0; same && i < a->nassumptions; i++) {
        const struct assumption *x = &a->assumptions[i], *y = &b->assumptions[i];
        same = x->kind == y->kind && x->tensor == y->tensor && x->op == y->op &&
               same_statement(&x->s, &y->s) && !x->number == !y->number &&
               (!x->number || expr_same(x->number, y->number));
    }
    return same;
}

bool export_same_operation(const struct task *a, const struct task *b, struct err *err) {
    bool tensors = same_tensors(a, b);
    return (tensors && same_mathematics(a, b)) ||
           err_set(err, ERR_INPUT,
                   "the tasks %.*s and %.*s do not have the same %s: they cannot be one operation",
                   STR_ARG(a->name), STR_ARG(b->name),
                   tensors ? "mathematics" : "dimensions and tensors");
}

str package_origin(const struct export_package *p, const char *lead) {
    struct buf b;
    buf_init(&b, 1u << 20);
    buf_printf(&b, "Made by cutepilot %s:\n%s    %.*s\n", CUTEPILOT_VERSION, lead,
               STR_ARG(p->command));
    for (size_t i = 0; i < p->n; i++) {
        const struct export_kernel *k = &p->kernels[i];
        str shape = inst_label(k->inst, p->mem);
        buf_printf(&b, "%sKernel %.*s: made for %.*s, %.*s, %.*s.\n", lead, STR_ARG(k->label),
                   STR_ARG(shape), STR_ARG(k->arch), STR_ARG(k->time));
        buf_printf(&b, "%s  SHA-256 of its source: %s\n", lead, k->source_hash);
    }
    for (size_t i = 0; i < p->nbackward; i++)
        buf_printf(&b, "%sGradients: made for %.*s, %.*s, %.*s.\n%s  SHA-256 of its source: %s\n",
                   lead, STR_ARG(inst_label(p->backward[i].inst, p->mem)),
                   STR_ARG(p->backward[i].arch), STR_ARG(p->backward[i].time), lead,
                   p->backward[i].source_hash);
    buf_printf(&b, "%sThe evidence is in the folder evidence.", lead);
    str s = kept(p->mem, &b);
    buf_release(&b);
    return s;
}

bool package_file(const struct export_package *p, const char *name, str content, struct err *err) {
    return file_replace(arena_printf(p->mem, "%s/%s", p->folder, name).p, content, err);
}

bool package_render(const struct export_package *p, const char *template, const struct slots *s,
                    struct buf *to, struct err *err) {
    struct slots used;
    str text;
    if (!asset_get(p->assets, template, p->mem, &text, err))
        return false;
    slots_init(&used, p->mem);
    for (size_t i = 0; i < s->n; i++)
        if (template_mentions(text, s->at[i].name))
            used.at[used.n++] = s->at[i];
    return template_render(str_view(template), text, used.at, used.n, to, err);
}

bool package_template(const struct export_package *p, const char *name, const char *template,
                      const struct slots *s, struct err *err) {
    struct buf b;
    str text;
    buf_init(&b, FILE_MAX);
    bool ok = asset_get(p->assets, template, p->mem, &text, err) &&
              template_render(str_view(template), text, s->at, s->n, &b, err) &&
              package_file(p, name, buf_str(&b), err);
    buf_release(&b);
    return ok;
}

bool package_part(const struct export_package *p, const char *name, const char *template,
                  const struct slots *all, struct err *err) {
    struct buf b;
    buf_init(&b, FILE_MAX);
    bool ok = package_render(p, template, all, &b, err) && package_file(p, name, buf_str(&b), err);
    buf_release(&b);
    return ok;
}

static bool put_evidence(const struct export_package *p, const struct export_kernel *k,
                         const char *name, struct err *err) {
    const struct {
        const char *name;
        str content;
    } files[] = {
        {"kernel.cu", k->source}, {"outcome.json", k->record}, {"task.task", k->task->text}};
    str folder = arena_printf(p->mem, "evidence/%s", name);
    bool ok = dir_make(arena_printf(p->mem, "%s/%.*s", p->folder, STR_ARG(folder)).p, err);
    for (size_t f = 0; ok && f < sizeof files / sizeof *files; f++)
        ok = package_file(p, arena_printf(p->mem, "%.*s/%s", STR_ARG(folder), files[f].name).p,
                          files[f].content, err);
    return ok;
}

/* Of a module: which of its tasks are kernels, and which PyTorch computes. */
static void put_parts(const struct export_package *p, struct slots *s) {
    slots_list(s, "parts");
    for (size_t i = 0; p->graph && i < p->graph->order.ntasks; i++) {
        const struct export_part *part = &p->graph->parts[i];
        struct slots *row = slots_row(s, "parts");
        slots_put(row, "part", part->name);
        slots_put(row, "what", part->task->title);
        slots_number(row, "uses", (int64_t)p->graph->order.tasks[i].uses);
        slots_put(row, "runs", arena_printf(p->mem, "%.0f", p->graph->order.tasks[i].runs));
        slots_put(row, "by",
                  part->n == 1 ? S("a kernel")
                  : part->n    ? arena_printf(p->mem, "%zu kernels", part->n)
                               : S("PyTorch: its run came to no accepted kernel"));
    }
}

/* The order, and the tasks that have no kernel. */
static bool put_graph_evidence(const struct export_package *p, struct err *err) {
    bool ok = package_file(p, "evidence/" ORDER_FILE, p->graph->order.text, err);
    for (size_t i = 0; i < p->graph->order.ntasks && ok; i++) {
        const struct export_part *part = &p->graph->parts[i];
        const char *folder = arena_printf(p->mem, "evidence/%.*s", STR_ARG(part->name)).p;
        if (part->n)
            continue;
        ok = dir_make(arena_printf(p->mem, "%s/%s", p->folder, folder).p, err) &&
             package_file(p, arena_printf(p->mem, "%s/task.task", folder).p, part->task->text, err);
    }
    return ok;
}

static bool put_readme(const struct export_package *p, struct err *err) {
    struct slots s;
    slots_init(&s, p->mem);
    slots_put(&s, "name", p->name);
    slots_put(&s, "title", p->graph ? p->graph->order.title : p->kernels[0].task->title);
    slots_flag(&s, "installs", p->torch && !p->hub);
    put_parts(p, &s);
    slots_put(&s, "command", p->command);
    slots_list(&s, "kernels");
    for (size_t i = 0; i < p->n; i++) {
        const struct export_kernel *k = &p->kernels[i];
        struct slots *row = slots_row(&s, "kernels");
        slots_put(row, "number", k->label);
        slots_put(row, "shape", inst_label(k->inst, p->mem));
        slots_put(row, "arch", k->arch);
        slots_put(row, "time", k->time);
        slots_put(row, "hash", str_view(k->source_hash));
        slots_put(row, "task", k->task->name);
    }
    return package_template(p, "README.md", "export/README.md", &s, err);
}

bool package_begin(const struct export_package *p, struct err *err) {
    if (file_exists(p->folder))
        return err_set(err, ERR_INPUT, "%s exists: nothing is overwritten; choose another --out",
                       p->folder);
    bool ok = dir_make(arena_printf(p->mem, "%s/evidence", p->folder).p, err) && put_readme(p, err);
    for (size_t i = 0; ok && i < p->n; i++)
        ok = put_evidence(p, &p->kernels[i], arena_cstr(p->mem, p->kernels[i].label), err);
    if (ok && p->graph)
        ok = put_graph_evidence(p, err);
    for (size_t i = 0; ok && i < p->nbackward; i++)
        ok = put_evidence(p, &p->backward[i], arena_printf(p->mem, "backward_%zu", i).p, err);
    return ok || package_undo(p);
}

bool package_undo(const struct export_package *p) {
    struct err ignored;
    dir_remove_tree(p->folder, &ignored);
    return false;
}

/* ---- cubins ---- */

static const char *cubin_name(const struct export_package *p, const struct export_kernel *k) {
    return arena_printf(p->mem, "%.*s.%.*s", STR_ARG(p->name), STR_ARG(k->label)).p;
}

static bool put_cubin(const struct export_package *p, const struct export_kernel *k,
                      struct err *err) {
    struct bound_plan plan;
    struct buf b;
    if (!plan_bind(k->candidate, k->inst, p->mem, &plan, err))
        return false;
    json *j = json_object(), *tensors = json_array(), *memory = json_array(), *bytes = json_array(),
         *written = json_array(), *types = json_array();
    json_set_str(j, "arch", k->arch);
    json_set_str(j, "source_sha256", str_view(k->source_hash));
    json_set_str(j, "shape", inst_label(k->inst, p->mem));
    for (size_t t = 0; t < k->task->ntensors; t++) {
        json_push_str(tensors, k->task->tensors[t].name);
        json_push_str(types, str_view(dtype_info(k->task->tensors[t].dtype)->name));
        if (tensor_has_memory(&k->task->tensors[t]))
            json_push_str(memory, k->task->tensors[t].name);
        if (k->task->tensors[t].role == TENSOR_OUT)
            json_push_str(written, k->task->tensors[t].name);
    }
    for (size_t l = 0; l < k->candidate->nlaunches; l++) {
        json *one = json_array();
        for (size_t i_arg = 0; i_arg < k->candidate->launches[l].nargs; i_arg++)
            json_push_i64(one, (int64_t)k->parameter_bytes[l][i_arg]);
        json_push(bytes, one);
    }
    json_set(j, "tensors", tensors); /* as the plan numbers them */
    json_set(j, "types", types);
    json_set(j, "memory", memory);   /* those that have any */
    json_set(j, "written", written); /* those that are written and not read */
    json_set(j, "parameter_bytes", bytes);
    json_set(j, "plan", plan_to_json(&plan, k->task->ntensors));
    buf_init(&b, FILE_MAX);
    json_write_pretty(j, &b);
    buf_putc(&b, '\n');
    json_free(j);
    const char *name = cubin_name(p, k);
    bool ok = package_file(p, arena_printf(p->mem, "%s.json", name).p, buf_str(&b), err) &&
              package_file(p, arena_printf(p->mem, "%s.cubin", name).p, k->cubin, err);
    buf_release(&b);
    return ok;
}

/* The order of a module, with the files of each task's kernels. */
static bool put_order(const struct export_package *p, struct err *err) {
    json *j = json_parse(p->graph->order.text, err), *kernels = json_object();
    struct buf b;
    if (!j) {
        json_free(kernels);
        return false;
    }
    for (size_t i = 0; i < p->graph->order.ntasks; i++) {
        const struct export_part *part = &p->graph->parts[i];
        json *files = json_array();
        for (size_t k = 0; k < part->n; k++)
            json_push_str(files, str_view(cubin_name(p, &part->kernels[k])));
        json_set(kernels, arena_cstr(p->mem, part->name), files);
    }
    json_set(j, "kernels", kernels);
    buf_init(&b, FILE_MAX);
    json_write_pretty(j, &b);
    buf_putc(&b, '\n');
    json_free(j);
    bool ok = package_file(p, arena_printf(p->mem, "%.*s." ORDER_FILE, STR_ARG(p->name)).p,
                           buf_str(&b), err);
    buf_release(&b);
    return ok;
}

bool package_all_kernels(const struct export_package *p, struct err *err) {
    for (size_t i = 0; p->graph && i < p->graph->order.ntasks; i++)
        if (!p->graph->parts[i].n)
            return err_set(err, ERR_NO,
                           "its task %.*s has no accepted kernel: search longer for it, or export "
                           "--to torch, which computes it by PyTorch",
                           STR_ARG(p->graph->parts[i].name));
    return true;
}

bool export_cubin(const struct export_package *p, struct err *err) {
    if (!package_all_kernels(p, err) || !package_begin(p, err))
        return false;
    bool ok = !p->graph || put_order(p, err);
    for (size_t i = 0; i < p->n && ok; i++)
        ok = put_cubin(p, &p->kernels[i], err);
    return ok || package_undo(p);
}
