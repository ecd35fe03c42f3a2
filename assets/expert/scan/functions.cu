//% library
static __device__ __forceinline__ ${type} ${combine}(${type} a, ${type} b) {
//% if not tuple
    return ${combined};
//% end
//% if best
    // NaN comes before all, of equals the one with the smaller index.
    const bool nearer = b.at < a.at;
    const bool unordered = a.value != a.value || b.value != b.value;
    const bool second = unordered ? b.value != b.value && (a.value == a.value || nearer)
                        : a.value == b.value ? nearer
                                             : b.value ${above} a.value;
    return second ? b : a;
//% end
//% if decays
    return ${type}(a.decay * b.decay, (float)(b.decay * (double)a.sum + (double)b.sum));
//% end
//% if exponentials
    // Both sums less the larger of the exponents; where that is infinite there is nothing to scale.
    const float most = cp_maximum(a.most, b.most);
    const bool second = a.most == most;
    const float lesser = second ? b.most : a.most;
    const float scale = lesser == most ? 1.0f : ${exp}(lesser - most);
    return ${type}(most, second ? a.sum + scale * b.sum : scale * a.sum + b.sum);
//% end
//% if segments
    return ${type}(b.begins ? b.value : ${combined}, a.begins | b.begins);
//% end
}

//% if inner
// Each lane gets the combination of all lanes up to itself.
static __device__ __forceinline__ ${type} ${warp_scan}(${type} v) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const ${type} earlier = ${shuffle_up}(0xffffffffu, v, d);
        v = lane < d ? v : ${combine}(earlier, v);
    }
    return v;
}
//% end
