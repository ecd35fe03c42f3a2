/* Structs that travel and are kept as JSON, each described once, field by field, in a .def file.
 *
 * base/fields_as.h turns such a file into C structs, or into the tables that are declared here.
 * With a table a struct is written, read back and copied. Reading checks everything: types, the
 * range of every integer, the length of every list, the names of every enum. What is wrong is said
 * with the field's name. Unknown members are passed over, so that an older program reads what a
 * newer one wrote.
 *
 * Texts and lists of a struct that was read or copied lie in the arena that was given. */
#ifndef BASE_FIELDS_H
#define BASE_FIELDS_H

#include "base/arena.h"
#include "base/json.h"

enum field_kind {
    FIELD_FLAG,
    FIELD_INT,  /* of 4 or 8 bytes, within least and largest */
    FIELD_SEED, /* 64 bits, as decimal text: JSON's readers may not have so many */
    FIELD_REAL, /* NAN where it is null; what is not finite is written as null */
    FIELD_TEXT,
    FIELD_CHARS, /* a text in an array of `size` bytes */
    FIELD_NAME,  /* an enum, by its name */
    FIELD_STRUCT,
};

enum field_form {
    FORM_ONE,     /* must be there; but a flag that is not is false, and a real number NAN */
    FORM_MAYBE,   /* has_NAME says whether it is there; of a text, that it is not NULL */
    FORM_ZERO,    /* an integer that is left out where it is 0 */
    FORM_POINTER, /* to a struct; NULL: it is not there */
    FORM_FIXED,   /* an array of `most` */
    FORM_LIST,    /* NAME and nNAME: at most `most` */
    FORM_OPEN,    /* the same, which may be absent when it is read */
    FORM_SOME,    /* the same, left out where it is empty */
    FORM_MAP,     /* the same of pairs of a name and an int64_t, as an object */
};

struct field_names { /* of an enum: 0 to n-1 */
    const char *(*name)(unsigned value);
    unsigned n;
};

struct fields;
struct field_row {
    const char *key;
    enum field_kind kind;
    enum field_form form;
    size_t at, has, n; /* offsets: of the value or the list, of its flag, of its length */
    size_t most;
    size_t size; /* of one, in bytes */
    int64_t least, largest;
    const struct fields *of;
    const struct field_names *names;
};

struct fields {
    size_t size;
    bool as_array; /* its fields in order, without names */
    bool open;     /* what is absent, in it and below, is 0: an older version may not have had it.
                      Enums have to be there. */
    const struct field_row *(*table)(size_t *n);
};

json *fields_to_json(const struct fields *of, const void *from);
/* The same as text at once, for messages that are sent often. */
void fields_write(const struct fields *of, const void *from, struct buf *out);
/* False: err says which field is wrong, and how (kind ERR_INPUT). `to` then holds nothing. */
bool fields_from_json(const struct fields *of, const json *j, struct arena *a, void *to,
                      struct err *err);
void fields_copy(const struct fields *of, const void *from, struct arena *a, void *to);

#define fields_set(struct_, name, value) ((struct_)->has_##name = true, (struct_)->name = (value))

#endif
