// ${definition}: only the elements that change are touched.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} ${e} = (${index})blockIdx.x * ${block} + (${index})threadIdx.x;
    if (${e} >= ${total})
        return;
    ${coordinates}
    const ${type} ${pin} = ${value};
    if (${inside})
        ${store}
}
