/* SQLite, and only here.
 *
 * 1. The folder is locked before the file is opened, so this process is its one writer.
 * 2. A candidate and its outcome appear together or not at all (one transaction).
 * 3. WAL with synchronous=NORMAL: the death of the process loses no committed row. A power failure
 *    may lose the last ones, which replay makes again, and never damages the file.
 *    On a network file system, where WAL's shared memory is not to be had, the file has a rollback
 *    journal instead and belongs to this process alone: nobody reads it until the run is over.
 * 4. A file that is damaged, newer than this program, or not a run's is refused as it is.
 * 5. The schema's version is PRAGMA user_version; assets/sql/NNN_name.sql takes it from NNN-1 to
 *    NNN, each in a transaction of its own.
 * 6. A file of the folder that is not a run's is never touched. */
#include "archive/archive.h"

#include "archive/calls.h"
#include "base/arena.h"
#include "base/asset.h"
#include "base/err.h"
#include "base/file.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct archive {
    sqlite3 *db;
    int lock; /* -1: opened for reading */
    char path[4096];
    char copy[512]; /* a temporary folder that goes with it; "": none */
    bool resumed;
    bool remote; /* on a network file system */
    /* A candidate from which on rows may be of a course that the search no longer takes. */
    uint64_t forgotten; /* UINT64_MAX: there is none */
};

static const char lock_name[] = "run.lock";
static const char *const own_names[] = {"run.db",         "run.db-wal", "run.db-shm",
                                        "run.db-journal", "kernel.cu",  "outcome.json",
                                        "events.jsonl",   "report.html"};
/* These come after run.db and go before it (names are sorted), so that whatever ends a run, what it
 * leaves is known for a run's. */
static const char *const result_names[] = {"kernel.cu", "outcome.json", "events.jsonl",
                                           "report.html"};

static bool is_ours(str name) {
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (str_is(name, own_names[i]))
            return true;
    return file_is_temporary(name);
}

static bool check_place(const char *dir, struct err *err) {
    struct stat st;
    if (stat(dir, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return err_errno(err, ERR_ENV, "run folder %s", dir);
        return dir_make(dir, err) || err_wrap(err, "run folder (--out)");
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%s is not a folder; choose another --out", dir);
    if (access(dir, R_OK | W_OK | X_OK) != 0)
        return err_errno(err, ERR_ENV,
                         "run folder %s cannot be written to; choose another --out, or "
                         "allow it",
                         dir);
    return true;
}

static bool listed(const str *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_is(names[i], name))
            return true;
    return false;
}

static bool check_content(const char *dir, const str *names, size_t n, struct err *err) {
    for (size_t i = 0; i < n; i++)
        if (!is_ours(names[i]) && !str_is(names[i], lock_name))
            return err_set(err, ERR_INPUT, "%s holds other files (%.*s); choose another --out", dir,
                           STR_ARG(names[i]));
    for (size_t i = 0; i < sizeof result_names / sizeof *result_names; i++)
        if (listed(names, n, result_names[i]) && !listed(names, n, own_names[0]))
            return err_set(
                err, ERR_INPUT,
                "%s holds %s but no %s: it is not the folder of a run; choose another --out", dir,
                result_names[i], own_names[0]);
    return true;
}

static bool remove_run(const char *dir, const str *names, size_t n, struct arena *a,
                       struct err *err) {
    for (size_t i = 0; i < n; i++) {
        if (!is_ours(names[i]))
            continue;
        str path = arena_printf(a, "%s/%.*s", dir, STR_ARG(names[i]));
        if (unlink(path.p) != 0 && errno != ENOENT)
            return err_errno(err, ERR_ENV, "remove %s", path.p);
    }
    return true;
}

/* Makes the folder if it is absent, refuses it when it holds other things than a run (results
 * without an archive are somebody else's), locks it (*lock: a descriptor whose closing unlocks),
 * removes what a command that was killed left half-written, and with `fresh` an earlier run's
 * files. The content is looked at before the lock file is made, so that nothing is added to a
 * folder that is not ours, and listed again under the lock. */
static bool folder_open(const char *dir, bool fresh, struct arena *a, int *lock, struct err *err) {
    str *names;
    size_t n;
    if (!check_place(dir, err) || !dir_list(dir, a, &names, &n, err) ||
        !check_content(dir, names, n, err))
        return false;
    *lock = file_lock(arena_printf(a, "%s/%s", dir, lock_name).p, err);
    if (*lock < 0)
        return err_wrap(err, "run folder %s", dir);
    if (dir_remove_temporaries(dir, true, err) &&
        (!fresh || (dir_list(dir, a, &names, &n, err) && check_content(dir, names, n, err) &&
                    remove_run(dir, names, n, a, err))))
        return true;
    close(*lock);
    *lock = -1;
    return false;
}

#define APPLICATION_ID 0x43507272 /* "CPrr", in the file's header: a cutepilot run */
#define BEGIN_WRITE    "BEGIN IMMEDIATE"
#define BUSY_MS        10000 /* a reader may be at it, or be recovering what a killed run left */
#define SHOWN_MOST     48    /* bytes of a fingerprint's value in a message */

/* ---- errors ---- */

static const char *remedy(int code) {
    switch (code & 0xff) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
        return "what was recorded stays; make room there and run the same command again";
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
        return "the file is damaged and was left as it is; use --fresh to start anew or another "
               "--out";
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return "the folder must be writable; choose another --out";
    default:
        return NULL;
    }
}

static bool db_fail(const struct archive *a, const char *doing, struct err *err) {
    int code = sqlite3_extended_errcode(a->db);
    const char *hint = remedy(code);
    return err_set(err, ERR_ENV, "%s: %s: %s%s%s", a->path, doing, sqlite3_errmsg(a->db),
                   hint ? "; " : "", hint ? hint : "");
}

/* ---- statements ---- */

/* For whoever else has it open, before giving up. */
static void db_wait(const struct archive *a) {
    sqlite3_busy_timeout(a->db, BUSY_MS);
}

static bool db_exec(const struct archive *a, const char *sql, const char *doing, struct err *err) {
    if (sqlite3_exec(a->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    return db_fail(a, doing, err);
}

static sqlite3_stmt *db_prepare(const struct archive *a, const char *sql, struct err *err) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(a->db, sql, -1, &s, NULL) != SQLITE_OK)
        db_fail(a, "read", err);
    return s;
}

/* One integer of one row. */
static bool db_number(const struct archive *a, const char *sql, int64_t *out, struct err *err) {
    sqlite3_stmt *s = db_prepare(a, sql, err);
    if (!s)
        return false;
    bool ok = sqlite3_step(s) == SQLITE_ROW;
    if (ok)
        *out = sqlite3_column_int64(s, 0);
    else
        db_fail(a, "read", err);
    sqlite3_finalize(s);
    return ok;
}

static void db_bind(sqlite3_stmt *s, int i, str text) {
    sqlite3_bind_text64(s, i, text.n ? text.p : "", text.n, SQLITE_STATIC, SQLITE_UTF8);
}

/* Runs a statement that yields no rows, and finalizes it. */
static bool db_run(const struct archive *a, sqlite3_stmt *s, struct err *err) {
    bool ok = sqlite3_step(s) == SQLITE_DONE;
    if (!ok)
        db_fail(a, "write", err);
    sqlite3_finalize(s);
    return ok;
}

/* Valid until the statement is stepped again. */
static str db_column(sqlite3_stmt *s, int i) {
    const char *p = (const char *)sqlite3_column_text(s, i);
    return (str){p ? p : "", (size_t)sqlite3_column_bytes(s, i)};
}

/* ---- schema ---- */

/* The migration that leads to `version`, or NULL. */
static const struct asset *migration(int64_t version) {
    char prefix[16];
    sqlite3_snprintf(sizeof prefix, prefix, "sql/%03d_", (int)version);
    for (const struct asset *f = asset_table; f->name; f++)
        if (strncmp(f->name, prefix, strlen(prefix)) == 0)
            return f;
    return NULL;
}

static bool migrate_step(const struct archive *a, const struct asset *f, int64_t version,
                         struct err *err) {
    char mark[96];
    sqlite3_snprintf(sizeof mark, mark, "PRAGMA user_version=%d; PRAGMA application_id=%d;",
                     (int)version, APPLICATION_ID);
    if (!db_exec(a, BEGIN_WRITE, "begin", err))
        return false;
    if (db_exec(a, f->data, f->name, err) && db_exec(a, mark, f->name, err) &&
        db_exec(a, "COMMIT", "commit", err))
        return true;
    sqlite3_exec(a->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

static bool check_origin(const struct archive *a, int64_t version, struct err *err) {
    int64_t application = 0, objects = 0;
    if (!db_number(a, "PRAGMA application_id", &application, err) ||
        !db_number(a, "SELECT count(*) FROM sqlite_schema", &objects, err))
        return false;
    if ((version != 0 || objects != 0) && application != APPLICATION_ID)
        return err_set(err, ERR_INPUT, "%s is not the archive of a run; choose another --out",
                       a->path);
    return true;
}

/* False with err: the file is of a newer schema than the newest that is known here; `otherwise` is
 * what its reader can do but to use a newer program. */
static bool db_version(const struct archive *a, const char *otherwise, int64_t *version,
                       int64_t *known, struct err *err) {
    if (!db_number(a, "PRAGMA user_version", version, err))
        return false;
    for (*known = 0; migration(*known + 1);)
        ++*known;
    return *version <= *known ||
           err_set(err, ERR_INPUT,
                   "%s was written by a newer cutepilot (schema %lld, this one knows %lld); use "
                   "that one%s",
                   a->path, (long long)*version, (long long)*known, otherwise);
}

static bool migrate(const struct archive *a, struct err *err) {
    int64_t version, known;
    if (!db_version(a, ", --fresh to start anew, or another --out", &version, &known, err) ||
        !check_origin(a, version, err))
        return false;
    for (; version < known; version++)
        if (!migrate_step(a, migration(version + 1), version + 1, err))
            return false;
    return true;
}

/* ---- fingerprint ---- */

struct difference {
    const json *other;
    bool reverse; /* only keys that the other lacks */
    struct buf text;
};

static void value_text(const json *j, struct buf *out) {
    str s;
    if (!j)
        buf_puts(out, S("not set"));
    else if (json_to_str(j, &s))
        buf_puts(out, s);
    else
        json_write(j, out);
}

static bool is_long(const json *j) {
    str s;
    return j && json_to_str(j, &s) && s.n > SHOWN_MOST;
}

static bool json_same(const json *x, const json *y) {
    struct buf a, b;
    buf_init(&a, 1u << 20);
    buf_init(&b, 1u << 20);
    json_write(x, &a);
    json_write(y, &b);
    bool same = !a.failed && !b.failed && str_eq(buf_str(&a), buf_str(&b));
    buf_release(&a);
    buf_release(&b);
    return same;
}

/* One key of the recorded fingerprint (or, in reverse, of ours) against the other's. */
static void note_difference(void *ctx, const char *key, const json *value) {
    struct difference *d = ctx;
    const json *other = json_get(d->other, key);
    if (d->reverse ? other != NULL : (other && json_same(value, other)))
        return;
    if (d->text.n)
        buf_puts(&d->text, S(", "));
    if (is_long(value) || is_long(other)) { /* a hash, say: no reader compares two */
        buf_printf(&d->text, "%s differs", strcmp(key, "task") == 0 ? "the task file" : key);
        return;
    }
    buf_printf(&d->text, "%s was ", key);
    value_text(d->reverse ? NULL : value, &d->text);
    buf_puts(&d->text, S(", is "));
    value_text(d->reverse ? value : other, &d->text);
}

static bool compare_fingerprint(const char *dir, const json *recorded, const json *fingerprint,
                                struct err *err) {
    struct difference d = {.other = fingerprint};
    buf_init(&d.text, 1024);
    json_each(recorded, note_difference, &d);
    d.other = recorded;
    d.reverse = true;
    json_each(fingerprint, note_difference, &d);
    bool same = d.text.n == 0 && !d.text.failed;
    if (!same)
        err_set(err, ERR_INPUT,
                "run folder %s is of another run: %.*s; use --fresh to start anew or another --out",
                dir, STR_ARG(buf_str(&d.text)));
    buf_release(&d.text);
    return same;
}

/* Neither an answer nor an outcome: nothing that would be lost. */
static bool is_unbegun(const struct archive *a) {
    struct err ignored;
    int64_t rows = 1;
    db_number(a, "SELECT (SELECT count(*) FROM candidate) + (SELECT count(*) FROM call)", &rows,
              &ignored);
    return rows == 0;
}

static bool note_fingerprint(struct archive *a, const json *fingerprint, struct err *err) {
    struct buf text;
    buf_init(&text, 1u << 20);
    json_write(fingerprint, &text);
    bool ok = !text.failed && archive_note(a, "fingerprint", buf_str(&text), err);
    buf_release(&text);
    return ok;
}

static bool check_fingerprint(struct archive *a, const char *dir, const json *fingerprint,
                              struct arena *mem, struct err *err) {
    str recorded;
    if (!archive_get_note(a, "fingerprint", mem, &recorded, err))
        return false;
    if (recorded.n == 0)
        return note_fingerprint(a, fingerprint, err);
    json *j = json_parse(recorded, err);
    if (!j)
        return err_set(
            err, ERR_ENV,
            "%s: the row 'fingerprint' of the table meta is damaged, so that nothing "
            "tells what it is a run of\nhint: use --fresh to start anew, or another --out",
            a->path);
    bool same = compare_fingerprint(dir, j, fingerprint, err);
    json_free(j);
    if (same || !is_unbegun(a))
        return same;
    return db_exec(a, "DELETE FROM meta", "clear", err) && note_fingerprint(a, fingerprint, err);
}

/* ---- opening ---- */

static bool check_integrity(const struct archive *a, struct err *err) {
    sqlite3_stmt *s = db_prepare(a, "PRAGMA quick_check(1)", err);
    if (!s)
        return false;
    bool ok = sqlite3_step(s) == SQLITE_ROW;
    if (!ok) {
        db_fail(a, "check", err);
    } else if (!str_is(db_column(s, 0), "ok")) {
        str why = db_column(s, 0);
        ok = err_set(err, ERR_ENV, "%s: %.*s; %s", a->path, STR_ARG(str_cut(why, 0, 200)),
                     remedy(SQLITE_CORRUPT));
    }
    sqlite3_finalize(s);
    return ok;
}

static bool open_database(struct archive *a, struct err *err) {
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(a->path, &a->db, flags, NULL) != SQLITE_OK)
        return a->db ? db_fail(a, "open", err) : err_set(err, ERR_ENV, "%s: no memory", a->path);
    sqlite3_extended_result_codes(a->db, 1);
    db_wait(a);
    if (a->remote && !db_exec(a, "PRAGMA locking_mode=EXCLUSIVE", "set up", err))
        return false;
    return check_integrity(a, err) && db_exec(a, "PRAGMA foreign_keys=ON", "set up", err) &&
           db_exec(a, a->remote ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", "set up",
                   err) &&
           migrate(a, err) &&
           db_exec(a, a->remote ? "PRAGMA journal_mode=DELETE" : "PRAGMA journal_mode=WAL",
                   "set up", err);
}

#define NOTE_FORGOTTEN "forgotten_from"

static bool read_forgotten(struct archive *a, struct arena *mem, struct err *err) {
    str text;
    a->forgotten = UINT64_MAX;
    if (!archive_get_note(a, NOTE_FORGOTTEN, mem, &text, err))
        return false;
    if (text.n && !str_to_u64(text, &a->forgotten))
        a->forgotten = UINT64_MAX;
    return true;
}

static bool open_all(struct archive *a, const char *dir, const json *fingerprint, bool fresh,
                     struct arena *mem, struct err *err) {
    str path = arena_printf(mem, "%s/run.db", dir);
    if (path.n >= sizeof a->path)
        return err_set(err, ERR_INPUT, "run folder: the path is too long");
    memcpy(a->path, path.p, path.n + 1);
    if (!folder_open(dir, fresh, mem, &a->lock, err))
        return false;
    a->remote = dir_is_remote(dir);
    if (!open_database(a, err) || !check_fingerprint(a, dir, fingerprint, mem, err) ||
        !read_forgotten(a, mem, err))
        return false;
    a->resumed = archive_count(a) > 0;
    return true;
}

bool archive_open(const char *dir, const json *fingerprint, bool fresh, struct archive **out,
                  struct err *err) {
    struct archive *a = mem_alloc(sizeof *a);
    struct arena *mem = arena_new(8u << 20);
    a->lock = -1;
    bool ok = open_all(a, dir, fingerprint, fresh, mem, err);
    arena_free(mem);
    if (ok)
        *out = a;
    else
        archive_close(a);
    return ok;
}

void archive_close(struct archive *a) {
    if (!a)
        return;
    struct err ignored;
    sqlite3_close(a->db);
    if (a->lock >= 0)
        close(a->lock);
    if (*a->copy)
        dir_remove_tree(a->copy, &ignored);
    mem_free(a);
}

bool archive_resumed(const struct archive *a) {
    return a->resumed;
}

/* ---- rows ---- */

/* Rows that were written here are whole. What another program, or a disk, made of them is told from
 * what the search once did. */
static bool is_hash(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (!memchr("0123456789abcdef", s.p[i], 16))
            return false;
    return s.n == 64;
}

/* Removes the row; `from` is noted as the candidate from which on rows need not fit. */
static bool remove_row(const struct archive *a, uint64_t ordinal, uint64_t from, struct err *err) {
    char note[120] = "", sql[300];
    if (from != UINT64_MAX)
        sqlite3_snprintf(sizeof note, note, "INSERT OR REPLACE INTO meta VALUES ('%s', '%llu');",
                         NOTE_FORGOTTEN, (unsigned long long)from);
    sqlite3_snprintf(sizeof sql, sql,
                     "BEGIN IMMEDIATE; %s DELETE FROM outcome WHERE ordinal = %lld; "
                     "DELETE FROM candidate WHERE ordinal = %lld; COMMIT",
                     note, (long long)ordinal, (long long)ordinal);
    if (db_exec(a, sql, "remove a row", err))
        return true;
    sqlite3_exec(a->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

bool archive_forget(struct archive *a, uint64_t ordinal, struct err *err) {
    uint64_t from = ordinal < a->forgotten ? ordinal : a->forgotten;
    if (!remove_row(a, ordinal, from, err))
        return false;
    a->forgotten = from;
    return true;
}

/* As archive_lookup; 2: there is a row, and it is damaged; 3: it is of a course that the search no
 * longer takes. */
static int lookup_row(const struct archive *a, sqlite3_stmt *s, uint64_t ordinal,
                      const char *source_hash, struct record **record, struct err *err) {
    struct err damage;
    int code = sqlite3_step(s);
    if (code == SQLITE_DONE)
        return 0;
    if (code != SQLITE_ROW) {
        db_fail(a, "read", err);
        return -1;
    }
    if (!is_hash(db_column(s, 0)))
        return 2;
    if (!str_is(db_column(s, 0), source_hash) && ordinal > a->forgotten)
        return 3;
    if (!str_is(db_column(s, 0), source_hash)) {
        err_set(err, ERR_ENV,
                "%s: candidate %llu was recorded with another source, so the search did not "
                "replay; use --fresh to start anew or another --out",
                a->path, (unsigned long long)ordinal);
        return -1;
    }
    *record = record_parse(db_column(s, 1), &damage);
    return *record ? 1 : 2;
}

int archive_lookup(struct archive *a, uint64_t ordinal, const char *source_hash,
                   struct record **record, struct err *err) {
    sqlite3_stmt *s = db_prepare(a,
                                 "SELECT source_hash, record FROM candidate LEFT JOIN outcome "
                                 "USING (ordinal) WHERE ordinal = ?1 UNION ALL SELECT '', record "
                                 "FROM outcome WHERE ordinal = ?1",
                                 err);
    if (!s)
        return -1;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)ordinal);
    *err = (struct err){0};
    int found = lookup_row(a, s, ordinal, source_hash, record, err);
    sqlite3_finalize(s);
    if (found < 2)
        return found;
    if (!remove_row(a, ordinal, UINT64_MAX, err))
        return -1;
    if (found == 3)
        return 0;
    err_set(err, ERR_NO, "%s: the row of candidate %llu is damaged; it is evaluated again", a->path,
            (unsigned long long)ordinal);
    return 0;
}

static bool add_candidate(const struct archive *a, const struct archive_candidate *c,
                          struct err *err) {
    sqlite3_stmt *s = db_prepare(a, "INSERT INTO candidate VALUES (?, ?, ?, ?, ?, ?, ?)", err);
    if (!s)
        return false;
    sqlite3_bind_int64(s, 1, (sqlite3_int64)c->ordinal);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)c->generation);
    sqlite3_bind_int64(s, 3, (sqlite3_int64)c->slot);
    db_bind(s, 4, c->strategy);
    db_bind(s, 5, c->reason);
    db_bind(s, 6, c->source);
    db_bind(s, 7, str_view(c->source_hash));
    return db_run(a, s, err);
}

static bool add_outcome(const struct archive *a, uint64_t ordinal, const struct record *record,
                        struct err *err) {
    struct buf text;
    buf_init(&text, 64u << 20);
    record_write(record, &text);
    bool ok = !text.failed || err_set(err, ERR_ENV, "%s: an outcome over 64 MiB", a->path);
    sqlite3_stmt *s = ok ? db_prepare(a, "INSERT INTO outcome VALUES (?, ?)", err) : NULL;
    if (s) {
        sqlite3_bind_int64(s, 1, (sqlite3_int64)ordinal);
        db_bind(s, 2, buf_str(&text));
        ok = db_run(a, s, err);
    }
    buf_release(&text);
    return ok && s;
}

bool archive_add(struct archive *a, const struct archive_candidate *c, const struct record *record,
                 struct err *err) {
    if (!db_exec(a, BEGIN_WRITE, "begin", err))
        return false;
    if (add_candidate(a, c, err) && add_outcome(a, c->ordinal, record, err) &&
        db_exec(a, "COMMIT", "commit", err))
        return true;
    sqlite3_exec(a->db, "ROLLBACK", NULL, NULL, NULL);
    return err_wrap(err, "candidate %llu", (unsigned long long)c->ordinal);
}

/* ---- meta ---- */

bool archive_note(struct archive *a, const char *key, str value, struct err *err) {
    sqlite3_stmt *s = db_prepare(a, "INSERT OR REPLACE INTO meta VALUES (?, ?)", err);
    if (!s)
        return false;
    db_bind(s, 1, str_view(key));
    db_bind(s, 2, value);
    return db_run(a, s, err);
}

bool archive_get_note(struct archive *a, const char *key, struct arena *mem, str *value,
                      struct err *err) {
    sqlite3_stmt *s = db_prepare(a, "SELECT value FROM meta WHERE key = ?", err);
    if (!s)
        return false;
    db_bind(s, 1, str_view(key));
    int code = sqlite3_step(s);
    *value = code == SQLITE_ROW ? arena_str(mem, db_column(s, 0)) : S("");
    bool ok = code == SQLITE_ROW || code == SQLITE_DONE || db_fail(a, "read", err);
    sqlite3_finalize(s);
    return ok;
}

size_t archive_count(struct archive *a) {
    struct err ignored;
    int64_t n = 0;
    db_number(a, "SELECT count(*) FROM outcome", &n, &ignored);
    return (size_t)n;
}

bool archive_has(struct archive *a, uint64_t ordinal) {
    struct err ignored;
    int64_t n = 0;
    char sql[80];
    sqlite3_snprintf(sizeof sql, sql, "SELECT count(*) FROM outcome WHERE ordinal = %lld",
                     (long long)ordinal);
    db_number(a, sql, &n, &ignored);
    return n > 0;
}

#define COLUMNS                                                                                    \
    "role, ordinal, candidates, model, prompt_hash, system, user, reply, tokens_in, tokens_out, "  \
    "cost, seconds, cut"

static void copy_hash(char out[65], str hash) {
    snprintf(out, 65, "%.*s", STR_ARG(hash));
}

bool archive_add_call(struct archive *a, const struct archive_call *c, struct err *err) {
    sqlite3_stmt *s = db_prepare(a,
                                 "INSERT INTO call (" COLUMNS ", candidate) VALUES (?, ?, "
                                 "(SELECT count(*) FROM outcome), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                                 err);
    if (!s)
        return false;
    db_bind(s, 1, c->role);
    sqlite3_bind_int64(s, 2, (sqlite3_int64)c->ordinal);
    db_bind(s, 3, c->model);
    db_bind(s, 4, str_view(c->prompt_hash));
    db_bind(s, 5, c->system);
    db_bind(s, 6, c->user);
    db_bind(s, 7, c->reply);
    sqlite3_bind_int64(s, 8, (sqlite3_int64)c->tokens_in);
    sqlite3_bind_int64(s, 9, (sqlite3_int64)c->tokens_out);
    if (isfinite(c->cost))
        sqlite3_bind_double(s, 10, c->cost);
    sqlite3_bind_double(s, 11, c->seconds);
    sqlite3_bind_int(s, 12, c->cut);
    if (c->candidate != UINT64_MAX)
        sqlite3_bind_int64(s, 13, (sqlite3_int64)c->candidate);
    return db_run(a, s, err);
}

/* Texts are the statement's. */
static void read_call(sqlite3_stmt *s, struct archive_call *c) {
    *c = (struct archive_call){
        .role = db_column(s, 0),
        .ordinal = (uint64_t)sqlite3_column_int64(s, 1),
        .candidates = (uint64_t)sqlite3_column_int64(s, 2),
        .model = db_column(s, 3),
        .system = db_column(s, 5),
        .user = db_column(s, 6),
        .reply = db_column(s, 7),
        .tokens_in = (uint64_t)sqlite3_column_int64(s, 8),
        .tokens_out = (uint64_t)sqlite3_column_int64(s, 9),
        .cost =
            sqlite3_column_type(s, 10) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(s, 10),
        .seconds = sqlite3_column_double(s, 11),
        .cut = sqlite3_column_int(s, 12) != 0,
        .candidate = sqlite3_column_type(s, 13) == SQLITE_NULL
                         ? UINT64_MAX
                         : (uint64_t)sqlite3_column_int64(s, 13),
    };
    copy_hash(c->prompt_hash, db_column(s, 4));
}

/* As archive_find_call; 2: there is one, of a course that the search no longer takes. */
static int found_call(const struct archive *a, sqlite3_stmt *s, const char *prompt_hash,
                      struct arena *mem, struct archive_call *out, struct err *err) {
    int code = sqlite3_step(s);
    if (code == SQLITE_DONE)
        return 0;
    if (code != SQLITE_ROW) {
        db_fail(a, "read", err);
        return -1;
    }
    read_call(s, out);
    bool same = str_is(str_view(out->prompt_hash), prompt_hash);
    if (!same && a->forgotten != UINT64_MAX)
        return 2;
    if (!same) {
        err_set(err, ERR_ENV,
                "%s: request %llu of the %.*s was recorded with another prompt, so the search did "
                "not replay; use --fresh to start anew or another --out",
                a->path, (unsigned long long)out->ordinal, STR_ARG(out->role));
        return -1;
    }
    str *texts[] = {&out->role, &out->model, &out->system, &out->user, &out->reply};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = arena_str(mem, *texts[i]);
    return 1;
}

/* What it cost stays in the account of the run. */
static bool set_call_aside(const struct archive *a, const char *role, uint64_t ordinal,
                           struct err *err) {
    sqlite3_stmt *s = db_prepare(a,
                                 "UPDATE call SET role = role || ' (unused ' || sequence || ')' "
                                 "WHERE role = ? AND ordinal = ?",
                                 err);
    if (!s)
        return false;
    db_bind(s, 1, str_view(role));
    sqlite3_bind_int64(s, 2, (sqlite3_int64)ordinal);
    return db_run(a, s, err);
}

int archive_find_call(struct archive *a, const char *role, uint64_t ordinal,
                      const char *prompt_hash, struct arena *mem, struct archive_call *out,
                      struct err *err) {
    sqlite3_stmt *s = db_prepare(
        a, "SELECT " COLUMNS ", candidate FROM call WHERE role = ? AND ordinal = ?", err);
    if (!s)
        return -1;
    db_bind(s, 1, str_view(role));
    sqlite3_bind_int64(s, 2, (sqlite3_int64)ordinal);
    int found = found_call(a, s, prompt_hash, mem, out, err);
    sqlite3_finalize(s);
    return found != 2 ? found : set_call_aside(a, role, ordinal, err) ? 0 : -1;
}

/* ---- reading a run ---- */

static bool end_rows(const struct archive *a, sqlite3_stmt *s, int code, struct err *err) {
    bool ok = code == SQLITE_DONE || db_fail(a, "read", err);
    sqlite3_finalize(s);
    return ok;
}

/* Whether the query has a row. */
static bool has_row(const struct archive *a, const char *sql, bool *out, struct err *err) {
    sqlite3_stmt *s = db_prepare(a, sql, err);
    if (!s)
        return false;
    int code = sqlite3_step(s);
    *out = code == SQLITE_ROW;
    return end_rows(a, s, code == SQLITE_ROW ? SQLITE_DONE : code, err);
}

/* Runs are read as they are. One from before models were asked has no such table, and no calls; an
 * early one does not say whose candidate a call was for. */
bool archive_each_call(struct archive *a, archive_call_fn *f, void *ctx, struct err *err) {
    bool some = false, whose = false;
    int code;
    if (!has_row(a, "SELECT 1 FROM sqlite_schema WHERE name = 'call'", &some, err) ||
        !has_row(a, "SELECT 1 FROM pragma_table_info('call') WHERE name = 'candidate'", &whose,
                 err))
        return false;
    if (!some)
        return true;
    sqlite3_stmt *s =
        whose ? db_prepare(a, "SELECT " COLUMNS ", candidate FROM call ORDER BY sequence", err)
              : db_prepare(a, "SELECT " COLUMNS ", NULL FROM call ORDER BY sequence", err);
    if (!s)
        return false;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        struct archive_call c;
        read_call(s, &c);
        f(ctx, &c);
    }
    return end_rows(a, s, code, err);
}

bool archive_each_candidate(struct archive *a, archive_candidate_fn *f, void *ctx,
                            struct err *err) {
    sqlite3_stmt *s = db_prepare(a,
                                 "SELECT ordinal, generation, slot, strategy, reason, source, "
                                 "source_hash, record FROM candidate JOIN outcome USING (ordinal) "
                                 "ORDER BY ordinal",
                                 err);
    int code;
    if (!s)
        return false;
    while ((code = sqlite3_step(s)) == SQLITE_ROW) {
        struct archive_candidate c = {.ordinal = (uint64_t)sqlite3_column_int64(s, 0),
                                      .generation = (uint64_t)sqlite3_column_int64(s, 1),
                                      .slot = (uint64_t)sqlite3_column_int64(s, 2),
                                      .strategy = db_column(s, 3),
                                      .reason = db_column(s, 4),
                                      .source = db_column(s, 5)};
        struct err why = {0};
        copy_hash(c.source_hash, db_column(s, 6));
        f(ctx, &c, record_parse(db_column(s, 7), &why), &why);
    }
    return end_rows(a, s, code, err);
}

/* ---- opening a run to read it, in a folder that may be somebody else's ----
 *
 * SQLite reads a file in WAL mode with the help of two files beside it, which it makes where they
 * are missing. So a run that nobody writes, whose file is whole without them, is opened as one that
 * does not change. One that is being written has them, and they are shared with its writer. What a
 * killed run left, in a folder where nothing can be made, is copied to a temporary folder and put
 * together there. */

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

/* What a command that was killed left half-written: it goes where nobody holds the folder, which is
 * asked only where there is any. Who may not remove it leaves it. */
static void remove_left_behind(const char *dir) {
    struct arena *mem = arena_new(8u << 20);
    struct err ignored = {0};
    str *names = NULL;
    size_t n = 0, left = 0;
    bool ok = dir_list(dir, mem, &names, &n, &ignored);
    for (size_t i = 0; ok && i < n; i++)
        left += file_is_temporary(names[i]);
    int lock = left ? open(arena_printf(mem, "%s/%s", dir, lock_name).p,
                           O_RDWR | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK)
                    : -1;
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        dir_remove_temporaries(dir, true, &ignored);
    if (lock >= 0)
        close(lock);
    arena_free(mem);
}

/* A command that was killed before its first table was there has recorded nothing: the run reads as
 * an empty one. */
static bool open_unbegun(struct archive *a, struct err *err) {
    bool begun = false;
    if (!has_row(a, "SELECT 1 FROM sqlite_schema", &begun, err) || begun)
        return begun;
    sqlite3_close(a->db);
    a->db = NULL;
    return (sqlite3_open(":memory:", &a->db) == SQLITE_OK || db_fail(a, "read", err)) &&
           migrate(a, err);
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
    if (ok)
        remove_left_behind(dir);
    ok = ok && open_some_way(a, err) && open_unbegun(a, err) &&
         db_version(a, "", &version, &known, err);
    if (ok)
        *out = a;
    else
        archive_close(a);
    return ok;
}

bool archive_matches(const char *dir, const json *fingerprint, struct err *err) {
    struct arena *mem = arena_new(8u << 20);
    struct archive *a;
    struct err ignored;
    str recorded = {0};
    bool there = archive_open_read(dir, &a, &ignored), same = true;
    if (there && archive_get_note(a, "fingerprint", mem, &recorded, &ignored) && recorded.n &&
        !is_unbegun(a)) {
        json *j = json_parse(recorded, &ignored);
        same = !j || compare_fingerprint(dir, j, fingerprint, err);
        json_free(j);
    }
    if (there)
        archive_close(a);
    arena_free(mem);
    return same;
}
