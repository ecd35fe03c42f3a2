/* report RUN|SUITE: what a run or a suite came to, as one HTML file. */
#include "base/file.h"
#include "base/say.h"
#include "report/report.h"
#include "ui/ui.h"

static bool write_run(struct ui *ui, const char *folder, const char *file, struct err *err) {
    struct buf page;
    buf_init(&page, REPORT_PAGE_MAX);
    bool ok = report_run(folder, option_text(ui->options, "assets"), &page, err) &&
              file_replace(file, buf_str(&page), err);
    buf_release(&page);
    return ok;
}

/* A run that cannot be read leaves its line without a link, and is named. */
static size_t write_runs(struct ui *ui, const char *const *runs, size_t n) {
    size_t written = 0;
    for (size_t i = 0; i < n; i++) {
        struct err err = {0};
        const char *file = arena_printf(ui->arena, "%s/" REPORT_FILE, runs[i]).p;
        if (write_run(ui, runs[i], file, &err))
            written++;
        else
            complain("cutepilot: a run of the suite gets no report: %s\n", err.text);
    }
    return written;
}

/* With --out one file is written and no other; without, every run gets its own report as well. */
static bool write_suite(struct ui *ui, const char *folder, const char *file, size_t *runs,
                        struct err *err) {
    const char **folders;
    size_t n = 0;
    struct buf page;
    if (!option_given(ui->options, "out")) {
        if (!report_suite_runs(folder, ui->arena, &folders, &n, err))
            return false;
        *runs = write_runs(ui, folders, n);
    }
    buf_init(&page, REPORT_PAGE_MAX);
    bool ok = report_suite(folder, option_text(ui->options, "assets"), file, &page, err) &&
              file_replace(file, buf_str(&page), err);
    buf_release(&page);
    return ok;
}

static int finish(const struct ui *ui, const char *file, size_t runs) {
    if (!ui->as_json) {
        say("%s\n", file);
        if (runs)
            say("It links to a " REPORT_FILE " in the folder%s of %zu run%s\n",
                runs == 1 ? "" : "s", runs, runs == 1 ? "" : "s");
        return 0;
    }
    json *j = json_object();
    json_set_str(j, "file", str_view(file));
    json_set_i64(j, "runs", (int64_t)runs);
    return ui_print_json(j) ? 0 : 3;
}

int cmd_report(struct ui *ui) {
    char *const *args;
    struct err err = {0};
    size_t runs = 0;
    options_args(ui->options, &args);
    const char *folder = args[0], *file = option_text(ui->options, "out");
    if (!file)
        file = arena_printf(ui->arena, "%s/" REPORT_FILE, folder).p;
    bool is_run = file_exists(arena_printf(ui->arena, "%s/run.db", folder).p);
    bool ok = is_run ? write_run(ui, folder, file, &err)
              : report_is_suite(folder)
                  ? write_suite(ui, folder, file, &runs, &err)
                  : err_set(&err, ERR_INPUT,
                            "%s is neither the folder of a run, which has a "
                            "run.db, nor that of a suite, which has a suite.json",
                            folder);
    return ok ? finish(ui, file, runs) : ui_fail(ui, &err);
}
