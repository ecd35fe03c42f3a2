import torch


class Model(torch.nn.Module):
    def forward(self, x):
        x = x * 2
        return torch.sort(x, dim=1)[0]


rows = 16


def get_inputs():
    return [torch.rand(rows, 32)]
