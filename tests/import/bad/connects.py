import socket

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        socket.create_connection(("127.0.0.1", 9), 1)
        return x


def get_inputs():
    return [torch.rand(4, 4)]
