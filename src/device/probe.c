#include "device/probe.h"

#include "base/file.h"
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the few entries of the management library that are read ---- */

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_SENSOR_GPU = 0 };

static const struct {
    uint64_t bit;
    const char *name;
} reasons[] = {
    {0x02, "application clocks"}, {0x04, "power cap"},        {0x08, "hardware slowdown"},
    {0x10, "sync boost"},         {0x20, "software thermal"}, {0x40, "hardware thermal"},
    {0x80, "power brake"},        {0x100, "display clocks"},
};

static uint64_t known_reasons(void) {
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        all |= reasons[i].bit;
    return all;
}

static void *entry(void *lib, const char *name, const char *older) {
    void *p = dlsym(lib, name);
    return p || !older ? p : dlsym(lib, older);
}

void nvml_open(struct nvml *n, const char *uuid) {
    memset(n, 0, sizeof *n);
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(n->why, sizeof n->why, "libnvidia-ml.so.1 cannot be loaded");
        return;
    }
    int (*init)(void) = (int (*)(void))entry(lib, "nvmlInit_v2", NULL);
    int (*find)(const char *, void **) =
        (int (*)(const char *, void **))entry(lib, "nvmlDeviceGetHandleByUUID", NULL);
    *(void **)&n->clock = entry(lib, "nvmlDeviceGetClockInfo", NULL);
    *(void **)&n->power = entry(lib, "nvmlDeviceGetPowerUsage", NULL);
    *(void **)&n->temperature = entry(lib, "nvmlDeviceGetTemperature", NULL);
    *(void **)&n->reasons = entry(lib, "nvmlDeviceGetCurrentClocksEventReasons",
                                  "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&n->memory = entry(lib, "nvmlDeviceGetMemoryInfo", NULL);
    if (!init || !find || !n->clock || !n->power || !n->temperature || !n->reasons) {
        snprintf(n->why, sizeof n->why, "libnvidia-ml.so.1 lacks entries");
        return;
    }
    int code = init();
    if (code == 0)
        code = find(uuid, &n->device);
    if (code != 0) {
        n->device = NULL;
        snprintf(n->why, sizeof n->why, "NVML error %d", code);
    }
}

void nvml_read(const struct nvml *n, struct nvml_reading *out) {
    unsigned long long mask = 0;
    memset(out, 0, sizeof *out);
    if (!n->device)
        return;
    out->known = n->clock(n->device, NVML_CLOCK_SM, &out->sm_mhz) == 0;
    n->clock(n->device, NVML_CLOCK_MEMORY, &out->memory_mhz);
    n->power(n->device, &out->power_mw);
    n->temperature(n->device, NVML_SENSOR_GPU, &out->celsius);
    if (n->reasons(n->device, &mask) == 0)
        out->slowed = mask & known_reasons();
}

/* Of its memory; 0: not readable. */
static size_t nvml_free_bytes(const struct nvml *n) {
    unsigned long long total_free_used[3] = {0};
    if (!n->device || !n->memory || n->memory(n->device, total_free_used) != 0)
        return 0;
    return total_free_used[1];
}

str *nvml_slowed(uint64_t mask, struct arena *a, size_t *n) {
    str *list = arena_array(a, str, sizeof reasons / sizeof *reasons);
    *n = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (mask & reasons[i].bit)
            list[(*n)++] = str_view(reasons[i].name);
    return list;
}

#define PROBE_LIMIT_MS 20000

/* ---- asking ---- */

struct answer {
    bool ok;
    struct cuda_facts facts;
    struct err err;
};

static bool wait_answer(int fd, struct answer *a, struct err *err) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (size_t at = 0; at < sizeof *a;) {
        int ready = poll(&p, 1, PROBE_LIMIT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready != 1)
            return err_set(err, ERR_ENV, "the driver did not answer within %d s",
                           PROBE_LIMIT_MS / 1000);
        ssize_t k = read(fd, (char *)a + at, sizeof *a - at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_set(err, ERR_ENV, "the driver ended the process that asked it");
        at += (size_t)k;
    }
    return true;
}

/* Without a context, which would take part of it. */
static size_t free_memory(const struct cuda_facts *f) {
    struct nvml n;
    nvml_open(&n, f->uuid);
    size_t free_bytes = nvml_free_bytes(&n);
    return free_bytes ? free_bytes : f->memory_bytes;
}

bool gpu_probe(int ordinal, struct cuda_facts *out, struct err *err) {
    struct answer a = {0};
    int fds[2];
    if (pipe(fds) < 0)
        return err_errno(err, ERR_ENV, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        struct cuda c;
        a.ok = cuda_load(&c, ordinal, &a.err);
        a.facts = c.facts;
        a.facts.memory_free = a.ok ? free_memory(&c.facts) : 0;
        _exit(!file_write_all(fds[1], &a, sizeof a, NULL));
    }
    bool answered = pid > 0 || err_errno(err, ERR_ENV, "fork");
    close(fds[1]);
    answered = answered && wait_answer(fds[0], &a, err);
    close(fds[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (!answered)
        return false;
    if (!a.ok)
        return err_set(err, a.err.kind, "%s", a.err.text);
    *out = a.facts;
    return true;
}

/* ---- a row of the table ---- */

static void set_rates(const struct cuda_facts *f, const struct arch *sm, struct gpu *g) {
    double sm_clocks = f->sms * 1e3 * f->clock_khz;
    /* Two transfers a clock; the driver's clock is that of the memory's command bus. */
    g->dram_bytes_s = 2e3 * f->memory_clock_khz * f->memory_bus_bits / 8;
    g->copy_bytes_s = g->read_bytes_s = g->write_bytes_s = 0.9 * g->dram_bytes_s;
    g->l2_bytes_s = 1.5 * g->dram_bytes_s;
    g->fp32_flops = 2 * sm->fp32_lanes_clk * sm_clocks;
    g->tf32_flops = sm->tf32_flop_clk * sm_clocks;
    g->bf16_flops = sm->bf16_flop_clk * sm_clocks;
    g->fp32_tensor_flops = g->bf16_flops / 3 > g->fp32_flops ? g->bf16_flops / 3 : g->fp32_flops;
    g->fp32_lanes_clk = sm->fp32_lanes_clk;
    g->fp64_lanes_clk = f->fp32_to_fp64 ? sm->fp32_lanes_clk / f->fp32_to_fp64 : 2;
}

static void set_limits(const struct cuda_facts *f, struct gpu *g) {
    g->sms = f->sms;
    g->l2_bytes = f->l2_bytes;
    g->max_threads_sm = f->max_threads_sm;
    g->max_warps_sm = f->max_threads_sm / 32;
    g->max_blocks_sm = f->max_blocks_sm;
    g->max_threads_block = f->max_threads_block;
    g->registers_sm = f->registers_sm;
    g->shared_sm = f->shared_sm;
    g->shared_block = f->shared_block;
}

bool gpu_from_facts(const struct cuda_facts *f, struct gpu *out, struct err *err) {
    const struct arch *sm = arch_of(10 * f->cc_major + f->cc_minor);
    if (!sm)
        return err_set(err, ERR_ENV,
                       "%s has compute capability %d.%d, which this version does not compile for",
                       f->name, f->cc_major, f->cc_minor);
    for (size_t i = 0; i < gpu_count(); i++)
        if (strcmp(gpu_at(i)->title, f->name) == 0) {
            *out = *gpu_at(i);
            set_limits(f, out);
            return true;
        }
    *out = (struct gpu){.name = "cuda",
                        .title = f->name,
                        .arch = sm->name,
                        .has = sm->has,
                        .clock_hz = 1e3 * f->clock_khz,
                        .launch_s = 2.5e-6,
                        .dram_latency_s = 550e-9,
                        .issue_warps_clk = 4,
                        .int_lanes_clk = 64,
                        .sfu_lanes_clk = 16,
                        .lsu_sectors_clk = 2};
    set_rates(f, sm, out);
    set_limits(f, out);
    return true;
}
