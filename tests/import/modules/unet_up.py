"""The way up in a U-Net: a transposed convolution, the skipped features beside it, a convolution."""
import torch
from torch import nn


class Up(nn.Module):
    def __init__(self, low, skip):
        super().__init__()
        self.up = nn.ConvTranspose2d(low, skip, 2, stride=2)
        self.conv = nn.Conv2d(2 * skip, skip, 3, padding=1)
        self.norm = nn.GroupNorm(4, skip)

    def forward(self, x, skipped):
        x = torch.cat([self.up(x), skipped], dim=1)
        return torch.relu(self.norm(self.conv(x)))


batch, low, skip, size = 2, 128, 64, 32


def get_inputs():
    return [torch.randn(batch, low, size, size), torch.randn(batch, skip, 2 * size, 2 * size)]


def get_init_inputs():
    return [low, skip]
