/* The run's folder: which files may be in it, its lock, and clearing it for a fresh start. It never
 * touches a file that is not a run's. Private to the room. */
#ifndef ARCHIVE_FOLDER_H
#define ARCHIVE_FOLDER_H

#include "base/arena.h"
#include "base/err.h"

/* Makes the folder if it is absent, refuses it when it holds other things than a run (results
 * without an archive are somebody else's), locks it (*lock: a descriptor whose closing unlocks),
 * and with `fresh` removes an earlier run's files. */
bool folder_open(const char *dir, bool fresh, struct arena *a, int *lock, struct err *err);

#endif
