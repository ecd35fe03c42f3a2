/* Options: the command line, then the environment, then the file, each value checked where it
 * stands and kept unless a higher source has spoken. Once --help is seen nothing else matters. */
#include "base/option_private.h"

#include "base/file.h"
#include <stdio.h>
#include <string.h>

enum { CONFIG_BYTES_MAX = 1 << 20 };

/* ---- names ---- */

bool option_of(const struct option_def *def, size_t command) {
    return command == OPTION_ANY_COMMAND || (command < 64 && (def->commands >> command & 1));
}

size_t option_find(const struct option_set *set, size_t command, str name) {
    size_t i = 0;
    while (i < set->ndefs &&
           !(option_of(&set->defs[i], command) && str_is(name, set->defs[i].name)))
        i++;
    return i;
}

/* Edits (insert, remove, replace) from a to b, both at most OPTION_NAME_MAX long. */
static size_t edit_distance(str a, str b) {
    size_t row[OPTION_NAME_MAX + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t replace = diagonal + (a.p[i - 1] != b.p[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[b.n];
}

const char *option_nearest(const struct option_set *set, size_t command, str name) {
    const char *best = NULL;
    size_t least = 1 + (name.n < 6 ? 1 : name.n / 3); /* further away is no help */
    for (size_t i = 0; i < set->ndefs && name.n <= OPTION_NAME_MAX; i++) {
        str known = str_view(set->defs[i].name);
        if (!option_of(&set->defs[i], command) || known.n > OPTION_NAME_MAX)
            continue;
        size_t d = edit_distance(name, known);
        if (d < least) {
            least = d;
            best = set->defs[i].name;
        }
    }
    return best;
}

const char *option_env_name(const struct option_set *set, const struct option_def *def,
                            char space[2 * OPTION_NAME_MAX]) {
    int n = snprintf(space, 2 * OPTION_NAME_MAX, "%s_%s", set->program, def->name);
    BUG_IF(n < 0 || n >= 2 * OPTION_NAME_MAX);
    for (char *p = space; *p; p++)
        *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p == '-' ? '_' : *p;
    return space;
}

/* ---- flags ---- */

struct cursor {
    int argc, at; /* at: the next one */
    char *const *argv;
};

static const struct option_command *command_of(const struct options *o) {
    return &o->set->commands[o->command];
}

static bool unknown_flag(const struct options *o, str name, struct err *err) {
    const struct option_set *set = o->set;
    const char *near = option_nearest(set, o->command, name);
    if (option_find(set, OPTION_ANY_COMMAND, name) < set->ndefs)
        return err_set(err, ERR_INPUT, "--%.*s is not an option of '%s'; see %s %s --help",
                       STR_ARG(name), command_of(o)->name, set->program, command_of(o)->name);
    if (near)
        return err_set(err, ERR_INPUT, "unknown option --%.*s; did you mean --%s?", STR_ARG(name),
                       near);
    return err_set(err, ERR_INPUT, "unknown option --%.*s; see %s %s --help", STR_ARG(name),
                   set->program, command_of(o)->name);
}

/* inline_value.p is NULL where none was attached. */
static bool take_flag(struct options *o, size_t i, str inline_value, struct cursor *c,
                      struct err *err) {
    const struct option_def *d = &o->set->defs[i];
    str value = inline_value;
    if (!value.p && d->kind == OPTION_BOOL)
        value = S("yes");
    if (!value.p) {
        if (c->at == c->argc)
            return err_set(err, ERR_INPUT, "--%s needs a value%s%s", d->name,
                           d->value_name ? ": " : "", d->value_name ? d->value_name : "");
        value = str_view(c->argv[c->at++]);
    }
    return option_take(o, i, FROM_FLAG, value, err) || err_wrap(err, "--%s", d->name);
}

static bool take_long(struct options *o, str text, struct cursor *c, struct err *err) {
    size_t eq = str_find(text, S("="));
    str name = str_cut(text, 0, eq);
    str value = eq < text.n ? str_from(text, eq + 1) : (str){NULL, 0};
    size_t i = option_find(o->set, o->command, name);
    if (i < o->set->ndefs)
        return take_flag(o, i, value, c, err);
    if (str_is(name, "help") && !value.p)
        return o->help = true;
    if (str_starts(name, S("no-"))) {
        i = option_find(o->set, o->command, str_from(name, 3));
        if (i < o->set->ndefs && o->set->defs[i].kind == OPTION_BOOL) {
            if (value.p)
                return err_set(err, ERR_INPUT, "--%.*s takes no value", STR_ARG(name));
            return option_take(o, i, FROM_FLAG, S("no"), err);
        }
    }
    return unknown_flag(o, name, err);
}

static bool take_short(struct options *o, const char *text, struct cursor *c, struct err *err) {
    const struct option_set *set = o->set;
    for (size_t i = 0; i < set->ndefs; i++) {
        const struct option_def *d = &set->defs[i];
        if (!d->letter || d->letter != text[0] || !option_of(d, o->command))
            continue;
        if (!text[1])
            return take_flag(o, i, (str){NULL, 0}, c, err);
        if (d->kind == OPTION_BOOL)
            return err_set(err, ERR_INPUT, "-%c takes no value; say --%s=no to switch it off",
                           d->letter, d->name);
        return take_flag(o, i, str_view(text + 1), c, err);
    }
    if (strcmp(text, "h") == 0)
        return o->help = true;
    return err_set(err, ERR_INPUT, "unknown option -%s; see %s %s --help", text, set->program,
                   command_of(o)->name);
}

static bool read_flags(struct options *o, int argc, char *const *argv, struct err *err) {
    struct cursor c = {argc, 0, argv};
    bool only_arguments = false;
    o->args = arena_array(o->arena, char *, (size_t)argc + 1);
    while (c.at < argc && !o->help) {
        char *arg = argv[c.at++];
        bool ok = true;
        if (only_arguments || arg[0] != '-' || !arg[1])
            o->args[o->nargs++] = arg;
        else if (strcmp(arg, "--") == 0)
            only_arguments = true;
        else if (arg[1] == '-')
            ok = take_long(o, str_view(arg + 2), &c, err);
        else
            ok = take_short(o, arg + 1, &c, err);
        if (!ok)
            return false;
    }
    return true;
}

/* ---- the other sources ---- */

static const char *env_get(char *const *env, const char *name) {
    size_t n = strlen(name);
    for (size_t i = 0; env && env[i]; i++)
        if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
            return env[i] + n + 1;
    return NULL;
}

static bool read_env(struct options *o, char *const *env, struct err *err) {
    char name[2 * OPTION_NAME_MAX];
    for (size_t i = 0; i < o->set->ndefs; i++) {
        if (!option_of(&o->set->defs[i], o->command))
            continue;
        const char *value = env_get(env, option_env_name(o->set, &o->set->defs[i], name));
        if (value && *value && !option_take_split(o, i, FROM_ENV, str_view(value), err))
            return err_wrap(err, "%s", name);
    }
    return true;
}

static bool read_config(struct options *o, const char *path, struct err *err) {
    str text;
    if (file_read(path, CONFIG_BYTES_MAX, o->arena, &text, err))
        return options_read_yaml(o, str_view(path), text, err);
    err->kind = ERR_INPUT; /* it was named, so it should be there */
    return err_wrap(err, "configuration file");
}

static bool check_args(const struct options *o, struct err *err) {
    const struct option_command *c = command_of(o);
    if (o->nargs < (size_t)c->min_args)
        return err_set(err, ERR_INPUT, "'%s' needs %s; see %s %s --help", c->name, c->arguments,
                       o->set->program, c->name);
    if (c->max_args >= 0 && o->nargs > (size_t)c->max_args)
        return err_set(err, ERR_INPUT, "'%s' has no use for '%s'; see %s %s --help", c->name,
                       o->args[c->max_args], o->set->program, c->name);
    return true;
}

bool options_parse(const struct option_set *set, size_t command, int argc, char *const *argv,
                   char *const *env, const char *config_file, struct arena *a, struct options **out,
                   struct err *err) {
    BUG_IF(command >= set->ncommands || argc < 0);
    struct options *o = options_new(set, command, a);
    *out = o;
    return read_flags(o, argc, argv, err) &&
           (o->help || (check_args(o, err) && read_env(o, env, err) &&
                        (!config_file || read_config(o, config_file, err))));
}
