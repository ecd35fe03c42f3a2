#pragma unroll
for (int ${v} = 0; ${v} < kVec; ${v}++) {
    ${body}
}
