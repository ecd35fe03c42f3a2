/* Files of the build cache. */
#include "kernel/build_cache.h"

#include "base/file.h"
#include "base/json.h"
#include "base/say.h"
#include "kernel/compile.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CACHE_MAGIC      "cutepilot-build 2\n"
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

static bool entry_fields(const json *head, str rest, struct build *out) {
    str name;
    int64_t log, ptx, cubin;
    return json_get_str(head, "verdict", &name) && verdict_find(name, &out->verdict) &&
           json_get_i64(head, "log", &log) && json_get_i64(head, "ptx", &ptx) &&
           json_get_i64(head, "cubin", &cubin) && json_get_f64(head, "ms", &out->wall_ms) &&
           take(&rest, log, &out->log) && take(&rest, ptx, &out->ptx) &&
           take(&rest, cubin, &out->cubin) && rest.n == 0;
}

static bool entry_parse(str text, struct build *out) {
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
    bool ok = head && entry_fields(head, str_from(rest, end + 1), out);
    json_free(head);
    return ok;
}

bool build_cache_get(struct build_cache *c, digest key, struct arena *a, struct build *out) {
    char path[1100];
    str text;
    struct err none;
    if (!c->dir)
        return false;
    entry_path(c, key, path, sizeof path);
    if (!file_exists(path) || !file_read(path, CACHE_FILE_MAX, a, &text, &none) ||
        !entry_parse(text, out))
        return false;
    utimensat(AT_FDCWD, path, NULL, 0); /* used now: pruning takes the longest unused */
    return true;
}

/* ---- writing ---- */

static void warn_once(struct build_cache *c, const struct err *why) {
    if (!c->warned)
        complain("cutepilot: builds are not cached: %s\n", why->text);
    c->warned = true;
}

static digest sum_of(const str *parts, size_t n) {
    struct sha256 h;
    sha256_init(&h);
    for (size_t i = 0; i < n; i++)
        sha256_put(&h, parts[i].p, parts[i].n);
    return sha256_end(&h);
}

static void entry_head(const struct build *b, struct buf *out) {
    json *head = json_object();
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
    snprintf(dir, sizeof dir, "%s/%02x", c->dir, b->key.b[0]);
    struct buf head;
    buf_init(&head, 4096);
    entry_head(b, &head);
    str parts[] = {S(CACHE_MAGIC), buf_str(&head), b->log, b->ptx, b->cubin, S("")};
    digest sum = sum_of(parts, 5);
    parts[5] = (str){(const char *)sum.b, sizeof sum.b};
    if (head.failed || !dir_make(dir, &err) || !file_replace_parts(path, parts, 6, &err))
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
    if (!file_exists(c->dir))
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
