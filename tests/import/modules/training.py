"""What a module does in training: it drops elements by functions, draws noise like another tensor, and
attends where a mask lets it; then it is enlarged between its samples."""
import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.qkv = nn.Linear(features, 3 * features)
        self.spread = nn.Parameter(torch.full((features,), 0.1))
        self.attend = nn.MultiheadAttention(features, 2, dropout=0.2, batch_first=True)

    def forward(self, x, hidden):
        q, k, v = self.qkv(F.dropout(x, 0.3, training=self.training)).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=~hidden[:, None, :], dropout_p=0.1)
        y = y + torch.randn_like(y) * self.spread
        y, _ = self.attend(y, y, y, key_padding_mask=hidden, need_weights=False)
        return F.interpolate(F.dropout1d(y)[:, None], scale_factor=2, mode="bilinear", align_corners=True)


batch = 3
length = 12
features = 16


def get_inputs():
    hidden = torch.zeros(batch, length, dtype=torch.bool)
    hidden[:, -3:] = True
    return [torch.randn(batch, length, features), hidden]


def get_init_inputs():
    return [features]
