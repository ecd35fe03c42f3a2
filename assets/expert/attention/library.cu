//% library
//% if cp_load_piece
// Eight elements of 16 bits into shared memory, of which `count` exist; the others are zero.
template <bool Wide, class T>
static __device__ __forceinline__ void cp_load_piece(T *to, const T *from, long long step,
                                                     int count) {
    if (Wide) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(to)),
                     "l"(from), "r"(count >= 8 ? 16 : 0)
                     : "memory");
    } else {
        for (int e = 0; e < 8; e++)
            to[e] = e < count ? from[e * step] : T(0.0f);
    }
}
//% end
//% if cp_load_rows
// Rows of 16-bit elements into shared memory, from number `first` on; zero beyond the last of them
// and beyond the head size. `wide`: they are read in aligned pieces of 16 bytes. Elements of a row
// that lie apart are read by neighbouring threads for neighbouring rows.
template <int Rows, int Dim, int Threads, class T>
static __device__ __forceinline__ void cp_load_rows(T *to, const T *from, long long stride,
                                                    long long step, int first, int rows, int dim,
                                                    bool wide) {
    constexpr int kPieces = Dim / 8, kPitch = Dim + 8;
    for (int i = threadIdx.x; i < Rows * kPieces; i += Threads) {
        const int row = step == 1 ? i / kPieces : i % Rows;
        const int column = (step == 1 ? i % kPieces : i / Rows) * 8;
        const bool inside = first + row < rows && column < dim;
        const T *source = inside ? from + (first + row) * stride + column * step : from;
        T *piece = to + row * kPitch + column;
        if (wide)
            cp_load_piece<true>(piece, source, step, inside ? 8 : 0);
        else
            cp_load_piece<false>(piece, source, step, inside ? dim - column : 0);
    }
}
//% end
//% if cp_key
// A bound of keys as one of the tensor.
static __device__ __forceinline__ int cp_key(long long at, int keys) {
    return (int)min(max(at, 0ll), (long long)keys);
}
//% end
//% if cp_exp2
static __device__ __forceinline__ float cp_exp2(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
//% end
//% if cp_load_matrices
// Four 8x8 matrices of 16-bit elements, a row's address from each lane.
static __device__ __forceinline__ void cp_load_matrices(unsigned (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}
//% end
//% if cp_load_transposed
// The same, transposed.
static __device__ __forceinline__ void cp_load_transposed(unsigned (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}
//% end
//% if cp_multiply_bf16
// d += a b: 16x16 times 16x8.
static __device__ __forceinline__ void cp_multiply_bf16(float (&d)[4], const unsigned (&a)[4],
                                                     unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
//% end
//% if cp_multiply_f16
// d += a b: 16x16 times 16x8.
static __device__ __forceinline__ void cp_multiply_f16(float (&d)[4], const unsigned (&a)[4],
                                                     unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
                 "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
//% end
//% if cp_pair_bf16
static __device__ __forceinline__ unsigned cp_pair_bf16(float low, float high) {
    unsigned two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
//% end
//% if cp_pair_f16
static __device__ __forceinline__ unsigned cp_pair_f16(float low, float high) {
    unsigned two;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
//% end
//% if cp_barrier_init
//% library
// A barrier in shared memory.
static __device__ __forceinline__ void cp_barrier_init(unsigned barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}
//% end
//% if cp_barrier_arrive
static __device__ __forceinline__ void cp_barrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
//% end
//% if cp_barrier_expect
static __device__ __forceinline__ void cp_barrier_expect(unsigned barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}
//% end
//% if cp_barrier_wait
static __device__ __forceinline__ void cp_barrier_wait(unsigned barrier, int parity) {
    asm volatile("{\n.reg .pred done;\nwait:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra wait;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
//% end
//% if cp_turn_wait
// The two groups that multiply take turns: one waits for the number that the other calls.
static __device__ __forceinline__ void cp_turn_wait(int number) {
    asm volatile("bar.sync %0, 256;" ::"r"(number) : "memory");
}
//% end
//% if cp_turn_call
static __device__ __forceinline__ void cp_turn_call(int number) {
    asm volatile("bar.arrive %0, 256;" ::"r"(number) : "memory");
}
//% end
//% if cp_copy_box
// Starts the copy of a box by the copy engine; its bytes arrive at the barrier.
static __device__ __forceinline__ void cp_copy_box(unsigned to, const CUtensorMap *map, int inner,
                                                   int middle, int row, int slab,
                                                   unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6];" ::"r"(to),
                 "l"(map), "r"(inner), "r"(middle), "r"(row), "r"(slab), "r"(barrier)
                 : "memory");
}
//% end
//% if cp_product_tile
// A tile of rows of 128 bytes, swizzled by the copy, as wgmma's descriptor says it: groups of 8 rows
// lie 1024 bytes apart, and, where the product runs over the rows, columns of 128 bytes `apart`.
static __device__ __forceinline__ unsigned long long cp_product_tile(unsigned address, unsigned apart) {
    return (address & 0x3ffff) >> 4 | (unsigned long long)(apart >> 4) << 16 | 64ull << 32 |
           1ull << 62;
}
//% end
//% if cp_products_begin
static __device__ __forceinline__ void cp_products_begin() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
//% end
//% if cp_products_end
static __device__ __forceinline__ void cp_products_end() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
//% end
//% if cp_products_wait
// At most N groups of products are under way behind it; what they have left in `d` may be read.
template <int N, int Count>
static __device__ __forceinline__ void cp_products_wait(float (&d)[Count]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#pragma unroll
    for (int i = 0; i < Count; i++)
        asm volatile("" : "+f"(d[i])::"memory");
}
//% end
