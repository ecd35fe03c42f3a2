/* Anthropic's messages. A stream is message_start (tokens in), deltas of text, message_delta (why
 * it ended, tokens out), message_stop; pings and blocks of other kinds are passed over. */
#include "agent/llm/dialect.h"

#include <math.h>

static void anthropic_write(const struct dialect_request *q, json *body) {
    json *messages = json_array(), *message = json_object();
    json_set_str(body, "model", str_view(q->model));
    json_set_i64(body, "max_tokens", (int64_t)q->max_tokens);
    if (q->system.n)
        json_set_str(body, "system", q->system);
    json_set_str(message, "role", S("user"));
    json_set_str(message, "content", q->user);
    json_push(messages, message);
    json_set(body, "messages", messages);
    if (!isnan(q->temperature) && !q->quirks.no_temperature)
        json_set_f64(body, "temperature", q->temperature);
    json_set_bool(body, "stream", true);
}

static uint64_t count_of(const json *usage, const char *name) {
    int64_t n;
    return json_get_i64(usage, name, &n) && n > 0 ? (uint64_t)n : 0;
}

/* Tokens written to or read from the server's cache are part of the prompt. The output's count in
 * an event is the whole up to there. */
static void read_usage(const json *usage, struct answer *out) {
    uint64_t in = count_of(usage, "input_tokens") + count_of(usage, "cache_read_input_tokens") +
                  count_of(usage, "cache_creation_input_tokens");
    uint64_t made = count_of(usage, "output_tokens");
    out->tokens_in = in > out->tokens_in ? in : out->tokens_in;
    out->tokens_out = made > out->tokens_out ? made : out->tokens_out;
    out->counted |= json_is_object(usage);
}

static void read_stop(const json *holder, struct answer *out) {
    str reason;
    if (!json_get_str(holder, "stop_reason", &reason))
        return;
    out->ended = true;
    out->cut = str_is(reason, "max_tokens") || str_is(reason, "model_context_window_exceeded");
    if (str_is(reason, "refusal"))
        answer_fail(out, false, S("the model refused to answer"));
}

static void read_text(const json *block, const char *kind, struct answer *out) {
    str type, text;
    if (json_get_str(block, "type", &type) && str_is(type, kind) &&
        json_get_str(block, "text", &text))
        buf_puts(&out->text, text);
}

static void anthropic_read_event(const json *event, struct answer *out) {
    str type = {0};
    json_get_str(event, "type", &type);
    if (answer_read_error(event, out))
        return;
    if (str_is(type, "message_start")) {
        read_usage(json_get(json_get(event, "message"), "usage"), out);
    } else if (str_is(type, "content_block_start")) {
        read_text(json_get(event, "content_block"), "text", out);
    } else if (str_is(type, "content_block_delta")) {
        read_text(json_get(event, "delta"), "text_delta", out);
    } else if (str_is(type, "message_delta")) {
        read_stop(json_get(event, "delta"), out);
        read_usage(json_get(event, "usage"), out);
    } else if (str_is(type, "message_stop")) {
        out->ended = true;
    }
}

static void anthropic_read_whole(const json *body, struct answer *out) {
    const json *content = json_get(body, "content");
    if (!json_is_array(content)) {
        answer_fail(out, false, S("the answer has no content"));
        return;
    }
    for (size_t i = 0; i < json_len(content); i++)
        read_text(json_at(content, i), "text", out);
    out->ended = true;
    read_stop(body, out);
    read_usage(json_get(body, "usage"), out);
}

static bool anthropic_adapt(str message, struct quirks *q) {
    if (q->no_temperature || str_find(message, S("temperature")) == message.n)
        return false;
    return q->no_temperature = true;
}

const struct dialect dialect_anthropic = {
    .name = "anthropic",
    .url = "https://api.anthropic.com",
    .path = "/v1/messages",
    .key_header = "x-api-key: ",
    .header = "anthropic-version: 2023-06-01",
    .write = anthropic_write,
    .read_event = anthropic_read_event,
    .read_whole = anthropic_read_whole,
    .adapt = anthropic_adapt,
};
