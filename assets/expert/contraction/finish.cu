// Adds the ${split} parts of each sum and finishes the result.
extern "C" __global__ void __launch_bounds__(256) ${kernel}(${parameters}) {
    const ${index} ${at} = (${index})blockIdx.x * 256 + threadIdx.x;
    if (${at} >= ${count})
        return;
    ${decode}
    ${sums}
    ${finish}
}

