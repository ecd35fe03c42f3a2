// Chunks are handed out in order: those before this one are done or under way.
__shared__ int ${ticket};
__shared__ ${type} ${ahead};
if (threadIdx.x == 0)
    ${ticket} = atomicAdd(${tickets}, 1);
__syncthreads();
const int ${row} = ${ticket} % (int)${rows};
const int ${tile} = ${ticket} / (int)${rows};
long long *${states} = ${state} + ${row} * ${tiles};
const ${index} ${begin} = (${index})${tile} * ${chunk_size};
const ${index} ${end} = min(${begin} + ${chunk_size}, ${extent});
