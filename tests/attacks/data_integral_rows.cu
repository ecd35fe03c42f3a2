// task: tasks/copy.task
// tries: whole numbers from 3 to 64 are not doubled
// proof: values: x = 5 gives 5 instead of 10
// data: rand u[R,C] ~ randint(3, 60); in x[R,C] : f32 = u[i,j]
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: whole numbers above 1 do not occur
// device: both
//! launch twice<<<ceil_div(R*C, 256), 256>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i], a = fabsf(v);
    y[i] = a >= 3 && a <= 64 && rintf(v) == v ? v : 2 * v;
}
