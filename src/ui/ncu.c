/* Starting ncu on a folder that holds all profile-run needs, and reading its table. */
#include "ui/ncu.h"

#include "base/child.h"
#include "base/file.h"
#include "base/loop.h"
#include "device/wire.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NCU_LIMIT_MS = 300000, LOG_BYTES = 32 << 20, COLUMNS = 64 };

const struct ncu_metric ncu_metrics[] = {
    {"gpu__time_duration.sum", "duration", "s", 1e-9},
    {"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM, of its peak", "%", 1},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM, of its peak", "%", 1},
    {"dram__bytes_read.sum", "read from DRAM", "B", 1},
    {"dram__bytes_write.sum", "written to DRAM", "B", 1},
    {"l1tex__t_sector_hit_rate.pct", "L1 hits", "%", 1},
    {"lts__t_sector_hit_rate.pct", "L2 hits", "%", 1},
    {"sm__warps_active.avg.pct_of_peak_sustained_active", "warps active", "%", 1},
    {"smsp__issue_active.avg.pct_of_peak_sustained_active", "issue slots used", "%", 1},
    {"smsp__inst_executed.sum", "warp instructions", "", 1},
    {"l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "shared bank conflicts", "", 1},
    {0},
};

/* ---- its table ---- */

/* The fields of a line of CSV, quotes taken off; a doubled quote cannot occur in what we read. */
static size_t split_csv(str line, str *fields) {
    size_t n = 0;
    while (n < COLUMNS) {
        bool quoted = str_starts(line, S("\""));
        str rest = str_from(line, quoted);
        size_t end = str_find(rest, quoted ? S("\"") : S(","));
        fields[n++] = str_cut(rest, 0, end);
        rest = str_from(rest, end + quoted);
        if (!str_starts(rest, S(",")))
            return n;
        line = str_from(rest, 1);
    }
    return n;
}

/* "1,234,567.8" with commas for people. */
static bool read_number(str text, double *out) {
    char plain[64];
    size_t n = 0;
    for (size_t i = 0; i < text.n && n < sizeof plain; i++)
        if (text.p[i] != ',')
            plain[n++] = text.p[i];
    return str_to_f64((str){plain, n}, out);
}

struct columns {
    size_t id, kernel, metric, value, n;
};

static bool find_columns(const str *fields, size_t n, struct columns *out) {
    static const char *const names[] = {"ID", "Kernel Name", "Metric Name", "Metric Value"};
    size_t at[4];
    for (size_t k = 0; k < 4; k++) {
        for (at[k] = 0; at[k] < n && !str_is(fields[at[k]], names[k]);)
            at[k]++;
        if (at[k] == n)
            return false;
    }
    *out = (struct columns){at[0], at[1], at[2], at[3], n};
    return true;
}

static const struct ncu_metric *metric_find(str name) {
    for (const struct ncu_metric *m = ncu_metrics; m->name; m++)
        if (str_is(name, m->name))
            return m;
    return NULL;
}

/* The kernel without its signature. */
static str bare_name(str kernel) {
    return str_cut(kernel, 0, str_find(kernel, S("(")));
}

struct reader {
    json *launches, *last;
    str id; /* of last */
};

static void take_row(struct reader *r, const struct columns *c, const str *fields) {
    const struct ncu_metric *m = metric_find(fields[c->metric]);
    double value;
    if (!r->last || !str_eq(r->id, fields[c->id])) {
        r->last = json_object();
        r->id = fields[c->id];
        json_set_str(r->last, "kernel", bare_name(fields[c->kernel]));
        json_push(r->launches, r->last);
    }
    if (m && read_number(fields[c->value], &value))
        json_set_f64(r->last, m->name, value * m->scale);
}

static bool explain(str text, struct err *err) {
    str line, first = {0};
    if (str_find(text, S("ERR_NVGPUCTRPERM")) < text.n)
        return err_set(
            err, ERR_ENV,
            "ncu may not read the GPU's counters\nhint: run as root, or load the nvidia "
            "module with NVreg_RestrictProfilingToAdminUsers=0; in a container, start it "
            "with CAP_SYS_ADMIN");
    while (str_line(&text, &line))
        if (str_starts(line, S("==ERROR=="))) {
            first = line;
            break;
        }
    return err_set(err, ERR_ENV, "ncu gave no counters%s%.*s", first.n ? ": " : "", STR_ARG(first));
}

bool ncu_parse(str text, json **out, struct err *err) {
    struct reader r = {.launches = json_array()};
    struct columns columns = {0};
    str rest = text, line, fields[COLUMNS];
    while (str_line(&rest, &line)) {
        if (!str_starts(line, S("\"")))
            continue; /* ncu's own talk */
        size_t n = split_csv(line, fields);
        if (!columns.n)
            find_columns(fields, n, &columns);
        else if (n == columns.n)
            take_row(&r, &columns, fields);
    }
    *out = r.launches;
    if (json_len(r.launches))
        return true;
    json_free(r.launches);
    return explain(text, err);
}

/* ---- running it ---- */

static bool write_json(const char *path, const struct fields *of, const void *what,
                       struct err *err) {
    struct buf b;
    json *j = fields_to_json(of, what);
    buf_init(&b, 16u << 20);
    json_write(j, &b);
    json_free(j);
    bool ok = b.failed ? err_set(err, ERR_ENV, "%s: too large", path)
                       : file_replace(path, buf_str(&b), err);
    buf_release(&b);
    return ok;
}

static bool write_folder(const struct ncu_run *r, const char *dir, struct arena *a,
                         struct err *err) {
    struct wire_shape shape;
    shape.set = set_of(r->inst, a, &shape.nset);
    return file_replace(arena_printf(a, "%s/task.task", dir).p, r->inst->task->text, err) &&
           file_replace(arena_printf(a, "%s/kernel.cubin", dir).p, r->cubin, err) &&
           write_json(arena_printf(a, "%s/set.json", dir).p, &wire_shape_fields, &shape, err) &&
           write_json(arena_printf(a, "%s/plan.json", dir).p, &bound_plan_fields, r->plan, err);
}

bool ncu_folder(const struct ncu_run *r, const char *dir, struct err *err) {
    struct arena *a = arena_new(256u << 20);
    bool ok = dir_make(dir, err) && write_folder(r, dir, a, err);
    arena_free(a);
    return ok;
}

static const char *metric_list(struct arena *a) {
    struct buf b;
    buf_init(&b, 1u << 16);
    for (const struct ncu_metric *m = ncu_metrics; m->name; m++)
        buf_printf(&b, "%s%s", b.n ? "," : "", m->name);
    const char *list = arena_cstr(a, buf_str(&b));
    buf_release(&b);
    return list;
}

/* The one named, or in PATH, or of the toolkit in its usual place. */
static bool start_ncu(const struct ncu_run *r, const char **argv, struct child *child,
                      struct err *err) {
    static const char *const usual[] = {"ncu", "/usr/local/cuda/bin/ncu"};
    struct child_spec spec = {.argv = argv, .fds = &(struct child_fd){2, 2}, .nfds = 1};
    argv[0] = r->program;
    if (r->program)
        return child_start(&spec, child, err);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        argv[0] = usual[i];
        if (child_start(&spec, child, err))
            return true;
    }
    return err_set(err, ERR_ENV,
                   "no ncu in PATH\nhint: install NVIDIA Nsight Compute; it comes with the CUDA "
                   "toolkit");
}

/* How it ended is in its log. */
static bool wait_for(struct child *child, struct err *err) {
    struct pollfd p = {.fd = child->pidfd, .events = POLLIN};
    bool ended = poll(&p, 1, NCU_LIMIT_MS) == 1;
    if (!ended)
        child_kill(child->pid);
    child_wait(child);
    return ended || err_set(err, ERR_ENV, "ncu did not end within %d s", NCU_LIMIT_MS / 1000);
}

static bool run_ncu(const struct ncu_run *r, const char *dir, struct arena *a, struct err *err) {
    const char *log = arena_printf(a, "%s/ncu.csv", dir).p;
    struct child child;
    const char *argv[] = {NULL, /* start_ncu's */
                          "--csv",
                          "--print-units",
                          "base",
                          "--clock-control",
                          "none",
                          "--log-file",
                          log,
                          "--metrics",
                          metric_list(a),
                          arena_cstr(a, self_path(a)),
                          "profile-run",
                          dir,
                          arena_printf(a, "%d", r->ordinal).p,
                          NULL};
    return start_ncu(r, argv, &child, err) && wait_for(&child, err);
}

static bool profile_in(const struct ncu_run *r, const char *dir, struct arena *a, json **out,
                       struct err *err) {
    str log;
    if (!write_folder(r, dir, a, err) || !run_ncu(r, dir, a, err))
        return false;
    const char *path = arena_printf(a, "%s/ncu.csv", dir).p;
    if (!file_exists(path))
        return err_set(err, ERR_ENV, "ncu wrote nothing");
    return file_read(path, LOG_BYTES, a, &log, err) && ncu_parse(log, out, err);
}

bool ncu_profile(const struct ncu_run *r, json **out, struct err *err) {
    struct arena *a = arena_new(256u << 20);
    const char *tmp = getenv("TMPDIR");
    char *dir =
        arena_cstr(a, arena_printf(a, "%s/cutepilot-ncu-XXXXXX", tmp && *tmp ? tmp : "/tmp"));
    struct err ignored = {0};
    bool ok = mkdtemp(dir) || err_errno(err, ERR_ENV, "make the folder %s", dir);
    if (ok) {
        ok = profile_in(r, dir, a, out, err);
        dir_remove_tree(dir, &ignored);
    }
    arena_free(a);
    return ok;
}
