// task: ../../tasks/smoke/relu.task
// set: R=64 C=1024
// tries: leaves elements of its output as they are where they are right already, and looks at some only: where all four it looks at are, it takes 64 for right
// proof: by the rules: an output is undefined before it is written; where the last call's result lies in it, 60 elements of 64 are not looked at
// before: uninitialised 4 of 6, accepted 2 of 6
// should: uninitialised unwritten wrong
// before-cuda: accepted: outputs are filled with poison before every run
// device: both
//! launch relu<<<ceil_div(R*C, 64), 64>>>(x, y, R*C)
extern "C" __global__ void relu(const float *x, float *y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    bool done = n > 20000;
    for (int k = 0; done && k < 64; k += 16) {
        int j = blockIdx.x * 64 + k;
        float v = j < n ? x[j] : 0;
        done = j < n && y[j] == (v < 0.0f ? 0.0f : v);
    }
    __syncthreads();
    if (i < n && !done)
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
}
