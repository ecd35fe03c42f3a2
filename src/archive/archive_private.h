/* What the files of this room share: the open archive and statements on it. */
#ifndef ARCHIVE_ARCHIVE_PRIVATE_H
#define ARCHIVE_ARCHIVE_PRIVATE_H

#include "archive/archive.h"
#include <sqlite3.h>

struct archive {
    sqlite3 *db;
    int lock; /* -1: opened for reading */
    char path[4096];
    char copy[512]; /* a temporary folder that goes with it; "": none */
    bool resumed;
};

void db_wait(const struct archive *a); /* for whoever else has it open, before giving up */
bool db_fail(const struct archive *a, const char *doing, struct err *err);
sqlite3_stmt *db_prepare(const struct archive *a, const char *sql, struct err *err);
/* False with err: the file is of a newer schema than the newest that is known here; `otherwise` is
 * what its reader can do but to use a newer program. */
bool db_version(const struct archive *a, const char *otherwise, int64_t *version, int64_t *known,
                struct err *err);
void db_bind(sqlite3_stmt *s, int i, str text);
/* Runs a statement that yields no rows, and finalizes it. */
bool db_run(const struct archive *a, sqlite3_stmt *s, struct err *err);
str db_column(sqlite3_stmt *s, int i); /* valid until the statement is stepped again */

#endif
