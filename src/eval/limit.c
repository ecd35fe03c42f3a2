/* The two limits of a task on a GPU: the one to strive for, and the one nobody passes. */
#include "eval/eval.h"

#include "spec/cost.h"

static double contraction_rate(const struct gpu *g, enum accuracy a) {
    switch (a) {
    case ACCURACY_TF32:
        return g->tf32_flops;
    case ACCURACY_F16:
    case ACCURACY_BF16:
        return g->bf16_flops;
    default:
        return g->fp32_tensor_flops;
    }
}

struct roofline task_limit(const struct gpu *g, const struct inst *in) {
    struct cost c;
    cost_of(in, &c);
    double rate = contraction_rate(g, in->task->accuracy), rest = c.flops - c.flops_contraction;
    double seconds = c.flops_contraction / rate + rest / g->fp32_flops;
    double mixed = seconds > 0 ? c.flops / seconds : g->fp32_flops;
    return gpu_roofline(g, c.read_bytes, c.write_bytes, c.flops, mixed);
}

double task_floor(const struct gpu *g, const struct inst *in) {
    struct cost c;
    cost_of(in, &c);
    double stays = c.write_bytes < (double)g->l2_bytes ? c.write_bytes : (double)g->l2_bytes;
    double memory = (c.compulsory_bytes - stays) / g->dram_bytes_s;
    /* fp8 runs at twice bf16's rate; datasheets promise up to a third more than was measured. */
    double compute = c.flops_contraction / (2 * 1.33 * g->bf16_flops);
    return memory > compute ? memory : compute;
}
