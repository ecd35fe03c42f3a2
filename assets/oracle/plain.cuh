// Definitions and conditions of inputs, in plain doubles: spec/scalar.c, operation by operation.
// Functions whose last bit libraries disagree about (exp, log, …) may round an element of an input
// differently than the CPU, one in some hundred millions: no case mixes the two.

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
        f.value = larger_of(f.value, v);
        return;
    case REDUCTION_MIN:
        f.value = smaller_of(f.value, v);
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
