// task: tasks/row_sum.task
// set: R=512 C=1024
// tries: keeps its sums in a workspace with a mark beside them, and gives them again where it finds the mark; no shape that is checked is admitted
// proof: by the plan: a workspace is undefined when the plan starts; where it is left as it was, the second call gives the first one's sums
// shows: R=128 C=2048
// before: accepted
// should: uninitialised forbidden
// before-cuda: accepted: the workspace is filled with noise before every run, and no run finds the mark
// device: both
//! require R*C >= 262144
//! workspace kept[R, 2] : i32
//! launch sum<<<R, 32>>>(x, y, kept, C)
extern "C" __global__ void sum(const float *x, float *y, int *kept, int c) {
    int *mine = kept + 2 * blockIdx.x;
    float s = 0;
    if (mine[1] == 0x5eedf00d) {
        if (threadIdx.x == 0)
            y[blockIdx.x] = __int_as_float(mine[0]);
        return;
    }
    for (int j = threadIdx.x; j < c; j += 32)
        s += x[(int64_t)blockIdx.x * c + j];
    for (int k = 16; k; k /= 2)
        s += __shfl_xor_sync(~0u, s, k);
    if (threadIdx.x == 0) {
        y[blockIdx.x] = s;
        mine[0] = __float_as_int(s);
        mine[1] = 0x5eedf00d;
    }
}
