/* What ncu writes, and a script in its place. */
#include "ui/ncu.h"

#include "base/file.h"
#include "tap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct arena *arena;

#define HEAD                                                                                       \
    "\"ID\",\"Process ID\",\"Process Name\",\"Kernel Name\",\"Block Size\",\"Section Name\","      \
    "\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n"
#define ROW(id, kernel, metric, value)                                                             \
    "\"" id "\",\"77\",\"cutepilot\",\"" kernel "\",\"(256, 1, 1)\",\"Command line profiler "      \
    "metrics\",\"" metric "\",\"byte\",\"" value "\"\n"

static void test_parse(void) {
    static const char text[] = "==PROF== Connected to process 77\n" HEAD ROW(
        "0", "part(const float *, float *)", "dram__bytes_read.sum", "1,234,567.5")
        ROW("0", "part(const float *, float *)", "gpu__time_duration.sum", "2,000")
            ROW("0", "part", "not.asked.for", "9")
                ROW("0", "part", "lts__t_sector_hit_rate.pct", "n/a")
                    ROW("1", "part", "dram__bytes_read.sum", "8") "==PROF== Disconnected\n";
    struct err err = {0};
    json *j = NULL;
    double v = 0;
    str name;
    CHECKF(ncu_parse(str_view(text), &j, &err), "%s", err.text);
    CHECK(json_len(j) == 2);
    const json *first = json_at(j, 0), *second = json_at(j, 1);
    CHECK(json_get_str(first, "kernel", &name) && str_is(name, "part"));
    CHECK(json_get_f64(first, "dram__bytes_read.sum", &v) && v == 1234567.5);
    CHECK(json_get_f64(first, "gpu__time_duration.sum", &v) && fabs(v - 2e-6) < 1e-15);
    CHECK(!json_get(first, "not.asked.for") && !json_get(first, "lts__t_sector_hit_rate.pct"));
    CHECK(json_get_f64(second, "dram__bytes_read.sum", &v) && v == 8);
    json_free(j);
}

static void test_refused(void) {
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"", "no counters"},
        {HEAD, "no counters"},
        {ROW("0", "k", "dram__bytes_read.sum", "1"), "no counters"},
        {HEAD "\"0\",\"77\"\n", "no counters"},
        {"\"ID\",\"Kernel Name\"\n\"0\",\"k\"\n", "no counters"},
        {"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n",
         "NVreg_RestrictProfilingToAdminUsers=0"},
        {"==PROF== hello\n==ERROR== Failed to find metric x\n", "Failed to find metric x"},
        {"\"", "no counters"},
        {"\"\"\"\",,,\"\n", "no counters"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        json *j = NULL;
        CHECKF(!ncu_parse(str_view(rows[i].text), &j, &err), "row %zu", i);
        CHECKF(strstr(err.text, rows[i].words), "row %zu: %s", i, err.text);
    }
}

/* ---- a script for ncu ---- */

static const char task_text[] = "task t \"t\"\ndim N = 64\nin x[N] : f32 ~ normal(0, 1)\n"
                                "out y[N] : f32\ny[i] = x[i]\n";
static const char kernel_text[] =
    "//! launch copy<<<ceil_div(N, 32), 32>>>(x, y, N)\n"
    "extern \"C\" __global__ void copy(const float *x, float *y, int n) {}\n";

static bool make_run(struct ncu_run *r, struct bound_plan *plan, struct err *err) {
    struct candidate *c;
    struct task *task;
    struct inst *inst;
    if (!task_parse(S("t.task"), str_view(task_text), arena, &task, err) ||
        !task_bind(task, NULL, 0, arena, &inst, err) ||
        !candidate_parse(S("k.cu"), str_view(kernel_text), task, arena, &c, err) ||
        !plan_bind(c, inst, arena, plan, err))
        return false;
    *r = (struct ncu_run){.inst = inst, .plan = plan, .cubin = S("a cubin"), .ordinal = 3};
    return true;
}

static void test_run(void) {
    static const struct {
        const char *script, *words; /* words NULL: it works */
    } rows[] = {
        /* Its words: … --log-file LOG … PROGRAM profile-run DIR ORDINAL */
        {"#!/bin/sh\nwhile [ \"$1\" != --log-file ]; do shift; done\nlog=$2\n"
         "while [ \"$1\" != profile-run ]; do shift; done\n"
         "[ \"$3\" = 3 ] && [ \"$(cat \"$2/kernel.cubin\")\" = 'a cubin' ] || exit 1\n"
         "grep -q '\"N\":64' \"$2/set.json\" && grep -q copy \"$2/plan.json\" || exit 1\n"
         "cmp -s \"$2/task.task\" /dev/null && exit 1\n"
         "printf '\"ID\",\"Kernel Name\",\"Metric Name\",\"Metric Value\"\\n' > \"$log\"\n"
         "printf '\"0\",\"copy\",\"smsp__inst_executed.sum\",\"12\"\\n' >> \"$log\"\n",
         NULL},
        {"#!/bin/sh\nexit 1\n", "ncu wrote nothing"},
        {"#!/no/such/shell\n", "start"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        struct bound_plan plan;
        struct ncu_run r;
        json *j = NULL;
        double v = 0;
        char path[] = "/tmp/cutepilot-test-ncu-XXXXXX";
        int fd = mkstemp(path);
        CHECK(fd >= 0 && write(fd, rows[i].script, strlen(rows[i].script)) > 0);
        close(fd);
        CHECK(chmod(path, 0700) == 0);
        bool ok = make_run(&r, &plan, &err);
        r.program = path;
        ok = ok && ncu_profile(&r, &j, &err);
        CHECKF(ok == !rows[i].words, "row %zu: %s", i, err.text);
        if (ok)
            CHECK(json_get_f64(json_at(j, 0), "smsp__inst_executed.sum", &v) && v == 12);
        else
            CHECKF(rows[i].words && strstr(err.text, rows[i].words), "row %zu: %s", i, err.text);
        json_free(ok ? j : NULL);
        unlink(path);
    }
}

static const struct tap_case cases[] = {
    {"counters are read", test_parse},
    {"what is no table, and why", test_refused},
    {"a program in ncu's place", test_run},
};

int main(void) {
    arena = arena_new(64u << 20);
    int code = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return code;
}
