// ${tensor}, ${rows} x ${row} of it, 16 bytes a copy.${base}
auto ${load} = [&](int ${stage}, int ${k0}) {
    ${target}
#pragma unroll
    for (int ${i} = 0; ${i} < ${count}; ${i}++) {
        const int ${at} = ${i} * ${threads} + ${tid}, ${row_} = ${at} / ${pieces};
        const int ${col} = ${at} % ${pieces} * ${piece};
        const bool ${exists} = ${test};
        ${guard}gemm_copy16(${to} + ${tiles}::${place}(${row_}, ${col}),
                    ${pointer} + (${exists} ? ${source} : 0), ${exists});
    }
};
