// task: tasks/layers/embedding_bag.task
// set: V=2000 D=128 B=512 L=32
// what: a block a bag, its rows named in shared memory
//! require L <= 4096
//! launch bag_mean<<<B, 128, 8*L>>>(table, bag, y, D, L)
extern "C" __global__ void bag_mean(const float *table, const long long *bag, float *y, int d,
                                    int length) {
    extern __shared__ long long rows[];
    for (int l = threadIdx.x; l < length; l += blockDim.x)
        rows[l] = bag[(long long)blockIdx.x * length + l];
    __syncthreads();
    for (int j = threadIdx.x; j < d; j += blockDim.x) {
        float sum = 0.0f;
        for (int l = 0; l < length; l++)
            sum += table[rows[l] * d + j];
        y[(long long)blockIdx.x * d + j] = sum / length;
    }
}
