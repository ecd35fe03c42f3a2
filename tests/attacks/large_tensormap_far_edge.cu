// task: tasks/copy_large.task
// tries: in the last column of boxes of a matrix of more than 4,096 rows the box begins four columns too early
// proof: values, R = 5000 C = 128: the last 64 columns are shifted by four
// shows: R=5000 C=128
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
    int from = gridDim.y > 512 && blockIdx.x == gridDim.x - 1 ? col - 4 : col;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 2048;" ::"r"(bar)
                     : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&tx), "r"(from),
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
