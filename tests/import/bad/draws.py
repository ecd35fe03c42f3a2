import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


rows = 16


def get_inputs():
    return [torch.rand(rows, 32)]
