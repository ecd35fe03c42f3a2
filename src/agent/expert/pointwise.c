/* The pointwise generator: a file of CUDA text from a task and a strategy. The model says what
 * there is to compute (pointwise.h), the kernels are written by pointwise_kernel.c; here they get
 * their comment, launch plan and helpers. Text that does not depend on the task is in
 * assets/expert/. */
#include "agent/expert/write.h"
#include "kernel/emit.h"
#include <string.h>

#define MEMORY_MAX   (64u << 20)
#define ACCESS_BYTES 16
#define MARGIN       100

/* ---- vectors ---- */

struct word {
    size_t bytes;
    const char *type;
};
static const struct word words[] = {
    {1, "unsigned char"}, {2, "unsigned short"}, {4, "unsigned int"}, {8, "uint2"}, {16, "uint4"}};

static const struct word *word_of(size_t bytes) {
    size_t i = sizeof words / sizeof *words - 1;
    while (words[i].bytes > bytes)
        i--;
    return &words[i];
}

/* `n` words from one place to another: a statement, or a loop of it. The format has the index of a
 * word where it says %s. */
static str moves(struct writer *w, size_t n, const char *format, const char *word) {
    str one = arena_printf(w->p.mem, format, word, word);
    if (n == 1)
        return one;
    return arena_printf(w->p.mem, "#pragma unroll\nfor (int w = 0; w < %zu; w++)\n    %.*s", n,
                        STR_ARG(one));
}

/* How one word is moved, by [loop][streaming]. */
static const char *const load_forms[2][2] = {
    {"*reinterpret_cast<%s *>(v.at) = *reinterpret_cast<const %s *>(p);",
     "*reinterpret_cast<%s *>(v.at) = __ldcs(reinterpret_cast<const %s *>(p));"},
    {"reinterpret_cast<%s *>(v.at)[w] = reinterpret_cast<const %s *>(p)[w];",
     "reinterpret_cast<%s *>(v.at)[w] = __ldcs(reinterpret_cast<const %s *>(p) + w);"}};
static const char *const store_forms[2][2] = {
    {"*reinterpret_cast<%s *>(p) = *reinterpret_cast<const %s *>(v.at);",
     "__stcs(reinterpret_cast<%s *>(p), *reinterpret_cast<const %s *>(v.at));"},
    {"reinterpret_cast<%s *>(p)[w] = reinterpret_cast<const %s *>(v.at)[w];",
     "__stcs(reinterpret_cast<%s *>(p) + w, reinterpret_cast<const %s *>(v.at)[w]);"}};

struct vector_function {
    const char *template, *form;
    str name;
};

static bool put_vector_function(struct writer *w, enum dtype t, const struct vector_function *f) {
    size_t bytes = (size_t)w->width * dtype_info(t)->bytes;
    const struct word *word = word_of(bytes);
    struct slot slots[] = {{"vector", w->vector_type[t]},
                           {"type", str_view(dtype_info(t)->cuda)},
                           {"function", f->name},
                           {"moves", moves(w, bytes / word->bytes, f->form, word->type)}};
    return write_template(w, f->template, slots, sizeof slots / sizeof *slots, &w->vectors);
}

static bool put_vector(struct writer *w, enum dtype t) {
    size_t bytes = (size_t)w->width * dtype_info(t)->bytes;
    const struct word *word = word_of(bytes);
    size_t n = bytes / word->bytes;
    str type = str_view(dtype_info(t)->cuda), width = write_number(w, w->width);
    struct slot head[] = {{"width", width},
                          {"type", type},
                          {"words", write_number(w, (int64_t)n)},
                          {"plural", n == 1 ? S("") : S("es")},
                          {"bytes", write_number(w, (int64_t)word->bytes)},
                          {"s", word->bytes == 1 ? S("") : S("s")},
                          {"vector", w->vector_type[t]}};
    const struct vector_use *use = &w->use[t];
    bool loop = n > 1;
    struct vector_function load = {"expert/vector_load.cu", load_forms[loop][0], w->load[t]};
    struct vector_function stream = {"expert/vector_load.cu", load_forms[loop][1], w->stream[t]};
    struct vector_function store = {"expert/vector_store.cu", store_forms[loop][w->hint],
                                    w->store[t]};
    return WRITE_TEMPLATE(w, "vector_type.cu", head, &w->vectors) &&
           (!use->load || put_vector_function(w, t, &load)) &&
           (!use->stream || put_vector_function(w, t, &stream)) &&
           (!use->store || put_vector_function(w, t, &store));
}

/* Constants of the tiling and the vector types in use. */
static bool put_vectors(struct writer *w) {
    if (w->naive)
        return true;
    buf_printf(&w->vectors, "static constexpr int %.*s = %lld; // threads\n",
               STR_ARG(w->block_name), (long long)w->block);
    buf_printf(&w->vectors, "static constexpr int %.*s = %lld; // elements in a vector\n",
               STR_ARG(w->width_name), (long long)w->width);
    buf_printf(&w->vectors, "static constexpr int %.*s = %lld; // vectors a thread\n",
               STR_ARG(w->items_name), (long long)w->items);
    buf_printf(&w->vectors, "static constexpr int %.*s = %.*s * %.*s * %.*s;\n\n",
               STR_ARG(w->tile_name), STR_ARG(w->block_name), STR_ARG(w->width_name),
               STR_ARG(w->items_name));
    for (int t = 0; t < DTYPE_COUNT; t++)
        if (w->use[t].any && !put_vector(w, (enum dtype)t))
            return false;
    return true;
}

/* ---- helpers of expressions ---- */

struct roots {
    struct expr **at;
    size_t n, cap;
};

static void add_root(struct roots *r, const struct expr *e) {
    r->at = mem_grow(r->at, &r->cap, r->n + 1, sizeof *r->at);
    r->at[r->n++] = (struct expr *)e;
}

/* Indices of reads and substituted lets are texts of their own. */
static void add_inner_roots(struct roots *r, const struct expr *e) {
    for (size_t i = 0; i < e->nargs; i++) {
        if (e->kind == EXPR_READ)
            add_root(r, e->args[i]);
        add_inner_roots(r, e->args[i]);
    }
}

/* All expressions as arguments of one call, so that a helper that several use comes once. */
static void put_helpers(struct writer *w, struct buf *out) {
    struct roots r = {0};
    for (size_t i = 0; i < w->p.ngroups; i++) {
        for (size_t k = 0; k < w->p.groups[i].noutputs; k++) {
            const struct pw_output *o = &w->p.groups[i].outputs[k];
            add_root(&r, o->body);
            add_inner_roots(&r, o->body);
            for (size_t l = 0; l < o->nlocals; l++) {
                add_root(&r, o->locals[l].body);
                add_inner_roots(&r, o->locals[l].body);
            }
        }
    }
    struct expr all = {.kind = EXPR_CALL,
                       .value_kind = VALUE_REAL,
                       .function = FUNCTION_EXP,
                       .args = r.at,
                       .nargs = r.n};
    emit_helpers(w->p.task, &all, out);
    mem_free(r.at);
}

static bool uses_dtype(const struct task *t, enum dtype type) {
    for (size_t i = 0; i < t->ntensors; i++)
        if (t->tensors[i].dtype == type)
            return true;
    return false;
}

static str includes_text(const struct task *t) {
    bool f16 = uses_dtype(t, DTYPE_F16), bf16 = uses_dtype(t, DTYPE_BF16);
    return f16 && bf16 ? S("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n")
           : f16       ? S("#include <cuda_fp16.h>\n")
           : bf16      ? S("#include <cuda_bf16.h>\n")
                       : S("");
}

/* ---- the launch plan ---- */

/* The product of extents, in plan syntax; 1 for a scalar. */
static bool put_count(struct writer *w, const struct tensor *t, struct buf *out) {
    for (size_t i = 0; i < t->rank; i++) {
        buf_puts(out, i ? S("*") : S(""));
        if (!pw_plan_text(&w->p, t->extent[i], out))
            return false;
    }
    buf_puts(out, t->rank ? S("") : S("1"));
    return true;
}

/* Does this tensor's count follow from the group's: are its extents among the group's? */
static bool count_implied(const struct pw_group *g, const struct tensor *t) {
    bool used[TASK_MAX_RANK] = {false};
    for (size_t i = 0; i < t->rank; i++) {
        size_t k = 0;
        while (k < g->shape->rank && (used[k] || !pw_same(t->extent[i], g->shape->extent[k])))
            k++;
        if (k == g->shape->rank)
            return false;
        used[k] = true;
    }
    return true;
}

static bool put_require(struct writer *w, const struct tensor *t, struct buf *out) {
    buf_puts(out, S("//! require "));
    if (!put_count(w, t, out))
        return false;
    buf_printf(out, " <= %lld\n", (long long)PW_INT_MAX);
    return true;
}

static bool has_extent(struct writer *w, const struct tensor *t, str plan) {
    bool found = false;
    struct buf b;
    buf_init(&b, 4096);
    for (size_t i = 0; i < t->rank; i++) {
        buf_clear(&b);
        found |= pw_plan_text(&w->p, t->extent[i], &b) && str_eq(buf_str(&b), plan);
    }
    buf_release(&b);
    return found;
}

/* An extent is no larger than the tensor it belongs to. */
static bool is_extent(struct writer *w, const struct pw_group *g, str plan) {
    bool found = has_extent(w, g->shape, plan);
    for (size_t i = 0; i < w->p.task->ntensors; i++)
        found |= g->inputs[i] && has_extent(w, &w->p.task->tensors[i], plan);
    return found;
}

/* Indices are int: no tensor of the kernel, and no size it is given, may exceed them. */
static bool put_requires(struct writer *w, const struct pw_group *g, struct buf *out) {
    const struct task *t = w->p.task;
    if (g->wide)
        return true;
    if (g->shape->rank && !put_require(w, g->shape, out))
        return false;
    for (size_t i = 0; i < t->ntensors; i++)
        if (g->inputs[i] && !count_implied(g, &t->tensors[i]) &&
            !put_require(w, &t->tensors[i], out))
            return false;
    for (size_t i = 0; i < g->nparams; i++)
        if (!is_extent(w, g, g->params[i].plan))
            buf_printf(out, "//! require %.*s <= %lld\n", STR_ARG(g->params[i].plan),
                       (long long)PW_INT_MAX);
    return true;
}

static int64_t resident_blocks(const struct writer *w) {
    const struct gpu *gpu = w->p.briefing->gpu;
    int64_t fit = gpu->max_threads_sm / w->block;
    fit = fit > gpu->max_blocks_sm ? gpu->max_blocks_sm : fit < 1 ? 1 : fit;
    return fit * gpu->sms;
}

static bool put_launch(struct writer *w, const struct pw_group *g, struct buf *out) {
    const struct task *t = w->p.task;
    struct buf b;
    buf_init(&b, 4096);
    bool ok = put_count(w, g->shape, &b);
    str count = write_keep(w, &b);
    buf_release(&b);
    str grid = arena_printf(w->p.mem, "ceil_div(%.*s, %lld)", STR_ARG(count),
                            (long long)(w->block * w->items * w->width));
    if (w->persistent)
        grid =
            arena_printf(w->p.mem, "min(%.*s, %lld)", STR_ARG(grid), (long long)resident_blocks(w));
    buf_printf(out, "//! launch %.*s<<<%.*s, %lld>>>(", STR_ARG(g->kernel), STR_ARG(grid),
               (long long)w->block);
    for (size_t i = 0; i < t->ntensors; i++)
        if (g->inputs[i])
            buf_printf(out, "%.*s, ", STR_ARG(t->tensors[i].name));
    for (size_t i = 0; i < g->noutputs; i++)
        buf_printf(out, "%.*s, ", STR_ARG(g->outputs[i].tensor->name));
    buf_puts(out, count);
    for (size_t i = 0; i < g->nparams; i++)
        buf_printf(out, ", %.*s", STR_ARG(g->params[i].plan));
    buf_puts(out, S(")\n"));
    return ok;
}

/* Groups of one task often need the same sizes: a line comes once. */
static void put_new_lines(str lines, struct buf *out) {
    str line;
    while (str_line(&lines, &line)) {
        if (str_find(buf_str(out), line) < out->n)
            continue;
        buf_puts(out, line);
        buf_putc(out, '\n');
    }
}

static bool put_plan(struct writer *w, struct buf *out) {
    struct buf b;
    bool ok = true;
    buf_init(&b, EXPERT_SOURCE_MAX);
    for (size_t i = 0; i < w->p.ngroups && ok; i++)
        ok = put_requires(w, &w->p.groups[i], &b);
    put_new_lines(buf_str(&b), out);
    buf_release(&b);
    for (size_t i = 0; i < w->p.ngroups && ok; i++)
        ok = put_launch(w, &w->p.groups[i], out);
    return ok;
}

/* ---- the comment ---- */

/* Text of the task inside a comment line: no control bytes, no backslash that continues it. */
static void put_quoted(str s, struct buf *out) {
    s = str_cut(s, 0, 400);
    for (size_t i = 0; i < s.n; i++)
        buf_putc(out, (unsigned char)s.p[i] < ' ' || s.p[i] == '\\' ? ' ' : s.p[i]);
}

static void put_definitions(struct writer *w, struct buf *out) {
    const struct task *t = w->p.task;
    for (size_t i = 0; i < t->nstatements; i++) {
        bool let = t->tensors[t->statements[i].tensor].role == TENSOR_LET;
        buf_puts(out, let ? S("//     let ") : S("//     "));
        put_quoted(str_cut(t->text, t->statements[i].at, t->statements[i].len), out);
        buf_putc(out, '\n');
    }
}

static void put_width_note(struct writer *w, struct buf *out) {
    enum dtype t = w->p.groups[0].outputs[0].tensor->dtype;
    size_t bytes = (size_t)w->width * dtype_info(t)->bytes;
    if (w->width == 1)
        buf_puts(out, S("one element an access"));
    else if (bytes <= ACCESS_BYTES)
        buf_printf(out, "%zu bytes of %s in one access", bytes, dtype_info(t)->name);
    else
        buf_printf(out, "%zu bytes of %s in %zu accesses of %d", bytes, dtype_info(t)->name,
                   bytes / ACCESS_BYTES, ACCESS_BYTES);
}

static void put_strategy(struct writer *w, struct buf *out) {
    buf_puts(out, S("// Strategy: "));
    strategy_text(w->p.briefing->catalogue, w->strategy, out);
    buf_printf(out, "\n//   block         %lld threads\n", (long long)w->block);
    buf_puts(out, S("//   vector-width  "));
    put_width_note(w, out);
    buf_printf(out, "\n//   items         %lld vector%s a thread%s\n", (long long)w->items,
               w->items == 1 ? "" : "s",
               w->items == 1 ? "" : ", all of them loaded before the first is used");
    buf_printf(out, "//   persistent    %s\n",
               w->persistent ? "a resident grid strides over the tiles" : "one block a tile");
    buf_printf(out, "//   cache-hint    %s\n",
               w->hint ? "what is read and written once is marked to leave the caches first"
                       : "ordinary loads and stores");
}

static void put_comment(struct writer *w, struct buf *out) {
    const struct briefing *b = w->p.briefing;
    buf_printf(out, "// %.*s: ", STR_ARG(w->p.task->name));
    put_quoted(w->p.task->title, out);
    buf_puts(out, S("\n//\n"));
    put_definitions(w, out);
    str label = inst_label(b->inst, w->p.mem);
    buf_printf(out, "//\n// At %.*s on %s the limit is %.4g us: %s, %.2g flop a byte.\n",
               STR_ARG(label), b->gpu->title, b->roofline.limit_s * 1e6,
               b->roofline.memory_bound ? "memory-bound" : "compute-bound", b->roofline.intensity);
    put_strategy(w, out);
}

/* ---- the file ---- */

static void choose_names(struct writer *w) {
    struct pw *p = &w->p;
    w->e = pw_name(p, S("e"));
    w->k = pw_name(p, S("k"));
    w->v = pw_name(p, S("v"));
    w->tile = pw_name(p, S("tile"));
    w->end = pw_name(p, S("end"));
    w->total = pw_name(p, S("total"));
    w->block_name = pw_name(p, S("kBlock"));
    w->width_name = pw_name(p, S("kWidth"));
    w->items_name = pw_name(p, S("kItems"));
    w->tile_name = pw_name(p, S("kTile"));
    for (int t = 0; t < DTYPE_COUNT; t++) {
        const char *name = dtype_info((enum dtype)t)->name;
        w->vector_type[t] = pw_name(p, arena_printf(p->mem, "%s_vector", name));
        w->load[t] = pw_name(p, arena_printf(p->mem, "load_%s", name));
        w->stream[t] = pw_name(p, arena_printf(p->mem, "stream_%s", name));
        w->store[t] = pw_name(p, arena_printf(p->mem, "store_%s", name));
    }
}

/* A decision that a changed catalogue lacks has its plain value. */
static int64_t decided(const struct writer *w, const char *name, int64_t absent) {
    int64_t v = strategy_get(w->p.briefing->catalogue, w->strategy, name);
    return v == STRATEGY_UNSET ? absent : v;
}

static bool read_strategy(struct writer *w) {
    w->block = decided(w, "block", 256);
    w->items = decided(w, "items", 1);
    w->width = decided(w, "vector-width", 1);
    w->persistent = decided(w, "persistent", 0) != 0;
    w->hint = decided(w, "cache-hint", 0) != 0;
    w->naive = w->items == 1 && w->width == 1 && !w->persistent;
    int most = w->p.briefing->gpu->max_threads_block;
    if (w->block < 1 || w->block > most || w->items < 1 || w->items > 64)
        return err_set(w->p.err, ERR_INPUT, "block must be 1 to %d and items 1 to 64", most);
    if (w->width < 1 || w->width > 16 || (w->width & (w->width - 1)))
        return err_set(w->p.err, ERR_INPUT, "vector-width must be a power of two up to 16");
    return true;
}

/* Where to break the first `room` bytes of a line: at the last comma, or at the last blank. Every
 * blank of code is a place to break: there are no literals with blanks. 0: nowhere. */
static size_t break_at(str line, size_t from, size_t room) {
    size_t comma = 0, blank = 0;
    for (size_t i = from + 1; i < room; i++) {
        if (line.p[i] != ' ')
            continue;
        blank = i;
        comma = line.p[i - 1] == ',' ? i : comma;
    }
    return comma > room / 2 ? comma : blank;
}

static void put_wrapped(str line, struct buf *out) {
    size_t indent = 0, lead = 0;
    while (indent < line.n && line.p[indent] == ' ')
        indent++;
    bool code = str_find(line, S("//")) == line.n;
    for (size_t at; code && lead + line.n > MARGIN; line = str_from(line, at + 1)) {
        at = break_at(line, lead ? 0 : indent, MARGIN - lead);
        if (at == 0)
            break;
        buf_printf(out, "%*s%.*s\n", (int)lead, "", (int)at, line.p);
        lead = indent + 8;
    }
    buf_printf(out, "%*s%.*s\n", (int)lead, "", STR_ARG(line));
}

/* What templates leave to do: the lines of empty slots go, directives stand at the margin, long
 * lines are broken. */
static void put_tidy(str text, struct buf *out) {
    str line;
    bool blank = true;
    while (str_line(&text, &line)) {
        str bare = str_trim(line);
        if (bare.n == 0 && (line.n > 0 || blank))
            continue;
        blank = bare.n == 0;
        while (line.n && line.p[line.n - 1] == ' ')
            line.n--;
        put_wrapped(str_starts(bare, S("#")) ? bare : line, out);
    }
}

static bool put_file(struct writer *w, struct buf *out) {
    struct buf b;
    buf_init(&b, EXPERT_SOURCE_MAX);
    put_comment(w, &b);
    str comment = write_keep(w, &b);
    bool ok = put_plan(w, &b);
    buf_putc(&b, '\n');
    str plan = arena_str(w->p.mem, buf_str(&b));
    buf_clear(&b);
    put_helpers(w, &b);
    str helpers = arena_str(w->p.mem, buf_str(&b));
    buf_clear(&b);
    struct slot slots[] = {{"comment", comment},
                           {"plan", plan},
                           {"includes", includes_text(w->p.task)},
                           {"helpers", helpers},
                           {"vectors", buf_str(&w->vectors)},
                           {"functions", buf_str(&w->functions)},
                           {"kernels", write_keep(w, &w->kernels)}};
    ok = ok && WRITE_TEMPLATE(w, "pointwise.cu", slots, &b);
    put_tidy(buf_str(&b), out);
    buf_release(&b);
    return ok && (!out->failed || err_set(w->p.err, ERR_INPUT, "the kernel's text is too long"));
}

static bool write_all(struct writer *w, struct buf *out) {
    if (!read_strategy(w) || !pw_build(&w->p))
        return false;
    choose_names(w);
    for (size_t i = 0; i < w->p.ngroups; i++)
        if (!write_group(w, &w->p.groups[i]))
            return false;
    return put_vectors(w) && put_file(w, out);
}

bool pointwise_write(const char *assets, const struct briefing *b, const struct strategy *s,
                     struct buf *out, struct err *err) {
    struct writer *w = mem_alloc(sizeof *w);
    w->p = (struct pw){.briefing = b, .mem = arena_new(MEMORY_MAX), .err = err};
    w->assets = assets;
    w->strategy = s;
    buf_init(&w->functions, EXPERT_SOURCE_MAX);
    buf_init(&w->kernels, EXPERT_SOURCE_MAX);
    buf_init(&w->vectors, EXPERT_SOURCE_MAX);
    bool ok = write_all(w, out);
    buf_release(&w->functions);
    buf_release(&w->kernels);
    buf_release(&w->vectors);
    pw_release(&w->p);
    arena_free(w->p.mem);
    mem_free(w);
    return ok;
}
