/* A Python helper process: code that somebody else wrote runs in it, never here.
 *
 * `python_open` makes a folder, writes a script from the assets to it and starts `cutepilot ROLE
 * PYTHON DIR`, which confines itself and becomes Python. Requests and answers are
 * JSON objects, one a line, over pipes; the helper answers one request at a time and sleeps in
 * between. Everything read from it is bounded in size and time: one that is late or talks nonsense
 * is killed, and every later request fails with the same words. Its folder is removed in the end.
 *
 * The process may write to one folder inside of it, where it works, and only read the rest: what it
 * is given (python_give) cannot become a link to a file of the user's. What it leaves (python_take)
 * is read only where it is a plain file.
 *
 * An answer {"error": TEXT} becomes an err; where it also has "kind": "input", of kind ERR_INPUT,
 * and where it has "at", that stands before the text. */
#ifndef EVAL_PYTHON_H
#define EVAL_PYTHON_H

#include "base/arena.h"
#include "base/child.h"
#include "base/json.h"

struct python_options {
    const char *what; /* for messages: "the PyTorch helper" */
    const char
        *role; /* "torch": may use a GPU; "module": may not, and writes to its folder alone */
    const char *script;  /* the asset that becomes helper.py */
    const char *python;  /* "python3", looked up in PATH */
    const char *assets;  /* as in asset_get */
    const char *program; /* to start as `program ROLE …`; NULL: ourselves */
    unsigned limit_ms;   /* of every request, whatever it states; 0: as it states */
    struct child_limits limits;
};

struct python;

/* NULL and err. The folder and the script are there; the process is started by python_start. */
struct python *python_open(const struct python_options *o, struct err *err);
/* The first line says what confines it; *hello (may be NULL) is given to the caller. */
bool python_start(struct python *t, unsigned limit_ms, json **hello, struct err *err);
const char *python_dir(const struct python *t); /* that of the script, which it may only read */
/* A file that it finds beside its script, anew. */
bool python_give(const struct python *t, str name, str bytes, struct err *err);
/* A file that it wrote under this name, which is gone then; ERR_INPUT where it is no plain file, or
 * is too long. */
bool python_take(const struct python *t, str name, size_t max, struct arena *a, str *out,
                 struct err *err);
/* The answer, or NULL and err. */
json *python_ask(struct python *t, const json *request, unsigned limit_ms, struct err *err);
void python_close(struct python *t); /* NULL is fine; kills it, removes its folder */

/* Writes the script alone, into a folder that exists. */
bool python_write_script(const char *assets, const char *script, const char *dir, struct err *err);

/* The roles: `cutepilot torch PYTHON DIR` and `cutepilot module PYTHON DIR`; argv holds the two
 * words after the first. */
int torch_main(int argc, char **argv);
int module_main(int argc, char **argv);

#endif
