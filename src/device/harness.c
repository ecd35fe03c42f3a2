/* Loading and launching the harness. Launch shapes are those that harness.cu states. */
#include "device/harness.h"

#include <string.h>

#define SCRUB_THREADS 1024
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
           cuda_try(c, c->stream_sync(c->stream), err, "harness");
}

static uint32_t next_pattern(struct harness *h) {
    h->pattern = h->pattern * 747796405u + 2891336453u;
    return h->pattern;
}

int harness_scrub(const struct cuda *c, struct harness *h) {
    uint32_t pattern = next_pattern(h), bytes = (uint32_t)c->facts.shared_block;
    uint32_t goal = h->arrivals + (uint32_t)c->facts.sms;
    struct cuda_launch l = {
        .function = h->scrub,
        .grid = {(unsigned)c->facts.sms},
        .block = {SCRUB_THREADS},
        .shared = bytes,
        .cooperative = true, /* all blocks at once, or an error */
        .params = CUDA_PARAMS(&pattern, &bytes, &h->words, &goal),
    };
    int code = cuda_launch(c, &l);
    if (code == CU_OK)
        h->arrivals = goal;
    return code;
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
