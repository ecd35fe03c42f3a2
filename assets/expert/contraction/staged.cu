// Sums are in shared memory: results are finished row by row, neighbours together.
const float *const results = (const float *)smem;
const int rows = (int)min(${total_m} - first_m, (${index})Tiles::BM);
const int cols = (int)min(${total_n} - first_n, (${index})Tiles::BN);
for (int col = tid % ${across}; col < cols; col += ${across}) {
    ${decode_n}
#pragma unroll 4
    for (int row = tid / ${across}; row < rows; row += ${down}) {
        ${decode_m}
        //% if inside
        if (!(${inside}))
            continue;
        //% end
        //% each folds
        const float sum${fold} = results[${sum_row} * Tiles::CN + col];
        //% if part
        part[(${part} * ${total_m} + ${flat_m}) * ${total_n} + ${flat_n}] = sum${fold};
        //% end
        //% end
        ${epilogue}
    }
}
