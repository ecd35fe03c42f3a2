/* Calls of models, in the archive of a run: prompts, replies and what they cost. Keys are never
 * part of a call. A run opened for reading is not locked and never changed: whoever writes it may
 * go on. */
#ifndef ARCHIVE_CALLS_H
#define ARCHIVE_CALLS_H

#include "archive/archive.h"

struct archive_call {
    str role, model;
    uint64_t ordinal;
    uint64_t candidate;  /* whose making it was part of; UINT64_MAX: no single one's */
    uint64_t candidates; /* outcomes recorded before it; set by the archive */
    char prompt_hash[65];
    str system, user, reply;
    uint64_t tokens_in, tokens_out;
    double cost; /* NAN: not known */
    double seconds;
    bool cut;
};

bool archive_add_call(struct archive *a, const struct archive_call *c, struct err *err);
/* 1: *out is the call recorded for this role and ordinal, its texts in the arena. 0: there is none.
 * -1 with err: failed, or the prompt was another one (the search did not replay). */
int archive_find_call(struct archive *a, const char *role, uint64_t ordinal,
                      const char *prompt_hash, struct arena *mem, struct archive_call *out,
                      struct err *err);

/* ---- reading a run ---- */

/* Needs no more than to read the folder, and makes nothing in it but what a run that is being
 * written needs anyway. Temporary files of a command that was killed are removed where that may be
 * done. */
bool archive_open_read(const char *dir, struct archive **out, struct err *err);
typedef void archive_call_fn(void *ctx, const struct archive_call *c);
bool archive_each_call(struct archive *a, archive_call_fn *f, void *ctx, struct err *err);
/* In order of ordinals. record: the callee's; NULL: the row is damaged, as `why` says. */
typedef void archive_candidate_fn(void *ctx, const struct archive_candidate *c,
                                  struct record *record, const struct err *why);
bool archive_each_candidate(struct archive *a, archive_candidate_fn *f, void *ctx, struct err *err);

#endif
