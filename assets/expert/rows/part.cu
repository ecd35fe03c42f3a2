// What is known of some columns of a row: ${names}.
struct ${part} {
    ${fields}

    static __device__ __forceinline__ ${part} none() {
        ${part} p;
        ${none}
        return p;
    }
    // Takes N more columns in.
    template <int N>
    __device__ __forceinline__ void add(${params}) {
        ${adds}
    }
    __device__ __forceinline__ void merge(const ${part} &o) {
        ${merges}
    }
    ${across}
};

