import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(51200, 51200))

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.rand(1, 51200)]
