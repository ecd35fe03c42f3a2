/* Measuring and keeping the ceilings.
 *
 * Every number is the best of a few repetitions by the device's clock: a ceiling is what can be
 * reached, and whatever disturbs a measurement only slows it. Memory is larger than the L2 by far
 * and holds noise. Launches of arithmetic last about as long as those of large kernels that are
 * timed: over tens of milliseconds the power limit brings the clocks down further. */
#include "device/ceilings.h"

#include "base/arena.h"
#include "base/file.h"
#include "device/harness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMORY_MOST     (UINT64_C(4) << 30)
#define MEMORY_LEAST    (UINT64_C(512) << 20)    /* harness.cu: operands of a product */
#define VECTOR_BLOCK    (UINT64_C(4) * 256 * 16) /* bytes of a block of read_all and the like */
#define WARM_UP         2
#define MEMORY_ROUNDS   8
#define MATH_S          0.002 /* of one launch, about */
#define MATH_ROUNDS     8
#define FEW_ROUNDS      1000
#define MATH_THREADS    256
#define FMA_THREADS     1024
#define FMA_FLOPS       32     /* of a thread in one round: 16 fused multiply-adds */
#define WGMMA_SHARED    197632 /* harness.cu: four stages, aligned */
#define LAUNCHES        400    /* the driver's queue takes 1,000 or so */
#define LAUNCH_QUEUE_NS 10000
#define FILE_MOST       65536

struct bench {
    const struct cuda *c;
    struct harness *h;
    struct cuda_timer timer;
    cu_address a, b; /* two buffers of `bytes` */
    uint64_t bytes;
    struct err *err;
};

/* What is timed: a kernel, or what the driver does itself. */
struct work {
    struct cuda_launch launch;
    bool driver_copy, driver_set;
    unsigned times;   /* in a row; 0: once */
    uint32_t hold_ns; /* the host queues that long before the clock starts */
};

static int queue(const struct bench *b, const struct work *w) {
    const struct cuda *c = b->c;
    if (w->driver_copy)
        return c->copy_on_device(b->b, b->a, b->bytes, c->stream);
    if (w->driver_set)
        return c->set_d32(b->b, 0x5eed5eed, b->bytes / 4, c->stream);
    return cuda_launch(c, &w->launch);
}

/* Seconds on the device; < 0: err says why. */
static double time_once(struct bench *b, const struct work *w) {
    double device_s = 0, host_s = 0;
    int code = w->hold_ns ? harness_hold(b->c, b->h, w->hold_ns) : CU_OK;
    if (code == CU_OK)
        code = b->c->event_record(b->timer.start, b->c->stream);
    for (unsigned i = 0; i < (w->times ? w->times : 1) && code == CU_OK; i++)
        code = queue(b, w);
    if (code == CU_OK)
        code = cuda_timer_stop(b->c, &b->timer, &device_s, &host_s);
    if (code == CU_OK)
        return device_s > 0 ? device_s : 1e-9;
    cuda_fail(b->c, b->err, code, "measure what the GPU can do");
    return -1;
}

static double best_of(struct bench *b, const struct work *w, unsigned rounds) {
    double best = INFINITY;
    for (unsigned i = 0; i < rounds + WARM_UP; i++) {
        double s = time_once(b, w);
        if (s < 0)
            return -1;
        best = i >= WARM_UP && s < best ? s : best;
    }
    return best;
}

/* ---- memory ---- */

static bool alloc_buffers(struct bench *b) {
    uint64_t share = cuda_free_bytes(b->c) / 4;
    b->bytes = share < MEMORY_MOST ? share : MEMORY_MOST;
    b->bytes = b->bytes / VECTOR_BLOCK * VECTOR_BLOCK;
    if (b->bytes < MEMORY_LEAST || b->bytes < 4 * b->c->facts.l2_bytes)
        return err_set(b->err, ERR_ENV,
                       "too little of the GPU's memory is free to measure what it can do");
    return cuda_try(b->c, b->c->memory_alloc(&b->a, b->bytes), b->err, "memory to measure with") &&
           cuda_try(b->c, b->c->memory_alloc(&b->b, b->bytes), b->err, "memory to measure with");
}

static bool fill_noise(struct bench *b, cu_address to, uint32_t random, uint32_t ones) {
    uint64_t count = b->bytes / 4;
    struct work w = {.launch = {.function = b->h->noise,
                                .grid = {32u * (unsigned)b->c->facts.sms},
                                .block = {256},
                                .params = CUDA_PARAMS(&to, &count, &random, &ones)}};
    return time_once(b, &w) >= 0;
}

/* The best of our kernel and another way to do the same. Where memory lies matters to a few
 * percent: reading is tried in both buffers. */
static bool measure_memory(struct bench *b, struct ceilings *out) {
    uint32_t value = 0x5eed;
    unsigned blocks = (unsigned)(b->bytes / VECTOR_BLOCK);
    void **read_a = CUDA_PARAMS(&b->a, &b->h->words), **read_b = CUDA_PARAMS(&b->b, &b->h->words);
    void **write_b = CUDA_PARAMS(&b->b, &value), **copy_ab = CUDA_PARAMS(&b->b, &b->a);
    struct work read[2] = {{.launch = {b->h->read_all, {blocks}, {256}, .params = read_a}},
                           {.launch = {b->h->read_all, {blocks}, {256}, .params = read_b}}};
    struct work write[2] = {{.launch = {b->h->write_all, {blocks}, {256}, .params = write_b}},
                            {.driver_set = true}};
    struct work copy[2] = {{.launch = {b->h->copy_all, {blocks}, {256}, .params = copy_ab}},
                           {.driver_copy = true}};
    const struct {
        const struct work *w;
        double *rate, bytes;
    } kinds[] = {{read, &out->read_bytes_s, (double)b->bytes},
                 {write, &out->write_bytes_s, (double)b->bytes},
                 {copy, &out->copy_bytes_s, 2 * (double)b->bytes}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < 2; k++) {
            double s = best_of(b, &kinds[i].w[k], MEMORY_ROUNDS), rate = kinds[i].bytes / s;
            if (s < 0)
                return false;
            *kinds[i].rate = rate > *kinds[i].rate ? rate : *kinds[i].rate;
        }
    return true;
}

/* ---- arithmetic ---- */

/* Grows the number of rounds until a launch takes about MATH_S, then takes the best. */
static bool measure_rounds(struct bench *b, const struct work *w, uint32_t *rounds, double *best) {
    *rounds = FEW_ROUNDS;
    double s = best_of(b, w, 1);
    if (s < 0)
        return false;
    double want = FEW_ROUNDS * MATH_S / s;
    *rounds = want < FEW_ROUNDS ? FEW_ROUNDS : want > 1e8 ? 100000000 : (uint32_t)want;
    *best = best_of(b, w, MATH_ROUNDS);
    return *best > 0;
}

static bool measure_fp32(struct bench *b, struct ceilings *out) {
    uint32_t rounds;
    double s;
    unsigned blocks = (unsigned)(b->c->facts.sms * (b->c->facts.max_threads_sm / FMA_THREADS));
    struct work w = {.launch = {.function = b->h->fma_fp32,
                                .grid = {blocks},
                                .block = {FMA_THREADS},
                                .params = CUDA_PARAMS(&rounds, &b->b)}};
    if (!measure_rounds(b, &w, &rounds, &s))
        return false;
    out->fp32_flops = (double)blocks * FMA_THREADS * FMA_FLOPS * (double)rounds / s;
    return true;
}

static bool measure_mma(struct bench *b, cu_function f, double *flops) {
    const struct cuda *c = b->c;
    uint32_t rounds;
    uint64_t block_flops = 0;
    cu_address flops_at = b->b + b->bytes - 256;
    double s;
    int shared = c->facts.cc_major == 9 ? WGMMA_SHARED : 0, fit = 0;
    if (shared && !cuda_try(c, c->function_set(f, CU_FN_MAX_DYNAMIC_SHARED, shared), b->err,
                            "shared memory of the harness"))
        return false;
    if (!cuda_try(c, c->function_blocks(&fit, f, MATH_THREADS, (size_t)shared), b->err,
                  "occupancy of the harness"))
        return false;
    unsigned blocks = (unsigned)(c->facts.sms * fit) / 2 * 2; /* in pairs */
    struct work w = {.launch = {.function = f,
                                .grid = {blocks},
                                .block = {MATH_THREADS},
                                .shared = (size_t)shared,
                                .params = CUDA_PARAMS(&rounds, &b->a, &b->b, &flops_at)}};
    if (!measure_rounds(b, &w, &rounds, &s))
        return false;
    int code = c->copy_to_host(&block_flops, flops_at, sizeof block_flops, c->stream);
    if (code == CU_OK)
        code = c->stream_sync(c->stream);
    *flops = (double)block_flops * blocks / s;
    return cuda_try(c, code, b->err, "measure what the GPU can do");
}

static bool measure_products(struct bench *b, struct ceilings *out) {
    return fill_noise(b, b->a, 0x80ffe000, 0x3f000000) &&
           measure_mma(b, b->h->mma_tf32, &out->tf32_flops) &&
           fill_noise(b, b->a, 0x80ff80ff, 0x3f003f00) &&
           measure_mma(b, b->h->mma_bf16, &out->bf16_flops);
}

/* The host needs longer to queue a launch than the device to do it: the device is held meanwhile.
 */
static bool measure_launch(struct bench *b, struct ceilings *out) {
    struct work w = {.launch = {.function = b->h->empty},
                     .times = LAUNCHES,
                     .hold_ns = LAUNCHES * LAUNCH_QUEUE_NS};
    double s = best_of(b, &w, 5);
    out->launch_s = s / LAUNCHES;
    return s > 0;
}

bool ceilings_measure(const struct cuda *c, struct harness *h, struct ceilings *out,
                      struct err *err) {
    struct bench b = {.c = c, .h = h, .err = err};
    memset(out, 0, sizeof *out);
    bool ok = cuda_timer_init(c, &b.timer, err) && alloc_buffers(&b) &&
              fill_noise(&b, b.a, ~0u, 0) && fill_noise(&b, b.b, ~0u, 0) &&
              measure_memory(&b, out) && measure_launch(&b, out) && measure_fp32(&b, out) &&
              measure_products(&b, out);
    if (b.a)
        c->memory_free(b.a);
    if (b.b)
        c->memory_free(b.b);
    return ok;
}

/* ---- keeping ---- */

static const struct {
    const char *key;
    size_t at;
} keys[] = {
#define KEY(member)                                                                                \
    { #member, offsetof(struct ceilings, member) / sizeof(double) }
    KEY(copy_bytes_s), KEY(read_bytes_s), KEY(write_bytes_s), KEY(fp32_flops),
    KEY(tf32_flops),   KEY(bf16_flops),   KEY(launch_s),
#undef KEY
};
_Static_assert(sizeof keys / sizeof *keys == sizeof(struct ceilings) / sizeof(double),
               "every member of struct ceilings travels");

json *ceilings_to_json(const struct ceilings *m) {
    json *j = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_set_f64(j, keys[i].key, ((const double *)m)[keys[i].at]);
    return j;
}

bool ceilings_from_json(const json *j, struct ceilings *out) {
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        double *v = (double *)out + keys[i].at;
        if (!json_get_f64(j, keys[i].key, v) || !(*v > 0) || !isfinite(*v))
            return false;
    }
    return true;
}

static str file_of(const char *cache, const struct cuda_facts *f, struct arena *a) {
    return arena_printf(a, "%s/ceilings/%s-%d.json", cache, f->uuid, f->driver);
}

bool ceilings_load(const char *cache, const struct cuda_facts *f, struct ceilings *out,
                   struct err *err) {
    struct arena *a = arena_new(1u << 20);
    str path = file_of(cache, f, a), text;
    *err = (struct err){0};
    bool ok = false;
    if (file_exists(path.p) && file_read(path.p, FILE_MOST, a, &text, err)) {
        json *j = json_parse(text, err);
        ok = j && ceilings_from_json(j, out);
        if (!ok)
            err_set(err, ERR_ENV,
                    "%s: the file is damaged or of another version; the GPU is measured again",
                    path.p);
        json_free(j);
    }
    arena_free(a);
    return ok;
}

bool ceilings_store(const char *cache, const struct cuda_facts *f, const struct ceilings *m,
                    struct err *err) {
    struct arena *a = arena_new(1u << 20);
    str path = file_of(cache, f, a), folder = arena_printf(a, "%s/ceilings", cache);
    struct buf text;
    buf_init(&text, FILE_MOST);
    json *j = ceilings_to_json(m);
    json_set_str(j, "gpu", str_view(f->name));
    json_write(j, &text);
    buf_putc(&text, '\n');
    bool ok = dir_make(folder.p, err) && file_replace(path.p, buf_str(&text), err);
    json_free(j);
    buf_release(&text);
    arena_free(a);
    return ok;
}

void ceilings_apply(const struct ceilings *m, struct gpu *g) {
    g->copy_bytes_s = m->copy_bytes_s;
    g->read_bytes_s = m->read_bytes_s;
    g->write_bytes_s = m->write_bytes_s;
    g->fp32_flops = m->fp32_flops;
    g->launch_s = m->launch_s;
    /* The harness multiplies by wgmma and mma.sync: where there is tcgen05, it finds less than the
     * published rates. */
    bool below = g->has.tcgen05;
    if (!below || m->tf32_flops > g->tf32_flops)
        g->tf32_flops = m->tf32_flops;
    if (!below || m->bf16_flops > g->bf16_flops)
        g->bf16_flops = m->bf16_flops;
    /* A driver that does not tell the memory's clock: no kernel of ours was faster than this. */
    if (!(g->dram_bytes_s > 0))
        g->dram_bytes_s =
            1.2 * (m->read_bytes_s > m->write_bytes_s ? m->read_bytes_s : m->write_bytes_s);
    /* Three f16 products make one of class fp32. */
    double split = g->bf16_flops / 3;
    g->fp32_tensor_flops = split > g->fp32_flops ? split : g->fp32_flops;
    g->measured = below ? "copy_bytes_s read_bytes_s write_bytes_s fp32_flops launch_s"
                        : "copy_bytes_s read_bytes_s write_bytes_s fp32_flops launch_s tf32_flops "
                          "bf16_flops fp32_tensor_flops";
}
