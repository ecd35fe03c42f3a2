/* From an nn.Module to a task (docs/IMPORT.md).
 *
 * The user's file runs in a confined helper process (eval/python.h, assets/import/helper.py), which
 * records what it computes as a graph of ATen operators. graph.h reads it, write.h writes the task,
 * cut.h several where one is not enough, and before anybody sees them, compare.h holds them against
 * the module. */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include "import/compare.h"

struct import_options {
    const char *python;  /* "python3", looked up in PATH */
    const char *assets;  /* as in asset_get */
    const char *program; /* as in struct python_options */
    unsigned threads;
    unsigned limit_s; /* of every request to the helper, which then says where it was */
    /* What confines the process, said before it reads a file: the `sandbox` of its first line.
     * NULL: nobody wants to know. */
    void (*on_confined)(void *ctx, const json *sandbox);
    void *ctx;
};

struct imported {
    str name;                 /* of the file, without its suffix */
    struct chain chain;       /* its tasks: one, or several in order */
    json *graph;              /* as recorded */
    str pytorch;              /* its version; empty for a recorded graph */
    struct compared compared; /* no shapes: a recorded graph, not compared */
};
void imported_release(struct imported *made); /* what is not in the arena; also after a failure */

/* Imports files one after the other. The helper is started by the first that needs it, and again
 * where it was lost; each file has a process of its own, forked from it. */
struct importer;
struct importer *importer_new(const struct import_options *o);
void importer_free(struct importer *i);

/* `file`: MODEL.py, or a graph that was recorded before, GRAPH.json; `class`: NULL is Model, or the
 * only one. False and err: ERR_INPUT where the file is at fault, ERR_NO where the language cannot
 * express it or the task is not what the module computes, ERR_ENV without PyTorch. */
bool importer_run(struct importer *i, const char *file, const char *class, struct arena *a,
                  struct imported *out, struct err *err);

#endif
