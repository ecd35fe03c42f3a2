"""${title}: the operator ${name}."""
import os

import torch

from . import ${plan}, _runtime
//% if hub
from ._ops import add_op_namespace_prefix  # kernel-builder makes it: a namespace for each build
//% end

operation = _runtime.Operation(os.path.dirname(os.path.abspath(__file__)), ${plan}.KERNELS)


# What is read, and what is then written, by type.
_TYPES = {
//% each types
    (${read}): (${written}),
//% end
}
_NAMES = (${input_strings})


def _dims(${arguments}):
    """The sizes, from the tensors' shapes; what does not fit together is an exception."""
    _runtime.check_types(_NAMES, (${input_names}), _TYPES)
//% each inputs
    _runtime.check_rank("${tensor}", ${tensor}, ${rank})
//% end
//% each inferred
    dim_${dim} = ${from}
//% end
//% each given
    dim_${dim} = ${dim}
//% end
//% each derived
    dim_${dim} = ${value}
//% end
//% each inputs
    _runtime.check_shape("${tensor}", ${tensor}, (${shape}))
//% end
    return (${settable})


def _outputs(${dims_arguments}, types):
//% each derived
    dim_${dim} = ${value}
//% end
    return [
//% each outputs
        torch.empty((${shape}), dtype=types[${number}], device=device),
//% end
    ]


def fallback(${arguments}):
    """The same by PyTorch's own operators: the values of what is written, in the task's order."""
//% if torch_ready
    F = torch.nn.functional
//% each inferred
    ${dim} = ${from}
//% end
//% each derived
    ${dim} = ${plain}
//% end
    return ${torch}
//% else
    raise RuntimeError("${name}: no kernel of this package is for these sizes or this device, and the task "
                       "has no torch line to fall back to")
//% end


@torch.library.custom_op(${qualified}, mutates_args=(${mutated}))
def ${name}(${signature}) -> ${returns}:
    _sizes = _dims(${arguments})
    _inputs = [${input_list}]
    _runtime.check_place(_NAMES, _inputs)
    _outputs_made = _outputs(*_sizes, _inputs[0].device, _TYPES[tuple(t.dtype for t in _inputs)])
    if not operation.run(_sizes, _inputs + _outputs_made):
        _runtime.take(fallback(${arguments}), [${targets}])
    ${give_back}


@${name}.register_fake
def _(${arguments}):
    _sizes = _dims(${arguments})
    _types = _TYPES[tuple(t.dtype for t in (${input_names}))]
    _outputs_made = _outputs(*_sizes, ${first}.device, _types)
    ${give_back}


def example(${example_arguments}seed=0, device="cuda", types=None):
    """Arguments for a call at these sizes, drawn at random; `types` are those of a kernel."""
    _how = {"generator": torch.Generator(device).manual_seed(seed), "device": device}
//% each derived
    dim_${dim} = ${value}
//% end
    _made = (
//% each inputs
        ${make},
//% end
    )
    return tuple(_t.to(_type) for _t, _type in zip(_made, types or [_t.dtype for _t in _made])) + (
//% each given
        dim_${dim},
//% end
    )
