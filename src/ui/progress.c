#include "ui/progress.h"

#include "base/file.h"
#include "base/say.h"
#include "eval/outcome.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static enum progress_how choose(const char *how) {
    if (!strcmp(how, "none"))
        return PROGRESS_NONE;
    if (!strcmp(how, "plain"))
        return PROGRESS_PLAIN;
    if (!strcmp(how, "live"))
        return PROGRESS_LIVE;
    return isatty(STDERR_FILENO) ? PROGRESS_LIVE : PROGRESS_PLAIN;
}

void progress_init(struct progress *p, const char *how) {
    *p = (struct progress){.how = choose(how), .log_fd = -1};
}

/* ---- what the log has ---- */

#define LOG_MAX_BYTES ((size_t)1 << 30)
#define NUMBERS_MOST  (1u << 24) /* of candidates and generations */

/* By what an event is known again: START, NOTE and END are each command's own. */
static bool number_of(enum event_kind kind, uint64_t ordinal, uint64_t generation, uint64_t *out) {
    *out = kind == EVENT_GENERATION ? generation : ordinal;
    return (kind == EVENT_GENERATION || kind == EVENT_CANDIDATE || kind == EVENT_BEST) &&
           *out < NUMBERS_MOST;
}

static void note_logged(struct progress *p, str line) {
    struct err ignored;
    str name = {0};
    int64_t ordinal = -1, generation = -1;
    uint64_t number;
    json *j = json_parse(line, &ignored);
    json_get_str(j, "event", &name);
    json_get_i64(j, "ordinal", &ordinal);
    json_get_i64(j, "generation", &generation);
    for (int k = 0; k < EVENT_COUNT; k++) {
        if (!str_is(name, event_name((enum event_kind)k)) ||
            !number_of((enum event_kind)k, (uint64_t)ordinal, (uint64_t)generation, &number))
            continue;
        p->logged[k] = mem_grow(p->logged[k], &p->nlogged[k], number + 1, sizeof *p->logged[k]);
        p->logged[k][number] = true;
    }
    json_free(j);
}

/* A candidate that is evaluated once more is news. */
static bool is_logged(const struct progress *p, const struct event *e) {
    uint64_t number;
    return (e->replayed || e->kind == EVENT_GENERATION) &&
           number_of(e->kind, e->ordinal, e->generation, &number) && number < p->nlogged[e->kind] &&
           p->logged[e->kind][number];
}

/* What a killed command left of a line goes. */
void progress_log_to(struct progress *p, const char *path) {
    struct arena *a = arena_new(2 * LOG_MAX_BYTES);
    struct err err = {0};
    str text = {0}, line;
    p->log_fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    bool ok = p->log_fd >= 0 && file_read_fd(p->log_fd, LOG_MAX_BYTES, a, &text, &err);
    str whole = str_whole_lines(text);
    if (ok && whole.n < text.n)
        ok = ftruncate(p->log_fd, (off_t)whole.n) == 0 || err_errno(&err, ERR_ENV, "%s", path);
    while (ok && str_line(&whole, &line))
        note_logged(p, line);
    if (err.kind)
        complain("cutepilot: what was logged before is not known: %s\n", err.text);
    arena_free(a);
}

static void clear_line(struct progress *p) {
    if (p->line_open)
        fputs("\r\033[K", stderr);
    p->line_open = false;
}

void progress_release(struct progress *p) {
    clear_line(p);
    if (p->log_fd >= 0)
        close(p->log_fd);
    p->log_fd = -1;
    for (int k = 0; k < EVENT_COUNT; k++) {
        mem_free(p->logged[k]);
        p->logged[k] = NULL;
    }
}

static void time_text(double s, char out[24]) {
    if (!isfinite(s))
        snprintf(out, 24, "-");
    else if (s >= 1e-3)
        snprintf(out, 24, "%.4g ms", s * 1e3);
    else
        snprintf(out, 24, "%.4g us", s * 1e6);
}

static int columns(void) {
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 20 ? w.ws_col : 80;
}

/* By whichever budget ends first, at the pace so far; archived candidates took no time. */
static double seconds_left(const struct progress *p, const struct event *e) {
    double left = e->budget_s > 0 ? fmax(0, e->budget_s - e->elapsed_s) : INFINITY;
    size_t fresh = e->done - p->replayed;
    double spent = e->elapsed_s - p->replayed_s;
    if (e->budget && fresh && spent > 0)
        left = fmin(left, (double)(e->budget - e->done) * spent / (double)fresh);
    return left;
}

static void live_line(struct progress *p, const struct event *e) {
    char best[24], line[256], of[32] = "", left[32] = "";
    double spent = e->elapsed_s - p->replayed_s, ends = seconds_left(p, e);
    double rate = spent > 0.5 ? 60 * (double)(e->done - p->replayed) / spent : 0;
    time_text(e->best_s, best);
    if (e->budget)
        snprintf(of, sizeof of, "/%zu", e->budget);
    if (isfinite(ends))
        snprintf(left, sizeof left, "%.0f s left", ends);
    else
        snprintf(left, sizeof left, "%.0f s", e->elapsed_s);
    int n = snprintf(
        line, sizeof line, "generation %llu  %zu%s tried  best %s%s  %.0f%% of limit  %.0f/min  %s",
        (unsigned long long)p->generation, e->done, of, best, e->estimated ? " (est.)" : "",
        isfinite(e->best_s) ? 100 * e->limit_s / e->best_s : 0, rate, left);
    int width = columns() - 1;
    fprintf(stderr, "\r%.*s\033[K", n < width ? n : width, line);
    fflush(stderr);
    p->line_open = true;
}

static void plain_line(const struct event *e) {
    char time[24];
    time_text(e->time_s, time);
    switch (e->kind) {
    case EVENT_START:
    case EVENT_NOTE:
        complain("%.*s\n", STR_ARG(e->text));
        break;
    case EVENT_GENERATION:
        complain("generation %llu\n", (unsigned long long)e->generation);
        break;
    case EVENT_CANDIDATE:
        complain("  %4llu  %-14s %-12s %.*s%s\n", (unsigned long long)e->ordinal,
                 verdict_name(e->verdict), time, STR_ARG(e->strategy),
                 e->replayed ? "  (replayed)" : "");
        break;
    case EVENT_BEST:
        complain("  best so far: %llu, %s%s\n", (unsigned long long)e->ordinal, time,
                 e->estimated ? " (estimated)" : "");
        break;
    case EVENT_END:
        complain("stopped: %.*s\n", STR_ARG(e->text));
        break;
    case EVENT_COUNT:
        break;
    }
}

static void set_finite(json *j, const char *key, double v) {
    if (isfinite(v))
        json_set_f64(j, key, v);
}

static void log_event(struct progress *p, const struct event *e) {
    json *j = json_object();
    struct buf b;
    struct err err = {0};
    json_set_str(j, "event", str_view(event_name(e->kind)));
    json_set_f64(j, "at", phase_now());
    json_set_f64(j, "elapsed_s", e->elapsed_s);
    json_set_i64(j, "generation", (int64_t)e->generation);
    if (e->kind == EVENT_CANDIDATE || e->kind == EVENT_BEST) {
        json_set_i64(j, "ordinal", (int64_t)e->ordinal);
        json_set_str(j, "strategy", e->strategy);
        json_set_str(j, "verdict", str_view(verdict_name(e->verdict)));
        json_set_bool(j, "estimated", e->estimated);
        json_set_bool(j, "replayed", e->replayed);
        set_finite(j, "time_s", e->time_s);
    }
    set_finite(j, "best_s", e->best_s);
    if (e->text.n)
        json_set_str(j, "text", e->text);
    buf_init(&b, 1 << 20);
    json_write(j, &b);
    buf_putc(&b, '\n');
    /* The log is a convenience: a full disk must not end the run, but is said once. */
    if (!p->log_failed && !file_write_all(p->log_fd, b.p, b.n, &err)) {
        p->log_failed = true;
        complain("cutepilot: events are no longer logged: %s\n", err.text);
    }
    buf_release(&b);
    json_free(j);
}

void progress_event(void *ctx, const struct event *e) {
    struct progress *p = ctx;
    if (e->kind == EVENT_GENERATION)
        p->generation = e->generation;
    if (e->kind == EVENT_CANDIDATE && e->replayed) {
        p->replayed++;
        p->replayed_s = e->elapsed_s;
    }
    if (p->log_fd >= 0 && !is_logged(p, e))
        log_event(p, e);
    if (p->how == PROGRESS_PLAIN) {
        plain_line(e);
    } else if (p->how == PROGRESS_LIVE) {
        if (e->kind == EVENT_NOTE || e->kind == EVENT_START) {
            clear_line(p);
            plain_line(e);
        } else {
            live_line(p, e);
        }
    }
}
