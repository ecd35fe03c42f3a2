/* The evaluator and its workers, where a worker is this program too: it measures nothing, and
 * answers by the names of the kernels in a job. Kernels are compiled as ever. */
#include "base/file.h"
#include "base/frame.h"
#include "device/wire.h"
#include "eval/eval.h"
#include "kernel/build.h"
#include "tap.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIME_S(kernel) (1e-4 - 1e-6 * ((kernel) - 'a')) /* each is faster than the one before */
#define STUCK_S        40                               /* then a test has failed */

/* ---- the worker ---- */

static void say(uint32_t type, json *head) {
    struct err err = {0};
    if (!frame_write(1, type, head, (str){0}, NULL, 0, &err))
        _exit(3);
    json_free(head);
}

static void say_hello(void) {
    json *hello = json_object();
    json_set_str(hello, "role", S("worker"));
    json_set_i64(hello, "protocol", WIRE_VERSION);
    json_set_str(hello, "build", S(CUTEPILOT_VERSION));
    say(WIRE_HELLO, hello);
}

static json *answer_to(const struct frame *f, const char *verdict, const char *why) {
    json *j = json_object();
    int64_t job = -1;
    json_get_i64(f->head, "job", &job);
    json_set_i64(j, "job", job);
    json_set_str(j, "verdict", str_view(verdict));
    json_set_str(j, "why", str_view(why));
    return j;
}

static void answer_ceilings(const struct frame *f) {
    static unsigned long asked;
    bool fails = asked++ < strtoul(getenv("FAILURES"), NULL, 10);
    json *j = answer_to(f, "crash", fails ? "the device process ended" : "");
    say(!fails ? WIRE_CEILED : getenv("NO_VERDICT") ? WIRE_FAILED : WIRE_RESULT, j);
}

static char kernel_of(const struct frame *f, size_t module) {
    const json *plans = json_get(json_at(json_get(f->head, "shapes"), 0), "plans");
    const json *launch = json_at(json_get(json_at(plans, module), "launches"), 0);
    str name = {0};
    return json_get_str(launch, "kernel", &name) && name.n ? name.p[0] : '?';
}

static void tell(const char *pipe) {
    int fd = open(getenv(pipe), O_RDWR | O_CLOEXEC);
    if (write(fd, "1", 1) != 1)
        _exit(3);
    close(fd);
}

static void await(const char *pipe) {
    char c;
    int fd = open(getenv(pipe), O_RDWR | O_CLOEXEC);
    if (read(fd, &c, 1) != 1)
        _exit(3);
    close(fd);
}

/* Both meet a; b's victory is told first. */
static void await_turn(char kernel, char rival) {
    if (kernel == 'c' && rival == 'a') {
        tell("BEGUN");
        await("WON");
        usleep(100000); /* told by another process: it has to be heard first */
    } else if (kernel == 'b' && rival == 'a') {
        await("BEGUN");
    }
}

static void answer_job(const struct frame *f) {
    json *j = answer_to(f, "accepted", ""), *times = json_array();
    char kernel = kernel_of(f, 0), rival = kernel_of(f, 1);
    await_turn(kernel, rival);
    for (size_t m = 0; m < json_len(json_get(f->head, "modules")); m++) {
        json *one = json_object(), *s = json_array(), *host = json_array();
        for (int i = 0; i < 8; i++) {
            json_push_f64(s, TIME_S(kernel_of(f, m)));
            json_push_f64(host, 1.1 * TIME_S(kernel_of(f, m)));
        }
        json_set(one, "samples_s", s);
        json_set(one, "host_s", host);
        json_push(times, one);
    }
    json_set(j, "times", times);
    say(WIRE_RESULT, j);
    if (kernel == 'b' && rival == 'a')
        tell("WON");
}

static int work(void) {
    struct frame f = {0};
    struct err err = {0};
    alarm(STUCK_S);
    say_hello();
    while (frame_read(0, 0, &f, &err) > 0) {
        if (f.type == WIRE_CEILINGS)
            answer_ceilings(&f);
        else if (f.type == WIRE_JOB)
            answer_job(&f);
        frame_release(&f);
    }
    return 0;
}

/* ---- what is tested ---- */

static const char task_text[] = "task double \"D\"\ndim N = 65536\nin x[N] : f32 ~ normal(0,1)\n"
                                "out y[N] : f32\ny[i] = 2 * x[i]\ncheck N = 3\n";

static const char *missing; /* why there is no NVRTC here */
static struct arena *mem;
static struct evaluator_options options;

static void ceilings_are_measured_again_a_few_times(void) {
    static const struct {
        const char *failures;
        bool verdict, ok;
    } rows[] = {{"0", true, true}, {"3", true, true}, {"3", false, true}, {"100", true, false}};
    if (missing)
        SKIP(missing);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        json *out = NULL;
        setenv("FAILURES", rows[i].failures, 1);
        if (rows[i].verdict)
            unsetenv("NO_VERDICT");
        else
            setenv("NO_VERDICT", "1", 1);
        bool ok = evaluate_ceilings(&options, &out, &err);
        CHECKF(ok == rows[i].ok, "row %zu: %s", i, err.text);
        CHECKF(ok || strstr(err.text, "the device process ended"), "row %zu: %s", i, err.text);
        json_free(out);
    }
}

struct seen {
    double other_s[3]; /* in the last duel of a, b and c; NAN: none */
    size_t n;
    struct err broken;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct seen *s = ctx;
    CHECKF(o->record->accepted, "%c is %s", (int)('a' + id), verdict_name(o->record->verdict));
    s->other_s[id] = o->record->duel ? o->record->duel->other_s : (double)NAN;
    s->n++;
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct seen *s = ctx;
    s->broken = *why;
}

static void submit(struct evaluator *e, uint64_t id) {
    str source = arena_printf(mem,
                              "//! launch %c<<<ceil_div(N, 256), 256>>>(x, y, N)\n"
                              "extern \"C\" __global__ void %c(const float *x, float *y, int n) {\n"
                              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                              "    if (i < n)\n"
                              "        y[i] = 2 * x[i];\n"
                              "}\n",
                              (int)('a' + id), (int)('a' + id));
    evaluator_submit(e, id, S("k.cu"), source);
}

static bool wait_for(struct loop *l, struct seen *s, size_t n) {
    struct err err = {0};
    bool ok = true;
    while (ok && s->n < n && !s->broken.kind)
        ok = loop_step(l, -1, &err);
    CHECKF(ok && !s->broken.kind, "%s%s", err.text, s->broken.text);
    return ok && !s->broken.kind;
}

/* b and c meet a, and b has won when c does: only against b is c the fastest. */
static void who_won_against_a_loser_meets_the_fastest(void) {
    struct evaluator_options o = options;
    struct seen s = {0};
    struct err err = {0};
    if (missing)
        SKIP(missing);
    o.device.kind = DEVICE_CUDA;
    o.workers = 2;
    o.duel = true;
    o.memory_bytes = 1 << 30;
    struct loop *l = loop_new(&err);
    struct evaluator *e = evaluator_new(l, &o, on_done, on_broken, &s, &err);
    CHECKF(e, "%s", err.text);
    if (e) {
        submit(e, 0);
        bool ok = wait_for(l, &s, 1);
        submit(e, 1);
        submit(e, 2);
        ok = ok && wait_for(l, &s, 3);
        CHECK(isnan(s.other_s[0]));
        CHECKF(ok && s.other_s[1] == TIME_S('a'), "b met one of %g s", s.other_s[1]);
        CHECKF(ok && s.other_s[2] == TIME_S('b'), "c met one of %g s", s.other_s[2]);
    }
    evaluator_free(e);
    loop_free(l);
}

static const struct tap_case cases[] = {
    {"ceilings are measured again, a few times", ceilings_are_measured_again_a_few_times},
    {"who won against a loser meets the fastest", who_won_against_a_loser_meets_the_fastest},
};

static bool prepare(const char *folder, struct err *err) {
    static const char *const pipes[] = {"BEGUN", "WON"};
    struct task *task;
    struct inst *inst;
    mem = arena_new(1 << 20);
    for (size_t i = 0; i < 2; i++) {
        setenv(pipes[i], arena_printf(mem, "%s/%s", folder, pipes[i]).p, 1);
        /* What is written to a pipe that nobody has open is lost. */
        if (mkfifo(getenv(pipes[i]), 0600) != 0 || open(getenv(pipes[i]), O_RDWR | O_CLOEXEC) < 0)
            return err_errno(err, ERR_ENV, "a pipe with a name");
    }
    if (!device_name_parse("sim", mem, &options.device, err) ||
        !task_parse(S("t.task"), str_view(task_text), mem, &task, err) ||
        !task_bind(task, NULL, 0, mem, &inst, err))
        return false;
    options.task = task;
    options.inst = inst;
    options.cache = folder;
    if (!nvrtc_find(&options.nvrtc, err) || !nvrtc_probe(&options.nvrtc, err))
        missing = arena_printf(mem, "%.*s", (int)strcspn(err->text, "\n"), err->text).p;
    return true;
}

int main(int argc, char **argv) {
    char folder[] = "/tmp/cutepilot-evaluator-XXXXXX";
    struct err err = {0};
    if (argc > 1 && !strcmp(argv[1], "compiler"))
        return compiler_main(argc - 2, argv + 2);
    if (argc > 1)
        return work();
    if (!mkdtemp(folder) || !prepare(folder, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    alarm(2 * STUCK_S);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(folder, &err);
    arena_free(mem);
    return failed;
}
