"""Models of torch with the parameters of tensor/nn's: the same names, shapes and order.

A layer of tensor/nn whose module torch has is that module; these are the others. A
safetensors file that either side writes loads on the other, with strict=True.
"""

import torch
from torch import nn

try:
    from torchvision import models
except ImportError:  # which only torchvision's models need
    models = None


class Residual(nn.Sequential):
    """x + f(x)."""

    def forward(self, x):
        return x + super().forward(x)


class ResidualVia(nn.Sequential):
    """shortcut(x) + f(x)."""

    def __init__(self, shortcut, *layers):
        super().__init__(*layers)
        self.f = len(layers)
        self.shortcut = shortcut

    def forward(self, x):
        y = x
        for layer in list(self)[:self.f]:
            y = layer(y)
        return self.shortcut(x) + y


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


class GRU(nn.GRU):
    """Its values at each place, without the last ones apart."""

    def __init__(self, width, hidden):
        super().__init__(width, hidden, batch_first=True)

    def forward(self, x):
        return super().forward(x)[0]


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


def without_dropout(net):
    """The net with every Dropout kept from dropping, since each side draws its own numbers."""
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return net


def mobilenet_v2(classes=10):
    return without_dropout(models.mobilenet_v2(num_classes=classes))


def vgg(name, classes=10):
    """torchvision's, with one layer as classifier."""
    net = getattr(models, name)(num_classes=classes)
    net.avgpool, net.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(512, classes)
    return net


def resnet18(classes=10):
    """torchvision's, with a first convolution for small pictures."""
    net = models.resnet18(num_classes=classes)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return net


def cifar_resnet(blocks, classes=10):
    """Of 6·blocks + 2 layers, of torchvision's blocks."""
    net = models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=classes)
    net.conv1, net.bn1, net.maxpool = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.Identity()
    net.inplanes = 16
    for i in range(3):
        setattr(net, f"layer{i + 1}", net._make_layer(models.resnet.BasicBlock, 16 << i, blocks, stride=min(i + 1, 2)))
    net.layer4, net.fc = nn.Identity(), nn.Linear(64, classes)
    return net


def alexnet(classes=10):
    """torchvision's, with kernels and pools for pictures of 32×32 pixels."""
    net = without_dropout(models.alexnet(num_classes=classes))
    for place, (channels, out, stride) in {0: (3, 64, 2), 3: (64, 192, 1)}.items():
        net.features[place] = nn.Conv2d(channels, out, 3, stride=stride, padding=1)
    for place in (2, 5, 12):
        net.features[place] = nn.MaxPool2d(2)
    net.avgpool, net.classifier[1] = nn.Identity(), nn.Linear(256 * 2 * 2, 4096)
    return net


def gru(width=128, vocabulary=256):
    """The zoo's gru."""
    return nn.Sequential(Tokens(vocabulary, width), GRU(width, width), nn.Linear(width, vocabulary))


DEEP = {"mobilenet_v2": mobilenet_v2, "alexnet": alexnet, "vgg11_bn": lambda: vgg("vgg11_bn"), "vgg16_bn": lambda: vgg("vgg16_bn"),
        "vgg19_bn": lambda: vgg("vgg19_bn"), "resnet18": resnet18, "resnet20": lambda: cifar_resnet(3), "resnet110": lambda: cifar_resnet(18)}
