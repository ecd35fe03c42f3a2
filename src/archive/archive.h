/* The archive of a run: one SQLite file in the run's folder, append-only, this process its one
 * writer. The run's folder is locked; a second command on it is told who holds it. Resuming is
 * replay: the search runs again and asks here first, by the ordinal of the submission. */
#ifndef ARCHIVE_ARCHIVE_H
#define ARCHIVE_ARCHIVE_H

#include "eval/outcome.h"

struct archive;

struct archive_candidate {
    uint64_t ordinal; /* of submission, from 0 */
    uint64_t generation, slot;
    str strategy; /* as its code has it, where that is known when the outcome is */
    str reason, source;
    char source_hash[65];
};

/* Opens or creates DIR/run.db. `fingerprint` is what identifies the run (task, options, version); a
 * folder with another one is refused, the differing keys named (fingerprint is a JSON object),
 * unless that run came to neither an answer nor an outcome. With `fresh`, an existing run.db and
 * its results are removed first. Never touches a folder that holds other things than a run. */
bool archive_open(const char *dir, const json *fingerprint, bool fresh, struct archive **out,
                  struct err *err);
/* Whether archive_open would go on there: false, with its message, where the folder holds another
 * run that came to something. Changes nothing; what cannot be read is archive_open's to tell. */
bool archive_matches(const char *dir, const json *fingerprint, struct err *err);
void archive_close(struct archive *a);
bool archive_resumed(const struct archive *a); /* the folder had rows */

/* An outcome recorded earlier for this ordinal, if its source hash is the same (a different one is
 * an error: the search did not replay). Returns 1 and *record (owned by the caller), 0 when there
 * is none, -1 with err. A row that is damaged is removed, and is none: err then has a text for the
 * user, and ERR_NONE otherwise. */
int archive_lookup(struct archive *a, uint64_t ordinal, const char *source_hash,
                   struct record **record, struct err *err);
/* Removes what is recorded of a candidate, which is evaluated again. As that may come to something
 * else, the search may take another course from there on: later rows and calls that do not fit it
 * are removed as they are met, where they would have been an error. */
bool archive_forget(struct archive *a, uint64_t ordinal, struct err *err);
/* Candidate and outcome in one transaction. */
bool archive_add(struct archive *a, const struct archive_candidate *c, const struct record *record,
                 struct err *err);
bool archive_note(struct archive *a, const char *key, str value, struct err *err); /* meta */
bool archive_get_note(struct archive *a, const char *key, struct arena *mem, str *value,
                      struct err *err);                /* empty when absent */
size_t archive_count(struct archive *a);               /* outcomes */
bool archive_has(struct archive *a, uint64_t ordinal); /* … of this candidate */

#endif
