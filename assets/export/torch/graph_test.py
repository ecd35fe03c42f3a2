"""Holds the module's kernels to its own fallback, as an operator, compiled and in a CUDA graph; needs a GPU.

    python3 tests/test_module.py
"""
import sys

import torch

import ${name} as package
from ${name} import _graph


def close(a, b):
    for x, y in zip(torch.utils._pytree.tree_leaves(a), torch.utils._pytree.tree_leaves(b)):
        torch.testing.assert_close(x.cpu().float(), y.cpu().float(), rtol=5e-2, atol=5e-2)


def example(device):
    torch.manual_seed(0)
    module = package.Module()
    for p in module.parameters():
        torch.nn.init.normal_(p, std=0.1)
//% each dims
    dim_${dim} = ${value}
//% end
//% each derived
    dim_${dim} = ${value}
//% end
    inputs = [
//% each inputs
        (${make}).to(${dtype}),
//% end
    ]
    return module.to(device), [x.to(device) for x in inputs]


def main():
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 0
    with torch.no_grad():
        module, inputs = example("cpu")
        wanted = module(*inputs)
        module, inputs = module.cuda(), [x.cuda() for x in inputs]
        close(module(*inputs), wanted)
        close(torch.compile(module)(*inputs), wanted)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = module(*inputs)
        graph.replay()
        close(captured, wanted)
    for name, part in package.parts().items():
        print("%s: %s" % (name, part))
    return 0


def test_module():
    """For pytest."""
    assert main() == 0


if __name__ == "__main__":
    sys.exit(main())
