"""A product in bf16 between f32 tensors."""
import torch
from torch import nn


class Mixed(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inner, outer, dtype=torch.bfloat16) / 16)

    def forward(self, x):
        y = (x.to(torch.bfloat16) @ self.weight).float()
        return torch.relu(y)


rows = 512
inner = 256
outer = 128


def get_inputs():
    return [torch.randn(rows, inner)]


def get_init_inputs():
    return [inner, outer]
