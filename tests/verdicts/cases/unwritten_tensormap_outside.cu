// expect: unwritten
// expect-sim: unsupported unwritten
// row: 9
// tries: TMA stores of a box that lies wholly outside: the hardware drops them
//! require C % 4 == 0
//! tensormap ty = tiled(y, box=[32, 8])
//! launch relu<<<1, 32>>>(x, y, ty, R, C)
extern "C" __global__ void relu(const float *x, float *y, const __grid_constant__ CUtensorMap ty,
                                int rows, int cols) {
    __shared__ __align__(128) float tile[8][32];
    for (int i = 0; i < 8; i++)
        tile[i][threadIdx.x] = 1.0f;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncwarp();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::
                         "l"(&ty),
                     "r"((unsigned)__cvta_generic_to_shared(tile)), "r"(cols), "r"(rows)
                     : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
