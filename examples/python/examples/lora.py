"""Adapters of low rank over a frozen base: only the adapters are shared. Learns MNIST's digits
upside down from a base that knows them upright: `python lora.py --data FOLDER [--peers ADDRESS]`."""

import argparse

import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gossipnode
from mnist import accuracy, digits


class Adapted(nn.Module):
    """A linear layer that stays as it is, plus a product of two thin matrices that learn."""

    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = nn.Linear(base.in_features, rank, bias=False), nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def train(model, x, y, steps, flock=None):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-3)
    while steps and not (flock and flock.state.over):
        batch = torch.randint(len(x), (64,))
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
        steps = steps if flock else steps - 1
        flock and flock.step(samples=64)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, help="folder of the four files of MNIST")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--listen", default="0.0.0.0:0")
    options = parser.parse_args()
    torch.manual_seed(1)  # all have the same base
    base = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
    train(base, *digits(options.data, "train"), options.steps)
    model = nn.Sequential(Adapted(base[0]), base[1], Adapted(base[2]))
    x, y = digits(options.data, "train")
    tx, ty = digits(options.data, "t10k")
    before = accuracy(model, tx.flip(1), ty)
    with gossipnode.join(model, run="upside-down", peers=options.peers, listen=options.listen, steps=options.steps) as flock:
        print("others join", flock.address, flush=True)
        train(model, x.flip(1), y, options.steps, flock)
    print(f"accuracy {accuracy(model, tx.flip(1), ty):.4f} upside down, {before:.4f} without adapters")


if __name__ == "__main__":
    main()
