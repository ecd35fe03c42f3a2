// 24 bits as three times 8: the first part is cut off, which cannot overflow, what is left rounded.
const float x = ${tile}[${i} * 8 + ${tid} / 32][${tid} % 32];
const float big = __uint_as_float(__float_as_uint(x) & 0xffff0000u);
const float middle = __bfloat162float(__float2bfloat16_rn(x - big));
__nv_bfloat16 *const to =
    ${packed} + (3ll * ${slab} * ${total} + ${at}) * ${pitch} + ${k0} + ${tid} % 32;
to[0] = __float2bfloat16_rn(big);
to[(long long)${total} * ${pitch}] = __float2bfloat16_rn(middle);
to[2ll * ${total} * ${pitch}] = __float2bfloat16_rn(x - big - middle);
