"""A transformer's feed-forward part: normalised, widened, gated by GELU, added to what came in."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.act = nn.GELU()
        self.down = nn.Linear(hidden, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


batch, length, width = 8, 512, 768
hidden = 4 * 768


def get_inputs():
    return [torch.randn(batch, length, width)]


def get_init_inputs():
    return [width, hidden]
