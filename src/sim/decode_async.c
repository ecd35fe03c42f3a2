/* Copies that end later, and what they end on: cp.async and its groups, bulk and tensor copies,
 * st.async, mbarriers. */
#include "sim/decode.h"

static struct instr *async_step(struct decoder *d, uint8_t kind, struct async_op *a,
                                const struct operand_list *reads,
                                const struct operand_list *writes) {
    struct instr *i = decode_step(d, kind, CLASS_MEMORY);
    i->async = a;
    list_attach(d, i, reads, writes);
    d->prog->uses_async |= kind != KIND_COPY && kind != KIND_COPY_COMMIT && kind != KIND_COPY_WAIT;
    return i;
}

static enum ptx_space shared_or_generic(const struct decoder *d) {
    return decode_mod(d, "shared") || decode_mod(d, "shared::cta") ||
                   decode_mod(d, "shared::cluster")
               ? PTX_SHARED
               : PTX_GENERIC;
}

static bool waits_for(struct decoder *d, bool bulk) {
    const struct ptx_instr *in = d->in;
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    bool all = decode_mod(d, "wait_all");
    if (in->nops != (all ? 0u : 1u) || (!all && in->ops[0].kind != PTX_OP_IMM))
        return decode_refuse(d, NULL);
    a->grouped = bulk;
    a->read_only = decode_mod(d, "read");
    struct instr *i = async_step(d, KIND_COPY_WAIT, a, NULL, NULL);
    i->target = all                           ? UINT32_MAX
                : in->ops[0].imm > UINT16_MAX ? UINT16_MAX
                                              : (uint32_t)in->ops[0].imm;
    return true;
}

static bool commits(struct decoder *d, bool bulk) {
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    if (d->in->nops)
        return decode_refuse(d, NULL);
    a->grouped = bulk;
    async_step(d, KIND_COPY_COMMIT, a, NULL, NULL);
    return true;
}

/* cp.async.cg.shared.global [dst], [src], 16 {, src-size | ignore-src} {, policy}. */
static bool decode_copy(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    size_t policy = decode_mod(d, "L2::cache_hint"), n = in->nops - policy;
    bool cg = decode_mod(d, "cg");
    if ((!cg && !decode_mod(d, "ca")) || !decode_mod(d, "global") || in->nops < 3 + policy ||
        n > 4 || in->ops[2].kind != PTX_OP_IMM)
        return decode_refuse(d, NULL);
    uint64_t bytes = in->ops[2].imm;
    if (bytes != 16 && (cg || (bytes != 4 && bytes != 8)))
        return decode_refuse(d, "it copies 4, 8 or 16 bytes, .cg 16 alone");
    a->nbytes = (uint8_t)bytes;
    if (!list_where(d, &reads, &in->ops[0], PTX_SHARED, &a->to) ||
        !list_where(d, &reads, &in->ops[1], PTX_GLOBAL, &a->from))
        return false;
    if (n == 4) {
        const struct ptx_operand *op = &in->ops[3];
        a->ignorable = decode_shape_ok(d, op, 'p');
        if (!list_source(d, &reads, op, a->ignorable ? 'p' : '4', &a->source_size))
            return false;
    }
    async_step(d, KIND_COPY, a, &reads, NULL);
    return true;
}

/* cp.async.mbarrier.arrive{.noinc}.shared.b64 [bar]. */
static bool decode_copy_arrive(struct decoder *d) {
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    a->no_increase = decode_mod(d, "noinc");
    if (d->in->nops != 1)
        return decode_refuse(d, NULL);
    if (!list_where(d, &reads, &d->in->ops[0], shared_or_generic(d), &a->bar))
        return false;
    async_step(d, KIND_COPY_ARRIVE, a, &reads, NULL);
    return true;
}

static bool reduction(struct decoder *d, struct async_op *a) {
    static const struct {
        const char *name;
        enum tile_map_type type;
    } types[] = {
        {"u32", TILE_MAP_U32},   {"s32", TILE_MAP_S32}, {"u64", TILE_MAP_U64},
        {"s64", TILE_MAP_S64},   {"b32", TILE_MAP_U32}, {"b64", TILE_MAP_U64},
        {"f16", TILE_MAP_F16},   {"f32", TILE_MAP_F32}, {"f64", TILE_MAP_F64},
        {"bf16", TILE_MAP_BF16},
    };
    a->op = TILE_REDUCE_NONE;
    a->type = TILE_MAP_NO_TYPE;
    for (size_t i = 0; i < d->in->nmods; i++) {
        enum tile_reduce_op op = tile_reduce_find(d->in->mods[i]);
        if (op != TILE_REDUCE_NONE)
            a->op = op;
        for (size_t k = 0; k < sizeof types / sizeof *types; k++)
            if (str_is(d->in->mods[i], types[k].name))
                a->type = types[k].type;
    }
    a->reduces = true;
    return a->op != TILE_REDUCE_NONE || decode_refuse(d, NULL);
}

static bool coordinates(struct decoder *d, struct operand_list *reads, struct async_op *a,
                        const struct ptx_operand *op) {
    const struct ptx_operand *list = op->elem;
    size_t n = op->nelem;
    if (n == 1 && list->kind == PTX_OP_VECTOR) {
        n = list->nelem;
        list = list->elem;
    }
    if (n != a->rank)
        return decode_refuse(d, "it has another number of coordinates");
    a->coordinate = (uint8_t)reads->n;
    for (size_t i = 0; i < n; i++) {
        uint8_t ignored;
        if (!list_source(d, reads, &list[i], '4', &ignored))
            return false;
    }
    return true;
}

static bool bulk_direction(struct decoder *d, struct async_op *a, uint8_t *mode) {
    size_t first = SIZE_MAX, second = SIZE_MAX;
    for (size_t i = 0; i < d->in->nmods; i++) {
        str m = d->in->mods[i];
        bool space =
            str_is(m, "global") || str_is(m, "shared::cta") || str_is(m, "shared::cluster");
        if (space && first == SIZE_MAX)
            first = i;
        else if (space)
            second = i;
        if (str_is(m, "1d") || str_is(m, "2d") || str_is(m, "3d") || str_is(m, "4d") ||
            str_is(m, "5d"))
            a->rank = (uint8_t)(m.p[0] - '0');
    }
    if (second == SIZE_MAX)
        return decode_refuse(d, NULL);
    bool to_global = str_is(d->in->mods[first], "global");
    bool from_global = str_is(d->in->mods[second], "global");
    *mode = to_global ? BULK_STORE : from_global ? BULK_LOAD : BULK_SHARE;
    a->grouped = decode_mod(d, "bulk_group");
    if ((to_global && from_global) || a->grouped != to_global ||
        (!a->grouped && !decode_mod(d, "mbarrier::complete_tx::bytes")))
        return decode_refuse(d, NULL);
    if (a->rank && *mode == BULK_SHARE)
        return decode_refuse(d, NULL);
    return true;
}

static bool refused_forms(struct decoder *d) {
    for (size_t i = 0; i < d->in->nmods; i++)
        if (str_starts(d->in->mods[i], S("im2col")))
            return decode_refuse(d, "im2col copies are not simulated; copy tiles");
    if (decode_mod(d, "cp_mask") || decode_mod(d, "tile::gather4") ||
        decode_mod(d, "tile::scatter4"))
        return decode_refuse(d, "it is not an instruction of sm_90");
    return true;
}

/* The operands are, of what there is: dst, src, size, mbarrier, mask, policy. A tensor's map and
 * coordinates are one operand. */
static bool decode_bulk(struct decoder *d, bool reduces) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    uint8_t mode = BULK_LOAD, ignored;
    if (!refused_forms(d) || !bulk_direction(d, a, &mode) || (reduces && !reduction(d, a)))
        return false;
    bool multicast = decode_mod(d, "multicast::cluster"), policy = decode_mod(d, "L2::cache_hint");
    size_t want = 2u + !a->rank + !a->grouped + multicast + policy, at = 2;
    if (in->nops != want || (multicast && mode != BULK_LOAD))
        return decode_refuse(d, "it has another number of operands");
    const struct ptx_operand *tensor = &in->ops[mode == BULK_LOAD ? 1 : 0];
    enum ptx_space to = mode == BULK_STORE ? (a->rank ? PTX_GENERIC : PTX_GLOBAL) : PTX_SHARED;
    enum ptx_space from = mode == BULK_LOAD ? (a->rank ? PTX_GENERIC : PTX_GLOBAL) : PTX_SHARED;
    if (!list_where(d, &reads, &in->ops[0], to, &a->to) ||
        !list_where(d, &reads, &in->ops[1], from, &a->from))
        return false;
    if (a->rank ? !coordinates(d, &reads, a, tensor)
                : !list_source(d, &reads, &in->ops[at++], '4', &a->size))
        return false;
    if (!a->grouped && !list_where(d, &reads, &in->ops[at++], PTX_SHARED, &a->bar))
        return false;
    if (multicast && !list_source(d, &reads, &in->ops[at++], 'h', &a->multicast))
        return false;
    if (policy && !list_source(d, &reads, &in->ops[at], '8', &ignored))
        return false;
    async_step(d, KIND_BULK, a, &reads, NULL)->mode = mode;
    return true;
}

/* st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [a], {…}, [bar]; red.async. */
static bool decode_remote_store(struct decoder *d, bool reduces) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    if (in->nops != 3 || (reduces && !reduction(d, a)))
        return decode_refuse(d, NULL);
    str type = in->mods[in->nmods - 1];
    bool wide = type.n == 3 && type.p[1] == '6' && type.p[2] == '4';
    a->nvalues = decode_mod(d, "v2") ? 2 : decode_mod(d, "v4") ? 4 : 1;
    a->nbytes = wide ? 8 : 4;
    if (!list_where(d, &reads, &in->ops[0], PTX_SHARED, &a->to) ||
        !list_where(d, &reads, &in->ops[2], PTX_SHARED, &a->bar))
        return false;
    a->value = (uint8_t)reads.n;
    if (!list_sources(d, &reads, &in->ops[1], a->nvalues, wide ? '8' : '4'))
        return false;
    async_step(d, KIND_BULK, a, &reads, NULL)->mode = BULK_WRITE;
    return true;
}

static bool mbarrier_mode(const struct decoder *d, uint8_t *out) {
    bool expect = decode_mod(d, "expect_tx");
    *out = decode_mod(d, "init")            ? MBARRIER_INIT
           : decode_mod(d, "inval")         ? MBARRIER_INVALIDATE
           : decode_mod(d, "arrive")        ? (expect ? MBARRIER_ARRIVE_EXPECT_TX : MBARRIER_ARRIVE)
           : decode_mod(d, "arrive_drop")   ? (expect ? MBARRIER_DROP_EXPECT_TX : MBARRIER_DROP)
           : expect                         ? MBARRIER_EXPECT_TX
           : decode_mod(d, "complete_tx")   ? MBARRIER_COMPLETE_TX
           : decode_mod(d, "test_wait")     ? MBARRIER_TEST
           : decode_mod(d, "try_wait")      ? MBARRIER_TRY
           : decode_mod(d, "pending_count") ? MBARRIER_PENDING
                                            : UINT8_MAX;
    return *out != UINT8_MAX;
}

/* The first operand is a result for all but init, inval, expect_tx and complete_tx; then the
 * address, then a count, a token or a parity. */
static bool decode_mbarrier(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0}, writes = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    uint8_t mode;
    if (!mbarrier_mode(d, &mode))
        return decode_refuse(d, NULL);
    bool waits = mode == MBARRIER_TEST || mode == MBARRIER_TRY, pending = mode == MBARRIER_PENDING;
    bool result = waits || pending || mode == MBARRIER_ARRIVE || mode == MBARRIER_DROP ||
                  mode == MBARRIER_ARRIVE_EXPECT_TX || mode == MBARRIER_DROP_EXPECT_TX;
    size_t at = 0;
    a->parity = decode_mod(d, "parity");
    if (in->nops < (size_t)result + 1 || in->nops > (size_t)result + 3)
        return decode_refuse(d, "it has another number of operands");
    if (result) {
        const struct ptx_operand *to = &in->ops[at++];
        a->result = !(to->kind == PTX_OP_SYMBOL && str_is(to->name, "_"));
        char shape = waits ? 'p' : pending ? '4' : '8';
        if (a->result && !list_registers(d, &writes, to, 1, shape))
            return false;
    }
    if (pending) {
        if (in->nops != 2 || !list_source(d, &reads, &in->ops[1], '8', &a->value))
            return decode_refuse(d, NULL);
    } else if (!list_where(d, &reads, &in->ops[at++], shared_or_generic(d), &a->bar)) {
        return false;
    }
    if (!pending && at < in->nops) {
        a->counted = true;
        if (!list_source(d, &reads, &in->ops[at], waits && !a->parity ? '8' : '4', &a->value))
            return false;
    } else if (!pending && mode != MBARRIER_INVALIDATE && mode != MBARRIER_ARRIVE &&
               mode != MBARRIER_DROP) {
        return decode_refuse(d, "it has another number of operands");
    }
    async_step(d, KIND_MBARRIER, a, &reads, &writes)->mode = mode;
    return true;
}

/* tensormap.replace.tile.global_address.global.b1024.b64 [map], {ord,} value. */
static bool decode_map_replace(struct decoder *d) {
    const struct ptx_instr *in = d->in;
    struct operand_list reads = {0};
    struct async_op *a = arena_new_of(d->arena, struct async_op);
    enum ptx_space space = PTX_GENERIC;
    if (!decode_mod(d, "replace") || in->nmods < 4 || in->nops < 2 || in->nops > 3)
        return decode_refuse(d, NULL);
    for (size_t i = 0; i < in->nmods; i++)
        decode_space(in->mods[i], &space);
    a->field = in->mods[2];
    if (in->nops == 3) {
        if (in->ops[1].kind != PTX_OP_IMM || in->ops[1].imm >= TILE_MAX_RANK)
            return decode_refuse(d, NULL);
        a->ord = (uint32_t)in->ops[1].imm;
    }
    a->nbytes = decode_mod(d, "b64") ? 8 : 4;
    if (!list_where(d, &reads, &in->ops[0], space, &a->to) ||
        !list_source(d, &reads, &in->ops[in->nops - 1], a->nbytes == 8 ? '8' : '4', &a->value))
        return false;
    async_step(d, KIND_MAP_REPLACE, a, &reads, NULL);
    return true;
}

static bool decode_cp(struct decoder *d) {
    bool bulk = decode_mod(d, "bulk");
    if (decode_mod(d, "reduce"))
        return decode_bulk(d, true);
    if (!decode_mod(d, "async"))
        return decode_refuse(d, NULL);
    if (decode_mod(d, "commit_group"))
        return commits(d, bulk);
    if (decode_mod(d, "wait_group") || decode_mod(d, "wait_all"))
        return waits_for(d, bulk);
    if (decode_mod(d, "prefetch")) {
        decode_step(d, KIND_NOTHING, CLASS_MEMORY);
        return true;
    }
    if (decode_mod(d, "mbarrier"))
        return decode_copy_arrive(d);
    return bulk ? decode_bulk(d, false) : decode_copy(d);
}

bool decode_async(struct decoder *d, bool *known) {
    str op = d->in->op;
    *known = true;
    if (str_is(op, "cp"))
        return decode_cp(d);
    if (str_is(op, "mbarrier"))
        return decode_mbarrier(d);
    if (str_is(op, "tensormap"))
        return decode_map_replace(d);
    if (str_is(op, "st") || str_is(op, "red"))
        return decode_remote_store(d, str_is(op, "red"));
    if (str_is(op, "createpolicy")) { /* a hint's value means nothing here */
        uint32_t to;
        if (!d->in->nops || !decode_register(d, &d->in->ops[0], '8', &to))
            return decode_refuse(d, NULL);
        return decode_lanes(d, "mov.b64", to, decode_constant(d, 0, 8, false), 0);
    }
    *known = false;
    return true;
}
