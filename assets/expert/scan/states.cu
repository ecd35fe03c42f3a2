//% library
// A state takes several words. Each has its kind beside its bits, and those of one kind are written
// once: where the kinds are the same the bits belong together.
static __device__ __forceinline__ void ${publish}(long long *states, long long kind, ${type} v) {
    const unsigned bits[${words}] = {${packed}};
#pragma unroll
    for (int word = 0; word < ${words}; word++)
        cp_publish(states + word, kind, __uint_as_float(bits[word]));
}
// The kind of all words, or 0.
static __device__ __forceinline__ long long ${observe}(const long long *states, ${type} &v) {
    unsigned bits[${words}];
    long long kind = 0;
    bool same = true;
#pragma unroll
    for (int word = 0; word < ${words}; word++) {
        const long long seen = cp_observe(states + word);
        const long long own = seen >> 32 << 32;
        same = same && (word == 0 || own == kind);
        kind = own;
        bits[word] = (unsigned)seen;
    }
    v = ${type}(${unpacked});
    return same ? kind : 0;
}
