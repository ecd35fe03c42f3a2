/* The file under construction: one .cu of several steps, each written by a family.
 *
 * A step is a part of the task's normal form (form.h) as a task of its own. A sheet holds the
 * sections of the file (includes, constants and functions, kernels; plan lines) and hands out
 * names, so that steps do not collide. A scope is one kernel of it: which tensors and integers it
 * takes, how its variables are called, and expressions as text in its terms. Device functions in
 * blocks `//% if cp_name` of the library.cu files are in the file where its text has the name.
 * docs/EXPERT.md says how a family uses all this.
 *
 * Sizes stay symbolic: the same text serves every shape its require lines admit. What is fixed by
 * the text (a filter's size, a tile) is required by a plan line. */
#ifndef AGENT_EXPERT_SHEET_H
#define AGENT_EXPERT_SHEET_H

#include "agent/agent.h"
#include "agent/expert/form/form.h"
#include "base/template.h"
#include "kernel/candidate.h"

#define SHEET_SHARED 128
#define SCOPE_LOCALS 192

/* Names that templates use: whole ones, and what composed ones begin or end with. */
enum word_kind { WORD_NAME, WORD_PREFIX, WORD_SUFFIX };
struct words {
    struct {
        enum word_kind kind;
        str text;
    } * at;
    size_t n, cap;
};

struct sheet {
    const struct briefing *briefing; /* of the whole task */
    const struct strategy *strategy; /* of all steps */
    struct strategy now;             /* of the step that is being written */
    const char *assets;              /* folder that overrides the embedded ones, or NULL */
    struct arena *mem;
    struct err *err;      /* the first failure; everything below returns false then */
    bool fast;            /* special functions may be approximate (decision fast-math) */
    struct buf note;      /* `// ` lines about steps, for the head of the file */
    struct buf require;   /* plan lines, by section; each line comes once */
    struct buf memory;    /* workspaces and tensormaps */
    struct buf once;      /* launches that read parameters alone, before all others */
    struct buf steps;     /* memsets and launches, in order */
    struct buf library;   /* what they call of the library.cu files */
    struct buf functions; /* types, constants, device functions */
    struct buf kernels;
    bool half, bfloat; /* includes needed; CuTe headers: sheet_include */
    struct buf includes;
    str *taken;
    size_t ntaken, cap_taken;
    struct words words;              /* of the templates of the step's family */
    uint64_t declared;               /* tensors with a workspace line, by number in the form */
    uint64_t helpers;                /* cp_… functions that are called, of kernel/emit.h */
    str workspace[TASK_MAX_TENSORS]; /* names of those declared */
    str kept[TASK_MAX_TENSORS];      /* what they are: "[M, N] : f32" */
    uint64_t alone;                  /* tensors that plan lines name besides launches */
    uint64_t stored;                 /* lets that are kept in an output */
    size_t output[TASK_MAX_TENSORS]; /* of those */
    const struct sheet *before; /* the file was written before, with too many workspaces; or NULL */
    size_t step;                /* that is being written, from 1 on; 0: before and after all */
    size_t kernels_before;      /* how much of the kernels is of earlier steps */
    struct {
        str what, name;
        size_t step; /* that had it last */
    } scratch[PLAN_MAX_WORKSPACES];
    size_t nscratch;
    size_t made;             /* tensors that writers of steps have added */
    str local[SCOPE_LOCALS]; /* names of the kernel that was begun last */
    size_t nlocal;
    struct {
        str key, name;
    } shared[SHEET_SHARED]; /* what several steps use, of sheet_shared_name */
    size_t nshared;
    struct strategy effective; /* what decisions became; STRATEGY_UNSET: no step has said it. Its
                                  own values are those of `strategy`, in the same order */
};

struct step {
    const struct inst *inst; /* the part; inst->task its statements */
    const char *family;
    bool summed; /* a sum adds up what it gives: errors that its results share grow with it */
};

/* ---- the file ---- */
/* `b`, `s` and `err` stay the caller's. */
void sheet_init(struct sheet *sh, const struct briefing *b, const struct strategy *s,
                const char *assets, struct err *err);
/* More workspaces than a plan may have. The file is then written once more, by another sheet with
 * this one as its `before`: tensors alike that are kept between steps become places of one
 * workspace, each at a multiple of 64 elements, so that wide accesses stay aligned. Where its place
 * begins stands in the text of a pointer (scope_pointer), so that families need not know of it.
 * What a plan line names besides a launch stays alone, and scratch memory alike is that of all
 * steps. */
bool sheet_is_crowded(const struct sheet *sh);
/* The whole file, its sections in order, tidied. */
bool sheet_finish(struct sheet *sh, struct buf *out);
void sheet_release(struct sheet *sh);
bool sheet_failed(const struct sheet *sh);

/* ---- text ---- */
/* The format with each `$` replaced by the next of the texts: TEXT(sh, "$ * $", a, b). */
#define TEXT(sh, format, ...)                                                                      \
    sheet_fill(sh, format, (const str[]){__VA_ARGS__},                                             \
               sizeof((const str[]){__VA_ARGS__}) / sizeof(str))
str sheet_fill(struct sheet *sh, const char *format, const str *texts, size_t n);
str sheet_number(struct sheet *sh, int64_t v);
/* "a, b" for ", "; one of them alone where the other is empty. */
str sheet_join(struct sheet *sh, str a, const char *between, str b);
bool text_has_word(str text, str word); /* as a whole */
str sheet_printf(struct sheet *sh, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Lines without their `// `, `//! require ` or `//! `, all but steps once: sheet_require(sh, "N % 4
 * == 0"), sheet_memory(sh, "workspace part[%d] : f32", …), sheet_step(sh, "launch k<<<…>>>(…)"). */
#define sheet_note(sh, ...)    sheet_line(sh, &(sh)->note, "// ", __VA_ARGS__)
#define sheet_require(sh, ...) sheet_line(sh, &(sh)->require, "//! require ", __VA_ARGS__)
/* With the reason in a comment above the first line that has it: a whole sentence. */
#define sheet_require_for(sh, reason, ...)                                                         \
    (sheet_line(sh, &(sh)->require, "// ", "%s", reason), sheet_require(sh, __VA_ARGS__))
#define sheet_memory(sh, ...) sheet_line(sh, &(sh)->memory, "//! ", __VA_ARGS__)
#define sheet_step(sh, ...)   sheet_line(sh, &(sh)->steps, "//! ", __VA_ARGS__)
#define sheet_once(sh, ...)   sheet_line(sh, &(sh)->once, "//! once ", __VA_ARGS__)
void sheet_line(struct sheet *sh, struct buf *out, const char *lead, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void sheet_include(struct sheet *sh, const char *header); /* "cute/tensor.hpp", once */
void sheet_helper(struct sheet *sh, const char *name);    /* cp_NAME is called: "maximum" */
struct slots *sheet_slots(struct sheet *sh);              /* an empty set, in the arena */
/* A template of assets/expert/ ("rows/kernel.cu") into a section, or as lines of another text kept
 * in the arena. Slots that the template does not mention are left out. */
bool sheet_put(struct sheet *sh, const char *template, const struct slots *s, struct buf *out);
str sheet_lines(struct sheet *sh, const char *template, const struct slots *s);
/* The template among the functions of the file, unless the same text is there. */
bool sheet_function(struct sheet *sh, const char *template, const struct slots *s);
/* The content of a buf, kept in the arena without the last line's end; the buf is released. */
str sheet_keep(struct sheet *sh, struct buf *b);
/* The task's own text of a statement, for a comment: one line. */
str sheet_definition(struct sheet *sh, const struct step *st, const struct statement *s);
/* A decision's value in this step, `otherwise` where it does not apply or is unknown. */
int64_t sheet_decision(const struct sheet *sh, const char *name, int64_t otherwise);
/* What became of decisions in a step: the head says where that is not what the strategy has. No
 * value is left out in silence. A step that follows a decision which other families have too lists
 * it also where it took it as it is. */
struct used {
    const char *decision;
    int64_t value;
};
void sheet_used(struct sheet *sh, const struct used *all, size_t n);
/* The strategy with what its decisions became. Where steps differ, what the one did that came
 * closest to the strategy: the others had less room, and would have made the same of it. */
void sheet_written(const struct sheet *sh, struct strategy *out);
bool sheet_is_cute(const struct sheet *sh); /* the decision dialect */
/* Of the GPU that it is written for: shared memory of a block. */
int64_t sheet_shared_most(const struct sheet *sh);

/* ---- names ---- */
/* Names in the templates of a family are plain, and what the task calls the same has another name
 * in kernels (scope_variable, scope_int, scope_pointer). That holds for every name, prefix
 * (`load_${tensor}`) and suffix (`${field}_count`) in a template of the step's family that is not
 * marked `//% library`. */
bool sheet_begin_step(struct sheet *sh, const char *family);
/* When it is written: the head says which values it has for itself, and which of them came to
 * nothing. */
void sheet_end_step(struct sheet *sh);
/* The names of another family's templates too, for a step that is written with both. */
bool sheet_reserve_words(struct sheet *sh, const char *family);
/* In use by the templates, by CUDA, or by what emitted expressions call. */
bool sheet_is_reserved(const struct sheet *sh, str name);
/* A name for what is made in the file (a kernel, a workspace, a type): unique. */
str sheet_name(struct sheet *sh, str base);
/* The name of what several steps may share (a constant, a type, a function): the same for the same
 * `key`, which says what it is ("kWidth=4"); `base` is how it would like to be called. */
str sheet_shared_name(struct sheet *sh, str key, const char *base);
bool sheet_has_name(const struct sheet *sh, str name); /* of the file, or a word of CUDA's */

/* ---- the plan ---- */
/* An integer expression over dimensions in plan syntax, with parentheses where it needs them
 * beside operators. */
str sheet_plan(struct sheet *sh, const struct expr *e);
str sheet_plan_count(struct sheet *sh, const struct inst *in, size_t tensor); /* "B*M*N", or "1" */
/* The tensor's name in plan lines that are no launches. */
str sheet_tensor(struct sheet *sh, const struct step *st, size_t tensor);
/* A let of the task, or a tensor that the form has made. */
bool sheet_is_workspace(const struct sheet *sh, size_t tensor);
/* The type of its elements in memory. */
enum dtype sheet_dtype(const struct sheet *sh, const struct step *st, size_t tensor);
/* The name of the tensor in a kernel's parameters and, unless it shares one, of its workspace. */
str sheet_kept(struct sheet *sh, const struct step *st, size_t tensor);
/* The let needs no memory of its own: it is the same as an output of the task. Before any step. */
void sheet_store(struct sheet *sh, size_t let, size_t output);
/* What a launch passes for the tensor: its name in the plan, or the workspace that it shares. */
str sheet_argument(struct sheet *sh, const struct step *st, size_t tensor);
/* Which place of a shared workspace it has, from 0 on, and from one place to the next in plan
 * syntax. */
size_t sheet_place(const struct sheet *sh, size_t tensor);
str sheet_place_size(struct sheet *sh, const struct step *st, size_t tensor);
/* A workspace that this step alone uses: sheet_scratch(sh, S("part"), S("[4, M*N] : f32")). */
str sheet_scratch(struct sheet *sh, str base, str what);

/* ---- a kernel ---- */
/* Counts and sizes up to this are int; beyond it indices are long long. */
#define SCOPE_INT_MAX (INT64_C(1) << 30)
#define SCOPE_INT_WHY "Places and sizes are 32-bit integers."
#define SCOPE_INTS    64
struct scope {
    struct sheet *sh;
    const struct step *step;
    const struct statement *statement; /* whose variables are meant */
    str name;                          /* of the kernel */
    bool wide;                         /* indices are long long: some tensor has over 2^30 */
    uint64_t far; /* tensors whose offsets are 64 bits wide even so: they may have any size */
    str var[TASK_MAX_VARS];    /* text of each variable: "i", "(m0 + 4)"; empty: none */
    uint64_t tensors, written; /* pointers it takes, by number; those that are not const */
    str own_param, own_arg;    /* a further parameter, the first ("void *parts"), or none */
    struct {
        str name, plan;
        bool size; /* of an expression of the task: a require line keeps it within an int */
    } ints[SCOPE_INTS];
    size_t nints;
    /* The text of a read whose element is kept elsewhere than in its tensor's memory: by another
     * name, or in shared memory; empty: it is not. NULL: none is. */
    str (*elsewhere)(void *ctx, const struct expr *read);
    void *elsewhere_ctx;
    struct { /* reads (or any expression) that stand in a register already */
        const struct expr *e;
        str text;
    } held[64];
    size_t nheld;
    struct scope_run { /* variables whose values together are one number, the last fastest */
        size_t n, var[TASK_MAX_VARS];
        const struct expr *extent[TASK_MAX_VARS];
        struct expr *total; /* product of the extents */
        str text;
    } runs[3];
    size_t nruns;
    struct { /* variables of the task whose name is reserved, and what they are called instead */
        str own, here;
    } renamed[TASK_MAX_VARS];
    size_t nrenamed;
};
/* One kernel after the other: local names are those of the scope that was begun last. */
bool scope_init(struct scope *k, struct sheet *sh, const struct step *st, const char *name);
/* The kernel finds its place in these tensors by 64-bit offsets of its own: indices are int where
 * no other tensor has over 2^30 elements. Right after scope_init. */
void scope_set_far(struct scope *k, uint64_t tensors);
/* A name for a variable of this kernel alone: sum, sum2, … */
str scope_name(struct scope *k, const char *base);
/* The integer of an expression over dimensions: a literal, or a parameter of the kernel, made at
 * first use. */
str scope_int(struct scope *k, const struct expr *e);
/* A parameter for a plan expression of the generator's own making. */
str scope_int_plan(struct scope *k, const char *name, str plan);
/* How many values a variable of the scope's statement takes, from 0 on; NULL: not known. */
const struct expr *scope_extent(const struct scope *k, size_t var);
/* The name of a variable of the statement where it is declared: the task's own where it can be. */
str scope_variable(struct scope *k, size_t var);
/* Text of an expression without reductions, as a value to compute with: float, int or bool by its
 * kind. Reads are `t[offset]` converted to float; pads are conditions; what is `held` is its text.
 * Takes pointers and integers on the way. Helpers it calls go to the sheet's functions. */
str scope_text(struct scope *k, const struct expr *e); /* the same, kept; .n == 0: failed */
/* Offsets where these variables index neighbouring dimensions, whole ones, have the text of their
 * number instead of each variable's. The run of the same first variable is replaced. */
void scope_put_run(struct scope *k, const struct scope_run *run);
/* "(i * J + j) * K + k", without the pointer. */
str scope_offset_text(struct scope *k, const struct expr *read);
/* Offset of the element a statement defines. */
str scope_place_text(struct scope *k);
void scope_hold(struct scope *k, const struct expr *e, str text);
/* Where the tensor begins: a pointer taken as an argument. `write`: it is stored to. */
str scope_pointer(struct scope *k, size_t tensor, bool write);
str scope_pointer_name(struct scope *k, size_t tensor); /* the argument itself */
/* A computed value converted to the tensor's element: rounding, saturation of integers. */
str scope_packed(struct scope *k, size_t tensor, enum value_kind kind, str value);
/* A stored element converted to a value: "__half2float(…)". */
str scope_unpacked(struct scope *k, size_t tensor, str element);
const char *scope_index_type(const struct scope *k); /* "int" or "long long" */
/* "const float *x, float *y, int N": after all expressions are written. */
str scope_params(struct scope *k);
/* "x, y, N" for the launch line. */
str scope_args(struct scope *k);
/* The launch line, after all expressions are written: "k<<<grid, block>>>(x, y, N)". */
void scope_launch(struct scope *k, str grid, str block);

/* Declarations of variables of the scope's statement from a flat index: it counts the elements of
 * those in `over`, and of these `vars` are declared. They are named and set in k->var. */
str scope_coordinates(struct scope *k, str flat, uint32_t over, uint32_t vars);
/* The number of elements of the statement's variables in `over`, in plan syntax. */
str scope_plan_elements(struct scope *k, uint32_t over);
uint32_t scope_variables(const struct scope *k); /* all that the statement's left side has */

/* The type that a value is computed in. */
str value_type(enum value_kind k);

/* ---- folds ---- */
/* The identity, and the combination as an expression: "s + t", "cp_maximum(s, t)", by reduction:
 * NaN goes through maximum and minimum. Arg-reductions carry a value and a place, and are the
 * family's own. */
/* "0.0f", "-INFINITY", or "0LL", "LLONG_MIN" … */
const char *fold_identity(enum reduction r, bool real);
str fold_combine(struct sheet *sh, enum reduction r, str into, str term);

/* ---- families ---- */
/* Whether a family takes statement `first` of the form, the first that nobody has taken, and with
 * it which others (take[nstatements], all false at entry). What the taken ones read must be inputs,
 * done, or taken too. */
struct step_facts;
struct family {
    const char *name;
    enum workload workload; /* whose decisions it goes by */
    bool cute;              /* it honours the decision dialect */
    bool fuses;  /* it matches operands that are computed (attention): the form keeps them inside
                    their products when it takes anything */
    bool recurs; /* it takes recurrences, lets that read their own earlier steps; others are not
                    handed any */
    bool (*check)(struct err *err); /* of its tables, once, when the expert is made; NULL: none */
    bool (*claim)(const struct briefing *b, const struct form *f, const bool *done, size_t first,
                  bool *take);
    /* What openings ask of a step (plan/step_facts.h); NULL: nothing but what they ask of any.
     * False: the step is none of the family's, and has no openings. */
    bool (*facts)(const struct briefing *b, const struct step *st, struct step_facts *out);
    /* The step's plan lines, functions and kernels. */
    bool (*write)(struct sheet *sh, const struct step *st);
};
#define FAMILY(name) extern const struct family family_##name;
#include "agent/expert/families.def"
#undef FAMILY

#endif
