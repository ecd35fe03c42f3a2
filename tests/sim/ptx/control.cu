// Divergence, loops, switches, barriers, shuffles and votes: equal bits on an H200.
#define OUT 16
__device__ unsigned collatz(unsigned v) {
    unsigned steps = 0;
    for (v = v % 1000 + 1; v != 1; steps++)
        v = v & 1 ? 3 * v + 1 : v / 2;
    return steps;
}
__device__ unsigned choose(unsigned a, unsigned b) {
    switch (a % 9) {
    case 0: return b * 3;
    case 1: return b + 17;
    case 2: return b / 3;
    case 3: return b ^ 0x55;
    case 4: return b << 3;
    case 5: return b % 7;
    case 6: return b - 9;
    case 7: return b | 12345;
    default: return ~b;
    }
}
extern "C" __global__ void control(const unsigned *in, unsigned *out, int n) {
    __shared__ unsigned s[128];
    extern __shared__ unsigned d[];
    int t = threadIdx.x, i = blockIdx.x * 128 + t;
    unsigned a = i < n ? in[i] : 7, b = i < n ? in[n + i] : 9;
    unsigned r[OUT];
    r[0] = collatz(a);
    r[1] = choose(a, b);
    unsigned nested = 0;
    if (a & 1) {
        if (b & 1)
            nested = 1;
        else
            for (unsigned k = 0; k < (b & 15); k++)
                nested += k * a;
        nested += 10;
    } else if (a & 2) {
        nested = 20;
    }
    r[2] = nested;
    s[t] = a;
    d[t] = b;
    __syncthreads();
    r[3] = s[127 - t] + d[t ^ 5];
    r[4] = __syncthreads_count(a & 1);
    r[5] = __syncthreads_or(a == 3) + 2 * __syncthreads_and(b != 0);
    unsigned v = a;
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(~0u, v, o);
    r[6] = v;
    r[7] = __shfl_up_sync(~0u, a, 3);
    r[8] = __shfl_down_sync(~0u, a, 5, 16);
    r[9] = __shfl_sync(~0u, a, b, 8);
    r[10] = __ballot_sync(~0u, a > b);
    r[11] = __any_sync(~0u, a == 1) + 2 * __all_sync(~0u, a != 1);
    r[12] = __reduce_add_sync(~0u, a) ^ __reduce_max_sync(~0u, (int)a);
    r[13] = t & 1 ? __shfl_sync(0xaaaaaaaa, a, 3) : __shfl_sync(0x55555555, b, 4);
    r[14] = blockIdx.x * 1000 + blockDim.x + gridDim.x;
    __syncwarp();
    r[15] = t < 40 ? __popc(__ballot_sync(t < 32 ? ~0u : 0xff, a & 4)) : 0;
    if (i < n)
        for (int k = 0; k < OUT; k++)
            out[i * OUT + k] = r[k];
}
