"""Modules of several tasks as one package: cases of tests/export/run, whose helpers are `h`.

The module is tests/import/modules/recurrent.py: a bidirectional LSTM of two layers, a GRU with a state
that is given, a linear layer; its tasks and their order are tests/import/tasks/recurrent. Each task gets
a kernel of one thread, written here, and so becomes a run as `suite` leaves it. The package for C is
linked with host.c, on which such kernels compute, and its results are compared with the module as it is
written out below; the one for PyTorch with PyTorch itself, where there is one.
"""
import ast
import glob
import hashlib
import json
import math
import os
import random
import shutil
import sys

import candidates

MODULE = os.path.join(candidates.ROOT, "tests/import/tasks/recurrent")
SMALL = {"batch": 2, "length": 3, "features": 4, "hidden": 5, "classes": 3}

GATES = """static __device__ float gate(const float *v, const float *w, float b, int k) {
    float s = b;
    for (int i = 0; i < k; i++)
        s += v[i] * w[i];
    return s;
}
static __device__ float sigma(float v) {
    return 1 / (1 + expf(-v));
}
"""
LSTM = GATES + """extern "C" __global__ void NAME_k(INPUTS, const float *h, const float *c, const float *weight_input,
        const float *weight_state, const float *bias_input, const float *bias_state, float *y, float *y2,
        int batch, int width, int hidden) {
    for (int n = 0; n < batch; n++)
        for (int j = 0; j < hidden; j++) {
            float g[4];
            for (int q = 0; q < 4; q++) {
                int r = q * hidden + j;
                g[q] = gate(h + n * hidden, weight_state + r * hidden, bias_state[r], hidden) + bias_input[r];
                for (int k = 0; k < width; k++)
                    g[q] += READ * weight_input[r * width + k];
            }
            float next = sigma(g[1]) * c[n * hidden + j] + sigma(g[0]) * tanhf(g[2]);
            y[n * hidden + j] = sigma(g[3]) * tanhf(next);
            y2[n * hidden + j] = next;
        }
}
"""
KERNELS = {
    "lstm": "//! launch lstm_k<<<1, 1>>>(x, h, c, weight_input, weight_state, bias_input, bias_state, y, y2, "
            "batch, features, hidden)\n"
            + LSTM.replace("NAME", "lstm").replace("INPUTS", "const float *x").replace("READ", "x[n * width + k]"),
    "lstm_2": "//! launch lstm_2_k<<<1, 1>>>(x1, x2, h, c, weight_input, weight_state, bias_input, bias_state, y, "
              "y2, batch, 2 * hidden, hidden)\n"
              + LSTM.replace("NAME", "lstm_2").replace("INPUTS", "const float *x1, const float *x2").replace(
                  "READ", "(k < hidden ? x1[n * hidden + k] : x2[n * hidden + k - hidden])"),
    "lstm_3": """//! launch lstm_3_k<<<1, 1>>>(x, x2, y, batch * length, hidden)
extern "C" __global__ void lstm_3_k(const float *x, const float *x2, float *y, int rows, int hidden) {
    for (int i = 0; i < rows; i++)
        for (int k = 0; k < hidden; k++) {
            y[i * 2 * hidden + k] = tanhf(x[i * hidden + k]);
            y[i * 2 * hidden + hidden + k] = tanhf(x2[i * hidden + k]);
        }
}
""",
    "gru": "//! launch gru_k<<<1, 1>>>(x, h, weight_input, weight_state, bias_input, bias_state, y, batch, hidden)\n"
           + GATES + """extern "C" __global__ void gru_k(const float *x, const float *h, const float *weight_input,
        const float *weight_state, const float *bias_input, const float *bias_state, float *y, int batch,
        int hidden) {
    for (int n = 0; n < batch; n++)
        for (int j = 0; j < hidden; j++) {
            float a[3], b[3];
            for (int q = 0; q < 3; q++) {
                int r = q * hidden + j;
                a[q] = gate(x + n * 2 * hidden, weight_input + r * 2 * hidden, bias_input[r], 2 * hidden);
                b[q] = gate(h + n * hidden, weight_state + r * hidden, bias_state[r], hidden);
            }
            float z = sigma(a[1] + b[1]);
            y[n * hidden + j] = (1 - z) * tanhf(a[2] + sigma(a[0] + b[0]) * b[2]) + z * h[n * hidden + j];
        }
}
""",
    "head": """//! workspace packed[hidden, classes] : f32
//! once launch head_pack<<<1, 1>>>(head_weight, packed, hidden, classes)
//! launch head_k<<<1, 1>>>(packed, head_bias, x, x2, y, y2, batch, length, hidden, classes)
extern "C" __global__ void head_pack(const float *weight, float *packed, int hidden, int classes) {
    for (int j = 0; j < classes; j++)
        for (int k = 0; k < hidden; k++)
            packed[k * classes + j] = weight[j * hidden + k];
}
extern "C" __global__ void head_k(const float *packed, const float *bias, const float *x, const float *x2, float *y,
        float *y2, int batch, int length, int hidden, int classes) {
    for (int i = 0; i < batch * hidden; i++)
        y[i] = x[i];
    for (int n = 0; n < batch; n++)
        for (int j = 0; j < classes; j++) {
            float s = bias[j];
            for (int k = 0; k < hidden; k++)
                s += x2[(n * length + length - 1) * hidden + k] * packed[k * classes + j];
            y2[n * classes + j] = s;
        }
}
"""}


def task_shape(h, name):
    return h.shape_of(os.path.join(MODULE, name + ".task"), "")[0]


def make_runs(h, folder, without=()):
    """The folder of the module's runs, as `suite` leaves it."""
    os.makedirs(folder)
    shutil.copy(os.path.join(MODULE, "order.json"), folder)
    for name, source in KERNELS.items():
        task = os.path.join(MODULE, name + ".task")
        shutil.copy(task, folder)
        h.make_run(os.path.join(folder, name), task, task_shape(h, name), source)
        if name in without:
            os.remove(os.path.join(folder, name, "kernel.cu"))
            os.remove(os.path.join(folder, name, "outcome.json"))
    return folder


# ---- the module, written out ----

def sigma(v):
    return 1 / (1 + math.exp(-v))


def product(w, v, b):
    return [sum(x * y for x, y in zip(row, v)) + c for row, c in zip(w, b)]


def lstm_layer(p, suffix, rows, hidden, reverse):
    """One direction of a layer over the rows of one sample."""
    w, u = p["lstm.weight_ih_" + suffix], p["lstm.weight_hh_" + suffix]
    b, d = p["lstm.bias_ih_" + suffix], p["lstm.bias_hh_" + suffix]
    h, c, out = [0.0] * hidden, [0.0] * hidden, [None] * len(rows)
    for t in reversed(range(len(rows))) if reverse else range(len(rows)):
        g = [x + y for x, y in zip(product(w, rows[t], b), product(u, h, d))]
        i, f, m, o = (g[k * hidden:(k + 1) * hidden] for k in range(4))
        c = [sigma(f[j]) * c[j] + sigma(i[j]) * math.tanh(m[j]) for j in range(hidden)]
        h = [sigma(o[j]) * math.tanh(c[j]) for j in range(hidden)]
        out[t] = h
    return out


def module(p, x, h0, hidden):
    """head(…) and the GRU's last state of each sample."""
    results, states = [], []
    for rows, h in zip(x, h0):
        for layer in "l0", "l1":
            forward = lstm_layer(p, layer, rows, hidden, False)
            backward = lstm_layer(p, layer + "_reverse", rows, hidden, True)
            rows = [a + b for a, b in zip(forward, backward)]
        for row in rows:
            row = [math.tanh(v) for v in row]
            a = product(p["gru.weight_ih_l0"], row, p["gru.bias_ih_l0"])
            b = product(p["gru.weight_hh_l0"], h, p["gru.bias_hh_l0"])
            r = [sigma(a[j] + b[j]) for j in range(hidden)]
            z = [sigma(a[hidden + j] + b[hidden + j]) for j in range(hidden)]
            n = [math.tanh(a[2 * hidden + j] + r[j] * b[2 * hidden + j]) for j in range(hidden)]
            h = [(1 - z[j]) * n[j] + z[j] * h[j] for j in range(hidden)]
        results.append(product(p["head.weight"], h, p["head.bias"]))
        states.append(h)
    return results, states


def draw(shape, source):
    if not shape:
        return round(source.uniform(-1, 1), 3)
    return [draw(shape[1:], source) for _ in range(shape[0])]


def flat(value):
    return [v for part in value for v in flat(part)] if isinstance(value, list) else [value]


def given(sizes):
    """What the module is given, by name, at these sizes."""
    order = json.load(open(os.path.join(MODULE, "order.json")))
    source = random.Random(3)
    return {leaf["name"]: draw([eval(e, {}, dict(sizes)) for e in leaf["shape"][1:-1].split(",")], source)
            for leaf in order["inputs"] + order["parameters"]}


def expected(values, sizes):
    results, states = module(values, values["x"], values["h0"][0], sizes["hidden"])
    return flat(results), flat(states)


# ---- C ----

def parameter_types(source):
    """Of each kernel in a source: its parameters' types."""
    out = {}
    for text in source.split('extern "C" __global__ void ')[1:]:
        name, rest = text.split("(", 1)
        out[name] = ["int" if w.strip().startswith("int") else "const float *" if "const" in w else "float *"
                     for w in rest.split(")", 1)[0].split(",")]
    return out


def kernels_text():
    text = "#include <math.h>\n#define __global__\n#define __device__\n"
    for name, source in KERNELS.items():
        text += "namespace of_%s {\n%s}\n" % (name, source)
        for kernel, types in parameter_types(source).items():
            text += 'extern "C" void %s_call(void **p) {\n    of_%s::%s(%s);\n}\n' % (
                kernel, name, kernel, ", ".join("*(%s *)p[%d]" % (t, i) for i, t in enumerate(types)))
    return text


MAIN = r"""#include "op.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern unsigned host_launches;
%(arrays)s
static void *memory(size_t n) {
    void *p = aligned_alloc(256, n ? (n + 255) / 256 * 256 : 256);
    memset(p, 0xff, n);
    return p;
}
static void *device(const float *from, size_t n) {
    return memcpy(memory(n), from, n);
}
int main(void) {
    op_op op;
    op_dims dims = {%(dims)s};
    float *head = memory(sizeof(float) * %(heads)d), *state = memory(sizeof(float) * %(states)d);
    op_tensors tensors = {%(tensors)s, .head_2 = head, .head = state};
    printf("load %%d\n", op_load(&op));
    printf("admits %%d\n", op_admits(&op, &dims));
    op_dims none = dims;
    none.batch = 0;
    printf("none %%d %%zu\n", op_admits(&op, &none), op_workspace_bytes(&op, &none));
    size_t bytes = op_workspace_bytes(&op, &dims), held = op_prepared_bytes(&op, &dims);
    void *work = memory(bytes), *kept = memory(held), *stream = (void *)1;
    printf("workspace %%zu prepared %%zu\n", bytes, held);
    op_tensors only = {%(only)s};
    int code = op_prepare(&op, &dims, &only, kept, held, stream);
    printf("prepare %%d %%u\n", code, host_launches);
    for (int i = 0; i < 2; i++) {
        memset(work, 0xff, bytes);
        code = op_forward(&op, &dims, &tensors, kept, work, bytes, stream);
        printf("forward %%d %%u\n", code, host_launches);
    }
    for (int i = 0; i < %(heads)d; i++)
        printf("head %%.9g\n", head[i]);
    for (int i = 0; i < %(states)d; i++)
        printf("state %%.9g\n", state[i]);
    printf("short %%d\n", op_forward(&op, &dims, &tensors, kept, work, bytes - 1, stream));
    printf("odd %%d\n", op_forward(&op, &dims, &tensors, kept, (char *)work + 16, bytes, stream));
    printf("unprepared %%d\n", op_forward(&op, &dims, &tensors, NULL, work, bytes, stream));
    tensors.x = NULL;
    code = op_forward(&op, &dims, &tensors, kept, work, bytes, stream);
    printf("no input %%d %%u\n", code, host_launches);
    op_unload(&op);
    return 0;
}
"""


def main_text(sizes, values):
    fields = {name: name.replace(".", "_") for name in values}
    arrays = "".join("static const float in_%s[] = {%s};\n" % (fields[n], ", ".join("%rf" % v for v in flat(values[n])))
                     for n in values)
    pointers = {n: ".%s = device(in_%s, sizeof in_%s)" % (fields[n], fields[n], fields[n]) for n in values}
    return MAIN % {"arrays": arrays, "dims": ", ".join(".%s = %d" % s for s in sizes.items()),
                   "heads": sizes["batch"] * sizes["classes"], "states": sizes["batch"] * sizes["hidden"],
                   "tensors": ", ".join(pointers.values()),
                   "only": ", ".join(p for n, p in pointers.items() if "." in n)}


def values_of(lines, word):
    return [float(l.split()[1]) for l in lines if l.startswith(word + " ")]


def near(got, want, what, fault):
    if len(got) != len(want) or not all(abs(a - b) <= 2e-5 for a, b in zip(got, want)):
        raise fault("%s is\n  %s\nand the module gives\n  %s" % (what, got, want))


def case_c(h, tmp):
    """A module's package for C computes what the module does: on host.c, at several sizes."""
    runs, c = make_runs(h, os.path.join(tmp, "runs")), os.path.join(tmp, "c")
    h.export("c", c, runs)
    with open(os.path.join(c, "kernels.cc"), "w") as f:
        f.write(kernels_text())
    done = h.run(["g++", "-O1", "-c", "-Wno-unused-function", "kernels.cc", "-o", "kernels.o"], cwd=c)
    if done.returncode:
        raise h.Fault(done.stderr)
    for cc, sizes in ("clang", SMALL), ("gcc", dict(SMALL, batch=1, length=4)), ("gcc", dict(SMALL, batch=1, features=64, hidden=64)):
        compute(h, c, cc, sizes)


def compute(h, c, cc, sizes):
    values = given(sizes)
    with open(os.path.join(c, "main.c"), "w") as f:
        f.write(main_text(sizes, values))
    checked = ["-fsanitize=address,undefined", "-fno-sanitize-recover"] if cc == "gcc" else []
    for words in ([cc, "-std=c11", "-O1"] + checked + h.WARNINGS + ["-c", "op.c"],
                  [cc, "-std=c11", "-c", "main.c", "-D_GNU_SOURCE"] + checked,
                  ["gcc", "-D_GNU_SOURCE", "-c", os.path.join(h.HERE, "host.c")] + checked,
                  ["g++", *checked, "-rdynamic", "op.o", "main.o", "host.o", "kernels.o", "-ldl", "-o", "main"]):
        done = h.run(words, cwd=c)
        if done.returncode:
            raise h.Fault("%s: %s" % (" ".join(words[:1]), done.stderr[:1000]))
    done = h.run(["./main"], cwd=c, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    if done.returncode:
        raise h.Fault(done.stderr[:2000])
    lines = done.stdout.splitlines()
    steps = 5 * sizes["length"] + 2  # four directions of the LSTM, the GRU; what joins them, the head
    head, state = expected(values, sizes)
    near(values_of(lines, "head"), head, "the head", h.Fault)
    near(values_of(lines, "state"), state, "the state", h.Fault)
    wanted = ["load 0", "admits 1", "none 0 0", "prepare 0 1", "forward 0 %d" % (1 + steps),
              "forward 0 %d" % (1 + 2 * steps), "short 1", "odd 1", "unprepared 1", "no input 1 %d" % (1 + 2 * steps)]
    told = [l for l in lines if not l.startswith(("head ", "state ", "workspace "))]
    if told != wanted:
        raise h.Fault("it says %s\nand should say %s" % (told, wanted))
    workspace = [l for l in lines if l.startswith("workspace ")][0].split()
    sequences = 4 * 4 * sizes["batch"] * sizes["length"] * sizes["hidden"]
    if int(workspace[3]) != 4 * sizes["hidden"] * sizes["classes"]:
        raise h.Fault("prepared: %s" % workspace)
    if int(workspace[1]) > sequences + 20 * 256 + 40 * sizes["batch"] * sizes["hidden"] * 4 + 4 * 256:
        raise h.Fault("the workspace is larger than four sequences and what a step needs: %s" % workspace)


# ---- cubins ----

def case_cubin(h, tmp):
    """All plans of a module, and the order with the files of each."""
    out = os.path.join(tmp, "cubin")
    h.export("cubin", out, make_runs(h, os.path.join(tmp, "runs")))
    order = json.load(open(os.path.join(out, "op.order.json")))
    own = json.load(open(os.path.join(MODULE, "order.json")))
    if order["kernels"] != {n: ["op.%s_0" % n] for n in ("lstm", "lstm_2", "lstm_3", "gru", "head")} or \
            order["steps"] != own["steps"]:
        raise h.Fault("order: %s" % order["kernels"])
    for name in order["kernels"]:
        plan = json.load(open(os.path.join(out, "op.%s_0.json" % name)))
        with open(os.path.join(out, "op.%s_0.cubin" % name), "rb") as f:
            if plan["plan"]["once_steps"] != (name == "head") or f.read(4) != b"\177ELF":
                raise h.Fault("%s: %s" % (name, plan["plan"]))
        with open(os.path.join(out, "evidence", name + "_0", "kernel.cu")) as f:
            if hashlib.sha256(f.read().encode()).hexdigest() != plan["source_sha256"]:
                raise h.Fault("%s: the evidence is of another source" % name)


# ---- PyTorch ----

VALUES = """
import gc, json, sys, weakref
import torch, op
from op import _graph, _runtime
values, sizes, head, state = json.load(open(sys.argv[1]))
tensors = {n: torch.tensor(v) for n, v in values.items()}
x, h0 = tensors.pop("x"), tensors.pop("h0")

class Old(torch.nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.lstm = torch.nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=True)
        self.gru = torch.nn.GRU(2 * hidden, hidden, 1, batch_first=True)
        self.head = torch.nn.Linear(hidden, classes)
        self.register_buffer("counted", torch.zeros(1))
    def forward(self, x, h0):
        out, last = self.gru(torch.tanh(self.lstm(x)[0]), h0)
        return self.head(out[:, -1]), last

old = Old(sizes["features"], sizes["hidden"], sizes["classes"])
old.load_state_dict(dict(tensors, counted=torch.zeros(1)))
new = op.Module(features=sizes["features"], hidden=sizes["hidden"], classes=sizes["classes"])
new.load_state_dict(old.state_dict())
assert new.passed_over == ["counted"], new.passed_over
assert set(new.state_dict()) == set(tensors)

def near(made, wanted=None):
    wanted = wanted or (torch.tensor(head).reshape(made[0].shape), torch.tensor(state).reshape(made[1].shape))
    for a, b in zip(made, wanted):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)

with torch.no_grad():
    near(old(x, h0))
    near(new(x, h0))
    near(op.forward(x, h0, parameters=old.state_dict()))
    near(op.forward(x, h0, tensors))
    shared = op.Module.of(old)
    assert shared.head.weight is old.head.weight
    near(shared(x, h0))
    near(torch.compile(new, backend="aot_eager", fullgraph=True)(x, h0))
    exported = torch.export.export(new, (x, h0))
    near(exported.module()(x, h0))
    calls = exported.graph_module.code.count("torch.ops.cutepilot.op_")
    assert calls == 5 * sizes["length"] + 2, calls
    whole = torch.nn.Sequential(torch.nn.Identity())
    whole.add_module("part", op.Module(features=sizes["features"], hidden=sizes["hidden"], classes=sizes["classes"]))
    whole.load_state_dict({"part." + n: v for n, v in old.state_dict().items()})
    near(whole.part(x, h0))
    other = torch.randn(3, 7, sizes["features"]), torch.randn(1, 3, sizes["hidden"])
    near(new(*other), old(*other))
parts = op.parts()
assert parts["lstm"]["uses"] == 2 and parts["lstm"]["launches"] == 0, parts
assert set(parts["lstm"]["fallbacks"]) == {"cpu"} and parts["lstm"]["computed by"] == "a kernel"
WITHOUT

for bad, error in ((lambda: new(x), TypeError), (lambda: op.forward(x, h0, {}), KeyError),
                   (lambda: op.Module(width=3), TypeError), (lambda: new(x[0], h0), (ValueError, IndexError)),
                   (lambda: new.load_state_dict({}), RuntimeError)):
    try:
        bad()
    except error:
        continue
    raise AssertionError(bad)

# What flows is let go as soon as nobody reads it: a sequence of the first layer when the second is done.
alive = []
call = _graph._part_lstm_3.op_lstm_3
def watched(*arguments):
    gc.collect()
    alive.append(sum(1 for o in gc.get_objects() if type(o) is torch.Tensor and
                     tuple(o.shape) == (sizes["batch"], sizes["length"], sizes["hidden"])))
    return call(*arguments)
_graph._part_lstm_3.op_lstm_3 = watched
with torch.no_grad():
    near(new(x, h0))
assert alive == [2], alive
"""


BUFFERS = """
import torch, op
new = op.Module()
names = {n for n, _ in new.named_buffers()}
assert names == {"layers.%d.%s" % (i, n) for i in range(13) for n in ("noise", "scale")}, names
assert "layers.3.linear.weight" in dict(new.named_parameters())
"""


def case_buffers(h, tmp):
    """Buffers that tasks read are buffers of the module; no kernel was found for it, and it has a line."""
    module, runs, out = os.path.join(candidates.ROOT, "tests/import/tasks/buffers"), os.path.join(tmp, "runs"), \
        os.path.join(tmp, "torch")
    shutil.copytree(module, runs)
    task = os.path.join(module, "layers_0.task")
    h.make_run(os.path.join(runs, "layers_0"), task, h.shape_of(task, "")[0], "")
    for name in "kernel.cu", "outcome.json":
        os.remove(os.path.join(runs, "layers_0", name))
    h.export("torch", out, runs)
    with open(os.path.join(out, "op", "_graph.py")) as f:
        if '"layers.12.noise",\n' not in f.read():
            raise h.Fault("layers.12.noise is no buffer")
    h.with_torch(BUFFERS, out)
    with open(os.path.join(runs, "layers_0.task")) as f:
        text = f.read()
    for path in os.path.join(runs, "layers_0.task"), os.path.join(tmp, "without.task"):
        with open(path, "w") as f:
            f.write(text[:text.index("torch ")])
    shutil.rmtree(os.path.join(runs, "layers_0"))
    h.make_run(os.path.join(runs, "layers_0"), path, h.shape_of(task, "")[0], "")
    for name in "kernel.cu", "outcome.json":
        os.remove(os.path.join(runs, "layers_0", name))
    h.refused(tmp, [runs, "--name", "op", "--out", os.path.join(tmp, "out")], 1, "neither an accepted kernel nor")


def case_torch(h, tmp):
    """A module's package for PyTorch: what it calls exists, and on the CPU it computes the module."""
    for without in (), ("gru",):
        runs, out = (os.path.join(tmp, d + "_".join(without)) for d in ("runs", "torch"))
        h.export("torch", out, make_runs(h, runs, without))
        calls(h, os.path.join(out, "op"), without)
        values = given(SMALL)
        with open(os.path.join(out, "values.json"), "w") as f:
            json.dump([values, SMALL, *expected(values, SMALL)], f)
        program = VALUES.replace("sys.argv[1]", '"values.json"').replace("WITHOUT", "" if not without else """
assert parts["gru"]["computed by"].startswith("PyTorch") and parts["head"]["computed by"] == "a kernel", parts
assert _graph._part_gru.operation.choose((2, 5), 0, ()) == (None, "no kernel")""")
        h.with_torch(program, out)


def calls(h, folder, without):
    """Every operator that the order calls is there, and is given as many arguments as it takes."""
    takes = {}
    for path in glob.glob(os.path.join(folder, "*.py")):
        with open(path) as f:
            tree = ast.parse(f.read(), feature_version=(3, 9))
        for node in ast.walk(tree):
            if os.path.basename(path).startswith("_part_") and isinstance(node, ast.FunctionDef) and \
                    node.name.startswith("op_"):
                takes[os.path.basename(path)[:-3], node.name] = len(node.args.args)
        if path.endswith("_graph.py"):
            graph = tree
    made = [node for node in ast.walk(graph) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            and node.func.attr.startswith("op_")]
    for node in made:
        if takes.get((node.func.value.id, node.func.attr)) != len(node.args):
            raise h.Fault("%s: %d arguments, it takes %s" % (ast.dump(node.func), len(node.args), takes))
    for name in without:
        with open(os.path.join(folder, "..", "evidence", name, "task.task")) as f, \
                open(os.path.join(MODULE, name + ".task")) as own:
            if f.read() != own.read():
                raise h.Fault("the evidence has another task %s" % name)
    order = json.load(open(os.path.join(MODULE, "order.json")))
    if len(made) != len(order["steps"]):
        raise h.Fault("%d calls for %d uses" % (len(made), len(order["steps"])))
    for name in KERNELS:
        if os.path.exists(os.path.join(folder, name + "_0.cubin")) == (name in without):
            raise h.Fault("machine code of %s" % name)


# ---- the Python package ----

PYTHON = """
import cutepilot, json, os, sys
r = cutepilot.optimize(sys.argv[1], budget="1c", population=2, device="sim", out="run", progress=False)
assert isinstance(r, cutepilot.Module) and r.found and set(r.parts) == {"lstm", "lstm_2", "lstm_3", "gru", "head"}, r
assert r.runs() == {"lstm": 64, "lstm_2": 64, "lstm_3": 1, "gru": 32, "head": 1}, r.runs()
assert abs(r.time_s - sum(n * r.parts[k].time_s for k, n in r.runs().items())) < 1e-12
assert "64 times" in repr(r) and "estimated" in repr(r) and "<table>" in r._repr_html_()
again = cutepilot.load("run")
assert again.order == r.order and again.time_s == r.time_s
assert os.path.exists(os.path.join(r.export("c", "package", "two"), "two.c"))
assert os.path.exists(os.path.join(cutepilot.export(r, "torch", "op_package", "op"), "op", "_graph.py"))
try:
    r.export("c", "package")
except cutepilot.Error as why:
    assert why.code == 2, why
else:
    raise AssertionError
"""


def case_python(h, tmp):
    """`cutepilot.optimize` of a module's folder, on the simulator; and of its file, where PyTorch is."""
    env = dict(os.environ, PYTHONPATH=os.path.join(candidates.ROOT, "python"), CUTEPILOT=candidates.PROGRAM,
               HOME=tmp)
    done = h.run([sys.executable, "-c", PYTHON, MODULE], cwd=tmp, env=env)
    if done.returncode:
        raise h.Fault(done.stderr)
    live = os.path.join(candidates.ROOT, "tests/import/modules/recurrent.py")
    shutil.copytree(os.path.join(candidates.ROOT, "python"), os.path.join(tmp, "python"))
    h.with_torch(LIVE.replace("SOURCE", repr(live)).replace("PROGRAM", repr(os.path.abspath(candidates.PROGRAM))), tmp)


LIVE = """
import os, sys
sys.path.insert(0, "python")
os.environ["CUTEPILOT"] = PROGRAM
import cutepilot, importlib.util, torch
spec = importlib.util.spec_from_file_location("recurrent", SOURCE)
source = importlib.util.module_from_spec(spec)
spec.loader.exec_module(source)
r = cutepilot.optimize(SOURCE, budget="1c", population=2, device="sim", out="live", progress=False)
old, new, inputs = source.Model(*source.get_init_inputs()), r.new(), source.get_inputs()
new.load_state_dict(old.state_dict())
with torch.no_grad():
    for made in new(*inputs), r.op(*inputs, old.state_dict()):
        for a, b in zip(made, old(*inputs)):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
assert all(p["computed by"] == "a kernel" for p in r.package.parts().values())
"""


# ---- what is refused ----

def case_refused(h, tmp):
    """A folder that is not whole, runs of other tasks, and orders that say what cannot be."""
    out = ["--out", os.path.join(tmp, "out")]
    good = make_runs(h, os.path.join(tmp, "good"))

    def changed(name, change):
        folder = os.path.join(tmp, name)
        shutil.copytree(good, folder)
        change(folder)
        return folder

    def order(change):
        def write(folder):
            path = os.path.join(folder, "order.json")
            whole = json.load(open(path))
            change(whole)
            with open(path, "w") as f:
                json.dump(whole, f)
        return write

    def removed(*names):
        return lambda folder: [shutil.rmtree(os.path.join(folder, n)) if os.path.isdir(os.path.join(folder, n))
                               else os.remove(os.path.join(folder, n)) for n in names]

    def replaced(folder):
        shutil.rmtree(os.path.join(folder, "gru"))
        shutil.copytree(os.path.join(folder, "lstm"), os.path.join(folder, "gru"))

    def edited(folder):
        with open(os.path.join(folder, "lstm", "kernel.cu"), "a") as f:
            f.write("// changed\n")

    half = changed("half", removed("head"))
    for name, change, code, text in (
            ("no_run", removed("head"), 2, "its task head has no run"),
            ("no_task", removed("head.task"), 2, "has no head.task"),
            ("half_run", removed("gru/kernel.cu"), 2, "has no kernel.cu"),
            ("another", replaced, 2, "the run is of another task than"),
            ("edited", edited, 1, "changed after it was verified"),
            ("no_steps", order(lambda o: o.update(steps=[])), 2, "no order of tasks"),
            ("flow", order(lambda o: o["steps"][0]["in"].update(x={"each": "none"})), 2, "before it is there"),
            ("tensor", order(lambda o: o["steps"][0]["in"].pop("h")), 2, "h of lstm is connected with nothing"),
            ("twice", order(lambda o: o["steps"][1]["out"].update(y={"each": "lstm.sequence"})), 2, "is there twice"),
            ("state", order(lambda o: o["steps"][0]["in"]["h"].update(next="z")), 2, "which it does not give"),
            ("axis", order(lambda o: o["steps"][0]["repeat"].update(axis=7)), 2, "dimension"),
            ("result", order(lambda o: o.update(outputs=["nothing"])), 2, "nothing gives result 0"),
            ("rank", order(lambda o: o["inputs"][1].update(shape="[batch]")), 2, "number of dimensions"),
            ("dims", order(lambda o: o["dims"].pop(0)), 2, "batch of lstm is no dimension"),
            ("shape", order(lambda o: o["inputs"][0].update(shape="[batch,length,none]")), 2, "over the dimensions"),
            ("stacked", order(lambda o: o["steps"][0]["repeat"].update(axis=3)), 2, "dimension that is not there"),
            ("size", order(lambda o: o["dims"].append({"name": "odd", "value": 1, "is": "batch("})), 2,
             "no expression")):
        h.refused(tmp, [changed(name, change), "--name", "op"] + out, code, text)
    without = make_runs(h, os.path.join(tmp, "without"), ("gru",))
    for form in "c", "cubin":
        h.refused(tmp, [without, "--to", form, "--name", "op"] + out, 1, "its task gru has no accepted kernel")
    h.refused(tmp, [good, os.path.join(good, "lstm")] + out, 2, "cannot be one package")
    h.refused(tmp, [os.path.join(good, "lstm"), good] + out, 2, "cannot be one package")
    h.refused(tmp, [good, "--backward", os.path.join(good, "lstm")] + out, 2, "--backward goes with one task")
    h.refused(tmp, [half] + out, 2, "has no run")
    there = os.path.join(tmp, "there")
    os.makedirs(there)
    for form in "torch", "c", "cubin":
        done = h.cutepilot("export", good, "--to", form, "--name", "op", "--out", there)
        if done.returncode != 2 or "exists" not in done.stderr or os.listdir(there):
            raise h.Fault("%s: exit %d, %s" % (form, done.returncode, done.stderr))


def cases(h):
    """EVERY greater than 1 leaves out the one that searches, for five tasks."""
    every = int(os.environ.get("EVERY", "1"))
    return [(name, lambda tmp, case=case: case(h, tmp)) for name, case in (
        ("a module, C", case_c), ("a module, cubins", case_cubin), ("a module, PyTorch", case_torch),
        ("a module with buffers", case_buffers), ("a module, from Python", case_python),
        ("a module's bad folders", case_refused)) if every == 1 or case is not case_python]
