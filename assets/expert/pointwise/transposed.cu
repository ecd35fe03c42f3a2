// A block has a tile of ${across_name} by ${along_name}: it reads what lies along ${across_name} in memory, and
// stores along ${along_name}. What it has read comes through shared memory.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    constexpr int kBlock = ${block}; // threads
    constexpr int kWidth = ${width}; // elements of a word
    constexpr int kAcross = ${words}; // words of a tile as it is read
    constexpr int kAlong = ${chunks}; // words of a tile as it is stored
    constexpr int kRows = kAlong * kWidth;
    constexpr int kRowsAtOnce = kBlock / kAcross, kWordsAtOnce = kBlock / kAlong;
    constexpr int kItems = (kRows + kRowsAtOnce - 1) / kRowsAtOnce; // words that a thread reads
    constexpr int kSquares = (kAcross + kWordsAtOnce - 1) / kWordsAtOnce; // of kWidth words it stores
//% each tiles
    __shared__ cp_pack<${type}, kWidth> ${tile}[kRows][kAcross + 1];
    cp_pack<${type}, kWidth> ${vector}[kItems];
//% end
    const ${index} tiles_across = (${across_size} + kAcross * kWidth - 1) / (kAcross * kWidth);
    const ${index} number = (${index})blockIdx.x;
    const ${index} across_start = number % tiles_across * (kAcross * kWidth);
//% if others
    const ${index} tiles_along = (${along_size} + kRows - 1) / kRows;
    const ${index} along_start = number / tiles_across % tiles_along * kRows;
    const ${index} others = number / tiles_across / tiles_along;
    ${others}
//% else
    const ${index} along_start = number / tiles_across * kRows;
//% end
    const bool whole = across_start + kAcross * kWidth <= ${across_size} && along_start + kRows <= ${along_size}${divides};
    {
        const int first_row = (int)threadIdx.x / kAcross;
        const ${index} across = across_start + (int)threadIdx.x % kAcross * kWidth;
        if (whole) {
            ${whole_loads}
        } else {
            ${part_loads}
        }
        // Rows that a thread reads together lie kAlong apart: no two threads want the same bank.
#pragma unroll
        for (int item = 0; item < kItems; item++) {
            const int row = first_row + item * kRowsAtOnce;
            if (row < kRows) {
//% each tiles
                ${tile}[row % kWidth * kAlong + row / kWidth][threadIdx.x % kAcross] = ${vector}[item];
//% end
            }
        }
    }
    __syncthreads();
    const int first_word = (int)threadIdx.x / kAlong, chunk = (int)threadIdx.x % kAlong;
    const ${index} along = along_start + chunk * kWidth;
    if (whole) {
        ${whole_stores}
    } else {
        ${part_stores}
    }
}
