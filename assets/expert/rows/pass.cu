//% if in_registers
{ // the packs of a thread are all its columns
//% else
for (${col_type} at = ${first}; at < ${end}; at += kTeam * kVec * kItems) {
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
