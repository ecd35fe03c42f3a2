// Adds the ${split} parts of each sum and finishes the result.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, const float *__restrict__ part) {
    const ${index} at = (${index})blockIdx.x * 256 + threadIdx.x;
    if (at >= ${count})
        return;
    ${decode}
    //% if inside
    if (!(${inside}))
        return;
    //% end
    //% each folds
    float sum${fold} = 0.0f;
#pragma unroll 8
    for (int turn = 0; turn < ${split}; turn++)
        sum${fold} += part[${slot} * (long long)${count} + at];
    //% end
    ${epilogue}
}

