"""A residual stage in training: two convolutions with batch normalisation and a shortcut."""
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels_in, channels_out):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels_out)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels_out)
        self.shortcut = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 1, stride=2, bias=False),
            nn.BatchNorm2d(channels_out))

    def forward(self, x):
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return self.relu(out)


batch_size = 16
channels_in = 64
channels_out = 128
height = 56
width = 56


def get_inputs():
    return [torch.rand(batch_size, channels_in, height, width)]


def get_init_inputs():
    return [channels_in, channels_out]
