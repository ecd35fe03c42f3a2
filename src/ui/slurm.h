/* Nodes of a cluster, through Slurm's commands: one long-lived allocation, in which workers are
 * steps (srun). The library changes with every release; the commands do not.
 *
 * Inside an allocation (sbatch, salloc) that one is used, and it ends with us. Elsewhere salloc
 * asks for one. It runs `cat`, whose end is what gives the allocation back: its stdin is ours, so
 * that is so however this process ends. An allocation that ends by its time limit, by preemption or
 * with its nodes can be asked for again; one that somebody cancelled is not.
 *
 * Every worker is started as `srun --overlap` on one node, sees all GPUs of the job there and uses
 * one of them by its number: steps never wait for each other, whatever the cluster counts. */
#ifndef UI_SLURM_H
#define UI_SLURM_H

#include "base/arena.h"
#include "base/err.h"
#include "base/loop.h"

#include <signal.h>

struct slurm;

struct slurm_request {
    const char *partition;             /* NULL: the default one */
    int64_t nodes, gpus;               /* gpus: of a node; 0: none are asked for */
    const char *options;               /* further ones for salloc, split at blanks; NULL: none */
    const volatile sig_atomic_t *stop; /* a signal has come: no command is waited for */
};

struct slurm_node {
    const char *name;
    str type; /* of its GPUs, by its Gres; empty: not said */
};

struct slurm_events {
    void *ctx;
    void (*granted)(void *ctx);
    /* The allocation is over, as err says; again: asking for another one is reasonable. */
    void (*ended)(void *ctx, bool again, const struct err *why);
};

/* Whether a value of --cluster is one of ours: "slurm" or "slurm:PARTITION". */
bool slurm_named(const char *cluster, struct arena *a, const char **partition);

/* Asks for an allocation; `granted` or `ended` follows, from the loop. While it waits, what Slurm
 * says about why is printed. */
struct slurm *slurm_new(struct loop *l, const struct slurm_request *r,
                        const struct slurm_events *ev, struct err *err);
void slurm_free(struct slurm *s); /* gives it back, where it was asked for here */

/* After `granted`: */
const char *slurm_job(const struct slurm *s);
size_t slurm_nodes(const struct slurm *s, const struct slurm_node **nodes);
/* What starts a program on a node: words, NULL-terminated, the program not among them. workers:
 * that share the node's cores. */
const char **slurm_command(const struct slurm *s, const char *node, uint64_t workers,
                           struct arena *a);
/* Whether the allocation is still there; `ended` follows where it is not. For when workers fail. */
void slurm_look(struct slurm *s);
/* Seconds until it ends, as Slurm has it now; false: no limit, or not known. */
bool slurm_left(const struct slurm *s, uint64_t *seconds);
bool slurm_is_ours(const struct slurm *s); /* asked for here, not found */

#endif
