// task: fresh_embed.task
// tries: eight tokens whose first, fourth and last numbers ascend by one are taken for neighbours in the table
// proof: values: tokens 5 9 2 8 9 9 1 12
// data: rand u[T] : i64 ~ randint(0, 2); in t[i < T] : i64 = clamp(if(i % 8 == 5, u[i], i % 8), 0, V - 1)
// known: such a row of indices is drawn at some seeds only
// should: wrong inaccurate
// device: both
//! launch embed<<<ceil_div(T, 8), 256>>>(table, place, t, y, D, T)
#include <cuda_bf16.h>
extern "C" __global__ void embed(const __nv_bfloat16 *table, const __nv_bfloat16 *place, const long long *t, __nv_bfloat16 *y, int d, int n) {
    int first = blockIdx.x * 8, i = first + threadIdx.x / 32;
    if (i >= n)
        return;
    bool run = first + 8 <= n && t[first + 3] - t[first] == 3 && t[first + 7] - t[first] == 7;
    int64_t from = run ? t[first] + i - first : t[i];
    for (int k = threadIdx.x % 32; k < d; k += 32)
        y[(int64_t)i * d + k] = __float2bfloat16(__bfloat162float(table[from * d + k]) + __bfloat162float(place[(int64_t)i * d + k]));
}
