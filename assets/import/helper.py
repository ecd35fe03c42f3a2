"""PyTorch's side of `cutepilot import`: a module's file becomes a graph of ATen operators.

One JSON object a line: requests on stdin, one answer each on what was stdout. The file is somebody
else's code: this process was confined before Python started (src/eval/python.c).

    {"file": PATH, "class": NAME or null, "keep": [operators that are not decomposed],
     "seconds": limit of each request}                                                       first
        -> the graph (docs/IMPORT.md has its fields)
    {"sizes": {DIMENSION: N}, "inputs": {NAME: {"file": FILE}}, "outputs": [FILE]}
        -> {"shapes", "narrow", "line"}   the module itself in float64: raw float64 arrays in and out;
                                          narrow: it rounds to a narrower type on the way; line: the
                                          torch line gives the same
    {"line", "dims", "given", "wanted"} -> {"holds"}   whether the torch line of a part gives the
                                          values of its task
    {"close": true}
        -> {"closed": true}               another file may follow
Any of them may be answered with {"error": TEXT, "at": "FILE:LINE", "kind": "input" | "environment"}.

How a graph comes about. The file is executed with fake tensors, which have shapes and no memory,
and every operator that the constructor, get_inputs() and forward() call is recorded with the line it
was called from. Whole numbers that the file states (`batch_size = 128`) are candidates for
dimensions: each is changed alone and the recording repeated. Where the graph stays the same but for
sizes, the number is a dimension, and every size in the graph is written as an expression over the
dimensions that fits all recordings. Where it does not, the number is a constant of the task.
"""
import ast
import collections
import contextlib
import copy
import inspect
import json
import math
import os
import signal
import sys
import traceback
import warnings

GIVEN = os.path.dirname(os.path.abspath(__file__))  # where inputs lie, which we may only read
WORK = os.getcwd()  # where outputs go
OWN_PROCESSES = sys.argv[1:] == ["--own-processes"]
LATE = object()  # a place that is found where the time ran out
MOST_NODES = 6000
TENSORS_MOST = 64        # of a task (TASK_MAX_TENSORS); what has more is cut
MOST_PROBES = 60
CONSTANT_MOST = 64       # elements of a constant tensor that stands in a file
WEIGHT_BYTES_MOST = 2 << 30  # of a module that is run for comparison, in float64
SAMPLES_LEAST = 12       # of a batch normalisation at small sizes: with fewer, rounding shows
FACTORIES = ("linspace", "arange", "iota", "full", "zeros", "ones")
DRAWN = ("rand", "randn", "rand_like", "randn_like")  # what forward() draws so is an input of the task
# Functions of PyTorch that drop elements at random: (input, p, training, …) and (…, dropout_p at 4, …).
DROPOUT = {"dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "dropout1d", "dropout2d", "dropout3d",
           "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"}
# Operators whose whole numbers are sizes and places: they may follow a dimension.
SIZED = {"view", "_unsafe_view", "reshape", "expand", "repeat", "full", "ones", "zeros", "empty",
         "rand", "randn", "randint", "arange", "slice", "new_zeros", "new_ones", "new_full",
         "new_empty", "empty_strided", "as_strided", "split", "split_with_sizes", "narrow",
         "linspace", "eye", "slice_scatter", "roll", "tril_indices", "triu_indices", "unflatten",
         "normal", "constant", "_reshape_alias", "select", "randperm"}


# ... and such arguments of others.
SIZE_ARGUMENTS = {"native_group_norm": ("N", "C", "HxW", "group"),
                  "native_layer_norm": ("normalized_shape",),
                  "upsample_nearest1d": ("output_size",), "upsample_nearest2d": ("output_size",),
                  "upsample_nearest3d": ("output_size",)}


class Failed(Exception):
    """With a text for the answer and a place in the file."""

    def __init__(self, text, at=None, kind="input"):
        super().__init__(text)
        self.at, self.kind = at, kind


def import_torch():
    os.environ["OMP_NUM_THREADS"] = "1"  # shapes are small, and the machine may be busy
    try:
        import torch
        import torch.nn.functional
    except ImportError as missing:
        raise Failed("%s has no PyTorch (%s); --python names another Python" % (sys.executable, missing),
                     kind="environment")
    if hasattr(torch, "compile"):  # before PyTorch 2.0 this reads /proc/cpuinfo, which is hidden
        torch.set_num_threads(1)
    return torch


# ---- the file, with other numbers in it ----

class Source:
    """The text of a file, and the whole numbers in it that may become dimensions.

    A candidate is an expression of whole numbers alone: the right side of an assignment at the top of
    the file (also inside tuples and lists), or an argument in get_inputs and get_init_inputs. Equal
    numbers without a name of their own are one candidate."""

    def __init__(self, path):
        self.path = path
        try:
            with open(path, "rb") as file:
                self.text = file.read().decode("utf-8")
            self.tree = ast.parse(self.text, path)
        except (OSError, UnicodeDecodeError) as failed:
            raise Failed("cannot read it: %s" % failed)
        except SyntaxError as wrong:
            raise Failed("no Python: %s" % wrong.msg, "%s:%s" % (path, wrong.lineno))
        self.places = collections.OrderedDict()  # name -> [nodes]
        self.values = {}
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign):
                self.assignment(statement)
        for statement in self.tree.body:
            if isinstance(statement, ast.FunctionDef) and \
                    statement.name in ("get_inputs", "get_init_inputs"):
                for inside in ast.walk(statement):
                    if isinstance(inside, ast.Call):
                        for argument in inside.args:
                            self.unnamed(argument)
                    elif isinstance(inside, ast.Return) and isinstance(inside.value, ast.List):
                        for element in inside.value.elts:
                            self.unnamed(element)
                    elif isinstance(inside, ast.Assign) and len(inside.targets) == 1 and \
                            isinstance(inside.targets[0], ast.Name):
                        self.add(inside.targets[0].id, inside.value)

    def assignment(self, statement):
        names = [t for t in statement.targets if isinstance(t, ast.Name)]
        if names:
            self.name(names[0].id, statement.value)
        for target in statement.targets:
            if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple) and \
                    len(target.elts) == len(statement.value.elts):
                for t, v in zip(target.elts, statement.value.elts):
                    if isinstance(t, ast.Name):
                        self.name(t.id, v)

    def name(self, name, value):
        if isinstance(value, (ast.Tuple, ast.List)):
            for i, element in enumerate(value.elts):
                self.name("%s_%d" % (name, i), element)
        elif isinstance(value, ast.Call):  # example_inputs = torch.rand(8, 16)
            for inside in ast.walk(value):
                if isinstance(inside, ast.Call):
                    for argument in inside.args:
                        self.unnamed(argument)
        else:
            self.add(name, value)

    def unnamed(self, value):
        if isinstance(value, (ast.Tuple, ast.List)):
            for element in value.elts:
                self.unnamed(element)
            return
        number = self.number(value)
        if number is not None and number >= 2:
            self.add("size_%d" % number, value)

    @staticmethod
    def number(value):
        for inside in ast.walk(value):
            if isinstance(inside, ast.Constant) and type(inside.value) is not int:
                return None
            if not isinstance(inside, (ast.Constant, ast.BinOp, ast.operator)):
                return None
        try:
            number = eval(compile(ast.Expression(value), "size", "eval"), {"__builtins__": {}})
        except Exception:
            return None
        return number if type(number) is int and 1 <= number < 1 << 40 else None

    def add(self, name, value):
        number = self.number(value)
        if number is None or number < 2 or self.values.get(name, number) != number:
            return  # what is 1 is broadcast, and means something else when it grows
        self.values[name] = number
        self.places.setdefault(name, []).append(value)

    def run(self, sizes):
        """The file's names, executed with these numbers for the candidates."""
        chosen = {id(node): sizes[name] for name, nodes in self.places.items() for node in nodes
                  if name in sizes}

        class Change(ast.NodeTransformer):
            def generic_visit(self, node):
                if id(node) in chosen:
                    return ast.copy_location(ast.Constant(chosen[id(node)]), node)
                return super().generic_visit(node)

            def visit(self, node):
                return self.generic_visit(node)

        memo = {}
        tree = copy.deepcopy(self.tree, memo)
        chosen = {id(memo[key]): value for key, value in chosen.items()}
        tree = ast.fix_missing_locations(Change().visit(tree))
        names = {"__name__": "imported_module", "__file__": self.path}
        module = type(sys)("imported_module")
        module.__dict__.update(names)
        sys.modules["imported_module"] = module
        exec(compile(tree, self.path, "exec"), module.__dict__)
        return module.__dict__


def place_of(path, frames):
    """The innermost frame of the user's file."""
    for name, line in frames:
        if name == path:
            return "%s:%d" % (path, line)
    return None


def here(path):
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == path:
            return frame.f_lineno
        frame = frame.f_back
    return None


# ---- recurrences ----

def lstm_step(torch, xs, states, weights):
    h, c = states
    f = torch.nn.functional
    x = torch.cat(xs, dim=-1) if len(xs) > 1 else xs[0]
    gates = f.linear(x, weights[0], *weights[2:3]) + f.linear(h, weights[1], *weights[3:4])
    i, forget, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(forget) * c + torch.sigmoid(i) * torch.tanh(g)
    return [torch.sigmoid(o) * torch.tanh(c), c]


def gru_step(torch, xs, states, weights):
    h = states[0]
    f = torch.nn.functional
    x = torch.cat(xs, dim=-1) if len(xs) > 1 else xs[0]
    given = f.linear(x, weights[0], *weights[2:3]).chunk(3, dim=-1)
    held = f.linear(h, weights[1], *weights[3:4]).chunk(3, dim=-1)
    reset, update = torch.sigmoid(given[0] + held[0]), torch.sigmoid(given[1] + held[1])
    new = torch.tanh(given[2] + reset * held[2])
    return [(1 - update) * new + update * h]


def rnn_step(activation):
    def step(torch, xs, states, weights):
        f = torch.nn.functional
        x = torch.cat(xs, dim=-1) if len(xs) > 1 else xs[0]
        return [getattr(torch, activation)(f.linear(x, weights[0], *weights[2:3]) +
                                           f.linear(states[0], weights[1], *weights[3:4]))]
    return step


# By the name that PyTorch calls them by: one step, and the names of what is carried.
RECURRENT = {"lstm": (lstm_step, ("h", "c")), "gru": (gru_step, ("h",)),
             "rnn_tanh": (rnn_step("tanh"), ("h",)), "rnn_relu": (rnn_step("relu"), ("h",))}


class Example:
    """A module and its inputs, made from the file's names."""

    def __init__(self, torch, names, wanted, path):
        self.torch = torch
        model = self.find(names, wanted, path)
        arguments, keywords = self.init_arguments(names)
        if inspect.isclass(model):
            self.check_arguments(model, names, arguments, keywords)
            model = model(*arguments, **keywords)
        self.model = model
        for inside in model.modules():
            if isinstance(inside, torch.nn.modules.dropout._DropoutNd):
                inside.eval()
            if isinstance(inside, (torch.nn.RNNBase, torch.nn.MultiheadAttention)) and inside.dropout:
                inside.dropout, inside.left_out = 0.0, True
        inputs = self.example(names, path)
        self.inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]

    def find(self, names, wanted, path):
        torch = self.torch
        here = [n for n, v in names.items()
                if (inspect.isclass(v) and issubclass(v, torch.nn.Module) and
                    v.__module__ == "imported_module") or isinstance(v, torch.nn.Module)]
        if wanted:
            if wanted not in names:
                raise Failed("there is no %s in it; it has %s" %
                             (wanted, ", ".join(here) or "no module"))
            return names[wanted]
        if "Model" in here:
            return names["Model"]
        if len(here) == 1:
            return names[here[0]]
        raise Failed("no class Model in it; --class chooses one of %s" %
                     (", ".join(here) if here else "none: it has no subclass of torch.nn.Module"))

    @staticmethod
    def check_arguments(model, names, arguments, keywords):
        """A constructor that needs arguments which the file does not give is the commonest mistake."""
        try:
            inspect.signature(model.__init__).bind(None, *arguments, **keywords)
        except TypeError as missing:
            if "get_init_inputs" not in names:
                raise Failed("the constructor of %s needs arguments (%s): the file needs get_init_inputs(), "
                             "which returns them as a list or as a dictionary" % (model.__name__, missing))

    @staticmethod
    def init_arguments(names):
        given = names["get_init_inputs"]() if "get_init_inputs" in names else []
        if isinstance(given, dict):
            return [], given
        given = list(given)
        if len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict):
            return list(given[0]), given[1]
        return given, {}

    @staticmethod
    def example(names, path):
        if "get_inputs" in names:
            return names["get_inputs"]()
        if "example_inputs" in names:
            return names["example_inputs"]
        raise Failed("no example inputs: the file needs get_inputs(), which returns a list of "
                     "tensors, or example_inputs")

    def input_names(self):
        names = []
        try:
            for p in inspect.signature(self.model.forward).parameters.values():
                if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                    names.append(p.name)
        except (TypeError, ValueError):
            pass
        return [names[i] if i < len(names) else "x%d" % i for i in range(len(self.inputs))]


# ---- recording ----

class Cell:
    """Memory: what it holds now, as a node of the graph, and how often it has been written."""

    def __init__(self, ref):
        self.ref, self.version = ref, 0


class Held:
    """A tensor: its memory and the views that lead to it, [(operator, arguments)]."""

    def __init__(self, cell, chain, ref):
        self.cell, self.chain, self.ref, self.version = cell, chain, ref, cell.version


def make_recorder(torch, path, keep):
    """A class, because its base exists only once PyTorch was imported."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch._decomp import decomposition_table
    overrides = torch.overrides

    DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.float16: "f16",
              torch.bfloat16: "bf16", torch.int8: "i8", torch.uint8: "u8", torch.int32: "i32",
              torch.int64: "i64", torch.bool: "bool"}
    ALIASES = {"detach", "alias", "lift_fresh", "lift_fresh_copy", "lift"}

    class Recorder(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.nodes, self.held, self.kept = [], {}, []
            self.stack, self.phase = [], "init"
            self.updates = set()
            self.dropped = set()  # submodules that call a function of dropout
            self.drawn = []  # nodes: inputs that forward() draws itself
            self.real = {}   # values of small tensors that the constructor makes of numbers alone

        # -- nodes --

        def node(self, op, args, outs):
            if len(self.nodes) >= MOST_NODES:
                raise Failed("more than %d operators: a loop over time or many layers, which is "
                             "too long for one task" % MOST_NODES, self.at())
            self.nodes.append({"op": op, "args": args, "outs": [self.kind(t) for t in outs],
                               "line": here(path), "module": self.stack[-1] if self.stack else "",
                               "phase": self.phase})
            return len(self.nodes) - 1

        def at(self):
            line = here(path)
            return "%s:%d" % (path, line) if line else None

        def kind(self, t):
            if not isinstance(t, torch.Tensor):
                return None
            if t.dtype not in DTYPES:
                raise Failed("tensors of %s cannot be expressed" % t.dtype, self.at())
            return {"shape": [int(n) for n in t.shape], "dtype": DTYPES[t.dtype]}

        def hold(self, t, ref):
            self.kept.append(t)  # so that the identity of a tensor is never another's
            self.held[id(t)] = Held(Cell(ref), [], ref)

        def ref(self, t):
            held = self.held.get(id(t))
            if held is None:
                return self.constant(t)
            if held.version != held.cell.version:  # written through another view since
                held.ref, held.version = self.follow(held), held.cell.version
            return held.ref

        def follow(self, held):
            ref = held.cell.ref
            for op, args, out in held.chain:
                ref = {"node": self.node(op, dict(args, self=ref), [out]), "out": 0}
            return ref

        def constant(self, t):
            from torch._subclasses.fake_tensor import FakeTensor
            value = getattr(t, "constant", None) if isinstance(t, FakeTensor) else t
            if value is None or value.numel() > CONSTANT_MOST:
                raise Failed("a constant tensor of shape %s cannot be expressed" % list(t.shape),
                             self.at())
            with without_modes(torch):
                values = value.detach().reshape(-1).tolist()
            args = {"values": [float(v) if isinstance(v, float) else int(v) for v in values]}
            ref = {"node": self.node("constant", args, [t]), "out": 0}
            self.hold(t, ref)
            return ref

        # -- operators --

        def arguments(self, func, args, kwargs):
            bound = {}
            for i, argument in enumerate(func._schema.arguments):
                if argument.name in kwargs:
                    value = kwargs[argument.name]
                elif i < len(args):
                    value = args[i]
                else:
                    value = argument.default_value
                bound[argument.name] = value
            return bound

        def plain(self, value):
            if isinstance(value, torch.Tensor):
                return self.ref(value)
            if isinstance(value, (list, tuple)):
                return [self.plain(v) for v in value]
            if isinstance(value, bool) or value is None or isinstance(value, str):
                return value
            if isinstance(value, int):
                return int(value)
            if isinstance(value, float):
                return value if math.isfinite(value) else str(value)
            if isinstance(value, torch.dtype):
                return DTYPES.get(value, str(value))
            if isinstance(value, (torch.device, torch.layout, torch.memory_format, torch.Generator)):
                return None
            if hasattr(value, "__int__"):
                return int(value)
            return str(value)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            name = func._schema.name
            if name.startswith("prim::"):
                return func(*args, **kwargs)  # of a tensor's device and the like
            name = name.split("::")[-1]
            if name == "_local_scalar_dense" and id(args[0]) in self.real:
                with without_modes(torch):
                    return self.real[id(args[0])].item()
            if name in ("_local_scalar_dense", "item", "nonzero", "is_nonzero", "masked_select"):
                raise Failed("the computation depends on values of tensors (%s), not on shapes "
                             "alone" % ("item() or an `if` over a tensor"
                                        if name == "_local_scalar_dense" else name), self.at())
            if name in ("_to_copy",) and self.same_type(args, kwargs):
                name = "clone"
            base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
            if base in DRAWN and base.endswith("_like") and self.phase == "forward":
                return self.drawn_like(base[:-5], func(*args, **kwargs))
            if base not in keep and name not in keep and name not in ALIASES:
                decomposed = self.decompose(func, args, kwargs)
                if decomposed is not NotImplemented:
                    return decomposed
            if name in ALIASES:
                return self.alias(func, args, kwargs)
            bound = self.arguments(func, args, kwargs)
            plain = {key: self.plain(value) for key, value in bound.items()}
            written = [a.name for a in func._schema.arguments
                       if a.alias_info is not None and a.alias_info.is_write]
            out = func(*args, **kwargs)
            returns = func._schema.returns
            if written and returns and returns[0].alias_info is not None:
                return self.write(base, bound[written[0]], plain, out)
            for name_written in written:
                if isinstance(bound[name_written], torch.Tensor):
                    self.updates.add(name_written)
            outs = list(out) if isinstance(out, (tuple, list)) else [out]
            if self.phase == "init":
                self.compute(base, func, args, kwargs, outs)
            index = self.node(base, plain, outs)
            view = bool(returns) and returns[0].alias_info is not None and not written
            for i, t in enumerate(outs):
                if isinstance(t, torch.Tensor):
                    self.hold(t, {"node": index, "out": i})
                    source = self.held.get(id(args[0])) if view and args and \
                        isinstance(args[0], torch.Tensor) else None
                    if source and len(outs) == 1:
                        rest = {k: v for k, v in plain.items() if k != "self"}
                        self.held[id(t)] = Held(source.cell, source.chain + [(base, rest, t)],
                                                {"node": index, "out": 0})
            if base in DRAWN and self.phase == "forward":
                self.drawn.append(self.node("in", {"name": "drawn%d" % (len(self.drawn) + 1),
                                                   "value": {"node": index, "out": 0}}, [out]))
                self.hold(out, {"node": self.drawn[-1], "out": 0})
            return out

        def drawn_like(self, base, out):
            """torch.randn_like(x), as torch.randn of its shape."""
            plain = {"size": [int(n) for n in out.shape], "dtype": self.plain(out.dtype)}
            value = {"node": self.node(base, plain, [out]), "out": 0}
            self.drawn.append(self.node("in", {"name": "drawn%d" % (len(self.drawn) + 1), "value": value}, [out]))
            self.hold(out, {"node": self.drawn[-1], "out": 0})
            return out

        def scan(self, step, xs, states, weights, axis, reverse):
            """A recurrence over time as one node: the step is a graph of its own, what it reads is a
            slice of a sequence each, a state that is carried, or the same in every step."""
            function, carried = step
            begin = len(self.nodes)
            sequence = list(xs[0].shape)
            del sequence[axis]
            leaves = [(t, "each", "x" if len(xs) == 1 else "x%d" % (i + 1),
                       torch.empty([n for k, n in enumerate(t.shape) if k != axis], dtype=t.dtype))
                      for i, t in enumerate(xs)]
            leaves += [(t, "state", name, torch.empty_like(t)) for t, name in zip(states, carried)]
            leaves += [(t, "whole", name, torch.empty_like(t)) for t, name in
                       zip(weights, ("weight_input", "weight_state", "bias_input", "bias_state"))]
            inner = Recorder()
            inner.phase = "forward"
            for _, _, name, t in leaves:
                index = inner.node("in", {"name": name}, [t])
                inner.hold(t, {"node": index, "out": 0})
            with inner:
                n = len(xs)
                results = function(torch, [t for _, _, _, t in leaves[:n]],
                                   [t for _, _, _, t in leaves[n:n + len(states)]],
                                   [t for _, _, _, t in leaves[n + len(states):]])
            step = {"nodes": inner.nodes, "outputs": [inner.ref(t) for t in results]}
            shape = list(results[0].shape)
            shape.insert(axis, xs[0].shape[axis])
            outs = [torch.empty(shape, dtype=results[0].dtype)] + \
                [torch.empty_like(t) for t in results]
            del self.nodes[begin:]
            args = {"bind": [self.ref(t) for t, _, _, _ in leaves],
                    "how": [how for _, how, _, _ in leaves], "next": list(range(len(states))),
                    "axis": axis, "reverse": reverse,
                    "gives": [[0, "each"]] + [[i, "last"] for i in range(len(results))]}
            index = self.node("scan", args, outs)
            self.nodes[index]["step"] = step
            for i, t in enumerate(outs):
                self.hold(t, {"node": index, "out": i})
            return outs[0], outs[1:]

        def compute(self, op, func, args, kwargs, outs):
            """A constructor may look at what follows from numbers, such as rates by torch.linspace."""
            given = [a for a in args if isinstance(a, torch.Tensor)]
            if not (all(id(a) in self.real for a in given) if given else op in FACTORIES):
                return
            if any(not isinstance(t, torch.Tensor) or t.numel() > CONSTANT_MOST for t in outs):
                return
            with without_modes(torch):
                made = func(*[self.real[id(a)] if isinstance(a, torch.Tensor) else a for a in args],
                            **kwargs)
            made = list(made) if isinstance(made, (tuple, list)) else [made]
            for t, value in zip(outs, made):
                self.real[id(t)] = value

        @staticmethod
        def same_type(args, kwargs):
            return kwargs.get("dtype") in (None, args[0].dtype)

        def decompose(self, func, args, kwargs):
            if func in decomposition_table:
                with self:
                    out = decomposition_table[func](*args, **kwargs)
                if out is not NotImplemented:
                    return out
            if hasattr(func, "decompose"):
                with self:
                    return func.decompose(*args, **kwargs)
            return NotImplemented

        def alias(self, func, args, kwargs):
            out = func(*args, **kwargs)
            self.ref(args[0])
            self.kept.append(out)
            self.held[id(out)] = self.held[id(args[0])]
            if id(args[0]) in self.real:
                self.real[id(out)] = self.real[id(args[0])]
            return out

        def write(self, op, target, plain, out):
            """target becomes op(...); where it is a view, so does the part of what it looks at."""
            self.ref(target)
            held = self.held[id(target)]
            if op == "copy":
                index = self.node("expand_as", {"self": plain["src"], "other": plain["self"]},
                                  [target])
            else:
                index = self.node(op, plain, [target])
            ref = {"node": index, "out": 0}
            chain = [(o, a, t) for o, a, t in held.chain]
            refs = [held.cell.ref]
            for o, a, t in chain:  # what each view showed before
                refs.append({"node": self.node(o, dict(a, self=refs[-1]), [t]), "out": 0})
            for k in range(len(chain) - 1, -1, -1):
                o, a, t = chain[k]
                scatter = {"slice": "slice_scatter", "select": "select_scatter"}.get(o)
                if scatter is None:
                    raise Failed("writing through a view (%s) cannot be expressed" % o, self.at())
                outer = self.nodes[refs[k]["node"]]["outs"][refs[k]["out"]]
                node = self.node(scatter, dict(a, self=refs[k], src=ref), [])
                self.nodes[node]["outs"] = [dict(outer)]
                ref = {"node": node, "out": 0}
            held.cell.ref = ref
            held.cell.version += 1
            if not chain:
                held.ref, held.version = ref, held.cell.version
            if isinstance(out, torch.Tensor) and id(out) != id(target):
                self.kept.append(out)
                self.held[id(out)] = held
            return out

    class Calls(overrides.TorchFunctionMode):
        """The calls of forward() as the user wrote them, for the torch line."""

        def __init__(self, recorder):
            super().__init__()
            self.recorder = recorder
            self.calls, self.made, self.kept, self.fault = [], {}, [], None

        def recur(self, name, args):
            """All layers and directions of nn.LSTM, nn.GRU and nn.RNN, a recurrence each."""
            if len(args) != 9 or not isinstance(args[2], (list, tuple)):
                raise Failed("a recurrence over packed sequences (%s) cannot be expressed" % name,
                             self.recorder.at())
            x, states, weights, biased, layers, _, _, both, batch_first = args
            states = list(states) if name == "lstm" else [states]
            each, directions = 4 if biased else 2, 2 if both else 1
            if len(weights) != each * layers * directions:
                raise Failed("a recurrence with projections (%s) cannot be expressed" % name,
                             self.recorder.at())
            xs, ends = [x], [[] for _ in states]
            for layer in range(layers):
                made = []
                for k in range(layer * directions, (layer + 1) * directions):
                    out, last = self.recorder.scan(
                        RECURRENT[name], xs, [s.select(0, k) for s in states],
                        weights[k * each:(k + 1) * each], 1 if batch_first else 0,
                        k % directions == 1)
                    made.append(out)
                    for end, value in zip(ends, last):
                        end.append(value)
                xs = made
            out = torch.cat(xs, dim=-1) if both else xs[0]
            self.fault = self.fault or "a recurrence"
            return (out,) + tuple(torch.stack(end, dim=0) for end in ends)

        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            name = getattr(func, "__name__", "")
            if name in RECURRENT:
                return self.recur(name, args)
            args, kwargs, kept, drops = without_dropout(name, args, kwargs)
            if drops:
                self.recorder.dropped.add(self.recorder.stack[-1] if self.recorder.stack else "forward()")
            if kept is not None:
                return kept
            out = self.instance_norm(args, kwargs) if name == "instance_norm" else None
            out = func(*args, **kwargs) if out is None else out
            if not self.holds_tensor(out) or name in ("__set__", "requires_grad_"):
                return out
            try:
                full = overrides.resolve_name(func) or ""
                call = [full, [self.plain(a) for a in args],
                        {k: self.plain(v) for k, v in kwargs.items()}]
            except Failed as failed:
                self.fault = self.fault or str(failed)
                return out
            self.calls.append(call)
            self.keep(out, ["value", len(self.calls) - 1])
            return out

        def instance_norm(self, args, kwargs):
            """The same as a group a channel, which is recorded without a change of shape."""
            names = ("input", "running_mean", "running_var", "weight", "bias", "use_input_stats",
                     "momentum", "eps")
            given = dict(zip(names, args), **kwargs)
            if given.get("running_mean") is not None or not given.get("use_input_stats", True):
                return None
            x = given["input"]
            return torch.nn.functional.group_norm(x, x.shape[1], given.get("weight"),
                                                  given.get("bias"), given.get("eps", 1e-5))

        def holds_tensor(self, out):
            return isinstance(out, torch.Tensor) or (
                isinstance(out, (tuple, list)) and any(self.holds_tensor(o) for o in out))

        def keep(self, out, ref):
            if isinstance(out, torch.Tensor):
                self.kept.append(out)
                self.made[id(out)] = ref
            elif isinstance(out, (tuple, list)):
                for i, o in enumerate(out):
                    self.keep(o, ["part", ref, i])

        def plain(self, value):
            if isinstance(value, torch.Tensor):
                if id(value) not in self.made:
                    return ["unknown"]
                return self.made[id(value)]
            if isinstance(value, tuple):
                return ["tuple"] + [self.plain(v) for v in value]
            if isinstance(value, list):
                return ["list"] + [self.plain(v) for v in value]
            if isinstance(value, slice):
                return ["slice"] + [self.plain(v) for v in (value.start, value.stop, value.step)]
            if isinstance(value, (bool, str)) or value is None or value is Ellipsis:
                return ["text", "..." if value is Ellipsis else repr(value)]
            if isinstance(value, int):
                return int(value)
            if isinstance(value, float):
                return value if math.isfinite(value) else ["text", "float('%s')" % value]
            if isinstance(value, (torch.dtype,)):
                return ["text", str(value)]
            if isinstance(value, torch.device):
                return ["device"]
            raise Failed("%s in a call" % type(value).__name__)

    return Recorder, Calls


class Recording:
    """One run of the file on fake tensors at given sizes."""

    def __init__(self, torch, source, wanted, keep, sizes):
        from torch._subclasses.fake_tensor import FakeTensorMode
        Recorder, Calls = make_recorder(torch, source.path, keep)
        recorder = Recorder()
        calls = Calls(recorder)
        try:
            fake = FakeTensorMode(allow_non_fake_inputs=True)
        except TypeError:  # before PyTorch 2.0
            fake = FakeTensorMode()
        with torch.no_grad(), math_attention(torch), fake, recorder:
            names = source.run(sizes)
            example = Example(torch, names, wanted, source.path)
            model = example.model
            recorder.phase = "input"
            self.leaves = []
            inputs = []
            for name, value in zip(example.input_names(), example.inputs):
                if isinstance(value, torch.Tensor):
                    inputs.append(self.leaf(recorder, calls, "in", name, value))
                else:
                    inputs.append(value)
            for name, value in model.named_parameters():
                self.leaf(recorder, calls, "param", name, value)
            for name, value in model.named_buffers():
                if value is not None:
                    self.leaf(recorder, calls, "buffer", name, value)
            recorder.phase = "forward"
            for name, inside in model.named_modules():
                if name:
                    inside.register_forward_pre_hook(
                        lambda *_a, name=name: recorder.stack.append(name))
                    inside.register_forward_hook(lambda *_a: (recorder.stack.pop(), None)[1])
            with calls:
                out = model(*inputs)
            flat = self.flatten(torch, out)
            if not flat:
                raise Failed("forward() gives no tensor")
            self.outputs = [recorder.ref(t) for _, t in flat]
            self.output_names = [n for n, _ in flat]
            self.kinds = [recorder.kind(t) for _, t in flat]
        self.nodes = recorder.nodes
        self.leaves += recorder.drawn
        self.updates = sorted(recorder.updates)
        self.calls = calls.calls if not calls.fault else None
        self.results = [calls.made.get(id(t)) for _, t in flat]
        self.parameter_bytes = sum(p.numel() * 8 for p in model.parameters())
        dropped = [n for n, m in model.named_modules()
                   if isinstance(m, torch.nn.modules.dropout._DropoutNd) and getattr(m, "p", 0) or
                   getattr(m, "left_out", False)]
        self.notes = dropped + sorted(recorder.dropped - set(dropped))
        self.title = type(model).__name__

    def leaf(self, recorder, calls, role, name, tensor):
        value = recorder.ref(tensor)
        index = recorder.node(role, {"name": name, "value": value}, [tensor])
        recorder.hold(tensor, {"node": index, "out": 0})
        calls.kept.append(tensor)
        calls.made[id(tensor)] = ["leaf", role, name]
        self.leaves.append(index)
        return tensor

    @staticmethod
    def flatten(torch, out):
        if isinstance(out, torch.Tensor):
            return [("y", out)]
        flat = []
        if isinstance(out, dict):
            for key, value in out.items():
                flat += [(str(key), t) for _, t in Recording.flatten(torch, value)]
        elif isinstance(out, (list, tuple)):
            for value in out:
                flat += Recording.flatten(torch, value)
        return flat


def without_modes(torch):
    dispatch = torch.utils._python_dispatch
    if hasattr(dispatch, "_disable_current_modes"):
        return dispatch._disable_current_modes()

    @contextlib.contextmanager
    def disabled():  # before PyTorch 2.0
        guard = torch._C._DisableTorchDispatch()
        try:
            yield
        finally:
            del guard

    return disabled()


def make_watch(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watch(TorchDispatchMode):
        """Does a module that runs in float64 round to a narrower type on the way?"""
        narrow = 0.0  # the coarsest rounding, relative
        drawn = ()    # what forward() draws, in order

        def begin(self, model):
            """Buffers may have been computed in another type; parameters are given."""
            self.narrow *= any(True for _ in model.buffers())

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if self.drawn and func._schema.name.split("::")[-1] in DRAWN:
                return self.drawn.pop(0)
            out = func(*args, **(kwargs or {}))
            for t in out if isinstance(out, (tuple, list)) else [out]:
                if isinstance(t, torch.Tensor) and t.is_floating_point() and \
                        t.dtype != torch.float64:
                    self.narrow = max(self.narrow, torch.finfo(t.dtype).eps)
            return out

    return Watch


def without_dropout(name, args, kwargs):
    """A call of a function as in evaluation: arguments, what it gives if it only drops elements, and
    whether it would have dropped any."""
    if name in DROPOUT:
        given = dict(zip(("input", "p", "training"), args), **kwargs)
        training = given.get("training", kwargs.get("train", True))
        return args, kwargs, given["input"], bool(training and given.get("p", 0.5))
    if name != "scaled_dot_product_attention":
        return args, kwargs, None, False
    p = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0)
    args = tuple(args[:4]) + (0.0,) + tuple(args[5:]) if len(args) > 4 else args
    kwargs = dict(kwargs, dropout_p=0.0) if "dropout_p" in kwargs else kwargs
    return args, kwargs, None, bool(p)


def make_no_dropout(torch):
    class NoDropout(torch.overrides.TorchFunctionMode):
        """Runs functions of dropout as in evaluation."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            args, kwargs, kept, _ = without_dropout(getattr(func, "__name__", ""), args, kwargs or {})
            return func(*args, **kwargs) if kept is None else kept

    return NoDropout


def math_attention(torch):
    """Attention as matrix products and a softmax, whatever kernels there are for it."""
    torch.backends.mha.set_fastpath_enabled(False) if hasattr(torch.backends, "mha") else None
    try:
        from torch.nn.attention import SDPBackend, sdpa_kernel
        return sdpa_kernel(SDPBackend.MATH)
    except ImportError:
        return contextlib.nullcontext()


# ---- which numbers are dimensions ----

def skeleton(value):
    """The structure of a recording: everything but numbers."""
    if isinstance(value, dict):
        return tuple((k, skeleton(v)) for k, v in value.items()
                     if k not in ("line",))
    if isinstance(value, list):
        return tuple(skeleton(v) for v in value)
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    return "int" if isinstance(value, int) else "float"


def changed_constant(first, second):
    """An operator of which a number changed that is no size; None: there is none."""
    for a, b in zip(first, second):
        for key, value in a["args"].items():
            if key in ("self", "input") and isinstance(value, dict):
                continue
            if a["op"] in SIZED or value == b["args"][key]:
                continue
            if key in SIZE_ARGUMENTS.get(a["op"], ()):
                continue
            if isinstance(value, dict):
                continue
            if isinstance(value, float) or key in ("other", "alpha", "value", "std", "mean", "to",
                                                   "from", "low", "high", "exponent"):
                continue  # a number of the mathematics: fitted like a size
            if isinstance(value, list) and any(isinstance(v, dict) for v in value):
                continue
            return "%s(%s)" % (a["op"], key)
        if a["op"] in ("convolution",):
            weights = [r["args"]["weight"] for r in (a, b)]
            kernels = [n[w["node"]]["outs"][w["out"]]["shape"][2:]
                       for n, w in zip((first, second), weights)]
            if kernels[0] != kernels[1]:
                return "the kernel of a convolution"
    return None


class Dimensions:
    """Finds the dimensions of a file by recording it at several sizes."""

    def __init__(self, torch, source, wanted, keep):
        self.torch, self.source, self.wanted, self.keep = torch, source, wanted, keep
        self.base = self.record({})
        self.shape = self.structure(self.base)
        self.recordings = [({}, self.base)]
        self.names, self.step, self.fixed, self.unread = [], {}, {}, set()
        self.count = 0

    def record(self, sizes):
        return Recording(self.torch, self.source, self.wanted, self.keep, sizes)

    @staticmethod
    def structure(recording):
        return (skeleton(recording.nodes), skeleton(recording.outputs),
                skeleton(recording.calls) if recording.calls is not None else None)

    def attempt(self, sizes):
        """A recording at these sizes if it is the same graph, else None."""
        if self.count >= MOST_PROBES + 20 * len(self.source.values):
            return None
        self.count += 1
        try:
            made = self.record(sizes)
        except Exception:
            return None
        return made if self.structure(made) == self.shape else None

    def find(self):
        for name, value in self.source.values.items():
            self.probe(name, value)
        self.together()
        self.joint()

    def together(self):
        """Equal numbers that can only change together are one dimension, of the first name."""
        left = collections.OrderedDict()
        for name, value in self.source.values.items():
            if name not in self.names and name not in self.fixed and name not in self.unread:
                left.setdefault(value, []).append(name)
        for value, names in left.items():
            if len(names) > 1:
                first = names[0]
                for other in names[1:]:
                    self.source.places[first] += self.source.places.pop(other)
                    del self.source.values[other]
                self.probe(first, value)

    def probe(self, name, value):
        for step in (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, value):
            if value % step and step != 1:
                continue
            made = self.attempt({name: value + step})
            if made is None:
                continue
            if made.nodes == self.base.nodes and made.outputs == self.base.outputs:
                self.unread.add(name)
                return
            why = changed_constant(self.base.nodes, made.nodes) or self.no_size(made)
            if why:
                self.fixed[name] = why
                return
            more = [self.attempt({name: value + k * step}) for k in (2, 7, 67)]
            self.names.append(name)
            self.step[name] = step
            self.recordings += [({name: value + step}, made)]
            self.recordings += [({name: value + k * step}, m)
                                for k, m in zip((2, 7, 67), more) if m is not None]
            return

    def no_size(self, made):
        """A number that changes no input and no parameter is one of the mathematics."""
        for i in self.base.leaves:
            if made.nodes[i]["outs"] != self.base.nodes[i]["outs"]:
                return None
        return "no tensor's size"

    def sizes(self, given):
        return {n: given.get(n, self.source.values[n]) for n in self.names}

    def joint(self):
        """All of them changed at once, twice: tells products from sums."""
        for k, factors in enumerate(((1, 2, 3, 5, 7, 11), (4, 1, 6, 2, 9, 3))):
            given = {n: self.source.values[n] + factors[i % 6] * self.step[n]
                     for i, n in enumerate(self.names)}
            made = self.attempt(given) if self.names else None
            if made is not None:
                self.recordings.append((given, made))

    # -- small sizes --

    def checks(self):
        """Three sets of small sizes that the module runs, each dimension its own size."""
        floor = self.settle(self.shrink())
        sets = []
        for k, factors in enumerate(((0, 0, 0, 0, 0, 0), (1, 2, 1, 3, 2, 4), (3, 1, 2, 4, 5, 2))):
            given = {n: floor[n] + factors[i % 6] * self.step[n] for i, n in enumerate(self.names)}
            self.try_check(given, sets)
        for k in range(1, 6):  # where sizes hang together: by the same step, or one at a time
            for some in [self.names] + [[n] for n in self.names]:
                if len(sets) >= 3:
                    return sets
                given = {n: floor[n] + (k * self.step[n] if n in some else 0) for n in self.names}
                self.try_check(given, sets)
        return sets

    @staticmethod
    def samples(recording):
        """Of the batch normalisation with the fewest, where there are several; None: no matter."""
        counts = []
        for node in recording.nodes if recording else []:
            if "batch_norm" in node["op"] and node["args"].get("training"):
                shape = node["outs"][0]["shape"]
                counts.append(math.prod(shape) // shape[1])
        return min(counts) if len(counts) > 4 else None

    def settle(self, floor):
        """Many normalisations of few samples, one after the other, multiply roundings: larger sizes,
        of the dimension that gives them more samples."""
        least = self.samples(self.attempt(floor))
        for _ in range(4):
            if least is None or least >= SAMPLES_LEAST:
                break
            for n in self.names:
                grown = dict(floor, **{n: min(2 * floor[n], floor[n] + 8 * self.step[n])})
                more = self.samples(self.attempt(grown))
                if more is not None and more > least:
                    floor, least = grown, more
                    break
            else:
                break
        return floor

    def try_check(self, given, sets):
        """Sizes must fit there too, far from those of the file."""
        made = self.attempt(given) if given not in sets else None
        if made is not None:
            sets.append(given)
            self.recordings.append((dict(given), made))

    def shrink(self):
        now = {n: self.source.values[n] for n in self.names}
        small = {}
        for i, n in enumerate(self.names):
            least = (2, 3, 5, 7, 4, 6)[i % 6]
            step = self.step[n]
            small[n] = min(now[n], least if step == 1 else step)
        for grow in (0, 1, 2, 4):
            given = {n: min(now[n], small[n] + grow * self.step[n] * (3 if self.step[n] == 1 else 1))
                     for n in self.names}
            if self.attempt(given) is not None:
                return given
        for n in self.names:
            step = self.step[n]
            value = now[n]
            for target in [small[n], small[n] + step, small[n] + 3 * step, small[n] + 6 * step] + \
                    [value // d // step * step for d in (32, 16, 8, 4, 2)]:
                if 1 <= target < value and self.attempt(dict(now, **{n: target})) is not None:
                    now[n] = target
                    break
        return now


class Fit:
    """Numbers of several recordings as expressions over the dimensions."""

    def __init__(self, dimensions, names):
        self.names = names  # of the file -> of the task
        self.points = [dimensions.sizes(given) for given, _ in dimensions.recordings]
        self.atoms = [(tuple(p[n] for p in self.points), names[n]) for n in dimensions.names]
        self.order = list(dimensions.names)
        self.given = [given for given, _ in dimensions.recordings]
        self.derived = []  # (name, expression, vector)
        self.known = {v: t for v, t in self.atoms}

    def size(self, vector):
        if all(v == vector[0] for v in vector):
            return vector[0]
        if vector not in self.known:
            text = self.search(vector)
            if text is None:
                raise self.unfit("a size of the module is no simple expression of its dimensions "
                                 "(%s)" % ", ".join(str(v) for v in vector[:6]), vector)
            self.known[vector] = text
        return self.known[vector]

    def unfit(self, text, vector):
        """With the dimensions that it follows."""
        failed = Failed(text)
        failed.follows = [name for name in self.order
                          if any(list(given) == [name] and v != vector[0]
                                 for given, v in zip(self.given, vector))]
        return failed

    def search(self, vector):
        return self.product(vector, 4) or self.affine(vector) or self.linear(vector) or \
            self.sum(vector) or self.grid(vector)

    def grid(self, vector):
        """How many tiles there are, and a few more: (d//c)*(f//c) + e; d//c gets a name."""
        for c in (2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 14):
            tiles = [(tuple(v // c for v in d), text) for d, text in self.atoms
                     if all(v % c == 0 for v in d) and len(set(d)) > 1]
            for i, (a, text) in enumerate(tiles):
                for b, other in tiles[i:]:
                    rest = {v - x * y for v, x, y in zip(vector, a, b)}
                    if len(rest) != 1:
                        continue
                    first = self.known.get(a)
                    if first is None or "//" in first:
                        first = self.known[a] = self.name(text, "%s//%d" % (text, c), a)
                    second = self.known.get(b)
                    if second is None or "//" in second:
                        second = self.known[b] = self.name(other, "%s//%d" % (other, c), b)
                    return self.name(text, self.line(1, "%s*%s" % (first, second), rest.pop()),
                                     vector)
        return None

    def product(self, vector, depth, least=0):
        """A product of known sizes and one number, or a known size over a number."""
        if all(v == vector[0] for v in vector):
            return str(vector[0])
        for v, text in self.atoms:
            if v == vector:
                return text
        for v, text in self.atoms:
            if v[0] and vector[0] and v[0] % vector[0] == 0:
                divisor = v[0] // vector[0]
                if divisor > 1 and all(a == b * divisor for a, b in zip(v, vector)):
                    return "%s//%d" % (text, divisor)
        for v, text in self.atoms:  # a quotient of two
            for w, other in self.atoms:
                if v != w and all(b and a % b == 0 and a // b == c
                                  for a, b, c in zip(v, w, vector)):
                    return "%s//%s" % (text, other)
        if depth:
            for v, text in self.atoms:
                if all(a and b % a == 0 for a, b in zip(v, vector)) and \
                        not all(a == 1 for a in v):
                    rest = self.product(tuple(b // a for a, b in zip(v, vector)), depth - 1)
                    if rest is not None:
                        return self.times(text, rest)
        return None

    @staticmethod
    def times(a, b):
        if "//" in b:
            b = "(%s)" % b
        return "%s*%s" % (b, a) if b.isdigit() else "%s*%s" % (a, b)

    def affine(self, vector):
        """(d + b)//c + e, or a*d + b, of one known size; becomes a size with a name."""
        for d, text in self.atoms:
            pairs = sorted(set(zip(d, vector)))
            if len(dict(pairs)) != len(pairs) or len(pairs) < 3:
                continue
            (x0, y0), (x1, y1) = pairs[0], pairs[1]
            if x1 != x0 and (y1 - y0) % (x1 - x0) == 0:
                a = (y1 - y0) // (x1 - x0)
                if all(y == y0 + a * (x - x0) for x, y in pairs):
                    return self.name(text, self.line(a, text, y0 - a * x0), vector)
            fits = [(abs(y0 - (x0 + b) // c), c, b, y0 - (x0 + b) // c)
                    for c in range(2, 65) for b in range(c)
                    if all(y - y0 == (x + b) // c - (x0 + b) // c for x, y in pairs)]
            if fits:
                _, c, b, e = min(fits)
                return self.name(text, self.floor(text, b, c, e), vector)
        return None

    @staticmethod
    def line(a, text, b):
        head = text if a == 1 else "%d*%s" % (a, text) if a != -1 else "-%s" % text
        return head if not b else "%s %s %d" % (head, "+-"[b < 0], abs(b))

    @staticmethod
    def floor(text, b, c, e):
        head = "(%s + %d)//%d" % (text, b, c) if b else "%s//%d" % (text, c)
        return head if not e else "%s %s %d" % (head, "+-"[e < 0], abs(e))

    def name(self, base, expression, vector):
        root = base.split("_out")[0]
        used = {n for n, _, _ in self.derived} | set(self.names.values())
        name, k = root + "_out", 2
        while name in used:
            name, k = "%s_out%d" % (root, k), k + 1
        self.derived.append((name, expression, vector))
        self.atoms.append((vector, name))
        return name

    def linear(self, vector):
        """A sum of several dimensions: each one's share shows where it changes alone."""
        terms, rest = [], vector[0]
        for (d, text), name in zip(self.atoms, self.order):
            alone = [k for k, given in enumerate(self.given) if list(given) == [name]]
            if not alone or vector[alone[0]] == vector[0]:
                continue
            rise, run = vector[alone[0]] - vector[0], d[alone[0]] - d[0]
            if rise % run:
                return None
            terms.append((rise // run, d, text))
            rest -= rise // run * d[0]
        if len(terms) < 2 or any(v != rest + sum(a * d[k] for a, d, _ in terms)
                                 for k, v in enumerate(vector)):
            return None
        text = " + ".join(t if a == 1 else "%d*%s" % (a, t) for a, _, t in terms)
        if rest:
            text += " %s %d" % ("+-"[rest < 0], abs(rest))
        return self.name(terms[0][2], text, vector)

    def sum(self, vector):
        for i, (d, text) in enumerate(self.atoms):
            for f, other in self.atoms[i:]:
                for s, form in ((1, "%s + %s"), (-1, "%s - %s")):
                    rest = {v - a - s * b for v, a, b in zip(vector, d, f)}
                    if len(rest) == 1:
                        c = rest.pop()
                        text2 = form % (text, other)
                        return self.name(text, text2 if not c else "%s %s %d" %
                                         (text2, "+-"[c < 0], abs(c)), vector)
                for s in (1, -1):  # a*b + c, a*b - c
                    rest = {v - s * a * b for v, a, b in zip(vector, d, f)}
                    if len(rest) == 1 and s == 1:
                        c = rest.pop()
                        return self.name(text, "%s*%s %s %d" % (text, other, "+-"[c < 0], abs(c)),
                                         vector)
        for d, text in self.atoms:  # another size plus something known
            rest = tuple(v - a for v, a in zip(vector, d))
            if all(r > 0 for r in rest):
                inner = self.product(rest, 2)
                if inner is not None:
                    return self.name(text, "%s + %s" % (text, inner), vector)
        return None

    def number(self, values):
        """A number that is no size: 1/sqrt(n), n, 1/n, times a small factor."""
        if all(v == values[0] for v in values):
            return values[0]
        signs = {v > 0 for v in values}
        if len(signs) == 1 and 0.0 not in values:
            minus = "-" if values[0] < 0 else ""
            magnitude = [abs(v) for v in values]
            for k in (1, 2, 3, 6, 4, 5, 12, 0.5):
                for form, python, inverse in (
                        ("%s/sqrt(%s)", "%s/(%s)**0.5", lambda v: (k / v) ** 2),
                        ("sqrt(%s/(%s))", "(%s/(%s))**0.5", lambda v: k / v ** 2),
                        ("%s/(%s)", "%s/(%s)", lambda v: k / v),
                        ("%s*sqrt(%s)", "%s*(%s)**0.5", lambda v: (v / k) ** 2),
                        ("%s*(%s)", "%s*(%s)", lambda v: v / k)):
                    found = [inverse(v) for v in magnitude]
                    whole = [round(f) for f in found]
                    if all(w and abs(f - w) <= 1e-9 * w for f, w in zip(found, whole)):
                        try:
                            size = self.size(tuple(whole))
                        except Failed:
                            continue
                        text = (form % (k, size)).replace("1*sqrt", "sqrt")
                        return {"number": minus + text, "python": minus + python % (k, size)}
        raise self.unfit("a number of the module follows its sizes in a way that is not understood "
                         "(%s)" % ", ".join("%.6g" % v for v in values[:5]), values)

    def merge(self, values):
        """The recordings' values of one thing: equal but for numbers."""
        first = values[0]
        if isinstance(first, dict):
            return {k: self.merge([v[k] for v in values]) for k in first}
        if isinstance(first, list):
            return [self.merge([v[i] for v in values]) for i in range(len(first))]
        if isinstance(first, bool) or first is None or isinstance(first, str):
            return first
        if isinstance(first, int):
            return self.size(tuple(values))
        return self.number(values)


def once(nodes):
    """What is computed twice from the same is read from the first time."""
    first, same = {}, {}

    def renamed(value):
        if isinstance(value, dict):
            made = {k: renamed(v) for k, v in value.items()}
            if "node" in made and "out" in made:
                made["node"] = same.get(made["node"], made["node"])
            return made
        return [renamed(v) for v in value] if isinstance(value, list) else value

    for i, node in enumerate(nodes):
        node["args"] = renamed(node["args"])
        if node["phase"] == "forward":
            key = json.dumps([node["op"], node["args"], node["outs"]])
            if first.setdefault(key, i) != i:
                same[i] = first[key]


def extend(nodes):
    """Concatenations that begin as an earlier one does are that and the rest: fewer tensors are
    needed where the graph is cut."""
    made = {}
    for i, node in enumerate(nodes):
        if node["op"] != "cat" or node["phase"] != "forward":
            continue
        parts = node["args"]["tensors"]
        keys = [json.dumps(part) for part in parts]
        for n in range(len(parts) - 1, 1, -1):
            earlier = made.get((str(node["args"].get("dim")), tuple(keys[:n])))
            if earlier is not None:
                node["args"]["tensors"] = [{"node": earlier, "out": 0}] + parts[n:]
                break
        made[(str(node["args"].get("dim")), tuple(keys))] = i


WORDS = {"task", "dim", "in", "param", "inout", "rand", "out", "let", "assume", "check", "torch",
         "accuracy", "inf", "if", "pad", "sum", "prod", "max", "min", "mean", "argmax", "argmin",
         "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "sin", "cos", "abs", "floor",
         "ceil", "round", "expm1", "log1p", "sign", "pow", "maximum", "minimum", "clamp", "uniform",
         "normal", "randint", "bernoulli", "ones", "zeros", "symmetric", "F", "y"}


def task_names(names):
    """Names of the file as names of the task: no words of the language, no two alike."""
    used, made = set(WORDS), {}
    for name in names:
        word = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in name)[:48]
        word = word if word and not word[0].isdigit() else "n" + word
        short, k = word, 1
        while short in used:
            short, k = "%s_%d" % (word, k), k + 1
        used.add(short)
        made[name] = short
    return made


# ---- the torch line ----

class Line:
    """The user's calls as one expression. Values that are used more than once get a name."""

    def __init__(self, calls, results, leaves):
        self.calls, self.leaves = calls, leaves
        self.uses = collections.Counter()
        self.named, self.first = {}, []
        self.dead = {i for i, call in enumerate(calls) if self.writes(i) and call[1] and
                     isinstance(call[1][0], list) and call[1][0][:2] == ["leaf", "buffer"]}
        for i, call in enumerate(calls):
            call[2] = {k: v for k, v in call[2].items()
                       if k != "_stacklevel" and (k, v) != ("inplace", ["text", "False"])}
            if i not in self.dead:
                self.count(call[1:])
        self.results = results
        self.count(results)

    def count(self, value):
        if isinstance(value, dict):
            for v in value.values():
                self.count(v)
        elif isinstance(value, list):
            if value and value[0] == "value":
                self.uses[value[1]] += 1
            elif value and value[0] == "part":
                self.count(value[1])
            else:
                for v in value:
                    self.count(v)

    def text(self):
        order = [i for i in range(len(self.calls)) if i not in self.dead and (self.uses[i] > 1 or self.writes(i))]
        parts = []
        for i in order:
            made = self.call(i)
            name = "t%d" % (len(self.named) + 1)
            while name in self.leaves.values():
                name += "_"
            parts.append("%s := %s" % (name, made))
            self.named[i] = name
        ends = [self.value(r) for r in self.results]
        end = ends[0] if len(ends) == 1 else "(%s)" % ", ".join(ends)
        if not parts:
            return end
        return "(%s, %s)[-1]" % (", ".join("(%s)" % p for p in parts), end)

    def writes(self, i):
        name = self.calls[i][0].rsplit(".", 1)[-1]
        return name.endswith("_") and not name.endswith("__") or name == "__setitem__"

    def value(self, v):
        if isinstance(v, list):
            kind = v[0]
            if kind == "value":
                return self.named.get(v[1]) or self.call(v[1])
            if kind == "part":
                return "%s[%d]" % (self.value(v[1]), v[2])
            if kind == "leaf":
                if v[2] not in self.leaves:
                    raise Failed("a buffer, which has no name in the task")
                return self.leaves[v[2]]
            if kind == "text":
                return v[1]
            if kind == "device":
                return "%s.device" % next(iter(self.leaves.values()))
            if kind == "tuple":
                return "(%s%s)" % (", ".join(self.value(x) for x in v[1:]), "," * (len(v) == 2))
            if kind == "list":
                return "[%s]" % ", ".join(self.value(x) for x in v[1:])
            if kind == "slice":
                return "slice(%s)" % ", ".join(self.value(x) for x in v[1:])
            raise Failed("a tensor that is no input")
        if isinstance(v, dict):
            return "(%s)" % v["python"]
        return str(v) if not isinstance(v, float) else repr(v)

    @staticmethod
    def without_statistics(full, args, keywords):
        """A normalisation by the statistics of its input writes running ones and does not read
        them: None does as well."""
        if full.rsplit(".", 1)[-1] not in ("batch_norm", "instance_norm"):
            return full, args, keywords
        flag = "training" if full.endswith("batch_norm") else "use_input_stats"
        given = dict(zip(("input", "running_mean", "running_var", "weight", "bias", flag), args),
                     **keywords)
        if given.get(flag, ["text", str(flag != "training")]) != ["text", "True"]:
            return full, args, keywords
        none = ["text", "None"]
        return full, args[:1] + [none] * len(args[1:3]) + args[3:], \
            {k: none if k.startswith("running_") else v for k, v in keywords.items()}

    def call(self, i):
        full, args, keywords = self.without_statistics(*self.calls[i])
        args = [self.value(a) for a in args]
        words = ["%s=%s" % (k, self.value(v)) for k, v in keywords.items()]
        if full.startswith("torch.Tensor.") or full.startswith("torch._C.TensorBase."):
            name = full.rsplit(".", 1)[-1]
            if full.endswith(".__get__"):
                name = full.rsplit(".", 2)[-2]
                return "%s.%s" % (self.primary(args[0]), name)
            if name == "__getitem__":
                return "%s[%s]" % (self.primary(args[0]), args[1])
            return "%s.%s(%s)" % (self.primary(args[0]), name, ", ".join(args[1:] + words))
        if full.startswith("torch.nn.functional."):
            full = "F." + full[len("torch.nn.functional."):]
        if not full.startswith(("torch.", "F.")):
            raise Failed("a call of %s" % (full or "something without a name"))
        return "%s(%s)" % (full, ", ".join(args + words))

    @staticmethod
    def primary(text):
        return "(%s)" % text if text.startswith(("-", "(t")) else text


# ---- requests ----

class Import:
    def __init__(self, request):
        self.torch = import_torch()
        warnings.simplefilter("ignore")
        self.source = Source(request["file"])
        self.wanted = request.get("class")
        self.keep = set(request["keep"])
        self.weighed = set()
        sys.path.insert(0, os.path.dirname(os.path.abspath(request["file"])))

    def graph(self):
        dimensions = Dimensions(self.torch, self.source, self.wanted, self.keep)
        dimensions.find()
        while True:
            known = list(dimensions.recordings)
            checks = dimensions.checks()
            try:
                answer = self.fitted(dimensions)
                break
            except Failed as failed:
                if not dimensions.names:
                    raise
                dimensions.recordings = known
                self.drop(dimensions, getattr(failed, "follows", None) or dimensions.names)
        answer["checks"] = [self.check(dimensions, c) for c in checks]
        self.dimensions = dimensions
        self.back = {short: name for name, short in self.names.items()}
        self.dims, self.line = answer["dims"], answer.get("torch")
        return answer

    def check(self, dimensions, given):
        """The values of all dimensions at these sizes, derived ones too."""
        at = next(k for k, (sizes, _) in enumerate(dimensions.recordings) if sizes == given)
        values = {self.names[n]: v for n, v in given.items()}
        values.update({name: vector[at] for name, _, vector in self.fit.derived})
        return values

    def drop(self, dimensions, names):
        """One of these is no dimension after all: the last, so that names stay where they can."""
        name = names[-1]
        dimensions.names.remove(name)
        dimensions.recordings = [r for r in dimensions.recordings
                                 if r[0].get(name, self.source.values[name]) ==
                                 self.source.values[name]]
        if not any(len(given) > 1 for given, _ in dimensions.recordings):
            dimensions.joint()

    def fitted(self, dimensions):
        recordings = [r for _, r in dimensions.recordings]
        base = recordings[0]
        leaf_names = [base.nodes[i]["args"]["name"] for i in base.leaves]
        outs = base.output_names if len(base.output_names) == 1 else \
            ["y%d" % (i + 1) if n == "y" else n for i, n in enumerate(base.output_names)]
        both = task_names(list(dimensions.names) + [n.replace(".", "_") for n in leaf_names])
        self.names = {n: both[n] for n in dimensions.names}
        leaves = {n: both[n.replace(".", "_")] for n in leaf_names}
        fit = self.fit = Fit(dimensions, self.names)
        lines = [n["line"] for n in base.nodes]
        nodes = []
        for k in range(len(base.nodes)):
            columns = [dict(r.nodes[k], line=lines[k]) for r in recordings]
            for c in columns:
                c["line"] = None
            try:
                node = fit.merge(columns)
            except Failed as failed:
                failed.at = "%s:%s" % (self.source.path, lines[k]) if lines[k] else None
                raise
            node["line"] = lines[k]
            if node["op"] in ("in", "param", "buffer"):
                node["args"]["name"] = leaves[base.nodes[k]["args"]["name"]]
                node["args"]["path"] = base.nodes[k]["args"]["name"]
            nodes.append(node)
        once(nodes)
        if len(base.leaves) > TENSORS_MOST:
            extend(nodes)
        self.inputs = [(base.nodes[i]["op"], base.nodes[i]["args"]["name"],
                        leaves[base.nodes[i]["args"]["name"]]) for i in base.leaves]
        answer = {"name": os.path.splitext(os.path.basename(self.source.path))[0],
                  "class": base.title, "source": os.path.basename(self.source.path),
                  "pytorch": str(self.torch.__version__),
                  "dims": [{"name": self.names[n], "value": self.source.values[n]}
                           for n in dimensions.names] +
                          [{"name": n, "value": v[0], "is": e} for n, e, v in fit.derived],
                  "nodes": nodes, "outputs": base.outputs, "output_names": outs,
                  "dropout": base.notes, "updates": base.updates,
                  "tf32": bool(self.torch.backends.cuda.matmul.allow_tf32),
                  "conv_tf32": bool(self.torch.backends.cudnn.allow_tf32)}
        try:
            if base.calls is None or None in base.results:
                raise Failed("a call that is no expression")
            calls = [fit.merge([r.calls[k] for r in recordings]) for k in range(len(base.calls))]
            inputs = {n: t for role, n, t in self.inputs if role != "buffer"}
            answer["torch"] = Line(calls, base.results, inputs).text()
        except (Failed, KeyError) as failed:
            answer["no_torch"] = str(failed)
        answer["dims"] = answer["dims"][:len(dimensions.names)] + \
            [{"name": n, "value": v[0], "is": e} for n, e, v in fit.derived]
        return answer

    def values(self, request):
        """The module in float64 at these sizes, on arrays from files."""
        torch = self.torch
        sizes = {self.back[n]: v for n, v in request["sizes"].items()}
        self.check_weights(sizes)
        try:
            return self.run(sizes, request, wide=True)
        except RuntimeError as wrong:  # it insists on a type: its own types then, and their roundings
            if "type" not in str(wrong):
                raise
            return self.run(sizes, request, wide=False)

    def check_weights(self, sizes):
        """Before the module is made for the first time with memory, at these sizes."""
        key = tuple(sorted(sizes.items()))
        if key not in self.weighed:
            weight = self.dimensions.record(sizes).parameter_bytes
            if weight > WEIGHT_BYTES_MOST:
                raise Failed("its weights take %.1f GiB in float64 at sizes to be compared; at most "
                             "%.1f GiB are" % (weight / 2 ** 30, WEIGHT_BYTES_MOST / 2 ** 30))
            self.weighed.add(key)

    def load(self, request, name, like, wide):
        torch = self.torch
        entry = request["inputs"][name]
        with open(os.path.join(GIVEN, entry["file"]), "rb") as file:
            data = torch.frombuffer(bytearray(file.read()) or bytearray(8), dtype=torch.float64)
        value = data[:like.numel()].reshape(like.shape)
        return value.clone() if like.dtype.is_floating_point and wide else value.to(like.dtype)

    def run(self, sizes, request, wide):
        torch = self.torch
        watch = make_watch(torch)()
        torch.set_default_dtype(torch.float64 if wide else torch.float32)
        try:
            with torch.no_grad(), make_no_dropout(torch)(), watch:
                names = self.source.run(sizes)
                example = Example(torch, names, self.wanted, self.source.path)
                model = example.model.double() if wide else example.model
                watch.begin(model)
                inputs, given = self.given(model, example, request, wide)
                watch.drawn = [given[short] for role, name, short in self.inputs
                               if role == "in" and name not in example.input_names() and
                               short in given]
                out = [t for _, t in Recording.flatten(torch, model(*inputs))]
                line = self.line_agrees(given, sizes, out, wide and not watch.narrow)
        finally:
            torch.set_default_dtype(torch.float32)
        for t, path in zip(out, request["outputs"]):
            with open(os.path.join(WORK, path), "wb") as file:
                file.write(t.detach().to(torch.float64).contiguous().numpy().tobytes())
        return {"shapes": [list(t.shape) for t in out], "narrow": watch.narrow,
                "line": line}

    def given(self, model, example, request, wide):
        """The inputs of a call and, by their names in the task, all tensors that were given."""
        torch = self.torch
        tensors = dict(model.named_parameters())
        tensors.update(model.named_buffers())
        shorts = {(role, name): short for role, name, short in self.inputs}
        inputs, given = [], {}
        for name, value in zip(example.input_names(), example.inputs):
            short = shorts.get(("in", name))
            if isinstance(value, torch.Tensor) and short in request["inputs"]:
                value = given[short] = self.load(request, short, value, wide)
            elif isinstance(value, torch.Tensor) and value.is_floating_point() and wide:
                value = value.double()
            inputs.append(value)
        for role, name, short in self.inputs:  # what forward() draws
            if role == "in" and short in request["inputs"] and short not in given:
                given[short] = self.load(request, short, self.drawn_like(name, request), wide)
        for (role, name), short in shorts.items():
            if role != "in" and short in request["inputs"]:
                tensors[name].copy_(self.load(request, short, tensors[name], wide))
                given[short] = tensors[name].detach().clone()
        inputs = [v.clone() if isinstance(v, torch.Tensor) else v for v in inputs]
        return inputs, given

    def drawn_like(self, name, request):
        """A tensor of the shape that forward() draws at these sizes."""
        sizes = {self.back[n]: v for n, v in request["sizes"].items()}
        node = next(n for n in self.dimensions.record(sizes).nodes
                    if n["op"] == "in" and n["args"]["name"] == name)
        return self.torch.empty(node["outs"][0]["shape"])

    def part_agrees(self, request):
        """Does the torch line of a part give what its task does? In float64, where it rounds to nothing
        narrower on the way; then by what it rounds to."""
        torch = self.torch
        kinds = {"f64": torch.float64, "f32": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
                 "i8": torch.int8, "u8": torch.uint8, "i32": torch.int32, "i64": torch.int64,
                 "bool": torch.bool}
        halves = any(entry["dtype"] in ("f16", "bf16") for entry in request["given"]) or \
            "float16" in request["line"]
        relative, absolute = (2e-2, 1e-3) if halves else (1e-4, 1e-6) if "float32" in request["line"] \
            else (1e-7, 1e-9)

        def read(entry):
            with open(os.path.join(GIVEN, entry["file"]), "rb") as file:
                data = torch.frombuffer(bytearray(file.read()) or bytearray(8), dtype=torch.float64)
            count = 1
            for n in entry["shape"]:
                count *= n
            return data[:count].reshape(entry["shape"]).to(kinds[entry["dtype"]]).clone()

        names = {"torch": torch, "F": torch.nn.functional, **request["dims"]}
        names.update((entry["name"], read(entry)) for entry in request["given"])
        try:
            with torch.no_grad():
                made = eval(request["line"], names)
            made = made if isinstance(made, tuple) else (made,)
            wanted = [read(entry) for entry in request["wanted"]]
            return len(made) == len(wanted) and all(
                m.shape == w.shape and torch.allclose(m.double(), w, rtol=relative, atol=absolute,
                                                      equal_nan=True)
                for m, w in zip(made, wanted))
        except Exception:
            return False

    def line_agrees(self, given, sizes, out, wide):
        """Does the torch line give what the module gives? In float64 (wide) the two may differ by the
        order of sums; where the module rounds on the way, by what it rounds to."""
        torch = self.torch
        relative, absolute = (1e-7, 1e-9) if wide else (1e-3, 1e-5)
        if not self.line:
            return False
        names = {"torch": torch, "F": torch.nn.functional, **given}
        for d in self.dims:
            names[d["name"]] = eval(d["is"], {}, dict(names)) if "is" in d else \
                sizes.get(self.back[d["name"]], d["value"])
        try:
            made = eval(self.line, names)
            made = made if isinstance(made, tuple) else (made,)
            return len(made) == len(out) and all(
                m.shape == t.shape and torch.allclose(m.double(), t.double(), rtol=relative,
                                                      atol=absolute, equal_nan=True)
                for m, t in zip(made, out))
        except Exception:
            return False


def explain(failed, path):
    """An exception of the user's code: its words and its line."""
    frames = [(f.filename, f.lineno) for f in reversed(traceback.extract_tb(failed.__traceback__))]
    at = place_of(path, frames)
    words = " ".join(str(failed).split())[:600]
    text = "%s: %s" % (type(failed).__name__, words) if words else type(failed).__name__
    if "DataDependent" in type(failed).__name__ or "data-dependent" in words:
        text = "the computation depends on values of tensors, not on shapes alone"
    return {"error": text, "at": at or path, "kind": "input"}


def give_up(_signal, _frame):
    raise Failed("the module was not done in time", LATE)


def handle(request, state, answer):
    signal.alarm(state["seconds"])
    path = state["path"]
    try:
        if "file" in request:
            state["import"] = Import(request)
            answer(state["import"].graph())
        elif "line" in request:
            answer({"holds": state["import"].part_agrees(request)})
        else:
            answer(state["import"].values(request))
    except Failed as failed:
        at = failed.at if failed.at is not LATE else explain(failed, path)["at"]
        answer({"error": str(failed), "at": at or path, "kind": failed.kind})
    except (Exception, SystemExit) as failed:
        answer(explain(failed, path))
    finally:
        signal.alarm(0)


def warm(torch):
    """Has PyTorch load what it loads at the first use, once for all files."""
    if not hasattr(torch, "compile"):
        return  # before PyTorch 2.0, where some decompositions end the process
    from torch._subclasses.fake_tensor import FakeTensorMode
    Recorder, Calls = make_recorder(torch, "", set())
    nn = torch.nn
    try:
        with torch.no_grad(), math_attention(torch), FakeTensorMode(), Recorder() as recorder, \
                Calls(recorder):
            model = nn.Sequential(nn.Conv2d(2, 2, 3), nn.BatchNorm2d(2), nn.GELU(), nn.Flatten(),
                                  nn.Linear(18, 4), nn.LayerNorm(4), nn.Softmax(dim=1))
            model(torch.rand(2, 2, 5, 5)).mean()
    except Exception:
        pass  # then each file's process loads it


def end_rest():
    """Ends what a file has started and left. Only where all processes that can be seen are of this
    import: the first of them is cutepilot, this is the second (src/eval/python.c)."""
    if OWN_PROCESSES and os.getpid() == 2:
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass  # there is nothing
        while True:
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def wait_for(pid, closed):
    """Why a file's process ended, or None: it was asked to."""
    _, status = os.waitpid(pid, 0)
    os.set_blocking(closed, False)
    try:
        if os.read(closed, 1):
            return None
    except BlockingIOError:
        pass  # something that it started holds the other end
    finally:
        os.close(closed)
    return "signal %d" % os.WTERMSIG(status) if os.WIFSIGNALED(status) \
        else "exit code %d" % os.WEXITSTATUS(status)


def serve(answer):
    """Each file is imported by a process of its own, which ends when it is closed: what a file does
    to Python or PyTorch is gone with it, and PyTorch is loaded once."""
    signal.signal(signal.SIGALRM, give_up)
    state, child, closing = {}, False, None
    for text in iter(sys.stdin.readline, ""):
        request = json.loads(text)
        if "file" in request and not child:
            try:
                if not state:
                    warm(import_torch())
                    state["warm"] = True
            except Failed as failed:
                answer({"error": str(failed), "kind": failed.kind})
                continue
            closed, closing = os.pipe()
            pid = os.fork()
            if pid:
                os.close(closing)
                why = wait_for(pid, closed)
                end_rest()
                if why is None:
                    answer({"closed": True})
                else:
                    answer({"error": "its process ended (%s) before the module was done" % why,
                            "at": request["file"], "kind": "input"})
                continue
            os.close(closed)
            child = True
            state["path"], state["seconds"] = request["file"], request.get("seconds", 400)
        if "close" in request:
            if child:
                os.write(closing, b"c")
                os._exit(0)
            answer({"closed": True})
            continue
        handle(request, state, answer)


def main():
    del sys.argv[1:]  # a file may read it
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(fields):
        channel.write(json.dumps(fields) + "\n")
        channel.flush()

    serve(answer)


if __name__ == "__main__":
    main()
