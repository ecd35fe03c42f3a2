"""A loss: cross entropy with smoothed labels over classes, and a penalty."""
import torch
from torch import nn
from torch.nn import functional as F


class Loss(nn.Module):
    def forward(self, logits, labels):
        chosen = F.log_softmax(logits, dim=1).gather(1, labels.unsqueeze(1)).squeeze(1)
        spread = F.log_softmax(logits, dim=1).mean(dim=1)
        return -(0.9 * chosen + 0.1 * spread).mean() + 1e-4 * torch.logsumexp(logits, 1).square().mean()


batch = 4096
classes = 1000


def get_inputs():
    return [torch.randn(batch, classes) * 2, torch.randint(0, classes, (batch,))]
