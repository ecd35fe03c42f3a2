/* The archive of a run: created, resumed, refused, and left whole by whatever ends the process. */
#include "archive/archive.h"
#include "archive/calls.h"
#include "base/file.h"
#include "tap.h"
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct arena *mem;
static struct err err;

static char *top; /* of the case; removed at its end */

static char *temp_dir(void) {
    return mkdtemp(arena_cstr(mem, arena_printf(mem, "%s/run-XXXXXX", top)));
}

static char *in_dir(const char *dir, const char *name) {
    return arena_cstr(mem, arena_printf(mem, "%s/%s", dir, name));
}

static json *print_of(int64_t seed) {
    json *j = json_object();
    json_set_str(j, "task", S("relu"));
    json_set_i64(j, "seed", seed);
    return j;
}

static struct archive *opened(const char *dir, int64_t seed, bool fresh) {
    struct archive *a = NULL;
    json *j = print_of(seed);
    err = (struct err){0};
    archive_open(dir, j, fresh, &a, &err);
    json_free(j);
    return a;
}

static bool says(const char *what) {
    return strstr(err.text, what) != NULL;
}

static bool add(struct archive *a, uint64_t ordinal) {
    struct archive_candidate c = {.ordinal = ordinal,
                                  .generation = ordinal / 4,
                                  .slot = ordinal % 4,
                                  .strategy = S("block=256"),
                                  .reason = S("test"),
                                  .source = S("__global__ void k() {}")};
    memset(c.source_hash, 'a' + (int)(ordinal % 6), 64);
    struct record *r = record_new(VERDICT_ACCEPTED, S(""));
    fields_set(r, ordinal, (int64_t)ordinal);
    bool ok = archive_add(a, &c, r, &err);
    record_free(r);
    return ok;
}

static int look(struct archive *a, uint64_t ordinal, char hash_letter) {
    char hash[65] = {0};
    memset(hash, hash_letter, 64);
    struct record *r = NULL;
    int found = archive_lookup(a, ordinal, hash, &r, &err);
    if (found == 1 && !(r->has_ordinal && r->ordinal == (int64_t)ordinal))
        found = -2;
    record_free(r);
    return found;
}

static void count_call(void *ctx, const struct archive_call *c) {
    (void)c;
    ++*(size_t *)ctx;
}

static int look_call(struct archive *a, const char *prompt) {
    struct archive_call found;
    return archive_find_call(a, "coder", 0, prompt, mem, &found, &err);
}

/* From a candidate that is evaluated again on, the search may take another course: what does not
 * fit that is none, whenever it is met, and what calls cost stays. */
static void test_forget(void) {
    char *dir = in_dir(temp_dir(), "forget"), prompt[65] = {0};
    struct archive *a = opened(dir, 1, false);
    struct archive_call c = {.role = S("coder"), .cost = 1, .candidate = UINT64_MAX};
    memset(c.prompt_hash, 'a', 64);
    memset(prompt, 'b', 64);
    CHECK(add(a, 0) && add(a, 1) && add(a, 2) && add(a, 3) && archive_add_call(a, &c, &err));
    CHECK(look_call(a, prompt) == -1 && look(a, 2, 'x') == -1 && says("did not replay"));
    CHECK(archive_forget(a, 1, &err) && archive_count(a) == 3);
    CHECK(look(a, 1, 'b') == 0 && look(a, 0, 'x') == -1 && add(a, 1));
    archive_close(a);
    a = opened(dir, 1, false);
    CHECK(look(a, 0, 'x') == -1 && look(a, 1, 'b') == 1 && look(a, 1, 'x') == -1);
    CHECK(look(a, 3, 'd') == 1);
    CHECK(look(a, 2, 'e') == 0 && err.kind == ERR_NONE && archive_count(a) == 3 && add(a, 2));
    CHECK(look_call(a, prompt) == 0);
    memcpy(c.prompt_hash, prompt, sizeof prompt);
    CHECKF(archive_add_call(a, &c, &err), "%s", err.text);
    CHECK(look_call(a, prompt) == 1);
    size_t calls = 0;
    CHECK(archive_each_call(a, count_call, &calls, &err) && calls == 2);
    archive_close(a);
}

static void test_create_and_resume(void) {
    char *dir = in_dir(temp_dir(), "deep/er");
    struct archive *a = opened(dir, 1, false);
    CHECKF(a, "%s", err.text);
    if (!a)
        return;
    CHECK(!archive_resumed(a) && archive_count(a) == 0);
    CHECK(add(a, 0) && add(a, 2));
    CHECK(archive_note(a, "k", S("one"), &err) && archive_note(a, "k", S("two"), &err));
    archive_close(a);

    a = opened(dir, 1, false);
    CHECKF(a, "%s", err.text);
    if (!a)
        return;
    str note;
    CHECK(archive_resumed(a) && archive_count(a) == 2);
    CHECK(look(a, 0, 'a') == 1 && look(a, 2, 'c') == 1);
    CHECK(look(a, 1, 'b') == 0);
    CHECK(look(a, 0, 'b') == -1 && says("did not replay"));
    CHECK(!add(a, 2)); /* append-only */
    CHECK(archive_count(a) == 2 && look(a, 2, 'c') == 1);
    CHECK(archive_get_note(a, "k", mem, &note, &err) && str_is(note, "two"));
    CHECK(archive_get_note(a, "absent", mem, &note, &err) && note.n == 0);
    archive_close(a);
}

static void test_fingerprint(void) {
    char *dir = temp_dir();
    struct archive *a = opened(dir, 1, false);
    CHECK(a && add(a, 0));
    archive_close(a);
    CHECK(!opened(dir, 2, false));
    CHECKF(says("is of another run: seed was 1, is 2; use --fresh"), "%s", err.text);
    CHECK(!says("task"));
    CHECK(err.kind == ERR_INPUT);

    json *j = print_of(1);
    json_set_str(j, "device", S("sim"));
    CHECK(!archive_open(dir, j, false, &a, &err) && says("device was not set, is sim"));
    json_free(j);

    a = opened(dir, 2, true);
    CHECKF(a, "%s", err.text);
    archive_close(a);
}

/* A run that recorded nothing but who it is makes room, with its notes; one call and it does not.
 */
static void test_unbegun(void) {
    char *dir = temp_dir();
    struct archive *a = opened(dir, 1, false);
    struct archive_call c = {.role = S("planner"), .candidate = UINT64_MAX};
    str note;
    CHECK(a && archive_note(a, "elapsed_ms", S("7"), &err));
    archive_close(a);
    a = opened(dir, 2, false);
    CHECKF(a && archive_get_note(a, "elapsed_ms", mem, &note, &err) && !note.n, "%s", err.text);
    CHECKF(archive_add_call(a, &c, &err), "%s", err.text);
    archive_close(a);
    CHECK(!opened(dir, 1, false) && says("seed was 2, is 1"));
}

/* Hashes and the like are not read out. */
static void test_long_values(void) {
    char *dir = temp_dir();
    struct archive *a = NULL;
    json *j = json_object();
    json_set_str(j, "task", S("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"));
    json_set_i64(j, "seed", 1);
    CHECK(archive_open(dir, j, false, &a, &err) && add(a, 0));
    archive_close(a);
    json_set_str(j, "task", S("ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"));
    json_set_i64(j, "seed", 2);
    CHECK(!archive_open(dir, j, false, &a, &err));
    CHECKF(says("of another run: the task file differs, seed was 1, is 2; use --fresh"), "%s",
           err.text);
    json_free(j);
}

static void test_results_alone(void) {
    static const char *const names[] = {"kernel.cu", "outcome.json", "events.jsonl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *dir = temp_dir();
        CHECK(file_replace(in_dir(dir, names[i]), S("mine"), &err));
        for (int fresh = 0; fresh < 2; fresh++) {
            CHECK(!opened(dir, 1, fresh));
            CHECKF(err.kind == ERR_INPUT && says("but no run.db") && says(names[i]), "%s",
                   err.text);
        }
        CHECK(file_exists(in_dir(dir, names[i])) && !file_exists(in_dir(dir, "run.lock")));
    }
}

static void test_foreign_files(void) {
    char *dir = temp_dir();
    CHECK(file_replace(in_dir(dir, "thesis.tex"), S("years"), &err));
    CHECK(!opened(dir, 1, false));
    CHECKF(says("holds other files (thesis.tex); choose another --out"), "%s", err.text);
    CHECK(!opened(dir, 1, true)); /* --fresh does not change that */
    CHECK(file_exists(in_dir(dir, "thesis.tex")) && !file_exists(in_dir(dir, "run.lock")));

    char *file = in_dir(dir, "thesis.tex");
    CHECK(!opened(file, 1, false) && says("is not a folder"));
    CHECK(!opened(in_dir(file, "below"), 1, false));
    CHECK(!opened("/proc/none/run", 1, false));
}

static void test_fresh(void) {
    char *dir = temp_dir();
    struct archive *a = opened(dir, 1, false);
    CHECK(a && add(a, 0));
    archive_close(a);
    CHECK(file_replace(in_dir(dir, "kernel.cu"), S("k"), &err));
    CHECK(file_replace(in_dir(dir, ".kernel.cu.tmp.12436.0"), S("k"), &err));
    a = opened(dir, 1, false);
    CHECK(a && archive_count(a) == 1 && file_exists(in_dir(dir, "kernel.cu")));
    CHECK(!file_exists(in_dir(dir, ".kernel.cu.tmp.12436.0"))); /* a kill's, whatever comes next */
    archive_close(a);
    a = opened(dir, 1, true);
    CHECK(a && archive_count(a) == 0 && !archive_resumed(a));
    CHECK(!file_exists(in_dir(dir, "kernel.cu")));
    archive_close(a);
}

/* As a user who may not write there: the environment's fault, as a parent that is read-only. */
static int opened_by_another(const char *dir) {
    if (geteuid() == 0 && setuid(65534) != 0)
        return 1;
    if (opened(dir, 1, false) || err.kind != ERR_ENV || !says("cannot be written to"))
        return 2;
    return !says("choose another --out") || !says("Permission denied") ? 3 : 42;
}

static void test_not_ours(void) {
    static const mode_t modes[] = {0555, 0000, 0333};
    char *dir = temp_dir();
    CHECK(chmod(top, 0755) == 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        int status = 0;
        CHECK(chmod(dir, modes[i]) == 0);
        pid_t pid = fork();
        if (pid == 0)
            _exit(opened_by_another(dir));
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        CHECKF(WEXITSTATUS(status) == 42, "mode %o: %d", modes[i], WEXITSTATUS(status));
    }
    CHECK(chmod(dir, 0755) == 0);
}

static void test_locked(void) {
    char *dir = temp_dir();
    struct archive *a = opened(dir, 1, false);
    CHECK(a && add(a, 0));
    CHECK(!opened(dir, 1, false));
    CHECKF(says("; wait for it to end, or choose another --out"), "%s", err.text);
    CHECK(!opened(dir, 1, true)); /* nothing removed under a holder */
    CHECK(a && archive_count(a) == 1);
    archive_close(a);
    a = opened(dir, 1, false);
    CHECKF(a, "%s", err.text);
    archive_close(a);
}

/* A child adds rows and says so on a pipe until it is killed; all it said must be there. */
static void test_kill(void) {
    char *dir = temp_dir();
    for (int round = 0; round < 5; round++) {
        int fd[2];
        CHECK(pipe(fd) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct archive *a = opened(dir, 1, false);
            uint64_t i = a ? archive_count(a) : 0;
            while (a && add(a, i) && write(fd[1], &i, sizeof i) == sizeof i)
                i++;
            _exit(9);
        }
        close(fd[1]);
        uint64_t last = 0, told;
        for (int i = 0; i < 7 + round * 3 && read(fd[0], &told, sizeof told) == sizeof told; i++)
            last = told;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        while (read(fd[0], &told, sizeof told) == sizeof told)
            last = told;
        close(fd[0]);
        struct archive *a = opened(dir, 1, false);
        CHECKF(a, "%s", err.text);
        if (!a)
            return;
        size_t n = archive_count(a);
        CHECKF(n == last + 1 || n == last + 2, "%zu rows, told %zu", n, (size_t)last);
        for (uint64_t i = 0; i < n; i++)
            CHECK(look(a, i, (char)('a' + i % 6)) == 1);
        archive_close(a);
    }
}

static str content(const char *path) {
    str s = {0};
    CHECKF(file_read(path, 64u << 20, mem, &s, &err), "%s", err.text);
    return s;
}

static void test_corrupt(void) {
    char *dir = temp_dir(), *db = in_dir(dir, "run.db");
    CHECK(file_replace(db,
                       S("this is not a database, it only has its name, and some length to "
                         "be read as a header of one hundred bytes, which it is not"),
                       &err));
    str before = content(db);
    CHECK(!opened(dir, 1, false));
    CHECKF(err.kind == ERR_ENV && says("damaged"), "%s", err.text);
    CHECK(str_eq(before, content(db)));

    struct archive *a = opened(dir, 1, true);
    CHECKF(a, "%s", err.text);
    for (uint64_t i = 0; a && i < 200; i++)
        CHECK(add(a, i));
    archive_close(a);

    /* The middle overwritten: the header still reads. */
    int fd = open(db, O_RDWR);
    char junk[4096 * 2];
    memset(junk, 0x5a, sizeof junk);
    CHECK(pwrite(fd, junk, sizeof junk, 4096) == sizeof junk);
    close(fd);
    before = content(db);
    CHECK(!opened(dir, 1, false));
    CHECKF(err.kind == ERR_ENV && says("damaged"), "%s", err.text);
    CHECK(str_eq(before, content(db)));
}

static void run_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* A row that cannot be read makes room for the same candidate, and says so once. */
static void test_damaged_rows(void) {
    static const char *const damage[] = {
        "UPDATE outcome SET record = '{\"verdict\": \"acc' WHERE ordinal = 1",
        "UPDATE outcome SET record = '' WHERE ordinal = 1",
        "UPDATE outcome SET record = x'00ff1b00' WHERE ordinal = 1",
        "UPDATE outcome SET record = '[]' WHERE ordinal = 1",
        "UPDATE outcome SET record = '{\"verdict\": \"splendid\"}' WHERE ordinal = 1",
        "UPDATE candidate SET source_hash = 'bbbb' WHERE ordinal = 1",
        "DELETE FROM outcome WHERE ordinal = 1",
        "PRAGMA foreign_keys = OFF; DELETE FROM candidate WHERE ordinal = 1",
    };
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        char *dir = temp_dir();
        struct archive *a = opened(dir, 1, false);
        CHECK(a && add(a, 0) && add(a, 1) && add(a, 2));
        archive_close(a);
        run_sql(in_dir(dir, "run.db"), damage[i]);
        a = opened(dir, 1, false);
        CHECKF(a, "%s: %s", damage[i], err.text);
        if (!a)
            continue;
        CHECKF(look(a, 1, 'b') == 0 && says("run.db: the row of candidate 1 is damaged"), "%s: %s",
               damage[i], err.text);
        CHECK(look(a, 1, 'b') == 0 && err.kind == ERR_NONE);
        CHECKF(add(a, 1) && look(a, 1, 'b') == 1, "%s: %s", damage[i], err.text);
        CHECK(look(a, 0, 'a') == 1 && look(a, 2, 'c') == 1 && archive_count(a) == 3);
        archive_close(a);
    }
}

static void test_versions(void) {
    char *dir = temp_dir(), *db = in_dir(dir, "run.db");
    archive_close(opened(dir, 1, false));
    run_sql(db, "PRAGMA user_version=99");
    CHECK(!opened(dir, 1, false));
    CHECKF(says("newer cutepilot (schema 99, this one knows 4)"), "%s", err.text);
    struct archive *read = NULL;
    CHECK(!archive_open_read(dir, &read, &err));
    CHECKF(says("newer cutepilot (schema 99, this one knows 4); use that one"), "%s", err.text);

    dir = temp_dir();
    run_sql(in_dir(dir, "run.db"), "CREATE TABLE recipes (name TEXT)");
    CHECK(!opened(dir, 1, false));
    CHECKF(says("is not the archive of a run"), "%s", err.text);

    dir = temp_dir(); /* created, then killed before its first page */
    CHECK(file_replace(in_dir(dir, "run.db"), S(""), &err));
    struct archive *a = opened(dir, 1, false);
    CHECKF(a, "%s", err.text);
    archive_close(a);
}

/* ---- a folder of the version before ---- */

/* What every record of the folder has, as the version before wrote it. */
static void check_old_row(void *ctx, const struct archive_candidate *c, struct record *r,
                          const struct err *why) {
    size_t *n = ctx;
    ++*n;
    CHECKF(r, "candidate %d: %s", (int)c->ordinal, why->text);
    if (!r)
        return;
    CHECK(r->accepted && r->has_time_s && r->time_s > 0 && r->estimated && r->nkernels == 1);
    CHECK(r->nlaunches == 1 && r->launches[0].block[0] > 0 && r->nestimate == 1);
    CHECK(r->ncounters == 1 && r->counters[0].warp_instrs > 0 && r->nruns > 10);
    CHECK(r->kernels[0].census && r->kernels[0].census->nforms > 0 && r->steps_ms);
    CHECK(r->source_sha256.n == 64 && str_is(str_view(c->source_hash), r->source_sha256.p));
    CHECK(!r->has_ordinal && !r->nparents && !r->step.p && !r->phases); /* not known then */
    record_free(r);
}

/* The records as text, without what migration adds; in order. */
static str old_records(const char *db, const char *from) {
    sqlite3 *s;
    sqlite3_stmt *q;
    struct buf all;
    buf_init(&all, 1 << 20);
    CHECK(sqlite3_open(db, &s) == SQLITE_OK);
    CHECK(sqlite3_prepare_v2(s, from, -1, &q, NULL) == SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW)
        buf_printf(&all, "%s\n", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
    sqlite3_close(s);
    str text = arena_str(mem, buf_str(&all));
    buf_release(&all);
    return text;
}

static json *old_fingerprint(const char *dir) {
    struct archive *a = NULL;
    str text = {0};
    size_t n = 0;
    CHECKF(archive_open_read(dir, &a, &err), "%s", err.text);
    CHECK(a && archive_each_candidate(a, check_old_row, &n, &err) && n == 2);
    CHECK(a && archive_get_note(a, "fingerprint", mem, &text, &err));
    archive_close(a);
    return json_parse(text, &err);
}

static void test_version_before(void) {
    char *dir = temp_dir(), *db = in_dir(dir, "run.db");
    const char *root = getenv("SOURCE_ROOT");
    struct archive *a = NULL;
    str file;
    if (!root)
        SKIP("SOURCE_ROOT is not set");
    CHECK(file_read(arena_printf(mem, "%s/tests/archive/run-0.1.0/run.db", root).p, 1 << 20, mem,
                    &file, &err));
    CHECK(file_replace(db, file, &err));
    json *print = old_fingerprint(dir); /* read as it is, ... */
    str version = old_records(db, "PRAGMA user_version");
    CHECKF(str_is(version, "3\n"), "%.*s", STR_ARG(version));
    str before = old_records(db, "SELECT record FROM outcome ORDER BY ordinal");
    CHECKF(archive_open(dir, print, false, &a, &err), "%s", err.text); /* ... and migrated */
    CHECK(a && archive_resumed(a) && archive_count(a) == 2);
    archive_close(a);
    version = old_records(db, "PRAGMA user_version");
    CHECKF(str_is(version, "4\n"), "%.*s", STR_ARG(version));
    str after = old_records(db, "SELECT replace(record, '\"schema\":1,', '') FROM outcome "
                                "ORDER BY ordinal");
    CHECK(str_eq(before, after)); /* nothing is lost */
    str marked = old_records(db, "SELECT count(*) FROM outcome WHERE record LIKE '{\"schema\":1,%' "
                                 "UNION ALL SELECT count(*) FROM meta WHERE key = 'confirmed_0' "
                                 "AND value LIKE '{\"schema\":1,%'");
    CHECKF(str_is(marked, "2\n1\n"), "%.*s", STR_ARG(marked));
    json_free(print);
    json_free(old_fingerprint(dir)); /* and reads as before */
}

/* A full disk, as RLIMIT_FSIZE has it, in a child of its own. */
static void test_full_disk(void) {
    char *dir = temp_dir();
    struct archive *a = opened(dir, 1, false);
    CHECK(a && add(a, 0));
    archive_close(a);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGXFSZ, SIG_IGN);
        a = opened(dir, 1, false);
        struct rlimit limit = {200 << 10, 200 << 10};
        if (!a || setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(3);
        uint64_t i = 1;
        while (i < 100000 && add(a, i))
            i++;
        bool said = says("make room") && err.kind == ERR_ENV && archive_count(a) == i;
        _exit(said ? 0 : 4);
    }
    int status;
    waitpid(pid, &status, 0);
    CHECKF(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
    a = opened(dir, 1, false);
    CHECKF(a && archive_count(a) > 1, "%s", err.text);
    if (a)
        CHECK(look(a, 0, 'a') == 1 && add(a, archive_count(a)));
    archive_close(a);
}

static void test_unwritable(void) {
    if (geteuid() == 0)
        SKIP("permissions do not bind the superuser");
    char *dir = temp_dir();
    CHECK(chmod(dir, 0555) == 0);
    CHECK(!opened(dir, 1, false));
    chmod(dir, 0755);
}

static void count_rows(void *ctx, const struct archive_candidate *c, struct record *record,
                       const struct err *why) {
    (void)c, (void)why;
    *(size_t *)ctx += record != NULL;
    record_free(record);
}

/* As somebody who may read the folder and no more: the rows, or an exit code that says what failed.
 */
static int read_as_nobody(const char *dir, size_t rows) {
    struct archive *a = NULL;
    str *names;
    size_t n = 0, before, after;
    if ((geteuid() == 0 && setuid(65534) != 0) || access(dir, W_OK) == 0)
        return 1;
    if (!dir_list(dir, mem, &names, &before, &err) || !archive_open_read(dir, &a, &err) ||
        !archive_each_candidate(a, count_rows, &n, &err)) {
        printf("# %s\n", err.text);
        fflush(stdout);
        return 2;
    }
    archive_close(a);
    return !dir_list(dir, mem, &names, &after, &err) || after != before ? 3 : n != rows ? 4 : 0;
}

static int in_child(const char *dir, size_t rows) {
    int status = -1;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(read_as_nobody(dir, rows));
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Closed; killed, so that rows are in the log beside the file; and still being written. */
static void test_read_only(void) {
    char *odd = in_dir(temp_dir(), "a%20b?c#d"), *dir = temp_dir();
    CHECK(chmod(top, 0755) == 0 && dir_make(odd, &err));
    struct archive *a = opened(odd, 1, false);
    CHECK(a && add(a, 0) && add(a, 1));
    archive_close(a);
    CHECK(chmod(in_dir(odd, ".."), 0755) == 0 && chmod(odd, 0555) == 0);
    int code = in_child(odd, 2);
    CHECKF(code == 0, "closed: %d", code);

    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        a = opened(dir, 1, false);
        kill(getpid(), a && add(a, 0) && add(a, 1) && add(a, 2) ? SIGKILL : SIGTERM);
    }
    waitpid(pid, NULL, 0);
    CHECK(file_exists(in_dir(dir, "run.db-wal")) && chmod(dir, 0555) == 0);
    code = in_child(dir, 3);
    CHECKF(code == 0, "killed: %d", code);
    CHECK(unlink(in_dir(dir, "run.db-shm")) == 0);
    code = in_child(dir, 3);
    CHECKF(code == 0, "killed, without what it shared: %d", code);

    CHECK(chmod(dir, 0755) == 0 && (a = opened(dir, 1, false)) && add(a, 3));
    CHECK(chmod(dir, 0555) == 0);
    code = in_child(dir, 4);
    CHECKF(code == 0, "being written: %d", code);
    CHECK(chmod(dir, 0755) == 0 && chmod(odd, 0755) == 0);
    CHECK(a && add(a, 4));
    archive_close(a);
    CHECK(!archive_open_read(top, &a, &err) && says("is not the folder of a run"));
}

static void run_in_arena(void (*test)(void)) {
    const char *tmp = getenv("TMPDIR");
    mem = arena_new(256u << 20);
    top = mkdtemp(arena_cstr(mem, arena_printf(mem, "%s/archive-XXXXXX", tmp ? tmp : "/tmp")));
    test();
    CHECK(dir_remove_tree(top, &err));
    arena_free(mem);
}
#define CASE(f)                                                                                    \
    static void f##_case(void) {                                                                   \
        run_in_arena(f);                                                                           \
    }
CASE(test_create_and_resume)
CASE(test_forget)
CASE(test_fingerprint)
CASE(test_unbegun)
CASE(test_long_values)
CASE(test_results_alone)
CASE(test_foreign_files)
CASE(test_fresh)
CASE(test_locked)
CASE(test_not_ours)
CASE(test_kill)
CASE(test_corrupt)
CASE(test_damaged_rows)
CASE(test_versions)
CASE(test_version_before)
CASE(test_full_disk)
CASE(test_unwritable)
CASE(test_read_only)

static const struct tap_case cases[] = {
    {"created, resumed, looked up", test_create_and_resume_case},
    {"a candidate may be forgotten", test_forget_case},
    {"another fingerprint is refused by its keys", test_fingerprint_case},
    {"a run that did nothing makes room for another", test_unbegun_case},
    {"long values are not read out", test_long_values_case},
    {"results without an archive are refused", test_results_alone_case},
    {"a folder with other things is refused", test_foreign_files_case},
    {"fresh removes a run and nothing else", test_fresh_case},
    {"a held folder is refused", test_locked_case},
    {"a folder that may not be written to", test_not_ours_case},
    {"kill -9 loses no committed row", test_kill_case},
    {"a damaged file is refused and left as it is", test_corrupt_case},
    {"a damaged row makes room for another", test_damaged_rows_case},
    {"newer, foreign and empty files", test_versions_case},
    {"a run of the version before is read, and migrated whole", test_version_before_case},
    {"a full disk keeps what was recorded", test_full_disk_case},
    {"an unwritable folder is refused", test_unwritable_case},
    {"read without a right to write", test_read_only_case},
};
TAP_CASES(cases)
