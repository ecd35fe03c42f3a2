//% if by_warp
// A warp scans a row ${way}, ${chunk_size} elements at a time.
//% end
//% if by_chunk
// A block scans ${chunk_size} elements of a row ${way}, behind the chunks before.
//% end
//% if by_block
// A block scans ${what} ${way}, ${chunk_size} elements at a time.
//% end
extern "C" __global__ void __launch_bounds__(${block})
    ${kernel}(${params}) {
//% if by_chunk
    __shared__ ${type} totals[${warps}]; // of the warps
//% end
//% if by_block
    __shared__ ${type} totals[2][${warps}]; // of the warps
    int turn = 0;
//% end
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
//% if by_warp
    const ${index} row = (${index})blockIdx.x * ${warps} + warp;
    if (row >= ${rows})
        return;
//% else
//% if by_chunk
    // Chunks are handed out in order: those before this one are done or under way.
    __shared__ int ticket;
    __shared__ ${type} ahead;
    if (threadIdx.x == 0)
        ticket = atomicAdd(tickets, 1);
    __syncthreads();
    const int row = ticket % (int)${rows};
    const int tile = ticket / (int)${rows};
    long long *states = progress + row * ${tiles}${words_of};
    const ${index} begin = (${index})tile * ${chunk_size};
    const ${index} end = min(begin + ${chunk_size}, ${extent});
//% else
//% if parts
    const int row = blockIdx.x / ${split};
    const int part = blockIdx.x % ${split};
    const ${index} begin = part * ${length};
    const ${index} end = min(begin + ${length}, ${extent});
//% else
    const int row = blockIdx.x;
//% end
//% end
//% end
//% if writes_parts
    ${type} *totals_of_parts = (${type} *)memory_of_parts;
//% end
//% if reads_parts
    const ${type} *totals_of_parts = (const ${type} *)memory_of_parts;
//% end
    ${coordinates}
    const int first = ${vector} * ${width};
    ${type} carry = ${identity}; // of all that comes before the chunk
//% if starts_behind
    for (int before = 0; before < part; before++)
        carry = ${combine}(carry, totals_of_parts[row * ${split} + before]);
//% end
//% each streams
//% if prefetch
    cp_pack<${element_type}, ${width}> ${now}[${items}], ${next}[${items}];
//% else
    cp_pack<${element_type}, ${width}> ${now}[${items}];
//% end
//% end
//% if prefetch
#pragma unroll
    for (int item = 0; item < ${items}; item++) {
        const ${index} position = ${first_position} + item * ${step};
        if (position < ${end}) {
//% each streams
            ${now}[item] = cp_load<${width}>(${from} + ${offset});
//% end
        }
    }
//% end
    for (${index} chunk = ${begin}; chunk < ${end}; chunk += ${chunk_size}) {
//% if streams
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} position = ${loaded} + first + item * ${step};
            if (position < ${end}) {
//% each streams
                ${loads}[item] = cp_load<${width}>(${from} + ${offset});
//% end
            }
        }
//% end
        // Within each vector.
        ${type} sum[${items}][${width}];
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} position = chunk + first + item * ${step};
#pragma unroll
            for (int elem = 0; elem < ${width}; elem++) {
                const ${type} term = ${term};
                sum[item][elem] = elem == 0 ? term : ${combine}(sum[item][elem - 1], term);
            }
        }
        // Over the lanes, one row of vectors after the other.
//% if totals_alone
        ${type} total = ${identity};
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${type} upto = ${warp_scan}(sum[item][${last}]);
            total = ${combine}(total, ${shuffle}(0xffffffffu, upto, 31));
        }
//% else
        ${type} before[${items}], total = ${identity};
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${type} upto = ${warp_scan}(sum[item][${last}]);
            const ${type} left = ${shuffle_up}(0xffffffffu, upto, 1);
            before[item] = lane == 0 ? total : ${combine}(total, left);
            total = ${combine}(total, ${shuffle}(0xffffffffu, upto, 31));
        }
//% end
//% if by_block
        // Over the warps. Chunks take turns with two sets of totals, so one barrier is enough.
        if (lane == 31)
            totals[turn][warp] = total;
        __syncthreads();
        const ${type} sums = ${warp_scan}(lane < ${warps} ? totals[turn][lane] : ${identity});
//% if not totals_alone
        const ${type} earlier = ${shuffle}(0xffffffffu, sums, max(warp - 1, 0));
//% end
//% end
//% if by_chunk
        // Over the warps, then over the chunks before: the first warp looks back, 32 of them at a
        // time, until it meets one that knows the total up to its own end.
        if (lane == 31)
            totals[warp] = total;
        __syncthreads();
        const ${type} sums = ${warp_scan}(lane < ${warps} ? totals[lane] : ${identity});
        const ${type} earlier = ${shuffle}(0xffffffffu, sums, max(warp - 1, 0));
        if (warp == 0) {
            const ${type} all = ${shuffle}(0xffffffffu, sums, ${last_warp});
            if (lane == 0)
                ${publish}(states + tile${words_of}, tile == 0 ? cp_upto : cp_total, all);
            for (int nearest = tile - 1; nearest >= 0; nearest -= 32) {
                long long seen = cp_upto;
//% if tuple
                ${type} shown = ${identity};
//% end
                do {
                    if (nearest - lane >= 0)
//% if tuple
                        seen = ${observe}(states + (nearest - lane)${words_of}, shown);
//% else
                        seen = cp_observe(states + nearest - lane);
//% end
                } while (__any_sync(0xffffffffu, seen < cp_total));
                const unsigned known =
                    __ballot_sync(0xffffffffu, seen >= cp_upto && nearest - lane >= 0);
                const int reach = known ? __ffs(known) - 1 : min(nearest, 31);
//% if tuple
                ${type} behind = lane <= reach ? shown : ${identity};
                // Neighbours first: the order counts.
#pragma unroll
                for (int apart = 1; apart < 32; apart *= 2)
                    behind = ${combine}(
                        ${shuffle}(0xffffffffu, behind, min(lane + apart, 31)), behind);
//% else
                ${type} behind = lane <= reach ? __uint_as_float((unsigned)seen) : ${identity};
#pragma unroll
                for (int apart = 16; apart > 0; apart /= 2)
                    behind = ${combine}(__shfl_xor_sync(0xffffffffu, behind, apart), behind);
//% end
                carry = ${combine}(behind, carry);
                if (known)
                    break;
            }
            if (lane == 0) {
                if (tile > 0)
                    ${publish}(states + tile${words_of}, cp_upto, ${combine}(carry, all));
                ahead = carry;
            }
        }
        __syncthreads();
        carry = ahead;
//% end
//% if by_warp
        const ${type} start = carry;
//% else
//% if not totals_alone
        const ${type} start = warp == 0 ? carry : ${combine}(carry, earlier);
//% end
//% end
//% if not totals_alone
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
            const ${index} position = chunk + first + item * ${step};
            if (position >= ${end})
                break;
            const ${type} base = ${combine}(start, before[item]);
//% each results
            cp_pack<${element_type}, ${width}> ${pack};
//% end
#pragma unroll
            for (int elem = 0; elem < ${width}; elem++) {
//% if tuple
                const ${type} state = ${state};
//% end
                const ${value_type} value = ${value};
                ${maps}
//% each results
                ${pack}.at[${element}] = ${packed};
//% end
            }
//% each results
            cp_store(${to} + ${place}, ${pack});
//% end
        }
//% end
//% if by_block
        carry = ${combine}(carry, ${shuffle}(0xffffffffu, sums, ${last_warp}));
        turn ^= 1;
//% end
//% if by_warp
        carry = ${combine}(carry, total);
//% end
//% if prefetch
#pragma unroll
        for (int item = 0; item < ${items}; item++) {
//% each streams
            ${now}[item] = ${next}[item];
//% end
        }
//% end
    }
//% if totals_alone
    if (threadIdx.x == 0)
        totals_of_parts[blockIdx.x] = carry;
//% end
}

