/* What a user hears where the text that was written of a module is no task: that it is import's
 * text, which nobody has seen, and where in the file it comes from. */
#ifndef IMPORT_REFUSED_H
#define IMPORT_REFUSED_H

#include "base/arena.h"
#include "base/err.h"

/* `err` is a diagnostic of `text`, the task; it becomes one of `file`, the module's, of kind
 * ERR_NO. Returns false. */
bool task_refused(struct err *err, const char *file, str text);

#endif
