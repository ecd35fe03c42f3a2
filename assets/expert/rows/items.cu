#pragma unroll
for (int ${k} = 0; ${k} < kItems; ${k}++) {
    const ${type} ${col} = ${at} + ${k} * (kTeam * kVec);
    if (${col} < ${end}) {
        ${body}
    }
}
