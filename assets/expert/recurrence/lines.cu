// ${definition}: a thread a line, step after step; what a later step reads stays in registers.
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
    const ${index} line = (${index})blockIdx.x * ${block} + (int)threadIdx.x;
    if (line >= ${lines})
        return;
    ${coordinates}
//% each states
    ${type} ${before} = 0;
//% end
    for (${index} chunk = 0; chunk < ${steps}; chunk += ${items}) {
//% if streams
        // What the next steps read from memory is under way before the first of them is made.
//% each streams
        ${type} ${ahead}[${items}];
//% end
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} ${axis} = ${clamped};
//% each streams
            ${ahead}[item] = ${load};
//% end
        }
//% end
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            if (chunk + item >= ${steps})
                break;
            const ${index} ${axis} = ${place};
            ${body}
        }
    }
}

