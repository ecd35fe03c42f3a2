/* Counters by line of the source: what every instruction counted, gathered by where it came from.
 */
#include "sim/machine.h"

#include <stdlib.h>
#include <string.h>

struct source { /* of an instruction */
    uint32_t file, line, pc;
};

static int compare(const void *x, const void *y) {
    const struct source *a = x, *b = y;
    if (a->file != b->file)
        return a->file < b->file ? -1 : 1;
    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    return (a->pc > b->pc) - (a->pc < b->pc);
}

static void add(struct sim_line *to, const struct worker *w, size_t pc) {
    const struct instr *in = &w->p->code[pc];
    const struct traffic *t = &w->traffic[pc];
    if (in->counted) {
        to->warp_instrs += w->warp_counts[pc];
        to->lane_instrs += w->lane_counts[pc];
    }
    *(in->class == CLASS_TENSOR ? &to->tensor_flops : &to->flops) += w->lane_counts[pc] * in->flops;
    to->divergent_branches += t->divergent;
    to->requests += t->requests;
    to->sectors += t->sectors;
    to->bytes += t->bytes;
    to->shared_requests += t->shared_requests;
    to->shared_wavefronts += t->shared_wavefronts;
    to->shared_conflicts += t->shared_conflicts;
}

void lines_collect(const struct launch *la, struct worker *const *workers, unsigned n,
                   struct sim_result *out) {
    const struct sim_program *p = la->p;
    struct source *order = mem_alloc((p->ncode + 1) * sizeof *order);
    struct sim_line *lines = arena_array(la->l->lines, struct sim_line, p->ncode + 1);
    for (size_t k = 0; k < p->ncode; k++) {
        const struct ptx_instr *src = p->code[k].src;
        order[k] = (struct source){src->src_line ? src->src_file : 0, src->src_line, (uint32_t)k};
    }
    qsort(order, p->ncode, sizeof *order, compare);
    out->nlines = 0;
    for (size_t k = 0; k < p->ncode; k++) {
        bool new =
            k == 0 || order[k].file != order[k - 1].file || order[k].line != order[k - 1].line;
        if (new) {
            str file = program_file(p->module, p->code[order[k].pc].src);
            lines[out->nlines++] =
                (struct sim_line){.file = order[k].line ? arena_str(la->l->lines, file) : S(""),
                                  .line = order[k].line};
        }
        for (unsigned i = 0; i < n; i++)
            add(&lines[out->nlines - 1], workers[i], order[k].pc);
    }
    out->lines = lines;
    mem_free(order);
}
