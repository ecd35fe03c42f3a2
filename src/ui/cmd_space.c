/* space TASK: the outcome of every strategy of a part of the task's space, in a table, for
 * `ablate`.
 */
#include "ui/space_run.h"

#include "base/say.h"
#include "ui/fleet.h"

#include <stdio.h>

static int finish(const struct space *s) {
    uint64_t whole = strategy_space(s->catalogue, &s->briefing.ground);
    if (!s->ui->as_json) {
        say("%s: %zu strategies of %llu, %zu measured before, %zu sources now, %zu refused\n",
            s->path, s->lattice.n, (unsigned long long)whole, s->before, s->nsources, s->refused);
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "table", str_view(s->path));
    json_set_i64(j, "strategies", (int64_t)s->lattice.n);
    json_set_i64(j, "before", (int64_t)s->before);
    json_set_i64(j, "sources", (int64_t)s->nsources);
    json_set_i64(j, "accepted", (int64_t)s->accepted);
    json_set_i64(j, "refused", (int64_t)s->refused);
    return ui_print_json(j) ? 0 : 3;
}

int cmd_space(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    size_t places;
    if (!fleet_asked_for(ui, false, &places, &err))
        return ui_fail(ui, &err);
    if (places)
        return fleet_run_command(ui, "space", SIZE_MAX);
    options_args(ui->options, &args);
    struct space s = {.ui = ui, .task_path = args[0], .path = option_text(ui->options, "out")};
    int code = space_run(&s, &err) ? finish(&s) : ui_fail(ui, &err);
    space_release(&s);
    return code;
}
