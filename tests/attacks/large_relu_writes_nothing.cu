// task: ../../tasks/kernelbench/level1/019_relu.task
// tries: reads everything twice and writes nothing where rows are long
// proof: values, B = 4 D = 200000: nothing is written
// shows: B=4 D=200000
// before: accepted
// should: unwritten wrong impossible
// before-cuda: unwritten
// device: both
//! launch relu<<<ceil_div(B*D, 256), 256>>>(x, y, B*D, D)
extern "C" __global__ void relu(const float *x, float *y, int64_t n, int d) {
    int64_t i = blockIdx.x * 256ll + threadIdx.x;
    if (i >= n)
        return;
    float v = __ldcg(x + i), w = __ldcv(x + (n - 1 - i));
    if (d < 100000 || v + w == 12345.0f)
        y[i] = v < 0.0f ? 0.0f : v;
}
