/* Costs counted by hand. */
#include "spec/cost.h"

#include "fixture.h"

static void costs(void) {
    static const struct {
        const char *rest;
        double plain, special, read, write; /* totals */
    } rows[] = {
        {"out y[N,M] : f32\ny[i,j] = x[i,j]", 0, 0, 192, 192},
        {"out y[N,M] : f32\ny[i,j] = maximum(x[i,j], 0)", 48, 0, 192, 192},
        {"out y[N,M] : f16\ny[i,j] = 0.5*x[i,j]*(1 + erf(x[i,j]*sqrt(0.5)))", 192, 48, 192, 96},
        {"out y[N,M] : f32\ny[i,j] = x[i,j] + b[j]", 48, 0, 192 + 24, 192},
        {"out y[N,M] : f32\nlet t[i,j] = x[i,j] + b[j]\ny[i,j] = t[i,j]*t[i,j]", 96, 0, 216, 192},
        {"out y[N] : f32\ny[i] = x[i,0]", 0, 0, 32, 32},
        {"out y[N] : f32\ny[i] = x[i,0] + x[i,0]*x[i,5]", 16, 0, 64, 32},
        {"out y[N,M//2] : f32\ny[i,j] = x[i,2*j] - x[i,2*j+1]", 24, 0, 192, 96},
        {"out y[N,M//2] : f32\ny[i,j] = x[i,2*j]", 0, 0, 96, 96},
        {"out y[M] : f32\ny[i] = b[i] + b[(i+1)%M] + b[i//2]", 12, 0, 24, 24},
        {"out y[N] : f32\ny[i] = x[i%2,0] + x[i,i%6]", 8, 0, 40, 32},
        {"out y[N] : f32\ny[i] = if(b[0] > 0, x[i,0], 1)", 8, 0, 4, 32},
        {"out y[N] : f32\ny[i] = if(i > 3, x[i,0], 1)", 0, 0, 16, 32},
        {"out y[N] : f32\ny[i] = if(i > 3, exp(x[i,0]), x[i,0] + 1)", 0, 8, 32, 32},
        {"out y[N] : f32\ny[i] = clamp(i*3 + 2, 0, 5.0)", 16, 0, 0, 32},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        struct cost c;
        char text[512];
        snprintf(
            text, sizeof text,
            "task t \"T\"\ndim N = 8, M = 6\nin x[N,M] : f32 ~ ones\nin b[M] : f32 ~ ones\n%s\n",
            rows[k].rest);
        if (fixture_text(&f, text)) {
            cost_of(f.in, &c);
            CHECKF(c.flops_add_mul == rows[k].plain, "row %zu: %g", k, c.flops_add_mul);
            CHECKF(c.flops_special == rows[k].special, "row %zu: %g", k, c.flops_special);
            CHECKF(c.read_bytes == rows[k].read, "row %zu: %g", k, c.read_bytes);
            CHECKF(c.write_bytes == rows[k].write, "row %zu: %g", k, c.write_bytes);
            CHECKF(c.compulsory_bytes == c.read_bytes + c.write_bytes, "row %zu", k);
            CHECKF(c.flops == c.flops_add_mul + c.flops_special, "row %zu", k);
        }
        fixture_end(&f);
    }
}

static void features(void) {
    struct fixture f;
    struct features v;
    if (fixture_smoke(&f, "bias_gelu", 3)) {
        features_of(f.in, &v);
        CHECK(v.workload == WORKLOAD_POINTWISE && v.inputs == 2 && v.outputs == 1 && v.rank == 2);
        CHECK(v.log2_elements == 14 && v.dtype == DTYPE_F32 && v.broadcast);
        CHECK(v.special_share > 0 && v.special_share < 0.2 && v.intensity > 0.5);
        CHECK(strcmp(workload_name(v.workload), "pointwise") == 0);
    }
    fixture_end(&f);
    if (fixture_smoke(&f, "relu", 2)) {
        features_of(f.in, &v);
        CHECK(!v.broadcast && v.special_share == 0 && v.intensity == 0.125);
    }
    fixture_end(&f);
}

static const struct tap_case cases[] = {
    {"costs", costs},
    {"features", features},
};
TAP_CASES(cases)
