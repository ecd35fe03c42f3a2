// The operations of value.h and function.def as the task's own text calls them: on values or, of
// what is exact, on plain doubles. RULES are the rules of the task's accuracy class.

// A read that would leave its tensor, which only occurs where the result is not used.
__device__ static inline value undefined() {
    return value(0, INFINITY);
}

__device__ static inline value value_input(double v) {
    return value(v, input_variance(RULES, v));
}

__device__ static inline value settle(value d, int how, value x, value y = 0.0, value z = 0.0) {
    return settle_of(RULES, how, d, x, y, z);
}

// ---- functions ----

// In definitions of inputs, functions whose last bit libraries disagree about (exp, log, ...) may
// round an element differently than the CPU, one in some hundred millions: no case mixes the two.

#define FUNCTION(id, name, args, formula, rule, result, pole, flattens, cuda, fast, integer)       \
    __device__ static inline double function_##name(double x, double y = 0, double z = 0) {        \
        return formula;                                                                            \
    }                                                                                              \
    __device__ static inline value value_##name(rules r, value a, value b = 0.0, value c = 0.0) {  \
        const double x = a.v, v = function_##name(a.v, b.v, c.v);                                  \
        double e = rule;                                                                           \
        (void)x;                                                                                   \
        if (flattens && is_hardly_known(r, a))                                                     \
            e = change_variance(r, v, function_##name(nearer_zero(r, a)), e);                      \
        return value(v, e);                                                                        \
    }
#include "spec/function.def"
#undef FUNCTION

// ---- places ----

__device__ static inline int64_t floordiv(int64_t a, int64_t b) {
    return b == 0 ? 0 : a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

__device__ static inline int64_t floormod(int64_t a, int64_t b) {
    const int64_t r = b == 0 ? 0 : a % b;
    return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

__device__ static inline int64_t integer_abs(int64_t a) {
    return a < 0 ? -a : a;
}

__device__ static inline int64_t integer_maximum(int64_t a, int64_t b) {
    return a > b ? a : b;
}

__device__ static inline int64_t integer_minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

__device__ static inline int64_t integer_clamp(int64_t a, int64_t lo, int64_t hi) {
    return integer_minimum(integer_maximum(a, lo), hi);
}

// Shifts over indices are proved to be by 0 to 62 places and to fit.
__device__ static inline int64_t integer_bit_and(int64_t a, int64_t b) {
    return a & b;
}

__device__ static inline int64_t integer_bit_or(int64_t a, int64_t b) {
    return a | b;
}

__device__ static inline int64_t integer_bit_xor(int64_t a, int64_t b) {
    return a ^ b;
}

__device__ static inline int64_t integer_shl(int64_t a, int64_t by) {
    return (int64_t)((uint64_t)a << (by & 63));
}

__device__ static inline int64_t integer_shr(int64_t a, int64_t by) {
    return a >> (by & 63);
}

// A place computed from data: -1 where it is none.
__device__ static inline int64_t place(double at) {
    return at >= 0 && at < 0x1p62 ? (int64_t)at : -1;
}

// Nothing is known of an element whose place is uncertain.
__device__ static inline value read_at(value at, value element) {
    return value(element.v, at.e > 0 ? INFINITY : element.e);
}

__device__ static inline bool inside(int64_t at, int64_t extent) {
    return (uint64_t)at < (uint64_t)extent;
}

// ---- what is stored ----

struct expected {
    double v, estimate;
    value best; // of an index: the term it stands for
};

__device__ static inline expected output_float(dtype t, value x) {
    expected r;
    r.estimate = float_estimate(RULES.limits, t, &x);
    r.v = x.v;
    return r;
}

__device__ static inline expected output_integer(value x, double lo, double hi) {
    expected r;
    r.estimate = integer_estimate(x, lo, hi);
    r.v = x.v;
    return r;
}
