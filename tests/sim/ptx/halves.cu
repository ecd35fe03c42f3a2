// f16 and bf16, alone and in pairs: equal bits on an H200.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define OUT 24
extern "C" __global__ void halves(const unsigned *in, unsigned *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned a = in[i], b = in[n + i], c = in[2 * n + i];
    __half2 x = *(__half2 *)&a, y = *(__half2 *)&b, z = *(__half2 *)&c;
    __nv_bfloat162 p = *(__nv_bfloat162 *)&a, q = *(__nv_bfloat162 *)&b, r = *(__nv_bfloat162 *)&c;
    unsigned *o = out + i * OUT;
    __half2 h[7] = {__hadd2(x, y),  __hmul2(x, y),  __hfma2(x, y, z), __hsub2(x, y),
                    __hmax2(x, y), __hmin2_nan(x, y), __hgt2(x, y)};
    __nv_bfloat162 f[6] = {__hadd2(p, q),  __hmul2(p, q),     __hfma2(p, q, r),
                           __hmax2(p, q), __hmin2_nan(p, q), __hle2(p, q)};
    for (int k = 0; k < 7; k++)
        o[k] = *(unsigned *)&h[k];
    for (int k = 0; k < 6; k++)
        o[7 + k] = *(unsigned *)&f[k];
    float u = __uint_as_float(a), v = __uint_as_float(b);
    o[13] = __half_as_ushort(__float2half_rn(u));
    o[14] = __bfloat16_as_ushort(__float2bfloat16_rn(u));
    o[15] = __float_as_uint(__low2float(x));
    o[16] = __float_as_uint(__high2float(p));
    __half2 hv = __floats2half2_rn(u, v);
    __nv_bfloat162 bv = __floats2bfloat162_rn(u, v);
    o[17] = *(unsigned *)&hv;
    o[18] = *(unsigned *)&bv;
    o[19] = __half2int_rz(__low2half(x));
    o[20] = __half_as_ushort(__int2half_rn((int)a));
    o[21] = __hlt(__low2half(x), __low2half(y)) | __hequ(__low2half(x), __high2half(y)) << 1;
    o[22] = __half_as_ushort(__double2half(__hiloint2double(a, b)));
    o[23] = __half_as_ushort(__hneg(__habs(__low2half(x))));
}
