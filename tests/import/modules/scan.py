"""Prefix sums from the right, neighbours, and a choice; the example inputs are unnamed sizes."""
import torch
from torch import nn
from torch.nn import functional as F


class Scan(nn.Module):
    def forward(self, x):
        back = x.flip(1).cumsum(1).flip(1)
        left = F.pad(x, (1, 0))[:, :-1]
        turned = torch.roll(x, 1, dims=1)
        return torch.where(back > left, back - left, turned * 0.5)


example_inputs = (torch.randn(64, 4096),)
