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

static json *parsed(const char *format, ...) __attribute__((format(printf, 1, 2)));
static json *parsed(const char *format, ...) {
    char line[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(line, sizeof line, format, ap);
    va_end(ap);
    json *j = json_parse(str_view(line), &err);
    CHECKF(j, "%s: %s", line, err.text);
    return j;
}

/* A worker's result: three samples of each of one or two modules. */
static json *result(const char *verdict, double device_s, double host_s, double other_s) {
    const char *times = "{\"samples_s\": [%g, %g, %g], \"host_s\": [%g, %g, %g]}";
    char mine[256], other[256] = "";
    snprintf(mine, sizeof mine, times, device_s, device_s, device_s, host_s, host_s, host_s);
    if (other_s > 0) {
        other[0] = ',';
        snprintf(other + 1, sizeof other - 1, times, other_s, other_s, other_s, other_s, other_s,
                 other_s);
    }
    return parsed("{\"verdict\": \"%s\", \"why\": \"\", \"times\": [%s%s]}", verdict, mine, other);
}

static void check_record(const char *name, json *r, const char *verdict, double time_s) {
    str is = S("?");
    bool accepted = false;
    double got = INFINITY;
    json_get_str(r, "verdict", &is);
    json_get_bool(r, "accepted", &accepted);
    json_get_f64(r, "time_s", &got);
    CHECKF(str_is(is, verdict), "%s: %.*s", name, STR_ARG(is));
    CHECKF(accepted == !strcmp(verdict, "accepted"), "%s", name);
    CHECKF(!accepted || fabs(got - time_s) < 1e-12, "%s: %g", name, got);
    json_free(r);
}

static const struct {
    const char *name;
    double device_s, host_s;
    const char *verdict;
} rows[] = {
    {"as it should be", 2e-5, 2.2e-5, "accepted"},
    {"below the floor", 5e-6, 6e-6, "impossible"},
    {"just above it", 0.98e-5, 1e-5, "accepted"},
    {"the host saw more", 2e-5, 1e-3, "impossible"},
};

static void alone(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json *seen = result("accepted", rows[i].device_s, rows[i].host_s, 0);
        check_record(rows[i].name, record_result(&in, seen), rows[i].verdict, rows[i].device_s);
        json_free(seen);
    }
}

/* The times of a duel take the place of those before it, and are held to the same. */
static void beside_another(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    json *first = result("accepted", 3e-5, 3.1e-5, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json *duel = result("accepted", rows[i].device_s, rows[i].host_s, 2.5e-5);
        check_record(rows[i].name, record_duel(&in, first, duel), rows[i].verdict,
                     rows[i].device_s);
        json_free(duel);
    }
    check_record("no duel", record_duel(&in, first, NULL), "accepted", 3e-5);
    json *wrong = result("drift", 2e-5, 2.1e-5, 2.5e-5);
    check_record("wrong in the duel", record_duel(&in, first, wrong), "drift", 0);
    json_free(wrong);
    json_free(first);
}

/* Whether the record says why, in other words than blanks. */
static bool says_why(json *r) {
    str why = {0};
    bool ok = json_get_str(r, "why", &why) && str_trim(why).n > 0;
    json_free(r);
    return ok;
}

static void reasons(void) {
    struct record_input in = {.options = &options, .limit = &limit, .floor_s = FLOOR_S};
    for (int v = 0; v < VERDICT_COUNT; v++) {
        const char *name = verdict_name((enum verdict)v);
        bool rejected = v != VERDICT_ACCEPTED;
        json *none = parsed("{\"verdict\": \"%s\"}", name), *r = record_result(&in, none);
        json *blank = result(name, 2e-5, 2.1e-5, 0);
        CHECKF(says_why(record_verdict(&in, (enum verdict)v, S(" \n"))) || !rejected, "%s", name);
        CHECKF(says_why(record_result(&in, blank)) == rejected, "%s", name);
        record_reject(r, str_view(name), S(""));
        CHECKF(says_why(r) == rejected, "%s", name);
        json_free(none);
        json_free(blank);
    }
    json *nothing = json_object();
    CHECK(says_why(record_result(&in, nothing)));
    CHECK(says_why(record_verdict(&in, VERDICT_WRONG, S("its own words"))));
    json_free(nothing);
}

static const struct tap_case cases[] = {
    {"timed alone", alone},
    {"timed beside another", beside_another},
    {"no rejection without a reason", reasons},
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
