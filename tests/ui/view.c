/* A scripted search for tests/ui/terminal: each line on stdin is the next event, so that every
 * state of the view can be looked at. What others wrote in it is hostile. An argument: as part of a
 * suite. */
#include "base/loop.h"
#include "ui/progress.h"

#include <math.h>
#include <stdio.h>

#define DEFAULTS "block=256 fast-math=0 items=1 row-threads=32 vector-width=1"
#define FIRST    "block=128 fast-math=1 items=8 row-threads=32 vector-width=4"
#define SECOND   "block=256 fast-math=1 items=1 row-threads=256 vector-width=4"

static const struct step {
    enum event_kind kind;
    uint64_t ordinal, generation;
    size_t done;
    double elapsed_s, time_s, best_s, low_s, high_s;
    enum verdict verdict;
    const char *strategy, *text;
    bool replayed;
} steps[] = {
    {.kind = EVENT_START,
     .strategy = DEFAULTS,
     .text = "expert, 640 strategies",
     .best_s = INFINITY},
    {.kind = EVENT_TICK, .elapsed_s = 3, .best_s = INFINITY},
    {.kind = EVENT_CANDIDATE,
     .done = 1,
     .elapsed_s = 4,
     .time_s = 4.382e-6,
     .best_s = 4.382e-6,
     .strategy = FIRST,
     .replayed = true},
    {.kind = EVENT_BEST,
     .done = 1,
     .elapsed_s = 4,
     .time_s = 4.382e-6,
     .best_s = 4.382e-6,
     .strategy = FIRST,
     .replayed = true},
    {.kind = EVENT_CANDIDATE,
     .ordinal = 1,
     .done = 2,
     .elapsed_s = 6,
     .time_s = 3.726e-6,
     .best_s = 3.726e-6,
     .strategy = SECOND},
    {.kind = EVENT_BEST,
     .ordinal = 1,
     .done = 2,
     .elapsed_s = 6,
     .time_s = 3.726e-6,
     .best_s = 3.726e-6,
     .low_s = 3.71e-6,
     .high_s = 3.75e-6,
     .strategy = SECOND},
    {.kind = EVENT_CANDIDATE,
     .ordinal = 2,
     .generation = 1,
     .done = 3,
     .elapsed_s = 8,
     .time_s = INFINITY,
     .best_s = 3.726e-6,
     .verdict = VERDICT_WRONG,
     .strategy = "wide \xe8\xa1\x8c\xe5\x88\x97 \x1b[2J rows,\ntwo of them \xe2\x80\xae"
                 "desrever",
     .text = "y[0] is 1\x1b]0;title\x07, expected 2"},
    {.kind = EVENT_NOTE,
     .done = 3,
     .elapsed_s = 9,
     .best_s = 3.726e-6,
     .text = "the provider says: \x1b[31mred\x1b[0m \xe8\xa1\x8c\xe5\x88\x97, and goes on with a "
             "sentence that does not fit a line of eighty columns"},
    {.kind = EVENT_TICK, .done = 3, .elapsed_s = 10, .best_s = 3.726e-6},
    {.kind = EVENT_VERIFY, .done = 3, .elapsed_s = 11, .best_s = 3.726e-6, .text = "once more"},
    {.kind = EVENT_END, .done = 3, .elapsed_s = 12, .best_s = 3.726e-6, .text = "budget"},
};

static void emit(struct progress *p, const struct step *s, bool planning) {
    struct event e = {.kind = s->kind,
                      .ordinal = s->ordinal,
                      .generation = s->generation,
                      .done = s->done,
                      .budget = 64,
                      .elapsed_s = s->elapsed_s,
                      .strategy = str_view(s->strategy),
                      .text = str_view(s->text),
                      .verdict = s->verdict,
                      .time_s = s->time_s,
                      .best_s = s->best_s,
                      .limit_s = 0.9846e-6,
                      .naive_s = s->done > 1 ? 11.88e-6 : INFINITY,
                      .best_low_s = s->low_s,
                      .best_high_s = s->high_s,
                      .replayed = s->replayed,
                      .planning = planning};
    progress_event(p, &e);
}

int main(int argc, char **argv) {
    struct progress p;
    struct progress_suite suite = {
        .task = 3, .tasks = 9, .before_s = 40, .start_ms = clock_ms() - 60000};
    (void)argv;
    progress_init(&p, "auto");
    snprintf(p.title, sizeof p.title, "softmax on NVIDIA H200, simulated");
    p.estimated = true;
    p.suite = argc > 1 ? &suite : NULL;
    puts("a line that was there before, long enough to be broken where the terminal is narrow");
    fflush(stdout);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        if (getchar() == EOF)
            return 1;
        emit(&p, &steps[i], i < 2);
    }
    progress_release(&p);
    puts("the end");
    return 0;
}
