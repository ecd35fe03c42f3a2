/* The languages of servers and the arithmetic of costs: pure functions, case by case. */
#include "agent/llm/account.h"
#include "agent/llm/dialect.h"
#include "tap.h"

static struct err err;

static void events(void) {
    static const struct {
        const char *text,
            *want; /* data of all events, each in brackets; ! where it is unfinished */
    } rows[] = {
        {"data: a\n\n", "[a]"},
        {"data:a\r\n\r\ndata:b\r\rdata:c\n\n", "[a][b][c]"},
        {"data: a\ndata: b\n\n", "[a\nb]"},
        {"data\n\ndata:\n\n", "[][]"},
        {"\xef\xbb\xbf"
         "data: a\n\n",
         "[a]"},
        {": comment\nevent: x\nid: 3\n\ndata: a\nretry: 1\n\n", "[a]"},
        {"database: a\n\ndata : b\n\n", ""},
        {"data:  two blanks\n\n", "[ two blanks]"},
        {"data: a\n", "[a!]"},
        {"data: a\n\ndata: b", "[a][b!]"},
        {"data: a\r", "[a!]"},
        {"\n\n\n\ndata: a\n\n\n\n", "[a]"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str rest = str_view(rows[i].text);
        struct buf data, got;
        bool whole;
        buf_init(&data, 1 << 16);
        buf_init(&got, 1 << 16);
        while (sse_next(&rest, &data, &whole))
            buf_printf(&got, "[%.*s%s]", STR_ARG(buf_str(&data)), whole ? "" : "!");
        CHECKF(str_is(buf_str(&got), rows[i].want), "%s: %s", rows[i].text, got.p ? got.p : "");
        buf_release(&data);
        buf_release(&got);
    }
}

static void requests(void) {
    struct dialect_request q = {.model = "m\"x",
                                .system = S("be\n"),
                                .user = S("h\xc3\xa9\xff"),
                                .max_tokens = 9,
                                .temperature = 0.5};
    static const struct {
        const struct dialect *d;
        struct quirks quirks;
        const char *want;
    } rows[] = {
        {&dialect_openai,
         {0},
         "{\"model\":\"m\\\"x\",\"messages\":[{\"role\":\"system\",\"content\":\"be\\n\"},"
         "{\"role\":\"user\",\"content\":\"h\xc3\xa9\xef\xbf\xbd\"}],\"max_tokens\":9,"
         "\"temperature\":0.5,\"stream\":true,\"stream_options\":{\"include_usage\":true}}"},
        {&dialect_openai,
         {true, true, true},
         "{\"model\":\"m\\\"x\",\"messages\":[{\"role\":\"system\",\"content\":\"be\\n\"},"
         "{\"role\":\"user\",\"content\":\"h\xc3\xa9\xef\xbf\xbd\"}],\"max_completion_tokens\":9,"
         "\"stream\":true}"},
        {&dialect_anthropic,
         {0},
         "{\"model\":\"m\\\"x\",\"max_tokens\":9,\"system\":\"be\\n\",\"messages\":[{\"role\":"
         "\"user\",\"content\":\"h\xc3\xa9\xef\xbf\xbd\"}],\"temperature\":0.5,\"stream\":true}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct buf b;
        buf_init(&b, 1 << 16);
        q.quirks = rows[i].quirks;
        dialect_write(rows[i].d, &q, &b);
        CHECKF(str_is(buf_str(&b), rows[i].want), "%s", b.p);
        buf_release(&b);
    }
}

static void answers(void) {
    static const struct {
        const struct dialect *d;
        bool stream;
        const char *body, *text, *why;
        bool ended, cut, busy;
        uint64_t tokens;
    } rows[] = {
        {&dialect_openai, true,
         "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\",\"content\":null}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
         "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"thinking\",\"text\":\"t\"},"
         "{\"type\":\"text\",\"text\":\"b\"}]},\"finish_reason\":\"length\"}]}\n\n",
         "ab", NULL, .ended = true, .cut = true},
        {&dialect_openai, true, "data: [DONE]\n\ndata: {\"error\":\"late\"}\n\n", "", NULL, true},
        {&dialect_openai, true,
         "data: {\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}\n\n", "", "m",
         .busy = true},
        {&dialect_openai, true, "data: {\"choices\":[{\"finish_reason\":\"content_filter\"}]}\n\n",
         "", "content filter", .ended = true},
        {&dialect_openai, true, "data: {\"choices\":[]", "", NULL},
        {&dialect_openai, false, "{\"error\":\"plain\"}", "", "plain"},
        {&dialect_openai, false, "[]", "", "no choices[0].message"},
        {&dialect_openai, false,
         "{\"choices\":[{\"message\":{\"content\":null}}],\"usage\":{\"prompt_tokens\":3,"
         "\"completion_tokens\":-1}}",
         "", NULL, true},
        {&dialect_anthropic, true,
         "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,"
         "\"cache_read_input_tokens\":2,\"output_tokens\":1}}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"thinking_delta\","
         "\"thinking\":\"hm\"}}\n\n"
         "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\","
         "\"text\":\"a\"}}\n\n"
         "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\"},"
         "\"usage\":{\"output_tokens\":4}}\n\n",
         "a", NULL, .ended = true, .cut = true, .tokens = 11},
        {&dialect_anthropic, true,
         "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"refusal\"}}\n\n", "",
         "refused", .ended = true},
        {&dialect_anthropic, false,
         "{\"content\":[{\"type\":\"thinking\",\"text\":\"hm\"},{\"type\":\"text\",\"text\":\"a\"}]"
         "}",
         "a", NULL, true},
        {&dialect_anthropic, false, "null", "", "not JSON"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer a;
        answer_init(&a);
        if (rows[i].stream)
            dialect_read_stream(rows[i].d, str_view(rows[i].body), &a);
        else
            dialect_read_body(rows[i].d, str_view(rows[i].body), &a);
        CHECKF(a.failed == (rows[i].why != NULL) && (!a.failed || strstr(a.why, rows[i].why)),
               "%zu: %s", i, a.why);
        CHECKF(str_is(buf_str(&a.text), rows[i].text), "%zu: %s", i, a.text.p ? a.text.p : "");
        CHECKF(a.ended == rows[i].ended && a.cut == rows[i].cut && a.busy == rows[i].busy, "%zu",
               i);
        CHECKF(a.tokens_in + a.tokens_out == rows[i].tokens, "%zu", i);
        answer_release(&a);
    }
}

static void error_lines(void) {
    static const struct {
        const char *body, *line;
    } rows[] = {
        {"{\"error\":{\"message\":\"a\\n b\"}}", "a b"},
        {"{\"error\":{\"type\":\"t\"}}", "t"},
        {"{\"error\":{}}", "an error without a message"},
        {"{\"detail\":\"d\"}", "d"},
        {"{\"message\":\"d\"}", "d"},
        {"<html>\r\n\t<b>x", "<html> <b>x"},
        {"\x1b[31mred\xff\x80", "[31mred"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[64];
        dialect_error_line(str_view(rows[i].body), line, sizeof line);
        CHECKF(!strcmp(line, rows[i].line), "%s: %s", rows[i].body, line);
    }
    char tiny[4];
    line_of(S("a\xe2\x86\x92"), tiny, sizeof tiny); /* no half characters */
    CHECKF(!strcmp(tiny, "a"), "%s", tiny);
    line_of(S("a b"), tiny, sizeof tiny);
    CHECKF(!strcmp(tiny, "a b"), "%s", tiny);
}

static void adapting(void) {
    struct quirks q = {0};
    CHECK(!dialect_openai.adapt(S("the prompt is too long"), &q));
    CHECK(dialect_openai.adapt(S("use 'max_completion_tokens'"), &q) && q.other_limit);
    CHECK(!dialect_openai.adapt(S("max_completion_tokens is too large"), &q));
    CHECK(dialect_openai.adapt(S("unknown field stream_options"), &q) && q.no_usage);
    CHECK(dialect_openai.adapt(S("temperature"), &q) && q.no_temperature);
    CHECK(!dialect_openai.adapt(S("temperature"), &q));
}

static void prices(void) {
    static const struct {
        const char *model;
        double in, out;
    } rows[] = {
        {"claude-sonnet-5", 2, 10},
        {"claude-sonnet-5-20260806", 2, 10},
        {"gpt-5-mini", 0.25, 2},
        {"claude-sonnet-4-5-20250929", 3, 15},
        {"claude-sonnet-4-5-latest", 3, 15},
        {"gpt-5.2-audio", NAN, NAN},
        {"gpt-5.2-20", NAN, NAN},
        {"gpt-5-pro", NAN, NAN},
        {"unheard-of", NAN, NAN},
        {"", NAN, NAN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct price p;
        CHECKF(price_find(NULL, str_view(rows[i].model), &p, &err), "%s", err.text);
        CHECKF(isnan(rows[i].in) ? isnan(p.in) && isnan(p.out)
                                 : p.in == rows[i].in && p.out == rows[i].out,
               "%s: %g %g", rows[i].model, p.in, p.out);
    }
    CHECK(price_cost((struct price){3, 15}, 1000000, 100000) == 4.5);
}

/* Reservations come and go; an unknown price passes no cap on money. */
static void admissions(void) {
    struct account *a = account_new((struct caps){.tokens = 1000}, (struct price){NAN, NAN});
    struct reservation r[2];
    CHECK(account_admit(a, true, 0, 500, &r[0], &err) == ADMIT_YES);
    CHECK(account_admit(a, true, 0, 500, &r[1], &err) == ADMIT_WAIT);
    account_settle(a, &r[0]);
    CHECK(account_admit(a, true, 0, 500, &r[1], &err) == ADMIT_YES);
    account_settle(a, &r[1]);
    account_charge(a, &(struct charge){.role = "coder", .candidate = 3, .tokens_out = 437});
    CHECK(account_admit(a, true, 0, 500, &r[0], &err) == ADMIT_NEVER && err.kind == ERR_NO);
    CHECK(account_admit(a, true, 0, 499, &r[0], &err) == ADMIT_YES);
    account_free(a);
    a = account_new((struct caps){.cost = 1}, (struct price){NAN, 1});
    CHECK(account_admit(a, true, 0, 1, &r[0], &err) == ADMIT_NEVER);
    account_free(a);
}

static const struct tap_case cases[] = {
    {"server-sent events", events}, {"requests", requests}, {"answers", answers},
    {"error lines", error_lines},   {"adapting", adapting}, {"prices", prices},
    {"admissions", admissions},
};
TAP_CASES(cases)
