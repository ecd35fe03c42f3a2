//% library
// The type of one access of so many bytes, 16 at the most.
template <int BYTES> struct cp_word { typedef uint4 type; };
template <> struct cp_word<8> { typedef uint2 type; };
template <> struct cp_word<4> { typedef unsigned int type; };
template <> struct cp_word<2> { typedef unsigned short type; };
template <> struct cp_word<1> { typedef unsigned char type; };

// N neighbouring elements.
template <class T, int N> struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) cp_pack {
    typedef typename cp_word<N * sizeof(T)>::type word;
    T at[N];
};
