// ${tensor}, ${rows} x ${row} of it, 16 bytes a copy.
//% if offset
const ${type} *const from_${name} = ${pointer} + (${index})(${offset});
//% end
auto load_${name} = [&](int stage, int k0) {
    ${type} *const to = (${type} *)(smem + stage * Tiles::STAGE + ${tile_at});
    //% if cute
    gemm_copy_rows<${threads}, Tiles::Rows${side}, Tiles::Swizzle${side}, ${type}, ${index}>(
        to, ${from} + (${index})${first_row} * ${pitch} + ${first_col}, ${pitch},
        ${end_row} - ${first_row}, ${end_col} - ${first_col});
    //% else
#pragma unroll
    for (int turn = 0; turn < ${turns}; turn++) {
        const int piece = turn * ${threads} + tid, row = piece / ${pieces};
        const int col = piece % ${pieces} * ${elements};
        const bool exists = ${at_side} < ${total} && ${at_k} < k_end;
        //% if pieces_end
        if (piece >= ${pieces_end})
            continue;
        //% end
        gemm_copy16(to + Tiles::${place}(row, col), ${from} + (exists ? ${source} : 0), exists);
    }
    //% end
};
