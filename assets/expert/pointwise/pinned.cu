// ${definition}: only the elements that change are touched.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x;
    if (element >= ${total})
        return;
    ${coordinates}
    const long long ${pin} = ${value};
    if (${pin} >= 0 && ${pin} < ${size})
        ${pointer}[${place}] = ${new};
}

