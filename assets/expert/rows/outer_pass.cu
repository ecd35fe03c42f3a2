//% if in_registers
{ // the packs of a thread are all its columns
//% else
for (${col_type} at = ${first}; at < ${end}; at += kTeam * kItems) {
//% end
    ${packs}
//% if loads
#pragma unroll
    for (int item = 0; item < kItems; item++) {
//% if in_registers
        const ${col_type} col = at + item * kTeam;
        if (col < ${end}) {
            ${loads}
        }
//% else
        // Beyond the end the last one once more: without a branch all loads are under way together.
        const ${col_type} col = min(at + item * kTeam, ${end} - 1);
        ${loads}
//% end
    }
//% end
//% if arrays
//% if by_elements
#pragma unroll
    for (int slot = 0; slot < kVec; slot++) {
//% else
    {
//% end
//% each arrays
        ${type} ${array}[kItems];
//% end
#pragma unroll
        for (int item = 0; item < kItems; item++) {
            const ${col_type} col = at + item * kTeam;
            ${columns}
//% each arrays
            ${condition}
            ${array}[item] = ${value};
//% end
        }
        ${finish}
    }
//% else
#pragma unroll
    for (int item = 0; item < kItems; item++) {
        const ${col_type} col = at + item * kTeam;
        if (col < ${end}) {
            ${columns}
            ${results}
//% if by_elements
#pragma unroll
            for (int slot = 0; slot < kVec; slot++) {
                ${elements}
            }
//% else
            ${elements}
//% end
            ${finish}
        }
    }
//% end
}
