/* What the words of a list of fields mean. Define FIELDS_AS_STRUCTS or FIELDS_AS_TABLES, include
 * this, then the .def file, whose last line is #include "base/fields_end.h".
 *
 *     BEGIN(launch)                       struct launch, and launch_fields, its table
 *     FIELD(TEXT, kernel, "its name")     a member
 *     MAYBE(REAL, time_s, "…")            one that may be absent, as has_time_s says
 *     MAYBE_TEXT(why, "…")                the same: a text that may be NULL
 *     COUNT(U32, order, "…")              an integer that is left out where it is 0
 *     FIXED(U32, grid, 3, "blocks")       an array
 *     LIST(REAL, samples_s, 1000, "…")    samples_s and nsamples_s; SOME(…): left out when empty;
 *                                         OPEN(…): may be absent, but is written when empty
 *     ONE(clocks, clocks, "…")            a struct of this list; MAYBE_ONE(…): a pointer or NULL
 *     MANY(sample, samples, 10, "…")      a list of them; SOME_OF(…), OPEN_OF(…): as above
 *     MAP(struct binding, set, 64, "…")   pairs of a name and an integer, as an object
 *     OWN(struct arena *, mem)            a member of the struct that does not travel
 *     END(launch)
 *
 * BEGIN_ARRAY: written as an array. BEGIN_OPEN: what is absent, also below, is read as 0.
 *
 * A list of structs that are declared elsewhere is only ever made into tables; there
 * RANGE(name, least, largest) is an integer of any size (RANGE_OR_0: left out where it is 0), and
 * FIXED_RANGE, CHARS and NAMED say the rest. */
#include "base/fields_end.h"

#ifdef FIELDS_AS_STRUCTS
#undef FIELDS_AS_STRUCTS
#define BEGIN(T)                                                                                   \
    extern const struct fields T##_fields;                                                         \
    struct T {
#define BEGIN_ARRAY(T) BEGIN(T)
#define BEGIN_OPEN(T)  BEGIN(T)
#define END(T)                                                                                     \
    }                                                                                              \
    ;
#define FIELD(T, name, doc) FIELDS_C_##T name;
#define MAYBE(T, name, doc)                                                                        \
    bool has_##name;                                                                               \
    FIELDS_C_##T name;
#define MAYBE_TEXT(name, doc)      str name;
#define COUNT(T, name, doc)        FIELDS_C_##T name;
#define FIXED(T, name, count, doc) FIELDS_C_##T name[count];
#define LIST(T, name, most, doc)                                                                   \
    FIELDS_C_##T *name;                                                                            \
    size_t n##name;
#define SOME(T, name, most, doc)                                                                   \
    FIELDS_C_##T *name;                                                                            \
    size_t n##name;
#define OPEN(T, name, most, doc)                                                                   \
    FIELDS_C_##T *name;                                                                            \
    size_t n##name;
#define MAYBE_ONE(T, name, doc) struct T *name;
#define MAP(C, name, most, doc)                                                                    \
    C *name;                                                                                       \
    size_t n##name;
#define OWN(C, name) C name;
#endif

#ifdef FIELDS_AS_TABLES
#undef FIELDS_AS_TABLES
#define FIELDS_BEGIN(T, array, open)                                                               \
    static const struct field_row *T##_table(size_t *n);                                           \
    const struct fields T##_fields = {sizeof(struct T), array, open, T##_table};                   \
    static const struct field_row *T##_table(size_t *n) {                                          \
        typedef struct T self;                                                                     \
        static const struct field_row table[] = {
#define BEGIN(T)       FIELDS_BEGIN(T, false, false)
#define BEGIN_ARRAY(T) FIELDS_BEGIN(T, true, false)
#define BEGIN_OPEN(T)  FIELDS_BEGIN(T, false, true)
#define END(T)                                                                                     \
    }                                                                                              \
    ;                                                                                              \
    *n = sizeof table / sizeof *table;                                                             \
    return table;                                                                                  \
    }
#define FIELDS_ROW(form_, name, ...)                                                               \
    {.key = #name, .form = FORM_##form_, .at = offsetof(self, name), __VA_ARGS__},
#define FIELDS_N(name, limit) .n = offsetof(self, n##name), .most = (limit)
#define FIELD(T, name, doc)   FIELDS_ROW(ONE, name, FIELDS_KIND_##T)
#define MAYBE(T, name, doc)                                                                        \
    FIELDS_ROW(MAYBE, name, FIELDS_KIND_##T, .has = offsetof(self, has_##name))
#define MAYBE_TEXT(name, doc)      FIELDS_ROW(MAYBE, name, FIELDS_KIND_TEXT)
#define COUNT(T, name, doc)        FIELDS_ROW(ZERO, name, FIELDS_KIND_##T)
#define FIXED(T, name, count, doc) FIELDS_ROW(FIXED, name, FIELDS_KIND_##T, .most = (count))
#define LIST(T, name, limit, doc)  FIELDS_ROW(LIST, name, FIELDS_KIND_##T, FIELDS_N(name, limit))
#define SOME(T, name, limit, doc)  FIELDS_ROW(SOME, name, FIELDS_KIND_##T, FIELDS_N(name, limit))
#define OPEN(T, name, limit, doc)  FIELDS_ROW(OPEN, name, FIELDS_KIND_##T, FIELDS_N(name, limit))
#define MAYBE_ONE(T, name, doc)    FIELDS_ROW(POINTER, name, FIELDS_KIND_STRUCT(T))
#define MAP(C, name, limit, doc)   FIELDS_ROW(MAP, name, .size = sizeof(C), FIELDS_N(name, limit))
#define OWN(C, name)
#define FIELDS_INT(of, low, high)                                                                  \
    .kind = FIELD_INT, .size = sizeof(of), .least = (low), .largest = (high)
#define RANGE(name, low, high)      FIELDS_ROW(ONE, name, FIELDS_INT(((self *)0)->name, low, high))
#define RANGE_OR_0(name, low, high) FIELDS_ROW(ZERO, name, FIELDS_INT(((self *)0)->name, low, high))
#define FIXED_RANGE(name, count, low, high)                                                        \
    FIELDS_ROW(FIXED, name, FIELDS_INT(*((self *)0)->name, low, high), .most = (count))
#define CHARS(name)       FIELDS_ROW(ONE, name, .kind = FIELD_CHARS, .size = sizeof(((self *)0)->name))
#define NAMED(name, list) FIELDS_ROW(ONE, name, .kind = FIELD_NAME, .names = &(list))
#endif

#define ONE(T, name, doc)           FIELD(STRUCT(T), name, doc)
#define MANY(T, name, most, doc)    LIST(STRUCT(T), name, most, doc)
#define SOME_OF(T, name, most, doc) SOME(STRUCT(T), name, most, doc)
#define OPEN_OF(T, name, most, doc) OPEN(STRUCT(T), name, most, doc)

/* The types of members. */
#ifndef BASE_FIELDS_AS_H
#define BASE_FIELDS_AS_H
#include "base/fields.h"
#include <stddef.h>

#define FIELDS_C_FLAG      bool
#define FIELDS_C_INT       int64_t
#define FIELDS_C_U32       uint32_t
#define FIELDS_C_SIZE      size_t
#define FIELDS_C_SEED      uint64_t
#define FIELDS_C_REAL      double
#define FIELDS_C_TEXT      str
#define FIELDS_C_VERDICT   enum verdict
#define FIELDS_C_DATA      enum data_kind
#define FIELDS_C_STRUCT(T) struct T

#define FIELDS_KIND_FLAG      .kind = FIELD_FLAG, .size = sizeof(bool)
#define FIELDS_KIND_INT       FIELDS_INT(int64_t, 0, INT64_MAX)
#define FIELDS_KIND_U32       FIELDS_INT(uint32_t, 0, UINT32_MAX)
#define FIELDS_KIND_SIZE      FIELDS_INT(size_t, 0, INT64_MAX)
#define FIELDS_KIND_SEED      .kind = FIELD_SEED, .size = sizeof(uint64_t)
#define FIELDS_KIND_REAL      .kind = FIELD_REAL, .size = sizeof(double)
#define FIELDS_KIND_TEXT      .kind = FIELD_TEXT, .size = sizeof(str)
#define FIELDS_KIND_VERDICT   .kind = FIELD_NAME, .size = sizeof(unsigned), .names = &verdict_names
#define FIELDS_KIND_DATA      .kind = FIELD_NAME, .size = sizeof(unsigned), .names = &data_names
#define FIELDS_KIND_STRUCT(T) .kind = FIELD_STRUCT, .size = sizeof(struct T), .of = &T##_fields
#endif
