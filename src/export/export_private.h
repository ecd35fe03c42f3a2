/* What the writers of packages share. */
#ifndef EXPORT_EXPORT_PRIVATE_H
#define EXPORT_EXPORT_PRIVATE_H

#include "base/template.h"
#include "export/export.h"
#include "kernel/plan.h"

/* A plan expression, or one over a task's dimensions, as text of a language: dimensions are dim_N,
 * lets let_S. In C an overflow sets the variable `bad`. Empty: a size that is made of something
 * else than integers and their operations. */
enum export_language { EXPORT_C, EXPORT_PYTHON };
str plan_text(const struct expr *e, const struct candidate *c, enum export_language l,
              struct arena *a);
str dims_text(const struct expr *e, const struct task *t, enum export_language l, struct arena *a);
/* A size of an imported module, as its order.json has it. Empty: it is no such expression. */
str size_text(str text, enum export_language l, struct arena *a);
/* The same for extents: the product of all of them, and 1 where there is none. */
str product_text(const str *factors, size_t n, enum export_language l, struct arena *a);

/* A name that a struct of C may have as a member: with an underscore where it is a keyword. */
str member_name(str name, struct arena *a);
/* ", " between, nothing at the ends. */
void put_item(struct buf *to, str item);
str kept(struct arena *a, struct buf *b); /* the text, in the arena; the buf is emptied */

/* A text of a task or a plan on one line, which cannot end a comment. */
str comment_text(str text, struct arena *mem);

/* ---- plans as rows of a template ---- */

struct plan_writer {
    enum export_language language;
    const struct export_kernel *k;
    const struct candidate *c;
    struct bound_plan bound; /* at the kernel's own shape */
    struct arena *mem;
    struct slots *slots; /* of this kernel */
    size_t first;        /* C: of its functions among those of the library */
};
/* Puts the slots sizes, checks, workspaces, addresses, maps, steps, arch and source_hash; and of
 * what is done once, parameters, once_steps and, in C, prepared, once_maps and once. */
bool put_plan_rows(struct plan_writer *w, struct err *err);
/* The number of a kernel's function among the functions of its plan. */
size_t plan_function(const struct candidate *c, str kernel);
/* Where a tensor stands among those with memory: what is read, then what is only written. */
size_t tensor_place(const struct task *t, size_t tensor);

/* The plan at one shape; tensors and all else go by their numbers in the task and the plan. */
json *plan_to_json(const struct bound_plan *p, size_t ntensors);

/* ---- packages ---- */

/* "made by cutepilot 0.1.0 …", a paragraph for the head of a file; every line after the first
 * begins with `lead`. */
str package_origin(const struct export_package *p, const char *lead);
/* What every package has: README.md, and below evidence/ the source, the task and the outcome of
 * each kernel. The folder is made here. */
bool package_begin(const struct export_package *p, struct err *err);
bool package_file(const struct export_package *p, const char *name, str content, struct err *err);
bool package_template(const struct export_package *p, const char *name, const char *template,
                      const struct slots *s, struct err *err);
/* The same with those of the slots that the template has. */
bool package_part(const struct export_package *p, const char *name, const char *template,
                  const struct slots *all, struct err *err);
/* Adds a rendered template to a text. */
bool package_render(const struct export_package *p, const char *template, const struct slots *s,
                    struct buf *to, struct err *err);
/* Only PyTorch can compute a task of a module that has no kernel. */
bool package_all_kernels(const struct export_package *p, struct err *err);
/* After a failure: what was written is removed, and the failure stays what it was. */
bool package_undo(const struct export_package *p);

/* ---- PyTorch ---- */

/* One operator, torch.ops.cutepilot.NAME, with its kernels (or none) and the task's torch line. */
struct torch_operator {
    const struct export_package *p;
    str name;
    const struct task *task;
    const struct inst *inst;
    const struct export_kernel *kernels;
    size_t n;
    const char *plan, *module, *code; /* files: "_plan", "_operator", "kernel" */
    struct slots plans, slots;
};
bool torch_operator_make(struct torch_operator *o, struct err *err);
bool torch_operator_write(const struct torch_operator *o, struct err *err);
/* "NAME/_plan.py", where the package's modules are. */
const char *torch_inside(const struct export_package *p, const char *name, const char *ending);
const char *torch_dtype(enum dtype t); /* "torch.float32" */

/* ---- C ---- */

/* What a C file has once: the driver's entries and plan arithmetic; and one operation. */
struct c_operation {
    const struct export_package *p;
    str name, prefix; /* of its functions that others see, and of those that only it sees */
    str linkage;      /* before the former */
    const struct export_kernel *kernels;
    size_t n, functions;
    bool maps, memsets, prepares;
    struct slots slots;
};
bool c_operation_make(struct c_operation *o, struct err *err);
str upper_case(str name, struct arena *mem);

#endif
