float ${f}_top = ${f};
#pragma unroll
for (int e = 0; e < N; e++)
    ${f}_top = cp_maximum(${f}_top, ${f}_terms[e]);
// Exponentials are relative to the largest so far; where all are -inf, to 0.
const float ${f}_base = ${f}_top == -INFINITY ? 0.0f : ${f}_top;
float ${f}_more = 0.0f;
#pragma unroll
for (int e = 0; e < N; e++)
    ${f}_more += ${exp}(${f}_terms[e] - ${f}_base);
${f}_sum = ${f}_sum * ${exp}(${f} - ${f}_base) + ${f}_more;
${f} = ${f}_top;
