/* Records of measured candidates: what is too fast is a verdict, alone and beside another. */
#include "eval/record.h"
#include "tap.h"

#include <math.h>

#define FLOOR_S 1e-5

static const char task_text[] = "task double \"D\"\ndim N = 64\nin x[N] : f32 ~ normal(0,1)\n"
                                "out y[N] : f32\ny[i] = 2 * x[i]\ncheck N = 3\n";

static struct arena *mem;
static struct evaluator_options options;
static const struct roofline limit = {.limit_s = 1.2e-5, .memory_bound = true};
static struct err err;

/* A worker's result: three samples of each of one or two modules. */
struct fake {
    struct result result;
    struct result_times times[2];
    double samples[4][3];
};

static const struct result *result(struct fake *f, enum verdict v, double device_s, double host_s,
                                   double other_s) {
    const double all[4] = {device_s, host_s, other_s, other_s};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 3; k++)
            f->samples[i][k] = all[i];
    for (size_t i = 0; i < 2; i++)
        f->times[i] = (struct result_times){f->samples[2 * i], 3, f->samples[2 * i + 1], 3};
    f->result = (struct result){.verdict = v, .times = f->times, .ntimes = other_s > 0 ? 2 : 1};
    return &f->result;
}

static void check_record(const char *name, struct record *r, enum verdict v, double time_s) {
    CHECKF(r->verdict == v, "%s: %s", name, verdict_name(r->verdict));
    CHECKF(r->accepted == (v == VERDICT_ACCEPTED), "%s", name);
    CHECKF(!r->accepted || (r->has_time_s && fabs(r->time_s - time_s) < 1e-12), "%s: %g", name,
           r->time_s);
    record_free(r);
}

static const struct {
    const char *name;
    double device_s, host_s;
    enum verdict verdict;
} rows[] = {
    {"as it should be", 2e-5, 2.2e-5, VERDICT_ACCEPTED},
    {"below the floor", 5e-6, 6e-6, VERDICT_IMPOSSIBLE},
    {"just above it", 0.98e-5, 1e-5, VERDICT_ACCEPTED},
    {"the host saw more", 2e-5, 1e-3, VERDICT_IMPOSSIBLE},
};

static void alone(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    struct fake f;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_record(
            rows[i].name,
            record_result(&in, result(&f, VERDICT_ACCEPTED, rows[i].device_s, rows[i].host_s, 0)),
            rows[i].verdict, rows[i].device_s);
}

/* The times of a duel take the place of those before it, and are held to the same. */
static void beside_another(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    struct fake alone, both;
    const struct result *first = result(&alone, VERDICT_ACCEPTED, 3e-5, 3.1e-5, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct result *duel =
            result(&both, VERDICT_ACCEPTED, rows[i].device_s, rows[i].host_s, 2.5e-5);
        check_record(rows[i].name, record_duel(&in, first, duel), rows[i].verdict,
                     rows[i].device_s);
    }
    check_record("no duel", record_duel(&in, first, NULL), VERDICT_ACCEPTED, 3e-5);
    check_record("wrong in the duel",
                 record_duel(&in, first, result(&both, VERDICT_DRIFT, 2e-5, 2.1e-5, 2.5e-5)),
                 VERDICT_DRIFT, 0);
}

/* Of blocks that stand for all of a launch: what they ask memory for may scatter, and then their
 * mean says little; where each asks for the same, it says all. */
static void few_blocks(void) {
    static const struct {
        const char *name;
        uint64_t ctas, gangs, kib, squares;
        enum verdict verdict;
    } few[] = {
        {"all blocks, half of the bytes", 64, 64, 6400, 640000, VERDICT_IMPOSSIBLE},
        {"four equal blocks", 4, 4, 400, 40000, VERDICT_IMPOSSIBLE},
        {"four blocks, one of them smaller", 4, 4, 390, 38100, VERDICT_IMPOSSIBLE},
        {"four blocks, one at the edge", 4, 4, 301, 30001, VERDICT_ACCEPTED},
        {"two blocks, one at the edge", 2, 2, 101, 10001, VERDICT_ACCEPTED},
        {"one cluster of blocks", 4, 1, 400, 160000, VERDICT_ACCEPTED},
    };
    struct bound_launch launch = {
        .kernel = S("k"), .grid = {64, 1, 1}, .block = {256, 1, 1}, .cluster = {1, 1, 1}};
    struct trials trials = {.task_plan = {.launches = &launch, .nlaunches = 1}};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        struct sim_counters c = {.ctas = few[i].ctas,
                                 .ctas_total = 64,
                                 .gangs = few[i].gangs,
                                 .gang_kib = few[i].kib,
                                 .gang_kib_squares = few[i].squares,
                                 .footprint_load_sectors = 1 << 20};
        struct result said = {.verdict = VERDICT_ACCEPTED, .counters = &c, .ncounters = 1};
        struct record_input in = {
            .options = &options, .limit = &limit, .floor_s = 1.8e-5, .trials = &trials};
        struct record *r = record_result(&in, &said);
        CHECKF(r->verdict == few[i].verdict, "%s: %s", few[i].name, verdict_name(r->verdict));
        CHECKF(!r->accepted || r->time_s >= in.floor_s, "%s: %g", few[i].name, r->time_s);
        record_free(r);
    }
}

/* Whether the record says why, in other words than blanks. */
static bool says_why(struct record *r) {
    bool ok = str_trim(r->why).n > 0;
    record_free(r);
    return ok;
}

static void reasons(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    struct fake f;
    for (int i = 0; i < VERDICT_COUNT; i++) {
        enum verdict v = (enum verdict)i;
        bool rejected = v != VERDICT_ACCEPTED;
        struct record *r = record_new(VERDICT_ACCEPTED, S(""));
        CHECKF(says_why(record_verdict(&in, v, S(" \n"))) || !rejected, "%s", verdict_name(v));
        CHECKF(says_why(record_result(&in, result(&f, v, 2e-5, 2.1e-5, 0))) == rejected, "%s",
               verdict_name(v));
        record_set_verdict(r, v, S(""));
        CHECKF(says_why(r) == rejected, "%s", verdict_name(v));
    }
    CHECK(says_why(record_verdict(&in, VERDICT_WRONG, S("its own words"))));
}

/* Everything that a record may have, read, written and copied. */
static void goes_round(void) {
    static const char text[] =
        "{\"schema\":2,\"verdict\":\"wrong\",\"accepted\":false,\"why\":\"w\",\"ordinal\":7,"
        "\"parents\":[2,5],\"step\":\"crossover\",\"structure\":\"rows by warps\",\"phases\":{"
        "\"proposed_at\":1.5,\"decided_at\":2.5},\"launches\":[],\"shape\":\"N=3\",\"data\":"
        "\"signed\","
        "\"details\":{\"verdict\":\"wrong\",\"why\":\"w\",\"at\":0,\"worst\":[null],\"rms\":[],"
        "\"mismatches\":[{\"element\":\"y[0]\",\"expected\":1.0,\"got\":null}]},\"runs\":[],"
        "\"confirmed\":{\"verdict\":\"accepted\",\"accepted\":true,\"why\":\"\",\"launches\":[],"
        "\"runs\":[]}}";
    struct record *r = record_parse(str_view(text), &err);
    CHECKF(r, "%s", err.text);
    if (!r)
        return;
    CHECK(r->ordinal == 7 && r->nparents == 2 && r->parents[1] == 5 && r->phases->has_decided_at);
    CHECK(isnan(r->details->mismatches[0].got) && r->confirmed->accepted);
    struct record *copy = record_copy(r);
    struct buf b;
    record_free(r);
    buf_init(&b, 1 << 16);
    record_write(copy, &b);
    CHECKF(str_is(buf_str(&b), text), "%.*s", STR_ARG(buf_str(&b)));
    buf_release(&b);
    record_free(copy);
}

static void refused(void) {
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"{}", "record: verdict: a name is needed"},
        {"{\"verdict\":\"great\"}", "record: verdict: 'great' is unknown"},
        {"{\"verdict\":\"wrong\",\"kernels\":[{\"registers\":\"9\"}]}",
         "record: kernels: 0: registers: an integer is needed"},
        {"{\"verdict\":\"wrong\",\"parents\":[-1]}", "record: parents: 0: -1 is not from 0"},
        {"{\"verdict\":\"wrong\",\"confirmed\":{\"verdict\":0}}",
         "record: confirmed: verdict: a name is needed"},
        {"{\"schema\":3,\"verdict\":\"wrong\"}",
         "the record was written by a newer cutepilot (schema 3, this one knows 2)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct record *r = record_parse(str_view(bad[i].text), &err);
        CHECKF(!r && str_starts(str_view(err.text), str_view(bad[i].says)), "%s: %s", bad[i].text,
               err.text);
        record_free(r);
    }
    struct record *old = record_parse(S("{\"verdict\":\"wrong\",\"later\":[{}]}"), &err);
    CHECKF(old && !old->has_schema, "%s", err.text); /* before schemas, or of one yet to come */
    record_free(old);
}

static const struct tap_case cases[] = {
    {"timed alone", alone},
    {"timed beside another", beside_another},
    {"few blocks for all", few_blocks},
    {"no rejection without a reason", reasons},
    {"records go round", goes_round},
    {"what is wrong in one is named", refused},
};

int main(void) {
    struct task *task;
    struct inst *inst;
    mem = arena_new(64u << 20);
    if (!task_parse(S("t.task"), str_view(task_text), mem, &task, &err) ||
        !task_bind(task, NULL, 0, mem, &inst, &err) ||
        !device_name_parse("sim", mem, &options.device, &err)) {
        printf("Bail out! %s\n", err.text);
        return 1;
    }
    options.task = task;
    options.inst = inst;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return failed;
}
