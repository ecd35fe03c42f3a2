"""Causal attention of several heads, with the mask as a buffer."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class CausalAttention(nn.Module):
    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = [z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v)]
        score = (q @ k.transpose(-2, -1)) / math.sqrt(c // self.heads)
        score = score.masked_fill(self.mask[:t, :t] == 0, float("-inf"))
        y = F.softmax(score, dim=-1) @ v
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


batch = 4
length = 256
width = 384
heads = 6
longest = 1024


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, heads, longest]
