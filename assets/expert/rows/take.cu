// The larger value and its place; of equal ones the first. NaN is the largest.
template <class T, class I>
static __device__ __forceinline__ void cp_take_max(T &best, I &place, T value, I at) {
    const bool tie = value == best || (value != value && best != best);
    const bool more = value > best || (value != value && best == best);
    if (more || (tie && at < place)) {
        best = value;
        place = at;
    }
}
// The same with the smaller one.
template <class T, class I>
static __device__ __forceinline__ void cp_take_min(T &best, I &place, T value, I at) {
    const bool tie = value == best || (value != value && best != best);
    const bool less = value < best || (value != value && best == best);
    if (less || (tie && at < place)) {
        best = value;
        place = at;
    }
}
// The same for places that only grow: of equal values the one that is there stays.
template <class T, class I>
static __device__ __forceinline__ void cp_next_max(T &best, I &place, T value, I at) {
    if ((!(value <= best) && best == best) || (value == best && at < place)) {
        best = value;
        place = at;
    }
}
template <class T, class I>
static __device__ __forceinline__ void cp_next_min(T &best, I &place, T value, I at) {
    if ((!(value >= best) && best == best) || (value == best && at < place)) {
        best = value;
        place = at;
    }
}

