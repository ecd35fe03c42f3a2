/* Help, man page and completion, all from the one list of options. Nothing here prints: the text
 * goes to a buf. Lines are wrapped at 80 columns; a line of a command's detail that begins with a
 * blank is an example and stays as it is. */
#include "base/option_private.h"

#include <string.h>

enum { COLUMNS = 80, LEFT_MAX = 28 };

/* ---- wrapping ---- */

static size_t columns(str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += (s.p[i] & 0xc0) != 0x80; /* UTF-8: one for each first byte */
    return n;
}

static void put_blanks(struct buf *out, size_t n) {
    buf_printf(out, "%*s", (int)n, "");
}

/* Words of `text` from column `at` on, further lines indented; ends the line. */
static void put_wrapped(struct buf *out, size_t at, size_t indent, str text) {
    str rest = text, word;
    bool first = true;
    while (str_word(&rest, ' ', &word)) {
        if (!word.n)
            continue;
        size_t width = columns(word);
        if (!first && at + 1 + width > COLUMNS) {
            buf_putc(out, '\n');
            put_blanks(out, indent);
            at = indent;
        } else if (!first) {
            buf_putc(out, ' ');
            at++;
        }
        buf_puts(out, word);
        at += width;
        first = false;
    }
    buf_putc(out, '\n');
}

static void put_detail(struct buf *out, const char *detail) {
    str rest = str_view(detail), line;
    while (str_line(&rest, &line)) {
        if (!line.n || line.p[0] == ' ') {
            buf_puts(out, line);
            buf_putc(out, '\n');
        } else {
            put_wrapped(out, 0, 0, line);
        }
    }
}

/* A term at the left, its explanation in a column at the right. */
static void put_entry(struct buf *out, str left, size_t left_width, str text) {
    size_t at = 2 + columns(left), indent = 2 + left_width + 2;
    buf_puts(out, S("  "));
    buf_puts(out, left);
    if (at + 2 > indent) {
        buf_putc(out, '\n');
        at = 0;
    }
    put_blanks(out, indent - at);
    put_wrapped(out, indent, indent, text);
}

/* ---- one option in words ---- */

static const char *value_name(const struct option_def *d) {
    static const char *const names[] = {
        [OPTION_BOOL] = "yes|no",   [OPTION_INT] = "N",       [OPTION_TEXT] = "TEXT",
        [OPTION_PATH] = "PATH",     [OPTION_CHOICE] = "NAME", [OPTION_LIST] = "TEXT",
        [OPTION_BUDGET] = "BUDGET",
    };
    return d->value_name ? d->value_name : names[d->kind];
}

static void put_flag(struct buf *out, const struct option_def *d) {
    if (d->letter)
        buf_printf(out, "-%c, ", d->letter);
    else
        buf_puts(out, S("    "));
    if (d->kind == OPTION_BOOL)
        buf_printf(out, "--[no-]%s", d->name);
    else
        buf_printf(out, "--%s %s", d->name, value_name(d));
}

static void put_note(struct buf *out, bool *any, const char *label, const char *text) {
    buf_printf(out, "%s%s%s", *any ? "; " : " (", label, text);
    *any = true;
}

static void put_choices(struct buf *out, bool *any, const char *choices) {
    str rest = str_view(choices), word;
    put_note(out, any, "one of ", "");
    for (bool first = true; str_word(&rest, '|', &word); first = false) {
        buf_puts(out, first ? S("") : S(", "));
        buf_puts(out, word);
    }
}

static void put_range(struct buf *out, bool *any, const struct option_def *d) {
    if (d->min == 0 && d->max == 0)
        return;
    put_note(out, any, "", "");
    if (d->max == INT64_MAX)
        buf_printf(out, "at least %lld", (long long)d->min);
    else
        buf_printf(out, "%lld to %lld", (long long)d->min, (long long)d->max);
}

/* "Compilers that run at once (1 to 64; default: 4)." */
static void put_meaning(struct buf *out, const struct option_def *d) {
    str help = str_trim(str_view(d->help));
    bool any = false;
    if (help.n && help.p[help.n - 1] == '.')
        help.n--;
    buf_puts(out, help);
    if (d->kind == OPTION_CHOICE)
        put_choices(out, &any, d->choices);
    if (d->kind == OPTION_INT)
        put_range(out, &any, d);
    if (d->kind == OPTION_LIST)
        put_note(out, &any, "may be repeated", "");
    if (d->kind == OPTION_BUDGET)
        put_note(out, &any, "such as 60s, 5m, 1h, 200c or 60s,200c", "");
    if (d->fallback && d->fallback[0])
        put_note(out, &any, "default: ", d->fallback);
    buf_puts(out, any ? S(").") : S("."));
}

/* ---- help ---- */

static void put_sources(const struct option_set *set, const struct option_def *example,
                        struct buf *out) {
    char name[2 * OPTION_NAME_MAX];
    struct buf text;
    buf_init(&text, 4096);
    buf_printf(&text,
               "Every option can also be set in the environment (--%s as %s) and in the YAML "
               "configuration file (as '%s: VALUE'). A flag wins over the environment, the "
               "environment over the file.",
               example->name, option_env_name(set, example, name), example->name);
    put_wrapped(out, 0, 0, buf_str(&text));
    buf_release(&text);
}

static const struct option_def *first_of(const struct option_set *set, size_t command) {
    for (size_t i = 0; i < set->ndefs; i++)
        if (option_of(&set->defs[i], command))
            return &set->defs[i];
    return NULL;
}

static size_t flags_width(const struct option_set *set, size_t command, struct buf *scratch) {
    size_t width = strlen("-h, --help");
    for (size_t i = 0; i < set->ndefs; i++) {
        if (!option_of(&set->defs[i], command))
            continue;
        buf_clear(scratch);
        put_flag(scratch, &set->defs[i]);
        size_t n = columns(buf_str(scratch));
        if (n > width && n <= LEFT_MAX)
            width = n;
    }
    return width;
}

static void put_options(const struct option_set *set, size_t command, struct buf *out) {
    struct buf left, right;
    buf_init(&left, 1024);
    buf_init(&right, 8192);
    size_t width = flags_width(set, command, &left);
    for (size_t i = 0; i < set->ndefs; i++) {
        if (!option_of(&set->defs[i], command))
            continue;
        buf_clear(&left);
        buf_clear(&right);
        put_flag(&left, &set->defs[i]);
        put_meaning(&right, &set->defs[i]);
        put_entry(out, buf_str(&left), width, buf_str(&right));
    }
    put_entry(out, S("-h, --help"), width, S("Print this text."));
    buf_release(&left);
    buf_release(&right);
}

void options_help(const struct option_set *set, size_t command, struct buf *out) {
    const struct option_command *c = &set->commands[command];
    const struct option_def *example = first_of(set, command);
    buf_printf(out, "Usage: %s %s [OPTION]...%s%s\n\n", set->program, c->name,
               c->arguments[0] ? " " : "", c->arguments);
    put_wrapped(out, 0, 0, str_view(c->summary));
    if (c->detail) {
        buf_putc(out, '\n');
        put_detail(out, c->detail);
    }
    buf_puts(out, S("\nOptions:\n"));
    put_options(set, command, out);
    if (example) {
        buf_putc(out, '\n');
        put_sources(set, example, out);
    }
}

static void put_command(struct buf *out, const struct option_command *c) {
    buf_printf(out, "%s%s%s", c->name, c->arguments[0] ? " " : "", c->arguments);
}

static bool begins_with(const struct option_command *c, const char *word) {
    str name = str_view(c->name), first;
    return str_word(&name, ' ', &first) && name.n && str_is(first, word);
}

bool options_group(const struct option_set *set, const char *word) {
    for (size_t i = 0; i < set->ncommands; i++)
        if (begins_with(&set->commands[i], word))
            return true;
    return false;
}

void options_overview(const struct option_set *set, const char *word, struct buf *out) {
    struct buf left;
    size_t width = 0;
    buf_init(&left, 1024);
    for (size_t i = 0; i < set->ncommands; i++) {
        if (word && !begins_with(&set->commands[i], word))
            continue;
        buf_clear(&left);
        put_command(&left, &set->commands[i]);
        size_t n = columns(buf_str(&left));
        if (n > width && n <= LEFT_MAX)
            width = n;
    }
    if (!word)
        buf_printf(out, "%s %s: %s\n\n", set->program, set->version, set->tagline);
    buf_printf(out, "Usage: %s %s%sCOMMAND [OPTION]... [ARGUMENT]...\n\nCommands:\n", set->program,
               word ? word : "", word ? " " : "");
    for (size_t i = 0; i < set->ncommands; i++) {
        if (word && !begins_with(&set->commands[i], word))
            continue;
        buf_clear(&left);
        put_command(&left, &set->commands[i]);
        put_entry(out, buf_str(&left), width, str_view(set->commands[i].summary));
    }
    buf_release(&left);
    buf_printf(out, "\n'%s %s%sCOMMAND --help' explains a command and its options.\n", set->program,
               word ? word : "", word ? " " : "");
}

/* ---- man page ---- */

/* Text as text: no request at the start of a line, no escapes, dashes that can be copied. */
static void put_roff(struct buf *out, str s) {
    bool line_start = true;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (line_start && (c == '.' || c == '\''))
            buf_puts(out, S("\\&"));
        if (c == '\\')
            buf_puts(out, S("\\e"));
        else if (c == '-')
            buf_puts(out, S("\\-"));
        else
            buf_putc(out, c);
        line_start = c == '\n';
    }
}

static void put_roff_line(struct buf *out, const char *text) {
    put_roff(out, str_trim(str_view(text)));
    buf_putc(out, '\n');
}

static void man_flag(struct buf *out, const struct option_def *d) {
    buf_puts(out, S(".TP\n"));
    if (d->letter)
        buf_printf(out, "\\fB\\-%c\\fR, ", d->letter);
    buf_puts(out, S("\\fB\\-\\-"));
    if (d->kind == OPTION_BOOL)
        buf_puts(out, S("[no\\-]"));
    put_roff(out, str_view(d->name));
    buf_puts(out, S("\\fR"));
    if (d->kind != OPTION_BOOL) {
        buf_puts(out, S(" \\fI"));
        put_roff(out, str_view(value_name(d)));
        buf_puts(out, S("\\fR"));
    }
    buf_putc(out, '\n');
}

static void man_option(const struct option_set *set, const struct option_def *d, struct buf *out) {
    struct buf text;
    buf_init(&text, 8192);
    put_meaning(&text, d);
    bool any = false;
    for (size_t i = 0; i < set->ncommands; i++)
        if (option_of(d, i)) {
            buf_printf(&text, "%s%s", any ? ", " : "\nCommands: ", set->commands[i].name);
            any = true;
        }
    buf_puts(&text, any ? S(".") : S(""));
    man_flag(out, d);
    put_roff(out, buf_str(&text));
    buf_putc(out, '\n');
    buf_release(&text);
}

static void man_detail(struct buf *out, const char *detail) {
    str rest = str_view(detail), line;
    buf_puts(out, S(".PP\n"));
    while (str_line(&rest, &line)) {
        bool example = line.n && line.p[0] == ' ';
        if (!line.n)
            buf_puts(out, S(".PP\n"));
        if (example)
            buf_puts(out, S(".nf\n"));
        if (line.n) {
            put_roff(out, line);
            buf_putc(out, '\n');
        }
        if (example)
            buf_puts(out, S(".fi\n"));
    }
}

static void man_commands(const struct option_set *set, struct buf *out) {
    buf_puts(out, S(".SH COMMANDS\n"));
    for (size_t i = 0; i < set->ncommands; i++) {
        const struct option_command *c = &set->commands[i];
        buf_puts(out, S(".TP\n\\fB"));
        put_roff(out, str_view(c->name));
        buf_puts(out, S("\\fR \\fI"));
        put_roff(out, str_view(c->arguments));
        buf_puts(out, S("\\fR\n"));
        put_roff_line(out, c->summary);
    }
    for (size_t i = 0; i < set->ncommands; i++) {
        if (!set->commands[i].detail)
            continue;
        buf_puts(out, S(".SS "));
        put_roff_line(out, set->commands[i].name);
        man_detail(out, set->commands[i].detail);
    }
}

static void man_tail(const struct option_set *set, struct buf *out) {
    static const struct {
        enum err_kind code;
        const char *meaning;
    } exits[] = {
        {ERR_NONE, "Done; for a question, the answer is yes."},
        {ERR_NO, "The answer is no: a rejected kernel, nothing found."},
        {ERR_INPUT, "Bad input or usage."},
        {ERR_ENV, "The environment failed: no GPU, no compiler, a provider that is down."},
    };
    if (set->ndefs) {
        struct buf text;
        buf_init(&text, 4096);
        put_sources(set, &set->defs[0], &text);
        buf_puts(out, S(".SH ENVIRONMENT AND CONFIGURATION\n"));
        put_roff(out, buf_str(&text));
        buf_release(&text);
    }
    buf_puts(out, S(".SH EXIT STATUS\n"));
    for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
        buf_printf(out, ".TP\n.B %d\n%s\n", (int)exits[i].code, exits[i].meaning);
}

/* No date: the same sources give the same page. */
void options_man(const struct option_set *set, struct buf *out) {
    buf_printf(out, ".TH %s 1 \"\" \"%s %s\" \"User Commands\"\n.SH NAME\n", set->program,
               set->program, set->version);
    buf_printf(out, "%s \\- ", set->program);
    put_roff_line(out, set->tagline);
    buf_printf(out,
               ".SH SYNOPSIS\n.B %s\n\\fICOMMAND\\fR [\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]..."
               "\n",
               set->program);
    man_commands(set, out);
    buf_puts(out, S(".SH OPTIONS\n"));
    for (size_t i = 0; i < set->ndefs; i++)
        man_option(set, &set->defs[i], out);
    man_tail(set, out);
}
