import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * torch.bernoulli(torch.full_like(x, 0.5))


rows = 16


def get_inputs():
    return [torch.rand(rows, 32)]
