// Columns [col, col + N) of a row of `cols`; those outside of it are 0.
template <int N, class T, class I>
static __device__ __forceinline__ cp_pack<T, N> cp_load_edge(const T *row, I col, I cols) {
    if (col >= 0 && col + N <= cols)
        return cp_load<N>(row + col);
    cp_pack<T, N> to = {};
#pragma unroll
    for (int v = 0; v < N; v++)
        if (col + v >= 0 && col + v < cols)
            to.at[v] = row[col + v];
    return to;
}
template <int N, class T, class I>
static __device__ __forceinline__ void cp_store_edge(T *row, I col, I cols,
                                                     const cp_pack<T, N> &from) {
    if (col >= 0 && col + N <= cols) {
        cp_store(row + col, from);
        return;
    }
#pragma unroll
    for (int v = 0; v < N; v++)
        if (col + v >= 0 && col + v < cols)
            row[col + v] = from.at[v];
}

