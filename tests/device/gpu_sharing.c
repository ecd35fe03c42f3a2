/* What a GPU host really does, tried on one: two sandboxed processes share memory by descriptors,
 * faults, deaths, and what all of it costs. Prints what it finds; docs/results/ keeps it. Not a
 * test: it has no expectations, it is how ours were formed.
 *
 *     gpu-sharing harness.cubin gpu_sharing.cubin
 *
 * The controller never loads CUDA. Peers do, each a child with one socket, serving commands that
 * are frames: {op, …} in, {code, us, …} out. */
#include "base/file.h"
#include "base/frame.h"
#include "base/spread.h"
#include "device/ceilings.h"
#include "device/harness.h"
#include "device/probe.h"
#include "device/role.h"
#include "device/vmm.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 512

static str harness_cubin, kernels_cubin;

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

/* ---- peers ---- */

enum box { BOX_NONE, BOX_ROLE, BOX_PROC_SELF, BOX_PROC_READ };

struct peer_state {
    struct cuda c;
    struct nvml nvml;
    struct harness h;
    struct cuda_timer timer;
    cu_function peek, poke;
    cu_address word;
    struct vmm_buffer slots[SLOTS];
    size_t nslots;
};

static bool enter_box(enum box kind, struct sandbox_report *r, struct err *err) {
    static const char *const all[] = {"/", NULL};
    const char *rw[32] = {0};
    size_t n = 0;
    if (kind == BOX_NONE)
        return true;
    if (kind == BOX_ROLE)
        return role_sandbox(true, r, err);
    for (size_t i = 0; role_gpu_paths[i] && n < 30; i++)
        if (strncmp(role_gpu_paths[i], "/proc", 5) != 0)
            rw[n++] = role_gpu_paths[i];
    if (kind == BOX_PROC_SELF)
        rw[n++] = "/proc/self";
    struct sandbox_policy p = {
        .read_only = all, .read_write = rw, .unix_sockets = true, .devices = true};
    return sandbox_enter(&p, r, err);
}

static bool open_peer(struct peer_state *s, enum box kind, unsigned flags, json *out,
                      struct err *err) {
    struct sandbox_report report = {0};
    double t0 = now_us();
    if (!enter_box(kind, &report, err))
        return false;
    double t1 = now_us();
    if (!cuda_load(&s->c, 0, err))
        return false;
    double t2 = now_us();
    if (!cuda_try(&s->c, s->c.context_flags(s->c.device, flags), err, "flags") ||
        !cuda_try(&s->c, s->c.context_retain(&s->c.context, s->c.device), err, "context") ||
        !cuda_try(&s->c, s->c.context_set(s->c.context), err, "context") ||
        !cuda_try(&s->c, s->c.stream_create(&s->c.stream, CU_STREAM_NON_BLOCKING), err, "stream"))
        return false;
    double t3 = now_us();
    cu_module m;
    if (!harness_load(&s->c, harness_cubin, &s->h, err) ||
        !cuda_try(&s->c, cuda_module_load(&s->c, kernels_cubin, &m), err, "kernels") ||
        !cuda_try(&s->c, s->c.module_function(&s->peek, m, "peek"), err, "peek") ||
        !cuda_try(&s->c, s->c.module_function(&s->poke, m, "poke"), err, "poke") ||
        !cuda_try(&s->c, s->c.memory_alloc(&s->word, 256), err, "memory") ||
        !cuda_timer_init(&s->c, &s->timer, err))
        return false;
    double t4 = now_us();
    nvml_open(&s->nvml, s->c.facts.uuid);
    double t5 = now_us();
    json_set_f64(out, "sandbox_ms", (t1 - t0) / 1000);
    json_set_f64(out, "init_ms", (t2 - t1) / 1000);
    json_set_f64(out, "context_ms", (t3 - t2) / 1000);
    json_set_f64(out, "harness_ms", (t4 - t3) / 1000);
    json_set_f64(out, "nvml_ms", (t5 - t4) / 1000);
    json_set(out, "sandbox", sandbox_to_json(&report));
    json_set(out, "facts", fields_to_json(&cuda_facts_fields, &s->c.facts));
    return true;
}

static int64_t number(const json *j, const char *key) {
    int64_t v = 0;
    json_get_i64(j, key, &v);
    return v;
}

static void spread_json(json *out, const char *name, double *v, size_t n, double unit) {
    struct spread s = spread_of(v, n);
    json *a = json_array();
    double picks[] = {v[0], v[n / 20], s.median, v[n - 1 - n / 20], v[n - 1]};
    for (size_t i = 0; i < 5; i++)
        json_push_f64(a, round(1000 * picks[i] * unit) / 1000);
    json_set(out, name, a);
}

static int sync_code(struct peer_state *s, int code) {
    int after = s->c.stream_sync(s->c.stream);
    return code ? code : after;
}

static int touch(struct peer_state *s, const json *head, bool write, json *out) {
    struct vmm_buffer *b = &s->slots[number(head, "slot")];
    uint64_t index = (uint64_t)number(head, "index");
    uint32_t value = (uint32_t)number(head, "value");
    struct cuda_launch l = {.function = write ? s->poke : s->peek,
                            .params = write ? CUDA_PARAMS(&b->address, &index, &value)
                                            : CUDA_PARAMS(&b->address, &index, &s->word)};
    int code = sync_code(s, cuda_launch(&s->c, &l));
    if (!code && !write) {
        code = sync_code(s, s->c.copy_to_host(&value, s->word, 4, s->c.stream));
        json_set_i64(out, "value", value);
    }
    return code;
}

/* A copy of so many bytes, timed by our protocol. */
static int time_copies(struct peer_state *s, const json *head, json *out) {
    enum { MOST = 1000 };
    static double device_s[MOST], host_s[MOST], off[MOST];
    size_t n = (size_t)number(head, "runs"), bytes = (size_t)number(head, "bytes");
    cu_address a = 0, b = 0;
    int code = s->c.memory_alloc(&a, bytes);
    code = code ? code : s->c.memory_alloc(&b, bytes);
    struct cuda_launch l = {.function = s->h.copy_all,
                            .grid = {(unsigned)(bytes / 16384)},
                            .block = {256},
                            .params = CUDA_PARAMS(&b, &a)};
    double mhz = 0, t0 = 0;
    for (size_t i = 0; i < n + 5 && !code; i++) {
        size_t k = i < 5 ? 0 : i - 5;
        t0 = i == 5 ? now_us() : t0;
        code = harness_scrub(&s->c, &s->h);
        code = code ? code : cuda_timer_start(&s->c, &s->h, &s->timer, 1);
        code = code ? code : cuda_launch(&s->c, &l);
        code = code ? code : cuda_timer_stop(&s->c, &s->timer, &device_s[k], &host_s[k]);
    }
    json_set_f64(out, "wall_us_a_run", (now_us() - t0) / (double)n);
    for (size_t i = 0; i < n; i++)
        off[i] = host_s[i] - device_s[i];
    spread_json(out, "device_us", device_s, n, 1e6);
    spread_json(out, "host_minus_device_us", off, n, 1e6);
    harness_clock_mhz(&s->c, &s->h, &mhz);
    json_set_f64(out, "sm_mhz", mhz);
    s->c.memory_free(a);
    s->c.memory_free(b);
    return code;
}

/* Launch and wait, many times. */
static int time_ticks(struct peer_state *s, const json *head, json *out) {
    size_t n = (size_t)number(head, "runs");
    struct cuda_launch l = {.function = s->h.empty};
    int code = 0;
    double t0 = now_us();
    for (size_t i = 0; i < n && !code; i++) {
        code = cuda_launch(&s->c, &l);
        code = code ? code : s->c.stream_sync(s->c.stream);
    }
    json_set_f64(out, "us_each", (now_us() - t0) / (double)n);
    return code;
}

/* What each piece of the protocol costs on the device and on the host. */
static int time_pieces(struct peer_state *s, json *out) {
    static const char *const names[] = {"scrub",     "flush", "reset_l2",
                                        "hold_20us", "nvml",  "poison_1MiB"};
    int code = 0;
    cu_address room = 0;
    s->c.memory_alloc(&room, 1 << 20);
    for (size_t k = 0; k < 6; k++) {
        double t0 = now_us();
        struct nvml_reading r;
        for (int i = 0; i < 100 && !code; i++)
            code = k == 0   ? harness_scrub(&s->c, &s->h)
                   : k == 1 ? harness_flush(&s->c, &s->h)
                   : k == 2 ? s->c.reset_persisting_l2()
                   : k == 3 ? harness_hold(&s->c, &s->h, 20000)
                   : k == 4 ? (nvml_read(&s->nvml, &r), 0)
                            : harness_poison(&s->c, &s->h, room, 1 << 20);
        double queued = now_us() - t0;
        code = sync_code(s, code);
        json *a = json_array();
        json_push_f64(a, queued / 100);
        json_push_f64(a, (now_us() - t0) / 100);
        json_set(out, names[k], a);
    }
    s->c.memory_free(room);
    return code;
}

static void read_nvml(struct peer_state *s, json *out) {
    struct nvml_reading r;
    nvml_read(&s->nvml, &r);
    json_set_bool(out, "known", r.known);
    json_set_str(out, "why", str_view(s->nvml.why));
    json_set_i64(out, "sm_mhz", r.sm_mhz);
    json_set_i64(out, "memory_mhz", r.memory_mhz);
    json_set_i64(out, "power_mw", r.power_mw);
    json_set_i64(out, "celsius", r.celsius);
    struct arena *a = arena_new(1 << 16);
    size_t n;
    str *slowed = nvml_slowed(r.slowed, a, &n);
    json *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push_str(list, slowed[i]);
    json_set(out, "slowed", list);
    arena_free(a);
}

static int serve_memory(struct peer_state *s, const struct frame *f, str op, json *out, int *fd,
                        struct err *err) {
    struct vmm_buffer *b = &s->slots[s->nslots];
    size_t bytes = (size_t)number(f->head, "bytes");
    bool read_only = false;
    json_get_bool(f->head, "read_only", &read_only);
    json_set_i64(out, "slot", (int64_t)s->nslots);
    s->nslots += s->nslots + 1 < SLOTS;
    if (str_is(op, "create")) {
        double t0 = now_us();
        if (!vmm_create(&s->c, bytes, b, NULL, err))
            return -1;
        json_set_f64(out, "create_us", now_us() - t0);
        t0 = now_us();
        if (!vmm_export(&s->c, b, fd, err))
            return -1;
        json_set_f64(out, "export_us", now_us() - t0);
        json_set_i64(out, "mapped", (int64_t)b->mapped);
        return 0;
    }
    double t0 = now_us();
    if (f->nfds != 1 || !vmm_import(&s->c, f->fds[0], bytes, read_only, b, err))
        return -1;
    json_set_f64(out, "import_us", now_us() - t0);
    return 0;
}

static int serve_one(struct peer_state *s, const struct frame *f, json *out, int *fd,
                     struct err *err) {
    struct ceilings m;
    str op = S("");
    json_get_str(f->head, "op", &op);
    if (str_is(op, "create") || str_is(op, "import"))
        return serve_memory(s, f, op, out, fd, err);
    if (str_is(op, "release")) {
        double t0 = now_us();
        vmm_release(&s->c, &s->slots[number(f->head, "slot")]);
        json_set_f64(out, "release_us", now_us() - t0);
    } else if (str_is(op, "set")) {
        struct vmm_buffer *b = &s->slots[number(f->head, "slot")];
        return sync_code(s, s->c.set_d32(b->address, (uint32_t)number(f->head, "value"),
                                         b->mapped / 4, s->c.stream));
    } else if (str_is(op, "peek") || str_is(op, "poke")) {
        return touch(s, f->head, str_is(op, "poke"), out);
    } else if (str_is(op, "free")) {
        json_set_f64(out, "free_gib", (double)cuda_free_bytes(&s->c) / (1 << 30));
    } else if (str_is(op, "copies")) {
        return time_copies(s, f->head, out);
    } else if (str_is(op, "ticks")) {
        return time_ticks(s, f->head, out);
    } else if (str_is(op, "pieces")) {
        return time_pieces(s, out);
    } else if (str_is(op, "nvml")) {
        read_nvml(s, out);
    } else if (str_is(op, "ceilings")) {
        if (!ceilings_measure(&s->c, &s->h, &m, err))
            return -1;
        json_set(out, "ceilings", ceilings_to_json(&m));
    }
    return 0;
}

_Noreturn static void peer_main(int sock, enum box kind, unsigned flags) {
    struct peer_state *s = calloc(1, sizeof *s);
    struct err err = {0};
    struct frame f = {0};
    json *hello = json_object();
    bool ok = s && open_peer(s, kind, flags, hello, &err);
    if (!ok)
        json_set_str(hello, "why", str_view(err.text));
    frame_write(sock, 1, hello, (str){0}, NULL, 0, &err);
    while (ok && frame_read(sock, 0, &f, &err) > 0) {
        json *out = json_object();
        int fd = -1;
        double t0 = now_us();
        err = (struct err){0};
        int code = serve_one(s, &f, out, &fd, &err);
        json_set_f64(out, "us", now_us() - t0);
        json_set_i64(out, "code", code);
        if (err.kind)
            json_set_str(out, "why", str_view(err.text));
        ok = frame_write(sock, 2, out, (str){0}, &fd, fd >= 0, &err);
        json_free(out);
        if (fd >= 0)
            close(fd);
        frame_release(&f);
    }
    _exit(0);
}

/* ---- the controller ---- */

struct peer {
    pid_t pid;
    int sock;
};

static struct frame answer; /* the last one */

static void show(const char *what, const json *j) {
    struct buf b;
    buf_init(&b, 1 << 20);
    json_write(j, &b);
    printf("%-28s %s\n", what, b.p);
    fflush(stdout);
    buf_release(&b);
}

static bool get(const struct peer *p, const char *what) {
    struct err err = {0};
    frame_release(&answer);
    if (frame_read(p->sock, 0, &answer, &err) <= 0) {
        printf("%-28s the peer is gone: %s\n", what, err.text);
        return false;
    }
    if (what)
        show(what, answer.head);
    return true;
}

static struct peer start(enum box kind, unsigned flags, const char *what) {
    int pair[2];
    double t0 = now_us();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        exit(3);
    pid_t pid = fork();
    if (pid == 0) {
        close(pair[0]);
        peer_main(pair[1], kind, flags);
    }
    close(pair[1]);
    struct peer p = {pid, pair[0]};
    get(&p, what);
    printf("%-28s ready after %.1f ms\n", "", (now_us() - t0) / 1000);
    return p;
}

static void end(struct peer *p) {
    close(p->sock);
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
}

/* op and up to three numbers */
static bool ask(const struct peer *p, const char *what, const char *op, const char *k1, int64_t v1,
                const char *k2, int64_t v2, int fd) {
    json *head = json_object();
    struct err err = {0};
    json_set_str(head, "op", str_view(op));
    if (k1)
        json_set_i64(head, k1, v1);
    if (k2 && strcmp(k2, "read_only") == 0)
        json_set_bool(head, k2, v2);
    else if (k2)
        json_set_i64(head, k2, v2);
    frame_write(p->sock, 2, head, (str){0}, &fd, fd >= 0, &err);
    json_free(head);
    return get(p, what);
}

static int take_fd(void) {
    int fd = answer.nfds ? answer.fds[0] : -1;
    answer.nfds = 0;
    return fd;
}

static void share(struct peer *judge, struct peer *device) {
    puts("\n== two sandboxed processes share memory");
    ask(judge, "create 64 MiB", "create", "bytes", 64 << 20, NULL, 0, -1);
    int fd = take_fd();
    ask(judge, "judge writes", "set", "slot", 0, "value", 4711, -1);
    ask(device, "import", "import", "bytes", 64 << 20, NULL, 0, fd);
    ask(device, "device reads the last word", "peek", "slot", 0, "index", (64 << 18) - 1, -1);
    ask(device, "device writes", "set", "slot", 0, "value", 815, -1);
    ask(judge, "judge reads", "peek", "slot", 0, "index", 12345, -1);
    ask(device, "import read-only", "import", "bytes", 64 << 20, "read_only", 1, fd);
    ask(device, "read it", "peek", "slot", 1, "index", 0, -1);
    close(fd);
    puts("\n== costs of a buffer, 2 MiB, then 1 GiB (twice each)");
    for (int i = 0; i < 4; i++) {
        int64_t bytes = i < 2 ? 2 << 20 : 1 << 30;
        ask(judge, "create", "create", "bytes", bytes, NULL, 0, -1);
        int64_t slot = number(answer.head, "slot");
        fd = take_fd();
        ask(device, "import", "import", "bytes", bytes, NULL, 0, fd);
        close(fd);
        ask(device, "release in the device", "release", "slot", number(answer.head, "slot"), NULL,
            0, -1);
        ask(judge, "release in the judge", "release", "slot", slot, NULL, 0, -1);
    }
}

static void switching(struct peer *judge, struct peer *device) {
    puts("\n== taking turns on the GPU");
    ask(device, "1000 launches alone", "ticks", "runs", 1000, NULL, 0, -1);
    double t0 = now_us();
    for (int i = 0; i < 500; i++)
        ask(device, NULL, "ticks", "runs", 1, NULL, 0, -1);
    printf("%-28s %.1f us a message and launch\n", "one process", (now_us() - t0) / 500);
    t0 = now_us();
    for (int i = 0; i < 250; i++) {
        ask(device, NULL, "ticks", "runs", 1, NULL, 0, -1);
        ask(judge, NULL, "ticks", "runs", 1, NULL, 0, -1);
    }
    printf("%-28s %.1f us a message and launch\n", "two in turn", (now_us() - t0) / 500);
}

static void timing(struct peer *device, struct peer *judge) {
    puts("\n== the pieces of a run: us queued, us done (100 in a row)");
    ask(device, "pieces", "pieces", NULL, 0, NULL, 0, -1);
    ask(device, "pieces again", "pieces", NULL, 0, NULL, 0, -1);
    puts("\n== noise of timing a copy: least, 5%, median, 95%, most");
    int64_t sizes[] = {4 << 20, 64 << 20, 1 << 30};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            printf("%lld MiB copied\n", (long long)(sizes[i] >> 20));
            ask(device, "", "copies", "bytes", sizes[i], "runs", 300, -1);
        }
    puts("right after the judge's turn, 20 times 16:");
    for (int i = 0; i < 4; i++) {
        ask(judge, NULL, "ticks", "runs", 100, NULL, 0, -1);
        ask(device, "", "copies", "bytes", 4 << 20, "runs", 16, -1);
    }
    ask(device, "nvml", "nvml", NULL, 0, NULL, 0, -1);
}

static void faults(void) {
    puts("\n== faults");
    static const struct {
        const char *what, *op;
        int64_t index;
        bool read_only;
    } cases[] = {
        {"read just behind", "peek", 2 << 18, false},
        {"write just behind", "poke", 2 << 18, false},
        {"read just before", "peek", -1, false},
        {"read 900 MiB behind", "peek", (2 << 18) + (900 << 18), false},
        {"write to read-only memory", "poke", 0, true},
    };
    struct peer judge = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct peer device = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
        ask(&judge, NULL, "create", "bytes", 2 << 20, NULL, 0, -1);
        int fd = take_fd();
        ask(&device, NULL, "import", "bytes", 2 << 20, "read_only", cases[i].read_only, fd);
        if (number(answer.head, "code"))
            show("import refused", answer.head);
        close(fd);
        ask(&device, cases[i].what, cases[i].op, "slot", 0, "index", cases[i].index, -1);
        ask(&device, "  and then", "peek", "slot", 0, "index", 0, -1);
        ask(&judge, "  judge still works", "peek", "slot", (int64_t)i, "index", 0, -1);
        end(&device);
    }
    end(&judge);
}

static void deaths(void) {
    puts("\n== memory after deaths (GiB free, seen by a third process)");
    struct peer third = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
    struct peer judge = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
    struct peer device = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
    ask(&third, "all three started", "free", NULL, 0, NULL, 0, -1);
    ask(&judge, NULL, "create", "bytes", INT64_C(16) << 30, NULL, 0, -1);
    int fd = take_fd();
    ask(&device, NULL, "import", "bytes", INT64_C(16) << 30, NULL, 0, fd);
    ask(&third, "16 GiB shared", "free", NULL, 0, NULL, 0, -1);
    end(&device);
    ask(&third, "device killed", "free", NULL, 0, NULL, 0, -1);
    device = start(BOX_ROLE, CU_SCHED_SPIN, NULL);
    ask(&device, "imported again", "import", "bytes", INT64_C(16) << 30, NULL, 0, fd);
    end(&judge);
    ask(&third, "judge killed", "free", NULL, 0, NULL, 0, -1);
    end(&device);
    ask(&third, "both dead, a descriptor left", "free", NULL, 0, NULL, 0, -1);
    close(fd);
    ask(&third, "descriptor closed", "free", NULL, 0, NULL, 0, -1);
    end(&third);
}

static str read_cubin(const char *path, struct arena *a) {
    struct err err = {0};
    str s = {0};
    if (!file_read(path, 64u << 20, a, &s, &err)) {
        fprintf(stderr, "%s\n", err.text);
        exit(2);
    }
    return s;
}

int main(int argc, char **argv) {
    struct arena *a = arena_new(256u << 20);
    if (argc != 3) {
        fputs("usage: gpu-sharing harness.cubin gpu_sharing.cubin\n", stderr);
        return 2;
    }
    harness_cubin = read_cubin(argv[1], a);
    kernels_cubin = read_cubin(argv[2], a);
    puts("== starting, by what is allowed");
    struct peer p = start(BOX_NONE, CU_SCHED_SPIN, "no sandbox");
    end(&p);
    p = start(BOX_PROC_READ, CU_SCHED_SPIN, "/proc read-only");
    end(&p);
    p = start(BOX_PROC_SELF, CU_SCHED_SPIN, "/proc/self writable");
    end(&p);
    p = start(BOX_ROLE, CU_SCHED_BLOCKING, "role's sandbox, blocking");
    ask(&p, "1000 launches, blocking", "ticks", "runs", 1000, NULL, 0, -1);
    ask(&p, "copies, blocking", "copies", "bytes", 64 << 20, "runs", 100, -1);
    end(&p);
    struct peer judge = start(BOX_ROLE, CU_SCHED_SPIN, "judge: role's sandbox");
    struct peer device = start(BOX_ROLE, CU_SCHED_SPIN, "device: role's sandbox");
    ask(&device, "nvml, idle", "nvml", NULL, 0, NULL, 0, -1);
    share(&judge, &device);
    switching(&judge, &device);
    timing(&device, &judge);
    puts("\n== ceilings");
    ask(&device, "", "ceilings", NULL, 0, NULL, 0, -1);
    ask(&device, "once more", "ceilings", NULL, 0, NULL, 0, -1);
    ask(&device, "nvml after", "nvml", NULL, 0, NULL, 0, -1);
    end(&device);
    end(&judge);
    faults();
    deaths();
    return 0;
}
