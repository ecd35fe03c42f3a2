// Of a window's ${taps} places only those that hit an element count, the same for all results of a
// block: they are listed first, and k runs through them alone.
__shared__ int ${list}[${size}]; // places; at the end how many
for (int ${i} = ${tid}; ${i} < ${size}; ${i} += ${threads})
    ${list}[${i}] = 0;
__syncthreads();
if (${tid} < 32) {
    int ${count} = 0;
    for (int ${i} = ${tid}; ${i} < ${rounded}; ${i} += 32) {
        ${decode}
        const bool ${exists} = ${i} < ${taps} && ${test};
        const unsigned ${all} = __ballot_sync(0xffffffff, ${exists});
        if (${exists})
            ${list}[${count} + __popc(${all} & ((1u << ${tid}) - 1))] = ${i};
        ${count} += __popc(${all});
    }
    if (${tid} == 0)
        ${list}[${last}] = ${count};
}
__syncthreads();
