/* A request of the search becomes a job: a prompt, its tries, and what to do with a reply that can
 * be read. Jobs are independent; several may be in flight. */
#include "agent/llm/llm.h"
#include "agent/expert/expert.h"
#include "agent/llm/notebook.h"
#include "agent/llm/reply.h"
#include "base/hash.h"
#include <string.h>

#define JOB_MAX            ((size_t)64 << 20)
#define CONTRADICTIONS_MAX (8u << 10)

struct llm {
    const struct provider *provider;
    struct llm_options o;
    uint64_t asked[ROLE_COUNT];
    struct notebook notes;
    struct role_job *open; /* cancelled when the agent goes */
};

/* Reads a reply and delivers; false with a complaint for the model. */
struct role_job;
typedef bool read_fn(struct role_job *j, str reply, struct err *complaint);

struct role_job {
    struct llm *llm;
    struct role_job *next;
    struct arena *mem;
    struct prompter prompter;
    struct briefing briefing;
    enum role role;
    uint64_t number, attempt, call;
    struct prompt prompt;
    read_fn *read;
    struct strategy strategy; /* coder, aligner */
    str before;               /* the source that edits are of */
    size_t n;                 /* planner: strategies that are wanted */
    bool fallback;            /* … beside the one with every decision at its default */
    /* One of these is told, exactly once. */
    agent_plan_fn *plan;
    agent_code_fn *code;
    agent_edit_fn *edit;
    void *ctx;
};

const char *role_name(enum role r) {
    static const char *const names[ROLE_COUNT] = {
#define ROLE(id, name) name,
#include "agent/llm/role.def"
#undef ROLE
    };
    BUG_IF((unsigned)r >= ROLE_COUNT);
    return names[r];
}

/* ---- jobs ---- */

static struct role_job *job_new(struct llm *x, const struct briefing *b, enum role role,
                                read_fn *read, void *ctx) {
    struct role_job *j = mem_alloc(sizeof *j);
    *j = (struct role_job){.llm = x,
                           .next = x->open,
                           .mem = arena_new(JOB_MAX),
                           .briefing = *b,
                           .role = role,
                           .number = x->asked[role]++,
                           .read = read,
                           .ctx = ctx};
    j->prompter = (struct prompter){&x->o.prompt, &j->briefing, j->mem, &x->notes};
    x->open = j;
    return j;
}

static void job_free(struct role_job *j) {
    struct role_job **at = &j->llm->open;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    arena_free(j->mem);
    mem_free(j);
}

static void job_fail(struct role_job *j, const struct err *err) {
    if (j->plan)
        j->plan(j->ctx, NULL, 0, S(""), err);
    else if (j->code)
        j->code(j->ctx, S(""), NULL, err);
    else
        j->edit(j->ctx, S(""), S(""), err);
    job_free(j);
}

static void on_reply(void *ctx, const struct llm_reply *reply, const struct err *err);

static void job_ask(struct role_job *j, const struct prompt *p) {
    struct llm_request q = {.role = role_name(j->role),
                            .ordinal = j->number * LLM_TRIES + j->attempt,
                            .candidate = j->briefing.candidate,
                            .system = p->system,
                            .user = p->user};
    const struct provider *provider = j->llm->provider;
    j->call = 0;
    /* Answered before the call returns, the job is gone, and the number is 0. */
    uint64_t call = provider->ask(provider->self, &q, on_reply, j);
    if (call)
        j->call = call;
}

/* Asks again with the complaint; after the last try the request has failed. */
static void job_complain(struct role_job *j, str reply, bool cut, const struct err *complaint) {
    struct prompt again;
    struct err err = {0};
    str text = str_view(complaint->text);
    if (cut)
        text =
            arena_printf(j->mem, "The reply was cut off at its token limit. %s", complaint->text);
    if (++j->attempt == LLM_TRIES) {
        err_set(&err, ERR_INPUT, "%s: no usable reply in %d tries: %s", role_name(j->role),
                LLM_TRIES, complaint->text);
        job_fail(j, &err);
    } else if (!prompt_again(&j->prompter, &j->prompt, text, reply, &again, &err)) {
        job_fail(j, &err);
    } else {
        job_ask(j, &again);
    }
}

static void on_reply(void *ctx, const struct llm_reply *reply, const struct err *err) {
    struct role_job *j = ctx;
    struct err complaint = {0};
    if (err) {
        struct err gone = *err;
        gone.kind = ERR_NO;
        job_fail(j, &gone);
        return;
    }
    str text = arena_str(j->mem, reply->text);
    if (j->read(j, text, &complaint))
        job_free(j);
    else
        job_complain(j, text, reply->cut, &complaint);
}

/* `made`: the prompt could be made. */
static void job_start(struct role_job *j, bool made, struct err *err) {
    if (made)
        job_ask(j, &j->prompt);
    else
        job_fail(j, err);
}

/* ---- strategists ---- */

/* Of two strategies that are the same the first is written, so its note stays; the aligner knows
 * better what was. */
static void take_note(struct role_job *j, digest strategy, str note) {
    struct notebook *notes = &j->llm->notes;
    const struct notebook_entry *e = notebook_find(notes, strategy);
    if (!e || !e->note.n || j->role == ROLE_ALIGNER)
        notebook_of(notes, strategy)->note = arena_str(notes->texts, note);
}

/* Where remarks tell strategies apart. What is aligned stays the strategy it was. */
static uint64_t remark_of(const struct role_job *j, str comment) {
    uint64_t number;
    if (j->role == ROLE_ALIGNER)
        return j->strategy.remark;
    if (!comment.n || !j->prompt.remarks_count)
        return 0;
    digest d = sha256_of(comment);
    memcpy(&number, &d, sizeof number);
    return number;
}

/* A line as a legal strategy; its comment is remembered with it. */
static bool take_line(struct role_job *j, const struct reply_line *l, struct strategy *out,
                      struct err *complaint) {
    const struct briefing *b = &j->briefing;
    if (!strategy_parse(b->catalogue, l->text, out, complaint))
        return false;
    strategy_repair(b->catalogue, &b->ground, out);
    out->remark = remark_of(j, l->comment);
    if (l->comment.n)
        take_note(j, strategy_hash(b->catalogue, out), l->comment);
    return true;
}

/* Lines that are no strategies are passed over as long as one is. */
static size_t take_lines(struct role_job *j, const struct reply_line *lines, size_t n,
                         struct strategy *out, size_t most, struct err *complaint) {
    size_t got = 0;
    for (size_t i = 0; i < n && got < most; i++) {
        struct err err = {0};
        if (take_line(j, &lines[i], &out[got], &err))
            got++;
        else if (complaint->kind == ERR_NONE)
            err_set(complaint, ERR_NO, "line %zu, `%.*s`: %s", i + 1,
                    STR_ARG(str_cut(lines[i].text, 0, 200)), err.text);
    }
    return got;
}

static bool read_strategies(struct role_job *j, str reply, struct err *complaint) {
    struct reply_line *lines;
    size_t n;
    str idea;
    if (!reply_read_strategies(reply, j->mem, &lines, &n, &idea, complaint))
        return false;
    struct strategy *list = arena_array(j->mem, struct strategy, j->n + 1);
    size_t got = take_lines(j, lines, n, list, j->n, complaint);
    if (!got)
        return false;
    if (j->fallback)
        strategy_fallback(j->briefing.catalogue, &j->briefing.ground, &list[got++]);
    j->plan(j->ctx, list, got, idea.n ? idea : S("the model gave no reason"), NULL);
    return true;
}

static void llm_plan(void *self, const struct briefing *b, size_t n, struct rng r,
                     agent_plan_fn *done, void *ctx) {
    (void)r;
    struct err err = {0};
    struct role_job *j = job_new(self, b, ROLE_PLANNER, read_strategies, ctx);
    j->plan = done;
    /* Of a whole generation the fallback is a part: it is what gains are stated against. */
    j->fallback = n > 2;
    j->n = n - j->fallback;
    job_start(j, prompt_planner(&j->prompter, j->n, j->fallback, &j->prompt, &err), &err);
}

/* Crossover of code: the child's decisions are drawn, its source is written from both parents',
 * which must be two. */
static bool cross_code(struct llm *x, const struct briefing *b, const struct parent *p,
                       const struct parent *q, struct rng r, struct strategy *child) {
    const struct notebook_entry *a, *c;
    if (!x->o.cross_code)
        return false;
    a = notebook_find(&x->notes, strategy_hash(b->catalogue, &p->strategy));
    c = notebook_find(&x->notes, strategy_hash(b->catalogue, &q->strategy));
    if (!a || !c || !a->source.n || !c->source.n || str_eq(a->source, c->source))
        return false;
    strategy_cross(b->catalogue, &b->ground, &p->strategy, &q->strategy, r, child);
    notebook_add_pair(&x->notes, strategy_hash(b->catalogue, child),
                      &(struct notebook_parent){*p, a->source},
                      &(struct notebook_parent){*q, c->source});
    return true;
}

static void llm_cross(void *self, const struct briefing *b, const struct parent *x,
                      const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx) {
    struct err err = {0};
    struct strategy child;
    if (cross_code(self, b, x, y, r, &child)) {
        done(ctx, &child, 1, S("from the code of both parents"), NULL);
        return;
    }
    struct role_job *j = job_new(self, b, ROLE_CROSSOVER, read_strategies, ctx);
    j->plan = done;
    j->n = 1;
    job_start(j, prompt_crossover(&j->prompter, x, y, &j->prompt, &err), &err);
}

static bool read_aligned(struct role_job *j, str reply, struct err *complaint) {
    struct reply_line *lines;
    struct strategy s;
    size_t n;
    str idea;
    if (!reply_read_strategies(reply, j->mem, &lines, &n, &idea, complaint) ||
        !take_lines(j, lines, n, &s, 1, complaint))
        return false;
    notebook_set_source(&j->llm->notes, strategy_hash(j->briefing.catalogue, &s), j->before);
    j->plan(j->ctx, &s, 1, idea, NULL);
    return true;
}

/* What the compiled code shows against the strategy; empty: nothing. */
static void contradict(const struct briefing *b, const struct strategy *s,
                       const struct record *record, struct strategy *shown, struct buf *out) {
    buf_init(out, CONTRADICTIONS_MAX);
    aligner_align(b, s, record, shown, out);
    if (strategy_equal(b->catalogue, s, shown))
        buf_clear(out);
}

static void ask_aligner(struct llm *x, const struct briefing *b, const struct aligning *a,
                        agent_plan_fn *done, void *ctx) {
    struct err err = {0};
    struct role_job *j = job_new(x, b, ROLE_ALIGNER, read_aligned, ctx);
    j->plan = done;
    j->before = a->source;
    j->strategy = *a->strategy;
    job_start(j, prompt_aligner(&j->prompter, a, &j->prompt, &err), &err);
}

/* Only where there is something to tell: what became of a decision that the compiled code
 * contradicts, or what the author did instead of the strategy. With nothing left of the budget
 * nobody is going to be its child, and it is aligned by rule. */
static void llm_align(void *self, const struct briefing *b, const struct strategy *s,
                      const struct strategy *written, const struct record *record,
                      agent_plan_fn *done, void *ctx) {
    (void)written;
    struct llm *x = self;
    struct buf against;
    struct strategy shown;
    const struct notebook_entry *e = notebook_of_source(&x->notes, record->source_sha256);
    contradict(b, s, record, &shown, &against);
    struct aligning a = {.strategy = s, .against = buf_str(&against)};
    if (e) {
        a.source = e->source;
        a.instead = e->instead;
    }
    if (b->outlook.candidates == 0)
        done(ctx, &shown, 1, a.against, NULL);
    else if (e && (a.instead.n || a.against.n))
        ask_aligner(x, b, &a, done, ctx);
    else /* what is not ours: nothing is known against it */
        done(ctx, s, 1, S(""), NULL);
    buf_release(&against);
}

/* The sentence of whoever proposed it, and where its author left the strategy. */
static str llm_remarks(void *self, const char *source_hash, struct arena *a) {
    struct llm *x = self;
    const struct notebook_entry *e = notebook_of_source(&x->notes, str_view(source_hash));
    if (!e || !e->instead.n)
        return e ? arena_str(a, e->note) : S("");
    return arena_printf(a, "%.*s%sinstead: %.*s", STR_ARG(e->note), e->note.n ? "; " : "",
                        STR_ARG(e->instead));
}

/* ---- writers ---- */

static bool read_code(struct role_job *j, str reply, struct err *complaint) {
    struct reply_source s;
    if (!reply_read_source(reply, S(""), j->mem, &s, complaint))
        return false;
    digest strategy = strategy_hash(j->briefing.catalogue, &j->strategy);
    struct notebook *notes = &j->llm->notes;
    notebook_set_source(notes, strategy, s.source);
    notebook_of(notes, strategy)->instead = arena_str(notes->texts, s.instead);
    j->code(j->ctx, s.source, &j->strategy, NULL);
    return true;
}

static void llm_code(void *self, const struct briefing *b, const struct strategy *s,
                     agent_code_fn *done, void *ctx) {
    struct llm *x = self;
    struct err err = {0};
    struct role_job *j = job_new(x, b, ROLE_CODER, read_code, ctx);
    digest hash = strategy_hash(b->catalogue, s);
    j->code = done;
    j->strategy = *s;
    const struct notebook_parent *parents = notebook_take_pair(&x->notes, hash);
    job_start(j, prompt_coder(&j->prompter, s, parents, &j->prompt, &err), &err);
}

static bool read_edit(struct role_job *j, str reply, struct err *complaint) {
    struct reply_source s;
    str why;
    if (j->role == ROLE_OPTIMIZER && reply_is_done(reply, &why)) {
        j->edit(j->ctx, S(""), why, NULL);
        return true;
    }
    if (!reply_read_source(reply, j->before, j->mem, &s, complaint))
        return false;
    if (str_eq(s.source, j->before))
        return err_set(complaint, ERR_NO, "the source is the one you were shown: change it.");
    notebook_set_source(&j->llm->notes, strategy_hash(j->briefing.catalogue, &j->strategy),
                        s.source);
    j->edit(j->ctx, s.source, s.idea.n ? s.idea : S("(no idea stated)"), NULL);
    return true;
}

static struct role_job *edit_job(struct llm *x, const struct briefing *b, const struct attempt *a,
                                 enum role role, agent_edit_fn *done, void *ctx) {
    struct role_job *j = job_new(x, b, role, read_edit, ctx);
    j->edit = done;
    j->strategy = *a->strategy;
    /* The prompt shows it without blanks around it, and edits are of what was shown. */
    j->before = arena_printf(j->mem, "%.*s\n", STR_ARG(str_trim(a->source)));
    return j;
}

static void llm_debug(void *self, const struct briefing *b, const struct attempt *a, str earlier,
                      agent_edit_fn *done, void *ctx) {
    struct err err = {0};
    struct role_job *j = edit_job(self, b, a, ROLE_DEBUGGER, done, ctx);
    job_start(j, prompt_debugger(&j->prompter, a, earlier, &j->prompt, &err), &err);
}

static void llm_improve(void *self, const struct briefing *b, const struct attempt *a,
                        const struct guidance *g, agent_edit_fn *done, void *ctx) {
    struct err err = {0};
    struct role_job *j = edit_job(self, b, a, ROLE_OPTIMIZER, done, ctx);
    job_start(j, prompt_optimizer(&j->prompter, a, g, &j->prompt, &err), &err);
}

/* ---- life ---- */

static void llm_free(void *self) {
    struct llm *x = self;
    while (x->open) {
        if (x->open->call)
            x->provider->cancel(x->provider->self, x->open->call);
        job_free(x->open);
    }
    notebook_release(&x->notes);
    mem_free(x);
}

void llm_new(const struct provider *p, const struct llm_options *o, struct agent *out) {
    struct llm *x = mem_alloc(sizeof *x);
    *x = (struct llm){.provider = p, .o = *o};
    notebook_init(&x->notes);
    *out = (struct agent){.name = "llm",
                          .self = x,
                          .plan = llm_plan,
                          .cross = llm_cross,
                          .code = llm_code,
                          .align = llm_align,
                          .remarks = llm_remarks,
                          .release = llm_free,
                          .debug = llm_debug,
                          .improve = llm_improve};
}

/* Which of the two made a strategy decides who writes and aligns it: the model's are remembered by
 * their hash. A strategy that the search moved away from the model's proposal is the expert's. */

#define MODEL_SHARE 0.5        /* of the children of a generation */
#define WHO         UINT64_MAX /* the part of a slot's stream that decides it */

struct hybrid {
    struct agent *expert, *llm;
    const struct catalogue *catalogue;
    digest *mine; /* the model's */
    size_t n, cap;
    struct relay *open;
};

/* A child that the model proposes, on its way back. */
struct relay {
    struct hybrid *h;
    struct relay *next;
    agent_plan_fn *done;
    void *ctx;
};

static bool is_models(const struct hybrid *h, const struct briefing *b, const struct strategy *s) {
    digest d = strategy_hash(b->catalogue, s);
    for (size_t i = 0; i < h->n; i++)
        if (memcmp(&h->mine[i], &d, sizeof d) == 0)
            return true;
    return false;
}

static struct agent *author(struct hybrid *h, const struct briefing *b, const struct strategy *s) {
    return is_models(h, b, s) ? h->llm : h->expert;
}

static void hybrid_plan(void *self, const struct briefing *b, size_t n, struct rng r,
                        agent_plan_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->expert->plan(h->expert->self, b, n, r, done, ctx);
}

static void relay_free(struct relay *r) {
    struct relay **at = &r->h->open;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    mem_free(r);
}

static void on_child(void *ctx, const struct strategy *s, size_t n, str reason,
                     const struct err *err) {
    struct relay *r = ctx;
    struct hybrid *h = r->h;
    for (size_t i = 0; !err && i < n; i++) {
        h->mine = mem_grow(h->mine, &h->cap, h->n + 1, sizeof *h->mine);
        h->mine[h->n++] = strategy_hash(h->catalogue, &s[i]);
    }
    agent_plan_fn *done = r->done;
    void *to = r->ctx;
    relay_free(r);
    done(to, s, n, reason, err);
}

static void hybrid_cross(void *self, const struct briefing *b, const struct parent *x,
                         const struct parent *y, struct rng r, agent_plan_fn *done, void *ctx) {
    struct hybrid *h = self;
    if (!(rng_unit(rng_sub(r, WHO), 0) < MODEL_SHARE)) {
        h->expert->cross(h->expert->self, b, x, y, r, done, ctx);
        return;
    }
    struct relay *relay = mem_alloc(sizeof *relay);
    *relay = (struct relay){h, h->open, done, ctx};
    h->open = relay;
    h->catalogue = b->catalogue;
    struct briefing told = *b;
    told.by_rule = true;
    h->llm->cross(h->llm->self, &told, x, y, r, on_child, relay);
}

static void hybrid_code(void *self, const struct briefing *b, const struct strategy *s,
                        agent_code_fn *done, void *ctx) {
    struct agent *a = author(self, b, s);
    a->code(a->self, b, s, done, ctx);
}

static void hybrid_align(void *self, const struct briefing *b, const struct strategy *s,
                         const struct strategy *written, const struct record *record,
                         agent_plan_fn *done, void *ctx) {
    struct agent *a = author(self, b, s);
    a->align(a->self, b, s, written, record, done, ctx);
}

static str hybrid_remarks(void *self, const char *source_hash, struct arena *a) {
    struct hybrid *h = self;
    return h->llm->remarks(h->llm->self, source_hash, a);
}

static void hybrid_debug(void *self, const struct briefing *b, const struct attempt *a, str earlier,
                         agent_edit_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->llm->debug(h->llm->self, b, a, earlier, done, ctx);
}

static void hybrid_improve(void *self, const struct briefing *b, const struct attempt *a,
                           const struct guidance *g, agent_edit_fn *done, void *ctx) {
    struct hybrid *h = self;
    h->llm->improve(h->llm->self, b, a, g, done, ctx);
}

static void hybrid_free(void *self) {
    struct hybrid *h = self;
    while (h->open)
        relay_free(h->open);
    mem_free(h->mine);
    mem_free(h);
}

void hybrid_new(struct agent *expert, struct agent *llm, struct agent *out) {
    struct hybrid *h = mem_alloc(sizeof *h);
    *h = (struct hybrid){.expert = expert, .llm = llm};
    *out = (struct agent){.name = "hybrid",
                          .self = h,
                          .plan = hybrid_plan,
                          .cross = hybrid_cross,
                          .code = hybrid_code,
                          .align = hybrid_align,
                          .remarks = hybrid_remarks,
                          .release = hybrid_free,
                          .debug = hybrid_debug,
                          .improve = hybrid_improve};
}
