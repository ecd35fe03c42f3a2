"""${title}: its tasks in their order.

${origin}
"""
import torch

from . import _runtime
//% each parts
from . import _part_${part}
//% end

# Each task: its operator's module, how many of its kernels are in this package, its uses in a call.
PARTS = {
//% each parts
    "${part}": (_part_${part}, ${nkernels}, ${uses}),
//% end
}
# What the module reads, in the order of `call`: names as in its state_dict, shapes over its dimensions.
INPUTS = [
//% each inputs
    ("${path}", ${dtype}),
//% end
]
PARAMETERS = [
//% each parameters
    ("${path}", ${dtype}),
//% end
]
# Those among the parameters that the module has as buffers.
BUFFERS = set([
//% each buffers
    "${path}",
//% end
])


def sizes(given):
    """The module's dimensions, as a dictionary: those that are given, and its own values for the others."""
    known = {
//% each dims
        "${dim}": ${value},
//% end
    }
    unknown = [name for name in given if name not in known]
    if unknown:
        raise TypeError("the module has no dimension %s; it has %s" % (unknown[0], ", ".join(known) or "none"))
    known.update(given)
//% each dims
    dim_${dim} = known["${dim}"]
//% end
//% each derived
    dim_${dim} = ${value}
//% end
    return {
//% each parameters
        "${path}": (${shape}),
//% end
    }


def call(${arguments}):
    """The module's results; parameters come after inputs."""
    ${body}
