import torch

cache = bytearray(200 << 30)


class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.rand(4, 4)]
