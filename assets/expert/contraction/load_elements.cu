// ${tensor}, ${rows} x ${row} of it, one element a copy: ${why}.
//% if before
${before}
//% end
//% if value
${type} kept_${name}[${turns}];
//% end
auto load_${name} = [&](int stage, int k0) {
    //% if not value
    ${type} *const to = (${type} *)(smem + stage * Tiles::STAGE + ${tile_at});
    //% end
    ${once}
#pragma unroll ${unroll}
    for (int turn = 0; turn < ${turns}; turn++) {
        ${each}
        const bool exists = ${exists};
        //% if value
        kept_${name}[turn] = exists ? ${value} : ${zero};
        //% else
        gemm_copy4(to + Tiles::${place}(${tile_row}, ${tile_col}),
                   ${pointer} + (exists ? ${offset} : 0), exists);
        //% end
    }
};
//% if value
auto keep_${name} = [&](int stage) {
    ${type} *const to = (${type} *)(smem + stage * Tiles::STAGE + ${tile_at});
#pragma unroll
    for (int turn = 0; turn < ${turns}; turn++)
        to[Tiles::${place}(${tile_row}, ${tile_col})] = kept_${name}[turn];
};
//% end
