/* The kernel around the loaders: which tile a block has, what of k, and how its parts are put
 * together. */
#include "agent/expert/contraction/contraction.h"
#include "agent/expert/expert.h"
#include "spec/domain.h"

#define SLOTS(array) (array), sizeof(array) / sizeof *(array)

static str number(struct con_writer *w, long long v) {
    return sheet_printf(w->sh, "%lld", v);
}
static str local(struct con_writer *w, const char *name) {
    return contraction_local(w, name);
}

/* ---- which tile, and which part of k ---- */

static str position_text(struct con_writer *w) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    str tile = local(w, "tile"), tiles = local(w, "tiles"), m = local(w, "tile_m"),
        n = local(w, "tile_n"), tm = local(w, "tiles_m"), tn = local(w, "tiles_n");
    buf_printf(&b, "const int %.*s = (int)((%.*s + %d) / %d), %.*s = (int)((%.*s + %d) / %d);\n",
               STR_ARG(tm), STR_ARG(w->total[CON_M]), w->g.tile_m - 1, w->g.tile_m, STR_ARG(tn),
               STR_ARG(w->total[CON_N]), w->g.tile_n - 1, w->g.tile_n);
    bool batched = w->c->group[CON_BATCH].n > 0;
    if (batched)
        buf_printf(&b, "const int %.*s = %.*s * %.*s, %.*s = blockIdx.x %% %.*s;\n", STR_ARG(tiles),
                   STR_ARG(tm), STR_ARG(tn), STR_ARG(tile), STR_ARG(tiles));
    else
        tile = S("blockIdx.x");
    buf_printf(&b, "int %.*s, %.*s;\ngemm_place(%.*s, %.*s, %.*s, %d, %.*s, %.*s);\n", STR_ARG(m),
               STR_ARG(n), STR_ARG(tile), STR_ARG(tm), STR_ARG(tn), w->g.raster, STR_ARG(m),
               STR_ARG(n));
    buf_printf(&b, "const %s %.*s = (%s)%.*s * %d, %.*s = (%s)%.*s * %d;\n", w->index,
               STR_ARG(local(w, "first_m")), w->index, STR_ARG(m), w->g.tile_m,
               STR_ARG(local(w, "first_n")), w->index, STR_ARG(n), w->g.tile_n);
    if (batched)
        contraction_decode(w, CON_BATCH, sheet_printf(w->sh, "blockIdx.x / %.*s", STR_ARG(tiles)),
                           &b);
    str s = sheet_keep(w->sh, &b);
    buf_release(&b);
    return s;
}

/* The least (or most) value of an end of k's range in a tile, as text; empty: not known. */
static str range_end(struct con_writer *w, const struct expr *e, bool most) {
    struct affine f;
    struct str_pair {
        str first, size;
    } side[2] = {{local(w, "first_m"), w->total[CON_M]}, {local(w, "first_n"), w->total[CON_N]}};
    if (!e || !affine_of(w->c->in, e, &f))
        return S("");
    for (int x = 0; x < 2; x++) {
        const struct con_group *g = &w->c->group[CON_M + x];
        uint32_t vars = 0;
        for (size_t i = 0; i < g->n; i++)
            vars |= UINT32_C(1) << g->at[i].var;
        if (!(f.vars & vars))
            continue;
        if (g->n != 1 || g->at[0].part != CON_WHOLE)
            return S("");
        bool last = (f.coef[g->at[0].var] > 0) == most;
        w->k.var[g->at[0].var] =
            last ? sheet_printf(w->sh, "(min(%.*s + %d, %.*s) - 1)", STR_ARG(side[x].first),
                                x ? w->g.tile_n : w->g.tile_m, STR_ARG(side[x].size))
                 : side[x].first;
    }
    return scope_text(&w->k, e);
}

static str range_text(struct con_writer *w) {
    str begin = local(w, "k_begin"), end = local(w, "k_end"), total = w->total[CON_K];
    bool skips = sheet_decision(w->sh, "skip", 0) != 0;
    str lo = range_end(w, skips ? w->c->k_lo : NULL, false);
    str hi = range_end(w, skips ? w->c->k_hi : NULL, true);
    str from = S("0"), to = total, text = S("");
    if (w->listed) {
        text = sheet_printf(w->sh, "%.*s\n", STR_ARG(contraction_taps(w)));
        to = sheet_printf(w->sh, "%.*s[%d] * %.*s", STR_ARG(local(w, "taps")), w->taps_at,
                          STR_ARG(contraction_depth(w)));
    }
    if (lo.n)
        from = sheet_printf(w->sh, "(int)max(%.*s, (%s)0) / %d * %d", STR_ARG(lo), w->index,
                            w->g.tile_k, w->g.tile_k);
    if (hi.n)
        to = sheet_printf(w->sh, "(int)min(%.*s, %.*s)", STR_ARG(hi), STR_ARG(total));
    w->skips = w->listed || lo.n || hi.n;
    if (lo.n || hi.n)
        text = S("// Tiles of k in which every term is left out are skipped.\n");
    if (w->g.split == 1)
        return sheet_printf(w->sh, "%.*sconst int %.*s = %.*s, %.*s = %.*s;", STR_ARG(text),
                            STR_ARG(begin), STR_ARG(from), STR_ARG(end), STR_ARG(to));
    str k_from = local(w, "k_from"), k_to = local(w, "k_to"), share = local(w, "share");
    return sheet_printf(w->sh,
                        "%.*sconst int %.*s = %.*s, %.*s = %.*s;\n"
                        "const int %.*s = (%.*s - %.*s + %d) / %d * %d; // of k, for one of %d\n"
                        "const int %.*s = %.*s + (int)blockIdx.y * %.*s;\n"
                        "const int %.*s = min(%.*s, %.*s + %.*s);",
                        STR_ARG(text), STR_ARG(k_from), STR_ARG(from), STR_ARG(k_to), STR_ARG(to),
                        STR_ARG(share), STR_ARG(k_to), STR_ARG(k_from),
                        w->g.split * w->g.tile_k - 1, w->g.split * w->g.tile_k, w->g.tile_k,
                        w->g.split, STR_ARG(begin), STR_ARG(k_from), STR_ARG(share), STR_ARG(end),
                        STR_ARG(k_to), STR_ARG(begin), STR_ARG(share));
}

/* ---- results ---- */

/* The copy of one part of an operand's tile to so many bytes after the stage's begin. */
static str box_call(struct con_writer *w, size_t operand, int part, size_t at) {
    bool of_m = w->c->operands[operand].side == CON_M;
    str slab = contraction_slab(w, operand);
    if (!slab.n)
        slab = number(w, part);
    else if (w->g.parts > 1)
        slab = sheet_printf(w->sh, "%s(%d * %.*s + %d)", w->k.wide ? "(int)" : "", w->g.parts,
                            STR_ARG(slab), part);
    else if (w->k.wide)
        slab = sheet_printf(w->sh, "(int)%.*s", STR_ARG(slab));
    return sheet_printf(w->sh, "gemm_copy_box(%.*s + %zu, &%.*s, %.*s, %s%.*s, %.*s, %.*s);",
                        STR_ARG(local(w, "to")), at,
                        STR_ARG(contraction_loader_name(w, "map", operand)),
                        STR_ARG(local(w, "k0")), w->k.wide ? "(int)" : "",
                        STR_ARG(local(w, of_m ? "first_m" : "first_n")), STR_ARG(slab),
                        STR_ARG(local(w, "barrier")));
}

/* The copies of one stage, by the thread that starts them. */
static str box_calls(struct con_writer *w) {
    str s = S("");
    size_t at = 0;
    for (int side = CON_M; side <= CON_N; side++)
        for (size_t i = 0; i < w->c->noperands; i++) {
            const struct con_operand *o = &w->c->operands[i];
            if ((int)o->side != side)
                continue;
            for (int part = 0; part < w->g.parts; part++) {
                str one = box_call(w, i, part, at);
                s = sheet_printf(w->sh, "%.*s%s%.*s", STR_ARG(s), s.n ? "\n" : "", STR_ARG(one));
                at += w->g.tile[i].bytes / (size_t)w->g.parts;
            }
        }
    return s;
}

/* Calls of the loaders, or of what stores what they hold. */
static str calls(struct con_writer *w, bool keep) {
    str s = S("");
    for (size_t i = 0; i < w->c->noperands; i++) {
        if (keep && w->g.tile[i].async)
            continue;
        str tensor = w->c->in->task->tensors[w->c->operands[i].read->ref].name;
        str name = sheet_printf(w->sh, "%s_%.*s", keep ? "keep" : "load", STR_ARG(tensor));
        for (size_t k = 0; k < i; k++)
            if (w->c->operands[k].read->ref == w->c->operands[i].read->ref)
                name = sheet_printf(w->sh, "%.*s_%zu", STR_ARG(name), i);
        name = contraction_local(w, name.p);
        s = keep ? sheet_printf(w->sh, "%.*s%s%.*s(%.*s);", STR_ARG(s), s.n ? " " : "",
                                STR_ARG(name), STR_ARG(local(w, "stage")))
                 : sheet_printf(w->sh, "%.*s%s%.*s(%.*s, %.*s);", STR_ARG(s), s.n ? " " : "",
                                STR_ARG(name), STR_ARG(local(w, "stage")), STR_ARG(local(w, "k0")));
    }
    return s;
}

/* ---- the kernel ---- */

/* The definitions this step computes, one a line. */
static str comment_text(struct con_writer *w) {
    const struct task *t = w->step->inst->task;
    static const char *const how[] = {
        [CON_SIMT] = "fp32 multiply-adds",
        [CON_TF32] = "tensor cores, operands rounded to TF32",
        [CON_TF32X3] = "tensor cores, each operand split into two TF32 numbers",
        [CON_BF16X6] = "tensor cores, each operand split into three bf16 numbers",
        [CON_F16] = "tensor cores, f16 operands",
        [CON_BF16] = "tensor cores, bf16 operands",
    };
    str s = S("");
    for (size_t i = 0; i < t->nstatements; i++) {
        char *line =
            arena_cstr(w->sh->mem, str_cut(t->text, t->statements[i].at,
                                           t->statements[i].len < 90 ? t->statements[i].len : 90));
        for (char *p = line; *p; p++)
            if ((unsigned char)*p < ' ' || *p == '\\')
                *p = ' ';
        str one = sheet_printf(w->sh, "// %s\n", line);
        if (str_find(s, one) == s.n)
            s = sheet_printf(w->sh, "%.*s%.*s", STR_ARG(s), STR_ARG(one));
    }
    return sheet_printf(w->sh, "%.*s// by %s%s.", STR_ARG(s), w->g.cute ? "CuTe, " : "",
                        how[w->g.path]);
}

void contraction_totals(struct con_writer *w, unsigned axes) {
    for (int x = 0; x < CON_AXES; x++)
        w->total[x] = axes >> x & 1 ? scope_int(&w->k, w->c->group[x].total) : S("");
    w->index = scope_index_type(&w->k);
    for (int x = 0; x < CON_AXES; x++)
        w->decoded[x] = false;
    w->k.statement = w->c->folds[0].statement;
}

static void require_groups(struct con_writer *w) {
    str k = sheet_plan(w->sh, w->c->group[CON_K].total);
    if (w->k.wide && w->c->group[CON_K].total->kind != EXPR_NUMBER)
        sheet_require(w->sh, "%.*s <= 1073741824", STR_ARG(k));
    if (contraction_chain(&w->g) && w->c->group[CON_K].total->kind != EXPR_NUMBER)
        sheet_require(w->sh, "%.*s <= %lld", STR_ARG(k), (long long)contraction_chain(&w->g));
    for (int x = 0; x < CON_AXES; x++)
        for (size_t i = 0; i < w->c->group[x].n; i++) {
            const struct con_index *v = &w->c->group[x].at[i];
            if (v->part != CON_QUOTIENT || x != CON_BATCH)
                continue;
            str all = sheet_plan(w->sh, v->extent->args[0]), by = sheet_plan(w->sh, v->divisor);
            sheet_require(w->sh, "%.*s %% %.*s == 0", STR_ARG(all), STR_ARG(by));
        }
}

struct body {
    str position, range, loaders, decode_n, decode_m, finish;
};

static bool body_text(struct con_writer *w, struct body *to) {
    struct buf b;
    str m, n, sums[CON_FOLDS];
    buf_init(&b, EXPERT_SOURCE_MAX);
    to->position = position_text(w);
    w->listed = w->c->taps > 0;
    to->range = range_text(w);
    bool ok = true;
    for (size_t i = 0; i < w->c->noperands && ok; i++)
        ok = contraction_loader(w, i, &b);
    to->loaders = sheet_keep(w->sh, &b);
    w->k.statement = w->c->folds[0].statement;
    n = contraction_decode(
        w, CON_N,
        sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(local(w, "first_n")), STR_ARG(local(w, "col"))),
        &b);
    to->decode_n = sheet_keep(w->sh, &b);
    m = contraction_decode(
        w, CON_M,
        sheet_printf(w->sh, "%.*s + %.*s", STR_ARG(local(w, "first_m")), STR_ARG(local(w, "row"))),
        &b);
    to->decode_m = sheet_keep(w->sh, &b);
    for (size_t f = 0; f < w->c->nfolds; f++)
        sums[f] = contraction_sum(w, f);
    str inside = contraction_inside(w);
    if (w->g.split > 1)
        contraction_parts(w, m, n, &b);
    else
        ok = ok && contraction_epilogue(w, sums, &b);
    to->finish = sheet_keep(w->sh, &b);
    if (inside.n && w->g.split == 1) /* results beyond the end of what was taken apart */
        to->decode_m = sheet_printf(w->sh, "%.*s\nif (!(%.*s))\n    continue;",
                                    STR_ARG(to->decode_m), STR_ARG(inside));
    buf_release(&b);
    return ok;
}

static str results_text(struct con_writer *w) {
    str results = local(w, "results"), rows = local(w, "rows"), cols = local(w, "cols");
    return sheet_printf(
        w->sh,
        "// Sums are in shared memory: results are finished row by row, neighbours together.\n"
        "const float *const %.*s = (const float *)%.*s;\n"
        "const int %.*s = (int)min(%.*s - %.*s, (%s)%.*s::BM);\n"
        "const int %.*s = (int)min(%.*s - %.*s, (%s)%.*s::BN);",
        STR_ARG(results), STR_ARG(local(w, "smem")), STR_ARG(rows), STR_ARG(w->total[CON_M]),
        STR_ARG(local(w, "first_m")), w->index, STR_ARG(local(w, "Tiles")), STR_ARG(cols),
        STR_ARG(w->total[CON_N]), STR_ARG(local(w, "first_n")), w->index,
        STR_ARG(local(w, "Tiles")));
}

static void put_launch(struct con_writer *w, str part) {
    str m = sheet_plan(w->sh, w->c->group[CON_M].total),
        n = sheet_plan(w->sh, w->c->group[CON_N].total),
        batch = sheet_plan(w->sh, w->c->group[CON_BATCH].total), args = scope_args(&w->k);
    str grid = sheet_printf(w->sh, "ceil_div(%.*s, %d)*ceil_div(%.*s, %d)", STR_ARG(m), w->g.tile_m,
                            STR_ARG(n), w->g.tile_n);
    if (w->c->group[CON_BATCH].n)
        grid = sheet_printf(w->sh, "%.*s*%.*s", STR_ARG(grid), STR_ARG(batch));
    if (w->g.split > 1)
        grid = sheet_printf(w->sh, "[%.*s, %d]", STR_ARG(grid), w->g.split);
    str extra = buf_str(&w->args);
    sheet_step(w->sh, "launch %.*s<<<%.*s, %d, %zu>>>(%.*s%.*s%s%.*s)", STR_ARG(w->k.name),
               STR_ARG(grid), w->g.threads + (w->g.warpgroup ? 128 : 0), w->g.shared,
               STR_ARG(extra), STR_ARG(args), part.n ? ", " : "", STR_ARG(part));
}

static str product_text(struct con_writer *w) {
    str smem = local(w, "smem"), begin = local(w, "k_begin"), end = local(w, "k_end");
    str stage = local(w, "stage"), k0 = local(w, "k0");
    if (w->g.warpgroup) {
        str boxes = box_calls(w);
        struct slot slots[] = {
            {"product", str_view(contraction_product(w))},
            {"tiles", local(w, "Tiles")},
            {"smem", smem},
            {"k_begin", begin},
            {"k_end", end},
            {"to", local(w, "to")},
            {"k0", k0},
            {"barrier", local(w, "barrier")},
            {"boxes", boxes},
            {"tid", local(w, "tid")},
            {"threads", number(w, w->g.threads)},
        };
        return sheet_render(w->sh, w->g.cute ? "contraction/cute_boxes.cu" : "contraction/boxes.cu",
                            SLOTS(slots));
    }
    str load = calls(w, false), keep = calls(w, true);
    return sheet_printf(w->sh,
                        "%s<%.*s>(\n    %.*s, %.*s, %.*s, [&](int %.*s, int %.*s) { %.*s },\n"
                        "    [&](int%s%.*s) {%s%.*s%s});",
                        contraction_product(w), STR_ARG(local(w, "Tiles")), STR_ARG(smem),
                        STR_ARG(begin), STR_ARG(end), STR_ARG(stage), STR_ARG(k0), STR_ARG(load),
                        keep.n ? " " : "", STR_ARG(keep.n ? stage : S("")), keep.n ? " " : "",
                        STR_ARG(keep), keep.n ? " " : "");
}

static str shared_text(struct con_writer *w) {
    str smem = local(w, "smem"), bytes = local(w, "bytes");
    size_t alignment = contraction_alignment(&w->g);
    if (alignment == 128)
        return sheet_printf(w->sh, "extern __shared__ __align__(128) unsigned char %.*s[];",
                            STR_ARG(smem));
    return sheet_printf(w->sh,
                        "extern __shared__ __align__(128) unsigned char %.*s[];\n"
                        "unsigned char *const %.*s = %.*s + (-(unsigned)"
                        "__cvta_generic_to_shared(%.*s) %% %zu);",
                        STR_ARG(bytes), STR_ARG(smem), STR_ARG(bytes), STR_ARG(bytes), alignment);
}

static bool put_kernel(struct con_writer *w, str part) {
    struct body body;
    int across = w->g.threads < w->g.tile_n ? w->g.threads : w->g.tile_n;
    str config = sheet_name(w->sh, sheet_printf(w->sh, "%.*s_tiles", STR_ARG(w->k.name)));
    contraction_totals(w, (w->g.split > 1 ? 1 << CON_BATCH : 0) | 1 << CON_M | 1 << CON_N |
                              1 << CON_K);
    require_groups(w);
    if (!body_text(w, &body) || !contraction_config(w, config))
        return false;
    str extra = buf_str(&w->params), parameters = scope_params(&w->k);
    parameters = sheet_printf(w->sh, "%.*s%.*s", STR_ARG(extra), STR_ARG(parameters));
    if (part.n)
        parameters = sheet_printf(w->sh, "%.*s, float *__restrict__ %.*s", STR_ARG(parameters),
                                  STR_ARG(local(w, "part")));
    struct slot slots[] = {
        {"comment", comment_text(w)},
        {"threads", number(w, w->g.threads + (w->g.warpgroup ? 128 : 0))},
        {"kernel", w->k.name},
        {"parameters", parameters},
        {"config", config},
        {"tiles", local(w, "Tiles")},
        {"shared", shared_text(w)},
        {"tid", local(w, "tid")},
        {"position", body.position},
        {"range", body.range},
        {"loaders", body.loaders},
        {"product", product_text(w)},
        {"results", results_text(w)},
        {"col", local(w, "col")},
        {"across", number(w, across)},
        {"cols", local(w, "cols")},
        {"decode_n", body.decode_n},
        {"row", local(w, "row")},
        {"rows", local(w, "rows")},
        {"down", number(w, w->g.threads / across)},
        {"decode_m", body.decode_m},
        {"accumulators", contraction_sums(w)},
        {"finish", body.finish},
    };
    put_launch(w, part);
    return sheet_template(w->sh, "contraction/kernel.cu", SLOTS(slots), &w->sh->kernels);
}

bool contraction_kernels(struct con_writer *w) {
    const struct task *t = w->step->inst->task;
    str part = S(""), name = t->tensors[t->statements[t->nstatements - 1].tensor].name;
    str plans[3], count;
    for (int x = 0; x < 3; x++)
        plans[x] = sheet_plan(w->sh, w->c->group[x].total);
    count = sheet_printf(w->sh, "%.*s*%.*s*%.*s", STR_ARG(plans[0]), STR_ARG(plans[1]),
                         STR_ARG(plans[2]));
    if (w->g.split > 1) {
        part = sheet_name(w->sh, S("part"));
        sheet_memory(w->sh, "workspace %.*s[%d, %.*s] : f32", STR_ARG(part),
                     w->g.split * (int)w->c->nfolds, STR_ARG(count));
    }
    buf_init(&w->params, EXPERT_SOURCE_MAX);
    buf_init(&w->args, EXPERT_SOURCE_MAX);
    bool ok = contraction_functions(w);
    for (size_t i = 0; i < w->c->noperands && ok; i++)
        if (w->g.tile[i].packed)
            ok = contraction_pack(w, i);
    for (size_t i = 0; i < w->c->noperands; i++)
        if (w->g.tile[i].packed && !w->g.warpgroup) {
            buf_printf(&w->params, "const %s *__restrict__ %.*s, ",
                       dtype_info(w->g.tile[i].type)->cuda, STR_ARG(w->packed[i]));
            buf_printf(&w->args, "%.*s, ", STR_ARG(w->packed[i]));
        }
    ok = ok &&
         scope_init(&w->k, w->sh, w->step, sheet_printf(w->sh, "%.*s_product", STR_ARG(name)).p) &&
         put_kernel(w, part) && (w->g.split == 1 || contraction_finish(w, part, count));
    buf_release(&w->params);
    buf_release(&w->args);
    return ok;
}
