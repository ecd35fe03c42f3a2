/* Profile facts, in words and units that a kernel engineer uses. On the simulator they are the time
 * model's parts and exact counters; on a GPU the measured time and what the compiler said. */
#include "agent/llm/evidence.h"

#include <stdio.h>
#include <string.h>

#define US 1e6

static int64_t whole(const json *j, const char *key) {
    int64_t v = 0;
    json_get_i64(j, key, &v);
    return v;
}

static double real(const json *j, const char *key) {
    double v = 0;
    json_get_f64(j, key, &v);
    return v;
}

static void put_sizes(const json *list, struct buf *out) {
    for (size_t d = 0; d < json_len(list); d++) {
        int64_t v = 1;
        json_to_i64(json_at(list, d), &v);
        buf_printf(out, "%s%lld", d ? "x" : "", (long long)v);
    }
}

/* The parts of the model that matter, each as if it were alone: those of a twentieth of the time
 * and more. */
static void put_parts(const json *e, struct buf *out) {
    static const struct {
        const char *key, *what;
    } parts[] = {{"dram_s", "DRAM"},           {"l2_s", "L2"},
                 {"issue_s", "issue slots"},   {"pipe_s", "arithmetic pipes"},
                 {"tensor_s", "tensor cores"}, {"lsu_s", "load/store unit"},
                 {"latency_s", "latency"},     {"dispatch_s", "block dispatch"},
                 {"launch_s", "launch"}};
    double all = real(e, "time_s");
    const char *gap = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double s = real(e, parts[i].key);
        if (!(s >= 0.05 * all))
            continue;
        buf_printf(out, "%s%s %.3g us", gap, parts[i].what, s * US);
        gap = ", ";
    }
}

static void put_traffic(const json *c, struct buf *out) {
    double loads = (double)whole(c, "load_requests"), stores = (double)whole(c, "store_requests");
    double shared = (double)whole(c, "shared_requests");
    double warps = (double)whole(c, "warp_instrs");
    double share = whole(c, "ctas") ? (double)whole(c, "ctas_total") / (double)whole(c, "ctas") : 1;
    buf_printf(
        out,
        "  global loads %.3g MB in %.3g requests (%.1f sectors of 32 bytes each, widest %lld "
        "bytes a lane), stores %.3g MB (%.1f sectors each, widest %lld)\n",
        share * (double)whole(c, "load_bytes") / 1e6, share * loads,
        loads > 0 ? (double)whole(c, "load_sectors") / loads : 0,
        (long long)whole(c, "widest_load"), share * (double)whole(c, "store_bytes") / 1e6,
        stores > 0 ? (double)whole(c, "store_sectors") / stores : 0,
        (long long)whole(c, "widest_store"));
    if (shared > 0)
        buf_printf(out,
                   "  shared memory %.3g requests, %.2f wavefronts each, %.3g bank conflicts\n",
                   share * shared, (double)whole(c, "shared_wavefronts") / shared,
                   share * (double)whole(c, "shared_conflicts"));
    buf_printf(
        out,
        "  warp instructions %.3g: fp32 %.0f%%, integer %.0f%%, special %.0f%%, memory "
        "%.0f%%, tensor %.0f%%, control %.0f%%; %lld divergent branches\n",
        share * warps, 100 * (double)whole(c, "warp_fp32") / warps,
        100 * (double)whole(c, "warp_int") / warps, 100 * (double)whole(c, "warp_special") / warps,
        100 * (double)whole(c, "warp_memory") / warps,
        100 * (double)whole(c, "warp_tensor") / warps,
        100 * (double)whole(c, "warp_control") / warps, (long long)whole(c, "divergent_branches"));
}

static void put_launch(const json *e, const json *counters, struct buf *out) {
    str kernel = S("?"), bound = S("?"), limiter = S("?");
    json_get_str(e, "kernel", &kernel);
    json_get_str(e, "bound", &bound);
    json_get_str(e, "occupancy_limiter", &limiter);
    buf_printf(out, "- kernel %.*s: %.4g us, bound by %.*s; grid ", STR_ARG(kernel),
               real(e, "time_s") * US, STR_ARG(bound));
    put_sizes(json_get(e, "grid"), out);
    buf_puts(out, S(", block "));
    put_sizes(json_get(e, "block"), out);
    buf_printf(out,
               "\n  %lld registers a thread, %lld bytes spilled, %lld bytes of shared memory a "
               "block; %lld blocks and %lld warps an SM (limited by %.*s), %.2f waves\n",
               (long long)whole(e, "registers"), (long long)whole(e, "spill_bytes"),
               (long long)whole(e, "shared_bytes"), (long long)whole(e, "blocks_sm"),
               (long long)whole(e, "warps_sm"), STR_ARG(limiter), real(e, "waves"));
    buf_puts(out, S("  resources, if each were alone (together more than the largest, in small "
                    "kernels by 10 to 40%): "));
    put_parts(e, out);
    buf_putc(out, '\n');
    if (counters && whole(counters, "warp_instrs") > 0)
        put_traffic(counters, out);
}

static void put_static(const json *k, struct buf *out) {
    str name = S("?");
    json_get_str(k, "name", &name);
    buf_printf(out,
               "- kernel %.*s: %lld registers a thread, %lld bytes spilled, %lld bytes of static "
               "shared memory\n",
               STR_ARG(name), (long long)whole(k, "registers"), (long long)whole(k, "spill_bytes"),
               (long long)whole(k, "shared_static"));
}

void facts_write(const struct outcome *o, struct buf *out) {
    const json *launches = json_get(o->record, "estimate");
    const json *counters = json_get(o->record, "counters"), *kernels;
    for (size_t i = 0; i < json_len(launches); i++)
        put_launch(json_at(launches, i), json_at(counters, i), out);
    kernels = json_len(launches) ? NULL : json_get(o->record, "kernels");
    for (size_t i = 0; kernels && i < json_len(kernels); i++)
        put_static(json_at(kernels, i), out);
}

static void summarise_launch(const json *e, struct buf *out) {
    str kernel = S("?"), bound = S("?");
    json_get_str(e, "kernel", &kernel);
    json_get_str(e, "bound", &bound);
    buf_printf(out, "%s%.*s %.4g us, %.*s-bound (each alone: ", out->n ? "; " : "", STR_ARG(kernel),
               real(e, "time_s") * US, STR_ARG(bound));
    put_parts(e, out);
    buf_puts(out, S("), grid "));
    put_sizes(json_get(e, "grid"), out);
    buf_printf(out, ", room for %lld warps an SM, %lld registers", (long long)whole(e, "warps_sm"),
               (long long)whole(e, "registers"));
}

void facts_summarise(const struct outcome *o, struct buf *out) {
    const json *launches = json_get(o->record, "estimate");
    for (size_t i = 0; i < json_len(launches); i++)
        summarise_launch(json_at(launches, i), out);
}

/* ---- what the code does ---- */

struct accesses {
    bool loads, wide, streaming;
};

static void look_at_form(void *ctx, const char *form, const json *count) {
    struct accesses *a = ctx;
    const char *last = strrchr(form, '.');
    bool load = strncmp(form, "ld.global", 9) == 0, store = strncmp(form, "st.global", 9) == 0;
    (void)count;
    a->loads |= load;
    a->wide |= load && strcmp(last, ".128") == 0;
    a->streaming |= (load || store) && strstr(form, ".cs") != NULL;
}

bool facts_hold(const struct outcome *o, str name) {
    const json *kernels = json_get(o->record, "kernels");
    bool wide = json_len(kernels) > 0, streaming = false, grouped = false;
    char group[32];
    snprintf(group, sizeof group, "%.*s", STR_ARG(name));
    for (size_t i = 0; kernels && i < json_len(kernels); i++) {
        const json *census = json_get(json_at(kernels, i), "census");
        const json *forms = json_get(census, "forms");
        struct accesses a = {0};
        if (forms)
            json_each(forms, look_at_form, &a);
        wide = wide && forms && (a.wide || !a.loads);
        streaming |= a.streaming;
        grouped |= whole(json_get(census, "groups"), group) > 0;
    }
    if (str_is(name, "one-launch"))
        return json_len(json_get(o->record, "launches")) == 1;
    return str_is(name, "wide") ? wide : str_is(name, "streaming") ? streaming : grouped;
}
