// ${tensor}, ${rows} x ${row} of it, one element a copy. A place is the sum of a thread's own part
// and one of k's, which each lane computes for one k and hands to the others.
${before}
auto ${load} = [&](int ${stage}, int ${k0}) {
    ${target}
    ${declare}
#pragma unroll
    for (int ${i} = 0; ${i} < ${parts}; ${i}++) {
        ${decode_k}
        ${place}
    }
#pragma unroll
    for (int ${i} = 0; ${i} < ${count}; ${i}++) {
        ${exchange}
        const bool ${exists} = ${test};
        gemm_copy4(${to} + ${tiles}::${at}(${tile_row}, ${tile_col}),
                   ${from} + (${exists} ? ${base} + ${by_k} : 0), ${exists});
    }
};

