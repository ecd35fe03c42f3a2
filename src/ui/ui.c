/* From argv to a command: roles first (they are processes of ours, with arguments of their own),
 * then the table. */
#include "ui/ui.h"
#include "ui/commit.h"

#include "base/child.h"
#include "base/fault.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/say.h"
#include "device/role.h"
#include "device/wire.h"
#include "eval/eval.h"
#include "eval/gpu.h"
#include "eval/judge.h"
#include "eval/python.h"
#include "kernel/candidate.h"
#include "spec/growth.h"
#include "spec/trivial.h"
#include "strategy/strategy.h"
#include "ui/ncu.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP_SEARCH, GROUP_RUNNING, GROUP_JUDGING, GROUP_MODEL, GROUP_OUTPUT, GROUP_COUNT };

static const char *const groups[GROUP_COUNT] = {
    [GROUP_SEARCH] = "What is searched, and for how long",
    [GROUP_RUNNING] = "Where kernels are compiled and run",
    [GROUP_JUDGING] = "How kernels are verified and timed",
    [GROUP_MODEL] = "With a language model",
    [GROUP_OUTPUT] = "Files and output",
};

static const struct option_def defs[] = {
#define OPTION(group, name, letter, kind, value, fallback, choices, min, max, on, help)            \
    {name, letter, kind, value, fallback, choices, min, max, help, on, GROUP_##group},
#include "ui/options.def"
#undef OPTION
};

static const struct option_command commands[] = {
#define COMMAND(id, fn, name, args, summary, detail, min, max)                                     \
    {name, args, summary, detail, min, max},
#include "ui/commands.def"
#undef COMMAND
};

static command_fn *const functions[] = {
#define COMMAND(id, fn, ...) fn,
#include "ui/commands.def"
#undef COMMAND
};

static const struct option_set set = {
    .program = "cutepilot",
    .version = CUTEPILOT_VERSION,
    .tagline = "a fast, verified CUDA kernel from the definition of what it computes",
    .defs = defs,
    .ndefs = sizeof defs / sizeof *defs,
    .groups = groups,
    .ngroups = GROUP_COUNT,
    .commands = commands,
    .ncommands = COMMAND_COUNT,
};

/* After a write that failed. Who reads `… | head -1` has left with what it wanted: that is nobody's
 * error, and ends this program as it ends others. */
static void end_if_unread(void) {
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) != 1 || !(out.revents & POLLERR))
        return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

static void say_unwritten(int why) {
    end_if_unread();
    complain("cutepilot: write to stdout: %s\n", why ? strerror(why) : "failed");
}

bool ui_flush(const char *text, size_t n) {
    if (file_write_all(STDOUT_FILENO, text, n, NULL))
        return true;
    say_unwritten(errno);
    return false;
}

/* What a command printed with printf must have arrived, or its answer is worth nothing. */
static int checked_stdout(int code) {
    errno = 0;
    if ((fflush(stdout) == 0 && !ferror(stdout)) || code >= ERR_INPUT)
        return code;
    say_unwritten(errno);
    return ERR_ENV;
}

/* JSON escapes most control characters by itself; these it leaves, and they can only be within
 * strings. */
static bool print_json(json *j, void (*write)(const json *, struct buf *)) {
    struct buf b, shown;
    buf_init(&b, 256u << 20);
    buf_init(&shown, 768u << 20);
    write(j, &b);
    buf_putc(&b, '\n');
    str rest = buf_str(&b);
    for (size_t i = 0, n; i < rest.n; i += n) {
        unsigned char c = (unsigned char)rest.p[i], next = (unsigned char)rest.p[i + 1];
        n = c == 0xc2 && next >= 0x80 && next < 0xa0 ? 2 : 1;
        if (n == 2 || c == 0x7f)
            buf_printf(&shown, "\\u%04x", n == 2 ? next : c);
        else
            buf_putc(&shown, (char)c);
    }
    bool ok = !b.failed && !shown.failed && ui_flush(shown.p, shown.n);
    buf_release(&b);
    buf_release(&shown);
    json_free(j);
    return ok;
}

bool ui_print_json(json *j) {
    return print_json(j, json_write_pretty);
}

bool ui_print_json_line(json *j) {
    return print_json(j, json_write);
}

/* ---- commands that are printed ---- */

/* Whether a shell that is told `name` alone starts this very program. */
static bool is_in_path(struct arena *a, const char *name) {
    const char *dirs = getenv("PATH");
    struct stat self, found;
    str rest = str_view(dirs ? dirs : ""), dir;
    if (stat("/proc/self/exe", &self) != 0)
        return false;
    while (str_word(&rest, ':', &dir)) {
        const char *path = arena_printf(a, "%.*s/%s", STR_ARG(dir.n ? dir : S(".")), name).p;
        if (access(path, X_OK) == 0 && stat(path, &found) == 0 && S_ISREG(found.st_mode))
            return found.st_dev == self.st_dev && found.st_ino == self.st_ino;
    }
    return false;
}

/* The name alone where a shell finds it, and else the path that was typed. */
static const char *program_as_typed(struct arena *a, const char *typed) {
    const char *slash = strrchr(typed, '/');
    return slash && is_in_path(a, slash + 1) ? slash + 1 : typed;
}

str ui_command_words(const struct ui *ui, const char *const words[]) {
    struct buf b;
    buf_init(&b, 1 << 20);
    buf_put_shell_word(&b, str_view(ui->program));
    for (; *words; words++) {
        buf_putc(&b, ' ');
        buf_put_shell_word(&b, str_view(*words));
    }
    str s = arena_str(ui->arena, buf_str(&b));
    buf_release(&b);
    return s;
}

/* Rooms below name commands as 'cutepilot COMMAND'; here they are what the user can type. */
static str with_program(const struct ui *ui, str text) {
    const str marks[] = {S("'cutepilot "), S("see cutepilot "), S(": cutepilot ")};
    str name = ui_command(ui, NULL);
    struct buf b;
    buf_init(&b, 1 << 20);
    while (text.n) {
        size_t at = text.n, before = 0;
        for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
            size_t found = str_find(text, marks[i]);
            if (found >= at)
                continue;
            at = found;
            before = marks[i].n - (sizeof "cutepilot " - 1);
        }
        buf_puts(&b, str_cut(text, 0, at + before));
        if (at == text.n)
            break;
        buf_puts(&b, name);
        text = str_from(text, at + before + sizeof "cutepilot" - 1);
    }
    str s = arena_str(ui->arena, buf_str(&b));
    buf_release(&b);
    return s;
}

int ui_fail(const struct ui *ui, const struct err *err) {
    complain("cutepilot: %.*s\n", STR_ARG(with_program(ui, str_view(err->text))));
    if (ui->as_json) {
        json *j = json_object();
        json_set_str(j, "error", str_view(err->text));
        json_set_i64(j, "exit", err->kind);
        ui_print_json(j);
    }
    return (int)err->kind;
}

const char *ui_model(const struct outcome *o) {
    return o->record->model_calibrated ? "a model" : "a model not calibrated on hardware";
}

static bool reads_tensor(const struct expr *e, size_t tensor) {
    bool found = e->kind == EXPR_READ && e->ref == tensor;
    for (size_t i = 0; i < expr_nparts(e) && !found; i++)
        found = reads_tensor(expr_part(e, i), tensor);
    return found;
}

static void warn_unused(const struct task *t) {
    for (size_t i = 0; i < t->ntensors; i++) {
        const struct tensor *x = &t->tensors[i];
        bool used = x->role != TENSOR_IN && x->role != TENSOR_PARAM;
        for (size_t k = 0; k < t->nstatements && !used; k++)
            used = reads_tensor(t->statements[k].body, i);
        if (!used)
            complain("cutepilot: warning: nothing reads the input %.*s\n", STR_ARG(x->name));
    }
}

static str power_words(struct arena *a, str dim, int power) {
    const char *of = power == 1 ? "" : power == 2 ? "the square of " : "the cube of ";
    if (power > 3)
        return arena_printf(a, "power %d of %.*s", power, STR_ARG(dim));
    return arena_printf(a, "%s%.*s", of, STR_ARG(dim));
}

static size_t line_of(str text, size_t at) {
    size_t line = 1;
    for (size_t i = 0; i < at && i < text.n; i++)
        line += text.p[i] == '\n';
    return line;
}

static void warn_growth(const struct inst *in) {
    const struct task *t = in->task;
    struct growth g;
    if (!growth_find(in, &g))
        return;
    struct arena *a = arena_new(1u << 20);
    const struct statement *s = &t->statements[g.statement];
    str dim = t->dims[g.dim].name;
    complain(
        "cutepilot: warning: %.*s:%zu: %.*s takes %.0f operations for %.0f elements of inputs and "
        "outputs: as it is written, the work grows with %.*s and the data only with %.*s\n"
        "hint: if the results share terms, compute those once in a `let`; prefix sums such as "
        "`sum(k <= i) x[k]` are recognised, and a sum over terms without an index of the "
        "result is computed once\n",
        STR_ARG(t->file), line_of(t->text, s->at), STR_ARG(t->tensors[s->tensor].name),
        g.operations, g.elements, STR_ARG(power_words(a, dim, g.work_power)),
        STR_ARG(power_words(a, dim, g.data_power)));
    arena_free(a);
}

void ui_warn_task(const struct inst *in) {
    warn_unused(in->task);
    warn_growth(in);
}

/* The head of the file says of each step which family wrote it: "// generic: y_kernel: …". */
void ui_warn_generic(str source) {
    str line, mark = S("// generic: ");
    while (str_line(&source, &line) && (str_starts(line, S("//")) || !line.n)) {
        if (!str_starts(line, mark))
            continue;
        line = str_from(line, mark.n);
        complain(
            "cutepilot: warning: the kernel %.*s is generic: it computes each result by itself, "
            "which is "
            "slow, because the expert has no faster kind of kernel for this form of definition "
            "(docs/EXPERT.md lists the kinds)\n",
            STR_ARG(str_cut(line, 0, str_find(line, S(":")))));
    }
}

str ui_prepared(struct arena *a, const struct record *r) {
    if (!r || !r->has_time_prepared_s)
        return S("");
    return arena_printf(
        a, "%.*s of it %s without the steps that are done once for the same parameters",
        STR_ARG(ui_time(a, r->time_prepared_s)), r->estimated ? "estimated" : "measured");
}

str ui_launch_bound(struct arena *a, const struct gpu *g, double limit_s, double time_s,
                    size_t launches) {
    double least_s = limit_s + (double)launches * g->launch_s;
    switch (gpu_launch_share(g, limit_s, time_s, launches)) {
    case LAUNCHES_HARDLY_COUNT:
        break;
    case LAUNCHES_EXPLAIN:
        return arena_printf(a,
                            "A small share of the limit is expected at this size: starting a "
                            "kernel takes %.*s, which the limit does not count",
                            STR_ARG(ui_time(a, g->launch_s)));
    case LAUNCHES_ARE_LESS:
        return arena_printf(a,
                            "The limit and its %s are %.*s together; the other %.*s are the "
                            "kernel's",
                            launches == 1 ? "launch" : "launches", STR_ARG(ui_time(a, least_s)),
                            STR_ARG(ui_time(a, time_s - least_s)));
    }
    return S("");
}

str ui_skipped(struct arena *a, const struct record *r) {
    enum { SHOWN = 4 };
    str text = S("");
    for (size_t i = 0; i < r->nskipped && i < SHOWN; i++) {
        const struct record_skipped *s = &r->skipped[i];
        text = arena_printf(a, "%.*s%s%.*s", STR_ARG(text), i ? "; " : "", STR_ARG(s->shape));
        if (s->require.n)
            text = arena_printf(a, "%.*s refused by `%.*s`", STR_ARG(text), STR_ARG(s->require));
        else
            text = arena_printf(a, "%.*s is more than are tried", STR_ARG(text));
    }
    if (r->nskipped > SHOWN)
        text = arena_printf(a, "%.*s; and %zu more", STR_ARG(text), r->nskipped - SHOWN);
    return text;
}

/* Whether the unit is named here: as a whole word, with a line or in quotes. */
static bool names_place(str text, size_t at) {
    str rest = str_from(text, at + sizeof CANDIDATE_UNIT_FILE - 1);
    char before = at ? text.p[at - 1] : ' ', next = rest.n > 1 ? rest.p[1] : ' ';
    if (strchr("/._-", before) || isalnum((unsigned char)before))
        return false;
    if (before == '"')
        return str_starts(rest, S("\""));
    return str_starts(rest, S(" line ")) ||
           (rest.n > 1 && strchr(":(", rest.p[0]) && next >= '0' && next <= '9');
}

str ui_with_file(struct arena *a, str text, str file) {
    str unit = S(CANDIDATE_UNIT_FILE);
    struct buf b;
    buf_init(&b, 64u << 20);
    for (size_t at = 0, from = 0; from < text.n; from = at + unit.n) {
        at = from + str_find(str_from(text, from), unit);
        buf_puts(&b, str_cut(text, from, at - from));
        if (at < text.n)
            buf_puts(&b, names_place(text, at) ? file : unit);
    }
    str s = arena_str(a, buf_str(&b));
    buf_release(&b);
    return s;
}

str ui_runs(struct arena *a, const struct record *r) {
    bool kinds[DATA_COUNT] = {false};
    size_t nkinds = 0, nshapes = 0;
    for (size_t i = 0; i < r->nruns; i++) {
        size_t before = 0;
        while (before < i && !str_eq(r->runs[before].shape, r->runs[i].shape))
            before++;
        nshapes += before == i;
        kinds[r->runs[i].data] = true;
    }
    for (size_t k = 0; k < DATA_COUNT; k++)
        nkinds += kinds[k];
    return arena_printf(a, "%zu run%s over %zu shape%s and %zu kind%s of data", r->nruns,
                        r->nruns == 1 ? "" : "s", nshapes, nshapes == 1 ? "" : "s", nkinds,
                        nkinds == 1 ? "" : "s");
}

void ui_catch_signals(void (*handler)(int)) {
    struct sigaction act = {.sa_handler = handler}, old;
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &act, NULL);
}

str ui_time(struct arena *a, double s) {
    if (!(s < 1e300))
        return S("none");
    if (s >= 1)
        return arena_printf(a, "%.3g s", s);
    if (s >= 1e-3)
        return arena_printf(a, "%.4g ms", s * 1e3);
    return arena_printf(a, "%.4g us", s * 1e6);
}

static bool is_integer(str s) {
    s = str_from(s, str_starts(s, S("-")));
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static bool parse_set(struct ui *ui, struct binding **out, size_t *n, struct err *err) {
    const char *const *values;
    *n = option_list(ui->options, "set", &values);
    *out = arena_array(ui->arena, struct binding, *n);
    for (size_t i = 0; i < *n; i++) {
        str s = str_view(values[i]);
        size_t eq = str_find(s, S("="));
        (*out)[i].name = str_trim(str_cut(s, 0, eq));
        str number = str_trim(str_from(s, eq + 1));
        if (eq == s.n || !is_integer(number))
            return err_set(err, ERR_INPUT, "--set %s: expected NAME=NUMBER", values[i]);
        if (!str_to_i64(number, &(*out)[i].value))
            return err_set(err, ERR_INPUT, "--set %s: the number is too large", values[i]);
        for (size_t k = 0; k < i; k++)
            if (str_eq((*out)[k].name, (*out)[i].name))
                return err_set(err, ERR_INPUT, "--set %s: %.*s is given twice", values[i],
                               STR_ARG((*out)[i].name));
    }
    return true;
}

bool ui_load_task_file(struct ui *ui, const char *path, struct task **task, struct inst **inst,
                       struct err *err) {
    struct binding *bindings;
    struct stat st;
    size_t n;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT,
                       "%s is a folder, and a task file is needed\n"
                       "hint: 'cutepilot suite %s' optimizes every task below it",
                       path, path);
    return task_load(path, ui->arena, task, err) && parse_set(ui, &bindings, &n, err) &&
           task_bind(*task, bindings, n, ui->arena, inst, err) &&
           (!option_bool(ui->options, "must-admit") || task_bind_also(*inst, ui->arena, err));
}

bool ui_load_task(struct ui *ui, size_t i, struct task **task, struct inst **inst,
                  struct err *err) {
    char *const *args;
    options_args(ui->options, &args);
    return ui_load_task_file(ui, args[i], task, inst, err);
}

void ui_ask_dialect(const struct ui *ui, struct ground *g) {
    bool cute = str_is(str_view(option_text(ui->options, "dialect")), "cute");
    g->fact[FACT_ASKED_DIALECT] = cute;
}

static const char *const *split_words(struct arena *a, const char *text) {
    const char **words = arena_array(a, const char *, 64);
    str rest = str_view(text), word;
    size_t n = 0;
    while (n < 63 && str_word(&rest, ' ', &word))
        if (word.n)
            words[n++] = arena_cstr(a, word);
    return n ? words : NULL;
}

/* ---- where workers run ---- */

#define PLACES_MOST 1024

struct places {
    struct worker_place *at; /* in the arena */
    size_t n;
};

static bool add_place(struct places *p, const struct device_name *d, const char *const *command,
                      struct err *err) {
    if (p->n == PLACES_MOST)
        return err_set(err, ERR_INPUT, "more than %d workers", PLACES_MOST);
    p->at[p->n++] = (struct worker_place){.command = command, .device = *d};
    return true;
}

/* Every GPU there is, here or behind the command. */
static bool add_all(struct places *p, struct arena *a, const char *const *command,
                    struct err *err) {
    struct device_name d;
    struct gpu_here here;
    if (!device_name_parse("cuda", a, &d, err) || !gpu_here_find(&d, command, &here, err))
        return false;
    for (int i = 0; i < here.facts.count; i++)
        if (!device_name_parse(arena_printf(a, "cuda:%d", i).p, a, &d, err) ||
            !add_place(p, &d, command, err))
            return false;
    return true;
}

/* The devices of a list with commas, behind one command. */
static bool add_devices(struct places *p, struct arena *a, const char *list,
                        const char *const *command, struct err *err) {
    str rest = str_view(list), word;
    while (str_word(&rest, ',', &word)) {
        struct device_name d;
        bool ok = str_is(word, "cuda:all") ? add_all(p, a, command, err)
                                           : device_name_parse(arena_cstr(a, word), a, &d, err) &&
                                                 add_place(p, &d, command, err);
        if (!ok)
            return false;
    }
    return p->n || err_set(err, ERR_INPUT, "--device: no device is named");
}

/* DEVICE or DEVICE=COMMAND, each. */
static bool add_given(struct places *p, struct arena *a, const char *const *values, size_t n,
                      struct err *err) {
    for (size_t i = 0; i < n; i++) {
        str s = str_view(values[i]);
        size_t eq = str_find(s, S("="));
        const char *const *command =
            eq < s.n ? split_words(a, arena_cstr(a, str_from(s, eq + 1))) : NULL;
        if (!add_devices(p, a, arena_cstr(a, str_cut(s, 0, eq)), command, err))
            return err_wrap(err, "--place %s", values[i]);
    }
    return true;
}

/* Workers of other machines: that they use no GPU there is no small thing. */
static void say_simulated(const char *command) {
    static bool said;
    if (!said)
        complain("cutepilot: '%s' finds no GPU: the simulator is used there, and times are "
                 "estimates\nhint: --device cuda insists on a GPU, --device sim on the simulator\n",
                 command);
    said = true;
}

/* Behind any of the commands; here, where there are none. False with err: none was found, and a
 * command failed without saying that there is none. */
static bool is_there_a_gpu(struct arena *a, const char *const *prefixes, size_t n, bool *found,
                           struct err *err) {
    struct gpu_here here;
    struct device_name d;
    struct err none = {0}, why = {0};
    *found = false;
    if (!device_name_parse("cuda", a, &d, err))
        return false;
    for (size_t i = 0; !*found && i < n + !n; i++) {
        *found = gpu_here_find(&d, n ? split_words(a, prefixes[i]) : NULL, &here, &none);
        if (!*found && n && !here.absent && !why.kind)
            why = none;
    }
    if (!*found && why.kind)
        *err = why;
    else if (!*found && n)
        say_simulated(prefixes[0]);
    return *found || !why.kind;
}

bool ui_places(struct ui *ui, const char *device, bool all, struct worker_place **out, size_t *n,
               struct err *err) {
    struct arena *a = ui->arena;
    const char *const *given, *const *prefixes;
    size_t ngiven = option_list(ui->options, "place", &given);
    size_t ncommands = option_list(ui->options, "worker-command", &prefixes);
    struct places p = {.at = arena_array(a, struct worker_place, PLACES_MOST)};
    bool ok = true;
    if (ngiven) {
        ok = add_given(&p, a, given, ngiven, err);
    } else {
        bool found = false;
        bool asks = !strcmp(device, "auto");
        ok = !asks || is_there_a_gpu(a, prefixes, ncommands, &found, err);
        if (asks)
            device = !found ? "sim" : all ? "cuda:all" : "cuda";
        for (size_t i = 0; ok && i < ncommands + !ncommands; i++)
            ok = add_devices(&p, a, device, ncommands ? split_words(a, prefixes[i]) : NULL, err);
    }
    *out = p.at;
    *n = p.n;
    return ok;
}

/* One run, one type: what the simulator stands for is known here, what a GPU is by its hello. */
static bool choose_places(struct ui *ui, const char *device, struct evaluator_options *o,
                          struct err *err) {
    struct worker_place *places;
    if (!ui_places(ui, device, false, &places, &o->nplaces, err))
        return false;
    o->places = places;
    o->device = places[0].device;
    for (size_t i = 1; i < o->nplaces; i++)
        if (places[i].device.kind != o->device.kind || places[i].device.gpu != o->device.gpu)
            return err_set(
                err, ERR_INPUT,
                "--device %s, %s: a run is for one type of GPU, or its kernels could not "
                "be compared\nhint: name devices of one type; 'cutepilot suite' takes "
                "several, and gives each task to one of them",
                o->device.text, places[i].device.text);
    return true;
}

static bool find_gpu(struct ui *ui, struct evaluator_options *o, struct err *err) {
    return o->device.kind == DEVICE_SIM ||
           gpu_here_use(o, arena_new_of(ui->arena, struct gpu_here), err);
}

const char *ui_cache(struct ui *ui) {
    static bool said; /* a suite asks for every task */
    const char *given = option_text(ui->options, "cache");
    struct err err = {0};
    str dir;
    if (given)
        return given;
    if (cache_dir(ui->arena, &dir, &err))
        return arena_printf(ui->arena, "%s/builds", dir.p).p;
    if (!said)
        complain(
            "cutepilot: builds are not cached: %s\nhint: set HOME or XDG_CACHE_HOME, or name a "
            "folder of your own with --cache\n",
            err.text);
    said = true;
    return NULL;
}

bool ui_evaluator_options_on(struct ui *ui, const char *device, const struct task *t,
                             const struct inst *in, struct evaluator_options *out,
                             struct err *err) {
    const char *seed = option_text(ui->options, "verify-seed");
    *out = (struct evaluator_options){
        .task = t,
        .inst = in,
        .workers = (unsigned)option_int(ui->options, "workers"),
        .compilers = (unsigned)option_int(ui->options, "compile-jobs"),
        .run_limit_ms = (unsigned)option_int(ui->options, "run-limit") * 1000,
        .compile_limit_ms = (unsigned)option_int(ui->options, "compile-limit") * 1000,
        .time_ms = (unsigned)option_int(ui->options, "time-limit"),
        .cache = ui_cache(ui),
        .hello_ms = (unsigned)option_int(ui->options, "hello-limit") * 1000,
        .seed_given = seed != NULL,
        .must_admit = option_bool(ui->options, "must-admit"),
    };
    if (seed && !str_to_u64(str_view(seed), &out->seed))
        return err_set(err, ERR_INPUT, "--verify-seed %s: expected a number from 0 to 2^64-1",
                       seed);
    return task_check_trivial(in, 1, err) && choose_places(ui, device, out, err) &&
           nvrtc_find(&out->nvrtc, err) && nvrtc_probe(&out->nvrtc, err) && find_gpu(ui, out, err);
}

bool ui_evaluator_options(struct ui *ui, const struct task *t, const struct inst *in,
                          struct evaluator_options *out, struct err *err) {
    return ui_evaluator_options_on(ui, option_text(ui->options, "device"), t, in, out, err);
}

/* ---- dispatch ---- */

static unsigned threads_arg(const char *text) {
    int64_t n;
    return text && str_to_i64(str_view(text), &n) && n > 0 && n <= 1024 ? (unsigned)n : 1;
}

static int run_role(int argc, char **argv, int (*main)(const struct device_name *, unsigned)) {
    struct arena *a = arena_new(1 << 20);
    struct device_name d;
    struct err err = {0};
    int code = 2;
    if (argc < 1 || !device_name_parse(argv[0], a, &d, &err))
        complain("cutepilot: %s\n", argc < 1 ? "a role needs a device" : err.text);
    else
        code = main(&d, threads_arg(argc > 1 ? argv[1] : NULL));
    arena_free(a);
    return code;
}

static int run_device(int argc, char **argv) {
    return run_role(argc, argv, device_main);
}

static int run_judge(int argc, char **argv) {
    return run_role(argc, argv, judge_main);
}

/* Whoever types the name of a role has nobody at the other end, and would wait for ever or see
 * frames. */
static bool has_partner(const char *role, const int *fds, size_t n, struct err *err) {
    for (size_t i = 0; i < n; i++)
        if (!fd_is_channel(fds[i]))
            return err_set(err, ERR_INPUT,
                           "%s: cutepilot starts this process itself and talks to it; descriptor "
                           "%d is neither a pipe nor a socket\nhint: use cutepilot verify or "
                           "optimize; a worker on another machine is started with "
                           "--worker-command 'ssh HOST cutepilot'",
                           role, fds[i]);
    return true;
}

int cmd_worker(struct ui *ui) {
    static const int fds[] = {STDIN_FILENO, STDOUT_FILENO};
    char *const *args;
    size_t n = options_args(ui->options, &args);
    struct device_name d;
    struct err err = {0};
    /* Under srun --unbuffered stdout is a terminal that changes nothing. */
    if (!has_partner("worker", fds, getenv("SLURM_STEP_ID") ? 1 : 2, &err) ||
        !device_name_parse(n > 0 ? args[0] : "sim", ui->arena, &d, &err))
        return ui_fail(ui, &err);
    return worker_main(&d, threads_arg(n > 1 ? args[1] : NULL), WORKER_START_MS);
}

/* Processes that only a worker or the coordinator starts; not in the table. */
static const struct role_row {
    const char *name;
    int (*run)(int argc, char **argv);
    int fds[2]; /* through which it speaks with whoever started it */
    size_t nfds;
} roles[] = {
    {"compiler", compiler_main, {ROLE_FD}, 1},
    {"device", run_device, {ROLE_FD}, 1},
    {"judge", run_judge, {ROLE_FD}, 1},
    {"probe", gpu_probe_main, {0}, 0},
    {"profile-run", profile_run_main, {0}, 0},
    {"torch", torch_main, {STDIN_FILENO, STDOUT_FILENO}, 2},
    {"module", module_main, {STDIN_FILENO, STDOUT_FILENO}, 2},
};

static int start_role(const struct role_row *role, int argc, char **argv) {
    struct err err = {0};
    if (has_partner(role->name, role->fds, role->nfds, &err))
        return role->run(argc, argv);
    complain("cutepilot: %s\n", err.text);
    return (int)err.kind;
}

static int find_command(int argc, char **argv, int *words) {
    for (int two = argc > 2; two >= 0; two--) {
        char name[64];
        snprintf(name, sizeof name, two ? "%s %s" : "%s", argv[1], two ? argv[2] : "");
        for (int i = 0; i < COMMAND_COUNT; i++)
            if (strcmp(commands[i].name, name) == 0) {
                *words = 1 + two;
                return i;
            }
    }
    return -1;
}

/* The commands that begin with a word; NULL: all. */
static int print_commands(const char *word, int code) {
    struct buf b;
    buf_init(&b, 1 << 20);
    options_overview(&set, word, &b);
    bool ok = code ? fwrite(b.p, 1, b.n, stderr) == b.n : ui_flush(b.p, b.n);
    buf_release(&b);
    return ok ? code : 3;
}

static int print_text(void (*make)(const struct option_set *, struct buf *)) {
    struct buf b;
    buf_init(&b, 1 << 20);
    make(&set, &b);
    bool ok = ui_flush(b.p, b.n);
    buf_release(&b);
    return ok ? 0 : 3;
}

int cmd_man(struct ui *ui) {
    (void)ui;
    return print_text(options_man);
}

int cmd_completion(struct ui *ui) {
    char *const *args;
    const char *shell = options_args(ui->options, &args) ? args[0] : "bash";
    struct err err = {0};
    struct buf b;
    buf_init(&b, 1 << 20);
    bool known = options_completion(&set, shell, &b);
    bool ok = known && ui_flush(b.p, b.n);
    buf_release(&b);
    if (!known)
        err_set(&err, ERR_INPUT, "no completion for '%s'; there is one for bash, zsh and fish",
                shell);
    return ok ? 0 : known ? 3 : ui_fail(ui, &err);
}

int cmd_version(struct ui *ui) {
    const char *commit = strcmp(CUTEPILOT_COMMIT, "none") != 0 ? CUTEPILOT_COMMIT : "";
    if (ui->as_json) {
        json *j = json_object();
        json_set_str(j, "version", S(CUTEPILOT_VERSION));
        if (*commit)
            json_set_str(j, "commit", str_view(commit));
        return ui_print_json(j) ? 0 : 3;
    }
    str line = arena_printf(ui->arena, "cutepilot " CUTEPILOT_VERSION "%s%s%s\n",
                            *commit ? " (commit " : "", commit, *commit ? ")" : "");
    return ui_flush(line.p, line.n) ? 0 : 3;
}

/* --config is needed before the options are. */
static const char *config_file(struct arena *a, int argc, char **argv) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (!strncmp(argv[i], "--config=", 9))
            return argv[i] + 9;
        if (!strcmp(argv[i], "--config") && i + 1 < argc)
            return argv[i + 1];
    }
    const char *named = getenv("CUTEPILOT_CONFIG"), *home = getenv("HOME");
    if (named && *named)
        return named;
    if (!home)
        return NULL;
    const char *usual = arena_printf(a, "%s/.config/cutepilot.yaml", home).p;
    return file_exists(usual) ? usual : NULL;
}

/* Where the folder is missing every built-in asset would be taken, without a word. */
static bool check_assets(const struct options *o, struct err *err) {
    const char *dir = option_text(o, "assets");
    struct stat st;
    if (!dir)
        return true;
    if (stat(dir, &st) != 0)
        return err_errno(err, ERR_INPUT, "--assets %s", dir);
    return S_ISDIR(st.st_mode) ||
           err_set(err, ERR_INPUT,
                   "--assets %s: it is not a folder\nhint: name a folder with files laid out as in "
                   "assets/ of the sources",
                   dir);
}

/* The exit code is the answer; errors are still said. What is asked for in JSON is printed. The
 * search has a line of its own for this (optimize, suite). */
static bool silence(const struct ui *ui, int which) {
    if (which == COMMAND_OPTIMIZE || which == COMMAND_SUITE || ui->as_json ||
        !option_bool(ui->options, "quiet"))
        return true;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    bool ok = null >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO;
    if (null >= 0)
        close(null);
    return ok;
}

static int run_command(int which, int words, int argc, char **argv, char **env) {
    struct ui ui = {.set = &set, .arena = arena_new(4ull << 30)};
    ui.program = program_as_typed(ui.arena, argv[0]);
    struct options *options;
    struct err err = {0};
    int code;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        ui.as_json |= !strcmp(argv[i], "--json"); /* for errors of the parsing itself */
    if (!options_parse(&set, (size_t)which, argc - 1 - words, argv + 1 + words, env,
                       config_file(ui.arena, argc, argv), ui.arena, &options, &err)) {
        code = ui_fail(&ui, &err);
    } else if (options_help_asked(options)) {
        struct buf b;
        buf_init(&b, 1 << 20);
        options_help(&set, (size_t)which, &b);
        code = ui_flush(b.p, b.n) ? 0 : 3;
        buf_release(&b);
    } else {
        ui.options = options;
        ui.as_json = option_bool(options, "json");
        bool ok = check_assets(options, &err) &&
                  (silence(&ui, which) || err_errno(&err, ERR_ENV, "--quiet: /dev/null"));
        code = ok ? checked_stdout(functions[which](&ui)) : ui_fail(&ui, &err);
    }
    arena_free(ui.arena);
    return code;
}

/* A descriptor closed at the start would be given to some file of ours, and what is printed land
 * in it. Read-only: writing to a stdout that was closed stays an error. */
static void open_standard(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDONLY) != fd)
            _exit(ERR_ENV);
}

static bool is_help(const char *word) {
    return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* A first word alone is a question for the second. */
static int no_command(int argc, char **argv) {
    bool group = options_group(&set, argv[1]);
    if (group && argc == 2)
        return print_commands(argv[1], 2);
    if (group && is_help(argv[2]))
        return print_commands(argv[1], 0);
    struct arena *a = arena_new(1 << 20);
    struct ui ui = {.arena = a, .program = program_as_typed(a, argv[0])};
    const char *near = group ? NULL : options_nearest_command(&set, argv[1]);
    if (near) {
        complain("cutepilot: unknown command '%s'; did you mean '%s'?\n", argv[1], near);
    } else {
        str help = ui_command(&ui, group ? argv[1] : "--help", group ? "--help" : NULL);
        complain("cutepilot: unknown command '%s%s%s'; see %.*s\n", argv[1], group ? " " : "",
                 group ? argv[2] : "", STR_ARG(help));
    }
    arena_free(a);
    return 2;
}

/* `help COMMAND` is `COMMAND --help`. */
static int print_help(int argc, char **argv) {
    int words = 0, n = argc > 3 ? 3 : 2;
    char *asked[] = {argv[0], argv[2], argc > 3 ? argv[3] : NULL, NULL};
    int which = find_command(n, asked, &words);
    if (which < 0)
        return options_group(&set, argv[2]) && n == 2 ? print_commands(argv[2], 0)
                                                      : no_command(n, asked);
    struct buf b;
    buf_init(&b, 1 << 20);
    options_help(&set, (size_t)which, &b);
    int code = ui_flush(b.p, b.n) ? 0 : ERR_ENV;
    buf_release(&b);
    return code;
}

int ui_main(int argc, char **argv, char **env) {
    int words = 0;
    open_standard();
    fault_init(argc > 1 ? argv[1] : "");
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t i = 0; argc > 1 && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(argv[1], roles[i].name))
            return start_role(&roles[i], argc - 2, argv + 2);
    if (argc < 2)
        return print_commands(NULL, 2);
    if (!strcmp(argv[1], "help") && argc > 2)
        return print_help(argc, argv);
    if (is_help(argv[1]) || !strcmp(argv[1], "help"))
        return print_commands(NULL, 0);
    if (!strcmp(argv[1], "--version"))
        argv[1] = "version";
    int which = find_command(argc, argv, &words);
    if (which < 0)
        return no_command(argc, argv);
    return run_command(which, words, argc, argv, env);
}
