// The launch plan against the kernels' types, decided by the compiler itself. What follows this
// text asserts, for each launch, that each argument's type is one that what it is given fits.
#undef static_assert
#undef decltype
#undef template
#undef typename
#undef struct
#undef class
#undef namespace
#undef using
#undef static
#undef const
#undef volatile
#undef constexpr
#undef bool
#undef void
#undef argument
#undef arguments
#undef mismatch
#undef matches
#undef element
#undef integer
#undef tensormap
#undef sizeof
#undef alignof
#undef __is_class
#undef true
#undef false
#undef int
#undef unsigned
#undef long
#undef reads
#undef keeps
#undef writes
#undef type
#undef ok
#undef f64
#undef f32
#undef f16
#undef bf16
#undef i8
#undef u8
#undef i32
#undef i64
#undef K
#undef E
#undef F
#undef P
#undef T
#undef L
#undef I
#undef A
#undef R

struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;
namespace cutlass {
struct half_t;
struct bfloat16_t;
}

namespace cutepilot_checks {
struct f64 {};
struct f32 {};
struct f16 {};
struct bf16 {};
struct i8 {};
struct u8 {};
struct i32 {};
struct i64 {};
struct bool_ {};

// The arguments of a kernel, or that it takes another number of them.
template <class... A> struct arguments {};
struct mismatch {};
// What the compiler has complained of already is neither, and is not complained of again.
template <class L> struct matches { static constexpr bool ok = true; };
template <> struct matches<mismatch> { static constexpr bool ok = false; };
template <int I, class L> struct argument { using type = mismatch; };
template <class A, class... R> struct argument<0, arguments<A, R...>> { using type = A; };
template <int I, class A, class... R> struct argument<I, arguments<A, R...>> {
    using type = typename argument<I - 1, arguments<R...>>::type;
};

// Is E what a pointer to tensor elements of the kind K may point to?
template <class K, class E> struct element { static constexpr bool ok = false; };
template <class K> struct element<K, void> { static constexpr bool ok = true; };
#define CUTEPILOT_ELEMENT(kind, cuda) \
    template <> struct element<kind, cuda> { static constexpr bool ok = true; };
CUTEPILOT_ELEMENT(f64, double)
CUTEPILOT_ELEMENT(f64, double1)
CUTEPILOT_ELEMENT(f64, double2)
CUTEPILOT_ELEMENT(f64, double3)
CUTEPILOT_ELEMENT(f64, double4_16a)
CUTEPILOT_ELEMENT(f64, double4_32a)
CUTEPILOT_ELEMENT(f32, float)
CUTEPILOT_ELEMENT(f32, float1)
CUTEPILOT_ELEMENT(f32, float2)
CUTEPILOT_ELEMENT(f32, float3)
CUTEPILOT_ELEMENT(f32, float4)
CUTEPILOT_ELEMENT(f16, ::__half)
CUTEPILOT_ELEMENT(f16, ::__half2)
CUTEPILOT_ELEMENT(f16, ::cutlass::half_t)
CUTEPILOT_ELEMENT(bf16, ::__nv_bfloat16)
CUTEPILOT_ELEMENT(bf16, ::__nv_bfloat162)
CUTEPILOT_ELEMENT(bf16, ::cutlass::bfloat16_t)
CUTEPILOT_ELEMENT(i8, char)
CUTEPILOT_ELEMENT(i8, signed char)
CUTEPILOT_ELEMENT(i8, char1)
CUTEPILOT_ELEMENT(i8, char2)
CUTEPILOT_ELEMENT(i8, char3)
CUTEPILOT_ELEMENT(i8, char4)
CUTEPILOT_ELEMENT(u8, unsigned char)
CUTEPILOT_ELEMENT(u8, uchar1)
CUTEPILOT_ELEMENT(u8, uchar2)
CUTEPILOT_ELEMENT(u8, uchar3)
CUTEPILOT_ELEMENT(u8, uchar4)
CUTEPILOT_ELEMENT(i32, int)
CUTEPILOT_ELEMENT(i32, int1)
CUTEPILOT_ELEMENT(i32, int2)
CUTEPILOT_ELEMENT(i32, int3)
CUTEPILOT_ELEMENT(i32, int4)
CUTEPILOT_ELEMENT(i64, long)
CUTEPILOT_ELEMENT(i64, long long)
CUTEPILOT_ELEMENT(i64, long1)
CUTEPILOT_ELEMENT(i64, long2)
CUTEPILOT_ELEMENT(i64, longlong1)
CUTEPILOT_ELEMENT(i64, longlong2)
CUTEPILOT_ELEMENT(bool_, bool)
CUTEPILOT_ELEMENT(bool_, unsigned char)
CUTEPILOT_ELEMENT(bool_, uchar2)
CUTEPILOT_ELEMENT(bool_, uchar4)
#undef CUTEPILOT_ELEMENT

template <class K, class P> struct reads { static constexpr bool ok = false; };
template <class K, class E> struct reads<K, E *> { static constexpr bool ok = element<K, E>::ok; };
template <class K, class E> struct reads<K, const E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K, class E> struct reads<K, volatile E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K, class E> struct reads<K, const volatile E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K> struct reads<K, mismatch> { static constexpr bool ok = true; }; // said already
template <class K, class P> struct writes { static constexpr bool ok = false; };
template <class K, class E> struct writes<K, E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K, class E> struct writes<K, volatile E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K, class E> struct writes<K, const E *> { static constexpr bool ok = false; };
template <class K, class E> struct writes<K, const volatile E *> {
    static constexpr bool ok = false;
};
template <class K> struct writes<K, mismatch> { static constexpr bool ok = true; };

// What is prepared once is only read.
template <class K, class P> struct keeps { static constexpr bool ok = false; };
template <class K, class E> struct keeps<K, const E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K, class E> struct keeps<K, const volatile E *> {
    static constexpr bool ok = element<K, E>::ok;
};
template <class K> struct keeps<K, mismatch> { static constexpr bool ok = true; };

template <class T> struct integer { static constexpr bool ok = false; };
template <> struct integer<mismatch> { static constexpr bool ok = true; };
template <> struct integer<int> { static constexpr bool ok = true; };
template <> struct integer<unsigned> { static constexpr bool ok = true; };
template <> struct integer<long> { static constexpr bool ok = true; };
template <> struct integer<unsigned long> { static constexpr bool ok = true; };
template <> struct integer<long long> { static constexpr bool ok = true; };
template <> struct integer<unsigned long long> { static constexpr bool ok = true; };

// A CUtensorMap by value; CuTe has a type of its own for it. What counts is room and alignment.
template <class T> struct tensormap {
    static constexpr bool ok = __is_class(T) && sizeof(T) == 128 && alignof(T) >= 64;
};
template <> struct tensormap<mismatch> { static constexpr bool ok = true; };
}
