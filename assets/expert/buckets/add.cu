//% if own
// ${definition}: blocks add terms up in shared memory, and then to the sums in memory.
//% else
// ${definition}: each term is added to the sum that it belongs to.
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${parameters}) {
//% if own
    extern __shared__ __align__(8) unsigned char bucket_memory[];
    ${word} *const own = (${word} *)bucket_memory;
//% if mean
    unsigned int *const own_terms = (unsigned int *)(own + ${buckets});
//% end
    for (int bucket = (int)threadIdx.x; bucket < ${buckets}; bucket += ${block}) {
        own[bucket] = 0;
//% if mean
        own_terms[bucket] = 0;
//% end
    }
    __syncthreads();
//% if item_coordinates
    const ${index} item = (${index})blockIdx.x / ${parts};
    ${item_coordinates}
//% end
    const ${index} part = (${index})blockIdx.x % ${parts};
//% else
    const ${index} part = (${index})blockIdx.x;
//% end
#pragma unroll 4
    for (${index} element = part * ${block} + (${index})threadIdx.x; element < ${elements};
         element += (${index})${parts} * ${block}) {
        ${coordinates}
//% each pins
        const long long ${key} = ${value};
        if (${key} < 0 || ${key} >= ${extent})
            continue;
        const ${index} ${name} = (${index})${key};
//% end
//% if condition
        if (!(${condition}))
            continue;
//% end
//% if own
        const ${index} bucket = ${bucket};
        ${atomic}(&own[bucket], ${word_term});
//% if mean
        atomicAdd(&own_terms[bucket], 1u);
//% end
//% else
        const ${index} place = ${place};
        ${atomic}((${word} *)sums + place, ${word_term});
//% if mean
        atomicAdd((unsigned int *)terms + place, 1u);
//% end
//% end
    }
//% if own
    __syncthreads();
    for (${index} bucket = (${index})threadIdx.x; bucket < ${buckets}; bucket += ${block}) {
//% if mean
        if (own_terms[bucket] == 0)
            continue;
//% else
        if (own[bucket] == 0)
            continue;
//% end
        ${bucket_coordinates}
        const ${index} place = ${place};
        ${atomic}((${word} *)sums + place, own[bucket]);
//% if mean
        atomicAdd((unsigned int *)terms + place, own_terms[bucket]);
//% end
    }
//% end
}
