/* A test program prints TAP: one line a case. Cases call CHECK; a failed CHECK prints where and
 * what, marks the case failed and goes on. TAP_CASES runs a table of { name, function }. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tap_failed_checks;
static const char *tap_skip_reason;

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("# %s:%d: failed: %s\n", __FILE__, __LINE__, #cond);                            \
            tap_failed_checks++;                                                                   \
        }                                                                                          \
    } while (0)

/* With a printf message that says which row of a table. */
#define CHECKF(cond, ...)                                                                          \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("# %s:%d: failed: %s: ", __FILE__, __LINE__, #cond);                            \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            tap_failed_checks++;                                                                   \
        }                                                                                          \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        tap_skip_reason = (reason);                                                                \
        return;                                                                                    \
    } while (0)

/* Tests that go through all task files, or all strategies, take those numbers i for which
 * tap_takes(i): every one, or, with $TASKS_EVERY=N, every N-th from the place on that $TURN counts
 * to (tests/candidates.py: select). Such a test says tap_share() in its output. */
static inline size_t tap_every(void) {
    const char *every = getenv("TASKS_EVERY");
    size_t n = every ? strtoul(every, NULL, 10) : 1;
    return n ? n : 1;
}

static inline size_t tap_first(void) {
    const char *turn = getenv("TURN");
    return turn ? strtoul(turn, NULL, 10) % tap_every() : 0;
}

static inline bool tap_takes(size_t i) {
    return i % tap_every() == tap_first();
}

/* Of what a whole list gives so many, a share gives about so many: shares are not quite equal. */
static inline size_t tap_least(size_t all) {
    return tap_every() == 1 ? all : all * 3 / 4 / tap_every();
}

static inline void tap_share(void) {
    if (tap_every() > 1)
        printf("# one of every %zu, from number %zu on (TASKS_EVERY=%zu TURN=%zu); TASKS_EVERY=1 "
               "takes all of them\n",
               tap_every(), tap_first() + 1, tap_every(), tap_first());
}

struct tap_case {
    const char *name;
    void (*run)(void);
};

static int tap_main(const struct tap_case *cases, size_t n) {
    int failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%zu\n", n);
    for (size_t i = 0; i < n; i++) {
        tap_failed_checks = 0;
        tap_skip_reason = NULL;
        cases[i].run();
        if (tap_skip_reason && !tap_failed_checks)
            printf("ok %zu - %s # SKIP %s\n", i + 1, cases[i].name, tap_skip_reason);
        else
            printf("%s %zu - %s\n", tap_failed_checks ? "not ok" : "ok", i + 1, cases[i].name);
        failed += tap_failed_checks != 0;
    }
    return failed != 0;
}

#define TAP_CASES(table)                                                                           \
    int main(void) {                                                                               \
        return tap_main(table, sizeof table / sizeof *table);                                      \
    }

#endif
