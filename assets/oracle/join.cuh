// Results that several threads made in segments.

__device__ static inline void join_part(chain &c, chains &before, const fold &f,
                                        const oracle_part &p) {
    const bool first = c.count == 0;
    c.seen |= (int)p.seen;
    c.lost += p.lost;
    c.count += p.count;
    c.doubt += p.doubt;
    c.doubts += p.doubts;
    if (p.count == 0)
        return;
    if (fold_is_extreme(f.op)) {
        if (fold_extreme(&f, &c.sum, &c.variance, value(p.sum, p.variance), false) || first)
            c.at = p.at;
        return;
    }
    before.bias += p.count * before.before + p.bias;
    before.before += p.before;
    chains_join(&before, &f, p.sum, p.variance);
    chain_note_partial(&c, &f, before.sum);
}

// A result a thread, from its segments in order.
extern "C" __global__ void oracle_join_parts(const __grid_constant__ oracle_join j) {
    const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= j.array.count)
        return;
    row r;
    row_start(r, j.how);
    for (int64_t k = 0; k < j.segments; k++)
        join_part(r.c, r.before, j.how, j.part[i * j.segments + k]);
    put_result(j.array, j.odd, i, chain_result(&r.c, &r.before, &j.how),
               value(r.c.sum, r.c.variance));
}
