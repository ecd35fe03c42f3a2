/* What the files of the option module share: option.c reads flags and the environment,
 * option_yaml.c the configuration file, option_value.c knows the kinds, option_text.c writes help,
 * man page and completion. Private to those. */
#ifndef BASE_OPTION_PRIVATE_H
#define BASE_OPTION_PRIVATE_H

#include "base/option.h"

/* In the order of their rank: a value never replaces one of a higher source. */
enum option_source { FROM_NOWHERE, FROM_DEFAULT, FROM_FILE, FROM_ENV, FROM_FLAG };

struct option_value {
    enum option_source from;
    const char *text; /* as given */
    bool on;
    int64_t number;
    struct budget budget;
    const char **list;
    size_t nlist;
};

struct options {
    const struct option_set *set;
    size_t command;
    struct arena *arena;
    struct option_value *values; /* one for each of set->defs */
    char **args;
    size_t nargs;
    bool help;
};

#define OPTION_ANY_COMMAND SIZE_MAX
#define OPTION_NAME_MAX    64

struct options *options_new(const struct option_set *set, size_t command, struct arena *a);

/* Index into set->defs, or set->ndefs. */
size_t option_find(const struct option_set *set, size_t command, str name);
bool option_of(const struct option_def *def, size_t command);
/* The name most like this one, or NULL where none is near. */
const char *option_nearest(const struct option_set *set, size_t command, str name);
/* CUTEPILOT_COMPILE_JOBS */
const char *option_env_name(const struct option_set *set, const struct option_def *def,
                            char space[2 * OPTION_NAME_MAX]);

/* Checks a value by the kind of option i and keeps it unless a higher source has spoken. The error
 * says only what is wrong; the caller adds where it stands. A list takes one more element. */
bool option_take(struct options *o, size_t i, enum option_source from, str value, struct err *err);
/* The same, with a list's elements separated by commas. */
bool option_take_split(struct options *o, size_t i, enum option_source from, str value,
                       struct err *err);
/* A list from this source begins, empty. */
void option_take_none(struct options *o, size_t i, enum option_source from);

/* The configuration file; `file` is its name in messages. */
bool options_read_yaml(struct options *o, str file, str text, struct err *err);

#endif
