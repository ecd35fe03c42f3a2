#include "device/job.h"
#include "device/role.h"

#include "tap.h"

/* One of everything. */
struct whole {
    struct bound_arg args[4];
    struct bound_launch launch;
    struct bound_memset memsets[2];
    struct bound_workspace workspace;
    struct bound_tensormap map;
    struct bound_step steps[3];
    struct bound_plan plan;
};

static void whole_fill(struct whole *w) {
    *w = (struct whole){
        .args = {{.kind = ARG_TENSOR, .ref = 2},
                 {.kind = ARG_INTEGER, .value = INT64_MIN},
                 {.kind = ARG_WORKSPACE, .ref = 0},
                 {.kind = ARG_TENSORMAP, .ref = 0}},
        .launch = {.kernel = S("k"),
                   .grid = {8, 2, 3},
                   .block = {4, 5, 6},
                   .cluster = {2, 1, 1},
                   .cooperative = true,
                   .shared = 1024,
                   .nargs = 4},
        .memsets = {{ARG_WORKSPACE, 0, UINT64_MAX, 8, 32}, {ARG_TENSOR, 2, 0x3f80, 2, 7}},
        .workspace = {S("part"), DTYPE_F64, 256, 128},
        .map = {.of = ARG_WORKSPACE,
                .dtype = DTYPE_F64,
                .rank = 2,
                .extent = {4, 8},
                .stride = {32},
                .box = {4, 2},
                .step = {1, 2},
                .swizzle = 32,
                .fill_nan = true},
        .steps = {{PLAN_MEMSET, 0}, {PLAN_LAUNCH, 0}, {PLAN_MEMSET, 1}},
    };
    w->launch.args = w->args;
    w->plan = (struct bound_plan){.steps = w->steps,
                                  .nsteps = 3,
                                  .launches = &w->launch,
                                  .nlaunches = 1,
                                  .memsets = w->memsets,
                                  .nmemsets = 2,
                                  .workspaces = &w->workspace,
                                  .nworkspaces = 1,
                                  .maps = &w->map,
                                  .nmaps = 1};
    for (size_t i = 0; i < TASK_MAX_TENSORS; i++)
        w->plan.align[i] = i == 2 ? 256 : PLAN_ALIGN;
}

static void same_launch(const struct bound_launch *l, const struct bound_launch *k) {
    CHECK(str_eq(l->kernel, k->kernel) && l->shared == k->shared && l->nargs == k->nargs);
    CHECK(!memcmp(l->grid, k->grid, sizeof l->grid) &&
          !memcmp(l->block, k->block, sizeof l->block));
    CHECK(!memcmp(l->cluster, k->cluster, sizeof l->cluster) && l->cooperative == k->cooperative);
    for (size_t i = 0; i < l->nargs && l->nargs == k->nargs; i++)
        CHECK(l->args[i].kind == k->args[i].kind && l->args[i].ref == k->args[i].ref &&
              l->args[i].value == k->args[i].value);
}

static void plans_go_round(void) {
    struct arena *a = arena_new(1 << 20);
    struct bound_plan out;
    struct whole w;
    struct err err = {0};
    struct buf b;
    whole_fill(&w);
    json *j = plan_to_json(&w.plan);
    buf_init(&b, 1u << 20);
    json_write(j, &b);
    json_free(j);
    j = json_parse(buf_str(&b), &err); /* as it arrives */
    bool ok = j && plan_from_json(j, a, &out, &err);
    CHECKF(ok, "%s", err.text);
    if (ok) {
        CHECK(out.nsteps == 3 && out.nlaunches == 1 && out.nmemsets == 2 && out.nworkspaces == 1);
        for (size_t i = 0; i < 3; i++)
            CHECK(out.steps[i].kind == w.steps[i].kind && out.steps[i].index == w.steps[i].index);
        same_launch(&out.launches[0], &w.launch);
        for (size_t i = 0; i < 2; i++) {
            const struct bound_memset *m = &out.memsets[i], *n = &w.memsets[i];
            CHECK(m->of == n->of && m->ref == n->ref && m->pattern == n->pattern &&
                  m->size == n->size && m->count == n->count);
        }
        const struct bound_workspace *s = &out.workspaces[0];
        CHECK(str_is(s->name, "part") && s->dtype == DTYPE_F64 && s->bytes == 256 &&
              s->align == 128);
        const struct bound_tensormap *m = &out.maps[0];
        CHECK(out.nmaps == 1 && m->of == ARG_WORKSPACE && m->ref == 0 && m->dtype == DTYPE_F64);
        CHECK(m->rank == 2 && !memcmp(m->extent, w.map.extent, sizeof m->extent) &&
              !memcmp(m->stride, w.map.stride, sizeof m->stride) &&
              !memcmp(m->box, w.map.box, sizeof m->box) &&
              !memcmp(m->step, w.map.step, sizeof m->step));
        CHECK(m->swizzle == 32 && m->fill_nan);
        CHECK(!memcmp(out.align, w.plan.align, sizeof out.align));
    }
    json_free(j);
    buf_release(&b);
    arena_free(a);
}

/* The good message with one piece of text exchanged. */
static void broken_plans_are_refused(void) {
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"\"kernel\":\"k\"", "\"kernel\":1"},
        {"\"grid\":[8,2,3]", "\"grid\":[8,2]"},
        {"\"grid\":[8,2,3]", "\"grid\":[8,2,3,4]"},
        {"\"grid\":[8,2,3]", "\"grid\":[0,2,3]"},
        {"\"grid\":[8,2,3]", "\"grid\":[4294967296,2,3]"},
        {"\"block\":[4,5,6]", "\"block\":[1025,5,6]"},
        {"\"cluster\":[2,1,1]", "\"cluster\":[17,1,1]"},
        {"\"cooperative\":true", "\"cooperative\":1"},
        {"\"shared\":1024", "\"shared\":-1"},
        {"{\"tensor\":2},", "{\"tensor\":64},"},
        {"{\"tensor\":2},", "{\"tensor\":-1},"},
        {"{\"tensor\":2},", "{\"nothing\":0},"},
        {"{\"tensor\":2},", "\"x\","},
        {"{\"map\":0}", "{\"map\":1}"},
        {"{\"workspace\":0},{\"map\":0}", "{\"workspace\":1},{\"map\":0}"},
        {"\"pattern\":-1", "\"pattern\":null"},
        {"\"size\":8", "\"size\":3"},
        {"\"size\":8", "\"size\":16"},
        {"\"count\":32", "\"count\":33"},
        {"\"count\":7", "\"count\":0"},
        {"\"count\":7", "\"count\":9223372036854775807"},
        {"\"tensor\":2,\"pattern\"", "\"map\":0,\"pattern\""},
        {"\"bytes\":256", "\"bytes\":0"},
        {"\"bytes\":256", "\"bytes\":-8"},
        {"\"align\":128", "\"align\":96"},
        {"\"align\":128", "\"align\":512"},
        {"\"align\":128", "\"align\":8"},
        {"\"name\":\"part\",\"dtype\":\"f64\"", "\"name\":\"part\",\"dtype\":\"f65\""},
        {"\"extent\":[4,8]", "\"extent\":[]"},
        {"\"extent\":[4,8]", "\"extent\":[4,8,1,1,1,1]"},
        {"\"extent\":[4,8]", "\"extent\":[4,4294967296]"},
        {"\"stride\":[32]", "\"stride\":[]"},
        {"\"stride\":[32]", "\"stride\":[1099511627776]"},
        {"\"box\":[4,2]", "\"box\":[4,257]"},
        {"\"step\":[1,2]", "\"step\":[1,9]"},
        {"\"swizzle\":32", "\"swizzle\":48"},
        {"\"swizzle\":32", "\"swizzle\":16"},
        {"\"fill_nan\":true", "\"fill_nan\":\"yes\""},
        {"{\"memset\":1}", "{\"memset\":2}"},
        {"{\"launch\":0}", "{\"launch\":1}"},
        {"{\"launch\":0}", "{}"},
        {"{\"launch\":0}", "7"},
        {"[16,16,256", "[16,16,255"},
        {"[16,16,256", "[16,256"},
        {"\"steps\":[", "\"stairs\":["},
        {"\"maps\":[{", "\"maps\":{\"0\":[{"},
    };
    struct whole w;
    struct err err = {0};
    struct buf good;
    whole_fill(&w);
    json *j = plan_to_json(&w.plan);
    buf_init(&good, 1u << 20);
    json_write(j, &good);
    json_free(j);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct arena *a = arena_new(1 << 20);
        struct bound_plan out;
        str text = buf_str(&good), from = str_view(rows[i].from);
        size_t at = str_find(text, from);
        CHECKF(at < text.n, "%s is not in %s", rows[i].from, good.p);
        str bad = arena_printf(a, "%.*s%s%s", (int)at, text.p, rows[i].to, text.p + at + from.n);
        j = json_parse(bad, &err);
        CHECKF(!j || !plan_from_json(j, a, &out, &err), "%s passed", rows[i].to);
        json_free(j);
        arena_free(a);
    }
    struct arena *a = arena_new(1 << 20);
    struct bound_plan out;
    CHECK(!plan_from_json(NULL, a, &out, &err));
    arena_free(a);
    buf_release(&good);
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
        {"sim", "sim:h200"},  {"sim:h200", "sim:h200"}, {"sim:a100", "sim:a100"},
        {"sim:", NULL},       {"sim:none", NULL},       {"", NULL},
        {"simh200", NULL},    {"cuda", "cuda:0"},       {"cuda:0", "cuda:0"},
        {"cuda:7", "cuda:7"}, {"cuda:", NULL},          {"cuda:x", NULL},
        {"cuda:-1", NULL},    {"cuda:256", NULL},       {"cudah200", NULL},
    };
    struct arena *a = arena_new(1 << 20);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct device_name d;
        struct err err = {0};
        bool ok = device_name_parse(rows[i].text, a, &d, &err);
        CHECKF(ok == (rows[i].want != NULL), "%s", rows[i].text);
        CHECKF(!ok || !rows[i].want || !strcmp(d.text, rows[i].want), "%s", rows[i].text);
        CHECKF(ok || err.kind == ERR_INPUT, "%s", rows[i].text);
    }
    arena_free(a);
}

static void shapes_are_told_apart(void) {
    struct arena *a = arena_new(16u << 20);
    struct binding own[] = {{S("R"), 3}, {S("C"), 5}}, other[] = {{S("R"), 5}, {S("C"), 3}};
    struct binding *read;
    struct task *task;
    struct inst *in, *turned;
    struct err err = {0};
    size_t n = 0;
    str text = S("task t \"t\"\ndim R = 2, C = 4, N = R*C\nin x[N] : f32 ~ normal(0,1)\n"
                 "out y[N] : f32\ny[i] = x[i]\n");
    bool ok = task_parse(S("t.task"), text, a, &task, &err) &&
              task_bind(task, own, 2, a, &in, &err) && task_bind(task, other, 2, a, &turned, &err);
    CHECKF(ok, "%s", err.text);
    if (ok) {
        json *j = set_to_json(in);
        CHECK(set_is(j, in) && !set_is(j, turned)); /* as many elements, another shape */
        CHECK(set_from_json(j, a, &read, &n, &err) && n == 2 && read[1].value == 5);
        json_set_i64(j, "K", 1);
        CHECK(!set_is(j, in));
        json_free(j);
    }
    arena_free(a);
}

static void lines_and_findings(void) {
    struct sim_line lines[] = {{.file = S("kernel.cu"),
                                .line = 7,
                                .warp_instrs = 1,
                                .lane_instrs = 2,
                                .flops = 3,
                                .tensor_flops = 4,
                                .divergent_branches = 5,
                                .requests = 6,
                                .sectors = 7,
                                .bytes = 8,
                                .shared_requests = 9,
                                .shared_wavefronts = 10,
                                .shared_conflicts = 11},
                               {.file = S("")}};
    struct sim_result r = {.lines = lines, .nlines = 2};
    struct sim_findings f = {.n = 1,
                             .list = {{.check = SIM_CHECK_RACE, .src_line = 3, .other_line = 4}}};
    json *j = lines_to_json(&r), *k = findings_to_json(&f);
    struct sim_line back;
    int64_t other = 0;
    str check = {0};
    CHECK(json_len(j) == 2 && line_from_json(json_at(j, 0), &back));
    CHECK(str_eq(back.file, lines[0].file) && back.line == 7 && back.warp_instrs == 1 &&
          back.lane_instrs == 2 && back.flops == 3 && back.tensor_flops == 4 &&
          back.divergent_branches == 5 && back.requests == 6 && back.sectors == 7 &&
          back.bytes == 8 && back.shared_requests == 9 && back.shared_wavefronts == 10 &&
          back.shared_conflicts == 11);
    CHECK(!line_from_json(k, &back) && !line_from_json(NULL, &back));
    CHECK(json_get_str(json_at(k, 0), "check", &check) && str_is(check, "race"));
    CHECK(json_get_i64(json_at(k, 0), "other_line", &other) && other == 4);
    json_free(j);
    json_free(k);
}

static const struct tap_case cases[] = {
    {"lines and findings travel whole", lines_and_findings},
    {"shapes are told apart", shapes_are_told_apart},
    {"plans go round", plans_go_round},
    {"broken plans are refused", broken_plans_are_refused},
    {"counters go round", counters_go_round},
    {"device names", device_names},
};
TAP_CASES(cases)
