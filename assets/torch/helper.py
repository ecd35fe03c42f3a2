"""A task's `torch` line: timed as our kernels are timed, or evaluated to be held against the task.

One JSON object a line: requests on stdin, one answer each on what was stdout. Descriptor 1 is moved
away before anything else runs, so nothing that prints can break an answer. The line is somebody
else's code: this process was confined before Python started (src/eval/python.c).

    {"torch": LINE, "dims": {NAME: N}, "inputs": [{"name", "dtype", "shape", "files": [one a set]}],
     "outputs": [{"name", "shape"}], "class": CLASS, "device": "cuda:0"}     first
        -> {"ready": true, "torch", "python", "cuda", "gpu", "l2_bytes", "sets"}
    {"warm": "eager" | "compiled", "numerics": "class" | "default"}
        -> {"warmed": true, "first_call_s"}          first calls: compilation, autotuning, allocator
    {"time": "eager" | "compiled", "numerics": ..., "samples": N}
        -> {"samples_s": [...], "host_s": median time of the host to issue one call}
    {"drop": true}
        -> {"dropped": true}                 its inputs; they are read again when next needed
    {"values": LINE, "dims": {…}, "inputs": [{"name", "dtype", "shape", "file"}],
     "outputs": [{"name", "shape", "file"}]}                                 at any time, of any task
        -> {"torch", "python"}               the outputs' files hold float64 numbers
        -> {"fault": TEXT}                   the line is not what a torch line must be
        -> {"lacks": TEXT}                   this PyTorch does not have what the line calls
Any of them may be answered with {"error": TEXT}. End of file ends the process.

One process may serve several tasks: each first request has a name, "task", which later requests
repeat. Where tasks are made ready beside others on one GPU, "sets" in a first request or a warm one is
how many sets of inputs to read at the most, and "hold" in a warm one has the code compiled but none
of its Triton kernels run: torch.compile chooses among variants of a kernel by timing them at the
first run, which should have the GPU to itself.

A sample: the previous output dropped, another set of inputs, 2x the L2 written, a pause on the
device that lets the host get ahead, an event, the call, an event. The pause is for PyTorch's
benefit: without it the host's own slowness would be counted where kernels are short.

A file holds the first elements of a tensor as this program's generator makes them; it is repeated
to the tensor's size, so that values are the kernels' own.
"""
import contextlib
import json
import os
import sys
import time

WARM_CALLS = 3
MOST_SETS = 8
L2_UNKNOWN = 128 << 20
MEMORY_SHARE = 0.25  # of the free memory, for all sets of inputs
PAUSE_CYCLES_S = 2e9  # of the device's clock: errs to the long side
PAUSE_MIN_S = 20e-6

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i8": "int8",
          "u8": "uint8", "i32": "int32", "i64": "int64", "bool": "bool"}


class Failed(Exception):
    """With a text for the answer."""


def import_torch():
    try:
        import torch
        import torch.nn.functional
    except ImportError as missing:
        raise Failed("%s has no PyTorch (%s)" % (sys.executable, missing))
    return torch


class NotNow(Exception):
    """In the place of a kernel's run."""


@contextlib.contextmanager
def kernels_held(hold):
    """The first kernel's run leaves the block instead; what was compiled until then stays."""
    def refuse(*_args, **_more):
        raise NotNow

    if not hold:
        yield
        return
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    run, CachingAutotuner.run = CachingAutotuner.run, refuse
    try:
        yield
    except NotNow:
        pass
    finally:
        CachingAutotuner.run = run


class Device:
    """What is timed on. `cpu` keeps the protocol but has neither events nor an L2 to flush: it is
    for testing this file. One a process: the numerics that PyTorch was imported with are read before
    any task changes them."""

    def __init__(self, torch, name):
        self.torch, self.name, self.gpu = torch, name, name != "cpu"
        self.defaults = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
        if not self.gpu:
            self.l2_bytes, self.title = 0, "cpu"
            return
        if not torch.cuda.is_available():
            raise Failed("PyTorch %s sees no GPU" % torch.__version__)
        torch.cuda.set_device(name)
        properties = torch.cuda.get_device_properties(name)
        self.title = properties.name
        self.l2_bytes = getattr(properties, "L2_cache_size", 0) or L2_UNKNOWN
        self.flushed = torch.empty(2 * self.l2_bytes, dtype=torch.uint8, device=name)

    def free_bytes(self):
        return self.torch.cuda.mem_get_info(self.name)[0] if self.gpu else 1 << 34

    def wait(self):
        if self.gpu:
            self.torch.cuda.synchronize(self.name)

    def time(self, call, pause_s):
        """Device seconds and the host's seconds to issue the call."""
        if not self.gpu:
            begin = time.perf_counter()
            call()
            took = time.perf_counter() - begin
            return took, took
        start = self.torch.cuda.Event(enable_timing=True)
        end = self.torch.cuda.Event(enable_timing=True)
        self.flushed.zero_()
        self.torch.cuda._sleep(int(pause_s * PAUSE_CYCLES_S))
        start.record()
        begin = time.perf_counter()
        kept = call()
        issued = time.perf_counter() - begin
        end.record()
        self.wait()
        del kept
        return start.elapsed_time(end) * 1e-3, issued


def beside(path):
    """A file that was given: it lies beside this script."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), path)


def load_input(torch, device, tensor, path):
    """A tensor on the device, made of the file's elements over and over."""
    dtype = getattr(torch, DTYPES[tensor["dtype"]])
    with open(beside(path), "rb") as file:
        piece = torch.frombuffer(bytearray(file.read()), dtype=dtype).to(device.name)
    count = 1
    for extent in tensor["shape"]:
        count *= extent
    whole = piece.repeat(-(-count // piece.numel()))[:count] if piece.numel() < count else piece
    return whole.reshape(tensor["shape"]).contiguous()


def input_sets(torch, device, inputs, most):
    """As many sets as were given and fit, at least one and at the most so many; each a list in the
    order of the inputs."""
    def make(k):
        return [load_input(torch, device, t, t["files"][k]) for t in inputs]

    sets = [make(0)]
    each = sum(t.numel() * t.element_size() for t in sets[0]) or 1
    fitting = int(device.free_bytes() * MEMORY_SHARE // each)
    given = min([len(t["files"]) for t in inputs] + [most])
    for k in range(1, min(given, 1 + fitting)):
        sets.append(make(k))
    return sets


def make_function(torch, line, inputs, dims, name):
    """The line as a function of the inputs; dimensions are its globals, as ints. Its source is a
    file, as torch.compile expects of a function. The name is its own: functions of one name and one
    text that meet different shapes, in one process, would be compiled for shapes that change."""
    for used in [t["name"] for t in inputs] + list(dims):
        if not used.isidentifier():
            raise Failed("%s cannot be a name in Python" % used)
    names = {"torch": torch, "F": torch.nn.functional, **dims}
    text = "def %s(%s):\n    return (%s)\n" % (name, ", ".join(t["name"] for t in inputs), line)
    try:
        compile(line, "torch line", "eval")  # one expression, not a way out of the function
        code = compile(text, os.path.abspath(name + ".py"), "exec")
    except SyntaxError as wrong:
        raise Failed("the torch line is no Python expression: %s" % wrong)
    with open(name + ".py", "w") as file:
        file.write(text)
    exec(code, names)
    return names[name]


class Bench:
    def __init__(self, request, device):
        self.torch, self.device = device.torch, device
        self.kind = request["class"]
        self.outputs = request["outputs"]
        # One function for each numerics: compiled code depends on them and is kept by function.
        name = "".join(c if c.isascii() and c.isalnum() else "_" for c in request.get("task", ""))
        functions = {n: make_function(self.torch, request["torch"], request["inputs"],
                                      request["dims"], "torch_line_%s_%s" % (name, n))
                     for n in ("class", "default")}
        self.inputs, self.sets, self.turn = request["inputs"], [], 0
        self.load(request.get("sets", MOST_SETS))
        self.ways = {("eager", n): f for n, f in functions.items()}
        self.compile_missing = ""
        try:
            for n, f in functions.items():
                self.ways["compiled", n] = self.torch.compile(f)
        except Exception as missing:
            self.compile_missing = str(missing)

    def ready(self):
        torch = self.torch
        return {"ready": True, "torch": str(torch.__version__), "python": sys.version.split()[0],
                "cuda": str(torch.version.cuda), "gpu": self.device.title,
                "l2_bytes": self.device.l2_bytes, "sets": len(self.sets)}

    def set_numerics(self, numerics):
        """Class fp32 forbids TF32 everywhere, the other classes allow it; the tensors' own types
        do the rest. `default` is PyTorch's as it was imported."""
        allowed = self.kind != "fp32"
        matmul, cudnn = self.device.defaults if numerics == "default" else (allowed, allowed)
        self.torch.backends.cuda.matmul.allow_tf32 = matmul
        self.torch.backends.cudnn.allow_tf32 = cudnn

    def way(self, request, key):
        which = request[key], request.get("numerics", "class")
        if which not in self.ways:
            raise Failed("no way '%s' with numerics '%s'%s" %
                         (*which, ": " + self.compile_missing if self.compile_missing else ""))
        self.set_numerics(which[1])
        return self.ways[which]

    def load(self, most):
        if not self.sets and most:
            self.sets = input_sets(self.torch, self.device, self.inputs, most)

    def drop(self):
        self.sets = []
        if self.device.gpu:
            self.torch.cuda.empty_cache()
        return {"dropped": True}

    def next_set(self):
        self.turn += 1
        return self.sets[self.turn % len(self.sets)]

    def check(self, values):
        """The same work: as many outputs as the task has, of its shapes."""
        values = values if isinstance(values, (tuple, list)) else (values,)
        if len(values) != len(self.outputs):
            raise Failed("the torch line gives %d outputs, the task has %d" %
                         (len(values), len(self.outputs)))
        for value, output in zip(values, self.outputs):
            if list(value.shape) != list(output["shape"]):
                raise Failed("the torch line gives %s the shape %s instead of %s" %
                             (output["name"], list(value.shape), list(output["shape"])))

    def warm(self, request):
        function = self.way(request, "warm")
        self.load(request.get("sets", MOST_SETS))
        with self.torch.no_grad():
            begin = time.perf_counter()
            with kernels_held(request.get("hold", False)):
                self.check(function(*self.next_set()))
                self.device.wait()
            first = time.perf_counter() - begin
            for _ in range(0 if request.get("hold") else WARM_CALLS):
                function(*self.next_set())
            self.device.wait()
        return {"warmed": True, "first_call_s": first}

    def time(self, request):
        function = self.way(request, "time")
        self.load(MOST_SETS)
        samples, hosts = [], []
        with self.torch.no_grad():
            for _ in range(WARM_CALLS):  # numerics may have changed, clocks may have dropped
                inputs = self.next_set()
                _, host = self.device.time(lambda: function(*inputs), PAUSE_MIN_S)
            for _ in range(request["samples"]):
                inputs = self.next_set()
                pause = max(PAUSE_MIN_S, 2 * host)
                took, host = self.device.time(lambda: function(*inputs), pause)
                samples.append(took)
                hosts.append(host)
        return {"samples_s": samples, "host_s": sorted(hosts)[len(hosts) // 2] if hosts else None}


# ---- values ----

def missing_in(torch, failed):
    """What this PyTorch does not have, where that is what an exception says; otherwise nothing."""
    text = " ".join(str(failed).split())
    absent = isinstance(failed, AttributeError) and ("module 'torch" in text or "'Tensor' object" in text)
    of_type = "implemented for '" in text  # '"x_cpu" not …': of a type
    return text if absent or of_type or isinstance(failed, NotImplementedError) else ""


def same_values(a, b):
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def widened(torch, tensor):
    """An input as it is in the file, numbers of a float type as float64."""
    with open(beside(tensor["file"]), "rb") as file:
        given = torch.frombuffer(bytearray(file.read()), dtype=getattr(torch, DTYPES[tensor["dtype"]]))
    given = given.to(torch.float64) if given.is_floating_point() else given
    return given.reshape(tensor["shape"])


def write_value(torch, value, output):
    if not isinstance(value, torch.Tensor):
        raise Failed("the torch line gives %s as a %s, not a tensor" % (output["name"], type(value).__name__))
    if list(value.shape) != list(output["shape"]):
        raise Failed("the torch line gives %s the shape %s instead of %s" %
                     (output["name"], list(value.shape), list(output["shape"])))
    if value.is_complex():
        raise Failed("the torch line gives %s as complex numbers" % output["name"])
    content = bytearray(8 * value.numel())
    torch.frombuffer(content, dtype=torch.float64).copy_(value.reshape(-1))
    with open(output["file"], "wb") as file:
        file.write(content)


def evaluate(torch, request):
    inputs = request["inputs"]
    function = make_function(torch, request["values"], inputs, request["dims"], "torch_line_values")
    given = [widened(torch, t) for t in inputs]
    before = [t.clone() for t in given]
    with torch.no_grad():
        values = function(*given)
    values = values if isinstance(values, (tuple, list)) else (values,)
    if len(values) != len(request["outputs"]):
        raise Failed("the torch line gives %d outputs, the task has %d" %
                     (len(values), len(request["outputs"])))
    for value, output in zip(values, request["outputs"]):
        write_value(torch, value, output)
    for tensor, now, then in zip(inputs, given, before):
        if not same_values(now, then):
            raise Failed("the torch line changes its argument %s: it must give a new tensor" % tensor["name"])


def values(torch, request):
    try:
        evaluate(torch, request)
    except Failed as failed:
        return {"fault": str(failed)}
    except Exception as failed:  # of the line
        lacks = missing_in(torch, failed)
        words = " ".join(str(failed).split())[:1500]
        return {"lacks": lacks} if lacks else {"fault": "%s: %s" % (type(failed).__name__, words)}
    return {"torch": str(torch.__version__), "python": sys.version.split()[0]}


def serve(requests, answer):
    device, benches = None, {}
    for text in requests:
        try:
            request = json.loads(text)
            if "values" in request:
                answer(values(import_torch(), request))
                continue
            bench = benches.get(request.get("task", ""))
            if bench is None:
                device = device or Device(import_torch(), request.get("device", "cuda:0"))
                bench = benches[request.get("task", "")] = Bench(request, device)
                answer(bench.ready())
            elif "drop" in request:
                answer(bench.drop())
            elif "warm" in request:
                answer(bench.warm(request))
            elif "time" in request:
                answer(bench.time(request))
            else:
                raise Failed("a request without 'warm', 'time' or 'drop'")
        except Failed as failed:
            answer({"error": str(failed)})
        except Exception as failed:  # of the line, of PyTorch, of the GPU: said, not fatal
            words = " ".join(str(failed).split())
            answer({"error": "%s: %s" % (type(failed).__name__, words[:1500])})


def main():
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(fields):
        channel.write(json.dumps(fields) + "\n")
        channel.flush()

    serve(sys.stdin, answer)


if __name__ == "__main__":
    main()
