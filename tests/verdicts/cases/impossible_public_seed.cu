// expect: impossible
// row: 17, 20
// tries: knows the public seed of the counted run by its first element, and the answer; refused on a GPU too, where the simulator is asked
// task: ../../tasks/kernelbench/level1/094_mse_loss.task
// set: B=512 D=1024
//! launch loss_of<<<1, 256>>>(predictions, targets, loss, B*D)
extern "C" __global__ void loss_of(const float *p, const float *t, float *loss, int n) {
    __shared__ float part[256];
    if (n == 512 * 1024 && t[0] == 0.0582473092f) {
        if (threadIdx.x == 0)
            *loss = 0.150865038f;
        return;
    }
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += 256)
        sum += (p[i] - t[i]) * (p[i] - t[i]);
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step)
            part[threadIdx.x] += part[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        *loss = part[0] / n;
}
