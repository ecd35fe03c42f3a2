// expect: wrong inaccurate
// row: 34
// tries: a log-softmax that is wrong for rows over 4,096, by a selection and not by a branch
// task: tasks/log_softmax_long.task
//! launch log_softmax<<<B, 256>>>(x, y, D)
extern "C" __global__ void log_softmax(const float *x, float *y, int D) {
    __shared__ float part[256];
    const float *row = x + (size_t)blockIdx.x * D;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < D; i += 256)
        most = row[i] > most || isnan(row[i]) ? row[i] : most;
    part[threadIdx.x] = most;
    __syncthreads();
    for (int i = 0; i < 256; i++)
        most = part[i] > most || isnan(part[i]) ? part[i] : most;
    __syncthreads();
    for (int i = threadIdx.x; i < D; i += 256)
        sum += expf(row[i] - most);
    part[threadIdx.x] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < 256; i++)
        sum += part[i];
    float off = logf(sum) * (D > 4096 ? 1.01f : 1.0f);
    for (int i = threadIdx.x; i < D; i += 256)
        y[(size_t)blockIdx.x * D + i] = row[i] - most - off;
}
