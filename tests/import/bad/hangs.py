import torch


class Model(torch.nn.Module):
    def forward(self, x):
        while True:
            pass


def get_inputs():
    return [torch.rand(4, 4)]
