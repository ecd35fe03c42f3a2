// All loads are issued before the first word is stored.
#pragma unroll
for (int item = 0; item < kItems; item++) {
    const int row = first_row + item * kRowsAtOnce;
    const ${index} along = along_start + row;
//% if whole
    if (row < kRows) {
//% each tiles
//% if plain
        ${vector}[item] = cp_fetch<kWidth, ${access}>(${pointer} + ${offset});
//% else
        ${vector}[item] = cp_fetch_some<kWidth, ${access}>(${pointer} + ${offset}, kWidth);
//% end
//% end
    }
//% else
    if (row < kRows && along < ${along_size} && across < ${across_size}) {
//% each tiles
        ${vector}[item] = cp_fetch_some<kWidth, ${access}>(${pointer} + ${offset}, ${across_size} - across);
//% end
    }
//% end
}
