float ${f}_mean = 0.0f, ${f}_more = 0.0f, ${f}_new = 0.0f;
#pragma unroll
for (int e = 0; e < N; e++) {
    ${f}_mean += ${f}_terms[e];
    ${f}_new += ${f}_in[e];
}
${f}_mean /= fmaxf(${f}_new, 1.0f);
#pragma unroll
for (int e = 0; e < N; e++) {
    const float d = ${f}_in[e] ? ${f}_terms[e] - ${f}_mean : 0.0f;
    ${f}_more += d * d;
}
cp_merge_moments(${f}_count, ${f}, ${f}_squares, ${f}_new, ${f}_mean, ${f}_more);
