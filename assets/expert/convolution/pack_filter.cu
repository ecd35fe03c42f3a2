// ${tensor} as a matrix for each tap, rows along the channels that are summed, ${what}.
extern "C" __global__ void __launch_bounds__(256)
    ${kernel}(${parameters}, ${type} *__restrict__ ${packed}) {
    const int padded = (int)${pitch};
    const ${index} at = (${index})blockIdx.x * 256 + threadIdx.x;
    if (at >= (${index})${matrices} * ${rows} * padded)
        return;
    const int channel = (int)(at % padded);
    const ${index} row = at / padded % ${rows};
    const ${index} tap = at / padded / ${rows} % ${taps};
    ${decode_batch}
    ${decode}
    ${packed}[at] = channel < ${channels} ? ${value} : ${zero};
}

