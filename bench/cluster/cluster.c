/* How many workers one coordinator keeps busy: a cluster of stand-ins on this machine.
 *
 *     cluster --workers 256 --delay 200 --seconds 20 --kill 20
 *
 * A few candidates are first evaluated on the simulator, by a worker whose answers are recorded.
 * Then as many stand-ins (stand_in.c, the program beside this one) as asked for take the place of
 * workers: processes that speak the same frames, take --delay milliseconds for a job (half of it to
 * one and a half, by the job's number) and answer as recorded. The same candidates go through the
 * evaluator again and again, with builds from the cache: compilers are other processes, and how
 * many of them a cluster needs is another question. A round is run undisturbed, then one in which
 * --kill stand-ins are killed every second.
 *
 * Busy is the time that stand-ins spent on jobs that were answered, over all of their time; cpu is
 * the coordinator's own processor time over the wall time, and memory its peak. Exit code 1: less
 * than 90% busy, a core or more, a gigabyte or more, or a kill costs more than its share, which is
 * half of a job, a start of the stand-in and its first job (--quick: none of these is checked); or
 * a candidate was not accepted.
 *
 * The evaluator starts this very file as compilers and workers, so any other first word is handed
 * to the command line. */
#include "../throughput/candidates.h"
#include "base/child.h"
#include "base/file.h"
#include "base/frame.h"
#include "base/loop.h"
#include "base/rng.h"
#include "device/wire.h"
#include "eval/eval.h"
#include "stand_in.h"
#include "ui/ui.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TASK "tasks/kernelbench/level1/019_relu.task"
#define DIMS                                                                                       \
    {                                                                                              \
        {S("B"), 16}, {                                                                            \
            S("D"), 257                                                                            \
        }                                                                                          \
    }
#define RECORD_MAX (16u << 20)
#define JOBS_MOST  8

extern char **environ;

static const struct option_def defs[] = {
    {"workers", 'w', OPTION_INT, "N", "256", NULL, 1, 256, "Stand-ins.", 1},
    {"delay", 0, OPTION_INT, "MS", "200", NULL, 1, 60000, "Mean time of a job.", 1},
    {"seconds", 0, OPTION_INT, "N", "20", NULL, 1, 3600, "Time of a round.", 1},
    {"kill", 0, OPTION_INT, "N", "20", NULL, 0, 1000, "Stand-ins killed a second.", 1},
    {"candidates", 0, OPTION_INT, "N", "24", NULL, 1, 1000, "Distinct ones.", 1},
    {"quick", 0, OPTION_BOOL, NULL, "no", NULL, 0, 0, "Numbers are printed and not judged.", 1},
    {"tasks", 0, OPTION_PATH, "DIR", ".", NULL, 0, 0, "The folder that holds tasks/.", 1},
    {"device", 'd', OPTION_TEXT, "NAME", "sim", NULL, 0, 0, "The simulator.", 1},
    {"compile-jobs", 0, OPTION_INT, "N", "1", NULL, 0, 256, "As for cutepilot.", 1},
    {"compile-limit", 0, OPTION_INT, "SECONDS", "60", NULL, 1, 3600, "As for cutepilot.", 1},
    {"run-limit", 0, OPTION_INT, "SECONDS", "20", NULL, 1, 3600, "As for cutepilot.", 1},
    {"time-limit", 0, OPTION_INT, "MS", "2000", NULL, 1, 600000, "As for cutepilot.", 1},
    {"hello-limit", 0, OPTION_INT, "SECONDS", "60", NULL, 1, 86400, "As for cutepilot.", 1},
    {"must-admit", 0, OPTION_BOOL, NULL, "no", NULL, 0, 0, "As for cutepilot.", 1},
    {"cache", 0, OPTION_PATH, "DIR", NULL, NULL, 0, 0, "Of builds.", 1},
    {"verify-seed", 0, OPTION_TEXT, "N", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"worker-command", 0, OPTION_LIST, "COMMAND", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"place", 0, OPTION_LIST, "DEVICE[=COMMAND]", NULL, NULL, 0, 0, "As for cutepilot.", 1},
    {"json", 0, OPTION_BOOL, NULL, "no", NULL, 0, 0, "Print one JSON object on stdout.", 1},
};
static const struct option_command commands[] = {{"", "", "busy workers", NULL, 0, 0}};
static const struct option_set set = {
    .program = "cluster",
    .version = CUTEPILOT_VERSION,
    .tagline = "how many workers one coordinator keeps busy",
    .defs = defs,
    .ndefs = sizeof defs / sizeof *defs,
    .commands = commands,
    .ncommands = 1,
};

/* ---- recording ---- */

static const char *path_of(struct arena *a, const char *folder, str blob) {
    return arena_printf(a, "%s/%016llx.json", folder,
                        (unsigned long long)stand_in_key(blob.p, blob.n))
        .p;
}

static void keep_field(void *ctx, const char *key, const json *value) {
    if (strcmp(key, "job") != 0 && strcmp(key, "verify_ms") != 0)
        json_set(ctx, key, json_copy(value));
}

static void keep(const char *path, const json *head) {
    struct err err = {0};
    struct buf b;
    json *kept = json_object();
    buf_init(&b, RECORD_MAX);
    json_each(head, keep_field, kept);
    json_write(kept, &b);
    if (!file_replace(path, buf_str(&b), &err))
        _exit(3);
    buf_release(&b);
    json_free(kept);
}

/* The frames of a worker, both ways, each answer kept under the key of its job's modules. */
static int relay_main(const char *folder, char **argv) {
    struct arena *a = arena_new(1u << 30);
    struct err err = {0};
    int down[2], up[2];
    const char *paths[JOBS_MOST] = {0};
    struct child child;
    if (!pipe_pair(down, &err) || !pipe_pair(up, &err))
        return 3;
    const char *words[] = {arena_cstr(a, self_path(a)), argv[0], argv[1], argv[2], NULL};
    struct child_fd fds[] = {{down[0], 0}, {up[1], 1}, {2, 2}};
    struct child_spec spec = {.argv = words, .fds = fds, .nfds = 3};
    if (!child_start(&spec, &child, &err))
        return 3;
    close(down[0]);
    close(up[1]);
    struct pollfd p[] = {{.fd = 0, .events = POLLIN}, {.fd = up[0], .events = POLLIN}};
    for (;;) {
        if (poll(p, 2, -1) < 0)
            return 3;
        bool from_worker = p[1].revents;
        struct frame f = {0};
        int64_t job = 0;
        if (frame_read(from_worker ? up[0] : 0, 0, &f, &err) <= 0)
            break;
        json_get_i64(f.head, "job", &job);
        if (f.type == WIRE_JOB)
            paths[job % JOBS_MOST] = path_of(a, folder, f.blob);
        else if (f.type == WIRE_RESULT)
            keep(paths[job % JOBS_MOST], f.head);
        if (!frame_write(from_worker ? 1 : down[1], f.type, f.head, f.blob, NULL, 0, &err))
            break;
        frame_release(&f);
    }
    child_kill(child.pid);
    return 0;
}

/* ---- the coordinator ---- */

struct tally {
    uint64_t submitted, done, accepted, killed;
    double busy_s, seconds, cpu_s;
};

struct bench {
    struct ui *ui;
    struct evaluator_options eo;
    struct source_file *files;
    size_t nfiles;
    const char *folder, *program, *stand_in;
    struct evaluator *evaluator;
    struct tally t;
    struct err broken;
    uint64_t rng;
};

static void on_done(void *ctx, uint64_t id, struct outcome *o) {
    struct bench *b = ctx;
    (void)id;
    b->t.done++;
    b->t.accepted += o->verdict == VERDICT_ACCEPTED;
    b->t.busy_s += o->record->verify_ms / 1000;
    outcome_free(o);
}

static void on_broken(void *ctx, const struct err *why) {
    struct bench *b = ctx;
    b->broken = *why;
}

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double peak_mb(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024;
}

/* Of a file in /proc, which has no size. */
static str text_of(const char *path, struct arena *a) {
    struct err ignored;
    str text = S("");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        file_read_fd(fd, 1u << 20, a, &text, &ignored);
        close(fd);
    }
    return text;
}

/* Our children that are stand-ins. */
static size_t stand_ins(pid_t *list, size_t most) {
    struct arena *a = arena_new(8u << 20);
    size_t n = 0;
    str all = text_of(arena_printf(a, "/proc/self/task/%ld/children", (long)getpid()).p, a), word;
    while (n < most && str_word(&all, ' ', &word)) {
        uint64_t pid;
        str words = text_of(arena_printf(a, "/proc/%.*s/cmdline", STR_ARG(word)).p, a);
        if (str_to_u64(word, &pid) && str_find(words, S("stand-in")) < words.n)
            list[n++] = (pid_t)pid;
    }
    arena_free(a);
    return n;
}

static void kill_some(struct bench *b, uint64_t kills) {
    pid_t list[512];
    size_t n = stand_ins(list, 512);
    for (uint64_t i = 0; i < kills && n; i++) {
        size_t k = rng_u64(rng_stream(b->rng++, S("kill")), 0) % n;
        kill(list[k], SIGKILL);
        list[k] = list[--n];
        b->t.killed++;
    }
}

static bool step(struct bench *b, struct loop *l, struct err *err) {
    if (!loop_step(l, 100, err))
        return false;
    if (b->broken.kind)
        *err = b->broken;
    return !b->broken.kind;
}

static bool drive(struct bench *b, struct loop *l, uint64_t kills, struct err *err) {
    uint64_t workers = (uint64_t)option_int(b->ui->options, "workers"), next = 0;
    uint64_t end = 0, began = 0;
    double cpu = 0;
    bool ok = true;
    while (ok && (!end || clock_us() < end)) {
        while (b->t.submitted - b->t.done < evaluator_capacity(b->evaluator)) {
            const struct source_file *f = &b->files[b->t.submitted % b->nfiles];
            evaluator_submit(b->evaluator, b->t.submitted++, f->file, f->text);
        }
        ok = step(b, l, err);
        if (!end && b->t.done >= 2 * workers) { /* all are up */
            began = clock_us();
            cpu = cpu_seconds();
            end = began + 1000000 * (uint64_t)option_int(b->ui->options, "seconds");
            next = began + 1000000;
            b->t.done = b->t.accepted = 0;
            b->t.submitted = evaluator_capacity(b->evaluator);
            b->t.busy_s = 0;
        }
        if (end && kills && clock_us() >= next) {
            kill_some(b, kills);
            next += 1000000;
        }
    }
    b->t.seconds = (double)(clock_us() - began) / 1e6;
    b->t.cpu_s = cpu_seconds() - cpu;
    return ok;
}

static bool round_of(struct bench *b, uint64_t kills, struct err *err) {
    struct evaluator_options eo = b->eo;
    const char *words[] = {
        b->stand_in, b->folder,
        arena_printf(b->ui->arena, "%lld", (long long)option_int(b->ui->options, "delay")).p, NULL};
    struct worker_place place = {.command = words, .device = eo.device};
    eo.places = &place;
    eo.nplaces = 1;
    eo.workers = (unsigned)option_int(b->ui->options, "workers");
    b->t = (struct tally){0};
    struct loop *l = loop_new(err);
    b->evaluator = l ? evaluator_new(l, &eo, on_done, on_broken, b, err) : NULL;
    bool ok = b->evaluator && drive(b, l, kills, err);
    evaluator_free(b->evaluator);
    loop_free(l);
    return ok;
}

/* By one real worker, with its answers kept. */
static void ignore(void *ctx, const struct source_file *f, const struct outcome *o) {
    (void)ctx, (void)f, (void)o;
}

static bool record_all(struct bench *b, struct err *err) {
    struct evaluator_options eo = b->eo;
    const char *words[] = {b->program, "record", b->folder, NULL};
    struct worker_place place = {.command = words, .device = eo.device};
    eo.places = &place;
    eo.nplaces = 1;
    eo.workers = 1;
    return evaluate_many(&eo, b->files, b->nfiles, 1, ignore, NULL, err);
}

static bool write_candidates(struct bench *b, const struct inst *in, struct err *err) {
    struct candidates c;
    bool ok = true;
    if (!candidates_open(&c, in, b->eo.device.gpu, b->ui->arena, err))
        return false;
    b->nfiles = (size_t)option_int(b->ui->options, "candidates");
    b->files = arena_array(b->ui->arena, struct source_file, b->nfiles);
    for (size_t i = 0; ok && i < b->nfiles; i++) {
        struct buf source;
        buf_init(&source, 1u << 20);
        ok = candidates_write(&c, i, &source, err);
        b->files[i] =
            (struct source_file){S("candidate.cu"), arena_str(b->ui->arena, buf_str(&source))};
        buf_release(&source);
    }
    candidates_close(&c);
    return ok;
}

static json *round_json(const struct bench *b) {
    const struct tally *t = &b->t;
    double workers = (double)option_int(b->ui->options, "workers");
    json *j = json_object();
    json_set_f64(j, "seconds", t->seconds);
    json_set_i64(j, "candidates", (int64_t)t->done);
    json_set_i64(j, "accepted", (int64_t)t->accepted);
    json_set_i64(j, "killed", (int64_t)t->killed);
    json_set_f64(j, "a_second", (double)t->done / t->seconds);
    json_set_f64(j, "busy", t->busy_s / (workers * t->seconds));
    json_set_f64(j, "cpu", t->cpu_s / t->seconds);
    json_set_f64(j, "cpu_ms_a_candidate", 1000 * t->cpu_s / (double)(t->done ? t->done : 1));
    json_set_f64(j, "peak_mb", peak_mb());
    return j;
}

static double number(const json *j, const char *key) {
    double v = 0;
    json_get_f64(j, key, &v);
    return v;
}

/* A killed stand-in loses half of its job and the time to its first job. */
#define START_S 0.3
static bool is_enough(const struct ui *ui, const json *whole, const json *killed) {
    double delay_s = (double)option_int(ui->options, "delay") / 1000;
    double lost = (double)option_int(ui->options, "kill") * (delay_s + START_S) /
                  (double)option_int(ui->options, "workers");
    return number(whole, "busy") >= 0.9 && number(whole, "cpu") < 1 &&
           number(whole, "peak_mb") < 1024 &&
           number(killed, "busy") >= number(whole, "busy") - lost - 0.02;
}

static bool are_right(const json *round) {
    return number(round, "candidates") > 0 &&
           number(round, "candidates") == number(round, "accepted");
}

static bool run_rounds(struct bench *b, json *out, struct err *err) {
    struct task *task;
    struct inst *inst;
    struct arena *a = b->ui->arena;
    struct binding dims[] = DIMS;
    const char *path = arena_printf(a, "%s/%s", option_text(b->ui->options, "tasks"), TASK).p;
    if (!task_load(path, a, &task, err) || !task_bind(task, dims, 2, a, &inst, err) ||
        !ui_evaluator_options(b->ui, task, inst, &b->eo, err) || !write_candidates(b, inst, err))
        return false;
    b->eo.seed_given = true; /* or the recorded jobs would not be the ones that come */
    if (!record_all(b, err) || !round_of(b, 0, err))
        return false;
    json_set(out, "whole", round_json(b));
    if (!round_of(b, (uint64_t)option_int(b->ui->options, "kill"), err))
        return false;
    json_set(out, "killed", round_json(b));
    return true;
}

static int bench_run_all(struct ui *ui) {
    char folder[] = "/tmp/cutepilot-cluster-XXXXXX";
    struct bench b = {.ui = ui, .folder = folder};
    struct err err = {0};
    json *out = json_object();
    if (!mkdtemp(folder))
        return 3;
    b.program = arena_cstr(ui->arena, self_path(ui->arena));
    b.stand_in = arena_printf(ui->arena, "%s-stand-in", b.program).p;
    bool ok = run_rounds(&b, out, &err);
    dir_remove_tree(folder, &(struct err){0});
    if (!ok) {
        json_free(out);
        return ui_fail(ui, &err);
    }
    json_set_i64(out, "workers", option_int(ui->options, "workers"));
    json_set_i64(out, "delay_ms", option_int(ui->options, "delay"));
    const json *whole = json_get(out, "whole"), *killed = json_get(out, "killed");
    bool enough = are_right(whole) && are_right(killed) &&
                  (option_bool(ui->options, "quick") || is_enough(ui, whole, killed));
    return ui_print_json(out) && enough ? 0 : 1;
}

static int bench_main(int argc, char **argv) {
    struct ui ui = {.set = &set, .arena = arena_new(1u << 30)};
    struct options *options;
    struct err err = {0};
    int code;
    if (!options_parse(&set, 0, argc - 1, argv + 1, environ, NULL, ui.arena, &options, &err)) {
        code = ui_fail(&ui, &err);
    } else {
        ui.options = options;
        code = bench_run_all(&ui);
    }
    arena_free(ui.arena);
    return code;
}

int main(int argc, char **argv) {
    if (argc > 5 && !strcmp(argv[1], "record"))
        return relay_main(argv[2], argv + 3);
    signal(SIGPIPE, SIG_IGN);
    if (argc < 2 || argv[1][0] == '-')
        return bench_main(argc, argv);
    return ui_main(argc, argv, environ);
}
