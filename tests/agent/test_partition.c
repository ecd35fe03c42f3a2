/* Who takes what: the families of the steps of a task, in order. */
#include "agent/expert/expert.h"
#include "agent/expert/form/partition.h"
#include "tap.h"
#include <stdlib.h>

static struct arena *mem;
static struct catalogue *catalogue;
static struct err err;

static const struct {
    const char *file, *families;
} files[] = {
    {"tasks/layers/causal_attention", "attention"},
    {"tasks/layers/gqa_attention", "attention"},
    {"tests/expert/tasks/window_attention", "attention"},
    {"tests/expert/tasks/capped_attention", "attention"},
    /* in fp32 its operands are no tensor core's: products and rows by themselves */
    {"tests/expert/tasks/attention_f32", "contraction rows contraction"},
    {"tasks/kernelbench/level1/001_square_matrix_multiplication", "contraction"},
    {"tasks/kernelbench/level1/004_matrix_vector_multiplication", "rows"},
    {"tasks/kernelbench/level1/012_diagonal_matmul", "pointwise"},
    {"tasks/kernelbench/level1/023_softmax", "rows"},
    {"tasks/kernelbench/level1/042_max_pool2d", "window"},
    {"tasks/kernelbench/level1/063_conv2d_3x3_square_input", "convolution"},
    {"tasks/kernelbench/level1/072_conv_transposed3d_3x5x7_s2_p1x2x3_op1_g4", "convolution"},
    {"tasks/kernelbench/level1/082_conv_depthwise2d_3x3_square_input", "window"},
    {"tasks/kernelbench/level1/086_conv_depthwise_separable2d", "window contraction"},
    {"tasks/kernelbench/level1/089_cumsum", "scan"},
    {"tests/expert/tasks/running_best", "scan scan"},
    {"tests/expert/tasks/running_best_outer", "scan scan"},
    {"tests/expert/tasks/recurrence", "scan"},
    {"tests/expert/tasks/recurrence_gates", "scan scan"},
    {"tests/expert/tasks/recurrence_outer", "scan"},
    {"tests/expert/tasks/moving_average", "scan scan"},
    {"tests/expert/tasks/decaying_weights", "scan scan"},
    {"tests/expert/tasks/moving_average_outer", "scan scan"},
    /* the running maximum and the sum that it scales are one scan */
    {"tests/expert/tasks/running_log_sum_exp", "scan"},
    {"tests/expert/tasks/running_log_sum_exp_outer", "scan scan scan"},
    {"tests/expert/tasks/segments", "scan scan scan scan"},
    {"tests/expert/tasks/segments_behind", "scan scan"},
    {"tests/expert/tasks/segments_unsorted", "rows"},
    /* what does not read the steps is taken out, a map that follows is taken along */
    {"tests/expert/tasks/recurrent_gru", "contraction recurrence"},
    {"tests/expert/tasks/recurrent_lstm", "contraction recurrence pointwise"},
    {"tests/expert/tasks/recurrent_reset", "recurrence"},
    {"tests/expert/tasks/recurrent_states", "recurrence rows"},
    {"tasks/kernelbench/level1/095_cross_entropy_loss", "rows rows"},
    {"tasks/layers/swiglu_mlp_gate", "contraction"},
    {"tasks/layers/adamw_step", "pointwise"},
    {"tests/expert/tasks/low_rank", "contraction contraction"},
    {"tests/expert/tasks/blur", "generic"},
    {"tests/expert/tasks/window_centred", "window window"},
    {"tests/expert/tasks/window_filters", "window window window window window"},
    {"tests/expert/tasks/filter_gradient", "rows rows rows"},
    {"tests/expert/tasks/conv_phases", "convolution convolution"},
    {"tests/expert/tasks/conv_frames", "convolution convolution convolution"},
    {"tests/expert/tasks/conv_colours", "convolution convolution convolution"},
    {"tests/expert/tasks/label_counts", "buckets buckets"},
    {"tests/expert/tasks/scatter_rows", "buckets"},
    {"tests/expert/tasks/group_mean_half", "buckets buckets"},
    {"tests/expert/tasks/group_extremes", "buckets buckets buckets buckets"},
    {"tests/expert/tasks/confusion", "buckets buckets"},
    {"tests/expert/tasks/coarse_bins", "buckets buckets"},
    {"tests/expert/tasks/columns_by_index", "buckets"},
    {"tests/expert/tasks/graph_convolution", "buckets"},
    {"tests/expert/tasks/mean_by_index", "buckets"},
    {"tests/expert/tasks/one_hot_sum", "buckets"},
};

static void test_files(void) {
    size_t n;
    const struct family *const *families = expert_families(&n);
    const char *root = getenv("SOURCE_ROOT");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct task *t;
        struct inst *in;
        struct briefing b;
        struct partition p;
        struct buf names;
        str path = arena_printf(mem, "%s/%s.task", root ? root : ".", files[i].file);
        bool ok = task_load(path.p, mem, &t, &err) && task_bind(t, NULL, 0, mem, &in, &err) &&
                  briefing_make(in, catalogue, gpu_find(S("h200")), &b, &err) &&
                  partition_make(&b, families, n, mem, &p, &err);
        CHECKF(ok, "%s: %s", files[i].file, err.text);
        buf_init(&names, 4096);
        for (size_t k = 0; ok && k < p.n; k++)
            buf_printf(&names, "%s%s", k ? " " : "", p.family[k]->name);
        CHECKF(str_is(buf_str(&names), files[i].families), "%s: %.*s", files[i].file,
               STR_ARG(buf_str(&names)));
        buf_release(&names);
    }
}

static const struct tap_case cases[] = {
    {"families of tasks", test_files},
};

int main(void) {
    mem = arena_new((size_t)512 << 20);
    if (!catalogue_load(NULL, mem, &catalogue, &err))
        BUG_IF(true);
    int rc = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(mem);
    return rc;
}
