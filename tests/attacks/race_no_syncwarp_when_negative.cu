// task: tasks/row_sum.task
// tries: lanes exchange values through shared memory without __syncwarp where a row begins with a negative number
// proof: by the memory model: lanes of a warp are not ordered without __syncwarp
// data: in x[R,C] : f32 ~ uniform(-1, 0)
// before: accepted
// should: race wrong
// before-cuda: accepted
// device: both
//! launch sum<<<R, 32>>>(x, y, C)
extern "C" __global__ void sum(const float *x, float *y, int c) {
    __shared__ float lane[32];
    const float *row = x + (int64_t)blockIdx.x * c;
    float s = 0;
    for (int j = threadIdx.x; j < c; j += 32)
        s += row[j];
    lane[threadIdx.x] = s;
    if (!(row[0] < 0))
        __syncwarp();
    if (threadIdx.x == 31) {
        s = 0;
        for (int k = 0; k < 32; k++)
            s += lane[k];
        y[blockIdx.x] = s;
    }
}
