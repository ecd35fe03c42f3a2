/* Completion for bash: commands of one or two words, their flags, and the values of choices; where
 * nothing fits, bash falls back to file names. */
#include "base/option_private.h"

static str first_word(const struct option_command *c) {
    str name = str_view(c->name);
    return str_cut(name, 0, str_find(name, S(" ")));
}

static str second_word(const struct option_command *c) {
    str name = str_view(c->name);
    return str_from(name, first_word(c).n + 1);
}

static bool first_of_its_word(const struct option_set *set, size_t i) {
    for (size_t j = 0; j < i; j++)
        if (str_eq(first_word(&set->commands[j]), first_word(&set->commands[i])))
            return false;
    return true;
}

static void put_flags(const struct option_set *set, size_t command, struct buf *out) {
    buf_puts(out, S("words='--help"));
    for (size_t i = 0; i < set->ndefs; i++)
        if (option_of(&set->defs[i], command)) {
            buf_printf(out, " --%s", set->defs[i].name);
            if (set->defs[i].kind == OPTION_BOOL)
                buf_printf(out, " --no-%s", set->defs[i].name);
        }
    buf_puts(out, S("'"));
}

/* The commands that begin with the same word as command i. */
static void put_family(const struct option_set *set, size_t i, struct buf *out) {
    str family = first_word(&set->commands[i]);
    buf_printf(out, "    %.*s)\n", STR_ARG(family));
    buf_puts(out, S("        second='"));
    bool any = false;
    for (size_t j = i; j < set->ncommands; j++) {
        str two = second_word(&set->commands[j]);
        if (str_eq(first_word(&set->commands[j]), family) && two.n) {
            buf_printf(out, "%s%.*s", any ? " " : "", STR_ARG(two));
            any = true;
        }
    }
    buf_puts(out, S("'\n        case \"${COMP_WORDS[2]-}\" in\n"));
    for (int pass = 0; pass < 2; pass++) /* the pattern for all others comes last */
        for (size_t j = i; j < set->ncommands; j++) {
            str two = second_word(&set->commands[j]);
            if (!str_eq(first_word(&set->commands[j]), family) || (pass == 0) != (two.n > 0))
                continue;
            buf_printf(out, "        %.*s) ", STR_ARG(two.n ? two : S("*")));
            put_flags(set, j, out);
            buf_puts(out, S(" ;;\n"));
        }
    buf_puts(out, S("        esac ;;\n"));
}

static void put_values(const struct option_set *set, struct buf *out) {
    buf_puts(out, S("    case $prev in\n"));
    for (size_t i = 0; i < set->ndefs; i++) {
        const struct option_def *d = &set->defs[i];
        if (d->kind == OPTION_BOOL)
            continue;
        buf_printf(out, "    --%s", d->name);
        if (d->letter)
            buf_printf(out, " | -%c", d->letter);
        buf_puts(out, S(") "));
        if (d->kind == OPTION_CHOICE) {
            str rest = str_view(d->choices), word;
            buf_puts(out, S("COMPREPLY=($(compgen -W '"));
            for (bool first = true; str_word(&rest, '|', &word); first = false)
                buf_printf(out, "%s%.*s", first ? "" : " ", STR_ARG(word));
            buf_puts(out, S("' -- \"$cur\")); "));
        }
        buf_puts(out, S("return ;;\n"));
    }
    buf_puts(out, S("    esac\n"));
}

void options_completion_bash(const struct option_set *set, struct buf *out) {
    buf_printf(out, "# bash completion for %s\n_%s() {\n", set->program, set->program);
    buf_puts(out, S("    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                    "    local words='' second=''\n"
                    "    COMPREPLY=()\n"
                    "    if [[ $cur == = ]]; then\n"
                    "        cur=''\n"
                    "    elif [[ $prev == = ]]; then\n"
                    "        prev=${COMP_WORDS[COMP_CWORD-2]}\n"
                    "    fi\n"
                    "    if ((COMP_CWORD == 1)); then\n"
                    "        COMPREPLY=($(compgen -W '"));
    bool any = false;
    for (size_t i = 0; i < set->ncommands; i++)
        if (first_of_its_word(set, i)) {
            buf_printf(out, "%s%.*s", any ? " " : "", STR_ARG(first_word(&set->commands[i])));
            any = true;
        }
    buf_puts(out, S("' -- \"$cur\"))\n        return\n    fi\n"));
    put_values(set, out);
    buf_puts(out, S("    case ${COMP_WORDS[1]} in\n"));
    for (size_t i = 0; i < set->ncommands; i++)
        if (first_of_its_word(set, i))
            put_family(set, i, out);
    buf_puts(out, S("    esac\n"
                    "    if [[ $cur == -* ]]; then\n"
                    "        COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                    "    elif ((COMP_CWORD == 2)) && [[ -n $second ]]; then\n"
                    "        COMPREPLY=($(compgen -W \"$second\" -- \"$cur\"))\n"
                    "    fi\n}\n"));
    buf_printf(out, "complete -o default -F _%s %s\n", set->program, set->program);
}
