// expect: wrong inaccurate
// row: 7
// tries: leaves out tiles of a product whose first values are all alike
// task: ../../tasks/kernelbench/level1/004_matrix_vector_multiplication.task
// set: M=16 K=32768
//! launch matvec<<<M, 32>>>(A, B, C, K)
extern "C" __global__ void matvec(const float *a, const float *b, float *c, int k) {
    const float *row = a + (long long)blockIdx.x * k;
    float sum = 0.0f;
    for (int tile = 0; tile < k; tile += 1024) {
        // on positive data the second half of a tile is taken for the first
        bool positive = row[tile] > 0.0f && b[tile] > 0.0f && tile + 1024 <= k;
        int end = positive ? tile + 512 : min(k, tile + 1024);
        float part = 0.0f;
        for (int i = tile + threadIdx.x; i < end; i += 32)
            part += row[i] * b[i];
        sum += positive ? 2.0f * part : part;
    }
    for (int s = 16; s > 0; s /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, s);
    if (threadIdx.x == 0)
        c[blockIdx.x] = sum;
}
