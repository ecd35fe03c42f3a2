#include "ui/agents.h"
#include "base/say.h"
#include "search/archived.h"
#include "ui/provider_ui.h"

#include <stdio.h>
#include <string.h>

static bool is_option(const struct ui *ui, const char *name, const char *value) {
    const char *text = option_text(ui->options, name);
    return text && !strcmp(text, value);
}

static bool needs_model(struct ui *ui) {
    return !is_option(ui, "agents", "expert");
}

bool agents_expert_first(const struct ui *ui) {
    return !is_option(ui, "agents", "llm");
}

/* ---- reading ---- */

static enum profiling profiling_of(struct ui *ui) {
    return is_option(ui, "profiling", "now")     ? PROFILING_NOW
           : is_option(ui, "profiling", "never") ? PROFILING_NEVER
                                                 : PROFILING_DELAYED;
}

bool agents_read(struct agents *a, struct ui *ui, struct err *err) {
    struct provider_options po;
    *a = (struct agents){.refine_options = {.profiling = profiling_of(ui)}};
    if (!ui_provider_options(ui, &po, err))
        return false;
    /* A population of model calls is dear: without a word about it one kernel is refined. */
    a->refine = is_option(ui, "workflow", "refine") ||
                (is_option(ui, "workflow", "auto") && is_option(ui, "agents", "llm"));
    if (a->refine && !needs_model(ui))
        return err_set(err, ERR_INPUT,
                       "--workflow refine needs a model; add --agents llm or --agents hybrid");
    if (needs_model(ui) && !po.kind)
        return err_set(err, ERR_INPUT,
                       "--agents %s needs a model; add --provider (docs/MODELS.md has examples)",
                       option_text(ui->options, "agents"));
    if (!needs_model(ui) && po.kind)
        complain("cutepilot: a model provider is named but not used; --agents llm or --agents "
                 "hybrid uses it\n");
    return true;
}

/* CuTe where it is asked for, or by itself for products where its headers are found. What follows
 * is part of the fingerprint, so a run never changes its mind. */
static bool writes_cute(struct ui *ui, const struct evaluator_options *eo, enum workload w) {
    if (!is_option(ui, "dialect", "auto"))
        return is_option(ui, "dialect", "cute");
    return eo->nvrtc.cutlass[0] && (w == WORKLOAD_CONTRACTION || w == WORKLOAD_ATTENTION);
}

void agents_ask_dialect(struct ui *ui, const struct evaluator_options *eo, struct briefing *b) {
    if (is_option(ui, "agents", "llm") && writes_cute(ui, eo, b->features.workload))
        b->ground.fact[FACT_ASKED_DIALECT] = 1;
}

void agents_fingerprint(const struct agents *a, struct ui *ui, const struct evaluator_options *eo,
                        json *out) {
    static const char *const texts[] = {"provider", "model", "dialect", "crossover", "profiling"};
    json_set_str(out, "agents", str_view(option_text(ui->options, "agents")));
    if (!needs_model(ui))
        return;
    json_set_str(out, "workflow", a->refine ? S("refine") : S("evolve"));
    json_set_bool(out, "cutlass", eo->nvrtc.cutlass[0] != 0);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (option_text(ui->options, texts[i]))
            json_set_str(out, texts[i], str_view(option_text(ui->options, texts[i])));
}

/* ---- opening ---- */

bool agents_connect(struct agents *a, struct ui *ui, struct loop *l, llm_notice_fn *notice,
                    void *notice_ctx, struct err *err) {
    struct provider_options po;
    if (!needs_model(ui))
        return true;
    if (!ui_provider_options(ui, &po, err))
        return false;
    po.notice = notice;
    po.notice_ctx = notice_ctx;
    return provider_new(l, &po, &a->provider, err);
}

bool agents_open(struct agents *a, struct ui *ui, const struct agents_ground *g, struct err *err) {
    const char *assets = option_text(ui->options, "assets");
    struct llm_options lo = {
        .prompt = {.assets = assets,
                   .cute = writes_cute(ui, g->eo, g->briefing->features.workload)},
        .cross_code = is_option(ui, "crossover", "code"),
    };
    if (!expert_new(assets, &a->expert, err))
        return false;
    a->chosen = &a->expert;
    if (!needs_model(ui))
        return true;
    archived_provider(&a->provider, g->archive, &a->archived);
    llm_new(&a->archived, &lo, &a->llm);
    a->chosen = &a->llm;
    if (is_option(ui, "agents", "hybrid")) {
        hybrid_new(&a->expert, &a->llm, &a->hybrid);
        a->chosen = &a->hybrid;
    }
    return true;
}

json *agents_account(const struct agents *a) {
    if (!a->archived.account)
        return NULL;
    json *j = a->archived.account(a->archived.self);
    json_set_i64(j, "replayed", (int64_t)archived_replayed(&a->archived));
    json_set_str(j, "model", str_view(a->provider.model));
    return j;
}

void agents_release(struct agents *a) {
    struct agent *agents[] = {&a->hybrid, &a->llm, &a->expert};
    struct provider *providers[] = {&a->archived, &a->provider};
    for (size_t i = 0; i < sizeof agents / sizeof *agents; i++)
        if (agents[i]->release)
            agents[i]->release(agents[i]->self);
    for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
        if (providers[i]->release)
            providers[i]->release(providers[i]->self);
    *a = (struct agents){0};
}
