/* The device process on a real GPU, driven as a worker and a judge would: plans with workspaces,
 * memsets, tensor maps, clusters and shared memory give the right numbers; times, ceilings, faults
 * and restarts. Says "skipped" where there is no GPU.
 *
 *     gpu-device harness.cubin gpu_sharing.cubin
 */
#include "base/file.h"
#include "base/spread.h"
#include "device/vmm.h"
#include "tests/device/device_client.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define N (1 << 20)

static struct cuda judge;
static struct vmm_buffer x, y, work, sums;
static float *host;
static str harness, kernels;
static const char *self;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void show(const char *what, const struct frame *f) {
    struct buf b;
    buf_init(&b, 1 << 20);
    if (f->head)
        json_write(f->head, &b);
    printf("%-24s %u %s\n", what, f->type, b.p ? b.p : "(gone)");
    fflush(stdout);
    buf_release(&b);
}

static void give(struct client *c, int64_t id, struct vmm_buffer *b) {
    struct err err = {0};
    int fd = -1;
    if (!vmm_export(&judge, b, &fd, &err))
        printf("export: %s\n", err.text);
    client_buffer(c, id, b->mapped, fd);
    close(fd);
}

static struct client start(void) {
    struct client c;
    double t0 = now_ms();
    client_start(&c, self, -1, NULL);
    struct frame f = client_get(&c);
    double t1 = now_ms();
    show("hello", &f);
    frame_release(&f);
    client_task(&c, harness);
    give(&c, 1, &x);
    give(&c, 2, &y);
    give(&c, 3, &work);
    give(&c, 4, &sums);
    f = client_load(&c, kernels);
    show("loaded", &f);
    frame_release(&f);
    printf("%-24s hello after %.1f ms, loaded after %.1f ms\n", "", t1 - t0, now_ms() - t0);
    return c;
}

static json *tensors(void) {
    json *list = json_array();
    json_push(list, span_json(1, (int64_t)x.mapped - 4 * N, 4 * N));
    json_push(list, span_json(2, (int64_t)y.mapped - 4 * N, 4 * N));
    return list;
}

static json *workspaces(void) {
    json *list = json_array();
    json_push(list, span_json(3, (int64_t)work.mapped - 4 * N, 4 * N));
    json_push(list, span_json(4, (int64_t)sums.mapped - 128, 128));
    return list;
}

static void check(const char *what, float scale, float plus) {
    size_t wrong = 0;
    float got[4] = {0};
    judge.copy_to_host(host, y.address + y.mapped - 4 * N, 4 * N, judge.stream);
    judge.stream_sync(judge.stream);
    for (size_t i = 0; i < N; i++)
        wrong += !(host[i] == scale * (float)(i % 1000) + plus);
    memcpy(got, host + 5, sizeof got);
    printf("%s %s: %zu of %d wrong (%g %g %g …)\n", wrong ? "not ok" : "ok", what, wrong, N, got[0],
           got[1], got[2]);
    judge.set_d32(y.address, 0x7fc0dead, y.mapped / 4, judge.stream);
    judge.stream_sync(judge.stream);
}

static struct bound_arg tensor(size_t ref) {
    return (struct bound_arg){.kind = ARG_TENSOR, .ref = ref};
}
static struct bound_arg space(size_t ref) {
    return (struct bound_arg){.kind = ARG_WORKSPACE, .ref = ref};
}
static struct bound_arg integer(int64_t v) {
    return (struct bound_arg){.kind = ARG_INTEGER, .value = v};
}

static struct frame run_one(struct client *c, const char *kernel, struct bound_arg *args,
                            size_t nargs, unsigned grid, unsigned block, bool cooperative,
                            size_t runs, bool timed) {
    struct bound_launch l = {.kernel = str_view(kernel),
                             .grid = {grid, 1, 1},
                             .block = {block, 1, 1},
                             .cluster = {1, 1, 1},
                             .cooperative = cooperative,
                             .args = args,
                             .nargs = nargs};
    struct bound_step step = {PLAN_LAUNCH, 0};
    struct bound_plan p = {.steps = &step, .nsteps = 1, .launches = &l, .nlaunches = 1};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        p.align[i] = PLAN_ALIGN;
    return client_run(c, &p, tensors(), NULL, runs, timed);
}

static void show_and_forget(const char *what, struct frame f) {
    show(what, &f);
    frame_release(&f);
}

static void run_staged(struct client *c) {
    struct bound_arg one[] = {tensor(0), space(0), integer(N)};
    struct bound_arg two[] = {space(0), space(1), tensor(1), integer(N)};
    double two_point_five = 2.5;
    struct bound_memset set = {.of = ARG_WORKSPACE, .ref = 1, .size = 8, .count = 16};
    memcpy(&set.pattern, &two_point_five, 8);
    struct bound_launch launches[] = {{.kernel = S("stage_one"),
                                       .grid = {N / 256, 1, 1},
                                       .block = {256, 1, 1},
                                       .cluster = {4, 1, 1},
                                       .shared = 100000,
                                       .args = one,
                                       .nargs = 3},
                                      {.kernel = S("stage_two"),
                                       .grid = {264, 1, 1},
                                       .block = {512, 1, 1},
                                       .cluster = {1, 1, 1},
                                       .cooperative = true,
                                       .args = two,
                                       .nargs = 4}};
    struct bound_workspace spaces[] = {{S("part"), DTYPE_F32, 4 * N, 16},
                                       {S("sums"), DTYPE_F64, 128, 16}};
    struct bound_step steps[] = {{PLAN_LAUNCH, 0}, {PLAN_MEMSET, 0}, {PLAN_LAUNCH, 1}};
    struct bound_plan p = {.steps = steps,
                           .nsteps = 3,
                           .launches = launches,
                           .nlaunches = 2,
                           .memsets = &set,
                           .nmemsets = 1,
                           .workspaces = spaces,
                           .nworkspaces = 2};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        p.align[i] = PLAN_ALIGN;
    show_and_forget("staged", client_run(c, &p, tensors(), workspaces(), 2, false));
    check("workspace, memset of 8 bytes, cluster, cooperative", 3, 2.5f);
    show_and_forget("staged, timed", client_run(c, &p, tensors(), workspaces(), 5, true));
    check("the same, timed", 3, 2.5f);
}

static void run_boxes(struct client *c) {
    struct bound_arg args[] = {{.kind = ARG_TENSORMAP, .ref = 0}, tensor(1)};
    struct bound_tensormap map = {.of = ARG_TENSOR,
                                  .ref = 0,
                                  .dtype = DTYPE_F32,
                                  .rank = 2,
                                  .extent = {32, N / 32},
                                  .stride = {128},
                                  .box = {32, 8},
                                  .step = {1, 1}};
    struct bound_launch l = {.kernel = S("boxes"),
                             .grid = {N / 256, 1, 1},
                             .block = {256, 1, 1},
                             .cluster = {1, 1, 1},
                             .args = args,
                             .nargs = 2};
    struct bound_step step = {PLAN_LAUNCH, 0};
    struct bound_plan p = {
        .steps = &step, .nsteps = 1, .launches = &l, .nlaunches = 1, .maps = &map, .nmaps = 1};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        p.align[i] = PLAN_ALIGN;
    show_and_forget("tensor map", client_run(c, &p, tensors(), NULL, 1, false));
    check("tensor map", 1, 1);
}

static void show_times(const struct frame *f) {
    const json *times = json_get(f->head, "times_s"), *hosts = json_get(f->head, "host_s");
    double s[1000] = {0}, h[1000] = {0};
    size_t n = json_len(times) < 1000 ? json_len(times) : 1000;
    for (size_t i = 0; i < n; i++) {
        json_to_f64(json_at(times, i), &s[i]);
        json_to_f64(json_at(hosts, i), &h[i]);
    }
    struct spread d = spread_of(s, n), w = spread_of(h, n);
    printf("%-24s %zu runs: median %.2f us (%.2f..%.2f), host %.2f us\n", "", n, 1e6 * d.median,
           1e6 * d.low, 1e6 * d.high, 1e6 * w.median);
}

static void run_plain(struct client *c) {
    struct bound_arg args[] = {tensor(0), tensor(1), integer(N)};
    show_and_forget("scale", run_one(c, "scale", args, 3, N / 256, 256, false, 1, false));
    check("scale", 2, 0);
    for (int i = 0; i < 3; i++) {
        double t0 = now_ms();
        struct frame f = run_one(c, "scale", args, 3, N / 256, 256, false, 200, true);
        printf("%-24s %.3f ms a run, all in\n", "200 timed runs", (now_ms() - t0) / 200);
        show_times(&f);
        frame_release(&f);
    }
    check("scale, timed", 2, 0);
    show_and_forget("too many blocks", run_one(c, "scale", args, 3, N / 256, 256, true, 1, false));
    show_and_forget("an argument less", run_one(c, "scale", args, 2, 1, 32, false, 1, false));
    show_and_forget("no such kernel", run_one(c, "nothing", args, 3, 1, 32, false, 1, false));
    show_and_forget("still fine", run_one(c, "scale", args, 3, N / 256, 256, false, 1, false));
    check("after refusals", 2, 0);
}

static void run_faults(struct client *c) {
    struct bound_arg behind[] = {tensor(1), integer(N), integer(1)};
    show_and_forget("write behind", run_one(c, "poke", behind, 3, 1, 1, false, 1, false));
    show_and_forget("then", client_get(c));
    printf("%-24s wait status %#x\n", "", client_end(c));
    *c = start();
    show_and_forget("write behind, timed", run_one(c, "poke", behind, 3, 1, 1, false, 3, true));
    printf("%-24s wait status %#x\n", "", client_end(c));
    *c = start();
}

static void run_stuck(struct client *c) {
    struct bound_arg wait[] = {tensor(0)};
    struct bound_launch l = {.kernel = S("stuck"),
                             .grid = {1, 1, 1},
                             .block = {32, 1, 1},
                             .cluster = {1, 1, 1},
                             .args = wait,
                             .nargs = 1};
    struct bound_step step = {PLAN_LAUNCH, 0};
    struct bound_plan p = {.steps = &step, .nsteps = 1, .launches = &l, .nlaunches = 1};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        p.align[i] = PLAN_ALIGN;
    pid_t killer = fork();
    if (killer == 0) {
        usleep(1000000);
        child_kill(c->child.pid);
        _exit(0);
    }
    double t0 = now_ms();
    show_and_forget("stuck", client_run(c, &p, tensors(), NULL, 1, false));
    int status = client_end(c);
    printf("%-24s killed after %.0f ms, wait status %#x\n", "", now_ms() - t0, status);
    waitpid(killer, NULL, 0);
    t0 = now_ms();
    judge.copy_to_host(host, y.address, 4, judge.stream);
    int code = judge.stream_sync(judge.stream);
    printf("%s the judge goes on: it answered after %.1f ms\n",
           code == 0 && isnan(host[0]) ? "ok" : "not ok", now_ms() - t0);
}

static bool prepare(struct err *err) {
    struct vmm_buffer *all[] = {&x, &y, &work, &sums};
    if (!cuda_open(&judge, 0, err))
        return false;
    for (size_t i = 0; i < 4; i++)
        if (!vmm_create(&judge, i < 3 ? 4 * N : 128, all[i], NULL, err))
            return false;
    host = malloc(4 * N);
    for (size_t i = 0; i < N; i++)
        host[i] = (float)(i % 1000);
    return cuda_try(&judge,
                    judge.copy_to_device(x.address + x.mapped - 4 * N, host, 4 * N, judge.stream),
                    err, "copy") &&
           cuda_try(&judge, judge.stream_sync(judge.stream), err, "copy");
}

int main(int argc, char **argv) {
    struct arena *a = arena_new(256u << 20);
    struct err err = {0};
    if (argc == 2 && strcmp(argv[1], "device") == 0)
        return cuda_device_main(0);
    if (argc != 3 || !file_read(argv[1], 64u << 20, a, &harness, &err) ||
        !file_read(argv[2], 64u << 20, a, &kernels, &err)) {
        fprintf(stderr, "usage: gpu-device harness.cubin gpu_sharing.cubin\n%s\n", err.text);
        return 2;
    }
    self = self_path(a).p;
    if (!prepare(&err)) {
        printf("skipped: %s\n", err.text);
        return 77;
    }
    struct client c = start();
    run_plain(&c);
    run_staged(&c);
    run_boxes(&c);
    client_send(&c, WIRE_CEILINGS, NULL, (str){0}, NULL, 0);
    show_and_forget("ceilings", client_get(&c));
    run_faults(&c);
    run_stuck(&c);
    return 0;
}
