// task: tasks/kernelbench/level1/039_l2_norm.task
// set: B=512 D=2048
// what: a block a row in float4, a tree in shared memory
//! require D % 4 == 0
//! launch normalise<<<B, 128>>>(x, y, D // 4)
extern "C" __global__ void normalise(const float4 *x, float4 *y, int quads) {
    __shared__ float part[128];
    const float4 *row = x + (long long)blockIdx.x * quads;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < quads; j += 128) {
        float4 v = row[j];
        sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 64; step > 0; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    float length = sqrtf(part[0]);
    for (int j = threadIdx.x; j < quads; j += 128) {
        float4 v = row[j];
        y[(long long)blockIdx.x * quads + j] =
            make_float4(v.x / length, v.y / length, v.z / length, v.w / length);
    }
}
