// task: fresh_icumsum.task
// tries: rows whose elements are all below 4,096 are summed in fp32, exact up to 2^24, which longer rows exceed
// proof: values: 16,384 elements near 4,000 add up to 2^26, beyond what fp32 counts one by one
// shows: R=2 C=16384
// data: in x[R,C] : i32 ~ randint(3000, 4000)
// known: long rows of an integer scan do not reach 2^24
// should: wrong inaccurate
// device: both
//! launch offsets<<<R, 32>>>(x, y, C)
extern "C" __global__ void offsets(const int *x, int *y, int c) {
    const int *row = x + (int64_t)blockIdx.x * c;
    int *out = y + (int64_t)blockIdx.x * c;
    bool small = true;
    for (int j = threadIdx.x; j < c; j += 32)
        small &= row[j] > -4096 && row[j] < 4096;
    if (__all_sync(~0u, small)) {
        float carry = 0;
        for (int t = 0; t < c; t += 32) {
            int j = t + threadIdx.x;
            float v = j < c ? (float)row[j] : 0.0f, s = v;
            for (int k = 1; k < 32; k *= 2) {
                float o = __shfl_up_sync(~0u, s, k);
                if (threadIdx.x >= k)
                    s += o;
            }
            if (j < c)
                out[j] = (int)(carry + (s - v));
            carry += __shfl_sync(~0u, s, 31);
        }
        return;
    }
    int carry = 0;
    for (int t = 0; t < c; t += 32) {
        int j = t + threadIdx.x, v = j < c ? row[j] : 0, s = v;
        for (int k = 1; k < 32; k *= 2) {
            int o = __shfl_up_sync(~0u, s, k);
            if (threadIdx.x >= k)
                s += o;
        }
        if (j < c)
            out[j] = carry + s - v;
        carry += __shfl_sync(~0u, s, 31);
    }
}
