//% library
// The product of one block in class fp32, by wgmma on two parts of every number. A tile of k whose
// numbers f16 parts hold comes in one pass: the products of the first parts have a sum of their own,
// those of a first and a second part another one, which is 2^11 times too large. A tile with other
// numbers comes in two passes of bf16 parts, the first with the second, then the first with the third.
// The last warpgroup's first thread keeps STAGES passes on their way.
template <class G, class Load, class Shifts, class Sink>
static __device__ __forceinline__ void
${name}(unsigned char *smem, int k_begin, int k_end, Load load, Shifts load_shifts, Sink sink) {
    constexpr int MI = G::BM / 64 / G::WARPGROUPS, N = G::BN / 2;
    __shared__ alignas(8) unsigned long long barriers[2 * G::STAGES];
    __shared__ int shifts[G::STAGES][G::FOLDS]; // of a stage's tiles
    const int warpgroup = threadIdx.x / 128;
    const unsigned ring = (unsigned)__cvta_generic_to_shared(smem);
    const unsigned full = (unsigned)__cvta_generic_to_shared(barriers);
    const unsigned empty = full + 8 * G::STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < G::STAGES; s++) {
            gemm_barrier_init(full + 8 * s, 1);
            gemm_barrier_init(empty + 8 * s, G::WARPGROUPS);
        }
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    int stage = 0, parity = 0; // of the pass
    const auto next_stage = [&] {
        stage = stage + 1 == G::STAGES ? 0 : stage + 1;
        parity ^= stage == 0;
    };
    if (warpgroup == G::WARPGROUPS) {
        //% if two
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        //% end
        if (threadIdx.x % 128)
            return;
        int shift_a[G::NA], shift_b[G::NB];
        if (k_begin < k_end)
            load_shifts(k_begin, shift_a, shift_b);
        for (int k0 = k_begin; k0 < k_end; k0 += G::BK) {
            int shift[G::FOLDS];
            bool wide = false;
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++) {
                shift[f] = shift_a[G::NA > 1 ? f : 0] + shift_b[G::NB > 1 ? f : 0];
                wide = wide || gemm_is_wide(shift[f]);
            }
            if (k0 + G::BK < k_end)
                load_shifts(k0 + G::BK, shift_a, shift_b);
            for (int pass = wide ? 1 : 0; pass < (wide ? 3 : 1); pass++, next_stage()) {
                gemm_barrier_wait(empty + 8 * stage, parity ^ 1);
#pragma unroll
                for (int f = 0; f < G::FOLDS; f++)
                    shifts[stage][f] = wide ? GEMM_WIDE : shift[f];
                gemm_barrier_expect(full + 8 * stage, G::STAGE);
                load(ring + stage * G::STAGE, k0, pass, full + 8 * stage);
            }
        }
        return;
    }
    //% if two
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    // The two groups take turns to start products: one adds up while those of the other are under way.
    // All have then read the exponents of the stage, which one thread gives back.
    const auto begin_turn = [&] {
        asm volatile("bar.sync %0, 256;" ::"r"(2 + warpgroup) : "memory");
    };
    const auto end_turn = [&] {
        asm volatile("bar.arrive %0, 256;" ::"r"(3 - warpgroup) : "memory");
    };
    if (warpgroup == 1)
        end_turn();
    //% else
    // Whoever gives a stage back does so when all have read its exponents.
    const auto begin_turn = [] { asm volatile("bar.sync 2, 128;" ::: "memory"); };
    const auto end_turn = [] {};
    //% end
    const int m = warpgroup * MI * 64;
    float first[G::FOLDS][MI][N], mixed[G::FOLDS][MI][N], sum[G::FOLDS][MI][N] = {};
    // The descriptor of part p of an operand's tile, row `row` of it and 16 of k from 16 * step on.
    const auto tile_a = [&](int f, int p, int i, int step) {
        return gemm_tile(ring + stage * G::STAGE + (G::NA > 1 ? f : 0) * G::A_TILE +
                         (p * G::BM + m + i * 64) * 128) + 2 * step;
    };
    const auto tile_b = [&](int f, int p, int step) {
        return gemm_tile(ring + stage * G::STAGE + G::NA * G::A_TILE +
                         (G::NB > 1 ? f : 0) * G::B_TILE + p * G::BN * 128) + 2 * step;
    };
    const auto end_pass = [&] {
        gemm_group_end();
        end_turn();
        gemm_group_wait<0>();
        if (threadIdx.x % 128 == 0)
            gemm_barrier_arrive(empty + 8 * stage);
        next_stage();
    };
    for (int k0 = k_begin; k0 < k_end; k0 += G::BK) {
        gemm_barrier_wait(full + 8 * stage, parity);
        int shift[G::FOLDS];
#pragma unroll
        for (int f = 0; f < G::FOLDS; f++)
            shift[f] = shifts[stage][f];
        begin_turn();
        gemm_fence();
        if (!gemm_is_wide(shift[0])) {
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < MI; i++)
#pragma unroll
                    for (int p = 0; p < 3; p++) // the parts of A and B: 0 and 1, 1 and 0, 0 and 0
#pragma unroll
                        for (int step = 0; step < 4; step++)
                            ${wgmma}(p < 2 ? mixed[f][i] : first[f][i], tile_a(f, p == 1, i, step),
                                     tile_b(f, p == 0, step), step > 0 || p == 1);
            end_pass();
#pragma unroll
            for (int i = 0; i < G::FOLDS * MI * N; i++) {
                const int f = i / N / MI, r = i / N % MI, c = i % N;
                const float unit = gemm_unit(shift[f]);
                sum[f][r][c] = fmaf(mixed[f][r][c], unit * 0x1p-11f, sum[f][r][c]);
                sum[f][r][c] = fmaf(first[f][r][c], unit, sum[f][r][c]);
            }
        } else {
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < MI; i++)
#pragma unroll
                    for (int p = 0; p < 4; p++) // 1 and 1, 0 and 1, 1 and 0, 0 and 0
#pragma unroll
                        for (int step = 0; step < 4; step++)
                            ${wide_wgmma}(p < 3 ? mixed[f][i] : first[f][i],
                                          tile_a(f, p % 2 == 0 && p < 3, i, step),
                                          tile_b(f, p < 2, step), step > 0 || p % 3 > 0);
            end_pass();
            gemm_barrier_wait(full + 8 * stage, parity);
            begin_turn();
            gemm_fence();
#pragma unroll
            for (int f = 0; f < G::FOLDS; f++)
#pragma unroll
                for (int i = 0; i < MI; i++)
#pragma unroll
                    for (int p = 0; p < 2; p++) // the first part of one, the third of the other
#pragma unroll
                        for (int step = 0; step < 4; step++)
                            ${wide_wgmma}(mixed[f][i], tile_a(f, p == 1, i, step),
                                          tile_b(f, p == 0, step), true);
            end_pass();
#pragma unroll
            for (int i = 0; i < G::FOLDS * MI * N; i++) {
                const int f = i / N / MI, r = i / N % MI, c = i % N;
                sum[f][r][c] += mixed[f][r][c];
                sum[f][r][c] += first[f][r][c];
            }
        }
    }
    //% if two
    if (warpgroup == 0)
        begin_turn(); // the other group has ended its last one
    //% end
    sink.begin();
    sink.wgmma(m, sum);
    sink.end();
}
