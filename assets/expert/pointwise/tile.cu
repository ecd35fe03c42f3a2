if (${full}) {
//% if cute
    // A full tile: all copies are issued before the first result is computed.
//% each loads
    auto ${vector} = cp_packs<${fragment}, kWidth, kItems>();
//% end
//% each outputs
//% if flat
    auto ${vector} = cp_packs<${fragment}, kWidth, kItems>();
//% end
//% end
//% each loads
    cute::copy(cp_vectors<${fragment}, kWidth>{}, cp_tile<${fragment}, kWidth, kBlock, kItems>(${pointer} + ${origin}), ${vector});
//% end
#pragma unroll
    for (int item = 0; item < kItems; item++) {
//% if by_rows
        const int at = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
        const long long element = base + at;
//% else
//% if prepares
        const ${index} element = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
//% end
//% end
        ${coordinates}
//% each beside
//% if row
        const auto ${vector} = cp_row<${fragment}, kWidth>(${pointer} + ${offset});
//% else
        const auto ${vector} = ${value};
//% end
//% end
#pragma unroll
        for (int slot = 0; slot < kWidth; slot++) {
//% each outputs
//% if flat
            ${vector}(slot, item) = ${call};
//% else
            ${pointer}[${place}] = ${call};
//% end
//% end
        }
    }
//% each outputs
//% if flat
    cute::copy(cp_vectors<${fragment}, kWidth>{}, ${vector}, cp_tile<${fragment}, kWidth, kBlock, kItems>(${pointer} + ${origin}));
//% end
//% end
//% else
//% if loads
    // A full tile: all loads are issued before the first result is computed.
//% each loads
    cp_pack<${type}, kWidth> ${vector}[kItems];
//% end
#pragma unroll
    for (int item = 0; item < kItems; item++) {
//% if by_rows
        const int at = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
        if (at >= ${in_row})
            break;
        const long long element = base + at;
//% else
        const ${index} element = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
//% end
//% each loads
        ${vector}[item] = cp_fetch<kWidth, ${access}>(${pointer} + element);
//% end
    }
//% end
#pragma unroll
    for (int item = 0; item < kItems; item++) {
//% if by_rows
        const int at = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
        if (at >= ${in_row})
            break;
        const long long element = base + at;
//% else
        const ${index} element = tile + (item * kBlock + (int)threadIdx.x) * kWidth;
//% end
        ${coordinates}
//% each beside
//% if row
        const auto ${vector} = cp_fetch<kWidth, cp_cached>(${pointer} + ${offset});
//% else
        const auto ${vector} = ${value};
//% end
//% end
//% each outputs
//% if vectors
        cp_pack<${type}, kWidth> ${vector};
//% end
//% end
#pragma unroll
        for (int slot = 0; slot < kWidth; slot++) {
//% each outputs
//% if vectors
            ${vector}.at[slot] = ${call};
//% else
            ${pointer}[${place}] = ${call};
//% end
//% end
        }
//% each outputs
//% if flat
        cp_deliver(${pointer} + element, ${vector});
//% end
//% if piece
        cp_deliver(${pointer} + ${place}, ${vector});
//% end
//% end
    }
//% end
} else {
//% if by_rows
    // Vectors would cross the end of a row: one element at a time.
    const int end = min(tile + kTile, (int)${in_row});
    for (int at = tile + (int)threadIdx.x; at < end; at += kBlock) {
        const long long element = base + at;
//% else
//% if crossing
    // The last tile, and rows that vectors would cross: one element at a time.
//% else
    // The last tile: one element at a time.
//% end
    const ${index} end = min(tile + kTile, ${total});
    for (${index} element = tile + (${index})threadIdx.x; element < end; element += kBlock) {
//% end
        ${coordinates}
//% each outputs
        ${new_element}
//% end
//% each outputs
        ${store_element}
//% end
    }
}
