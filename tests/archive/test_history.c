/* The history pool: written, read back, merged without doubles, damaged, retrieved by features. */
#include "archive/history.h"
#include "base/file.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena *mem;
static struct err err;
static char *dir;

static const char *path_of(const char *name) {
    return arena_printf(mem, "%s/%s", dir, name).p;
}

static struct history_run run_of(const char *task, enum workload w, double elements, size_t n) {
    struct history_run r = {.task = str_view(task),
                            .shape = S("N=4"),
                            .device = S("sim:h200"),
                            .text_hash = str_view(task),
                            .estimated = true,
                            .arch = 90,
                            .features = {.workload = w,
                                         .log2_elements = elements,
                                         .log2_bytes = elements + 2,
                                         .intensity = 0.5,
                                         .inputs = 1,
                                         .outputs = 1,
                                         .rank = 2,
                                         .reuse = 1,
                                         .dtype = DTYPE_F32},
                            .best_s = 1e-5,
                            .n = n};
    r.trials = arena_array(mem, struct history_trial, n + 1);
    for (size_t i = 0; i < n; i++)
        r.trials[i] = (struct history_trial){arena_printf(mem, "block=%zu", 64 + i),
                                             i % 5 == 4 ? INFINITY : 1 + 0.1 * (double)i};
    return r;
}

static void test_round(void) {
    struct history h, back;
    size_t added = 9;
    struct history_run a = run_of("gelu", WORKLOAD_POINTWISE, 21, 6);
    history_init(&h);
    history_init(&back);
    history_add(&h, &a);
    CHECKF(history_append(path_of("deep/pool"), &h, &added, &err) && added == 1, "%s", err.text);
    CHECK(history_append(path_of("deep/pool"), &h, &added, &err) && added == 0);
    CHECKF(history_load(&back, path_of("deep/pool"), &err) && back.n == 1, "%s", err.text);
    const struct history_run *r = &back.runs[0];
    CHECK(str_is(r->task, "gelu") && r->n == 6 && r->best_s == 1e-5 && r->arch == 90);
    CHECK(r->features.workload == WORKLOAD_POINTWISE && r->features.log2_elements == 21);
    CHECK(str_is(r->trials[2].strategy, "block=66") && r->trials[2].ratio == 1.2);
    CHECK(!isfinite(r->trials[4].ratio));
    CHECK(history_load(&back, path_of("absent"), &err) && back.n == 1);
    history_release(&h);
    history_release(&back);
}

/* Of a long run the fastest are kept, and a spread of the others. */
static void test_trimmed(void) {
    struct history h;
    struct history_run a = run_of("long", WORKLOAD_POINTWISE, 21, 1000);
    history_init(&h);
    history_add(&h, &a);
    size_t n = h.runs[0].n, fast = 0;
    for (size_t i = 0; i < n; i++)
        fast += h.runs[0].trials[i].ratio < 1 + 0.1 * 50;
    CHECKF(n <= 100 && fast >= 40, "%zu, %zu", n, fast);
    history_release(&h);
}

static void test_damaged(void) {
    static const char *const texts[] = {"nonsense\n", "{}\n", "{\"history\":2}\n",
                                        "\n{\"history\":1,\"task\":\"x\"}\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct history h;
        history_init(&h);
        err = (struct err){0};
        CHECK(!history_parse(&h, S("pool"), str_view(texts[i]), &err) && err.kind == ERR_INPUT);
        CHECKF(strstr(err.text, i == 3 ? "pool:2" : "pool:1") != NULL, "%s", err.text);
        history_release(&h);
    }
    /* killed in the middle of a line: the next writer goes on after the last whole one */
    struct history h, back;
    size_t added;
    struct history_run a = run_of("gelu", WORKLOAD_POINTWISE, 21, 3);
    history_init(&h);
    history_init(&back);
    CHECK(file_replace(path_of("cut"), S("{\"history\":1,\"ta"), &err));
    CHECKF(history_load(&back, path_of("cut"), &err) && back.n == 0, "%s", err.text);
    history_add(&h, &a);
    CHECK(history_append(path_of("cut"), &h, &added, &err) && added == 1);
    CHECK(history_load(&back, path_of("cut"), &err) && back.n == 1);
    history_release(&h);
    history_release(&back);
}

/* A run takes what it can read of the pool. */
static void test_pool_with_garbage(void) {
    struct history h, back;
    struct buf text;
    struct history_run a = run_of("gelu", WORKLOAD_POINTWISE, 21, 3);
    history_init(&h);
    history_init(&back);
    history_add(&h, &a);
    buf_init(&text, 1 << 20);
    history_text(&h, &text);
    buf_puts(&text, S("garbage \0 \xff\n{}\n"));
    history_text(&h, &text);
    CHECK(file_replace(path_of("mixed"), buf_str(&text), &err));
    history_load_pool(&back, path_of("mixed"), &err);
    CHECKF(back.n == 2 && strstr(err.text, "mixed:2: ") && strstr(err.text, "2 such lines are"),
           "%zu: %s", back.n, err.text);
    history_load_pool(&back, path_of("absent"), &err);
    CHECK(back.n == 2 && err.kind == ERR_NONE);
    CHECK(dir_make(path_of("folder"), &err));
    history_load_pool(&back, path_of("folder"), &err);
    CHECKF(back.n == 2 && err.kind != ERR_NONE && strstr(err.text, "left out"), "%s", err.text);
    buf_release(&text);
    history_release(&h);
    history_release(&back);
}

/* A pool that somebody edited: its last line lacks its end, and is kept all the same. */
static void test_no_last_end(void) {
    struct history h, other, back;
    struct history_run a = run_of("gelu", WORKLOAD_POINTWISE, 21, 3),
                       b = run_of("relu", WORKLOAD_POINTWISE, 22, 3);
    struct buf text;
    size_t added;
    history_init(&h);
    history_init(&other);
    history_init(&back);
    history_add(&h, &a);
    history_add(&other, &b);
    buf_init(&text, 1 << 20);
    history_text(&h, &text);
    CHECK(file_replace(path_of("open"), str_cut(buf_str(&text), 0, text.n - 1), &err));
    CHECK(history_load(&back, path_of("open"), &err) && back.n == 1);
    CHECK(history_append(path_of("open"), &h, &added, &err) && added == 0);
    CHECK(history_append(path_of("open"), &other, &added, &err) && added == 1);
    history_release(&back);
    history_init(&back);
    CHECK(history_load(&back, path_of("open"), &err) && back.n == 2);
    buf_release(&text);
    history_release(&h);
    history_release(&other);
    history_release(&back);
}

static void test_retrieved(void) {
    struct history h, out;
    struct history_run runs[] = {
        run_of("conv", WORKLOAD_CONTRACTION, 20, 3), run_of("small", WORKLOAD_POINTWISE, 10, 3),
        run_of("same", WORKLOAD_POINTWISE, 21, 3), run_of("near", WORKLOAD_POINTWISE, 22, 3)};
    struct history_run own = run_of("same", WORKLOAD_POINTWISE, 21, 0);
    history_init(&h);
    for (size_t i = 0; i < 4; i++)
        history_add(&h, &runs[i]);
    history_init(&out);
    history_retrieve(&h, &own, true, 2, &out);
    CHECK(out.n == 2 && str_is(out.runs[0].task, "same") && str_is(out.runs[1].task, "near"));
    CHECK(out.runs[0].weight > out.runs[1].weight && out.runs[1].weight > 0.5);
    history_release(&out);
    history_init(&out);
    history_retrieve(&h, &own, false, 9, &out);
    CHECK(out.n == 3 && str_is(out.runs[0].task, "near") && str_is(out.runs[1].task, "small"));
    /* as archived with a run, and read again */
    struct buf text;
    struct history again;
    buf_init(&text, 1 << 20);
    history_text(&out, &text);
    history_init(&again);
    CHECKF(history_parse(&again, S("note"), buf_str(&text), &err) && again.n == 3, "%s", err.text);
    CHECK(again.runs[1].weight == out.runs[1].weight && again.runs[1].n == out.runs[1].n);
    history_release(&again);
    history_release(&out);
    history_release(&h);
    buf_release(&text);
}

/* Of a team: processes that append at once lose nothing, and tear no line. */
enum { WRITERS = 6, RUNS_EACH = 15 };
static int write_runs(int writer) {
    for (int i = 0; i < RUNS_EACH; i++) {
        struct history h;
        size_t added;
        struct history_run r = run_of("gelu", WORKLOAD_POINTWISE, 100 * writer + i, 20);
        history_init(&h);
        history_add(&h, &r);
        if (!history_append(path_of("shared"), &h, &added, &err) || added != 1)
            return 1;
        history_release(&h);
    }
    return 0;
}

static void test_many_writers(void) {
    pid_t pid[WRITERS];
    struct history h;
    for (int w = 0; w < WRITERS; w++) {
        fflush(stdout);
        pid[w] = fork();
        if (pid[w] == 0)
            _exit(write_runs(w));
    }
    for (int w = 0; w < WRITERS; w++) {
        int status = 1;
        CHECK(waitpid(pid[w], &status, 0) == pid[w] && status == 0);
    }
    history_init(&h);
    CHECKF(history_load(&h, path_of("shared"), &err), "%s", err.text);
    CHECKF(h.n == (size_t)WRITERS * RUNS_EACH, "%zu runs", h.n);
    history_release(&h);
}

static void test_shipped(void) {
    struct history h;
    history_init(&h);
    CHECKF(history_load_shipped(&h, NULL, &err), "%s", err.text);
    for (size_t i = 0; i < h.n; i++)
        CHECK(h.runs[i].n > 0 && !h.runs[i].estimated);
    history_release(&h);
}

static const struct tap_case cases[] = {
    {"written once, read back", test_round},
    {"a long run is trimmed", test_trimmed},
    {"damaged pools", test_damaged},
    {"a run takes what it can read", test_pool_with_garbage},
    {"a last line without its end", test_no_last_end},
    {"retrieved by likeness, but for the task itself", test_retrieved},
    {"many writers at once", test_many_writers},
    {"the shipped pool can be read and is of measurements", test_shipped},
};

int main(void) {
    mem = arena_new(256u << 20);
    dir = mkdtemp(arena_cstr(mem, S("/tmp/history-XXXXXX")));
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(dir, &err);
    arena_free(mem);
    return rc;
}
