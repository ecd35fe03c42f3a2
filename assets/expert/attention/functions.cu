//% library
// Eight elements of 16 bits into shared memory, of which `count` exist; the others are zero.
template <bool Wide>
static __device__ __forceinline__ void cp_load_piece(${type} *to, const ${type} *from,
                                                     long long step, int count) {
    if (Wide) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(to)),
                     "l"(from), "r"(count >= 8 ? 16 : 0)
                     : "memory");
    } else {
        for (int e = 0; e < 8; e++)
            to[e] = e < count ? from[e * step] : ${zero};
    }
}

// Rows of 16-bit elements into shared memory, from number `first` on; zero beyond the last of them
// and beyond the head size. `wide`: they are read in aligned pieces of 16 bytes. Elements of a row
// that lie apart are read by neighbouring threads for neighbouring rows.
template <int Rows, int Dim, int Threads>
static __device__ __forceinline__ void cp_load_rows(${type} *to, const ${type} *from,
                                                    long long stride, long long step, int first,
                                                    int rows, int dim, bool wide) {
    constexpr int kPieces = Dim / 8, kPitch = Dim + 8;
    for (int i = threadIdx.x; i < Rows * kPieces; i += Threads) {
        const int row = step == 1 ? i / kPieces : i % Rows;
        const int column = (step == 1 ? i % kPieces : i / Rows) * 8;
        const bool inside = first + row < rows && column < dim;
        const ${type} *source = inside ? from + (first + row) * stride + column * step : from;
        ${type} *piece = to + row * kPitch + column;
        if (wide)
            cp_load_piece<true>(piece, source, step, inside ? 8 : 0);
        else
            cp_load_piece<false>(piece, source, step, inside ? dim - column : 0);
    }
}

// A bound of keys as one of the tensor.
static __device__ __forceinline__ int cp_key(long long at, int keys) {
    return (int)min(max(at, 0ll), (long long)keys);
}

static __device__ __forceinline__ float cp_exp2(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Four 8x8 matrices of 16-bit elements, a row's address from each lane.
static __device__ __forceinline__ void cp_load_matrices(unsigned (&r)[4], const ${type} *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}
static __device__ __forceinline__ void cp_load_transposed(unsigned (&r)[4], const ${type} *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// d += a b: 16x16 times 16x8.
static __device__ __forceinline__ void cp_multiply_${mma}(float (&d)[4], const unsigned (&a)[4],
                                                         unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.${mma}.${mma}.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

static __device__ __forceinline__ unsigned cp_pair_${mma}(float low, float high) {
    const ${type} two[2] = {${round}(low), ${round}(high)};
    return *reinterpret_cast<const unsigned *>(two);
}
