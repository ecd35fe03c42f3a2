#include "base/asset.h"
#include "base/file.h"
#include "forked.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* One folder for all cases; `at` gives a path in it, good until the next call but three. */
static char top[] = "/tmp/cutepilot-file-XXXXXX";

static const char *at(const char *name) {
    static char paths[4][256];
    static int turn;
    char *p = paths[turn++ % 4];
    snprintf(p, 256, "%s/%s", top, name);
    return p;
}

static size_t entries(const char *dir) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str *names;
    size_t n = 0;
    if (!dir_list(dir, a, &names, &n, &e))
        n = SIZE_MAX;
    arena_free(a);
    return n;
}

static bool holds(const char *path, str expect) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str got = S("");
    bool ok = file_read(path, 1 << 19, a, &got, &e) && str_eq(got, expect);
    arena_free(a);
    return ok;
}

/* What a killed process left half-written goes; what a living one writes stays, unless nobody may
 * be writing. */
static void temporaries(void) {
    struct err e = {0};
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    CHECK(gone > 0 && waitpid(gone, NULL, 0) == gone);
    CHECK(dir_make(at("temporaries"), &e));
    char dead[128], alive[128];
    snprintf(dead, sizeof dead, "temporaries/.kernel.cu.tmp.%ld.0", (long)gone);
    snprintf(alive, sizeof alive, "temporaries/.kernel.cu.tmp.%ld.1", (long)getpid());
    const char *others[] = {"temporaries/kernel.cu", "temporaries/.kernel.cu.tmp.1.x",
                            "temporaries/kernel.cu.tmp.1.0", "temporaries/.tmp.1"};
    CHECK(file_replace(at(dead), S("x"), &e) && file_replace(at(alive), S("x"), &e));
    for (size_t i = 0; i < 4; i++)
        CHECK(file_replace(at(others[i]), S("x"), &e));
    CHECK(dir_remove_temporaries(at("temporaries"), false, &e));
    CHECK(!file_exists(at(dead)) && file_exists(at(alive)));
    CHECK(dir_remove_temporaries(at("temporaries"), true, &e) && !file_exists(at(alive)));
    for (size_t i = 0; i < 4; i++)
        CHECKF(file_exists(at(others[i])), "%s", others[i]);
    CHECK(!dir_remove_temporaries(at("none"), true, &e));
}

static void replaces(void) {
    struct err e = {0};
    const char *dir = at("replace");
    char path[300];
    CHECK(dir_make(dir, &e));
    snprintf(path, sizeof path, "%s/f", dir);
    CHECK(file_replace(path, S("one"), &e) && holds(path, S("one")));
    CHECK(file_replace(path, S(""), &e) && holds(path, S("")));
    CHECK(file_replace(path, S("a\0b"), &e) && holds(path, S("a\0b")));
    CHECK(file_replace_parts(path, (str[]){S("x"), S(""), S("yz")}, 3, &e) &&
          holds(path, S("xyz")));
    CHECK(entries(dir) == 1);
    CHECK(!file_replace(at("no/such/f"), S("x"), &e) && strstr(e.text, "No such file"));
    CHECK(!file_replace(dir, S("x"), &e) && strstr(e.text, "rename"));
    CHECK(entries(top) == 1);
    CHECK(!file_replace("replace/", S("x"), &e) && !file_replace("", S("x"), &e));
}

static void reads(void) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str s;
    CHECK(file_replace(at("ten"), S("0123456789"), &e));
    CHECK(file_read(at("ten"), 10, a, &s, &e) && str_is(s, "0123456789") && s.p[s.n] == 0);
    CHECK(!file_read(at("ten"), 9, a, &s, &e) && strstr(e.text, "at most 9"));
    CHECK(!file_read(top, 100, a, &s, &e) && strstr(e.text, "folder") && e.kind == ERR_INPUT);
    CHECK(!file_read(at("absent"), 9, a, &s, &e) && strstr(e.text, at("absent")));
    CHECK(e.kind == ERR_INPUT);
    CHECK(!file_read("/dev/zero", 9, a, &s, &e) && strstr(e.text, "not a regular file"));
    CHECK(mkfifo(at("fifo"), 0600) == 0);
    CHECK(!file_read(at("fifo"), 9, a, &s, &e) && strstr(e.text, "not a regular file"));
    CHECK(file_read("/proc/self/status", 1 << 16, a, &s, &e) && s.n > 0); /* claims to be empty */
    CHECK(!file_read("/proc/self/status", 10, a, &s, &e) && strstr(e.text, "more than the 10"));
    arena_free(a);
}

static void reads_pipes(void) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str s;
    for (size_t max = 4; max <= 6; max++) {
        int ends[2];
        CHECK(pipe(ends) == 0 && write(ends[1], "hello", 5) == 5);
        close(ends[1]);
        CHECKF(file_read_fd(ends[0], max, a, &s, &e) == (max >= 5), "max %zu", max);
        close(ends[0]);
    }
    CHECK(str_is(s, "hello"));
    CHECK(!file_read_fd(-1, 10, a, &s, &e));
    arena_free(a);
}

/* Out of space, as the operating system says it. */
static int over_the_limit(void) {
    static char big[65536];
    struct err e = {0};
    struct rlimit limit = {4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 1;
    if (file_replace(at("space/f"), (str){big, sizeof big}, &e))
        return 1;
    return e.kind == ERR_ENV && strstr(e.text, "space/f: write: File too large: raise") ? 42 : 1;
}

static int dev_full(void) {
    struct err e = {0};
    int fd = open("/dev/full", O_WRONLY);
    bool failed = !file_write_all(fd, "x", 1, &e);
    return failed && strstr(e.text, "write: No space left on device") && !strstr(e.text, "--out")
               ? 42
               : 1;
}

static void no_space(void) {
    struct err e = {0};
    CHECK(dir_make(at("space"), &e) && file_replace(at("space/f"), S("old"), &e));
    struct forked r = forked_run(over_the_limit);
    CHECKF(r.code == 42, "%d %s", r.code, r.err);
    CHECK(holds(at("space/f"), S("old")) && entries(at("space")) == 1);
    CHECK(forked_run(dev_full).code == 42);
}

static int as_nobody(void) {
    struct err e = {0};
    if (geteuid() == 0 && setuid(65534) != 0)
        return 1;
    if (file_replace(at("locked/f"), S("x"), &e) ||
        !strstr(e.text, "choose a folder you may write to"))
        return 2;
    if (dir_make(at("locked/d"), &e) || !strstr(e.text, "Permission denied"))
        return 3;
    return 42;
}

static void unwritable(void) {
    struct err e = {0};
    CHECK(dir_make(at("locked"), &e) && chmod(top, 0755) == 0 && chmod(at("locked"), 0555) == 0);
    struct forked r = forked_run(as_nobody);
    CHECKF(r.code == 42, "%d", r.code);
    CHECK(entries(at("locked")) == 0 && chmod(at("locked"), 0755) == 0);
}

static void folders(void) {
    struct err e = {0};
    CHECK(dir_make(at("a/b//c/"), &e) && file_exists(at("a/b/c")) && dir_make(at("a/b/c"), &e));
    CHECK(file_replace(at("a/file"), S("x"), &e));
    CHECK(!dir_make(at("a/file"), &e) && strstr(e.text, "not a folder") && e.kind == ERR_INPUT);
    CHECK(!dir_make(at("a/file/x"), &e) && !dir_make("", &e));
    char longest[6000];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    CHECK(!dir_make(longest, &e) && !file_replace(longest, S("x"), &e));
    CHECK(!file_exists(at("a/none")));

    struct arena *a = arena_new(1 << 20);
    str *names;
    size_t n;
    CHECK(dir_make(at("a/.z"), &e) && dir_make(at("a/Z"), &e));
    CHECK(dir_list(at("a"), a, &names, &n, &e) && n == 4);
    CHECK(str_is(names[0], ".z") && str_is(names[1], "Z") && str_is(names[2], "b") &&
          str_is(names[3], "file"));
    CHECK(!dir_list(at("a/file"), a, &names, &n, &e) && !dir_list(at("none"), a, &names, &n, &e));
    CHECK(dir_list(at("a/Z"), a, &names, &n, &e) && n == 0);
    arena_free(a);
}

static void removal_follows_no_links(void) {
    struct err e = {0};
    CHECK(dir_make(at("keep"), &e) && file_replace(at("keep/f"), S("x"), &e));
    CHECK(dir_make(at("tree/deep/er"), &e) && file_replace(at("tree/deep/f"), S("x"), &e));
    CHECK(symlink(at("keep"), at("tree/deep/link")) == 0 &&
          symlink("gone", at("tree/dangling")) == 0);
    CHECKF(dir_remove_tree(at("tree"), &e), "%s", e.text);
    CHECK(!file_exists(at("tree")) && file_exists(at("keep/f")));
    CHECK(symlink(at("keep"), at("toplink")) == 0);
    CHECK(dir_remove_tree(at("toplink"), &e) && file_exists(at("keep/f")));
    CHECK(!file_exists(at("toplink")) && dir_remove_tree(at("absent"), &e));
}

static void removal_has_a_depth(void) {
    struct err e = {0};
    char path[512] = "";
    snprintf(path, sizeof path, "%s", at("deep"));
    for (int i = 0; i < 70; i++)
        snprintf(path + strlen(path), sizeof path - strlen(path), "/d");
    CHECK(dir_make(path, &e));
    CHECK(!dir_remove_tree(at("deep"), &e) && strstr(e.text, "64 folders deep"));
    CHECK(dir_remove_tree(at("deep/d/d/d/d/d/d/d/d/d/d"), &e) && dir_remove_tree(at("deep"), &e));
}

static int second_lock(void) {
    struct err e = {0};
    char who[64];
    snprintf(who, sizeof who, "held by process %ld on ", (long)getppid());
    return file_lock(at("lock"), &e) < 0 && strstr(e.text, who) && e.kind == ERR_ENV ? 42 : 1;
}

static int third_lock(void) {
    struct err e = {0};
    return file_lock(at("lock"), &e) >= 0 ? 42 : 1;
}

static void locks(void) {
    struct err e = {0};
    int fd = file_lock(at("lock"), &e);
    CHECK(fd >= 0 && forked_run(second_lock).code == 42);
    close(fd);
    CHECK(forked_run(third_lock).code == 42); /* and dies with its process: */
    fd = file_lock(at("lock"), &e);
    CHECK(fd >= 0);
    close(fd);
    CHECK(file_lock(at("no/lock"), &e) < 0 && e.kind == ERR_INPUT);
    CHECK(file_replace(at("theirs"), S("precious"), &e) && symlink("theirs", at("link")) == 0);
    CHECK(file_lock(at("link"), &e) < 0 && e.kind == ERR_INPUT);
    CHECKF(strstr(e.text, "symbolic link") && holds(at("theirs"), S("precious")), "%s", e.text);
    CHECK(mkfifo(at("lock-fifo"), 0600) == 0 && file_lock(at("lock-fifo"), &e) < 0);
    CHECKF(strstr(e.text, "not a regular file"), "%s", e.text);
}

static void places(void) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str dir;
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    CHECK(cache_dir(a, &dir, &e) && str_is(dir, "/x/cutepilot"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(cache_dir(a, &dir, &e) && str_is(dir, "/h/.cache/cutepilot"));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    struct stat st;
    bool ours = cache_dir(a, &dir, &e); /* unless an earlier version made it readable for all */
    CHECK(str_starts(dir, S("/tmp/cutepilot-")) && stat(dir.p, &st) == 0);
    CHECK(ours == (st.st_uid == geteuid() && !(st.st_mode & 022)));
    CHECK(str_ends(self_path(a), S("test-base-file")));
    arena_free(a);
}

/* Others cannot put anything into a private folder. */
static void private_folders(void) {
    struct err e = {0};
    struct stat st;
    mode_t before = umask(0);
    CHECK(dir_make_private(at("private/one"), &e) && stat(at("private/one"), &st) == 0);
    umask(before);
    CHECKF((st.st_mode & 07777) == 0700, "%o", st.st_mode);
    CHECK(dir_make_private(at("private/one"), &e));
    CHECK(chmod(at("private/one"), 0755) == 0 && dir_check_private(at("private/one"), &e));
    CHECK(chmod(at("private/one"), 0775) == 0 && !dir_make_private(at("private/one"), &e));
    CHECKF(strstr(e.text, "may be written to by other users (mode 775)"), "%s", e.text);
    CHECK(chmod(at("private/one"), 0707) == 0 && !dir_check_private(at("private/one"), &e));
    CHECK(!dir_check_private(at("private/none"), &e));
    CHECK(file_replace(at("private/file"), S("x"), &e));
    CHECK(!dir_make_private(at("private/file"), &e) && strstr(e.text, "is not a folder"));
    if (geteuid() != 0)
        SKIP("only root can make a folder of another user");
    CHECK(dir_make_private(at("private/theirs"), &e) && chown(at("private/theirs"), 65534, 0) == 0);
    CHECK(!dir_make_private(at("private/theirs"), &e) && strstr(e.text, "belongs to another user"));
    CHECK(symlink("theirs", at("private/link")) == 0 && !dir_check_private(at("private/link"), &e));
    CHECKF(strstr(e.text, "belongs to another user"), "%s", e.text);
}

static void assets(void) {
    struct arena *a = arena_new(1 << 20);
    struct err e = {0};
    str s;
    size_t n = 0;
    for (; asset_table[n].name; n++)
        CHECK(n == 0 || strcmp(asset_table[n - 1].name, asset_table[n].name) < 0);
    for (size_t i = 0; i < n; i++)
        CHECKF(asset_get(NULL, asset_table[i].name, a, &s, &e) && s.p == asset_table[i].data, "%s",
               asset_table[i].name);
    CHECK(asset_get(NULL, "rng/philox.cuh", a, &s, &e));
    CHECK(str_find(s, S("philox_normal")) < s.n);
    CHECK(dir_make(at("assets/rng"), &e));
    CHECK(asset_get(at("assets"), "rng/philox.cuh", a, &s, &e) && s.n > 100);
    CHECK(file_replace(at("assets/rng/philox.cuh"), S("mine"), &e));
    CHECK(asset_get(at("assets"), "rng/philox.cuh", a, &s, &e) && str_is(s, "mine"));
    static const char *const bad[] = {"",     "/etc/passwd", "../x", "rng/../../x",
                                      "none", "zzz",         "rng"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECKF(!asset_get(NULL, bad[i], a, &s, &e), "'%s'", bad[i]);
        CHECKF(!asset_get(at("assets"), bad[i], a, &s, &e), "'%s'", bad[i]);
    }
    arena_free(a);
}

static void set_up(void) {
    CHECK(mkdtemp(top) != NULL);
}

static void clean_up(void) {
    struct err e = {0};
    CHECKF(dir_remove_tree(top, &e), "%s", e.text);
}

static const struct tap_case cases[] = {
    {"a folder to work in", set_up},
    {"replaces atomically", replaces},
    {"removes what a kill left", temporaries},
    {"reads regular files up to a ceiling", reads},
    {"reads pipes up to a ceiling", reads_pipes},
    {"out of space changes nothing", no_space},
    {"an unwritable folder", unwritable},
    {"folders", folders},
    {"removal follows no links", removal_follows_no_links},
    {"removal has a depth", removal_has_a_depth},
    {"locks", locks},
    {"cache and program paths", places},
    {"private folders", private_folders},
    {"assets", assets},
    {"clean up", clean_up},
};
TAP_CASES(cases)
