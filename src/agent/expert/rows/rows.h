/* Rows: folds that share a space, and the maps that belong to it.
 *
 * The space of a fold is its kept variables, whose values together are a row, and its reduced
 * variables, whose values together are a column of that row. A group holds folds of one space,
 * which may read each other's results (the sum of a softmax needs the maximum), maps of a row's
 * results (y[i] = m[i] + log(s[i])), and maps of rows and columns (y[i,j] = exp(x[i,j] - m[i])).
 * All expressions of a group are in the variables of its first fold: kept ones from 0, reduced ones
 * after them, so that equal reads are equal trees.
 *
 * rows_match.c says what is a group, rows_model.c how its memory lies, rows_shape.c what of the
 * strategy is possible; rows_part.c writes what is kept of a part of a row, rows_pass.c the loops
 * over columns, rows.c the kernels and the plan. Private to these files. */
#ifndef AGENT_EXPERT_ROWS_H
#define AGENT_EXPERT_ROWS_H

#include "agent/expert/sheet/sheet.h"

enum { ROWS_FOLDS = 16, ROWS_MAPS = 16, ROWS_READS = 24 };

/* ---- groups (rows_match.c) ---- */

struct rows_fold {
    const struct statement *s;
    const struct expr *term;  /* in the group's variables, as is the guard */
    const struct expr *guard; /* NULL: all terms */
    size_t level;             /* one more than that of the folds it reads */
};
struct rows_map {
    const struct statement *s;
    struct expr *body;
    struct expr *place; /* the element it defines, as a read */
    bool whole;         /* over rows and columns */
};
struct rows_group {
    const struct inst *in;
    struct arena *mem;
    size_t nkept, ncols;
    struct expr *extent[TASK_MAX_VARS]; /* of kept variables, then hi of the reduced ones */
    struct expr *lo[TASK_MAX_VARS];     /* of reduced variables */
    bool ragged;                        /* the columns of a row begin or end where the row says */
    const struct expr *until;           /* no fold has a term from this column on; NULL: any may */
    struct rows_fold folds[ROWS_FOLDS];
    size_t nfolds;
    struct rows_map maps[ROWS_MAPS];
    size_t nmaps;
    struct expr *groups[2]; /* a product of extents must equal a size: left, right; or NULL */
    bool any_whole;
};
/* The group of statements[first] and what belongs to it of those that are not done; NULL: none is,
 * and it is the group of the first fold. take: those that do. False: that statement is no fold of
 * rows. `whole`: maps over columns may belong to it. */
bool rows_match(const struct inst *in, size_t first, const bool *done, bool whole,
                struct arena *mem, struct rows_group *out, bool *take);
/* The first fold of the group that makes the tensor; NULL: none. */
const struct rows_fold *rows_fold_of(const struct rows_group *g, size_t tensor);
/* The kept variable along which what the folds read lies in memory; -1: a reduced one, or none. */
int rows_lane_var(const struct rows_group *g);
int64_t rows_extent(const struct rows_group *g, size_t var); /* at the actual shape */
int64_t rows_count(const struct rows_group *g);
int64_t rows_columns(const struct rows_group *g);
/* Bytes of a column that more than one pass reads, at the least those of the first read. */
int64_t rows_column_bytes(const struct rows_group *g);

/* ---- the model of a step (rows_model.c) ---- */

enum unit_kind { UNIT_PLAIN, UNIT_ARG, UNIT_MOMENTS, UNIT_SOFTMAX };
struct rows_unit { /* of a level: one fold, or two that are made together */
    enum unit_kind kind;
    size_t fold, second;
    str field;   /* its name in the part */
    bool counts; /* how many terms there are depends on a guard */
};
struct rows_level {
    struct rows_unit units[ROWS_FOLDS];
    size_t nunits;
    str part; /* the type */
};

enum read_kind { READ_LOOSE, READ_PACK, READ_ROW };
struct rows_read { /* or the element that a map defines */
    const struct expr *e;
    enum read_kind kind;
    uint32_t passes; /* that use it: levels, then maps */
    bool safe;       /* inside its tensor for every row and column */
    bool cached;
    size_t run;  /* PACK, inner: the last reduced variables that are its last indices */
    str base;    /* … offset of the row, where these are all */
    str name;    /* of the register or array that holds it */
    str pointer; /* to the row */
    str cache;   /* to what is kept of it in shared memory */
};

/* How a kernel is built, settled by decisions and the shape. */
struct rows_shape {
    bool outer;
    int64_t block, team, vec, items, cluster, split;
    int cache;   /* 0 none, 1 registers, 2 shared memory */
    bool online; /* folds that depend on each other in one pass */
    bool ahead;  /* as many blocks as the GPU holds go from row to row, and fetch the next to L2 */
    bool hint;
    bool cute;     /* packs are fragments, moved by CuTe's copies */
    bool tree;     /* parts of a block by halving in shared memory, not by shuffles */
    bool shifted;  /* rows begin anywhere: packs are aligned, columns masked at both ends */
    size_t suffix; /* reduced variables whose extents together are a multiple of vec */
};

struct rows {
    struct sheet *sh;
    const struct step *st;
    struct rows_group g;
    struct rows_shape shape;
    struct rows_level levels[ROWS_FOLDS];
    size_t nlevels;
    struct rows_read reads[ROWS_READS];
    size_t nreads;
    struct rows_read stores[ROWS_MAPS]; /* by map */
    bool short_rows, short_cols;        /* numbers of rows and columns are int */
    struct scope k;                     /* the kernel that is being written */
    uint32_t passes;                    /* that it makes */
    str shift_base;                     /* offset whose packs are aligned when shifted */
    str chunk;                          /* columns of a block, where several share a row */
    bool bounded;                       /* its columns begin at `from`, not at 0 */
    bool until;                         /* levels stop where no term counts any more */
    str first, end;                     /* the first column of a thread, the end of its block's */
    str part;                           /* the variable of the level's part */
    bool cache_settled;
};

void rows_make_levels(struct rows *r);
/* The reads of all passes and the stores, classified; what several passes use is cached. */
bool rows_make_reads(struct rows *r);
/* Results of the levels [from, to) are called what they are; `index` follows the name. */
void rows_hold_results(struct rows *r, size_t from, size_t to, str index);
/* Some read has all reduced variables as its last indices, in order. */
bool rows_has_flat(struct rows *r);
const char *rows_row_type(const struct rows *r);
const char *rows_col_type(const struct rows *r);
/* Product of the extents of variables [from, to). NULL: there are none. */
struct expr *rows_product(struct rows *r, size_t from, size_t to);
/* An integer of the plan, in the type that counts columns (or rows). */
str rows_size_text(struct rows *r, const struct expr *e, bool is_short);
/* Declarations of the kept variables, from the row's number. */
str rows_kept_text(struct rows *r);
/* Declarations of the reduced variables that `used` names, from a column's number; sets their text.
 * `one`: the column of the element, `pack`: of the pack it lies in. */
str rows_column_text(struct rows *r, uint32_t used, str one, str pack);
/* Reduced variables that the text of an expression will name. */
uint32_t rows_columns_used(const struct rows *r, const struct expr *e);
/* Offset of a pack, without that of its column within the run; and the reduced variables in it. */
str rows_run_offset(struct rows *r, const struct rows_read *q);
uint32_t rows_run_columns(const struct rows *r, const struct rows_read *q);
str rows_result_name(const struct rows *r, size_t fold);
/* The rows of what is read lie one behind the other, in their order. */
bool rows_is_dense(const struct rows *r, const struct rows_read *q);
/* ---- decisions (rows_shape.c) ---- */

void rows_settle_packs(struct rows *r);
void rows_settle_threads(struct rows *r);
/* After the reads are known. */
void rows_settle_cache(struct rows *r);
int64_t rows_kept_bytes(const struct rows *r); /* of a column, between passes */
/* Rows that the GPU works on at the same time, a block or a cluster each. */
int64_t rows_resident(const struct rows *r);
/* Columns of a block, where several share a row or it keeps them: a plan expression. */
str rows_chunk_plan(struct rows *r);
/* Notes of the file: the step, and which decisions could not be followed. */
void rows_note(struct rows *r);
bool rows_facts(const struct briefing *b, const struct step *st, struct step_facts *out);
/* What the kernel does, as a comment. */
str rows_comment(struct rows *r);

/* ---- parts (rows_part.c) ---- */

/* The types of all levels' parts. */
bool rows_write_parts(struct rows *r);
/* A fold's result, from the part of its level. */
str rows_result_value(struct rows *r, size_t fold, str part);
const char *rows_result_type(const struct rows *r, size_t fold);
size_t rows_part_words(const struct rows *r, size_t level);
/* The units of a level with the terms of one column. `inside`: a condition, or empty; `column`: the
 * value of the column. */
void rows_put_terms(struct rows *r, size_t level, struct slots *s, str inside, str column);
/* The call that adds these terms to a part. */
str rows_add_call(struct rows *r, size_t level, str part);

/* ---- loops (rows_pass.c) ---- */

/* A pass over the columns that adds a level's terms to its part. */
str rows_level_text(struct rows *r, size_t level, str part);
/* The pass that evaluates maps of rows and columns. */
str rows_maps_text(struct rows *r);
/* Pointers to rows and reads of the row itself. */
str rows_pointers_text(struct rows *r);
/* Slots of where a thread's columns begin and end. */
void rows_put_loop(struct rows *r, struct slots *s);
/* Where lanes have several rows, the lane's variable becomes that of row `slot`. Returns what it
 * was. */
str rows_set_lane(struct rows *r);
void rows_reset_lane(struct rows *r, str first);

/* ---- kernels (rows.c) ---- */

/* Threads for rows that do not exist: the last block may have some. */
bool rows_has_spare_teams(const struct rows *r);

#endif
