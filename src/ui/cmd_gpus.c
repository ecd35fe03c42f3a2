/* gpus [NAME|FILE]: the GPUs of the table, or all facts of one and where each comes from. What is
 * printed of one is a file of facts, to begin another GPU's with. */
#include "base/say.h"
#include "target/gpu.h"
#include "ui/ui.h"

static str tensor_instruction(const struct gpu *g) {
    return g->has.tcgen05 ? S("tcgen05") : g->has.wgmma ? S("wgmma") : S("mma.sync");
}

static json *gpu_json(const struct gpu *g) {
    json *j = json_object();
    json_set_str(j, "name", str_view(g->name));
    json_set_str(j, "title", str_view(g->title));
    json_set_str(j, "arch", str_view(g->arch));
    json_set_bool(j, "model_calibrated", g->calibrated);
    return j;
}

static int list_gpus(struct ui *ui) {
    json *all = json_array();
    for (size_t i = 0; i < gpu_count(); i++) {
        const struct gpu *g = gpu_at(i);
        if (ui->as_json) {
            json_push(all, gpu_json(g));
            continue;
        }
        say("%-8s %-8s %-24s %3d SMs %5.3g TB/s, shared %3zu KiB, bf16 %4.0f TFLOP/s by %.*s%s\n",
            g->name, g->arch, g->title, g->sms, g->dram_bytes_s / 1e12, g->shared_block >> 10,
            g->bf16_flops / 1e12, STR_ARG(tensor_instruction(g)),
            g->calibrated ? ", calibrated" : "");
    }
    if (ui->as_json)
        return ui_print_json(all) ? 0 : 3;
    json_free(all);
    return 0;
}

int cmd_gpus(struct ui *ui) {
    const struct gpu *g;
    const char *path;
    struct err err = {0};
    struct buf text;
    char *const *args;
    if (options_args(ui->options, &args) == 0)
        return list_gpus(ui);
    if (!gpu_named(str_view(args[0]), ui->arena, &g, &path, &err))
        return ui_fail(ui, &err);
    buf_init(&text, GPU_FILE_BYTES);
    gpu_text(g, &text);
    json *j = ui->as_json ? gpu_json(g) : NULL;
    if (j)
        json_set_str(j, "facts", buf_str(&text));
    else
        say_text(buf_str(&text));
    buf_release(&text);
    return !j || ui_print_json(j) ? 0 : 3;
}
