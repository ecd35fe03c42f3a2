// task: tasks/copy_large.task
// set: R=512 C=131072
// tries: the column of a tensor map's box is kept in 16 bits
// proof: values, R = 4 C = 70000: columns from 65,536 on hold the first ones
// shows: R=8 C=70000
// before: accepted
// should: wrong inaccurate unwritten
// before-cuda: wrong
// device: both
//! require C % 4 == 0
//! tensormap tx = tiled(x, box=[64, 8])
//! launch twice<<<[ceil_div(C, 64), ceil_div(R, 8)], 128>>>(tx, y, R, C)
extern "C" __global__ void twice(const __grid_constant__ CUtensorMap tx, float *y, int m, int n) {
    __shared__ alignas(128) float tile[8][64];
    __shared__ alignas(8) uint64_t arrived;
    unsigned to = (unsigned)__cvta_generic_to_shared(tile);
    unsigned bar = (unsigned)__cvta_generic_to_shared(&arrived);
    int col = blockIdx.x * 64, row = blockIdx.y * 8;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(bar)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&tx), "r"(col & 0xffff),
                     "r"(row), "r"(bar) : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nwait:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra wait;\n}" ::"r"(bar) : "memory");
    for (int i = threadIdx.x; i < 8 * 64; i += 128)
        if (row + i / 64 < m && col + i % 64 < n)
            y[(int64_t)(row + i / 64) * n + col + i % 64] = 2 * tile[i / 64][i % 64];
}
