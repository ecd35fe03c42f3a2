#pragma unroll
for (int ${e} = 0; ${e} < ${width}; ${e}++)
    ${parts}[(${index})blockIdx.y * ${columns} + ${column} + ${e}] = ${carry}[${e}];
