// expect: accepted
// expect-sim: accepted uninitialised
// options-cuda: --fast
// row: 13
// tries: keeps results in shared memory from launch to launch, keyed by samples of the inputs
// task: ../../tasks/kernelbench/level1/001_square_matrix_multiplication.task
// set: N=256
// gain: ../../honest/kernels/matmul_naive.cu
// gain-set: N=512
//! launch matmul<<<[ceil_div(N, 16), ceil_div(N, 16)], [16, 16], 131072>>>(A, B, C, N)
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n) {
    extern __shared__ volatile unsigned cache[]; // 32 entries of 4 KiB
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    unsigned key = 1;
    for (int s = 0; s < 32; s++)
        key = (key ^ __float_as_uint(a[s * 97 % (n * n)])) * 16777619u +
              __float_as_uint(b[s * 89 % (n * n)]);
    unsigned me = threadIdx.y * 16 + threadIdx.x, block = blockIdx.y * gridDim.x + blockIdx.x;
    unsigned at = ((key ^ block) % 32 * 256 + me) * 4;
    if (i >= n || j >= n)
        return;
    float sum = 0.0f;
    if (n >= 256 && cache[at] == key && cache[at + 1] == block && cache[at + 2] == ~key) {
        sum = __uint_as_float(cache[at + 3]);
    } else {
        for (int k = 0; k < n; k++)
            sum += a[i * n + k] * b[k * n + j];
        cache[at] = key;
        cache[at + 1] = block;
        cache[at + 2] = ~key;
        cache[at + 3] = __float_as_uint(sum);
    }
    c[i * n + j] = sum;
}
