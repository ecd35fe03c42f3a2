/* Writing the oracle's text. Private to oracle*.c.
 *
 * Expressions become straight lines of `const value v3 = add(v1, v2);`, one operation each, equal
 * ones once; reductions become functions of their own. Names of the task get an underscore (x_) or
 * a prefix, so that none meets a word of CUDA. */
#ifndef KERNEL_ORACLE_TEXT_H
#define KERNEL_ORACLE_TEXT_H

#include "kernel/oracle_plan.h"

struct oracle_text {
    const struct task *t;
    struct oracle_plan plan;
    struct buf *out;
    struct arena *a; /* of names and short texts */
    bool failed;     /* err says why */
    struct err *err;
};

/* A line that has been written. */
struct oracle_line {
    str name, text;
};

/* The body of one function, or of its innermost loop. */
struct oracle_code {
    struct oracle_text *x;
    const struct statement *s;
    bool plain;              /* plain doubles: definitions and conditions of inputs */
    bool checked;            /* reads may leave their tensors */
    const struct expr *root; /* whose result is stored */
    int indent;
    struct oracle_line *lines;
    size_t nlines, cap;
};
struct oracle_code oracle_code_begin(struct oracle_text *x, const struct statement *s, bool plain,
                                     int indent);
void oracle_code_end(struct oracle_code *c);

/* What an operand is called; `exact`: it is a double, otherwise a value (plain: always double). */
struct oracle_operand {
    str text;
    bool exact;
};
/* Writes the lines that compute it; real: converted when it is an integer. */
struct oracle_operand oracle_put_value(struct oracle_code *c, const struct expr *e, bool real);
/* An integer expression over indices and sizes, as C. */
str oracle_integer(struct oracle_text *x, const struct statement *s, const struct expr *e);
const char *oracle_dtype(enum dtype t); /* "DTYPE_F32" */
str oracle_variable(struct oracle_text *x, const struct statement *s, size_t var);
/* A double so that it reads back as itself. */
str oracle_number(struct oracle_text *x, double v);
/* ", int64_t i_, int64_t j_" and ", i_, j_" of an array's axes. */
str oracle_parameters(struct oracle_text *x, const struct oracle_step *p);
str oracle_arguments(struct oracle_text *x, const struct oracle_step *p);

/* A comment with the part of the task that a function is about. */
void oracle_put_source(struct oracle_text *x, size_t at, size_t len);

/* oracle_reduce.c */
void oracle_put_step(struct oracle_text *x, size_t k);
/* bounds: "__launch_bounds__(…) ", or nothing. */
void oracle_put_kernel_head(struct oracle_text *x, const char *bounds, const char *name, size_t k);
/* Where term number `first` is, the last variable running fastest, and how many are `left`. Only of
 * fixed bounds. */
void oracle_put_first_term(struct oracle_text *x, const struct oracle_step *p);
/* The indices along some axes of element number `rest`; prefix: their type, or what they are
 * members of. */
void oracle_put_indices(struct oracle_text *x, const struct oracle_step *p, uint32_t axes,
                        const char *prefix, int indent);
/* A definition's reduction that has no memory: the value, written in place. */
struct oracle_operand oracle_put_plain_reduce(struct oracle_code *c, const struct expr *e);

/* oracle_block.c: the terms of a contraction, for a block of its results. */
void oracle_put_products(struct oracle_text *x, size_t k);
void oracle_put_block_kernel(struct oracle_text *x, size_t k);

/* oracle_data.c: tensors as they are read, and inputs as they are made. */
void oracle_put_places(struct oracle_text *x);
void oracle_put_elements(struct oracle_text *x);
void oracle_put_reads(struct oracle_text *x, size_t tensor); /* after what it depends on */
/* Its elements are read from memory, as doubles, and padded_x reads beyond its edges. */
bool oracle_is_loaded(const struct tensor *t);
/* c0, c1, … of element i. */
void oracle_put_coordinates(struct oracle_text *x, size_t tensor);
void oracle_put_element_switch(struct oracle_text *x);
/* NAME_of(o, tensor, i…): NAME_x of the tensor with that number. */
void oracle_put_switch(struct oracle_text *x, const char *type, const char *name,
                       const char *parameters, const char *arguments, const char *otherwise,
                       bool (*has)(const struct oracle_text *x, size_t tensor));
/* The statements that define a tensor, tried in turn at an element with coordinates c0, c1, …:
 * what `found` writes for each stands where its constants match. */
void oracle_put_dispatch(struct oracle_text *x, const struct statement *list, size_t n,
                         size_t tensor,
                         void (*found)(struct oracle_text *x, size_t statement, str arguments));

/* oracle_output.c */
void oracle_put_points(struct oracle_text *x, size_t statement);
void oracle_put_outputs(struct oracle_text *x);

#endif
