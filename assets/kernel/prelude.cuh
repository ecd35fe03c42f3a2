// What a kernel writer expects to be there: NVRTC has no <math.h>, <float.h>, <limits.h> or
// <stdint.h>. Integer limits are spelled as CCCL spells them, token by token, so that
// <cuda/std/climits> and <cuda/std/cstdint> may follow.
#pragma nv_diag_suppress 47 // <cuda/std/cmath> defines INFINITY and NAN again
#define INFINITY __builtin_bit_cast(float, 0x7f800000)
#define NAN      __builtin_bit_cast(float, 0x7fffffff)

#define FLT_MAX     3.402823466e+38f
#define FLT_MIN     1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define DBL_MAX     1.7976931348623157e+308
#define DBL_MIN     2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16

#define M_E        2.71828182845904523536
#define M_LOG2E    1.44269504088896340736
#define M_LOG10E   0.43429448190325182765
#define M_LN2      0.69314718055994530942
#define M_LN10     2.30258509299404568402
#define M_PI       3.14159265358979323846
#define M_PI_2     1.57079632679489661923
#define M_PI_4     0.78539816339744830962
#define M_1_PI     0.31830988618379067154
#define M_2_PI     0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2    1.41421356237309504880
#define M_SQRT1_2  0.70710678118654752440

#define CHAR_BIT   8
#define SCHAR_MIN  (-128)
#define SCHAR_MAX  127
#define UCHAR_MAX  255
#define SHRT_MIN   (-SHRT_MAX - 1)
#define SHRT_MAX   0x7fff
#define USHRT_MAX  0xffff
#define INT_MIN    (-INT_MAX - 1)
#define INT_MAX    0x7fffffff
#define UINT_MAX   0xffffffff
#define LONG_MIN   (-LONG_MAX - 1)
#define LONG_MAX   LLONG_MAX
#define ULONG_MAX  ULLONG_MAX
#define LLONG_MIN  (-LLONG_MAX - 1)
#define LLONG_MAX  0x7fffffffffffffffLL
#define ULLONG_MAX 0xffffffffffffffffUL

#define INT8_MIN   SCHAR_MIN
#define INT16_MIN  SHRT_MIN
#define INT32_MIN  INT_MIN
#define INT64_MIN  LLONG_MIN
#define INT8_MAX   SCHAR_MAX
#define INT16_MAX  SHRT_MAX
#define INT32_MAX  INT_MAX
#define INT64_MAX  LLONG_MAX
#define UINT8_MAX  UCHAR_MAX
#define UINT16_MAX USHRT_MAX
#define UINT32_MAX UINT_MAX
#define UINT64_MAX ULLONG_MAX
#define SIZE_MAX   UINT64_MAX

using int8_t = signed char;
using int16_t = signed short;
using int32_t = signed int;
using int64_t = signed long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;
using intptr_t = int64_t;
using uintptr_t = uint64_t;

// What cp.async.bulk.tensor takes the address of: <cuda.h> is not there for its type.
struct alignas(128) CUtensorMap {
    uint64_t opaque[16];
};
