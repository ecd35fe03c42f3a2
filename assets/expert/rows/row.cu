${kept}
//% if spare
const ${col_type} cols = live ? ${columns} : 0;
//% else
const ${col_type} cols = ${columns};
//% end
//% if shifted
const int shift = (int)((${shift_base}) % kVec);
//% end
//% if shared
//% if shifted
const ${col_type} from = ${which} * ${chunk} - shift;
//% else
const ${col_type} from = ${which} * ${chunk};
//% end
const ${col_type} end = min(cols, from + ${chunk});
//% else
//% if shifted
const ${col_type} from = -shift;
//% end
//% end
//% if until
// No term counts from this column on.
//% if spare
const ${col_type} until = live ? (${col_type})min((long long)(${until}), (long long)${all}) : 0;
//% else
const ${col_type} until = (${col_type})min((long long)(${until}), (long long)${all});
//% end
//% end
//% if in_shared_memory
extern __shared__ __align__(16) unsigned char cp_row_memory[];
//% end
${pointers}
//% if in_registers
const ${col_type} at = ${first};
//% end
//% each levels

//% if by_slots
${part_type} ${part}[kVec];
#pragma unroll
for (int slot = 0; slot < kVec; slot++)
    ${part}[slot] = ${part_type}::none();
${pass}
//% if merges
#pragma unroll
for (int slot = 0; slot < kVec; slot++)
    ${part}[slot] = cp_merge_columns<kTeam, kLanes>(${part}[slot], lane, rank);
//% end
//% each results
${type} ${name}[kVec];
//% end
//% if results
#pragma unroll
for (int slot = 0; slot < kVec; slot++) {
//% each results
    ${name}[slot] = ${value};
//% end
}
//% end
//% else
${part_type} ${part} = ${part_type}::none();
//% if gathers
//% if spare
for (int at = lane; live && at < ${split}; at += kTeam)
//% else
for (int at = lane; at < ${split}; at += kTeam)
//% end
    ${part}.merge(static_cast<const ${part_type} *>(parts)[${first_part} + at]);
//% else
${pass}
//% end
//% if merges
//% if outer
${part} = cp_merge_columns<kTeam, kLanes>(${part}, lane, rank);
//% else
${part} = cp_merge_${how}<kTeam>(${part});
//% if clustered
${part} = cp_merge_cluster<kCluster>(${part});
//% end
//% end
//% end
//% each results
const ${type} ${name} = ${value};
//% end
//% end
//% end
//% if stores
if (${owner}) {
//% if by_slots
#pragma unroll
    for (int slot = 0; slot < kVec; slot++) {
        ${stores}
    }
//% else
    ${stores}
//% end
}
//% end
//% if maps

${maps}
//% end
