"""Models of torch with the parameters of tensor/nn's: the same names, shapes and order.

A layer of tensor/nn whose module torch has is that module; these are the others. A
safetensors file that either side writes loads on the other, with strict=True.
"""

import torch
from torch import nn


class Residual(nn.Sequential):
    """x + f(x)."""

    def forward(self, x):
        return x + super().forward(x)


class Concat(nn.ModuleList):
    """The outputs of several modules side by side, in the dimension of channels."""

    def __init__(self, *branches, dim=-1):
        super().__init__(branches)
        self.dim = dim

    def forward(self, x):
        return torch.cat([branch(x) for branch in self], dim=self.dim)


class Positions(nn.Embedding):
    """Adds learned values to each place of a sequence."""

    def forward(self, x):
        return x + self.weight


class CausalSelfAttention(nn.MultiheadAttention):
    """Each place looks at itself and those before it. By torch's fused kernel, which is
    faster than MultiheadAttention's own forward."""

    def __init__(self, width, heads, bias):
        super().__init__(width, heads, bias=bias, batch_first=True)

    def forward(self, x):
        n, context, width = x.shape
        qkv = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        q, k, v = qkv.view(n, context, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out_proj(y.transpose(1, 2).reshape(n, context, width))


class Tokens(nn.Embedding):
    """An Embedding of whole numbers in floats."""

    def forward(self, x):
        return super().forward(x.long())


def gpt(layers=4, width=128, heads=4, context=128, vocabulary=256):
    """The zoo's gpt, with its initial values' distributions."""
    blocks = []
    for _ in range(layers):
        blocks.append(Residual(nn.LayerNorm(width), CausalSelfAttention(width, heads, bias=False)))
        blocks.append(Residual(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)))
    net = nn.Sequential(Tokens(vocabulary, width), Positions(context, width), *blocks,
                        nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False))
    for name, p in net.named_parameters():
        if p.dim() > 1:
            last = name.endswith("3.weight")  # what is added to the residual stream by a block's layers
            nn.init.normal_(p, std=0.02 / (2 * layers) ** 0.5 if last else 0.02)
    return net
