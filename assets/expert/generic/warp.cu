// ${definition}: one warp an element.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const int ${lane} = (int)threadIdx.x % 32;
    for (${index} ${e} = ((${index})blockIdx.x * ${block} + (${index})threadIdx.x) / 32; ${e} < ${total};
         ${e} += (${index})gridDim.x * (${block} / 32)) {
        ${body}
        if (${lane} == 0)
            ${store}
    }
}
