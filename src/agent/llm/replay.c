/* Answers from a recording, by role and ordinal. The prompt need not be the recorded one: programs
 * grow, and a recording that only served its own version would be worth little; but a difference
 * is told, with its place. */
#include "agent/llm/backend.h"
#include "agent/llm/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct look {
    struct replay *replay;
    uint64_t timer;
    const struct llm_request *q;
    attempt_fn *done;
    void *ctx;
};

struct replay {
    struct loop *loop;
    struct recording *recording;
    struct arena *arena;
    const char *path;
    llm_notice_fn *notice;
    void *notice_ctx;
};

/* The line of the first difference; 0: none. */
static size_t first_difference(str a, str b) {
    size_t line = 1, i = 0;
    for (; i < a.n && i < b.n && a.p[i] == b.p[i]; i++)
        line += a.p[i] == '\n';
    return i == a.n && i == b.n ? 0 : line;
}

static void compare_prompt(struct replay *r, const struct llm_request *q, const json *line) {
    char hash[65], text[512];
    str recorded, system = {0}, user = {0};
    prompt_hash(q->system, q->user, hash);
    if (!r->notice || (json_get_str(line, "prompt", &recorded) && str_is(recorded, hash)))
        return;
    json_get_str(line, "system", &system);
    json_get_str(line, "user", &user);
    size_t at = first_difference(system, q->system);
    const char *part = at ? "system" : "user";
    at = at ? at : first_difference(user, q->user);
    snprintf(text, sizeof text,
             "replay: %s %" PRIu64 ": the prompt is not the recorded one (line %zu of its %s text "
             "differs); the recorded answer is used",
             q->role, q->ordinal, at, part);
    r->notice(r->notice_ctx, str_view(text));
}

static void read_answer(const json *line, struct attempt *a) {
    int64_t in = 0, made = 0;
    a->end = ATTEMPT_ANSWERED;
    a->used = a->recorded = true;
    a->cost = a->seconds = NAN;
    json_get_i64(line, "tokens_in", &in);
    json_get_i64(line, "tokens_out", &made);
    a->tokens_in = in > 0 ? (uint64_t)in : 0;
    a->tokens_out = made > 0 ? (uint64_t)made : 0;
    json_get_f64(line, "cost", &a->cost);
    json_get_f64(line, "seconds", &a->seconds);
    json_get_bool(line, "cut", &a->cut);
    json_get_bool(line, "tokens_estimated", &a->counted);
    a->counted = !a->counted;
}

static void on_look(void *ctx) {
    struct look *k = ctx;
    struct replay *r = k->replay;
    const struct llm_request *q = k->q;
    struct attempt a = {.end = ATTEMPT_REFUSED, .kind = ERR_INPUT};
    char why[2304];
    str error;
    int64_t kind;
    const json *line = recording_find(r->recording, q->role, q->ordinal);
    a.why = why;
    if (!line) {
        snprintf(why, sizeof why, "%s has no answer for %s %" PRIu64 " (%zu of that role)", r->path,
                 q->role, q->ordinal, recording_count(r->recording, q->role));
    } else if (json_get_str(line, "reply", &a.text)) {
        compare_prompt(r, q, line);
        read_answer(line, &a);
    } else {
        json_get_str(line, "error", &error);
        snprintf(why, sizeof why, "as recorded: %.*s", STR_ARG(error));
        a.kind = json_get_i64(line, "exit", &kind) && kind == ERR_NO ? ERR_NO : ERR_ENV;
    }
    attempt_fn *done = k->done;
    void *done_ctx = k->ctx;
    mem_free(k);
    done(done_ctx, &a);
}

static void *replay_start(void *self, const struct llm_request *q, attempt_fn *done, void *ctx,
                          struct err *err) {
    struct replay *r = self;
    struct look *k = mem_alloc(sizeof *k);
    (void)err;
    *k = (struct look){.replay = r, .q = q, .done = done, .ctx = ctx};
    k->timer = loop_timer(r->loop, 0, on_look, k);
    return k;
}

static void replay_abort(void *attempt) {
    struct look *k = attempt;
    loop_timer_cancel(k->replay->loop, k->timer);
    mem_free(k);
}

static void replay_release(void *self) {
    struct replay *r = self;
    recording_free(r->recording);
    arena_free(r->arena);
}

bool replay_open(struct loop *l, const struct provider_options *o, struct backend *out,
                 const char **model, struct err *err) {
    char text[128];
    str name = S("unknown");
    if (!o->command)
        return err_set(err, ERR_INPUT, "replay: name the recording with --replay FILE");
    struct recording *recording = recording_read(o->command, err);
    if (!recording)
        return false;
    struct arena *a = arena_new(1 << 20);
    struct replay *r = arena_new_of(a, struct replay);
    *r = (struct replay){.loop = l, .recording = recording, .arena = a, .path = o->command};
    r->notice = o->notice;
    r->notice_ctx = o->notice_ctx;
    json_get_str(recording->lines[0], "model", &name);
    *model = arena_cstr(a, name);
    snprintf(text, sizeof text,
             "replay: %zu lines of the recording are no records and were skipped",
             recording->skipped);
    if (recording->skipped && r->notice)
        r->notice(r->notice_ctx, str_view(text));
    *out = (struct backend){r, replay_start, replay_abort, replay_release};
    return true;
}
