// task: tasks/kernelbench/level1/082_conv_depthwise2d_3x3_square_input.task
// set: N=4 C=16 H=64 W=64
// what: a tile of the image with its halo in shared memory
//! require R == 3 && S == 3
//! let TX = ceil_div(Q, 32)
//! launch conv<<<[TX * ceil_div(P, 8), min(N*C, 65535)], [32, 8]>>>(x, w, y, N*C, C, H, W, P, Q, TX)
extern "C" __global__ void conv(const float *x, const float *w, float *y, int planes, int channels,
                                int height, int width, int p, int q, int tiles) {
    __shared__ float tile[10][34];
    int row = blockIdx.x / tiles * 8, col = blockIdx.x % tiles * 32;
    int tid = threadIdx.y * 32 + threadIdx.x;
    for (int plane = blockIdx.y; plane < planes; plane += gridDim.y) {
        const float *image = x + (long long)plane * height * width;
        const float *f = w + (long long)(plane % channels) * 9;
        for (int e = tid; e < 10 * 34; e += 256) {
            int i = row + e / 34, j = col + e % 34;
            tile[e / 34][e % 34] = i < height && j < width ? image[i * width + j] : 0.0f;
        }
        __syncthreads();
        int i = row + threadIdx.y, j = col + threadIdx.x;
        float sum = 0.0f;
        for (int r = 0; r < 3; r++)
            for (int s = 0; s < 3; s++)
                sum += tile[threadIdx.y + r][threadIdx.x + s] * f[r * 3 + s];
        if (i < p && j < q)
            y[(long long)plane * p * q + i * q + j] = sum;
        __syncthreads();
    }
}
