/* Profile facts, in words and units that a kernel engineer uses. On the simulator they are the time
 * model's parts and exact counters; on a GPU the measured time and what the compiler said. */
#include "agent/llm/evidence.h"

#define US 1e6

static void put_sizes(const uint32_t n[3], struct buf *out) {
    buf_printf(out, "%ux%ux%u", n[0], n[1], n[2]);
}

/* The parts of the model that matter, each as if it were alone: those of a twentieth of the time
 * and more. */
static void put_parts(const struct record_estimate *e, struct buf *out) {
    const struct {
        double s;
        const char *what;
    } parts[] = {{e->dram_s, "DRAM"},           {e->l2_s, "L2"},
                 {e->issue_s, "issue slots"},   {e->pipe_s, "arithmetic pipes"},
                 {e->tensor_s, "tensor cores"}, {e->lsu_s, "load/store unit"},
                 {e->latency_s, "latency"},     {e->dispatch_s, "block dispatch"},
                 {e->launch_s, "launch"}};
    const char *gap = "";
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(parts[i].s >= 0.05 * e->time_s))
            continue;
        buf_printf(out, "%s%s %.3g us", gap, parts[i].what, parts[i].s * US);
        gap = ", ";
    }
}

static void put_traffic(const struct sim_counters *c, struct buf *out) {
    double loads = (double)c->load_requests, stores = (double)c->store_requests;
    double shared = (double)c->shared_requests;
    double warps = (double)c->warp_instrs;
    double share = c->ctas ? (double)c->ctas_total / (double)c->ctas : 1;
    buf_printf(
        out,
        "  global loads %.3g MB in %.3g requests (%.1f sectors of 32 bytes each, widest %lld "
        "bytes a lane), stores %.3g MB (%.1f sectors each, widest %lld)\n",
        share * (double)c->load_bytes / 1e6, share * loads,
        loads > 0 ? (double)c->load_sectors / loads : 0, (long long)c->widest_load,
        share * (double)c->store_bytes / 1e6, stores > 0 ? (double)c->store_sectors / stores : 0,
        (long long)c->widest_store);
    if (shared > 0)
        buf_printf(out,
                   "  shared memory %.3g requests, %.2f wavefronts each, %.3g bank conflicts\n",
                   share * shared, (double)c->shared_wavefronts / shared,
                   share * (double)c->shared_conflicts);
    buf_printf(out,
               "  warp instructions %.3g: fp32 %.0f%%, integer %.0f%%, special %.0f%%, memory "
               "%.0f%%, tensor %.0f%%, control %.0f%%; %lld divergent branches\n",
               share * warps, 100 * (double)c->warp_fp32 / warps, 100 * (double)c->warp_int / warps,
               100 * (double)c->warp_special / warps, 100 * (double)c->warp_memory / warps,
               100 * (double)c->warp_tensor / warps, 100 * (double)c->warp_control / warps,
               (long long)c->divergent_branches);
}

static void put_launch(const struct record_estimate *e, const struct sim_counters *counters,
                       struct buf *out) {
    buf_printf(out, "- kernel %.*s: %.4g us, bound by %.*s; grid ", STR_ARG(e->kernel),
               e->time_s * US, STR_ARG(e->bound));
    put_sizes(e->grid, out);
    buf_puts(out, S(", block "));
    put_sizes(e->block, out);
    buf_printf(out,
               "\n  %lld registers a thread, %lld bytes spilled, %lld bytes of shared memory a "
               "block; %lld blocks and %lld warps an SM (limited by %.*s), %.2f waves\n",
               (long long)e->registers, (long long)e->spill_bytes, (long long)e->shared_bytes,
               (long long)e->blocks_sm, (long long)e->warps_sm, STR_ARG(e->occupancy_limiter),
               e->waves);
    buf_puts(out, S("  resources, if each were alone (together more than the largest, in small "
                    "kernels by 10 to 40%): "));
    put_parts(e, out);
    buf_putc(out, '\n');
    if (counters && counters->warp_instrs > 0)
        put_traffic(counters, out);
}

void facts_write(const struct outcome *o, struct buf *out) {
    const struct record *r = o->record;
    for (size_t i = 0; i < r->nestimate; i++)
        put_launch(&r->estimate[i], i < r->ncounters ? &r->counters[i] : NULL, out);
    for (size_t i = 0; !r->nestimate && i < r->nkernels; i++)
        buf_printf(out,
                   "- kernel %.*s: %lld registers a thread, %lld bytes spilled, %lld bytes of "
                   "static shared memory\n",
                   STR_ARG(r->kernels[i].name), (long long)r->kernels[i].registers,
                   (long long)r->kernels[i].spill_bytes, (long long)r->kernels[i].shared_static);
}

void facts_summarise(const struct outcome *o, struct buf *out) {
    for (size_t i = 0; i < o->record->nestimate; i++) {
        const struct record_estimate *e = &o->record->estimate[i];
        buf_printf(out, "%s%.*s %.4g us, %.*s-bound (each alone: ", out->n ? "; " : "",
                   STR_ARG(e->kernel), e->time_s * US, STR_ARG(e->bound));
        put_parts(e, out);
        buf_puts(out, S("), grid "));
        put_sizes(e->grid, out);
        buf_printf(out, ", room for %lld warps an SM, %lld registers", (long long)e->warps_sm,
                   (long long)e->registers);
    }
}

/* ---- what the code does ---- */

struct accesses {
    bool loads, wide, streaming;
};

static void look_at_form(str form, struct accesses *a) {
    bool load = str_starts(form, S("ld.global")), store = str_starts(form, S("st.global"));
    a->loads |= load;
    a->wide |= load && str_ends(form, S(".128"));
    a->streaming |= (load || store) && str_find(form, S(".cs")) < form.n;
}

bool facts_hold(const struct outcome *o, str name) {
    const struct record *r = o->record;
    bool wide = r->nkernels > 0, streaming = false, grouped = false;
    for (size_t i = 0; i < r->nkernels; i++) {
        const struct census *c = r->kernels[i].census;
        struct accesses a = {0};
        for (size_t k = 0; c && k < c->nforms; k++)
            look_at_form(c->forms[k].name, &a);
        wide = wide && c && (a.wide || !a.loads);
        streaming |= a.streaming;
        grouped |= c && census_group_count(c, name) > 0;
    }
    if (str_is(name, "one-launch"))
        return r->nlaunches == 1;
    return str_is(name, "wide") ? wide : str_is(name, "streaming") ? streaming : grouped;
}
