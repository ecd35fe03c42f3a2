#pragma unroll
for (int square = 0; square < kSquares; square++) {
    const int word = first_word + square * kWordsAtOnce;
//% if whole
    if (word >= kAcross)
        break;
//% else
    if (word >= kAcross || along >= ${along_size})
        break;
//% end
//% each tiles
    cp_pack<${type}, kWidth> ${part}[kWidth];
#pragma unroll
    for (int slot = 0; slot < kWidth; slot++)
        ${part}[slot] = ${tile}[slot * kAlong + chunk][word];
//% end
#pragma unroll
    for (int line = 0; line < kWidth; line++) {
        const ${index} across = across_start + word * kWidth + line;
//% if not whole
        if (across >= ${across_size})
            break;
//% end
        ${line_coordinates}
//% each beside
//% if row
//% if whole
        const auto ${vector} = cp_fetch<kWidth, cp_cached>(${pointer} + ${offset});
//% else
        const auto ${vector} = cp_fetch_some<kWidth, cp_cached>(${pointer} + ${offset}, ${along_size} - along);
//% end
//% else
        const auto ${vector} = ${value};
//% end
//% end
//% each outputs
//% if word
        cp_pack<${type}, kWidth> ${vector};
//% end
//% end
#pragma unroll
        for (int slot = 0; slot < kWidth; slot++) {
//% if not whole
            if (along + slot >= ${along_size})
                break;
//% end
            ${coordinates}
//% each outputs
//% if word
            ${vector}.at[slot] = ${call};
//% else
            ${pointer}[${place}] = ${call};
//% end
//% end
        }
//% each outputs
//% if word
//% if whole
        cp_deliver(${pointer} + ${place}, ${vector});
//% else
        cp_deliver_some(${pointer} + ${place}, ${vector}, ${along_size} - along);
//% end
//% end
//% end
    }
}
