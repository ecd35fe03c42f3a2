#include "ui/progress.h"

#include "base/file.h"
#include "base/loop.h"
#include "base/say.h"
#include "eval/outcome.h"
#include "ui/terminal.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VIEW_MAX_BYTES ((size_t)1 << 20)
#define PLAIN_COLUMNS  160 /* of a line where there is no terminal */

static enum progress_how choose(const char *how) {
    if (!strcmp(how, "none"))
        return PROGRESS_NONE;
    if (!strcmp(how, "plain"))
        return PROGRESS_PLAIN;
    if (!strcmp(how, "live"))
        return PROGRESS_LIVE;
    return terminal_is_live(STDERR_FILENO) ? PROGRESS_LIVE : PROGRESS_PLAIN;
}

void progress_init(struct progress *p, const char *how) {
    *p = (struct progress){.how = choose(how), .log_fd = -1, .best_s = INFINITY};
    buf_init(&p->base, VIEW_MAX_BYTES);
    buf_init(&p->last.base, VIEW_MAX_BYTES);
    buf_init(&p->last.strategy, VIEW_MAX_BYTES);
    buf_init(&p->last.text, VIEW_MAX_BYTES);
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
        complain("cutepilot: the earlier events in events.jsonl cannot be read: %s\n", err.text);
    arena_free(a);
}

/* ---- what is shown ---- */

void progress_release(struct progress *p) {
    progress_clear(p);
    if (p->log_fd >= 0)
        close(p->log_fd);
    p->log_fd = -1;
    for (int k = 0; k < EVENT_COUNT; k++) {
        mem_free(p->logged[k]);
        p->logged[k] = NULL;
    }
    buf_release(&p->base);
    buf_release(&p->last.base);
    buf_release(&p->last.strategy);
    buf_release(&p->last.text);
}

static void time_text(double s, char out[24]) {
    if (!isfinite(s))
        snprintf(out, 24, "-");
    else if (s >= 1e-3)
        snprintf(out, 24, "%.4g ms", s * 1e3);
    else
        snprintf(out, 24, "%.4g us", s * 1e6);
}

static void put_clock(struct buf *out, double s) {
    unsigned long all = s > 0 ? (unsigned long)(s + 0.5) : 0;
    if (all >= 3600)
        buf_printf(out, "%lu:%02lu:%02lu", all / 3600, all / 60 % 60, all % 60);
    else
        buf_printf(out, "%lu:%02lu", all / 60, all % 60);
}

static str first_line(str text) {
    str line = {0};
    str_line(&text, &line);
    return line;
}

/* What a candidate came to and what it has that the best has not, in so many columns. */
static void put_candidate(const struct event *e, str base, double best_s, size_t columns,
                          struct buf *out) {
    char time[24], against[24];
    size_t from = out->n, used;
    bool accepted = e->verdict == VERDICT_ACCEPTED;
    time_text(e->time_s, time);
    text_against(e->time_s, best_s, against);
    buf_printf(out, "%4llu  ", (unsigned long long)e->ordinal);
    if (accepted)
        buf_printf(out, "%-10s  %-12s  ", time, against);
    else
        buf_printf(out, "%-24s  ", verdict_name(e->verdict));
    used = text_columns(str_from(buf_str(out), from));
    size_t room = columns > used ? columns - used : 0;
    if (!accepted)
        room = room * 2 / 5; /* the rest is for the reason */
    text_changes(base, e->strategy, room, out);
    used = text_columns(str_from(buf_str(out), from)) + 2;
    if (accepted || used >= columns)
        return;
    buf_puts(out, S(": "));
    text_fit(first_line(e->text), columns - used, out);
}

static void say_heading(const struct progress *p) {
    complain("   #  %-10s  against best  what changed against the best so far\n",
             p->estimated ? "estimate" : "time");
}

/* ---- the live view ---- */

/* Rows that the view takes on a terminal of so many columns: one that has become narrower has
 * broken its lines. A terminal may have changed a moment before it says so; then too this is never
 * more than the view has, and what stands above it stays. */
static size_t rows_at(const struct progress *p, size_t columns) {
    size_t rows = 0;
    for (size_t i = 0; i < p->ndrawn; i++)
        rows += p->drawn[i] ? (p->drawn[i] + columns - 1) / columns : 1;
    return rows;
}

/* To the first column of the view's first row, and everything from there on is gone. What is erased
 * from the first place of the screen on is kept by tmux in its history, a copy for every time: so
 * the first row is erased by itself. */
static void put_erase(struct progress *p, size_t columns, struct buf *out) {
    size_t rows = rows_at(p, columns);
    if (!rows)
        return;
    buf_putc(out, '\r');
    if (rows > 1)
        buf_printf(out, "\033[%zuA\033[K\033[B\033[J\033[A", rows - 1);
    else
        buf_puts(out, S("\033[K"));
    p->ndrawn = 0;
}

static void write_out(const struct buf *b) {
    fflush(stderr);
    file_write_all(STDERR_FILENO, b->p, b->n, NULL); /* nobody is told that nobody looks */
}

void progress_clear(struct progress *p) {
    struct buf b;
    if (!p->ndrawn)
        return;
    buf_init(&b, VIEW_MAX_BYTES);
    put_erase(p, (size_t)terminal_columns(STDERR_FILENO), &b);
    write_out(&b);
    buf_release(&b);
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

static void put_title(const struct progress *p, struct buf *out) {
    static const char *const names[] = {[PHASE_PLANNING] = "planning",
                                        [PHASE_SEARCHING] = "searching",
                                        [PHASE_VERIFYING] = "verifying the winner"};
    buf_printf(out, "%s: %s", p->title[0] ? p->title : "search", names[p->phase]);
    if (p->phase == PHASE_SEARCHING && p->generation)
        buf_printf(out, ", generation %llu", (unsigned long long)p->generation);
}

static void put_pace(const struct progress *p, const struct event *e, struct buf *out) {
    double spent = e->elapsed_s - p->replayed_s, left = seconds_left(p, e);
    buf_printf(out, "  %zu", e->done);
    if (e->budget)
        buf_printf(out, " of %zu", e->budget);
    buf_printf(out, " candidate%s", e->done == 1 && !e->budget ? "" : "s");
    if (spent > 0.5 && e->done > p->replayed)
        buf_printf(out, ", %.0f a minute", 60 * (double)(e->done - p->replayed) / spent);
    buf_puts(out, S("; "));
    put_clock(out, e->elapsed_s);
    buf_puts(out, S(" so far"));
    if (!isfinite(left) || p->phase == PHASE_VERIFYING)
        return;
    buf_puts(out, S(", about "));
    put_clock(out, left);
    buf_puts(out, S(" left"));
}

static void put_best(const struct progress *p, const struct event *e, struct buf *out) {
    char best[24], low[24], high[24];
    if (!isfinite(e->best_s)) {
        buf_puts(out, S("  no kernel is known to be right so far"));
        return;
    }
    time_text(e->best_s, best);
    buf_printf(out, "  best %s", best);
    if (e->best_low_s > 0) {
        time_text(e->best_low_s, low);
        time_text(e->best_high_s, high);
        buf_printf(out, " (%s to %s)", low, high);
    } else if (p->estimated) {
        buf_puts(out, S(" estimated"));
    }
    if (isfinite(e->limit_s))
        buf_printf(out, ", %.0f%% of the limit", 100 * e->limit_s / e->best_s);
    if (isfinite(e->naive_s))
        buf_printf(out, ", %.2fx the naive kernel", e->naive_s / e->best_s);
}

static void put_suite(const struct progress_suite *s, struct buf *out) {
    double spent = (double)(clock_ms() - s->start_ms) / 1000;
    size_t done = s->task - 1;
    buf_printf(out, "task %zu of %zu; ", s->task, s->tasks);
    put_clock(out, spent);
    buf_puts(out, S(" so far"));
    if (!done)
        return;
    buf_puts(out, S(", about "));
    put_clock(out, s->before_s / (double)done * (double)(s->tasks - done) - (spent - s->before_s));
    buf_puts(out, S(" left of the suite"));
}

/* One line of the view, at most one column short of the terminal's: the cursor stays beside it. */
static void draw_line(struct progress *p, struct buf *line, size_t columns, bool bold,
                      struct buf *out) {
    struct buf fitted;
    buf_init(&fitted, VIEW_MAX_BYTES);
    text_fit(buf_str(line), columns - 1, &fitted);
    if (p->ndrawn)
        buf_puts(out, S("\r\n"));
    p->drawn[p->ndrawn++] = text_columns(buf_str(&fitted));
    if (bold)
        buf_puts(out, S("\033[1m"));
    buf_puts(out, buf_str(&fitted));
    if (bold)
        buf_puts(out, S("\033[0m"));
    buf_release(&fitted);
    buf_clear(line);
}

static void draw(struct progress *p, const struct event *e) {
    size_t columns = (size_t)terminal_columns(STDERR_FILENO);
    bool bold = terminal_is_bold(STDERR_FILENO);
    struct buf out, line;
    buf_init(&out, VIEW_MAX_BYTES);
    buf_init(&line, VIEW_MAX_BYTES);
    put_erase(p, columns, &out);
    if (p->suite) {
        put_suite(p->suite, &line);
        draw_line(p, &line, columns, false, &out);
    }
    put_title(p, &line);
    draw_line(p, &line, columns, bold, &out);
    put_pace(p, e, &line);
    draw_line(p, &line, columns, false, &out);
    put_best(p, e, &line);
    draw_line(p, &line, columns, false, &out);
    if (p->last.strategy.n) {
        buf_puts(&line, S("  last"));
        put_candidate(&p->last.event, buf_str(&p->last.base), p->last.best_s,
                      columns - sizeof "  last", &line);
        draw_line(p, &line, columns, false, &out);
    }
    write_out(&out);
    buf_release(&line);
    buf_release(&out);
}

/* ---- lines that stay ---- */

static void say_wrapped(str text) {
    struct buf b;
    buf_init(&b, VIEW_MAX_BYTES);
    text_wrap(text, (size_t)terminal_columns(STDERR_FILENO), 0, 0, &b);
    write_out(&b);
    buf_release(&b);
}

/* A message of several lines keeps them. */
static void say_line(str text) {
    str line;
    bool tty = isatty(STDERR_FILENO);
    while (str_line(&text, &line))
        if (tty)
            say_wrapped(line);
        else
            complain("%.*s\n", STR_ARG(line));
}

/* What the archive has is not told again, line by line. */
static void say_replayed(struct progress *p) {
    if (p->how != PROGRESS_PLAIN || p->replayed == p->said_replayed)
        return;
    p->said_replayed = p->replayed;
    complain("%zu candidate%s from the archive\n", p->replayed, p->replayed == 1 ? "" : "s");
}

static void plain_line(struct progress *p, const struct event *e) {
    size_t columns =
        isatty(STDERR_FILENO) ? (size_t)terminal_columns(STDERR_FILENO) - 1 : PLAIN_COLUMNS;
    struct buf b;
    switch (e->kind) {
    case EVENT_START:
    case EVENT_NOTE:
    case EVENT_VERIFY:
        if (e->kind == EVENT_VERIFY)
            say_replayed(p);
        say_line(e->text);
        break;
    case EVENT_CANDIDATE:
        if (e->replayed)
            break;
        say_replayed(p);
        if (!p->headed)
            say_heading(p);
        p->headed = true;
        buf_init(&b, VIEW_MAX_BYTES);
        put_candidate(e, buf_str(&p->base), p->best_s, columns, &b);
        complain("%.*s\n", STR_ARG(buf_str(&b)));
        buf_release(&b);
        break;
    case EVENT_END:
        say_replayed(p);
        complain("stopped: %.*s\n", STR_ARG(e->text));
        break;
    case EVENT_GENERATION:
    case EVENT_BEST:
    case EVENT_TICK:
    case EVENT_COUNT:
        break;
    }
}

/* ---- events.jsonl ---- */

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

static void keep(struct buf *b, str text) {
    buf_clear(b);
    buf_puts(b, text);
}

/* What later events are shown against. */
static void learn(struct progress *p, const struct event *e) {
    if (p->phase == PHASE_PLANNING && !e->planning)
        p->phase = PHASE_SEARCHING;
    switch (e->kind) {
    case EVENT_GENERATION:
        p->generation = e->generation;
        break;
    case EVENT_CANDIDATE:
        p->best_s = fmin(p->best_s, e->time_s);
        if (e->replayed) {
            p->replayed++;
            p->replayed_s = e->elapsed_s;
        }
        break;
    case EVENT_START:
    case EVENT_BEST:
        keep(&p->base, e->strategy);
        break;
    case EVENT_VERIFY:
        p->phase = PHASE_VERIFYING;
        break;
    default:
        break;
    }
}

/* Kept whole: what fits is found when it is drawn. */
static void keep_last(struct progress *p, const struct event *e) {
    struct progress_candidate *l = &p->last;
    keep(&l->base, buf_str(&p->base));
    keep(&l->strategy, e->strategy);
    keep(&l->text, e->text);
    l->event = *e;
    l->event.strategy = buf_str(&l->strategy);
    l->event.text = buf_str(&l->text);
    l->best_s = p->best_s;
}

static void live_event(struct progress *p, const struct event *e) {
    if (e->kind == EVENT_NOTE) {
        progress_clear(p);
        say_line(e->text);
        return;
    }
    if (e->kind == EVENT_END) {
        progress_clear(p);
        return;
    }
    if (e->kind == EVENT_CANDIDATE && !e->replayed)
        keep_last(p, e);
}

void progress_event(void *ctx, const struct event *e) {
    struct progress *p = ctx;
    if (p->log_fd >= 0 && e->kind != EVENT_TICK && !is_logged(p, e))
        log_event(p, e);
    if (p->how == PROGRESS_PLAIN)
        plain_line(p, e);
    else if (p->how == PROGRESS_LIVE)
        live_event(p, e);
    learn(p, e);
    if (p->how == PROGRESS_LIVE && e->kind != EVENT_NOTE && e->kind != EVENT_END && !e->replayed)
        draw(p, e);
}
