// task: tasks/row_sum.task
// tries: reads its own workspace through the read-only path where a row begins with a negative number
// proof: by PTX: ld.global.nc of what the same kernel wrote may give what was there before
// data: in x[R,C] : f32 ~ uniform(-1, 0)
// before: accepted
// should: race wrong
// known-sim: the row that shows it is drawn at some seeds only
// before-cuda: accepted
// device: both
//! workspace part[R, 128] : f32
//! launch sum<<<R, 128>>>(x, y, part, C)
extern "C" __global__ void sum(const float *x, float *y, float *part, int c) {
    const float *row = x + (int64_t)blockIdx.x * c;
    float *mine = part + blockIdx.x * 128, s = 0;
    for (int j = threadIdx.x; j < c; j += 128)
        s += row[j];
    mine[threadIdx.x] = s;
    __syncthreads();
    if (threadIdx.x)
        return;
    s = 0;
    for (int k = 0; k < 128; k++)
        s += row[0] < 0 ? __ldg(mine + k) : mine[k];
    y[blockIdx.x] = s;
}
