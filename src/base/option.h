/* One list of options makes flags, environment variables, YAML keys, help, man page and completion.
 *
 * An option named `compile-jobs` is `--compile-jobs N`, CUTEPILOT_COMPILE_JOBS and the YAML key
 * `compile-jobs`. A flag wins over the environment, the environment over the file, the file over
 * the default. Booleans take `--name`, `--no-name` and `--name=yes|no`. Values are checked by kind
 * where they come from, and the message names that place. Unknown options get the nearest known
 * name as a hint. */
#ifndef BASE_OPTION_H
#define BASE_OPTION_H

#include "base/arena.h"
#include "base/err.h"

enum option_kind {
    OPTION_BOOL,
    OPTION_INT, /* int64, optional min/max */
    OPTION_TEXT,
    OPTION_PATH,
    OPTION_CHOICE, /* one of `choices`, separated by | */
    OPTION_LIST,   /* text, may be repeated; environment and YAML: comma-separated or a sequence */
    OPTION_BUDGET, /* 60s, 5m, 200c */
};

struct option_def {
    const char *name;
    char letter; /* 0: none */
    enum option_kind kind;
    const char *value_name; /* in help: FILE, N, … */
    const char *fallback;   /* default as text; NULL: unset */
    const char *choices;
    int64_t min, max;  /* INT; both 0: no limits */
    const char *help;  /* one sentence */
    uint64_t commands; /* bit i: belongs to commands[i] of the table it is used with */
    unsigned group;    /* in the help of commands with many options: which of the set's groups */
};

struct budget {
    uint64_t ms, candidates; /* 0: not limited by it */
};

struct options; /* parsed values; lives in an arena */

struct option_command {
    const char *name;       /* "task eval" is two words */
    const char *arguments;  /* "TASK", "TASK K.cu…", "" */
    const char *summary;    /* one line */
    const char *detail;     /* further paragraphs of help, or NULL */
    int min_args, max_args; /* max -1: any */
};

struct option_set {
    const char *program, *version, *tagline;
    const struct option_def *defs;
    size_t ndefs;
    const struct option_command *commands;
    size_t ncommands;
    const char *const *groups; /* headings, in the order of help; NULL: there are none */
    size_t ngroups;
};

/* argv without program and command. env as in environ. config_file may be NULL. Anything after `--`
 * is an argument. */
bool options_parse(const struct option_set *set, size_t command, int argc, char *const *argv,
                   char *const *env, const char *config_file, struct arena *a, struct options **out,
                   struct err *err);

bool option_bool(const struct options *o, const char *name);
int64_t option_int(const struct options *o, const char *name);
const char *option_text(const struct options *o, const char *name); /* NULL: unset */
size_t option_list(const struct options *o, const char *name, const char *const **values);
struct budget option_budget(const struct options *o, const char *name);
bool option_given(const struct options *o, const char *name); /* not just the default */
size_t options_args(const struct options *o, char *const **args);
bool options_help_asked(const struct options *o); /* --help / -h, known for every command */

void options_help(const struct option_set *set, size_t command, struct buf *out);
/* All commands, or those that begin with a word. */
void options_overview(const struct option_set *set, const char *word, struct buf *out);
bool options_group(const struct option_set *set, const char *word); /* are there such? */
/* The command whose name is most like this word, or NULL where none is near. */
const char *options_nearest_command(const struct option_set *set, const char *word);
void options_man(const struct option_set *set, struct buf *out); /* roff */
/* For bash, zsh or fish; false: for no other shell. */
bool options_completion(const struct option_set *set, const char *shell, struct buf *out);

/* ---- for option.c and its tests alone ---- */

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

/* The configuration file; `file` is its name in messages. */
bool options_read_yaml(struct options *o, str file, str text, struct err *err);

#endif
