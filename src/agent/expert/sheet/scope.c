/* A kernel's parameters, and the conversions between memory and values. */
#include "agent/expert/sheet/sheet_private.h"
#include "kernel/emit.h"

/* ---- life ---- */

static bool is_wide(const struct step *st) {
    const struct task *t = st->inst->task;
    uint64_t used = 0;
    for (size_t i = 0; i < t->nstatements; i++)
        used |= UINT64_C(1) << t->statements[i].tensor | expr_tensors(t->statements[i].body);
    for (size_t i = 0; i < t->ntensors; i++)
        if ((used >> i & 1) && st->inst->tensors[i].count > SCOPE_INT_MAX)
            return true;
    return false;
}

bool scope_init(struct scope *k, struct sheet *sh, const struct step *st, const char *name) {
    *k = (struct scope){.sh = sh, .step = st, .wide = is_wide(st)};
    sh->nlocal = 0;
    k->name = sheet_name(sh, str_view(name));
    return !sheet_failed(sh);
}

str scope_name(struct scope *k, const char *base) {
    str name = str_view(base);
    for (int i = 2; sheet_has_name(k->sh, name); i++) /* cp_x2 is no more free than cp_x is */
        name = sheet_printf(k->sh, i < 100 ? "%s%d" : "the_%s%d_", base, i);
    if (k->sh->nlocal < SCOPE_LOCALS)
        k->sh->local[k->sh->nlocal++] = name;
    else if (!sheet_failed(k->sh))
        err_set(k->sh->err, ERR_INPUT, "more than %d variables in one kernel", SCOPE_LOCALS);
    return name;
}

/* Where templates compose names, whatever begins or ends like them is reserved: adding to one end
 * alone may never get out of that. */
str scope_free_name(struct scope *k, str base) {
    str name = base;
    for (int i = 0; sheet_is_reserved(k->sh, name); i++)
        name = i == 0   ? TEXT(k->sh, "$_", base)
               : i == 1 ? TEXT(k->sh, "the_$", base)
               : i == 2 ? TEXT(k->sh, "the_$_", base)
                        : sheet_printf(k->sh, "own_%d", i);
    return scope_name(k, name.p);
}

const char *scope_index_type(const struct scope *k) {
    return k->wide ? "long long" : "int";
}

/* ---- pointers ---- */

/* The tensor's name in a kernel: that of the plan, where CUDA allows it. */
static str pointer_name(struct scope *k, size_t tensor) {
    struct sheet *sh = k->sh;
    str name = sheet_tensor(sh, k->step, tensor);
    if (sheet_is_workspace(sh, tensor) || !sheet_is_reserved(k->sh, name))
        return name;
    if (sh->workspace[tensor].n == 0)
        sh->workspace[tensor] = sheet_name(sh, name);
    return sh->workspace[tensor];
}

str scope_pointer(struct scope *k, size_t tensor, bool write) {
    enum dtype t = sheet_dtype(k->sh, k->step, tensor);
    k->tensors |= UINT64_C(1) << tensor;
    k->written |= write ? UINT64_C(1) << tensor : 0;
    k->sh->half |= t == DTYPE_F16;
    k->sh->bfloat |= t == DTYPE_BF16;
    return pointer_name(k, tensor);
}

/* ---- integers ---- */

static str add_int(struct scope *k, str name, str plan, bool size) {
    if (k->nints == SCOPE_INTS) {
        if (!sheet_failed(k->sh))
            err_set(k->sh->err, ERR_INPUT, "more than %d sizes in one kernel", SCOPE_INTS);
        return S("");
    }
    k->ints[k->nints].name = name;
    k->ints[k->nints].size = size;
    k->ints[k->nints++].plan = plan;
    return name;
}

static bool find_int(const struct scope *k, str plan, str *name) {
    for (size_t i = 0; i < k->nints; i++)
        if (str_eq(k->ints[i].plan, plan)) {
            *name = k->ints[i].name;
            return true;
        }
    return false;
}

/* CRS for C*R*S; nothing for what is no product of dimensions, or has a long name. */
static str product_name(struct scope *k, const struct expr *e) {
    enum { LONGEST = 12 };
    if (e->kind == EXPR_DIM)
        return k->step->inst->task->dims[e->ref].name;
    if (e->kind != EXPR_MUL)
        return S("");
    str a = product_name(k, e->args[0]), b = product_name(k, e->args[1]);
    return a.n && b.n && a.n + b.n <= LONGEST ? TEXT(k->sh, "$$", a, b) : S("");
}

static str size_name(struct scope *k, const struct expr *e) {
    str name = product_name(k, e);
    return scope_free_name(k, name.n ? arena_str(k->sh->mem, name) : S("size"));
}

str scope_int(struct scope *k, const struct expr *e) {
    int64_t v;
    str name, plan;
    if (!expr_has(e, EXPR_DIM) && expr_eval_dims(e, k->step->inst->dims, &v))
        return sheet_printf(k->sh, v < 0 ? "(%lld)" : "%lld", (long long)v);
    plan = sheet_plan(k->sh, e);
    if (plan.n == 0 || find_int(k, plan, &name))
        return plan.n ? name : S("");
    bool own = e->kind == EXPR_DIM && !sheet_is_reserved(k->sh, plan);
    name = own                   ? plan
           : e->kind == EXPR_DIM ? scope_free_name(k, TEXT(k->sh, "the_$", plan))
                                 : size_name(k, e);
    return add_int(k, name, plan, true);
}

str scope_int_plan(struct scope *k, const char *name, str plan) {
    str known;
    if (find_int(k, plan, &known))
        return known;
    return add_int(k, scope_name(k, name), plan, false);
}

/* ---- parameters ---- */

static void put_comma(struct buf *out) {
    if (out->n)
        buf_puts(out, S(", "));
}

static void put_pointers(struct scope *k, bool written, bool types, struct buf *out) {
    for (size_t i = 0; i < k->step->inst->task->ntensors; i++) {
        if (!(k->tensors >> i & 1) || (k->written >> i & 1) != written)
            continue;
        put_comma(out);
        str name = types ? pointer_name(k, i) : sheet_tensor(k->sh, k->step, i);
        if (types)
            buf_printf(out, "%s%s *__restrict__ ", written ? "" : "const ",
                       dtype_info(sheet_dtype(k->sh, k->step, i))->cuda);
        buf_puts(out, name);
    }
}

str scope_params(struct scope *k) {
    struct buf b;
    buf_init(&b, 64u << 10);
    buf_puts(&b, k->own_param);
    put_pointers(k, false, true, &b);
    put_pointers(k, true, true, &b);
    for (size_t i = 0; i < k->nints; i++) {
        put_comma(&b);
        buf_printf(&b, "%s %.*s", scope_index_type(k), STR_ARG(k->ints[i].name));
    }
    str s = sheet_keep(k->sh, &b);
    buf_release(&b);
    return s;
}

/* ---- what int indices require ---- */

static bool has_extent(struct scope *k, size_t tensor, str plan) {
    const struct tensor *t = &k->step->inst->task->tensors[tensor];
    for (size_t i = 0; i < t->rank; i++)
        if (str_eq(sheet_plan(k->sh, t->extent[i]), plan))
            return true;
    return false;
}

/* An extent is no larger than the tensor it belongs to. */
static bool is_extent(struct scope *k, str plan) {
    for (size_t i = 0; i < k->step->inst->task->ntensors; i++)
        if ((k->tensors >> i & 1) && has_extent(k, i, plan))
            return true;
    return false;
}

/* Are the extents of `a` among those of `b`? Then it has no more elements. */
static bool is_part_of(const struct tensor *a, const struct tensor *b) {
    bool used[TASK_MAX_RANK] = {false};
    for (size_t i = 0; i < a->rank; i++) {
        size_t k = 0;
        while (k < b->rank && (used[k] || !expr_same(a->extent[i], b->extent[k])))
            k++;
        if (k == b->rank)
            return false;
        used[k] = true;
    }
    return true;
}

/* Another tensor of the kernel bounds this one's size, or its size is a number. */
static bool is_bounded(const struct scope *k, size_t tensor) {
    const struct tensor *all = k->step->inst->task->tensors, *t = &all[tensor];
    bool number = true;
    for (size_t i = 0; i < t->rank; i++)
        number &= !expr_has(t->extent[i], EXPR_DIM);
    for (size_t i = 0; i < k->step->inst->task->ntensors && !number; i++) {
        if (i == tensor || !(k->tensors >> i & 1) || !is_part_of(t, &all[i]))
            continue;
        if (i < tensor || !is_part_of(&all[i], t))
            return true;
    }
    return number;
}

/* Indices are int: no tensor of the kernel, and no size it is given, may exceed them. */
static void require_int(struct scope *k) {
    const struct inst *in = k->step->inst;
    for (size_t i = 0; i < in->task->ntensors; i++) {
        if (!(k->tensors >> i & 1) || is_bounded(k, i))
            continue;
        str count = sheet_plan_count(k->sh, in, i);
        sheet_require(k->sh, "%.*s <= %lld", STR_ARG(count), (long long)SCOPE_INT_MAX);
    }
    for (size_t i = 0; i < k->nints; i++)
        if (k->ints[i].size && !is_extent(k, k->ints[i].plan))
            sheet_require(k->sh, "%.*s <= %lld", STR_ARG(k->ints[i].plan),
                          (long long)SCOPE_INT_MAX);
}

str scope_args(struct scope *k) {
    struct buf b;
    buf_init(&b, 64u << 10);
    if (!k->wide)
        require_int(k);
    buf_puts(&b, k->own_arg);
    put_pointers(k, false, false, &b);
    put_pointers(k, true, false, &b);
    for (size_t i = 0; i < k->nints; i++) {
        put_comma(&b);
        buf_puts(&b, k->ints[i].plan);
    }
    str s = sheet_keep(k->sh, &b);
    buf_release(&b);
    return s;
}

void scope_launch(struct scope *k, str grid, str block) {
    str line = TEXT(k->sh, "launch $<<<$, $>>>($)", k->name, grid, block, scope_args(k));
    sheet_step(k->sh, "%.*s", STR_ARG(line));
}

/* ---- elements ---- */

uint32_t scope_variables(const struct scope *k) {
    return (UINT32_C(1) << k->statement->nindex) - 1;
}

str scope_plan_elements(struct scope *k, uint32_t over) {
    str all = S("");
    for (size_t i = 0; i < k->statement->nindex; i++)
        if (over >> i & 1)
            all = sheet_join(k->sh, all, "*", sheet_plan(k->sh, scope_extent(k, i)));
    return all.n ? all : S("1");
}

str scope_coordinates(struct scope *k, str flat, uint32_t over, uint32_t vars) {
    str all = S(""), type = str_view(scope_index_type(k));
    for (size_t i = 0; i < k->statement->nindex; i++) {
        if (!((over & vars) >> i & 1))
            continue;
        str digit = flat;
        for (size_t m = k->statement->nindex; m-- > i + 1;)
            if (over >> m & 1)
                digit = TEXT(k->sh, "$ / $", digit, scope_int(k, scope_extent(k, m)));
        if (over & ((UINT32_C(1) << i) - 1))
            digit = TEXT(k->sh, "$ % $", digit, scope_int(k, scope_extent(k, i)));
        k->var[i] = scope_variable(k, i);
        all = sheet_join(k->sh, all, "\n", TEXT(k->sh, "const $ $ = $;", type, k->var[i], digit));
    }
    return all;
}

/* ---- conversions ---- */

static long long most_integer(enum dtype t) {
    unsigned bits = 8 * (unsigned)dtype_info(t)->bytes - (dtype_info(t)->kind == 'i');
    return (long long)((1ull << bits) - 1);
}
static long long least_integer(enum dtype t) {
    return dtype_info(t)->kind == 'i' ? -most_integer(t) - 1 : 0;
}

/* Conversions of the hardware saturate; bytes have none of their own. */
static str packed_integer(struct scope *k, enum dtype t, enum value_kind kind, str v) {
    bool real = kind == VALUE_REAL;
    if (t == DTYPE_I64)
        return TEXT(k->sh, real ? "__float2ll_rz($)" : "$", v);
    if (t == DTYPE_I32 && real)
        return TEXT(k->sh, "__float2int_rz($)", v);
    if (real)
        return sheet_printf(k->sh, "(%s)min(max(__float2int_rz(%.*s), %lld), %lld)",
                            dtype_info(t)->cuda, STR_ARG(v), least_integer(t), most_integer(t));
    return sheet_printf(k->sh, "(%s)min(max((long long)(%.*s), %lldLL), %lldLL)",
                        dtype_info(t)->cuda, STR_ARG(v), least_integer(t), most_integer(t));
}

str scope_packed(struct scope *k, size_t tensor, enum value_kind kind, str value) {
    enum dtype t = sheet_dtype(k->sh, k->step, tensor);
    char type = dtype_info(t)->kind;
    if (t == DTYPE_F16)
        return TEXT(k->sh, "__float2half_rn($)", value);
    if (t == DTYPE_BF16)
        return TEXT(k->sh, "__float2bfloat16_rn($)", value);
    return type == 'i' || type == 'u' ? packed_integer(k, t, kind, value) : value;
}

str scope_unpacked(struct scope *k, size_t tensor, str element) {
    switch (sheet_dtype(k->sh, k->step, tensor)) {
    case DTYPE_F64:
        return TEXT(k->sh, "float($)", element);
    case DTYPE_F16:
        return TEXT(k->sh, "__half2float($)", element);
    case DTYPE_BF16:
        return TEXT(k->sh, "__bfloat162float($)", element);
    default:
        return element;
    }
}

/* ---- folds ---- */

const char *fold_identity(enum reduction r) {
    static const char *const identities[REDUCTION_COUNT] = {
        [REDUCTION_SUM] = "0.0f",        [REDUCTION_PROD] = "1.0f",
        [REDUCTION_MAX] = "-INFINITY",   [REDUCTION_MIN] = "INFINITY",
        [REDUCTION_MEAN] = "0.0f",       [REDUCTION_ARGMAX] = "-INFINITY",
        [REDUCTION_ARGMIN] = "INFINITY",
    };
    return identities[r];
}

str fold_combine(struct sheet *sh, enum reduction r, str into, str term) {
    if (r == REDUCTION_MAX || r == REDUCTION_MIN) {
        const char *name = r == REDUCTION_MAX ? "maximum" : "minimum";
        sheet_helper(sh, name);
        return sheet_printf(sh, "cp_%s(%.*s, %.*s)", name, STR_ARG(into), STR_ARG(term));
    }
    BUG_IF(r == REDUCTION_ARGMAX || r == REDUCTION_ARGMIN);
    return TEXT(sh, r == REDUCTION_PROD ? "$ * $" : "$ + $", into, term);
}
