
// Results that several threads made in segments.

__device__ static inline void join_part(row &r, const oracle_fold &f, const oracle_part &p) {
    chain &c = r.c;
    const bool first = c.count == 0;
    c.seen |= (int)p.seen;
    c.lost += p.lost;
    c.count += p.count;
    c.doubt += p.doubt;
    c.doubts += p.doubts;
    if (p.count == 0)
        return;
    if (is_extreme(f)) {
        if (take_extreme(f, c.s, c.e, value(p.s, p.e), false) || first)
            c.at = p.at;
        return;
    }
    r.bias += p.count * r.before + p.bias;
    r.before += p.before;
    row_join(r, f, p.s, p.e);
}

// A result a thread, from its segments in order.
extern "C" __global__ void oracle_join_parts(const __grid_constant__ oracle_join j) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= j.array.count)
        return;
    row r;
    row_start(r, j.fold);
    for (int64_t k = 0; k < j.segments; k++)
        join_part(r, j.fold, j.part[i * j.segments + k]);
    put_result(j.array, j.odd, i, row_result(r, r.c, j.fold), value(r.c.s, r.c.e));
}
