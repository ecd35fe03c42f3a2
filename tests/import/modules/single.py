"""Padded windows over what has only one row and column: the rest of the window is outside."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.squeeze = nn.AdaptiveAvgPool2d(1)
        self.mix = nn.Conv2d(channels, channels, 1)
        self.deep = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        self.pool = nn.MaxPool2d(3, stride=1, padding=1)

    def forward(self, x):
        y = self.deep(torch.relu(self.mix(self.squeeze(x))))
        return x * self.pool(torch.tanh(y))


batch = 8
channels = 12
side = 20


def get_inputs():
    return [torch.randn(batch, channels, side, side)]


def get_init_inputs():
    return [channels]
