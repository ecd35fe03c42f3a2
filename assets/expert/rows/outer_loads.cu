#pragma unroll
for (int ${k} = 0; ${k} < kItems; ${k}++) {
    // Beyond the end the last one once more: without a branch all loads are under way together.
    const ${type} ${col} = min(${at} + ${k} * kTeam, ${end} - 1);
    ${body}
}
