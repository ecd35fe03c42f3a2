// Columns [col, col + N) of a row of `cols`; those outside of it are 0, or not stored.
template <class T, class I, class P>
static __device__ __forceinline__ void cp_get_edge(const T *row, I col, I cols, P &&pack) {
    constexpr int N = decltype(cute::size(pack))::value;
    if (col >= 0 && col + N <= cols) {
        cp_get(row + col, pack);
        return;
    }
    cute::clear(pack);
    cute::copy_if([&](int v) { return col + v >= 0 && col + v < cols; }, cp_beside(row + col, pack),
                  pack);
}
template <class T, class I, class P>
static __device__ __forceinline__ void cp_put_edge(T *row, I col, I cols, const P &pack) {
    constexpr int N = decltype(cute::size(pack))::value;
    if (col >= 0 && col + N <= cols) {
        cp_put(row + col, pack);
        return;
    }
    auto to = cp_beside(row + col, pack);
    cute::copy_if([&](int v) { return col + v >= 0 && col + v < cols; }, pack, to);
}

