/* Opening a run to read it, in a folder that may be somebody else's.
 *
 * SQLite reads a file in WAL mode with the help of two files beside it, which it makes where they
 * are missing. So a run that nobody writes, whose file is whole without them, is opened as one that
 * does not change. One that is being written has them, and they are shared with its writer. What a
 * killed run left, in a folder where nothing can be made, is copied to a temporary folder and put
 * together there. */
#include "archive/archive_private.h"
#include "archive/calls.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_content(const struct archive *a, const char *suffix) {
    char path[sizeof a->path + 16];
    struct stat st;
    snprintf(path, sizeof path, "%s%s", a->path, suffix);
    return stat(path, &st) == 0 && st.st_size > 0;
}

static bool is_whole(const struct archive *a) {
    return !has_content(a, "-wal") && !has_content(a, "-journal");
}

/* Some of these characters mean something in a URI; any may be written like this. */
static void put_uri(const char *path, struct buf *out) {
    buf_printf(out, "file:%s", path[0] == '/' ? "//" : "");
    for (; *path; path++) {
        if (*path == '?' || *path == '#' || *path == '%')
            buf_printf(out, "%%%02x", (unsigned char)*path);
        else
            buf_putc(out, *path);
    }
}

/* Opening alone reads nothing yet. */
static bool open_as(struct archive *a, const char *name, int flags) {
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
    if (sqlite3_open_v2(name, &a->db, flags, NULL) == SQLITE_OK) {
        db_wait(a);
        if (sqlite3_exec(a->db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) ==
            SQLITE_OK)
            return true;
    }
    return false;
}

static bool open_uri(struct archive *a, const char *path, const char *query, int flags) {
    struct buf uri;
    buf_init(&uri, 4 * sizeof a->path);
    put_uri(path, &uri);
    buf_puts(&uri, str_view(query));
    bool ok = !uri.failed && open_as(a, uri.p, flags);
    buf_release(&uri);
    return ok;
}

static bool copy_file(const char *from, const char *to, struct err *err) {
    char part[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC), out = -1;
    ssize_t n = -1;
    if (in >= 0)
        out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    while (out >= 0 && (n = read(in, part, sizeof part)) > 0 &&
           file_write_all(out, part, (size_t)n, NULL))
        ;
    bool ok = n == 0 || err_errno(err, ERR_ENV, "copy %s to %s", from, to);
    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    return ok;
}

static bool open_copy(struct archive *a, struct err *err) {
    static const char *const parts[] = {"", "-wal", "-journal"};
    char from[sizeof a->path + 16], to[sizeof a->copy + 32];
    const char *tmp = getenv("TMPDIR");
    snprintf(a->copy, sizeof a->copy, "%s/cutepilot-run-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(a->copy)) {
        a->copy[0] = 0;
        return err_errno(err, ERR_ENV, "make a temporary folder in %s", tmp && *tmp ? tmp : "/tmp");
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(from, sizeof from, "%s%s", a->path, parts[i]);
        snprintf(to, sizeof to, "%s/run.db%s", a->copy, parts[i]);
        if (has_content(a, parts[i]) && !copy_file(from, to, err))
            return false;
    }
    snprintf(to, sizeof to, "%s/run.db", a->copy);
    return open_uri(a, to, "", SQLITE_OPEN_READWRITE) || db_fail(a, "read", err);
}

static bool open_some_way(struct archive *a, struct err *err) {
    if (is_whole(a) && open_uri(a, a->path, "?immutable=1", SQLITE_OPEN_READONLY))
        return true;
    sqlite3_close(a->db);
    if (open_uri(a, a->path, "", SQLITE_OPEN_READONLY))
        return true;
    int code = sqlite3_errcode(a->db);
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_PERM)
        return db_fail(a, "read", err);
    sqlite3_close(a->db);
    a->db = NULL;
    return open_copy(a, err);
}

bool archive_open_read(const char *dir, struct archive **out, struct err *err) {
    struct archive *a = mem_alloc(sizeof *a);
    a->lock = -1;
    bool ok = snprintf(a->path, sizeof a->path, "%s/run.db", dir) < (int)sizeof a->path;
    if (!ok)
        err_set(err, ERR_INPUT, "run folder: the path is too long");
    else if (access(a->path, R_OK) != 0)
        ok = errno == EACCES
                 ? err_errno(err, ERR_INPUT, "%s", a->path)
                 : err_errno(err, ERR_INPUT, "%s is not the folder of a run: run.db", dir);
    int64_t version, known;
    ok = ok && open_some_way(a, err) && db_version(a, "", &version, &known, err);
    if (ok)
        *out = a;
    else
        archive_close(a);
    return ok;
}
