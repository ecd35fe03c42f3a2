// A thread has an element.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} ${e} = (${index})blockIdx.x * ${block} + (${index})threadIdx.x;
    if (${e} >= ${total})
        return;
    ${element}
}
