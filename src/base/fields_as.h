/* What the words of a list of fields mean. Define FIELDS_AS_STRUCTS, FIELDS_AS_DECLARATIONS or
 * FIELDS_AS_TABLES, include this, then the .def file,
 * whose last line is #include "base/fields_end.h".
 *
 *     BEGIN(launch)                       struct launch, and launch_fields, its table
 *     FIELD(TEXT, kernel, "its name")     a member; MAYBE(…): one that may be absent
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
 * RANGE(name, least, largest) is an integer of any size, and FIXED_RANGE and NAMED say the rest. */
#include "base/fields_end.h"

#ifdef FIELDS_AS_STRUCTS
#undef FIELDS_AS_STRUCTS
#define BEGIN(T)       struct T {
#define BEGIN_ARRAY(T) struct T {
#define BEGIN_OPEN(T)  struct T {
#define END(T)                                                                                     \
    }                                                                                              \
    ;
#define FIELD(T, name, doc)        FIELDS_C_##T name;
#define MAYBE(T, name, doc)        FIELDS_HAS_##T(name) FIELDS_C_##T name;
#define COUNT(T, name, doc)        FIELDS_C_##T name;
#define FIXED(T, name, count, doc) FIELDS_C_##T name[count];
#define LIST(T, name, most, doc)                                                                   \
    FIELDS_C_##T *name;                                                                            \
    size_t n##name;
#define SOME(T, name, most, doc) LIST(T, name, most, doc)
#define OPEN(T, name, most, doc) LIST(T, name, most, doc)
#define ONE(T, name, doc)        struct T name;
#define MAYBE_ONE(T, name, doc)  struct T *name;
#define MANY(T, name, most, doc)                                                                   \
    struct T *name;                                                                                \
    size_t n##name;
#define SOME_OF(T, name, most, doc) MANY(T, name, most, doc)
#define OPEN_OF(T, name, most, doc) MANY(T, name, most, doc)
#define MAP(C, name, most, doc)                                                                    \
    C *name;                                                                                       \
    size_t n##name;
#define OWN(C, name) C name;
#endif

#ifdef FIELDS_AS_DECLARATIONS
#undef FIELDS_AS_DECLARATIONS
#define BEGIN(T)       extern const struct fields T##_fields;
#define BEGIN_ARRAY(T) BEGIN(T)
#define BEGIN_OPEN(T)  BEGIN(T)
#define END(T)
#define FIELD(T, name, doc)
#define MAYBE(T, name, doc)
#define COUNT(T, name, doc)
#define FIXED(T, name, count, doc)
#define LIST(T, name, most, doc)
#define SOME(T, name, most, doc)
#define OPEN(T, name, most, doc)
#define ONE(T, name, doc)
#define MAYBE_ONE(T, name, doc)
#define MANY(T, name, most, doc)
#define SOME_OF(T, name, most, doc)
#define OPEN_OF(T, name, most, doc)
#define MAP(C, name, most, doc)
#define OWN(C, name)
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
#define FIELDS_AT(member)     .key = #member, .at = offsetof(self, member)
#define FIELDS_LIST(member)   FIELDS_AT(member), .n = offsetof(self, n##member)
#define FIELDS_OF(T)          .kind = FIELD_STRUCT, .of = &T##_fields, .size = sizeof(struct T)
#define FIELD(T, member, doc) {FIELDS_AT(member), FIELDS_KIND_##T},
#define MAYBE(T, member, doc)                                                                      \
    {FIELDS_AT(member), FIELDS_KIND_##T, .form = FORM_MAYBE, .has = FIELDS_FLAG_##T(member)},
#define COUNT(T, member, doc) {FIELDS_AT(member), FIELDS_KIND_##T, .form = FORM_ZERO},
#define FIXED(T, member, count, doc)                                                               \
    {FIELDS_AT(member), FIELDS_KIND_##T, .form = FORM_FIXED, .most = (count)},
#define LIST(T, member, limit, doc)                                                                \
    {FIELDS_LIST(member), FIELDS_KIND_##T, .form = FORM_LIST, .most = (limit)},
#define SOME(T, member, limit, doc)                                                                \
    {FIELDS_LIST(member), FIELDS_KIND_##T, .form = FORM_SOME, .most = (limit)},
#define OPEN(T, member, limit, doc)                                                                \
    {FIELDS_LIST(member), FIELDS_KIND_##T, .form = FORM_OPEN, .most = (limit)},
#define ONE(T, member, doc)       {FIELDS_AT(member), FIELDS_OF(T)},
#define MAYBE_ONE(T, member, doc) {FIELDS_AT(member), FIELDS_OF(T), .form = FORM_POINTER},
#define MANY(T, member, limit, doc)                                                                \
    {FIELDS_LIST(member), FIELDS_OF(T), .form = FORM_LIST, .most = (limit)},
#define SOME_OF(T, member, limit, doc)                                                             \
    {FIELDS_LIST(member), FIELDS_OF(T), .form = FORM_SOME, .most = (limit)},
#define OPEN_OF(T, member, limit, doc)                                                             \
    {FIELDS_LIST(member), FIELDS_OF(T), .form = FORM_OPEN, .most = (limit)},
#define MAP(C, member, limit, doc)                                                                 \
    {FIELDS_LIST(member), .kind = FIELD_INT, .form = FORM_MAP, .size = sizeof(C), .most = (limit)},
#define OWN(C, name)
/* Of structs that are declared elsewhere. */
#define RANGE(member, low, high)                                                                   \
    {FIELDS_AT(member), .kind = FIELD_INT, .size = sizeof((self *)0)->member, .least = (low),      \
     .largest = (high)},
#define FIXED_RANGE(member, count, low, high)                                                      \
    {FIELDS_AT(member),                                                                            \
     .kind = FIELD_INT,                                                                            \
     .form = FORM_FIXED,                                                                           \
     .most = (count),                                                                              \
     .size = sizeof *((self *)0)->member,                                                          \
     .least = (low),                                                                               \
     .largest = (high)},
#define NAMED(member, list) {FIELDS_AT(member), .kind = FIELD_NAME, .names = &(list)},
#endif

#ifndef BASE_FIELDS_AS_H
#define BASE_FIELDS_AS_H
#include "base/fields.h"
#include <stddef.h>

/* The types of members. */
#define FIELDS_C_FLAG    bool
#define FIELDS_C_INT     int64_t
#define FIELDS_C_U32     uint32_t
#define FIELDS_C_SIZE    size_t
#define FIELDS_C_SEED    uint64_t
#define FIELDS_C_REAL    double
#define FIELDS_C_TEXT    str
#define FIELDS_C_VERDICT enum verdict
#define FIELDS_C_DATA    enum data_kind

#define FIELDS_KIND_FLAG .kind = FIELD_FLAG, .size = sizeof(bool)
#define FIELDS_KIND_INT  .kind = FIELD_INT, .size = sizeof(int64_t), .largest = INT64_MAX
#define FIELDS_KIND_U32  .kind = FIELD_INT, .size = sizeof(uint32_t), .largest = UINT32_MAX
#define FIELDS_KIND_SIZE .kind = FIELD_INT, .size = sizeof(size_t), .largest = INT64_MAX
#define FIELDS_KIND_SEED .kind = FIELD_SEED, .size = sizeof(uint64_t)
#define FIELDS_KIND_REAL .kind = FIELD_REAL, .size = sizeof(double)
#define FIELDS_KIND_TEXT .kind = FIELD_TEXT, .size = sizeof(str)
#define FIELDS_KIND_VERDICT                                                                        \
    .kind = FIELD_NAME, .size = sizeof(enum verdict), .names = &verdict_names
#define FIELDS_KIND_DATA .kind = FIELD_NAME, .size = sizeof(enum data_kind), .names = &data_names

/* The flag beside a member that may be absent; a text needs none. */
#define FIELDS_HAS_FLAG(name)    bool has_##name;
#define FIELDS_HAS_INT(name)     bool has_##name;
#define FIELDS_HAS_U32(name)     bool has_##name;
#define FIELDS_HAS_SEED(name)    bool has_##name;
#define FIELDS_HAS_REAL(name)    bool has_##name;
#define FIELDS_HAS_DATA(name)    bool has_##name;
#define FIELDS_HAS_VERDICT(name) bool has_##name;
#define FIELDS_HAS_TEXT(name)
#define FIELDS_FLAG_FLAG(name)    offsetof(self, has_##name)
#define FIELDS_FLAG_INT(name)     offsetof(self, has_##name)
#define FIELDS_FLAG_U32(name)     offsetof(self, has_##name)
#define FIELDS_FLAG_SEED(name)    offsetof(self, has_##name)
#define FIELDS_FLAG_REAL(name)    offsetof(self, has_##name)
#define FIELDS_FLAG_DATA(name)    offsetof(self, has_##name)
#define FIELDS_FLAG_VERDICT(name) offsetof(self, has_##name)
#define FIELDS_FLAG_TEXT(name)    0
#endif
