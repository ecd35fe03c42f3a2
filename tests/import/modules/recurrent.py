"""A bidirectional LSTM of two layers over time, then a GRU with a state that is given."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * hidden, hidden, 1, batch_first=True)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x, h0):
        sequence, _ = self.lstm(x)
        out, last = self.gru(torch.tanh(sequence), h0)
        return self.head(out[:, -1]), last


batch = 8
length = 32
features = 24
hidden = 40
classes = 5


def get_inputs():
    return [torch.rand(batch, length, features), torch.randn(1, batch, hidden)]


def get_init_inputs():
    return [features, hidden, classes]
