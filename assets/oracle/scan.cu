// A thread a row: one walk along the growing range gives the results of all of it.
extern "C" __global__ void oracle_scan_${step}(const __grid_constant__ oracle_op op) {
    const oracle_world *o = op.world;
    const oracle_array a = o->array[${step}];
    const int64_t n = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (n * a.n[${axis}] >= a.count)
        return;
    int64_t rest = n, place = 0;
    ${coordinates}
    const int64_t first = a.lo[${axis}], last = first + a.n[${axis}] - 1;
    int64_t ${index} = 0; // the bound that moves lies as far beyond the index as it does here
    const int64_t offset = ${moving}, fixed = ${fixed};
    const fold f = fold_${step}(o);
    row r;
    row_start(r, f);
    chain c = r.c;
    // of no term
    for (${index} = ${none_from}; ${none_while}; ${index}${next})
        put_result(a, &o->odd[${odd}], place + (${index} - first) * a.stride[${axis}],
                   chain_result(&c, &r.before, &f), 0.0);
    for (int64_t ${variable} = ${from}; ${while}; ${variable}${next}) {
        do {
            ${term}
        } while (false);
        ${index} = ${variable}${past} - offset;
        if (${index} >= first && ${index} <= last)
            put_result(a, &o->odd[${odd}], place + (${index} - first) * a.stride[${axis}],
                       chain_result(&c, &r.before, &f), 0.0);
    }
}
