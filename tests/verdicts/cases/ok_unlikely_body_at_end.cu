// expect: accepted
// row: -
// tries: a branch body that the compiler moves behind the barriers, to the end of the text
// task: ../../tasks/kernelbench/level1/038_l1_norm.task
// set: B=64 D=1023
//! launch normalise<<<B, 256>>>(x, y, D)
extern "C" __global__ void normalise(const float *x, float *y, int d) {
    __shared__ float warps[8];
    const float *row = x + (long long)blockIdx.x * d;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < d; j += 256) {
        float v = row[j];
        if (__builtin_expect(v < -0.25f, 0)) { // seldom, says the source; half of the lanes, say some
            asm volatile("abs.f32 %0, %0;" : "+f"(v));
            asm volatile("add.f32 %0, %0, 0f00000000;" : "+f"(v));
        }
        sum += fabsf(v);
    }
    if (__builtin_expect(sum > (float)(threadIdx.x & 7), 0)) {
        asm volatile("add.f32 %0, %0, 0f00000000;" : "+f"(sum));
        asm volatile("mul.f32 %0, %0, 0f3f800000;" : "+f"(sum));
    }
    __syncthreads();
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int w = 0; w < 8; w++)
        sum += warps[w];
    for (int j = threadIdx.x; j < d; j += 256)
        y[(long long)blockIdx.x * d + j] = row[j] / (sum / d);
}
