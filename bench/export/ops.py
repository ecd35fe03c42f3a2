"""Exported operators for the scripts of this folder: made, loaded, and on a machine without a GPU run as far
as that goes.

There a stand-in for libcuda (tests/export/driver.c) takes the launches, and PyTorch's own expression makes
the values: everything of the operator happens but the kernels themselves.
"""
import importlib
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.environ.get("CUTEPILOT") or os.path.join(ROOT, "build", "cutepilot")


class Fault(Exception):
    """What does not hold, in words."""


def cutepilot(*words, codes=(0,)):
    done = subprocess.run([PROGRAM] + list(words), capture_output=True, text=True)
    if done.returncode not in codes:
        raise Fault("cutepilot %s: exit %d: %s" % (" ".join(words), done.returncode, done.stderr.strip()[-800:]))
    return done.stdout


def settings(sizes):
    return [word for name, value in sizes.items() for word in ("--set", "%s=%d" % (name, value))]


def optimize(task, folder, device, budget, sizes):
    """A run, gone on with where it stopped; none that is finished is made again."""
    cutepilot("optimize", task, "--device", device, "--budget", budget, "--out", folder, "--history", "off",
              "--json", *settings(sizes))
    return folder


def export(run, folder, name, backward=None):
    if not os.path.isdir(folder):
        cutepilot("export", run, "--to", "torch", "--name", name, "--out", folder,
                  *(["--backward", backward] if backward else []))
    return folder


def load(folder, name):
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


# ---- without a GPU ----

def build_stand_in(folder):
    """The library that takes the launches. It writes a line for each to stdout, which is not wanted here."""
    path = os.path.join(folder, "libcuda_stand_in.so")
    if not os.path.exists(path):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", path, os.path.join(ROOT, "tests/export/driver.c")], check=True)
    os.environ["CUTEPILOT_LIBCUDA"] = path
    return path


def parameters(run, folder):
    """What the stand-in must know of the kernels: how long each parameter is."""
    if not os.path.isdir(folder):
        cutepilot("export", run, "--to", "cubin", "--name", "op", "--out", folder)
    with open(os.path.join(folder, "op.0.json")) as f:
        plan = json.load(f)
    return ["%s:%s" % (launch["kernel"], ",".join(map(str, sizes)))
            for launch, sizes in zip(plan["plan"]["launches"], plan["parameter_bytes"])]


class StandInEvent:
    def record(self, stream):
        pass


def use_stand_in(module):
    """Calls of the operator go to the stand-in; what they should have written is then computed by PyTorch."""
    import torch
    runtime = module._operator._runtime
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    runtime._raw_stream = lambda device: 0
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.current_stream = lambda device=None: None
    torch.cuda.Event = StandInEvent
    runtime.check_place = runtime_check_place(runtime)
    runtime.is_on_cpu = lambda tensor: False
    operations = [module.operation] + ([module.backward_operation] if hasattr(module, "backward_operation") else [])
    for operation in operations:
        operation.run = lambda dims, tensors, real=operation.run: real(dims, tensors) and False


def runtime_check_place(runtime):
    """As on a GPU, but for the place itself."""
    def check(names, tensors):
        for name, tensor in zip(names, tensors):
            if not tensor.is_contiguous():
                raise ValueError("%s has strides %s: it must be contiguous" % (name, tuple(tensor.stride())))
    return check
