//% library
//% if best
// The best value so far, and its place.
//% end
//% if decays
// What comes in decays by `decay`, and `sum` is added.
//% end
//% if exponentials
// The largest exponent, and the sum of exponentials less that.
//% end
//% if segments
// The value since the last beginning of a segment, and whether there was one.
//% end
struct ${type} {
    ${first_type} ${first_field};
    ${second_type} ${second_field};
    ${type}() = default;
    __device__ __forceinline__ ${type}(${first_type} ${first_field}, ${second_type} ${second_field})
        : ${first_field}(${first_field}), ${second_field}(${second_field}) {}
};
//% if inner
static __device__ __forceinline__ ${type} ${shuffle_up}(unsigned lanes, ${type} v, int d) {
    return ${type}(__shfl_up_sync(lanes, v.${first_field}, d),
                   __shfl_up_sync(lanes, v.${second_field}, d));
}
static __device__ __forceinline__ ${type} ${shuffle}(unsigned lanes, ${type} v, int lane) {
    return ${type}(__shfl_sync(lanes, v.${first_field}, lane),
                   __shfl_sync(lanes, v.${second_field}, lane));
}
//% end
