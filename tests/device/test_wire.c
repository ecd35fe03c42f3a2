#include "device/role.h"
#include "device/wire.h"

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

static bool plan_read(const json *j, struct arena *a, struct bound_plan *out, struct err *err) {
    return wire_read(&bound_plan_fields, j, a, out, err) && plan_check(out, err);
}

static void plans_go_round(void) {
    struct arena *a = arena_new(1 << 20);
    struct bound_plan out;
    struct whole w;
    struct err err = {0};
    struct buf b;
    whole_fill(&w);
    json *j = fields_to_json(&bound_plan_fields, &w.plan);
    buf_init(&b, 1u << 20);
    json_write(j, &b);
    json_free(j);
    j = json_parse(buf_str(&b), &err); /* as it arrives */
    bool ok = j && plan_read(j, a, &out, &err);
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
        {"{\"kind\":\"tensor\",\"ref\":2}", "{\"kind\":\"tensor\",\"ref\":64}"},
        {"{\"kind\":\"tensor\",\"ref\":2}", "{\"kind\":\"tensor\",\"ref\":-1}"},
        {"{\"kind\":\"tensor\",\"ref\":2}", "{\"kind\":\"nothing\",\"ref\":2}"},
        {"{\"kind\":\"tensor\",\"ref\":2},", "\"x\","},
        {"{\"kind\":\"map\"}", "{\"kind\":\"map\",\"ref\":1}"},
        {"{\"kind\":\"workspace\"}", "{\"kind\":\"workspace\",\"ref\":1}"},
        {"\"pattern\":-1", "\"pattern\":null"},
        {"\"size\":8", "\"size\":3"},
        {"\"size\":8", "\"size\":16"},
        {"\"count\":32", "\"count\":33"},
        {"\"count\":7", "\"count\":0"},
        {"\"count\":7", "\"count\":9223372036854775807"},
        {"\"of\":\"tensor\",\"ref\":2,\"pattern\"", "\"of\":\"map\",\"ref\":0,\"pattern\""},
        {"\"of\":\"tensor\",\"ref\":2,\"pattern\"", "\"of\":\"integer\",\"ref\":0,\"pattern\""},
        {"\"bytes\":256", "\"bytes\":0"},
        {"\"bytes\":256", "\"bytes\":-8"},
        {"\"align\":128", "\"align\":96"},
        {"\"align\":128", "\"align\":512"},
        {"\"align\":128", "\"align\":8"},
        {"\"name\":\"part\",\"dtype\":\"f64\"", "\"name\":\"part\",\"dtype\":\"f65\""},
        {"\"extent\":[4,8,0,0,0]", "\"extent\":[]"},
        {"\"extent\":[4,8,0,0,0]", "\"extent\":[4,0,0,0,0]"},
        {"\"rank\":2", "\"rank\":0"},
        {"\"rank\":2", "\"rank\":6"},
        {"\"rank\":2", "\"rank\":3"},
        {"\"extent\":[4,8,0,0,0]", "\"extent\":[4,8,1,1,1,1]"},
        {"\"extent\":[4,8,0,0,0]", "\"extent\":[4,4294967296,0,0,0]"},
        {"\"stride\":[32,0,0,0]", "\"stride\":[0,0,0,0]"},
        {"\"stride\":[32,0,0,0]", "\"stride\":[1099511627776,0,0,0]"},
        {"\"box\":[4,2,0,0,0]", "\"box\":[4,257,0,0,0]"},
        {"\"step\":[1,2,0,0,0]", "\"step\":[1,9,0,0,0]"},
        {"\"swizzle\":32", "\"swizzle\":48"},
        {"\"swizzle\":32", "\"swizzle\":16"},
        {"\"fill_nan\":true", "\"fill_nan\":\"yes\""},
        {"\"kind\":\"memset\",\"index\":1", "\"kind\":\"memset\",\"index\":2"},
        {"\"kind\":\"launch\",\"index\":0", "\"kind\":\"launch\",\"index\":1"},
        {"{\"kind\":\"launch\",\"index\":0}", "{}"},
        {"{\"kind\":\"launch\",\"index\":0}", "7"},
        {"[16,16,256", "[16,16,255"},
        {"[16,16,256", "[16,256"},
        {"\"steps\":[", "\"stairs\":["},
        {"\"maps\":[{", "\"maps\":{\"0\":[{"},
    };
    struct whole w;
    struct err err = {0};
    struct buf good;
    whole_fill(&w);
    json *j = fields_to_json(&bound_plan_fields, &w.plan);
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
        CHECKF(!j || !plan_read(j, a, &out, &err), "%s passed", rows[i].to);
        json_free(j);
        arena_free(a);
    }
    struct arena *a = arena_new(1 << 20);
    struct bound_plan out;
    CHECK(!plan_read(NULL, a, &out, &err));
    arena_free(a);
    buf_release(&good);
}

/* The task's own shape is told up to four times, beside 32 others, in a frame of 16 MiB. */
static void the_largest_plans_fit_a_job(void) {
    struct arena *a = arena_new(64u << 20);
    struct bound_plan p = {.launches = arena_array(a, struct bound_launch, CANDIDATE_MAX_LAUNCHES),
                           .nlaunches = CANDIDATE_MAX_LAUNCHES,
                           .steps = arena_array(a, struct bound_step, CANDIDATE_MAX_LAUNCHES),
                           .nsteps = CANDIDATE_MAX_LAUNCHES};
    struct bound_arg *args = arena_array(a, struct bound_arg, CANDIDATE_MAX_ARGS);
    struct buf b;
    for (size_t i = 0; i < CANDIDATE_MAX_ARGS; i++)
        args[i] = (struct bound_arg){.kind = ARG_INTEGER, .value = INT64_MIN};
    for (size_t i = 0; i < CANDIDATE_MAX_LAUNCHES; i++) {
        p.steps[i].index = i;
        p.launches[i] = (struct bound_launch){.kernel = S("a_kernel_with_quite_a_long_name"),
                                              .args = args,
                                              .nargs = CANDIDATE_MAX_ARGS};
    }
    json *j = fields_to_json(&bound_plan_fields, &p);
    buf_init(&b, 16u << 20);
    json_write(j, &b);
    CHECKF(!b.failed && b.n * (32 + 4) < (16u << 20), "%zu bytes", b.n);
    buf_release(&b);
    json_free(j);
    arena_free(a);
}

static void counters_go_round(void) {
    struct arena *a = arena_new(1 << 20);
    struct sim_counters c = {.ctas = 1, .warp_instrs = 1ull << 40, .widest_store = 16}, d;
    struct err err = {0};
    json *j = fields_to_json(&sim_counters_fields, &c);
    CHECK(wire_read(&sim_counters_fields, j, a, &d, &err) && !memcmp(&c, &d, sizeof c));
    json_set_i64(j, "flops", -1);
    CHECK(!wire_read(&sim_counters_fields, j, a, &d, &err));
    CHECKF(err.kind == ERR_ENV && !strncmp(err.text, "bad message: flops: -1", 22), "%s", err.text);
    json_set_i64(j, "flops", 1);
    json_set_i64(j, "widest_load", INT64_C(1) << 32); /* more than its member has room for */
    CHECK(!wire_read(&sim_counters_fields, j, a, &d, &err));
    json_free(j);
    arena_free(a);
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
        struct binding *set = set_of(in, a, &n);
        CHECK(n == 2 && set[1].value == 5);
        CHECK(set_is(set, n, in) && !set_is(set, n, turned)); /* as many elements, another shape */
        CHECK(!set_is(set, 1, in));
        struct binding more[] = {set[0], set[1], {S("K"), 1}};
        CHECK(!set_is(more, 3, in));
    }
    arena_free(a);
}

static void lines_go_round(void) {
    struct arena *a = arena_new(1 << 20);
    struct sim_line line = {.file = S("kernel.cu"),
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
                    back;
    struct err err = {0};
    json *j = fields_to_json(&sim_line_fields, &line), *none = json_array();
    CHECK(wire_read(&sim_line_fields, j, a, &back, &err));
    CHECK(str_eq(back.file, line.file) && back.line == 7 && back.warp_instrs == 1 &&
          back.lane_instrs == 2 && back.flops == 3 && back.tensor_flops == 4 &&
          back.divergent_branches == 5 && back.requests == 6 && back.sectors == 7 &&
          back.bytes == 8 && back.shared_requests == 9 && back.shared_wavefronts == 10 &&
          back.shared_conflicts == 11);
    CHECK(!wire_read(&sim_line_fields, none, a, &back, &err));
    CHECK(!wire_read(&sim_line_fields, NULL, a, &back, &err));
    json_free(none);
    json_free(j);
    arena_free(a);
}

static const struct tap_case cases[] = {
    {"lines go round", lines_go_round},
    {"shapes are told apart", shapes_are_told_apart},
    {"plans go round", plans_go_round},
    {"broken plans are refused", broken_plans_are_refused},
    {"the largest plans fit a job", the_largest_plans_fit_a_job},
    {"counters go round", counters_go_round},
    {"device names", device_names},
};
TAP_CASES(cases)
