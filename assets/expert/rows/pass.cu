//% if in_registers
{ // the packs of a thread are all its columns
//% else
for (${col_type} at = ${first}; at < ${end}; at += kTeam * kVec * kItems) {
//% end
//% if brings
    // The same columns of the block's next row, to L2 while this one is stored.
    if (lane == 0 && row + step < ${rows}) {
        const int most = (int)min((${col_type})(kTeam * kVec * kItems), ${end} - at);
//% each brings
        cp_bring(${pointer} + (long long)step * cols + at, most);
//% end
    }
//% end
    ${packs}
//% if loads
#pragma unroll
    for (int item = 0; item < kItems; item++) {
        const ${col_type} col = at + item * (kTeam * kVec);
        if (col < ${end}) {
            ${loads}
        }
    }
//% end
#pragma unroll
    for (int item = 0; item < kItems; item++) {
        const ${col_type} col = at + item * (kTeam * kVec);
        if (col < ${end}) {
            ${keeps}
//% each arrays
            ${type} ${array}[kVec];
//% end
            ${results}
//% if by_elements
#pragma unroll
            for (int slot = 0; slot < kVec; slot++) {
//% else
            {
//% end
                ${columns}
//% each arrays
                ${condition}
                ${array}[${index}] = ${value};
//% end
//% if inside
                if (${inside}) {
                    ${elements}
                }
//% else
                ${elements}
//% end
            }
            ${finish}
        }
    }
}
