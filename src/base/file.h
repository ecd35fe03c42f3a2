/* Files and folders. Reads have a ceiling, writes replace atomically: the new content is written
 * beside the old, flushed, and renamed over it, so that a reader sees one or the other and a failed
 * write changes nothing. Temporary files are called .NAME.tmp.PROCESS.N and are removed on failure;
 * those of a process that was killed stay, until somebody removes them (dir_remove_temporaries). */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/arena.h"
#include "base/err.h"

/* Regular files only: a directory, a device or a file over `max` is an error that says so. */
bool file_read(const char *path, size_t max, struct arena *a, str *out, struct err *err);
bool file_read_fd(int fd, size_t max, struct arena *a, str *out, struct err *err);
bool file_replace(const char *path, str content, struct err *err);
bool file_replace_parts(const char *path, const str *parts, size_t n, struct err *err);
bool file_write_all(int fd, const void *p, size_t n, struct err *err); /* the one write seam */
bool file_exists(const char *path);
bool dir_make(const char *path, struct err *err); /* with its parents; fine if it exists */
/* Whether others cannot put anything there: it (and a link that leads to it) belongs to this user
 * or to root, and neither its group nor everybody may write to it. False: err says why not. */
bool dir_check_private(const char *path, struct err *err);
/* Makes it for this user alone (0700), with its parents as dir_make does; or checks what is there.
 */
bool dir_make_private(const char *path, struct err *err);
bool dir_remove_tree(const char *path, struct err *err); /* does not follow links */
/* Removes temporary files of file_replace: of processes that are gone, or all of them, where nobody
 * else may be writing. */
bool dir_remove_temporaries(const char *path, bool all, struct err *err);
bool file_is_temporary(str name);
bool dir_list(const char *path, struct arena *a, str **names, size_t *n,
              struct err *err); /* sorted */
/* Whether a folder is on a network file system, where memory is not shared between machines. */
bool dir_is_remote(const char *path);
/* An exclusive lock on `path` (created if absent) that dies with the process. Returns the
 * descriptor, or -1: err says who holds it where that is known. */
int file_lock(const char *path, struct err *err);
/* A file that is read and added to, made if absent, locked as long as the descriptor is open.
 * `wait`: for whoever holds it; an error otherwise. -1 and err. */
int file_open_locked(const char *path, bool wait, struct err *err);

/* $XDG_CACHE_HOME/cutepilot or ~/.cache/cutepilot; with neither, /tmp/cutepilot-UID, which is made
 * for this user alone. False: somebody else made that one, or might write to it. */
bool cache_dir(struct arena *a, str *out, struct err *err);
/* $XDG_DATA_HOME/cutepilot or ~/.local/share/cutepilot; empty with neither. */
str data_dir(struct arena *a);
/* The path of the running program. */
str self_path(struct arena *a);

#endif
