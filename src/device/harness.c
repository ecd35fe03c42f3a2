/* Loading and launching the harness. Launch shapes are those that harness.cu states. */
#include "device/harness.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SCRUB_THREADS 1024
#define LOCAL_THREADS 512
#define LEAST_LOCAL   256
#define FILL_THREADS  256
#define WORDS_BYTES   4096
#define SUMS_AT       256 /* bytes from words: cycles and nanoseconds that hold saw */

static bool find_functions(const struct cuda *c, struct harness *h, struct err *err) {
    const struct {
        const char *name;
        cu_function *at;
    } functions[] = {
        {"scrub", &h->scrub},         {"hold", &h->hold},         {"fill64", &h->fill64},
        {"noise", &h->noise},         {"empty", &h->empty},       {"read_all", &h->read_all},
        {"write_all", &h->write_all}, {"copy_all", &h->copy_all}, {"fma_fp32", &h->fma_fp32},
        {"mma_tf32", &h->mma_tf32},   {"mma_bf16", &h->mma_bf16},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!cuda_try(c, c->module_function(functions[i].at, h->module, functions[i].name), err,
                      functions[i].name) ||
            !cuda_try(c, c->function_load(*functions[i].at), err, functions[i].name))
            return err_wrap(err, "harness");
    return cuda_try(c,
                    c->function_set(h->scrub, CU_FN_MAX_DYNAMIC_SHARED, (int)c->facts.shared_block),
                    err, "harness: shared memory of scrub");
}

bool harness_load(const struct cuda *c, str cubin, struct harness *out, struct err *err) {
    memset(out, 0, sizeof *out);
    out->flush_bytes = 2 * (c->facts.l2_bytes ? c->facts.l2_bytes : (size_t)64 << 20);
    out->pattern = 0x5eed5eed;
    return cuda_try(c, cuda_module_load(c, cubin, &out->module), err, "load the harness") &&
           find_functions(c, out, err) &&
           cuda_try(c, c->memory_alloc(&out->words, WORDS_BYTES), err, "harness: memory") &&
           cuda_try(c, c->memory_alloc(&out->flushed, out->flush_bytes), err,
                    "harness: memory to flush the L2 with") &&
           cuda_try(c, c->set_d8(out->words, 0, WORDS_BYTES, c->stream), err, "harness: memory") &&
           cuda_try(c, harness_cover_local(c, out, 0), err, "harness: local memory") &&
           cuda_try(c, c->stream_sync(c->stream), err, "harness");
}

static uint32_t next_pattern(struct harness *h) {
    h->pattern = h->pattern * 747796405u + 2891336453u;
    return h->pattern;
}

/* Blocks that are all there at once, or an error, and count themselves. */
static int launch_all(const struct cuda *c, struct harness *h, struct cuda_launch *l,
                      uint32_t *goal) {
    *goal = h->arrivals + l->grid[0];
    l->cooperative = true;
    int code = cuda_launch(c, l);
    if (code == CU_OK)
        h->arrivals = *goal;
    return code;
}

static int scrub_sms(const struct cuda *c, struct harness *h) {
    uint32_t pattern = next_pattern(h), bytes = (uint32_t)c->facts.shared_block, goal;
    struct cuda_launch l = {
        .function = h->scrub,
        .grid = {(unsigned)c->facts.sms},
        .block = {SCRUB_THREADS},
        .shared = bytes,
        .params = CUDA_PARAMS(&pattern, &bytes, &h->words, &goal),
    };
    return launch_all(c, h, &l, &goal);
}

static int scrub_local(const struct cuda *c, struct harness *h) {
    uint32_t pattern = next_pattern(h), goal;
    struct cuda_launch l = {
        .function = h->scrub_local,
        .grid = {(unsigned)(c->facts.sms * (c->facts.max_threads_sm / LOCAL_THREADS))},
        .block = {LOCAL_THREADS},
        .params = CUDA_PARAMS(&pattern, &h->words, &goal),
    };
    return launch_all(c, h, &l, &goal);
}

/* Kernels with large frames are looked up when they are needed: a driver may take the memory of
 * their frames as soon as they are loaded. A first launch tells whether it has it. */
static int use_local(const struct cuda *c, struct harness *h, size_t bytes) {
    struct harness next = *h;
    char name[32];
    snprintf(name, sizeof name, "scrub_local_%zu", bytes);
    next.local_bytes = bytes;
    int code = c->module_function(&next.scrub_local, h->module, name);
    if (code == CU_OK)
        code = c->function_load(next.scrub_local);
    if (code == CU_OK)
        code = scrub_local(c, &next);
    if (code == CU_OK)
        *h = next;
    return code;
}

int harness_cover_local(const struct cuda *c, struct harness *h, size_t bytes) {
    size_t stack = 0, covered = LEAST_LOCAL;
    int code = c->context_limit_get(&stack, CU_LIMIT_STACK);
    if (code != CU_OK)
        return code;
    bytes = bytes > stack ? bytes : stack;
    if (bytes > HARNESS_MOST_LOCAL)
        return CU_INVALID_VALUE;
    while (covered < bytes)
        covered *= 2;
    return covered == h->local_bytes ? CU_OK : use_local(c, h, covered);
}

int harness_scrub(const struct cuda *c, struct harness *h) {
    int code = scrub_sms(c, h);
    return code == CU_OK ? scrub_local(c, h) : code;
}

int harness_flush(const struct cuda *c, struct harness *h) {
    return c->set_d32(h->flushed, next_pattern(h), h->flush_bytes / 4, c->stream);
}

int harness_hold(const struct cuda *c, const struct harness *h, uint32_t ns) {
    cu_address sums = h->words + SUMS_AT;
    struct cuda_launch l = {.function = h->hold, .params = CUDA_PARAMS(&ns, &sums)};
    return cuda_launch(c, &l);
}

int harness_fill64(const struct cuda *c, const struct harness *h, cu_address to, uint64_t value,
                   uint64_t count) {
    uint64_t blocks = (count + FILL_THREADS - 1) / FILL_THREADS,
             most = 16u * (unsigned)c->facts.sms;
    struct cuda_launch l = {
        .function = h->fill64,
        .grid = {(unsigned)(blocks < most ? blocks : most)},
        .block = {FILL_THREADS},
        .params = CUDA_PARAMS(&to, &value, &count),
    };
    return cuda_launch(c, &l);
}

int harness_poison(const struct cuda *c, struct harness *h, cu_address to, size_t bytes) {
    uint32_t pattern = next_pattern(h);
    size_t words = bytes / 4, rest = bytes % 4;
    int code = words ? c->set_d32(to, pattern, words, c->stream) : CU_OK;
    if (code == CU_OK && rest)
        code = c->set_d8(to + 4 * words, (unsigned char)(pattern >> 24), rest, c->stream);
    return code;
}

int harness_clock_mhz(const struct cuda *c, const struct harness *h, double *mhz) {
    uint64_t sums[2] = {0};
    int code = c->copy_to_host(sums, h->words + SUMS_AT, sizeof sums, c->stream);
    if (code == CU_OK)
        code = c->set_d8(h->words + SUMS_AT, 0, sizeof sums, c->stream);
    if (code == CU_OK)
        code = c->stream_sync(c->stream);
    *mhz = code == CU_OK && sums[1] ? 1000.0 * (double)sums[0] / (double)sums[1] : 0;
    return code;
}

/* ---- two clocks on the same two instants ---- */

/* Queueing a step takes the host 2 to 5 microseconds, some of which pass during the flush. */
#define HOLD_NS      5000
#define HOLD_STEP_NS 5000

static double host_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool cuda_timer_init(const struct cuda *c, struct cuda_timer *t, struct err *err) {
    return cuda_try(c, c->event_create(&t->start, CU_EVENT_DEFAULT), err, "an event") &&
           cuda_try(c, c->event_create(&t->stop, CU_EVENT_DEFAULT), err, "an event");
}

int cuda_timer_start(const struct cuda *c, struct harness *h, const struct cuda_timer *t,
                     size_t steps) {
    int code = c->facts.persisting_l2_bytes ? c->reset_persisting_l2() : CU_OK;
    if (code == CU_OK)
        code = harness_flush(c, h);
    if (code == CU_OK)
        code = harness_hold(c, h, HOLD_NS + HOLD_STEP_NS * (uint32_t)steps);
    return code == CU_OK ? c->event_record(t->start, c->stream) : code;
}

int cuda_timer_stop(const struct cuda *c, const struct cuda_timer *t, double *device_s,
                    double *host_s) {
    float ms = 0;
    int code = c->event_record(t->stop, c->stream);
    if (code != CU_OK)
        return code;
    do
        code = c->event_query(t->start);
    while (code == CU_NOT_READY);
    double from = host_now_s();
    if (code == CU_OK)
        code = c->event_sync(t->stop);
    *host_s = host_now_s() - from;
    if (code == CU_OK)
        code = c->event_elapsed(&ms, t->start, t->stop);
    *device_s = 1e-3 * (double)ms;
    return code;
}
