#include "device/job.h"
#include "device/role.h"

#include "tap.h"

static void launches_go_round(void) {
    struct arena *a = arena_new(1 << 20);
    struct bound_arg args[] = {{.tensor = 2}, {.tensor = -1, .value = -5}, {-1, INT64_MAX}};
    struct bound_launch l = {S("k"), {1, 2, 3}, {4, 5, 6}, 1024, args, 3};
    struct bound_plan in = {&l, 1}, out;
    struct err err = {0};
    json *j = launches_to_json(&in);
    CHECKF(launches_from_json(j, a, &out, &err), "%s", err.text);
    CHECK(out.nlaunches == 1 && str_is(out.launches[0].kernel, "k"));
    CHECK(!memcmp(out.launches[0].grid, l.grid, sizeof l.grid));
    CHECK(!memcmp(out.launches[0].block, l.block, sizeof l.block));
    CHECK(out.launches[0].shared == 1024 && out.launches[0].nargs == 3);
    CHECK(out.launches[0].args[0].tensor == 2 && out.launches[0].args[1].value == -5);
    CHECK(out.launches[0].args[2].tensor == -1 && out.launches[0].args[2].value == INT64_MAX);
    json_free(j);
    arena_free(a);
}

static void broken_launches_are_refused(void) {
    static const char *const bad[] = {
        "[{}]",
        "[{\"kernel\":\"k\",\"grid\":[1,1],\"block\":[1,1,1],\"shared\":0,\"args\":[]}]",
        "[{\"kernel\":\"k\",\"grid\":[0,1,1],\"block\":[1,1,1],\"shared\":0,\"args\":[]}]",
        "[{\"kernel\":\"k\",\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":-1,\"args\":[]}]",
        "[{\"kernel\":\"k\",\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":0,\"args\":[\"x\"]}]",
        ("[{\"kernel\":\"k\",\"grid\":[1,1,1],\"block\":[1,1,1],\"shared\":0,"
         "\"args\":[{\"tensor\":64}]}]"),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct arena *a = arena_new(1 << 20);
        struct bound_plan out;
        struct err err = {0};
        json *j = json_parse(str_view(bad[i]), &err);
        CHECKF(j && !launches_from_json(j, a, &out, &err), "row %zu", i);
        json_free(j);
        arena_free(a);
    }
}

static void counters_go_round(void) {
    struct sim_counters c = {.ctas = 1, .warp_instrs = 1ull << 40, .widest_store = 16}, d;
    json *j = counters_to_json(&c);
    CHECK(counters_from_json(j, &d) && !memcmp(&c, &d, sizeof c));
    json_set_i64(j, "flops", -1);
    CHECK(!counters_from_json(j, &d));
    json_free(j);
}

static void device_names(void) {
    static const struct {
        const char *text, *want; /* NULL: refused */
    } rows[] = {
        {"sim", "sim:h200"}, {"sim:h200", "sim:h200"}, {"sim:a100", "sim:a100"},
        {"sim:", NULL},      {"sim:none", NULL},       {"cuda", NULL},
        {"", NULL},          {"simh200", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_name d;
        struct err err = {0};
        bool ok = device_name_parse(rows[i].text, &d, &err);
        CHECKF(ok == (rows[i].want != NULL), "%s", rows[i].text);
        CHECKF(!ok || !strcmp(d.text, rows[i].want), "%s", rows[i].text);
        CHECKF(ok || err.kind == ERR_INPUT, "%s", rows[i].text);
    }
}

static const struct tap_case cases[] = {
    {"launches go round", launches_go_round},
    {"broken launches are refused", broken_launches_are_refused},
    {"counters go round", counters_go_round},
    {"device names", device_names},
};
TAP_CASES(cases)
