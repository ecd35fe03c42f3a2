"""${title}.

${origin}

    import ${name}
    ${example}

`${name}.${name}` is a PyTorch operator: it works under torch.compile, torch.export and CUDA graphs. Where no kernel of this package is for the sizes or the GPU, PyTorch computes the same by
    ${torch}
`${name}.operation.launches` and `.fallbacks` count both.
//% if backward
Gradients come from the kernels of ${name}_backward.
//% else
There are no gradients: call it under torch.no_grad(), or export it with --backward and a run on a task that
computes them.
//% end
"""
import torch

if not hasattr(torch.library, "custom_op"):
    raise ImportError("${name} needs torch.library.custom_op, which PyTorch has since 2.4; this is "
                      + torch.__version__)

from ._operator import ${name}, example, fallback, operation  # noqa: E402

__all__ = ["${name}", "example", "fallback", "operation"]
//% if backward
from ._backward import ${name}_backward  # noqa: E402
from ._backward import operation as backward_operation  # noqa: E402,F401


def _keep(ctx, inputs, output):
    ${unpack_inputs} = inputs
    ${unpack_outputs} = ${output_tuple}
    ctx.save_for_backward(${saved})


def _gradients(ctx, ${gradient_arguments}):
    ${saved_tuple} = ctx.saved_tensors
//% each gradients
    ${gradient} = ${gradient}.contiguous()
//% end
    _made = ${name}_backward(${backward_arguments})
    ${backward_tuple} = ${made_tuple}
    return ${returned}


${name}.register_autograd(_gradients, setup_context=_keep)
//% end
