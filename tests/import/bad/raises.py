import torch


class Model(torch.nn.Module):
    def forward(self, x):
        raise RuntimeError("nothing here yet")


def get_inputs():
    return [torch.rand(4, 4)]
