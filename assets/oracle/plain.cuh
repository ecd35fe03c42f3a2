// Definitions and conditions of inputs, in plain doubles: spec/scalar.c, operation by operation.
// Functions whose last bit libraries disagree about (exp, log, …) may round an element of an input
// differently than the CPU, one in some hundred millions: no case mixes the two.

__device__ static inline double plain_larger(double a, double b) {
    return isnan(a) || a > b ? a : b;
}

__device__ static inline double plain_smaller(double a, double b) {
    return isnan(a) || a < b ? a : b;
}

__device__ static inline double plain_clamp(double a, double lo, double hi) {
    return plain_smaller(plain_larger(a, lo), hi);
}

__device__ static inline double plain_sigmoid(double a) {
    return 1 / (1 + exp(-a));
}

__device__ static inline double plain_floordiv(double a, double b) {
    return fabs(a) < 0x1p62 && fabs(b) < 0x1p62 && (int64_t)b != 0
               ? (double)floordiv((int64_t)a, (int64_t)b)
               : NAN;
}

__device__ static inline double plain_floormod(double a, double b) {
    return fabs(a) < 0x1p62 && fabs(b) < 0x1p62 && (int64_t)b != 0
               ? (double)floormod((int64_t)a, (int64_t)b)
               : NAN;
}

// A reduction, term by term.
struct plain_fold {
    double value, best, terms, at;
    __device__ plain_fold(double empty) : value(empty), best(0), terms(0), at(0) {}
};

template <reduction OP> __device__ static inline void plain_add(plain_fold &f, double v, double at) {
    const bool better = f.terms == 0 || (isnan(v) && !isnan(f.best)) ||
                        (OP == REDUCTION_ARGMAX ? v > f.best : v < f.best);
    f.terms += 1;
    switch (OP) {
    case REDUCTION_PROD:
        f.value *= v;
        return;
    case REDUCTION_MAX:
        f.value = plain_larger(f.value, v);
        return;
    case REDUCTION_MIN:
        f.value = plain_smaller(f.value, v);
        return;
    case REDUCTION_ARGMAX:
    case REDUCTION_ARGMIN:
        f.value = better ? at : f.value;
        f.best = better ? v : f.best;
        return;
    default:
        f.value += v;
    }
}

template <reduction OP> __device__ static inline double plain_result(const plain_fold &f) {
    return OP == REDUCTION_MEAN ? f.value / f.terms : f.value;
}
