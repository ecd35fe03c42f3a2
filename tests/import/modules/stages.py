"""A small residual network: more tensors than one task has, stages that repeat themselves."""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(x + self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))))


class Model(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.Sequential(*[Block(channels) for _ in range(5)])
        self.head = nn.Linear(channels, classes)

    def forward(self, x):
        x = self.blocks(self.pool(torch.relu(self.stem(x))))
        return self.head(x.mean(dim=(2, 3)))


batch = 16
channels = 48
height = 64
width = 64
classes = 10


def get_inputs():
    return [torch.rand(batch, 3, height, width)]


def get_init_inputs():
    return [channels, classes]
