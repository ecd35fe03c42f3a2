/* events.jsonl: the timeline of a run, whichever commands it took. */
#include "base/file.h"
#include "base/json.h"
#include "tap.h"
#include "ui/progress.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static struct arena *mem;
static char dir[] = "/tmp/cutepilot-progress-XXXXXX";

static const char *log_path(void) {
    return arena_printf(mem, "%s/events.jsonl", dir).p;
}

static str log_text(void) {
    struct err err = {0};
    str text = {0};
    CHECKF(file_read(log_path(), 1 << 20, mem, &text, &err), "%s", err.text);
    return text;
}

static void say_event(struct progress *p, enum event_kind kind, uint64_t ordinal, bool replayed,
                      double elapsed_s) {
    struct event e = {.kind = kind,
                      .ordinal = ordinal,
                      .elapsed_s = elapsed_s,
                      .strategy = S("block=256"),
                      .text = S("why"),
                      .time_s = 1e-6,
                      .best_s = 1e-6,
                      .limit_s = INFINITY,
                      .naive_s = INFINITY,
                      .replayed = replayed};
    progress_event(p, &e);
}

/* A command on a run of which `archived` candidates are known, and `more` are evaluated. */
static void command(uint64_t archived, uint64_t more, double from_s) {
    struct progress p;
    progress_init(&p, "none");
    progress_log_to(&p, log_path());
    say_event(&p, EVENT_START, 0, false, from_s);
    say_event(&p, EVENT_GENERATION, 0, false, from_s);
    for (uint64_t i = 0; i < archived + more; i++) {
        say_event(&p, EVENT_CANDIDATE, i, i < archived, from_s + (double)i);
        if (i == 0)
            say_event(&p, EVENT_BEST, i, i < archived, from_s + (double)i);
    }
    say_event(&p, EVENT_END, 0, false, from_s + 10);
    progress_release(&p);
}

/* "start generation candidate0 …" */
static str summary(str text) {
    struct buf b;
    str line;
    buf_init(&b, 1 << 16);
    while (str_line(&text, &line)) {
        struct err err = {0};
        json *j = json_parse(line, &err);
        str name = {0};
        int64_t ordinal = -1;
        CHECKF(j && json_get_str(j, "event", &name), "%.*s: %s", STR_ARG(line), err.text);
        buf_printf(&b, "%s%.*s", b.n ? " " : "", STR_ARG(name));
        if (json_get_i64(j, "ordinal", &ordinal))
            buf_printf(&b, "%lld", (long long)ordinal);
        json_free(j);
    }
    str out = arena_str(mem, buf_str(&b));
    buf_release(&b);
    return out;
}

static void add_text(const char *more) {
    struct err err = {0};
    str parts[] = {log_text(), str_view(more)};
    CHECKF(file_replace_parts(log_path(), parts, 2, &err), "%s", err.text);
}

static void a_resumed_run_keeps_its_timeline(void) {
    command(0, 2, 0);
    str first = log_text();
    CHECKF(str_is(summary(first), "start generation candidate0 best0 candidate1 end"), "%.*s",
           STR_ARG(summary(first)));
    add_text("{\"event\":\"candi"); /* as a killed command leaves it */
    command(2, 1, 100);
    str both = log_text();
    CHECKF(str_starts(both, first), "%.*s", STR_ARG(both));
    str rest = summary(str_from(both, first.n));
    CHECKF(str_is(rest, "start candidate2 end"), "%.*s", STR_ARG(rest));
}

/* The archive knows it, the log does not: the command was killed in between. */
static void what_was_not_logged_is(void) {
    CHECK(unlink(log_path()) == 0);
    command(0, 1, 0);
    str first = log_text();
    command(2, 0, 100);
    str rest = summary(str_from(log_text(), first.n));
    CHECKF(str_is(rest, "start candidate1 end"), "%.*s", STR_ARG(rest));
}

/* A damaged row of the archive: its candidate was evaluated once more. */
static void a_second_evaluation_is_news(void) {
    CHECK(unlink(log_path()) == 0);
    command(0, 2, 0);
    str first = log_text();
    command(1, 1, 100);
    str rest = summary(str_from(log_text(), first.n));
    CHECKF(str_is(rest, "start candidate1 end"), "%.*s", STR_ARG(rest));
}

static const struct tap_case cases[] = {
    {"a resumed run keeps its timeline", a_resumed_run_keeps_its_timeline},
    {"what was archived and not logged is logged", what_was_not_logged_is},
    {"a second evaluation is news", a_second_evaluation_is_news},
};

int main(void) {
    struct err err = {0};
    mem = arena_new(64u << 20);
    if (!mkdtemp(dir))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    dir_remove_tree(dir, &err);
    arena_free(mem);
    return failed;
}
