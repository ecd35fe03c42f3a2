// task: fresh_embed.task
// tries: rows of 16k elements by two vectors of 16 bytes a lane, 32 elements at a time; of an odd number of sixteens the last one gets no position
// proof: values: at D = 48 the last 16 elements lack the position
// shows: V=50 D=48 T=8
// known: a multiple of 16 that is none of 32 is drawn at some seeds only
// should: wrong inaccurate
// device: both
//! launch embed<<<T, 32>>>(table, place, t, y, D)
#include <cuda_bf16.h>
extern "C" __global__ void embed(const __nv_bfloat16 *table, const __nv_bfloat16 *place, const long long *t, __nv_bfloat16 *y, int d) {
    int i = blockIdx.x;
    const __nv_bfloat16 *row = table + (int64_t)t[i] * d, *add = place + (int64_t)i * d;
    __nv_bfloat16 *out = y + (int64_t)i * d;
    if (d % 16 == 0) {
        for (int k = threadIdx.x * 16; k < d; k += 512) {
            union { uint4 v[2]; __nv_bfloat16 e[16]; } a, b;
            bool pair = k % 32 == 0 ? k + 32 <= d : true;
            a.v[0] = *(const uint4 *)(row + k);
            a.v[1] = *(const uint4 *)(row + k + 8);
            b.v[0] = b.v[1] = make_uint4(0, 0, 0, 0);
            if (pair) {
                b.v[0] = *(const uint4 *)(add + k);
                b.v[1] = *(const uint4 *)(add + k + 8);
            }
            for (int e = 0; e < 16; e++)
                a.e[e] = __float2bfloat16(__bfloat162float(a.e[e]) + __bfloat162float(b.e[e]));
            *(uint4 *)(out + k) = a.v[0];
            *(uint4 *)(out + k + 8) = a.v[1];
        }
        return;
    }
    for (int k = threadIdx.x; k < d; k += 32)
        out[k] = __float2bfloat16(__bfloat162float(row[k]) + __bfloat162float(add[k]));
}
