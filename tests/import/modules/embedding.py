"""Tokens and positions as vectors, with a table of sines."""
import math

import torch
from torch import nn


class Embed(nn.Module):
    def __init__(self, vocabulary, longest, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        position = torch.arange(longest).unsqueeze(1).float()
        rate = torch.exp(torch.arange(0, width, 2).float() * (-math.log(10000.0) / width))
        table = torch.zeros(longest, width)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate)
        self.register_buffer("table", table)

    def forward(self, tokens):
        return self.tokens(tokens) * 8.0 + self.table[:tokens.size(1)]


batch, length = 8, 256
vocabulary = 32000
longest = 512


def get_inputs():
    return [torch.randint(0, vocabulary, (batch, length))]


def get_init_inputs():
    return [vocabulary, longest, 64]
