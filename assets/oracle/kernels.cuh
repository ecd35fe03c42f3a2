
// Kernels over the tensors of a case: blocks along y are tensors, of which some are selected. The
// task's own functions are called through element_of, expected_of and tie_of.

__device__ static inline bool is_selected(const oracle_op &op) {
    return op.select >> blockIdx.y & 1;
}

// The record of this block: selected tensors have a row each.
template <class T> __device__ static inline T *record_of(const oracle_op &op) {
    const int64_t row = __popcll(op.select & ((1ull << blockIdx.y) - 1));
    return (T *)op.out + row * gridDim.x + blockIdx.x;
}

// Inputs into their places; or, where records are asked for, what is there against what they are
// when they are made again.
extern "C" __global__ void oracle_inputs(const __grid_constant__ oracle_op op) {
    if (!is_selected(op))
        return;
    const oracle_world *o = op.world;
    const oracle_tensor &t = o->tensor[blockIdx.y];
    const share mine(t.count);
    oracle_found f = nothing();
    bool odd = false;
#pragma unroll 1
    for (int64_t i = mine.first + threadIdx.x; i < mine.last; i += blockDim.x) {
        const double v = element_of(o, blockIdx.y, i);
        const uint64_t bits = encode((dtype)t.type, v, t.lo, t.hi);
        if (!op.out)
            put_bits(t.item, t.at, i, bits);
        else if (!holds_bits(t.item, t.at, i, bits))
            note(f, i);
        odd = odd || !isfinite(v);
    }
    if (odd)
        o->odd[blockIdx.y] = 1;
    if (op.out)
        write_merged(f, record_of<oracle_found>(op));
}

extern "C" __global__ void oracle_poison(const __grid_constant__ oracle_op op) {
    if (!is_selected(op))
        return;
    const oracle_tensor &t = op.world->tensor[blockIdx.y];
    const share mine(t.count);
#pragma unroll 1
    for (int64_t i = mine.first + threadIdx.x; i < mine.last; i += blockDim.x)
        put_bits(t.item, t.at, i, poison_pattern((dtype)t.type, op.key, (uint64_t)i));
}

// ---- outputs ----

// One element; the place of another extreme that is as good counts as the one chosen.
__device__ static inline bool compare_element(const oracle_op &op, int64_t i, const expected &x,
                                              oracle_tally &tally, oracle_mismatch &m) {
    const oracle_world *o = op.world;
    const oracle_tensor &t = o->tensor[blockIdx.y];
    double got = load_any((dtype)t.type, t.at, i);
    m.index = i;
    m.expected = x.v;
    m.got = t.type == DTYPE_BOOL ? ((const unsigned char *)t.at)[i] : got;
    m.estimate = x.estimate;
    if (t.whole && got != x.v && !isinf(x.estimate) && tie_of(o, blockIdx.y, i, x.best, got))
        got = x.v;
    return compare_value(t, (dtype)t.type, op.key, i, x, got, tally);
}

__device__ __noinline__ static void compare_each(const oracle_op &op, int64_t i, int64_t last,
                                                 oracle_tally &out) {
    const oracle_tensor &t = op.world->tensor[blockIdx.y];
    const bool keeps = !op.out && !op.more;
    oracle_tally tally = out;
    oracle_mismatch m;
#pragma unroll 1
    for (; i < last; i += ORACLE_BLOCK) {
        const int64_t at = op.first + i;
        const expected x =
            t.expected && !keeps ? kept(t.expected, at) : expected_of(op.world, blockIdx.y, at);
        if (keeps) {
            keep(t, at, x);
            continue;
        }
        const bool ok = compare_element(op, at, x, tally, m);
        if (!ok)
            note(tally.bad, i);
        m.index = ok ? -1 : m.index;
        if (op.more)
            op.more[i] = m;
    }
    out = tally;
}

// All elements or, where `more` is given, op.count from op.first on, one by one: what is expected of
// each and what is there; those with nothing wrong have the index -1. Without either, what is
// expected of all of them is kept.
extern "C" __global__ void oracle_compare(const __grid_constant__ oracle_op op) {
    if (!is_selected(op))
        return;
    const oracle_tensor &t = op.world->tensor[blockIdx.y];
    const share mine(op.more ? op.count : t.count);
    oracle_tally tally = empty_tally();
    int64_t i = mine.first + threadIdx.x;
    if (t.expected && op.out)
        i = compare_kept_of(op, i, mine.last, tally);
    compare_each(op, i, mine.last, tally);
    if (op.out)
        write_merged(tally, record_of<oracle_tally>(op));
}

// ---- canaries ----

// Eight bytes a step, wherever the region begins and ends.
__device__ static inline int64_t canary_bytes(const oracle_region &r, int64_t at) {
    return r.bytes - at < 8 ? r.bytes - at : 8;
}

__device__ static inline bool canary_whole(const oracle_region &r, int64_t at) {
    return canary_bytes(r, at) == 8 && (uint64_t)r.at % 8 == 0;
}

extern "C" __global__ void oracle_canary_fill(const __grid_constant__ oracle_regions all) {
    const oracle_region &r = all.region[blockIdx.y];
    const share mine((r.bytes + 7) / 8);
#pragma unroll 1
    for (int64_t i = mine.first + threadIdx.x; i < mine.last; i += blockDim.x) {
        const uint64_t bits = poison_mix(r.key, (uint64_t)i * 8);
        if (canary_whole(r, i * 8))
            ((uint64_t *)r.at)[i] = bits;
        else
#pragma unroll 1
            for (int k = 0; k < canary_bytes(r, i * 8); k++)
                ((uint8_t *)r.at)[i * 8 + k] = (uint8_t)(bits >> 8 * k);
    }
}

extern "C" __global__ void oracle_canary_check(const __grid_constant__ oracle_regions all) {
    const oracle_region &r = all.region[blockIdx.y];
    const share mine((r.bytes + 7) / 8);
    oracle_found f = nothing();
#pragma unroll 1
    for (int64_t i = mine.first + threadIdx.x; i < mine.last; i += blockDim.x) {
        const uint64_t bits = poison_mix(r.key, (uint64_t)i * 8);
        if (canary_whole(r, i * 8) && ((const uint64_t *)r.at)[i] == bits)
            continue;
#pragma unroll 1
        for (int k = 0; k < canary_bytes(r, i * 8); k++)
            if (((const uint8_t *)r.at)[i * 8 + k] != (uint8_t)(bits >> 8 * k))
                note(f, i * 8 + k);
    }
    write_merged(f, &all.out[(int64_t)blockIdx.y * gridDim.x + blockIdx.x]);
}

// ---- digests ----

__device__ static inline uint64_t digest_word(const oracle_region &r, int64_t i) {
    uint64_t bits = 0;
#pragma unroll 1
    for (int k = 0; k < canary_bytes(r, i * 8); k++)
        bits |= (uint64_t)((const uint8_t *)r.at)[i * 8 + k] << 8 * k;
    return bits;
}

// A sum over all words, each mixed with its place and a secret key: at memory speed, and nobody who
// does not know the key can change a byte without changing it.
extern "C" __global__ void oracle_digest(const __grid_constant__ oracle_regions all) {
    const oracle_region &r = all.region[blockIdx.y];
    const share mine((r.bytes + 7) / 8);
    const int64_t whole = (uint64_t)r.at % 8 == 0 ? integer_minimum(mine.last, r.bytes / 8) : mine.first;
    oracle_found f = {0, 0};
    int64_t i = mine.first + threadIdx.x;
#pragma unroll 4
    for (; i < whole; i += ORACLE_BLOCK)
        f.count += (int64_t)poison_mix(poison_mix(r.key, (uint64_t)i), ((const uint64_t *)r.at)[i]);
#pragma unroll 1
    for (; i < mine.last; i += ORACLE_BLOCK)
        f.count += (int64_t)poison_mix(poison_mix(r.key, (uint64_t)i), digest_word(r, i));
    write_merged(f, &all.out[(int64_t)blockIdx.y * gridDim.x + blockIdx.x]);
}
