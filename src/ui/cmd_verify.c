/* verify TASK KERNEL.cu: one candidate through the whole evaluation, and its verdict. */
#include "base/file.h"
#include "eval/eval.h"
#include "kernel/candidate.h"
#include "ui/ui.h"

#include <stdio.h>

static void print_outcome(struct ui *ui, const struct outcome *o) {
    str scope = {0}, shape, data;
    json_get_str(o->record, "scope", &scope);
    printf("%s", verdict_name(o->verdict));
    if (json_get_str(o->record, "shape", &shape) && json_get_str(o->record, "data", &data))
        printf(" at %.*s on %.*s data", STR_ARG(shape), STR_ARG(data));
    if (*o->why)
        printf(": %s", o->why);
    printf("\n");
    if (o->verdict != VERDICT_ACCEPTED)
        return;
    printf("verified on %.*s\n", STR_ARG(scope));
    str time = ui_time(ui->arena, o->time_s);
    printf("estimated %.*s (%s-bound, %.0f%% of the limit; a model, not a measurement)\n",
           STR_ARG(time), o->bound, 100 * o->limit_share);
}

static bool verify(struct evaluator_options *eo, str file, str source, struct outcome **out,
                   struct err *err) {
    eo->thorough = true;
    return evaluate_once(eo, file, source, out, err);
}

int cmd_verify(struct ui *ui) {
    struct evaluator_options eo;
    struct outcome *o;
    struct task *task;
    struct inst *inst;
    struct err err = {0};
    char *const *args;
    str source;
    options_args(ui->options, &args);
    if (!ui_load_task(ui, 0, &task, &inst, &err) ||
        !file_read(args[1], CANDIDATE_MAX_BYTES, ui->arena, &source, &err) ||
        !ui_evaluator_options(ui, task, inst, &eo, &err) ||
        !verify(&eo, str_view(args[1]), source, &o, &err))
        return ui_fail(ui, &err);
    int code = o->verdict == VERDICT_ACCEPTED ? 0 : 1;
    if (ui->as_json)
        code = ui_print_json(json_copy(o->record)) ? code : 3;
    else
        print_outcome(ui, o);
    outcome_free(o);
    return code;
}
