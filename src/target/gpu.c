/* The tables of gpu.def and arch.def, the occupancy rules that all its rows share, and roofline
 * arithmetic.
 *
 * Allocation granularities are those of compute capability 8.0 and later: registers go to warps in
 * units of 256 out of one of four partitions of the register file, shared memory to blocks in units
 * of 128 bytes with 1 KiB taken by the system for each block. */
#include "target/gpu.h"

#include "base/file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WARP = 32,
    PARTITIONS = 4,
    REGISTER_UNIT = 256,
    REGISTERS_THREAD_MOST = 255,
    SHARED_UNIT = 128,
    SHARED_SYSTEM = 1024,
};

static const struct arch archs[] = {
#define ARCH(id, number, lanes, tf32, bf16, terms, fp8, halves)                                    \
    {.capability = number,                                                                         \
     .name = #id,                                                                                  \
     .has = HAS_##id,                                                                              \
     .fp32_lanes_clk = lanes,                                                                      \
     .tf32_flop_clk = tf32,                                                                        \
     .bf16_flop_clk = bf16,                                                                        \
     .sum_terms = terms,                                                                           \
     .fp8_sum_bits = fp8,                                                                          \
     .fp8_as_halves = halves},
#include "target/arch.def"
#undef ARCH
};

static const struct gpu table[] = {
#define GPU(id, ...) {.arch = #id, .has = HAS_##id, __VA_ARGS__},
#include "target/gpu.def"
#undef GPU
};

size_t gpu_count(void) {
    return sizeof table / sizeof *table;
}

const struct gpu *gpu_at(size_t i) {
    return i < gpu_count() ? &table[i] : NULL;
}

const struct gpu *gpu_find(str name) {
    for (size_t i = 0; i < gpu_count(); i++)
        if (str_is(name, table[i].name))
            return &table[i];
    return NULL;
}

int gpu_capability(const struct gpu *g) {
    const char *digits = strpbrk(g->arch, "0123456789");
    long n = digits ? strtol(digits, NULL, 10) : 0;
    return n > 0 && n < 1000 ? (int)n : 0;
}

const struct arch *arch_of(int capability) {
    const struct arch *found = NULL;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (archs[i].capability / 10 == capability / 10 && archs[i].capability <= capability)
            found = &archs[i];
    return found;
}

bool arch_features(str name, struct gpu_features *out) {
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        str known = str_view(archs[i].name);
        bool suffix = str_ends(known, S("a")), whole = str_eq(name, known);
        if (!whole && !(suffix && str_eq(name, str_cut(known, 0, known.n - 1))))
            continue;
        *out = archs[i].has;
        out->wgmma &= whole;
        out->tcgen05 &= whole;
        return true;
    }
    return false;
}

static int blocks_by_registers(const struct gpu *g, int warps_block, int registers_thread) {
    if (registers_thread <= 0)
        return g->max_blocks_sm;
    if (registers_thread > REGISTERS_THREAD_MOST)
        return 0;
    int warp = (registers_thread * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    int warps = g->registers_sm / PARTITIONS / warp * PARTITIONS;
    return warps / warps_block;
}

static int blocks_by_shared(const struct gpu *g, size_t shared_block) {
    if (shared_block > g->shared_block)
        return 0;
    size_t block = (shared_block + SHARED_SYSTEM + SHARED_UNIT - 1) / SHARED_UNIT * SHARED_UNIT;
    return (int)(g->shared_sm / block);
}

struct occupancy gpu_occupancy(const struct gpu *g, int threads_block, int registers_thread,
                               size_t shared_block) {
    if (threads_block <= 0 || threads_block > g->max_threads_block)
        return (struct occupancy){0, 0, "threads"};
    int warps = (threads_block + WARP - 1) / WARP;
    const struct {
        int blocks;
        const char *name;
    } limits[] = {
        {g->max_warps_sm / warps, "threads"},
        {blocks_by_registers(g, warps, registers_thread), "registers"},
        {blocks_by_shared(g, shared_block), "shared memory"},
        {g->max_blocks_sm, "blocks"},
    };
    size_t least = 0;
    for (size_t i = 1; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].blocks < limits[least].blocks)
            least = i;
    int blocks = limits[least].blocks;
    return (struct occupancy){blocks, blocks * warps, limits[least].name};
}

/* What is both read and written moves at the copy rate, the rest at the rate of its direction. */
static double memory_time(const struct gpu *g, double read_bytes, double write_bytes) {
    double both = read_bytes < write_bytes ? read_bytes : write_bytes;
    return 2 * both / g->copy_bytes_s + (read_bytes - both) / g->read_bytes_s +
           (write_bytes - both) / g->write_bytes_s;
}

struct roofline gpu_roofline(const struct gpu *g, double read_bytes, double write_bytes,
                             double flops, double flops_s) {
    struct roofline r = {0};
    double bytes = read_bytes + write_bytes;
    r.memory_s = memory_time(g, read_bytes, write_bytes);
    r.compute_s = flops > 0 && flops_s > 0 ? flops / flops_s : 0;
    r.memory_bound = r.memory_s >= r.compute_s;
    r.limit_s = r.memory_bound ? r.memory_s : r.compute_s;
    r.intensity = bytes > 0 ? flops / bytes : 0;
    return r;
}

enum launch_share gpu_launch_share(const struct gpu *g, double limit_s, double time_s,
                                   size_t launches) {
    if (!(limit_s < 2 * g->launch_s && limit_s < 0.8 * time_s))
        return LAUNCHES_HARDLY_COUNT;
    return time_s <= 1.3 * (limit_s + (double)launches * g->launch_s) ? LAUNCHES_EXPLAIN
                                                                      : LAUNCHES_ARE_LESS;
}

const char *gpu_limit_source(const struct gpu *g, bool here) {
    if (here)
        return "rates measured on this GPU";
    if (!strcmp(gpu_source(g, S("copy_bytes_s")), "measured"))
        return "rates measured once on another GPU of this type";
    return "published rates and estimates, not rates measured on such a GPU";
}

/* ---- GPUs from files ----
 *
 * A file is read by hand, line by line: the facts are numbers and three names, and a wrong one is
 * told with its place. What a file claims is believed, within what the arithmetic can bear: every
 * number is positive and finite. */

enum kind { TEXT, INT, SIZE, REAL, RATIO, YES, LIST };
enum source { NONE, PUBLIC, ESTIMATE };
enum need { NEEDED, BY_ARCH, OPTIONAL };

static const struct field {
    const char *name;
    size_t offset;
    enum kind kind;
    enum source source;
    enum need need;
} fields[] = {
#define FIELD(kind, member, source)                                                                \
    {#member, offsetof(struct gpu, member), kind, source,                                          \
     (kind) == YES || (kind) == LIST ? OPTIONAL : NEEDED},
#define FEATURE(kind, member) {#member, offsetof(struct gpu, has.member), kind, PUBLIC, BY_ARCH},
#define RATE(member)          {#member, offsetof(struct gpu, member), RATIO, PUBLIC, OPTIONAL},
#include "target/gpu_fields.def"
#undef FIELD
#undef FEATURE
#undef RATE
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const struct field *field_find(str name) {
    for (size_t i = 0; i < FIELDS; i++)
        if (str_is(name, fields[i].name))
            return &fields[i];
    return NULL;
}

const char *gpu_source(const struct gpu *g, str fact) {
    const struct field *f = field_find(fact);
    str rest = str_view(g->measured ? g->measured : ""), word;
    while (str_word(&rest, ' ', &word))
        if (str_eq(word, fact))
            return "measured";
    return !f || f->source == NONE ? "" : f->source == PUBLIC ? "public" : "estimate";
}

struct reader {
    str file, text;
    struct arena *a;
    struct gpu gpu;
    bool stated[FIELDS], like;
    struct err *err;
};

/* About a piece of the text. */
static bool wrong(struct reader *r, str piece, const char *hint, const char *what) {
    return err_at(r->err, r->file, r->text, (size_t)(piece.p - r->text.p), piece.n, hint, "%s",
                  what);
}

/* 50M is 50 x 2^20. */
static bool read_size(str s, double *out) {
    double unit = str_ends(s, S("K")) ? 1 << 10 : str_ends(s, S("M")) ? 1 << 20 : 1;
    return str_to_f64(str_cut(s, 0, s.n - (unit > 1)), out) && (*out *= unit, true);
}

static bool set_number(struct reader *r, const struct field *f, void *at, str value) {
    double v;
    bool zero = f->kind == RATIO;
    if (!(f->kind == SIZE ? read_size(value, &v) : str_to_f64(value, &v)))
        return wrong(r, value,
                     f->kind == SIZE ? "bytes are written as 65536, 64K or 50M"
                                     : "numbers are written as 132 or 1.98e9",
                     "expected a number");
    if (!(v > 0 || (zero && v == 0)) || !(v < 1e18))
        return wrong(r, value, NULL, "expected a positive number");
    if (f->kind == REAL || f->kind == RATIO)
        *(double *)at = v;
    else if (!(v <= (f->kind == INT ? 1e9 : 1e15)) || v != (double)(int64_t)v)
        return wrong(r, value, NULL, "expected a whole number");
    else if (f->kind == INT)
        *(int *)at = (int)v;
    else
        *(size_t *)at = (size_t)v;
    return true;
}

static bool set_field(struct reader *r, const struct field *f, str value) {
    void *at = (char *)&r->gpu + f->offset;
    r->stated[f - fields] = true;
    if (f->kind == TEXT) {
        *(const char **)at = arena_cstr(r->a, value);
        return value.n && value.n < 64 ? true : wrong(r, value, NULL, "expected a name");
    }
    if (f->kind == LIST) {
        str rest = value, word;
        *(const char **)at = arena_cstr(r->a, value);
        while (str_word(&rest, ' ', &word))
            if (word.n && !field_find(word))
                return wrong(r, word, "names of facts, with spaces between", "unknown fact");
        return true;
    }
    if (f->kind != YES)
        return set_number(r, f, at, value);
    *(bool *)at = str_is(value, "yes");
    return *(bool *)at || str_is(value, "no") || wrong(r, value, NULL, "expected yes or no");
}

static bool set_like(struct reader *r, str name, str value) {
    const struct gpu *g = gpu_find(value);
    for (size_t i = 0; i < FIELDS; i++)
        if (r->stated[i] || r->like)
            return wrong(r, name, NULL, "'like' comes once, before the facts that differ");
    if (!g)
        return wrong(r, value, "it names a row of the table, such as h200", "no such GPU");
    r->gpu = *g;
    r->gpu.calibrated = false; /* not this one */
    r->gpu.measured = "";
    return r->like = true;
}

static bool read_line(struct reader *r, str line) {
    line = str_trim(str_cut(line, 0, str_find(line, S("#"))));
    size_t eq = str_find(line, S("="));
    str name = str_trim(str_cut(line, 0, eq)), value = str_trim(str_from(line, eq + 1));
    if (!line.n)
        return true;
    if (eq == line.n)
        return wrong(r, line, NULL, "expected 'fact = value'");
    if (str_is(name, "like"))
        return set_like(r, name, value);
    const struct field *f = field_find(name);
    if (!f)
        return wrong(r, name, "'cutepilot gpus h200' prints all facts of a GPU", "unknown fact");
    return r->stated[f - fields] ? wrong(r, name, NULL, "this fact is stated twice")
                                 : set_field(r, f, value);
}

/* Features that are not stated are those of a stated architecture; otherwise those of `like`. */
static bool add_features(struct reader *r) {
    struct gpu_features of_arch = {0};
    bool known = arch_features(str_view(r->gpu.arch), &of_arch);
    const struct gpu from = {.has = of_arch};
    if (!r->stated[field_find(S("arch")) - fields])
        return true;
    for (size_t i = 0; i < FIELDS; i++) {
        size_t bytes = fields[i].kind == YES ? sizeof(bool) : sizeof(int);
        if (fields[i].need != BY_ARCH || r->stated[i])
            continue;
        if (!known)
            return err_set(
                r->err, ERR_INPUT,
                "%.*s: '%s' is not stated, and what %s has is not known here\nhint: state "
                "all features, as 'cutepilot gpus h200' prints them",
                STR_ARG(r->file), fields[i].name, r->gpu.arch);
        memcpy((char *)&r->gpu + fields[i].offset, (const char *)&from + fields[i].offset, bytes);
    }
    return true;
}

/* Without `like` nothing may be missing; names are the file's own in any case. */
static bool complete(struct reader *r) {
    for (size_t i = 0; i < FIELDS; i++) {
        bool own = fields[i].kind == TEXT && !str_is(str_view(fields[i].name), "arch");
        if (!r->stated[i] && fields[i].need == NEEDED && (own || !r->like))
            return err_set(r->err, ERR_INPUT,
                           "%.*s: '%s' is not stated\nhint: state it, or start with 'like = h200' "
                           "and state what differs",
                           STR_ARG(r->file), fields[i].name);
    }
    if (r->gpu.max_threads_sm > r->gpu.max_warps_sm * 32 || r->gpu.shared_block > r->gpu.shared_sm)
        return err_set(r->err, ERR_INPUT,
                       "%.*s: the limits contradict each other: max_threads_sm is at most 32 x "
                       "max_warps_sm, shared_block at most shared_sm",
                       STR_ARG(r->file));
    return true;
}

bool gpu_parse(str file, str text, struct arena *a, const struct gpu **out, struct err *err) {
    struct reader r = {.file = file, .text = text, .a = a, .err = err};
    str rest = text, line;
    while (str_line(&rest, &line))
        if (!read_line(&r, line))
            return false;
    if (!complete(&r) || !add_features(&r))
        return false;
    struct gpu *g = arena_new_of(a, struct gpu);
    *g = r.gpu;
    *out = g;
    return true;
}

/* With as few digits as give the same number back. */
static void put_real(struct buf *out, double v) {
    char text[40];
    int digits = 6;
    while (snprintf(text, sizeof text, "%.*g", digits, v), digits < 17 && strtod(text, NULL) != v)
        digits++;
    buf_puts(out, str_view(text));
}

void gpu_text(const struct gpu *g, struct buf *out) {
    for (size_t i = 0; i < FIELDS; i++) {
        const void *at = (const char *)g + fields[i].offset;
        buf_printf(out, "%s = ", fields[i].name);
        if (fields[i].kind == TEXT || fields[i].kind == LIST)
            buf_printf(out, "%s", *(const char *const *)at ? *(const char *const *)at : "");
        else if (fields[i].kind == YES)
            buf_printf(out, "%s", *(const bool *)at ? "yes" : "no");
        else if (fields[i].kind == INT)
            buf_printf(out, "%d", *(const int *)at);
        else if (fields[i].kind == SIZE)
            buf_printf(out, "%zu", *(const size_t *)at);
        else
            put_real(out, *(const double *)at);
        const char *source = gpu_source(g, str_view(fields[i].name));
        buf_printf(out, "%s%s\n", *source ? "  # " : "", source);
    }
}

static bool gpu_load(const char *path, struct arena *a, const struct gpu **out, struct err *err) {
    str text;
    return file_read(path, GPU_FILE_BYTES, a, &text, err) &&
           gpu_parse(str_view(path), text, a, out, err);
}

/* $XDG_DATA_HOME/cutepilot/gpus or ~/.local/share/cutepilot/gpus; empty with neither. */
static str gpu_folder(struct arena *a) {
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data && *data)
        return arena_printf(a, "%s/cutepilot/gpus", data);
    return home && *home ? arena_printf(a, "%s/.local/share/cutepilot/gpus", home) : S("");
}

static bool unknown(str name, str folder, struct err *err) {
    struct buf b;
    buf_init(&b, 1024);
    for (size_t i = 0; i < gpu_count(); i++)
        buf_printf(&b, " %s", gpu_at(i)->name);
    err_set(err, ERR_INPUT,
            "unknown GPU '%.*s'; known are:%.*s\nhint: facts of another one can be put into a "
            "file, named by its path%s%.*s",
            STR_ARG(name), STR_ARG(buf_str(&b)), folder.n ? " or by its name in " : "",
            STR_ARG(folder));
    buf_release(&b);
    return false;
}

bool gpu_named(str name, struct arena *a, const struct gpu **out, const char **path,
               struct err *err) {
    str folder = gpu_folder(a);
    bool is_path = str_find(name, S("/")) < name.n || str_ends(name, S(".gpu"));
    *path = NULL;
    *out = gpu_find(name);
    if (*out)
        return true;
    *path = is_path ? arena_cstr(a, name)
            : folder.n && name.n
                ? arena_printf(a, "%.*s/%.*s.gpu", STR_ARG(folder), STR_ARG(name)).p
                : NULL;
    if (!*path || (!is_path && !file_exists(*path)))
        return unknown(name, folder, err);
    return gpu_load(*path, a, out, err);
}
