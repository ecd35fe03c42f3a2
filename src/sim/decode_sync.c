/* What the lanes of a warp or the warps of a block do together. */
#include "sim/decode.h"

/* barrier.sync 0; barrier.sync 1, 64; bar.red.popc.u32 d, 0, p. */
static bool decode_barrier(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool popc = decode_mod(d, "popc"), all = decode_mod(d, "and"), any = decode_mod(d, "or");
    bool red = decode_mod(d, "red"), warp = decode_mod(d, "warp");
    uint32_t id, count = 0, pred = 0, to = 0;
    size_t at = red ? 1 : 0, end = in->nops - (red ? 1 : 0);
    if (warp) {
        if (in->nops != 1 || !decode_source(d, &in->ops[0], '4', &id))
            return decode_refuse(d, NULL);
        decode_step(d, KIND_WARP_SYNC, CLASS_CONTROL)->a = id;
        return true;
    }
    bool arrive = decode_mod(d, "arrive");
    if (!(decode_mod(d, "sync") || red || arrive) ||
        in->nops < (red      ? 3u
                    : arrive ? 2u
                             : 1u) ||
        end - at > 2)
        return decode_refuse(d, NULL);
    if (!decode_source(d, &in->ops[at], '4', &id) ||
        (end - at == 2 && !decode_source(d, &in->ops[at + 1], '4', &count)))
        return false;
    if (red && (in->ops[end].negated || !(popc || all || any) ||
                !decode_source(d, &in->ops[end], 'p', &pred) ||
                !decode_register(d, &in->ops[0], popc ? '4' : 'p', &to)))
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_BARRIER, CLASS_CONTROL);
    i->mode = arrive ? BARRIER_ARRIVE
              : !red ? BARRIER_SYNC
              : popc ? BARRIER_POPC
              : all  ? BARRIER_AND
                     : BARRIER_OR;
    i->d = to;
    i->a = id;
    i->b = count;
    i->c = pred;
    i->dst_bytes = red ? 4 : 0;
    i->wide = str_is(in->op, "bar") || decode_mod(d, "aligned");
    return true;
}

/* shfl.sync.bfly.b32 d|p, a, b, c, mask. */
static bool decode_shuffle(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    uint32_t to, pred = 0, a, b, c, mask;
    if (in->nops != 5 || !decode_mod(d, "sync") || !decode_mod(d, "b32"))
        return decode_refuse(d, NULL);
    const struct ptx_operand *dst = &in->ops[0];
    if (dst->kind == PTX_OP_VECTOR) {
        if (dst->nelem != 2 || !decode_register(d, &dst->elem[1], 'p', &pred))
            return decode_refuse(d, NULL);
        dst = &dst->elem[0];
    }
    if (!decode_register(d, dst, '4', &to) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &b) || !decode_source(d, &in->ops[3], '4', &c) ||
        !decode_source(d, &in->ops[4], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_SHUFFLE, CLASS_MEMORY);
    i->mode = decode_mod(d, "up")     ? SHUFFLE_UP
              : decode_mod(d, "down") ? SHUFFLE_DOWN
              : decode_mod(d, "bfly") ? SHUFFLE_BFLY
                                      : SHUFFLE_IDX;
    i->d = to, i->d2 = pred, i->a = a, i->b = b, i->c = c, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

/* vote.sync.ballot.b32 d, p, mask. */
static bool decode_vote(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool ballot = decode_mod(d, "ballot");
    uint32_t to, p, mask;
    if (in->nops != 3 || !decode_mod(d, "sync"))
        return decode_refuse(d, NULL);
    struct ptx_operand from = in->ops[1];
    from.negated = false;
    if (!decode_register(d, &in->ops[0], ballot ? '4' : 'p', &to) ||
        !decode_source(d, &from, 'p', &p) || !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_VOTE, CLASS_INT);
    i->mode = ballot                 ? VOTE_BALLOT
              : decode_mod(d, "all") ? VOTE_ALL
              : decode_mod(d, "any") ? VOTE_ANY
                                     : VOTE_UNI;
    i->negate = in->ops[1].negated;
    i->d = to, i->a = p, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

static bool decode_redux(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool s = decode_mod(d, "s32"), u = decode_mod(d, "u32"), b = decode_mod(d, "b32");
    uint32_t to, a, mask;
    if (in->nops != 3 || !decode_mod(d, "sync") || !(s || u || b))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], '4', &to) || !decode_source(d, &in->ops[1], '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_REDUX, CLASS_INT);
    i->mode = decode_mod(d, "add")   ? REDUX_ADD
              : decode_mod(d, "min") ? (s ? REDUX_MIN_S : REDUX_MIN_U)
              : decode_mod(d, "max") ? (s ? REDUX_MAX_S : REDUX_MAX_U)
              : decode_mod(d, "and") ? REDUX_AND
              : decode_mod(d, "or")  ? REDUX_OR
                                     : REDUX_XOR;
    i->d = to, i->a = a, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

static bool decode_active(struct decoder *d) {
    uint32_t to;
    if (d->in->nops != 1 || !decode_register(d, &d->in->ops[0], '4', &to))
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_ACTIVE, CLASS_INT);
    i->d = to;
    i->dst_bytes = 4;
    return true;
}

/* barrier.cluster.arrive, barrier.cluster.wait. */
static bool decode_cluster_barrier(struct decoder *d) {
    bool arrive = decode_mod(d, "arrive"), wait = decode_mod(d, "wait");
    if (arrive == wait || d->in->nops)
        return decode_refuse(d, NULL);
    struct instr *i = decode_step(d, KIND_CLUSTER_BARRIER, CLASS_CONTROL);
    i->mode = arrive ? CLUSTER_ARRIVE : CLUSTER_WAIT;
    i->negate = decode_mod(d, "relaxed");
    d->prog->uses_cluster = true;
    return true;
}

/* match.any.sync.b32 d, a, mask; match.all.sync.b32 d|p, a, mask. */
static bool decode_match(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    bool wide = decode_mod(d, "b64");
    uint32_t to, pred = 0, a, mask;
    if (in->nops != 3 || !decode_mod(d, "sync") || !(wide || decode_mod(d, "b32")))
        return decode_refuse(d, NULL);
    const struct ptx_operand *dst = &in->ops[0];
    if (dst->kind == PTX_OP_VECTOR) {
        if (dst->nelem != 2 || !decode_register(d, &dst->elem[1], 'p', &pred))
            return decode_refuse(d, NULL);
        dst = &dst->elem[0];
    }
    if (!decode_register(d, dst, '4', &to) ||
        !decode_source(d, &in->ops[1], wide ? '8' : '4', &a) ||
        !decode_source(d, &in->ops[2], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_MATCH, CLASS_INT);
    i->mode = decode_mod(d, "all") ? MATCH_ALL : MATCH_ANY;
    i->d = to, i->d2 = pred, i->a = a, i->e = mask;
    i->dst_bytes = 4;
    i->wide = wide;
    return true;
}

/* elect.sync d|p, mask. */
static bool decode_elect(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    const struct ptx_operand *dst = in->nops ? &in->ops[0] : NULL;
    uint32_t to, pred, mask;
    if (in->nops != 2 || dst->kind != PTX_OP_VECTOR || dst->nelem != 2)
        return decode_refuse(d, NULL);
    if (!decode_register(d, &dst->elem[0], '4', &to) ||
        !decode_register(d, &dst->elem[1], 'p', &pred) ||
        !decode_source(d, &in->ops[1], '4', &mask))
        return false;
    struct instr *i = decode_step(d, KIND_ELECT, CLASS_INT);
    i->d = to, i->d2 = pred, i->e = mask;
    i->dst_bytes = 4;
    return true;
}

/* mapa.shared::cluster.u32 d, a, rank; getctarank.u64 d, a: without a space, generic addresses. */
static bool decode_mapa(struct decoder *d, bool map) {
    const struct ptx_instr *in = d->in;
    bool wide = decode_mod(d, "u64"), window = decode_mod(d, "shared::cluster");
    uint32_t to, a, rank = 0;
    if (in->nops != (map ? 3u : 2u) || !(wide || decode_mod(d, "u32")))
        return decode_refuse(d, NULL);
    if (!decode_register(d, &in->ops[0], map && wide ? '8' : '4', &to) ||
        !decode_source(d, &in->ops[1], wide ? '8' : '4', &a) ||
        (map && !decode_source(d, &in->ops[2], '4', &rank)))
        return false;
    struct instr *i = decode_step(d, KIND_MAPA, CLASS_INT);
    i->mode = map ? MAPA_MAP : MAPA_RANK;
    i->negate = !window;
    i->wide = wide;
    i->d = to, i->a = a, i->b = rank;
    i->dst_bytes = map && wide ? 8 : 4;
    d->prog->uses_cluster = true;
    return true;
}

static bool decode_fence(struct decoder *d) {
    uint8_t mode = decode_mod(d, "proxy") || decode_mod(d, "proxy::async") ? FENCE_PROXY
                   : decode_mod(d, "cta")                                  ? FENCE_CTA
                   : decode_mod(d, "cluster")                              ? FENCE_CLUSTER
                                                                           : FENCE_GPU;
    decode_step(d, KIND_FENCE, CLASS_CONTROL)->mode = mode;
    return true;
}

/* mov.u64 d, %clock64 and its like: the value is the one of the moment. */
bool decode_clock(struct decoder *d, bool *known) {
    static const struct {
        const char *name;
        uint8_t mode, bytes;
    } clocks[] = {
        {"%clock", CLOCK_CYCLES, 4},
        {"%clock_hi", CLOCK_HIGH, 4},
        {"%clock64", CLOCK_CYCLES, 8},
        {"%globaltimer", CLOCK_NANOSECONDS, 8},
        {"%globaltimer_lo", CLOCK_NANOSECONDS, 4},
        {"%globaltimer_hi", CLOCK_NANOSECONDS_HIGH, 4},
    };
    const struct ptx_instr *in = d->in;
    *known = false;
    if (in->nops != 2 || in->ops[1].kind != PTX_OP_SPECIAL)
        return true;
    for (size_t k = 0; k < sizeof clocks / sizeof *clocks; k++) {
        uint32_t to;
        if (!str_is(in->ops[1].name, clocks[k].name))
            continue;
        *known = true;
        if (!decode_register(d, &in->ops[0], clocks[k].bytes == 8 ? '8' : '4', &to))
            return false;
        struct instr *i = decode_step(d, KIND_CLOCK, CLASS_INT);
        i->mode = clocks[k].mode;
        i->d = to;
        i->dst_bytes = clocks[k].bytes;
    }
    return true;
}

/* setmaxnreg.inc.sync.aligned.u32 240. */
static bool decode_registers(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    if (in->nops != 1 || in->ops[0].kind != PTX_OP_IMM)
        return decode_refuse(d, NULL);
    if (in->ops[0].imm < 24 || in->ops[0].imm > 256 || in->ops[0].imm % 8 != 0)
        return decode_refuse(d, "it takes a multiple of 8 from 24 to 256");
    decode_step(d, KIND_REGISTERS, CLASS_CONTROL)->target = (uint32_t)in->ops[0].imm;
    return true;
}

bool decode_sync(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "barrier") && decode_mod(d, "cluster"))
        return decode_cluster_barrier(d);
    if (str_is(op, "bar") || str_is(op, "barrier"))
        return decode_barrier(d);
    if (str_is(op, "match"))
        return decode_match(d);
    if (str_is(op, "elect"))
        return decode_elect(d);
    if (str_is(op, "mapa") || str_is(op, "getctarank"))
        return decode_mapa(d, str_is(op, "mapa"));
    if (str_is(op, "membar") || str_is(op, "fence"))
        return decode_fence(d);
    if (str_is(op, "nanosleep")) {
        decode_step(d, KIND_PAUSE, CLASS_CONTROL);
        return true;
    }
    if (str_is(op, "setmaxnreg"))
        return decode_registers(d);
    if (str_is(op, "shfl"))
        return decode_shuffle(d);
    if (str_is(op, "vote"))
        return decode_vote(d);
    if (str_is(op, "redux"))
        return decode_redux(d);
    if (str_is(op, "activemask"))
        return decode_active(d);
    *known = false;
    return true;
}
