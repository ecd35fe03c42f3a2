/* Chat completions, the dialect that most servers speak: OpenAI, DeepSeek, Together, OpenRouter,
 * vLLM, llama.cpp, Ollama. They differ in what they reject: the name of the limit on the reply,
 * the wish for token counts in a stream, a temperature. What a server rejects is left out the next
 * time (adapt). */
#include "agent/llm/dialect.h"

#include <math.h>

static json *message(const char *role, str content) {
    json *j = json_object();
    json_set_str(j, "role", str_view(role));
    json_set_str(j, "content", content);
    return j;
}

static void openai_write(const struct dialect_request *q, json *body) {
    json *messages = json_array();
    json_set_str(body, "model", str_view(q->model));
    if (q->system.n)
        json_push(messages, message("system", q->system));
    json_push(messages, message("user", q->user));
    json_set(body, "messages", messages);
    json_set_i64(body, q->quirks.other_limit ? "max_completion_tokens" : "max_tokens",
                 (int64_t)q->max_tokens);
    if (!isnan(q->temperature) && !q->quirks.no_temperature)
        json_set_f64(body, "temperature", q->temperature);
    json_set_bool(body, "stream", true);
    if (!q->quirks.no_usage) {
        json *options = json_object();
        json_set_bool(options, "include_usage", true);
        json_set(body, "stream_options", options);
    }
}

static void read_usage(const json *body, struct answer *out) {
    const json *usage = json_get(body, "usage");
    int64_t in, made;
    if (!json_get_i64(usage, "prompt_tokens", &in) ||
        !json_get_i64(usage, "completion_tokens", &made) || in < 0 || made < 0)
        return;
    out->tokens_in = (uint64_t)in;
    out->tokens_out = (uint64_t)made;
    out->counted = true;
}

static void read_finish(const json *choice, struct answer *out) {
    str reason;
    if (!json_get_str(choice, "finish_reason", &reason))
        return;
    out->ended = true;
    out->cut = str_is(reason, "length");
    if (str_is(reason, "content_filter"))
        answer_fail(out, false, S("the server's content filter stopped the answer"));
}

/* A string, or the list of typed parts that some servers send. Thoughts are not the answer. */
static void read_content(const json *holder, struct answer *out) {
    const json *content = json_get(holder, "content");
    str text, type;
    if (json_to_str(content, &text))
        buf_puts(&out->text, text);
    for (size_t i = 0; json_is_array(content) && i < json_len(content); i++) {
        const json *part = json_at(content, i);
        if (json_get_str(part, "type", &type) && str_is(type, "text") &&
            json_get_str(part, "text", &text))
            buf_puts(&out->text, text);
    }
}

static void openai_read_event(const json *event, struct answer *out) {
    if (answer_read_error(event, out))
        return;
    const json *choice = json_at(json_get(event, "choices"), 0);
    read_content(json_get(choice, "delta"), out);
    read_finish(choice, out);
    read_usage(event, out);
}

static void openai_read_whole(const json *body, struct answer *out) {
    const json *choice = json_at(json_get(body, "choices"), 0);
    const json *said = json_get(choice, "message");
    if (!json_is_object(said)) {
        answer_fail(out, false, S("the answer has no choices[0].message"));
        return;
    }
    read_content(said, out);
    out->ended = true;
    read_finish(choice, out);
    read_usage(body, out);
}

static bool mentions(str message, const char *what) {
    return str_find(message, str_view(what)) < message.n;
}

static bool openai_adapt(str message, struct quirks *q) {
    bool limit = mentions(message, "max_tokens") || mentions(message, "max_completion_tokens");
    if (limit && !q->other_limit)
        return q->other_limit = true;
    if (mentions(message, "stream_options") && !q->no_usage)
        return q->no_usage = true;
    if (mentions(message, "temperature") && !q->no_temperature)
        return q->no_temperature = true;
    return false;
}

const struct dialect dialect_openai = {
    .name = "openai",
    .url = "https://api.openai.com/v1",
    .path = "/chat/completions",
    .key_header = "Authorization: Bearer ",
    .write = openai_write,
    .read_event = openai_read_event,
    .read_whole = openai_read_whole,
    .adapt = openai_adapt,
};
