//% if down
// A block takes a tile of ${results_down} x ${results_across} results; a thread ${items} below each other.
//% else
// A block takes ${results_across} neighbouring results, a thread ${items}.
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
//% if halo
    // A file has one name for each type.
    extern __shared__ __align__(16) ${element_type} slab_${element}[];
    ${element_type} *const slab = slab_${element};
//% end
//% if rows_of_threads
    const int lane = threadIdx.x % ${lanes};
    const int down = threadIdx.x / ${lanes};
//% else
    const int lane = threadIdx.x;
//% end
    int tile = blockIdx.x;
    const ${index} corner = tile % ${tiles_across} * ${results_across}${suffix};
    tile /= ${tiles_across};
//% if down
    const ${index} top = tile % ${tiles_down} * ${results_down}${suffix};
    const int outer = tile / ${tiles_down};
//% if several
    const ${index} first = ${thread_row};
//% else
    const ${index} ${row} = ${thread_row};
//% end
//% end
//% if not lanewise
    const ${index} ${column} = corner + lane;
//% end
    ${coordinates}
//% each weights
    ${weight_type} ${weight}${sizes};
//% each axes
#pragma unroll
    for (int ${at} = 0; ${at} < ${size}; ${at}++) {
//% end
    ${element} = ${value};
//% each axes
    }
//% end
//% end
//% if halo
    // The input of the block's results, each element once; ${padding} beyond its edges.
    for (int vector = threadIdx.x; vector < ${vectors}; vector += ${block}) {
        const ${index} column = ${input_column};
//% if down
        const ${index} row = ${tile_row};
//% end
//% each places
        const int ${place} = ${place_value};
//% end
        ${element_type} *here = slab + vector * ${width};
        if (${within}) {
//% if async
            cp_copy_async<${bytes}>(here, ${from});
//% else
//% if pairs
            *reinterpret_cast<unsigned short *>(here) =
                *reinterpret_cast<const unsigned short *>(${from});
//% else
            *here = *(${from});
//% end
//% end
        } else {
//% if wide
#pragma unroll
            for (int elem = 0; elem < ${width}; elem++)
                here[elem] = ${pad};
//% else
            *here = ${pad};
//% end
        }
    }
//% if async
    asm volatile("cp.async.wait_all;" ::: "memory");
//% end
    __syncthreads();
//% end
//% if outside
    if (${outside})
        return;
//% end
//% if several
    ${type} acc[${items}];
//% if counts
    float count[${items}] = {};
//% end
#pragma unroll
    for (int result = 0; result < ${items}; result++)
        acc[result] = ${identity};
//% else
    ${type} acc = ${identity};
//% if counts
    float count = 0.0f;
//% end
//% end
//% if lanewise
#pragma unroll
    for (int result = 0; result < ${items}; result++) {
        const ${index} ${column} = ${column_inside};
//% end
//% each outer_axes
#pragma unroll
        for (int ${at} = 0; ${at} < ${size}; ${at}++) {
//% end
//% if down
#pragma unroll
            for (int ${input} = 0; ${input} < ${inputs}; ${input}++) {
//% end
//% if separable
                ${type} line = ${identity};
//% end
//% if across
#pragma unroll
                for (int ${across} = 0; ${across} < ${across_size}; ${across}++) {
//% end
//% each taps
//% if inside
                    const bool ${is_inside} = ${inside};
                    const ${tap_type} ${tap}_read = ${read};
                    const ${tap_type} ${tap} = ${is_inside} ? ${tap}_read : ${otherwise};
//% else
                    const ${tap_type} ${tap} = ${read};
//% end
//% end
//% if separable
                    line = ${line_step};
//% if across
                }
//% end
//% end
//% if slides
                    // Which place of its window a row of input has for each result, if any.
#pragma unroll
                    for (int result = 0; result < ${items}; result++) {
                        const int reach = input_row - ${result_row};
                        if (${is_reached}) {
//% end
//% if guard
                            if (${guard}) {
                                ${acc} = ${step};
//% if counts
                                ${count} += 1.0f;
//% end
                            }
//% else
                            ${acc} = ${step};
//% end
//% if slides
                        }
                    }
//% end
//% if across
//% if not separable
                }
//% end
//% end
//% if down
            }
//% end
//% each outer_axes
        }
//% end
//% if lanewise
    }
//% end
//% if several
#pragma unroll
    for (int result = 0; result < ${items}; result++) {
        const ${index} ${along} = ${along_value};
        if (${along} >= ${along_extent})
            break;
//% end
        const ${type} value = ${value};
        ${maps}
//% each stores
        ${store};
//% end
//% if several
    }
//% end
}

