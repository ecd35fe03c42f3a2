// Where a row's element lies, ${layout}.
static __device__ __forceinline__ int a_at(int row, int col) {
    return ${a_at};
}
static __device__ __forceinline__ int b_at(int row, int col) {
    return ${b_at};
}
