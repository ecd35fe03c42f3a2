// ${comment}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    constexpr int kTeam = ${team}; // threads that share a row
//% if outer
    constexpr int kLanes = ${lanes}; // packs of neighbouring rows
//% end
//% if clustered
    constexpr int kCluster = ${cluster}; // blocks that share a row
//% end
//% if passes
    constexpr int kVec = ${vec}; // neighbours in a pack
    constexpr int kItems = ${items}; // packs that a thread has at once
//% end
//% if outer
    const int lane = threadIdx.x % kLanes, rank = threadIdx.x / kLanes;
    const ${row_type} row = ((${row_type})blockIdx.x * kLanes + lane) * kVec;
    const bool live = row < ${rows};
//% else
//% if teams
    const int lane = threadIdx.x % kTeam;
    const ${row_type} row = (${row_type})blockIdx.x * ${teams} + threadIdx.x / kTeam;
    const bool live = row < ${rows};
//% else
    const int lane = threadIdx.x;
//% if clustered
    const int rank = blockIdx.x % kCluster;
//% end
//% if not ahead
    const ${row_type} row = ${own_row};
//% end
//% end
//% end
//% if ahead
    const int step = ${steps}; // rows that are under way at once
    for (${row_type} row = ${own_row}; row < ${rows}; row += step) {
        ${row_lines}
    }
//% else
    ${row_lines}
//% end
}

