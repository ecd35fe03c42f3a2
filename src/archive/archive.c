/* SQLite, and only here.
 *
 * 1. The folder is locked before the file is opened, so this process is its one writer.
 * 2. A candidate and its outcome appear together or not at all (one transaction).
 * 3. WAL with synchronous=NORMAL: the death of the process loses no committed row. A power failure
 *    may lose the last ones, which replay makes again, and never damages the file.
 * 4. A file that is damaged, newer than this program, or not a run's is refused as it is.
 * 5. The schema's version is PRAGMA user_version; assets/sql/NNN_name.sql takes it from NNN-1 to
 *    NNN, each in a transaction of its own. */
#include "archive/archive.h"
#include "archive/archive_private.h"
#include "archive/folder.h"
#include "base/asset.h"
#include "base/file.h"
#include <string.h>
#include <unistd.h>

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

bool db_fail(const struct archive *a, const char *doing, struct err *err) {
    int code = sqlite3_extended_errcode(a->db);
    const char *hint = remedy(code);
    return err_set(err, ERR_ENV, "%s: %s: %s%s%s", a->path, doing, sqlite3_errmsg(a->db),
                   hint ? "; " : "", hint ? hint : "");
}

/* ---- statements ---- */

void db_wait(const struct archive *a) {
    sqlite3_busy_timeout(a->db, BUSY_MS);
}

static bool db_exec(const struct archive *a, const char *sql, const char *doing, struct err *err) {
    if (sqlite3_exec(a->db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    return db_fail(a, doing, err);
}

sqlite3_stmt *db_prepare(const struct archive *a, const char *sql, struct err *err) {
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

void db_bind(sqlite3_stmt *s, int i, str text) {
    sqlite3_bind_text64(s, i, text.n ? text.p : "", text.n, SQLITE_STATIC, SQLITE_UTF8);
}

/* Runs a statement that yields no rows, and finalizes it. */
bool db_run(const struct archive *a, sqlite3_stmt *s, struct err *err) {
    bool ok = sqlite3_step(s) == SQLITE_DONE;
    if (!ok)
        db_fail(a, "write", err);
    sqlite3_finalize(s);
    return ok;
}

/* Valid until the statement is stepped again. */
str db_column(sqlite3_stmt *s, int i) {
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

bool db_version(const struct archive *a, const char *otherwise, int64_t *version, int64_t *known,
                struct err *err) {
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
    return check_integrity(a, err) &&
           db_exec(a, "PRAGMA foreign_keys=ON; PRAGMA synchronous=NORMAL;", "set up", err) &&
           migrate(a, err) && db_exec(a, "PRAGMA journal_mode=WAL", "set up", err);
}

static bool open_all(struct archive *a, const char *dir, const json *fingerprint, bool fresh,
                     struct arena *mem, struct err *err) {
    str path = arena_printf(mem, "%s/run.db", dir);
    if (path.n >= sizeof a->path)
        return err_set(err, ERR_INPUT, "run folder: the path is too long");
    memcpy(a->path, path.p, path.n + 1);
    if (!folder_open(dir, fresh, mem, &a->lock, err) || !open_database(a, err) ||
        !check_fingerprint(a, dir, fingerprint, mem, err))
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

static bool forget(const struct archive *a, uint64_t ordinal, struct err *err) {
    char sql[160];
    sqlite3_snprintf(sizeof sql, sql,
                     "BEGIN IMMEDIATE; DELETE FROM outcome WHERE ordinal = %lld; "
                     "DELETE FROM candidate WHERE ordinal = %lld; COMMIT",
                     (long long)ordinal, (long long)ordinal);
    return db_exec(a, sql, "remove a damaged row", err);
}

/* As archive_lookup; 2: there is a row, and it is damaged. */
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
    if (found != 2)
        return found;
    if (!forget(a, ordinal, err))
        return -1;
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
