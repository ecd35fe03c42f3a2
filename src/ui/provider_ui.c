/* Options into struct provider_options. Numbers that are not whole are read here. */
#include "ui/provider_ui.h"

#include "agent/llm/key.h"

#include <math.h>
#include <string.h>

/* `unset` where the option is not given. */
static bool read_real(const struct options *o, const char *name, double unset, double most,
                      double *out, struct err *err) {
    const char *text = option_text(o, name);
    *out = unset;
    if (!text || (str_to_f64(str_view(text), out) && *out >= 0 && *out <= most))
        return true;
    return err_set(err, ERR_INPUT, "--%s %s: expected a number from 0 to %g", name, text, most);
}

static bool read_reals(const struct options *o, struct provider_options *out, struct err *err) {
    if (!read_real(o, "max-cost", 0, 1e9, &out->max_cost, err) ||
        !read_real(o, "price-in", -1, 1e9, &out->price_in, err) ||
        !read_real(o, "price-out", -1, 1e9, &out->price_out, err) ||
        !read_real(o, "temperature", NAN, 10, &out->temperature, err))
        return false;
    if (option_text(o, "max-cost") && out->max_cost == 0) /* 0 would be no cap at all */
        return err_set(
            err, ERR_INPUT,
            "--max-cost 0 allows no call of a model; to use no model, leave out --provider");
    return true;
}

/* A file or a program for another kind would be left unused without a word. */
static bool read_kind(const struct options *o, struct provider_options *out, struct err *err) {
    static const struct {
        const char *option, *kind;
    } only[] = {{"command", "command"}, {"replay", "replay"}};
    out->kind = option_text(o, "provider");
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        const char *text = option_text(o, only[i].option);
        bool fits = out->kind && !strcmp(out->kind, only[i].kind);
        if (text && out->kind && !fits)
            return err_set(err, ERR_INPUT, "--%s is for --provider %s, not for --provider %s",
                           only[i].option, only[i].kind, out->kind);
        if (text)
            out->kind = only[i].kind;
        out->command = text ? text : out->command;
    }
    return true;
}

bool ui_provider_options(struct ui *ui, struct provider_options *out, struct err *err) {
    const struct options *o = ui->options;
    uint64_t seed = 0;
    *out = (struct provider_options){0};
    if (!read_kind(o, out, err) || !read_reals(o, out, err))
        return false;
    out->model = option_text(o, "model");
    out->url = option_text(o, "provider-url");
    if (out->url && !url_check(out->url, err))
        return false;
    out->key_file = option_text(o, "provider-key-file");
    out->command_json = !strcmp(option_text(o, "command-format"), "json");
    out->record = option_text(o, "record");
    out->max_tokens = (uint64_t)option_int(o, "max-tokens");
    out->max_calls = (uint64_t)option_int(o, "max-calls");
    out->max_ms = (uint64_t)option_int(o, "max-model-time") * 1000;
    out->max_reply_tokens = (uint64_t)option_int(o, "max-reply-tokens");
    out->concurrency = (uint64_t)option_int(o, "concurrency");
    out->timeout_ms = (uint64_t)option_int(o, "request-timeout") * 1000;
    out->assets = option_text(o, "assets");
    /* When to try again: runs that were started together should not knock together. */
    if (!rng_secret(&seed))
        return err_set(err, ERR_ENV, "no random numbers from the operating system");
    out->jitter = rng_stream(seed, S("jitter"));
    return true;
}
