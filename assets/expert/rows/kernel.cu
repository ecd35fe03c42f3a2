// ${comment}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    ${body}
}

