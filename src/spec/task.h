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
#include "spec/enums.h"

#define TASK_MAX_BYTES      (1u << 20)
#define TASK_MAX_RANK       8
#define TASK_MAX_VARS       32 /* index and reduction variables of one statement */
#define TASK_MAX_TENSORS    64
#define TASK_MAX_DIMS       64
#define TASK_MAX_DEPTH      200 /* nesting of an expression */
#define TASK_MAX_STATEMENTS 128

struct dtype_info {
    const char *name;
    size_t bytes;
    const char *cuda, *npy;
    char kind; /* 'f' 'i' 'u' 'b' */
};
const struct dtype_info *dtype_info(enum dtype t);
/* Decimal digits that tell any two of its values apart, for %.*g; integers are whole by them. */
int dtype_digits(enum dtype t);
bool dtype_find(str name, enum dtype *out);

/* Accuracy classes: the rounding a result is held to. */
enum accuracy { ACCURACY_FP32, ACCURACY_TF32, ACCURACY_F16, ACCURACY_BF16, ACCURACY_COUNT };
const char *accuracy_name(enum accuracy a);
double accuracy_unit(enum accuracy a); /* 2^-24, 2^-11, 2^-11, 2^-8: half an ulp at 1 */

enum function {
#define FUNCTION(id, ...) FUNCTION_##id,
#include "spec/function.def"
#undef FUNCTION
    FUNCTION_COUNT
};
/* A row of function.def, but for the formula. */
struct function_info {
    const char *name;
    size_t args;
    enum {
        RESULT_ROUNDED,
        RESULT_WHOLE,
        RESULT_KEPT,
        RESULT_BITS,
        RESULT_SHIFTED,
        RESULT_DRAWN
    } result;
    int pole; /* POLE_… of value.h */
    double of_result, of_argument, absolute, least;
    const char *cuda, *fast, *integer; /* NULL: none */
};
const struct function_info *function_info(enum function f);
bool function_find(str name, enum function *out);
bool function_takes_integers(enum function f); /* and nothing else */

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
    EXPR_CALL,   /* function(args…) */
    EXPR_IF,     /* args: condition, then, else; reads only the taken side */
    EXPR_PAD,    /* args: a READ, the value where one of its indices leaves the tensor */
    EXPR_REDUCE, /* args: body; over `reduce` */
};

const char *reduction_name(enum reduction r);

/* A reduction variable runs over lo <= v < hi. The bounds may use dimensions and every variable
 * declared further out (of the statement, of enclosing reductions, and earlier ones of the same
 * reduction): sum(k <= j) has hi = j + 1. Inferred ranges have the extent of what they index. */
struct reduce_var {
    str name;
    size_t var; /* its number among the variables of the statement, from nindex on */
    struct expr *lo, *hi;
    bool inferred;
};
struct reduce {
    enum reduction op;
    struct reduce_var *vars;
    size_t nvars;
    struct expr *guard; /* NULL: all terms */
};
/* What an expression yields, settled by the parser. */
enum value_kind { VALUE_INT, VALUE_REAL, VALUE_BOOL };

struct expr {
    enum expr_kind kind;
    enum value_kind value_kind;
    size_t at, len;                /* in the source text, for messages */
    const struct calling *calling; /* it stands in a function; NULL: it does not */
    double number;
    int64_t integer; /* NUMBER when integral */
    bool integral;
    bool factor; /* one of those whose products a sum adds, and changes from term to term */
    bool loses;  /* a factor that is read, of a type that the class's format does not hold, beside
                    one  that is computed */
    size_t ref;  /* DIM: dimension; INDEX: variable; READ: tensor */
    enum function function;
    const struct reduce *reduce; /* REDUCE */
    struct expr **args;          /* operands, indices or arguments */
    size_t nargs;
};
struct task;
/* All parts of an expression: its args, then the guard and the bounds of a reduction. */
size_t expr_nparts(const struct expr *e);
const struct expr *expr_part(const struct expr *e, size_t i);

/* An error at an expression; of one that came from a function also where that is called. */
bool err_at_expr(struct err *err, const struct task *t, const struct expr *e, const char *hint,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

struct dist {
    enum dist_kind kind;
    struct expr *a, *b; /* bounds, or mean and deviation; over dimensions; NULL when unused */
};

enum tensor_role {
    TENSOR_IN,
    TENSOR_PARAM,
    TENSOR_OUT,
    TENSOR_LET,
    TENSOR_RAND,  /* random numbers that inputs are defined from; no kernel sees it */
    TENSOR_INOUT, /* an input whose memory is written: read as it was before */
};
struct tensor {
    str name;
    enum tensor_role role;
    enum dtype dtype; /* LET without a type: F64, never rounded */
    size_t rank;
    struct expr *extent[TASK_MAX_RANK];
    struct dist dist; /* IN, PARAM, RAND, INOUT; DIST_DEFINED: by a statement of `definitions` */
    bool indexes;     /* places are computed from its elements: all data stay in its range */
    size_t at, len;
};

struct dim {
    str name;
    struct expr *value;
    bool derived; /* from other dimensions: not settable */
    size_t at, len;
};

/* A recurrence: lets that read elements of their own, or of each other, from earlier steps along
 * one axis. Their statements stand next to each other, in the order in which a step makes them. */
struct recurrence_place {
    size_t number;  /* of the recurrence, from 1 on; 0: the let is in none */
    size_t axis;    /* the dimension of the let, and so its index variable, that counts the steps */
    bool backwards; /* from the last step to the first: the reads are at t + 1 */
};

/* tensor[left side] = body. A position of the left side is an index variable, which runs over the
 * extent there, or a constant over dimensions (`y[i,0]`). Variables are numbered: those of the left
 * side from 0, in order, then reduction variables in order of appearance. */
struct statement {
    size_t tensor;
    size_t nindex;                        /* variables of the left side */
    str index[TASK_MAX_RANK];             /* their names */
    int position[TASK_MAX_RANK];          /* of each dimension of the tensor: its variable, or -1 */
    struct expr *constant[TASK_MAX_RANK]; /* where position is -1 */
    size_t nvars;                         /* with reduction variables */
    bool body_of_task;                    /* not the definition of an input, nor an assumption */
    struct recurrence_place recurs;       /* of a let */
    struct expr *body;
    size_t at, len;
};

/* What a kernel may rely on; every generated distribution respects it. */
enum assumption_kind {
    ASSUME_SYMMETRIC, /* tensor: square in its last two dimensions, equal across the diagonal */
    ASSUME_ZERO,      /* tensor[index] == 0 | condition */
    ASSUME_COMPARE,   /* tensor[index] OP number, OP one of < <= > >= */
};
struct assumption {
    enum assumption_kind kind;
    size_t tensor;
    struct statement s; /* ZERO: body is the condition; COMPARE: index variables only */
    enum expr_kind op;  /* COMPARE */
    struct expr *number;
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
    struct statement *definitions; /* of inputs defined from RAND tensors and other inputs */
    size_t ndefinitions;
    struct assumption *assumptions;
    size_t nassumptions;
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
    /* What the elements of an integer tensor can be, both ends included: of its type, or, where
     * places are computed from them, of its distribution or definition. */
    int64_t lo, hi;
};
struct inst {
    const struct task *task;
    int64_t *dims;                /* [ndims] */
    struct bound_tensor *tensors; /* [ntensors] */
    /* The task's other shapes, where what is made for this one must serve them too (--must-admit).
     */
    struct inst **also;
    size_t nalso;
};

bool task_parse(str file, str text, struct arena *a, struct task **out, struct err *err);
bool task_load(const char *path, struct arena *a, struct task **out, struct err *err);

/* The task's own sizes, then `set` on top (names must be settable dimensions). Fails with a
 * diagnostic on empty or overflowing sizes and on reads that can leave their tensor. */
bool task_bind(const struct task *t, const struct binding *set, size_t n, struct arena *a,
               struct inst **out, struct err *err);
bool task_bind_check(const struct task *t, size_t check, struct arena *a, struct inst **out,
                     struct err *err);

/* From now on what is made for the instance must serve every check shape of the task. */
bool task_bind_also(struct inst *in, struct arena *a, struct err *err);

/* Whether an integer expression over dimensions is a multiple of `by` at the instance's shape and
 * at those that it must serve too. */
bool inst_divides(const struct inst *in, const struct expr *e, int64_t by);

/* An integer expression over dimensions alone. */
bool expr_eval_dims(const struct expr *e, const int64_t *dims, int64_t *out);

/* "B=3 D=257": the settable dimensions of an instance. */
str inst_label(const struct inst *in, struct arena *a);
int tensor_find(const struct task *t, str name); /* -1: none */
int dim_find(const struct task *t, str name);    /* -1: none */
bool tensor_is_input(const struct tensor *t);    /* IN, PARAM or INOUT: has given content */
bool tensor_is_output(const struct tensor *t);   /* OUT or INOUT: is written */
bool tensor_has_memory(const struct tensor *t);  /* a kernel is passed it: neither LET nor RAND */

/* The mathematics of the task, for people. */
void task_show(const struct inst *in, struct buf *out);

#endif
