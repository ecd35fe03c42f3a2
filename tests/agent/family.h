/* What the tests of the families share: which statements a family takes, what its text has for a
 * strategy, and that any strategy gives a plan that binds. What the kernels compute is verified by
 * tests/expert. */
#ifndef TESTS_AGENT_FAMILY_H
#define TESTS_AGENT_FAMILY_H

#include "agent/expert/sheet/sheet.h"
#include "writing.h"

/* ---- claims ---- */

struct claim_case {
    const char *name, *text;
    const char *want; /* a letter for each statement of the form: x taken, - not; "" no claim */
};

static void check_claims(const struct family *family, const struct claim_case *claims, size_t n) {
    for (const struct claim_case *c = claims; c < claims + n; c++) {
        struct inst *in = bind(c->text);
        struct form f;
        struct briefing b = {.inst = in, .gpu = gpu_find(S("h200"))};
        bool done[TASK_MAX_STATEMENTS] = {false}, take[TASK_MAX_STATEMENTS] = {false};
        bool formed = in && form_make(in, true, mem, &f, &err);
        CHECKF(formed, "%s: %s", c->name, err.text);
        if (!formed)
            continue;
        bool ok = family->claim(&b, &f, done, 0, take);
        CHECKF(ok == (c->want[0] != 0), "%s", c->name);
        CHECKF(!ok || f.task->nstatements == strlen(c->want), "%s: %d statements", c->name,
               (int)f.task->nstatements);
        for (size_t s = 0; ok && c->want[s]; s++)
            CHECKF(take[s] == (c->want[s] == 'x'), "%s: statement %d", c->name, (int)s);
    }
}

/* ---- text ---- */

struct text_case {
    const char *name, *task, *strategy;
    const char *has, *lacks; /* NULL: nothing */
};

static void check_texts(const struct text_case *texts, size_t n) {
    for (const struct text_case *c = texts; c < texts + n; c++) {
        struct briefing b;
        struct strategy s;
        str text = S("");
        err = (struct err){0};
        if (brief(c->task, &b) && strategy_parse(catalogue, str_view(c->strategy), &s, &err)) {
            strategy_repair(catalogue, &b.ground, &s);
            text = write_with(&b, &s);
        }
        CHECKF(text.n, "%s: %s", c->name, err.text);
        CHECKF(!c->has || str_find(text, str_view(c->has)) < text.n, "%s: no %s", c->name, c->has);
        CHECKF(!c->lacks || str_find(text, str_view(c->lacks)) == text.n, "%s: %s", c->name,
               c->lacks);
    }
}

static void check_draws(const char *const *tasks, size_t n, uint64_t draws, str stream) {
    for (size_t t = 0; t < n; t++) {
        struct briefing b;
        bool ok = brief(tasks[t], &b);
        CHECKF(ok, "task %d: %s", (int)t, err.text);
        for (uint64_t i = 0; ok && i < draws; i++) {
            struct strategy s;
            strategy_random(catalogue, &b.ground, rng_stream(i, stream), &s);
            CHECKF(write_with(&b, &s).n, "task %d, draw %d: %s", (int)t, (int)i, err.text);
        }
    }
}

#define FAMILY_CASES(cases)                                                                        \
    int main(void) {                                                                               \
        return writing_main(cases, sizeof cases / sizeof *cases);                                  \
    }

#endif
