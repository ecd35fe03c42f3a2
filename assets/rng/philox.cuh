// Random numbers on the device, bit for bit those of src/base/rng.c: Philox4x32-10 blocks, uniforms
// and the normal quantile AS241. A stream is its two key words; any position can be made alone.
//
// Every floating-point operation is one of the _rn intrinsics, which the compiler never contracts,
// in the order of rng.c. No includes and no globals. The text is valid C11 as well, so that a test
// compares the two halves without a GPU.
#ifndef CUTEPILOT_PHILOX_CUH
#define CUTEPILOT_PHILOX_CUH

__device__ static inline void philox_block(unsigned int k0, unsigned int k1,
                                           unsigned long long position, unsigned int out[4]) {
    unsigned int c0 = (unsigned int)position, c1 = (unsigned int)(position >> 32), c2 = 0u, c3 = 0u;
    for (int round = 0; round < 10; round++) {
        unsigned long long a = (unsigned long long)0xD2511F53u * c0;
        unsigned long long b = (unsigned long long)0xCD9E8D57u * c2;
        c0 = (unsigned int)(b >> 32) ^ c1 ^ k0;
        c1 = (unsigned int)b;
        c2 = (unsigned int)(a >> 32) ^ c3 ^ k1;
        c3 = (unsigned int)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

__device__ static inline unsigned long long philox_u64(unsigned int k0, unsigned int k1,
                                                       unsigned long long position) {
    unsigned int w[4];
    philox_block(k0, k1, position, w);
    return (unsigned long long)w[1] << 32 | w[0];
}

// [0,1), multiples of 2^-53
__device__ static inline double philox_unit(unsigned int k0, unsigned int k1,
                                            unsigned long long position) {
    return __dmul_rn((double)(philox_u64(k0, k1, position) >> 11), 1.0 / 9007199254740992.0);
}

// [0,1), multiples of 2^-24
__device__ static inline float philox_unit24(unsigned int k0, unsigned int k1,
                                             unsigned long long position) {
    unsigned int w[4];
    philox_block(k0, k1, position, w);
    return __fmul_rn((float)(w[0] >> 8), 1.0f / 16777216.0f);
}

// v*x + c, rounded twice
__device__ static inline double philox_step(double v, double x, double c) {
    return __dadd_rn(__dmul_rn(v, x), c);
}

// Eight coefficients, highest power first.
__device__ static inline double philox_poly(double x, double c7, double c6, double c5, double c4,
                                            double c3, double c2, double c1, double c0) {
    double v = philox_step(c7, x, c6);
    v = philox_step(v, x, c5);
    v = philox_step(v, x, c4);
    v = philox_step(v, x, c3);
    v = philox_step(v, x, c2);
    v = philox_step(v, x, c1);
    return philox_step(v, x, c0);
}

// ln(x) of a normal positive x, by the series of 2*artanh((m-1)/(m+1)).
__device__ static inline double philox_log(double x) {
    unsigned long long bits = (unsigned long long)__double_as_longlong(x);
    int e = (int)(bits >> 52) - 1023;
    double m = __longlong_as_double(
        (long long)((bits & 0xFFFFFFFFFFFFFull) | 0x3FF0000000000000ull));
    if (m > 1.4142135623730951) {
        m = __dmul_rn(m, 0.5);
        e = e + 1;
    }
    double s = __ddiv_rn(__dadd_rn(m, -1.0), __dadd_rn(m, 1.0));
    double z = __dmul_rn(s, s);
    double v = philox_poly(z, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9,
                           2.0 / 7);
    v = philox_step(v, z, 2.0 / 5);
    v = philox_step(v, z, 2.0 / 3);
    v = philox_step(v, z, 2.0);
    return __dadd_rn(__dmul_rn((double)e, 0.6931471805599453), __dmul_rn(s, v));
}

// |q| <= 0.425
__device__ static inline double philox_centre(double q) {
    double t = __dadd_rn(0.180625, -__dmul_rn(q, q));
    double num = philox_poly(t, 2.5090809287301226727e+3, 3.3430575583588128105e+4,
                             6.7265770927008700853e+4, 4.5921953931549871457e+4,
                             1.3731693765509461125e+4, 1.9715909503065514427e+3,
                             1.3314166789178437745e+2, 3.3871328727963666080e+0);
    double den = philox_poly(t, 5.2264952788528545610e+3, 2.8729085735721942674e+4,
                             3.9307895800092710610e+4, 2.1213794301586595867e+4,
                             5.3941960214247511077e+3, 6.8718700749205790830e+2,
                             4.2313330701600911252e+1, 1.0);
    return __ddiv_rn(__dmul_rn(num, q), den);
}

// The upper quantile of a tail below 0.075.
__device__ static inline double philox_tail(double tail) {
    double t = __dsqrt_rn(-philox_log(tail));
    double num, den;
    if (t <= 5.0) {
        t = __dadd_rn(t, -1.6);
        num = philox_poly(t, 7.74545014278341407640e-4, 2.27238449892691845833e-2,
                          2.41780725177450611770e-1, 1.27045825245236838258e+0,
                          3.64784832476320460504e+0, 5.76949722146069140550e+0,
                          4.63033784615654529590e+0, 1.42343711074968357734e+0);
        den = philox_poly(t, 1.05075007164441684324e-9, 5.47593808499534494600e-4,
                          1.51986665636164571966e-2, 1.48103976427480074590e-1,
                          6.89767334985100004550e-1, 1.67638483018380384940e+0,
                          2.05319162663775882187e+0, 1.0);
    } else {
        t = __dadd_rn(t, -5.0);
        num = philox_poly(t, 2.01033439929228813265e-7, 2.71155556874348757815e-5,
                          1.24266094738807843860e-3, 2.65321895265761230930e-2,
                          2.96560571828504891230e-1, 1.78482653991729133580e+0,
                          5.46378491116411436990e+0, 6.65790464350110377720e+0);
        den = philox_poly(t, 2.04426310338993978564e-15, 1.42151175831644588870e-7,
                          1.84631831751005468180e-5, 7.86869131145613259100e-4,
                          1.48753612908506148525e-2, 1.36929880922735805310e-1,
                          5.99832206555887937690e-1, 1.0);
    }
    return __ddiv_rn(num, den);
}

// Mean 0, variance 1. u is an odd multiple of 2^-53: u, 1-u and u-1/2 are exact.
__device__ static inline double philox_normal(unsigned int k0, unsigned int k1,
                                              unsigned long long position) {
    double k = (double)(philox_u64(k0, k1, position) >> 12);
    double u = __dmul_rn(__dadd_rn(k, 0.5), 1.0 / 4503599627370496.0);
    double q = __dadd_rn(u, -0.5);
    if (q >= -0.425 && q <= 0.425)
        return philox_centre(q);
    return q < 0.0 ? -philox_tail(u) : philox_tail(__dadd_rn(1.0, -u));
}

#endif
