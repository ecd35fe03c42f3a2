#include "archive/calls.h"
#include "archive/archive_private.h"
#include <math.h>
#include <stdio.h>

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
    if (!str_is(str_view(out->prompt_hash), prompt_hash)) {
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
    return found;
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
