/* Asks an H200 what its tensor cores, tensor copies and mbarriers do, and writes the answers down.
 *
 *     nvcc -gencode arch=compute_90a,code=sm_90a -O1 -o record record.cu && ./record h200.bin
 *
 * A few seconds, about 200 KB. tests/sim/test_tile_hardware.c holds the simulator to the file when
 * it lies beside this one. A record is a name of 48 bytes, a length of 4 and that many bytes. The
 * inputs are made from seeds on both sides (inputs.h, forms.h). */
#include "forms.h"

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *file;

#define TRY(call)                                                                                  \
    do {                                                                                           \
        cudaError_t e_ = (call);                                                                   \
        if (e_ != cudaSuccess) {                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void keep(const char *group, const char *name, const void *data, uint32_t bytes) {
    char full[48] = {0};
    snprintf(full, sizeof full, "%s/%s", group, name);
    fwrite(full, 1, sizeof full, file);
    fwrite(&bytes, 4, 1, file);
    fwrite(data, 1, bytes, file);
}
static uint32_t *device_words;
static uint32_t host_words[1 << 16];
static void fetch(uint32_t words) {
    TRY(cudaGetLastError());
    TRY(cudaDeviceSynchronize());
    TRY(cudaMemcpy(host_words, device_words, words * 4, cudaMemcpyDeviceToHost));
}

/* mma.sync */
#define R1(v) "=r"(v[0])
#define R2(v) R1(v), "=r"(v[1])
#define R4(v) R2(v), "=r"(v[2]), "=r"(v[3])
#define R8(v) R4(v), "=r"(v[4]), "=r"(v[5]), "=r"(v[6]), "=r"(v[7])
#define I1(v) "r"(v[0])
#define I2(v) I1(v), "r"(v[1])
#define I4(v) I2(v), "r"(v[2]), "r"(v[3])
#define I8(v) I4(v), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7])
#define D2(v) "=d"(v[0]), "=d"(v[1])
#define D4(v) D2(v), "=d"(v[2]), "=d"(v[3])
#define J1(v) "d"(v[0])
#define J2(v) J1(v), "d"(v[1])
#define J4(v) J2(v), "d"(v[2]), "d"(v[3])
#define J8(v) J4(v), "d"(v[4]), "d"(v[5]), "d"(v[6]), "d"(v[7])
/* Operand lists by numbers of registers: D, A, B, C. */
#define L_2_1_4 "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
#define L_2_1_2 "{%0,%1}, {%2,%3}, {%4}, {%5,%6};"
#define L_4_2_4 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
#define L_4_2_2 "{%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%8,%9};"
#define L_1_1_2 "{%0,%1}, {%2}, {%3}, {%4,%5};"
#define L_2_2_8 "{%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, {%12,%13,%14,%15,%16,%17,%18,%19};"
#define L_2_2_4 "{%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11};"
#define L_8_4_4 "{%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%16,%17,%18,%19};"

#define X(id, na, nb, nc, ta, tb, tc, text)                                                        \
    __global__ void mma_##id(uint32_t *out, int form) {                                            \
        unsigned lane = threadIdx.x;                                                               \
        for (int dist = 0; dist < HW_DISTS; dist++) {                                              \
            uint32_t a[na], b[nb], c[nc], d[nc];                                                   \
            for (unsigned i = 0; i < na; i++)                                                      \
                a[i] = hw_word(hw_seed(0, form, dist, 0), ta, (enum hw_dist)dist, i * 32 + lane);  \
            for (unsigned i = 0; i < nb; i++)                                                      \
                b[i] = hw_word(hw_seed(0, form, dist, 1), tb, (enum hw_dist)dist, i * 32 + lane);  \
            for (unsigned i = 0; i < nc; i++)                                                      \
                c[i] = hw_word(hw_seed(0, form, dist, 2), hw_acc(tc, dist), (enum hw_dist)dist,    \
                               i * 32 + lane);                                                     \
            asm volatile("mma.sync.aligned." text " " L_##na##_##nb##_##nc                         \
                         : R##nc(d)                                                                \
                         : I##na(a), I##nb(b), I##nc(c));                                          \
            for (unsigned i = 0; i < nc; i++)                                                      \
                out[(dist * nc + i) * 32 + lane] = d[i];                                           \
        }                                                                                          \
    }
HW_MMA_FORMS(X)
#undef X

#define X(id, na, nb, nc, text)                                                                    \
    __global__ void mma_##id(double *out, int form) {                                              \
        unsigned lane = threadIdx.x;                                                               \
        for (int dist = 0; dist < HW_DISTS; dist++) {                                              \
            double a[na], b[nb], c[nc], d[nc];                                                     \
            for (unsigned i = 0; i < na; i++)                                                      \
                a[i] = __longlong_as_double((long long)hw_double(                                  \
                    hw_seed(1, form, dist, 0), (enum hw_dist)dist, i * 32 + lane));                \
            for (unsigned i = 0; i < nb; i++)                                                      \
                b[i] = __longlong_as_double((long long)hw_double(                                  \
                    hw_seed(1, form, dist, 1), (enum hw_dist)dist, i * 32 + lane));                \
            for (unsigned i = 0; i < nc; i++)                                                      \
                c[i] = __longlong_as_double((long long)hw_double(                                  \
                    hw_seed(1, form, dist, 2), (enum hw_dist)dist, i * 32 + lane));                \
            asm volatile("mma.sync.aligned." text " " L_##na##_##nb##_##nc                         \
                         : D##nc(d)                                                                \
                         : J##na(a), J##nb(b), J##nc(c));                                          \
            for (unsigned i = 0; i < nc; i++)                                                      \
                out[(dist * nc + i) * 32 + lane] = d[i];                                           \
        }                                                                                          \
    }
HW_F64_FORMS(X)
#undef X

static void record_mma(void) {
    int form = 0;
#define X(id, na, nb, nc, ta, tb, tc, text)                                                        \
    mma_##id<<<1, 32>>>(device_words, form++);                                                     \
    fetch(HW_DISTS *nc * 32);                                                                      \
    keep("mma", #id, host_words, HW_DISTS *nc * 32 * 4);
    HW_MMA_FORMS(X)
#undef X
    form = 0;
#define X(id, na, nb, nc, text)                                                                    \
    mma_##id<<<1, 32>>>((double *)device_words, form++);                                           \
    fetch(HW_DISTS *nc * 64);                                                                      \
    keep("f64", #id, host_words, HW_DISTS *nc * 64 * 4);
    HW_F64_FORMS(X)
#undef X
}

/* wgmma */
__device__ static unsigned shared_address(const void *p) {
    return (unsigned)__cvta_generic_to_shared(p);
}
__device__ static void wgmma_begin(void) {
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ static void wgmma_end(void) {
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::
                     : "memory");
}
#define W2(v)   "+r"(v[0]), "+r"(v[1])
#define W4(v)   W2(v), "+r"(v[2]), "+r"(v[3])
#define WLIST_2 "{%0,%1}, %2, %3, p"
#define WLIST_4 "{%0,%1,%2,%3}, %4, %5, p"
#define WPRED_2 "{.reg .pred p; setp.ne.b32 p, %4, 0;\n\t"
#define WPRED_4 "{.reg .pred p; setp.ne.b32 p, %6, 0;\n\t"

/* A of 64 rows at 0, B of 8 rows at 4096, K-major, not swizzled. */
#define X(id, nd, ta, tb, tc, text, immediates)                                                    \
    __global__ void wgmma_##id(uint32_t *out, int form) {                                          \
        __shared__ __align__(1024) uint32_t memory[2048];                                          \
        for (int dist = 0; dist < HW_DISTS; dist++) {                                              \
            for (unsigned i = threadIdx.x; i < 1024; i += 128) {                                   \
                memory[i] = hw_word(hw_seed(2, form, dist, 0), ta, (enum hw_dist)dist, i);         \
                memory[1024 + i] = hw_word(hw_seed(2, form, dist, 1), tb, (enum hw_dist)dist, i);  \
            }                                                                                      \
            uint32_t d[nd];                                                                        \
            for (unsigned i = 0; i < nd; i++)                                                      \
                d[i] = hw_word(hw_seed(2, form, dist, 2), hw_acc(tc, dist), (enum hw_dist)dist,    \
                               i * 128 + threadIdx.x);                                             \
            unsigned at = shared_address(memory);                                                  \
            uint64_t da = hw_descriptor(at, 128, 256, 0, 0);                                       \
            uint64_t db = hw_descriptor(at + 4096, 128, 256, 0, 0);                                \
            wgmma_begin();                                                                         \
            asm volatile(WPRED_##nd "wgmma.mma_async.sync.aligned.m64n8" text                      \
                                    " " WLIST_##nd immediates ";}"                                 \
                         : W##nd(d)                                                                \
                         : "l"(da), "l"(db), "r"(1)                                                \
                         : "memory");                                                              \
            wgmma_end();                                                                           \
            for (unsigned i = 0; i < nd && threadIdx.x < 32; i++)                                  \
                out[(dist * nd + i) * 32 + threadIdx.x] = d[i];                                    \
            __syncthreads();                                                                       \
        }                                                                                          \
    }
HW_WGMMA_FORMS(X)
#undef X

#define F8(i)                                                                                      \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),    \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define LIST32                                                                                     \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,"  \
    "%25,%26,%27,%28,%29,%30,%31}"

template <int ta, int tb, int in_registers>
__global__ void wgmma_layout(uint32_t *out, struct hw_layout l, int which) {
    __shared__ __align__(1024) uint32_t memory[HW_SHARED_WORDS];
    for (unsigned i = threadIdx.x; i < HW_SHARED_WORDS; i += 128)
        memory[i] = hw_word(hw_seed(3, which, 0, 0), HW_BF16, HW_NORMAL, i);
    float d[32];
    uint32_t a[4];
    for (unsigned i = 0; i < 32; i++)
        d[i] = 0;
    for (unsigned i = 0; i < 4; i++)
        a[i] = hw_word(hw_seed(3, which, 0, 1), HW_BF16, HW_NORMAL, i * 128 + threadIdx.x);
    unsigned at = shared_address(memory);
    uint64_t da = hw_descriptor(at + l.start_a, l.lead_a, l.stride_a, l.base_a, l.mode);
    uint64_t db = hw_descriptor(at + l.start_b, l.lead_b, l.stride_b, l.base_b, l.mode);
    wgmma_begin();
    if (in_registers)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32
                     ", {%32,%33,%34,%35}, %36, 1, 1, 1, %37;"
                     : F8(0), F8(8), F8(16), F8(24)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(db), "n"(tb)
                     : "memory");
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " LIST32
                     ", %32, %33, 1, 1, 1, %34, %35;"
                     : F8(0), F8(8), F8(16), F8(24)
                     : "l"(da), "l"(db), "n"(ta), "n"(tb)
                     : "memory");
    wgmma_end();
    for (unsigned i = 0; i < 32; i++)
        out[i * 128 + threadIdx.x] = __float_as_uint(d[i]);
}

static void record_wgmma(void) {
    int form = 0;
#define X(id, nd, ta, tb, tc, text, immediates)                                                    \
    wgmma_##id<<<1, 128>>>(device_words, form++);                                                  \
    fetch(HW_DISTS *nd * 32);                                                                      \
    keep("wgmma", #id, host_words, HW_DISTS *nd * 32 * 4);
    HW_WGMMA_FORMS(X)
#undef X
    for (int i = 0; i < (int)HW_LAYOUTS; i++) {
        const struct hw_layout l = hw_layouts[i];
        uint64_t hash[32] = {0};
        char name[16];
        int kind = l.in_registers * 4 + l.trans_a * 2 + l.trans_b;
        TRY(cudaMemset(device_words, 0xff, 32 * 128 * 4));
        switch (kind) {
        case 0:
            wgmma_layout<0, 0, 0><<<1, 128>>>(device_words, l, i);
            break;
        case 1:
            wgmma_layout<0, 1, 0><<<1, 128>>>(device_words, l, i);
            break;
        case 2:
            wgmma_layout<1, 0, 0><<<1, 128>>>(device_words, l, i);
            break;
        case 3:
            wgmma_layout<1, 1, 0><<<1, 128>>>(device_words, l, i);
            break;
        case 4:
            wgmma_layout<0, 0, 1><<<1, 128>>>(device_words, l, i);
            break;
        default:
            wgmma_layout<0, 1, 1><<<1, 128>>>(device_words, l, i);
            break;
        }
        fetch(32 * 128);
        for (int r = 0; r < 32; r++)
            for (int t = 0; t < 128; t++)
                hash[r] = hw_hash(hash[r], host_words[r * 128 + t]);
        snprintf(name, sizeof name, "%d", i);
        keep("layout", name, hash, sizeof hash);
    }
}

/* ldmatrix, stmatrix, movmatrix */
#define ML1 "{%0}, [%1];"
#define ML2 "{%0,%1}, [%2];"
#define ML4 "{%0,%1,%2,%3}, [%4];"
#define MS1 "[%0], {%1};"
#define MS2 "[%0], {%1,%2};"
#define MS4 "[%0], {%1,%2,%3,%4};"
#define X(count, trans, text)                                                                      \
    __global__ void matrix_##count##_##trans(uint32_t *out) {                                      \
        __shared__ __align__(16) uint32_t memory[128];                                             \
        unsigned lane = threadIdx.x, at = shared_address(memory) + hw_matrix_row(lane);            \
        uint32_t d[4] = {0};                                                                       \
        for (unsigned i = lane; i < 128; i += 32)                                                  \
            memory[i] = hw_word(5, HW_INT, HW_BITS, i);                                            \
        __syncthreads();                                                                           \
        asm volatile("ldmatrix.sync.aligned." text " " ML##count                                   \
                     : R##count(d)                                                                 \
                     : "r"(at)                                                                     \
                     : "memory");                                                                  \
        for (unsigned i = 0; i < count; i++)                                                       \
            out[i * 32 + lane] = d[i];                                                             \
        __syncthreads();                                                                           \
        for (unsigned i = 0; i < 4; i++)                                                           \
            d[i] = hw_word(6, HW_INT, HW_BITS, i * 32 + lane);                                     \
        asm volatile("stmatrix.sync.aligned." text " " MS##count ::"r"(at), I##count(d)            \
                     : "memory");                                                                  \
        __syncthreads();                                                                           \
        for (unsigned i = lane; i < 128; i += 32)                                                  \
            out[count * 32 + i] = memory[i];                                                       \
    }
HW_MATRIX_FORMS(X)
#undef X
__global__ void matrix_move(uint32_t *out) {
    uint32_t s = hw_word(7, HW_INT, HW_BITS, threadIdx.x), d;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(d) : "r"(s));
    out[threadIdx.x] = d;
}
static void record_matrix(void) {
#define X(count, trans, text)                                                                      \
    matrix_##count##_##trans<<<1, 32>>>(device_words);                                             \
    fetch(count * 32 + 128);                                                                       \
    keep("matrix", #count #trans, host_words, (count * 32 + 128) * 4);
    HW_MATRIX_FORMS(X)
#undef X
    matrix_move<<<1, 32>>>(device_words);
    fetch(32);
    keep("matrix", "move", host_words, 128);
}

/* wmma fragments: memory holds bytes 0, 1, 2 …, as words (2i+1) << 16 | 2i */
#define WM2 "{%0,%1}, [%2];"
#define WM4 "{%0,%1,%2,%3}, [%4];"
#define WM8 "{%0,%1,%2,%3,%4,%5,%6,%7}, [%8];"
#define X(id, n, text)                                                                             \
    __global__ void wmma_##id(uint32_t *out, const uint32_t *in) {                                 \
        uint32_t d[n];                                                                             \
        asm volatile("wmma." text " " WM##n : R##n(d) : "l"(in) : "memory");                       \
        for (unsigned i = 0; i < n; i++)                                                           \
            out[i * 32 + threadIdx.x] = d[i];                                                      \
    }
HW_WMMA_FORMS(X)
#undef X
static void record_wmma(void) {
    uint32_t *in, numbers[1024];
    TRY(cudaMalloc(&in, sizeof numbers));
    for (uint32_t i = 0; i < 1024; i++)
        numbers[i] = (2 * i + 1) << 16 | 2 * i;
    TRY(cudaMemcpy(in, numbers, sizeof numbers, cudaMemcpyHostToDevice));
#define X(id, n, text)                                                                             \
    wmma_##id<<<1, 32>>>(device_words, in);                                                        \
    fetch(n * 32);                                                                                 \
    keep("wmma", #id, host_words, n * 32 * 4);
    HW_WMMA_FORMS(X)
#undef X
    TRY(cudaFree(in));
}

/* Tensor copies */
#define TMA_LOAD(dims, coords, ...)                                                                \
    asm volatile("cp.async.bulk.tensor." dims                                                      \
                 ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " coords         \
                 "], [%2];" ::"r"(to),                                                             \
                 "l"(map), "r"(bar), __VA_ARGS__                                                   \
                 : "memory")
#define TMA_STORE(dims, coords, ...)                                                               \
    asm volatile("cp.async.bulk.tensor." dims ".global.shared::cta.bulk_group [%1, " coords        \
                 "], [%0];" ::"r"(to),                                                             \
                 "l"(map), "r"(bar), __VA_ARGS__                                                   \
                 : "memory")
#define TMA_REDUCE(op)                                                                             \
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." op                           \
                 ".bulk_group [%1, {%2, %3}], [%0];" ::"r"(to),                                    \
                 "l"(map), "r"(c.at[0]), "r"(c.at[1])                                              \
                 : "memory")
#define AT1 "r"(c.at[0])
#define AT2 AT1, "r"(c.at[1])
#define AT3 AT2, "r"(c.at[2])
#define AT4 AT3, "r"(c.at[3])
#define AT5 AT4, "r"(c.at[4])

__device__ static void copy_load(const CUtensorMap *map, unsigned to, unsigned bar,
                                 const struct hw_copy &c) {
    switch (c.rank) {
    case 1:
        TMA_LOAD("1d", "{%3}", AT1);
        break;
    case 2:
        TMA_LOAD("2d", "{%3, %4}", AT2);
        break;
    case 3:
        TMA_LOAD("3d", "{%3, %4, %5}", AT3);
        break;
    case 4:
        TMA_LOAD("4d", "{%3, %4, %5, %6}", AT4);
        break;
    default:
        TMA_LOAD("5d", "{%3, %4, %5, %6, %7}", AT5);
        break;
    }
}
__device__ static void copy_store(const CUtensorMap *map, unsigned to, unsigned bar,
                                  const struct hw_copy &c) {
    switch (c.op) {
    case 0:
        if (c.rank == 1)
            TMA_STORE("1d", "{%3}", AT1);
        else if (c.rank == 2)
            TMA_STORE("2d", "{%3, %4}", AT2);
        else
            TMA_STORE("3d", "{%3, %4, %5}", AT3);
        break;
    case 1:
        TMA_REDUCE("add");
        break;
    case 2:
        TMA_REDUCE("min");
        break;
    case 3:
        TMA_REDUCE("max");
        break;
    case 4:
        TMA_REDUCE("inc");
        break;
    case 5:
        TMA_REDUCE("dec");
        break;
    case 6:
        TMA_REDUCE("and");
        break;
    case 7:
        TMA_REDUCE("or");
        break;
    default:
        TMA_REDUCE("xor");
        break;
    }
}

__global__ void copy(const __grid_constant__ CUtensorMap map, struct hw_copy c, unsigned bytes,
                     int which, uint32_t *out) {
    __shared__ __align__(1024) uint32_t memory[HW_COPY_AT / 4 + HW_BOX_WORDS];
    __shared__ __align__(8) uint64_t barrier;
    unsigned to = shared_address(memory) + HW_COPY_AT, bar = shared_address(&barrier);
    for (unsigned i = threadIdx.x; i < HW_COPY_AT / 4 + HW_BOX_WORDS; i += 32)
        memory[i] = c.op < 0 ? 0xeeeeeeeeu : hw_memory(c.type, 40 + which, i);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0 && c.op < 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
                     : "memory");
        copy_load(&map, to, bar, c);
    } else if (threadIdx.x == 0) {
        copy_store(&map, to, bar, c);
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group 0;" ::: "memory");
    }
    /* Bounded: a copy of another size than expected is an answer, not a hang. */
    for (unsigned done = c.op >= 0, tries = 0; !done && tries < 1000; tries++)
        asm volatile("{.reg .pred p;\n\tmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n\t"
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(bar)
                     : "memory");
    for (unsigned i = threadIdx.x; i < HW_BOX_WORDS && c.op < 0; i += 32)
        out[i] = memory[HW_COPY_AT / 4 + i];
}

typedef CUresult (*encode_fn)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                              const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                              const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                              CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void record_copy(encode_fn encode, int which, uint32_t *global) {
    static uint32_t contents[HW_GLOBAL_WORDS];
    struct hw_copy c = hw_copies[which];
    static const unsigned sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    cuuint64_t extent[5], pitch[5] = {0};
    cuuint32_t box[5], step[5];
    unsigned bytes = sizes[c.type];
    for (unsigned i = 0; i < c.rank; i++) {
        extent[i] = c.extent[i];
        box[i] = c.box[i];
        step[i] = c.step[i];
        bytes *= i ? (c.box[i] + c.step[i] - 1) / c.step[i] : c.box[i];
        if (i)
            pitch[i - 1] = c.pitch[i];
    }
    CUtensorMap map;
    CUresult r = encode(&map, (CUtensorMapDataType)c.type, c.rank, global, extent, pitch, box, step,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)c.swizzle,
                        CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)c.nan);
    if (r != CUDA_SUCCESS) { /* an answer too */
        uint32_t no = (uint32_t)r;
        keep("copy", c.name, &no, 4);
        return;
    }
    for (unsigned i = 0; i < HW_GLOBAL_WORDS; i++)
        contents[i] = hw_memory(c.type, 80 + which, i);
    TRY(cudaMemcpy(global, contents, sizeof contents, cudaMemcpyHostToDevice));
    copy<<<1, 32>>>(map, c, bytes, which, device_words);
    unsigned words = c.op < 0 ? HW_BOX_WORDS : HW_GLOBAL_WORDS;
    fetch(HW_BOX_WORDS);
    if (c.op >= 0)
        TRY(cudaMemcpy(host_words, global, HW_GLOBAL_WORDS * 4, cudaMemcpyDeviceToHost));
    if (bytes <= 1024) { /* small ones whole; of a store, the first 1024 bytes */
        keep("copy", c.name, host_words, 1024);
        return;
    }
    uint32_t hash[HW_GLOBAL_WORDS / HW_HASH_WORDS];
    for (unsigned i = 0; i < words / HW_HASH_WORDS; i++) {
        uint64_t h = 0;
        for (unsigned k = 0; k < HW_HASH_WORDS; k++)
            h = hw_hash(h, host_words[i * HW_HASH_WORDS + k]);
        hash[i] = (uint32_t)h;
    }
    keep("copy", c.name, hash, words / HW_HASH_WORDS * 4);
}

/* mbarrier */
__global__ void barrier_steps(uint32_t *out) {
    __shared__ __align__(8) uint64_t word;
    unsigned at = shared_address(&word);
    for (unsigned i = 0; i < HW_BARRIER_STEPS; i++) {
        uint64_t state = 0;
        uint32_t v = out[i * 4 + 1], pending = 0, even, odd;
        bool arrives = true;
        switch (out[i * 4]) {
        case HW_INIT:
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(v) : "memory");
            arrives = false;
            break;
        case HW_ARRIVE:
            asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"
                         : "=l"(state)
                         : "r"(at), "r"(v)
                         : "memory");
            break;
        case HW_EXPECT:
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at),
                         "r"(v)
                         : "memory");
            arrives = false;
            break;
        case HW_COMPLETE:
            asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at),
                         "r"(v)
                         : "memory");
            arrives = false;
            break;
        case HW_DROP:
            asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], %2;"
                         : "=l"(state)
                         : "r"(at), "r"(v)
                         : "memory");
            break;
        default:
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], %2;"
                         : "=l"(state)
                         : "r"(at), "r"(v)
                         : "memory");
            break;
        }
        if (arrives)
            asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(state));
        asm volatile("{.reg .pred p, q;\n\t"
                     "mbarrier.test_wait.parity.shared::cta.b64 p, [%2], 0;\n\t"
                     "mbarrier.test_wait.parity.shared::cta.b64 q, [%2], 1;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\tselp.u32 %1, 1, 0, q;}"
                     : "=r"(even), "=r"(odd)
                     : "r"(at)
                     : "memory");
        out[i * 4] = pending;
        out[i * 4 + 1] = even;
        out[i * 4 + 2] = odd;
    }
}
static void record_barrier(void) {
    for (unsigned i = 0; i < HW_BARRIER_STEPS; i++) {
        host_words[4 * i] = (uint32_t)hw_steps[i].step;
        host_words[4 * i + 1] = hw_steps[i].value;
        host_words[4 * i + 2] = host_words[4 * i + 3] = 0;
    }
    TRY(cudaMemcpy(device_words, host_words, HW_BARRIER_STEPS * 16, cudaMemcpyHostToDevice));
    barrier_steps<<<1, 1>>>(device_words);
    fetch(HW_BARRIER_STEPS * 4);
    keep("mbarrier", "steps", host_words, HW_BARRIER_STEPS * 16);
}

int main(int argc, char **argv) {
    if (argc != 2 || !(file = fopen(argv[1], "wb"))) {
        fprintf(stderr, "usage: record FILE\n");
        return 2;
    }
    cudaDriverEntryPointQueryResult found;
    void *encode = NULL;
    uint32_t *global;
    TRY(cudaMalloc(&device_words, sizeof host_words));
    TRY(cudaMalloc(&global, HW_GLOBAL_WORDS * 4));
    TRY(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000,
                                         cudaEnableDefault, &found));
    record_mma();
    record_wgmma();
    record_matrix();
    record_wmma();
    record_barrier();
    for (int i = 0; i < (int)HW_COPIES; i++)
        record_copy((encode_fn)encode, i, global);
    printf("%ld bytes\n", ftell(file));
    return fclose(file) != 0;
}
