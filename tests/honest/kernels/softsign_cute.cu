// task: tasks/kernelbench/level1/030_softsign.task
// set: B=64 D=16384
// needs: CUTLASS
// what: CuTe: a vector of tiles, 16 bytes a copy
#include <cute/tensor.hpp>
//! require B*D % 1024 == 0
//! launch softsign<<<B*D // 1024, 256>>>(x, y, B*D)
extern "C" __global__ void softsign(const float *x, float *y, int n) {
    using namespace cute;
    auto all = make_layout(make_shape(n));
    auto gx = local_tile(make_tensor(make_gmem_ptr(x), all), Shape<_1024>{}, blockIdx.x);
    auto gy = local_tile(make_tensor(make_gmem_ptr(y), all), Shape<_1024>{}, blockIdx.x);
    auto mine = Layout<Shape<_4, _256>>{};
    auto tx = composition(gx, mine)(_, threadIdx.x);
    auto ty = composition(gy, mine)(_, threadIdx.x);
    auto v = make_fragment_like(ty);
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, tx, v);
    for (int e = 0; e < size(v); e++)
        v(e) = v(e) / (1.0f + fabsf(v(e)));
    copy(AutoVectorizingCopyWithAssumedAlignment<128>{}, v, ty);
}
