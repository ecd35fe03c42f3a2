// ${tensor}, ${rows} x ${row} of it, one element a copy: ${why}.
${before}
auto ${load} = [&](int ${stage}, int ${k0}) {
    ${target}
    ${once}
${unroll}
    for (int ${i} = 0; ${i} < ${count}; ${i}++) {
        ${each}
        const bool ${exists} = ${test};
        ${move}
    }
};
${keep}
