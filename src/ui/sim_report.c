#include "ui/sim_report.h"

#include "base/say.h"
#include "kernel/candidate.h"
#include "ui/ui.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXT_COLUMNS = 60 };

typedef unsigned long long ull;

static double per(double a, double b) {
    return b > 0 ? a / b : 0;
}

/* ---- counters ---- */

static void print_executed(const struct sim_counters *c) {
    const struct {
        const char *name;
        uint64_t n;
    } kinds[] = {{"fp32", c->warp_fp32},      {"integer", c->warp_int},
                 {"fp64", c->warp_fp64},      {"special", c->warp_special},
                 {"tensor", c->warp_tensor},  {"memory", c->warp_memory},
                 {"control", c->warp_control}};
    say("  executed   %llu warp instructions, %.3g of 32 lanes at work:", (ull)c->warp_instrs,
        per((double)c->lane_instrs, (double)c->warp_instrs));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].n)
            say(" %s %llu", kinds[i].name, (ull)kinds[i].n);
    if (c->ctas < c->ctas_total)
        say("; of %llu of %llu blocks", (ull)c->ctas, (ull)c->ctas_total);
    say("\n");
    if (c->divergent_branches)
        say("  divergence %llu branches parted a warp\n", (ull)c->divergent_branches);
    if (c->flops + c->tensor_flops)
        say("  arithmetic %.4g Mflop, %.4g Mflop on tensor cores\n", (double)c->flops / 1e6,
            (double)c->tensor_flops / 1e6);
}

static void print_global(const char *what, uint64_t requests, uint64_t sectors, uint64_t bytes) {
    if (requests)
        say("  %-10s %llu requests, %.3g sectors each, %.4g MB asked for, %.0f%% of what "
            "moves\n",
            what, (ull)requests, per((double)sectors, (double)requests), (double)bytes / 1e6,
            100 * per((double)bytes, 32.0 * (double)sectors));
}

static void print_memory(const struct sim_report *r, const struct sim_counters *c) {
    double reads = 32 * (double)c->footprint_load_sectors / 1e6;
    double writes = 32 * (double)c->footprint_store_sectors / 1e6;
    print_global("loads", c->load_requests, c->load_sectors, c->load_bytes);
    print_global("stores", c->store_requests, c->store_sectors, c->store_bytes);
    say("  footprint  %.4g MB read, %.4g MB written%s", reads, writes,
        c->ctas < c->ctas_total ? ", scaled from the sample" : "");
    if (r->nlaunches == 1)
        say("; the task needs %.4g and %.4g", r->cost->read_bytes / 1e6,
            r->cost->write_bytes / 1e6);
    say("\n");
    if (c->shared_requests)
        say("  shared     %llu requests, %llu wavefronts, %llu of them by bank conflicts\n",
            (ull)c->shared_requests, (ull)c->shared_wavefronts, (ull)c->shared_conflicts);
    if (c->atomic_requests)
        say("  atomics    %llu requests to global memory\n", (ull)c->atomic_requests);
    if (c->async_bytes)
        say("  async      %.4g MB by asynchronous copies\n", (double)c->async_bytes / 1e6);
}

static void print_model(const struct sim_report *r, const struct record_estimate *e) {
    const struct {
        const char *name;
        double s;
    } parts[] = {{"dram", e->dram_s},       {"l2", e->l2_s},
                 {"issue", e->issue_s},     {"pipe", e->pipe_s},
                 {"tensor", e->tensor_s},   {"lsu", e->lsu_s},
                 {"latency", e->latency_s}, {"dispatch", e->dispatch_s},
                 {"launch", e->launch_s}};
    const char *gap = " ";
    say("  model      %.*s-bound, %.2f waves, %.*s:", STR_ARG(e->bound), e->waves,
        STR_ARG(ui_time(r->a, e->time_s)));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(parts[i].s > 0))
            continue;
        say("%s%s %.*s", gap, parts[i].name, STR_ARG(ui_time(r->a, parts[i].s)));
        gap = ", ";
    }
    say("\n");
}

void sim_report_counts(const struct sim_report *r, size_t i) {
    if (!r->record || i >= r->record->ncounters)
        return;
    print_executed(&r->record->counters[i]);
    print_memory(r, &r->record->counters[i]);
    if (i < r->record->nestimate)
        print_model(r, &r->record->estimate[i]);
}

/* ---- lines ---- */

static int by_share(const void *x, const void *y) {
    const struct sim_hot_line *a = x, *b = y;
    if (a->share != b->share)
        return a->share < b->share ? 1 : -1;
    return (a->line.line > b->line.line) - (a->line.line < b->line.line);
}

struct sim_hot_line *sim_hot_lines(const struct record *r, size_t launch, struct arena *a,
                                   size_t *n) {
    const struct wire_lines *lines = r && launch < r->nlines ? &r->lines[launch] : NULL;
    struct sim_hot_line *hot = arena_array(a, struct sim_hot_line, (lines ? lines->nlist : 0) + 1);
    double sum = 0;
    *n = 0;
    for (size_t i = 0; lines && i < lines->nlist; i++) {
        struct sim_hot_line *h = &hot[*n];
        *h = (struct sim_hot_line){lines->list[i], sim_line_clocks(&lines->list[i])};
        sum += h->share;
        *n += h->share > 0;
    }
    for (size_t i = 0; i < *n; i++)
        hot[i].share /= sum;
    if (*n)
        qsort(hot, *n, sizeof *hot, by_share);
    return hot;
}

str sim_source_line(str source, uint32_t line) {
    str text = {0};
    for (uint32_t i = 0; i < line; i++)
        if (!str_line(&source, &text))
            return (str){0};
    return str_trim(text);
}

static void print_line(const struct sim_report *r, const struct sim_hot_line *h) {
    const struct sim_line *l = &h->line;
    bool ours = str_is(l->file, CANDIDATE_UNIT_FILE);
    str text = ours ? str_cut(sim_source_line(r->source, l->line), 0, TEXT_COLUMNS) : l->file;
    say("  %6.1f%% %6u %12llu ", 100 * h->share, l->line, (ull)l->warp_instrs);
    if (l->requests)
        say("%8.3g", per((double)l->sectors, (double)l->requests));
    else
        say("%8s", "-");
    if (l->shared_requests)
        say(" %10.3g", per((double)l->shared_wavefronts, (double)l->shared_requests));
    else
        say(" %10s", "-");
    say("  %.*s\n", STR_ARG(text));
}

void sim_report_lines(const struct sim_report *r, size_t i) {
    size_t n;
    struct sim_hot_line *hot = sim_hot_lines(r->record, i, r->a, &n);
    if (!n || !r->lines)
        return;
    say("  %7s %6s %12s %8s %10s  source (sectors and wavefronts a request)\n", "share", "line",
        "instructions", "sectors", "wavefronts");
    for (size_t k = 0; k < n && k < r->lines; k++)
        print_line(r, &hot[k]);
}
