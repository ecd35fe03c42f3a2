"""Holds the operator to PyTorch's rules and to its own fallback; needs a GPU.

    python3 tests/test_op.py
"""
import sys

import torch

import ${name} as package


def main():
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 0
    for kernel in package.operation.kernels:
        torch.library.opcheck(package.${name}, package.example(*kernel.own, types=kernel.types))
        before = package.operation.launches
        given = package.${name}(*package.example(*kernel.own, seed=1, types=kernel.types))
        assert package.operation.launches == before + 1, "the kernel did not run: %s" % package.operation.fallbacks
        compiled = torch.compile(package.${name}, fullgraph=True)(*package.example(*kernel.own, seed=1, types=kernel.types))
        for a, b in zip(torch.utils._pytree.tree_leaves(given), torch.utils._pytree.tree_leaves(compiled)):
            assert torch.equal(a.isnan(), b.isnan()) and torch.equal(a.nan_to_num(), b.nan_to_num())
        print("ok: %s at %s" % (kernel.title, kernel.own))
    return 0


def test_op():
    """For pytest."""
    assert main() == 0


if __name__ == "__main__":
    sys.exit(main())
