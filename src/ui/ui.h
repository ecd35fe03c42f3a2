/* The command line: one file a command, one row of commands.def each. A command gets its options
 * parsed, writes results to stdout (one JSON object with --json), diagnostics to stderr, and
 * returns the exit code: 0 done, 1 the answer is no, 2 bad input or usage, 3 the environment
 * failed. */
#ifndef UI_UI_H
#define UI_UI_H

#include "base/json.h"
#include "base/option.h"
#include "spec/task.h"

struct ui {
    const struct option_set *set;
    const struct options *options;
    struct arena *arena; /* of the process */
    const char *program; /* as a shell finds it: what a printed command begins with */
    bool as_json;
};

typedef int command_fn(struct ui *ui);
#define COMMAND(id, fn, ...) command_fn fn;
#include "ui/commands.def"
#undef COMMAND

enum command {
#define COMMAND(id, ...) COMMAND_##id,
#include "ui/commands.def"
#undef COMMAND
    COMMAND_COUNT
};

/* The beginning of a command to be copied: the program and the words after it (to the first NULL),
 * each as a shell reads it. */
#define ui_command(ui, ...) ui_command_words(ui, (const char *const[]){__VA_ARGS__, NULL})
str ui_command_words(const struct ui *ui, const char *const words[]);

int ui_main(int argc, char **argv, char **env);

/* Prints the error once, as a line or, with --json, as {"error": …}; returns its exit code. */
int ui_fail(const struct ui *ui, const struct err *err);
/* Prints the object on stdout and frees it. False (with a message) when stdout cannot be written.
 */
bool ui_print_json(json *j);
bool ui_print_json_line(json *j);
bool ui_flush(const char *text, size_t n); /* stdout, whole or an error said */

/* The task file named by argument i, or by its path, bound to its --set. */
bool ui_load_task_file(struct ui *ui, const char *path, struct task **task, struct inst **inst,
                       struct err *err);
bool ui_load_task(struct ui *ui, size_t i, struct task **task, struct inst **inst, struct err *err);
/* Every .task file below a folder, in order of name; subfolders too. */
bool ui_find_tasks(const char *folder, struct arena *a, const char ***paths, size_t *n,
                   struct err *err);

/* Where workers run: by --place, or on every device of the list (--device) behind every
 * --worker-command. all: auto is all GPUs, not the first. */
struct worker_place;
bool ui_places(struct ui *ui, const char *device, bool all, struct worker_place **out, size_t *n,
               struct err *err);

/* The folder of builds: --cache, or the user's; NULL, and said, where there is none of one's own.
 */
const char *ui_cache(struct ui *ui);

/* An evaluator's options from the command line; options that the command has not got are at their
 * defaults. device: as --device names it. */
struct evaluator_options;
bool ui_evaluator_options_on(struct ui *ui, const char *device, const struct task *t,
                             const struct inst *in, struct evaluator_options *out, struct err *err);
bool ui_evaluator_options(struct ui *ui, const struct task *t, const struct inst *in,
                          struct evaluator_options *out, struct err *err);

/* --dialect, for the strategies that are made on this ground. */
struct ground;
void ui_ask_dialect(const struct ui *ui, struct ground *g);

/* Whose an estimated time is: "a model", and whether it was never held against that GPU. */
struct outcome;
const char *ui_model(const struct outcome *o);

/* Warnings, on stderr: inputs of the task that nothing reads, and a statement whose work grows
 * faster than the data (spec/growth.h); steps of the expert's kernel for which it has no family of
 * kernels.
 */
void ui_warn_task(const struct inst *in);
void ui_warn_generic(str source);

/* A sentence for each check shape that a kernel was not tried on, or for the first few; empty where
 * there is none. */
struct record;
str ui_skipped(struct arena *a, const struct record *r);
/* The time without the steps that are done once, with what it is; empty where there are none. */
str ui_prepared(struct arena *a, const struct record *r);

/* Where starting a kernel takes as long as the limit: a sentence that says whether that explains a
 * small share of the limit, or how much of the time is left; empty elsewhere. */
struct gpu;
str ui_launch_bound(struct arena *a, const struct gpu *g, double limit_s, double time_s,
                    size_t launches);

/* What compilers and checkers say of a kernel, with places in it ("kernel.cu:7", "kernel.cu(7)")
 * under the name of the file that it was read from. */
str ui_with_file(struct arena *a, str text, str file);

/* "98 runs over 8 shapes and 16 kinds of data", of those that were right. */
str ui_runs(struct arena *a, const struct record *r);

/* Has SIGINT, SIGTERM and, where it is not ignored as by nohup, SIGHUP handled. */
void ui_catch_signals(void (*handler)(int));

/* "1.23 ms", "45.6 us" */
str ui_time(struct arena *a, double seconds);

#endif
