import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = torch.nn.Tanh()

    def forward(self, x, index):
        turned = torch.nn.functional.softmax(self.turn(x), dim=1)
        return turned[index * index - index * index + 1]


rows = 16


def get_inputs():
    return [torch.rand(rows, 5), torch.randint(0, rows, (7,))]
