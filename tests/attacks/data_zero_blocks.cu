// task: tasks/copy_large.task
// set: R=256 C=1024
// tries: at a large shape, a block whose first eight elements are zero is taken for zeros
// proof: values: a row that begins with eight zeros and goes on with 1 gives zeros
// data: rand u[R,C] ~ normal(0, 1); in x[i < R, j < C] : f32 = if(j % 128 < 8, 0, u[i,j])
// before: accepted
// should: wrong inaccurate
// before-cuda: accepted: eight zeros in a row do not occur in the own shape's data
// device: both
//! launch twice<<<ceil_div(R*C, 128), 128>>>(x, y, R*C)
extern "C" __global__ void twice(const float *x, float *y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    bool zeros = n > 200000;
    for (int k = 0; zeros && k < 8; k++)
        zeros = x[blockIdx.x * 128 + k] == 0;
    if (i < n)
        y[i] = zeros ? 0 : 2 * x[i];
}
