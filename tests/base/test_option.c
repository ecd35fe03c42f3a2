#include "base/option.h"
#include "tap.h"
#include <stdlib.h>
#include <unistd.h>

static struct err err;

enum { OPTIMIZE, VERIFY, TASK_EVAL };
#define ON(c) ((uint64_t)1 << (c))

static const struct option_def defs[] = {
    {"compile-jobs", 'j', OPTION_INT, "N", "4", .min = 1, .max = 64,
     .help = "Compilers that run at once.", .commands = ON(OPTIMIZE) | ON(VERIFY)},
    {"out", 'o', OPTION_PATH, "DIR", NULL, .help = "Where the run is kept.",
     .commands = ON(OPTIMIZE) | ON(TASK_EVAL)},
    {"agent", 0, OPTION_CHOICE, NULL, "expert", "expert|llm|hybrid", .help = "Who writes kernels",
     .commands = ON(OPTIMIZE)},
    {"include", 'I', OPTION_LIST, "DIR", "a,b", .help = "A further folder of headers.",
     .commands = ON(OPTIMIZE)},
    {"budget", 'b', OPTION_BUDGET, NULL, "5m", .help = "When to stop.", .commands = ON(OPTIMIZE)},
    {"json", 0, OPTION_BOOL, .help = "Print one object.",
     .commands = ON(OPTIMIZE) | ON(VERIFY) | ON(TASK_EVAL)},
    {"roofline", 'r', OPTION_BOOL, NULL, "yes", .help = "Show roofline facts to the agents.",
     .commands = ON(OPTIMIZE)},
    {"seed", 0, OPTION_INT, "N", "1", .min = 0, .max = INT64_MAX, .help = "Seed of the search.",
     .commands = ON(OPTIMIZE)},
    {"note", 0, OPTION_TEXT, "TEXT", NULL,
     .help = "A remark that is kept with the run and shown in its report, so that one still knows "
             "months later what it was for.",
     .commands = ON(OPTIMIZE)},
    {"tolerance-of-a-rather-long-name", 0, OPTION_INT, "NUMBER", "-3", .help = "Any number.",
     .commands = ON(VERIFY)},
};

static const struct option_command commands[] = {
    {"optimize", "TASK", "Find a fast kernel for a task.",
     "The run goes on where it stopped.\n\nExample:\n  tool optimize a.task   --json\n", 1, 1},
    {"verify", "TASK K.cu...", "Is this kernel right?", NULL, 2, -1},
    {"task eval", "TASK", "Evaluate a task on the CPU.", NULL, 1, 1},
};

static const struct option_set set = {"cutepilot",
                                      "9.8.7",
                                      "fast kernels",
                                      defs,
                                      sizeof defs / sizeof *defs,
                                      commands,
                                      sizeof commands / sizeof *commands};

/* Words separated by blanks; the parsed options live in `arena` until the next call. */
static struct arena *arena;
static struct options *parse(size_t command, const char *line, char *const *env,
                             const char *config) {
    static char words[8][128];
    static char *argv[8];
    int argc = 0;
    str rest = str_view(line), word;
    while (argc < 8 && str_word(&rest, ' ', &word)) {
        snprintf(words[argc], sizeof words[argc], "%.*s", STR_ARG(word));
        argv[argc] = words[argc];
        argc++;
    }
    arena_free(arena);
    arena = arena_new(1 << 20);
    err = (struct err){0};
    struct options *o;
    return options_parse(&set, command, argc, argv, env, config, arena, &o, &err) ? o : NULL;
}

static void defaults(void) {
    const char *const *list;
    char *const *args;
    struct options *o = parse(OPTIMIZE, "x.task", NULL, NULL);
    CHECK(o);
    CHECK(option_int(o, "compile-jobs") == 4 && !option_given(o, "compile-jobs"));
    CHECK(option_text(o, "out") == NULL && strcmp(option_text(o, "agent"), "expert") == 0);
    CHECK(option_list(o, "include", &list) == 2 && strcmp(list[1], "b") == 0);
    CHECK(option_budget(o, "budget").ms == 300000 && option_budget(o, "budget").candidates == 0);
    CHECK(!option_bool(o, "json") && option_bool(o, "roofline") && !options_help_asked(o));
    CHECK(options_args(o, &args) == 1 && strcmp(args[0], "x.task") == 0);
    CHECK(option_int(o, "tolerance-of-a-rather-long-name") == -3); /* another command's */
}

static void spellings(void) {
    static const char *const lines[] = {
        "t --compile-jobs 8",
        "t --compile-jobs=8",
        "t -j 8",
        "t -j8",
        "-j8 t",
        "--compile-jobs 2 t --compile-jobs 8",
        "--json -j 8 -- t",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *const *args;
        struct options *o = parse(OPTIMIZE, lines[i], NULL, NULL);
        CHECKF(o && option_int(o, "compile-jobs") == 8 && option_given(o, "compile-jobs"), "%s: %s",
               lines[i], err.text);
        CHECK(o && options_args(o, &args) == 1 && strcmp(args[0], "t") == 0);
    }
    struct options *o = parse(OPTIMIZE, "-I x t -Iy --include=z,w", NULL, NULL);
    const char *const *list;
    CHECK(o && option_list(o, "include", &list) == 3 && strcmp(list[2], "z,w") == 0);
    o = parse(OPTIMIZE, "t --note= --out -", NULL, NULL);
    CHECK(o && option_text(o, "note")[0] == 0 && strcmp(option_text(o, "out"), "-") == 0);
    o = parse(VERIFY, "-- --json -", NULL, NULL);
    char *const *args;
    CHECK(o && options_args(o, &args) == 2 && strcmp(args[0], "--json") == 0);
}

static void booleans(void) {
    static const struct {
        const char *line;
        bool want;
    } rows[] = {
        {"t", true},
        {"t --no-roofline", false},
        {"t --roofline=no", false},
        {"t --roofline", true},
        {"t --no-roofline -r", true},
        {"t --roofline=off", false},
        {"t --roofline=1", true},
        {"t -r --no-roofline", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct options *o = parse(OPTIMIZE, rows[i].line, NULL, NULL);
        CHECKF(o && option_bool(o, "roofline") == rows[i].want, "%s", rows[i].line);
    }
}

static void budgets(void) {
    static const struct {
        const char *text;
        uint64_t ms, candidates;
    } rows[] = {
        {"60s", 60000, 0},
        {"5m", 300000, 0},
        {"1h", 3600000, 0},
        {"200c", 0, 200},
        {"60s,200c", 60000, 200},
        {"7c,2h", 7200000, 7}, /* and not: */
        {"60", 0, 0},
        {"s", 0, 0},
        {"", 0, 0},
        {"0s", 0, 0},
        {"-5s", 0, 0},
        {"60s,5m", 0, 0},
        {"1c,2c", 0, 0},
        {"60s,", 0, 0},
        {",60s", 0, 0},
        {"60 s", 0, 0},
        {"1.5h", 0, 0},
        {"0x10s", 0, 0},
        {"99999999999999999999s", 0, 0},
        {"18446744073709551615h", 0, 0},
        {"+5s", 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char arg[64];
        char *argv[] = {"t", arg};
        struct options *o;
        snprintf(arg, sizeof arg, "--budget=%s", rows[i].text);
        struct arena *a = arena_new(1 << 20);
        bool ok = options_parse(&set, OPTIMIZE, 2, argv, NULL, NULL, a, &o, &err);
        CHECKF(ok == (rows[i].ms || rows[i].candidates), "%s", rows[i].text);
        if (ok)
            CHECKF(option_budget(o, "budget").ms == rows[i].ms &&
                       option_budget(o, "budget").candidates == rows[i].candidates,
                   "%s", rows[i].text);
        else
            CHECKF(strstr(err.text, "--budget: expects a budget"), "%s", err.text);
        arena_free(a);
    }
}

static void flag_errors(void) {
    static const struct {
        size_t command;
        const char *line, *message;
    } rows[] = {
        {OPTIMIZE, "t --compile-job 3",
         "unknown option --compile-job; did you mean --compile-jobs?"},
        {OPTIMIZE, "t --nonsense", "unknown option --nonsense; see cutepilot optimize --help"},
        {OPTIMIZE, "t --no-agent", "unknown option --no-agent"},
        {OPTIMIZE, "t -x", "unknown option -x; see cutepilot optimize --help"},
        {VERIFY, "t k --agent llm", "--agent is not an option of 'verify'"},
        {OPTIMIZE, "t --compile-jobs 0", "--compile-jobs: must lie between 1 and 64, not be 0"},
        {OPTIMIZE, "t --seed -1", "--seed: must be at least 0, not -1"},
        {OPTIMIZE, "t -j 3x", "--compile-jobs: expects a whole number, not '3x'"},
        {OPTIMIZE, "t --agent me", "--agent: expects one of expert|llm|hybrid, not 'me'"},
        {OPTIMIZE, "t --agent exper", "expects one of"},
        {OPTIMIZE, "t --roofline=maybe", "--roofline: expects yes or no, not 'maybe'"},
        {OPTIMIZE, "t --no-roofline=yes", "--no-roofline takes no value"},
        {OPTIMIZE, "t -rx", "-r takes no value"},
        {OPTIMIZE, "t --out", "--out needs a value: DIR"},
        {OPTIMIZE, "t --out=", "--out: expects a path"},
        {OPTIMIZE, "", "'optimize' needs TASK"},
        {OPTIMIZE, "t u", "'optimize' takes no argument 'u'"},
        {VERIFY, "t", "'verify' needs TASK K.cu..."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(!parse(rows[i].command, rows[i].line, NULL, NULL), "%s", rows[i].line);
        CHECKF(err.kind == ERR_INPUT && strstr(err.text, rows[i].message), "%s: %s", rows[i].line,
               err.text);
    }
}

static void environment(void) {
    char *env[] = {"PATH=/bin",
                   "CUTEPILOT_COMPILE_JOBS=16",
                   "CUTEPILOT_INCLUDE=x, y,,z",
                   "CUTEPILOT_ROOFLINE=no",
                   "CUTEPILOT_AGENT=",
                   NULL};
    const char *const *list;
    struct options *o = parse(OPTIMIZE, "t", env, NULL);
    CHECK(o && option_int(o, "compile-jobs") == 16 && !option_bool(o, "roofline"));
    CHECK(o && option_list(o, "include", &list) == 3 && strcmp(list[1], "y") == 0);
    CHECK(o && !option_given(o, "agent"));
    o = parse(OPTIMIZE, "t -j 2 -I only", env, NULL);
    CHECK(o && option_int(o, "compile-jobs") == 2 && option_list(o, "include", &list) == 1);
    char *bad[] = {"CUTEPILOT_COMPILE_JOBS=many", NULL};
    CHECK(!parse(OPTIMIZE, "t", bad, NULL));
    CHECKF(strcmp(err.text, "CUTEPILOT_COMPILE_JOBS: expects a whole number, not 'many'") == 0,
           "%s", err.text);
    CHECK(parse(TASK_EVAL, "t", bad, NULL)); /* no option of that command */
}

/* Parses with this text as the configuration file. */
static struct options *with_file(const char *line, char *const *env, const char *text) {
    char path[] = "/tmp/option-test-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
    struct options *o = parse(OPTIMIZE, line, env, path);
    unlink(path);
    return o;
}

static void yaml_file(void) {
    const char *const *list;
    struct options *o = with_file("t", NULL,
                                  "# all of them\ncompile-jobs: 32\nagent: 'llm'\njson: true\n"
                                  "include:\n  - one\n  - two, three\nbudget: 60s,10c\nnote: ~\n"
                                  "tolerance-of-a-rather-long-name: 5\n");
    CHECKF(o, "%s", err.text);
    if (!o)
        return;
    CHECK(option_int(o, "compile-jobs") == 32 && strcmp(option_text(o, "agent"), "llm") == 0);
    CHECK(option_bool(o, "json") && option_budget(o, "budget").candidates == 10);
    CHECK(option_list(o, "include", &list) == 2 && strcmp(list[1], "two, three") == 0);
    CHECK(!option_given(o, "note") && option_given(o, "json"));
    o = with_file("t", NULL, "include: one, two\n");
    CHECK(o && option_list(o, "include", &list) == 2 && strcmp(list[1], "two") == 0);
    o = with_file("t", NULL, "include: []\n");
    CHECK(o && option_list(o, "include", &list) == 0 && option_given(o, "include"));
    CHECK(with_file("t", NULL, "") && with_file("t", NULL, "# nothing\n") &&
          with_file("t", NULL, "---\n") && with_file("t", NULL, "{}\n"));
}

static void precedence(void) {
    char *env[] = {"CUTEPILOT_SEED=2", NULL};
    const char *file = "seed: 3\ncompile-jobs: 3\n";
    struct options *o = with_file("t --seed 1", env, file);
    CHECK(o && option_int(o, "seed") == 1 && option_int(o, "compile-jobs") == 3);
    o = with_file("t", env, file);
    CHECK(o && option_int(o, "seed") == 2);
    CHECK(!with_file("t --seed 1", env, "seed: x\n")); /* wrong, though outranked */
    CHECK(with_file("--help", env, "seed: x\n"));      /* but never in the way of help */
}

static void yaml_errors(void) {
    static const struct {
        const char *text, *where, *message;
    } rows[] = {
        {"seed: 1\ncompile-job: 3\n", ":2:1: ", "did you mean 'compile-jobs'?"},
        {"qqqqqq: 3\n", ":1:1: ", "no option has this name"},
        {"compile-jobs: 99\n", ":1:15: ", "compile-jobs: must lie between 1 and 64"},
        {"seed: 1\nseed: 2\n", ":2:1: ", "set twice"},
        {"seed: [1]\n", ":1:7: ", "one value, not a list"},
        {"include: [a, [b]]\n", ":1:14: ", "expects a plain value"},
        {"seed: {a: 1}\n", ":1:7: ", "expects a value or a list"},
        {"- a\n", ":1:1: ", "'name: value'"},
        {"word\n", ":1:1: ", "'name: value'"},
        {"seed: *x\n", ":1:7", "expects a value"},
        {"? [a]\n: 1\n", ":1:3: ", "expects the name"},
        {"seed: 1\n---\nseed: 2\n", ":2:1: ", "single document"},
        {"seed: 'open\n", ":", "scalar"},
        {"\tseed: 1\n", ":1:", ""},
        {"note: \"a\\0b\"\n", ":1:7: ", "NUL byte"},
        {"# \xc3\xa4\xc3\xb6\nagent: \xc3\xbc\n", ":2:8: ", "expects one of"},
        {"seed: \xff\n", ":1:", ""},
        {"[[[[[[[[[[[[[[[[[[[[", ":1:1: ", "'name: value'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(!with_file("t", NULL, rows[i].text), "%s", rows[i].text);
        CHECKF(err.kind == ERR_INPUT && strstr(err.text, rows[i].where) &&
                   strstr(err.text, rows[i].message),
               "%s: %s", rows[i].text, err.text);
    }
    CHECK(!parse(OPTIMIZE, "t", NULL, "/nonexistent/c.yaml") && err.kind == ERR_INPUT);
    CHECKF(strstr(err.text, "/nonexistent/c.yaml"), "%s", err.text);
}

static void help_is_known_everywhere(void) {
    for (size_t i = 0; i < set.ncommands; i++) {
        struct options *o = parse(i, "--help", NULL, NULL);
        CHECK(o && options_help_asked(o));
        o = parse(i, "-h --nonsense", NULL, NULL);
        CHECK(o && options_help_asked(o));
    }
    struct options *o = parse(VERIFY, "-- --help x", NULL, NULL);
    CHECK(o && !options_help_asked(o));
}

static void check_width(str text) {
    str line;
    while (str_line(&text, &line)) {
        CHECKF(line.n <= 80, "%.*s", STR_ARG(line));
        CHECKF(!line.n || line.p[line.n - 1] != ' ', "blank at the end: %.*s", STR_ARG(line));
    }
}

static const char verify_help[] =
    "Usage: cutepilot verify [OPTION]... TASK K.cu...\n"
    "\n"
    "Is this kernel right?\n"
    "\n"
    "Options:\n"
    "  -j, --compile-jobs N  Compilers that run at once (1 to 64; default: 4).\n"
    "      --[no-]json       Print one object.\n"
    "      --tolerance-of-a-rather-long-name NUMBER\n"
    "                        Any number (default: -3).\n"
    "  -h, --help            Print this text.\n"
    "\n"
    "Every option can also be set in the environment (--compile-jobs as\n"
    "CUTEPILOT_COMPILE_JOBS) and in the YAML configuration file (as 'compile-jobs:\n"
    "VALUE'). A flag wins over the environment, the environment over the file.\n";

static void help_text(void) {
    struct buf b;
    buf_init(&b, 1 << 16);
    options_help(&set, VERIFY, &b);
    CHECKF(str_is(buf_str(&b), verify_help), "\n%s", b.p);
    buf_clear(&b);
    options_help(&set, OPTIMIZE, &b);
    check_width(buf_str(&b));
    CHECK(strstr(b.p, "(one of expert, llm, hybrid;"));
    CHECK(strstr(b.p, "\n  tool optimize a.task   --json\n")); /* an example stays as it is */
    CHECK(!strstr(b.p, "tolerance"));
    buf_clear(&b);
    options_overview(&set, NULL, &b);
    check_width(buf_str(&b));
    CHECK(strstr(b.p, "\n  task eval TASK       Evaluate a task on the CPU.\n"));
    buf_clear(&b);
    options_overview(&set, "task", &b);
    CHECK(strstr(b.p, "Usage: cutepilot task COMMAND") && strstr(b.p, "  task eval TASK  "));
    CHECKF(!strstr(b.p, "optimize"), "%s", b.p);
    CHECK(options_group(&set, "task") && !options_group(&set, "verify"));
    CHECK(!options_group(&set, "eval") && !options_group(&set, "tas") && !options_group(&set, ""));
    buf_release(&b);
}

static int run_with(const char *command, const struct buf *input) {
    FILE *f = popen(command, "w");
    if (!f)
        return -1;
    fwrite(input->p, 1, input->n, f);
    return pclose(f);
}

static void man_page(void) {
    struct buf b;
    buf_init(&b, 1 << 16);
    options_man(&set, &b);
    CHECK(!b.failed && strstr(b.p, ".SH OPTIONS\n") && strstr(b.p, "\\-\\-compile\\-jobs"));
    CHECK(strstr(b.p, "Commands: optimize, verify."));
    if (system("command -v groff >/dev/null 2>&1") == 0)
        CHECK(run_with("test -z \"$(groff -man -Tutf8 -ww -z 2>&1)\"", &b) == 0);
    buf_release(&b);
}

static void completion(void) {
    static const struct {
        const char *words, *cword, *want;
    } rows[] = {
        {"cutepilot o", "1", "optimize"},
        {"cutepilot task ''", "2", "eval"},
        {"cutepilot verify --c", "2", "--compile-jobs"},
        {"cutepilot optimize --agent h", "3", "hybrid"},
        {"cutepilot optimize --agent = l", "4", "llm"},
        {"cutepilot optimize --agent =", "3", "expert llm hybrid"},
        {"cutepilot task eval --j", "3", "--json"},
        {"cutepilot task eval --agent", "3", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        CHECK(options_completion(&set, "bash", &b));
        buf_printf(&b,
                   "COMP_WORDS=(%s); COMP_CWORD=%s; _cutepilot; [ \"${COMPREPLY[*]}\" = '%s' ]\n",
                   rows[i].words, rows[i].cword, rows[i].want);
        CHECKF(run_with("bash -u -s", &b) == 0, "%s", rows[i].words);
        buf_release(&b);
    }
}

/* The shells are asked themselves, where they are installed: zsh whether it can read the script,
 * fish what it would offer. */
static void completion_elsewhere(void) {
    static const struct {
        const char *typed, *want;
    } rows[] = {
        {"cutepilot o", "optimize"},
        {"cutepilot task ", "eval"},
        {"cutepilot optimize --agent ", "hybrid"},
        {"cutepilot optimize --agent=", "llm"},
        {"cutepilot verify --compile-j", "--compile-jobs"},
    };
    struct buf b;
    buf_init(&b, 1 << 16);
    CHECK(!options_completion(&set, "tcsh", &b) && b.n == 0);
    CHECK(options_completion(&set, "zsh", &b));
    if (system("command -v zsh >/dev/null") == 0)
        CHECK(run_with("zsh -n", &b) == 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        buf_clear(&b);
        CHECK(options_completion(&set, "fish", &b));
        buf_printf(&b, "complete -C '%s' | string match -rq -- '(^|=)%s(\\t|$)'\n", rows[i].typed,
                   rows[i].want);
        if (system("command -v fish >/dev/null") == 0)
            CHECKF(run_with("HOME=/tmp XDG_CONFIG_HOME=/tmp fish --no-config", &b) == 0, "%s",
                   rows[i].typed);
    }
    buf_release(&b);
}

static const struct tap_case cases[] = {
    {"defaults", defaults},
    {"spellings", spellings},
    {"booleans", booleans},
    {"budgets", budgets},
    {"errors on the command line", flag_errors},
    {"environment", environment},
    {"configuration file", yaml_file},
    {"precedence", precedence},
    {"errors in the configuration file", yaml_errors},
    {"help is known everywhere", help_is_known_everywhere},
    {"help text", help_text},
    {"man page", man_page},
    {"completion", completion},
    {"completion for zsh and fish", completion_elsewhere},
};
TAP_CASES(cases)
