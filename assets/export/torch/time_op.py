"""Times the operator beside PyTorch's own expression, eager and compiled; needs a GPU.

    python3 tests/time_op.py

Medians of 50 calls each, in turns, with the L2 written over before each of them.
"""
import statistics
import sys

import torch

import ${name} as package


def main():
    if not torch.cuda.is_available():
        print("skipped: PyTorch sees no GPU")
        return 0
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    for kernel in package.operation.kernels:
        call = package.example(*kernel.own, types=kernel.types)
        ways = {"${name}": package.${name}, "eager": package.fallback,
                "compiled": torch.compile(package.fallback)}
        times = {way: [] for way in ways}
        with torch.no_grad():
            for turn in range(53):
                for way, function in ways.items():
                    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                    flush.zero_()
                    torch.cuda._sleep(200_000)  # lets the host get ahead
                    start.record()
                    function(*call)
                    end.record()
                    torch.cuda.synchronize()
                    if turn >= 3:
                        times[way].append(start.elapsed_time(end) * 1e3)
        print("%s at %s: %s" % (kernel.title, kernel.own, ", ".join(
            "%s %.1f us" % (way, statistics.median(t)) for way, t in times.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
