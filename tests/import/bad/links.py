import os

import torch

size = 8
if not os.path.islink("output-0"):
    os.symlink("elsewhere", "output-0")  # is not followed


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.rand(size, 4)]
