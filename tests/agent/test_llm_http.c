/* Providers against a server that misbehaves in every known way, over real HTTP on loopback. The
 * rows of the table are asked at the same time, so the test takes as long as its slowest row. */
#include "llm/fixture.h"

#define TEXT "h\u00e9llo \u2192 \u4e16\u754c \U0001f680\nsecond line"

struct row {
    const char *kind, *way, *text; /* text: of the answer; NULL: an error … */
    enum err_kind error;           /* … of this kind … */
    const char *why, *notice;      /* … that says this; and what a person is told */
    uint64_t timeout_ms, least_ms, max_ms;
    double temperature;
    int64_t tokens; /* charged; -1: not looked at */
};

static const struct row rows[] = {
    {"openai", "ok", TEXT, .tokens = 18},
    {"anthropic", "ok", TEXT, .tokens = 18},
    {"openai", "plain", TEXT, .tokens = 18},
    {"anthropic", "plain", TEXT, .tokens = 18},
    {"openai", "awkward", TEXT, .tokens = 18},
    {"anthropic", "awkward", TEXT, .tokens = 18},
    {"openai", "cut", TEXT, .tokens = 18},
    {"anthropic", "cut", TEXT, .tokens = 18},
    {"openai", "uncounted", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", .tokens = 5 + 1 + 10},
    {"openai", "wait_seconds", TEXT, .notice = "HTTP 429: slow down; paused", .least_ms = 2000},
    {"openai", "wait_date", TEXT, .notice = "answers again after", .least_ms = 1900},
    {"anthropic", "wait_seconds", TEXT, .least_ms = 2000},
    {"openai", "wait_long", NULL, ERR_ENV, ": openai: HTTP 503: closed"},
    {"openai", "quota", NULL, ERR_ENV, "HTTP 429: no money left", .tokens = 0},
    {"openai", "busy_twice", TEXT, .notice = "HTTP 500: oops; paused", .least_ms = 1000},
    {"openai", "busy_within", TEXT, .notice = "Overloaded; paused"},
    {"anthropic", "busy_within", TEXT, .notice = "Overloaded; paused"},
    {"openai", "half", NULL, ERR_ENV, "half an answer: the server ended it early"},
    {"anthropic", "half", NULL, ERR_ENV, "half an answer: the server ended it early"},
    {"openai", "half_once", TEXT, .notice = "asking again in"},
    {"openai", "half_event", NULL, ERR_ENV, "gave up after 4 tries: openai: half an answer"},
    {"openai", "half_length", NULL, ERR_ENV, "half an answer: the connection broke off"},
    {"openai", "unterminated", TEXT, .timeout_ms = 1500},
    {"openai", "hang", NULL, ERR_ENV, "no answer in time", .timeout_ms = 600},
    {"openai", "hang_within", NULL, ERR_ENV, "half an answer: it stopped coming",
     .timeout_ms = 1500},
    {"openai", "drip", NULL, ERR_ENV, "half an answer: it", .timeout_ms = 1000},
    {"openai", "bad_json", NULL, ERR_ENV, "the answer is not JSON"},
    {"openai", "bad_event", NULL, ERR_ENV, "an event of the stream is not JSON"},
    {"openai", "bad_shape", NULL, ERR_ENV, "the answer has no choices[0].message"},
    {"anthropic", "bad_shape", NULL, ERR_ENV, "the answer has no content"},
    {"openai", "html", NULL, ERR_ENV, "the answer is of type text/html", .tokens = 0},
    {"openai", "huge", NULL, ERR_ENV, "larger than any answer of the allowed length"},
    {"openai", "reset_once", TEXT, .notice = "paused, trying again"},
    {"openai", "reset_within", NULL, ERR_ENV, "half an answer: the connection broke off"},
    {"openai", "moved", NULL, ERR_INPUT, "HTTP 301: redirects are not followed", .tokens = 0},
    {"openai", "refused", NULL, ERR_INPUT, "openai: HTTP 400: the prompt is too long"},
    {"openai", "missing", NULL, ERR_INPUT, "HTTP 404: model 'm' not found"},
    {"openai", "text_error", NULL, ERR_INPUT, "HTTP 418: short and stout [31m"},
    {"openai", "other_limit", TEXT, .temperature = 0.5},
    {"openai", "busy", NULL, ERR_ENV, "HTTP 503: overloaded", "paused, trying again",
     .max_ms = 4000},
    {"openai", "hang", NULL, ERR_NO, "the cap on the models' time is reached", .max_ms = 300},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void check_row(const struct row *r, struct subject *s, struct outcome *o,
                      uint64_t began_ms) {
    const char *got = o->done ? o->err.kind ? o->err.text : o->text.p : "nothing";
    if (r->text)
        CHECKF(said(o, r->text), "%s %s: %s", r->kind, r->way, got);
    else
        CHECKF(o->done == 1 && o->err.kind == r->error && strstr(o->err.text, r->why), "%s %s: %s",
               r->kind, r->way, got);
    CHECKF(o->reply.cut == !strcmp(r->way, "cut"), "%s %s", r->kind, r->way);
    CHECKF(!r->notice || noticed(s, r->notice), "%s %s: noticed %s", r->kind, r->way,
           s->notices.p ? s->notices.p : "nothing");
    CHECKF(o->at_ms - began_ms >= r->least_ms, "%s %s: %d ms", r->kind, r->way,
           (int)(o->at_ms - began_ms));
    int64_t tokens = account_of(s, "tokens_in") + account_of(s, "tokens_out");
    if (r->tokens || r->error == ERR_INPUT)
        CHECKF(tokens == r->tokens, "%s %s: %d tokens", r->kind, r->way, (int)tokens);
    CHECKF(account_of(s, "calls") == (r->text != NULL), "%s %s", r->kind, r->way);
}

static void every_behaviour(void) {
    static struct subject subjects[ROWS];
    static struct outcome outcomes[ROWS];
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    uint64_t began = clock_ms();
    for (size_t i = 0; i < ROWS; i++) {
        struct provider_options o = options_of(rows[i].kind);
        char way[64];
        o.timeout_ms = rows[i].timeout_ms ? rows[i].timeout_ms : 15000;
        o.temperature = rows[i].temperature ? rows[i].temperature : NAN;
        o.max_ms = rows[i].max_ms;
        snprintf(way, sizeof way, "%s.%zu", rows[i].way, i);
        CHECKF(subject_at(&subjects[i], o, way), "%s", err.text);
        CHECK(ask(&subjects[i], "coder", i, "hi", &outcomes[i]) != 0);
    }
    CHECK(wait_for(outcomes, ROWS, 60000));
    for (size_t i = 0; i < ROWS; i++) {
        check_row(&rows[i], &subjects[i], &outcomes[i], began);
        buf_release(&outcomes[i].text);
        subject_close(&subjects[i]);
    }
}

/* Nobody listens: paused with a message, and over at the cap on time. */
static void outage(void) {
    struct subject s;
    struct outcome o[2];
    struct provider_options options = options_of("openai");
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    options.url = "http://127.0.0.1:1/v1";
    options.max_ms = 1600;
    CHECK(subject_open(&s, options));
    ask(&s, "coder", 0, "hi", &o[0]);
    CHECK(wait_for(o, 1, 10000));
    CHECKF(o[0].err.kind == ERR_ENV && strstr(o[0].err.text, "gave up after"), "%s", o[0].err.text);
    CHECKF(noticed(&s, "paused, trying again in"), "%s", s.notices.p);
    while (clock_ms() < o[0].at_ms + 1700)
        loop_step(loop, 50, &err);
    ask(&s, "coder", 1, "hi", &o[1]);
    CHECK(wait_for(&o[1], 1, 1000));
    CHECKF(o[1].err.kind == ERR_NO, "%s", o[1].err.text);
    subject_close(&s);
}

static void several_in_flight(void) {
    struct subject s;
    struct outcome o[6];
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    CHECK(subject_at(&s, options_of("openai"), "together.a"));
    for (uint64_t i = 0; i < 3; i++)
        ask(&s, "coder", i, "hi", &o[i]);
    CHECK(wait_for(o, 3, 20000));
    for (size_t i = 0; i < 3; i++)
        CHECKF(said(&o[i], "3"), "%s", o[i].done ? o[i].text.p : "nothing");
    for (size_t i = 0; i < 3; i++)
        buf_release(&o[i].text);
    subject_close(&s);

    struct provider_options two = options_of("openai");
    two.concurrency = 2;
    CHECK(subject_at(&s, two, "slow.b"));
    for (uint64_t i = 0; i < 6; i++)
        ask(&s, "coder", i, "hi", &o[i]);
    CHECK(wait_for(o, 6, 20000));
    for (size_t i = 0; i < 6; i++) {
        CHECKF(i == 0 || said(&o[i], "2"), "%zu: %s", i, o[i].done ? o[i].text.p : "nothing");
        buf_release(&o[i].text);
    }
    subject_close(&s);
}

/* A cancelled call is never told; its place goes to the next; a release with calls in flight is
 * silent too. */
static void cancelling(void) {
    struct subject s;
    struct outcome o[4] = {0};
    struct provider_options one = options_of("openai");
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    one.concurrency = 1;
    CHECK(subject_at(&s, one, "slow.c"));
    uint64_t first = ask(&s, "coder", 0, "hi", &o[0]), second = ask(&s, "coder", 1, "hi", &o[1]);
    ask(&s, "coder", 2, "hi", &o[2]);
    for (uint64_t end = clock_ms() + 100; clock_ms() < end;)
        loop_step(loop, 20, &err);
    s.provider.cancel(s.provider.self, second); /* queued */
    s.provider.cancel(s.provider.self, first);  /* in flight */
    s.provider.cancel(s.provider.self, first);  /* gone */
    CHECK(wait_for(&o[2], 1, 10000) && !o[2].err.kind);
    CHECK(!o[0].done && !o[1].done);
    CHECK(account_of(&s, "calls") == 1);
    ask(&s, "coder", 3, "hi", &o[3]);
    loop_step(loop, 20, &err);
    subject_close(&s);
    for (uint64_t end = clock_ms() + 500; clock_ms() < end;)
        loop_step(loop, 20, &err);
    CHECK(!o[3].done);
    buf_release(&o[2].text);
}

static void caps(void) {
    static const struct {
        const char *name;
        uint64_t calls, tokens;
        double cost;
        int answered; /* of three calls, made one after another */
        const char *why;
    } table[] = {
        {"calls", 2, 0, 0, 2, "the cap of 2 model calls is reached"},
        /* A call reserves 8 + 64 + 100 tokens and uses 18. */
        {"tokens", 0, 172 + 18, 0, 2, "might pass the cap of 190 tokens, of which 36 are used"},
        {"tokens, none", 0, 171, 0, 0, "of which 0 are used"},
        {"money", 0, 0, 0.00115, 1, "might pass the cap of $0.00"},
        {"none", 3, 172 + 36, 0.00125, 3, NULL},
    };
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct provider_options o = options_of("openai");
        struct subject s;
        struct outcome out[3];
        int answered = 0;
        o.max_calls = table[i].calls;
        o.max_tokens = table[i].tokens;
        o.max_cost = table[i].cost;
        CHECK(subject_at(&s, o, "ok.caps"));
        for (uint64_t k = 0; k < 3; k++) {
            ask(&s, "coder", k, "hi", &out[k]);
            CHECK(wait_for(&out[k], 1, 10000));
            answered += !out[k].err.kind;
            CHECKF(!out[k].err.kind || (out[k].err.kind == ERR_NO && table[i].why &&
                                        strstr(out[k].err.text, table[i].why)),
                   "%s: %s", table[i].name, out[k].err.text);
            buf_release(&out[k].text);
        }
        CHECKF(answered == table[i].answered, "%s: %d", table[i].name, answered);
        CHECK(account_of(&s, "calls") == answered);
        subject_close(&s);
    }
}

/* Two fit only one after the other: the second waits for what the first really cost. */
static void cap_waits(void) {
    struct subject s;
    struct outcome o[2];
    struct provider_options options = options_of("openai");
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    options.max_tokens = 172 + 18;
    CHECK(subject_at(&s, options, "slow.w"));
    ask(&s, "coder", 0, "hi", &o[0]);
    ask(&s, "coder", 1, "hi", &o[1]);
    CHECK(wait_for(o, 2, 10000));
    CHECKF(said(&o[0], "1") && said(&o[1], "1"), "%s", o[1].err.text);
    buf_release(&o[0].text);
    buf_release(&o[1].text);
    subject_close(&s);
}

static const struct tap_case cases[] = {
    {"every behaviour of a server", every_behaviour},
    {"an outage", outage},
    {"several in flight", several_in_flight},
    {"cancelling", cancelling},
    {"caps", caps},
    {"a call waits for the cap's room", cap_waits},
};

int main(void) {
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    server_stop();
    loop_free(loop);
    return failed;
}
