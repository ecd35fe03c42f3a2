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
//% each units
            ${type} ${terms}[kVec];
//% if masked
            bool ${masks}[kVec];
//% end
//% if is_place
            ${col_type} ${places}[kVec];
//% end
//% end
            ${results}
//% if by_elements
#pragma unroll
            for (int slot = 0; slot < kVec; slot++) {
//% else
            {
//% end
                ${columns}
//% each units
                ${condition}
                ${terms}[${index}] = ${term};
//% if masked
                ${masks}[${index}] = ${counted};
//% end
//% if is_place
                ${places}[${index}] = ${column};
//% end
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
