/* The build cache without a compiler: keys, pruning, and several processes at once. */
#include "tap.h"

#include "base/file.h"
#include "kernel/compile.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena *arena;
static char folder[] = "/tmp/test-kernel-cache.XXXXXX";

static void keys(void) {
    struct build_request a = {.unit = S("x"), .arch = "sm_90a", .fmad = true}, b = a;
    struct nvrtc_root r = {.library = "/nowhere", .major = 13}, newer = r;
    digest k = build_key(&a, &r), other;
    other = build_key(&b, &r);
    CHECK(memcmp(&k, &other, sizeof k) == 0);
    b.fmad = false;
    other = build_key(&b, &r);
    CHECK(memcmp(&k, &other, sizeof k) != 0);
    b = a;
    b.arch = "sm_80";
    other = build_key(&b, &r);
    CHECK(memcmp(&k, &other, sizeof k) != 0);
    b = a;
    b.unit = S("y");
    other = build_key(&b, &r);
    CHECK(memcmp(&k, &other, sizeof k) != 0);
    newer.minor = 1;
    other = build_key(&a, &newer);
    CHECK(memcmp(&k, &other, sizeof k) != 0);
}

static void pruned(void) {
    str dir = arena_printf(arena, "%s/pruned", folder);
    struct build_cache *c = build_cache_new(dir.p, 10000);
    char *ptx = arena_alloc(arena, 3000, 1);
    memset(ptx, 'p', 3000);
    struct build b = {.verdict = VERDICT_ACCEPTED, .ptx = {ptx, 3000}};
    for (int i = 0; i < 5; i++) {
        b.key = sha256_of((str){ptx, (size_t)i + 1});
        build_cache_put(c, &b);
        char hex[65], path[512];
        digest_hex(b.key, hex);
        snprintf(path, sizeof path, "%s/%.2s/%s.build", dir.p, hex, hex + 2);
        struct timespec t[2] = {{1000 + i, 0}, {1000 + i, 0}};
        CHECK(utimensat(AT_FDCWD, path, t, 0) == 0);
    }
    struct build out = {0};
    CHECK(build_cache_get(c, sha256_of((str){ptx, 1}), arena, &out)); /* used: now the youngest */
    build_cache_prune(c);
    static const bool kept[] = {true, false, false, false, true};
    for (int i = 0; i < 5; i++) {
        bool there = build_cache_get(c, sha256_of((str){ptx, (size_t)i + 1}), arena, &out);
        CHECKF(there == kept[i], "entry %d", i);
    }
    build_cache_free(c);
}

static str entry_of(str dir, digest key) {
    char hex[65];
    digest_hex(key, hex);
    return arena_printf(arena, "%s/%.2s/%s.build", dir.p, hex, hex + 2);
}

/* A file that was put in the place of another is whole, and not that other's. */
static void swapped(void) {
    str dir = arena_printf(arena, "%s/swapped", folder), text;
    struct build_cache *c = build_cache_new(dir.p, CACHE_MAX_BYTES);
    struct build right = {.verdict = VERDICT_ACCEPTED, .ptx = S("right")}, out = {0};
    struct build wrong = {.verdict = VERDICT_ACCEPTED, .ptx = S("wrong")};
    struct err err = {0};
    right.key = sha256_of(S("right"));
    wrong.key = sha256_of(S("wrong"));
    build_cache_put(c, &right);
    build_cache_put(c, &wrong);
    CHECK(build_cache_get(c, wrong.key, arena, &out) && str_is(out.ptx, "wrong"));
    CHECK(file_read(entry_of(dir, right.key).p, 1 << 16, arena, &text, &err));
    CHECK(file_replace(entry_of(dir, wrong.key).p, text, &err));
    CHECK(!build_cache_get(c, wrong.key, arena, &out)); /* it is made again, and there again */
    CHECK(build_cache_get(c, right.key, arena, &out) && str_is(out.ptx, "right"));
    build_cache_put(c, &wrong);
    CHECK(build_cache_get(c, wrong.key, arena, &out) && str_is(out.ptx, "wrong"));
    build_cache_free(c);
}

/* Whether a build that is there is read, after the folder was given this owner and mode. */
static bool read_with(str dir, const char *at, uid_t owner, mode_t mode, digest key) {
    struct build out = {0};
    str path = arena_printf(arena, "%s%s", dir.p, at);
    CHECK(chown(path.p, owner, (gid_t)-1) == 0 && chmod(path.p, mode) == 0);
    struct build_cache *c = build_cache_new(dir.p, CACHE_MAX_BYTES);
    bool read = build_cache_get(c, key, arena, &out);
    build_cache_free(c);
    CHECK(chown(path.p, geteuid(), (gid_t)-1) == 0 && chmod(path.p, 0700) == 0);
    return read;
}

/* What others can write to is neither read nor written. */
static void foreign(void) {
    str dir = arena_printf(arena, "%s/foreign", folder), sub;
    struct build_cache *c = build_cache_new(dir.p, CACHE_MAX_BYTES);
    struct build b = {.verdict = VERDICT_ACCEPTED, .ptx = S("x"), .key = sha256_of(S("x"))};
    build_cache_put(c, &b);
    build_cache_free(c);
    sub = arena_printf(arena, "/%02x", b.key.b[0]);
    CHECK(read_with(dir, "", geteuid(), 0700, b.key) && read_with(dir, "", geteuid(), 0755, b.key));
    CHECK(!read_with(dir, "", geteuid(), 0775, b.key) &&
          !read_with(dir, "", geteuid(), 0777, b.key));
    CHECK(!read_with(dir, sub.p, geteuid(), 0770, b.key));
    CHECK(chmod(dir.p, 0777) == 0);
    c = build_cache_new(dir.p, CACHE_MAX_BYTES);
    b.key = sha256_of(S("y"));
    build_cache_put(c, &b);
    build_cache_free(c);
    CHECK(chmod(dir.p, 0700) == 0);
    CHECK(!file_exists(entry_of(dir, b.key).p));
    if (geteuid() != 0)
        SKIP("only root can make a folder of another user");
    CHECK(!read_with(dir, "", 65534, 0700, sha256_of(S("x"))));
    CHECK(!read_with(dir, sub.p, 65534, 0700, sha256_of(S("x"))));
}

/* ---- several writers ---- */

enum { SHARED_KEYS = 24, WRITERS = 4 };

/* What every writer would make of a key: the same bytes. */
static struct build shared_entry(int i, struct arena *a) {
    size_t n = 20000 + 3000 * (size_t)i;
    char *ptx = arena_alloc(a, n, 1);
    memset(ptx, 'a' + i, n);
    struct build b = {.verdict = VERDICT_ACCEPTED, .ptx = {ptx, n}, .cubin = {ptx, n / 2}};
    b.key = sha256_of(arena_printf(a, "key %d", i));
    return b;
}

/* 0: whole and right; 1: not there; 2: something else. */
static int shared_look(struct build_cache *c, int i, struct arena *a) {
    struct build want = shared_entry(i, a), got = {0};
    if (!build_cache_get(c, want.key, a, &got))
        return 1;
    return str_eq(got.ptx, want.ptx) && str_eq(got.cubin, want.cubin) ? 0 : 2;
}

/* Writes and reads for ever, from another place of the list each. */
static void shared_work(const char *dir, int start) {
    for (int round = start * 7;; round++) {
        struct arena *a = arena_new(64u << 20);
        struct build_cache *c = build_cache_new(dir, 600000); /* less than all: it prunes too */
        struct build b = shared_entry(round % SHARED_KEYS, a);
        build_cache_put(c, &b);
        if (shared_look(c, (round * 5) % SHARED_KEYS, a) == 2)
            _exit(1);
        if (round % 16 == 0)
            build_cache_prune(c);
        build_cache_free(c);
        arena_free(a);
    }
}

/* Each is killed at some moment; what they leave is whole, and the next process goes on with it. */
static void several_writers(void) {
    str dir = arena_printf(arena, "%s/shared", folder);
    pid_t pids[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        if ((pids[i] = fork()) == 0)
            shared_work(dir.p, i);
    for (int i = 0; i < WRITERS; i++) {
        int status = 0;
        usleep(300000);
        CHECK(waitpid(pids[i], &status, WNOHANG) == 0); /* none found another's half */
        kill(pids[i], SIGKILL);
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status));
    }
    struct build_cache *c = build_cache_new(dir.p, CACHE_MAX_BYTES);
    int whole = 0;
    for (int i = 0; i < SHARED_KEYS; i++) {
        int is = shared_look(c, i, arena);
        CHECKF(is != 2, "entry %d is broken", i);
        whole += is == 0;
        struct build b = shared_entry(i, arena);
        build_cache_put(c, &b);
        CHECKF(shared_look(c, i, arena) == 0, "entry %d", i);
    }
    CHECK(whole > 0);
    build_cache_free(c);
}

static const struct tap_case cases[] = {
    {"what a key depends on", keys},
    {"pruned by use", pruned},
    {"a file in the place of another", swapped},
    {"folders that others can write to", foreign},
    {"several writers, all killed", several_writers},
};

int main(void) {
    struct err err = {0};
    arena = arena_new((size_t)256 << 20);
    if (!mkdtemp(folder))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(folder, &err);
    arena_free(arena);
    return failed;
}
