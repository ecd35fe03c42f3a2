//% if warp
// ${definition}: one warp an element.
//% else
// ${definition}: one thread an element.
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
//% if warp
    const int lane = (int)threadIdx.x % 32;
    for (${index} element = ((${index})blockIdx.x * ${block} + (${index})threadIdx.x) / 32; element < ${total};
         element += (${index})gridDim.x * (${block} / 32)) {
        ${body}
        if (lane == 0)
            ${pointer}[${place}] = ${value};
    }
//% else
    for (${index} element = (${index})blockIdx.x * ${block} + (${index})threadIdx.x; element < ${total};
         element += (${index})gridDim.x * ${block}) {
        ${body}
        ${pointer}[${place}] = ${value};
    }
//% end
}

