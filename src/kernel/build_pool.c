/* The pool: a queue of jobs, a slot for each compiler, and the clock.
 *
 * A job is one key; requests for the same key that come while it is open become its waiters. It is
 * queued, running in a slot, or settled: then only a timer stands between it and its callbacks, so
 * that none is called from inside build_submit. A slot's process is started when a job wants it
 * and replaced when it has died, has compiled RECYCLE_AFTER units, or ran past the clock. How it
 * ended is decided when it has been reaped, in one place: slot_exit. */
#include "base/file.h"
#include "base/frame.h"
#include "base/json.h"
#include "base/say.h"
#include "kernel/build.h"
#include "kernel/compile.h"
#include "kernel/cubin.h"
#include "kernel/includes.h"
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- what ptxas says of registers that did not fit, as ptxas 13 writes it ----
 *
 * ptxas info    : Function properties for NAME
 *     ptxas         .     48 bytes stack frame, 52 bytes spill stores, 60 bytes spill loads */

/* Is it "ptxas info    : " and then one of these? */
static bool is_statistic(str line) {
    static const char *const kinds[] = {"Compiling entry function", "Function properties for",
                                        "Used ", "Compile time ="};
    if (!str_starts(line, S("ptxas info")))
        return false;
    str rest = str_trim(str_from(line, str_find(line, S(":")) + 1));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_starts(rest, str_view(kinds[i])))
            return true;
    return str_ends(rest, S(" bytes gmem")) || str_find(rest, S(" bytes gmem, ")) < rest.n;
}

/* The number before `what`. */
static bool number_before(str line, str what, int64_t *out) {
    size_t end = str_find(line, what), at = end;
    while (at > 0 && line.p[at - 1] >= '0' && line.p[at - 1] <= '9')
        at--;
    return end < line.n && str_to_i64(str_cut(line, at, end - at), out);
}

static void put_spills(str line, str name, struct kernel_facts *kernels, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(kernels[i].name, name)) {
            number_before(line, S(" bytes spill stores"), &kernels[i].spill_store_bytes);
            number_before(line, S(" bytes spill loads"), &kernels[i].spill_load_bytes);
        }
}

str ptxas_log_take(str log, struct arena *a, struct kernel_facts *kernels, size_t n) {
    static const str of = {"Function properties for ", sizeof "Function properties for " - 1};
    str line, name = {0};
    struct buf rest;
    buf_init(&rest, log.n + 1);
    for (str left = log; str_line(&left, &line);) {
        size_t at = str_find(line, of);
        bool frame = name.n && str_find(line, S(" bytes stack frame")) < line.n;
        if (frame)
            put_spills(line, name, kernels, n);
        name = is_statistic(line) && at < line.n ? str_trim(str_from(line, at + of.n)) : (str){0};
        if (!frame && !is_statistic(line)) {
            buf_puts(&rest, line);
            buf_putc(&rest, '\n');
        }
    }
    str out = arena_str(a, str_trim(buf_str(&rest)).n ? buf_str(&rest) : S(""));
    buf_release(&rest);
    return out;
}

/* ---- #include directives, so that none can hide (includes.h) ----
 *
 * The scan keeps no state of comments and strings, which is what such hiding lives on: any `#` (or
 * `%:`) that is followed by include, include_next, import or embed is taken for a directive, with
 * lines spliced and comments between the two skipped as the compiler does. The price is that a
 * refused include in a comment or a string is refused as well. An operand that is not a plain
 * <name> or "name" (a macro, say) is refused too: what it expands to is not known here. */

#define DIRECTIVE_MOST 1024 /* bytes from the # to the end of its operand */

const char includes_list[] = "cuda_fp16.h, cuda_bf16.h, cuda_fp8.h, mma.h, cooperative_groups.h, "
                             "cooperative_groups/*, cuda/std/*, cute/*, cutlass/*";

const char includes_for_nvcc[] = "#ifndef __CUDACC_RTC__ // nvcc; cutepilot compiles by NVRTC\n"
                                 "#include <cfloat>\n"
                                 "#include <climits>\n"
                                 "#include <cstdint>\n"
                                 "#include <cuda.h>\n"
                                 "#endif\n";

/* A name that ends in / stands for all below it. */
static const char *const allowed[] = {
    "cuda_fp16.h",         "cuda_bf16.h", "cuda_fp8.h", "mma.h",   "cooperative_groups.h",
    "cooperative_groups/", "cuda/std/",   "cute/",      "cutlass/"};

/* What people include out of habit, and what to do instead. */
static const struct {
    const char *name, *hint;
} habits[] = {
    {"cuda_runtime.h", "it is not needed here: remove it"},
    {"cuda.h", "it is not needed here: remove it"},
    {"device_launch_parameters.h", "it is not needed here: remove it"},
    {"math.h", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"cmath", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"math_constants.h", "INFINITY, NAN, M_PI and the functions are there already: remove it"},
    {"float.h", "FLT_MAX and the like are there already: remove it"},
    {"cfloat", "FLT_MAX and the like are there already: remove it"},
    {"limits.h", "INT_MAX and the like are there already: remove it"},
    {"climits", "INT_MAX and the like are there already: remove it"},
    {"stdint.h", "uint32_t and the like are there already: remove it"},
    {"cstdint", "uint32_t and the like are there already: remove it"},
    {"stdio.h", "printf is not allowed: remove it"},
    {"cstdio", "printf is not allowed: remove it"},
};

static bool plain_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_./+-", c);
}

/* Is `name` (without < > or quotes) on the list? */
static bool include_allowed(str name) {
    for (size_t i = 0; i < name.n; i++)
        if (!name.p[i] || !plain_character(name.p[i]) || str_starts(str_from(name, i), S("..")))
            return false;
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        str entry = str_view(allowed[i]);
        if (str_ends(entry, S("/")) ? str_starts(name, entry) : str_eq(name, entry))
            return true;
    }
    return false;
}

static const char *reason(str name) {
    for (size_t i = 0; i < sizeof habits / sizeof *habits; i++)
        if (str_is(name, habits[i].name))
            return habits[i].hint;
    return "it is not on the list of headers";
}

/* ---- the text as the compiler sees it ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/* Backslash, blanks, newline: nothing. Some compilers allow the blanks, so they hide nothing. */
static size_t splice_at(str s, size_t i) {
    size_t n = 1;
    if (s.p[i] != '\\')
        return 0;
    while (i + n < s.n && is_blank(s.p[i + n]))
        n++;
    return i + n < s.n && s.p[i + n] == '\n' ? n + 1 : 0;
}

static str without_splices(str s, struct arena *a) {
    char *p = arena_alloc(a, s.n + 1, 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n;) {
        size_t skip = splice_at(s, i);
        if (skip)
            i += skip;
        else
            p[n++] = s.p[i++];
    }
    return (str){p, n};
}

/* Past blanks and comments; a // comment ends the directive, so it is left standing. */
static size_t past_blanks(str s, size_t i) {
    while (i < s.n) {
        if (is_blank(s.p[i])) {
            i++;
        } else if (str_starts(str_from(s, i), S("/*"))) {
            size_t end = str_find(str_from(s, i + 2), S("*/"));
            i = i + 2 + end + 2;
        } else {
            break;
        }
    }
    return i < s.n ? i : s.n;
}

static str word_at(str s, size_t i) {
    size_t n = 0;
    while (i + n < s.n && ((s.p[i + n] >= 'a' && s.p[i + n] <= 'z') || s.p[i + n] == '_'))
        n++;
    return str_cut(s, i, n);
}

/* ---- operands ---- */

enum { REFUSED_MOST = 12 }; /* so many are named; then the text is not looked at any further */

static void refuse(struct includes *out, str operand, const char *why) {
    out->nrefused++;
    operand = str_trim(operand);
    if (!operand.n)
        operand = S("of nothing");
    if (out->allowed) {
        out->allowed = false;
        out->refused = operand;
        out->why = why;
    } else if (!str_eq(operand, out->refused)) {
        out->others = arena_printf(out->mem, "%.*s\n#include %.*s: %s", STR_ARG(out->others),
                                   STR_ARG(operand), why);
    }
}

static void check_operand(str rest, struct includes *out) {
    str line = rest;
    str_line(&rest, &line);
    char close = line.n && line.p[0] == '<' ? '>' : '"';
    const char *end = line.n > 1 && (line.p[0] == '<' || line.p[0] == '"')
                          ? memchr(line.p + 1, close, line.n - 1)
                          : NULL;
    if (!end) {
        refuse(out, str_cut(line, 0, 120), "an include must name a header, not a macro");
        return;
    }
    str name = {line.p + 1, (size_t)(end - line.p) - 1};
    if (!include_allowed(name))
        refuse(out, str_cut(line, 0, name.n + 2), reason(name));
    else if (str_starts(name, S("cute/")) || str_starts(name, S("cutlass/")))
        out->cute = true;
}

/* Looks a bounded way ahead, so that the whole scan is linear in the text. */
static void check_directive(str text, size_t at, struct includes *out) {
    str ahead = str_cut(text, at, DIRECTIVE_MOST);
    size_t i = past_blanks(ahead, 0);
    if (i == ahead.n && ahead.n == DIRECTIVE_MOST)
        refuse(out, S("#"), "an over-long comment inside a directive");
    str word = word_at(ahead, i);
    if (str_is(word, "embed"))
        refuse(out, word, "files cannot be embedded");
    else if (str_is(word, "include") || str_is(word, "include_next") || str_is(word, "import"))
        check_operand(str_from(ahead, past_blanks(ahead, i + word.n)), out);
}

void includes_scan(str unit, struct arena *a, struct includes *out) {
    *out = (struct includes){.mem = a, .allowed = true};
    str text = without_splices(unit, a);
    for (size_t i = 0; i < text.n && out->nrefused < REFUSED_MOST; i++) {
        char c = text.p[i];
        if (c == '#')
            check_directive(text, i + 1, out);
        else if (c == '%' && str_starts(str_from(text, i), S("%:")))
            check_directive(text, i + 2, out);
        else if (c == '?' && str_starts(str_from(text, i), S("\?\?=")))
            check_directive(text, i + 3, out);
    }
}

str includes_body(str source) {
    str head = str_view(includes_for_nvcc);
    return str_starts(source, head) ? str_from(source, head.n) : source;
}

str includes_file(str source, struct arena *a) {
    str body = includes_body(source);
    return arena_printf(a, "%s%.*s", includes_for_nvcc, STR_ARG(body));
}

bool includes_unopened(str log, str *name) {
    static const char says[] = "cannot open source file \"";
    size_t at = str_find(log, str_view(says));
    if (at == log.n)
        return false;
    str rest = str_from(log, at + sizeof says - 1);
    return str_word(&rest, '"', name);
}

/* ---- starting a compiler, and what its first words mean ---- */

#define PROBE_MS 30000

/* The sanitizers' shadow memory takes far more address space than any limit allows. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A compiler is given nothing of our environment but the seams that test it. */
static void compiler_environment(struct arena *a, const char *env[8]) {
    static const char *const kept[] = {"CUTEPILOT_FAULT", "ASAN_OPTIONS", "UBSAN_OPTIONS",
                                       "TSAN_OPTIONS"};
    size_t n = 0;
    env[n++] = "LC_ALL=C";
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = getenv(kept[i]);
        if (value)
            env[n++] = arena_printf(a, "%s=%s", kept[i], value).p;
    }
    env[n] = NULL;
}

bool compiler_start(const struct nvrtc_root *root, const char *program, size_t memory_bytes,
                    struct child *child, int *fd, struct err *err) {
    int pair[2];
    if (!socket_pair(pair, err))
        return err_wrap(err, "start a compiler");
    struct arena *a = arena_new(1u << 20);
    const char *env[8];
    compiler_environment(a, env);
    const char *argv[] = {program ? program : arena_cstr(a, self_path(a)),
                          "compiler",
                          root->library,
                          root->include,
                          root->cutlass,
                          NULL};
    /* stdin and stdout are /dev/null; stderr stays, for crashes of our own. */
    struct child_fd fds[] = {{pair[1], 3}, {2, 2}};
    struct child_spec spec = {.argv = argv, .env = env, .fds = fds, .nfds = 2};
    spec.limits.address_bytes = SANITIZED ? 0 : memory_bytes;
    bool ok = child_start(&spec, child, err);
    close(pair[1]);
    if (ok)
        *fd = pair[0];
    else
        close(pair[0]);
    arena_free(a);
    return ok || err_wrap(err, "compiler");
}

/* Reads a HELLO into the root; fails when it carries an error or NVRTC is too old. */
static bool compiler_hello(const json *hello, struct nvrtc_root *root, struct err *err) {
    str text;
    int64_t major = 0, minor = 0;
    if (json_get_str(hello, "error", &text))
        return err_set(err, ERR_ENV, "%.*s", STR_ARG(text));
    if (!json_get_i64(hello, "major", &major) || !json_get_i64(hello, "minor", &minor))
        return err_set(err, ERR_ENV, "compiler: its greeting has no version");
    root->major = (int)major;
    root->minor = (int)minor;
    if (nvrtc_new_enough(root->major, root->minor))
        return true;
    return err_set(err, ERR_ENV,
                   "NVRTC %d.%d at %s is older than %d.%d\nhint: run tools/setup build, or set "
                   "CUTEPILOT_CUDA to a CUDA 13 toolkit",
                   root->major, root->minor, root->library, NVRTC_MIN_MAJOR, NVRTC_MIN_MINOR);
}

static bool probe_hello(int fd, struct nvrtc_root *root, bool *died, struct err *err) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct frame f = {0};
    if (poll(&p, 1, PROBE_MS) <= 0)
        return err_set(err, ERR_ENV, "compiler: no greeting within %d s", PROBE_MS / 1000);
    int got = frame_read(fd, 0, &f, err);
    bool ok = false;
    *died = got <= 0;
    if (got == 0)
        err_set(err, ERR_ENV, "compiler: ended without a greeting");
    else if (got > 0 && f.type != FRAME_HELLO)
        err_set(err, ERR_ENV, "compiler: its first frame is no greeting");
    else if (got > 0)
        ok = compiler_hello(f.head, root, err);
    frame_release(&f);
    return ok;
}

static bool probe_once(struct nvrtc_root *root, bool *died, struct err *err) {
    struct child child;
    int fd;
    *died = false;
    if (!compiler_start(root, NULL, 0, &child, &fd, err))
        return false;
    bool ok = probe_hello(fd, root, died, err);
    close(fd);
    child_kill(child.pid);
    child_wait(&child);
    return ok;
}

/* One that dies before it spoke may have been killed from outside: a second chance. */
bool nvrtc_probe(struct nvrtc_root *root, struct err *err) {
    bool died;
    return probe_once(root, &died, err) || (died && probe_once(root, &died, err));
}

/* ---- files of the build cache ---- */

#define CACHE_MAGIC      "cutepilot-build 3\n"
#define CACHE_FILE_MAX   (2u * COMPILE_MAX_OUTPUT + (1u << 20))
#define PRUNE_EVERY_PUTS 512
#define PRUNE_EVERY_S    3600
#define STALE_TEMP_S     86400

struct build_cache {
    char *dir;
    uint64_t max_bytes;
    unsigned puts;
    bool warned;
};

/* ---- the key ---- */

/* What stands for a file's content here: size and time. */
static void put_file(struct sha256 *h, const char *dir, const char *name) {
    char path[1100], text[80];
    struct stat st;
    snprintf(path, sizeof path, "%s%s", dir, name);
    if (stat(path, &st) != 0)
        memset(&st, 0, sizeof st);
    snprintf(text, sizeof text, "%lld %lld.%09ld", (long long)st.st_size,
             (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    sha256_put_str(h, str_view(text));
}

digest build_key(const struct build_request *r, const struct nvrtc_root *root) {
    struct sha256 h;
    char flags[80];
    sha256_init(&h);
    sha256_put_str(&h, S(CACHE_MAGIC));
    sha256_put_str(&h, r->unit);
    sha256_put_str(&h, str_view(r->arch));
    snprintf(flags, sizeof flags, "fmad=%d cute=%d nvrtc=%d.%d", r->fmad, r->cute, root->major,
             root->minor);
    sha256_put_str(&h, str_view(flags));
    put_file(&h, root->library, "");
    put_file(&h, root->include, "/cuda_fp16.h");
    put_file(&h, root->include, "/cccl/cuda/std/version");
    if (r->cute)
        put_file(&h, root->cutlass, "/cutlass/version.h");
    return sha256_end(&h);
}

/* ---- reading ---- */

static void entry_path(const struct build_cache *c, digest key, char *out, size_t n) {
    char hex[65];
    digest_hex(key, hex);
    snprintf(out, n, "%s/%.2s/%s.build", c->dir, hex, hex + 2);
}

/* Cuts the next `n` bytes off; false when there are fewer. */
static bool take(str *rest, int64_t n, str *out) {
    if (n < 0 || (uint64_t)n > rest->n)
        return false;
    *out = str_cut(*rest, 0, (size_t)n);
    *rest = str_from(*rest, (size_t)n);
    return true;
}

static bool entry_fields(const json *head, str rest, digest key, struct build *out) {
    str name, of;
    int64_t log, ptx, cubin;
    char hex[65];
    digest_hex(key, hex);
    return json_get_str(head, "key", &of) && str_is(of, hex) &&
           json_get_str(head, "verdict", &name) && verdict_find(name, &out->verdict) &&
           json_get_i64(head, "log", &log) && json_get_i64(head, "ptx", &ptx) &&
           json_get_i64(head, "cubin", &cubin) && json_get_f64(head, "ms", &out->wall_ms) &&
           take(&rest, log, &out->log) && take(&rest, ptx, &out->ptx) &&
           take(&rest, cubin, &out->cubin) && rest.n == 0;
}

/* Whole, and of this key: a file that was put in the place of another is none. */
static bool entry_parse(str text, digest key, struct build *out) {
    digest sum;
    struct err none;
    if (!str_starts(text, S(CACHE_MAGIC)) || text.n < sizeof CACHE_MAGIC - 1 + sizeof sum)
        return false;
    str body = str_cut(text, 0, text.n - sizeof sum);
    sum = sha256_of(body);
    if (memcmp(text.p + body.n, &sum, sizeof sum) != 0)
        return false;
    str rest = str_from(body, sizeof CACHE_MAGIC - 1);
    size_t end = str_find(rest, S("\n"));
    json *head = json_parse(str_cut(rest, 0, end), &none);
    bool ok = head && entry_fields(head, str_from(rest, end + 1), key, out);
    json_free(head);
    return ok;
}

static void warn_once(struct build_cache *c, const struct err *why) {
    if (!c->warned)
        complain(
            "cutepilot: builds are not cached: %s\nhint: name a folder of your own that nobody "
            "else may write to with --cache\n",
            why->text);
    c->warned = true;
}

static void entry_folder(const struct build_cache *c, digest key, char *out, size_t n) {
    snprintf(out, n, "%s/%02x", c->dir, key.b[0]);
}

/* Nobody but us and root can have put there what is read. */
static bool folders_private(struct build_cache *c, digest key) {
    char dir[1100];
    struct err err = {0};
    entry_folder(c, key, dir, sizeof dir);
    if (dir_check_private(c->dir, &err) && dir_check_private(dir, &err))
        return true;
    warn_once(c, &err);
    return false;
}

bool build_cache_get(struct build_cache *c, digest key, struct arena *a, struct build *out) {
    char path[1100];
    str text;
    struct err none;
    if (!c->dir)
        return false;
    entry_path(c, key, path, sizeof path);
    if (!file_exists(path) || !folders_private(c, key) ||
        !file_read(path, CACHE_FILE_MAX, a, &text, &none) || !entry_parse(text, key, out))
        return false;
    utimensat(AT_FDCWD, path, NULL, 0); /* used now: pruning takes the longest unused */
    return true;
}

/* ---- writing ---- */

static digest sum_of(const str *parts, size_t n) {
    struct sha256 h;
    sha256_init(&h);
    for (size_t i = 0; i < n; i++)
        sha256_put(&h, parts[i].p, parts[i].n);
    return sha256_end(&h);
}

static void entry_head(const struct build *b, struct buf *out) {
    char hex[65];
    json *head = json_object();
    digest_hex(b->key, hex);
    json_set_str(head, "key", str_view(hex));
    json_set_str(head, "verdict", str_view(verdict_name(b->verdict)));
    json_set_i64(head, "log", (int64_t)b->log.n);
    json_set_i64(head, "ptx", (int64_t)b->ptx.n);
    json_set_i64(head, "cubin", (int64_t)b->cubin.n);
    json_set_f64(head, "ms", b->wall_ms);
    json_write(head, out);
    buf_putc(out, '\n');
    json_free(head);
}

void build_cache_put(struct build_cache *c, const struct build *b) {
    char path[1100], dir[1100];
    struct err err = {0};
    if (!c->dir)
        return;
    entry_path(c, b->key, path, sizeof path);
    entry_folder(c, b->key, dir, sizeof dir);
    struct buf head;
    buf_init(&head, 4096);
    entry_head(b, &head);
    str parts[] = {S(CACHE_MAGIC), buf_str(&head), b->log, b->ptx, b->cubin, S("")};
    digest sum = sum_of(parts, 5);
    parts[5] = (str){(const char *)sum.b, sizeof sum.b};
    if (head.failed || !dir_make_private(c->dir, &err) || !dir_make_private(dir, &err) ||
        !file_replace_parts(path, parts, 6, &err))
        warn_once(c, &err);
    buf_release(&head);
    if (++c->puts % PRUNE_EVERY_PUTS == 0)
        build_cache_prune(c);
}

/* ---- pruning ---- */

struct entry {
    char *path;
    uint64_t bytes;
    int64_t used; /* ns */
};
struct entries {
    struct arena *a;
    struct entry *at;
    size_t n, cap;
    uint64_t bytes;
};

static int64_t time_ns(struct timespec t) {
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void entries_of(struct entries *e, const char *dir, time_t now) {
    str *names;
    size_t n;
    struct err none;
    struct stat st;
    if (!dir_list(dir, e->a, &names, &n, &none))
        return;
    for (size_t i = 0; i < n; i++) {
        char *path = arena_cstr(e->a, arena_printf(e->a, "%s/%.*s", dir, STR_ARG(names[i])));
        if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (str_starts(names[i], S(".")) && now - st.st_mtim.tv_sec > STALE_TEMP_S)
            unlink(path); /* its writer died */
        if (!str_ends(names[i], S(".build")) || str_starts(names[i], S(".")))
            continue;
        e->at = mem_grow(e->at, &e->cap, e->n + 1, sizeof *e->at);
        e->at[e->n++] = (struct entry){path, (uint64_t)st.st_size, time_ns(st.st_mtim)};
        e->bytes += (uint64_t)st.st_size;
    }
}

static int by_use(const void *x, const void *y) {
    const struct entry *a = x, *b = y;
    return (a->used > b->used) - (a->used < b->used);
}

/* Down to nine tenths, so that the next one is some way off. Another process may remove the same
 * files: what is gone is gone. */
void build_cache_prune(struct build_cache *c) {
    char dir[1100];
    if (!c->dir)
        return;
    struct entries e = {.a = arena_new(256u << 20)};
    for (unsigned i = 0; i < 256; i++) {
        snprintf(dir, sizeof dir, "%s/%02x", c->dir, i);
        entries_of(&e, dir, time(NULL));
    }
    uint64_t bytes = e.bytes;
    if (e.n && bytes > c->max_bytes) {
        qsort(e.at, e.n, sizeof *e.at, by_use);
        for (size_t i = 0; i < e.n && bytes > c->max_bytes / 10 * 9; i++) {
            unlink(e.at[i].path);
            bytes -= e.at[i].bytes;
        }
    }
    mem_free(e.at);
    arena_free(e.a);
}

/* At most once an hour for all processes together: a file's time remembers the last. */
static void prune_if_due(struct build_cache *c) {
    char path[1100];
    struct stat st;
    struct err none;
    snprintf(path, sizeof path, "%s/pruned", c->dir);
    if (!dir_check_private(c->dir, &none))
        return;
    if (stat(path, &st) == 0 && time(NULL) - st.st_mtim.tv_sec < PRUNE_EVERY_S)
        return;
    if (file_replace(path, S("the last look at this folder's size\n"), &none))
        build_cache_prune(c);
}

struct build_cache *build_cache_new(const char *dir, uint64_t max_bytes) {
    struct build_cache *c = mem_alloc(sizeof *c);
    c->max_bytes = max_bytes;
    if (dir && *dir && strlen(dir) < 1000) {
        c->dir = mem_alloc(strlen(dir) + 1);
        memcpy(c->dir, dir, strlen(dir) + 1);
        prune_if_due(c);
    }
    return c;
}

void build_cache_free(struct build_cache *c) {
    if (!c)
        return;
    mem_free(c->dir);
    mem_free(c);
}

#define RECYCLE_AFTER   500
#define LOST_MOST       8 /* times a compiler may be killed on one source before that is its fault */
#define START_MS        60000
#define START_TRIES     3 /* in a row, before open jobs are given up */
#define DEFAULT_LIMIT   30000
#define DEFAULT_MEMORY  ((size_t)4 << 30)
#define JOB_ARENA_BYTES ((size_t)512 << 20)

/* NVRTC's front end reports its own memory running out as an error of the source. */
#define SAYS_NO_MEMORY "catastrophic error: out of memory"

struct waiter {
    build_done_fn *done;
    void *ctx;
};

struct job {
    struct job *next;
    struct build_pool *pool;
    struct arena *a;
    struct build_request r; /* in the arena */
    struct build b;         /* settled: the answer */
    enum { JOB_QUEUED, JOB_RUNNING, JOB_SETTLED } state;
    uint64_t timer;
    struct waiter *waiters;
    size_t nwaiters, cap;
    unsigned lost; /* times its compiler ended for no fault of the source */
};

struct slot {
    struct build_pool *pool;
    enum { SLOT_DEAD, SLOT_STARTING, SLOT_IDLE, SLOT_BUSY, SLOT_DYING } state;
    pid_t pid;
    struct conn *conn;
    struct job *job;
    uint64_t timer; /* of the start or the compile */
    bool timed_out;
    unsigned compiles;
};

struct build_pool {
    struct loop *loop;
    struct nvrtc_root root;
    struct build_cache *cache;
    char *program;
    unsigned limit_ms;
    size_t memory_bytes;
    struct slot *slots;
    unsigned nslots;
    struct job *jobs; /* open ones, in order of arrival */
    unsigned failed_starts;
    struct err start_err; /* of the last failed start */
    bool *freed;          /* set by build_pool_free while a callback runs */
};

static void pump(struct build_pool *p);
/* ---- jobs ---- */

static struct job *job_new(struct build_pool *p, const struct build_request *r, digest key) {
    struct arena *a = arena_new(JOB_ARENA_BYTES);
    struct job *j = arena_new_of(a, struct job);
    *j = (struct job){.pool = p, .a = a, .r = *r, .b = {.key = key}};
    j->r.unit = arena_str(a, r->unit);
    j->r.arch = arena_cstr(a, str_view(r->arch));
    struct job **end = &p->jobs;
    while (*end)
        end = &(*end)->next;
    *end = j;
    return j;
}

static void job_free(struct job *j) {
    mem_free(j->waiters);
    arena_free(j->a);
}

static void job_wait(struct job *j, build_done_fn *done, void *ctx) {
    j->waiters = mem_grow(j->waiters, &j->cap, j->nwaiters + 1, sizeof *j->waiters);
    j->waiters[j->nwaiters++] = (struct waiter){done, ctx};
}

static void job_unlink(struct job *j) {
    struct job **link = &j->pool->jobs;
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
}

/* From the loop. A callback may submit, and may free the pool. */
static void job_deliver(void *ctx) {
    struct job *j = ctx;
    struct build_pool *p = j->pool;
    job_unlink(j);
    bool freed = false, *outer = p->freed;
    p->freed = &freed;
    for (size_t i = 0; i < j->nwaiters && !freed; i++)
        j->waiters[i].done(j->waiters[i].ctx, &j->b);
    if (!freed)
        p->freed = outer;
    else if (outer)
        *outer = true;
    job_free(j);
}

/* The answer is in j->b, with all of its bytes in the job's arena. */
static void job_settle(struct job *j) {
    j->state = JOB_SETTLED;
    j->timer = loop_timer(j->pool->loop, 0, job_deliver, j);
}

static void job_say(struct job *j, enum verdict v, str log) {
    j->b.verdict = v;
    j->b.log = log;
    job_settle(j);
}

/* Nothing is said about the source. */
static void job_unable(struct job *j, str why) {
    j->b.no_compiler = true;
    job_say(j, VERDICT_COMPILE_LIMIT, why);
}

/* ---- what a compiler answered ---- */

static str fold_one(str text, const char *root, const char *as, struct arena *a) {
    size_t n = strlen(root), at;
    struct buf out;
    if (n == 0 || str_find(text, str_view(root)) == text.n)
        return text;
    buf_init(&out, 4 * text.n + 1024);
    while ((at = str_find(text, str_view(root))) < text.n) {
        buf_puts(&out, str_cut(text, 0, at));
        buf_puts(&out, str_view(as));
        text = str_from(text, at + n);
    }
    buf_puts(&out, text);
    str folded = arena_str(a, buf_str(&out));
    buf_release(&out);
    return folded;
}

/* Our own paths say nothing to the author of a kernel, and differ between machines. */
static str fold_paths(const struct nvrtc_root *root, str log, struct arena *a) {
    log = fold_one(arena_str(a, log), root->cutlass, "<cutlass>", a);
    return fold_one(log, root->include, "<cuda>", a);
}

static bool built_parts(const struct frame *f, struct job *j, enum compile_status *status) {
    int64_t code, ptx, cubin;
    str log;
    if (!json_get_i64(f->head, "status", &code) || code < 0 || code >= COMPILE_STATUS_COUNT ||
        !json_get_i64(f->head, "ptx", &ptx) || !json_get_i64(f->head, "cubin", &cubin) ||
        !json_get_str(f->head, "log", &log) || !json_get_f64(f->head, "ms", &j->b.wall_ms))
        return false;
    if (ptx < 0 || cubin < 0 || (uint64_t)ptx > f->blob.n ||
        (uint64_t)cubin != f->blob.n - (uint64_t)ptx)
        return false;
    *status = (enum compile_status)code;
    j->b.log = fold_paths(&j->pool->root, log, j->a);
    j->b.ptx = arena_str(j->a, str_cut(f->blob, 0, (size_t)ptx));
    j->b.cubin = arena_str(j->a, str_from(f->blob, (size_t)ptx));
    return true;
}

static void say_memory(struct job *j) {
    j->b.verdict = VERDICT_COMPILE_LIMIT;
    j->b.log = arena_printf(j->a, "compilation needs more than %zu MiB of memory\n",
                            j->pool->memory_bytes >> 20);
}

/* Our check of a launch takes the kernel's address, which a template and several functions of one
 * name do not have; the compiler tells that in our words for it. */
static bool has_no_address(str log, str *kernel) {
    static const char picks[] = "= decltype(pick_";
    if (str_find(log, S("no instance of overloaded function \"cutepilot_checks::pick_")) == log.n)
        return false;
    str rest = str_from(log, str_find(log, str_view(picks)));
    rest = str_from(rest, str_find(rest, S("(&::")));
    return rest.n > 4 && str_starts(rest, S("(&::")) &&
           (rest = str_from(rest, 4), str_word(&rest, ')', kernel));
}

static void say_template(struct job *j, str kernel) {
    j->b.verdict = VERDICT_COMPILE_ERROR;
    j->b.log = arena_printf(
        j->a,
        "kernel %.*s is a template, or several functions have this name: what is launched is one "
        "function\nhint: declare it extern \"C\" __global__ void, with a constant for each "
        "parameter "
        "of the template (constexpr int D = 128;), and a line like //! require D == 128 where that "
        "is "
        "a size of the task\n",
        STR_ARG(kernel));
}

static void built_failed(struct job *j) {
    str name;
    if (has_no_address(j->b.log, &name)) {
        say_template(j, name);
        return;
    }
    if (str_find(j->b.log, S(SAYS_NO_MEMORY)) < j->b.log.n) {
        say_memory(j);
        return;
    }
    if (!includes_unopened(j->b.log, &name) || include_allowed(name)) {
        j->b.verdict = VERDICT_COMPILE_ERROR;
        return;
    }
    j->b.verdict = VERDICT_FORBIDDEN;
    j->b.log = arena_printf(j->a, "\"%.*s\" cannot be included\nallowed: %s\n", STR_ARG(name),
                            includes_list);
}

/* What the cubin says of the kernels; a virtual architecture makes none. */
static bool job_facts(const struct job *j, struct build *b, struct err *err) {
    return str_starts(str_view(j->r.arch), S("compute_")) ||
           cubin_facts(b->cubin, j->a, &b->kernels, &b->nkernels, err);
}

/* Only what follows from the key alone is kept: the source's own success or failure. */
static void job_built(struct job *j, const struct frame *f) {
    enum compile_status status;
    struct build *b = &j->b;
    struct err err = {0};
    b->verdict = VERDICT_COMPILE_LIMIT;
    if (!built_parts(f, j, &status)) {
        b->log = S("the compiler's answer could not be read\n");
    } else if (status == COMPILE_OK) {
        if (job_facts(j, b, &err))
            b->verdict = VERDICT_ACCEPTED;
        else
            b->log = arena_printf(j->a, "%s\n", err.text);
    } else if (status == COMPILE_FAILED) {
        built_failed(j);
    } else if (status == COMPILE_MEMORY) {
        say_memory(j);
    } else if (status == COMPILE_OUTPUT) {
        b->log = arena_printf(j->a, "compilation makes more than %u MiB of code\n",
                              COMPILE_MAX_OUTPUT >> 20);
    } else if (b->log.n == 0) {
        b->log = S("the compiler failed without saying why\n");
    }
    if (b->verdict == VERDICT_ACCEPTED || b->verdict == VERDICT_COMPILE_ERROR)
        build_cache_put(j->pool->cache, b); /* with the whole log: job_cached reads it again */
    b->log = ptxas_log_take(b->log, j->a, b->kernels, b->nkernels);
    job_settle(j);
}

/* ---- slots ---- */

static void slot_retire(struct slot *s) {
    loop_timer_cancel(s->pool->loop, s->timer);
    s->timer = 0;
    conn_free(s->conn);
    s->conn = NULL;
    s->state = SLOT_DYING; /* until it is reaped */
    child_kill(s->pid);
}

static void slot_ready(struct slot *s) {
    loop_timer_cancel(s->pool->loop, s->timer);
    s->timer = 0;
    s->state = SLOT_IDLE;
}

static void slot_built(struct slot *s, const struct frame *f) {
    struct job *j = s->job;
    s->job = NULL;
    slot_ready(s);
    int64_t status = COMPILE_BROKEN;
    json_get_i64(f->head, "status", &status);
    if (++s->compiles >= RECYCLE_AFTER || status == COMPILE_MEMORY || status == COMPILE_BROKEN)
        slot_retire(s);
    job_built(j, f);
}

static void slot_frame(void *ctx, struct frame *f) {
    struct slot *s = ctx;
    struct build_pool *p = s->pool;
    struct nvrtc_root seen = p->root;
    if (f->type == FRAME_HELLO && s->state == SLOT_STARTING) {
        if (!compiler_hello(f->head, &seen, &p->start_err))
            slot_retire(s);
    } else if (f->type == FRAME_READY && s->state == SLOT_STARTING) {
        p->failed_starts = 0;
        slot_ready(s);
    } else if (f->type == FRAME_BUILT && s->state == SLOT_BUSY && s->job) {
        slot_built(s, f);
    } else {
        slot_retire(s);
    }
    frame_release(f);
    pump(p);
}

static void slot_closed(void *ctx, const struct err *why) {
    struct slot *s = ctx;
    (void)why; /* how the process ended says more */
    child_kill(s->pid);
}

static void slot_late(void *ctx) {
    struct slot *s = ctx;
    s->timer = 0;
    s->timed_out = true;
    child_kill(s->pid);
}

/* Signals that come from outside (the system's SIGKILL when memory ran out everywhere, somebody's
 * SIGTERM), and an orderly end before the unit was read, are no fault of the source. */
static bool ended_from_outside(int status) {
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == 0;
    int sig = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    return sig == SIGKILL || sig == SIGTERM || sig == SIGINT || sig == SIGHUP;
}

/* No fault until it has happened some times, that is: one source may be what memory runs out on. */
static void job_lost(struct job *j, bool timed_out, int status) {
    char space[64];
    str how = child_status_text(status, space, sizeof space);
    if (timed_out)
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(j->a, "compilation ran past its limit of %u ms\n", j->pool->limit_ms));
    else if (ended_from_outside(status) && ++j->lost < LOST_MOST)
        j->state = JOB_QUEUED;
    else
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(
                    j->a, "the compiler died on this source (%.*s): its memory limit is %zu MiB\n",
                    STR_ARG(how), j->pool->memory_bytes >> 20));
}

static void slot_exit(void *ctx, pid_t pid, int status) {
    struct slot *s = ctx;
    struct build_pool *p = s->pool;
    struct job *j = s->job;
    char space[64];
    (void)pid;
    loop_timer_cancel(p->loop, s->timer);
    conn_free(s->conn);
    bool timed_out = s->timed_out, starting = s->state == SLOT_STARTING;
    bool refused = s->state == SLOT_DYING && s->compiles == 0; /* by what it said first */
    *s = (struct slot){.pool = p};
    if (starting)
        err_set(&p->start_err, ERR_ENV, "a compiler ended while starting: %s",
                child_status_text(status, space, sizeof space).p);
    p->failed_starts += starting || refused;
    if (j)
        job_lost(j, timed_out, status);
    pump(p);
}

static bool slot_start(struct slot *s, struct err *err) {
    struct build_pool *p = s->pool;
    struct child child;
    int fd;
    if (!compiler_start(&p->root, p->program, p->memory_bytes, &child, &fd, err))
        return false;
    int pidfd = child.pidfd;
    s->pid = child.pid;
    s->conn = conn_new(p->loop, fd, fd, 0, slot_frame, slot_closed, s, err);
    if (s->conn)
        child.pidfd = -1; /* the loop's, even when it refuses it */
    if (!s->conn || !loop_watch_pid(p->loop, child.pid, pidfd, slot_exit, s, err)) {
        conn_free(s->conn);
        child_kill(child.pid);
        child_wait(&child);
        *s = (struct slot){.pool = p};
        return false;
    }
    s->state = SLOT_STARTING;
    s->timer = loop_timer(p->loop, START_MS, slot_late, s);
    return true;
}

static json *compile_options(const struct build_pool *p, const struct job *j) {
    char include[600];
    json *list = json_array();
    char arch[64];
    snprintf(arch, sizeof arch, "--gpu-architecture=%s", j->r.arch);
    json_push_str(list, S("--std=c++17"));
    json_push_str(list, str_view(arch));
    json_push_str(list, S("--generate-line-info"));
    json_push_str(list, j->r.fmad ? S("--fmad=true") : S("--fmad=false"));
    json_push_str(list, S("--ptxas-options=--verbose"));
    const char *const roots[] = {j->r.cute ? p->root.cutlass : "", p->root.include};
    for (size_t i = 0; i < 2; i++)
        if (*roots[i]) {
            snprintf(include, sizeof include, "--include-path=%s", roots[i]);
            json_push_str(list, str_view(include));
        }
    snprintf(include, sizeof include, "--include-path=%s/cccl", p->root.include);
    json_push_str(list, str_view(include));
    if (j->r.cute)
        json_push_str(list, S("--device-as-default-execution-space"));
    return list;
}

static void slot_give(struct slot *s, struct job *j) {
    struct build_pool *p = s->pool;
    json *head = json_object();
    json_set(head, "options", compile_options(p, j));
    j->state = JOB_RUNNING;
    s->job = j;
    s->state = SLOT_BUSY;
    s->timer = loop_timer(p->loop, p->limit_ms, slot_late, s);
    conn_send(s->conn, FRAME_COMPILE, head, j->r.unit, NULL, 0);
    json_free(head);
}

/* ---- matching them ---- */

static struct slot *slot_find(struct build_pool *p, int state) {
    for (unsigned i = 0; i < p->nslots; i++)
        if ((int)p->slots[i].state == state)
            return &p->slots[i];
    return NULL;
}

static size_t slots_in(const struct build_pool *p, int state) {
    size_t n = 0;
    for (unsigned i = 0; i < p->nslots; i++)
        n += (int)p->slots[i].state == state;
    return n;
}

static struct job *job_queued(struct build_pool *p) {
    struct job *j = p->jobs;
    while (j && j->state != JOB_QUEUED)
        j = j->next;
    return j;
}

static size_t jobs_queued(const struct build_pool *p) {
    size_t n = 0;
    for (const struct job *j = p->jobs; j; j = j->next)
        n += j->state == JOB_QUEUED;
    return n;
}

/* No compiler lives and none can be started: nothing that waits will ever be built. */
static void give_up(struct build_pool *p) {
    for (struct job *j = p->jobs; j; j = j->next)
        if (j->state == JOB_QUEUED)
            job_unable(j,
                       arena_printf(j->a, "no compiler could be started: %s", p->start_err.text));
}

static void pump(struct build_pool *p) {
    struct job *j;
    struct slot *s;
    while ((j = job_queued(p)) && (s = slot_find(p, SLOT_IDLE)))
        slot_give(s, j);
    while (p->failed_starts < START_TRIES && jobs_queued(p) > slots_in(p, SLOT_STARTING) &&
           (s = slot_find(p, SLOT_DEAD)))
        p->failed_starts += !slot_start(s, &p->start_err);
    bool living = slot_find(p, SLOT_STARTING) || slot_find(p, SLOT_IDLE) ||
                  slot_find(p, SLOT_BUSY) || slot_find(p, SLOT_DYING);
    if (p->failed_starts >= START_TRIES && !living)
        give_up(p);
}

/* ---- the header's functions ---- */

static bool job_cached(struct job *j) {
    struct build b = j->b;
    struct err none;
    b.cached = build_cache_get(j->pool->cache, b.key, j->a, &b) &&
               (b.verdict != VERDICT_ACCEPTED || job_facts(j, &b, &none));
    if (!b.cached)
        return false;
    b.log = ptxas_log_take(b.log, j->a, b.kernels, b.nkernels);
    j->b = b;
    return true;
}

/* What can be said without compiling. */
static bool settle_early(struct job *j, const struct includes *inc) {
    struct build_pool *p = j->pool;
    if (!inc->allowed)
        job_say(j, VERDICT_FORBIDDEN,
                arena_printf(j->a, "#include %.*s: %s%.*s\nallowed: %s\n", STR_ARG(inc->refused),
                             inc->why, STR_ARG(inc->others), includes_list));
    else if (j->r.unit.n > COMPILE_MAX_UNIT)
        job_say(j, VERDICT_COMPILE_LIMIT,
                arena_printf(j->a, "the source has more than %u bytes\n", COMPILE_MAX_UNIT));
    else if (memchr(j->r.unit.p, 0, j->r.unit.n))
        job_say(j, VERDICT_FORBIDDEN, S("the source has a NUL byte\n"));
    else if (j->r.cute && !p->root.cutlass[0])
        job_say(
            j, VERDICT_COMPILE_ERROR,
            S("the headers of CUTLASS, which cute/ and cutlass/ are in, are not installed here\n"
              "hint: write the kernel without them; to have them, run tools/setup build, or set "
              "CUTEPILOT_CUTLASS to their folder"));
    else if (job_cached(j))
        job_settle(j);
    return j->state == JOB_SETTLED;
}

static bool submit(struct build_pool *p, const struct build_request *r, const struct includes *inc,
                   build_done_fn *done, void *ctx, struct err *err) {
    struct build_request full = *r;
    full.cute |= inc->cute;
    digest key = build_key(&full, &p->root);
    for (struct job *j = p->jobs; j; j = j->next)
        if (memcmp(&j->b.key, &key, sizeof key) == 0) {
            job_wait(j, done, ctx);
            return true;
        }
    struct job *j = job_new(p, &full, key);
    job_wait(j, done, ctx);
    if (settle_early(j, inc))
        return true;
    if (p->failed_starts >= START_TRIES)
        p->failed_starts = START_TRIES - 1; /* one more try for each who asks */
    pump(p);
    if (j->state != JOB_SETTLED)
        return true;
    loop_timer_cancel(p->loop, j->timer); /* given up on at once */
    job_unlink(j);
    job_free(j);
    *err = p->start_err;
    return false;
}

bool build_submit(struct build_pool *p, const struct build_request *r, build_done_fn *done,
                  void *ctx, struct err *err) {
    struct includes inc;
    struct arena *a = arena_new(r->unit.n + (1u << 20));
    includes_scan(r->unit, a, &inc); /* what it refuses is named from the arena */
    bool ok = submit(p, r, &inc, done, ctx, err);
    arena_free(a);
    return ok;
}

const struct nvrtc_root *build_pool_root(const struct build_pool *p) {
    return &p->root;
}

struct build_pool *build_pool_new(struct loop *l, const struct nvrtc_root *root,
                                  const struct build_pool_options *o, struct err *err) {
    struct nvrtc_root known = *root;
    if (!nvrtc_new_enough(known.major, known.minor) && !nvrtc_probe(&known, err))
        return NULL;
    struct build_pool *p = mem_alloc(sizeof *p);
    p->loop = l;
    p->root = known;
    p->cache = build_cache_new(o->cache, CACHE_MAX_BYTES);
    p->limit_ms = o->limit_ms ? o->limit_ms : DEFAULT_LIMIT;
    p->memory_bytes = o->memory_bytes ? o->memory_bytes : DEFAULT_MEMORY;
    if (o->program) {
        p->program = mem_alloc(strlen(o->program) + 1);
        memcpy(p->program, o->program, strlen(o->program) + 1);
    }
    p->nslots = o->jobs ? o->jobs : 1;
    p->slots = mem_alloc(p->nslots * sizeof *p->slots);
    for (unsigned i = 0; i < p->nslots; i++)
        p->slots[i].pool = p;
    return p;
}

static void slot_release(struct slot *s) {
    struct child child = {s->pid, -1};
    if (s->state == SLOT_DEAD)
        return;
    loop_timer_cancel(s->pool->loop, s->timer);
    conn_free(s->conn);
    loop_unwatch_pid(s->pool->loop, s->pid);
    child_kill(s->pid);
    child_wait(&child);
}

void build_pool_free(struct build_pool *p) {
    if (!p)
        return;
    if (p->freed)
        *p->freed = true;
    for (unsigned i = 0; i < p->nslots; i++)
        slot_release(&p->slots[i]);
    for (struct job *j = p->jobs, *next; j; j = next) {
        next = j->next;
        loop_timer_cancel(p->loop, j->timer);
        job_free(j);
    }
    build_cache_free(p->cache);
    mem_free(p->program);
    mem_free(p->slots);
    mem_free(p);
}

/* ---- a single build, for commands that compile one kernel ---- */

struct waiting {
    struct arena *arena;
    struct build *to;
    bool done;
};

static void keep_build(void *ctx, const struct build *b) {
    struct waiting *w = ctx;
    struct build *to = w->to;
    *to = *b;
    to->log = arena_str(w->arena, b->log);
    to->ptx = arena_str(w->arena, b->ptx);
    to->cubin = arena_str(w->arena, b->cubin);
    to->kernels = arena_array(w->arena, struct kernel_facts, b->nkernels);
    for (size_t i = 0; i < b->nkernels; i++) {
        to->kernels[i] = b->kernels[i];
        to->kernels[i].name = arena_str(w->arena, b->kernels[i].name);
    }
    w->done = true;
}

bool build_once(const struct nvrtc_root *root, const struct build_pool_options *o,
                const struct build_request *r, struct arena *a, struct build *out,
                struct err *err) {
    struct waiting w = {.arena = a, .to = out};
    struct loop *l = loop_new(err);
    struct build_pool *pool = l ? build_pool_new(l, root, o, err) : NULL;
    bool ok = pool && build_submit(pool, r, keep_build, &w, err);
    while (ok && !w.done)
        ok = loop_step(l, -1, err);
    build_pool_free(pool);
    loop_free(l);
    if (ok && out->no_compiler)
        ok = err_set(err, ERR_ENV, "%.*s", STR_ARG(out->log));
    return ok;
}
