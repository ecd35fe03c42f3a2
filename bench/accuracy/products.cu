// How exact are matrix products on this GPU? One product C = A·B, by every method that a kernel of
// an accuracy class might use.
//
//     products DIR M N K      M a multiple of 16, N of 8, K of 16
//
// reads DIR/a.npy [M,K] and DIR/b.npy [K,N], fp32, writes each method's C as DIR/METHOD.npy, and
// prints `METHOD RMS MAX`: its error against fp64 in units of 2^-24·Σ|a||b| of each element.
//
// Nothing here is fast. A warp computes a 16x8 tile from global memory with mma.sync, so that what
// happens to the numbers stands in one place (struct accumulator) and is the same for every format.
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        int status = (int)(call);                                                                  \
        if (status) {                                                                              \
            fprintf(stderr, "products: %s: error %d\n", #call, status);                            \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

struct shape {
    int m, n, k;
};

// ---- formats of a tensor core ----
//
// A format says how a number is rounded to it, what the rounded number is worth, and which
// instruction multiplies. `step` is the instruction's K. Element e of a lane's fragment lies at
// (row, column) of A and at row of B, whose column is the lane's group; the layouts are PTX's.

template <int step> struct layout;

template <> struct layout<8> {
    static __device__ int a_row(int e, int group) { return group + 8 * (e & 1); }
    static __device__ int a_column(int e, int thread) { return thread + 4 * (e >> 1); }
    static __device__ int b_row(int e, int thread) { return thread + 4 * e; }
};

template <> struct layout<16> {
    static __device__ int a_row(int e, int group) { return group + 8 * (e >> 1 & 1); }
    static __device__ int a_column(int e, int thread) { return 2 * thread + (e & 1) + 8 * (e >> 2); }
    static __device__ int b_row(int e, int thread) { return 2 * thread + (e & 1) + 8 * (e >> 1); }
};

struct tf32 {
    static constexpr int step = 8, per_register = 1;
    static constexpr float scale = 1; // of each further part against the one before
    static __device__ uint32_t round(float v) {
        uint32_t r;
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
        return r;
    }
    static __device__ float value(uint32_t r) { return __uint_as_float(r); }
    static __device__ void multiply(float *d, const uint32_t *a, const uint32_t *b) {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

// The bits of an fp32 as they are: the tensor core ignores those it does not know.
struct tf32_raw : tf32 {
    static __device__ uint32_t round(float v) { return __float_as_uint(v); }
};

struct bf16 {
    static constexpr int step = 16, per_register = 2;
    static constexpr float scale = 1;
    static __device__ uint32_t round(float v) {
        return __bfloat16_as_ushort(__float2bfloat16_rn(v));
    }
    static __device__ float value(uint32_t r) { return __uint_as_float(r << 16); }
    static __device__ void multiply(float *d, const uint32_t *a, const uint32_t *b) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

struct fp16 {
    static constexpr int step = 16, per_register = 2;
    static constexpr float scale = 2048; // 2^11: the low part keeps its bits though the range is small
    static __device__ uint32_t round(float v) { return __half_as_ushort(__float2half_rn(v)); }
    static __device__ float value(uint32_t r) {
        return __half2float(__ushort_as_half((unsigned short)r));
    }
    static __device__ void multiply(float *d, const uint32_t *a, const uint32_t *b) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
            "{%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

// ---- one method: a format, the number of parts, and when sums leave the tensor core ----

// A number as `parts` numbers of the format, largest first: v = p0 + p1/scale + p2/scale² …
template <class F, int parts, int elements> struct split_fragment {
    uint32_t part[parts][elements / F::per_register];

    __device__ void set(int e, float v) {
        float rest = v;
        for (int p = 0; p < parts; p++) {
            uint32_t r = F::round(rest);
            rest = (rest - F::value(r)) * F::scale;
            int at = e / F::per_register, shift = e % F::per_register * 16;
            part[p][at] = shift ? part[p][at] | r << shift : r;
        }
    }
};

// Products of parts i and j with i + j < parts: 1, 3 or 6 of them, small ones first. Scaled formats
// have an accumulator for each order i + j, others one for all. Every `promote` of K (0: never) the
// accumulators are added to an fp32 register, which rounds where the tensor core truncates.
template <class F, int parts, int promote> struct accumulator {
    static constexpr int orders = F::scale == 1 ? 1 : parts;
    float core[orders][4] = {}, sum[4] = {};

    template <class A, class B> __device__ void add(const A &a, const B &b) {
        for (int order = parts - 1; order >= 0; order--)
            for (int i = 0; i <= order; i++)
                F::multiply(core[orders == 1 ? 0 : order], a.part[i], b.part[order - i]);
    }
    __device__ void flush() {
        for (int e = 0; e < 4; e++) {
            float all = 0;
            for (int o = orders - 1; o >= 0; o--) {
                all = core[o][e] + all / F::scale;
                core[o][e] = 0;
            }
            sum[e] += all;
        }
    }
    __device__ void after(int k) {
        if (promote && k % (promote ? promote : 1) == 0)
            flush();
    }
};

template <class F, int parts, int promote>
__global__ void product(const float *a, const float *b, float *c, shape s) {
    using at = layout<F::step>;
    constexpr int a_elements = F::step / 2, b_elements = F::step / 4;
    int lane = threadIdx.x, group = lane / 4, thread = lane % 4;
    int row = blockIdx.y * 16, column = blockIdx.x * 8;
    accumulator<F, parts, promote> acc;
    for (int k = 0; k < s.k; k += F::step) {
        split_fragment<F, parts, a_elements> fa;
        split_fragment<F, parts, b_elements> fb;
        for (int e = 0; e < a_elements; e++)
            fa.set(e, a[(size_t)(row + at::a_row(e, group)) * s.k + k + at::a_column(e, thread)]);
        for (int e = 0; e < b_elements; e++)
            fb.set(e, b[(size_t)(k + at::b_row(e, thread)) * s.n + column + group]);
        acc.add(fa, fb);
        acc.after(k + F::step);
    }
    acc.flush();
    for (int e = 0; e < 4; e++)
        c[(size_t)(row + group + 8 * (e >> 1)) * s.n + column + 2 * thread + (e & 1)] = acc.sum[e];
}

// ---- plain loops ----

__global__ void product_fma(const float *a, const float *b, float *c, shape s) {
    int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; j < s.n && k < s.k; k++)
        sum = fmaf(a[(size_t)i * s.k + k], b[(size_t)k * s.n + j], sum);
    if (j < s.n)
        c[(size_t)i * s.n + j] = sum;
}

__global__ void product_fp64(const float *a, const float *b, double *c, double *magnitude,
                             shape s) {
    int i = blockIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0, all = 0;
    for (int k = 0; j < s.n && k < s.k; k++) {
        double term = (double)a[(size_t)i * s.k + k] * (double)b[(size_t)k * s.n + j];
        sum += term;
        all += fabs(term);
    }
    if (j < s.n) {
        c[(size_t)i * s.n + j] = sum;
        magnitude[(size_t)i * s.n + j] = all;
    }
}

// ---- the methods ----

struct bench {
    shape s;
    const float *a, *b;
    float *c;
    cublasHandle_t blas;
};

template <class F, int parts, int promote> void run_core(const bench &t) {
    product<F, parts, promote><<<dim3(t.s.n / 8, t.s.m / 16), 32>>>(t.a, t.b, t.c, t.s);
}

void run_fma(const bench &t) {
    product_fma<<<dim3((t.s.n + 127) / 128, t.s.m), 128>>>(t.a, t.b, t.c, t.s);
}

// cuBLAS is column-major: Cᵀ = Bᵀ·Aᵀ.
template <cublasComputeType_t compute> void run_cublas(const bench &t) {
    float one = 1, zero = 0;
    MUST(cublasGemmEx(t.blas, CUBLAS_OP_N, CUBLAS_OP_N, t.s.n, t.s.m, t.s.k, &one, t.b, CUDA_R_32F,
                      t.s.n, t.a, CUDA_R_32F, t.s.k, &zero, t.c, CUDA_R_32F, t.s.n, compute,
                      CUBLAS_GEMM_DEFAULT));
}

static const struct {
    const char *name;
    void (*run)(const bench &);
} methods[] = {
    {"fma", run_fma},
    {"cublas_fp32", run_cublas<CUBLAS_COMPUTE_32F>},
    {"tf32x3_core", run_core<tf32, 2, 0>},
    {"tf32x3_32", run_core<tf32, 2, 32>},
    {"tf32x3_128", run_core<tf32, 2, 128>},
    {"fp16x3_128", run_core<fp16, 2, 128>},
    {"bf16x6_core", run_core<bf16, 3, 0>},
    {"bf16x6_128", run_core<bf16, 3, 128>},
    {"bf16x3_core", run_core<bf16, 2, 0>},
    {"tf32_core", run_core<tf32, 1, 0>},
    {"cublas_tf32", run_cublas<CUBLAS_COMPUTE_32F_FAST_TF32>},
    {"tf32_cut", run_core<tf32_raw, 1, 0>},
    {"bf16_core", run_core<bf16, 1, 0>},
};

// ---- files ----

static std::vector<float> read_npy(const std::string &path, size_t count) {
    FILE *f = fopen(path.c_str(), "rb");
    unsigned char head[10];
    std::vector<float> data(count);
    if (!f || fread(head, 1, 10, f) != 10 || memcmp(head, "\x93NUMPY\x01", 7)) {
        fprintf(stderr, "products: %s: no .npy file of version 1\n", path.c_str());
        exit(2);
    }
    fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET);
    if (fread(data.data(), 4, count, f) != count || fgetc(f) != EOF) {
        fprintf(stderr, "products: %s: not %zu fp32 numbers\n", path.c_str(), count);
        exit(2);
    }
    fclose(f);
    return data;
}

static void write_npy(const std::string &path, const std::vector<float> &data, shape s) {
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10); // a head of 128 bytes
    int n = snprintf(head + 10, sizeof head - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", s.m, s.n);
    head[10 + n] = ' ';
    head[127] = '\n';
    FILE *f = fopen(path.c_str(), "wb");
    if (!f || fwrite(head, 1, 128, f) != 128 ||
        fwrite(data.data(), 4, data.size(), f) != data.size() || fclose(f)) {
        fprintf(stderr, "products: cannot write %s\n", path.c_str());
        exit(3);
    }
}

// ---- from here on the host ----

template <class T> static T *on_device(size_t count, const T *from) {
    T *p;
    MUST(cudaMalloc(&p, count * sizeof(T)));
    if (from)
        MUST(cudaMemcpy(p, from, count * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <class T> static std::vector<T> from_device(const T *p, size_t count) {
    std::vector<T> v(count);
    MUST(cudaMemcpy(v.data(), p, count * sizeof(T), cudaMemcpyDeviceToHost));
    return v;
}

static void report(const char *name, const std::vector<float> &c, const std::vector<double> &exact,
                   const std::vector<double> &magnitude) {
    double squares = 0, worst = 0;
    for (size_t i = 0; i < c.size(); i++) {
        double e = fabs((double)c[i] - exact[i]) / (magnitude[i] * 0x1p-24);
        squares += e * e;
        worst = e <= worst ? worst : e; // NaN becomes the worst
    }
    printf("%s %.3g %.3g\n", name, sqrt(squares / (double)c.size()), worst);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: products DIR M N K\n");
        return 2;
    }
    std::string dir = argv[1];
    shape s = {(int)strtol(argv[2], NULL, 10), (int)strtol(argv[3], NULL, 10),
               (int)strtol(argv[4], NULL, 10)};
    if (s.m <= 0 || s.m % 16 || s.n <= 0 || s.n % 8 || s.k <= 0 || s.k % 16) {
        fprintf(stderr, "products: M must be a multiple of 16, N of 8, K of 16\n");
        return 2;
    }
    size_t count = (size_t)s.m * s.n;
    std::vector<float> a = read_npy(dir + "/a.npy", (size_t)s.m * s.k);
    std::vector<float> b = read_npy(dir + "/b.npy", (size_t)s.k * s.n);
    bench t = {s, on_device(a.size(), a.data()), on_device(b.size(), b.data()),
               on_device<float>(count, nullptr), nullptr};
    double *exact = on_device<double>(count, nullptr), *all = on_device<double>(count, nullptr);
    MUST(cublasCreate(&t.blas));
    product_fp64<<<dim3((s.n + 127) / 128, s.m), 128>>>(t.a, t.b, exact, all, s);
    MUST(cudaDeviceSynchronize());
    std::vector<double> want = from_device(exact, count), magnitude = from_device(all, count);
    for (const auto &m : methods) {
        MUST(cudaMemset(t.c, 0xff, count * sizeof(float))); // NaN where nothing is written
        m.run(t);
        MUST(cudaGetLastError());
        MUST(cudaDeviceSynchronize());
        std::vector<float> c = from_device(t.c, count);
        write_npy(dir + "/" + m.name + ".npy", c, s);
        report(m.name, c, want, magnitude);
    }
    return 0;
}
