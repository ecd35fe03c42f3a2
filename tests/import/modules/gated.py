"""Root-mean-square normalisation and a gated unit, parameters of its own."""
import torch
from torch import nn
from torch.nn import functional as F


class Gated(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.wide = nn.Parameter(torch.randn(width, 2 * inner) * 0.02)
        self.narrow = nn.Parameter(torch.empty(inner, width))
        nn.init.xavier_uniform_(self.narrow)

    def forward(self, x):
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.scale
        gate, value = (x @ self.wide).chunk(2, dim=-1)
        return (F.silu(gate) * value) @ self.narrow


rows = 1024
width = 512
inner = 1408


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return [width, inner]
