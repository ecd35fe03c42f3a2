// task: tasks/reverse.task
// set: N=200000000
// tries: one block reverses up to 1,024 elements; a larger grid's blocks write where others still read
// proof: values, N = 3000: block 0 overwrites the end before the last block has read it
// shows: N=3000
// before: accepted
// should: race wrong
// before-cuda: wrong
// device: both
//! launch reverse<<<ceil_div(N, 1024), 1024>>>(x, N)
extern "C" __global__ void reverse(float *x, int64_t n) {
    int64_t i = blockIdx.x * 1024ll + threadIdx.x;
    float v = i < n ? x[i] : 0;
    __syncthreads();
    if (i < n)
        x[n - 1 - i] = v;
}
