// ${definition}: one thread an element.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    for (${index} ${e} = (${index})blockIdx.x * ${block} + (${index})threadIdx.x; ${e} < ${total};
         ${e} += (${index})gridDim.x * ${block}) {
        ${body}
        ${store}
    }
}
