"""What all systems of the race train on, and how they are measured: data, model, steps, judgement.

A member's process is started by race.py with its settings in the variable RIVALS. It makes a Member, joins its
system, and then calls begin; gradient and counted in each step; end. The processes meet by files in one folder.
"""

import gzip
import json
import os
import time

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from meet import await_mark, kill_tree, mark, settings

BATCH, MOMENTUM = 64, 0.9


def idx(path):
    with gzip.open(path) as file:
        raw = bytearray(file.read())
    shape = [int.from_bytes(raw[i:i + 4], "big") for i in range(4, 4 + 4 * raw[3], 4)]
    return torch.frombuffer(raw, dtype=torch.uint8, offset=4 + 4 * raw[3]).view(shape)


def digits(folder, split):
    return (idx(f"{folder}/{split}-images-idx3-ubyte.gz").flatten(1) / (255 * 0.33467),
            idx(f"{folder}/{split}-labels-idx1-ubyte.gz").long())


def model(seed):
    """The same initial values for the same seed."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def batches(x, y, seed):
    """Each row once a pass, in an order of the seed, without end; what does not fill a batch is left out."""
    order = torch.Generator().manual_seed(seed)
    while True:
        rows = torch.randperm(len(x), generator=order)
        for some in rows[:len(rows) // BATCH * BATCH].split(BATCH):
            yield x[some], y[some]


def accuracy(net, data):
    x, y = digits(data, "t10k")
    with torch.no_grad():
        return (net(x).argmax(1) == y).float().mean().item()


class Member:
    """One of the members: its model, its rows, its steps."""

    def __init__(self):
        torch.set_num_threads(1)
        for name, value in settings().items():
            setattr(self, name, value)  # rank, world, seed, rate, steps, trouble, data, folder, and the system's own
        x, y = (whole[self.rank::self.world].clone() for whole in digits(self.data, "train"))
        self.batches = batches(x, y, 100 * self.seed + self.rank)
        self.net = model(self.seed)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=self.rate, momentum=MOMENTUM)
        self.times, self.own = [], 0.0
        self.forward = self.net  # what is called, where a system wraps the model

    def begin(self):
        """Waits until all have joined."""
        mark(self.folder, f"ready.{self.rank}")
        await_mark(self.folder, "go")
        self.times.append(time.monotonic())

    def gradient(self, progress):
        """Of the next batch, at the rate that progress (0 to 1) leaves: it falls to zero in a line. None: the system's own schedule."""
        if progress is not None:
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate * max(1 - progress, 0)
        x, y = next(self.batches)
        began = time.perf_counter()
        loss = cross_entropy(self.forward(x), y)
        self.optimizer.zero_grad()
        loss.backward()
        self.own = time.perf_counter() - began
        return loss

    def counted(self):
        """After each step, which takes as long as the pace says, as that of a larger model would. The last member is the one in trouble."""
        last = self.rank == self.world - 1
        took = max(self.own, self.pace) * (10 if last and self.trouble == "slow" else 1)
        time.sleep(max(took - self.own, 0))
        self.times.append(time.monotonic())
        if last and self.trouble == "kill" and self.done() == self.steps // 2:
            kill_tree(os.getpid())

    def done(self):
        return len(self.times) - 1

    def end(self, **more):
        """Says how it went, once all have ended."""
        ended = time.monotonic()
        mark(self.folder, f"done.{self.rank}")
        await_mark(self.folder, "judge")
        begun, reached = self.times[0], self.times[:self.steps + 1]
        gaps = [b - a for a, b in zip(self.times, self.times[1:])]
        mark(self.folder, f"result.{self.rank}", json.dumps({
            "accuracy": accuracy(self.net, self.data), "seconds": ended - begun, "share_seconds": reached[-1] - begun,
            "steps": self.done(), "longest": max(gaps, default=0), **more}))
