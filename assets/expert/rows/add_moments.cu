float ${f}_mean = 0.0f, ${f}_more = 0.0f;
#pragma unroll
for (int e = 0; e < N; e++)
    ${f}_mean += ${f}_terms[e];
${f}_mean /= N;
#pragma unroll
for (int e = 0; e < N; e++)
    ${f}_more += (${f}_terms[e] - ${f}_mean) * (${f}_terms[e] - ${f}_mean);
cp_merge_moments(${f}_count, ${f}, ${f}_squares, N, ${f}_mean, ${f}_more);
