import os

import torch

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "written"), "w") as file:
    file.write("out")


class Model(torch.nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return [torch.rand(4, 4)]
