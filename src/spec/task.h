/* A task: what must be computed, as a small program of tensor expressions (docs/TASKS.md).
 *
 * `task_parse` reads a .task file into a tree whose dimensions stay symbolic; `task_bind` gives the
 * dimensions numbers and checks shapes and bounds, once for the task's own sizes and once for each
 * `check` line or --set. Trees live in the arena they were made in and are never changed; an
 * instance points into its task. Everything else in this room (evaluation, inputs, costs, features)
 * takes an instance. */
#ifndef SPEC_TASK_H
#define SPEC_TASK_H

#include "base/arena.h"
#include "base/err.h"

#define TASK_MAX_BYTES   (1u << 20)
#define TASK_MAX_RANK    8
#define TASK_MAX_TENSORS 64
#define TASK_MAX_DIMS    64
#define TASK_MAX_DEPTH   200 /* nesting of an expression */

enum dtype {
#define DTYPE(id, name, bytes, cuda, npy, kind) DTYPE_##id,
#include "spec/dtype.def"
#undef DTYPE
    DTYPE_COUNT
};
struct dtype_info {
    const char *name;
    size_t bytes;
    const char *cuda, *npy;
    char kind; /* 'f' 'i' 'u' 'b' */
};
const struct dtype_info *dtype_info(enum dtype t);
bool dtype_find(str name, enum dtype *out);

/* Accuracy classes: the rounding a result is held to. */
enum accuracy { ACCURACY_FP32, ACCURACY_TF32, ACCURACY_F16, ACCURACY_BF16, ACCURACY_COUNT };
const char *accuracy_name(enum accuracy a);
double accuracy_unit(enum accuracy a); /* 2^-24, 2^-11, 2^-11, 2^-8: half an ulp at 1 */

enum function {
#define FUNCTION(id, name, args) FUNCTION_##id,
#include "spec/function.def"
#undef FUNCTION
    FUNCTION_COUNT
};
const char *function_name(enum function f);
int function_args(enum function f);

enum expr_kind {
    EXPR_NUMBER, /* value; `integral` when written without point and exponent */
    EXPR_DIM,    /* a named dimension */
    EXPR_INDEX,  /* an index variable of the statement */
    EXPR_READ,   /* tensor[args…] */
    EXPR_NEG,
    EXPR_NOT,
    EXPR_ADD,
    EXPR_SUB,
    EXPR_MUL,
    EXPR_DIV,      /* real division */
    EXPR_FLOORDIV, /* integers only, as is MOD */
    EXPR_MOD,
    EXPR_EQ,
    EXPR_NE,
    EXPR_LT,
    EXPR_LE,
    EXPR_GT,
    EXPR_GE,
    EXPR_AND,
    EXPR_OR,
    EXPR_CALL, /* function(args…) */
    EXPR_IF,   /* args: condition, then, else; reads only the taken side */
};

/* What an expression yields, settled by the parser. */
enum value_kind { VALUE_INT, VALUE_REAL, VALUE_BOOL };

struct expr {
    enum expr_kind kind;
    enum value_kind value_kind;
    size_t at, len; /* in the source text, for messages */
    double number;
    int64_t integer; /* NUMBER when integral */
    bool integral;
    size_t ref; /* DIM: dimension; INDEX: variable; READ: tensor */
    enum function function;
    struct expr **args; /* operands, indices or arguments */
    size_t nargs;
};

enum dist_kind { DIST_UNIFORM, DIST_NORMAL, DIST_RANDINT, DIST_BERNOULLI, DIST_ONES, DIST_ZEROS };
struct dist {
    enum dist_kind kind;
    struct expr *a, *b; /* bounds, or mean and deviation; over dimensions; NULL when unused */
};

enum tensor_role { TENSOR_IN, TENSOR_PARAM, TENSOR_OUT, TENSOR_LET };
struct tensor {
    str name;
    enum tensor_role role;
    enum dtype dtype; /* LET without a type: F64, never rounded */
    size_t rank;
    struct expr *extent[TASK_MAX_RANK];
    struct dist dist; /* IN, PARAM */
    size_t at, len;
};

struct dim {
    str name;
    struct expr *value;
    bool derived; /* from other dimensions: not settable */
    size_t at, len;
};

/* tensor[index variables] = body, for every index of the tensor. */
struct statement {
    size_t tensor;
    size_t nindex;
    str index[TASK_MAX_RANK];
    struct expr *body;
    size_t at, len;
};

struct binding {
    str name;
    int64_t value;
};
struct check_line {
    struct binding *set;
    size_t n;
    size_t at, len;
};

struct task {
    str file, text; /* for messages; text is the canonical identity of the task */
    str name, title;
    struct dim *dims;
    size_t ndims;
    struct tensor *tensors; /* in order of declaration */
    size_t ntensors;
    struct statement *statements; /* in an order in which all reads are defined */
    size_t nstatements;
    struct check_line *checks;
    size_t nchecks;
    str torch; /* empty: none */
    enum accuracy accuracy;
};

/* A task with numbers in it. */
struct bound_tensor {
    int64_t extent[TASK_MAX_RANK];
    int64_t stride[TASK_MAX_RANK]; /* elements, C order */
    int64_t count;                 /* elements */
    size_t bytes;
};
struct inst {
    const struct task *task;
    int64_t *dims;                /* [ndims] */
    struct bound_tensor *tensors; /* [ntensors] */
};

bool task_parse(str file, str text, struct arena *a, struct task **out, struct err *err);
bool task_load(const char *path, struct arena *a, struct task **out, struct err *err);

/* The task's own sizes, then `set` on top (names must be settable dimensions). Fails with a
 * diagnostic on empty or overflowing sizes and on reads that can leave their tensor. */
bool task_bind(const struct task *t, const struct binding *set, size_t n, struct arena *a,
               struct inst **out, struct err *err);
bool task_bind_check(const struct task *t, size_t check, struct arena *a, struct inst **out,
                     struct err *err);

/* An integer expression over dimensions alone. */
bool expr_eval_dims(const struct expr *e, const int64_t *dims, int64_t *out);

/* "B=3 D=257": the settable dimensions of an instance. */
str inst_label(const struct inst *in, struct arena *a);
int tensor_find(const struct task *t, str name); /* -1: none */
bool tensor_is_input(const struct tensor *t);    /* IN or PARAM */

/* The mathematics of the task, for people. */
void task_show(const struct inst *in, struct buf *out);

#endif
