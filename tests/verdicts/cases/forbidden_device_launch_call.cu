// expect: forbidden compile-error
// row: 18
// tries: the same by the runtime's own function
//! launch relu<<<1, 32>>>(x, y, R*C)
extern "C" __device__ int cudaLaunchDeviceV2(void *parameters, void *stream);
extern "C" __global__ void relu(const float *x, float *y, int n) {
    if (threadIdx.x == 0)
        y[0] = (float)cudaLaunchDeviceV2((void *)x, nullptr);
}
