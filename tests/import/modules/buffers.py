"""Layers with buffers that are drawn, filled and computed: more tensors than one task has."""
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.register_buffer("noise", torch.randn(width))
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("table", torch.arange(width).float() / width)

    def forward(self, x):
        return x + torch.relu(self.norm(self.linear(x))) * self.scale + self.noise * self.table


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*[Layer(width) for _ in range(13)])

    def forward(self, x):
        return self.layers(x)


batch = 6
width = 16


def get_inputs():
    return [torch.randn(batch, width)]


def get_init_inputs():
    return [width]
