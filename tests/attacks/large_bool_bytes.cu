// task: tasks/above.task
// tries: writes 255 for true in rows beyond 4,096
// proof: values, R = 5000 C = 16: a truth value is 0 or 1
// shows: R=5000 C=16
// before: accepted
// should: wrong unwritten
// before-cuda: wrong
// device: both
//! launch above<<<R, 128>>>(x, y, C)
extern "C" __global__ void above(const float *x, unsigned char *y, int c) {
    for (int j = threadIdx.x; j < c; j += 128) {
        int64_t i = (int64_t)blockIdx.x * c + j;
        y[i] = x[i] > 0.5f ? (blockIdx.x < 4096 ? 1 : 255) : 0;
    }
}
