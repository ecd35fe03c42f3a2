for (int ${next} = 0; ${next} < (int)blockIdx.y; ${next}++)
#pragma unroll
    for (int ${e} = 0; ${e} < ${width}; ${e}++)
        ${carry}[${e}] = ${combine}(${carry}[${e}], ${parts}[${next} * ${columns} + ${column} + ${e}]);
