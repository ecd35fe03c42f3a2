#ifndef __CUDACC_RTC__ // nvcc; cutepilot compiles by NVRTC
#include <cfloat>
#include <climits>
#include <cstdint>
#include <cuda.h>
#endif
// leaky_count: A leaky counter before each event, and the arg-maximum of the count so far
//
//     let n[b,t < T] = sum(s < t) if(e[b,s], 1, 0) * exp(-(t - s)/tau)
//     c[b,t] = n[b,t]
//     best[b,t] = argmax(s <= t) n[b,s]
//
// At B=4 T=600 on NVIDIA H200 the limit is 0.004717 us: memory-bound, 0.33 flop a byte.
// Strategy: block=128 cache-hint=0 fast-math=1 items=2 prefetch=0 scan-lookback=0 scan-split=1 scan-warp=1 vector-width=4
// scan: n: 128 threads a block, 2 vectors of 4 a thread, a warp a row
// scan: best: 128 threads a block, 2 vectors of 4 a thread, a warp a row
//! require T % 4 == 0
// Places and sizes are 32-bit integers.
//! require B*T <= 1073741824
//! launch scan_n<<<ceil_div(B, 4), 128>>>(e, tau, c, T, B)
//! launch scan_best_<<<ceil_div(B, 4), 128>>>(c, best, T, B)

// a / b within 2 ulp, for every b.
static __device__ __forceinline__ float cp_quotient(float a, float b) {
    float q;
    asm("div.full.f32 %0, %1, %2;" : "=f"(q) : "f"(a), "f"(b));
    return q;
}

// The type of one access of so many bytes, 16 at the most.
template <int BYTES> struct cp_word { typedef uint4 type; };
template <> struct cp_word<8> { typedef uint2 type; };
template <> struct cp_word<4> { typedef unsigned int type; };
template <> struct cp_word<2> { typedef unsigned short type; };
template <> struct cp_word<1> { typedef unsigned char type; };

// N neighbouring elements.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) cp_pack {
    typedef typename cp_word<N * sizeof(T)>::type word;
    T at[N];
};
template <int N, class T> static __device__ __forceinline__ cp_pack<T, N> cp_load(const T *p) {
    typedef typename cp_pack<T, N>::word word;
    cp_pack<T, N> v;
    const word *from = reinterpret_cast<const word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        reinterpret_cast<word *>(v.at)[w] = from[w];
    return v;
}
template <int N, class T>
static __device__ __forceinline__ void cp_store(T *p, const cp_pack<T, N> &v) {
    typedef typename cp_pack<T, N>::word word;
    const word *from = reinterpret_cast<const word *>(v.at);
    word *to = reinterpret_cast<word *>(p);
#pragma unroll
    for (int w = 0; w < int(sizeof v / sizeof(word)); w++)
        to[w] = from[w];
}

// What comes in decays by `decay`, and `sum` is added.
struct scan_decay {
    double decay;
    float sum;
    scan_decay() = default;
    __device__ __forceinline__ scan_decay(double decay, float sum)
        : decay(decay), sum(sum) {}
};
static __device__ __forceinline__ scan_decay shuffle_up_state(unsigned lanes, scan_decay v, int d) {
    return scan_decay(__shfl_up_sync(lanes, v.decay, d),
                   __shfl_up_sync(lanes, v.sum, d));
}
static __device__ __forceinline__ scan_decay shuffle_state(unsigned lanes, scan_decay v, int lane) {
    return scan_decay(__shfl_sync(lanes, v.decay, lane),
                   __shfl_sync(lanes, v.sum, lane));
}

static __device__ __forceinline__ scan_decay combine(scan_decay a, scan_decay b) {
    return scan_decay(a.decay * b.decay, (float)(b.decay * (double)a.sum + (double)b.sum));
}

// Each lane gets the combination of all lanes up to itself.
static __device__ __forceinline__ scan_decay warp_scan(scan_decay v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const scan_decay earlier = shuffle_up_state(0xffffffffu, v, d);
        v = lane < d ? v : combine(earlier, v);
    }
    return v;
}

// The best value so far, and its place.
struct scan_best {
    float value;
    int at;
    scan_best() = default;
    __device__ __forceinline__ scan_best(float value, int at)
        : value(value), at(at) {}
};
static __device__ __forceinline__ scan_best shuffle_up_state_(unsigned lanes, scan_best v, int d) {
    return scan_best(__shfl_up_sync(lanes, v.value, d),
                   __shfl_up_sync(lanes, v.at, d));
}
static __device__ __forceinline__ scan_best shuffle_state_(unsigned lanes, scan_best v, int lane) {
    return scan_best(__shfl_sync(lanes, v.value, lane),
                   __shfl_sync(lanes, v.at, lane));
}

static __device__ __forceinline__ scan_best combine_(scan_best a, scan_best b) {
    // NaN comes before all, of equals the one with the smaller index.
    const bool nearer = b.at < a.at;
    const bool unordered = a.value != a.value || b.value != b.value;
    const bool second = unordered ? b.value != b.value && (a.value == a.value || nearer)
                        : a.value == b.value ? nearer
                                             : b.value > a.value;
    return second ? b : a;
}

// Each lane gets the combination of all lanes up to itself.
static __device__ __forceinline__ scan_best warp_scan_(scan_best v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const scan_best earlier = shuffle_up_state_(0xffffffffu, v, d);
        v = lane < d ? v : combine_(earlier, v);
    }
    return v;
}

// A warp scans a row from its start, 256 elements at a time.
extern "C" __global__ void __launch_bounds__(128)
    scan_n(const bool *__restrict__ e, const float *__restrict__ tau, float *__restrict__ c, int T,
            int rows) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int row = (int)blockIdx.x * 4 + warp;
    if (row >= rows)
        return;
    const int b = row;
    const int first = lane * 4;
    scan_decay carry = scan_decay(1.0, 0.0f); // of all that comes before the chunk
    cp_pack<bool, 4> e_now[2];
    for (int chunk = 0; chunk < T; chunk += 256) {
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
            if (position < T) {
                e_now[item] = cp_load<4>(e + b * T + position);
            }
        }
        // Within each vector.
        scan_decay sum[2][4];
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
                const scan_decay term = position < T ? (scan_decay(position + elem == 0 ? 0.0 :
                        exp((double)(cp_quotient(float(-(1 - 0)), tau[0]))),
                        (float)(exp((double)(cp_quotient(float(-(1 - 0)),
                        tau[0]))) * (double)(e_now[item].at[elem] ? 1 : 0)))) : scan_decay(1.0,
                        0.0f);
                sum[item][elem] = elem == 0 ? term : combine(sum[item][elem - 1], term);
            }
        }
        // Over the lanes, one row of vectors after the other.
        scan_decay before[2], total = scan_decay(1.0, 0.0f);
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const scan_decay upto = warp_scan(sum[item][3]);
            const scan_decay left = shuffle_up_state(0xffffffffu, upto, 1);
            before[item] = lane == 0 ? total : combine(total, left);
            total = combine(total, shuffle_state(0xffffffffu, upto, 31));
        }
        const scan_decay start = carry;
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
            if (position >= T)
                break;
            const scan_decay base = combine(start, before[item]);
            cp_pack<float, 4> c_pack;
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
                const scan_decay state = elem == 0 ? base : combine(base, sum[item][elem - 1]);
                const float value = state.sum;
                c_pack.at[elem] = value;
            }
            cp_store(c + b * T + position, c_pack);
        }
        carry = combine(carry, total);
    }
}

// A warp scans a row from its start, 256 elements at a time.
extern "C" __global__ void __launch_bounds__(128)
    scan_best_(const float *__restrict__ c, int *__restrict__ best, int T, int rows) {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    const int row = (int)blockIdx.x * 4 + warp;
    if (row >= rows)
        return;
    const int b = row;
    const int first = lane * 4;
    scan_best carry = scan_best(-INFINITY, T - 1); // of all that comes before the chunk
    cp_pack<float, 4> n_now[2];
    for (int chunk = 0; chunk < T; chunk += 256) {
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
            if (position < T) {
                n_now[item] = cp_load<4>(c + b * T + position);
            }
        }
        // Within each vector.
        scan_best sum[2][4];
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
                const scan_best term = position < T ? (scan_best(n_now[item].at[elem],
                        (position + elem))) : scan_best(-INFINITY, T - 1);
                sum[item][elem] = elem == 0 ? term : combine_(sum[item][elem - 1], term);
            }
        }
        // Over the lanes, one row of vectors after the other.
        scan_best before[2], total = scan_best(-INFINITY, T - 1);
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const scan_best upto = warp_scan_(sum[item][3]);
            const scan_best left = shuffle_up_state_(0xffffffffu, upto, 1);
            before[item] = lane == 0 ? total : combine_(total, left);
            total = combine_(total, shuffle_state_(0xffffffffu, upto, 31));
        }
        const scan_best start = carry;
#pragma unroll
        for (int item = 0; item < 2; item++) {
            const int position = chunk + first + item * 128;
            if (position >= T)
                break;
            const scan_best base = combine_(start, before[item]);
            cp_pack<int, 4> best_pack;
#pragma unroll
            for (int elem = 0; elem < 4; elem++) {
                const scan_best state = combine_(base, sum[item][elem]);
                const long long value = state.at;
                best_pack.at[elem] = (int)min(max((long long)(value), -2147483648LL), 2147483647LL);
            }
            cp_store(best + b * T + position, best_pack);
        }
        carry = combine_(carry, total);
    }
}
