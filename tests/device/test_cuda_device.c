/* The device process for CUDA, in its sandbox, over fake_cuda.c: what is asked of the driver and in
 * which order, what is refused, and what an error does to it. */
#include "device/cuda_types.h"
#include "tests/device/device_client.h"
#include "tests/device/fake_image.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GRANULE (2 << 20)

static const char *self;

static str harness_image(void) {
    return fake_image(
        "scrub 4 4 8 4\nscrub_local_256 4 8 4\nscrub_local_512 4 8 4\n"
        "scrub_local_1024 4 8 4\nscrub_local_16384 4 8 4\n"
        "scrub_local_524288 4 8 4 !2\nhold 4 8\nfill64 8 8 8\nnoise 8 8 4 4\nempty\nread_all 8 8\n"
        "write_all 8 4\ncopy_all 8 8\nfma_fp32 4 8\nmma_tf32 4 8 8 8\n"
        "mma_bf16 4 8 8 8\n");
}

/* ---- a device with its log and one buffer of tensors ---- */

struct device {
    struct client c;
    int log, memory;
    char *bytes; /* of the buffer, as the judge sees it */
    size_t seen; /* of the log */
};

static bool device_start(struct device *d, const char *fail) {
    char set[64];
    const char *env[] = {"FAKE_CUDA_LOG=4", set, NULL};
    snprintf(set, sizeof set, "FAKE_CUDA_FAIL=%s", fail ? fail : "");
    memset(d, 0, sizeof *d);
    d->log = memfd_create("log", MFD_CLOEXEC);
    d->memory = memfd_create("memory", MFD_CLOEXEC);
    if (ftruncate(d->memory, GRANULE))
        return false;
    d->bytes = mmap(NULL, GRANULE, PROT_READ | PROT_WRITE, MAP_SHARED, d->memory, 0);
    return client_start(&d->c, self, d->log, env);
}

/* Started, greeted, with its task, buffer 1, and a module. */
static bool device_ready(struct device *d, const char *fail, const char *kernels) {
    if (!device_start(d, fail))
        return false;
    struct frame f = client_get(&d->c);
    bool ok = f.type == WIRE_HELLO;
    frame_release(&f);
    client_task(&d->c, harness_image());
    client_buffer(&d->c, 1, GRANULE, d->memory);
    f = client_load(&d->c, fake_image(kernels));
    ok = ok && f.type == WIRE_LOADED && str_is(client_text(&f, "verdict"), "accepted");
    frame_release(&f);
    return ok;
}

static int device_end(struct device *d) {
    int status = client_end(&d->c);
    munmap(d->bytes, GRANULE);
    close(d->memory);
    close(d->log);
    return status;
}

/* What was written since the last look. The process writes before it answers. */
static const char *device_log(struct device *d) {
    static char text[1 << 20];
    ssize_t n = pread(d->log, text, sizeof text - 1, (off_t)d->seen);
    text[n > 0 ? n : 0] = 0;
    d->seen += n > 0 ? (size_t)n : 0;
    return text;
}

/* ---- a plan to play with ---- */

struct toy {
    struct bound_arg args[8];
    struct bound_launch launches[2];
    struct bound_memset sets[4];
    struct bound_workspace spaces[2];
    struct bound_tensormap maps[1];
    struct bound_step steps[6];
    struct bound_plan plan;
};

/* k<<<3, 128>>>(x, y, 7) */
static void toy_init(struct toy *t) {
    memset(t, 0, sizeof *t);
    t->args[0] = (struct bound_arg){.kind = ARG_TENSOR, .ref = 0};
    t->args[1] = (struct bound_arg){.kind = ARG_TENSOR, .ref = 1};
    t->args[2] = (struct bound_arg){.kind = ARG_INTEGER, .value = 7};
    t->launches[0] = (struct bound_launch){.kernel = S("k"),
                                           .grid = {3, 1, 1},
                                           .block = {128, 1, 1},
                                           .cluster = {1, 1, 1},
                                           .args = t->args,
                                           .nargs = 3};
    t->steps[0] = (struct bound_step){PLAN_LAUNCH, 0};
    t->plan = (struct bound_plan){.steps = t->steps,
                                  .nsteps = 1,
                                  .launches = t->launches,
                                  .nlaunches = 1,
                                  .memsets = t->sets,
                                  .workspaces = t->spaces,
                                  .maps = t->maps};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        t->plan.align[i] = PLAN_ALIGN;
}

/* x, y and a let without memory. */
static json *toy_tensors(void) {
    json *list = json_array();
    json_push(list, span_json(1, 4096, 4096));
    json_push(list, span_json(1, 8192, 4096));
    json_push(list, span_json(0, 0, 0));
    return list;
}

static struct frame toy_run(struct device *d, struct toy *t, size_t runs, bool timed) {
    json *spaces = json_array();
    for (size_t i = 0; i < t->plan.nworkspaces; i++)
        json_push(spaces, span_json(1, 65536 * (int64_t)(i + 1), 8192));
    return client_run(&d->c, &t->plan, toy_tensors(), spaces, runs, timed);
}

#define KERNELS                                                                                    \
    "k 8 8 4\ntwo 8 8 4\nwith_map 128 8\nlong_int 8 8 8\nfaults 8 8 4 !700\n"                      \
    "refused 8 8 4 !701\nodd 8 8 2\n"

/* ---- cases ---- */

static void test_hello(void) {
    struct device d;
    CHECK(device_start(&d, NULL));
    struct frame f = client_get(&d.c);
    CHECK(f.type == WIRE_HELLO);
    const json *gpu = json_get(f.head, "device"), *box = json_get(f.head, "sandbox");
    str name;
    int64_t sms = 0;
    CHECK(json_get_str(gpu, "name", &name) && str_is(name, "Fake GPU 0"));
    CHECK(json_get_i64(gpu, "sms", &sms) && sms == 4);
    CHECK(box != NULL);
    frame_release(&f);
    f = client_load(&d.c, fake_image(KERNELS));
    CHECK(f.type == WIRE_ERROR &&
          str_is(client_text(&f, "why"), "bad message: load before the task"));
    frame_release(&f);
    CHECK(strstr(device_log(&d), "limit 0 256\nlimit 1 1024\nlimit 2 1024\nlimit 6 0\n"));
    CHECK(device_end(&d) == 0);
}

static void test_no_gpu(void) {
    struct device d;
    CHECK(device_start(&d, "init=100"));
    struct frame f = client_get(&d.c);
    CHECK(f.type == 0);
    frame_release(&f);
    int status = device_end(&d);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static void test_load(void) {
    struct device d;
    CHECK(device_ready(&d, NULL, KERNELS));
    struct frame f = client_load(&d.c, fake_image("a 8\nb 4\n"));
    CHECK(f.type == WIRE_LOADED && str_is(client_text(&f, "verdict"), "accepted"));
    frame_release(&f);
    CHECK(strstr(device_log(&d), "unload\nmodule 2\n"));
    f = client_load(&d.c, fake_image("broken"));
    CHECK(f.type == WIRE_LOADED && str_is(client_text(&f, "verdict"), "unsupported"));
    frame_release(&f);
    f = client_load(&d.c, S("this is no cubin, but it is long enough to be looked at as if it "
                            "were one of them"));
    CHECK(str_is(client_text(&f, "verdict"), "unsupported"));
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

#define PLAIN_RUN                                                                                  \
    "memset32 1000\nmemset8 2\nlaunch scrub 4,1,1 1024,1,1 232448 cooperative ( %*d 232448 q %d "  \
    ")\nlaunch scrub_local_256 16,1,1 512,1,1 0 cooperative ( %*d q %d )\nsync\n"                  \
    "launch k 3,1,1 128,1,1 0 ( q q 7 )\nsync\n%n"

static void test_plain_order(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    device_log(&d);
    toy_init(&t);
    t.spaces[0] = (struct bound_workspace){S("w"), DTYPE_F32, 4002, 16};
    t.plan.nworkspaces = 1;
    struct frame f = toy_run(&d, &t, 2, false);
    CHECK(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "accepted"));
    CHECK(!json_get(f.head, "times_s"));
    frame_release(&f);
    const char *log = device_log(&d);
    int goals[2] = {0}, used = 0, more = 0;
    CHECK(sscanf(log, PLAIN_RUN, &goals[0], &goals[1], &used) == 2);
    CHECK(used > 0 && goals[0] == 20 && goals[1] == 36); /* 16 blocks came when it was loaded */
    CHECK(sscanf(log + used, PLAIN_RUN, &goals[0], &goals[1], &more) == 2);
    CHECK(more > 0 && goals[0] == 40 && goals[1] == 56 && log[used + more] == 0);
    CHECK(device_end(&d) == 0);
}

static void test_timed_order(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    device_log(&d);
    toy_init(&t);
    t.launches[1] = t.launches[0];
    t.launches[1].kernel = S("two");
    t.steps[1] = (struct bound_step){PLAN_LAUNCH, 1};
    t.plan.nlaunches = t.plan.nsteps = 2;
    struct frame f = toy_run(&d, &t, 3, true);
    CHECK(str_is(client_text(&f, "verdict"), "accepted"));
    CHECK(json_len(json_get(f.head, "times_s")) == 3 && json_len(json_get(f.head, "host_s")) == 3);
    str why;
    CHECK(json_get_str(json_get(f.head, "clocks"), "unreadable", &why));
    frame_release(&f);
    const char *log = device_log(&d), *scrub = strstr(log, "launch scrub_local_256");
    CHECK(scrub != NULL);
    const char *rest = scrub ? strchr(scrub, '\n') + 1 : "";
    const char *want = "reset-l2\nmemset32 524288\nlaunch hold 1,1,1 1,1,1 0 ( 15000 q )\n"
                       "event 0\nlaunch k 3,1,1 128,1,1 0 ( q q 7 )\n"
                       "launch two 3,1,1 128,1,1 0 ( q q 7 )\nevent 1\nwait 1\nsync\n";
    CHECK(strncmp(rest, want, strlen(want)) == 0);
    CHECK(device_end(&d) == 0);
}

/* once pack(x, w), then k(w, y), or another kernel */
static void toy_once(struct toy *t, const char *kernel) {
    toy_init(t);
    t->spaces[0] = (struct bound_workspace){S("w"), DTYPE_F32, 4000, 16, true};
    t->spaces[1] = (struct bound_workspace){S("v"), DTYPE_F32, 400, 16, false};
    t->plan.nworkspaces = 2;
    t->args[1] = t->args[3] = (struct bound_arg){.kind = ARG_WORKSPACE, .ref = 0};
    t->args[4] = (struct bound_arg){.kind = ARG_TENSOR, .ref = 1};
    t->args[5] = t->args[2];
    t->launches[1] = t->launches[0];
    t->launches[0].kernel = S("pack");
    t->launches[0].once = true;
    t->launches[1].kernel = str_view(kernel);
    t->launches[1].args = &t->args[3];
    t->steps[1] = (struct bound_step){PLAN_LAUNCH, 1};
    t->plan.nlaunches = t->plan.nsteps = 2;
    t->plan.once_steps = 1;
}

static struct frame once_run(struct device *d, struct toy *t, size_t runs, bool timed,
                             const char *how) {
    json *spaces = json_array();
    for (size_t i = 0; i < t->plan.nworkspaces; i++)
        json_push(spaces, span_json(1, 65536 * (int64_t)(i + 1), 8192));
    return client_run_as(&d->c, &t->plan, toy_tensors(), spaces, runs, timed, how);
}

static size_t count(const char *log, const char *what) {
    size_t n = 0;
    for (; (log = strstr(log, what)); log++)
        n++;
    return n;
}

#define ONCE_KERNELS "pack 8 8 4 >2\nk 8 8 4\nspoils 8 8 4 >1\n"

/* What is done once is done in the first run alone, and its workspace is not filled again. */
static void test_kept(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, ONCE_KERNELS));
    device_log(&d);
    toy_once(&t, "k");
    struct frame f = once_run(&d, &t, 3, false, "keeps");
    CHECKF(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "accepted"), "%.*s",
           STR_ARG(client_text(&f, "why")));
    frame_release(&f);
    const char *log = device_log(&d);
    CHECKF(count(log, "launch pack ") == 1 && count(log, "launch k ") == 3, "%s", log);
    CHECKF(count(log, "memset32 1000\n") == 1 && count(log, "memset32 100\n") == 3, "%s", log);
    f = once_run(&d, &t, 3, false, NULL);
    frame_release(&f);
    log = device_log(&d);
    CHECKF(count(log, "launch pack ") == 3 && count(log, "memset32 1000\n") == 3, "%s", log);
    toy_once(&t, "spoils");
    f = once_run(&d, &t, 3, false, "keeps");
    str why = client_text(&f, "why");
    CHECK(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "modified-input"));
    CHECKF(str_find(why, S("changed workspace w, which was prepared")) < why.n, "%.*s",
           STR_ARG(why));
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

/* The clock starts after what is done once, with caches and SMs as before any other run. */
static void test_timed_prepared(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, ONCE_KERNELS));
    device_log(&d);
    toy_once(&t, "k");
    struct frame f = once_run(&d, &t, 2, true, "prepared");
    CHECK(str_is(client_text(&f, "verdict"), "accepted"));
    CHECK(json_len(json_get(f.head, "times_s")) == 2);
    frame_release(&f);
    const char *log = device_log(&d), *at = strstr(log, "launch pack ");
    CHECK(at && count(log, "launch pack ") == 2 && count(log, "launch k ") == 2);
    const char *order[] = {"launch scrub ", "reset-l2",  "launch hold ",
                           "event 0",       "launch k ", "event 1"};
    for (size_t i = 0; at && i < sizeof order / sizeof *order; i++) {
        at = strstr(at, order[i]);
        CHECKF(at != NULL, "%s in %s", order[i], log);
    }
    CHECK(device_end(&d) == 0);
}

/* A batch begins with modules that nothing ran from, and ends with a look at what they may read. */
static void test_fresh_modules(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL,
                       "k 8 8 4\n@table const 1 2 3 4\n@zeros const 0 0\n"
                       "@unused global 5 6\n"));
    device_log(&d);
    toy_init(&t);
    for (int batch = 0; batch < 3; batch++) {
        struct frame f = toy_run(&d, &t, 2, batch == 1);
        CHECK(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "accepted"));
        frame_release(&f);
        const char *log = device_log(&d), *at = strstr(log, "launch");
        const char *load = strstr(log, "module 1\nunload\n"),
                   *look = strstr(log, "variable table\n");
        CHECK(batch ? load == log : !load); /* loaded a moment ago */
        CHECK(at && look && look > at && strstr(look, "variable zeros\n"));
        CHECK(!strstr(log, "variable unused") && !strstr(look, "launch"));
    }
    CHECK(device_end(&d) == 0);
}

static void test_changed_memory(void) {
#define TWO_OVER_PI                                                                                \
    "@__cudart_i2opi_f global 41 90 43 3c 99 95 62 db c0 dd 34 f5 d1 57 27 fc 29 15 44 4e 6e 83 "  \
    "f9 a2\n"
    static const struct {
        const char *fail, *module, *verdict, *says;
    } rows[] = {
        {NULL, "k 8 8 4\n@table const 1 2\n", "accepted", ""},
        {NULL, "k 8 8 4 +table\n@table const 1 2\n", "forbidden",
         "'table' has other content after the runs"},
        {NULL, "k 8 8 4 +table\n@table const 0 0\n", "forbidden", "'table'"},
        {NULL, "k 8 8 4\nother 8 8 4 +table\n@table const 1 2\n", "accepted", ""},
        {NULL, "k 8 8 4\n" TWO_OVER_PI, "accepted", ""},
        {NULL, "k 8 8 4 +__cudart_i2opi_f\n" TWO_OVER_PI, "forbidden", "'__cudart_i2opi_f'"},
        {"variable=1", "k 8 8 4\n@table const 1 2\n", "accepted", "look at 'table'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device d;
        struct toy t;
        CHECK(device_ready(&d, rows[i].fail, rows[i].module));
        toy_init(&t);
        for (int batch = 0; batch < 2; batch++) {
            struct frame f = toy_run(&d, &t, 2, false);
            str why = client_text(&f, "why");
            CHECKF(f.type == (rows[i].fail ? WIRE_ERROR : WIRE_RAN), "row %zu", i);
            CHECKF(str_is(client_text(&f, "verdict"), rows[i].verdict), "row %zu: %.*s", i,
                   STR_ARG(why));
            CHECKF(str_find(why, str_view(rows[i].says)) < why.n || !*rows[i].says, "row %zu: %.*s",
                   i, STR_ARG(why));
            frame_release(&f);
        }
        CHECK(device_end(&d) == 0);
    }
}

/* What is scrubbed of local memory follows the kernels that are launched, and the stack. */
static void test_local(void) {
    static const struct {
        const char *fail, *kernels, *kernel, *scrub, *verdict;
    } rows[] = {
        {NULL, "k 8 8 4\n", "k", "scrub_local_256 ", "accepted"},
        {NULL, "k 8 8 4\nother 8 8 4 =16384\n", "k", "scrub_local_256 ", "accepted"},
        {NULL, "k 8 8 4 =256\n", "k", "scrub_local_256 ", "accepted"},
        {NULL, "k 8 8 4 =257\n", "k", "scrub_local_512 ", "accepted"},
        {NULL, "k 8 8 4\nother 8 8 4 =16384\n", "other", "scrub_local_16384 ", "accepted"},
        {"stack=1024", "k 8 8 4 =8\n", "k", "scrub_local_1024 ", "accepted"},
        {NULL, "k 8 8 4 =300000\n", "k", "scrub_local_524288 ", "out-of-memory"},
        {NULL, "k 8 8 4 =524304\n", "k", NULL, "launch-error"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device d;
        struct toy t;
        CHECK(device_ready(&d, rows[i].fail, rows[i].kernels));
        device_log(&d);
        toy_init(&t);
        t.launches[0].kernel = str_view(rows[i].kernel);
        struct frame f = toy_run(&d, &t, 2, i % 2);
        bool ok = str_is(client_text(&f, "verdict"), "accepted");
        CHECKF(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), rows[i].verdict),
               "row %zu: %.*s", i, STR_ARG(client_text(&f, "why")));
        frame_release(&f);
        const char *log = device_log(&d), *at = log;
        size_t all = 0, right = 0;
        for (; (at = strstr(at, "launch scrub_local_")); at++, all++)
            right += rows[i].scrub && strncmp(at + 7, rows[i].scrub, strlen(rows[i].scrub)) == 0;
        CHECKF(all == right && all >= (ok ? 2u : rows[i].scrub ? 1u : 0u), "row %zu: %s", i, log);
        CHECKF(ok == (strstr(log, "launch k ") || strstr(log, "launch other ")), "row %zu", i);
        CHECK(device_end(&d) == 0);
    }
}

/* What one candidate could not have does not stay with the next. */
static void test_local_changes(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, "k 8 8 4 =300000\n"));
    toy_init(&t);
    struct frame f = toy_run(&d, &t, 1, false);
    CHECK(str_is(client_text(&f, "verdict"), "out-of-memory"));
    CHECK(str_starts(client_text(&f, "why"), S("local memory of 300000 bytes a thread")));
    frame_release(&f);
    f = client_load(&d.c, fake_image("k 8 8 4 =700\n"));
    frame_release(&f);
    device_log(&d);
    f = toy_run(&d, &t, 1, false);
    CHECK(str_is(client_text(&f, "verdict"), "accepted"));
    CHECK(strstr(device_log(&d), "launch scrub_local_1024 "));
    frame_release(&f);
    f = client_load(&d.c, fake_image("k 8 8 4\n"));
    frame_release(&f);
    f = toy_run(&d, &t, 1, false);
    const char *log = device_log(&d);
    CHECK(strstr(log, "launch scrub_local_256 ") && !strstr(log, "launch scrub_local_1024 "));
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

/* Both clocks are told, whatever they say: it is the coordinator that compares them. */
static void test_clock_mismatch(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, "clock=1", KERNELS));
    toy_init(&t);
    struct frame f = toy_run(&d, &t, 3, true);
    double device_s = 0, host_s = 0;
    json_to_f64(json_at(json_get(f.head, "times_s"), 0), &device_s);
    json_to_f64(json_at(json_get(f.head, "host_s"), 0), &host_s);
    CHECKF(device_s == 1 && host_s < 0.5, "%g and %g s", device_s, host_s);
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

static void test_attributes(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    device_log(&d);
    toy_init(&t);
    t.args[0] = (struct bound_arg){.kind = ARG_TENSORMAP, .ref = 0};
    t.maps[0] = (struct bound_tensormap){.of = ARG_TENSOR,
                                         .ref = 0,
                                         .dtype = DTYPE_BF16,
                                         .rank = 2,
                                         .extent = {64, 16},
                                         .stride = {128},
                                         .box = {32, 8},
                                         .step = {1, 1},
                                         .swizzle = 64,
                                         .fill_nan = true};
    t.plan.nmaps = 1;
    t.launches[0].kernel = S("with_map");
    t.launches[0].nargs = 2;
    t.launches[0].grid[0] = 4;
    t.launches[0].cluster[0] = 2;
    t.launches[0].cooperative = true;
    t.launches[0].shared = 100000;
    struct frame f = toy_run(&d, &t, 1, false);
    CHECK(str_is(client_text(&f, "verdict"), "accepted"));
    frame_release(&f);
    const char *log = device_log(&d);
    CHECK(
        strstr(log, "map type 9 rank 2 extent 64 stride 128 box 32 swizzle 2 promotion 2 fill 1"));
    CHECK(strstr(log, "function with_map attribute 8 100000\n"));
    CHECK(strstr(log, "launch with_map 4,1,1 128,1,1 100000 cluster cooperative ( map q )"));
    t.launches[1] = t.launches[0];
    t.launches[1].shared = 60000; /* less than it may have already */
    t.steps[1] = (struct bound_step){PLAN_LAUNCH, 1};
    t.plan.nlaunches = t.plan.nsteps = 2;
    f = toy_run(&d, &t, 1, false);
    frame_release(&f);
    log = strstr(device_log(&d), "attribute 8 100000\n");
    CHECK(log && !strstr(log + 1, "attribute 8"));
    CHECK(device_end(&d) == 0);
}

static void test_memsets(void) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    device_log(&d);
    toy_init(&t);
    static const unsigned sizes[] = {1, 2, 4};
    for (size_t i = 0; i < 3; i++) {
        t.sets[i] = (struct bound_memset){.of = ARG_TENSOR,
                                          .ref = i == 1 ? 0 : 1,
                                          .pattern = 0x11223344 >> (8 * (4 - sizes[i])),
                                          .size = sizes[i],
                                          .count = 16};
        t.steps[i] = (struct bound_step){PLAN_MEMSET, i};
    }
    t.spaces[0] = (struct bound_workspace){S("w"), DTYPE_F64, 128, 16};
    t.sets[3] = (struct bound_memset){.of = ARG_WORKSPACE, .size = 8, .count = 16, .pattern = 5};
    t.steps[3] = (struct bound_step){PLAN_MEMSET, 3};
    t.steps[4] = (struct bound_step){PLAN_LAUNCH, 0};
    t.plan.nsteps = 5;
    t.plan.nmemsets = 4;
    t.plan.nworkspaces = 1;
    struct frame f = toy_run(&d, &t, 1, false);
    CHECKF(str_is(client_text(&f, "verdict"), "accepted"), "%.*s", STR_ARG(client_text(&f, "why")));
    frame_release(&f);
    CHECK(strstr(device_log(&d), "memset8 16\nsync\nmemset16 16\nsync\nmemset32 16\nsync\n"
                                 "launch fill64 1,1,1 256,1,1 0 ( q q q )\nsync\nlaunch k"));
    uint32_t x, y;
    memcpy(&x, d.bytes + 4096 + 28, 4);
    memcpy(&y, d.bytes + 8192 + 60, 4);
    CHECK(x == 0x11221122 && y == 0x11223344);
    memcpy(&y, d.bytes + 8192 + 64, 4);
    CHECK(y == 0);
    /* The end of its slot, which is larger, is where a workspace lies: the poison shows it. */
    memcpy(&x, d.bytes + 65536 + 8192 - 128, 4);
    memcpy(&y, d.bytes + 65536 + 8192 - 132, 4);
    CHECK(x != 0 && y == 0);
    CHECK(device_end(&d) == 0);
}

static void test_refusals(void) {
    static const struct {
        const char *kernel;
        size_t nargs;
        int64_t value;
        uint64_t shared;
        uint32_t block;
        const char *verdict, *says;
    } rows[] = {
        {"none", 3, 7, 0, 128, "bad-plan", "kernel 'none' is not in the module"},
        {"k", 2, 7, 0, 128, "bad-plan", "takes more arguments than the 2"},
        {"with_map", 3, 7, 0, 128, "bad-plan", "argument 1: a parameter of 128 bytes"},
        {"odd", 3, 7, 0, 128, "bad-plan", "argument 3: a parameter of 2 bytes"},
        {"k", 3, INT64_C(1) << 31, 0, 128, "launch-error", "does not fit an int of 4 bytes"},
        {"long_int", 3, INT64_C(1) << 31, 0, 128, "accepted", ""},
        {"k", 3, 7, 300000, 128, "launch-error", "300000 bytes of dynamic shared memory"},
        {"k", 3, 7, 0, 513, "launch-error", "a block of 513 threads, but with 40 registers"},
        {"refused", 3, 7, 0, 128, "launch-error", "kernel refused: CUDA_ERROR_OTHER (701)"},
        {"k", 3, 7, 0, 128, "accepted", ""},
    };
    struct device d;
    CHECK(device_ready(&d, NULL, KERNELS));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct toy t;
        toy_init(&t);
        t.launches[0].kernel = str_view(rows[i].kernel);
        t.launches[0].nargs = rows[i].nargs;
        t.launches[0].shared = rows[i].shared;
        t.launches[0].block[0] = rows[i].block;
        t.args[2].value = rows[i].value;
        struct frame f = toy_run(&d, &t, 1, i % 2);
        str why = client_text(&f, "why");
        CHECKF(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), rows[i].verdict),
               "row %zu: %.*s", i, STR_ARG(why));
        CHECKF(!*rows[i].says || str_find(why, str_view(rows[i].says)) < why.n, "row %zu: %.*s", i,
               STR_ARG(why));
        frame_release(&f);
    }
    CHECK(device_end(&d) == 0);
}

static void test_fault(bool timed) {
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    toy_init(&t);
    t.launches[0].kernel = S("faults");
    struct frame f = toy_run(&d, &t, 3, timed);
    int64_t at = -1;
    bool leaving = false;
    CHECK(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "out-of-bounds"));
    CHECK(str_starts(client_text(&f, "why"), S("kernel faults: CUDA_ERROR_ILLEGAL_ADDRESS (700)")));
    CHECK(json_get_i64(f.head, "at", &at) && at == 0);
    CHECK(json_get_bool(f.head, "leaving", &leaving) && leaving);
    frame_release(&f);
    f = client_get(&d.c);
    CHECK(f.type == 0); /* gone */
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}
static void test_fault_plain(void) {
    test_fault(false);
}
static void test_fault_timed(void) {
    test_fault(true);
}

/* ---- messages that no worker of ours sends ---- */

static void run_json(struct device *d, const char *text, const char *says) {
    struct err err = {0};
    json *head = json_parse(str_view(text), &err);
    CHECKF(head != NULL, "%s: %s", text, err.text);
    client_send(&d->c, WIRE_RUN, head, (str){0}, NULL, 0);
    struct frame f = client_get(&d->c);
    str why = client_text(&f, "why");
    CHECKF(f.type == WIRE_ERROR, "%s: type %u", text, f.type);
    CHECKF(str_find(why, str_view(says)) < why.n, "%s: %.*s", text, STR_ARG(why));
    frame_release(&f);
}

#define CASE "\"cases\":[{\"tensors\":[]}],"

static void test_bad_messages(void) {
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{}", "bad message: cases: a list"},
        {"{\"cases\":[],\"plans\":[],\"runs\":[]}", "bad message: run"},
        {"{\"plans\":[]," CASE "\"runs\":[[0,0]]}", "bad message: run"},
        {"{\"plans\":[]," CASE "\"runs\":[[0]]}", "bad message: runs: 0: module: an integer"},
        {"{\"plans\":[{},{}]," CASE "\"runs\":[[0,0]]}", "bad message: plans: 0: steps: a list"},
    };
    struct device d;
    struct toy t;
    CHECK(device_ready(&d, NULL, KERNELS));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        run_json(&d, rows[i].text, rows[i].says);
    toy_init(&t);
    static const int64_t spans[][3] = {{2, 0, 16},        {1, -1, 16},         {1, 0, -1},
                                       {1, GRANULE, 1},   {1, 0, GRANULE + 1}, {1, INT64_MAX, 16},
                                       {1, 16, INT64_MAX}};
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
        json *list = json_array();
        json_push(list, span_json(spans[i][0], spans[i][1], spans[i][2]));
        struct frame f = client_run(&d.c, &t.plan, list, NULL, 1, false);
        CHECKF(f.type == WIRE_ERROR && str_starts(client_text(&f, "why"), S("bad message: cases")),
               "span %zu", i);
        frame_release(&f);
    }
    struct frame f = client_run(&d.c, &t.plan, json_array(), NULL, 1, false);
    CHECK(f.type == WIRE_ERROR &&
          str_is(client_text(&f, "why"), "bad message: argument 1 has no memory"));
    frame_release(&f);
    f = client_run(&d.c, &t.plan, toy_tensors(), NULL, 0, false);
    CHECK(f.type == WIRE_ERROR && str_is(client_text(&f, "why"), "bad message: runs"));
    frame_release(&f);
    f = toy_run(&d, &t, 1, false);
    CHECK(f.type == WIRE_RAN && str_is(client_text(&f, "verdict"), "accepted"));
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

static void test_buffers(void) {
    struct device d;
    struct toy t;
    struct err err = {0};
    CHECK(device_ready(&d, NULL, KERNELS));
    toy_init(&t);
    device_log(&d);
    client_send(&d.c, WIRE_BUFFERS, json_parse(S("{\"drop\":[7,1]}"), &err), (str){0}, NULL, 0);
    struct frame f = toy_run(&d, &t, 1, false);
    CHECK(f.type == WIRE_ERROR && str_is(client_text(&f, "why"), "bad message: cases"));
    frame_release(&f);
    CHECK(strstr(device_log(&d), "unmap\nunreserve\nrelease\n"));
    client_buffer(&d.c, 1, GRANULE, d.memory);
    client_buffer(&d.c, 1, GRANULE, d.memory); /* twice: the later one counts */
    f = toy_run(&d, &t, 1, false);
    CHECK(str_is(client_text(&f, "verdict"), "accepted"));
    frame_release(&f);
    client_buffer(&d.c, 2, 12345, d.memory); /* no whole granule */
    f = toy_run(&d, &t, 1, false);
    CHECK(f.type == WIRE_ERROR);
    frame_release(&f);
    client_send(&d.c, WIRE_BUFFERS, json_parse(S("{\"reset\":true}"), &err), (str){0}, NULL, 0);
    f = toy_run(&d, &t, 1, false);
    CHECK(f.type == WIRE_ERROR);
    frame_release(&f);
    CHECK(device_end(&d) == 0);
}

static void test_ceilings(void) {
    struct device d;
    double v = 0;
    CHECK(device_ready(&d, NULL, KERNELS));
    client_send(&d.c, WIRE_CEILINGS, NULL, (str){0}, NULL, 0);
    struct frame f = client_get(&d.c);
    CHECK(f.type == WIRE_CEILED && json_get_f64(f.head, "copy_bytes_s", &v) && v > 0);
    frame_release(&f);
    const char *log = device_log(&d);
    CHECK(strstr(log, "launch read_all 131072,1,1 256,1,1"));
    CHECK(strstr(log, "launch mma_bf16"));
    CHECK(device_end(&d) == 0);
}

static void test_unknown_message(void) {
    struct device d;
    CHECK(device_ready(&d, NULL, KERNELS));
    client_send(&d.c, WIRE_JUDGED, NULL, (str){0}, NULL, 0);
    struct frame f = client_get(&d.c);
    CHECK(f.type == 0);
    frame_release(&f);
    int status = device_end(&d);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
}

static const struct tap_case cases[] = {
    {"hello says what the GPU is", test_hello},
    {"no GPU", test_no_gpu},
    {"modules", test_load},
    {"modules fresh for every batch", test_fresh_modules},
    {"what a kernel may only read", test_changed_memory},
    {"the order of a plain run", test_plain_order},
    {"the order of a timed run", test_timed_order},
    {"what is done once is kept", test_kept},
    {"the order of a timed run on what is prepared", test_timed_prepared},
    {"local memory is scrubbed as far as it is used", test_local},
    {"local memory, one candidate after another", test_local_changes},
    {"clocks that disagree are told", test_clock_mismatch},
    {"tensor maps, clusters, shared memory", test_attributes},
    {"memsets of every size", test_memsets},
    {"what cannot be launched", test_refusals},
    {"a fault ends the process", test_fault_plain},
    {"a fault in a timed run", test_fault_timed},
    {"bad messages are answered", test_bad_messages},
    {"buffers come and go", test_buffers},
    {"ceilings", test_ceilings},
    {"an unknown message ends it", test_unknown_message},
};

int main(int argc, char **argv) {
    self = "/proc/self/exe";
    if (argc == 2 && strcmp(argv[1], "device") == 0) {
        /* Found again under its soname, libcuda.so.1. */
        if (!dlopen(FAKE_CUDA, RTLD_NOW))
            return 4;
        return cuda_device_main(0);
    }
    return tap_main(cases, sizeof cases / sizeof *cases);
}
