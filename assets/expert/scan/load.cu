#pragma unroll
for (int ${m} = 0; ${m} < ${items}; ${m}++) {
    const ${index} ${p} = ${position};
    ${loads}
}
