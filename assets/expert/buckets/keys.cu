// ${definition}: which result each term belongs to.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    for (${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x; element < ${total};
         element += (${index})gridDim.x * ${block}) {
        ${coordinates}
//% if within
//% each pins
        const long long ${key} = ${value};
//% end
        keys[element] = (int)(${bucket});
//% else
        bool inside = true;
//% each pins
        const long long ${key} = ${value};
        inside = inside && ${key} >= 0 && ${key} < ${extent};
//% end
        keys[element] = inside ? (int)(${bucket}) : ${none};
//% end
    }
}
