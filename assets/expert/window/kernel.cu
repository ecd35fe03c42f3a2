// ${headline}
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
    ${shared}
    ${threads}
    ${place}
    ${weights}
    ${fill}
    ${leave}
    ${begin}
    ${loops}
    ${results}
}

