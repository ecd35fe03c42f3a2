// ${definition}: what becomes of the sums.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    for (${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x; element < ${total};
         element += (${index})gridDim.x * ${block}) {
        ${coordinates}
        const ${value_type} value = ${value};
        ${maps}
//% each results
        ${to}[${place}] = ${packed};
//% end
    }
}
