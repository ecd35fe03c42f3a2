// Elements in memory, by their type.

template <dtype T> struct item;
template <> struct item<DTYPE_F64> { typedef double type; };
template <> struct item<DTYPE_F32> { typedef float type; };
template <> struct item<DTYPE_F16> { typedef uint16_t type; };
template <> struct item<DTYPE_BF16> { typedef uint16_t type; };
template <> struct item<DTYPE_I8> { typedef int8_t type; };
template <> struct item<DTYPE_U8> { typedef uint8_t type; };
template <> struct item<DTYPE_I32> { typedef int32_t type; };
template <> struct item<DTYPE_I64> { typedef int64_t type; };
template <> struct item<DTYPE_BOOL> { typedef uint8_t type; };

template <dtype T> __device__ static inline double decoded(typename item<T>::type x) {
    return T == DTYPE_F16    ? f16_decode((uint16_t)x)
           : T == DTYPE_BF16 ? bf16_decode((uint16_t)x)
           : T == DTYPE_BOOL ? (x != 0 ? 1.0 : 0.0)
                             : (double)x;
}

// No kernel of the oracle writes what it loads.
template <dtype T> __device__ static inline double load(const void *p, int64_t i) {
    return decoded<T>(__ldg((const typename item<T>::type *)p + i));
}

// Elements of a tensor one after the other, each `step` behind the one before.
template <dtype T> struct walk {
    const typename item<T>::type *at;
    int64_t step;
    __device__ walk() {}
    __device__ walk(const void *p, int64_t i, int64_t step)
        : at((const typename item<T>::type *)p + i), step(step) {}
    __device__ double next() {
        const auto x = __ldg(at);
        at += step;
        return decoded<T>(x);
    }
};

// The same with 0 beyond the edges. One of the indices changes, to `place` and on by `by`; out: one
// of the others is beyond.
template <dtype T> struct padded_walk {
    walk<T> w;
    int64_t place, by, extent;
    __device__ padded_walk() {}
    __device__ padded_walk(const walk<T> &w, bool out, int64_t place, int64_t by, int64_t extent)
        : w(w), place(place), by(by), extent(out ? 0 : extent) {}
    __device__ double next() {
        typename item<T>::type x = 0;
        if (inside(place, extent))
            x = __ldg(w.at);
        w.at += w.step;
        place += by;
        return decoded<T>(x);
    }
};

// The same where the type is not known beforehand.
__device__ __noinline__ static double load_any(dtype t, const void *p, int64_t i) {
    switch (t) {
#define DTYPE(id, name, bytes, cuda, npy, kind)                                                    \
    case DTYPE_##id:                                                                               \
        return load<DTYPE_##id>(p, i);
#include "spec/dtype.def"
#undef DTYPE
    default:
        return 0;
    }
}

// The bits of a stored element; lo and hi are what an integer type holds.
__device__ __noinline__ static uint64_t encode(dtype t, double v, double lo, double hi) {
    switch (t) {
    case DTYPE_F64:
        return double_bits(v);
    case DTYPE_F32:
        return isnan(v) ? nan_f32_bits(v) : float_bits((float)v);
    case DTYPE_F16:
        return f16_encode(v);
    case DTYPE_BF16:
        return bf16_encode(v);
    case DTYPE_BOOL:
        return v != 0;
    default:
        return (uint64_t)(int64_t)whole_fit(v, lo, hi);
    }
}

// The low bytes of `bits`, as element i of so many bytes.
__device__ static inline void put_bits(int64_t bytes, void *p, int64_t i, uint64_t bits) {
    switch (bytes) {
    case 1:
        ((uint8_t *)p)[i] = (uint8_t)bits;
        return;
    case 2:
        ((uint16_t *)p)[i] = (uint16_t)bits;
        return;
    case 4:
        ((uint32_t *)p)[i] = (uint32_t)bits;
        return;
    default:
        ((uint64_t *)p)[i] = bits;
    }
}

__device__ static inline bool holds_bits(int64_t bytes, const void *p, int64_t i, uint64_t bits) {
    switch (bytes) {
    case 1:
        return ((const uint8_t *)p)[i] == (uint8_t)bits;
    case 2:
        return ((const uint16_t *)p)[i] == (uint16_t)bits;
    case 4:
        return ((const uint32_t *)p)[i] == (uint32_t)bits;
    default:
        return ((const uint64_t *)p)[i] == bits;
    }
}
