"""${title}.

${origin}

    import ${name}
    module = ${name}.Module()                   # in the place of the module that was imported:
    module.load_state_dict(old.state_dict())    # it has the same parameters, by the same names
    results = module(${input_arguments})

`${name}.forward(${input_arguments}, parameters)` is the same as a function; `parameters` maps names of the state_dict to tensors. Each task is a PyTorch operator, torch.ops.cutepilot.${name}_TASK. `${name}.parts()` says of each what computes it, a kernel or PyTorch, and how often it has.
//% if left_out
What the module does in training, and this does not: ${left_out}.
//% end
"""
import torch

if not hasattr(torch.library, "custom_op"):
    raise ImportError("${name} needs torch.library.custom_op, which PyTorch has since 2.4; this is "
                      + torch.__version__)

from . import _graph  # noqa: E402

__all__ = ["Module", "forward", "parts", "forget"]


def forward(*inputs, parameters=None):
    """Runs all tasks. `parameters`: a mapping of the module's names to tensors, or the last argument."""
    if parameters is None and len(inputs) == len(_graph.INPUTS) + 1:
        *inputs, parameters = inputs
    parameters = parameters or {}
    if len(inputs) != len(_graph.INPUTS):
        raise TypeError("${name} takes %d inputs (%s), not %d" % (
            len(_graph.INPUTS), ", ".join(name for name, _ in _graph.INPUTS), len(inputs)))
    missing = [name for name, _ in _graph.PARAMETERS if name not in parameters]
    if missing:
        raise KeyError("%s is not among the parameters" % missing[0])
    return _graph.call(*inputs, *[parameters[name] for name, _ in _graph.PARAMETERS])


class Module(torch.nn.Module):
    """In the place of the module that was imported: the same parameters by the same names.

    Sizes are the module's own unless they are given (Module(hidden=64)). What a state_dict has beyond the
    parameters that are read, such as running statistics, is passed over; `passed_over` lists it.
    """

    def __init__(self, device=None, **sizes):
        super().__init__()
        self.passed_over = []
        shapes = _graph.sizes(sizes)
        for name, dtype in _graph.PARAMETERS:
            *path, last = name.split(".")
            owner = self
            for word in path:
                if word not in owner._modules:
                    owner.add_module(word, torch.nn.Module())
                owner = owner._modules[word]
            value = torch.empty(shapes[name], dtype=dtype, device=device)
            if name in _graph.BUFFERS:
                owner.register_buffer(last, value)
            else:
                owner.register_parameter(last, torch.nn.Parameter(value, requires_grad=dtype.is_floating_point))
        self._names = [name for name, _ in _graph.PARAMETERS]
        self._register_load_state_dict_pre_hook(self._pass_over)

    @classmethod
    def of(cls, module):
        """Reads the very parameters of a module (they are shared, not copied), which it can then replace."""
        made = cls.__new__(cls)
        torch.nn.Module.__init__(made)
        theirs = dict(module.named_parameters(remove_duplicate=False))
        theirs.update((n, b) for n, b in module.named_buffers(remove_duplicate=False) if n not in theirs)
        made.passed_over = sorted(set(module.state_dict()) - {name for name, _ in _graph.PARAMETERS})
        for name, _ in _graph.PARAMETERS:
            if name not in theirs:
                raise KeyError("the module has no parameter %s" % name)
            *path, last = name.split(".")
            owner = made
            for word in path:
                if word not in owner._modules:
                    owner.add_module(word, torch.nn.Module())
                owner = owner._modules[word]
            if isinstance(theirs[name], torch.nn.Parameter):
                owner.register_parameter(last, theirs[name])
            else:
                owner.register_buffer(last, theirs[name])
        made._names = [name for name, _ in _graph.PARAMETERS]
        made._register_load_state_dict_pre_hook(made._pass_over)
        return made

    def _pass_over(self, state, prefix, *rest):
        known = {prefix + name for name in self._names}
        self.passed_over = sorted(key[len(prefix):] for key in state if key.startswith(prefix) and key not in known)
        for key in self.passed_over:
            del state[prefix + key]

    def _parameter(self, name):
        owner = self
        *path, last = name.split(".")
        for word in path:
            owner = owner._modules[word]
        return getattr(owner, last)

    def forward(self, *inputs):
        if len(inputs) != len(_graph.INPUTS):
            raise TypeError("${name} takes %d inputs (%s), not %d" % (
                len(_graph.INPUTS), ", ".join(name for name, _ in _graph.INPUTS), len(inputs)))
        return _graph.call(*inputs, *[self._parameter(name) for name in self._names])


def parts():
    """Of each task: what computes it, its uses in a call, kernel launches and fallbacks so far by reason."""
    return {name: {"computed by": "a kernel" if n == 1 else "%d kernels" % n if n else
                   "PyTorch: its run came to no accepted kernel",
                   "uses": uses, "launches": part.operation.launches, "fallbacks": dict(part.operation.fallbacks)}
            for name, (part, n, uses) in _graph.PARTS.items()}


def forget():
    """Prepared parameters of all tasks are prepared again at the next call (see _runtime.Operation)."""
    for part, _, _ in _graph.PARTS.values():
        part.operation.forget()
