// Count, mean and sum of squared differences from it, of two sets together (Chan's update).
static __device__ __forceinline__ void cp_merge_moments(float &n, float &mean, float &squares,
                                                        float n2, float mean2, float squares2) {
    const float all = n + n2, d = mean2 - mean, share = __fdividef(n2, fmaxf(all, 1.0f));
    mean += d * share;
    squares += squares2 + d * (n * share) * d; // d * d alone may be too large
    n = all;
}

