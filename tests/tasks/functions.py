#!/usr/bin/env python3
"""Fast special functions: which are accepted, in which expression, in which class.

functions.py [--device NAME] [WORD...]     prints docs/TASKS.md's table; WORD picks expressions

Each row is a real kernel, verified with `cutepilot verify` against a small task in class fp32 and
in class tf32. The program is $CUTEPILOT. tests/tasks/run takes the rows of CHECKED as tests.
"""
import json
import os
import subprocess
import sys
import tempfile

# The instructions themselves: a compiler may choose others for the functions of CUDA.
PRELUDE = """
static __device__ float ex2(float x) { float r; asm("ex2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float ex2_ftz(float x) { float r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float lg2(float x) { float r; asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float tanh_approx(float x) { float r; asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float rcp(float x) { float r; asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float rcp_ftz(float x) { float r; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float rsqrt_approx(float x) { float r; asm("rsqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float rsqrt_ftz(float x) { float r; asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float sqrt_approx(float x) { float r; asm("sqrt.approx.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; }
static __device__ float div_full(float a, float b) { float r; asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
static __device__ float div_approx(float a, float b) { float r; asm("div.approx.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#define LOG2E 1.44269504f
#define LN2 0.693147181f
"""

POINTWISE = ("""task t "T"
dim N = 4096
in x[N] : f32 ~ %s
%sout y[N] : f32
y[i] = %s
check N = 257
check N = 1024
""", """//! launch k<<<ceil_div(N, 256), 256>>>(x, y, N)
%s
extern "C" __global__ void k(const float *in, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = in[i];
    out[i] = %s;
}
""")

TWO = ("""task t "T"
dim N = 4096
in x[N] : f32 ~ %s
in z[N] : f32 ~ uniform(1, 2)
%sout y[N] : f32
y[i] = %s
check N = 257
check N = 1024
""", """//! launch k<<<ceil_div(N, 256), 256>>>(x, z, y, N)
%s
extern "C" __global__ void k(const float *a, const float *b, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = a[i], z = b[i];
    out[i] = %s;
}
""")

# One thread a row. The code is that of an element, from the row's maximum m, sum s and mean square q.
ROWS = """//! launch k<<<ceil_div(R, 32), 32>>>(x, y, R, C)
%s
extern "C" __global__ void k(const float *x, float *y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    x += (size_t)r * n;
    y += (size_t)r * n;
    %s
}
"""
SOFTMAX = ("""task t "T"
dim R = 32, C = 200
in x[R,C] : f32 ~ %s
%slet m[i] = max(j) x[i,j]
let s[i] = sum(j) exp(x[i,j] - m[i])
out y[R,C] : f32
y[i,j] = %s
check R = 5, C = 67
check R = 3, C = 128
""", ROWS % ("%s", """float m = -INFINITY, s = 0.0f;
    for (int j = 0; j < n; j++)
        m = x[j] > m || x[j] != x[j] ? x[j] : m;
    for (int j = 0; j < n; j++) {
        float d = x[j] - m;
        s += E;
    }
    for (int j = 0; j < n; j++) {
        float d = x[j] - m;
        y[j] = D;
    }"""))
NORM = ("""task t "T"
dim R = 32, C = 200
in x[R,C] : f32 ~ %s
%slet q[i] = mean(j) x[i,j]*x[i,j]
out y[R,C] : f32
y[i,j] = %s
check R = 5, C = 67
check R = 3, C = 128
""", ROWS % ("%s", """float q = 0.0f;
    for (int j = 0; j < n; j++)
        q += x[j] * x[j];
    q = q / n + 1e-5f;
    for (int j = 0; j < n; j++)
        y[j] = %s;"""))
PRODUCT = ("""task t "T"
dim M = 16, N = 24, K = 128
in x[M,K] : f32 ~ %s
in b[K,N] : f32 ~ normal(0, 1)
%sout y[M,N] : f32
y[i,j] = sum(k) %s*b[k,j]
check M = 5, N = 7, K = 67
check M = 8, N = 8, K = 96
""", """//! launch k<<<[ceil_div(N, 8), ceil_div(M, 8)], [8, 8]>>>(x, b, y, M, N, K)
%s
extern "C" __global__ void k(const float *a, const float *b, float *y, int m, int n, int inner) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    float s = 0.0f;
    if (i >= m || j >= n)
        return;
    for (int k = 0; k < inner; k++) {
        float x = a[i * inner + k];
        s += %s * b[k * n + j];
    }
    y[i * n + j] = s;
}
""")

BOUNDED = "assume x[i] >= -3.2\nassume x[i] <= 3.2\n"
POSITIVE = "assume x[i] > 0\n"
# (expression, form, distribution, assumptions, what the task says, [(shown, code)])
EXPRESSIONS = [
    ("exp(x)", POINTWISE, "normal(0, 1)", "", "exp(x[i])", [
        ("expf(x)", "expf(x)"), ("__expf(x)", "__expf(x)"),
        ("exp2f(x·log2e)", "exp2f(x * LOG2E)"),
        ("ex2.approx(x·log2e)", "ex2(x * LOG2E)"),
        ("ex2.approx.ftz(x·log2e)", "ex2_ftz(x * LOG2E)")]),
    ("softmax, C = 200", SOFTMAX, "normal(0, 1)", "", "exp(x[i,j] - m[i])/s[i]", [
        ("expf, /", ("expf(d)", "expf(d) / s")),
        ("__expf, /", ("__expf(d)", "__expf(d) / s")),
        ("__expf, __fdividef", ("__expf(d)", "__fdividef(__expf(d), s)")),
        ("ex2.approx.ftz, rcp.approx.ftz", ("ex2_ftz(d * LOG2E)", "ex2_ftz(d * LOG2E) * rcp_ftz(s)"))]),
    ("sigmoid(x)", POINTWISE, "normal(0, 1)", "", "sigmoid(x[i])", [
        ("1/(1 + expf(-x))", "1.0f / (1.0f + expf(-x))"),
        ("1/(1 + __expf(-x))", "1.0f / (1.0f + __expf(-x))"),
        ("__fdividef(1, 1 + __expf(-x))", "__fdividef(1.0f, 1.0f + __expf(-x))"),
        ("rcp.approx(1 + ex2.approx(-x·log2e))", "rcp(1.0f + ex2(-x * LOG2E))"),
        ("½ + ½·tanhf(x/2)", "0.5f + 0.5f * tanhf(0.5f * x)"),
        ("½ + ½·tanh.approx(x/2)", "0.5f + 0.5f * tanh_approx(0.5f * x)")]),
    ("x·sigmoid(x)", POINTWISE, "normal(0, 1)", "", "x[i]*sigmoid(x[i])", [
        ("x/(1 + __expf(-x))", "x / (1.0f + __expf(-x))"),
        ("__fdividef(x, 1 + __expf(-x))", "__fdividef(x, 1.0f + __expf(-x))"),
        ("tanh.approx", "x * (0.5f + 0.5f * tanh_approx(0.5f * x))")]),
    ("tanh(x)", POINTWISE, "normal(0, 1)", "", "tanh(x[i])", [
        ("tanhf(x)", "tanhf(x)"), ("tanh.approx(x)", "tanh_approx(x)"),
        ("1 - 2/(1 + __expf(2x))", "1.0f - 2.0f / (1.0f + __expf(2.0f * x))"),
        ("1 - __fdividef(2, 1 + __expf(2x))", "1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * x))")]),
    ("gelu, tanh form", POINTWISE, "normal(0, 1)", "",
     "0.5*x[i]*(1 + tanh(0.7978845608028654*(x[i] + 0.044715*x[i]*x[i]*x[i])))", [
         ("tanhf", "0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)))"),
         ("tanh.approx",
          "0.5f * x * (1.0f + tanh_approx(0.7978845608f * (x + 0.044715f * x * x * x)))"),
         ("x/(1 + __expf(-2u))",
          "x / (1.0f + __expf(-1.5957691216f * (x + 0.044715f * x * x * x)))")]),
    ("gelu, erf form", POINTWISE, "normal(0, 1)", "",
     "0.5*x[i]*(1 + erf(x[i]*0.7071067811865476))", [
         ("erff", "0.5f * x * (1.0f + erff(x * 0.70710678f))"),
         ("the tanh form, tanhf",
          "0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)))")]),
    ("sin(x), −3.2 ≤ x ≤ 3.2", POINTWISE, "uniform(-3.2, 3.2)", BOUNDED, "sin(x[i])", [
        ("sinf(x)", "sinf(x)"), ("__sinf(x)", "__sinf(x)")]),
    ("cos(x), −3.2 ≤ x ≤ 3.2", POINTWISE, "uniform(-3.2, 3.2)", BOUNDED, "cos(x[i])", [
        ("cosf(x)", "cosf(x)"), ("__cosf(x)", "__cosf(x)")]),
    ("sin(x), any x", POINTWISE, "uniform(-100, 100)", "", "sin(x[i])", [
        ("sinf(x)", "sinf(x)"), ("__sinf(x)", "__sinf(x)"),
        ("__sinf(x − 2π·rint(x/2π))", "__sinf(x - 6.2831853f * rintf(x * 0.15915494f))")]),
    ("log(x), x > 0", POINTWISE, "uniform(0, 4)", POSITIVE, "log(x[i])", [
        ("logf(x)", "logf(x)"), ("__logf(x)", "__logf(x)"), ("lg2.approx(x)·ln2", "lg2(x) * LN2")]),
    ("log(1 + exp(x))", POINTWISE, "normal(0, 1)", "",
     "maximum(x[i], 0) + log1p(exp(-abs(x[i])))", [
         ("log1pf(expf(−abs(x)))", "(x > 0 || x != x ? x : 0.0f) + log1pf(expf(-fabsf(x)))"),
         ("log1pf(__expf(−abs(x)))", "(x > 0 || x != x ? x : 0.0f) + log1pf(__expf(-fabsf(x)))"),
         ("__logf(1 + __expf(−abs(x)))",
          "(x > 0 || x != x ? x : 0.0f) + __logf(1.0f + __expf(-fabsf(x)))")]),
    ("expm1(x)", POINTWISE, "normal(0, 1)", "", "expm1(x[i])", [
        ("expm1f(x)", "expm1f(x)"), ("expf(x) − 1", "expf(x) - 1.0f"),
        ("__expf(x) − 1", "__expf(x) - 1.0f")]),
    ("pow(x, 1.7), x > 0", POINTWISE, "uniform(0, 4)", POSITIVE, "pow(x[i], 1.7)", [
        ("powf(x, 1.7)", "powf(x, 1.7f)"), ("__powf(x, 1.7)", "__powf(x, 1.7f)"),
        ("ex2.approx(1.7·lg2.approx(x))", "ex2(1.7f * lg2(x))")]),
    ("x/z", TWO, "normal(0, 1)", "", "x[i]/z[i]", [
        ("x / z", "x / z"), ("__fdividef(x, z)", "__fdividef(x, z)"),
        ("div.approx(x, z)", "div_approx(x, z)"), ("div.full(x, z)", "div_full(x, z)"),
        ("x·rcp.approx(z)", "x * rcp(z)"), ("x·rcp.approx.ftz(z)", "x * rcp_ftz(z)")]),
    ("x/z, 1 ≤ z ≤ 2", TWO, "normal(0, 1)", "assume z[i] >= 1\nassume z[i] <= 2\n", "x[i]/z[i]", [
        ("__fdividef(x, z)", "__fdividef(x, z)"), ("x·rcp.approx.ftz(z)", "x * rcp_ftz(z)")]),
    ("sqrt(x), x > 0", POINTWISE, "uniform(0, 4)", POSITIVE, "sqrt(x[i])", [
        ("sqrtf(x)", "sqrtf(x)"), ("sqrt.approx(x)", "sqrt_approx(x)"),
        ("x·rsqrt.approx(x)", "x * rsqrt_approx(x)")]),
    ("rsqrt(x), x > 0", POINTWISE, "uniform(0, 4)", POSITIVE, "rsqrt(x[i])", [
        ("rsqrtf(x)", "rsqrtf(x)"), ("rsqrt.approx(x)", "rsqrt_approx(x)"),
        ("rsqrt.approx.ftz(x)", "rsqrt_ftz(x)")]),
    ("RMS norm, C = 200", NORM, "normal(0, 1)", "", "x[i,j]*rsqrt(q[i] + 0.00001)", [
        ("x / sqrtf(q)", "x[j] / sqrtf(q)"), ("x·rsqrtf(q)", "x[j] * rsqrtf(q)"),
        ("x·rsqrt.approx.ftz(q)", "x[j] * rsqrt_ftz(q)"),
        ("__fdividef(x, sqrt.approx(q))", "__fdividef(x[j], sqrt_approx(q))")]),
    ("Σ exp(x)·b, K = 128", PRODUCT, "normal(0, 1)", "", "exp(x[i,k])", [
        ("expf(x)", "expf(x)"), ("__expf(x)", "__expf(x)")]),
    ("Σ tanh(x)·b, K = 128", PRODUCT, "normal(0, 1)", "", "tanh(x[i,k])", [
        ("tanhf(x)", "tanhf(x)"), ("tanh.approx(x)", "tanh_approx(x)")]),
]

# Tests: the form where a function is right, and the one where it is not.
CHECKED = {
    ("exp(x)", "__expf(x)", "fp32"): "accepted",
    ("tanh(x)", "tanh.approx(x)", "fp32"): "inaccurate",
    ("sin(x), −3.2 ≤ x ≤ 3.2", "__sinf(x)", "fp32"): "accepted",
    ("sin(x), any x", "__sinf(x)", "fp32"): "inaccurate",
    ("log(x), x > 0", "__logf(x)", "fp32"): "accepted",
    ("x/z", "__fdividef(x, z)", "fp32"): "wrong",
    ("x/z, 1 ≤ z ≤ 2", "__fdividef(x, z)", "fp32"): "accepted",
    ("Σ tanh(x)·b, K = 128", "tanh.approx(x)", "fp32"): "inaccurate",
    ("Σ tanh(x)·b, K = 128", "tanh.approx(x)", "tf32"): "accepted",
}


def texts(expression, code, accuracy):
    """The task and the kernel of a row."""
    _, (task, kernel), dist, assumptions, says, _ = expression
    if isinstance(code, tuple):
        kernel = kernel.replace("E;", code[0] + ";").replace("= D", "= " + code[1]) % PRELUDE
    else:
        kernel = kernel % (PRELUDE, code)
    return task % (dist, assumptions, says) + "accuracy %s\n" % accuracy, kernel


def verify(folder, expression, code, accuracy, device="sim"):
    """The record of `cutepilot verify`."""
    task, kernel = (os.path.join(folder, name) for name in ("t.task", "k.cu"))
    for path, text in zip((task, kernel), texts(expression, code, accuracy)):
        with open(path, "w") as f:
            f.write(text)
    done = subprocess.run([os.environ["CUTEPILOT"], "verify", task, kernel, "--json", "--workers",
                           "1", "--compile-jobs", "1", "--verify-seed", "11", "--device", device,
                           "--cache", os.path.join(folder, "cache")],
                          capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return {"verdict": "none", "why": "exit %d: %s" % (done.returncode, done.stderr.strip())}


def check(folder):
    """What is wrong with the rows of CHECKED, a line each."""
    faults = []
    for (name, shown, accuracy), want in CHECKED.items():
        expression = next(e for e in EXPRESSIONS if e[0] == name)
        record = verify(folder, expression, dict(expression[5])[shown], accuracy)
        if record.get("verdict") != want:
            faults.append("%s as %s in %s: %s, not %s: %s" % (name, shown, accuracy,
                                                             record.get("verdict"), want,
                                                             record.get("why", record)))
    return faults


def sort_out(shown, records, accepted, refused):
    """A row goes to the accepted or the refused ones; to both where the classes differ."""
    verdicts = {a: r.get("verdict") for a, r in records.items()}
    for a, record in records.items():
        alone = "" if len({v == "accepted" for v in verdicts.values()}) == 1 else " in %s" % a
        if verdicts[a] == "accepted":
            accepted.append("`%s`%s" % (shown, alone))
        else:
            refused.append("`%s`%s: %s on %s" % (shown, alone, verdicts[a],
                                                 record.get("data", record.get("why"))))
        if not alone:
            return


def main():
    words, device = sys.argv[1:], "sim"
    if words[:1] == ["--device"]:
        device, words = words[1], words[2:]
    print("| expression | accepted | refused, first on |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for expression in EXPRESSIONS:
            if words and not any(w in expression[0] for w in words):
                continue
            accepted, refused = [], []
            for shown, code in expression[5]:
                records = {a: verify(folder, expression, code, a, device)
                           for a in ("fp32", "tf32")}
                sort_out(shown, records, accepted, refused)
            print("| %s | %s | %s |" % (expression[0], ", ".join(accepted), "; ".join(refused)),
                  flush=True)


if __name__ == "__main__":
    main()
